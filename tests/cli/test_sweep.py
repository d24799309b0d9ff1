"""`heedful sweep`: the cells of a grid, what is kept of them, and what is computed again."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command import done, heedful, refusal

from heedful.cli import sweep
from heedful.cli.grid import read_grid
from heedful.core.fold import trace
from heedful.data.rating_files import open_ratings
from heedful.experiments.ordinal import ordinal_setting
from heedful.experiments.ratings import SIMPLE, rating_setting

GRID = """
data = {letor = ["*.txt"]}
users = ["strict:alpha=0.5", "noisy:depth=4"]
seeds = 2
rounds = 12
k = 3
[[learners]]
name = "second-order"
gamma = [0.1, 10]
[[learners]]
name = "perceptron"
"""
SWEEP = "sweep {} --out {} --interpreted --json --jobs 2"


@pytest.fixture
def grid(letor_file: Path) -> Path:
    file = letor_file.parent / "grid.toml"
    file.write_text(GRID)
    return file


def test_a_grid_is_the_product_of_its_lists(grid: Path) -> None:
    cells = read_grid(grid)
    learners = ["second-order:gamma=0.1", "second-order:gamma=10", "perceptron"]
    wanted = [
        (user, seed, name) for user in ("strict:alpha=0.5", "noisy:depth=4") for seed in (0, 1) for name in learners
    ]
    assert [(cell.spec["user"], cell.spec["seed"], cell.spec["learner"]) for cell in cells] == wanted
    assert len({cell.name for cell in cells}) == 12
    assert [cell.name for cell in read_grid(grid)] == [cell.name for cell in cells]


def test_a_table_of_several_lists_and_names_among_tables(grid: Path) -> None:
    grid.write_text(
        'data = {letor = ["tiny.txt"]}\nusers = ["noisy"]\nlearners = ["perceptron:batch=10", '
        '{name = "second-order", gamma = [1, 2], epsilon = [0.5, 1]}, {name = "convex", radius = 3}]'
    )
    assert [cell.spec["learner"] for cell in read_grid(grid)] == [
        "perceptron:batch=10",
        "second-order:gamma=1,epsilon=0.5",
        "second-order:gamma=1,epsilon=1",
        "second-order:gamma=2,epsilon=0.5",
        "second-order:gamma=2,epsilon=1",
        "convex:radius=3",
    ]


def test_a_cell_s_name_is_of_all_that_decides_its_result(grid: Path, letor_file: Path, own_file: Path) -> None:
    def names() -> set[str]:
        return {cell.name for cell in read_grid(grid)}

    grid.write_text(GRID.replace('"perceptron"', '"own.py:Odd"'))
    before = names()
    letor_file.rename(letor_file.with_name("another.txt"))  # where the data lie decides nothing
    assert names() == before
    for old, new in (("rounds = 12", "rounds = 13"), ("k = 3", "k = 4"), ("0.5", "0.6"), ("10]", "11]")):
        text = grid.read_text()
        grid.write_text(text.replace(old, new))
        assert names() != before, new
        grid.write_text(text)
    source = own_file.read_text()
    own_file.write_text(source + "# changed\n")  # the source of a learner of one's own
    assert len(names() & before) == 8
    own_file.write_text(source)
    with letor_file.with_name("another.txt").open("a") as file:
        file.write("1 qid:99 1:1\n")
    assert not names() & before


def test_what_is_there_is_not_computed_again(grid: Path, tmp_path: Path) -> None:
    out = tmp_path / "runs"
    first = heedful(SWEEP, grid, out)
    assert first.code == 0
    assert first.json["cells"] == {"computed": 12, "kept": 0, "failed": 0}
    assert first.err == "heedful: 12 cells computed, 0 there before\n"
    files = {file.name: file.stat().st_mtime_ns for file in out.glob("*.json")}
    assert files.keys() == {cell.name for cell in read_grid(grid)}
    assert sorted(file.name for file in out.iterdir()) == sorted([*files, "summary.csv"])  # nothing half-written

    second = heedful(SWEEP, grid, out)
    assert second.json["cells"] == {"computed": 0, "kept": 12, "failed": 0}
    assert second.json["summary"] == first.json["summary"]

    gone, damaged, foreign, *_ = sorted(files)
    kept = (out / gone).read_text()
    (out / gone).unlink()
    (out / damaged).write_text((out / damaged).read_text()[:100])
    (out / foreign).write_text(kept)
    third = heedful(SWEEP, grid, out)
    assert third.json["cells"] == {"computed": 3, "kept": 9, "failed": 0}
    assert f"heedful: {damaged} is computed again: JSONDecodeError" in third.err
    assert f"heedful: {foreign} is computed again: it is of another cell\n" in third.err
    assert gone not in third.err
    touched = {name for name in files if (out / name).stat().st_mtime_ns != files[name]}
    assert touched == {gone, damaged, foreign}
    for mine, theirs in zip(third.json["summary"], first.json["summary"]):
        assert mine | {"rounds_per_second": 0} == theirs | {"rounds_per_second": 0}


def test_the_summary_is_what_simulate_says(grid: Path, letor_file: Path, tmp_path: Path) -> None:
    got = heedful(SWEEP, grid, tmp_path / "runs").json["summary"]
    for user in ("strict:alpha=0.5", "noisy:depth=4"):
        line = f"simulate letor {{}} --user {user} --seeds 2 --rounds 12 --k 3 --interpreted --json"
        line += " -l perceptron -l second-order:gamma=0.1 -l second-order:gamma=10"
        rows = heedful(line, letor_file).json
        mine = [row for row in got if row["user"] == user]
        assert [row["learner"] for row in mine] == sorted(row["learner"] for row in rows)
        for row in rows:
            (same,) = [other for other in mine if other["learner"] == row["learner"]]
            assert (same["seeds"], same["rounds"]) == (2, 12)
            assert same["regret"] == pytest.approx(row["regret"][-1], rel=1e-12)
            assert same["stderr"] == pytest.approx(row["stderr"][-1], rel=1e-9)
            assert same["best"] == (row["regret"][-1] == min(other["regret"][-1] for other in rows))
    with (tmp_path / "runs" / "summary.csv").open(newline="") as file:
        lines = list(csv.DictReader(file))
    assert [{key: str(value) for key, value in row.items()} for row in got] == lines
    table = heedful("sweep {} --out {} --interpreted", grid, tmp_path / "runs")
    for row in got:
        if row["best"]:
            line = next(line for line in table.out.splitlines() if row["user"] in line)
            assert row["learner"] in line
            assert f"{row['regret']:#.3g} ±{row['stderr']:.2g}" in line
    assert f"All 6: {tmp_path / 'runs' / 'summary.csv'}" in table.out


def test_a_catalogue_of_people(items_file: Path, tmp_path: Path) -> None:
    grid = items_file.parent / "grid.toml"
    text = 'data = {catalogue = "items.csv", people = 3}\nusers = ["best"]\nlearners = ["perceptron"]\nrounds = '
    for seeds, rounds, over in ((1, 99, "people"), (2, 7, "seeds")):
        grid.write_text(f"{text}{rounds}\nseeds = {seeds}\n")
        (row,) = heedful("sweep {} --out {} --interpreted --json", grid, tmp_path / "runs").json["summary"]
        line = f"simulate catalogue {{}} --user best --people 3 --rounds {rounds} --seeds {seeds} --interpreted --json"
        (same,) = heedful(line, items_file).json
        assert row["rounds"] == same["rounds"] <= rounds
        assert row["regret"] == pytest.approx(same["regret"][-1], rel=1e-12)
        assert row["stderr"] == pytest.approx(same["stderr"][-1], rel=1e-12)
        assert row["best"] is True
        table = heedful("sweep {} --out {} --interpreted", grid, tmp_path / "runs")
        assert f"± is the standard error over {over}." in table.out
        short = f"nothing was left to ask after {row['rounds']} of {rounds} rounds" in table.err
        assert short == (row["rounds"] < rounds)


def test_grades_beside_a_constant(tmp_path: Path) -> None:
    rng = np.random.default_rng(8)
    X = np.round(rng.standard_normal((40, 2)), 3)
    grades = np.clip(np.round(X[:, 0] + 2.0), 1, 3).astype(int)
    (tmp_path / "films.csv").write_text("a,b,g\n" + "".join(f"{x},{y},{g}\n" for (x, y), g in zip(X, grades)))
    grid = tmp_path / "grid.toml"
    data = '{ordinal = "films.csv", target = "g", scale = "unit", map = "intercept"}'
    grid.write_text(f"data = {data}\nseeds = 2\nrounds = 60\nlearners = ['prank']\n")
    got = done(SWEEP, grid, tmp_path / "runs", notes=True)
    setting = ordinal_setting(X, grades, 3, scale="unit", features="intercept", seeds=(0, 1))
    rows = {row["learner"]: row for row in got.json["summary"]}
    assert list(rows) == ["constant-rank", "prank"]
    for name, row in rows.items():
        learner = setting.learner(name)
        losses = [trace(learner, scene.world, 60, scene.draw, interpreted=True).mean() for scene in setting.scenes]
        assert row["regret"] == pytest.approx(np.mean(losses))
        assert (row["user"], row["seeds"], row["rounds"]) == ("grades", 2, 60)


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("seeds = 2", 'users = ["best"]', "grid.toml: users: expected none with ordinal data, got ['best']"),
        ("seeds = 2", "k = 3", "grid.toml: k: expected only with letor data"),
        ('target = "g"', 'target = "h"', "target: expected a column of films.csv (a, g), got 'h'"),
        ('target = "g"', 'target = "g", people = 3', "grid.toml: people: expected only with catalogue data"),
        ('target = "g"', 'target = "g", scales = "none"', "did you mean scale?"),
    ],
)
def test_a_grid_of_grades_that_makes_no_sense(tmp_path: Path, old: str, new: str, told: str) -> None:
    (tmp_path / "films.csv").write_text("a,g\n1,1\n2,2\n")
    text = 'data = {ordinal = "films.csv", target = "g"}\nseeds = 2\nlearners = [\'prank\']\n'
    assert old in text
    (tmp_path / "grid.toml").write_text(text.replace(old, new))
    assert told in refusal(SWEEP, tmp_path / "grid.toml", tmp_path / "runs")


RATED = "user,item,rating\n" + "".join(f"u{i % 5},i{(i * 7) % 11},{1 + (i * 3) % 5}\n" for i in range(55))


@pytest.mark.slow
def test_ratings_beside_simple_rules(tmp_path: Path) -> None:
    (tmp_path / "mine.csv").write_text(RATED)
    grid = tmp_path / "grid.toml"
    more = "seeds = 2\nrounds = 40\n[[learners]]\nname = 'alb'\nsigma = [0.1, 1]\n"
    for data, name, how in (
        ('{ratings = "mine.csv", repeats = true, slate = 2, warm = 3}', "mine.csv", {"repeats": True}),
        ('{ratings = "gaussian:n_users=4,n_items=9", slate = 2, warm = 3}', "gaussian:n_users=4,n_items=9", {}),
    ):
        grid.write_text(f"data = {data}\n{more}")
        got = done(SWEEP, grid, tmp_path / "runs", notes=True)
        source: Any = name if ":" in name else open_ratings(tmp_path / name).table
        setting = rating_setting(source, slate=2, warm=3, seeds=(0, 1), **how)
        rows = {row["learner"]: row for row in got.json["summary"]}
        assert list(rows) == sorted(["alb:sigma=0.1", "alb:sigma=1", *SIMPLE])
        for spec, row in rows.items():
            learner = setting.learner(spec)
            runs = [trace(learner, scene.world, 43, scene.draw, interpreted=True)[3:] for scene in setting.scenes]
            assert row["regret"] == pytest.approx(np.mean(runs), rel=1e-12)
            assert (row["user"], row["seeds"], row["rounds"]) == ("ratings", 2, 40)
    again = heedful(SWEEP, grid, tmp_path / "runs").json["cells"]
    assert (again["computed"], again["kept"]) == (0, 12)


def test_a_cell_of_ratings_is_of_the_files_that_it_is_of(tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "ratings.csv").write_text(RATED)
    grid = tmp_path / "grid.toml"
    grid.write_text('data = {ratings = "mine"}\nlearners = ["alb"]\n')
    before = {cell.name for cell in read_grid(grid)}
    folder.rename(tmp_path / "other")
    grid.write_text('data = {ratings = "other"}\nlearners = ["alb"]\n')
    assert {cell.name for cell in read_grid(grid)} == before
    (tmp_path / "other" / "ratings.csv").write_text(RATED + "u9,i9,1\n")
    assert not {cell.name for cell in read_grid(grid)} & before


@pytest.mark.parametrize(
    ("data", "told"),
    [
        ('{ratings = "mine.csv", repeat = true}', "did you mean repeats?"),
        ('{ratings = "mine.csv", repeats = 1}', "data: repeats: expected true or false, got 1"),
        ('{ratings = "mine.csv", slate = 0}', "data: slate: expected a whole number, 1 or more, got 0"),
        ('{ratings = "mine.csv", slate = true}', "data: slate: expected a whole number, got True"),
        ('{ratings = "mine.csv", warm = 99}', "warm: expected a whole number, 1 to 54, got 99"),
        ('{ratings = "mine.csv", columns = {users = "user"}}', "data: columns: users: expected person, item, rating"),
        ('{ratings = "mine.csv", people = 3}', "people: expected only with catalogue data"),
        ('{ratings = "gaussian", repeats = true}', "data: repeats: expected none with gaussian, which is drawn"),
        ('{ratings = "none.csv"}', "none.csv: No such file"),
        ('{ratings = "mine.csv"}\nusers = ["best"]', "users: expected none with ratings data, got ['best']"),
    ],
)
def test_a_grid_of_ratings_that_makes_no_sense(tmp_path: Path, data: str, told: str) -> None:
    (tmp_path / "mine.csv").write_text(RATED)
    (tmp_path / "grid.toml").write_text(f"data = {data}\nlearners = ['alb']\n")
    assert told in refusal(SWEEP, tmp_path / "grid.toml", tmp_path / "runs")


def test_a_cell_that_fails_does_not_stop_the_others(grid: Path, own_file: Path, tmp_path: Path) -> None:
    grid.write_text(
        'data = {letor = ["tiny.txt"]}\nusers = ["noisy"]\nseeds = 2\nlearners = ["own.py:Breaks", "convex"]'
    )
    got = heedful(SWEEP, grid, tmp_path / "runs")
    assert got.code == 1
    assert got.json["cells"] == {"computed": 2, "kept": 0, "failed": 2}
    assert got.err == (
        "heedful: 2 cells computed, 0 there before, 2 failed\n"
        "heedful: own.py:Breaks with noisy: RuntimeError: out of ideas\n"
        "heedful: 2 of 4 cells failed; the next run tries them again\n"
    )
    assert [row["learner"] for row in got.json["summary"]] == ["convex"]


def test_a_summary_over_runs_of_different_lengths_stops_where_all_have_a_figure() -> None:
    from heedful.cli.grid import Cell
    from heedful.cli.sweep import _summary

    def cell(seed: int, marks: list[int], regret: list[float]) -> tuple[Cell, dict[str, Any]]:
        result = {"checkpoints": marks, "regret": regret, "stderr": [None] * len(marks), "rounds_per_second": 1.0}
        return Cell({"user": "best", "learner": "it", "seed": seed}, (), "it", (0, 1)), result

    (row,) = _summary([cell(0, [1, 3, 7], [1.0, 0.5, 0.1]), cell(1, [1, 3, 9], [3.0, 1.5, 0.2])])
    assert (row["rounds"], row["regret"], row["seeds"]) == (3, 1.0, 2)
    assert row["stderr"] == pytest.approx(np.std([0.5, 1.5], ddof=1) / np.sqrt(2))


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        (
            "seeds = 2",
            "seed = 2",
            "grid.toml: seed: expected data, users, learners, seeds, rounds, k, got 'seed'; did you",
        ),
        ("seeds = 2", 'seeds = "2"', "grid.toml: seeds: expected a whole number, got '2'"),
        ("seeds = 2", "seeds = true", "grid.toml: seeds: expected a whole number, got True"),
        ("seeds = 2", "seeds = 0", "grid.toml: seeds: expected a whole number, 1 or more, got 0"),
        ("rounds = 12", "rounds = -1", "grid.toml: rounds: expected a whole number, 1 or more, got -1"),
        ("k = 3", "k = 1", "grid.toml: k: expected a whole number, 2 or more, got 1"),
        ("k = 3", "k = ", "grid.toml: expected TOML, got "),
        ("users = [", "users = [] #", "grid.toml: users: expected something, got nothing"),
        ("users = [", "users = [3, ", "grid.toml: users: expected texts, got 3"),
        (
            "noisy:depth=4",
            "best",
            "grid.toml: users: expected strict, noisy, position-biased, cascade, expected for letor data, got best",
        ),
        (
            "noisy:depth=4",
            "cascade:clicks_only=true",
            "learner: expected a learner of clicks, such as posterior, as with",
        ),
        ("noisy:depth=4", "strict:alpha=0.5", "grid.toml: users: expected each once, got strict:alpha=0.5 2 times"),
        ('["*.txt"]', '["*.svm"]', "grid.toml: data: letor: expected files, got none that match '*.svm'"),
        ('["*.txt"]', "[]", "grid.toml: data: letor: expected files, got an empty list"),
        ('letor = ["*.txt"]', 'catalogue = "*.t*"', "data: catalogue: expected one file, got 2 that match '*.t*'"),
        ('["*.txt"]', '"*.txt"', "grid.toml: data: letor: expected a list, got '*.txt'"),
        (
            "{letor",
            "{leter",
            "data: leter: expected letor, catalogue, ordinal, ratings, got 'leter'; did you mean letor?",
        ),
        (
            '{letor = ["*.txt"]}',
            "{people = 3}",
            'grid.toml: data: expected letor = [...], catalogue = "...", ordinal = "..." or ratings = "...", '
            "got people",
        ),
        ('"*.txt"]', '"*.txt"], people = 3', "grid.toml: people: expected only with catalogue data"),
        ("[0.1, 10]", "[]", "grid.toml: learners: second-order: gamma: expected values, got []"),
        (
            "[0.1, 10]",
            "-1",
            "second-order:gamma=-1: gamma: expected a finite number above 0, from 1e-50 to 1e50, got -1.0",
        ),
        (
            'name = "perceptron"',
            "batch = 2",
            "grid.toml: learners: expected a name, or a table with one, got {'batch': 2}",
        ),
        ('name = "perceptron"', 'name = "no.py:Mine"', "no.py: no such file; expected FILE.py:Class"),
    ],
)
def test_a_grid_that_makes_no_sense_is_refused_by_key(
    grid: Path, tmp_path: Path, old: str, new: str, told: str
) -> None:
    assert old in GRID
    grid.write_text(GRID.replace(old, new).replace("k = 3\n", "" if "catalogue =" in new else "k = 3\n"))
    assert told in refusal(SWEEP, grid, tmp_path / "runs")
    assert not (tmp_path / "runs").exists()


def test_files_that_are_not_there(grid: Path, tmp_path: Path) -> None:
    assert (
        refusal(SWEEP, tmp_path / "none.toml", tmp_path / "runs")
        == f"{tmp_path / 'none.toml'}: No such file or directory"
    )
    assert refusal(SWEEP, grid, grid)  # a file where the folder should be == f"{grid}: File exists"


def test_a_cell_s_file_says_what_it_is_of(grid: Path, letor_file: Path, tmp_path: Path) -> None:
    import hashlib

    heedful(SWEEP, grid, tmp_path / "runs")
    for cell in read_grid(grid):
        kept = json.loads((tmp_path / "runs" / cell.name).read_text())
        assert kept["cell"] == cell.spec
        assert kept["cell"]["data"]["sha256"] == [hashlib.sha256(letor_file.read_bytes()).hexdigest()]
        assert kept["result"]["checkpoints"] == [1, 3, 10, 12]
        assert len(kept["result"]["regret"]) == 4


def test_no_cell_of_the_summary_is_a_formula() -> None:
    row = {"user": "=1+1", "learner": "+own", "seeds": 1, "rounds": 9, "regret": -0.5, "stderr": None}
    text = sweep._as_csv([row | {"rounds_per_second": 1.0, "best": True}])
    assert text.splitlines()[1] == "'=1+1,'+own,1,9,-0.5,,1.0,True"
