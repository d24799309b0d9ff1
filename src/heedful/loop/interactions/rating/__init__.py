"""The rating interaction: a person gives numbers to what is shown, and the learner predicts them from all who did.

The model is `RatingModel`, in `model`: it knows people and items by number, and is made of items, too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from heedful.core.fold import copy_arrays
from heedful.core.validation import describe
from heedful.jit.kernel import Ints
from heedful.learners.ratings.interaction_matrix import InteractionMatrix, place_of
from heedful.loop.catalogue import Catalogue
from heedful.loop.interactions import telling
from heedful.loop.interactions.card import Card, Prediction, Scale, Setting, Widget
from heedful.loop.interactions.findings import count
from heedful.loop.interactions.forms import ACTIONS, NONE, RATING, by_name
from heedful.loop.interactions.options import Chosen, LoopOption
from heedful.loop.interactions.protocol import Interaction, Past, Predicted, Proposal, Question, Step
from heedful.loop.interactions.rating import texts
from heedful.loop.interactions.rating.learners import DEFAULT, check_range, check_table, rater
from heedful.loop.interactions.rating.model import CONSUMED, RatingModel
from heedful.loop.interactions.rating.slate import left, propose_slate
from heedful.loop.log import Event
from heedful.loop.model import Context, Person, own_state
from heedful.loop.packing import LoggedDecision
from heedful.loop.records import Feedback, FeedbackRecord, decode_feedback
from heedful.loop.settings import ACTIONS as ACTIONS_UNSAID
from heedful.loop.settings import Manifest, Settings
from heedful.spaces.slate import WeightedRatings

if TYPE_CHECKING:
    from heedful.loop.counterfactual import Replayed
    from heedful.loop.explain import Explanation, Moved, Part
    from heedful.loop.interactions.findings import Findings
    from heedful.loop.prediction_report import PredictionReport
    from heedful.loop.report import Arm, Report

MOST = 30
"""Ratings of the item, and of the person, that are looked at one by one: the newest."""


class Rating(Interaction[RatingModel]):
    """What is shown is answered by a number."""

    name, takes, command = "rating", "ratings of what is shown", "heedful simulate ratings ratings.csv"
    loop = "a loop of ratings"
    forms = by_name(RATING, ACTIONS, NONE)
    model_type = RatingModel
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

    # ------------------------------------------------------------------------ manifest a loop

    @classmethod
    def choose(cls, given: Mapping[str, Any], learner: str | None) -> Chosen:
        """LOW..HIGH as two numbers."""
        low, dots, high = str(given["ratings"]).partition("..")
        try:
            if dots:
                return Chosen(learner, {"ratings": (float(low), float(high))})
        except ValueError:
            pass
        raise ValueError(f"--ratings: expected LOW..HIGH, such as 1..5, got {given['ratings']!r}")

    @classmethod
    def read_action(cls, name: str, said: str) -> tuple[float, float] | float:
        """RATING:WEIGHT as a pair; RATING, which counts as one rating."""
        rating, colon, weight = said.partition(":")
        try:
            return (float(rating), float(weight)) if colon else float(rating)
        except ValueError:
            raise ValueError(f"--action: expected {cls.action_syntax}, such as buy=5:1, got {name}={said}") from None

    @classmethod
    def check_settings(cls, settings: Settings) -> dict[str, Any]:
        """The range of ratings, and what each action stands for in it."""
        low, high = check_range(settings.ratings)
        return {"ratings": (low, high), "actions": check_table(settings.actions, ACTIONS_UNSAID, low, high)}

    @classmethod
    def check_manifest(cls, manifest: Manifest) -> None:
        """Items have no features."""
        if manifest.encoding.size and manifest.settings.ratings is not None:
            wanted = f"expected none in {cls.loop}, which learns from ratings alone"
            raise ValueError(f"encoding: features: {wanted}, got some")

    @classmethod
    def feature_names(cls, manifest: Manifest) -> list[str]:
        """None."""
        return []

    @classmethod
    def check_spec(cls, spec: str) -> None:
        """Over a range that any learner takes."""
        rater(spec, 1, (0.0, 1.0))

    @classmethod
    def make_learner(cls, spec: str, manifest: Manifest) -> Any:
        """One whose space is a Slate."""
        settings = manifest.settings
        return rater(spec, settings.k, settings.ratings, settings.shrink)

    # ------------------------------------------------------------------------ how it speaks of itself

    def introduce(self) -> list[str]:
        """The range, whether items are shown again, and what actions stand for."""
        (low, high), settings = self.span(), self.manifest.settings
        again = "may be shown again" if settings.repeats else "is not shown again"
        told = f"It learns who likes what from ratings from {low:g} to {high:g}, by {self.manifest.learner}, from no "
        actions = settings.actions.items()
        stands = [f"  {name}: a rating of {value:g} that counts as {weight:g}" for name, (value, weight) in actions]
        return [f"{told}features. What a person has rated {again}.", *stands]

    def describe(self) -> Card:
        """Ratings within the loop's range."""
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
                prediction=Prediction("rating", "the rating expected of each that is shown", low, high),
                score="the mean rating of what was shown",
                widget=Widget("scale", Scale("rating", low, high, selects=True, actions=weights, hidden=usual)),
                badge=f"ratings {low:g} to {high:g}".replace("-", "−"),
                weights=False,
                measure="Mean rating",
                measure_help="Of what was shown, by those who rated it.",
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
        """The lowest and the highest rating."""
        return {"ratings": list(self.span())}

    def example(self, model: RatingModel, shown: Sequence[str]) -> tuple[str, dict[str, Any]]:
        """The highest rating for the first."""
        low, high = self.span()
        return f"rates it, {low:g} to {high:g}", {"rating": {shown[0]: high}}

    def empty(self, given: Mapping[str, Any]) -> str:
        """What was withdrawn is not learned about."""
        return ": what it is about was withdrawn" if "rating" in given or "actions" in given else super().empty(given)

    def tell_explanation(self, told: Explanation) -> list[telling.Part]:
        """What was expected, how certain that was, and from what."""
        return (
            super().tell_explanation(told)
            if told.prediction is None
            else texts.explanation(told, RatingPrediction(**told.prediction))
        )

    def tell_replays(self, folds: Sequence[Replayed]) -> list[telling.Part]:
        """How far off each is, and how much of the order it has right."""
        return texts.replays(folds)

    def findings(self, found: Report) -> Findings:
        """How what was shown was rated, and how well that was predicted."""
        if found.prediction is None:
            return super().findings(found)
        return texts.findings(found, found.prediction, self.describe(), self.manifest.settings.control)

    # ------------------------------------------------------------------------ the fold

    def fresh(self) -> RatingModel:
        """A model that has learned nothing."""
        return RatingModel(self.learner, self.manifest.settings.actions)

    def personal(self, model: RatingModel) -> Any:
        """One person's own state: a number."""
        return model.nobody()

    def on_item(self, model: RatingModel, event: Event, catalogue: Catalogue) -> str:
        """All that was learned of an item goes with it; where the learner fails on that, the item goes all the same."""
        number, there = catalogue.number(event.subject or ""), event.arrays is not None
        try:
            model.put(number, there)
        except Exception as error:  # whatever a learner of somebody's own raises
            model.put(number, there, unlearn=False)
            return f"{type(model.learner).__name__} failed to unlearn it: {type(error).__name__}: {error}"
        return ""

    def teaches(self, model: RatingModel, lesson: Any) -> bool:
        """Whether any item of it is not withdrawn."""
        return model.knows(lesson)

    def publish(self, model: RatingModel) -> Any:
        """The state itself: the next lesson begins with a copy."""
        return model.published()

    # ------------------------------------------------------------------------ reading

    def order(self, model: RatingModel, shared: Any, own: Person | None, x: Ints) -> Ints:
        """By the rating that is expected; as they were asked for where none is."""
        found = model.ratings(shared, own, x)
        return np.arange(len(x)) if found is None else np.argsort(-found, kind="stable")

    def predict(self, model: RatingModel, shared: Any, own: Person | None, x: Ints) -> list[Predicted] | None:
        """The rating of each; None for a learner that does not say."""
        found = model.ratings(shared, own, x)
        if found is None:
            return None
        spreads: Sequence[float | None] = model.spreads(shared, own, x) or [None] * len(x)
        return [Predicted(rating, spread) for rating, spread in zip(found.tolist(), spreads)]

    def unpredicted(self, shared: Any) -> str:
        """Before the first rating, and of a learner without opinions."""
        if shared.users == 0:
            return "Nothing yet: what is shown first is as good as drawn. The first rating changes that."
        if not hasattr(self.learner, "ratings"):
            return f"Its learner, {self.manifest.learner}, predicts no ratings."
        return ""

    def used(self, model: RatingModel, shared: Any, own: Person | None) -> set[int]:
        """What they have consumed."""
        return set(model.consumed(shared, own).tolist())

    def own_answers(self, shared: Any, own: Person | None) -> dict[int, str]:
        """Their ratings; an item that actions alone are about was looked at."""
        said, found = shared.said, dict[int, str]()
        p = int(said.of_user[own.state.user]) if own is not None and own.state.user < said.of_user.size else -1
        while p >= 0:
            if said.count[p] >= CONSUMED:
                found[int(said.item[p])] = f"said {said.total[p] / said.count[p]:.3g}".replace("-", "−")
            elif said.count[p] > 0.0:
                found[int(said.item[p])] = "looked at"
            p = int(said.after_user[p])
        return found

    def counts(self, shared: Any, items: int) -> str:
        """Ratings, by whom and of what."""
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

    def eligible(self, model: RatingModel, shared: Any, own: Person | None, asked: Question) -> Ints | None:
        """What the person has not consumed."""
        return left(model, shared, own, asked)

    def propose(
        self,
        model: RatingModel,
        shared: Any,
        own: Person | None,
        asked: Question,
        eligible: Ints | None,
        rng: Any,
    ) -> Proposal:
        """The best of what is left, or by the caller's score or chance."""
        return propose_slate(model, shared, own, asked, eligible, self.manifest.settings, rng)

    # ------------------------------------------------------------------------ taking feedback

    def check_feedback(self, given: Feedback) -> None:
        """Ratings lie within the range."""
        low, high = self.span()
        for name, value in zip(given.names, given.values):
            if not low <= value <= high:
                wanted = f"expected a number from {low:g} to {high:g}"
                raise ValueError(f"rating[{describe(name)}]: {wanted}, got {_in_full(value)}")

    # ------------------------------------------------------------------------ looking back

    def explain(self, decision: LoggedDecision, context: Context, past: Past[RatingModel]) -> Explanation:
        """Why the first was shown: what was expected of it, how certain that was, and which ratings it comes from."""
        from heedful.loop.explain import Explanation

        model, first = past.model(), decision.record.shown[0]
        name, number = decision.names[first], int(context.x[first])
        person = own_state(model.people, decision.person)
        rating = rating_prediction(model, person, number)
        moved = _moved(model, past, decision, name, number) if rating.expected is not None else ()
        arm, margin = decision.record.arm, 0.0 if rating.expected is None else rating.expected
        because = _because(type(self.learner).__name__, arm, rating)
        parts = tuple(_parts(model, person, number, margin))
        return Explanation(decision.id, arm, name, None, because, margin, parts, moved, rating._asdict())

    def counterfactual(self, spec: str) -> _Counterfactual:
        """How far what another learner would have predicted lies from the ratings given."""
        settings = self.manifest.settings
        return _Counterfactual(RatingModel(rater(spec, settings.k, settings.ratings), settings.actions))

    # ------------------------------------------------------------------------ reporting

    def tally(self, model: RatingModel, shared: Any, people: dict[str, Person]) -> _Tally:
        """How well ratings were predicted."""
        return _Tally(model, shared, people, *self.span())

    def score(self, decision: LoggedDecision, answers: Sequence[FeedbackRecord]) -> float | None:
        """The mean of all ratings; None without any."""
        given = [value for feedback in answers if feedback.form == "rating" for value in feedback.values]
        return sum(given) / len(given) if given else None

    def span(self) -> tuple[float, float]:
        """The range of ratings."""
        return self.learner.space.low, self.learner.space.high

    def unsaid(self, learned: Arm, control: Arm, level: bool, forms: set[str]) -> str:
        """Of what was shown by what was learned, and what the caller's score or chance showed."""
        if self.manifest.settings.control == 0.0 and control.shown == 0:
            return "nothing is left to the caller's score or chance, as control is 0: there is nothing to compare with"
        for arm, how in ((learned, "made from what was learned"), (control, "left to the caller's score or chance")):
            if arm.answered == 0:
                return f"nothing that was {how} was rated so far"
        if level:
            return "all ratings of either kind of list were the same: chance cannot be told"
        return "too few people have rated: of either kind of list it takes the ratings of two at least"


