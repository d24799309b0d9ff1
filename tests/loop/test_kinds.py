"""What holds of a loop of every kind of feedback, that of `fifth.py` too."""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from heedful import Loop
from heedful.core.conformance import identical
from heedful.core.fold import copy_arrays
from heedful.data.jsonl import Line
from heedful.io import export_lines, import_lines, rehearse
from heedful.loop.projection import Projection
from heedful.results.answers import plain
from heedful.results.report import PredictionReport
from heedful.server.result_schema import schema_of
from kinds import NAMES, Kind, ask, each_kind, each_learner, teach
from loops import bits, bits_from_scratch, small_loop


def exported(loop: Loop) -> list[dict[str, Any]]:
    """The lines of a loop as a file holds them."""
    return json.loads(json.dumps([plain(line) for line in export_lines(loop)]))


def numbered(lines: Iterable[dict[str, Any]]) -> list[Line]:
    return [Line(i, line, None) for i, line in enumerate(lines, 1)]


def prediction(loop: Loop) -> PredictionReport | None:
    """What the report says of predictions, without when they were made."""
    found = loop.report().prediction
    return found and found._replace(series=())


def answer(kind: Kind, loop: Loop, i: int, event: str) -> Any:
    """Answer decision d{i} once more, as `teach` did."""
    known = loop.projection.find_decision(f"d{i}")
    assert known is not None
    form = kind.answer(i, tuple(known.names[j] for j in known.record.shown))
    return loop.feedback({**form, "decision": f"d{i}", "id": event})


# ---------------------------------------------------------------------------- from nothing


@each_learner
def test_a_loop_begins_with_nothing(kind: Kind, learner: str, folder: Path) -> None:
    """No item, no person, no answer; then one comes after the other, more than there was room for."""
    with kind.make(folder / "full", learner) as full:
        items = [line for line in exported(full) if line["kind"] == "item"]
    rows = [{name: value for name, value in item.items() if name != "kind"} for item in items]
    with kind.make(folder / "loop", learner, n_items=0) as loop:
        assert (loop.items, loop.lessons()) == ([], ())
        with pytest.raises(ValueError, match="candidates: expected some, or items on offer, got neither"):
            loop.decide(person="p")
        assert loop.put_items(rows[:2]).put == 2
        shown = loop.decide(person="p", id="d0", show=2).shown
        assert sorted(shown) == ["i0", "i1"]
        assert loop.feedback({**kind.answer(0, shown), "decision": "d0"}).status == "applied"
        loop.put_items([{**row, "id": f"{row['id']}0{j}"} for j in range(10) for row in rows])
        shown = loop.decide(["i1109", "i1009"], person="q", id="d1").shown
        assert loop.feedback({**kind.answer(1, shown), "decision": "d1"}).status == "applied"
        assert len(loop.items) == 122
        assert loop.verify() == []
        kept = bits(loop)
        assert kept == bits_from_scratch(loop)
    with Loop.open(folder / "loop", learner=kind.own) as loop:
        assert (loop.notes, bits(loop)) == ([], kept)


@each_kind
def test_an_item_that_was_never_put_is_unknown(kind: Kind, folder: Path) -> None:
    with kind.make(folder / "loop") as loop:
        before = loop.projection.log.counts(), bits(loop)
        with pytest.raises(LookupError, match=r"candidates: expected items on offer, .*, got 'x'"):
            loop.decide(["i0", "i1", "x"], person="p", strict=True)
        assert (loop.projection.log.counts(), bits(loop)) == before


# ---------------------------------------------------------------------------- the fold of the log


@each_learner
def test_undone_or_forgotten_is_as_if_it_had_never_been(kind: Kind, learner: str, folder: Path) -> None:
    """Answers that are taken back, however late, leave the model that the others alone make, with a snapshot and
    without."""
    with kind.make(folder / "loop", learner) as loop:
        teach(kind, loop, range(18))
        lines, all_of_it = exported(loop), bits(loop)
        assert all_of_it == bits_from_scratch(loop)
        loop.snapshot()
        assert [loop.undo(f"e{i}").status for i in (6, 17)] == ["applied"] * 2
        assert loop.forget("p1").events == 12
        without = bits(loop)
        assert without == bits_from_scratch(loop) != all_of_it
        assert loop.verify() == []
        assert "forgotten" in str(loop.feedback("d1", id="new", none=True).reason)
    with Loop.open(folder / "loop", learner=kind.own) as loop:
        assert (bits(loop), loop.notes) == (without, [])
    theirs = {line["id"] for line in lines if line.get("person") == "p1"}
    never = [
        line for line in lines if line.get("id") not in theirs | {"e6", "e17"} and line.get("decision") not in theirs
    ]
    assert len(lines) - len(never) == 6 + 6 + 2
    with kind.make(folder / "never", learner) as loop:
        assert {each.status for each in import_lines(loop, numbered(never)) if each.kind != "item"} == {"applied"}
        assert bits(loop) == without


