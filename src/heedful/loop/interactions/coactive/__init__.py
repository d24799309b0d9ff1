"""The coactive interaction: people say what is better than what was shown, by clicks, an order, an edit or a thumb.

Its model (`model.Model`) has feature weights that all people share, and an offset of them for each person. The file is
long because `Coactive` answers every method of `Interaction`."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from heedful.evaluation.expected import Compared, Expected
from heedful.jit.kernel import Floats, Ints, scores, top
from heedful.loop.interactions.coactive import texts
from heedful.loop.interactions.coactive.compiled import ALONE, CLICKED, JUDGED, ORDER, learn_answers, learn_orders
from heedful.loop.interactions.coactive.model import Lesson, Model, Thumb
from heedful.loop.interactions.columns import Columns, Encoded
from heedful.loop.interactions.forms import read_answer
from heedful.loop.interactions.lists import Lists, propose_list
from heedful.loop.interactions.named import loop_learner
from heedful.loop.interactions.neighbours import MOST_WEIGHT, swapped_pairs
from heedful.loop.interactions.protocol import (
    Compare,
    LoggedAnswer,
    Proposal,
    Question,
    Step,
    feature_names,
    is_compiled_alike,
)
from heedful.loop.model import View
from heedful.loop.records import DecisionRecord, FeedbackRecord
from heedful.loop.settings import Manifest
from heedful.results.evaluation import Measure
from heedful.spaces.ranking import Ranking, WithBaseScore

Array = npt.NDArray[np.float64]


class Coactive(Lists[Model]):
    """Feedback that names something better than what was shown (coactive learning: Shivaswamy & Joachims, JAIR 2015).

    The learner ranks candidates by a score that is linear in their features."""

    name, words = "coactive", texts.WORDS
    default_learner = "posterior"
    model_type, forms = Model, Model.forms
    linear = True

    # ------------------------------------------------------------------------ making a loop

    @classmethod
    def make_learner(cls, spec: str, manifest: Manifest) -> Any:
        n, space = len(feature_names(cls, manifest)), WithBaseScore(Ranking(manifest.settings.k))
        learner = loop_learner(spec, n, space, Coactive.name, cls.words.learner, manifest.n_products)
        if not hasattr(learner, "weights") or not hasattr(learner, "space"):
            raise ValueError(
                f"learner: expected one with a space and weights(state), linear in the features, got {spec}"
            )
        return learner

    def example(self, model: Model, shown: Sequence[str]) -> tuple[str, dict[str, Any]]:
        if len(shown) > 1:
            return "clicks", {"clicks": [shown[0]]}
        columns = [column.kind for column in self.manifest.encoding.columns if column.kind != "ignored"]
        if len(columns) == 1 and columns[0] in ("text", "prose") and model.refusal("edit") is None:
            return "corrects it", {"edit": "THE CORRECTED TEXT"}
        if model.refusal("thumb") is None:
            return "likes it", {"thumb": "up"}
        return "would rather have another", {"better": ["ITEM"]}

    def why_empty(self, model: Model, record: DecisionRecord, feedback: FeedbackRecord) -> str:
        answer, chosen = read_answer(self.forms, feedback, record.shown), feedback.chosen
        if answer.values and len(set(feedback.values)) < 2:
            return "that takes two items with different numbers"
        if answer.verdict is not None:
            return "it differs in nothing from what is usual among the thumbs so far, with which it is compared"
        if not (chosen or answer.best):
            return self.words.nothing_said
        if len(record.shown) == 1 and set(chosen) <= set(record.shown):
            thumbs = "send thumbs, up and down, or show" if model.refusal("thumb") is None else "show"
            return f"a single item was shown, which compares it with nothing: {thumbs} two or more"
        return "it puts no item above one that was shown above it"

    # ------------------------------------------------------------------------ the fold

    def columns(self, model: Model) -> Columns | None:
        """A model that keeps a state for each person learns from one example at a time."""
        if model.shrink > 0.0 or not is_compiled_alike(model.learner):
            return None
        return correction_columns(model)

    # ------------------------------------------------------------------------ reading

    def order(self, view: View[Model], x: Floats) -> Ints:
        return top(scores(x, view.model.effective(view)), len(x))

    # ------------------------------------------------------------------------ deciding

    def propose(self, view: View[Model], asked: Question, eligible: Ints | None, rng: np.random.Generator) -> Proposal:
        return self.with_sure(view, asked, propose_list(view, asked, self.manifest.settings, self._draws, rng))

    def with_sure(self, view: View[Any], asked: Question, made: Proposal) -> Proposal:
        """Return the proposal `made` with what the log keeps of how sure it is: how probable it is that the first shown
        is better than the second or, if one is shown, than the best other candidate."""
        x, two = asked.request.x, made.shown[:2].tolist()
        if len(two) == 1:
            two += [j for j in self.order(view, x).tolist() if j != two[0]][:1]
        found = self.sure(view, x[two])
        return made if not found else made._replace(carried=made.carried | {"sure": round(found[0], 3)})

    def sure(self, view: View[Any], x: Any) -> list[float] | None:
        return view.model.better(view, x) if len(x) > 1 else None

    # ------------------------------------------------------------------------ looking back

    def measures(self) -> Sequence[tuple[Measure, Compare]]:
        pairs = Measure("swapped pairs", texts.PAIRS, texts.NO_PAIRS, texts.SWAP, once=True, counts="pair")
        return ((pairs, self._compare_pairs),)

    def _compare_pairs(self, said: LoggedAnswer) -> Compared | None:
        """Compare pairs of neighbours that were shown in either order at random with a known probability.

        An answer contradicts what was shown far more often than it confirms it, and people click more at the top. Both
        effects cancel if a pair has the weight 1 / (2 P), P being the probability of the order in which the pair was
        shown."""
        record, x, _ = said.step.context
        pairs = swapped_pairs(record, said.answer)
        if not pairs:
            return None
        better = [record.shown[at - 1 if upper else at] for at, upper, _ in pairs]
        worse = [record.shown[at if upper else at - 1] for at, upper, _ in pairs]
        gaps = x.take(better, axis=0) - x.take(worse, axis=0)
        ahead = np.array([gaps.dot(view.model.effective(view)) for view in said.views])
        weights, swap = np.array([weight for _, _, weight in pairs]), record.proposal.get("swap") or 0.5
        most = MOST_WEIGHT if record.arm == "sampled" else 0.5 / swap
        return Compared(np.heaviside(ahead, 0.5), weights, most_weight=most)

    # ------------------------------------------------------------------------ reporting

    def expected(self, view: View[Model], step: Step) -> Expected:
        w = view.model.effective(view)
        return Expected(
            utilities=lambda items: step.rows(items) @ w,
            verdict=lambda items: view.model.above_usual(view, step.rows(items)),
        )


def correction_columns(model: Model) -> Columns | None:
    """Return how the training examples of `model` become columns of numbers: better lists or, of a learner that takes
    any answer, all. Return None for a learner that learns from its own proposals alone."""
    learner = model.learner
    if model.learns_all:
        return Columns(learner.n_features, (0, 1.0), partial(_any_answer, model), learn_answers)
    if isinstance(model.probe, tuple):
        return None
    return Columns(learner.n_features, (), _better_list, learn_orders)


def _better_list(lesson: Any, context: Any) -> Encoded | None:
    if not isinstance(lesson, Lesson) or lesson.weight != 1.0:
        return None
    return Encoded(lesson.x, lesson.y, lesson.feedback)


def _any_answer(model: Model, lesson: Lesson | Thumb, context: Any) -> Encoded | None:
    if isinstance(lesson, Thumb):
        nothing = np.zeros(0, np.int64)
        judged = ALONE if lesson.alone else JUDGED
        return Encoded(np.array([lesson.z, lesson.among]), nothing, nothing, (judged, lesson.up))
    if not model.teaches(lesson):
        return None
    return Encoded(lesson.x, lesson.y, lesson.feedback, (CLICKED if lesson.clicked else ORDER, lesson.weight))
