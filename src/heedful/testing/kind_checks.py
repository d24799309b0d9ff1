"""Checks that loops of every kind of feedback must pass, such as that undoing an answer is as if it had never been.

Each check makes loops in an empty folder, lets three people answer, and raises AssertionError where the kind or its
learner is wrong. The file is long because it is one list: each check stands on its own and is read on its own.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from functools import partial, update_wrapper
from pathlib import Path
from typing import Any, NamedTuple, Protocol
from unittest.mock import patch

from heedful.core.conformance import identical
from heedful.core.fold import copy_arrays
from heedful.data.jsonl import as_lines
from heedful.io import export_lines, import_lines, rehearse
from heedful.loop import Loop
from heedful.results.answers import plain
from heedful.testing.loop_state import bits, bits_from_scratch


class MakeLoop(Protocol):
    """Makes a loop in the new folder `path`, with the items "i0", "i1", ... of `n_items` on offer."""

    def __call__(self, path: Path, n_items: int = 12) -> Loop:
        """Return the loop. Further items are put later: the items above under other ids, up to 200 at once."""


class KindCase(NamedTuple):
    """A kind of feedback with a learner, as `check_kind` tries it: how its loops are made, asked and answered."""

    make: MakeLoop
    ask: Callable[[int], dict[str, Any]]
    """the arguments of `Loop.decide` in round i, besides `person` and `id`; candidates, if named, are a list, of ids or
    of objects with an `id`"""
    answer: Callable[[int, tuple[str, ...]], dict[str, Any]]
    """the form of feedback to the ids that are shown in round i, of which the loop learns something"""
    own: str | None = None
    """the learner that has to be named when such a loop is opened: FILE.py:Class, if it is yours"""


def check_kind(case: KindCase) -> Iterator[Callable[[Path], None]]:
    """Yield the checks of a kind, functions of an empty folder that have the name and the docstring of what they check.

    A check returns None if it passes; if it fails, it raises AssertionError, or the error that the kind raised.
    """
    for check in CHECKS:
        yield update_wrapper(partial(check, case), check)


def ask(case: KindCase, i: int, withdrawn: str = "") -> dict[str, Any]:
    """Return the arguments of decision d{i}, made for one of three people; without an item that is `withdrawn`."""
    fields = {"person": f"p{i % 3}", "id": f"d{i}", **case.ask(i)}
    if withdrawn and "candidates" in fields:
        fields["candidates"] = [each for each in fields["candidates"] if _id(each) != withdrawn]
        if "prior" in fields:
            fields["prior"] = {name: fields["prior"][name] for name in fields["candidates"]}
    return fields


def _id(candidate: Any) -> Any:
    return candidate.get("id") if isinstance(candidate, dict) else candidate


def feedback(case: KindCase, i: int, shown: tuple[str, ...]) -> dict[str, Any]:
    """Return feedback e{i}, to decision d{i}."""
    return {**case.answer(i, shown), "decision": f"d{i}", "id": f"e{i}"}


def teach(case: KindCase, loop: Loop, rounds: range, withdrawn: str = "") -> None:
    """Let three people answer a decision in each of these rounds."""
    for i in rounds:
        shown = loop.decide(**ask(case, i, withdrawn)).shown
        _equal(loop.feedback(feedback(case, i, shown)).status, "applied", f"round {i}")


def export(loop: Loop) -> list[dict[str, Any]]:
    """Return the lines of a loop as a file holds them."""
    return json.loads(json.dumps([plain(line) for line in export_lines(loop)]))  # type: ignore[no-any-return]


def _true(condition: object, message: str) -> None:
    if not condition:
        raise AssertionError(message)


def _equal(actual: object, expected: object, message: str) -> None:
    """Raise AssertionError unless both are equal; of the states of models only the names that differ are listed."""
    if actual == expected:
        return
    if isinstance(actual, dict) and isinstance(expected, dict):
        names = {name for name in {*actual, *expected} if actual.get(name) != expected.get(name)}
        raise AssertionError(f"{message}: different in {', '.join(sorted(map(str, names)))}")
    raise AssertionError(f"{message}: expected {expected!r}, got {actual!r}")


def _raises(error: type[Exception], words: str, call: Callable[[], object]) -> None:
    """Raise AssertionError unless `call` raises `error` with these words."""
    try:
        call()
    except error as raised:
        _true(words in str(raised), f"expected an error with {words!r}, got {raised}")
    else:
        raise AssertionError(f"expected {error.__name__} with {words!r}, got no error")


def _row(loop: Loop, name: str) -> dict[str, Any]:
    """Return an item as `Loop.put_items` takes it."""
    return next(_without_kind(line) for line in export(loop) if line["kind"] == "item" and line["id"] == name)


def _without_kind(line: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in line.items() if name != "kind"}


def _answer_again(case: KindCase, loop: Loop, i: int, event: str) -> Any:
    """Answer decision d{i} once more, as `teach` did, in a new event."""
    decision = loop.projection.find_decision(f"d{i}")
    if decision is None:
        raise AssertionError(f"decision d{i} is not in the log")
    shown = tuple(decision.names[j] for j in decision.record.shown)
    return loop.feedback({**case.answer(i, shown), "decision": f"d{i}", "id": event})


def _open(case: KindCase, path: Path) -> Loop:
    return Loop.open(path, learner=case.own)


def _counts(loop: Loop) -> dict[str, int]:
    return dict(loop.projection.log.counts())


# ---------------------------------------------------------------------------- from nothing


def a_loop_begins_with_nothing(case: KindCase, folder: Path) -> None:
    """No item, no person, no answer; then one comes after the other, more than there was room for."""
    with case.make(folder / "full") as full:
        rows = [_without_kind(line) for line in export(full) if line["kind"] == "item"]
    with case.make(folder / "loop", n_items=0) as loop:
        _equal((loop.items, loop.lessons()), ([], ()), "items and lessons")
        empty = "candidates: expected some, or items on offer, got neither"
        _raises(ValueError, empty, lambda: loop.decide(person="p"))
        _equal([loop.put_items(rows[:2]).put for _ in range(2)], [2, 0], "items put, twice the same")
        shown = loop.decide(person="p", id="d0", show=2).shown
        _equal(sorted(shown), ["i0", "i1"], "shown")
        _equal(loop.feedback(feedback(case, 0, shown)).status, "applied", "the first answer")
        loop.put_items([{**row, "id": f"{row['id']}0{j}"} for j in range(10) for row in rows])
        shown = loop.decide(["i1109", "i1009"], person="q", id="d1").shown
        _equal(loop.feedback(feedback(case, 1, shown)).status, "applied", "the second answer")
        _equal(len(loop.items), 122, "items on offer")
        _equal(loop.verify(), [], "verify")
        state = bits(loop)
        _equal(state, bits_from_scratch(loop), "the state, and the fold of the log")
    with _open(case, folder / "loop") as loop:
        _equal(loop.notes, [], "notes after a restart")
        _equal(bits(loop), state, "the state after a restart")


def an_item_that_was_never_put_is_unknown(case: KindCase, folder: Path) -> None:
    """A strict decision about it is refused, and changes nothing."""
    with case.make(folder / "loop") as loop:
        before = _counts(loop), bits(loop)
        unknown = ["i0", "i1", "x"]
        _raises(LookupError, ", got 'x'", lambda: loop.decide(unknown, person="p", strict=True))
        _equal((_counts(loop), bits(loop)), before, "the log and the state")


# ---------------------------------------------------------------------------- the fold of the log


def undone_or_forgotten_is_as_if_it_had_never_been(case: KindCase, folder: Path) -> None:
    """Answers that are taken back, however late, leave the model that the others alone make, with a snapshot and
    without."""
    with case.make(folder / "loop") as loop:
        teach(case, loop, range(18))
        lines, whole = export(loop), bits(loop)
        _equal(whole, bits_from_scratch(loop), "the state, and the fold of the log")
        loop.snapshot()
        _equal([loop.undo(f"e{i}").status for i in (6, 17)], ["applied"] * 2, "undo")
        _equal(loop.forget("p1").events, 12, "forgotten events")
        without = bits(loop)
        _equal(without, bits_from_scratch(loop), "the state after forgetting, and the fold of the log")
        _true(without != whole, "the state is the same after a person was forgotten")
        _equal(loop.verify(), [], "verify")
        reason = str(loop.feedback("d1", id="new", none=True).reason)
        _true("forgotten" in reason, f"an answer to a forgotten decision: {reason}")
    with _open(case, folder / "loop") as loop:
        _equal(bits(loop), without, "the state after a restart")
        _equal(loop.notes, [], "notes after a restart")
    forgotten = {line["id"] for line in lines if line.get("person") == "p1"}
    gone = forgotten | {"e6", "e17"}
    others = [line for line in lines if line.get("id") not in gone and line.get("decision") not in forgotten]
    _equal(len(lines) - len(others), 6 + 6 + 2, "lines of what was taken back")
    with case.make(folder / "never") as loop:
        statuses = {outcome.status for outcome in import_lines(loop, as_lines(others)) if outcome.kind != "item"}
        _equal(statuses, {"applied"}, "imported lines")
        _equal(bits(loop), without, "the state of the others alone")


def undone_at_once_is_as_if_it_had_never_been(case: KindCase, folder: Path) -> None:
    """What is decided afterwards, too, is what a loop without the answer decides."""
    with case.make(folder / "a") as loop, case.make(folder / "b") as other:
        for i in range(12):
            fields = ask(case, i)
            decision = loop.decide(**fields)
            expected = other.decide(**fields)._replace(seq=0, version=0)
            _equal(decision._replace(seq=0, version=0), expected, f"decision d{i}")
            form = feedback(case, i, decision.shown)
            loop.feedback(form)
            if i == 11 or i % 3 == 1:
                _equal(loop.undo(f"e{i}").status, "applied", f"undo of e{i}")
            else:
                other.feedback(form)
        _equal(bits(loop), bits(other), "the state without the undone answers")
        # e11, and its undo, are events of the one loop only
        _equal(loop.forget("p2").events, other.forget("p2").events + 2, "forgotten events")
        _equal(bits(loop), bits(other), "the state after forgetting")
        _equal(bits(loop), bits_from_scratch(loop), "the state, and the fold of the log")


def a_restart_at_any_point_changes_nothing(case: KindCase, folder: Path) -> None:
    """Closed and opened after every step, with a snapshot and without: the same decisions, the same model."""

    def step(loop: Loop, i: int) -> Any:
        decision = loop.decide(person=f"p{i % 2}", id=f"d{i}", **case.ask(i))
        loop.feedback(feedback(case, i, decision.shown))
        if i == 4:
            loop.undo("e2")
        return decision

    with case.make(folder / "whole") as whole:
        decisions = [step(whole, i) for i in range(7)]
        case.make(folder / "parts").close()
        for i in range(7):
            loop = _open(case, folder / "parts")
            _equal(step(loop, i), decisions[i], f"decision d{i} after a restart")
            if i % 3 == 1:
                loop.snapshot()
            if i % 2:
                loop.close()
            else:
                loop.projection.log.close()  # as if its process had ended: no snapshot is written
        with _open(case, folder / "parts") as parts:
            _equal(bits(parts), bits(whole), "the state")
            _equal((parts.version, parts.notes), (whole.version, []), "version and notes")
            _equal(parts.weights_of("p1"), whole.weights_of("p1"), "weights of p1")
            _equal(parts.verify(), [], "verify")


def reopened_with_a_snapshot_and_without_it_decides_the_same(case: KindCase, folder: Path) -> None:
    """The model, the ranking and the next decision do not depend on where the fold began."""
    with case.make(folder / "loop") as loop:
        teach(case, loop, range(24))
        next_decision = loop.decide(person="p1", id="next", **case.ask(1))
        loop.snapshot()
        before = bits(loop), loop.weights_of("p1"), loop.rank(person="p1")
    if case.own:
        _raises(LookupError, "name it when opening the loop", lambda: Loop.open(folder / "loop"))
    with _open(case, folder / "loop") as loop:
        _equal(loop.notes, [], "notes")
        _equal((bits(loop), loop.weights_of("p1"), loop.rank(person="p1")), before, "state, weights and ranking")
        loop.undo("e3")
        _equal(_answer_again(case, loop, 3, "again").status, "applied", "another answer")
        after = bits(loop)
        _true(after != before[0], "the state is the same after an undo and another answer")
    for path in folder.glob("loop/snapshot*"):
        path.unlink()
    with _open(case, folder / "loop") as loop:
        _equal(bits(loop), after, "the state without a snapshot")
        _equal(loop.decide(person="p1", id="next", **case.ask(1)), next_decision, "the decision, asked again")


def two_processes_teach_one_loop(case: KindCase, folder: Path) -> None:
    """Each writes in turn, and takes in what the other wrote: answers, items, what was taken back."""
    with case.make(folder / "loop") as one, _open(case, folder / "loop") as two:
        row = _row(one, "i2")
        for i in range(12):
            loop, other = (one, two) if i % 2 else (two, one)
            form = feedback(case, i, loop.decide(**ask(case, i)).shown)
            statuses = [other.feedback(form).status, loop.feedback(form).status]
            _equal(statuses, ["applied", "duplicate"], f"e{i}, sent to both")
            if i == 5:
                other.withdraw("i2")
                loop.put_items([row, {**row, "id": "i12"}])
            if i == 8:
                other.undo("e3")
            if i == 10:
                other.forget("p1")
            one.projection.catch_up()
            two.projection.catch_up()
            _equal(bits(one), bits(two), f"the states after round {i}")
            _equal(one.items, two.items, f"items after round {i}")
        _equal(bits(one), bits_from_scratch(two), "the state, and the fold of the log")
        _equal((one.verify(), two.verify()), ([], []), "verify")


def what_readers_have_is_not_written_to(case: KindCase, folder: Path) -> None:
    """Arrays grow and are overwritten in the next version, not in the one that a reader decides from."""
    with case.make(folder / "loop") as loop:
        row = _row(loop, "i0")
        teach(case, loop, range(5))
        for i in range(5, 20):
            shared, people = loop.projection.published.shared, dict(loop.projection.published.people)
            before = copy_arrays(shared), {name: copy_arrays(person.state) for name, person in people.items()}
            teach(case, loop, range(i, i + 1))
            if i == 10:
                loop.put_items([{**row, "id": f"n{j}"} for j in range(200)])
            if i == 12:
                loop.withdraw("i11")
            _true(identical(shared, before[0]), f"round {i} wrote to the state that readers have")
            for name, person in people.items():
                _true(identical(person.state, before[1][name]), f"round {i} wrote to the state of {name}")


# ---------------------------------------------------------------------------- one event, once


def the_same_id_is_the_same_decision(case: KindCase, folder: Path) -> None:
    """Asked again, also after lessons and a restart; and the log has it once."""
    rounds = [ask(case, i) for i in range(6)]
    with case.make(folder / "loop") as loop:
        decisions = []
        for i, fields in enumerate(rounds):
            decisions.append(loop.decide(**fields))
            loop.feedback(feedback(case, i, decisions[i].shown))
        before = _counts(loop)
        _equal([loop.decide(**fields) for fields in rounds], decisions, "decisions, asked again")
    with _open(case, folder / "loop") as loop:
        _equal([loop.decide(**fields) for fields in rounds], decisions, "decisions, asked again after a restart")
        other = "id: expected a new one, got 'd0', which has other candidates"
        _raises(ValueError, other, lambda: loop.decide(["i5", "i6", "i7"], person="p0", id="d0"))
        _raises(ValueError, "was shown to somebody else", lambda: loop.decide(**rounds[0] | {"person": "q"}))
        _equal(_counts(loop), before, "events of the log")


def an_event_counts_once(case: KindCase, folder: Path) -> None:
    """At once, later, after it was undone, after a restart; its place is that of the first."""
    with case.make(folder / "loop") as loop:
        teach(case, loop, range(6))
        before, first = bits(loop), loop.projection.log.find("feedback", "e5")
        again = _answer_again(case, loop, 5, "e5")
        expected = "duplicate", first and first.seq, False
        _equal((again.status, again.seq, again.learned), expected, "the same event again")
        other = _answer_again(case, loop, 5, "e4")
        _equal((other.status, other.seq), ("rejected", None), "other feedback under the id of an event")
        reason = str(other.reason)
        _true("was used for feedback" in reason or "other content" in reason, f"why it is rejected: {reason}")
        _equal(bits(loop), before, "the state")
        _equal(_answer_again(case, loop, 5, "another").status, "applied", "another answer")
        _true(bits(loop) != before, "the state is the same after another answer")
        _equal(loop.undo("another").status, "applied", "undo")
        _equal(bits(loop), before, "the state after the undo")
        _equal([loop.undo("e4").status for _ in range(2)], ["applied", "duplicate"], "undo, twice")
        statuses = loop.undo("e4", id="again").learned, loop.undo("nobody").status
        _equal(statuses, (False, "rejected"), "undo in another event, undo of no event")
        without, events = bits(loop), _counts(loop)["feedback"]
        _true(without != before, "the state is the same after an undo")
    with _open(case, folder / "loop") as loop:
        _equal(_answer_again(case, loop, 4, "e4").status, "duplicate", "an event that is undone, again")
        _equal(_answer_again(case, loop, 5, "e4").status, "rejected", "other feedback under its id")
        _equal((bits(loop), _counts(loop)["feedback"]), (without, events), "the state and the log")


def what_is_no_answer_changes_nothing(case: KindCase, folder: Path) -> None:
    """Wrong values, unknown forms and fields, no form at all."""
    with case.make(folder / "loop") as loop:
        teach(case, loop, range(6))
        form = case.answer(5, loop.decide(**ask(case, 5)).shown)
        before, field = (bits(loop), _counts(loop)), next(iter(form))
        wrong: Sequence[dict[str, Any]]
        wrong = {field: object}, {field: None}, {"no-such-form": 1}, {**form, "no-such-field": 1}, {}
        for fields in wrong:
            event = {**fields, "decision": "d5", "id": "new"}
            _raises(ValueError, ": ", partial(loop.feedback, event))
            [outcome] = loop.feedback_many([event])
            _equal((outcome.status, outcome.learned), ("rejected", False), f"feedback {fields}")
        _raises(ValueError, "decision: ", lambda: loop.feedback({**form, "id": "new"}))
        _equal((bits(loop), _counts(loop)), before, "the state and the log")


def a_lesson_that_the_learner_raises_on_is_left_out(case: KindCase, folder: Path) -> None:
    """Whole, and from every fold of the log."""

    def failing(learns: Callable[..., Any]) -> Callable[..., Any]:
        def fails(self: Any, state: Any, *lesson: Any) -> Any:
            words = repr(lesson)
            state = learns(self, state, *lesson)  # which may write into the state before it fails
            if zlib.crc32(words.encode()) % 3 == 0:
                raise ArithmeticError("a third of them")
            return state

        return fails

    with case.make(folder / "loop") as loop:
        learner = type(loop.learner)
        with ExitStack() as patched:
            for name in ("update", "learn", "judge"):  # a learner of all forms has a method for each sort of lesson
                if hasattr(learner, name):
                    patched.enter_context(patch.object(learner, name, failing(getattr(learner, name))))
            learned = 0
            for i in range(24):
                before = bits(loop)
                outcome = loop.feedback(feedback(case, i, loop.decide(**ask(case, i)).shown))
                reason = str(outcome.reason)
                _equal(outcome.status, "applied", f"e{i}")
                _equal("ArithmeticError" in reason, not outcome.learned, f"e{i}: {reason}")
                _true(outcome.learned or bits(loop) == before, f"e{i} failed, and changed the state")
                learned += outcome.learned
            _true(3 < learned < 21, f"{learned} of 24 answers were learned")
            _equal(loop.verify(), [], "verify")
            state = bits(loop)
            _equal(bits_from_scratch(loop), state, "the fold of the log")
            loop.close()
            with _open(case, folder / "loop") as again:
                _equal(bits(again), state, "the state after a restart")


# ---------------------------------------------------------------------------- looking back, elsewhere


def an_explanation_is_of_the_model_at_that_time(case: KindCase, folder: Path) -> None:
    """Whatever was learned since, from a snapshot and without it."""
    with case.make(folder / "loop") as loop:
        teach(case, loop, range(12))
        candidates = [f"i{j}" for j in range(6)]
        loop.decide(person="p1", id="why", candidates=candidates)
        why = loop.why("why")
        _true(why.decision == "why" and why.item in candidates and why.place == 1, f"the explanation: {why}")
        _true({each.event for each in why.events} <= {f"e{i}" for i in range(12)}, f"what moved it: {why.events}")
        teach(case, loop, range(12, 18))
        _equal(loop.why("why"), why, "the explanation after six lessons")
        loop.snapshot()
        _equal(loop.why("why"), why, "the explanation after a snapshot")
        for what in ("nothing", "e1"):
            _raises(LookupError, f"decision {what} is not in the log", partial(loop.why, what))
    with _open(case, folder / "loop") as loop:
        _equal(loop.why("why"), why, "the explanation after a restart")


def exported_and_imported_it_learns_the_same(case: KindCase, folder: Path) -> None:
    """The same model and predictions, bit for bit, also where an item went and came back; a second import changes
    nothing."""

    def predictions(loop: Loop) -> object:
        report = loop.report().prediction
        return report and report._replace(series=())  # but when they were made

    def decisions(lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return [line for line in lines if line["kind"] == "decision"]

    with case.make(folder / "a") as loop:
        row = _row(loop, "i2")
        teach(case, loop, range(14))
        _equal([loop.withdraw("i2") for _ in range(2)], [True, False], "items withdrawn, twice the same")
        _true("i2" not in loop.items, "an item that was withdrawn is on offer")
        teach(case, loop, range(14, 18), withdrawn="i2")
        _equal(loop.put_items([row]).put, 1, "items put again")
        teach(case, loop, range(18, 24))
        loop.undo("e5")
        exported = export(loop)
        state = bits(loop)
        rest = predictions(loop), loop.weights_of("p1"), loop.report().decisions, loop.report().feedback
    lines = list(as_lines(exported))
    case.make(folder / "b", n_items=0).close()
    with rehearse(folder / "b", learner=case.own) as trial:
        statuses = {outcome.status for outcome in import_lines(trial, lines)}
        _equal(statuses, {"applied"}, "a rehearsed import")
    with _open(case, folder / "b") as other:
        _equal((other.items, other.lessons()), ([], ()), "items and lessons after a rehearsal")
        for status in ("applied", "duplicate"):
            _equal({outcome.status for outcome in import_lines(other, lines)}, {status}, "imported lines")
            _equal(bits(other), state, "the state")
            report = other.report()
            again = predictions(other), other.weights_of("p1"), report.decisions, report.feedback
            _equal(again, rest, "predictions, weights and counts")
            _equal(decisions(export(other)), decisions(exported), "decisions, exported again")
        _equal(other.verify(), [], "verify")


CHECKS: tuple[Callable[[KindCase, Path], None], ...] = (
    a_loop_begins_with_nothing,
    an_item_that_was_never_put_is_unknown,
    undone_or_forgotten_is_as_if_it_had_never_been,
    undone_at_once_is_as_if_it_had_never_been,
    a_restart_at_any_point_changes_nothing,
    reopened_with_a_snapshot_and_without_it_decides_the_same,
    two_processes_teach_one_loop,
    what_readers_have_is_not_written_to,
    the_same_id_is_the_same_decision,
    an_event_counts_once,
    what_is_no_answer_changes_nothing,
    a_lesson_that_the_learner_raises_on_is_left_out,
    an_explanation_is_of_the_model_at_that_time,
    exported_and_imported_it_learns_the_same,
)
"""each check, a function of the case and of an empty folder"""
