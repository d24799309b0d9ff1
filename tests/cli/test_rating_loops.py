"""The command line of loops of ratings: `init --ratings`, then everything that is asked of a loop."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import pytest
from command import done, heedful

from heedful import Loop
from heedful.loop.interactions.telling import unordered

FILMS = "title,year\n" + "".join(f"film {j},{1950 + 11 * j}\n" for j in range(6))
INIT = "init films films.csv --ratings 1..5 --k 2 --control 0"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "films.csv").write_text(FILMS)
    return tmp_path


@pytest.fixture
def films() -> str:
    assert heedful(INIT).code == 0
    return "films"


def taught(n: int) -> None:
    with Loop.open("films.heedful") as loop:
        for t in range(n):
            d = loop.decide(id=f"d{t}", person=f"p{t % 4}", repeats=True)
            assert loop.feedback(d.id, id=f"e{t}", rating={d.shown[0]: 5, d.shown[1]: 1 + t % 3}).learned


def test_with_nothing_at_all(folder: Path) -> None:
    got = done("init bare --ratings=-10..10 --learner item-mean --repeats --action skip=-10:0.5 --json").json
    assert (got["ratings"], got["learner"], got["items"]) == ([-10.0, 10.0], "item-mean", 0)
    with Loop.open("bare.heedful") as loop:
        assert (loop.settings.repeats, loop.settings.actions) == (True, {"skip": (-10.0, 0.5)})
    (folder / "more.jsonl").write_text(json.dumps({"kind": "item", "id": "a", "year": 1979}) + "\n")
    done("import bare more.jsonl")
    assert done("decide bare --person ann --json").json["shown"] == ["a"]


def test_predictions_that_fall_need_no_reason(films: str) -> None:
    with Loop.open("films.heedful") as loop:
        card = loop.projection.interaction.describe()
    for arm, falls in itertools.product(("learned", "control"), ([4.0, 3.0], [3.0, 3.0], [3.0], [], [None, 3.0])):
        assert unordered(card, arm, falls) == ""
    told = "Predictions do not fall from top to bottom: "
    assert unordered(card, "learned", [3.0, 4.0]).startswith(f"{told}the learner ranks by how good an item may be")
    assert unordered(card, "control", [3.0, 4.0]) == f"{told}it is a control, which ignores what was learned."


@pytest.mark.slow
def test_why_predictions_do_not_fall_from_top_to_bottom_is_said(films: str) -> None:
    """Two films have been rated, and the others may well be better."""
    with Loop.open("films.heedful") as loop:
        for t in range(40):
            loop.decide(["film 4", "film 5"], id=f"d{t}", person=f"p{t}", show=2)
            loop.feedback(f"d{t}", rating={"film 4": 1 + 4 * (t % 2), "film 5": 3 + t % 2})
        shown = loop.decide(person="ann", show=6)
        assert shown.predicted is not None
        assert list(shown.predicted) != sorted(shown.predicted, reverse=True)
    got = done("decide films --person ann --show 6").out
    assert "Predictions do not fall from top to bottom: the learner ranks by how good an item may be" in got
    done(INIT.replace("films films", "other films").replace("--control 0", "--control 1"))
    assert "do not fall" not in done("decide other --person ann --id d1").out  # all are alike


def test_decide_and_feedback(films: str) -> None:
    got = done("decide films --person ann --id d1").out
    assert "rating" in got
    assert "Next, where somebody rates it, 1 to 5: heedful feedback films d1 --rating 'film 0=5'" in got
    told: Any = done("decide films --person ann --id d1 --json").json
    assert (told["shown"], told["predicted"]) == (["film 0", "film 1"], [3.0, 3.0])
    assert "learned from it" in done("feedback films d1 --rating {} --rating {}", "film 0=2", "film 1=4.5").out
    assert set(done("decide films --person ann --show 6 --json").json["shown"]) == {f"film {j}" for j in range(2, 6)}
    assert len(done("decide films --person ann --show 6 --repeats --json").json["shown"]) == 6
    got = heedful("decide films {} --person ann", "film 0")
    assert (got.code, "expected one that ann has not consumed, got 1 that were" in got.err) == (2, True)
    got = heedful("feedback films d1 --rating {}", "film 0=6")
    assert (got.code, got.err) == (2, "heedful: rating['film 0']: expected a number from 1 to 5, got 6\n")
    got = heedful("feedback films d1 --clicks {}", "film 0")
    assert got.code == 3
    assert "clicks: expected rating, actions or none: this loop learns ratings from 1 to 5" in got.out
    assert "nothing in it to learn: nothing in it was preferred" in done("feedback films d1 --none").out


def test_what_was_done_is_feedback_too(films: str) -> None:
    done("decide films --person ann --id d1")
    assert (
        "learned from it"
        in done("feedback films d1 --did {} --did {} --did {}", "film 0=view", "film 0=buy", "film 1=hide").out
    )
    assert (
        heedful("feedback films d1 --did film").err
        == "heedful: --did: expected ITEM=ACTION, such as a=buy, got 'film'\n"
    )
    got = heedful("feedback films d1 --did {}", "film 0=bye")
    assert (got.code, "actions['film 0']: expected view, cart, buy, hide, got 'bye'" in got.err) == (2, True)
    with Loop.open("films.heedful") as loop:
        [told] = loop.lessons(1)
        assert (told.chosen, told.text) == (("film 0", "film 1"), "view, buy; hide")


def test_explain_evaluate_and_report_speak_of_ratings(films: str) -> None:
    taught(12)
    told: Any = done("explain films d11 --json").json
    assert told["prediction"]["expected"] == told["margin"]
    said = done("explain films d11").out
    assert f"{told['first']}: a rating of {told['margin']:.2f} was expected" in said
    assert "of this item, by all" in said
    assert "What it comes from" in said
    said = " ".join(done("evaluate films --learner item-mean --learner random-item").out.split())
    assert "Mean error is that of |predicted - given|" in said
    assert "It rests on 24 comparisons from" in said
    assert "unknown" in said
    found: Any = done("evaluate films --learner item-mean --json").json["learners"]
    assert [each["learner"] for each in found] == ["bmf", "item-mean"]
    assert all(each["values"][0]["comparisons"] == 24 for each in found)
    said = done("report films").out
    assert "the mean rating of what was shown" in said
    assert "How well does it predict? Mean |predicted − given|, over 24 answers: predictions" in said
    assert done("report films --json").json["prediction"]["answers"] == 24
    assert "0 problems" in done("doctor films").out
