"""What holds of a loop of every kind of feedback, that of `fifth.py` too: `heedful.testing`, and others."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import msgspec
import pytest

from heedful import Loop
from heedful.learners.registry import learner_class
from heedful.loop.history import History
from heedful.results.answers import plain
from heedful.server.result_schema import schema_of
from heedful.testing import check_kind
from kinds import FIFTH, KINDS, Kind, each_kind, teach
from loops import bits, small_loop

OF_LEARNERS = {
    "a_loop_begins_with_nothing",
    "undone_or_forgotten_is_as_if_it_had_never_been",
    "what_readers_have_is_not_written_to",
}
"""What depends on the arrays of the learner, too; that a learner proposes the same again, is the fold of its log and
survives a file is promised by each (`tests/test_conformance.py`)."""


def checks() -> Iterator[Any]:
    """Every check of every kind, and those of learners for each that a loop of the kind takes."""
    for kind in KINDS:
        for learner in (None, *kind.learners):
            for check in check_kind(kind.case(learner)):
                if learner is None or check.__name__ in OF_LEARNERS:
                    words = [kind.name, *([learner.rpartition("/")[2]] if learner else []), check.__name__]
                    slow = learner is not None or check.__name__.startswith("a_lesson_that_the_learner_raises")
                    yield pytest.param(check, id="-".join(words), marks=[pytest.mark.slow] if slow else [])


@pytest.mark.parametrize("check", list(checks()))
def test_a_loop_of_every_kind(check: Callable[[Path], None], folder: Path) -> None:
    check(folder)


def test_a_model_that_is_no_function_of_its_log_fails(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A learner that counts its calls passes only what folds nothing again."""
    cls, calls = learner_class(FIFTH), count()
    update = cls.update
    monkeypatch.setattr(cls, "update", lambda *lesson: update(*lesson)._replace(t=next(calls)))
    case = next(kind for kind in KINDS if kind.own).case()
    passed = []
    for check in check_kind(case):
        (folder / check.__name__).mkdir()
        with contextlib.suppress(AssertionError):
            check(folder / check.__name__)
            passed.append(check.__name__)
    assert passed == [
        "an_item_that_was_never_put_is_unknown",
        "what_readers_have_is_not_written_to",
        "the_same_id_is_the_same_decision",
        "what_is_no_answer_changes_nothing",
        "an_explanation_is_of_the_model_at_that_time",
    ]


@each_kind
def test_a_snapshot_saves_folding_and_may_be_damaged(kind: Kind, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was learned before it is not learned again, nor for an explanation what was learned after the decision."""
    steps: list[int] = []
    taught = History.teach
    monkeypatch.setattr(History, "teach", lambda self, *given: steps.append(given[1].seq) or taught(self, *given))
    loop = kind.make(folder / "loop")
    teach(kind, loop, range(9))
    told = loop.why("d5")
    path = loop.snapshot()
    teach(kind, loop, range(9, 10))
    last, kept = loop.version, bits(loop)
    loop.projection.log.close()  # as if the process had ended
    steps.clear()
    with Loop.open(folder / "loop", learner=kind.own) as loop:
        assert (steps, bits(loop), loop.notes) == ([last], kept, [])
        steps.clear()
        loop.why("d9")
        assert steps == []
        steps.clear()
        assert loop.why("d5") == told
        assert len(set(steps)) == 5
    path.write_bytes(path.read_bytes()[:-5])
    for snapshot in set(folder.glob("loop/snapshot*")) - {path}:
        snapshot.unlink()
    with Loop.open(folder / "loop", learner=kind.own) as loop:
        assert (bits(loop), len(loop.notes)) == (kept, 1)


@each_kind
def test_what_a_report_adds_of_predictions_is_what_its_kind_declares(kind: Kind, folder: Path) -> None:
    """Before anything was predicted, too, and with no field more or less."""
    with kind.make(folder / "loop") as loop:
        declared = loop.projection.interaction.details
        for rounds in (range(0), range(24)):
            teach(kind, loop, rounds)
            found = loop.report().prediction
            assert (found is None) == (declared is None)
            if found is not None and declared is not None:
                details = json.loads(json.dumps(plain(found.details)))
                assert list(details) == list(declared._fields)
                assert msgspec.to_builtins(msgspec.convert(details, schema_of(declared))) == details


def test_a_loop_of_rankings_speaks_of_no_other_kind(folder: Path) -> None:
    """It predicts nothing, its log has no place for predictions, and grades, ratings and choices teach it orders."""
    with small_loop(folder / "loop") as loop:
        d = loop.decide(["i0", "i1"])
        assert [loop.facts.get(name) for name in ("grades", "ratings", "choices")] == [None] * 3
        assert d.predicted is None
        assert "predicted" not in d.plain()
        assert plain(loop.report()).keys().isdisjoint({"prediction", "grades", "choices"})
        assert loop.why(d.id).prediction is None
        for form in ({"grade": {"i0": 1, "i1": 7}}, {"rating": {"i0": 1, "i1": 7}}, {"choice": "first"}):
            assert loop.feedback(d.id, **form).status == "applied"
        assert [each.name for each in loop.evaluate("perceptron").measures] == ["swapped pairs", "list value"]
        answer = loop.feedback(d.id, actions={"i0": "buy"})
        taken = "clicks, better, edit, thumb, action, rating, grade, choice or none"
        assert answer.reason == f"actions: expected {taken}: this loop learns what is better; send action and item"
        refused: list[tuple[Callable[[], Any], str]] = [
            (
                lambda: loop.predict(["i0"]),
                "predict: expected a loop that predicts something, got one of posterior:swap=0",
            ),
            (lambda: loop.standing(), "standing: expected a loop of choices, got a loop of rankings"),
            (lambda: loop.decide(["i0"], repeats=True), "repeats: expected none in a loop of rankings, got True"),
            (lambda: loop.feedback(d.id, edit=["i0", "i1"]), "edit: expected the corrected text"),
        ]
        for call, reason in refused:
            with pytest.raises(ValueError, match=reason):
                call()
        decisions = loop.projection.log.events(kinds=["decision"])
        assert all(b"redicted" not in event.payload.encode() for event in decisions)
