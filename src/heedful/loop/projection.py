"""The model of a loop as its log grows: the one place that writes to both.

A group of events goes into the log in one transaction and then into the model, in order, without what was undone.
Readers decide from a state that is published afterwards and never written to again. The file is long because one lock
orders all of it: committing, learning, taking in what other processes wrote, publishing, and keeping snapshots.
"""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Generator, Sequence
from contextlib import closing, suppress
from functools import partial
from typing import Any

from heedful.loop import records, snapshots
from heedful.loop.batch import Batch, NotCompiled
from heedful.loop.fold import Fold
from heedful.loop.following import Following
from heedful.loop.group import GroupCommit
from heedful.loop.history import History
from heedful.loop.keeper import IncompleteModel, Keeper
from heedful.loop.log import Event, Log, Retractions
from heedful.loop.model import LoopModel, View
from heedful.loop.packing import LoggedDecision
from heedful.loop.pending import AGAIN, LOST, PendingEvent
from heedful.loop.publication import PublishedState
from heedful.loop.records import FeedbackRecord
from heedful.loop.replay import replay
from heedful.loop.serving import KINDS
from heedful.loop.silence import Unanswered
from heedful.loop.strangers import why_nothing_learned
from heedful.results.answers import Answer, LostDecision
from heedful.storage import Address, Busy, Owned, Place
from heedful.storage.address import LOG

LONG = 200
"""The most events that are learned in place while readers wait; before more, readers keep a copy of the people's
states."""
FEW = 8
"""The most pieces of feedback of other processes whose decisions are looked up one by one."""