@each_kind
def test_undone_at_once_is_as_if_it_had_never_been(kind: Kind, folder: Path) -> None:
    """What is decided afterwards, too, is what a loop that never heard it decides."""
    with kind.make(folder / "a") as loop, kind.make(folder / "b") as other:
        for i in range(12):
            asked = ask(kind, i)
            decision = loop.decide(**asked)
            assert other.decide(**asked)._replace(seq=0, version=0) == decision._replace(seq=0, version=0)
            taken_back = i == 11 or i % 3 == 1
            loop.feedback({**kind.answer(i, decision.shown), "decision": f"d{i}", "id": f"e{i}"})
            if taken_back:
                assert (loop.undo(f"e{i}").status, i) == ("applied", i)
            else:
                other.feedback({**kind.answer(i, decision.shown), "decision": f"d{i}", "id": f"e{i}"})
        assert bits(loop) == bits(other)
        assert loop.forget("p2").events == other.forget("p2").events + 1 + 1  # e11, and what took it back
        assert bits(loop) == bits(other) == bits_from_scratch(loop)


@each_learner
def test_a_restart_at_any_point_changes_nothing(kind: Kind, learner: str, folder: Path) -> None:
    """Closed and opened after every step, with a snapshot and without: the same decisions, the same model."""

    def step(loop: Loop, i: int) -> Any:
        decision = loop.decide(person=f"p{i % 2}", id=f"d{i}", **kind.ask(i))
        loop.feedback({**kind.answer(i, decision.shown), "decision": f"d{i}", "id": f"e{i}"})
        if i == 4:
            loop.undo("e2")
        return decision

    with kind.make(folder / "whole", learner) as whole:
        made = [step(whole, i) for i in range(7)]
        kind.make(folder / "parts", learner).close()
        for i in range(7):
            loop = Loop.open(folder / "parts", learner=kind.own)
            assert step(loop, i) == made[i]
            if i % 3 == 1:
                loop.snapshot()
            (loop if i % 2 else loop.projection.log).close()  # or without a word, as if the process had ended
        with Loop.open(folder / "parts", learner=kind.own) as parts:
            assert (bits(parts), parts.version, parts.notes) == (bits(whole), whole.version, [])
            assert parts.weights_of("p1") == whole.weights_of("p1")
            assert parts.verify() == []


@each_kind
def test_reopened_with_a_snapshot_and_without_it_decides_the_same(kind: Kind, folder: Path) -> None:
    with kind.make(folder / "loop") as loop:
        teach(kind, loop, range(24))
        live_on = loop.decide(person="p1", id="next", **kind.ask(1))
        loop.snapshot()
        kept = bits(loop), loop.weights_of("p1"), loop.rank(person="p1")
    if kind.own:
        with pytest.raises(LookupError, match="name it when opening the loop"):
            Loop.open(folder / "loop")
    with Loop.open(folder / "loop", learner=kind.own) as loop:
        assert (loop.projection._since_snapshot, loop.notes) == (0, [])
        assert (bits(loop), loop.weights_of("p1"), loop.rank(person="p1")) == kept
        loop.undo("e3")
        assert answer(kind, loop, 3, "again").status == "applied"
        after = bits(loop)
        assert after != kept[0]
    for path in folder.glob("loop/snapshot*"):
        path.unlink()
    with Loop.open(folder / "loop", learner=kind.own) as loop:
        assert bits(loop) == after
        assert loop.decide(person="p1", id="next", **kind.ask(1)) == live_on


