"""The rating interaction: people give numbers to what is shown, and the learner predicts them from everybody's ratings.

Its model (`model.RatingModel`) knows people and items by number, not by features. The file is long because `Rating`
answers every method of `Interaction`."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from heedful.core.validation import describe
from heedful.core.wording import count
from heedful.data.ratings import read_ratings
from heedful.data.roles import fitting
from heedful.evaluation import answers
from heedful.jit.kernel import Floats, Ints
from heedful.loop.catalogue import Catalogue
from heedful.loop.interactions import telling
from heedful.loop.interactions.card import Card, Prediction, Scale, Setting, Widget
from heedful.loop.interactions.forms import ACTIONS, NONE, RATING, by_name
from heedful.loop.interactions.measure import Compared
from heedful.loop.interactions.options import KindChoice, LoopOption
from heedful.loop.interactions.protocol import (
    Interaction,
    ItemPrediction,
    Past,
    Proposal,
    Question,
    Step,
    Tally,
)
from heedful.loop.interactions.rating import texts
from heedful.loop.interactions.rating.explanation import RatingPrediction, explain_rating, rating_contributions
from heedful.loop.interactions.rating.learners import DEFAULT, check_range, check_table, rater
from heedful.loop.interactions.rating.model import CONSUMED, RatingModel, RatingState
from heedful.loop.interactions.rating.slate import find_unrated, propose_slate
from heedful.loop.log import Event
from heedful.loop.model import Context, Person, own_state
from heedful.loop.packing import LoggedDecision
from heedful.loop.records import DecisionRecord, Feedback, FeedbackRecord
from heedful.loop.settings import ACTIONS as ACTIONS_UNSAID
from heedful.loop.settings import Manifest, Settings
from heedful.results.evaluation import Measure
from heedful.results.explanation import Contributions
from heedful.spaces.slate import WeightedRatings

if TYPE_CHECKING:
    from heedful.data.table import Table
    from heedful.loop.interactions.findings import Findings
    from heedful.results.explanation import Explanation
    from heedful.results.report import Arm, Report


class Rating(Interaction[RatingModel]):
    """Feedback that gives numbers, ratings, to items; the learner predicts ratings from those of all people."""

    name, takes, command = "rating", "ratings of what is shown", "heedful simulate ratings ratings.csv"
    loop = "a loop of ratings"
    forms = by_name(RATING, ACTIONS, NONE)
    model_type = RatingModel
    interleaves = True
    item_features = "none"
    setting, default_learner, by_number = "ratings", DEFAULT, True
    folds_items, takes_repeats, keeps_unshown = True, True, False
    options = (
        LoopOption(
            "ratings",
            "Learn who likes what from ratings alone, 1..5; without FILE, items come by import.",
            str,
            "LOW..HIGH",
        ),
    )
    action_syntax = "NAME=RATING:WEIGHT"

    def __init__(self, manifest: Manifest, learner: Any) -> None:
        super().__init__(manifest, learner)
        low, high = learner.space.low, learner.space.high
        self.scale = answers.Scale(low, high, (high - low) / 2.0)

    def table_lines(
        self,
        table: Table,
        columns: Mapping[str, Sequence[str]],
        worth: Mapping[str, float],
        missing: Collection[str],
        items: Collection[str],
    ) -> list[dict[str, Any]] | None:
        rated = fitting("rating", table.header) and self.manifest.encoding.identifier not in table.header
        if not (columns or rated or fitting("person", table.header)):
            return None
        read = read_ratings(table, columns, twice="last", words=worth, missing=missing)[0]
        users, names = read.user_names.tolist(), read.item_names.tolist()
        new = [name for name in names if name not in set(items)]
        lines: list[dict[str, Any]] = [{"kind": "item", "id": name} for name in new]
        for user, item, value in zip(read.users.tolist(), read.items.tolist(), read.values.tolist()):
            told = [users[user], names[item], value]
            # The content makes the id, so that the same rating is the same event whichever file brings it.
            id = "table-" + hashlib.blake2b(json.dumps(told).encode(), digest_size=16).hexdigest()
            shown = [names[item]]
            lines.append({"kind": "decision", "id": id, "person": users[user], "candidates": shown, "shown": shown})
            lines.append({"kind": "feedback", "id": id, "decision": id, "rating": {names[item]: value}})
        return lines

    # ------------------------------------------------------------------------ making a loop

    @classmethod
    def choose(cls, given: Mapping[str, object], learner: str | None) -> KindChoice:
        """Return the learner and settings that the options of `heedful init` for loops of ratings stand for.

        `given` holds the values of the options; the option --ratings LOW..HIGH becomes the setting `ratings`, (lowest,
        highest). `learner` is the learner that was named, None for the default. Raise ValueError if the range cannot be
        read."""
        low, dots, high = str(given["ratings"]).partition("..")
        try:
            if dots:
                return KindChoice(learner, {"ratings": (float(low), float(high))})
        except ValueError:
            pass
        raise ValueError(f"--ratings: expected LOW..HIGH, such as 1..5, got {given['ratings']!r}")

    @classmethod
    def read_action(cls, name: str, said: str) -> tuple[float, float] | float:
        """Return what the action `name` stands for, from the text `said` on a command line: "RATING:WEIGHT" or
        "RATING".

        "RATING:WEIGHT" gives a pair of numbers; "RATING" gives one number, a rating that counts as one. Raise
        ValueError for anything else."""
        rating, colon, weight = said.partition(":")
        try:
            return (float(rating), float(weight)) if colon else float(rating)
        except ValueError:
            raise ValueError(f"--action: expected {cls.action_syntax}, such as buy=5:1, got {name}={said}") from None

    @classmethod
    def check_settings(cls, settings: Settings) -> dict[str, Any]:
        """Return the settings that this kind of feedback checks, by name, as they are stored.

        They are `ratings`, the (lowest, highest) rating, and `actions`, the (rating, weight) that each action stands
        for, by name. Raise ValueError, naming the setting, if one is not valid."""
        low, high = check_range(settings.ratings)
        return {"ratings": (low, high), "actions": check_table(settings.actions, ACTIONS_UNSAID, low, high)}

    @classmethod
    def check_manifest(cls, manifest: Manifest) -> None:
        """Raise ValueError if items have features, which this kind does not use, or a share of lists is to be drawn at
        random."""
        super().check_manifest(manifest)
        if manifest.encoding.size and manifest.settings.ratings is not None:
            wanted = f"expected none in {cls.loop}, which learns from ratings alone"
            raise ValueError(f"encoding: features: {wanted}, got some")

    @classmethod
    def feature_names(cls, manifest: Manifest) -> list[str]:
        """Return []: learners of ratings use no features."""
        return []

    @classmethod
    def check_spec(cls, spec: str) -> None:
        """Raise ValueError, naming the parameter, if `spec` gives a learner parameters that it does not have."""
        rater(spec, 1, (0.0, 1.0))

    @classmethod
    def make_learner(cls, spec: str, manifest: Manifest) -> Any:
        """Return the learner of ratings that `spec` names, for the range of ratings in `manifest`.

        Raise ValueError if there is no such learner or it does not fit."""
        settings = manifest.settings
        return rater(spec, settings.k, settings.ratings, settings.shrink)

    # ------------------------------------------------------------------------ how it speaks of itself

    def introduce(self) -> list[str]:
        """Return sentences for the user who has created a loop: the range of ratings, whether rated items are shown
        again, what actions stand for."""
        (low, high), settings = self.span(), self.manifest.settings
        again = "may be shown again" if settings.repeats else "is not shown again"
        told = f"It learns who likes what from ratings from {low:g} to {high:g}, by {self.manifest.learner}, from no "
        actions = settings.actions.items()
        stands = [f"  {name}: a rating of {value:g} that counts as {weight:g}" for name, (value, weight) in actions]
        return [f"{told}features. What a person has rated {again}.", *stands]

    def describe(self) -> Card:
        """Return the description of loops of ratings, from which pages and commands are written."""
        low, high = self.span()
        actions = self.manifest.settings.actions
        weights = {name: weight for name, (_, weight) in actions.items()}
        usual = actions == Settings(ratings=(low, high)).actions
        return (
            super()
            .describe()
            ._replace(
                title="Ratings",
                answer="rating",
                question=f"How much do you like each of these, from {low:g} to {high:g}?",
                prediction=Prediction("rating", low, high, texts.ORDER),
                score="the mean rating of what was shown",
                widget=Widget("scale", Scale("rating", low, high, selects=True, actions=weights, hidden=usual)),
                badge=f"ratings {low:g} to {high:g}".replace("-", "−"),
                weights=False,
                measure="Mean rating",
                measure_help="Of what was shown, by the people who rated it.",
                contradiction="would predict a rating more than a quarter of the scale away",
                arms=("learned choice", "control (your score, or chance)"),
                settings=(
                    Setting("ratings", "the lowest and the highest rating there may be", [1, 5]),
                    Setting("actions", "the rating that each action stands for, as how many", {"buy": [5, 1]}),
                    Setting("repeats", "whether what a person has rated is shown to them again", True),
                ),
            )
        )

    def facts(self) -> dict[str, Any]:
        """Return the range of ratings, as {"ratings": [lowest, highest]}."""
        return {"ratings": list(self.span())}

    def example(self, model: RatingModel, shown: Sequence[str]) -> tuple[str, dict[str, Any]]:
        """Return (an answer in words, the same answer as JSON fields of feedback), to show how a decision can be
        answered.

        The answer is the highest rating for the first item of `shown`, names of items; `model` is not used."""
        low, high = self.span()
        return f"rates it, {low:g} to {high:g}", {"rating": {shown[0]: high}}

    def why_empty(self, model: RatingModel, record: DecisionRecord, feedback: FeedbackRecord) -> str:
        """Return in words why `model` learned nothing from `feedback` on the decision in `record`: ratings of items
        that are withdrawn by now teach nothing."""
        if feedback.form == "none" or not feedback.chosen:
            return super().why_empty(model, record, feedback)
        return "what it is about was withdrawn"

    def tell_explanation(self, told: Explanation) -> list[telling.Part]:
        """Return an explanation of a decision, `told`, as lines and tables.

        They hold the rating expected of the person for the first item, its standard deviation, and the ratings from
        which it was computed."""
        return (
            super().tell_explanation(told)
            if told.prediction is None
            else texts.explanation(told, RatingPrediction(**told.prediction))
        )

    def findings(self, found: Report) -> Findings:
        """Return the report `found` in words and pictures: how what was shown was rated, and how well that was
        predicted."""
        if found.prediction is None:
            return super().findings(found)
        return texts.findings(found, found.prediction, self.describe(), self.manifest.settings.control)

    # ------------------------------------------------------------------------ the fold

    def fresh(self) -> RatingModel:
        """Return a model that has learned nothing."""
        return RatingModel(self.learner, self.manifest.settings.actions)

    def personal(self, model: RatingModel) -> Any:
        """Return an example of the state kept for each person, the number by which the learner knows them.

        Reading a snapshot needs it as a template for the states in the file."""
        return model.nobody()

    def on_item(self, model: RatingModel, event: Event, catalogue: Catalogue) -> str:
        """Update `model`, in place, with `event`: an item was put on offer or withdrawn.

        What was learned of a withdrawn item is removed; if the learner fails at that, the item is withdrawn all the
        same. `catalogue` holds the items of the loop. Return "", or the learner's error as text."""
        number, there = catalogue.number(event.subject or ""), event.arrays is not None
        try:
            model.put(number, there)
        except Exception as error:  # whatever a learner of somebody's own raises
            model.put(number, there, unlearn=False)
            return f"{type(model.learner).__name__} failed to unlearn it: {type(error).__name__}: {error}"
        return ""

    def teaches(self, model: RatingModel, lesson: WeightedRatings) -> bool:
        """Return whether the training example `lesson`, items with ratings, has an item that is still on offer."""
        return model.knows(lesson)

    def publish(self, model: RatingModel) -> RatingState:
        """Return the state for all people in `model`, for the threads that make decisions.

        It is not copied: the next update copies the arrays that it changes."""
        return model.present_state()

    # ------------------------------------------------------------------------ reading

    def order(self, model: RatingModel, shared: RatingState, own: Person | None, x: Ints) -> Ints:
        """Return the indices of the m candidates by the rating expected of this person, highest first (m,).

        `x` (m,) are the numbers of the items. `model` holds the learner, `shared` its state for all people, `own` the
        person's number, None for a new person. If the learner predicts no ratings, it is the order of the request."""
        found = model.ratings(shared, own, x)
        return np.arange(len(x)) if found is None else np.argsort(-found, kind="stable")

    def predict(
        self, model: RatingModel, shared: RatingState, own: Person | None, x: Ints
    ) -> list[ItemPrediction] | None:
        """Return the rating expected of this person for each of the m candidates; None if the learner predicts none.

        `x` (m,) are the numbers of the items. `model` holds the learner, `shared` its state for all people, `own` the
        person's number, None for a new person."""
        found = model.ratings(shared, own, x)
        if found is None:
            return None
        spreads: Sequence[float | None] = model.spreads(shared, own, x) or [None] * len(x)
        return [ItemPrediction(rating, spread) for rating, spread in zip(found.tolist(), spreads)]

    def why_not_predicted(self, shared: RatingState) -> str:
        """Return why no rating is predicted, in words: there is none so far, or the learner predicts none; else ""."""
        if shared.users == 0:
            return "Nothing yet: what is shown first is as good as drawn. The first rating changes that."
        if not hasattr(self.learner, "ratings"):
            return f"Its learner, {self.manifest.learner}, predicts no ratings."
        return ""

    def used(self, model: RatingModel, shared: RatingState, own: Person | None) -> set[int]:
        """Return the numbers of the items that the person has rated, which are not shown again unless the request asks
        for it.

        Actions count as a rating once their weights sum to 1. `model` holds the learner, `shared` its state for all
        people, `own` the person's number, None for a new person."""
        return set(model.consumed_items(shared, own).tolist())

    def own_answers(self, shared: RatingState, own: Person | None) -> dict[int, str]:
        """Return what the person answered about each item, in words, by item number: "said 4" or "looked at".

        "said 4" gives the mean of the person's ratings of the item; "looked at" stands for actions that weigh less than
        a rating. `shared` is the state for all people, `own` the person's number, None for a new person."""
        said, found = shared.said, dict[int, str]()
        p = int(said.of_user[own.state.user]) if own is not None and own.state.user < said.of_user.size else -1
        while p >= 0:
            if said.count[p] >= CONSUMED:
                found[int(said.item[p])] = f"said {said.total[p] / said.count[p]:.3g}".replace("-", "−")
            elif said.count[p] > 0.0:
                found[int(said.item[p])] = "looked at"
            p = int(said.after_user[p])
        return found

    def counts(self, shared: RatingState, items: int) -> str:
        """Return a sentence with the numbers of ratings, people who rated, and rated items that the state `shared`
        holds.

        `items` is the number of items on offer."""
        said = shared.said
        there = said.count[: said.used]
        ratings, rated = float(there.sum()), int(np.unique(said.item[: said.used][there > 0.0]).size)
        if not ratings:
            return f"No ratings so far, of {count(items, 'item')} on offer."
        people = int(np.unique(said.user[: said.used][there > 0.0]).size)
        many = "1 rating" if ratings == 1.0 else f"{ratings:,.6g} ratings"
        part = "" if ratings == int(ratings) else ", where actions count by their weight"
        by = count(people, "person", "people")
        return f"{many} by {by}, of {rated:,} of {count(items, 'item')} on offer{part}."

    # ------------------------------------------------------------------------ deciding

    def eligible(self, model: RatingModel, shared: RatingState, own: Person | None, asked: Question) -> Ints | None:
        """Return the indices of the candidates that the person of the request `asked` has not rated yet, None for all.

        `model` holds the learner, `shared` its state for all people, `own` the person's number, None for a new person.
        Raise ValueError if there is none."""
        return find_unrated(model, shared, own, asked)

    def propose(
        self,
        model: RatingModel,
        shared: RatingState,
        own: Person | None,
        asked: Question,
        eligible: Ints | None,
        rng: np.random.Generator,
    ) -> Proposal:
        """Return the best candidates for the request `asked`, with the ratings predicted for them.

        If the list is made for comparison (the control), they are the best by the caller's score or, without scores, a
        random sample.

        - `model`, `shared`: the model, and its state for all people
        - `own`: the person's number, None for a new person
        - `eligible`: indices of the candidates that may be shown; None for all
        - `rng`: the random generator of this decision"""
        return propose_slate(model, shared, own, asked, eligible, self.manifest.settings, rng)

    # ------------------------------------------------------------------------ taking feedback

    def check_feedback(self, given: Feedback) -> None:
        """Raise ValueError unless all ratings in `given` lie within the range."""
        low, high = self.span()
        for name, value in zip(given.names, given.values):
            if not low <= value <= high:
                wanted = f"expected a number from {low:g} to {high:g}"
                raise ValueError(f"rating[{describe(name)}]: {wanted}, got {_in_full(value)}")

    # ------------------------------------------------------------------------ looking back

    def explain(self, decision: LoggedDecision, context: Context, past: Past[RatingModel]) -> Explanation:
        """Return why the first item of a decision was shown: the rating expected, its uncertainty, and the ratings from
        which it was computed.

        `context` is the `decision` with the numbers of its candidates, `past` the log up to it, from which the model of
        that time is learned again."""
        return explain_rating(type(self.learner).__name__, decision, context, past)

    def item_scores(self, model: RatingModel, person: str | None, x: Ints, places: Sequence[int]) -> Floats | None:
        """Return the ratings (k,) that `model` expects of `person` for the k candidates at the indices `places`.

        `x` are the item numbers of all m candidates (m,). Return None for a learner that predicts no ratings."""
        return model.ratings(model.shared, own_state(model.people, person), np.asarray(x[list(places)], np.int64))

    def contributions(self, model: RatingModel, person: str | None, x: Ints, place: int) -> Contributions:
        """Return the terms whose sum is the rating that `model` expects of `person` for one item.

        They are the mean of all ratings, the offset of the person, and so on; as items are known by number, no term is
        a feature. `x` are the item numbers of the m candidates (m,), `place` is the index of the item among them."""
        return rating_contributions(model, own_state(model.people, person), int(x[place]))

    def candidate(self, spec: str) -> RatingModel:
        """Return an untrained model of another learner of ratings, with the same range, to be evaluated on this loop's
        log.

        Raise ValueError if `spec` names no such learner."""
        settings = self.manifest.settings
        return RatingModel(rater(spec, settings.k, settings.ratings), settings.actions)

    def measures(self) -> tuple[Measure, ...]:
        """Return the two measures by which learners are compared, by the ratings that they predict.

        They are the mean absolute error, and the share of pairs of differently rated items that are predicted in
        order."""
        low, high = self.span()
        return (
            Measure("mean error", texts.ERROR, "nothing was rated", texts.MORE, 0.0, high - low, False),
            Measure("pairs in order", texts.PAIRS, "no answer rates two items differently", texts.MORE),
        )

    def compare(self, models: Sequence[RatingModel], step: Step) -> Sequence[Compared | None]:
        """Return the (mean absolute error, share of pairs in order) of the ratings that L models predict for the items
        rated in `step`.

        Both are a `Compared`: the absolute error of each predicted rating, and, for each pair of differently rated
        items, whether it is predicted in order (a predicted tie counts 1/2). `step` is one piece of feedback with its
        decision, from which none of the `models` has learned yet. Return (None, None) without ratings."""
        lesson: WeightedRatings | None = models[0].lesson(step.context, step.feedback, step.extra)
        if step.feedback.form != "rating" or lesson is None:
            return None, None
        predicted = np.empty((len(models), lesson.ratings.size))
        for row, model in zip(predicted, models):
            found = model.ratings(model.shared, own_state(model.people, step.decision.person), lesson.items)
            row[:] = np.nan if found is None else found
        given, (low, high) = lesson.ratings, self.span()
        errors = np.minimum(np.abs(predicted - given), high - low)
        first, second = np.nonzero(np.triu(given[:, None] != given[None, :]))
        signs = np.sign(given[first] - given[second]) * np.sign(predicted[:, first] - predicted[:, second])
        return Compared(errors, np.ones(given.size)), Compared((signs + 1.0) / 2.0, np.ones(first.size))

    # ------------------------------------------------------------------------ reporting

    def tally(self) -> Tally:
        """Return a new collector of predicted and given ratings, for the report."""
        from heedful.loop.interactions.rating.prediction_report import RatingTally

        return RatingTally(*self.span())

    @staticmethod
    def prediction_details() -> type:
        """Return the msgspec struct of what loops of ratings add to the report of predictions
        (`PredictionReport.details`)."""
        from heedful.results.report import RatingDetails

        return RatingDetails

    def contradicts(
        self, model: RatingModel, shared: RatingState, own: Person | None, step: Step, lesson: WeightedRatings
    ) -> bool:
        """Return whether a rating given differs by over a quarter of the range of ratings from what the model expects
        now.

        - `model`, `shared`: the model, and its state for all people
        - `own`: the person's number, None for a new person
        - `step`: one piece of feedback with the decision that it answers
        - `lesson`: the training example made of it, items with ratings"""
        (low, high), found = self.span(), model.ratings(shared, own, lesson.items)
        return found is not None and bool(np.abs(found - lesson.ratings).max() > (high - low) / 4.0)

    def answer(self, decision: LoggedDecision, feedback: FeedbackRecord) -> answers.Answer:
        if feedback.form != "actions":
            return super().answer(decision, feedback)
        weights, values, actions = dict[int, float](), dict[int, float](), self.manifest.settings.actions
        for j, names in zip(feedback.chosen, feedback.done):
            weights[j] = sum(actions[name][1] for name in names)
            values[j] = sum(actions[name][0] * actions[name][1] for name in names) / (weights[j] or 1.0)
        return answers.Answer(values, weights, stated=False)

    def score(self, decision: LoggedDecision, feedback: Sequence[FeedbackRecord]) -> float | None:
        return answers.mean_value([self.answer(decision, each) for each in feedback])

    def span(self) -> tuple[float, float]:
        """Return the (lowest, highest) rating of the range."""
        return self.learner.space.low, self.learner.space.high

    def why_not_compared(self, learned: Arm, control: Arm, level: bool, forms: set[str]) -> str:
        """Return in words why the model's lists and control lists (by the caller's score, or random) cannot be
        compared.

        `learned` and `control` hold the counts of either sort, and how they were rated; `level` says whether all lists
        have the same mean rating; `forms` is not used."""
        if self.manifest.settings.control == 0.0 and control.shown == 0:
            return "nothing is left to the caller's score or chance, as control is 0: there is nothing to compare with"
        for arm, how in ((learned, "made from what was learned"), (control, "left to the caller's score or chance")):
            if arm.answered == 0:
                return f"nothing that was {how} was rated so far"
        if level:
            return "all ratings of either kind of list were the same: chance cannot be told"
        return "too few people have rated: of either kind of list it takes the ratings of two at least"

    # ------------------------------------------------------------------------ the health of feedback


def _in_full(value: float) -> str:
    """Return a number with as many digits as it takes to tell it from a bound that it exceeds: "6", "5.0000001"."""
    return short if float(short := f"{value:g}") == value else repr(value)
