"""The ordinal interaction: people grade what is shown from 1 to k, and the learner predicts the grade.

Its model (`model.GradingModel`) has a score and thresholds that all people share, and an offset of the score for each
person."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from heedful.evaluation import answers
from heedful.evaluation.expected import Expected, absolute_error
from heedful.jit.kernel import Floats, Ints
from heedful.loop.interactions.columns import Columns, Encoded
from heedful.loop.interactions.contributions import REMOVED, linear, sort_parts
from heedful.loop.interactions.forms import NONE, WHOLE_GRADE, by_name
from heedful.loop.interactions.lists import Lists, propose_list
from heedful.loop.interactions.options import LoopOption
from heedful.loop.interactions.ordinal import texts
from heedful.loop.interactions.ordinal.compiled import learn_grades
from heedful.loop.interactions.ordinal.learners import DEFAULT, complete_spec, grader, spec_of_option
from heedful.loop.interactions.ordinal.model import Grades, GradingModel
from heedful.loop.interactions.protocol import (
    Compare,
    ItemPrediction,
    Proposal,
    Question,
    Step,
    Tally,
    feature_names,
    is_compiled_alike,
)
from heedful.loop.model import Context, View
from heedful.loop.settings import Manifest
from heedful.results.evaluation import Measure
from heedful.results.explanation import Contribution, Contributions
from heedful.results.report import GradeDetails

if TYPE_CHECKING:
    from heedful.loop.interactions.findings import Findings
    from heedful.results.report import Report

INTERCEPT, LEVEL = "always 1", "how much they ask for"
"""Names of the terms of a score besides the features: a constant, for learners without thresholds, and a person's
offset."""
ROWS = 256
"""How many features are removed from copies of an item at a time."""


class Ordinal(Lists[GradingModel]):
    """Feedback that gives the true grade, from 1 to k, of items that were shown."""

    name, words = "ordinal", texts.WORDS
    forms = by_name(WHOLE_GRADE, NONE)
    model_type = GradingModel
    default_learner = DEFAULT
    details = GradeDetails
    options = (
        LoopOption(
            "grades", "Predict the grade of each item, 1 to K, and learn from grades.", int, "K", learner=spec_of_option
        ),
    )

    def __init__(self, manifest: Manifest, learner: Any) -> None:
        super().__init__(manifest, learner)
        self._k: int = learner.space.k
        self.scale = answers.Scale(1.0, self._k, min(2.0, self._k - 1.0), apart=1.0, whole=True)

    # ------------------------------------------------------------------------ making a loop

    @classmethod
    def make_learner(cls, spec: str, manifest: Manifest) -> Any:
        return grader(spec, len(feature_names(cls, manifest)), manifest.settings.shrink, products=manifest.n_products)

    def facts(self) -> dict[str, Any]:
        return {"grades": self._k}

    def example(self, model: GradingModel, shown: Sequence[str]) -> tuple[str, dict[str, Any]]:
        return f"grades it, 1 to {self._k}", {"grade": {shown[0]: self._k}}

    def findings(self, found: Report) -> Findings:
        return super().findings(found) if found.prediction is None else texts.findings(found, found.prediction)

    # ------------------------------------------------------------------------ the fold

    def columns(self, model: GradingModel) -> Columns | None:
        learner = model.learner
        whole = hasattr(learner, "weights") and hasattr(learner, "thresholds")
        if model.shrink > 0.0 or not (whole and is_compiled_alike(learner)):
            return None
        nothing = np.zeros(0, np.int64)

        def encode(lesson: Grades, context: Context) -> Encoded:
            return Encoded(lesson.x, nothing, np.array(lesson.grades, np.int64))

        rest = (np.random.default_rng(0),)
        return Columns(learner.n_features, (), encode, learn_grades, rest)

    # ------------------------------------------------------------------------ reading

    def order(self, view: View[GradingModel], x: Floats) -> Ints:
        return view.model.order(view, x)

    def predict(self, view: View[GradingModel], x: Floats) -> list[ItemPrediction]:
        return [ItemPrediction(grade) for grade in view.model.grades(view, x).tolist()]

    def cuts(self, view: View[GradingModel]) -> list[float] | None:
        if not hasattr(self.learner, "thresholds"):
            return None
        level = 0.0 if view.person is None else view.model.level(view.person)
        return [float(each) + level for each in self.learner.thresholds(view.shared)]

    # ------------------------------------------------------------------------ deciding

    def propose(
        self, view: View[GradingModel], asked: Question, eligible: Ints | None, rng: np.random.Generator
    ) -> Proposal:
        return propose_list(view, asked, self.manifest.settings, self._draws, rng, view.model.grades)

    # ------------------------------------------------------------------------ looking back

    def explained(self, view: View[GradingModel], x: Floats, place: int) -> dict[str, Any]:
        grade = int(view.model.grades(view, x[place : place + 1])[0])
        low, high = view.model.between(view.shared, grade) or (None, None)
        return {"grade": grade, "score_from": low, "score_below": high}

    def item_scores(self, view: View[GradingModel], x: Floats, places: Sequence[int]) -> Floats:
        model, rows = view.model, x[list(places)]
        return model.scores(view, rows) if hasattr(model.learner, "weights") else model.grades(view, rows).astype(float)

    def contributions(self, view: View[GradingModel], x: Floats, place: int) -> Contributions:
        """For a learner without weights a contribution is the predicted grade minus the grade predicted with that
        feature at 0."""
        model, row, parts = view.model, x[place : place + 1], list[Contribution]()
        if hasattr(model.learner, "weights"):
            names, weights = [*self.names, INTERCEPT], model.effective(view).tolist()
            if view.person is not None:
                names, weights = [*self.names, LEVEL], [*weights, -model.level(view.person)]
            return linear(names, weights, [*row[0].tolist(), 1.0], "score of the grade")
        [grade] = model.grades(view, row)
        there = np.flatnonzero(row[0])
        for some in np.array_split(there, -(-there.size // ROWS) or 1):
            rows = np.repeat(row, some.size, axis=0)
            rows[np.arange(some.size), some] = 0.0
            changes = (grade - model.grades(view, rows)).tolist() if some.size else []
            parts += [Contribution(self.names[j], float(row[0, j]), None, float(d)) for j, d in zip(some, changes)]
        return Contributions("removed", REMOVED, "predicted grade", sort_parts(parts))

    def candidate(self, spec: str) -> GradingModel:
        learner = grader(spec, len(self.names), 0.0, self._k, self.manifest.n_products)
        if learner.space.k != self._k:
            raise ValueError(f"learner: expected n_ranks={self._k}, the grades of this log, got {spec}")
        return GradingModel(learner, self.manifest)

    def full_spec(self, spec: str) -> str:
        return complete_spec(spec, self._k)

    def measures(self) -> Sequence[tuple[Measure, Compare]]:
        error = Measure("mean error", texts.ERROR, "nothing was graded", "More grades.", 0.0, self._k - 1.0, False)
        return ((error, lambda said: absolute_error(said.numbers)),)

    # ------------------------------------------------------------------------ reporting

    def tally(self) -> Tally:
        from heedful.loop.interactions.ordinal.prediction_report import grade_tally

        return grade_tally(self._k)

    def expected(self, view: View[GradingModel], step: Step) -> Expected:
        return Expected(values=lambda items: view.model.grades(view, step.rows(items)))
