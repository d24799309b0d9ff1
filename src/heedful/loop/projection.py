"""The log of a loop together with the model that is made from it: the writing side of a loop.

A group of events goes into the log in one transaction and then into the model, in order, without what was undone.
Readers decide from a state that is published afterwards and never written to again. The file is long because one lock
orders all of it: committing, learning, taking in what other processes wrote, and keeping snapshots.
"""

from __future__ import annotations

import threading
import time
import weakref
from collections import OrderedDict
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing, suppress
from heapq import merge
from pathlib import Path
from sys import getsizeof
from typing import Any, NamedTuple

import msgspec
import numpy as np

from heedful.core.fold import copy_arrays
from heedful.jit.kernel import Floats
from heedful.loop import records, segments, snapshots
from heedful.loop.catalogue import Catalogue
from heedful.loop.group import GroupCommit
from heedful.loop.interactions.protocol import Interaction, LoopModel, Step
from heedful.loop.interactions.registry import interaction_of, learner_version
from heedful.loop.log import Event, Log, Retractions
from heedful.loop.model import Person
from heedful.loop.movement import Moves
from heedful.loop.packing import LoggedDecision, unpack
from heedful.loop.records import FeedbackRecord
from heedful.loop.request import Requests
from heedful.loop.serving import (
    IMITATED,
    KINDS,
    ExperimentRecord,
    Follower,
    Orders,
    Running,
    first_promotion,
    orders,
    read_experiment,
    read_promotion,
)
from heedful.loop.settings import Manifest, built_learner, candidate_manifest, check_named, named_learners
from heedful.loop.strangers import why_nothing_learned
from heedful.results.answers import Answer
from heedful.storage import Address, Busy, Closed, Damaged, Owned, Place

MARKS, BETWEEN = 4, 250
"""How many states of the model are kept in memory for undoing, and the fewest lessons between two of them."""
LONG = 200
"""The most events that are learned in place while readers wait; before more, readers keep a copy of the people's
states."""
FEW = 8
"""The most pieces of feedback of other processes whose decisions are looked up one by one."""
AGAIN = "another process has changed the model meanwhile"
"""The reason with which a decision is rejected that was made by a model that has changed meanwhile."""
CACHED, HELD = 50_000, 128_000_000
"""The most decisions kept in memory, and the most bytes they may take there.

Older ones are read from the log when feedback on them comes.
"""
ENTRY = 400
"""About how many bytes a decision in memory takes in addition to its fields."""


class CachedDecision(msgspec.Struct, frozen=True, eq=False, gc=False):
    """A decision kept in memory, packed as in the log (see `heedful.loop.packing`), so that feedback on it needs no
    read of the log.

    `seq`, `time`, `person` (whom it was for), `version` (of the model that made it), `payload` and `arrays` are the
    fields of its `Event`; `size` is about how many bytes all of it takes. There are many of them, so none holds
    anything that the garbage collector would have to look through."""

    seq: int
    time: int
    person: str | None
    version: int
    payload: str
    arrays: bytes | None
    size: int
    """about how many bytes it takes in memory"""


class PendingEvent(NamedTuple):
    """An event to be submitted to the log, with what the model needs to learn from it.

    `event` has the sequence number 0 until it is appended. `decision` is the decision that it is or, if it is feedback,
    that it answers; `feedback` is the decoded record of a feedback. Both are None for other events. `again` is True for
    a decision made by this loop, which is rejected if another process changed the model after it was made; the caller
    then makes it again."""

    event: Event
    """the event, with sequence number 0 until it is appended"""
    decision: LoggedDecision | None = None
    """the decision that a feedback answers, or that this event is; None for other events"""
    feedback: FeedbackRecord | None = None
    """the record of a feedback; None for other events"""
    again: bool = False
    """whether it is a decision made by this loop: it is rejected with the reason `AGAIN`, to be made again, if another
    process has changed the model meanwhile, and in a loop with `durable="feedback"` it need not wait for the disk"""


class Mark(NamedTuple):
    """A copy of the model as it was after one event, kept in memory, so that learning starts again from here after an
    undo of recent feedback.

    `position` is the sequence number of that event in the log. `shared` is the state that all people share, of the
    learner's own type; `people` holds what was learned for each person in addition, by name. `moves` counts the
    feedback that the model had learned by then, and how much of it changed a prediction. `others` are copies of the
    models that follow the log without serving (the candidate learner of an experiment), at the same event."""

    position: int
    """the sequence number of that event: all events up to it are learned"""
    shared: Any
    """the state that all people share, of the learner's own type"""
    people: dict[str, Person]
    """what was learned for single people in addition, by name"""
    moves: Moves
    """how many pieces of feedback the model had learned, and how many of them changed a prediction"""
    others: tuple[snapshots.Other, ...] = ()
    """copies of the models that follow the log without serving, those of an experiment; () if none runs"""


