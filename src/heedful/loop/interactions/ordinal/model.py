"""The model of a loop of grades: a learner that predicts grades from 1 to k, and an offset of its score for each
person.

    s_j   = w . x_j + v . x_j - a    w for all people; v and a for this person, where people have an offset of their
                                     own; the last feature is the caller's score
    grade = the least r with s_j < b_r     thresholds b_1 <= ... <= b_{k-1}, for all people; b_k is infinite

Candidates are shown by decreasing s, ties by the caller's score, then in the order of the request; so before the first
grade the caller's order is shown.

A learner without thresholds gets one more feature, a constant 1: features are centred, and grades are not. A learner
without weights has no s: the highest predicted grade comes first, then the caller's highest score."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from heedful.core.serialization import arrays_of
from heedful.jit.kernel import Floats, Ints, scores
from heedful.loop.model import Context, LoopModel, Person, View
from heedful.loop.records import FeedbackRecord
from heedful.loop.settings import Manifest

Array = npt.NDArray[np.float64]

BEYOND = 1e100
"""The size of weights from which on they count as overflowed; features and scores stay below it, too."""


class Grades(NamedTuple):
    """A training example of a learner of grades: n graded items, which are learned one by one, in this order."""

    x: Floats
    """the N features of each of the n items (n, N)"""
    grades: tuple[int, ...]
    """the grade of each item, from 1 to k"""


class GradingModel(LoopModel):
    """The state of a loop of grades: the learner's state for all people, and an offset of the score for each person.

    Only `teach` changes it; it is called for the feedback in the log, in order."""

    version = 1
    """the version of the fold: raised when the same log would give another state"""

    def __init__(self, learner: Any, manifest: Manifest) -> None:
        super().__init__(learner, manifest)
        self._cut, self._directed = hasattr(learner, "thresholds"), hasattr(learner, "weights")
        self.shrink = manifest.settings.shrink if hasattr(learner, "learn_offset") else 0.0
        self.shared = learner.init(np.random.default_rng(0))

    def nobody(self) -> Any:
        """Return the offset of a person who has graded nothing; None if people have none."""
        return self.learner.stranger() if self.shrink > 0.0 else None

    # ------------------------------------------------------------------------ proposing

    def propose(self, view: View[Any], x: Floats, rng: np.random.Generator) -> Ints:
        return self.order(view, x)

    def order(self, view: View[Any], x: Floats) -> Ints:
        keys: list[Floats | Ints] = [-x[:, -1]]  # the last is the first to be sorted by
        if self._directed:
            keys.append(-self.scores(view, x))
        if not self._cut:
            keys.append(-self.grades(view, x))
        return np.lexsort(keys)

    def scores(self, view: View[Any], x: Floats) -> Array:
        """Return the score of each of m candidates x (m, N; N features) for this person (m,); the learner has weights.

        It is w . x + v . x - a: w are the weights of all people, v and a the person's offset."""
        s: Array = scores(self._whole(x), self.effective(view))
        return s if view.person is None else s - self.level(view.person)

    def grades(self, view: View[Any], x: Floats) -> Ints:
        """Return the predicted grade, from 1 to k, of each of m candidates x (m, N; N features) for this person
        (m,)."""
        if self._cut:
            reached = np.searchsorted(self.learner.thresholds(view.shared), self.scores(view, x), side="right")
            return 1 + reached.astype(np.int64)
        from heedful.learners.ordinal.perceptrons import MulticlassPerceptron

        if isinstance(self.learner, MulticlassPerceptron):
            return 1 + greatest(view.shared.W, self._whole(x))
        rng = np.random.default_rng(0)
        return np.array([self.learner.propose(view.shared, row, rng) for row in self._whole(x)], np.int64)

    def effective(self, view: View[Any]) -> Array:
        if not self._directed:
            return np.zeros(0)
        w, person = np.array(self.learner.weights(view.shared), np.float64), view.person
        return w if person is None else w + person.state.v

    def level(self, person: Person) -> float:
        """Return by how much the scores of `person` are lower than weights times features."""
        return float(person.state.a)

    def between(self, shared: object, grade: int) -> tuple[float | None, float | None] | None:
        """Return (lower, upper) end of the range of scores for which `grade` is predicted; None for a learner without
        weights.

        The lower end is None for grade 1, the upper end for the highest grade. `shared` is the learner's state for all
        people."""
        k = self.learner.space.k
        if self._cut:
            b = self.learner.thresholds(shared)
        elif self._directed:
            b = np.arange(1, k) + 0.5  # a number is predicted, and rounded
        else:
            return None
        return float(b[grade - 2]) if grade > 1 else None, float(b[grade - 1]) if grade < k else None

    def describe_overflow(self, shared: object) -> str:
        if bool((np.abs(self.effective(View(self, shared))) < BEYOND).all()):  # false of NaN
            return ""
        eta = getattr(self.learner, "eta", None)
        why, other = "", "another learner"
        if eta is not None:
            why, other = f" because eta={eta:g} is too large for these features", "a smaller eta"
        return (
            f"the weights have overflown{why}, so what is predicted says nothing: make the loop again with {other} and "
            "import an export of this one into it"
        )

    def _whole(self, x: Floats) -> Floats:
        return x if self._cut else np.column_stack([x, np.ones(len(x))])

    # ------------------------------------------------------------------------ learning

    def teach(self, context: Context, feedback: FeedbackRecord, extra: Floats, version: int) -> bool:
        lesson = self.lesson(context, feedback, extra)
        if lesson is None:
            return False
        person: Person | None = None
        if self.shrink > 0.0 and context.person is not None:
            known = self.people.get(context.person) or Person(self.nobody(), 0, version)
            person = known._replace(since=version)
        rng = np.random.default_rng(0)
        for row, grade in zip(self._whole(lesson.x), lesson.grades):
            if person is not None:
                own = self.learner.learn_offset(self.shared, person.state, row, grade, self.shrink)
                person = person._replace(state=own, lessons=person.lessons + 1)
            y = self.learner.propose(self.shared, row, rng)
            self.shared = self.learner.update(self.shared, row, y, grade)
        if person is not None and context.person is not None:
            self.people[context.person] = person
        return True

    def lesson(self, context: Context, feedback: FeedbackRecord, extra: Floats) -> Grades | None:
        if feedback.form != "grade":
            return None
        given = dict(zip(feedback.chosen, feedback.values))
        shown = [j for j in context.record.shown if j in given]
        among = [*shown, *sorted(given.keys() - set(shown))]
        return Grades(context.x[among], tuple([int(given[j]) for j in among]))

    # ------------------------------------------------------------------------ keeping

    def predictor(self, name: str | None) -> list[bytes] | None:
        own, learner = self.view(name).person, self.learner
        if self._directed and self._cut:
            parts = [learner.weights(self.shared), learner.thresholds(self.shared)]
        else:
            parts = [part for part in arrays_of(self.shared).values() if part.ndim]
        parts += list(self.nobody() if own is None else own.state) if self.shrink > 0.0 else []
        return [np.asarray(part).tobytes() for part in parts]

    def proposal_fields(self, y: Ints) -> dict[str, Any]:
        return {}


def greatest(W: Array, x: Floats) -> Ints:
    """Return, for each of m rows of `x` (m, N), the index of the row of `W` (k, N) that has the greatest inner product
    with it (m,).

    N is the number of features, k the number of rows to choose from. Ties go to the lowest index."""
    best, most = np.zeros(len(x), np.int64), scores(x, W[0])
    for r in range(1, len(W)):  # not all at once: m k numbers may be too many
        s = scores(x, W[r])
        more = s > most
        best[more], most[more] = r, s[more]
    return best
