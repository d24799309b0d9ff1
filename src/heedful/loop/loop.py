"""A loop: one thing being taught in production. A learner, its log, and the fold between them.

    decide -> show -> feedback -> decide better; undo, forget, replay, explain

The log is the truth (`heedful.loop.log`); the model is the fold of its feedback (`heedful.loop.model`), in the order of
the log, without what was undone. Everything that changes is written first: a group of events is committed, then
folded, then answered. Readers decide from the state published after the last group.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from heedful.core.validation import check_count, describe
from heedful.data.frames import Frame
from heedful.features.encoding import UNSEEN, Encoding
from heedful.loop import records, snapshots
from heedful.loop.decide import Decider, DecisionRequest
from heedful.loop.feedback import FeedbackReader, UnknownDecision
from heedful.loop.interactions.registry import default_learner, interaction_type, learner_version
from heedful.loop.log import Event, Log, now, rollback_event
from heedful.loop.model import Person
from heedful.loop.movement import describe_unmoved
from heedful.loop.projection import AGAIN, PendingEvent, Projection, PublishedState
from heedful.loop.records import Answer, Decision
from heedful.loop.request import Request, check_rows, encode_rows
from heedful.loop.settings import Manifest, Settings, built_learner

if TYPE_CHECKING:
    from heedful.loop.counterfactual import Replayed
    from heedful.loop.explain import Explanation
    from heedful.loop.history import LessonTold
    from heedful.loop.interactions.comparison.standing import Standings
    from heedful.loop.interactions.protocol import Predicted
    from heedful.loop.ranking import Ranking
    from heedful.loop.report import Report

Array = npt.NDArray[np.float64]
T = TypeVar("T")


class Forgotten(NamedTuple):
    """What forgetting a person did."""

    events: int
    """how many decisions, answers and corrections of answers went"""
    exports: tuple[str, ...]
    """files written by export, which the loop cannot reach: they may still hold the person's events"""
    version: int
    erased: bool = True
    """whether nothing of her is left on the disk; otherwise that goes when nobody reads any more"""


class RolledBack(NamedTuple):
    """What going back to an earlier version of the model did."""

    answer: Answer
    to: int
    """the version of which the model is now, bit for bit, but for people who were forgotten since"""
    left_out: int
    """how many pieces of feedback counted before it and do not count any more"""
    restored: int
    """how many count again: undone, or left out by another rollback, after that version"""
    forgotten: int
    """how many people were forgotten after that version: the model is the one that never saw them"""


class Unerased(TimeoutError):
    """A person was forgotten, but her bytes are still on the disk, as another process is in the middle of reading."""

    def __init__(self, told: str, forgotten: Forgotten) -> None:
        super().__init__(told)
        self.forgotten = forgotten


