"""The rating interaction: people give numbers to what is shown, and the learner predicts them from everybody's ratings.

Its model (`model.RatingModel`) knows people and items by number, not by features. The file is long because `Rating`
answers every method of `Interaction`."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from heedful.core.validation import check_range, read_range
from heedful.core.wording import count
from heedful.data.ratings import read_ratings
from heedful.data.roles import fitting
from heedful.evaluation import answers
from heedful.evaluation.expected import Expected, absolute_error, value_order
from heedful.jit.kernel import Floats, Ints
from heedful.learners.ratings.interaction_matrix import places_of
from heedful.loop.interactions.columns import Columns, Encoded, Lessons, Ragged
from heedful.loop.interactions.forms import ACTIONS, NONE, RATING, by_name
from heedful.loop.interactions.options import LoopOption
from heedful.loop.interactions.protocol import (
    Compare,
    Interaction,
    ItemPrediction,
    Proposal,
    Question,
    Step,
    Tally,
    is_compiled_alike,
)
from heedful.loop.interactions.rating import texts
from heedful.loop.interactions.rating.compiled import RatingState, learn_ratings
from heedful.loop.interactions.rating.explanation import rating_contributions, rating_prediction
from heedful.loop.interactions.rating.learners import DEFAULT, check_table, rater
from heedful.loop.interactions.rating.model import CONSUMED, RatingModel
from heedful.loop.interactions.rating.slate import find_unrated, propose_slate
from heedful.loop.model import Answered, Context, View
from heedful.loop.packing import LoggedDecision
from heedful.loop.records import AnsweredItem, FeedbackRecord
from heedful.loop.settings import ACTIONS as ACTIONS_UNSAID
from heedful.loop.settings import Manifest, Settings
from heedful.results.evaluation import Measure
from heedful.results.explanation import Contributions
from heedful.results.report import RatingDetails
from heedful.spaces.slate import WeightedRatings

if TYPE_CHECKING:
    from heedful.data.ratings import RatingTable
    from heedful.data.table import Table
    from heedful.loop.interactions.findings import Findings
    from heedful.results.report import PredictionReport, Report


class Rating(Interaction[RatingModel]):
    """Feedback that gives numbers, ratings, to items; the learner predicts ratings from those of all people."""

    name, words = "rating", texts.WORDS
    forms = by_name(RATING, ACTIONS, NONE)
    model_type = RatingModel
    ranks = True
    shows_weights, details = False, RatingDetails
    setting, default_learner, by_number = "ratings", DEFAULT, True
    options = (
        LoopOption(
            "ratings",
            "Learn who likes what from ratings, 1..5; without FILE, items come by import.",
            str,
            "LOW..HIGH",
            setting="ratings",
            read=partial(read_range, "--ratings"),
        ),
    )
    action_syntax = "NAME=RATING:WEIGHT"

    scale: answers.Scale

    def __init__(self, manifest: Manifest, learner: Any) -> None:
        super().__init__(manifest, learner)
        low, high = self.span = learner.space.low, learner.space.high
        self.scale = answers.Scale(low, high, (high - low) / 2.0, apart=(high - low) / 4.0)

    def table_answers(
        self,
        table: Table,
        columns: Mapping[str, Sequence[str]],
        worth: Mapping[str, float],
        missing: Collection[str],
        items: Collection[str],
    ) -> tuple[list[str], int, Iterator[AnsweredItem]] | None:
        rated = fitting("rating", table.header) and self.manifest.encoding.identifier not in table.header
        if not (columns or rated or fitting("person", table.header)):
            return None
        read = read_ratings(table, columns, twice="last", words=worth, missing=missing)[0]
        there = set(items)
        return [name for name in read.item_names.tolist() if name not in there], len(read.values), _ratings(read)

    # ------------------------------------------------------------------------ making a loop

    @classmethod
    def check_settings(cls, settings: Settings) -> dict[str, Any]:
        low, high = check_range("ratings", settings.ratings)
        return {"ratings": (low, high), "actions": check_table(settings.actions, ACTIONS_UNSAID, low, high)}

    @classmethod
    def make_learner(cls, spec: str, manifest: Manifest) -> Any:
        return rater(spec, manifest.settings.k, manifest.settings.ratings, manifest.encoding.size)

    # ------------------------------------------------------------------------ how it speaks of itself

    def facts(self) -> dict[str, Any]:
        return {"ratings": list(self.span)}

    def gaps(self) -> dict[str, Any]:
        (low, high), settings = self.span, self.manifest.settings
        actions = [
            f"\n  {name}: a rating of {value:g} that counts as {weight:g}"
            for name, (value, weight) in settings.actions.items()
        ]
        names = self.manifest.encoding.names
        return super().gaps() | {
            "items": f"What is liked of one item tells of others that are like it, by {count(len(names), 'feature')}."
            if names
            else "Each item is known by its name alone.",
            "scale": f"{low:g} to {high:g}".replace("-", "−"),
            "again": "may be shown again" if settings.repeats else "is not shown again",
            "actions": "".join(actions),
        }

    def example(self, model: RatingModel, shown: Sequence[str]) -> tuple[str, dict[str, Any]]:
        low, high = self.span
        return f"rates it, {low:g} to {high:g}", {"rating": {shown[0]: high}}

    def findings(self, found: Report) -> Findings:
        if found.prediction is None:
            return super().findings(found)
        return texts.findings(super().findings(found), found, found.prediction, self.fill("{scale}"))

    def prediction_sentences(self, found: PredictionReport) -> Sequence[str]:
        return () if found.details["picked"] is None else (texts.pick_sentences(found.details["picked"]),)

    # ------------------------------------------------------------------------ the fold

    def columns(self, model: RatingModel) -> Columns | None:
        if not is_compiled_alike(model.learner):
            return None

        def encode(lesson: WeightedRatings, context: Context) -> Encoded:
            shown: Ints = np.array(context.x[list(context.record.shown)], np.int64)
            place = {item: j for j, item in enumerate(shown.tolist())}
            rated = np.array([place[item] for item in lesson.items.tolist()], np.int64)
            return Encoded(shown, shown[:0], rated, (lesson.ratings, lesson.weights), context.person)

        nothing = np.zeros(0)
        return Columns(
            0, (nothing, nothing), encode, learn_ratings, people=True, together=partial(_ratings_alone, model)
        )

    # ------------------------------------------------------------------------ reading

    def order(self, view: View[RatingModel], x: Ints) -> Ints:
        found = view.model.ratings(view, x)
        return np.arange(len(x)) if found is None else np.argsort(-found, kind="stable")

    def predict(self, view: View[RatingModel], x: Ints) -> list[ItemPrediction] | None:
        found = view.model.ratings(view, x)
        if found is None:
            return None
        spreads: Sequence[float | None] = view.model.spreads(view, x) or [None] * len(x)
        return [ItemPrediction(rating, spread) for rating, spread in zip(found.tolist(), spreads)]

    def why_not_predicted(self, shared: RatingState) -> str:
        if shared.users == 0:
            return "Nothing yet: what is shown first is as good as drawn. The first rating changes that."
        if not hasattr(self.learner, "ratings"):
            return f"Its learner, {self.manifest.learner}, predicts no ratings."
        return ""

    def used(self, view: View[RatingModel]) -> set[int]:
        """Actions count as a rating once their weights sum to 1."""
        return set(view.model.consumed_items(view).tolist())

    def own_answers(self, view: View[Any]) -> dict[int, str]:
        said, found, own = view.shared.said, dict[int, str](), view.person
        for p in places_of(said.by_user, -1 if own is None else own.state):
            if said.count[p] >= CONSUMED:
                found[int(said.item[p])] = f"said {said.total[p] / said.count[p]:.3g}".replace("-", "−")
            elif said.count[p] > 0.0:
                found[int(said.item[p])] = "looked at"
        return found

    def counts(self, shared: RatingState, items: int) -> str:
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

    def eligible(self, view: View[RatingModel], asked: Question) -> Ints | None:
        return find_unrated(view, asked)

    def propose(
        self, view: View[RatingModel], asked: Question, eligible: Ints | None, rng: np.random.Generator
    ) -> Proposal:
        return propose_slate(view, asked, eligible, self.manifest.settings, rng)

    # ------------------------------------------------------------------------ looking back

    def explained(self, view: View[RatingModel], x: Ints, place: int) -> dict[str, Any]:
        return rating_prediction(view, int(x[place]))._asdict()

    def item_scores(self, view: View[RatingModel], x: Ints, places: Sequence[int]) -> Floats | None:
        return view.model.ratings(view, np.asarray(x[list(places)], np.int64))

    def contributions(self, view: View[RatingModel], x: Ints, place: int) -> Contributions:
        return rating_contributions(view, int(x[place]))

    def measures(self) -> Sequence[tuple[Measure, Compare]]:
        most = self.scale.high - self.scale.low
        error = Measure("mean error", texts.ERROR, "nothing was rated", texts.MORE, 0.0, most, False)
        order = Measure("pairs in order", texts.PAIRS, "no answer rates two items differently", texts.MORE)
        return (
            (error, lambda said: absolute_error(said.numbers, most)),
            (order, lambda said: value_order(said.numbers)),
        )

    # ------------------------------------------------------------------------ reporting

    def tally(self) -> Tally:
        from heedful.loop.interactions.rating.prediction_report import rating_tally

        return rating_tally(self.scale)

    def expected(self, view: View[RatingModel], step: Step) -> Expected:
        return Expected(values=lambda items: view.model.ratings(view, step.rows(items)))

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


def _ratings_alone(
    model: RatingModel, answered: Sequence[Answered], items_at: Callable[[Ints], Ints]
) -> Lessons | None:
    """Do what `Columns.together` says of ratings, each of the only item that was shown."""
    for _, decision, feedback in answered:
        shown = len(decision.record.items) == 1 and decision.record.shown == (0,)
        if not shown or feedback.form != "rating" or feedback.chosen != [0]:
            return None
    n = len(answered)
    items = items_at(np.concatenate([decision.rows for _, decision, _ in answered]))
    if not model.are_there(items).all():
        return None
    starts, ends, zeros = np.arange(n + 1), np.zeros(n + 1, np.int64), np.zeros(n, np.int64)
    values = np.array([feedback.values[0] for _, _, feedback in answered])
    parts = Ragged(values, starts), Ragged(np.ones(n), starts)
    return Lessons(Ragged(items, starts), Ragged(zeros[:0], ends), Ragged(zeros, starts), parts)


def _ratings(read: RatingTable) -> Iterator[AnsweredItem]:
    """Yield the ratings that were `read`."""
    users, items = ([(name, json.dumps(name)) for name in n.tolist()] for n in (read.user_names, read.item_names))
    for u, i, value in zip(read.users, read.items, read.values):
        (user, quoted_user), (item, quoted_item), rating = users[u], items[i], float(value)
        # The content makes the id, so that the same rating is the same event whichever file brings it.
        told = f"[{quoted_user}, {quoted_item}, {rating!r}]".encode()
        yield AnsweredItem("table-" + hashlib.blake2b(told, digest_size=12).hexdigest(), user, item, "rating", rating)