class PublishedState(NamedTuple):
    """The state of the model that readers make decisions from, as it was after the last commit; its arrays are not
    written to again.

    `version` is the sequence number of the last event that it was made of. `model` has the functions that rank,
    `shared` and `people` are the states that they rank by: of all people together, and of single people by name.
    `interaction` is the kind of feedback with the learner that serves, which `named` names."""

    version: int
    """the sequence number of the last event that it was made of"""
    shared: Any
    """the state that all people share"""
    people: dict[str, Person]
    """the states of single people, by name; may already hold a newer one, whose `since` is above `version`"""
    interaction: Interaction[Any]
    """the kind of feedback, with the learner that served at that version; while a model is made again after a
    promotion, `Projection.interaction` has the next one already"""
    model: LoopModel
    """the model whose functions rank by these states"""
    named: str
    """that learner with its version, as decisions name it: "NAME@VERSION\""""
    running: Running | None = None
    """the experiment that runs, with both sides as they rank; None if there is none"""
    imitates: bool = False
    """whether decisions show the caller's order, which the learner imitates (a loop with the setting `apprentice`
    before its learner was promoted)"""


class IncompleteModel(ValueError):
    """Raised if a snapshot is asked for while the model lacks feedback that the learner failed on."""


class Projection:
    """The log of a loop, and the model that learns from the feedback in it, in order: the one place that writes to
    both.

    Any number of threads may call it, and other processes may write to the same log: what they wrote is taken in before
    every commit."""

    def __init__(self, path: Place, named: str | Sequence[str] | None, read_only: bool = False) -> None:
        """Open the loop at `path`, a folder or an address in a database: its model is the newest snapshot that can be
        used, and learns the feedback after that. If it is `read_only`, nothing is ever written.

        `named` is needed only if a learner of the loop is the user's own, a class in a Python file: "FILE.py:Class",
        such as "mine.py:Ranker", or several of them, for learners that are tried in an experiment or were promoted. The
        log names that file too, but opening a log runs no code that only the log names. None if all learners are
        heedful's. Raise FileNotFoundError if there is no loop, LookupError if the learner that serves is the user's own
        and not named, and ValueError if the log is damaged or not that of a loop."""
        self.path = path
        self.notes: list[str] = []
        """warnings for the person who runs the loop, each once"""
        self.log = Log(path if isinstance(path, Address) else path / snapshots.LOG, read_only=read_only)
        self.shelf = snapshots.shelf_of(self.log)
        """where its snapshots are"""
        try:
            self._open(named)
        except BaseException:
            self.log.close()
            raise

    def _open(self, named: str | Sequence[str] | None) -> None:
        founded = self.log.at(1)
        if founded is None or founded.kind != "loop":
            raise ValueError(f"{self.path}: expected a loop, got a log that does not begin with one")
        self._founding = Manifest.from_json(founded.payload)
        self.settings = self._founding.settings
        self._apprentice = self.settings.apprentice
        self._named = named_learners(named)
        self._orders = orders(self.log, self.log.retractions())
        self._use(self._orders, built_learner(self._founding, self._named))
        self.catalogue = Catalogue(self.log, self.manifest.encoding.size, self.interaction.splits_items)
        self.requests = Requests(self.manifest, self.catalogue, self.interaction)
        self._followers: tuple[str, Follower | None, Follower] | None = None
        self.turn = threading.RLock()
        """the lock of the thread that writes: a commit, an act of forgetting, a model made again from the log"""
        # Weakly: a loop that was closed and dropped frees its memory then, not when the garbage collector runs next.
        weak = weakref.proxy(self)
        self._group: GroupCommit[PendingEvent, Answer] = GroupCommit(lambda drafts: weak._commit(drafts))
        # An ordinary dict forgets its first entries slowly: each time it looks past all that were forgotten before.
        self._decisions = OrderedDict[str, CachedDecision]()
        self._held = 0
        self._remembering = threading.Lock()
        self._model = self.fresh()
        self._stale = False  # the model is not the fold: something was undone, a lesson failed or was interrupted
        self._since_snapshot = self._since_mark = 0
        self._wrote = False  # who only reads keeps no snapshot either
        self.moves = Moves()
        """how much feedback the model is made of, and how much of it changed predictions"""
        self._marks: list[Mark] = []
        self._retractions = Retractions()
        self._head = self._version = 0
        self.failed: dict[int, str] = {}
        """feedback that the learner failed on and the model leaves out: sequence number -> what went wrong, in words"""
        if self.log.unfinished() and not self.log.store.read_only:
            with suppress(Owned):  # the owner of the loop finishes that
                if left := self.forget_derived():
                    self.note(f"{', '.join(left)}: cannot be removed, and what was forgotten is still in it: remove it")
                else:
                    self.log.finish_erasing()
        self.rebuild()

    # ------------------------------------------------------------------------ who serves, who is tried

    def _use(self, said: Orders, founder: Any = None) -> None:
        """Let the learner serve that the newest promotion in the log names (`said`), or that of the manifest if there
        is none.

        `founder` is the learner of the loop's manifest, if it is made already. Raise LookupError if it is a learner of
        the user's own that was not named when the loop was opened."""
        if said.promoted is None:
            self.manifest, recorded = self._founding, self._founding.learner_version
            self.learner = built_learner(self._founding, self._named) if founder is None else founder
        else:
            record = read_promotion(said.promoted.payload)
            recorded = record.learner_version
            self.manifest, self.learner = self._candidate(record.learner)
        self.interaction: Interaction[Any] = interaction_of(self.manifest, self.learner)
        """the kind of feedback of this loop, and all that differs between kinds, with the learner that serves"""
        served = [spec for spec in said.served if spec != self.manifest.learner and self.is_named(spec)]
        self.interaction.served = tuple(served)
        self.interaction.first_exploration = self._founding.settings.exploration
        self._every: int = min(self.settings.snapshot_every, self.interaction.snapshot_most)
        self.learner_version = learner_version(self.learner, self.settings)
        if self.learner_version != recorded:
            told = "the learner's code has changed since the loop was made: the model is the log folded by today's code"
            self.note(told)
        self.named = f"{self.manifest.learner}@{self.learner_version}"
        """the learner that serves with its version, as decisions name it: "NAME@VERSION\""""

    def _candidate(self, spec: str) -> tuple[Manifest, Any]:
        """Return (the loop's manifest with the learner `spec` in place of its own, that learner)."""
        if spec == self._founding.learner:
            return self._founding, built_learner(self._founding, self._named)
        return candidate_manifest(self._founding, spec, self._named)

    def candidate(self, spec: str) -> Interaction[Any]:
        """Return the interaction (the loop's kind of feedback) with another learner in place of the one that serves.

        `spec` is the learner's name with parameters ("perceptron:rate=0.2"). Raise ValueError if there is no such
        learner, if it does not fit the loop, or if it is one of the user's own ("FILE.py:Class") whose file was not
        named when the loop was opened."""
        self.check_named(spec)
        self.interaction.find_candidate(spec)
        try:
            found: Interaction[Any] = interaction_of(*self._candidate(spec))
        except LookupError as error:
            raise ValueError(str(error)) from None
        return found

    def is_named(self, spec: str) -> bool:
        """Return whether the learner `spec` may be used: one of heedful's, or one of the user's own ("FILE.py:Class")
        from a file that was named when the loop was opened."""
        try:
            self.check_named(spec)
        except ValueError:
            return False
        return True

    def check_named(self, spec: str) -> None:
        """Raise ValueError if the learner `spec` is one of the user's own ("FILE.py:Class") whose file was not named
        when the loop was opened: nothing of that file is run."""
        try:
            check_named(spec, self._founding.learner, *self._named)
        except LookupError as error:
            raise ValueError(str(error)) from None

    def interaction_at(self, version: int) -> Interaction[Any]:
        """Return the interaction of this loop with the learner that served at `version`, a sequence number: that of the
        newest promotion then, or the one that the loop was created with.

        Raise ValueError if it is one of the user's own whose file was not named when the loop was opened."""
        then = orders(self.log, self.log.retractions(version), version).promoted
        spec = self._founding.learner if then is None else read_promotion(then.payload).learner
        return self.interaction if spec == self.manifest.learner else self.candidate(spec)

    @property
    def promoted(self) -> Event | None:
        """the event of the promotion that names the learner that serves; None if the loop was made with it"""
        return self._orders.promoted

    @property
    def imitates(self) -> bool:
        """whether the caller's order serves, which the learner imitates: the loop has the setting `apprentice`, and its
        learner was not promoted yet"""
        return self._apprentice and self._orders.promoted is None

    @property
    def experiment(self) -> tuple[Event, ExperimentRecord] | None:
        """the experiment that runs, as (its event, its settings); None if there is none"""
        event = self._orders.running
        return None if event is None else (event, read_experiment(event.payload))

    def _direct(self, retractions: Retractions) -> None:
        """Read from the log which learner serves and which is tried in an experiment; if another one serves than
        before, use it.

        `retractions` says which events are not in effect."""
        now = orders(self.log, retractions)
        if self._orders.promoted != now.promoted:
            try:
                self._use(now)
            except LookupError as error:  # another process, which has its file, promoted it
                raise Damaged(f"{self.path}: {error}") from None
        before, self._orders = self._orders, now
        if before.promoted != now.promoted:
            self.requests.manifest, self.requests.interaction = self.manifest, self.interaction
            self._marks, self.failed = [], {}
            for other in self._others():
                if other.stamped == self.stamp():  # the candidate that was promoted has learned all of it already
                    self._marks = [Mark(other.position, other.shared, other.people, other.moves)]
            self._followers = None

    def _follow(self) -> Running | None:
        """Let the learners of the experiment that runs learn from what is new in the log, and return both sides as they
        rank now.

        Return None if no experiment runs, or if the candidate cannot be made or has failed, which is noted."""
        if self.experiment is None:
            self._followers = None
            return None
        event, record = self.experiment
        if self._followers is None or self._followers[0] != event.id:
            try:
                rival = self.candidate(record.learner)
            except ValueError as error:
                self.note(f"experiment {event.id}: {error}: it waits")
                return None
            own = Follower(self, self.interaction, record.frozen) if record.frozen else None
            self._followers = event.id, own, (begins := Follower(self, rival, record.frozen))
            begins.follow(self._head)
            self._since_snapshot += begins.learned  # or each start would fold them again
        _, own, candidate = self._followers
        side = candidate.follow(self._head)
        if candidate.failed:
            self.note(f"experiment {event.id}: {candidate.failed}: it waits")
            return None
        return Running(event.id, record, None if own is None else own.follow(self._head), side)

    def _others(self) -> tuple[snapshots.Other, ...]:
        """Return copies of the models of the experiment that runs, as far as they follow the log without serving."""
        if self._followers is None:
            return ()
        found = [each.keep() for each in self._followers[1:] if each is not None]
        return tuple([each for each in found if each is not None])

    def load_newest(
        self, interaction: Interaction[Any], model: LoopModel, head: int, frozen: bool
    ) -> tuple[int, Moves]:
        """Load the newest stored state up to event `head` into `model`, which has learned nothing and is to follow the
        log without serving, such as the candidate of an experiment.

        `interaction` is the loop's kind of feedback with the learner of that model; `frozen` says whether the model
        learns nothing after `head`. Return (position, counts): the sequence number up to which the state has learned, 0
        if there is no such state, and how much feedback it is made of."""
        stamped = snapshots.stamp(
            interaction.manifest, interaction.learner, learner_version(interaction.learner, self.settings)
        )
        for other in [other for mark in reversed(self._marks) for other in mark.others]:
            if other.stamped == stamped and other.position <= head:
                model.shared, model.people = copy_arrays(other.shared), dict(other.people)
                return other.position, other.moves
        like, unsaid = interaction.personal(model), lambda _: None
        found = snapshots.restore(self.shelf, model, like, self.log, head, stamped, unsaid, True, frozen)
        return found[0], Moves(*found[1])

    def note(self, told: str) -> None:
        """Add the warning `told` to `notes`, for the person who runs the loop, unless it is there already."""
        if told not in self.notes:
            self.notes.append(told)

    def close(self) -> None:
        """Write a snapshot, if anything was written to the log and learned since the last one, and close the log."""
        with self.turn:
            try:
                if self._since_snapshot > 0 and self._wrote:
                    self.keep()
            finally:
                self.log.close()

    # ------------------------------------------------------------------------ reading

    @property
    def published(self) -> PublishedState:
        """the state of the model that decisions are made from: as it was after the last commit (events are written in
        groups)
        """
        return self._published

    def reading(self, person: str | None) -> tuple[PublishedState, Person | None]:
        """Return (published state, what was learned for `person` alone, of a version that fits it).

        The second is None if `person` is None (a decision for nobody in particular) or if nothing was learned for them.
        It waits for a moment while another thread is learning from feedback of that person."""
        while True:
            state = self._published
            own = state.people.get(person) if person is not None else None
            if own is None or own.since <= state.version:
                return state, own
            if self.turn.acquire(blocking=False):
                try:
                    if self._stale:  # the thread that was learning this was interrupted
                        self.catch_up()
                finally:
                    self.turn.release()
            else:
                time.sleep(0.0)  # a newer state is published in a moment

    def reading_of(self, x: Any, person: str | None) -> tuple[PublishedState, Person | None]:
        """Return (published state, what was learned for `person` alone or None), with which to rank the candidates `x`.

        `x` are features (m, N) of m candidates with N features each, or the numbers of m items (m,). If the state does
        not know some of them yet, what other processes wrote to the log is taken in first.
        """
        person = self.interaction.person(person)
        state, own = self.reading(person)
        if self.interaction.lacks(state.shared, x):
            self.catch_up()  # waits for the thread that takes it in
            state, own = self.reading(person)
        return state, own

    def find_decision(self, id: str) -> LoggedDecision | None:
        """Return the decision with this `id`, from memory or the log; None if there is none."""
        kept = self._decisions.get(id)
        if kept is not None:
            return self._unpack_decision(id, kept.seq, kept.time, kept.person, kept.version, kept.payload, kept.arrays)
        event = self.log.find("decision", id)
        if event is None:
            return None
        self._remember(event)
        return self.decision(event)

    def decision(self, event: Event) -> LoggedDecision:
        """Return the decision in an `event` of kind "decision", with its candidates by name as they were at that time.

        Raise Damaged if it is not as it was written."""
        seq, _, id, time, person, _, version, payload, arrays = event
        return self._unpack_decision(id, seq, time, person, version, payload, arrays)

    def _unpack_decision(
        self, id: str, seq: int, time: int, person: str | None, version: int, payload: str, arrays: bytes | None
    ) -> LoggedDecision:
        try:
            record, came = unpack(payload, arrays)
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
        """Keep the decision in `event` in memory, and drop the oldest ones if there are too many."""
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
        """Write the events `drafts` to the log together with those of other threads, learn from them, and return the
        answers.

        There is one answer for each event, in order. Returns once they are learned, and on the disk where
        `waits_for_disk` says so. Raise TimeoutError if another process keeps writing."""
        return self._group.submit(drafts) if drafts else ()

    def submit_in_turn(self, drafts: list[PendingEvent]) -> Sequence[Answer]:
        """Do what `submit` does, for a thread that holds the lock `turn`: it writes the events `drafts` itself.

        With `submit` it would wait for the thread that writes for others, which may be waiting for `turn`."""
        return self._commit(drafts)

    def reject(self, event: str, reason: str) -> Answer:
        """Return the answer that rejects the event with the id `event`, for `reason`; nothing is written."""
        return Answer("rejected", event, None, self._version, reason=reason)

    def attempt(self, drafts: Sequence[PendingEvent], durable: bool = True) -> list[Answer] | None:
        """Write the events `drafts` and learn from them in this thread without waiting for any other; return the
        answers.

        Return None, with nothing done, if another thread or process is writing, or has written something that was not
        taken in. For a caller that serves many requests in one thread, which calls `keep` itself when a snapshot is
        `due`. If `durable` is False, the events are not on the disk when it returns: the caller waits for `log.sync`
        before it sends answers to events for which `waits_for_disk` is true.
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
        """whether a snapshot should be written: as many pieces of feedback as the setting `snapshot_every` were learned
        since the last
        """
        return self._since_snapshot >= self._every

    def waits_for_disk(self, drafts: Sequence[PendingEvent]) -> bool:
        """Return whether any of the events `drafts` has to be on the disk before it is answered.

        All have to, except for decisions made by this loop if it has the setting `durable="feedback"`."""
        return self.settings.durable == "decision" or not all(draft.again for draft in drafts)

    def _commit(self, drafts: Sequence[PendingEvent], patient: bool = True, durable: bool = True) -> list[Answer]:
        """Write a group of events, then learn from them, and return their answers: the only way into the log, except
        for forgetting.

        When it returns they are on the disk, unless `durable` is False or none of them `waits_for_disk`. Raise Busy,
        with nothing changed, if it would have to wait for another writer and `patient` is False.
        """
        with self.turn:
            answers: list[Any] = [None] * len(drafts)
            fresh: list[int] = []
            group: dict[tuple[str, str], Event] = {}
            repeated = list[PendingEvent]()
            with self.log.writing(patient, durable=durable and self.waits_for_disk(drafts)):
                self._wrote = True
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
                        repeated.append(draft)
                    elif refusal := self._refusal(draft):
                        answers[i] = self.reject(event.id, refusal)
                    elif draft.again and self._version != version:
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
            self._learn([(i, event, drafts[i]) for i, event in zip(fresh, group.values())], answers)
            if self._head > head:  # folded again, the model has what other processes appended meanwhile
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
        """Return the events in the log that have the same kind and id as one of `drafts`, by (kind, id)."""
        ids: dict[str, list[str]] = {}
        for draft in drafts:
            ids.setdefault(draft.event.kind, []).append(draft.event.id)
        return {(kind, id): event for kind in ids for id, event in self.log.known(kind, ids[kind]).items()}

    def _refusal(self, draft: PendingEvent) -> str | None:
        """Return why an event cannot be appended: it, or what it is about, was forgotten, or it is an experiment while
        another one runs; None if it can be."""
        event = draft.event
        if self.log.is_forgotten(event.kind, event.id):
            return f"{event.kind} {event.id} was forgotten"
        if event.target is not None and self.log.is_gone(event.target):
            return "what it is about was forgotten"
        after = draft.decision.record.after if event.kind == "decision" and draft.decision is not None else ""
        if after and self.log.is_forgotten("decision", after):
            return f"the page before, {after}, was forgotten"
        if event.kind == "experiment" and self.experiment is not None:  # of another process, a moment ago
            return f"experiment {self.experiment[0].id} is running: stop it first"
        return None

    def _answer_repeat(self, event: Event, before: Event) -> Answer:
        """Return the answer to an `event` whose kind and id are those of `before`, which is in the log.

        It is a duplicate, or rejected if its content differs."""
        if event.kind == "decision":
            return Answer("duplicate", event.id, before.seq, before.version)
        mine, theirs = ((each.subject, each.target, each.payload, each.arrays) for each in (event, before))
        if mine == theirs:
            return Answer("duplicate", event.id, before.seq, self._version)
        return self.reject(event.id, f"{event.kind} {event.id} is in the log already, with other content")

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
            self._direct(before)
        self._apart(len(fresh))
        for i, event, (_, decision, feedback, _) in fresh:
            late = learned = False
            if event.kind == "feedback" and decision is not None and feedback is not None:
                late = event.time - decision.since > 1e6 * self.settings.late_after
                if rebuilt:  # the fold has it already
                    learned = event.seq not in self.failed and self._says(event, decision, feedback)
                elif (
                    not (learned := self.learn_one(self._model, event, decision, feedback)) and event.seq in self.failed
                ):
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
                self._remember(event)
                if self.imitates:
                    self._watch(event, rebuilt)
            version = event.version if event.kind == "decision" else self._version
            reason = self.failed.get(event.seq) or (None if feedback is None else why_nothing_learned(feedback))
            if reason is None and not learned and decision is not None and feedback is not None:
                reason = self.interaction.why_empty(self._model, decision.record, feedback)
            answers[i] = Answer("applied", event.id, event.seq, version, late=late, learned=learned, reason=reason)

    def _says(self, event: Event, decision: LoggedDecision, feedback: FeedbackRecord) -> bool:
        """Return whether the loop's model would learn anything from a piece of feedback; the model is not changed.

        `event` is the feedback's event, `feedback` its decoded record, `decision` the decision that it answers."""
        step = self.step(event, decision, feedback)
        lesson = self._model.lesson(step.context, feedback, step.extra)
        return lesson is not None and self.interaction.teaches(self._model, lesson)

    def _catch_up(self, head: int | None = None) -> int:
        """Learn from what other processes wrote and return the log's last sequence number.

        The caller has begun a transaction; or else `head` is how far to learn, while another process goes on writing.
        """
        if self._stale:  # an interruption, a failure to read: what is in memory may lack something
            self.log.look_for_forgotten()
            self.forget_cached()
            self.rebuild()
        head = self.log.head() if head is None else max(head, self._head)
        if head != self._head:
            self._stale = True
            others = [event for event in self.log.events(self._head) if event.seq <= head]
            if any(event.kind in ("undo", "forget", "rollback", *KINDS) for event in others):
                self.log.look_for_forgotten()
                self.forget_cached()
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

    def _apart(self, events: int) -> None:
        """Copy the model's dict of people before `events` events are learned, if these are many, so that readers keep
        the published one meanwhile."""
        if events > LONG:
            self._model.people = dict(self._model.people)

    def _take_in_all(self, events: Sequence[Event]) -> bool:
        """Let the model learn `events` that other processes wrote, the last of the log, until the learner fails on one;
        return whether it did not."""
        with closing(self._with_decisions(events)) as pairs:
            for event, decided in pairs:
                self._take_in(event, decided)
                if event.seq in self.failed:
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
        """Let the model learn one `event` that another process wrote: feedback to the decision `decided`, a change of
        an item, or an order to imitate."""
        if event.kind == "item":
            self._put(event)
        elif event.kind == "decision" and self.imitates:
            self._watch(event)
        elif event.kind == "feedback":
            if decided is not None:
                self.learn_one(self._model, event, self.decision(decided), records.decode_feedback(event.payload))
            self._version = event.seq

    def _put(self, event: Event, folded: bool = False) -> None:
        """Take in that an item was put on offer or withdrawn: in the catalogue and, if the model depends on items, in
        the model.

        `event` is that of the item; `folded` says that the model has it already."""
        self.catalogue.put(event)
        if self.interaction.folds_items:
            self._version = max(event.seq, self._version)
            if not folded:
                self.offer(self._model, event)

    def _watch(self, event: Event, folded: bool = False) -> None:
        """Let the model learn to make the order of the decision in `event`, while it imitates.

        `folded` says that the model has it already."""
        self._version = max(event.seq, self._version)
        if not folded and self.imitate(self._model, event):
            self._since_snapshot += 1
            self._since_mark += 1

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

    # ------------------------------------------------------------------------ the fold

    def fresh(self) -> LoopModel:
        """Return a new model that has learned nothing."""
        model: LoopModel = self.interaction.fresh()
        return model

    def offer(self, model: LoopModel, event: Event) -> None:
        """Let `model` take in an `event` that puts an item on offer, changes it or withdraws it.

        Nothing is done in kinds of feedback whose models do not depend on which items are on offer. A failure of the
        learner is added to `notes`, not raised."""
        if told := self.interaction.on_item(model, event, self.catalogue):
            self.note(f"item {event.subject}: {told}; mend the learner and open the loop again")

    @property
    def folded(self) -> tuple[str, ...]:
        """the kinds of events besides feedback that the model depends on, so that their order among the feedback
        counts: "item" where learners learn about single items, "decision" in a loop with the setting `apprentice`; ()
        elsewhere"""
        return (*(("item",) if self.interaction.folds_items else ()), *(("decision",) if self._apprentice else ()))

    def others(self, after: int = 0, up_to: int | None = None) -> Iterator[Event]:
        """Yield the events besides feedback that models are made of, in order: after sequence number `after`, up to
        `up_to` (None: the end of the log).

        These are events of items, put on offer or withdrawn, if the models of this kind of feedback depend on them. In
        a loop with the setting `apprentice` they are also the decisions that were made while the caller's order served.
        """
        most, retractions = 2**62 if up_to is None else up_to, self.log.retractions(up_to)
        serves = first_promotion(self.log, retractions, most) or 2**62
        orders = self._apprentice and after < serves
        kinds = [*(["item"] if self.interaction.folds_items else []), *(["decision"] if orders else [])]
        for event in self.log.events(after, kinds) if kinds else ():
            if event.seq > most or (event.seq > serves and kinds == ["decision"]):
                return
            if event.kind == "item" or (event.seq < serves and event.seq not in retractions):
                yield event

    def imitate(self, model: LoopModel, event: Event) -> bool:
        """Let `model` learn to make the order of the decision in `event`; return whether there was anything to learn.

        Nothing is learned from decisions that the loop's own learners made. A failure of the learner is added to
        `notes`, not raised."""
        decision = self.decision(event)
        if decision.record.arm not in IMITATED or not decision.record.shown:
            return False
        try:
            return self.interaction.imitate(model, self.requests.context(decision))
        except Exception as error:  # whatever a learner of somebody's own raises
            told = f"{type(model.learner).__name__} failed to imitate it: {type(error).__name__}: {error}"
            self.note(f"decision {event.id}: {told}; mend the learner and open the loop again")
            return False

    def teach(self, model: LoopModel, event: Event, decision: LoggedDecision, feedback: FeedbackRecord) -> bool:
        """Let `model` learn from one piece of feedback; return whether there was anything to learn in it.

        `event` is the feedback's event, `feedback` its decoded record, `decision` the decision that it answers. `model`
        is changed in place; it may be another one than the loop's own. Raise what the learner raises."""
        context = self.requests.context(decision)
        extra = self.requests.extra(feedback, event.arrays, context, self.row_of, decision.arrays)
        return model.teach(context, feedback, extra, event.seq)

    def step(self, event: Event, decision: LoggedDecision, feedback: FeedbackRecord) -> Step:
        """Return a piece of feedback with its decision, and the arrays of both: all that a model needs to learn from
        it.

        `event` is the feedback's event in the log, `feedback` its decoded record, `decision` the decision that it
        answers."""
        context = self.requests.context(decision)
        extra = self.requests.extra(feedback, event.arrays, context, self.row_of, decision.arrays)
        return Step(event, decision, feedback, context, extra)

    def learn_one(self, model: LoopModel, event: Event, decision: LoggedDecision, feedback: FeedbackRecord) -> bool:
        """Let `model` learn from feedback as `teach` does, and count it; return whether there was anything to learn in
        it.

        If the learner fails, that is noted and False is returned. The feedback is then in `failed`, and the model,
        which may have changed half-way, has to be made again from the log."""
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
        moved = learned if before is None else self.interaction.predictor(model, decision.person) != before
        self.count(1, moved, learned)
        return learned

    def count(self, given: int, moved: int, learned: int) -> None:
        """Add to the counts of what the model was made of: `given` pieces of feedback, of which the model learned from
        `learned`, and `moved` changed what it predicts."""
        self._since_snapshot += learned
        self._since_mark += learned
        self.moves = Moves(self.moves.given + given, self.moves.moved + moved)

    def row_of(self, seq: int, candidate: int) -> Floats:
        """Return the features (1, N) of one candidate of the decision with sequence number `seq`; (0, N) if it is not
        in the log.

        `candidate` is its index among the candidates; N is the number of features that the learner sees, the caller's
        own score of a candidate (`prior`) included."""
        event = self.log.at(seq)
        if event is None:
            return np.zeros((0, self.learner.n_features))
        known = self.decision(event)
        return self.requests.context(known).x[candidate : candidate + 1]

    def fold(self, head: int, *, from_scratch: bool = False, sealed: bool = True) -> LoopModel:
        """Return a new model that has learned all feedback in the log up to sequence number `head`, in order.

        It begins from the newest copy of the model, in memory or in a snapshot, that holds no feedback undone since, or
        from nothing with `from_scratch`. What is in sealed segments is read from these, unless `sealed` is False: the
        model is the same. Events after `head`, which other processes append meanwhile, are left for
        later.
        """
        while True:
            model = self.fresh()
            self.moves, position = Moves(), 0
            if not from_scratch:
                position = self._start(model, head)
            failed = len(self.failed)
            if sealed:
                position = segments.learn(self, model, position, head)
                if len(self.failed) > failed:
                    continue
            for event, decision, feedback in self.steps([model], position, head):
                self.learn_one(model, event, decision, feedback)
                if len(self.failed) > failed:
                    break  # it may have stopped half-way: once more, without that lesson
            else:
                return model

    def _start(self, model: LoopModel, head: int) -> int:
        """Load the newest stored state up to event `head` that no undo has outdated into `model`, which has learned
        nothing.

        Return its position, a sequence number: it has learned the events up to there. It is 0 if there is no such
        state."""
        if self._marks:
            mark = self._marks[-1]
            model.shared, model.people, self.moves = copy_arrays(mark.shared), dict(mark.people), mark.moves
            return mark.position
        self._since_snapshot = 0
        position, moves = snapshots.restore(
            self.shelf, model, self._like(model), self.log, head, self.stamp(), self.note
        )
        self.moves = Moves(*moves)
        return position

    def _like(self, model: LoopModel) -> Any:
        """Return an example of the state that `model` keeps for each person, as a template for reading such states from
        a file."""
        return self.interaction.personal(model)

    def _mark(self) -> None:
        """Keep a copy of the model as it is now in memory (a `Mark`), and drop the oldest if there are too many."""
        self._marks = [
            *self._marks,
            Mark(self._head, copy_arrays(self._model.shared), dict(self._model.people), self.moves, self._others()),
        ][-MARKS:]
        self._since_mark = 0

    def before(self, model: LoopModel, version: int) -> int:
        """Load the newest stored state that is at most as new as `version` into `model`, which has learned nothing yet.

        Return its position, a sequence number: it has learned the events up to there. It is 0 if there is no such
        state.
        """
        with self.turn:  # what is kept comes and goes
            there = [mark for mark in self._marks if mark.position <= version]
            if there:
                model.shared, model.people = copy_arrays(there[-1].shared), dict(there[-1].people)
                return there[-1].position
            like = self._like(model)
            return snapshots.restore(self.shelf, model, like, self.log, version, self.stamp(), lambda _: None)[0]

    def _drop_marks(self, position: int) -> None:
        """Drop the states in memory that include the feedback with sequence number `position`."""
        self._marks = [mark for mark in self._marks if mark.position < position]

    def lessons(
        self, after: int = 0, up_to: int | None = None, retractions: Retractions | None = None
    ) -> Iterator[tuple[Event, LoggedDecision, FeedbackRecord]]:
        """Yield (event, decision that it answers, decoded feedback) of each piece of feedback that counts, in order.

        It begins after the event with sequence number `after` and ends with `up_to`, which is included; None is the end
        of the log. Left out is what `retractions` say, by default what was undone or rolled back by an event up to
        `up_to`."""
        retractions = self.log.retractions(up_to) if retractions is None else retractions
        for event, decided in self.log.lessons(after):
            if up_to is not None and event.seq > up_to:
                return
            if event.seq not in retractions:
                yield event, self.decision(decided), records.decode_feedback(event.payload)

    def steps(
        self,
        models: Sequence[LoopModel],
        after: int = 0,
        up_to: int | None = None,
        spans: Sequence[tuple[int, int]] | None = None,
    ) -> Iterator[tuple[Event, LoggedDecision, FeedbackRecord]]:
        """Yield (event, decision that it answers, decoded feedback) of each piece of feedback that counts, in order.

        The caller lets `models` learn from each. It begins after the event with sequence number `after` and ends with
        `up_to`, which is included; None is the end of the log. What was undone is left out. In kinds of feedback whose
        models depend on which items are on offer, such as ratings, `models` are told on the way, in the log's order, of
        each item that was put on offer or withdrawn. In a loop with the setting `apprentice` they learn on the way to
        make the orders of its decisions (`imitate`): model j those after event spans[j][0] up to spans[j][1], or all if
        `spans` is None."""
        if not (self._apprentice or self.interaction.folds_items):
            yield from self.lessons(after, up_to)
            return
        others = ((event, None, None) for event in self.others(after, up_to))
        for event, decision, feedback in merge(self.lessons(after, up_to), others, key=lambda step: step[0].seq):
            if decision is not None and feedback is not None:
                yield event, decision, feedback
            elif event.kind == "item":
                for model in models:
                    self.offer(model, event)
            else:
                for j, model in enumerate(models):
                    if spans is None or spans[j][0] < event.seq <= spans[j][1]:
                        self.imitate(model, event)

    def rebuild(self) -> None:
        """Make the model again from the log, without what was undone, and publish it."""
        self._stale = True
        retractions, served = self.log.retractions(), self.learner
        self._direct(retractions)
        self._followers = None
        self._marks = [mark for mark in self._marks if not retractions.changes(mark.position)]
        head, version = self.log.last(self.interaction.folds_items, self.imitates)
        model = self.fold(head)
        if self.learner is not served:  # a snapshot of what serves now is due
            self._since_snapshot = max(self._since_snapshot, self._every)
        self._retractions, self._head, self._version, self._model = retractions, head, version, model
        self._stale = False
        self._publish()

    def _publish(self) -> None:
        model = self._model
        shared, running = self.interaction.publish(model), self._follow()
        self._published = PublishedState(
            self._version, shared, model.people, self.interaction, model, self.named, running, self.imitates
        )

    @property
    def model(self) -> LoopModel:
        """the model, which learns in place; hold the lock `turn` while reading its state (`published` needs no lock)"""
        return self._model

    # ------------------------------------------------------------------------ what is derived

    def stamp(self) -> dict[str, Any]:
        """Return what a snapshot depends on besides the log, by name: learner, its version, Python, numpy, scipy,
        machine.

        A snapshot with another stamp is not used, and the model is made again from the log.
        """
        return snapshots.stamp(self.manifest, self.learner, self.learner_version)

    def snapshot(self) -> Place:
        """Write a snapshot of the model to the loop's folder or database and return where it is: a path, or the
        address.

        Raise OSError if it cannot be written, and IncompleteModel if the model lacks feedback that the learner failed
        on: a start from the snapshot would neither try that again nor report it. No other process can write meanwhile,
        so a person whom another process is forgetting is not in the snapshot."""
        with self.turn:
            self.catch_up()
            drawn, of = self._draw(), self._head
            with self.log.writing():
                if self._catch_up() != of:  # another process has written meanwhile
                    drawn = self._draw()
                path = snapshots.keep(self.shelf, self._head, drawn)
        self._since_snapshot = 0
        return path

    def _draw(self) -> Any:
        """Return a snapshot of the model as it is now, to be written. Raise IncompleteModel as `snapshot` does."""
        if left := sorted(seq for seq in self.failed if seq not in self._retractions):
            event = self.log.at(left[0])
            named = event.id if event is not None else left[0]
            raise IncompleteModel(f"the learner failed on feedback {named}: undo it, or mend the learner")
        stamped = self.stamp() | {"moves": list(self.moves)}
        return snapshots.draw(self.shelf, self._model, self._head, self.log, stamped, self._others())

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
                self._since_snapshot = 0  # it is not tried at every event from now on

    def forget_cached(self) -> None:
        """Drop the decisions, items and states of the model that are cached in memory."""
        self._decisions, self._held, self._marks = OrderedDict(), 0, []
        self.catalogue.look_again()

    def forget_derived(self) -> list[str]:
        """Remove the snapshots, caches and segments, which may hold events that were erased from the log.

        Return the names of files that cannot be removed."""
        self.shelf.clear()
        self.forget_cached()
        return segments.remove_unlisted(self.path, self.log) if isinstance(self.path, Path) else []

    def verify(self) -> list[str]:
        """Return what is wrong with the log and the model, a sentence each; [] if nothing is.

        The model is made again from the whole log, without segments, and has to be equal bit for bit."""
        with self.turn:
            self.catch_up()
            problems = self.log.problems()
            since = self._since_snapshot, self._since_mark, self.moves
            if not snapshots.same(self._model, self.fold(self._head, from_scratch=True, sealed=False)):
                problems.append("the model is not the fold of the log, bit for bit")
            self._since_snapshot, self._since_mark, self.moves = since
            return problems
