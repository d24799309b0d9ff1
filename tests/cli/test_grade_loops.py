"""The command line of loops that predict grades: `init --grades`, then everything that is asked of a loop."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from command import done, heedful

from heedful import Loop
from loops import diverged

FILMS = "title,minutes,year\n" + "".join(f"film {j},{80 + 7 * j},{1950 + 11 * (j % 5)}\n" for j in range(8))
INIT = "init films films.csv --kind year=number --kind minutes=number --control 0"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "films.csv").write_text(FILMS)
    return tmp_path


@pytest.fixture
def films() -> str:
    assert heedful(f"{INIT} --grades 5").code == 0
    return "films"


def taught(n: int) -> None:
    with Loop.open("films.heedful") as loop:
        for t in range(n):
            d = loop.decide(id=f"d{t}", person=f"p{t % 4}", show=4)
            grades = {name: 5 if int(name[-1]) > 3 else 1 + t % 2 for name in d.shown}
            assert loop.feedback(d.id, id=f"e{t}", grade=grades).learned


@pytest.mark.parametrize(
    ("options", "learner"),
    [
        ("--learner prank:n_ranks=3", "prank:n_ranks=3"),
        ("--learner prank --grades 3", "prank:n_ranks=3"),
        ("--learner widrow-hoff:eta=0.1 --grades 3", "widrow-hoff:eta=0.1,n_ranks=3"),
    ],
)
def test_a_learner_may_be_named(options: str, learner: str) -> None:
    got = done(f"{INIT} {options} --json").json
    assert (got["grades"], got["learner"]) == (3, learner)
    assert "grades" not in done("init other films.csv --json").json


def test_decide_shows_grades_and_how_to_grade(films: str) -> None:
    got = done("decide films --id d1 --show 3").out
    assert "grade" in got
    assert "Next, where somebody grades it, 1 to 5: heedful feedback films d1 --grade 'film 0=5'" in got
    told = done("decide films --id d1 --show 3 --json").json
    assert (told["shown"], told["predicted"]) == (["film 0", "film 1", "film 2"], [5, 5, 5])


def test_feedback_takes_grades_and_nothing_else(films: str) -> None:
    done("decide films --id d1 --show 3")
    assert "learned from it" in done("feedback films d1 --grade {} --grade {}", "film 0=2", "film 1=5").out
    got = heedful("feedback films d1 --grade {}", "film 0=6")
    assert (got.code, got.err) == (2, "heedful: grade['film 0']: expected a whole number from 1 to 5, got 6\n")
    got = heedful("feedback films d1 --clicks {}", "film 0")
    assert got.code == 3
    assert "clicks: expected grade or none: this loop learns grades, whole numbers from 1 to 5" in got.out
    assert heedful("feedback films d1 --rating {}", "film 0=4").code == 3
    assert "nothing in it to learn: nothing in it was preferred" in done("feedback films d1 --none").out


def test_explain_says_the_score_and_between_which_the_grade_lies(films: str) -> None:
    taught(12)
    told: Any = done("explain films d11 --json").json
    assert told["second"] is None
    assert sum(part["counts"] for part in told["features"]) == pytest.approx(told["margin"])
    said = done("explain films d11").out
    assert f"{told['first']}: grade {told['prediction']['grade']}, as its score is" in said
    assert "What moved it" in said
    assert "value" in said
    assert "second" not in said


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_weights_that_overflow_are_a_problem_and_said(folder: Path) -> None:
    diverged(folder / "films.heedful").close()
    got = heedful("doctor films --json")
    assert got.code == 1
    [found] = [each for each in got.json if each["status"] == "problem"]
    assert found["check"] == "weights"
    assert "because eta=1e+20 is too large for these features" in found["told"]
    assert "heedful export" in found["next"]
    told: Any = done("explain films d29 --json").json
    assert (told["margin"], told["because"]) == (None, found["told"])
    said = done("explain films d29").out
    assert found["told"] in said
    assert "no number" in said
    assert "nan" not in said
    assert "as its score is" not in said
    rows = [line for line in done("evaluate films").out.splitlines() if not line.rstrip().endswith((".", "%"))]
    assert max(map(len, rows)) <= 160
    assert None in done("evaluate films --json").json["learners"][0]["weights"].values()
    assert "settings" not in [each["check"] for each in got.json]  # what is frozen is another matter


def test_a_loop_of_orders_says_why_it_is_not_evaluated_by_grades(films: str) -> None:
    done("init orders films.csv")
    got = heedful("evaluate orders --learner prank:n_ranks=5")
    assert (got.code, got.out) == (2, "")
    assert "this loop learns orders, and does not fix how many grades there are" in " ".join(got.err.split())


def test_an_evaluation_compares_mean_errors(films: str) -> None:
    taught(12)
    found = done("evaluate films --learner prank --learner constant-rank --json").json["learners"]
    assert [each["learner"] for each in found] == ["averaged-prank:n_ranks=5", "prank", "constant-rank"]
    values = [each["values"][0] for each in found]
    assert all(value["comparisons"] == 48 and value["low"] <= value["value"] <= value["high"] for value in values)
    said = done("evaluate films --learner prank").out
    assert "Mean error (lower is better)" in said
    assert "It rests on 48 comparisons from" in " ".join(said.split())
    got = heedful("evaluate films --learner perceptron")
    assert (got.code, got.out) == (2, "")
    assert "expected one that predicts grades" in got.err


def test_report_says_how_far_predictions_were_off(films: str) -> None:
    assert "Too early to say. No grade was given" in done("report films").out
    taught(40)
    found = done("report films --json").json["prediction"]
    assert found["answers"] == 160
    assert found["score"] < found["baseline"]
    said = done("report films").out
    assert "Mean |predicted − given| over time" in said
    compared = f"predictions {found['score']:.2f}, the median grade so far {found['baseline']:.2f}."
    assert f"Mean |predicted − given|, over 160 answers: {compared}" in said
    assert "Difference: −" in said
    apart = found["difference"]
    by, low, high = (f"{apart[name]:+.2f}".replace("-", "−") for name in ("by", "low", "high"))
    assert f"Difference: {by}, below 0 is better (95 % confidence interval: {low} to {high})." in said
    assert ("Yes: it predicts better" in said) == (apart["high"] < 0.0)