class Projection(History):
    """The log of a loop, and the model that learns from the feedback in it, in order.

    Any number of threads may call it, and other processes may write to the same log: what they wrote is taken in before
    every commit."""

    def __init__(self, path: Place, named: str | Sequence[str] | None, read_only: bool = False) -> None:
        """Open the loop at `path`, a folder or an address in a database: its model is the newest snapshot that can be
        used, and learns the feedback after that. If it is `read_only`, nothing is ever written.

        `named` and the errors are those of a `History`; also raise FileNotFoundError if there is no loop, and
        ValueError if the log is damaged."""
        log = Log(path if isinstance(path, Address) else path / LOG, read_only=read_only)
        try:
            super().__init__(path, log, named)
            self.turn = threading.RLock()
            """the lock of the thread that writes: a commit, an act of forgetting, a model made again from the log"""
            self._open()
        except BaseException:
            log.close()
            raise

    def _open(self) -> None:
        # Weakly: a loop that was closed and dropped frees its memory then, not when the garbage collector runs next.
        weak = weakref.proxy(self)
        self._group: GroupCommit[PendingEvent, Answer] = GroupCommit(lambda events: weak._commit(events))
        self.keeper = Keeper(self.log)
        """the states of the model that are kept"""
        self._following = Following(self.keeper.start_following)
        self._fold = Fold(self)
        self._stale = False  # the model is not the fold: something was undone, a lesson failed or was interrupted
        self._wrote = False  # who only reads keeps no snapshot either
        self._retractions = Retractions()
        self._unanswered: Unanswered | None = None  # read from the log with the next commit that needs it
        self._head = self._version = 0
        if self.log.unfinished() and not self.log.store.read_only:
            with suppress(Owned):  # the owner of the loop finishes that
                self.forget_derived()
                self.log.finish_erasing()
        self.rebuild()

    def close(self) -> None:
        """Write a snapshot, if anything was written to the log and learned since the last one, and close the log."""
        with self.turn:
            try:
                if self.keeper.since_snapshot > 0 and self._wrote:
                    self.keep()
            finally:
                self.log.close()

    # ------------------------------------------------------------------------ writing

    def submit(self, events: list[PendingEvent]) -> Sequence[Answer]:
        """Write `events` together with those of other threads, learn from them, and return the answers.

        There is one answer for each event, in order. Returns once they are learned, and on the disk where
        `waits_for_disk` says so. Raise TimeoutError if another process keeps writing."""
        return self._group.submit(events) if events else ()

    def submit_in_turn(self, events: list[PendingEvent]) -> Sequence[Answer]:
        """Do what `submit` does, for a thread that holds the lock `turn`."""
        return self._commit(events)  # with `submit` it would wait for a thread that may be waiting for `turn`

    def attempt(self, events: Sequence[PendingEvent], durable: bool = True) -> list[Answer] | None:
        """Write `events` and learn from them in this thread without waiting for any other; return the answers.

        Return None, with nothing done, if another thread or process is writing, or has written something that was not
        taken in. For a caller that serves many requests in one thread, which calls `keep` itself when a snapshot is
        `due`. If `durable` is False, the events are not on the disk when it returns: the caller waits for `log.sync`
        before it sends answers to events for which `waits_for_disk` is true.
        """
        if not self.turn.acquire(blocking=False):
            return None
        try:
            return self._commit(events, patient=False, durable=durable)
        except Busy:
            return None
        finally:
            self.turn.release()

    def waits_for_disk(self, events: Sequence[PendingEvent]) -> bool:
        """Return whether any of `events` has to be on the disk before it is answered.

        All have to, except for decisions made by this loop if it has the setting `durable="feedback"`."""
        return self.settings.durable == "decision" or not all(event.again for event in events)

    def _commit(self, pending: Sequence[PendingEvent], patient: bool = True, durable: bool = True) -> list[Answer]:
        """Write a group of events, then learn from them, and return their answers: the only way into the log, except
        for forgetting.

        When it returns they are on the disk, unless `durable` is False or none of them `waits_for_disk`. Raise Busy,
        with nothing changed, if it would have to wait for another writer and `patient` is False.
        """
        with self.turn:
            fresh: list[int] = []
            group: dict[tuple[str, str], Event] = {}
            repeated = list[PendingEvent]()
            with self.log.writing(patient, durable=durable and self.waits_for_disk(pending)):
                self._wrote = True
                version = self._version
                unread = self._unanswered is None and self.settings.none_after is not None
                if not patient and (self._stale or unread or self.log.head() != self._head):
                    raise Busy("there is something to catch up with")
                head = self._catch_up()
                silent, unanswered = self._look_for_silence(pending)
                pending = [*silent, *pending]
                answers: list[Any] = [None] * len(pending)
                there = self._there(pending)
                for i, each in enumerate(pending):
                    event = each.event
                    key = event.kind, event.id
                    before = group.get(key) or there.get(key)
                    if before is not None:
                        answers[i] = self.answer_repeat(event, before)
                        repeated.append(each)
                    elif refusal := self.refusal(each):
                        answers[i] = self.reject(event.id, refusal)
                    elif each.again and self._version != version:
                        answers[i] = self.reject(event.id, AGAIN)
                    else:
                        head += 1
                        group[key] = Event(head, *event[1:])
                        fresh.append(i)
                self.log.append(group.values())
            if durable and not group and self.settings.durable == "feedback" and self.waits_for_disk(repeated):
                # Nothing was written, so nothing was waited for; what is repeated may be of a process that still waits.
                self.log.sync()
            self._stale = (
                True  # until all of it is learned: whatever interrupts, the next one folds the whole log again
            )
            self._learn([(i, event, pending[i]) for i, event in zip(fresh, group.values())], answers)
            if self._head > head:  # folded again, the model has what other processes appended meanwhile
                self.log.look_for_forgotten()
                self.keeper.forget_memory(self)
            elif unanswered is not None:
                for event in group.values():
                    unanswered.take(event.seq, event.kind, event.target, event.time)
                self._unanswered = unanswered
            self._head = max(head, self._head)
            self._stale = False
            self._publish()
            if self.keeper.mark_due(self, len(self._fold.model.people)):
                self.keeper.mark(self, self._fold, self._head, self._following.keep())
            if patient and self.due:
                self.keep()
            return answers[len(silent) :]

    def _look_for_silence(self, pending: Sequence[PendingEvent]) -> tuple[list[PendingEvent], Unanswered | None]:
        """Return (answers to lists on which none came in time, to be written with `pending`; the lists that are not
        answered then, to be kept once all of it is written). Within a transaction that has caught up."""
        after, unanswered = self.settings.none_after, self._unanswered
        if after is None:
            return [], None
        self._unanswered = None  # whatever interrupts: it is read again
        unanswered = Unanswered(self.log, after) if unanswered is None else unanswered
        return unanswered.answers(self, pending), unanswered

    def _there(self, pending: Sequence[PendingEvent]) -> dict[tuple[str, str], Event]:
        """Return the events in the log that have the same kind and id as one of `pending`, by (kind, id)."""
        ids: dict[str, list[str]] = {}
        for each in pending:
            ids.setdefault(each.event.kind, []).append(each.event.id)
        return {(kind, id): event for kind in ids for id, event in self.log.known(kind, ids[kind]).items()}

    # ------------------------------------------------------------------------ what is not written

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

    # ------------------------------------------------------------------------ learning

    def _learn(self, fresh: Sequence[tuple[int, Event, PendingEvent]], answers: list[Any]) -> None:
        """Learn from events that were just committed, in order, and fill in `answers`.

        Each entry of `fresh` is (index in `answers`, the event with its sequence number, what was submitted)."""
        before = self._retractions
        rebuilt = any(
            event.kind in ("rollback", "promote") or (event.kind == "undo" and event.target not in before)
            for _, event, _ in fresh
        )
        if rebuilt:
            self.rebuild()
        elif any(event.kind in KINDS for _, event, _ in fresh):
            self._look_who_serves(before)
        self._apart(len(fresh))
        taught = None if rebuilt else self._teach_together(fresh)
        rebuilt = rebuilt or taught is not None
        for i, event, (_, decision, feedback, _) in fresh:
            late = learned = False
            if event.kind == "feedback" and decision is not None and feedback is not None:
                late = event.time - decision.since > 1e6 * self.settings.late_after
                if rebuilt:  # the fold has it already
                    known = None if taught is None else taught.get(event.seq)
                    learned = self._says(event, decision, feedback) if known is None else known
                    learned = learned and event.seq not in self._fold.failed
                elif not (learned := self._teach(event, decision, feedback)) and self._fold.broken:
                    self.rebuild()  # the lesson may have stopped half-way
                    rebuilt = True
                self._version = max(event.seq, self._version)
            elif event.kind == "undo":
                learned = event.target not in before and self._retractions.undone.get(event.target or 0) == event.seq
                self._version = max(event.seq, self._version)
            elif event.kind in ("rollback", "promote"):
                learned = True
                self._version = max(event.seq, self._version)
            elif event.kind == "item":
                self._put(event, rebuilt)
            elif event.kind == "decision":
                self.decisions.remember(event)
            version = event.version if event.kind == "decision" else self._version
            reason = self._fold.failed.get(event.seq) or (None if feedback is None else why_nothing_learned(feedback))
            if reason is None and not learned and decision is not None and feedback is not None:
                reason = self.interaction.why_empty(self._fold.model, decision.record, feedback)
            answers[i] = Answer("applied", event.id, event.seq, version, late=late, learned=learned, reason=reason)

    def _teach(self, event: Event, decision: LoggedDecision, feedback: FeedbackRecord) -> bool:
        """Let the model learn from one piece of feedback; return whether there was anything to learn in it."""
        learned = self._fold.learn(self, event, decision, feedback)
        self.keeper.count(learned)
        return learned

    def _teach_together(self, fresh: Sequence[tuple[int, Event, PendingEvent]]) -> dict[int, bool] | None:
        """Let the model learn from all of `fresh` in a batch, if it is much feedback; return, by sequence number,
        whether there was anything to learn in a piece. Return None, with nothing learned, if it is not."""
        given = [event.kind for _, event, _ in fresh]
        batch = None if "item" in given else Batch.begin(self, self._fold, given.count("feedback"))
        if batch is None:
            return None
        before, taught = self._fold.learned, dict[int, bool]()
        pieces = [(event, each.decision, each.feedback) for _, event, each in fresh]
        try:
            taught = batch.learn_all(
                self, [(event, of, said) for event, of, said in pieces if of is not None and said is not None]
            )
            batch.check()
        except NotCompiled as error:
            self.note(str(error))
            self._fold.broken = True
        if self._fold.broken:
            self.rebuild()
        else:
            self.keeper.count(self._fold.learned - before)
        return taught

    def _says(self, event: Event, decision: LoggedDecision, feedback: FeedbackRecord) -> bool:
        """Return whether the loop's model would learn anything from a piece of feedback; the model is not changed.

        `event` is the feedback's event, `feedback` its decoded record, `decision` the decision that it answers."""
        step, model = self.step(event, decision, feedback), self._fold.model
        lesson = model.lesson(step.context, feedback, step.extra)
        return lesson is not None and model.teaches(lesson)

    def _put(self, event: Event, folded: bool = False) -> None:
        """Take in that an item was put on offer or withdrawn: in the catalogue and, if the model depends on items, in
        the model.

        `event` is that of the item; `folded` says that the model has it already."""
        self.catalogue.put(event)
        if self.interaction.by_number:
            self._version = max(event.seq, self._version)
            if not folded:
                self.offer(self._fold.model, event)

    def _apart(self, events: int) -> None:
        """Copy the model's dict of people before `events` events are learned, if these are many, so that readers keep
        the published one meanwhile."""
        if events > LONG:
            self._fold.model.people = dict(self._fold.model.people)

    # ------------------------------------------------------------------------ what other processes wrote

    def catch_up(self) -> None:
        """Learn from what other processes have written since the last commit, and publish the model. Waits for other
        writers where reading needs a lock."""
        with self.turn:
            if not self.log.store.locks_readers:
                self._catch_up(self.log.last()[0])
                return
            with self.log.writing():
                self._catch_up()

    def is_behind(self, last: int | None = None) -> bool:
        """Return whether another process has written events that this process has not taken in yet.

        `last` is the sequence number of the last event of the log, if the caller knows it; None to look it up."""
        return (self.log.last()[0] if last is None else last) != self._head

    def look(self) -> None:
        """Learn from what other processes wrote to the log since the last commit; if nothing, no transaction is
        begun.
        """
        if self.is_behind():
            self.catch_up()

    @property
    def head(self) -> int:
        """the sequence number of the last event that was taken in"""
        return self._head

    def _catch_up(self, head: int | None = None) -> int:
        """Learn from what other processes wrote and return the log's last sequence number.

        The caller has begun a transaction; or else `head` is how far to learn, while another process goes on writing.
        """
        if self._stale:  # an interruption, a failure to read: what is in memory may lack something
            self.log.look_for_forgotten()
            self.keeper.forget_memory(self)
            self.rebuild()
        head = self.log.head() if head is None else max(head, self._head)
        if head != self._head:
            self._stale = True
            others = [event for event in self.log.events(self._head) if event.seq <= head]
            given = sum(event.kind == "feedback" for event in others)
            batched = Batch.begin(self, self._fold, given) is not None
            if batched or any(event.kind in ("undo", "forget", "rollback", *KINDS) for event in others):
                self.log.look_for_forgotten()
                self.keeper.forget_memory(self)
                self.rebuild()
            else:
                self._apart(len(others))
                if not self._take_in_all(others):
                    self.rebuild()  # it may have stopped half-way
                    self.catalogue.look_again()  # what came after it is in the model, and not yet on the catalogue
                self._head = head
                self._stale = False
            self._publish()
        return head

    def _take_in_all(self, events: Sequence[Event]) -> bool:
        """Let the model learn `events` that other processes wrote, the last of the log, until the learner fails on one;
        return whether it did not."""
        with closing(self._with_decisions(events)) as pairs:
            for event, decided in pairs:
                self._take_in(event, decided)
                if self._fold.broken:
                    return False
        return True

    def _with_decisions(self, events: Sequence[Event]) -> Generator[tuple[Event, Event | None]]:
        """Yield (event, the decision that it answers) of each of `events`, the last of the log; None where it answers
        none.

        The decisions of many are read together: a query of a database takes as long as a message there and back."""
        if sum(event.kind == "feedback" for event in events) <= FEW:
            for event in events:
                yield event, self.log.at(event.target or 0) if event.kind == "feedback" else None
            return
        with closing(self.log.lessons(events[0].seq - 1)) as lessons:
            answer, decided = next(lessons, (None, None))
            for event in events:
                while answer is not None and answer.seq < event.seq:
                    answer, decided = next(lessons, (None, None))
                yield event, decided if answer is not None and answer.seq == event.seq else None

    def _take_in(self, event: Event, decided: Event | None) -> None:
        """Let the model learn one `event` that another process wrote: feedback to the decision `decided`, or a change
        of an item."""
        if self._unanswered is not None:
            self._unanswered.take(event.seq, event.kind, event.target, event.time)
        if event.kind == "item":
            self._put(event)
        elif event.kind == "feedback":
            if decided is not None:
                self._teach(event, self.decision(decided), records.decode_feedback(event.payload))
            self._version = event.seq

    # ------------------------------------------------------------------------ made again from the log

    def rebuild(self) -> None:
        """Make the model again from the log, without what was undone, and publish it."""
        self._stale, self._unanswered = True, None
        retractions, served = self.log.retractions(), self.learner
        self._look_who_serves(retractions)
        self._following.end()
        self.keeper.drop_outdated(retractions)
        head, version = self.log.last(self.interaction.by_number)
        start = partial(self.keeper.start, self, head=head)
        fold = replay(self, head, self._fold.failed, start, kept=self.keeper.kept)
        self.keeper.count(fold.learned)
        if self.learner is not served:
            self.keeper.ask_for_snapshot()  # of what serves now
        self._retractions, self._head, self._version, self._fold = retractions, head, version, fold
        self._stale = False
        self._publish()

    def _look_who_serves(self, retractions: Retractions) -> None:
        """Read from the log which learner serves and which is tried in an experiment, and drop what was of another one
        than serves now."""
        if self.look_who_serves(retractions):
            self.keeper.change_learner(self, self._following.keep())
            self._following.end()
            self._fold.failed = {}

    def verify(self) -> list[str]:
        """Return what `Loop.verify` says: the model is made again without batches."""
        with self.turn:
            self.catch_up()
            problems = self.log.problems()
            again = replay(self, self._head, self._fold.failed, batched=False).model
            if not snapshots.same(self._fold.model, again, rounded=self.keeper.elsewhere):
                problems.append("the model is not the fold of the log, bit for bit")
            return problems

    # ------------------------------------------------------------------------ publishing

    def _publish(self) -> None:
        fold = self._fold
        shared = fold.model.publish()
        running, begun = self._following.follow(self, self._head)
        self.keeper.since_snapshot += begun  # or each start would fold them again
        self.published = PublishedState(
            self._version, shared, fold.model.people, self.interaction, fold.model, self.named, running, fold.moves,
            fold.failed,
        )  # fmt: skip

    def reading(self, person: str | None) -> tuple[PublishedState, View[Any]]:
        """Return (published state, the same for `person`, of a version that fits it).

        It waits for a moment while another thread is learning from feedback of that person."""
        while True:
            state, view = super().reading(person)
            if view.person is None or view.person.since <= state.version:
                return state, view
            if self.turn.acquire(blocking=False):
                try:
                    if self._stale:  # the thread that was learning this was interrupted
                        self.catch_up()
                finally:
                    self.turn.release()
            else:
                time.sleep(0.0)  # a newer state is published in a moment

    def reading_of(self, x: Any, person: str | None) -> tuple[PublishedState, View[Any]]:
        """Return what `History.reading_of` does. If the state does not know some of the candidates `x` yet, what other
        processes wrote to the log is taken in first."""
        state, view = super().reading_of(x, person)
        if state.model.lacks(state.shared, x):
            self.catch_up()  # waits for the thread that takes it in
            state, view = super().reading_of(x, person)
        return state, view

    # ------------------------------------------------------------------------ keeping

    @property
    def due(self) -> bool:
        """whether a snapshot should be written"""
        return self.keeper.due(self, self._fold.model)

    def before(self, model: LoopModel, version: int) -> int:
        with self.turn:  # what is kept comes and goes
            return self.keeper.load_mark(model, version) or super().before(model, version)

    def snapshot(self) -> Place:
        """Do what `Loop.snapshot` says. No other process can write meanwhile, so a person whom another process is
        forgetting is not in the snapshot."""
        with self.turn:
            self.catch_up()
            drawn, of = self._draw(), self._head
            with self.log.writing():
                if self._catch_up() != of:  # another process has written meanwhile
                    drawn = self._draw()
                path = snapshots.keep(self.keeper.shelf, self._head, drawn)
        self.keeper.since_snapshot = 0
        return path

    def _draw(self) -> Any:
        return self.keeper.draw(self, self._fold, self._head, self._retractions, self._following.keep())

    def keep(self) -> None:
        """Write a snapshot of the model; if that fails, add a warning to `notes` and go on, since the log has
        everything.
        """
        if not self.log.store.owns:
            return  # the owner of the loop does
        try:
            self.snapshot()
        except (OSError, IncompleteModel) as error:
            self.note(f"no snapshot was kept ({error}): the next start folds more of the log")
            if isinstance(error, IncompleteModel):
                self.keeper.since_snapshot = 0  # it is not tried at every event from now on

    def forget_derived(self, person: str | None = None) -> None:
        """Remove the snapshots and caches, which may hold events that were erased from the log; if these were all of
        one `person`, what is known to be of others may stay."""
        self.keeper.forget(self, person)
