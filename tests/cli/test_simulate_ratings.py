"""`heedful simulate ratings`: its figures against loops written out here, its files, its words."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from command import done, heedful, refusal

from heedful.core.fold import play, trace
from heedful.data.rating_files import open_ratings
from heedful.experiments.ratings import SIMPLE, rating_setting

KEYS = ["learner", "ratings", "repeats", "slate", "warm", "rounds", "seeds", "checkpoints", "regret", "stderr", "bound"]
KEYS += ["rounds_per_second", "asked_for", "less"]
# Interpreted, on sixty ratings.
LINE = "simulate ratings {} --learner alb --interpreted --jobs 1"


@pytest.fixture
def meals(tmp_path: Path) -> Path:
    """Sixty ratings, 1 to 5, of 12 meals by 8 people; the meal decides most of them."""
    rng = np.random.default_rng(9)
    chosen = rng.permutation(96)[:60]
    rows = [f"p{i // 12},m{i % 12},{np.clip(1 + (i % 12) // 3 + rng.integers(0, 2), 1, 5)}" for i in chosen]
    file = tmp_path / "meals.csv"
    file.write_text("who,what,stars\n" + "\n".join(rows) + "\n")
    return file


@pytest.mark.parametrize("how", ["", "--repeats", "--slate 3", "--warm 20", "--repeats --slate 2 --warm 5"])
def test_figures_are_those_of_a_loop(meals: Path, how: str) -> None:
    got = done(f"{LINE} {how} --rounds 15 --seeds 3 --first-seed 4 --json", meals, notes=True)
    assert [row["learner"] for row in got.json] == ["alb", *SIMPLE]
    assert [row["asked_for"] for row in got.json] == [True, *[False] * 4]
    words = how.split()
    slate, warm = [
        int(words[words.index(name) + 1]) if name in words else least for name, least in (("--slate", 1), ("--warm", 0))
    ]
    repeats = "--repeats" in words
    table = open_ratings(meals).table
    rating = dict(zip(zip(table.users.tolist(), table.items.tolist()), table.values.tolist()))
    setting = rating_setting(table, repeats=repeats, slate=slate, warm=warm, seeds=range(4, 7))
    by_name = {}
    for row in got.json:
        assert list(row) == KEYS
        assert (row["ratings"], row["repeats"], row["slate"], row["warm"]) == (str(meals), repeats, slate, warm)
        regrets = []
        for scene in setting.scenes:
            left = {user: {j for i, j in rating if i == user} for user in range(8)}
            mine = []
            for t, (played, _) in enumerate(play(setting.learner(row["learner"]), scene.world, warm + 15, scene.draw)):
                user, shown = played.x.user, played.y.tolist()
                best = max(rating[user, j] for j in left[user])
                assert played.feedback.ratings.tolist() == [rating[user, j] for j in shown]
                assert len(shown) == (1 if t < warm else min(slate, len(left[user])))
                left[user] -= set() if repeats else set(shown)
                if t >= warm:
                    mine.append(best - np.mean([rating[user, j] for j in shown]))
            regrets.append(mine)
        by_name[row["learner"]] = np.array(regrets)
        average = np.array([by_name[row["learner"]][:, :t].mean(axis=1) for t in row["checkpoints"]])
        np.testing.assert_allclose(row["regret"], average.mean(axis=1), rtol=1e-12)
        np.testing.assert_allclose(row["stderr"], average.std(axis=1, ddof=1) / np.sqrt(3), rtol=1e-9, atol=1e-12)
    best = min(SIMPLE, key=lambda name: by_name[name].mean())
    for row in got.json:
        d = (by_name[row["learner"]] - by_name[best]).mean(axis=1)
        assert row["less"]["learner"] == best
        if row["learner"] == best:
            assert row["less"] == {"learner": best, "difference": None, "stderr": None}
        else:
            assert row["less"]["difference"] == pytest.approx(d.mean(), rel=1e-9, abs=1e-12)
            assert row["less"]["stderr"] == pytest.approx(d.std(ddof=1) / np.sqrt(3), rel=1e-9, abs=1e-12)


def test_without_more_said(meals: Path) -> None:
    """Five seeds, each rating once, two learners and the simple rows."""
    got = heedful("simulate ratings {} --interpreted --json", meals)
    assert [row["learner"] for row in got.json] == ["alb", "bmf", *SIMPLE]
    assert {(row["rounds"], row["seeds"], row["repeats"], row["slate"]) for row in got.json} == {(60, 5, False, 1)}
    assert got.err == f"heedful: {meals}: columns who, what, stars: 60 ratings from 1 to 5, 8 users, 12 items\n"


def test_the_table_says_what_was_done(meals: Path) -> None:
    got = heedful(f"{LINE} --learner item-mean --slate 2 --warm 6 --seeds 2", meals)
    assert "Average regret of rounds 1 to t: meals.csv, each shown once, slates of 2, 6 told before, 2 seeds" in got.out
    assert got.out.count("for comparison") == 3  # who was asked for is no comparison
    told = re.search(r"less (.+): the difference to the best simple rule at the end, seed by seed\.", got.out)
    assert told is not None
    head = got.out.splitlines()[2:5]
    assert any(told[1] in line for line in head)
    assert any("less" in line for line in head)
    assert "shown again" in heedful(f"{LINE} --repeats --rounds 5", meals).out


def test_worlds_that_are_drawn() -> None:
    name = "gaussian:n_users=6,n_items=9,n_factors=2,noise=0.1"
    got = done(f"simulate ratings {name} --learner alb:n_factors=2 --interpreted --rounds 20 --seeds 2 --json")
    assert {(row["ratings"], row["repeats"], row["rounds"]) for row in got.json} == {(name, None, 20)}
    setting = rating_setting(name, seeds=(0, 1))
    runs = [trace(setting.learner("item-mean"), s.world, 20, s.draw, interpreted=True).mean() for s in setting.scenes]
    row = next(row for row in got.json if row["learner"] == "item-mean")
    assert row["regret"][-1] == pytest.approx(np.mean(runs), rel=1e-12)


def test_a_file_of_that_name_is_named_by_its_path(meals: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(meals.parent)
    meals.rename(meals.parent / "uniform")
    got = heedful("simulate ratings ./uniform --learner alb --interpreted --seeds 1 --json")
    assert got.json[0]["rounds"] == 60
    assert got.json[0]["stderr"] == [None] * len(got.json[0]["checkpoints"])
    assert got.json[0]["less"]["stderr"] is None


def test_columns_duplicates_and_the_densest(meals: Path, tmp_path: Path) -> None:
    text = meals.read_text().replace("who,what,stars", "a,b,c") + "p0,m0,5\np0,m0,1\n"
    file = tmp_path / "other.csv"
    file.write_text(text)
    line = f"{LINE} --column person=a --column item=b --column rating=c --seeds 1 --json"
    assert "item: expected each once for user p0, got 'm0' once more" in refusal(line, file)
    for twice in ("last", "mean"):
        got = heedful(f"{line} --twice {twice} --densest 4", file)
        assert got.code == 0, got.err
        assert "columns a, b, c; the 4 who rated most, the 4 rated most often: " in got.err
        assert got.json[0]["rounds"] <= 16


def test_the_densest_of_whom_nothing_is_left(tmp_path: Path) -> None:
    file = tmp_path / "x.csv"
    file.write_text("user,item,rating\na,1,5\na,2,5\na,3,5\nb,4,5\nc,4,1\n")
    assert "--densest: ratings: expected at least one that is left, got none" in refusal(
        "simulate ratings {} --densest 1", file
    )


def test_rounds_beyond_the_last_rating(meals: Path) -> None:
    got = heedful(f"{LINE} --rounds 100 --json", meals)
    assert {row["rounds"] for row in got.json} == {60}
    assert "everything is consumed after 60 rounds, fewer than 100" in got.err
    got = heedful(f"{LINE} --rounds 100 --repeats --json", meals)
    assert {row["rounds"] for row in got.json} == {100}
    assert "consumed" not in got.err


@pytest.mark.slow
def test_compiled_is_interpreted(meals: Path) -> None:
    line = "simulate ratings {} --warm 3 --seeds 2 --json"
    compiled, interpreted = heedful(line, meals), heedful(f"{line} --interpreted", meals)
    assert [row["regret"] for row in compiled.json] == [row["regret"] for row in interpreted.json]


@pytest.mark.slow
def test_the_learner_of_the_page(meals: Path) -> None:
    """Thirty lines at most; it keeps every promise, compiled too, and runs beside the others."""
    page = Path(__file__).resolve().parents[2] / "docs" / "ratings.md"
    [source] = [block.split("```")[0] for block in page.read_text().split("```python\n") if "class State" in block]
    inside = source[source.index("class State") :]
    assert len([line for line in inside.splitlines() if line.strip()]) <= 30
    mine = meals.parent / "hopeful_of_the_page.py"
    mine.write_text(source)
    got = heedful("check {}:Hopeful --json", mine)
    assert [(row["promise"], row["where"]) for row in got.json if not row["kept"]] == []
    assert next(row for row in got.json if row["promise"].startswith("compiled"))["evidence"].startswith(
        "the regret of"
    )
    got = heedful("simulate ratings {} --learner {}:Hopeful:hope=9 --interpreted --seeds 2 --json", meals, mine)
    assert got.json[0]["learner"] == f"{mine}:Hopeful:hope=9"
    # With a hope that no rating reaches, whatever was shown least comes first: everything is tried in turn.
    world = rating_setting("bernoulli:n_users=1,n_items=6,n_factors=2").scenes[0].world
    learner = rating_setting("bernoulli").learner(f"{mine}:Hopeful:hope=9")
    assert [int(played.y[0]) for played, _ in play(learner, world, 6, 0)] == list(range(6))


@pytest.mark.parametrize(
    ("extra", "told"),
    [
        ("--learner prank", "learner: expected one that takes ratings (rating), got prank, which is ordinal"),
        ("--learner alb", "--learner: expected each once, got alb 2 times"),
        ("--twice first", "--twice: expected refuse, last or mean, got 'first'"),
        ("--column person=age", "meals.csv: person: expected one of the columns who, what, stars, got 'age'"),
        ("--warm 60", "warm: expected a whole number, 1 to 59, got 60"),
        ("--out runs.txt", "--out: expected a name that ends in .csv, got 'runs.txt'"),
    ],
)
def test_bad_input_is_a_sentence(meals: Path, extra: str, told: str) -> None:
    got = heedful(f"{LINE} {extra}", meals)
    assert (got.code, got.out) == (2, "")
    assert told in got.err.splitlines()[-1]


@pytest.mark.parametrize(
    ("name", "told"),
    [
        (
            "gaussian --repeats",
            "--repeats: expected none with gaussian, which is drawn; a file of that name is ./gaussian",
        ),
        ("gaussian --column person=who", "--column: expected none with gaussian"),
        ("uniform --densest 3", "--densest: expected none with uniform"),
        ("bernoulli:noise=1", "bernoulli: expected n_users, n_items, n_factors, got 'noise'"),
    ],
)
def test_a_world_or_file_that_is_none(name: str, told: str) -> None:
    assert told in refusal(f"simulate ratings {name} --learner alb --interpreted")
