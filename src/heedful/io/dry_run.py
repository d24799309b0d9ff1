"""A dry run of an import: what a loop would answer to events, without writing any of them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from heedful.core.retractions import find_retractions
from heedful.loop import Loop
from heedful.loop.log import Event, Log, Retractions, rollback_target
from heedful.loop.projection import Projection
from heedful.loop.publication import PublishedState
from heedful.loop.serving import ExperimentRecord, orders, read_experiment
from heedful.loop.writer import PendingEvent, Writer
from heedful.results.answers import Answer
from heedful.storage import Address


def rehearse(path: str | Path | Address, *, learner: str | Sequence[str] | None = None) -> Loop:
    """Open the loop in the folder `path` for a dry run of `import_lines`: it answers as the loop would, and writes
    nothing.

    Events that it would have written are held in memory, so later lines find them; nothing is learned from them. A
    learner that they promote serves, as it is before it learns.
    `learner` is needed only if a learner of the loop is your own, a class in a Python file: its name "FILE.py:Class",
    or several, as in `Loop.open`. The errors are those of `Loop.open`."""
    return Loop(path, learner, read_only=True, rehearsal=lambda real: _Rehearsal(real, learner))


class _Rehearsal(Writer):
    """The writer of a dry run: events are kept in memory instead of being appended to the log."""

    def __init__(self, real: Projection, named: str | Sequence[str] | None) -> None:
        """Begin with the log and the model of `real`; `named` are those of the user's own learners."""
        self._more = _LogWithMore(real.log)
        super().__init__(real.path, self._more, named)
        self.published, self.notes = real.published, real.notes

    @property
    def experiment(self) -> tuple[Event, ExperimentRecord] | None:
        event = orders(self.log, self.log.retractions()).running
        return None if event is None else (event, read_experiment(event.payload))

    def submit(self, events: list[PendingEvent]) -> Sequence[Answer]:
        return [self._answer(pending) for pending in events]

    def submit_in_turn(self, events: list[PendingEvent]) -> Sequence[Answer]:
        return self.submit(events)

    def _answer(self, pending: PendingEvent) -> Answer:
        event = pending.event
        before = self._more.find(event.kind, event.id)
        if before is not None:
            return self.answer_repeat(event, before)
        if refusal := self.refusal(pending):
            return self.reject(event.id, refusal)
        event = self._more.add(event)
        if event.kind == "item":
            self.catalogue.put(event)
        elif event.kind in ("promote", "rollback") and self.look_who_serves(self.log.retractions()):
            model = self.fresh()  # of the learner that serves now, which says what it learns from
            self.published = PublishedState(
                self.published.version, model.publish(), model.people, self.interaction, model, self.named
            )
        return Answer("applied", event.id, event.seq, self.published.version)

    def catch_up(self) -> None:
        """Do nothing: the model learns nothing in a dry run."""

    def is_behind(self, last: int | None = None) -> bool:
        return False

    def close(self) -> None:
        self.log.close()


class _LogWithMore(Log):
    """A log that also finds events which are held in memory only, as if they had been appended."""

    def __init__(self, real: Log) -> None:
        super(Log, self).__init__(real.store)
        self.look_for_forgotten()
        self.added: dict[tuple[str, str], Event] = {}
        self._by_seq: dict[int, Event] = {}
        self._newest: dict[tuple[str, str], int] = {}
        self._next = real.last()[0] + 1

    def add(self, event: Event) -> Event:
        """Hold `event` in memory and return it with the sequence number that it would have had in the log."""
        event = event._replace(seq=self._next)
        self._next += 1
        self.added[event.kind, event.id] = self._by_seq[event.seq] = event
        if event.subject is not None:
            self._newest[event.kind, event.subject] = event.seq
        return event

    def find(self, kind: str, id: str) -> Event | None:
        return self.added.get((kind, id)) or super().find(kind, id)

    def at(self, seq: int) -> Event | None:
        return self._by_seq.get(seq) or super().at(seq)

    def many(self, seqs: Sequence[int]) -> list[Event]:
        unwritten = [self._by_seq[seq] for seq in seqs if seq in self._by_seq]
        return [*super().many([seq for seq in seqs if seq not in self._by_seq]), *unwritten]

    def places(self, *kinds: str, after: int = 0, up_to: int = 2**62) -> list[int]:
        unwritten = [seq for seq, event in self._by_seq.items() if event.kind in kinds and after < seq <= up_to]
        return [*super().places(*kinds, after=after, up_to=up_to), *unwritten]

    def retractions(self, up_to: int | None = None) -> Retractions:
        events = self.many(self.places("undo", "rollback", up_to=2**62 if up_to is None else up_to))
        return find_retractions(
            [(each.seq, each.target) for each in events if each.kind == "undo" and each.target is not None],
            [(each.seq, rollback_target(each.payload)) for each in events if each.kind == "rollback"],
        )

    def newest(self, kind: str, subject: str) -> int:
        return self._newest.get((kind, subject)) or super().newest(kind, subject)
