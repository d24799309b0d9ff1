"""What a loop has about a person is what forgetting them would erase, in the words in which it came."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from heedful import TEXTS, Loop, Settings
from heedful.io import events_of_person, export_lines
from kinds import Kind, each_kind, teach
from loops import small_loop

DRAFTS = [{"id": "long", "text": "We would like to inform you."}, {"id": "short", "text": "It is here."}]


def test_all_that_is_known_of_a_person_and_nothing_else(tmp_path: Path) -> None:
    with Loop.create(tmp_path / "a.heedful", encoding=TEXTS, settings=Settings(k=1, control=0.0)) as loop:
        for who in ("ann", "bob"):
            loop.decide(DRAFTS, id=f"{who}-d", person=who, context={"prompt": f"For {who}."}, deferred=True)
            loop.activate(f"{who}-d")
            loop.feedback(f"{who}-d", id=f"{who}-e", edit=f"Dear {who}!")
            loop.undo(f"{who}-e", id=f"{who}-u")
            loop.correct_style(deny="exclamation marks", person=who, id=f"{who}-s")
        found = events_of_person(loop, "ann")
        assert (found.person, found.alike) == ("ann", ())
        assert [(line["kind"], line.get("id")) for line in found.events] == [
            ("decision", "ann-d"),
            ("activate", None),
            ("feedback", "ann-e"),
            ("undo", "ann-u"),
            ("style", "ann-s"),
        ]
        decision, _, answer, *_ = found.events
        assert (list(decision["candidates"]), decision["context"]) == (DRAFTS, {"prompt": "For ann."})
        assert answer["edit"] == "Dear ann!"
        assert "bob" not in json.dumps(found.events)
        assert loop.forget("ann").events == len(found.events)
        assert events_of_person(loop, "ann").events == ()


@each_kind
def test_what_is_told_is_what_is_forgotten(tmp_path: Path, kind: Kind) -> None:
    with kind.make(tmp_path / "a.heedful") as loop:
        teach(kind, loop, range(4))
        people = {line["person"] for line in export_lines(loop) if line.get("person") is not None}
        before = [json.dumps(line, default=list) for line in export_lines(loop)]
        for who in sorted(people):
            ids = {(line["kind"], line.get("id", line.get("decision"))) for line in events_of_person(loop, who).events}
            assert len(ids) == loop.forget(who).events
            after = [json.dumps(line, default=list) for line in export_lines(loop)]
            gone = [json.loads(line) for line in before if line not in after]
            assert {(line["kind"], line.get("id", line.get("decision"))) for line in gone} == ids
            before = after


def test_names_that_are_spelt_alike_are_offered(tmp_path: Path) -> None:
    with small_loop(tmp_path / "a.heedful", control=0.0) as loop:
        for i, who in enumerate(["Ann Lee", "ann lee", "Ann  Lee", "anna lee", "bob"]):
            loop.decide(id=f"d{i}", person=who)
        assert events_of_person(loop, "Ann Lee").alike == ("Ann  Lee", "ann lee")
        assert events_of_person(loop, "ANN LEE").events == ()
        assert events_of_person(loop, "ANN LEE").alike == ("Ann  Lee", "Ann Lee", "ann lee")
        assert loop.forget("ann lee").alike == ("Ann  Lee", "Ann Lee")
        assert loop.forget("bob").alike == ()
        with pytest.raises(ValueError, match=r"^person: expected a text of 1 to 200 printable characters, got ''$"):
            events_of_person(loop, "")
