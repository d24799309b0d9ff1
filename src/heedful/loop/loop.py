"""A loop: a learner that is taught in production, its log, and the model that it makes of the log.

    decide -> show -> feedback -> decide better; undo, roll back, forget, evaluate, explain

The log is the truth (`heedful.loop.log`). The model is what the learner makes of the feedback in the log, one piece
after another in the log's order (a fold), without what was undone. Every change is written first: a group of events is
committed, then learned, then answered. Readers decide from the state that was published after the last group. The file
is long because `Loop` is the public interface, one method for each thing that can be asked of a loop, nearly all of
them with the work elsewhere.
"""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import numpy.typing as npt

from heedful.core.validation import check_between, check_count, describe
from heedful.core.wording import count, spelling
from heedful.data.files import find_unfinished
from heedful.data.frames import Frame
from heedful.features.encoding import UNSEEN, Encoding
from heedful.loop import records, segments, snapshots
from heedful.loop.decide import Decider, DecisionRequest
from heedful.loop.feedback import FeedbackReader, UnknownDecision
from heedful.loop.interactions.registry import default_learner, interaction_type, learner_version
from heedful.loop.log import Event, Log, now, rollback_event
from heedful.loop.model import Person
from heedful.loop.movement import describe_unmoved
from heedful.loop.projection import AGAIN, PendingEvent, Projection, PublishedState
from heedful.loop.request import Request, check_rows, encode_rows
from heedful.loop.segments import Sealed
from heedful.loop.serving import (
    CALLER,
    ExperimentRecord,
    PromotionRecord,
    check_can_start,
    check_interleaves,
    payload_if_repeated,
    read_promotion,
)
from heedful.loop.settings import Manifest, Settings, built_learner, named_learners
from heedful.results.answers import Answer, Decision, Forgotten, Put, RolledBack
from heedful.storage import Address, Place, place_of

if TYPE_CHECKING:
    from heedful.loop.interactions.protocol import ItemPrediction
    from heedful.loop.style import Describe
    from heedful.results.answers import Ranking
    from heedful.results.board import Board
    from heedful.results.evaluation import Evaluation
    from heedful.results.experiment import Experiment, PlannedExperiment, Promoted, Promotion
    from heedful.results.explanation import Explanation, Why
    from heedful.results.health import Health
    from heedful.results.history import LessonTold
    from heedful.results.report import Apprentice, Report
    from heedful.results.style import Style

Array = npt.NDArray[np.float64]
T = TypeVar("T")


class Unerased(TimeoutError):
    """Raised by `Loop.forget`: the person is forgotten, but their bytes are still on the disk, as another process is
    reading.

    `forgotten` holds what `Loop.forget` would have returned."""

    def __init__(self, told: str, forgotten: Forgotten) -> None:
        super().__init__(told)
        self.forgotten = forgotten