def _in_full(value: float) -> str:
    """A number that lies beyond a bound, with as many digits as it takes to see it: "6", "5.0000001"."""
    return short if float(short := f"{value:g}") == value else repr(value)


# ---------------------------------------------------------------------------- why


class RatingPrediction(NamedTuple):
    """What was expected of an item, and from how much."""

    expected: float | None
    """the rating, within the range; None for a learner that does not say"""
    spread: float | None
    """the standard deviation of that belief; None where it is not known"""
    by_all: float
    """how many ratings the item had from all by then, actions by their weight; and their mean, None without any"""
    mean_of_all: float | None
    by_person: float
    """... how many the person had given, and their mean"""
    mean_of_person: float | None
    own: float
    """... how many of this item by this person, and their mean"""
    mean_of_own: float | None


def rating_prediction(model: RatingModel, person: Person | None, number: int) -> RatingPrediction:
    """What a model expects of an item, and from how much."""
    item, said = np.array([number]), model.shared.said
    found = model.ratings(model.shared, person, item)
    spreads = model.spreads(model.shared, person, item)
    user = -1 if person is None else person.state.user
    return RatingPrediction(
        None if found is None else float(found[0]),
        None if spreads is None else spreads[0],
        *_tally(said, _linked(said.of_item, said.after_item, number)),
        *_tally(said, _linked(said.of_user, said.after_user, user)),
        *_tally(said, [p for p in [place_of(said, user, number) if user >= 0 else -1] if p >= 0]),
    )


