"""The ordinal interaction: people grade what is shown from 1 to k, and the learner predicts the grade. Its model
(`model.GradingModel`) has a score and thresholds shared by all, and a shift for each person."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from heedful.core.serialization import arrays_of
from heedful.core.validation import check_count, describe
from heedful.jit.kernel import Floats, Ints
from heedful.learners.registry import learner_class
from heedful.loop.interactions.card import Card, Prediction, Scale, Widget
from heedful.loop.interactions.forms import NONE, WHOLE_GRADE, by_name
from heedful.loop.interactions.lists import check_show, draws_of, list_chances, propose_list, score_list, why_unsaid
from heedful.loop.interactions.measure import Compared, Measure
from heedful.loop.interactions.options import KindChoice, LoopOption
from heedful.loop.interactions.ordinal import texts
from heedful.loop.interactions.ordinal.learners import grader, is_grading, spec_with_grades
from heedful.loop.interactions.ordinal.model import GradingModel
from heedful.loop.interactions.protocol import Interaction, ItemPrediction, Past, Proposal, Question, Step
from heedful.loop.interactions.telling import Part
from heedful.loop.log import Event
from heedful.loop.model import Context, Person, own_state
from heedful.loop.packing import LoggedDecision
from heedful.loop.records import Feedback, FeedbackRecord
from heedful.loop.settings import Manifest
from heedful.spaces.ordinal import MOST_RANKS

if TYPE_CHECKING:
    from heedful.loop.explain import Explanation
    from heedful.loop.explain import Part as Counts
    from heedful.loop.interactions.findings import Findings
    from heedful.loop.prediction_report import PredictionReport
    from heedful.loop.report import Arm, Report

INTERCEPT, LEVEL = "always 1", "how much she asks for"
"""The parts of a score besides the features: of a learner without thresholds, and of a person."""


class Ordinal(Interaction[GradingModel]):
    """Feedback that gives the true grade of what was shown."""

    name, takes, command = "ordinal", "grades", "heedful simulate ordinal ratings.csv --target rating"
    loop = "a loop of grades"
    forms = by_name(WHOLE_GRADE, NONE)
    model_type = GradingModel
    samples_lists = True
    default_learner = "averaged-prank"
    options = (LoopOption("grades", "Predict the grade of each item, 1 to K, and learn from grades.", int, "K"),)

    def __init__(self, manifest: Manifest, learner: Any) -> None:
        super().__init__(manifest, learner)
        self._k: int = learner.space.k
        self._draws = draws_of(learner)

    # ------------------------------------------------------------------------ manifest a loop

    @classmethod
    def choose(cls, given: Mapping[str, Any], learner: str | None) -> KindChoice:
        """Return the learner with the given number of grades."""
        grades, spec = given["grades"], learner or cls.default_learner
        check_count("--grades", grades, least=2, most=MOST_RANKS)
        if not is_grading(learner_class(spec)):
            expected = f"a --learner that predicts grades with it, such as {cls.default_learner}"
            raise ValueError(f"--grades: expected {expected}, got {spec}")
        return KindChoice(spec_with_grades(spec, grades))

    @classmethod
    def check_spec(cls, spec: str) -> None:
        """Raise ValueError also if `spec` does not say how many grades there are."""
        grader(spec, 1, 0.0)

    @classmethod
    def make_learner(cls, spec: str, manifest: Manifest) -> Any:
        """Return the learner; its space has to be `Ranks`."""
        return grader(spec, len(cls.feature_names(manifest)), manifest.settings.shrink)

    def caveats(self) -> list[str]:
        """Return a sentence on predictions of what is not shown."""
        if self.manifest.settings.control > 0.0:
            return []
        return [
            "control 0: what is shown first is what was predicted to be good, so where not all is shown, how "
            "good predictions of the rest are cannot be said"
        ]

    # ------------------------------------------------------------------------ how it speaks of itself

    @classmethod
    def context_alone(cls) -> str:
        """Return "": a feature of the context alone does change a grade."""
        return "a context alone is no feature"

    def introduce(self) -> list[str]:
        """Return a sentence that names the grades 1 to k."""
        told = f"It predicts a grade from 1 to {self._k} for each, by {self.manifest.learner}, and learns from grades."
        return [told]

    def describe(self) -> Card:
        """Return the description of a kind whose answers are grades from 1 to k."""
        return (
            super()
            .describe()
            ._replace(
                title="Grades",
                answer="grade",
                question=f"How relevant is each of these, from 1 to {self._k}?",
                prediction=Prediction("grade", "the grade predicted of each that is shown", 1, self._k),
                score="how high what was preferred stood (1: first, 0.5: second)",
                widget=Widget("scale", Scale("grade", 1, self._k, whole=True)),
                badge=f"grades 1–{self._k}",
                contradiction="would predict a grade two or more away",
                arms=("learned order", "your order (control)"),
            )
        )

    def facts(self) -> dict[str, Any]:
        """Return the number of grades."""
        return {"grades": self._k}

    def example(self, model: GradingModel, shown: Sequence[str]) -> tuple[str, dict[str, Any]]:
        """Return the highest grade for the first item."""
        return f"grades it, 1 to {self._k}", {"grade": {shown[0]: self._k}}

    def tell_explanation(self, told: Explanation) -> list[Part]:
        """Return the parts of a score and the thresholds around it as text."""
        return texts.explanation(told)

    def findings(self, found: Report) -> Findings:
        """Return how far predicted grades lay from those given, next to the median so far."""
        return super().findings(found) if found.prediction is None else texts.findings(found, found.prediction)

    # ------------------------------------------------------------------------ the fold

    def fresh(self) -> GradingModel:
        """Return a model that has learned nothing."""
        return GradingModel(self.learner, self.manifest.settings.shrink)

    def personal(self, model: GradingModel) -> Any:
        """Return the state of a person without answers: a shift of the score."""
        return model.nobody()

    def predictor(self, model: GradingModel, person: str | None) -> list[bytes] | None:
        """Return weights and thresholds (all arrays of a learner without them) and the person's shift, as bytes."""
        own, learner = own_state(model.people, person), model.learner
        if hasattr(learner, "weights") and hasattr(learner, "thresholds"):
            parts = [learner.weights(model.shared), learner.thresholds(model.shared)]
        else:
            parts = [part for name, part in arrays_of(model.shared).items() if part.ndim]
        parts += list(model.nobody() if own is None else own.state) if model.shrink > 0.0 else []
        return [np.asarray(part).tobytes() for part in parts]

    # ------------------------------------------------------------------------ reading

    def order(self, model: GradingModel, shared: Any, own: Person | None, x: Floats) -> Ints:
        """Return the candidates by their predicted grades, the highest first."""
        return model.order(shared, own, x)

    def predict(self, model: GradingModel, shared: Any, own: Person | None, x: Floats) -> list[ItemPrediction]:
        """Return the grade of each candidate."""
        return [ItemPrediction(grade) for grade in model.grades(shared, own, x).tolist()]

    def cuts(self, model: GradingModel, shared: Any, own: Person | None) -> list[float] | None:
        """Return the thresholds on the line of w.x, where a grade is below b if w.x - level < b; None for a learner
        without them."""
        if not hasattr(self.learner, "thresholds"):
            return None
        level = 0.0 if own is None else model.level(own)
        return [float(each) + level for each in self.learner.thresholds(shared)]

    def why_not_predicted(self, shared: Any) -> str:
        """Return "": there is always a grade."""
        return ""

    def describe_overflow(self, model: GradingModel, shared: Any) -> str:
        """Return a sentence on weights that are not finite, or too large; "" if all are well."""
        return model.describe_overflow(shared)

    # ------------------------------------------------------------------------ deciding

    def check_show(self, show: Any) -> None:
        """Raise ValueError unless a loop with k = 1 shows a single item."""
        check_show(show, self.manifest.settings)

    def propose(
        self,
        model: GradingModel,
        shared: Any,
        own: Person | None,
        asked: Question,
        eligible: Ints | None,
        rng: Any,
    ) -> Proposal:
        """Return the list by score, or the caller's order, with the predicted grade of each item."""
        return propose_list(model, shared, own, asked, self.manifest.settings, self._draws, rng, model.grades)

    # ------------------------------------------------------------------------ taking feedback

    def check_feedback(self, given: Feedback) -> None:
        """Raise ValueError unless grades are whole numbers from 1 to k."""
        for name, value in zip(given.names, given.values):
            if not 1 <= value <= self._k or value != int(value):
                got = int(value) if value == int(value) else value
                raise ValueError(f"grade[{describe(name)}]: expected a whole number from 1 to {self._k}, got {got}")

    def read_predicted(self, given: Sequence[float]) -> tuple[float, ...]:
        """Return predicted grades, which are whole numbers."""
        for j, grade in enumerate(given):
            if not 1 <= grade <= self._k or grade != int(grade):
                raise ValueError(f"predicted[{j}]: expected a whole number from 1 to {self._k}, got {grade}")
        return tuple(map(int, given))

    # ------------------------------------------------------------------------ looking back

    def explain(self, decision: LoggedDecision, context: Context, past: Past[GradingModel]) -> Explanation:
        """Return why the first item was given its grade: the parts of its score, and the lessons that moved it."""
        from heedful.loop.explain import Explanation, by_size

        first, person = decision.record.shown[0], decision.person
        x = context.x[first : first + 1]

        def score(model: GradingModel) -> float:
            if not hasattr(model.learner, "weights"):
                return 0.0
            return float(model.scores(model.shared, own_state(model.people, person), x)[0])

        model, moved = past.follow(score)
        grade = int(model.grades(model.shared, own_state(model.people, person), x)[0])
        ends = model.between(model.shared, grade)
        between = None if ends is None else list(ends)
        why = "this is the score of the first by the model as it was, and the grade that it lies in"
        if between is None:
            why = f"{type(self.learner).__name__} has no one direction: there is no score to take apart"
        if overflown := model.describe_overflow(model.shared):
            between, why = None, overflown
        parts = tuple(sorted(self._parts(model, person, x), key=lambda part: by_size(part.counts)))
        arm, name = decision.record.arm, decision.names[first]
        predicted = {"grade": grade, "between": between}
        return Explanation(decision.id, arm, name, None, why, score(model), parts, tuple(moved), predicted)

    def _parts(self, model: GradingModel, person: str | None, x: Floats) -> list[Counts]:
        """Return the parts that a score is the sum of, without those that are 0."""
        from heedful.loop.explain import Part as Counts

        own = own_state(model.people, person)
        weights, values = model.effective(model.shared, own).tolist(), [*x[0].tolist(), 1.0]
        names = [*self.names, INTERCEPT]
        if own is not None:
            names, weights, values = [*names[:-1], LEVEL], [*weights, -model.level(own)], [*x[0].tolist(), 1.0]
        return [Counts(n, w, v, 0.0, w * v) for n, w, v in zip(names, weights, values) if w * v != 0.0]

    def candidate(self, spec: str) -> GradingModel:
        """Return a model of another learner of the same grades."""
        if not is_grading(learner_class(spec)):
            raise ValueError(
                f"learner: expected one that predicts grades, such as averaged-prank, got {spec}: this log holds "
                "grades, and nothing of what is better than what was shown"
            )
        learner = grader(spec, len(self.names), 0.0, self._k)
        if learner.space.k != self._k:
            raise ValueError(f"learner: expected n_ranks={self._k}, the grades of this log, got {spec}")
        shared_only = not (hasattr(learner, "weights") and hasattr(learner, "thresholds"))  # nobody has an offset there
        shrink = 0.0 if shared_only else self.manifest.settings.shrink
        return GradingModel(learner, shrink)

    def measures(self) -> tuple[Measure, ...]:
        """Return the mean error of predicted grades."""
        return (Measure("mean error", texts.ERROR, "nothing was graded", "More grades.", 0.0, self._k - 1.0, False),)

    def chances(self, models: Sequence[GradingModel], step: Step) -> Floats | None:
        """Return the probability with which each model would show the list of an answered decision (L,)."""
        return list_chances(self, models, step, [False] * len(models))

    def compare(self, models: Sequence[GradingModel], step: Step) -> Sequence[Compared | None]:
        """Return the errors of the predictions for all that an answer grades."""
        lesson = models[0].lesson(step.context, step.feedback, step.extra)
        if lesson is None:
            return (None,)
        person, given = step.decision.person, np.array(lesson.grades)
        predicted = [model.grades(model.shared, own_state(model.people, person), lesson.x) for model in models]
        return (Compared(np.abs(np.array(predicted) - given).astype(np.float64), np.ones(given.size)),)

    # ------------------------------------------------------------------------ reporting

    def tally(self, model: GradingModel, shared: Any, people: dict[str, Person]) -> _Tally:
        """Return a counter of how well grades were predicted."""
        return _Tally(model, shared, people, self._k)

    def score(self, decision: LoggedDecision, answers: Sequence[FeedbackRecord]) -> float | None:
        """Return 1 / the place of what was preferred."""
        return score_list(decision, answers)

    def why_not_compared(self, learned: Arm, control: Arm, level: bool, forms: set[str]) -> str:
        """Return why learned lists and lists in the caller's order cannot be compared."""
        return why_unsaid(learned, control, level, forms, self.manifest.settings.control)


class _Tally:
    """A counter of how well grades were predicted."""

    def __init__(self, model: GradingModel, shared: Any, people: dict[str, Person], k: int) -> None:
        from heedful.loop.interactions.ordinal.prediction_report import GradeTally

        self._model, self._shared, self._people = model, shared, people
        self._compared = GradeTally(k)

    def contradicts(self, step: Step, lesson: Any) -> bool:
        """Return whether the model's grade for one of these items is off by two or more."""
        person = step.decision.person
        own = own_state(self._people, person)
        predicted = self._model.grades(self._shared, own, lesson.x)
        return bool(np.abs(predicted - np.array(lesson.grades)).max() >= 2)

    def take(self, decision: LoggedDecision, given: Sequence[tuple[Event, FeedbackRecord]]) -> None:
        """Take in a decision with the feedback on it that counts."""
        self._compared.take(decision, given)

    def report(self) -> PredictionReport:
        """Return the errors |predicted - given| of all predicted grades, next to a constant baseline."""
        return self._compared.report()
