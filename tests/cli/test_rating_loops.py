"""The command line of loops of ratings: `init --ratings`, then everything that is asked of a loop."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from command import Ended, heedful

from heedful import Loop

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


def done(line: str, *filled: object) -> Ended:
    got = heedful(line, *filled)
    assert (got.code, got.err) == (0, ""), got
    return got


def taught(n: int) -> None:
    with Loop.open("films.heedful") as loop:
        for t in range(n):
            d = loop.decide(id=f"d{t}", person=f"p{t % 4}", repeats=True)
            assert loop.feedback(d.id, id=f"e{t}", rating={d.shown[0]: 5, d.shown[1]: 1 + t % 3}).learned


def test_a_loop_of_ratings_is_made_and_says_so() -> None:
    got = done(INIT)
    assert "It learns who likes what from ratings from 1 to 5, by bmf, from no features." in got.out
    assert "buy: a rating of 5 that counts as 1" in got.out
    assert "Next: heedful decide films --person NAME" in got.out
    with Loop.open("films.heedful") as loop:
        assert (loop.facts.get("ratings"), len(loop.items), loop.settings.repeats) == ([1.0, 5.0], 6, False)


def test_with_nothing_at_all(folder: Path) -> None:
    got = done("init bare --ratings=-10..10 --learner item-mean --repeats --action skip=-10:0.5 --json").json
    assert (got["ratings"], got["learner"], got["items"]) == ([-10.0, 10.0], "item-mean", 0)
    with Loop.open("bare.heedful") as loop:
        assert (loop.settings.repeats, loop.settings.actions) == (True, {"skip": (-10.0, 0.5)})
    (folder / "more.jsonl").write_text(json.dumps({"kind": "item", "id": "a", "year": 1979}) + "\n")
    done("import bare more.jsonl")
    assert done("decide bare --person ann --json").json["shown"] == ["a"]


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ("--ratings 5", "--ratings: expected LOW..HIGH, such as 1..5, got '5'"),
        ("--ratings a..b", "--ratings: expected LOW..HIGH, such as 1..5, got 'a..b'"),
        (
            "--ratings 5..1",
            "ratings: expected the lowest and the highest, such as (1, 5), between -1e6 and 1e6, got (5.0, 1.0)",
        ),
        ("--ratings 1..5 --grades 3", "--ratings: expected none with --grades"),
        ("--ratings 1..5 --kind year=number", "--kind: expected none with --ratings"),
        ("--ratings 1..5 --texts", "--texts: expected none with --ratings"),
        ("--ratings 1..5 --learner perceptron", "learner: expected one of ratings, such as bmf, got perceptron"),
        ("--ratings 1..5 --action buy=9", "actions: buy: value: expected a number from 1 to 5, got 9"),
        ("--ratings 1..5 --action buy=x:1", "--action: expected NAME=RATING:WEIGHT, such as buy=5:1, got buy=x:1"),
        ("--ratings 1..5 --people 3", "shrink: expected 0 in a loop of ratings"),
        ("--repeats", "repeats: expected false in a loop of rankings, got true"),
        ("--learner bmf", "ratings: expected the lowest and the highest rating there may be, such as 1 and 5"),
    ],
)
def test_what_makes_no_sense_is_bad_input_and_nothing_is_made(options: str, told: str, folder: Path) -> None:
    got = heedful(f"init films films.csv {options}")
    assert (got.code, got.out) == (2, "")
    assert told in got.err
    assert not (folder / "films.heedful").exists()


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
    assert "nothing in it to learn: it says nothing" in done("feedback films d1 --none").out


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
    assert "By 24 comparisons of" in said
    assert "unknown" in said
    found: Any = done("evaluate films --learner item-mean --json").json["learners"]
    assert [each["learner"] for each in found] == ["bmf", "item-mean"]
    assert all(each["values"][0]["comparisons"] == 24 for each in found)
    said = done("report films").out
    assert "the mean rating of what was shown" in said
    assert "How well does it predict? Mean |predicted − given|, over 24 answers: predictions" in said
    assert done("report films --json").json["prediction"]["answers"] == 24
    assert "0 problems" in done("doctor films").out


def test_report_draws_ratings_over_time(films: str, folder: Path) -> None:
    pytest.importorskip("matplotlib")
    taught(20)
    done("report films --plot ratings.png")
    assert (folder / "ratings.png").stat().st_size > 5000


def test_out_and_in_again(films: str, folder: Path) -> None:
    taught(8)
    with Loop.open("films.heedful") as loop:
        loop.withdraw("film 2")
    done("export films out.jsonl")
    done("init again --ratings 1..5 --k 2 --control 0 --identifier title")
    assert heedful("validate again out.jsonl").code == 0
    done("import again out.jsonl")
    with Loop.open("films.heedful") as one, Loop.open("again.heedful") as two:
        from loops import bits

        assert bits(one) == bits(two)
        assert two.items == one.items