def _linked(newest: Ints, after: Ints, one: int) -> list[int]:
    """The places of the pairs of one person, or item."""
    found, p = [], int(newest[one]) if 0 <= one < newest.size else -1
    while p >= 0:
        found.append(p)
        p = int(after[p])
    return found


def _tally(said: InteractionMatrix, places: list[int]) -> tuple[float, float | None]:
    """(how many ratings, their mean) of these pairs."""
    count = float(said.count[places].sum())
    return count, float(said.total[places].sum()) / count if count > 0.0 else None


def _because(learner: str, arm: str, rating: RatingPrediction) -> str:
    if arm == "control":
        return "this was a control: the caller's score or chance decided, whatever the model says"
    if arm == "imported":
        return "somebody else chose this; the rating is what the model expected at that time"
    if rating.expected is None:
        return f"{learner} showed this, and does not say what it expects"
    if rating.spread is None:
        return f"{learner} put this first of what was left; the rating is what it expected"
    return f"{learner} put this first of what was left: by the rating it expected, and by how uncertain that was"


def _parts(model: RatingModel, person: Person | None, number: int, margin: float) -> Iterator[Part]:
    """What an expected rating is the sum of, as far as the learner says."""
    from heedful.loop.explain import Part

    learner = model.learner
    if not hasattr(learner, "parts") or not model.shared.said.count.any():
        return
    left = margin
    for name, value in learner.parts(model.shared.learned, model.offer(model.shared, person, np.array([number]))):
        counts = float(value[0])
        left -= counts
        if counts != 0.0:
            yield Part(name, 1.0, counts, 0.0, counts)
    if abs(left) > 1e-9 * max(abs(margin), 1.0):
        yield Part("kept within the range", 1.0, left, 0.0, left)


