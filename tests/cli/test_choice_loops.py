"""The command line of loops of choices: `init --choices`, then everything that is asked of a loop."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command import done, heedful

from heedful import Loop

COVERS = "id,title,pages\n" + "".join(f"c{j},Cover {j},{100 + 7 * j}\n" for j in range(6))
INIT = "init covers covers.csv --choices --control 0"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "covers.csv").write_text(COVERS)
    return tmp_path


@pytest.fixture
def covers() -> str:
    assert heedful(INIT).code == 0
    return "covers"


def taught(n: int) -> None:
    with Loop.open("covers.heedful") as loop:
        for t in range(n):
            d = loop.decide(id=f"d{t}", person=f"p{t % 2}")
            assert loop.feedback(d.id, id=f"e{t}", better=max(d.shown)).learned


def test_with_a_goal_a_learner_and_features() -> None:
    got = done("init a covers.csv --choices --goal ranking --learner preference-gp:rule=mes --repeats --json").json
    assert (got["choices"], got["learner"], got["features"]) == ("ranking", "preference-gp:rule=mes", 0)
    got = done("init b covers.csv --choices --features --kind title=ignored --kind pages=number --json").json
    assert (got["features"], got["choices"]) == (1, "best")
    assert (
        "tells of others that are like it, by 1 feature"
        in done("init c covers.csv --choices --features --kind title=ignored").out
    )
    with Loop.open("a.heedful") as loop:
        assert (loop.settings.repeats, loop.learner.rule) == (True, "mes")


def test_from_a_question_to_the_standing(covers: str) -> None:
    got = done(f"decide {covers} --person ann --id d1")
    assert "chance" in got.out
    assert "Next, where somebody prefers the first: heedful feedback covers d1 --choice first" in got.out
    assert "learned from it" in done("feedback covers d1 --choice first").out
    assert "Cover 0" in got.out  # what is stored of it
    told = done("decide covers --person ann --id d2 --show 3 --json").json
    assert len(told["predicted"]) == 3
    assert "--better" in heedful("decide covers --person ann --id d2 --show 3").out
    best, other = told["shown"][:2]
    assert done("feedback covers d2 --better {} --better {}", best, other).code == 0
    got = heedful("feedback covers d2 --rating c1=4")
    assert got.code == 3
    assert "send the order as better" in got.out
    found = done("standing covers --person ann --json").json
    assert (found["verdict"]["goal"], found["answers"], len(found["ranking"])) == ("best", 2, 6)
    told = done("standing covers --person ann").out
    assert "what ann prefers" in told
    assert f"{found['verdict']['favourite']} is the best with" in told
    assert "From 2 answers; model version" in told
    assert "it is only noted that this was asked" in done("feedback covers d1 --choice cannot_judge").out


@pytest.mark.slow
def test_a_person_without_answers_is_said_first(covers: str) -> None:
    taught(4)
    told = "[anm]: no answers so far; this is what is believed of somebody new"
    assert done("standing covers --person [anm]").out.splitlines()[0] == told
    assert done("standing covers --person [anm] --json").json["answers"] == 0
    assert "no answers so far" not in done("standing covers --person p1").out
    assert "no answers so far" not in done("standing covers").out


@pytest.mark.slow
def test_what_was_learned_in_words(covers: str) -> None:
    taught(40)
    got = done("standing covers").out
    assert "what all together prefer" in got
    assert "From 40 answers of 2 people" in got
    assert got.index("c5") < got.index("c0")
    got = done("explain covers d39").out
    assert "the better one with" in got
    assert "What it comes from: by so much each answer moved the first ahead" in got
    got = done("report covers").out
    assert "how often what was likeliest was chosen" in got
    assert "over 40 answers: predictions" in " ".join(got.split())
    got = done("evaluate covers --learner preference-gp").out
    assert "It rests on 40 comparisons from" in " ".join(got.split())
    assert done("report covers --json").json["prediction"]["answers"] == 40
    assert done("explain covers d39 --json").json["prediction"]["rule"] == "eubo"


def test_the_report_is_drawn(covers: str, folder: Path) -> None:
    pytest.importorskip("matplotlib")
    taught(20)
    done("report covers --plot out.svg")
    assert "Share of answers that were predicted" in (folder / "out.svg").read_text()


def test_a_standing_is_of_loops_of_choices(folder: Path) -> None:
    done("init cars covers.csv --kind pages=number")
    got = heedful("standing cars")
    assert (got.code, got.out) == (2, "")
    assert "standing: expected a loop of choices, got a loop of rankings" in got.err


def test_without_a_file_items_come_later(folder: Path) -> None:
    assert "no items yet" in done("init bare --choices").out
    lines = [{"kind": "item", "id": "a"}, {"kind": "item", "id": "b"}]
    (folder / "more.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    done("import bare more.jsonl")
    assert sorted(done("decide bare --json").json["shown"]) == ["a", "b"]
