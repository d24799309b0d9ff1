"""What happened in a loop and what was made of it, to be read: the log, the items, the decisions, the learner that
serves, and the model as it was published last.

Reports, evaluations and explanations are functions of a `History`. Nothing in it writes to the log. The file is long
because the order in which a model learns from a log is said once, and here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from heapq import merge
from typing import Any

import numpy as np

from heedful.jit.kernel import Floats
from heedful.loop import records, snapshots
from heedful.loop.catalogue import Catalogue
from heedful.loop.decisions import Decisions
from heedful.loop.interactions.protocol import Interaction, Step, find_candidate
from heedful.loop.interactions.registry import interaction_of, learner_version
from heedful.loop.log import Event, Log, Retractions
from heedful.loop.model import Answered, LoopModel, Moves, View
from heedful.loop.packing import LoggedDecision
from heedful.loop.publication import PublishedState
from heedful.loop.records import FeedbackRecord
from heedful.loop.request import Requests
from heedful.loop.serving import (
    ExperimentRecord,
    Orders,
    orders,
    read_experiment,
    read_promotion,
)
from heedful.loop.settings import Manifest, built_learner, candidate_manifest, check_named, named_learners
from heedful.storage import Damaged, Place


class History:
    """The log of a loop with its items and decisions, the learner that serves, and the model as it was published last.

    Any number of threads may read it."""

    published: PublishedState
    """the state of the model that decisions are made from: as it was after the last commit (events are written in
    groups)"""

    def __init__(self, path: Place, log: Log, named: str | Sequence[str] | None) -> None:
        """Read the loop at `path`, a folder or an address in a database, whose log is `log`. No state is published yet.

        `named` is needed only if a learner of the loop is the user's own, a class in a Python file: "FILE.py:Class",
        such as "mine.py:Ranker", or several of them, for learners that are tried in an experiment or were promoted. The
        log names that file too, but opening a log runs no code that only the log names. None if all learners are
        heedful's. Raise LookupError if the learner that serves is the user's own and not named, and ValueError if the
        log is not that of a loop."""
        self.path, self.log = path, log
        self.notes: list[str] = []
        """warnings for the person who runs the loop, each once"""
        created = log.at(1)
        if created is None or created.kind != "loop":
            raise ValueError(f"{path}: expected a loop, got a log that does not begin with one")
        self._created = Manifest.from_json(created.payload)
        self.settings = self._created.settings
        self._named = named_learners(named)
        self._orders = orders(log, log.retractions())
        self._use(self._orders, built_learner(self._created, self._named))
        self.catalogue = Catalogue(log, self.manifest.encoding.size, self.interaction.splits_items)
        self.requests = Requests(self.manifest, self.catalogue, self.interaction)
        self.decisions = Decisions(log, self.catalogue)

    def note(self, told: str) -> None:
        """Add the warning `told` to `notes`, for the person who runs the loop, unless it is there already."""
        if told not in self.notes:
            self.notes.append(told)

    # ------------------------------------------------------------------------ who serves, who is tried

    def _use(self, said: Orders, founder: Any = None) -> None:
        """Let the learner serve that the newest promotion in the log names (`said`), or that of the manifest if there
        is none.

        `founder` is the learner of the loop's manifest, if it is made already. Raise LookupError if it is a learner of
        the user's own that was not named when the loop was opened."""
        if said.promoted is None:
            self.manifest, recorded = self._created, self._created.learner_version
            self.learner = built_learner(self._created, self._named) if founder is None else founder
        else:
            record = read_promotion(said.promoted.payload)
            recorded = record.learner_version
            self.manifest, self.learner = self._candidate(record.learner)
        self.interaction: Interaction[Any] = interaction_of(self.manifest, self.learner)
        """the kind of feedback of this loop, and all that differs between kinds, with the learner that serves"""
        self.learner_version = learner_version(self.learner, self.settings)
        if self.learner_version != recorded:
            told = "the learner's code has changed since the loop was made: the model is the log folded by today's code"
            self.note(told)
        self.named = f"{self.manifest.learner}@{self.learner_version}"
        """the learner that serves with its version, as decisions name it: "NAME@VERSION\""""

    def look_who_serves(self, retractions: Retractions) -> bool:
        """Read from the log which learner serves and which is tried in an experiment; return whether another one serves
        than before.

        `retractions` says which events are not in effect. Raise Damaged if that learner cannot be made here."""
        before, now = self._orders, orders(self.log, retractions)
        changed = before.promoted != now.promoted
        if changed:
            try:
                self._use(now)
            except LookupError as error:  # another process, which has its file, promoted it
                raise Damaged(f"{self.path}: {error}") from None
        self._orders = now
        if changed:
            self.requests.manifest, self.requests.interaction = self.manifest, self.interaction
        return changed

    def _candidate(self, spec: str) -> tuple[Manifest, Any]:
        """Return (the loop's manifest with the learner `spec` in place of its own, that learner)."""
        if spec == self._created.learner:
            return self._created, built_learner(self._created, self._named)
        return candidate_manifest(self._created, spec, self._named)

    def candidate(self, spec: str) -> Interaction[Any]:
        """Return the interaction (the loop's kind of feedback) with another learner in place of the one that serves.

        `spec` is the learner's name with parameters ("perceptron:rate=0.2"). Raise ValueError if there is no such
        learner, if it does not fit the loop, or if it is one of the user's own ("FILE.py:Class") whose file was not
        named when the loop was opened."""
        self.check_named(spec)
        find_candidate(self.interaction, spec)
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
            check_named(spec, self._created.learner, *self._named)
        except LookupError as error:
            raise ValueError(str(error)) from None

    def interaction_at(self, version: int) -> Interaction[Any]:
        """Return the interaction of this loop with the learner that served at `version`, a sequence number: that of the
        newest promotion then, or the one that the loop was created with.

        Raise ValueError if it is one of the user's own whose file was not named when the loop was opened."""
        then = orders(self.log, self.log.retractions(version), version).promoted
        spec = self._created.learner if then is None else read_promotion(then.payload).learner
        return self.interaction if spec == self.manifest.learner else self.candidate(spec)

    @property
    def promoted(self) -> Event | None:
        """the event of the promotion that names the learner that serves; None if the loop was made with it"""
        return self._orders.promoted

    @property
    def experiment(self) -> tuple[Event, ExperimentRecord] | None:
        """the experiment that runs, as (its event, its settings); None if there is none"""
        event = self._orders.running
        return None if event is None else (event, read_experiment(event.payload))

    # ------------------------------------------------------------------------ the model as published

    @property
    def model(self) -> LoopModel:
        """the model, which learns in place; hold the lock `Projection.turn` while reading its state (`published` needs
        no lock)"""
        return self.published.model

    @property
    def moves(self) -> Moves:
        """how much feedback the model is made of, and how much of it changed predictions"""
        return self.published.moves

    @property
    def failed(self) -> Mapping[int, str]:
        """feedback that the learner failed on and the model leaves out: sequence number -> what went wrong, in words"""
        return self.published.failed

    def reading(self, person: str | None) -> tuple[PublishedState, View[Any]]:
        """Return (published state, the same for `person`, None for nobody in particular)."""
        state = self.published
        return state, state.view(person)

    def reading_of(self, x: Any, person: str | None) -> tuple[PublishedState, View[Any]]:
        """Return (published state, the same for `person`), with which to rank the candidates `x`.

        `x` are features (m, N) of m candidates with N features each, or the numbers of m items (m,)."""
        return self.reading(person)

    # ------------------------------------------------------------------------ decisions

    def find_decision(self, id: str) -> LoggedDecision | None:
        """Return the decision with this `id`, from memory or the log; None if there is none."""
        return self.decisions.find(id)

    def decision(self, event: Event) -> LoggedDecision:
        """Return the decision in an `event` of kind "decision", with its candidates by name as they were at that time.

        Raise Damaged if it is not as it was written."""
        return self.decisions.read(event)

    def row_of(self, seq: int, candidate: int) -> Floats:
        """Return the features (1, N) of one candidate of the decision with sequence number `seq`; (0, N) if it is not
        in the log.

        `candidate` is its index among the candidates; N is the number of features that the learner sees, the caller's
        own score of a candidate (`prior`) included."""
        event = self.log.at(seq)
        if event is None:
            return np.zeros((0, self.learner.n_features))
        return self.requests.context(self.decision(event)).x[candidate : candidate + 1]

    # ------------------------------------------------------------------------ what models are made of

    def fresh(self) -> LoopModel:
        """Return a new model that has learned nothing."""
        model: LoopModel = self.interaction.fresh()
        return model

    def step(self, event: Event, decision: LoggedDecision, feedback: FeedbackRecord) -> Step:
        """Return a piece of feedback with its decision, and the arrays of both: all that a model needs to learn from
        it.

        `event` is the feedback's event in the log, `feedback` its decoded record, `decision` the decision that it
        answers."""
        context = self.requests.context(decision)
        extra = self.requests.extra(feedback, event.arrays, context, self.row_of, decision.arrays)
        return Step(event, decision, feedback, context, extra)

    def teach(self, model: LoopModel, event: Event, decision: LoggedDecision, feedback: FeedbackRecord) -> bool:
        """Let `model` learn from one piece of feedback; return whether there was anything to learn in it.

        `event` is the feedback's event, `feedback` its decoded record, `decision` the decision that it answers. `model`
        is changed in place; it may be another one than the loop's own. Raise what the learner raises."""
        step = self.step(event, decision, feedback)
        return model.teach(step.context, feedback, step.extra, event.seq)

    def offer(self, model: Any, event: Event) -> None:
        """Let `model`, a `LoopModel` or a `Batch` of one, take in an `event` that puts an item on offer, changes it or
        withdraws it.

        Nothing is done in kinds of feedback whose models do not depend on which items are on offer. A failure of the
        learner is added to `notes`, not raised."""
        if told := model.on_item(event, self.catalogue):
            self.note(f"item {event.subject}: {told}; mend the learner and open the loop again")

    def lessons(
        self, after: int = 0, up_to: int | None = None, retractions: Retractions | None = None
    ) -> Iterator[Answered]:
        """Yield (event, decision that it answers, decoded feedback) of each piece of feedback that counts, in order.

        It begins after the event with sequence number `after` and ends with `up_to`, which is included; None is the end
        of the log. Left out is what `retractions` say, by default what was undone or rolled back by an event up to
        `up_to`."""
        for event, decided in self._answers(after, up_to, retractions):
            yield event, self.decision(decided), records.decode_feedback(event.payload)

    def _answers(self, after: int, up_to: int | None, retractions: Retractions | None) -> Iterator[tuple[Event, Event]]:
        """Yield (event, event of the decision that it answers) of what `lessons` yields, as the log has them."""
        retractions = self.log.retractions(up_to) if retractions is None else retractions
        for event, decided in self.log.lessons(after):
            if up_to is not None and event.seq > up_to:
                return
            if event.seq not in retractions:
                yield event, decided

    def item_events(self, after: int = 0, up_to: int | None = None) -> Iterator[Event]:
        """Yield the events of items, put on offer or withdrawn, that models are made of besides feedback, in order:
        after sequence number `after`, up to `up_to` (None: the end of the log).

        There are none in kinds of feedback whose models do not depend on which items are on offer."""
        if self.interaction.by_number:
            for event in self.log.events(after, ["item"]):
                if up_to is not None and event.seq > up_to:
                    return
                yield event

    def steps(
        self,
        models: Sequence[Any],
        after: int = 0,
        up_to: int | None = None,
        retractions: Retractions | None = None,
    ) -> Iterator[Answered]:
        """Yield (event, decision that it answers, decoded feedback) of each piece of feedback that counts, in order.

        The caller lets `models` (each a `LoopModel`, or a `Batch` of one) learn from each. It begins after the event
        with sequence number `after` and ends with `up_to`, which is included; None is the end of the log. Left out is
        what `retractions` say, by default what was undone by an event up to `up_to`. In kinds of feedback whose models
        depend on which items are on offer, such as ratings, `models` are told on the way, in the log's order, of each
        item that was put on offer or withdrawn."""
        answers: Iterator[tuple[Event, Event | None]] = self._answers(after, up_to, retractions)
        items = ((event, None) for event in self.item_events(after, up_to))
        for event, decided in merge(answers, items, key=lambda step: step[0].seq):
            if decided is not None:
                yield event, self.decision(decided), records.decode_feedback(event.payload)
            else:
                self.catalogue.keep(event)
                for model in models:
                    self.offer(model, event)

    # ------------------------------------------------------------------------ what was stored

    def stamp(self) -> dict[str, Any]:
        """Return what a snapshot depends on besides the log, by name: learner, its version, Python, numpy, scipy,
        machine.

        A snapshot with another stamp is not used, and the model is made again from the log.
        """
        return snapshots.stamp(self.interaction)

    def before(self, model: LoopModel, version: int) -> int:
        """Load the newest stored state that is at most as new as `version` into `model`, which has learned nothing yet.

        Return its position, a sequence number: it has learned the events up to there. It is 0 if there is no such
        state.
        """
        shelf = snapshots.shelf_of(self.log)
        return snapshots.restore(shelf, model, self.log, version, self.stamp(), lambda _: None)[0]