def _moved(
    model: RatingModel, past: Past[RatingModel], known: LoggedDecision, name: str, number: int
) -> tuple[Moved, ...]:
    """Which ratings of the item, and of the person, an expected rating comes from: by how much it would be different
    without each; the most first."""
    from heedful.loop.explain import Moved

    if not hasattr(model.learner, "without_rating"):
        return ()
    moved, person = [], own_state(model.people, known.person)
    now = _raw(model, model.shared.learned, person, number)
    middle = (model.learner.space.low + model.learner.space.high) / 2.0
    weight_of_all = float(model.shared.said.count[: model.shared.said.used].sum())
    for event, ratings in _about(model, past, known, name, number):
        state, left = copy_arrays(model.shared.learned), weight_of_all
        for user, item, rating, weight in ratings:
            try:
                weighs = () if weight == 1.0 else (weight,)
                state = model.learner.without_rating(state, user, item, rating, *weighs)
            except LookupError:  # taken out already, with its item
                continue
            left -= weight
        # Where nothing is left that anybody rated, the middle is expected, whatever the learner made of it.
        by = now - (_raw(model, state, person, number) if left > 1e-9 * weight_of_all else middle)
        if by != 0.0:
            moved.append(Moved(event.id, event.seq, decode_feedback(event.payload).form, by))
    return tuple(sorted(moved, key=lambda each: -abs(each.by)))


