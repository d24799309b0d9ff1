"""The candidate of an experiment in snapshots and in memory: it is the fold of the log, and seldom folded again."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from heedful import Loop
from heedful.core.serialization import read_arrays, write_arrays
from heedful.loop.history import History
from kinds import Kind, each_kind
from loops import bits, bits_from_scratch, bits_of, small_loop


def live(kind: Kind, loop: Loop, rounds: range) -> None:
    for i in rounds:
        shown = loop.decide(person=f"p{i % 6}", id=f"d{i}", **kind.ask(i)).shown
        assert loop.feedback({**kind.answer(i, shown), "decision": f"d{i}", "id": f"e{i}"}).status == "applied"


def side(loop: Loop) -> dict[str, bytes]:
    """The candidate as it ranks now, with each person's state."""
    running = loop.projection.published.running
    return bits_of(running.candidate.model)


def side_from_scratch(loop: Loop) -> dict[str, bytes]:
    """The candidate, folded from the log."""
    projection = loop.projection
    running = projection.published.running
    model, until = running.candidate.interaction.fresh(), running.record.frozen
    for event, decision, feedback in projection.steps([model], 0, until or None):
        projection.teach(model, event, decision, feedback)
    return bits_of(model)


@contextmanager
def taught(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """The feedback that any model learns meanwhile, each time that it does."""
    found: list[int] = []
    teach = History.teach

    def counted(self: History, model: Any, event: Any, *about: Any) -> bool:
        found.append(event.seq)
        return teach(self, model, event, *about)

    with monkeypatch.context() as patched:
        patched.setattr(History, "teach", counted)
        yield found


@each_kind
@pytest.mark.parametrize("frozen", [False, True])
def test_opening_folds_nothing_again(kind: Kind, frozen: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of neither side, nor after a promotion; undoing and forgetting leave the candidate as it would have been."""
    with kind.make(tmp_path / "loop") as loop:
        if not loop.projection.interaction.ranks:
            return
        live(kind, loop, range(8))
        loop.start_experiment(kind.other, share=0.5, frozen=frozen, id="e")
        live(kind, loop, range(8, 24))
        before = side(loop)
        assert before == side_from_scratch(loop)
    with taught(monkeypatch) as lessons, Loop.open(tmp_path / "loop", learner=kind.own) as loop:
        assert lessons == []
        assert side(loop) == before
        live(kind, loop, range(24, 30))
        assert len(lessons) == (6 if frozen else 12)
        assert side(loop) == side_from_scratch(loop)
        loop.undo("e25")
        loop.undo("e5")
        assert side(loop) == side_from_scratch(loop)
        loop.forget("p2")
        assert side(loop) == side_from_scratch(loop)
        assert bits(loop) == bits_from_scratch(loop)
        after = side(loop), bits(loop)
    with taught(monkeypatch) as lessons, Loop.open(tmp_path / "loop", learner=kind.own) as loop:
        assert lessons == []
        assert (side(loop), bits(loop)) == after
        loop.promote(force=True)
        assert bool(lessons) == frozen  # what is frozen is not what serves from here on
        assert bits(loop) == bits_from_scratch(loop)
        after_promotion = bits(loop)
        del lessons[:]
        live(kind, loop, range(30, 33))
        served = bits(loop)
    with taught(monkeypatch) as lessons, Loop.open(tmp_path / "loop", learner=kind.own) as loop:
        assert lessons == []
        assert bits(loop) == served == bits_from_scratch(loop) != after_promotion
        assert loop.verify() == []


def test_a_promotion_is_kept_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that dies after it leaves a snapshot of what serves, so that the next one folds nothing."""
    path = tmp_path / "loop"
    with small_loop(path, "perceptron", control=0.0) as loop:
        loop.start_experiment("second-order", share=1.0, id="e")
        for i in range(30):
            shown = loop.decide(person=f"p{i % 3}", id=f"d{i}", show=4).shown
            loop.feedback(f"d{i}", better=[shown[2]])
        loop.promote(force=True)
        with taught(monkeypatch) as lessons, Loop.open(path) as other:  # as if the first had died
            assert lessons == []
            assert bits(other) == bits(loop)


def test_an_undo_begins_from_what_is_kept_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("heedful.loop.keeper.BETWEEN", 20)
    with small_loop(tmp_path / "loop", "perceptron", control=0.0) as loop:
        loop.start_experiment("second-order", share=1.0, id="e")
        for i in range(70):
            shown = loop.decide(person=f"p{i % 3}", id=f"d{i}", show=4).shown
            loop.feedback(f"d{i}", id=f"e{i}", better=[shown[2]])
        with taught(monkeypatch) as lessons:
            loop.undo("e65")
        assert len(lessons) == 2 * 9  # since the last of them, after e59
        assert side(loop) == side_from_scratch(loop)


def test_a_candidate_in_a_snapshot_of_other_code_is_folded_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "loop"
    with small_loop(path, "perceptron", control=0.0) as loop:
        loop.start_experiment("second-order", share=1.0, id="e")
        for i in range(10):
            shown = loop.decide(person=f"p{i % 3}", id=f"d{i}", show=4).shown
            loop.feedback(f"d{i}", better=[shown[2]])
        before = side(loop)
    [snapshot] = path.glob("snapshot-*")
    arrays, about = read_arrays(snapshot)
    about["others"][0]["learner_version"] = "0.1"
    write_arrays(snapshot, arrays, about)
    with taught(monkeypatch) as lessons, Loop.open(path) as loop:
        assert len(lessons) == 10
        assert loop.notes == []
        assert side(loop) == before
        loop.decide(id="more")  # who writes nothing keeps nothing either
    with taught(monkeypatch) as lessons, Loop.open(path) as loop:
        assert lessons == []
        assert side(loop) == before


def test_an_experiment_in_an_old_loop_is_kept_when_it_is_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "loop"
    with small_loop(path, "perceptron", control=0.0) as loop:
        for i in range(10):
            shown = loop.decide(person=f"p{i % 3}", id=f"d{i}", show=4).shown
            loop.feedback(f"d{i}", better=[shown[2]])
    with Loop.open(path) as loop:
        loop.start_experiment("second-order", share=1.0, id="e")
    with taught(monkeypatch) as lessons, Loop.open(path) as loop:
        assert lessons == []
        assert side(loop) == side_from_scratch(loop)
