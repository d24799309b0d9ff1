"""The ordinal interaction: people grade what is shown from 1 to k, and the learner predicts the grade.

Its model (`model.GradingModel`) has a score and thresholds that all people share, and an offset of the score for each
person. The file is long because `Ordinal` answers every method of `Interaction`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from heedful.core.fold import generators
from heedful.core.serialization import arrays_of
from heedful.core.validation import check_count, describe
from heedful.evaluation import answers
from heedful.jit.kernel import Floats, Ints
from heedful.learners.registry import learner_class
from heedful.loop.interactions.card import Card, Prediction, Scale, Widget
from heedful.loop.interactions.columns import Columns, Encoded, Lessons, lengths
from heedful.loop.interactions.contributions import EXACT, REMOVED, sort_parts
from heedful.loop.interactions.forms import NONE, WHOLE_GRADE, by_name
from heedful.loop.interactions.lists import (
    check_show,
    draws_of,
    list_chances,
    place_weights,
    propose_list,
    why_unsaid,
)
from heedful.loop.interactions.measure import Compared
from heedful.loop.interactions.options import KindChoice, LoopOption
from heedful.loop.interactions.ordinal import texts
from heedful.loop.interactions.ordinal.compiled import learn_grades
from heedful.loop.interactions.ordinal.learners import complete_spec, grader, is_grading, spec_with_grades
from heedful.loop.interactions.ordinal.model import Grades, GradingModel
from heedful.loop.interactions.protocol import (
    Interaction,
    ItemPrediction,
    Past,
    Proposal,
    Question,
    Step,
    Tally,
    columns_stamp,
    is_compiled_alike,
)
from heedful.loop.interactions.telling import Part
from heedful.loop.model import Context, Person, own_state
from heedful.loop.packing import LoggedDecision
from heedful.loop.records import Feedback
from heedful.loop.request import Request
from heedful.loop.settings import Manifest
from heedful.results.evaluation import Measure
from heedful.results.explanation import Contribution, Contributions
from heedful.spaces.ordinal import MOST_RANKS

if TYPE_CHECKING:
    from heedful.loop.interactions.findings import Findings
    from heedful.results.explanation import Explanation
    from heedful.results.explanation import Part as Counts
    from heedful.results.report import Arm, Report

INTERCEPT, LEVEL = "always 1", "how much they ask for"
"""Names of the terms of a score besides the features: a constant, for learners without thresholds, and a person's
offset."""
ROWS = 256
"""How many features are removed from copies of an item at a time."""


class Ordinal(Interaction[GradingModel]):
    """Feedback that gives the true grade, from 1 to k, of items that were shown."""

    name, takes, command = "ordinal", "grades", "heedful simulate ordinal ratings.csv --target rating"
    loop = "a loop of grades"
    forms = by_name(WHOLE_GRADE, NONE)
    model_type = GradingModel
    samples_lists = interleaves = imitates = scores_none = True
    default_learner = "averaged-prank"
    options = (LoopOption("grades", "Predict the grade of each item, 1 to K, and learn from grades.", int, "K"),)

    def __init__(self, manifest: Manifest, learner: Any) -> None:
        super().__init__(manifest, learner)
        self._k: int = learner.space.k
        self._draws = draws_of(learner)
        self.scale = answers.Scale(1.0, self._k, min(2.0, self._k - 1.0))

    # ------------------------------------------------------------------------ making a loop

    @classmethod
    def choose(cls, given: Mapping[str, Any], learner: str | None) -> KindChoice:
        """Return the learner and settings that the options of `heedful init` for loops of grades stand for.

        `given` holds the values of the options; the option --grades is the number of grades. `learner` is the learner
        that was named, None for the default. Raise ValueError if the number is out of range, or the learner does not
        predict grades."""
        grades, spec = given["grades"], learner or cls.default_learner
        check_count("--grades", grades, least=2, most=MOST_RANKS)
        if not is_grading(learner_class(spec)):
            expected = f"a --learner that predicts grades with it, such as {cls.default_learner}"
            raise ValueError(f"--grades: expected {expected}, got {spec}")
        return KindChoice(spec_with_grades(spec, grades))

    @classmethod
    def check_spec(cls, spec: str) -> None:
        """Raise ValueError if `spec` gives a learner wrong parameters, or not the number of grades ("prank:n_ranks=5"
        does)."""
        grader(spec, 1, 0.0)

    @classmethod
    def make_learner(cls, spec: str, manifest: Manifest) -> Any:
        """Return the learner that `spec` names, over the features in `manifest`. Raise ValueError if it predicts no
        grades."""
        return grader(spec, len(cls.feature_names(manifest)), manifest.settings.shrink)

    def caveats(self) -> list[str]:
        """Return, if no lists are in the caller's order, a sentence: predictions of items not shown cannot be judged
        then; otherwise []."""
        if self.manifest.settings.control > 0.0:
            return []
        return [
            "control 0: what is shown first is what was predicted to be good, so where not all is shown, how "
            "good predictions of the rest are cannot be said"
        ]

    # ------------------------------------------------------------------------ how it speaks of itself

    @classmethod
    def context_alone(cls) -> str:
        """Return a note: features of a request (the context) that are not multiplied with features of items are not
        used."""
        return "a context alone is no feature"

    def introduce(self) -> list[str]:
        """Return one sentence for the user who has created a loop: the range of grades, 1 to k, and the learner."""
        told = f"It predicts a grade from 1 to {self._k} for each, by {self.manifest.learner}, and learns from grades."
        return [told]

    def describe(self) -> Card:
        """Return the description of loops of grades from 1 to k, from which pages and commands are written."""
        return (
            super()
            .describe()
            ._replace(
                title="Grades",
                answer="grade",
                question=f"How relevant is each of these, from 1 to {self._k}?",
                prediction=Prediction("grade", 1, self._k),
                score="how high what was preferred stood (1: first, 0.5: second)",
                widget=Widget("scale", Scale("grade", 1, self._k, whole=True)),
                badge=f"grades 1–{self._k}",
                contradiction="would predict a grade two or more away",
                arms=("learned order", "your order (control)"),
            )
        )

    def facts(self) -> dict[str, Any]:
        """Return the number of grades k, as {"grades": k}."""
        return {"grades": self._k}

    def example(self, model: GradingModel, shown: Sequence[str]) -> tuple[str, dict[str, Any]]:
        """Return (an answer in words, the same answer as JSON fields of feedback), to show how a decision can be
        answered.

        The answer is the highest grade for the first item of `shown`, names of items; `model` is not used."""
        return f"grades it, 1 to {self._k}", {"grade": {shown[0]: self._k}}

    def tell_explanation(self, told: Explanation) -> list[Part]:
        """Return an explanation of a predicted grade, `told`, as lines and tables.

        They hold
        - the terms of the item's score, weight times feature each,
        - the thresholds between grades around the score,
        - the feedback that changed the score."""
        return texts.explanation(told)

    def findings(self, found: Report) -> Findings:
        """Return the report `found` in words: how far predicted grades were off.

        It compares that with a baseline that predicts the median of all grades given before."""
        return super().findings(found) if found.prediction is None else texts.findings(found, found.prediction)

    # ------------------------------------------------------------------------ the fold

    def fresh(self) -> GradingModel:
        """Return a model that has learned nothing."""
        return GradingModel(self.learner, self.manifest.settings.shrink)

    def personal(self, model: GradingModel) -> Any:
        """Return an example of the state kept for each person: the offset of somebody without feedback.

        Reading a snapshot needs it as a template for the states in the file."""
        return model.nobody()

    def imitate(self, model: GradingModel, context: Context) -> bool:
        """Let `model` learn, in place, the caller's scores of the items shown as their grades; return whether there
        were some.

        `context` is the decision with its candidates' features and the caller's scores."""
        return model.imitate(context)

    def imitation_record(
        self,
        model: GradingModel,
        shared: object,
        own: Person | None,
        request: Request,
        shown: Ints,
        rng: np.random.Generator,
    ) -> dict[str, Any]:
        """Return what the log keeps of a decision that is shown in the caller's order and from which the learner is to
        learn.

        These are "ranks", the ranks that the learner would give to the items shown, and "scores", the caller's scores,
        which have to be grades from 1 to k. The parameters are those of `Interaction.imitation_record`. Raise
        ValueError if a score is no grade."""
        for name, score in zip(request.called, request.scores):
            if score is not None and (not 1 <= score <= self._k or score != int(score)):
                expected = f"expected the grade, a whole number from 1 to {self._k}, of what the learner imitates"
                raise ValueError(f"prior[{describe(name)}]: {expected}, got {score:g}")
        return super().imitation_record(model, shared, own, request, shown, rng)

    def columns(self, model: GradingModel) -> Columns | None:
        """Return how the grades that `model` learns from become columns of numbers, for compiled code: items, and a
        grade of each.

        Return None if each person has an offset of their own, and for a learner without weights and thresholds."""
        learner = model.learner
        whole = hasattr(learner, "weights") and hasattr(learner, "thresholds")
        if model.shrink > 0.0 or not (whole and is_compiled_alike(learner)):
            return None
        nothing = np.zeros(0, np.int64)

        def encode(lesson: Grades) -> Encoded:
            return Encoded(lesson.x, nothing, np.array(lesson.grades, np.int64))

        def fits(lessons: Lessons) -> bool:
            told, k = lessons.answer, learner.space.k
            as_many = np.array_equal(lengths(told), lengths(lessons.rows))
            return bool(as_many and (told.values >= 1).all() and (told.values <= k).all())

        rest = (generators(0)[2],)
        return Columns(columns_stamp(model), learner.n_features, (), encode, fits, learn_grades, rest)

    def predictor(self, model: GradingModel, person: str | None) -> list[bytes] | None:
        """Return, as bytes, the arrays that the grades predicted for `person` are computed from: weights, thresholds,
        the person's offset.

        For a learner without weights and thresholds they are all arrays of its state. A caller compares them before and
        after learning, to see whether feedback changed what `model` predicts."""
        own, learner = own_state(model.people, person), model.learner
        if hasattr(learner, "weights") and hasattr(learner, "thresholds"):
            parts = [learner.weights(model.shared), learner.thresholds(model.shared)]
        else:
            parts = [part for name, part in arrays_of(model.shared).items() if part.ndim]
        parts += list(model.nobody() if own is None else own.state) if model.shrink > 0.0 else []
        return [np.asarray(part).tobytes() for part in parts]

    # ------------------------------------------------------------------------ reading

    def order(self, model: GradingModel, shared: Any, own: Person | None, x: Floats) -> Ints:
        """Return the indices of the m candidates `x` (m, N), with N features each, the highest predicted grade first
        (m,).

        `model` holds the learner, `shared` its state for all people, `own` the person's offset, None without one."""
        return model.order(shared, own, x)

    def predict(self, model: GradingModel, shared: Any, own: Person | None, x: Floats) -> list[ItemPrediction]:
        """Return the predicted grade of each of the m candidates `x` (m, N), with N features each, in their order.

        `model` holds the learner, `shared` its state for all people, `own` the person's offset, None without one."""
        return [ItemPrediction(grade) for grade in model.grades(shared, own, x).tolist()]

    def cuts(self, model: GradingModel, shared: object, own: Person | None) -> list[float] | None:
        """Return the k - 1 thresholds, rising, that divide the score of an item (weights times features) into k grades,
        for one person.

        A person's offset moves them: `own` is the person's own state, None for nobody in particular. `model` holds the
        learner, `shared` its state for all people. Return None for a learner without thresholds."""
        if not hasattr(self.learner, "thresholds"):
            return None
        level = 0.0 if own is None else model.level(own)
        return [float(each) + level for each in self.learner.thresholds(shared)]

    def why_not_predicted(self, shared: object) -> str:
        """Return "": a grade is always predicted."""
        return ""

    def describe_overflow(self, model: GradingModel, shared: object) -> str:
        """Return a sentence on what to do if weights in `shared`, the state for all people, are not finite or too
        large; otherwise ""."""
        return model.describe_overflow(shared)

    # ------------------------------------------------------------------------ deciding

    def check_show(self, show: object) -> None:
        """Raise ValueError if `show`, the number of items to show, is not 1 in a loop with the setting k = 1."""
        check_show(show, self.manifest.settings)

    def propose(
        self,
        model: GradingModel,
        shared: Any,
        own: Person | None,
        asked: Question,
        eligible: Ints | None,
        rng: np.random.Generator,
    ) -> Proposal:
        """Return the list for the request `asked`, by score or in the caller's order, with the predicted grade of each
        item.

        - `model`, `shared`: the model, and its state for all people
        - `own`: the person's offset, None without one
        - `eligible`: not used
        - `rng`: the random generator of this decision"""
        return propose_list(model, shared, own, asked, self.manifest.settings, self._draws, rng, model.grades)

    # ------------------------------------------------------------------------ taking feedback

    def check_feedback(self, given: Feedback) -> None:
        """Raise ValueError unless all grades in `given` are whole numbers from 1 to k."""
        for name, value in zip(given.names, given.values):
            if not 1 <= value <= self._k or value != int(value):
                got = int(value) if value == int(value) else value
                raise ValueError(f"grade[{describe(name)}]: expected a whole number from 1 to {self._k}, got {got}")

    def read_predicted(self, given: Sequence[float]) -> tuple[float, ...]:
        """Return `given`, the predicted grades that come with an imported decision. Raise ValueError unless all are
        whole numbers from 1 to k."""
        for j, grade in enumerate(given):
            if not 1 <= grade <= self._k or grade != int(grade):
                raise ValueError(f"predicted[{j}]: expected a whole number from 1 to {self._k}, got {grade}")
        return tuple(map(int, given))

    # ------------------------------------------------------------------------ looking back

    def explain(self, decision: LoggedDecision, context: Context, past: Past[GradingModel]) -> Explanation:
        """Return why the first item of a decision has its predicted grade: the terms of its score, and the feedback
        that changed them.

        `context` is the `decision` with its candidates' features, `past` the log up to it, from which the model of that
        time is learned again."""
        from heedful.loop.explain import by_size
        from heedful.results.explanation import Explanation

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
        """Return the terms whose sum is the score of a single candidate `x` (1, N) of N features for `person`; those
        that are 0 are left out."""
        from heedful.results.explanation import Part as Counts

        own = own_state(model.people, person)
        weights, values = model.effective(model.shared, own).tolist(), [*x[0].tolist(), 1.0]
        names = [*self.names, INTERCEPT]
        if own is not None:
            names, weights, values = [*names[:-1], LEVEL], [*weights, -model.level(own)], [*x[0].tolist(), 1.0]
        return [Counts(n, w, v, 0.0, w * v) for n, w, v in zip(names, weights, values) if w * v != 0.0]

    def item_scores(self, model: GradingModel, person: str | None, x: Floats, places: Sequence[int]) -> Floats:
        """Return the scores (k,) that `model` gives to the k candidates at the indices `places`, for `person`.

        `x` are the N features of all m candidates (m, N). A learner without weights has no scores: then they are the
        predicted grades."""
        own, rows = own_state(model.people, person), x[list(places)]
        if hasattr(model.learner, "weights"):
            return model.scores(model.shared, own, rows)
        return model.grades(model.shared, own, rows).astype(np.float64)

    def contributions(self, model: GradingModel, person: str | None, x: Floats, place: int) -> Contributions:
        """Return how much each feature of the candidate with the index `place` contributes to its score for `person`,
        by `model`.

        `x` are the N features of the m candidates (m, N). For a learner without weights a contribution is the predicted
        grade minus the grade predicted with that feature at 0."""
        row = x[place : place + 1]
        if hasattr(model.learner, "weights"):
            parts = [Contribution(p.name, p.first, p.weight, p.counts) for p in self._parts(model, person, row)]
            return Contributions("exact", EXACT, "score of the grade", sort_parts(parts))
        own, parts = own_state(model.people, person), list[Contribution]()
        [grade] = model.grades(model.shared, own, row)
        there = np.flatnonzero(row[0])
        for some in np.array_split(there, -(-there.size // ROWS) or 1):
            rows = np.repeat(row, some.size, axis=0)
            rows[np.arange(some.size), some] = 0.0
            changes = (grade - model.grades(model.shared, own, rows)).tolist() if some.size else []
            parts += [Contribution(self.names[j], float(row[0, j]), None, float(d)) for j, d in zip(some, changes)]
        return Contributions("removed", REMOVED, "predicted grade", sort_parts(parts))

    def candidate(self, spec: str) -> GradingModel:
        """Return an untrained model of another learner of grades from 1 to k, to be evaluated on this loop's log.

        Raise ValueError if `spec` names no such learner, or one with another number of grades."""
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

    def full_spec(self, spec: str) -> str:
        """Return `spec`, the name of a learner to try in this loop, with the loop's number of grades added if it needs
        one and gives none."""
        return complete_spec(spec, self._k)

    def measures(self) -> tuple[Measure, ...]:
        """Return the measure by which learners are compared: the mean absolute error of predicted grades."""
        return (Measure("mean error", texts.ERROR, "nothing was graded", "More grades.", 0.0, self._k - 1.0, False),)

    def chances(self, models: Sequence[GradingModel], step: Step) -> Floats | None:
        """Return the probability (L,) with which each of the L `models` would show exactly the list that was shown in
        `step`.

        `step` is one piece of feedback with the decision that it answers. The probability is nan for a model that
        cannot tell. Return None if the log kept too little of the decision."""
        return list_chances(self, models, step)

    def places(self, models: Sequence[GradingModel], step: Step) -> tuple[Floats, Floats, Floats] | None:
        """Return weights with which one list drawn at random counts in estimates of how other rankings would do at
        their first three places; None if it does not count.

        `heedful.loop.interactions.lists.place_weights` describes the result and the arguments: the L `models`, and
        `step`, one piece of feedback with the decision that it answers."""
        return place_weights(self, models, step)

    def compare(self, models: Sequence[GradingModel], step: Step) -> Sequence[Compared | None]:
        """Return the absolute error of the grade that each of the L `models` predicts for each item graded in `step`.

        `step` is one piece of feedback with its decision, from which no model has learned yet. The result is one
        `Compared`, or (None,) if the feedback grades nothing."""
        lesson = models[0].lesson(step.context, step.feedback, step.extra)
        if lesson is None:
            return (None,)
        person, given = step.decision.person, np.array(lesson.grades)
        predicted = [model.grades(model.shared, own_state(model.people, person), lesson.x) for model in models]
        return (Compared(np.abs(np.array(predicted) - given).astype(np.float64), np.ones(given.size)),)

    # ------------------------------------------------------------------------ reporting

    def tally(self) -> Tally:
        """Return a new collector of predicted and given grades, for the report."""
        from heedful.loop.interactions.ordinal.prediction_report import GradeTally

        return GradeTally(self._k)

    @staticmethod
    def prediction_details() -> type:
        """Return the msgspec struct of what loops of grades add to the report of predictions
        (`PredictionReport.details`)."""
        from heedful.results.report import GradeDetails

        return GradeDetails

    def contradicts(self, model: GradingModel, shared: Any, own: Person | None, step: Step, lesson: Grades) -> bool:
        """Return whether a grade given differs by two or more from what the model would predict now.

        - `model`, `shared`: the model, and its state for all people
        - `own`: the person's offset, None without one
        - `step`: one piece of feedback with the decision that it answers
        - `lesson`: the training example made of it, items with their grades"""
        predicted = model.grades(shared, own, lesson.x)
        return bool(np.abs(predicted - np.array(lesson.grades)).max() >= 2)

    def why_not_compared(self, learned: Arm, control: Arm, level: bool, forms: set[str]) -> str:
        """Return in words why learned lists and lists in the caller's order (the control) cannot be compared.

        `learned` and `control` hold the counts of either sort, and how good they were; `level` says whether all lists
        have the same score; `forms` are the names of the forms of their feedback."""
        return why_unsaid(learned, control, level, forms, self.manifest.settings.control)

    # ------------------------------------------------------------------------ the health of feedback