def _raw(model: RatingModel, learned: Any, person: Person | None, number: int) -> float:
    """An expected rating."""
    found = model.ratings(model.shared._replace(learned=learned), person, np.array([number]))
    return 0.0 if found is None else float(found[0])


def _about(
    model: RatingModel, past: Past[RatingModel], known: LoggedDecision, name: str, number: int
) -> list[tuple[Event, list[tuple[int, int, float, float]]]]:
    """The newest feedback on the item, and of the person, that a model is made of, each with what it says of that:
    (user, item, rating, weight)."""
    hers: list[Any] = []
    others: list[Any] = []
    for event, decision, feedback in past.feedback():
        same = decision.person is not None and decision.person == known.person
        if decision.person not in model.people:
            continue
        if not same and name not in decision.names:
            continue
        context = past.context(decision)
        lesson = model.lesson(context, feedback, context.x[:0])
        user = model.people[decision.person or ""].state.user
        said = zip(*(part.tolist() for part in lesson)) if lesson is not None else ()
        ratings = [(user, *each) for each in said if same or each[0] == number]
        if ratings:
            (hers if same else others).append((event, ratings))
    return [*hers[-MOST:], *others[-MOST:]]


# ---------------------------------------------------------------------------- what another would say


class _Counterfactual:
    """The mean of |predicted - given|; how many pairs that one answer rates differently are in the right order."""

    def __init__(self, model: RatingModel) -> None:
        self.model = model
        self._off, self._rated, self._right, self._compared = 0.0, 0, 0.0, 0.0

    def score(self, step: Step) -> None:
        """How far off what the model predicts of all that is rated is, and in which order."""
        if step.feedback.form != "rating":
            return
        model = self.model
        lesson: WeightedRatings | None = model.lesson(step.context, step.feedback, step.extra)
        person = own_state(model.people, step.decision.person)
        predicted = None if lesson is None else model.ratings(model.shared, person, lesson.items)
        if lesson is None or predicted is None:
            return
        given = lesson.ratings
        self._off, self._rated = self._off + float(np.abs(predicted - given).sum()), self._rated + given.size
        self._right += _in_order(given, predicted)
        self._compared += _in_order(given, given)

    def result(self, spec: str, lessons: int) -> Replayed:
        """The error, and the share of pairs."""
        from heedful.loop.counterfactual import Replayed

        agreement = self._right / self._compared if self._compared else None
        error = self._off / self._rated if self._rated else None
        return Replayed(spec, lessons, {}, agreement, self._compared, error, self._rated)


def _in_order(given: Any, predicted: Any) -> float:
    """How many pairs that were rated differently are predicted in that order; ties count half."""
    signs = np.sign(given[:, None] - given[None, :]) * np.sign(predicted[:, None] - predicted[None, :])
    apart = np.triu(given[:, None] != given[None, :])
    return float(((signs[apart] + 1.0) / 2.0).sum())


# ---------------------------------------------------------------------------- what is reported


class _Tally:
    """How well ratings were predicted."""

    def __init__(self, model: RatingModel, shared: Any, people: dict[str, Person], low: float, high: float) -> None:
        from heedful.loop.interactions.rating.prediction_report import RatingTally

        self._model, self._shared, self._people, self._far = model, shared, people, (high - low) / 4.0
        self._compared = RatingTally(low, high)

    def contradicts(self, step: Step, lesson: Any) -> bool:
        """Whether the model would expect another rating of one of these, by more than a quarter of the range."""
        person = step.decision.person
        own = own_state(self._people, person)
        found = self._model.ratings(self._shared, own, lesson.items)
        return found is not None and bool(np.abs(found - lesson.ratings).max() > self._far)

    def take(self, decision: LoggedDecision, given: Sequence[tuple[Event, FeedbackRecord]]) -> None:
        """A decision with the feedback on it that counts."""
        self._compared.take(decision, given)

    def report(self) -> PredictionReport:
        """What ratings were given, and how far off what was predicted lay."""
        return self._compared.report()
