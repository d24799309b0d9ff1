"""A log together with the model that is its fold: the writing side of a loop.

A group of events goes into the log in one transaction and then into the model, in order, without what was undone.
Readers decide from a state that is published afterwards and never written to again. The file is long because one lock
orders all of it: committing, folding, taking in what other processes wrote, and keeping snapshots.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from heapq import merge
from pathlib import Path
from sys import getsizeof
from typing import Any, NamedTuple

import msgspec
import numpy as np

from heedful.core.fold import copy_arrays
from heedful.jit.kernel import Floats
from heedful.loop import records, snapshots
from heedful.loop.catalogue import Catalogue
from heedful.loop.group import GroupCommit
from heedful.loop.interactions.protocol import Interaction, LoopModel, Step
from heedful.loop.interactions.registry import interaction_of, learner_version
from heedful.loop.log import Event, Log, Retractions
from heedful.loop.model import Person
from heedful.loop.movement import Moves
from heedful.loop.packing import LoggedDecision, unpack
from heedful.loop.records import Answer, FeedbackRecord
from heedful.loop.request import Requests
from heedful.loop.settings import Manifest, built_learner
from heedful.loop.strangers import why_nothing_learned
from heedful.loop.versions import declared_version
from heedful.storage import Busy, Closed, Damaged

MARKS, BETWEEN = 4, 250
"""How many states are kept in memory for undoing, and the fewest lessons between two of them."""
LONG = 200
"""The most lessons that are learned while readers wait; before more, they get a state of their own."""
AGAIN = "another process has changed the model meanwhile"
CACHED, HELD = 50_000, 128_000_000
"""The most decisions kept in memory, and the most bytes they may take. Older ones are read from the log when their
feedback comes."""
ENTRY = 400
"""Bytes that a cached decision takes in addition to its fields."""


class CachedDecision(msgspec.Struct, frozen=True, eq=False, gc=False):
    """A decision in memory, packed as in the log.

    There are many, and the garbage collector would have to look through anything with references.
    """

    seq: int
    time: int
    person: str | None
    version: int
    payload: str
    arrays: bytes | None
    size: int


class PendingEvent(NamedTuple):
    """An event on its way into the log, with what the fold needs."""

    event: Event
    decision: LoggedDecision | None = None
    """the decision that a feedback answers, or that this event is"""
    feedback: FeedbackRecord | None = None
    again: bool = False
    """whether it is a decision by this loop: it is made again if another process has changed the model meanwhile, and
    in a loop with `durable="feedback"` it need not wait for the disk"""


class Mark(NamedTuple):
    """The model after the event at `position`, from which to fold on when a recent lesson is undone."""

    position: int
    shared: Any
    people: dict[str, Person]
    moves: Moves


class PublishedState(NamedTuple):
    """The state that readers decide from. Nobody writes to it."""

    version: int
    shared: Any
    people: dict[str, Person]


class IncompleteModel(ValueError):
    """The model lacks a lesson, because the learner failed on it."""


class Projection:
    """A log with the model that is its fold."""

    def __init__(self, path: Path, named: str | None) -> None:
        """Open the loop in the folder `path`; `named` names a learner of the user's own again."""
        self.path = path
        self.notes: list[str] = []
        """warnings for the person who runs the loop, each once"""
        self.log = Log(path / snapshots.LOG)
        try:
            self._open(named)
        except BaseException:
            self.log.close()
            raise

    def _open(self, named: str | None) -> None:
        founded = self.log.at(1)
        if founded is None or founded.kind != "loop":
            raise ValueError(f"{self.path}: expected a loop, got a log that does not begin with one")
        self.manifest = Manifest.from_json(founded.payload)
        self.settings = self.manifest.settings
        self.learner = built_learner(self.manifest, named)
        self.interaction: Interaction[Any] = interaction_of(self.manifest, self.learner)
        """the kind of feedback of this loop"""
        self._every: int = min(self.settings.snapshot_every, self.interaction.snapshot_most)
        self._predicts = self.interaction.describe().prediction is not None
        self.learner_version = learner_version(self.learner)
        if self.learner_version != declared_version(self.manifest.learner_version):
            told = "the learner's code has changed since the loop was made: the model is the log folded by today's code"
            self.note(told)
        self.named = f"{self.manifest.learner}@{self.learner_version}"
        """the learner with its version, as decisions name it"""
        self.catalogue = Catalogue(self.log, self.manifest.encoding.size, self.interaction.splits_items)
        self.requests = Requests(self.manifest, self.catalogue, self.interaction)
        self.turn = threading.RLock()
        """the lock of whoever writes: a commit, an act of forgetting, a new fold"""
        self._group: GroupCommit[PendingEvent, Answer] = GroupCommit(self._commit)
        # An ordinary dict forgets its first entries slowly: each time it looks past all that were forgotten before.
        self._decisions = OrderedDict[str, CachedDecision]()
        self._held = 0
        self._remembering = threading.Lock()
        self._model = self.fresh()
        self._stale = False  # the model is not the fold: something was undone, a lesson failed or was interrupted
        self._since_snapshot = self._since_mark = 0
        self.moves = Moves()
        """how much feedback the model is made of, and how much of it changed predictions"""
        self._marks: list[Mark] = []
        self._retractions = Retractions()
        self._head = self._version = 0
        self.failed: dict[int, str] = {}
        """by sequence number, lessons that the learner failed on, which the fold leaves out, and its error"""
        if self.log.unfinished():
            self.forget_derived()
            self.log.finish_erasing()
        self.rebuild()

    def note(self, told: str) -> None:
        """Add a warning to `notes`, for the person who runs the loop; one that is there already is not repeated."""
        if told not in self.notes:
            self.notes.append(told)

    def close(self) -> None:
        """Write a snapshot, if there were lessons since the last one, and close the log."""
        with self.turn:
            try:
                if self._since_snapshot > 0:
                    self.keep()
            finally:
                self.log.close()

    # ------------------------------------------------------------------------ reading

    @property
    def published(self) -> PublishedState:
        """the state to decide from"""
        return self._published

    def reading(self, person: str | None) -> tuple[PublishedState, Person | None]:
        """Return the published state and the person's own state that belongs to it."""
        while True:
            state = self._published
            own = state.people.get(person) if person is not None else None
            if own is None or own.since <= state.version:
                return state, own
            if self.turn.acquire(blocking=False):
                try:
                    if self._stale:  # whoever was learning this was interrupted
                        self.catch_up()
                finally:
                    self.turn.release()
            else:
                time.sleep(0.0)  # a newer state is published in a moment

    def reading_of(self, x: Any, person: str | None) -> tuple[PublishedState, Person | None]:
        """Return the published state and the person's own state, for a decision among the candidates `x`.

        If the state lacks some of the candidates, what other processes wrote is taken in first.
        """
        person = self.interaction.person(person)
        state, own = self.reading(person)
        if self.interaction.lacks(state.shared, x):
            self.catch_up()  # waits for whoever takes it in
            state, own = self.reading(person)
        return state, own

    def find_decision(self, id: str) -> LoggedDecision | None:
        """Return the decision `id`; None if there is none."""
        kept = self._decisions.get(id)
        if kept is not None:
            return self._unpack_decision(id, kept.seq, kept.time, kept.person, kept.version, kept.payload, kept.arrays)
        event = self.log.find("decision", id)
        if event is None:
            return None
        self._remember(event)
        return self.decision(event)

    def decision(self, event: Event) -> LoggedDecision:
        """Return the decision of an event, with the items that were on offer at that time."""
        seq, _, id, time, person, _, version, payload, arrays = event
        return self._unpack_decision(id, seq, time, person, version, payload, arrays)

    def _unpack_decision(
        self, id: str, seq: int, time: int, person: str | None, version: int, payload: str, arrays: bytes | None
    ) -> LoggedDecision:
        try:
            record, came = unpack(payload, arrays, self._predicts)
            if record.catalogue:
                _, names, items, rows = self.catalogue.at_version(record.catalogue)
                record = msgspec.structs.replace(record, items=items, catalogue=0)
                return LoggedDecision(id, seq, time, person, record, came, names, version, rows)
            if not record.items:
                return LoggedDecision(id, seq, time, person, record, came, record.names, version)
            names, rows = self.catalogue.called_at(record.items)
            return LoggedDecision(id, seq, time, person, record, came, names, version, rows)
        except (Closed, Damaged):
            raise
        except (KeyError, ValueError) as error:
            told = f"expected a decision as it was written, got another: {type(error).__name__}: {error}"
            raise Damaged(f"{self.log.path}: event {seq}: {told}: restore a back-up") from None

    def _remember(self, event: Event) -> None:
        """Keep a decision in memory for those who ask for it again."""
        seq, _, id, time, person, _, version, payload, arrays = event
        size = ENTRY + sum([getsizeof(part) for part in (id, person, payload, arrays)])
        with self._remembering:
            before = self._decisions.pop(id, None)
            self._held += size - (0 if before is None else before.size)
            self._decisions[id] = CachedDecision(seq, time, person, version, payload, arrays, size)
            while len(self._decisions) > CACHED or self._held > HELD:
                self._held -= self._decisions.popitem(last=False)[1].size

    # ------------------------------------------------------------------------ writing

    def submit(self, drafts: list[PendingEvent]) -> Sequence[Answer]:
        """Return the answer to each of these events, once they are on the disk and learned."""
        return self._group.submit(drafts) if drafts else ()

    def reject(self, event: str, reason: str) -> Answer:
        """Return the answer that refuses the event with the id `event`."""
        return Answer("rejected", event, None, self._version, reason=reason)

    def attempt(self, drafts: Sequence[PendingEvent], durable: bool = True) -> list[Answer] | None:
        """Commit and learn these events in this thread, and return their answers. Return None, with nothing done, if
        that would mean waiting for another writer or taking in what another process wrote.

        For a caller that serves many requests in one thread; it writes a snapshot when one is `due`. If `durable` is
        False, it waits for `log.sync` before it answers events for which `waits_for_disk` is true.
        """
        if not self.turn.acquire(blocking=False):
            return None
        try:
            return self._commit(drafts, patient=False, durable=durable)
        except Busy:
            return None
        finally:
            self.turn.release()

    @property
    def due(self) -> bool:
        """whether it is time to write a snapshot"""
        return self._since_snapshot >= self._every

    def waits_for_disk(self, drafts: Sequence[PendingEvent]) -> bool:
        """Return whether any of these events has to be on the disk before it is answered."""
        return self.settings.durable == "decision" or not all(draft.again for draft in drafts)

    def _commit(self, drafts: Sequence[PendingEvent], patient: bool = True, durable: bool = True) -> list[Answer]:
        """Write a group of events, then learn from them, and return their answers: the only way into the log, except
        for forgetting.

        The group is then on the disk, unless `durable` is False or nothing in it `waits_for_disk`. Raise Busy, with
        nothing changed, if it would have to wait and is not `patient`.
        """
        with self.turn:
            answers: list[Any] = [None] * len(drafts)
            fresh: list[int] = []
            group: dict[tuple[str, str], Event] = {}
            with self.log.writing(patient, durable=durable and self.waits_for_disk(drafts)):
                version = self._version
                if not patient and (self._stale or self.log.head() != self._head):
                    raise Busy("there is something to catch up with")
                head = self._catch_up()
                there = self._there(drafts)
                for i, draft in enumerate(drafts):
                    event = draft.event
                    key = event.kind, event.id
                    before = group.get(key) or there.get(key)
                    if before is not None:
                        answers[i] = self._answer_repeat(event, before)
                    elif refusal := self._refusal(event):
                        answers[i] = self.reject(event.id, refusal)
                    elif draft.again and self._version != version:
                        answers[i] = self.reject(event.id, AGAIN)
                    else:
                        head += 1
                        group[key] = Event(head, *event[1:])
                        fresh.append(i)
                self.log.append(group.values())
            if durable and not group and self.settings.durable == "feedback" and self.waits_for_disk(drafts):
                # Nothing was written, so nothing was waited for; what is repeated may be of a process that still waits.
                self.log.sync()
            self._stale = True  # until all of it is learned: whatever interrupts, the next one folds anew
            self._learn([(i, event, drafts[i]) for i, event in zip(fresh, group.values())], answers)
            if self._head > head:  # folded anew, the model has what other processes appended meanwhile
                self.log.look_for_forgotten()
                self.forget_cached()
            self._head = max(head, self._head)
            self._stale = False
            self._publish()
            if self._since_mark >= (self.interaction.mark_every or max(BETWEEN, len(self._model.people))):
                self._mark()
            if patient and self.due:
                self.keep()
            return answers

    def _there(self, drafts: Sequence[PendingEvent]) -> dict[tuple[str, str], Event]:
        """Return the events in the log that have the kind and id of one of these."""
        ids: dict[str, list[str]] = {}
        for draft in drafts:
            ids.setdefault(draft.event.kind, []).append(draft.event.id)
        return {(kind, id): event for kind in ids for id, event in self.log.known(kind, ids[kind]).items()}

    def _refusal(self, event: Event) -> str | None:
        """Return why an event cannot be appended, as seen inside the transaction; None if it can."""
        if self.log.is_forgotten(event.kind, event.id):
            return f"{event.kind} {event.id} was forgotten"
        if event.target is not None and self.log.is_gone(event.target):
            return "what it is about was forgotten"
        return None

    def _answer_repeat(self, event: Event, before: Event) -> Answer:
        """Return the answer to an event whose id is in the log: a duplicate, or rejected if its content differs."""
        if event.kind == "decision":
            return Answer("duplicate", event.id, before.seq, before.version)
        if (event.target, event.payload, event.arrays) == (before.target, before.payload, before.arrays):
            return Answer("duplicate", event.id, before.seq, self._version)
        return self.reject(event.id, f"{event.kind} {event.id} is in the log already, with other content")

    def _learn(self, fresh: Sequence[tuple[int, Event, PendingEvent]], answers: list[Any]) -> None:
        """Learn from events that were just committed, in order, and fill in the answer to each."""
        before = self._retractions
        anew = any(
            event.kind == "rollback" or (event.kind == "undo" and event.target not in before) for _, event, _ in fresh
        )
        if anew:
            self.rebuild()
        self._apart(len(fresh))
        for i, event, (_, decision, feedback, _) in fresh:
            late = learned = False
            if event.kind == "feedback" and decision is not None and feedback is not None:
                late = event.time - decision.since > 1e6 * self.settings.late_after
                if anew:  # the fold has it already
                    learned = event.seq not in self.failed and self._says(event, decision, feedback)
                elif not (learned := self._teach(self._model, event, decision, feedback)) and event.seq in self.failed:
                    self.rebuild()  # the lesson may have stopped half-way
                    anew = True
                self._version = max(event.seq, self._version)
            elif event.kind == "undo":
                learned = event.target not in before and self._retractions.undone.get(event.target or 0) == event.seq
                self._version = max(event.seq, self._version)
            elif event.kind == "rollback":
                learned = True
                self._version = max(event.seq, self._version)
            elif event.kind == "item":
                self._put(event, anew)
            elif event.kind == "decision":
                self._remember(event)
            version = event.version if event.kind == "decision" else self._version
            reason = self.failed.get(event.seq) or (None if feedback is None else why_nothing_learned(feedback))
            answers[i] = Answer("applied", event.id, event.seq, version, late=late, learned=learned, reason=reason)

    def _says(self, event: Event, decision: LoggedDecision, feedback: FeedbackRecord) -> bool:
        """Return whether there is a lesson in feedback."""
        step = self.step(event, decision, feedback)
        lesson = self._model.lesson(step.context, feedback, step.extra)
        return lesson is not None and self.interaction.teaches(self._model, lesson)

    def _catch_up(self) -> int:
        """Take in what other processes wrote and return the log's last sequence number. Inside a transaction."""
        if self._stale:  # an interruption, a failure to read: what is in memory may lack something
            self.log.look_for_forgotten()
            self.forget_cached()
            self.rebuild()
        head = self.log.head()
        if head != self._head:
            self._stale = True
            others = list(self.log.events(self._head))
            if any(event.kind in ("undo", "forget", "rollback") for event in others):
                self.log.look_for_forgotten()
                self.forget_cached()
                self.rebuild()
            else:
                self._apart(len(others))
                for event in others:
                    self._take_in(event)
                    if event.seq in self.failed:
                        self.rebuild()  # it may have stopped half-way
                        self.catalogue.look_again()  # what came after it is in the model, and not yet on the catalogue
                        break
                self._head = head
                self._stale = False
            self._publish()
        return head

    def _apart(self, events: int) -> None:
        """Give the model's people a copy of their own before many events are learned, so that readers can go on with
        the published one."""
        if events > LONG:
            self._model.people = dict(self._model.people)

    def _take_in(self, event: Event) -> None:
        """Learn from one event of another process."""
        if event.kind == "item":
            self._put(event)
        elif event.kind == "feedback":
            decided = self.log.at(event.target or 0)
            if decided is not None:
                self._teach(self._model, event, self.decision(decided), records.decode_feedback(event.payload))
            self._version = event.seq

    def _put(self, event: Event, folded: bool = False) -> None:
        """Take in that an item was put on offer or withdrawn. Some models are made of that too; `folded` says that this
        one has it already."""
        self.catalogue.put(event)
        if self.interaction.folds_items:
            self._version = max(event.seq, self._version)
            if not folded:
                self.offer(self._model, event)

    def catch_up(self) -> None:
        """Take in what other processes wrote."""
        with self.turn, self.log.writing():
            self._catch_up()

    def is_behind(self) -> bool:
        """Return whether another process wrote something that was not taken in."""
        return self.log.last()[0] != self._head

    def look(self) -> None:
        """Take in what other processes wrote, if there is anything; otherwise no transaction is begun."""
        if self.is_behind():
            self.catch_up()

    # ------------------------------------------------------------------------ the fold

    def fresh(self) -> LoopModel:
        """Return a model that has learned nothing."""
        model: LoopModel = self.interaction.fresh()
        return model

    def offer(self, model: LoopModel, event: Event) -> None:
        """Let a model that is made of items, too, take in that one was put on offer or withdrawn."""
        if told := self.interaction.on_item(model, event, self.catalogue):
            self.note(f"item {event.subject}: {told}; mend the learner and open the loop again")

    def teach(self, model: LoopModel, event: Event, decision: LoggedDecision, feedback: FeedbackRecord) -> bool:
        """Let any model learn from feedback, one step of its fold; return whether there was a lesson in it."""
        context = self.requests.context(decision)
        extra = self.requests.extra(feedback, event.arrays, context, self.row_of, decision.arrays)
        return model.teach(context, feedback, extra, event.seq)

    def step(self, event: Event, decision: LoggedDecision, feedback: FeedbackRecord) -> Step:
        """Return a piece of feedback with all that a fold needs."""
        context = self.requests.context(decision)
        extra = self.requests.extra(feedback, event.arrays, context, self.row_of, decision.arrays)
        return Step(event, decision, feedback, context, extra)

    def _teach(self, model: LoopModel, event: Event, decision: LoggedDecision, feedback: FeedbackRecord) -> bool:
        """Let this loop's model learn from feedback. A lesson that the learner fails on is left out, with a note."""
        if event.seq in self.failed:
            return False
        before = self.interaction.predictor(model, decision.person)
        try:
            learned = self.teach(model, event, decision, feedback)
        except Exception as error:  # whatever a learner of somebody's own raises
            told = f"{type(self.learner).__name__} failed on it and learned nothing: {type(error).__name__}: {error}"
            self.failed[event.seq] = told
            self.note(f"feedback {event.id}: {told}; mend the learner and open the loop again, or undo it")
            self._drop_marks(event.seq)
            return False
        self._since_snapshot += learned
        self._since_mark += learned
        moved = learned and (before is None or self.interaction.predictor(model, decision.person) != before)
        self.moves = Moves(self.moves.given + 1, self.moves.moved + moved)
        return learned

    def row_of(self, seq: int, candidate: int) -> Floats:
        """Return the features (1, N) of one candidate of the decision at `seq`."""
        event = self.log.at(seq)
        if event is None:
            return np.zeros((0, self.learner.n_features))
        known = self.decision(event)
        return self.requests.context(known).x[candidate : candidate + 1]

    def fold(self, head: int, *, from_scratch: bool = False) -> LoopModel:
        """Return the fold of the log up to `head`, from the newest kept state that still holds, or `from_scratch`.

        What other processes append meanwhile is left for later.
        """
        while True:
            model = self.fresh()
            self.moves, position = Moves(), 0
            if not from_scratch:
                position = self._start(model, head)
            failed = len(self.failed)
            for event, decision, feedback in self.steps([model], position, head):
                self._teach(model, event, decision, feedback)
                if len(self.failed) > failed:
                    break  # it may have stopped half-way: once more, without that lesson
            else:
                return model

    def _start(self, model: LoopModel, head: int) -> int:
        """Put the newest kept state that still holds into a fresh model, and return its position in the log."""
        if self._marks:
            mark = self._marks[-1]
            model.shared, model.people, self.moves = copy_arrays(mark.shared), dict(mark.people), mark.moves
            return mark.position
        self._since_snapshot = 0
        position, moves = snapshots.restore(
            self.path, model, self._like(model), self.log, head, self.stamp(), self.note
        )
        self.moves = Moves(*moves)
        return position

    def _like(self, model: LoopModel) -> Any:
        """Return a state like those kept for each person."""
        return self.interaction.personal(model)

    def _mark(self) -> None:
        """Keep the model as it is now."""
        self._marks = [
            *self._marks,
            Mark(self._head, copy_arrays(self._model.shared), dict(self._model.people), self.moves),
        ][-MARKS:]
        self._since_mark = 0

    def before(self, model: LoopModel, version: int) -> int:
        """Put the newest kept state up to `version` that still holds into a fresh model, and return its position in the
        log, from which to fold on."""
        with self.turn:  # what is kept comes and goes
            there = [mark for mark in self._marks if mark.position <= version]
            if there:
                model.shared, model.people = copy_arrays(there[-1].shared), dict(there[-1].people)
                return there[-1].position
            like = self._like(model)
            return snapshots.restore(self.path, model, like, self.log, version, self.stamp(), lambda _: None)[0]

    def _drop_marks(self, position: int) -> None:
        """Drop the kept states that include the lesson at `position`."""
        self._marks = [mark for mark in self._marks if mark.position < position]

    def lessons(
        self, after: int = 0, up_to: int | None = None
    ) -> Iterator[tuple[Event, LoggedDecision, FeedbackRecord]]:
        """Yield the feedback that the model is made of, in order, each with its decision; with `up_to`, the feedback
        that version of the model was made of."""
        retractions = self.log.retractions(up_to)
        for event, decided in self.log.lessons(after):
            if up_to is not None and event.seq > up_to:
                return
            if event.seq not in retractions:
                yield event, self.decision(decided), records.decode_feedback(event.payload)

    def steps(
        self, models: Sequence[LoopModel], after: int = 0, up_to: int | None = None
    ) -> Iterator[tuple[Event, LoggedDecision, FeedbackRecord]]:
        """Yield the same as `lessons`; models that are made of items, too, take in the events of items on the way."""
        if not self.interaction.folds_items:
            yield from self.lessons(after, up_to)
            return
        items = ((event, None, None) for event in self.log.events(after, kinds=["item"]))
        for event, decision, feedback in merge(self.lessons(after, up_to), items, key=lambda step: step[0].seq):
            if decision is not None and feedback is not None:
                yield event, decision, feedback
            elif up_to is not None and event.seq > up_to:
                return
            else:
                for model in models:
                    self.offer(model, event)

    def rebuild(self) -> None:
        """Fold the log again and publish the model."""
        self._stale = True
        retractions = self.log.retractions()
        self._marks = [mark for mark in self._marks if not retractions.changes(mark.position)]
        head, version = self.log.last(self.interaction.folds_items)
        model = self.fold(head)
        self._retractions, self._head, self._version, self._model = retractions, head, version, model
        self._stale = False
        self._publish()

    def _publish(self) -> None:
        model = self._model
        self._published = PublishedState(self._version, self.interaction.publish(model), model.people)

    @property
    def model(self) -> LoopModel:
        """the model that is written to; hold `turn` while reading its state"""
        return self._model

    # ------------------------------------------------------------------------ what is derived

    def stamp(self) -> dict[str, Any]:
        """Return what a snapshot depends on besides the log: learner, version, Python, numpy, scipy, machine.

        A snapshot with another stamp is not used, and the log is folded again.
        """
        return snapshots.stamp(self.manifest, self.learner, self.learner_version)

    def snapshot(self) -> Path:
        """Write a snapshot and return its path. Raise OSError if it cannot be written, and IncompleteModel if the model
        lacks a lesson: a start from it would neither try the lesson again nor report it.

        No other process can write meanwhile, so nobody who is being forgotten is kept.
        """
        with self.turn, self.log.writing():
            head = self._catch_up()
            if left := sorted(seq for seq in self.failed if seq not in self._retractions):
                event = self.log.at(left[0])
                named = event.id if event is not None else left[0]
                raise IncompleteModel(f"the learner failed on feedback {named}: undo it, or mend the learner")
            path = snapshots.snapshot_path(self.path, head)
            snapshots.save(path, self._model, head, self.log, self.stamp() | {"moves": list(self.moves)})
        self._since_snapshot = 0
        return path

    def keep(self) -> None:
        """Write a snapshot that nobody asked for: a failure is noted and loses nothing."""
        try:
            self.snapshot()
        except (OSError, IncompleteModel) as error:
            self.note(f"no snapshot was kept ({error}): the next start folds more of the log")
            if isinstance(error, IncompleteModel):
                self._since_snapshot = 0  # it is not tried at every event from now on

    def forget_cached(self) -> None:
        """Drop what is in memory of people, decisions and items."""
        self._decisions, self._held, self._marks = OrderedDict(), 0, []
        self.catalogue.look_again()

    def forget_derived(self) -> None:
        """Remove all that was derived from events that are gone."""
        snapshots.remove_snapshots(self.path)
        self.forget_cached()

    def verify(self) -> list[str]:
        """Return what is wrong with the log and the model, in words; [] if nothing is. The whole log is folded
        again."""
        with self.turn:
            self.catch_up()
            problems = self.log.problems()
            since = self._since_snapshot, self._since_mark, self.moves
            if not snapshots.same(self._model, self.fold(self._head, from_scratch=True)):
                problems.append("the model is not the fold of the log, bit for bit")
            self._since_snapshot, self._since_mark, self.moves = since
            return problems