@each_kind
def test_a_snapshot_saves_folding_and_may_be_damaged(kind: Kind, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was learned before it is not learned again, nor for an explanation what was learned after the decision."""
    steps: list[int] = []
    taught = Projection.teach
    monkeypatch.setattr(Projection, "teach", lambda self, *given: steps.append(given[1].seq) or taught(self, *given))
    loop = kind.make(folder / "loop")
    teach(kind, loop, range(9))
    told = loop.explain("d5")
    path = loop.snapshot()
    teach(kind, loop, range(9, 10))
    last, kept = loop.version, bits(loop)
    loop.projection.log.close()  # as if the process had ended
    steps.clear()
    with Loop.open(folder / "loop", learner=kind.own) as loop:
        assert (steps, bits(loop), loop.notes) == ([last], kept, [])
        steps.clear()
        loop.explain("d9")
        assert steps == [] or kind.name != "rating"  # others follow what moved it from the first lesson on
        steps.clear()
        assert loop.explain("d5") == told
        assert len(set(steps)) == 5
    path.write_bytes(path.read_bytes()[:-5])
    for snapshot in set(folder.glob("loop/snapshot*")) - {path}:
        snapshot.unlink()
    with Loop.open(folder / "loop", learner=kind.own) as loop:
        assert (bits(loop), len(loop.notes)) == (kept, 1)


@each_kind
def test_two_processes_teach_one_loop(kind: Kind, folder: Path) -> None:
    """Each writes in turn, and takes in what the other wrote: answers, items, what was taken back."""
    with kind.make(folder / "loop") as one, Loop.open(folder / "loop", learner=kind.own) as two:
        row = next(line for line in exported(one) if line["id"] == "i2")
        for i in range(12):
            loop, other = (one, two) if i % 2 else (two, one)
            shown = loop.decide(**ask(kind, i)).shown
            form = {**kind.answer(i, shown), "decision": f"d{i}", "id": f"e{i}"}
            assert [other.feedback(form).status, loop.feedback(form).status] == ["applied", "duplicate"]
            if i == 5:
                other.withdraw("i2")
                row = {name: value for name, value in row.items() if name != "kind"}
                loop.put_items([row, {**row, "id": "i12"}])
            if i == 8:
                other.undo("e3")
            if i == 10:
                other.forget("p1")
            one.projection.catch_up()
            two.projection.catch_up()
            assert bits(one) == bits(two)
            assert one.items == two.items
        assert bits(one) == bits_from_scratch(two)
        assert one.verify() == two.verify() == []


@each_learner
def test_what_readers_have_is_not_written_to(kind: Kind, learner: str, folder: Path) -> None:
    """Arrays grow and are written over in the next version, not in the one that somebody decides from."""
    with kind.make(folder / "loop", learner) as loop:
        row = next(line for line in exported(loop) if line["id"] == "i0")
        teach(kind, loop, range(5))
        for i in range(5, 20):
            shared, people = loop.projection.published.shared, dict(loop.projection.published.people)
            kept = copy_arrays(shared), {name: copy_arrays(own.state) for name, own in people.items()}
            teach(kind, loop, range(i, i + 1))
            if i == 10:
                loop.put_items(
                    [{"id": f"n{j}", **{k: v for k, v in row.items() if k not in ("kind", "id")}} for j in range(200)]
                )
            if i == 12:
                loop.withdraw("i11")
            assert identical(shared, kept[0])
            assert all(identical(own.state, kept[1][name]) for name, own in people.items())


# ---------------------------------------------------------------------------- one event, once


@each_learner
def test_the_same_id_is_the_same_decision(kind: Kind, learner: str, folder: Path) -> None:
    """Asked again, also after lessons and a restart; and the log has it once."""
    asked = [ask(kind, i) for i in range(6)]
    with kind.make(folder / "loop", learner) as loop:
        made = []
        for i, fields in enumerate(asked):
            made.append(loop.decide(**fields))
            loop.feedback({**kind.answer(i, made[i].shown), "decision": f"d{i}", "id": f"e{i}"})
        before = loop.projection.log.counts()
        assert [loop.decide(**fields) for fields in asked] == made
    with Loop.open(folder / "loop", learner=kind.own) as loop:
        assert [loop.decide(**fields) for fields in asked] == made
        with pytest.raises(ValueError, match="id: expected a new one, got 'd0', which has other candidates"):
            loop.decide(["i5", "i6", "i7"], person="p0", id="d0")
        with pytest.raises(ValueError, match="was shown to somebody else"):
            loop.decide(**asked[0] | {"person": "q"})
        assert loop.projection.log.counts() == before


@each_kind
def test_an_event_counts_once(kind: Kind, folder: Path) -> None:
    """At once, later, after it was undone, after a restart; its place is that of the first."""
    with kind.make(folder / "loop") as loop:
        teach(kind, loop, range(6))
        before, first = bits(loop), loop.projection.log.find("feedback", "e5")
        assert first is not None
        again = answer(kind, loop, 5, "e5")
        assert (again.status, again.seq, again.learned) == ("duplicate", first.seq, False)
        other = answer(kind, loop, 5, "e4")
        assert (other.status, other.seq) == ("rejected", None)
        assert "was used for feedback" in str(other.reason) or "other content" in str(other.reason)
        assert bits(loop) == before
        assert answer(kind, loop, 5, "another").status == "applied"  # and another answer counts again
        assert bits(loop) != before
        assert loop.undo("another").status == "applied"
        assert bits(loop) == before
        assert [loop.undo("e4").status for _ in range(2)] == ["applied", "duplicate"]
        assert (loop.undo("e4", id="again").learned, loop.undo("nobody").status) == (False, "rejected")
        without, counts = bits(loop), loop.projection.log.counts()["feedback"]
        assert without != before
    with Loop.open(folder / "loop", learner=kind.own) as loop:
        assert answer(kind, loop, 4, "e4").status == "duplicate"  # and stays undone
        assert answer(kind, loop, 5, "e4").status == "rejected"
        assert (bits(loop), loop.projection.log.counts()["feedback"]) == (without, counts)


@each_kind
def test_what_is_no_answer_changes_nothing(kind: Kind, folder: Path) -> None:
    with kind.make(folder / "loop") as loop:
        teach(kind, loop, range(6))
        before = bits(loop), loop.projection.log.counts()
        form = kind.answer(5, loop.decide(**ask(kind, 5)).shown)
        field = next(iter(form))
        for wrong in ({field: object}, {field: None}, {"no-such-form": 1}, {**form, "no-such-field": 1}, {}):
            with pytest.raises(ValueError, match=": "):
                loop.feedback({**wrong, "decision": "d5", "id": "new"})
            [said] = loop.feedback_many([{**wrong, "decision": "d5", "id": "new"}])
            assert (said.status, said.learned) == ("rejected", False)
        with pytest.raises(ValueError, match="decision: "):
            loop.feedback({**form, "id": "new"})
        assert (bits(loop), loop.projection.log.counts()) == before


@pytest.mark.slow
@each_kind
def test_a_lesson_that_the_learner_raises_on_is_left_out(
    kind: Kind, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whole, and from every fold of the log."""
    with kind.make(folder / "loop") as loop:
        cls: Any = type(loop.learner)

        def failing(learns: Callable[..., Any]) -> Callable[..., Any]:
            def fails(self: Any, state: Any, *lesson: Any) -> Any:
                given = repr(lesson)
                state = learns(self, state, *lesson)  # which may write into the state before it fails
                if zlib.crc32(given.encode()) % 3 == 0:
                    raise ArithmeticError("a third of them")
                return state

            return fails

        for name in ("update", "step"):  # some forms are steps along a direction
            if hasattr(cls, name):
                monkeypatch.setattr(cls, name, failing(getattr(cls, name)))
        answers = []
        for i in range(24):
            before = bits(loop)
            shown = loop.decide(**ask(kind, i)).shown
            got = loop.feedback({**kind.answer(i, shown), "decision": f"d{i}", "id": f"e{i}"})
            assert (got.status, "ArithmeticError" in str(got.reason)) == ("applied", not got.learned)
            assert got.learned or bits(loop) == before
            answers.append(got.learned)
        assert 3 < sum(answers) < 21
        assert loop.verify() == []
        kept = bits(loop)
        assert bits_from_scratch(loop) == kept
    with Loop.open(folder / "loop", learner=kind.own) as loop:
        assert bits(loop) == kept


# ---------------------------------------------------------------------------- looking back, elsewhere


@each_kind
def test_an_explanation_says_what_was_known_then(kind: Kind, folder: Path) -> None:
    """Whatever was learned since, from a snapshot and without it."""
    with kind.make(folder / "loop") as loop:
        teach(kind, loop, range(12))
        loop.decide(person="p1", id="why", candidates=NAMES[:6])
        why = loop.explain("why")
        assert (why.decision, why.first in NAMES[:6]) == ("why", True)
        assert {each.event for each in why.lessons} <= {f"e{i}" for i in range(12)}
        teach(kind, loop, range(12, 18))
        assert loop.explain("why") == why
        loop.snapshot()
        assert loop.explain("why") == why
        for what in ("nothing", "e1"):
            with pytest.raises(LookupError, match=f"decision {what} is not in the log"):
                loop.explain(what)
    with Loop.open(folder / "loop", learner=kind.own) as loop:
        assert loop.explain("why") == why


@each_kind
def test_what_a_report_adds_of_predictions_is_what_its_kind_declares(kind: Kind, folder: Path) -> None:
    """Before anything was predicted, too, and with no field more or less."""
    with kind.make(folder / "loop") as loop:
        declared = type(loop.projection.interaction).prediction_details()
        for rounds in (range(0), range(24)):
            teach(kind, loop, rounds)
            found = loop.report().prediction
            assert (found is None) == (declared is None)
            if found is not None and declared is not None:
                details = json.loads(json.dumps(plain(found.details)))
                assert list(details) == list(declared._fields)
                assert msgspec.to_builtins(msgspec.convert(details, schema_of(declared))) == details


@each_kind
def test_another_learner_is_a_name(kind: Kind, folder: Path) -> None:
    with kind.make(folder / "loop") as loop, pytest.raises(ValueError, match="learner: expected its name, such as"):
        loop.evaluate(5)  # type: ignore[arg-type]


@each_learner
def test_exported_and_imported_it_learns_the_same(kind: Kind, learner: str, folder: Path) -> None:
    """The same model and predictions, bit for bit, also where an item went and came back; a second time changes
    nothing."""
    with kind.make(folder / "a", learner) as loop:
        row = {k: v for k, v in next(line for line in exported(loop) if line["id"] == "i2").items() if k != "kind"}
        teach(kind, loop, range(14))
        loop.withdraw("i2")
        teach(kind, loop, range(14, 18), gone="i2")
        loop.put_items([row])
        teach(kind, loop, range(18, 24))
        loop.undo("e5")
        lines, kept, predicted = exported(loop), bits(loop), prediction(loop)
        weights, report = loop.weights_of("p1"), loop.report()
    read = numbered(lines)
    kind.make(folder / "b", learner, n_items=0).close()
    with rehearse(folder / "b", learner=kind.own) as dry:
        assert [each for each in import_lines(dry, read) if each.status != "applied"] == []
    with Loop.open(folder / "b", learner=kind.own) as other:
        assert (other.items, other.lessons()) == ([], ())
        assert {each.status for each in import_lines(other, read)} == {"applied"}
        for _ in range(2):
            assert (bits(other), prediction(other), other.weights_of("p1")) == (kept, predicted, weights)
            found = other.report()
            assert (found.decisions, found.feedback) == (report.decisions, report.feedback)
            assert [each for each in exported(other) if each["kind"] == "decision"] == [
                each for each in lines if each["kind"] == "decision"
            ]
            assert {each.status for each in import_lines(other, read)} == {"duplicate"}
        assert other.verify() == []


def test_a_loop_of_rankings_speaks_of_no_other_kind(folder: Path) -> None:
    """It predicts nothing, its log has no place for predictions, and grades, ratings and choices teach it orders."""
    with small_loop(folder / "loop") as loop:
        d = loop.decide(["i0", "i1"])
        assert [loop.facts.get(name) for name in ("grades", "ratings", "choices")] == [None] * 3
        assert d.predicted is None
        assert "predicted" not in d.plain()
        assert plain(loop.report()).keys().isdisjoint({"prediction", "grades", "choices"})
        assert plain(loop.explain(d.id)).keys().isdisjoint({"grade", "between", "rating", "choice"})
        for form in ({"grade": {"i0": 1, "i1": 7}}, {"rating": {"i0": 1, "i1": 7}}, {"choice": "first"}):
            assert loop.feedback(d.id, **form).status == "applied"
        assert [each.name for each in loop.evaluate("perceptron").measures] == ["swapped pairs", "list value"]
        answer = loop.feedback(d.id, actions={"i0": "buy"})
        assert answer.reason == "actions: expected action and item, but in a loop of ratings"
        refused: list[tuple[Callable[[], Any], str]] = [
            (lambda: loop.predict(["i0"]), "predict: expected a loop that predicts something, got one of pairwise"),
            (lambda: loop.standing(), "standing: expected a loop of choices, got a loop of rankings"),
            (lambda: loop.decide(["i0"], repeats=True), "repeats: expected none in a loop of rankings, got True"),
            (lambda: loop.feedback(d.id, edit=["i0", "i1"]), "edit: expected the corrected text"),
        ]
        for call, reason in refused:
            with pytest.raises(ValueError, match=reason):
                call()
        decisions = loop.projection.log.events(kinds=["decision"])
        assert all(b"redicted" not in event.payload.encode() for event in decisions)