class Loop:
    """A learner taught in production, with a log that keeps every acknowledged event.

    >>> loop = Loop.create("cars.heedful", encoding=infer(rows), items=rows)
    >>> d = loop.decide(["a", "b", "c"], person="p1")
    >>> loop.feedback(d.id, clicks=["b"])

    Any number of threads may use a loop, and several processes may have it open. Close it, or use it in `with`.
    """

    # ------------------------------------------------------------------------ making and opening

    @classmethod
    def create(
        cls,
        path: str | Path | Address,
        *,
        encoding: Encoding | None = None,
        items: Iterable[Mapping[str, Any]] | Frame = (),
        learner: str | None = None,
        settings: Settings | None = None,
        context: Encoding | None = None,
        crosses: Sequence[tuple[str, str]] = (),
        query_features: Encoding | None = None,
    ) -> Loop:
        """Create a loop in the new folder `path`, with `items` on offer: one mapping for each item, or a data frame.

        The path "postgresql://HOST/DATABASE#NAME" creates the loop NAME in a PostgreSQL database, with heedful's tables
        if it has none.

        `encoding` turns the attributes of an item into features (`heedful.infer` finds one), `context` those of a
        request; `crosses` are pairs (context column, item column) whose products are features too. `query_features`
        declares what a request says of each candidate, such as a search score (`heedful.declare` makes it): candidates
        are then {"id": ..., "bm25": 12.7}, where the id names an item on offer. `learner` names the learner, with
        parameters: "second-order:epsilon=0.1", "averaged-prank:n_ranks=5", "FILE.py:Class". The kind of feedback
        (corrections and clicks, grades, ratings, choices or answers of models) follows from the settings, such as
        `Settings(ratings=(1, 5))`, or else from the learner; each kind has a default learner. A kind whose learners
        know items by number, not by features, needs no `encoding`. All of this is fixed for as long as the loop exists.

        Raise FileExistsError if the folder exists, and ValueError, naming the field, if something makes no sense;
        nothing is created then.
        """
        place = place_of(path)
        settings = Settings() if settings is None else settings
        rows = check_rows("items", items)
        if isinstance(settings, Settings):
            learner = default_learner(settings, context) if learner is None else learner
            if encoding is None and isinstance(learner, str):
                kind = interaction_type(learner, settings)
                if (arranged := kind.arrange(rows, None, context)) is not None:
                    if crosses:
                        raise ValueError(
                            f"crosses: expected none in {kind.loop}, which crosses columns itself, got some"
                        )
                    encoding, context, crosses = arranged
                elif query_features is not None or kind.by_number:
                    encoding = UNSEEN
        manifest = Manifest.of(learner, encoding, context, crosses, settings, query_features)
        encoding = manifest.encoding
        interaction_type(manifest.learner, manifest.settings).check_items(manifest, rows)
        encoded = encode_rows(encoding, rows, Counter())  # before anything is written
        made = built_learner(manifest, named_learners(learner))
        if not isinstance(place, Address):
            snapshots.make_folder(place)
        log = None
        try:
            log = Log(place if isinstance(place, Address) else place / snapshots.LOG, create=True)
            founded = Event(
                1, "loop", "loop", now(), None, None, 0, manifest.to_json(learner_version(made, manifest.settings))
            )
            with log.writing():
                log.append([founded])
            log.close()
            loop = cls.open(place, learner=learner)
            try:
                loop._put(rows, encoded)
            except BaseException:
                loop.close()
                raise
        except BaseException:
            if not isinstance(place, Address):
                snapshots.remove_folder(place)
            elif log is not None:
                log.store.drop()
            raise
        return loop

    @classmethod
    def open(
        cls,
        path: str | Path | Address,
        *,
        learner: str | Sequence[str] | None = None,
        read_only: bool = False,
    ) -> Loop:
        """Open the loop in the folder `path`, or at "postgresql://HOST/DATABASE#NAME" in a PostgreSQL database.

        With `read_only`, and where nothing can be written, nothing is changed: what would write raises PermissionError.

        `learner` is needed only if a learner of the loop is your own, a class in a Python file: its name
        "FILE.py:Class", such as "mine.py:Ranker", or several: that of the loop, those to be tried in an experiment, and
        one that was promoted. They have to be named each time, as a log does not say what code to run. Raise
        LookupError if the one that serves is your own and not named, FileNotFoundError if there is no loop, and
        ValueError if the log is damaged."""
        return cls(path, learner, read_only)

    def __init__(
        self, path: str | Path | Address, learner: str | Sequence[str] | None = None, read_only: bool = False
    ) -> None:
        self.path = place_of(path)
        self.rest_on(Projection(self.path, learner, read_only))

    def rest_on(self, projection: Projection) -> None:
        """Replace the log and model behind this loop: from now on it reads and writes through `projection`.

        It is used for a dry run, with a projection that writes nothing to the disk. The earlier projection is not
        closed."""
        self.projection = projection
        self.settings = projection.settings
        self.decider, self.feedback_reader = Decider(projection), FeedbackReader(projection)

    def close(self) -> None:
        """Write a snapshot, if anything was written to the log and learned since the last one, and close the log."""
        self.projection.close()

    def _repr_html_(self) -> str:
        from heedful.core.notebooks import table

        weights = sorted(self.weights.items(), key=lambda each: -abs(each[1]))
        told = (
            f"learner {self.manifest.learner}; {count(len(self.items), 'item')} on offer; model version {self.version}"
        )
        return table(f"Loop {self.path}", ["feature", "weight"], weights, [told, *self.notes])

    def __enter__(self) -> Loop:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def version(self) -> int:
        """the version of the model: the sequence number of the last event that it was made of"""
        return self.projection.published.version

    @property
    def learner(self) -> Any:
        """the learner that serves: the one that the loop was created with, or the one that was promoted last"""
        return self.projection.learner

    @property
    def manifest(self) -> Manifest:
        """what the loop was created with: learner, encodings and settings; after a promotion, with the learner that
        serves now"""
        return self.projection.manifest

    @property
    def facts(self) -> dict[str, Any]:
        """what only a loop of this kind of feedback has, by name as JSON: {"grades": 5} for grades 1 to 5, {"ratings":
        [1, 5]} for ratings from 1 to 5, {"choices": "best"} for choices to find the best item; {} for corrections and
        clicks"""
        return self.projection.interaction.facts()

    @property
    def feature_names(self) -> list[str]:
        """the names of the N features as the learner sees them; in a loop that orders candidates by features, the last
        is the caller's score"""
        return self.projection.interaction.names

    @property
    def notes(self) -> list[str]:
        """warnings for the person who runs the loop, such as a snapshot that could not be used, code that has changed
        since the loop was made, or feedback that the learner failed on"""
        return self.projection.notes

    @property
    def unknown(self) -> Counter[str]:
        """how often values came that the encoding has no category for, by "column=value", since the loop was opened"""
        return self.projection.requests.unknown

    @property
    def caveats(self) -> list[str]:
        """sentences that warn of what the loop cannot do as it is: what its settings make impossible to measure,
        weights that are not finite any more (`overflown`), feedback that changes no prediction (`unmoved`); [] if
        nothing is wrong"""
        found = [*self.projection.interaction.caveats(), self.overflown, self.unmoved]
        return [told for told in found if told]

    @property
    def unmoved(self) -> str:
        """sentences saying that no feedback so far has changed a prediction, why, and what feedback would; "" if some
        has, or if there are fewer than 20 pieces of feedback"""
        return describe_unmoved(self.projection)

    @property
    def overflown(self) -> str:
        """a sentence saying that the learner's numbers are not finite or too large to predict with, and what to do; ""
        if they are fine"""
        state = self.projection.published
        return state.interaction.describe_overflow(state.model, state.shared)

    # ------------------------------------------------------------------------ items

    def put_items(self, items: Iterable[Mapping[str, object]] | Frame) -> Put:
        """Put items on offer, new or changed, one mapping of attributes each or a data frame, and return how many were
        put, and which of them had other attributes before.

        An item that is on offer with the same attributes is not put again. Raise ValueError, naming the item and the
        field, if one cannot be encoded; none is put then.
        """
        rows = check_rows("items", items)
        self.projection.catch_up()  # what another process put is what these change
        self.projection.interaction.check_items(self.manifest, rows)
        return self._put(rows, encode_rows(self.manifest.encoding, rows, self.unknown))

    def _put(self, rows: Sequence[Mapping[str, object]], encoded: Any) -> Put:
        drafts, latest, before = [], dict[str, str](), dict[str, int]()
        offered = self.projection.catalogue.current
        changed = dict[str, None]()
        for i, row in enumerate(rows):
            try:
                name = records.check_id(self.manifest.encoding.identifier or "id", self.manifest.encoding.name_of(row))
                payload = self.manifest.item_payload(row)
            except ValueError as error:
                raise ValueError(f"row {i + 1}: {error}") from None
            arrays = encoded[i].astype("<f4").tobytes()
            # The digest makes the id: the same version of an item is the same event, whichever caller sends it again.
            digest = hashlib.blake2b(f"{name}\0{payload}".encode() + arrays, digest_size=12).hexdigest()
            if self._is_current(name, latest.get(name), digest):
                continue
            if name in offered:
                changed[name] = None
            latest[name] = digest
            # What it follows is in the id as well: an item may change, and change back.
            before[name] = (before[name] if name in before else self.projection.log.newest("item", name)) + 1
            event_id = f"{digest}-{before[name]}"
            drafts.append(PendingEvent(Event(0, "item", event_id, now(), name, None, 0, payload, arrays)))
        self.projection.submit(drafts)
        return Put(len(drafts), tuple(changed))

    def _is_current(self, name: str, pending: str | None, digest: str) -> bool:
        if pending is not None:
            return pending == digest
        version = self.projection.catalogue.current.get(name)
        event = self.projection.log.at(version) if version is not None else None
        return event is not None and event.id.startswith(f"{digest}-")

    def withdraw(self, name: str | int) -> bool:
        """Take the item `name` off offer, so that it is no candidate any more; return whether it was on offer.

        What was learned about its features stays. Where ratings are learned by item, what was learned about the item is
        removed, and starts from nothing if the item is put back.
        """
        self.projection.catch_up()
        version = self.projection.catalogue.current.get(records.check_id("name", name))
        if version is None:
            return False
        self.projection.submit([PendingEvent(Event(0, "item", f"withdraw-{version}", now(), str(name), None, 0, "{}"))])
        return True

    @property
    def items(self) -> list[str]:
        """the names of the items on offer, in the order in which they were put on offer"""
        return [name for name, _ in self.projection.catalogue.on_offer()]

    # ------------------------------------------------------------------------ deciding

    def decide(
        self,
        candidates: Sequence[str | Mapping[str, object]] | npt.NDArray[Any] | None = None,
        *,
        person: str | None = None,
        context: Mapping[str, object] | None = None,
        prior: Mapping[str, float] | Sequence[float] | None = None,
        show: int | None = None,
        id: str | None = None,
        deferred: bool = False,
        repeats: bool | None = None,
        strict: bool | None = None,
        after: str | None = None,
    ) -> Decision:
        """Return what to show, best first. The decision is logged before it is returned, with the probability of
        showing just that list.

        `candidates` are names of items on offer (None: all), mappings with attributes of their own, or an array of
        features (m, N) of m candidates with the N features of the loop's encoding, which are then called "0", "1", ...;
        they come in the caller's order, which is shown until something was learned. `prior` is the caller's own score,
        by name or in the order of the candidates; `show` is how many will be seen. `person` is whom the list is for,
        `context` describes the request, in the columns of the loop's encoding of contexts. The same `id` again returns
        the same decision. A `deferred` decision counts as shown only once it is activated. The field `predicted` holds
        the prediction for each item shown. In kinds of feedback whose learners know items by number (ratings,
        comparisons), candidates are names, and what the person has rated or compared already is left out unless
        `repeats` is true (None: the loop's setting). docs/loops.md says how many are shown, and where, if `show` is
        None.

        `after` is the id of an earlier decision for the same person, if this is the next page of that list: what it and
        the pages before it showed is left out, and the list goes on as it began, in the caller's order, drawn at random
        or drafted by two learners. A page after the last one is empty.

        A request is never refused for its items: one that is not on offer keeps the place that `prior` gives it, or
        comes last, and is reported in `unknown`; a name that comes twice counts once; no candidates make an empty list.
        With `strict` (None: the loop's setting) these are refused. Hits of a search engine, {"_id": ..., "_score": ...,
        "_source": {...}}, count as names with the engine's scores as `prior`, or as mappings if none of them is on
        offer.

        Raise ValueError, naming the field, on bad input, and LookupError for a decision that was forgotten or, if
        strict, for an item that is not on offer.
        """
        asked = self._reread(
            lambda looked: self.decider.read(
                candidates,
                person=person,
                context=context,
                prior=prior,
                show=show,
                id=id,
                deferred=deferred,
                repeats=repeats,
                strict=strict,
                after=after,
                looked=looked,
            )
        )
        while isinstance(asked, DecisionRequest):
            draft = self.decider.propose(asked)
            [answer] = self.projection.submit([draft])
            if answer.reason != AGAIN:
                return self.decider.decision_of(draft, answer)
        return asked

    def rank(
        self,
        candidates: Sequence[str | Mapping[str, object]] | npt.NDArray[Any] | None = None,
        *,
        person: str | None = None,
        context: Mapping[str, object] | None = None,
        prior: Mapping[str, float] | Sequence[float] | None = None,
        strict: bool | None = None,
    ) -> tuple[str, ...]:
        """Return the names of all candidates, best first by the current model: the order that `decide` shows if it
        neither draws at random nor shows a control list (the caller's own order).

        Nothing is drawn or logged, and the report is unaffected: use it for previews and offline evaluation. Feedback
        needs a decision, made by `decide` or `record`. The arguments and errors are those of `decide`; items that the
        person has answered already are included. A learner without predictions keeps the order of the candidates. In a
        loop of comparisons, `standing` gives the uncertainty, too.
        """
        return self.ranking(candidates, person=person, context=context, prior=prior, strict=strict).ranking

    def ranking(
        self,
        candidates: object = None,
        *,
        person: object = None,
        context: object = None,
        prior: object = None,
        strict: bool | None = None,
    ) -> Ranking:
        """Return what `rank` returns for the same arguments, with the version of the model and the candidates not on
        offer."""
        request, state, own = self._look(candidates, person, context, prior, strict)
        from heedful.loop.ranking import ranking

        return ranking(state, own, request)

    def predict(
        self,
        candidates: Sequence[str | Mapping[str, object]] | npt.NDArray[Any] | None = None,
        *,
        person: str | None = None,
        context: Mapping[str, object] | None = None,
        prior: Mapping[str, float] | Sequence[float] | None = None,
    ) -> dict[str, ItemPrediction]:
        """Return the model's prediction for each candidate, by name, best first: a grade, a rating or a probability of
        being chosen, with its standard deviation where the learner has one.

        The arguments are those of `decide`. A decision that shows these candidates has the same values in `predicted`,
        rounded. Nothing is logged. Raise ValueError if this kind of loop, or its learner, predicts nothing.
        """
        request, state, own = self._look(candidates, person, context, prior)
        interaction, model = state.interaction, state.model
        found = interaction.predict(model, state.shared, own, request.x)
        if found is None:
            raise ValueError(f"predict: expected a loop that predicts something, got one of {self.manifest.learner}")
        return {request.called[j]: found[j] for j in interaction.order(model, state.shared, own, request.x).tolist()}

    def standing(
        self, person: str | None = None, *, people: Sequence[str] | None = None, without: Sequence[str] = ()
    ) -> Board:
        """Return the ranking of all items in a loop of comparisons, with its uncertainty, whether that is small enough
        to stop asking, and about how many questions are left.

        It is for one `person`, for several `people` together, or for everybody if neither is given; the answers of the
        people in `without` are left out. Nothing is logged. Raise ValueError in a loop of another kind, with fewer than
        two items on offer, or if somebody in `without` has not answered.
        """
        person = None if person is None else records.check_id("person", person)
        for field, given in (("people", people is not None), ("without", bool(without))):
            if person is not None and given:
                raise ValueError(f"{field}: expected none with a person, got some")
        self.projection.look()
        if without:
            answered = list(self.projection.reading(None)[0].people.copy())
            if strange := [name for name in without if name not in answered]:
                raise ValueError(f"without: expected people who answered, got {describe(strange[0])}")
            people = [name for name in (answered if people is None else people) if name not in without]
        return self.projection.interaction.standing(self.projection, person, people)

    def _look(
        self, candidates: object, person: object, context: object, prior: object, strict: bool | None = True
    ) -> tuple[Request, PublishedState, Person | None]:
        """Return (request, published state, the person's own state or None) for a question that is answered without
        logging it.

        The arguments are those of `decide`."""
        person = None if person is None else records.check_id("person", person)
        request = self._reread(lambda looked: self.decider.parse(candidates, context, prior, None, strict, looked))
        return request, *self.projection.reading_of(request.x, person)

    def _reread(self, read: Callable[[bool], T]) -> T:
        """Return `read(False)`; if that raises LookupError, take in what other processes wrote to the log and return
        `read(True)`.

        The argument of `read` says whether that was taken in."""
        try:
            return read(False)
        except LookupError:
            self.projection.catch_up()
            return read(True)

    def record(
        self,
        candidates: Sequence[str | Mapping[str, object]],
        shown: Sequence[str],
        *,
        id: str,
        person: str | None = None,
        context: Mapping[str, object] | None = None,
        prior: Mapping[str, float] | Sequence[float] | None = None,
        probability: float | None = None,
        time: int | str | None = None,
        strict: bool | None = None,
    ) -> Decision:
        """Log a decision that another system made, so that feedback on it can be learned from, and return it.

        `candidates`, `person`, `context` and `prior` are those of `decide`; `shown` are the names of the candidates
        that were shown, best first. `id` identifies the decision: sent again, it is logged once. `probability` is that
        of showing just this list, above 0 and up to 1, None if it is unknown; `time` is when it was shown, in
        microseconds since 1970 or as a text such as 2026-01-31T12:00:00Z, None for now. Items that are not on offer are
        noted as unknown or, if `strict`, refused as in `decide`. Raise ValueError, naming the field, on bad input.
        """
        draft = self._reread(
            lambda looked: self.decider.read_record(
                candidates,
                shown,
                id=id,
                person=person,
                context=context,
                prior=prior,
                probability=probability,
                time=time,
                strict=strict,
                looked=looked,
            )
        )
        [answer] = self.projection.submit([draft])
        return self.decider.decision_of(draft, answer, dated=time is not None)

    def activate(self, decision: str, *, time: int | str | None = None) -> Answer:
        """Note in the log that a deferred decision was shown, at `time` (None: now), and return what became of that
        event.

        `decision` is its id; `time` is in microseconds since 1970, or a text such as 2026-01-31T12:00:00Z. Only then is
        feedback on the decision taken. An id that is not in the log is answered with `rejected`."""
        id = records.check_id("decision", decision)
        known = self.projection.find_decision(id)
        if known is None:
            return self.feedback_reader.reject_unknown(id, "decision", id)
        when = now() if time is None else records.check_time("time", time)
        [answer] = self.projection.submit(
            [PendingEvent(Event(0, "activate", id, when, None, known.seq, self.version, "{}"))]
        )
        return answer

    # ------------------------------------------------------------------------ feedback

    def feedback(
        self, decision: str | Mapping[str, Any], *, id: str | None = None, time: int | str | None = None, **form: Any
    ) -> Answer:
        """Learn from what a person answered to a decision, in one of the forms of docs/feedback.md.

        `decision` is the id of the decision, and the form is one of `clicks=["b"]`, `better=["b", "a"]`, `edit="..."`,
        `thumb="up"`, `action="buy", item="b"`, `rating={"b": 4}`, `grade={"b": 2}`,
        `actions={"b": "buy", "c": ["view"]}`, `choice="first"` and `none=True`; or `decision` is a mapping with all
        these fields. Each kind of loop takes some forms; another is answered with `rejected` and what to send instead.
        `id` is the caller's event id: sent again it counts once. `time` is when the answer was given, in microseconds
        since 1970 or a text such as 2026-01-31T12:00:00Z (None: now). The call returns once the feedback is on the disk
        and learned.

        Raise ValueError, naming the field, if it is no feedback. Feedback that does not fit what was shown is answered
        with `rejected` and the reason. Neither changes anything.
        """
        if isinstance(decision, Mapping):  # the event as one object, as in the JSON lines
            form = {**decision, **form}
            decision, id, time = form.pop("decision", None), form.pop("id", id), form.pop("time", time)
        [outcome] = self._submit([self.feedback_reader.read(decision, id, time, form)])
        return outcome

    def feedback_many(self, events: Iterable[Mapping[str, object]]) -> list[Answer]:
        """Learn from many events, {"decision": ..., "id": ..., "clicks": [...]} each, in one commit; return the answers
        in order.

        An event that is no feedback, or does not fit its decision, is answered with `rejected` and the reason; the
        others are taken. Raise ValueError if `events` is not a sequence of objects.
        """
        return self._submit(self.feedback_reader.read_many(events))

    def _submit(self, drafts: Sequence[PendingEvent | Answer | UnknownDecision]) -> list[Answer]:
        good = [draft for draft in drafts if isinstance(draft, PendingEvent)]
        answers = iter(self.projection.submit(good) if good else ())
        return [self._answer(draft, answers) for draft in drafts]

    def _answer(self, draft: PendingEvent | Answer | UnknownDecision, answers: Iterator[Answer]) -> Answer:
        if isinstance(draft, UnknownDecision):
            return self.feedback_reader.reject_unknown(draft.event, "decision", draft.decision)
        return next(answers) if isinstance(draft, PendingEvent) else draft

    # ------------------------------------------------------------------------ undoing, forgetting

    def undo(self, event: str, *, id: str | None = None) -> Answer:
        """Take back the feedback with the id `event`: the model becomes the one that never saw it, bit for bit.

        `event` may also be the id of a correction by hand (`correct_style`). `id` is the id of the undo itself: sent
        again it counts once. Return what became of the undo; one of feedback that is not in the log is rejected, with
        the reason."""
        event = records.check_id("event", event)
        undo_id = f"undo-{event}" if id is None else records.check_id("id", id)
        if len(undo_id) > records.LONGEST_ID:
            undo_id = f"undo-{hashlib.blake2b(event.encode(), digest_size=16).hexdigest()}"
        target = self.projection.log.find("feedback", event) or self.projection.log.find("style", event)
        if target is None:
            return self.feedback_reader.reject_unknown(undo_id, "feedback", event)
        while id is None and (end := self.projection.log.retracted_by(undo_id)):
            undo_id = f"undo-{target.seq}-after-{end}"  # a rollback left the undo of that name out
        draft = PendingEvent(Event(0, "undo", undo_id, now(), None, target.seq, self.version, "{}"))
        [answer] = self.projection.submit([draft])
        return answer

    def rollback(self, to: int, *, id: str | None = None, reason: str = "") -> RolledBack:
        """Go back to version `to` of the model, in one event: from now on the model leaves out all feedback, undos and
        rollbacks after that version.

        The model becomes the one of that version, bit for bit, and learns on from there. Nothing is deleted, so the
        version just before the rollback can be gone back to in the same way. People who were forgotten since stay
        forgotten, and items on offer stay as they are. `id` is the caller's event id: sent again it counts once;
        `reason` is kept in the log. Raise ValueError, naming the field, if there has been no such version.
        """
        event_id = records.new_id() if id is None else records.check_id("id", id)
        check_count("to", to)
        records.check_text("reason", reason, 1000)
        projection = self.projection
        with projection.turn:
            projection.catch_up()
            if to > projection.log.last()[0]:
                raise ValueError(f"to: expected a version from 1 to {self.version}, got {to}")
            before = projection.log.retractions()
            [answer] = projection.submit_in_turn(
                [PendingEvent(rollback_event(event_id, int(to), reason, self.version, now()))]
            )
            after = projection.log.retractions()
            oldest = min(to, *(at for at, _ in (*before.spans, *after.spans)))
            given = {*projection.log.places("feedback", oldest), *before.undone, *after.undone}
            changed = [seq for seq in given if (seq in before) != (seq in after)]
            forgotten = len(projection.log.places("forget", to))
            gone = sum(seq in after for seq in changed)
            return RolledBack(answer, to, gone, len(changed) - gone, forgotten)

    def forget(self, person: str) -> Forgotten:
        """Erase a person: every decision made for them, all feedback on it and what was said by hand about their style,
        from the log, the snapshots and the caches.

        The model becomes the one that never saw them, bit for bit. The log keeps a record that somebody was forgotten,
        and digests by which an event of theirs that is sent again later is recognised and refused. Raise Unerased, a
        TimeoutError, if another process is reading: the person is forgotten, and the bytes are removed by
        `finish_forgetting` or by the next opening.
        """
        person = records.check_id("person", person)
        projection = self.projection
        with projection.turn:
            projection.catch_up()
            exports = tuple(str(each) for path in self.exports() for each in (path, *find_unfinished(Path(path))))

            def event(count: int) -> Event:
                digest = projection.log.digest("person", person)
                payload = records.encode({"person": digest, "events": count, "exports": exports})
                return Event(0, "forget", records.new_id(), now(), None, None, self.version, payload)

            count = projection.log.erase(person, event)
            if count:
                projection.forget_derived()
                projection.rebuild()
            gone = Forgotten(count, exports if count else (), self.version, alike=self.spelt_like(person))
            if count:
                gone = gone._replace(unreached=projection.log.store.unreached())
            try:
                self.finish_forgetting()
            except TimeoutError as error:
                raise Unerased(str(error), gone._replace(erased=False)) from None
            return gone

    def spelt_like(self, person: str) -> tuple[str, ...]:
        """Return the names of other people in the log that differ from `person` in case, blanks or the code of a letter
        alone, sorted: they may be the same person."""
        wanted = spelling(person)
        return tuple(
            sorted(each for each in self.projection.log.people() if each != person and spelling(each) == wanted)
        )

    def finish_forgetting(self) -> None:
        """Remove the bytes of forgotten people that are still on the disk, if there are any, from the log and the
        snapshots.

        Raise TimeoutError if another process is reading the log."""
        projection = self.projection
        with projection.turn:
            if projection.log.unfinished() and not projection.log.store.read_only:
                if left := projection.forget_derived():
                    told = "cannot be removed, and what was forgotten is still in it: remove it and open the loop again"
                    raise TimeoutError(f"{', '.join(left)}: {told}")
                projection.log.finish_erasing()
                projection.keep()
                self._seal_again()

    def _seal_again(self) -> None:
        """Write the segments again that held somebody who was forgotten; until then the log is read in their place."""
        projection = self.projection
        if any(not each.hash for each in projection.log.segments()):
            try:
                segments.seal(projection, 2**40)
            except (OSError, ModuleNotFoundError) as error:
                projection.note(f"segments are not written again ({error}): heedful seal does it")

    def seal(self, events: int = segments.EVENTS) -> Sealed:
        """Write every closed stretch of `events` events of the log to a file of its own, a segment; return what was
        written.

        A segment is a Parquet file in the loop's folder, `segment-FIRST.parquet`: the events as the log has them, and
        what the model learns from them as numbers, from which it is made again several times faster. Segments that are
        missing, damaged or of another learner are written again. The events stay in the database, so a segment can be
        deleted at any time. Raise ModuleNotFoundError, with the command that installs it, if pyarrow is missing;
        ValueError for a loop in a database, or if `events` is no whole number above 0; OSError if a file cannot be
        written."""
        return segments.seal(self.projection, events)

    # ------------------------------------------------------------------------ trying another learner

    def start_experiment(
        self, learner: str, *, share: float = 0.0, frozen: bool = False, alpha: float = 0.05, id: str | None = None
    ) -> Answer:
        """Try the learner `learner`, a name with parameters, next to the one that serves; return what became of the
        event.

        The candidate learns from the whole log and learns on, and what it would have shown is kept with every decision.
        For a `share` of the people (0 to 1), always the same ones, both learners draft each list together (team-draft
        interleaving), and their answers say which one people prefer; see `experiment`. The verdict is wrong with
        probability `alpha` at most, however often one looks. If `frozen`, both sides rank as they do now as long as the
        experiment runs. `id` is the caller's event id: sent again it counts once. Raise ValueError, naming the field,
        if there is no such learner, if it does not fit, if the loop shows no rankings, or if an experiment is running.
        """
        check_between("share", share, 0.0, 1.0)
        check_between("alpha", alpha, 1e-6, 0.5)
        if not isinstance(frozen, bool):
            raise ValueError(f"frozen: expected true or false, got {describe(frozen)}")
        event_id, projection = records.new_id() if id is None else records.check_id("id", id), self.projection
        with projection.turn:
            projection.catch_up()
            known = projection.log.find("experiment", event_id)
            if known is None:
                check_can_start(projection)
            learner = projection.interaction.full_spec(records.check_text("learner", learner, 1000).strip())
            candidate = projection.candidate(learner)
            about = ExperimentRecord(
                learner,
                learner_version(candidate.learner, projection.settings),
                projection.manifest.learner,
                float(share),
                max(self.version, 1) if frozen else 0,  # event 1 is the loop's own
                float(alpha),
            )
            payload = records.encode(about) if known is None else payload_if_repeated(known, about)
            draft = Event(0, "experiment", event_id, now(), None, None, self.version, payload)
            [answer] = projection.submit_in_turn([PendingEvent(draft)])
            return answer

    def stop_experiment(self, *, id: str | None = None) -> Answer:
        """End the experiment that is running: the loop's learner serves everybody again. Return what became of the
        event.

        `id` is the caller's event id: sent again it counts once. Raise LookupError if no experiment runs."""
        event_id, projection = records.new_id() if id is None else records.check_id("id", id), self.projection
        with projection.turn:
            projection.catch_up()
            known, running = projection.log.find("stop", event_id), projection.experiment
            if known is None and running is None:
                raise LookupError("experiment: none is running")
            target = known.target if known is not None else running[0].seq if running is not None else None
            draft = Event(0, "stop", event_id, now(), None, target, self.version, "{}")
            [answer] = projection.submit_in_turn([PendingEvent(draft)])
            return answer

    def experiment(self, id: str | None = None) -> Experiment:
        """Return what the experiment `id` says so far; if that is None, the one that runs, or else the newest.

        That is which side people prefer and how sure it is, where the lists of the two sides differ, and why the
        candidate may not be promoted yet. The verdict holds however often one looks. Raise LookupError if there is no
        such experiment."""
        from heedful.loop.experiment import look

        self.projection.look()
        log = self.projection.log
        if id is None:
            places, running = log.places("experiment"), self.projection.experiment
            event = running[0] if running is not None else log.at(places[-1]) if places else None
        else:
            event = log.find("experiment", records.check_id("experiment", id))
        if event is None:
            imitates = self.apprentice() if self.projection.imitates else None
            there = "" if imitates is None else f": {imitates.told}"
            told = f"there was none{there}" if id is None else f"{id} is not in the log"
            raise LookupError(f"experiment: {told}")
        return look(self.projection, event)

    def plan_experiment(self, share: float = 0.2, *, days: float = 14.0, alpha: float = 0.05) -> PlannedExperiment:
        """Return how likely an experiment of `days` days with a `share` of the people would find a better learner.

        It is simulated from how the loop has been used of late; nothing is begun. The verdict of the experiment would
        be wrong with probability `alpha` at most. Raise ValueError, naming the field, for a number out of range, and in
        a loop that shows no rankings."""
        from heedful.loop.experiment import plan_experiment

        check_between("share", share, 1e-6, 1.0)
        check_between("days", days, 1e-3, 3650.0)
        check_between("alpha", alpha, 1e-6, 0.5)
        self.projection.look()
        check_interleaves(self.projection)
        return plan_experiment(self.projection, share, days, alpha)

    def apprentice(self) -> Apprentice | None:
        """Return how well the loop's learner imitates the caller's order, and whether it may serve in its place; None
        in a loop without the setting `apprentice`.

        The agreement is that of recent decisions, the newest 500 to 1,000, each with the learner as it was then. The
        interval holds however often one looks."""
        from heedful.loop.apprentice import look

        self.projection.look()
        return look(self.projection)

    def promote(
        self, learner: str | None = None, *, force: bool = False, by: str = "", reason: str = "", id: str | None = None
    ) -> Promoted:
        """Let another learner serve from here on, in one event that keeps the evidence and who did it.

        `learner` is a name with parameters; if it is None, it is the candidate of the experiment that runs, and the
        evidence is what people preferred (`experiment`). Otherwise the log has to say that it predicts answers better
        (`evaluate`). In a loop with the setting `apprentice`, whose learner does not serve yet, it is that learner, and
        it has to agree with the caller's order (`apprentice`). The learner that is promoted has learned from the whole
        log, and learns on. `by` and `reason` are
        kept in the log; `id` is the caller's event id: sent again it counts once. Raise ValueError if the learner does
        not fit, and its subclass `NotReady`, with the reasons, if the evidence does not suffice and `force` is False.

        `rollback` to a version before goes back on it, bit for bit, with all that came since; to go back on the learner
        alone, promote the former one.
        """
        from heedful.loop import apprentice
        from heedful.loop.experiment import NotReady, evidence_of, evidence_of_log
        from heedful.results.experiment import Promoted

        event_id, projection = records.new_id() if id is None else records.check_id("id", id), self.projection
        if not isinstance(force, bool):
            raise ValueError(f"force: expected true or false, got {describe(force)}")
        for name, text in (("by", by), ("reason", reason)):
            records.check_text(name, text, 1000)
        with projection.turn:
            projection.catch_up()
            known = projection.log.find("promote", event_id)
            if learner is not None:
                learner = projection.interaction.full_spec(records.check_text("learner", learner, 1000).strip())
            if known is not None:
                told = read_promotion(known.payload)
                answer = Answer("duplicate", event_id, known.seq, self.version)
                if (learner or told.learner, by, reason) != (told.learner, told.by, told.reason):
                    told_already = f"promote {event_id} is in the log already, with other content"
                    answer = projection.reject(event_id, told_already)
                return Promoted(answer, told.learner, told.before, told.evidence, told.forced)
            running, target = projection.experiment, None
            before = self.manifest.learner
            watched = apprentice.look(projection) if projection.imitates else None
            if watched is not None:
                if learner not in (None, watched.learner):
                    raise ValueError(f"learner: expected {watched.learner}, which imitates {CALLER}, got {learner}")
                learner, before = watched.learner, CALLER
                evidence, against = apprentice.evidence_of(watched), list(watched.against_promotion)
            elif (
                running is not None and learner in (None, running[1].learner) and (learner is None or running[1].share)
            ):
                found = self.experiment(running[0].id)
                target, learner = running[0].seq, running[1].learner
                evidence, against = evidence_of(found), list(found.against_promotion)
            elif learner is None:
                raise ValueError("learner: expected its name, as no experiment is running")
            else:
                projection.candidate(learner)
                evidence, against = evidence_of_log(projection, learner, before, 0.05)
            serving = projection.promoted
            projection.catch_up()  # the evidence may have taken a while
            if projection.promoted != serving:
                raise ValueError(f"learner: {self.manifest.learner} was promoted meanwhile, or a promotion rolled back")
            if learner == before:
                raise ValueError(f"learner: expected another than the one that serves, got {learner}")
            if against and not force:
                raise NotReady(learner, tuple(against))
            version = learner_version(projection.candidate(learner).learner, projection.settings)
            record = PromotionRecord(learner, version, before, evidence, tuple(against), by, reason)
            draft = Event(0, "promote", event_id, now(), None, target, self.version, records.encode(record))
            [answer] = projection.submit_in_turn([PendingEvent(draft)])
            return Promoted(answer, learner, before, evidence, tuple(against))

    def promotions(self) -> tuple[Promotion, ...]:
        """Return the promotions in this loop, each of a candidate learner to the one that serves, the newest first.

        Each comes with its evidence at that time and now. If feedback was undone or people were forgotten since, the
        two differ, and `changed` says so."""
        from heedful.loop.experiment import promotions

        self.projection.look()
        return promotions(self.projection)

    # ------------------------------------------------------------------------ looking back

    def explain(self, decision: str) -> Explanation:
        """Return why the first item of a decision stood first: what each feature adds to its lead, its prediction, and
        which feedback moved that.

        `decision` is the id. The explanation is of the model that made the decision, which is made again from the log.
        Raise LookupError if there is no such decision, or if it showed nothing that was on offer.
        """
        from heedful.loop.explain import explain

        return explain(self.projection, records.check_id("decision", decision))

    def why(self, decision: str, item: str, top: int = 10, *, budget: float = 100_000.0) -> Why:
        """Return why `item`, any candidate of the decision with the id `decision`, had its score by the model that made
        the decision.

        That is what each of its features contributes, and the `top` pieces of feedback before the decision that moved
        the score most. The influence of a piece of feedback is the score minus that of a model made without it, if
        making all these models costs no more than `budget`, in updates of a small perceptron of about 20 microseconds;
        that is counted beforehand, from the log and the learner. Otherwise it is by how much the score moved when it
        was learned, which is the same for some learners; `events_by` and `features_by` say which method was used.
        Feedback that has been undone is not listed. Raise LookupError if there is no such decision, its person was
        forgotten, or the item is not one of its candidates, and ValueError, naming the field, on bad input.
        """
        from heedful.loop.why import why

        id, name = records.check_id("decision", decision), records.check_id("item", item)
        check_count("top", top, least=0)
        check_between("budget", budget, 0.0, math.inf)
        self.projection.look()  # another process may have undone something
        return why(self.projection, id, name, top, float(min(budget, 1e300)))

    def evaluate(self, *learners: str, alpha: float = 0.05) -> Evaluation:
        """Return how well the loop's own learner and other `learners` would have predicted the answers in the log, with
        intervals.

        Each is a name with parameters, such as "second-order:epsilon=0.1", and predicts every answer before it learns
        from it; "NAME@VERSION" stops learning after that version, "NAME@VERSION.." and "NAME@2026-01-31T12:00:00Z.."
        begin there, as a restart would. Each interval misses with probability `alpha` at most. Raise ValueError if
        there is no such learner, if it does not fit the loop, or if it fails on the log."""
        from heedful.loop.evaluate import evaluate

        return evaluate(self.projection, learners, alpha)

    def report(self, last: int = 10_000) -> Report:
        """Return how well the loop does, measured over its newest `last` decisions: learned lists against control lists
        (the caller's own order), the accuracy of predictions, and the quality of the feedback.

        Raise ValueError, naming the field, on bad input, or if the folder holds a simulation.json that makes no sense.
        """
        from heedful.loop.report import report

        check_count("last", last)
        self.projection.look()
        return report(self.projection, last)

    def health(self, alpha: float = 0.05) -> Health:
        """Return whether the feedback of this loop is sound, and whether the model still predicts it.

        That is shares of feedback that is missing, late, empty or contradictory over time, quality of corrections,
        calibration of predictions, who gives the most, and alarms with their evidence. A sound log ever raises an alarm
        with probability `alpha` at most, however often one looks. The model is made again from the whole log. Raise
        ValueError unless `alpha` is from 1e-6 to 0.5, or if the learner fails on the log."""
        from heedful.loop.health import health

        self.projection.look()
        return health(self.projection, alpha)

    def lessons(
        self, limit: int = 50, *, before: int | None = None, person: str | None = None
    ) -> tuple[LessonTold, ...]:
        """Return the newest pieces of feedback in words and by name, the newest first, including those that were
        undone.

        At most `limit` are returned, of `person` or of everybody; those with sequence number `before` or later are left
        out, so that the `seq` of the last one on a page gives the next page. The log is read from its end, no further
        than needed. Raise ValueError, naming the field, on bad input.
        """
        from heedful.loop.history import lessons

        check_count("limit", limit, most=10_000)
        if before is not None:
            check_count("before", before)
        self.projection.look()
        return lessons(self.projection, limit, before, None if person is None else records.check_id("person", person))

    @property
    def weights(self) -> dict[str, float]:
        """the weight of each feature by name, in the state that all people share; the caller's score, where it is a
        feature, comes last"""
        return self.weights_of(None)

    def weights_of(self, person: str | None) -> dict[str, float]:
        """Return the weight of each feature by name, for one person: of the shared state and of that person's own
        together.

        If `person` is None, it is that of the shared state alone. The caller's score, where it is a feature, comes
        last. Return {} if the learner does not have one weight for each feature."""
        state, own = self.projection.reading(None if person is None else records.check_id("person", person))
        return dict(zip(self.feature_names, state.model.effective(state.shared, own).tolist()))

    # ------------------------------------------------------------------------ style

    def style_of(self, person: str | None = None, *, alpha: float = 0.05, describe: Describe | None = None) -> Style:
        """Return what the edits of `person` (None: of everybody) say about the style of texts that they want, in words.

        The field `prompt` is ready for the prompt of a language model. For each named feature of style, such as length
        or exclamation marks, drafts are compared with what the person made of them; nothing is said where the evidence
        does not suffice. The probability that any statement about the person is ever false is `alpha` at most, however
        often one looks. `describe` may be a function of your own, (draft, edited text) -> text, such as a call of a
        language model: what it says of the five newest edits is added, untested. The result is a function of the log,
        apart from `describe`. Raise ValueError if `alpha` is not from 1e-6 to 0.5."""
        from heedful.loop.style import style_of

        self.projection.look()
        return style_of(
            self.projection, None if person is None else records.check_id("person", person), alpha, describe
        )

    def correct_style(
        self, person: str | None = None, *, deny: str | None = None, always: str | None = None, id: str | None = None
    ) -> Answer:
        """Correct by hand what `style_of` says of `person` (None: of everybody); return what became of the event.

        `deny` is the name of a feature of style of which nothing is to be said; `always` is a sentence that is added.
        Exactly one of them is given. `id` is the caller's event id: sent again it counts once. `undo` takes it back,
        and `forget` erases it with the person. Raise ValueError, naming the field, if it makes no sense."""
        from heedful.loop.style import rule_event

        event_id = records.new_id() if id is None else records.check_id("id", id)
        [answer] = self.projection.submit(
            [PendingEvent(rule_event(event_id, person, deny, always, self.version, now()))]
        )
        return answer

    # ------------------------------------------------------------------------ keeping

    def snapshot(self) -> Place:
        """Write the model to a file in the loop's folder, which the next start begins from, and return the file's path;
        in a database, to a row of it, and return the loop's address.

        Raise OSError if it cannot be written, and ValueError if the model lacks feedback that the learner failed on."""
        return self.projection.snapshot()

    def note_export(self, path: str | Path) -> None:
        """Note in the log that its events were written to the file `path` ("-" for stdout): forgetting a person cannot
        reach it. Where the log cannot be written, `notes` says so."""
        payload = records.encode({"path": "-" if str(path) == "-" else str(Path(path).absolute())})
        event = Event(0, "export", records.new_id(), now(), None, None, self.version, payload)
        try:
            self.projection.submit([PendingEvent(event)])
        except PermissionError as error:
            self.projection.note(f"the export is not noted in the log, so forget does not name it: {error.strerror}")

    def exports(self) -> list[str]:
        """Return the paths of the files that exports wrote, each once, in the order of the log; "-" is stdout."""
        noted = self.projection.log.events(kinds=["export"])
        return list(dict.fromkeys(records.decode_export(event.payload).path for event in noted))

    def verify(self) -> list[str]:
        """Return what is wrong with the log and the model, a sentence each; [] if nothing is.

        The model is made again from the whole log, and has to be equal bit for bit."""
        return self.projection.verify()
