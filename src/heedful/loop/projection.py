"""The fold of a log as it grows: what is committed is learned, in order, without what was undone.

The writer's side of a loop. Groups of events go into the log in one transaction each, and then into the model; what
readers decide from is published after that, and never written to again.
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
from heedful.loop.interactions.protocol import Folded, Interaction, Step
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
"""How many marks are kept in memory, and how many lessons at least lie between two."""
LONG = 200
"""Lessons that may be learned while somebody waits to decide."""
AGAIN = "another process has changed the model meanwhile"
CACHED, HELD = 50_000, 128_000_000
"""Decisions kept in memory, and the bytes of all that is kept of them; older ones are read from the log when their
feedback comes."""
ENTRY = 400
"""Bytes that keeping a decision takes besides what it says."""


class CachedDecision(msgspec.Struct, frozen=True, eq=False, gc=False):
    """A decision as it is kept in memory: as the log has it, which is short, and known to the byte.

    Many are kept, and what the garbage collector has to look through holds everybody up.
    """

    seq: int
    time: int
    person: str | None
    version: int
    payload: str
    arrays: bytes | None
    size: int


class PendingEvent(NamedTuple):
    """An event on its way into the log, with what the fold wants to know of it."""

    event: Event
    decision: LoggedDecision | None = None
    """that a feedback answers; or the one that this is"""
    feedback: FeedbackRecord | None = None
    again: bool = False
    """a decision of this loop's own: to be made again where another process has changed the model meanwhile, and not
    waited for where the loop is durable from feedback on"""


class Mark(NamedTuple):
    """The model as it was after the event at `position`: where to fold on from when a recent lesson is undone."""

    position: int
    shared: Any
    people: dict[str, Person]
    moves: Moves


class PublishedState(NamedTuple):
    """What readers decide from: a state that nobody writes to."""

    version: int
    shared: Any
    people: dict[str, Person]


class IncompleteModel(ValueError):
    """The model lacks a lesson that it should have."""


class Projection:
    """A log with the model that is its fold."""

    def __init__(self, path: Path, named: str | None) -> None:
        """Of the loop in the folder `path`; `named` names a learner of the caller's own again."""
        self.path = path
        self.notes: list[str] = []
        """what a person should know, each said once"""
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
        """what its kind of feedback is"""
        self._every: int = min(self.settings.snapshot_every, self.interaction.snapshot_most)
        self._predicts = self.interaction.describe().prediction is not None
        self.learner_version = learner_version(self.learner)
        if self.learner_version != declared_version(self.manifest.learner_version):
            told = "the learner's code has changed since the loop was made: the model is the log folded by today's code"
            self.note(told)
        self.named = f"{self.manifest.learner}@{self.learner_version}"
        """the learner, as decisions name it"""
        self.catalogue = Catalogue(self.log, self.manifest.encoding.size, self.interaction.splits_items)
        self.requests = Requests(self.manifest, self.catalogue, self.interaction)
        self.turn = threading.RLock()
        """held by whoever writes: one group, one act of forgetting, one folding anew at a time"""
        self._group: GroupCommit[PendingEvent, Answer] = GroupCommit(self._commit)
        # An ordinary dict forgets its first entries slowly: each time it looks past all that were forgotten before.
        self._decisions = OrderedDict[str, CachedDecision]()
        self._held = 0
        self._remembering = threading.Lock()
        self._model = self.fresh()
        self._stale = False  # the model is not the fold: something was undone, a lesson failed or was interrupted
        self._since_snapshot = self._since_mark = 0
        self.moves = Moves()
        """how much feedback the model is made of, and how much of it moved it"""
        self._marks: list[Mark] = []
        self._retractions = Retractions()
        self._head = self._version = 0
        self.failed: dict[int, str] = {}
        """lessons that the learner raised on, and what it said: they are left out of the fold"""
        if self.log.unfinished():
            self.forget_derived()
            self.log.finish_erasing()
        self.rebuild()

    def note(self, told: str) -> None:
        """Add a warning to `notes`, for the person who runs the loop; one that is there already is not repeated."""
        if told not in self.notes:
            self.notes.append(told)

    def close(self) -> None:
        """Keep a snapshot where lessons were learned since the last, and close the log."""
        with self.turn:
            try:
                if self._since_snapshot > 0:
                    self.keep()
            finally:
                self.log.close()

    # ------------------------------------------------------------------------ reading

    @property
    def published(self) -> PublishedState:
        """What to decide from."""
        return self._published

    def reading(self, person: str | None) -> tuple[PublishedState, Person | None]:
        """The published state, with the person's offset as it was then."""
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
        """Like `reading`, the published state and the person's offset, but of a state that includes the candidates x.

        Where the published state lacks some of them, it first takes in what other processes appended to the log.
        """
        person = self.interaction.person(person)
        state, own = self.reading(person)
        if self.interaction.lacks(state.shared, x):
            self.catch_up()  # waits for whoever takes it in
            state, own = self.reading(person)
        return state, own

    def find_decision(self, id: str) -> LoggedDecision | None:
        """The decision of that id."""
        kept = self._decisions.get(id)
        if kept is not None:
            return self._unpack_decision(id, kept.seq, kept.time, kept.person, kept.version, kept.payload, kept.arrays)
        event = self.log.find("decision", id)
        if event is None:
            return None
        self._remember(event)
        return self.decision(event)

    def decision(self, event: Event) -> LoggedDecision:
        """A decision out of its event, with the items that were on offer then."""
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
        """A decision, for whoever asks for it again."""
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
        """What became of each, once it is on the disk and learned."""
        return self._group.submit(drafts) if drafts else ()

    def reject(self, event: str, reason: str) -> Answer:
        """The answer that refuses an event."""
        return Answer("rejected", event, None, self._version, reason=reason)

    def attempt(self, drafts: Sequence[PendingEvent], durable: bool = True) -> list[Answer] | None:
        """What became of each, committed and learned by this thread at once; None, and nothing is done, where that
        would mean to wait for another writer or to take in what another process wrote.

        For a caller that serves many in one thread; it also keeps a snapshot where one is `due`. Where it is not
        `durable`, that caller waits for `log.sync` before it answers what `waits_for_disk`."""
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
        """Whether it is time to keep a snapshot."""
        return self._since_snapshot >= self._every

    def waits_for_disk(self, drafts: Sequence[PendingEvent]) -> bool:
        """Whether any of these has to be on the disk before it is answered."""
        return self.settings.durable == "decision" or not all(draft.again for draft in drafts)

    def _commit(self, drafts: Sequence[PendingEvent], patient: bool = True, durable: bool = True) -> list[Answer]:
        """Write a group of events, then learn from them: the only way into the log, but for forgetting. Busy, and
        nothing is changed, where that means to wait and this is not `patient`. It is on the disk then, unless none of
        it `waits_for_disk` or it need not be `durable`."""
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
        """The events in the log that have the kind and id of one of these."""
        ids: dict[str, list[str]] = {}
        for draft in drafts:
            ids.setdefault(draft.event.kind, []).append(draft.event.id)
        return {(kind, id): event for kind in ids for id, event in self.log.known(kind, ids[kind]).items()}

    def _refusal(self, event: Event) -> str | None:
        """Why an event cannot be appended, seen from inside the transaction."""
        if self.log.is_forgotten(event.kind, event.id):
            return f"{event.kind} {event.id} was forgotten"
        if event.target is not None and self.log.is_gone(event.target):
            return "what it is about was forgotten"
        return None

    def _answer_repeat(self, event: Event, before: Event) -> Answer:
        """An id that is in the log: the same event again, or another one under its id."""
        if event.kind == "decision":
            return Answer("duplicate", event.id, before.seq, before.version)
        if (event.target, event.payload, event.arrays) == (before.target, before.payload, before.arrays):
            return Answer("duplicate", event.id, before.seq, self._version)
        return self.reject(event.id, f"{event.kind} {event.id} is in the log already, with other content")

    def _learn(self, fresh: Sequence[tuple[int, Event, PendingEvent]], answers: list[Any]) -> None:
        """Learn from events that were just committed, in order, and say what became of each."""
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
        """Whether there is a lesson in feedback."""
        step = self.step(event, decision, feedback)
        lesson = self._model.lesson(step.context, feedback, step.extra)
        return lesson is not None and self.interaction.teaches(self._model, lesson)

    def _catch_up(self) -> int:
        """Take in what another process appended since, inside a transaction; the head of the log."""
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
        """Before many events are learned: those who decide meanwhile keep the offsets as they were published."""
        if events > LONG:
            self._model.people = dict(self._model.people)

    def _take_in(self, event: Event) -> None:
        """One event of another process."""
        if event.kind == "item":
            self._put(event)
        elif event.kind == "feedback":
            decided = self.log.at(event.target or 0)
            if decided is not None:
                self._teach(self._model, event, self.decision(decided), records.decode_feedback(event.payload))
            self._version = event.seq

    def _put(self, event: Event, folded: bool = False) -> None:
        """An item was put on offer or withdrawn: some models are made of that too (`folded`: it is already)."""
        self.catalogue.put(event)
        if self.interaction.folds_items:
            self._version = max(event.seq, self._version)
            if not folded:
                self.offer(self._model, event)

    def catch_up(self) -> None:
        """Take in what another process appended since."""
        with self.turn, self.log.writing():
            self._catch_up()

    def is_behind(self) -> bool:
        """Whether another process appended something since."""
        return self.log.last()[0] != self._head

    def look(self) -> None:
        """The same as `catch_up` where there is anything: without a transaction where there is not."""
        if self.is_behind():
            self.catch_up()

    # ------------------------------------------------------------------------ the fold

    def fresh(self) -> Folded:
        """A model that has learned nothing."""
        model: Folded = self.interaction.fresh()
        return model

    def offer(self, model: Folded, event: Event) -> None:
        """One step of a fold that is made of items, too: one comes or goes."""
        if told := self.interaction.on_item(model, event, self.catalogue):
            self.note(f"item {event.subject}: {told}; mend the learner and open the loop again")

    def teach(self, model: Folded, event: Event, decision: LoggedDecision, feedback: FeedbackRecord) -> bool:
        """One step of a fold, of any model; whether there was a lesson in it."""
        context = self.requests.context(decision)
        extra = self.requests.extra(feedback, event.arrays, context, self.row_of, decision.arrays)
        return model.teach(context, feedback, extra, event.seq)

    def step(self, event: Event, decision: LoggedDecision, feedback: FeedbackRecord) -> Step:
        """A piece of feedback with all that a fold takes with it."""
        context = self.requests.context(decision)
        extra = self.requests.extra(feedback, event.arrays, context, self.row_of, decision.arrays)
        return Step(event, decision, feedback, context, extra)

    def _teach(self, model: Folded, event: Event, decision: LoggedDecision, feedback: FeedbackRecord) -> bool:
        """One step of this loop's fold: a lesson that its learner raises on is left out, and a note says so."""
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
        """The features of one candidate of the decision at `seq`, 1 x N."""
        event = self.log.at(seq)
        if event is None:
            return np.zeros((0, self.learner.n_features))
        known = self.decision(event)
        return self.requests.context(known).x[candidate : candidate + 1]

    def fold(self, head: int, *, from_scratch: bool = False) -> Folded:
        """The fold of the log up to `head`: from the newest state that was kept and still holds, or from nothing.

        What another process appends meanwhile is left for later."""
        while True:
            model = self.fresh()
            self.moves, position = Moves(), 0
            if not from_scratch:
                position = self._start(model, head)
            failed = len(self.failed)
            for event, decision, feedback in self.steps(model, position, head):
                self._teach(model, event, decision, feedback)
                if len(self.failed) > failed:
                    break  # it may have stopped half-way: once more, without that lesson
            else:
                return model

    def _start(self, model: Folded, head: int) -> int:
        """Put the newest state that still holds into a fresh model: a mark, a snapshot; its position in the log."""
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

    def _like(self, model: Folded) -> Any:
        """What one person's own state is like."""
        return self.interaction.personal(model)

    def _mark(self) -> None:
        """Remember the model as it is."""
        self._marks = [
            *self._marks,
            Mark(self._head, copy_arrays(self._model.shared), dict(self._model.people), self.moves),
        ][-MARKS:]
        self._since_mark = 0

    def before(self, model: Folded, version: int) -> int:
        """Put the newest state up to a version that was kept and still holds into a fresh model; its position in the
        log, from which on to fold."""
        with self.turn:  # what is kept comes and goes
            there = [mark for mark in self._marks if mark.position <= version]
            if there:
                model.shared, model.people = copy_arrays(there[-1].shared), dict(there[-1].people)
                return there[-1].position
            like = self._like(model)
            return snapshots.restore(self.path, model, like, self.log, version, self.stamp(), lambda _: None)[0]

    def _drop_marks(self, position: int) -> None:
        """A lesson at `position` no longer counts: what was made with it is of no use."""
        self._marks = [mark for mark in self._marks if mark.position < position]

    def lessons(
        self, after: int = 0, up_to: int | None = None
    ) -> Iterator[tuple[Event, LoggedDecision, FeedbackRecord]]:
        """The feedback that the model is made of, in order, with the decisions it answers; `up_to` a version, what it
        was made of then."""
        retractions = self.log.retractions(up_to)
        for event, decided in self.log.lessons(after):
            if up_to is not None and event.seq > up_to:
                return
            if event.seq not in retractions:
                yield event, self.decision(decided), records.decode_feedback(event.payload)

    def steps(
        self, model: Folded, after: int = 0, up_to: int | None = None
    ) -> Iterator[tuple[Event, LoggedDecision, FeedbackRecord]]:
        """The same `lessons`; a model that is made of items, too, is told on the way which come and go."""
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
                self.offer(model, event)

    def rebuild(self) -> None:
        """Fold anew, and publish."""
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
    def model(self) -> Folded:
        """The model that is written to; hold `turn` while reading its state."""
        return self._model

    # ------------------------------------------------------------------------ what is derived

    def stamp(self) -> dict[str, Any]:
        """What a snapshot's state depends on besides the log: learner, its version, Python, numpy, scipy, machine.

        A snapshot with another stamp is not used: the state is folded again from the log.
        """
        return snapshots.stamp(self.manifest, self.learner, self.learner_version)

    def snapshot(self) -> Path:
        """Keep a snapshot; its path. OSError where it cannot be written; IncompleteModel where a lesson is left out of
        the model: a start from there would neither try it again nor know of it.

        No other process writes meanwhile: somebody whom it forgets is not kept, or the snapshot goes with her."""
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
        """The same, where nobody asked for it: that it failed is noted, and loses nothing."""
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
        """Remove what was derived from events that are gone."""
        snapshots.remove_snapshots(self.path)
        self.forget_cached()

    def verify(self) -> list[str]:
        """What is wrong with log and model, in words; empty where nothing is. Folds the whole log again."""
        with self.turn:
            self.catch_up()
            problems = self.log.problems()
            since = self._since_snapshot, self._since_mark, self.moves
            if not snapshots.same(self._model, self.fold(self._head, from_scratch=True)):
                problems.append("the model is not the fold of the log, bit for bit")
            self._since_snapshot, self._since_mark, self.moves = since
            return problems
