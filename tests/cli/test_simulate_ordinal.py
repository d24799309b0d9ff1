"""`heedful simulate ordinal`: its figures against loops written out here, its files, its words."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command import done, heedful

from heedful.core.fold import play
from heedful.experiments.ordinal import ordinal_setting

KEYS = ["learner", "target", "scale", "map", "rounds", "seeds", "checkpoints", "rank_loss", "stderr", "bound"]
KEYS += ["rounds_per_second", "asked_for"]


def films() -> tuple[np.ndarray, np.ndarray]:
    """Sixty films with two features and grades from 1 to 5 that follow the first of them."""
    rng = np.random.default_rng(6)
    X = np.round(rng.standard_normal((60, 2)) * [1.0, 30.0] + [0.0, 100.0], 3)
    return X, np.clip(np.round(2.0 * X[:, 0] + 3.0), 1, 5).astype(int)


@pytest.fixture
def films_file(tmp_path: Path) -> Path:
    rows = [f"film {i},{a},{b},{g}" for i, ((a, b), g) in enumerate(zip(*films()))]
    file = tmp_path / "films.csv"
    file.write_text("title,warmth,length,rating\n" + "\n".join(rows) + "\n")
    return file


def losses_of(learner: Any, scene: Any, rounds: int) -> list[float]:
    """|shown - true| of every round, from `play`."""
    return [float(abs(played.y - played.feedback)) for played, _ in play(learner, scene.world, rounds, scene.draw)]


@pytest.mark.parametrize("scale", ["standard", "unit", "none"])
def test_figures_are_those_of_a_loop(films_file: Path, scale: str) -> None:
    line = f"simulate ordinal {{}} --target rating --scale {scale} --rounds 80 --seeds 3 --interpreted --json"
    got = done(line + " --learner ordinal-logistic --learner widrow-hoff:eta=1e-6", films_file, notes=True)
    setting = ordinal_setting(*films(), 5, scale=scale, seeds=range(3))
    assert [row["learner"] for row in got.json] == ["ordinal-logistic", "widrow-hoff:eta=1e-6", "constant-rank"]
    assert [row["asked_for"] for row in got.json] == [True, True, False]
    for row in got.json:
        assert list(row) == KEYS
        assert (row["target"], row["scale"], row["map"], row["rounds"]) == ("rating", scale, None, 80)
        losses = np.array([losses_of(setting.learner(row["learner"]), scene, 80) for scene in setting.scenes])
        average = np.array([losses[:, :t].mean(axis=1) for t in row["checkpoints"]])
        np.testing.assert_allclose(row["rank_loss"], average.mean(axis=1), rtol=1e-12)
        np.testing.assert_allclose(row["stderr"], average.std(axis=1, ddof=1) / np.sqrt(3), rtol=1e-9)
        assert row["bound"] is None


def test_without_more_said_it_is_one_pass_of_two_learners_beside_a_constant(films_file: Path) -> None:
    rows = heedful("simulate ordinal {} --target rating --interpreted --json", films_file).json
    assert [row["learner"] for row in rows] == ["prank", "ordinal-logistic", "constant-rank"]
    assert [(row["rounds"], row["seeds"], row["scale"]) for row in rows] == [(60, 1, "standard")] * 3


def test_whoever_asks_for_the_constant_gets_it_once(films_file: Path) -> None:
    line = "simulate ordinal {} --target rating --learner constant-rank --interpreted"
    (row,) = heedful(f"{line} --json", films_file).json
    assert row["learner"] == "constant-rank"
    assert "for comparison" not in heedful(line, films_file).out


def test_the_scaling_the_map_and_what_became_of_the_columns_are_told(films_file: Path) -> None:
    line = "simulate ordinal {} --target rating --map polynomial:2 --seeds 2 --interpreted"
    got = heedful(line, films_file)
    assert "Average rank loss of rounds 1 to t: rating of 60 rows, 5 ranks, scale standard, polynomial:2" in got.out
    assert "Features: 6, polynomial:2; scaled (standard): each feature less its mean" in got.out
    assert "it looks ahead" in got.out
    assert "constant-rank" in got.out
    assert "for comparison" in got.out
    counts = np.bincount(films()[1])[1:]
    assert f"rating: 1, 2, 3, 4, 5 are the ranks 1 to 5; {counts.min()} to {counts.max()} rows each" in got.err
    assert "left out, as they are not numbers: title" in got.err
    assert heedful(f"{line} --json", films_file).json[0]["map"] == "polynomial:2"


def test_labels_and_grades_that_no_row_has(tmp_path: Path) -> None:
    file = tmp_path / "tastes.csv"
    file.write_text(
        "a,b,taste,stars\n" + "".join(f"{i},1,{'bad' if i % 2 else 'good'},{1 + 3 * (i % 2)}\n" for i in range(8))
    )
    line = "simulate ordinal {} --json --interpreted --without"
    got = heedful(f"{line} stars --target taste --order bad,ok,good", file)
    assert "taste: bad, ok, good are the ranks 1 to 3; 0 to 4 rows each" in got.err
    got = heedful(f"{line} taste --target stars", file)
    assert "stars: 1, 4 are the ranks 1 to 2" in got.err
    assert "grades that no row has are no ranks: --order 1,...,4, all of them, would count them" in got.err
    assert max(got.json[0]["rank_loss"]) <= 1.0
    assert "would count them" not in heedful(f"{line} taste --target stars --order 1,2,3,4", file).err


def test_svmlight_as_a_table(films_file: Path, tmp_path: Path) -> None:
    X, grades = films()
    file = tmp_path / "films.svm"
    file.write_text("".join(f"{g} qid:1 1:{a} 2:{b} # film\n" for (a, b), g in zip(X, grades)))
    line = "simulate ordinal {} --interpreted --json"
    one, other = heedful(line, file), heedful(f"{line} --target rating", films_file)
    assert one.json[0]["rank_loss"] == other.json[0]["rank_loss"]
    assert one.json[0]["target"] == "grade"


def test_files_hold_every_round_and_the_plot_is_drawn(films_file: Path, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    line = "simulate ordinal {} --target rating --seeds 2 --rounds 30 --interpreted --out {} --plot {}"
    done(line, films_file, tmp_path / "runs.csv", tmp_path / "runs.svg", notes=True)
    with (tmp_path / "runs.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == ["learner", "seed", "round", "rank_loss"]
    assert len(rows) == 3 * 2 * 30
    setting = ordinal_setting(*films(), 5, scale="standard", seeds=range(2))
    mine = [float(row["rank_loss"]) for row in rows if (row["learner"], row["seed"]) == ("prank", "1")]
    assert mine == losses_of(setting.learner("prank"), setting.scenes[1], 30)
    assert (tmp_path / "runs.svg").stat().st_size > 1000


def test_a_step_that_diverges_is_a_note(films_file: Path) -> None:
    line = "simulate ordinal {} --target rating --scale none --rounds 2 --interpreted --json --learner"
    assert "widrow-hoff: eta = 0.01 is too large for rows of length" in heedful(f"{line} widrow-hoff", films_file).err
    assert "too large" not in heedful(f"{line} widrow-hoff:eta=1e-6", films_file).err


@pytest.mark.slow
def test_compiled_is_as_interpreted(films_file: Path) -> None:
    line = "simulate ordinal {} --target rating --json --seeds 2"
    compiled, interpreted = heedful(line, films_file), heedful(f"{line} --interpreted", films_file)
    assert [row["rank_loss"] for row in compiled.json] == [row["rank_loss"] for row in interpreted.json]


@pytest.mark.parametrize(
    ("extra", "told"),
    [
        ("", "target: expected the column of the grades (title, warmth, length, rating), got none"),
        ("--target stars", "target: expected a column of films.csv (title, warmth, length, rating), got 'stars'"),
        ("--target warmth", "warmth: expected a grade, a whole number, got"),
        ("--target rating --scale log", "--scale: expected standard, unit, none, got 'log'"),
        ("--target rating --missing zero", "--missing: expected refuse or mean, got 'zero'"),
        ("--target rating --most-grades 4", "rating: expected 2 to 4 different grades, got 5 (from 1 to 5)"),
        (
            "--target rating --learner perceptron",
            "learner: expected one that predicts grades (ordinal), got perceptron, which is coactive",
        ),
        ("--target rating --learner prank --learner prank", "--learner: expected each once, got prank 2 times"),
        ("--target rating --out runs.txt", "--out: expected a name that ends in .csv, got 'runs.txt'"),
    ],
)
def test_bad_input_is_a_sentence(films_file: Path, extra: str, told: str) -> None:
    got = heedful(f"simulate ordinal {{}} {extra}", films_file)
    assert (got.code, got.out) == (2, "")
    assert told in got.err.splitlines()[-1]


@pytest.mark.slow
def test_compiled_is_interpreted_and_neither_is_needed(films_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a cache that is empty: a short run compiles nothing, unless it is told to."""
    cache = films_file.parent / "compiled"
    monkeypatch.setenv("HEEDFUL_CACHE_DIR", str(cache))
    monkeypatch.setattr("heedful.jit.cache._loops", {})
    line = "simulate ordinal {} --target rating --learner constant-rank --rounds 20 --seeds 2 --json"
    runs = [heedful(f"{line} {how}", films_file) for how in ("", "--interpreted", "--compiled")]
    assert len(list(cache.glob("**/*.nbc"))) == 1
    assert [run.err for run in runs] == [runs[0].err] * 3
    assert len({json.dumps([row["rank_loss"] for row in run.json]) for run in runs}) == 1