class Loop:
    """A learner taught in production, with a log that keeps every acknowledged event.

    >>> loop = Loop.create("cars.heedful", encoding=infer(rows), items=rows)
    >>> d = loop.decide(["a", "b", "c"], person="p1")
    >>> loop.feedback(d.id, clicks=["b"])

    Any number of threads may use it; several processes may have the same loop open. Close it, or use it in `with`.
    """

    # ------------------------------------------------------------------------ making and opening

    @classmethod
    def create(
        cls,
        path: str | Path,
        *,
        encoding: Encoding | None = None,
        items: Iterable[Mapping[str, Any]] | Frame = (),
        learner: str | None = None,
        settings: Settings | None = None,
        context: Encoding | None = None,
        crosses: Sequence[tuple[str, str]] = (),
        query_features: Encoding | None = None,
    ) -> Loop:
        """Make a loop in the new folder `path`, with `items` on offer: an object each, or a data frame.

        `encoding` turns an item's attributes into features (`heedful.infer` finds one), `context` those of a request;
        `crosses` are pairs (context column, item column) whose products are features too. `query_features` are what a
        request says of each candidate, such as the score of a search (`heedful.declare` makes them): then candidates
        are {"id": ..., "bm25": 12.7}, where the id names an item on offer. `learner` names the rule,
        with parameters: "second-order:epsilon=0.1", "averaged-prank:n_ranks=5", "FILE.py:Class". Which kind of feedback
        the loop learns from is said by one of the settings, `Settings(ratings=(1, 5))`, else by the learner; where
        items are known by number they need no `encoding`. Each kind has a learner where none is named. All of this is
        frozen in the log.
        FileExistsError where the folder is there; ValueError, by name, where something makes no sense, and then nothing
        is made.
        """
        folder = Path(path)
        settings = Settings() if settings is None else settings
        if isinstance(settings, Settings):
            learner = default_learner(settings) if learner is None else learner
            if encoding is None and isinstance(learner, str):
                bare = query_features is not None or interaction_type(learner, settings).by_number
                encoding = UNSEEN if bare else None
        manifest = Manifest.of(learner, encoding, context, crosses, settings, query_features)
        encoding = manifest.encoding
        rows = check_rows("items", items)
        encoded = encode_rows(encoding, rows, Counter())  # before anything is written
        made = built_learner(manifest, learner)
        snapshots.make_folder(folder)
        try:
            log = Log(folder / snapshots.LOG, create=True)
            founded = Event(1, "loop", "loop", now(), None, None, 0, manifest.to_json(learner_version(made)))
            with log.writing():
                log.append([founded])
            log.close()
            loop = cls.open(folder, learner=learner)
            try:
                loop._put(rows, encoded)
            except BaseException:
                loop.close()
                raise
        except BaseException:
            snapshots.remove_folder(folder)
            raise
        return loop

    @classmethod
    def open(cls, path: str | Path, *, learner: str | None = None) -> Loop:
        """Open the loop in the folder `path`.

        A learner of one's own (FILE.py:Class) has to be named again: a log does not say what code to run. LookupError
        where it is not; FileNotFoundError where there is no loop; ValueError where the log is damaged.
        """
        return cls(path, learner)

    def __init__(self, path: str | Path, learner: str | None = None) -> None:
        self.path = Path(path)
        self.rest_on(Projection(self.path, learner))

    def rest_on(self, projection: Projection) -> None:
        """Take this for the loop's projection."""
        self.projection = projection
        self.settings, self.learner = projection.settings, projection.learner
        self.decider, self.feedback_reader = Decider(projection), FeedbackReader(projection)

    def close(self) -> None:
        """Keep a snapshot, where lessons were learned since the last one, and close the log."""
        self.projection.close()

    def _repr_html_(self) -> str:
        from heedful.core.notebooks import table

        weights = sorted(self.weights.items(), key=lambda each: -abs(each[1]))
        told = f"learner {self.manifest.learner}; {len(self.items):,} items on offer; model version {self.version}"
        return table(f"Loop {self.path}", ["feature", "weight"], weights, [told, *self.notes])

    def __enter__(self) -> Loop:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def version(self) -> int:
        """The model's version: the sequence number of the last event that it is made of."""
        return self.projection.published.version

    @property
    def manifest(self) -> Manifest:
        """What the loop was made with."""
        return self.projection.manifest

    @property
    def facts(self) -> dict[str, Any]:
        """What a loop of this kind was made with and others were not, by name: `{"grades": 5}`."""
        return self.projection.interaction.facts()

    @property
    def feature_names(self) -> list[str]:
        """The names of the features as the learner sees them, N; where the caller's score is one, it is the last."""
        return self.projection.interaction.names

    @property
    def notes(self) -> list[str]:
        """What a person should know: a snapshot that could not be used, code that changed, a lesson that failed."""
        return self.projection.notes

    @property
    def unknown(self) -> Counter[str]:
        """Categories that the encoding does not know, "column=value", counted since the loop was opened."""
        return self.projection.requests.unknown

    @property
    def caveats(self) -> list[str]:
        """What these settings make impossible to prove, in words, weights that have overflown, and feedback that moved
        nothing; empty where nothing is."""
        found = [*self.projection.interaction.caveats(), self.overflown, self.unmoved]
        return [told for told in found if told]

    @property
    def unmoved(self) -> str:
        """That no feedback moved the model so far, why, and what would, in sentences; "" where some did, or there is
        little of it."""
        return describe_unmoved(self.projection)

    @property
    def overflown(self) -> str:
        """Why the weights say nothing any more, and what to do, in a sentence; "" where they do."""
        return self.projection.interaction.overflown(self.projection.model, self.projection.reading(None)[0].shared)

    # ------------------------------------------------------------------------ items

    def put_items(self, items: Iterable[Mapping[str, Any]] | Frame) -> int:
        """Put items on offer, new or changed, an object each or a data frame; how many were. The same attributes again
        change nothing.

        ValueError, naming the item and the field, where one cannot be encoded, and then none is put.
        """
        rows = check_rows("items", items)
        self.projection.catch_up()  # what another process put is what these change
        return self._put(rows, encode_rows(self.manifest.encoding, rows, self.unknown))

    def _put(self, rows: Sequence[Mapping[str, Any]], encoded: Any) -> int:
        drafts, latest, before = [], dict[str, str](), dict[str, int]()
        for i, row in enumerate(rows):
            try:
                name = records.check_id(self.manifest.encoding.identifier or "id", self.manifest.encoding.name_of(row))
                payload = self.manifest.item_payload(row)
            except ValueError as error:
                raise ValueError(f"row {i + 1}: {error}") from None
            arrays = encoded[i].astype("<f4").tobytes()
            # The digest makes the id: the same version of an item is the same event, whoever sends it again.
            digest = hashlib.blake2b(f"{name}\0{payload}".encode() + arrays, digest_size=12).hexdigest()
            if self._is_current(name, latest.get(name), digest):
                continue
            latest[name] = digest
            # What it follows is in the id as well: an item may change, and change back.
            before[name] = (before[name] if name in before else self.projection.log.newest("item", name)) + 1
            event_id = f"{digest}-{before[name]}"
            drafts.append(PendingEvent(Event(0, "item", event_id, now(), name, None, 0, payload, arrays)))
        self.projection.submit(drafts)
        return len(drafts)

    def _is_current(self, name: str, pending: str | None, digest: str) -> bool:
        if pending is not None:
            return pending == digest
        version = self.projection.catalogue.current.get(name)
        event = self.projection.log.at(version) if version is not None else None
        return event is not None and event.id.startswith(f"{digest}-")

    def withdraw(self, name: str | int) -> bool:
        """Take an item off offer; whether it was on. Its old versions stay. What was learned
        from it stays, too, and tells about others; but what is learned of items by number alone, as ratings are, goes
        with it, and put back it begins again."""
        self.projection.catch_up()
        version = self.projection.catalogue.current.get(records.check_id("name", name))
        if version is None:
            return False
        self.projection.submit([PendingEvent(Event(0, "item", f"withdraw-{version}", now(), str(name), None, 0, "{}"))])
        return True

    @property
    def items(self) -> list[str]:
        """The names of the items on offer."""
        return [name for name, _ in self.projection.catalogue.on_offer()]

    # ------------------------------------------------------------------------ deciding

    def decide(
        self,
        candidates: Sequence[str | Mapping[str, Any]] | npt.NDArray[Any] | None = None,
        *,
        person: str | None = None,
        context: Mapping[str, Any] | None = None,
        prior: Mapping[str, float] | Sequence[float] | None = None,
        show: int | None = None,
        id: str | None = None,
        deferred: bool = False,
        repeats: bool | None = None,
        strict: bool | None = None,
    ) -> Decision:
        """What to show, best first; logged, with the probability of showing just that, before it is returned.

        `candidates` are names of items on offer (all of them where None), objects with attributes of their own, or an
        array of features (m x N; their names are then "0", "1", ...), in the caller's order, which is what is shown
        before anything was learned. `prior` is the caller's own score, by name or in the order of the candidates;
        `show` how many will be seen. The same `id` again gives the same decision. A `deferred` decision counts as
        shown only once it is activated. `predicted` of the decision is what the loop predicts of each that is shown.
        Where items are known by number, candidates are names, and what the person is done with is left out but with
        `repeats` (None: as the loop's settings say). How many are shown where `show` does not say, and in which places,
        depends on the kind of feedback (docs/loops.md).

        A page is decided whatever is asked: an item that is not on offer stands where `prior` has it, or last, and is
        told in `unknown`; what comes twice counts once; no candidates are an empty list. With `strict` (None: as the
        loop's settings say) these are refused. Hits of a search engine, {"_id": ..., "_score": ..., "_source": {...}},
        are names with the engine's scores as `prior`; where none of them is on offer, objects.
        ValueError, by name, on bad input; LookupError for a decision that was forgotten, and where it is strict for an
        item that is not on offer.
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
        candidates: Sequence[str | Mapping[str, Any]] | npt.NDArray[Any] | None = None,
        *,
        person: str | None = None,
        context: Mapping[str, Any] | None = None,
        prior: Mapping[str, float] | Sequence[float] | None = None,
        strict: bool | None = None,
    ) -> tuple[str, ...]:
        """All candidates by name, best first, as the model has them at this moment: the order that `decide` shows
        where it neither explores nor leaves a list to the control.

        Nothing is drawn and nothing is logged, so this is for looking and for offline evaluation, and leaves the report
        as it is. Feedback needs a decision: `decide` makes one, `record` one of what was shown. The arguments, and what
        is raised, are those of `decide`; what the person is done with is among them. Where the learner expects nothing,
        the order is that of the candidates. `standing` says how sure it is, where a loop compares items.
        """
        return self.ranking(candidates, person=person, context=context, prior=prior, strict=strict).ranking

    def ranking(
        self,
        candidates: Any = None,
        *,
        person: Any = None,
        context: Any = None,
        prior: Any = None,
        strict: bool | None = None,
    ) -> Ranking:
        """The same, with the version of the model that ranks them so, and what of them is unknown."""
        request, state, own = self._look(candidates, person, context, prior, strict)
        from heedful.loop.ranking import ranking

        return ranking(self.projection, state, own, request)

    def predict(
        self,
        candidates: Sequence[str | Mapping[str, Any]] | npt.NDArray[Any] | None = None,
        *,
        person: str | None = None,
        context: Mapping[str, Any] | None = None,
        prior: Mapping[str, float] | Sequence[float] | None = None,
    ) -> dict[str, Predicted]:
        """What the model predicts of each candidate at this moment, by name, in the order it has of them: what
        `predicted` of a decision that shows them says.

        ValueError for a loop that predicts nothing, and for a learner that does not say. Nothing is logged, as with
        `rank`.
        """
        request, state, own = self._look(candidates, person, context, prior)
        interaction, model = self.projection.interaction, self.projection.model
        found = interaction.predict(model, state.shared, own, request.x)
        if found is None:
            raise ValueError(f"predict: expected a loop that predicts something, got one of {self.manifest.learner}")
        return {request.called[j]: found[j] for j in interaction.order(model, state.shared, own, request.x).tolist()}

    def standing(self, person: str | None = None, *, people: Sequence[str] | None = None) -> Standings:
        """How things stand in a loop that compares items: the ranking with its uncertainty, whether that is sure enough
        to stop, about how many questions are left; for a person, for some people together, or for all.

        ValueError for a loop that does not, and where there are not two items on offer. Nothing is logged."""
        person = None if person is None else records.check_id("person", person)
        if person is not None and people is not None:
            raise ValueError("people: expected none with a person, got some")
        self.projection.look()
        return self.projection.interaction.standing(self.projection, person, people)

    def _look(
        self, candidates: Any, person: Any, context: Any, prior: Any, strict: bool | None = True
    ) -> tuple[Request, PublishedState, Person | None]:
        """(what is asked, the state of this moment, the person's own) for a look that is not logged."""
        person = None if person is None else records.check_id("person", person)
        request = self._reread(lambda looked: self.decider.parse(candidates, context, prior, None, strict, looked))
        return request, *self.projection.reading_of(request.x, person)

    def _reread(self, read: Callable[[bool], T]) -> T:
        """What `read` gives; where something is not there, another process may have put it there. It is told whether
        that was looked for."""
        try:
            return read(False)
        except LookupError:
            self.projection.catch_up()
            return read(True)

    def record(
        self,
        candidates: Sequence[str | Mapping[str, Any]],
        shown: Sequence[str],
        *,
        id: str,
        person: str | None = None,
        context: Mapping[str, Any] | None = None,
        prior: Mapping[str, float] | Sequence[float] | None = None,
        probability: float | None = None,
        time: int | str | None = None,
        strict: bool | None = None,
    ) -> Decision:
        """Log what somebody else decided, so that feedback on it teaches.

        `time` is in microseconds since 1970, or a text such as 2026-01-31T12:00:00Z. What is not on offer is noted as
        unknown, unless it is `strict`, as for `decide`.
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
        return self.decider.decision_of(draft, answer)

    def activate(self, decision: str, *, time: int | str | None = None) -> Answer:
        """Say that a deferred decision was shown after all."""
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

        `clicks=["b"]`, `better=["b", "a"]`, `edit="..."`, `thumb="up"`, `action="buy", item="b"`,
        `rating={"b": 4}`, `grade={"b": 2}`, `actions={"b": "buy", "c": ["view"]}`, `choice="first"`, `none=True`: which
        of them a loop takes, its kind says; another is answered with `rejected` and what to send instead.
        `id` is the caller's event id: sent again it counts once. Returns when it is on the disk and learned.
        ValueError, by name, where it is no feedback; what fits no longer what happened is answered with `rejected` and
        the reason. Nothing is changed by either.
        """
        if isinstance(decision, Mapping):  # the event as one object, as in the JSON lines
            form = {**decision, **form}
            decision, id, time = form.pop("decision", None), form.pop("id", id), form.pop("time", time)
        [outcome] = self._submit([self.feedback_reader.read(decision, id, time, form)])
        return outcome

    def feedback_many(self, events: Iterable[Mapping[str, Any]]) -> list[Answer]:
        """Learn from many events, {"decision": ..., "id": ..., "clicks": [...]} each, in one commit.

        One that is no feedback is answered with `rejected` and the reason, and the others go on.
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
        """Take one piece of feedback back: the model becomes the one that never saw it, bit for bit."""
        event = records.check_id("event", event)
        undo_id = f"undo-{event}" if id is None else records.check_id("id", id)
        if len(undo_id) > records.LONGEST_ID:
            undo_id = f"undo-{hashlib.blake2b(event.encode(), digest_size=16).hexdigest()}"
        target = self.projection.log.find("feedback", event)
        if target is None:
            return self.feedback_reader.reject_unknown(undo_id, "feedback", event)
        if id is None and (end := self.projection.log.retracted_by(undo_id)):
            undo_id = f"undo-{target.seq}-after-{end}"  # a rollback left the undo of that name out
        draft = PendingEvent(Event(0, "undo", undo_id, now(), None, target.seq, self.version, "{}"))
        [answer] = self.projection.submit([draft])
        return answer

    def rollback(self, to: int, *, id: str | None = None, reason: str = "") -> RolledBack:
        """Go back to version `to` of the model, in one event: the fold leaves out all feedback and undos after it.

        The model becomes the one of that version, bit for bit, and learns on from there. Nothing is deleted: the
        version just before the rollback can be gone back to in the same way. People who were forgotten since stay
        forgotten. Items on offer stay as they are, too. `id` is the caller's event id: sent again it counts once;
        `reason` is kept in the log.
        Raise ValueError, by name, if there has been no such version.
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
            [answer] = projection.submit([PendingEvent(rollback_event(event_id, int(to), reason, self.version, now()))])
            after = projection.log.retractions()
            oldest = min(to, *(at for at, _ in (*before.spans, *after.spans)))
            given = {*projection.log.places("feedback", oldest), *before.undone, *after.undone}
            changed = [seq for seq in given if (seq in before) != (seq in after)]
            forgotten = len(projection.log.places("forget", to))
            gone = sum(seq in after for seq in changed)
            return RolledBack(answer, to, gone, len(changed) - gone, forgotten)

    def forget(self, person: str) -> Forgotten:
        """Erase a person: every decision made for her, every answer to it, from the log, the snapshots, the caches.

        The model becomes the one that never saw her, bit for bit. What stays is a record that somebody was forgotten,
        and digests by which a late repetition of one of her events is known and refused. Unerased, a TimeoutError,
        where another process is in the middle of reading: she is forgotten, and her bytes go with `finish_forgetting`
        or when the loop is next opened.
        """
        person = records.check_id("person", person)
        projection = self.projection
        with projection.turn:
            projection.catch_up()
            exports = tuple(records.decode_export(e.payload).path for e in projection.log.events(kinds=["export"]))

            def event(count: int) -> Event:
                digest = projection.log.digest("person", person)
                payload = records.encode({"person": digest, "events": count, "exports": exports})
                return Event(0, "forget", records.new_id(), now(), None, None, self.version, payload)

            count = projection.log.erase(person, event)
            if count:
                projection.forget_derived()
                projection.rebuild()
            gone = Forgotten(count, exports if count else (), self.version)
            try:
                self.finish_forgetting()
            except TimeoutError as error:
                raise Unerased(str(error), gone._replace(erased=False)) from None
            return gone

    def finish_forgetting(self) -> None:
        """Remove what is left on the disk of those who were forgotten, where anything is."""
        projection = self.projection
        with projection.turn:
            if projection.log.unfinished():
                projection.forget_derived()
                projection.log.finish_erasing()
                projection.keep()

    # ------------------------------------------------------------------------ looking back

    def explain(self, decision: str) -> Explanation:
        """Why the first of a decision stood first: what put it there, what was predicted of it, and which feedback
        moved that.

        By the model as it was when it was decided; folds the log up to there. LookupError where there is no such
        decision."""
        from heedful.loop.explain import explain

        return explain(self.projection, records.check_id("decision", decision))

    def replay(self, learner: str) -> Replayed:
        """What another learner, "second-order:epsilon=0.1", makes of the same log. ValueError where it is none."""
        if not isinstance(learner, str):
            raise ValueError(f"learner: expected its name, such as {self.manifest.learner}, got {describe(learner)}")
        from heedful.loop.counterfactual import replay

        return replay(self.projection, learner)

    def report(self, last: int = 10_000) -> Report:
        """What the loop learned, measured: learned lists against those left alone, what feedback was worth.

        Of the newest `last` decisions and the answers to them. ValueError, by name; also where a simulation.json lies
        beside the log that makes no sense."""
        from heedful.loop.report import report

        check_count("last", last)
        self.projection.look()
        return report(self.projection, last)

    def lessons(
        self, limit: int = 50, *, before: int | None = None, person: str | None = None
    ) -> tuple[LessonTold, ...]:
        """The newest pieces of feedback in words and by name, the newest first, undone ones too.

        At most `limit` of them; `before` a sequence number, for the next page: that of the last on this one; of one
        `person`, or of all. Reads the log from its end, no further than is needed. ValueError, by name."""
        from heedful.loop.history import lessons

        check_count("limit", limit, most=10_000)
        if before is not None:
            check_count("before", before)
        self.projection.look()
        return lessons(self.projection, limit, before, None if person is None else records.check_id("person", person))

    @property
    def weights(self) -> dict[str, float]:
        """What each feature counts, by name, for whoever has no offset of her own; the caller's score last."""
        return self.weights_of(None)

    def weights_of(self, person: str | None) -> dict[str, float]:
        """What each feature counts for a person, by name, her offset included; the caller's score last. Empty
        where what is learned is no direction of features."""
        state, own = self.projection.reading(None if person is None else records.check_id("person", person))
        return dict(zip(self.feature_names, self.projection.model.effective(state.shared, own).tolist()))

    # ------------------------------------------------------------------------ keeping

    def snapshot(self) -> Path:
        """Write the model to a file in the loop's folder, from which the next start goes on; its path. OSError where
        that cannot be written; ValueError where the learner failed on a lesson, which is left out of the model."""
        return self.projection.snapshot()

    def note_export(self, path: str | Path) -> None:
        """Note in the log that its events were written to a file, "-" for stdout, which forgetting cannot reach."""
        payload = records.encode({"path": "-" if str(path) == "-" else str(Path(path).absolute())})
        self.projection.submit(
            [PendingEvent(Event(0, "export", records.new_id(), now(), None, None, self.version, payload))]
        )

    def verify(self) -> list[str]:
        """What is wrong with log and model, in words; empty where nothing is. Folds the whole log again."""
        return self.projection.verify()
