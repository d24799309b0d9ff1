"""What holds of a loop of every kind of feedback, that of `fifth.py` too."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from heedful import Loop
from heedful.data.jsonl import Line
from heedful.io import export_lines, import_lines
from heedful.loop.records import plain
from kinds import Kind, each_kind
from loops import bits, bits_from_scratch


def live(kind: Kind, loop: Loop, rounds: int = 24) -> None:
    """Decisions d0, d1, ... of three people, each with an answer e0, e1, ..."""
    for i in range(rounds):
        shown = loop.decide(person=f"p{i % 3}", id=f"d{i}", **kind.ask(i)).shown
        assert loop.feedback({**kind.answer(i, shown), "decision": f"d{i}", "id": f"e{i}"}).status == "applied"


@each_kind
def test_the_model_is_the_fold_of_its_log(kind: Kind, tmp_path: Path) -> None:
    with kind.make(tmp_path / "loop") as loop:
        live(kind, loop)
        assert bits(loop) == bits_from_scratch(loop)


@each_kind
def test_reopened_with_a_snapshot_and_without_it_decides_the_same(kind: Kind, tmp_path: Path) -> None:
    with kind.make(tmp_path / "loop") as loop:
        live(kind, loop)
        loop.snapshot()
        before = bits(loop)
        live_on = loop.decide(person="p1", id="next", **kind.ask(1))
        loop.undo("e3")
        loop.feedback(
            {**kind.answer(3, loop.decide(person="p0", id="d3", **kind.ask(3)).shown), "decision": "d3", "id": "again"}
        )
    with Loop.open(tmp_path / "loop", learner=kind.own) as loop:
        after = bits(loop)
        assert after != before
        assert loop.decide(person="p1", id="next", **kind.ask(1)) == live_on
    for path in tmp_path.glob("loop/snapshots/*"):
        path.unlink()
    with Loop.open(tmp_path / "loop", learner=kind.own) as loop:
        assert bits(loop) == after


@each_kind
def test_undone_or_forgotten_is_as_if_it_had_never_been(kind: Kind, tmp_path: Path) -> None:
    """Answers that are taken back leave the model that the others alone make."""
    with kind.make(tmp_path / "a") as loop, kind.make(tmp_path / "b") as other:
        for i in range(12):
            shown = loop.decide(person=f"p{i % 3}", id=f"d{i}", **kind.ask(i)).shown
            other.decide(person=f"p{i % 3}", id=f"d{i}", **kind.ask(i))
            taken_back = i == 11 or i % 3 == 1
            loop.feedback({**kind.answer(i, shown), "decision": f"d{i}", "id": f"e{i}"})
            if taken_back:
                assert (loop.undo(f"e{i}").status, i) == ("applied", i)
            else:
                other.feedback({**kind.answer(i, shown), "decision": f"d{i}", "id": f"e{i}"})
        assert bits(loop) == bits(other)
        assert loop.forget("p2").events == other.forget("p2").events + 1 + 1  # e11, and what took it back
        assert bits(loop) == bits(other) == bits_from_scratch(loop)


@each_kind
def test_exported_and_imported_it_learns_the_same(kind: Kind, tmp_path: Path) -> None:
    with kind.make(tmp_path / "a") as loop, kind.make(tmp_path / "b") as other:
        live(kind, loop)
        loop.undo("e5")
        lines = json.loads(json.dumps([plain(line) for line in export_lines(loop)]))
        numbered = [Line(i, line, None) for i, line in enumerate(lines, 1)]
        assert {each.status for each in import_lines(other, numbered) if each.kind != "item"} == {"applied"}
        assert {each.status for each in import_lines(other, numbered)} == {"duplicate"}
        assert other.weights_of("p1") == pytest.approx(loop.weights_of("p1"))
        report, own = other.report(), loop.report()
        assert (report.decisions, report.feedback.given) == (own.decisions, own.feedback.given)


@each_kind
def test_an_event_counts_once(kind: Kind, tmp_path: Path) -> None:
    with kind.make(tmp_path / "loop") as loop:
        live(kind, loop, 6)
        before = bits(loop)
        shown = loop.decide(person="p2", id="d5", **kind.ask(5)).shown
        assert loop.feedback({**kind.answer(5, shown), "decision": "d5", "id": "e5"}).status == "duplicate"
        assert bits(loop) == before
        assert [loop.undo("e4").status for _ in range(2)] == ["applied", "duplicate"]
        without = bits(loop)
        assert loop.feedback({**kind.answer(4, shown), "decision": "d5", "id": "e4"}).status != "applied"
        assert bits(loop) == without != before


@each_kind
def test_what_is_no_answer_changes_nothing(kind: Kind, tmp_path: Path) -> None:
    with kind.make(tmp_path / "loop") as loop:
        live(kind, loop, 6)
        before = bits(loop)
        form = kind.answer(5, loop.decide(person="p2", id="d5", **kind.ask(5)).shown)
        field = next(iter(form))
        for wrong in ({field: object}, {field: None}, {"no-such-form": 1}, {**form, "no-such-field": 1}, {}):
            with pytest.raises(ValueError, match=": "):
                loop.feedback({**wrong, "decision": "d5", "id": "new"})
        with pytest.raises(ValueError, match="decision: "):
            loop.feedback({**form, "id": "new"})
        assert bits(loop) == before
