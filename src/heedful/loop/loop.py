"""A loop: a learner that is taught in production, its log, and the model that it makes of the log.

    decide -> show -> feedback -> decide better; undo, roll back, forget, evaluate, say why

The log is the truth (`heedful.loop.log`). The model is what the learner makes of the feedback in the log, one piece
after another in the log's order (a fold), without what was undone. Every change is written first: a group of events is
committed, then learned, then answered. Readers decide from the state that was published after the last group. What
reads much of the log is imported when it is asked for, as most programs decide and learn alone. The file is long
because `Loop` is the public interface: it describes each thing that can be asked of a loop, and does none of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy.typing as npt

from heedful.core.validation import check_between, check_flag, describe
from heedful.core.wording import count
from heedful.data.frames import Frame
from heedful.features.encoding import Encoding
from heedful.loop.decide import Decider
from heedful.loop.feedback import FeedbackReader
from heedful.loop.founding import make_manifest, new_loop
from heedful.loop.interactions.protocol import ItemPrediction
from heedful.loop.movement import describe_unmoved
from heedful.loop.offer import offered, put_items, withdraw
from heedful.loop.projection import Projection
from heedful.loop.ranking import predict, ranking, standing
from heedful.loop.records import check_id
from heedful.loop.request import check_rows, encode_rows
from heedful.loop.retraction import (
    exported,
    finish_forgetting,
    forget,
    forget_unseen,
    note_export,
    rollback,
    spelt_like,
    undo,
)
from heedful.loop.settings import Manifest, Settings
from heedful.results.answers import Answer, Decision, Forgotten, Put, Ranking, RolledBack
from heedful.storage import Address, Place, place_of

if TYPE_CHECKING:
    from heedful.loop.style import Describe
    from heedful.results.board import Board
    from heedful.results.evaluation import Evaluation
    from heedful.results.experiment import Experiment, PlannedExperiment, Promoted, Promotion
    from heedful.results.explanation import Why
    from heedful.results.health import Health
    from heedful.results.history import LessonTold
    from heedful.results.report import Report
    from heedful.results.style import Style


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
        parameters: "second-order:epsilon=0.1", "prank:n_ranks=5", "FILE.py:Class". The kind of feedback
        (corrections and clicks, grades, ratings, choices or answers of models) follows from the settings, such as
        `Settings(ratings=(1, 5))`, or else from the learner; each kind has a default learner. A kind whose learners
        know items by number, not by features, needs no `encoding`. All of this is fixed for as long as the loop exists.

        Raise FileExistsError if the folder exists, and ValueError, naming the field, if something makes no sense;
        nothing is created then.
        """
        place, rows = place_of(path), check_rows(items)
        settings = Settings() if settings is None else settings
        manifest = make_manifest(rows, learner, encoding, context, crosses, settings, query_features)
        new_loop(place, manifest, rows, encode_rows(manifest.encoding, rows, Counter()))
        return cls.open(place, learner=manifest.learner)

    @classmethod
    def create_like(
        cls,
        path: str | Path | Address,
        other: Loop,
        *,
        items: Iterable[Mapping[str, Any]] | Frame | None = None,
        learner: str | None = None,
    ) -> Loop:
        """Create a loop in the new folder `path`, or in a database, with the encodings, the settings and the learner of
        the loop `other`. It has learned nothing, and nobody has been shown anything.

        On offer are `items`, or if that is None the items that `other` has on offer now. `learner` names another
        learner. Errors are those of `create`."""
        if not isinstance(other, Loop):
            raise ValueError(f"other: expected a loop, got {describe(other)}")
        place, was = place_of(path), other.manifest
        rows, encoded = offered(other.projection)
        if items is not None:
            rows = check_rows(items)
            encoded = encode_rows(was.encoding, rows, Counter())
        about = was.encoding, was.context, was.crosses, was.settings, was.query
        manifest = make_manifest(rows, was.learner if learner is None else learner, *about)
        new_loop(place, manifest, rows, encoded)
        return cls.open(place, learner=manifest.learner)

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
        self,
        path: str | Path | Address,
        learner: str | Sequence[str] | None = None,
        read_only: bool = False,
    ) -> None:
        self.path = place_of(path)
        check_flag("read_only", read_only)
        self.projection = Projection(self.path, learner, read_only)
        """the log with its model, through which everything is read and written"""
        self.settings = self.projection.settings
        self.decider, self.feedback_reader = Decider(self.projection), FeedbackReader(self.projection)

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
        found = [*self.projection.interaction.words.caveats(self.settings, self.learner), self.overflown, self.unmoved]
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
        return state.model.describe_overflow(state.shared)

    # ------------------------------------------------------------------------ items

    def put_items(self, items: Iterable[Mapping[str, object]] | Frame) -> Put:
        """Put items on offer, new or changed, one mapping of attributes each or a data frame, and return how many were
        put, and which of them had other attributes before.

        An item that is on offer with the same attributes is not put again. Raise ValueError, naming the item and the
        field, if one cannot be encoded; none is put then.
        """
        rows = check_rows(items)
        self.projection.catch_up()  # what another process put is what these change
        self.projection.interaction.check_items(self.manifest, rows)
        return put_items(self.projection, rows, encode_rows(self.manifest.encoding, rows, self.unknown))

    def withdraw(self, name: str | int) -> bool:
        """Take the item `name` off offer, so that it is no candidate any more; return whether it was on offer.

        What was learned about its features stays. Where ratings are learned by item, what was learned about the item is
        removed, and starts from nothing if the item is put back.
        """
        return withdraw(self.projection, name)

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
        return self.decider.decide(
            candidates=candidates,
            person=person,
            context=context,
            prior=prior,
            show=show,
            id=id,
            deferred=deferred,
            repeats=repeats,
            strict=strict,
            after=after,
        )

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
        return ranking(*self.decider.look(candidates, person, context, prior, strict))

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
        return predict(*self.decider.look(candidates, person, context, prior))

    def standing(
        self, person: str | None = None, *, people: Sequence[str] | None = None, without: Sequence[str] = ()
    ) -> Board:
        """Return the ranking of all items in a loop of comparisons, with its uncertainty, whether that is small enough
        to stop asking, and about how many questions are left.

        It is for one `person`, for several `people` together, or for everybody if neither is given; the answers of the
        people in `without` are left out. Nothing is logged. Raise ValueError in a loop of another kind, with fewer than
        two items on offer, or if somebody in `without` has not answered.
        """
        self.projection.look()
        return standing(self.projection, person, people, without)

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
        return self.decider.record(
            time,
            candidates=candidates,
            shown=shown,
            id=id,
            person=person,
            context=context,
            prior=prior,
            probability=probability,
            strict=strict,
        )

    def activate(self, decision: str, *, time: int | str | None = None) -> Answer:
        """Note in the log that a deferred decision was shown, at `time` (None: now), and return what became of that
        event.

        `decision` is its id; `time` is in microseconds since 1970, or a text such as 2026-01-31T12:00:00Z. Only then is
        feedback on the decision taken. An id that is not in the log is answered with `rejected`."""
        return self.feedback_reader.activate(decision, time)

    # ------------------------------------------------------------------------ feedback

    def feedback(
        self, decision: str | Mapping[str, Any], *, id: str | None = None, time: int | str | None = None, **form: Any
    ) -> Answer:
        """Learn from what a person answered to a decision, in one of the forms of docs/feedback.md.

        `decision` is the id of the decision, and the form is one of `clicks=["b"]`, `better=["b", "a"]`, `edit="..."`,
        `thumb="up"`, `reward=0.8`, `action="buy", item="b"`, `rating={"b": 4}`, `grade={"b": 2}`,
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
        [outcome] = self.feedback_reader.submit([self.feedback_reader.read(decision, id, time, form)])
        return outcome

    def feedback_many(self, events: Iterable[Mapping[str, object]]) -> list[Answer]:
        """Learn from many events, {"decision": ..., "id": ..., "clicks": [...]} each, in one commit; return the answers
        in order.

        An event that is no feedback, or does not fit its decision, is answered with `rejected` and the reason; the
        others are taken. Raise ValueError if `events` is not a sequence of objects.
        """
        return self.feedback_reader.submit(self.feedback_reader.read_many(events))

    # ------------------------------------------------------------------------ undoing, forgetting

    def undo(self, event: str, *, id: str | None = None) -> Answer:
        """Take back the feedback with the id `event`: the model becomes the one that never saw it, bit for bit.

        `event` may also be the id of a correction by hand (`correct_style`). `id` is the id of the undo itself: sent
        again it counts once. Return what became of the undo; one of feedback that is not in the log is rejected, with
        the reason."""
        return undo(self.projection, event, id)

    def rollback(self, to: int, *, id: str | None = None, reason: str = "") -> RolledBack:
        """Go back to version `to` of the model, in one event: from now on the model leaves out all feedback, undos and
        rollbacks after that version.

        The model becomes the one of that version, bit for bit, and learns on from there. Nothing is deleted, so the
        version just before the rollback can be gone back to in the same way. People who were forgotten since stay
        forgotten, and items on offer stay as they are. `id` is the caller's event id: sent again it counts once;
        `reason` is kept in the log. Raise ValueError, naming the field, if there has been no such version.
        """
        return rollback(self.projection, to, id, reason)

    def forget(self, person: str) -> Forgotten:
        """Erase a person: every decision made for them, all feedback on it and what was said by hand about their style,
        from the log, the snapshots and the caches.

        The model becomes the one that never saw them, bit for bit. The log keeps a record that somebody was forgotten,
        and digests by which an event of theirs that is sent again later is recognised and refused. Raise Unerased, a
        TimeoutError, if another process is reading: the person is forgotten, and the bytes are removed by
        `finish_forgetting` or by the next opening.
        """
        return forget(self.projection, person)

    def forget_unseen(self, days: float) -> Forgotten:
        """Erase everybody who was not seen for so many `days`, all at once, as `forget` does.

        They are the people of whom every event is older: decisions for them, feedback on these, and what was said by
        hand about their style. The model becomes the one that never saw them, bit for bit. It keeps what it learned
        from people who were seen since, also from their older events, and from decisions for nobody in particular; it
        loses the rest. Raise ValueError unless `days` is from 0.001 to 100,000, and what `forget` raises."""
        return forget_unseen(self.projection, days)

    def spelt_like(self, person: str) -> tuple[str, ...]:
        """Return the names of other people in the log that differ from `person` in case, blanks or the code of a letter
        alone, sorted: they may be the same person."""
        return spelt_like(self.projection, person)

    def finish_forgetting(self) -> None:
        """Remove the bytes of forgotten people that are still on the disk, if there are any, from the log and the
        snapshots.

        Raise TimeoutError if another process is reading the log."""
        finish_forgetting(self.projection)

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
        from heedful.loop.trials import start_experiment

        return start_experiment(self.projection, learner, share, frozen, alpha, id)

    def stop_experiment(self, *, id: str | None = None) -> Answer:
        """End the experiment that is running: the loop's learner serves everybody again. Return what became of the
        event.

        `id` is the caller's event id: sent again it counts once. Raise LookupError if no experiment runs."""
        from heedful.loop.trials import stop_experiment

        return stop_experiment(self.projection, id)

    def experiment(self, id: str | None = None) -> Experiment:
        """Return what the experiment `id` says so far; if that is None, the one that runs, or else the newest.

        That is which side people prefer and how sure it is, where the lists of the two sides differ, and why the
        candidate may not be promoted yet. The verdict holds however often one looks. Raise LookupError if there is no
        such experiment."""
        from heedful.loop.trials import find_experiment

        self.projection.look()
        return find_experiment(self.projection, id)

    def plan_experiment(self, share: float = 0.2, *, days: float = 14.0, alpha: float = 0.05) -> PlannedExperiment:
        """Return how likely an experiment of `days` days with a `share` of the people would find a better learner.

        It is simulated from how the loop has been used of late; nothing is begun. The verdict of the experiment would
        be wrong with probability `alpha` at most. Raise ValueError, naming the field, for a number out of range, and in
        a loop that shows no rankings."""
        from heedful.loop.experiment import plan_experiment

        check_between("days", days, 1e-3, 3650.0)
        self.projection.look()
        return plan_experiment(self.projection, share, days, alpha)

    def promote(
        self, learner: str | None = None, *, force: bool = False, by: str = "", reason: str = "", id: str | None = None
    ) -> Promoted:
        """Let another learner serve from here on, in one event that keeps the evidence and who did it.

        `learner` is a name with parameters; if it is None, it is the candidate of the experiment that runs, and the
        evidence is what people preferred (`experiment`). Otherwise the log has to say that it predicts answers better
        (`evaluate`). The learner that is promoted has learned from the whole log, and learns on. `by` and `reason` are
        kept in the log; `id` is the caller's event id: sent again it counts once. Raise ValueError if the learner does
        not fit, and its subclass `NotReady`, with the reasons, if the evidence does not suffice and `force` is False.

        `rollback` to a version before goes back on it, bit for bit, with all that came since; to go back on the learner
        alone, promote the former one.
        """
        from heedful.loop.trials import promote

        return promote(self.projection, learner, force, by, reason, id)

    def promotions(self) -> tuple[Promotion, ...]:
        """Return the promotions in this loop, each of a candidate learner to the one that serves, the newest first.

        Each comes with its evidence at that time and now. If feedback was undone or people were forgotten since, the
        two differ, and `changed` says so."""
        from heedful.loop.experiment import promotions

        self.projection.look()
        return promotions(self.projection)

    # ------------------------------------------------------------------------ looking back

    def why(self, decision: str, item: str | None = None, top: int = 10, *, budget: float = 100_000.0) -> Why:
        """Return why `item`, any candidate of the decision with the id `decision`, by default the first that it showed,
        had its score by the model that made the decision.

        That is what each of its features contributes, and the `top` pieces of feedback before the decision that moved
        the score most. The influence of a piece of feedback is the score minus that of a model made without it, if
        making all these models costs no more than `budget`, in updates of a small perceptron of about 20 microseconds;
        that is counted beforehand, from the log and the learner. Otherwise it is by how much the score moved when it
        was learned, which is the same for some learners; `events_by` and `features_by` say which method was used.
        Feedback that has been undone is not listed. Raise LookupError if there is no such decision, its person was
        forgotten, it showed nothing, or the item is not one of its candidates, and ValueError, naming the field, on bad
        input.
        """
        from heedful.loop.why import why

        self.projection.look()  # another process may have undone something
        return why(self.projection, decision, item, top, budget)

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
        from heedful.loop.recent_feedback import lessons

        self.projection.look()
        return lessons(self.projection, limit, before, person)

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
        _, view = self.projection.reading(None if person is None else check_id("person", person))
        return dict(zip(self.feature_names, view.model.effective(view).tolist()))

    def spreads_of(self, person: str | None) -> dict[str, float]:
        """Return the standard deviation of each weight that `weights_of` returns, by feature: the true weight is within
        one in two of three cases, within two in 19 of 20. Return {} if the learner cannot tell."""
        _, view = self.projection.reading(None if person is None else check_id("person", person))
        found = view.model.weight_spreads(view)
        return {} if found is None else dict(zip(self.feature_names, found.tolist()))

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
        return style_of(self.projection, person, alpha, describe)

    def correct_style(
        self, person: str | None = None, *, deny: str | None = None, always: str | None = None, id: str | None = None
    ) -> Answer:
        """Correct by hand what `style_of` says of `person` (None: of everybody); return what became of the event.

        `deny` is the name of a feature of style of which nothing is to be said; `always` is a sentence that is added.
        Exactly one of them is given. `id` is the caller's event id: sent again it counts once. `undo` takes it back,
        and `forget` erases it with the person. Raise ValueError, naming the field, if it makes no sense."""
        from heedful.loop.style import correct_style

        return correct_style(self.projection, person, deny, always, id)

    # ------------------------------------------------------------------------ keeping

    def snapshot(self) -> Place:
        """Write the model to a file in the loop's folder, which the next start begins from, and return the file's path;
        in a database, to a row of it, and return the loop's address.

        Raise OSError if it cannot be written, and ValueError if the model lacks feedback that the learner failed on."""
        return self.projection.snapshot()

    def note_export(self, path: str | Path) -> None:
        """Note in the log that its events were written to the file `path` ("-" for stdout): forgetting a person cannot
        reach it. Where the log cannot be written, `notes` says so."""
        note_export(self.projection, path)

    def exports(self) -> list[str]:
        """Return the paths of the files that exports wrote, each once, in the order of the log; "-" is stdout."""
        return exported(self.projection)

    def verify(self) -> list[str]:
        """Return what is wrong with the log and the model, a sentence each; [] if nothing is.

        The model is made again from the whole log, and has to be equal bit for bit; to 1e-6 if it began from a snapshot
        that another kind of processor had a part in."""
        return self.projection.verify()
