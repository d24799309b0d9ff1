"""What is to be written to a loop's log, and who writes it.

Two write: `heedful.loop.projection` to the log, and the dry run of an import (`heedful.io.dry_run`) to memory."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import NamedTuple

from heedful.loop.history import History
from heedful.loop.log import Event, Log
from heedful.loop.packing import LoggedDecision
from heedful.loop.records import FeedbackRecord
from heedful.results.answers import Answer, LostDecision
from heedful.storage import Place

AGAIN = "another process has changed the model meanwhile"
"""The reason with which a decision is rejected that was made by a model that has changed meanwhile."""


LOST = (
    "decision {id} is not in the log: this loop answers decisions before they are on the disk, so it was lost in a "
    "crash, or there never was one of this id; nothing was learned: record what was shown under this id, then send the "
    "feedback again, or decide again"
)
"""The reason that a `LostDecision` gives. The log cannot tell a decision that was lost in a crash from one never
made."""


class PendingEvent(NamedTuple):
    """An event to be submitted to the log, with what the model needs to learn from it."""

    event: Event
    """the event, with sequence number 0 until it is appended"""
    decision: LoggedDecision | None = None
    """the decision that a feedback answers, or that this event is; None for other events"""
    feedback: FeedbackRecord | None = None
    """the record of a feedback; None for other events"""
    again: bool = False
    """whether it is a decision made by this loop: it is rejected with the reason `AGAIN`, to be made again, if another
    process has changed the model meanwhile, and in a loop with `durable="feedback"` it need not wait for the disk"""


class Writer(History, ABC):
    """A history to which events are written, one group after another.

    Any number of threads may call it."""

    def __init__(self, path: Place, log: Log, named: str | Sequence[str] | None) -> None:
        super().__init__(path, log, named)
        self.turn = threading.RLock()
        """the lock of the thread that writes: a commit, an act of forgetting, a model made again from the log"""

    @abstractmethod
    def submit(self, events: list[PendingEvent]) -> Sequence[Answer]:
        """Write `events` together with those of other threads, learn from them, and return the answers.

        There is one answer for each event, in order. Returns once they are learned, and on the disk where
        `waits_for_disk` says so. Raise TimeoutError if another process keeps writing."""

    @abstractmethod
    def submit_in_turn(self, events: list[PendingEvent]) -> Sequence[Answer]:
        """Do what `submit` does, for a thread that holds the lock `turn`."""

    @abstractmethod
    def catch_up(self) -> None:
        """Learn from what other processes have written since the last commit, and publish the model. Waits for other
        writers where reading needs a lock."""

    @abstractmethod
    def is_behind(self, last: int | None = None) -> bool:
        """Return whether another process has written events that this process has not taken in yet.

        `last` is the sequence number of the last event of the log, if the caller knows it; None to look it up."""

    @property
    def head(self) -> int:
        """the sequence number of the last event that was taken in"""
        return self.log.last()[0]

    @abstractmethod
    def close(self) -> None:
        """Write a snapshot, if anything was written to the log and learned since the last one, and close the log."""

    def attempt(self, events: Sequence[PendingEvent], durable: bool = True) -> Sequence[Answer] | None:
        """Write `events` and learn from them in this thread without waiting for any other; return the answers.

        Return None, with nothing done, if another thread or process is writing, or has written something that was not
        taken in. For a caller that serves many requests in one thread, which calls `keep` itself when a snapshot is
        `due`. If `durable` is False, the events are not on the disk when it returns: the caller waits for `log.sync`
        before it sends answers to events for which `waits_for_disk` is true.
        """
        return self.submit(list(events))

    def waits_for_disk(self, events: Sequence[PendingEvent]) -> bool:
        """Return whether any of `events` has to be on the disk before it is answered.

        All have to, except for decisions made by this loop if it has the setting `durable="feedback"`."""
        return self.settings.durable == "decision" or not all(event.again for event in events)

    @property
    def due(self) -> bool:
        """whether a snapshot should be written"""
        return False

    def keep(self) -> None:
        """Write a snapshot of the model; if that fails, add a warning to `notes` and go on, since the log has
        everything.
        """

    def snapshot(self) -> Place:
        """Write a snapshot of the model, and return where it is."""
        raise PermissionError(f"{self.path}: nothing is written here")

    def forget_derived(self, person: str | None = None) -> None:
        """Remove the snapshots and caches, which may hold events that were erased from the log; if these were all of
        one `person`, what is known to be of others may stay."""

    def rebuild(self) -> None:
        """Make the model again from the log, without what was undone, and publish it."""

    def verify(self) -> list[str]:
        """Return what is wrong with the log and the model, a sentence each; [] if nothing is."""
        return self.log.problems()

    def look(self) -> None:
        """Learn from what other processes wrote to the log since the last commit; if nothing, no transaction is
        begun.
        """
        if self.is_behind():
            self.catch_up()

    def reject(self, event: str, reason: str) -> Answer:
        """Return the answer that rejects the event with the id `event`, for `reason`; nothing is written."""
        return Answer("rejected", event, None, self.published.version, reason=reason)

    def reject_unknown(self, event: str, kind: str, id: str) -> Answer:
        """Return the answer that rejects the event with the id `event`, because what it refers to is not in the log.

        It refers to an event of `kind` "decision" or "feedback" with this `id`. Before that, events that other
        processes wrote are read. The reason says whether it was forgotten, lost or never there."""
        self.catch_up()
        if self.log.is_forgotten(kind, id):
            return self.reject(event, f"{kind} {id} was forgotten")
        if kind == "decision" and self.settings.durable == "feedback":
            return LostDecision(*self.reject(event, LOST.format(id=id)))
        return self.reject(event, f"{kind} {id} is not in the log")

    def refusal(self, pending: PendingEvent) -> str | None:
        """Return why an event cannot be appended: it, or what it is about, was forgotten, or it is an experiment while
        another one runs; None if it can be."""
        event = pending.event
        if self.log.is_forgotten(event.kind, event.id):
            return f"{event.kind} {event.id} was forgotten"
        if event.target is not None and self.log.is_gone(event.target):
            return "what it is about was forgotten"
        after = pending.decision.record.after if event.kind == "decision" and pending.decision is not None else ""
        if after and self.log.is_forgotten("decision", after):
            return f"the page before, {after}, was forgotten"
        running = self.experiment if event.kind == "experiment" else None
        if running is not None:  # of another process, a moment ago
            return f"experiment {running[0].id} is running: stop it first"
        return None

    def answer_repeat(self, event: Event, before: Event) -> Answer:
        """Return the answer to an `event` whose kind and id are those of `before`, which is in the log.

        It is a duplicate, or rejected if its content differs."""
        if event.kind == "decision":
            return Answer("duplicate", event.id, before.seq, before.version)
        mine, theirs = ((each.subject, each.target, each.payload, each.arrays) for each in (event, before))
        if mine == theirs:
            return Answer("duplicate", event.id, before.seq, self.published.version)
        return self.reject(event.id, f"{event.kind} {event.id} is in the log already, with other content")
