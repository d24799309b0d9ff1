"""A rollback to a version is that version's model, bit for bit, in one event that can be gone back on itself."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heedful import Loop
from heedful.core.retractions import find_retractions
from heedful.data.jsonl import Line
from heedful.io import Outcome, check_form, import_lines
from heedful.storage import Place
from kinds import KINDS, Kind, each_kind, teach
from loops import bits, bits_from_scratch, lines_of


@pytest.mark.slow
@each_kind
def test_a_rollback_is_the_old_model_bit_for_bit_and_learns_on(kind: Kind, home: Place) -> None:
    with kind.make(home / "loop") as loop, kind.make(home / "other") as other:
        teach(kind, loop, range(8))
        loop.snapshot()
        version, old = loop.version, bits(loop)
        teach(kind, loop, range(8, 14))
        loop.undo("e2")
        late = bits(loop)
        gone = loop.rollback(version, id="back", reason="worse since then")
        assert bits(loop) == old == bits_from_scratch(loop)
        assert (gone.answer.status, gone.to, gone.left_out, gone.restored, gone.forgotten) == (
            "applied", version, 6, 1, 0,
        )  # fmt: skip
        assert loop.rollback(version, id="back", reason="worse since then").answer.status == "duplicate"
        assert bits(loop) == old
        teach(kind, other, range(8))
        teach(kind, other, range(14, 18))
        teach(kind, loop, range(14, 18))
        assert bits(loop) == bits_from_scratch(loop)
        assert loop.verify() == []
        before = gone.answer.seq
        there = loop.rollback(before - 1)  # a rollback is gone back on like everything else
        assert (there.left_out, there.restored) == (4 + 1, 6)
        assert bits(loop) == late == bits_from_scratch(loop)
    with Loop.open(home / "loop", learner=kind.own) as loop:
        assert bits(loop) == late
        assert loop.verify() == []


@each_kind
def test_whoever_was_forgotten_since_stays_forgotten(kind: Kind, home: Place) -> None:
    with kind.make(home / "loop") as loop, kind.make(home / "other") as other:
        for each in (loop, other):
            teach(kind, each, range(8))
        version = loop.version
        teach(kind, loop, range(8, 12))
        loop.forget("p1")
        other.forget("p1")
        gone = loop.rollback(version)
        assert gone.forgotten == 1
        assert bits(loop) == bits(other) == bits_from_scratch(loop)


@pytest.mark.parametrize("to", [0, -1, 10**9, 1.5, True, "3", None])
def test_there_has_to_have_been_such_a_version(to: Any, home: Place) -> None:
    with KINDS[0].make(home / "loop") as loop:
        teach(KINDS[0], loop, range(3))
        before, head = bits(loop), loop.projection.log.last()
        with pytest.raises(ValueError, match="to: expected a "):
            loop.rollback(to)
        assert (bits(loop), loop.projection.log.last()) == (before, head)


def _naive(events: list[tuple[str, int]]) -> list[int]:
    """The feedback in effect, of events (kind, target) with the sequence numbers 1, 2, ...: a stack of states."""
    states: list[frozenset[int]] = [frozenset()]
    for seq, (kind, target) in enumerate(events, 1):
        now = states[-1]
        if kind == "feedback":
            now |= {seq}
        elif kind == "undo":
            now -= {target}
        else:
            now = states[target]
        states.append(now)
    return sorted(states[-1])


@pytest.mark.slow
@given(st.data())
def test_what_is_in_effect_is_what_a_stack_of_states_says(data: st.DataObject) -> None:
    events: list[tuple[str, int]] = []
    for seq in range(1, data.draw(st.integers(1, 25)) + 1):
        kind = data.draw(st.sampled_from(["feedback", "feedback", "undo", "rollback"])) if seq > 1 else "feedback"
        events.append((kind, data.draw(st.integers(1, seq - 1)) if kind != "feedback" else 0))
    numbered = [(seq, kind, target) for seq, (kind, target) in enumerate(events, 1)]
    given_ = {seq for seq, kind, _ in numbered if kind == "feedback"}
    found = find_retractions(
        [(seq, target) for seq, kind, target in numbered if kind == "undo" and target in given_],
        [(seq, target) for seq, kind, target in numbered if kind == "rollback"],
    )
    assert [seq for seq in sorted(given_) if seq not in found] == _naive(events)


@each_kind
def test_exported_and_imported_a_rollback_leaves_out_the_same(kind: Kind, home: Place) -> None:
    with kind.make(home / "a") as loop, kind.make(home / "b") as other:
        teach(kind, loop, range(6))
        loop.undo("e1")
        version = loop.version
        teach(kind, loop, range(6, 9))
        loop.rollback(version, reason="a crawler")
        teach(kind, loop, range(9, 11))
        loop.rollback(1)
        teach(kind, loop, range(11, 13))
        lines, told = lines_of(loop), lines_of(loop, "rollback")
        assert [line.record["to"] for line in told] == [{"kind": "undo", "id": "undo-e1"}, None]
        assert {each.status for each in import_lines(other, lines) if each.kind != "item"} == {"applied"}
        assert {each.status for each in import_lines(other, lines)} == {"duplicate"}
        assert [each.undone for each in other.lessons()] == [each.undone for each in loop.lessons()]
        assert other.weights_of("p1") == pytest.approx(loop.weights_of("p1"))


def test_what_was_brought_back_twice_can_be_undone_a_third_time(home: Place) -> None:
    """The second undo has a name of its own, which the second rollback leaves out as well."""
    kind = KINDS[0]
    with kind.make(home / "loop") as loop:
        teach(kind, loop, range(4))
        old = bits(loop)
        for _ in range(4):
            version = loop.version
            assert loop.undo("e3").status == "applied"
            assert bits(loop) != old
            loop.rollback(version)
            assert bits(loop) == old


@pytest.mark.parametrize("to", ["e3", 5, {"kind": "decision", "id": "d1"}, {"kind": "feedback"}, {"id": "e1"}])
def test_a_line_names_the_event_that_it_goes_back_to(to: Any) -> None:
    found = check_form(Line(1, {"kind": "rollback", "id": "r", "to": to}, None))
    assert isinstance(found, Outcome)
    assert (found.reason or "").startswith(
        "to: expected the kind (feedback, undo, rollback, experiment, stop, promote, style) and id"
    )
