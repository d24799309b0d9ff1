"""What a grading loop folds: a learner of grades from 1 to k, and for each person a shift of the score all share.

    s_j   = w . x_j + c (v . x_j - a)      w shared by all; v and a this person's own, c = n / (n + shrink) after n
                                           grades of theirs; the last feature is the caller's score
    grade = the least r with s_j < b_r     thresholds b_1 <= ... <= b_{k-1}, shared by all; b_k is infinite

The candidates are shown by decreasing s, ties by the caller's score, then as they were listed; so with no lesson the
caller's order is shown. v and a are learned by `heedful.learners.personal.Personal` around the loop's learner.

A learner without thresholds gets one feature more, which is 1: features are centred, and grades are not. One without a
direction has no s: what is predicted the highest comes first, then what the caller scores the highest.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from heedful.core.fold import generators
from heedful.jit.kernel import Floats, Ints, scores
from heedful.learners.personal import Offset, Personal, PersonalState, ranks
from heedful.loop.model import Context, Person
from heedful.loop.records import FeedbackRecord

Array = npt.NDArray[np.float64]

BEYOND = 1e100
"""No weight is as great as this where a learner still learns: features and scores are less, too."""


class Grades(NamedTuple):
    """Feedback as the learner takes it: candidates (n x N) with their grades (n,), a lesson each, in this order."""

    x: Floats
    grades: tuple[int, ...]


class GradingModel:
    """The state of a grading loop: of its learner, and of every person's offset. `teach` is the fold's step."""

    version = 1
    """of how feedback becomes lessons: a change of what is folded raises it"""

    def __init__(self, learner: Any, shrink: float = 0.0) -> None:
        """`learner` over N features of which the last is the prior (N + 1 where it has no thresholds); `shrink` > 0
        learns an offset per person, which counts half after that many grades."""
        self.learner = learner
        self.shrink = shrink
        self._personal = Personal(learner, shrink)
        self.shared = learner.init(generators(0)[2])
        self.people: dict[str, Person] = {}
        self._cut = hasattr(learner, "thresholds")
        self._directed = hasattr(learner, "weights")

    def nobody(self) -> Offset:
        """Return the offset of a person who has graded nothing."""
        return self._personal.nobody()

    # ------------------------------------------------------------------------ proposing

    def propose(self, shared: Any, person: Person | None, x: Floats, rng: Any) -> Ints:
        """The candidates x (m x N) in the order to show them."""
        return self.order(shared, person, x)

    def order(self, shared: Any, person: Person | None, x: Floats) -> Ints:
        """The candidates, the highest first; of what stands alike the caller's best, then the lowest index."""
        keys: list[Any] = [-x[:, -1]]  # the last is the first to be sorted by
        if self._directed:
            keys.append(-self.scores(shared, person, x))
        if not self._cut:
            keys.append(-self.grades(shared, person, x))
        return np.lexsort(keys)

    def scores(self, shared: Any, person: Person | None, x: Floats) -> Array:
        """s of the candidates (m,); for a learner with one direction."""
        s: Array = scores(self._whole(x), self.effective(shared, person))
        return s if person is None else s - self.level(person)

    def grades(self, shared: Any, person: Person | None, x: Floats) -> Ints:
        """The grade predicted of each of the candidates (m,), from 1 to k."""
        if self._cut:
            return ranks(self.scores(shared, person, x), self.learner.thresholds(shared))
        from heedful.learners.ordinal.perceptrons import MulticlassPerceptron

        if isinstance(self.learner, MulticlassPerceptron):
            return 1 + greatest(shared.W, self._whole(x))
        rng = generators(0)[2]
        return np.array([self.learner.propose(shared, row, rng) for row in self._whole(x)], np.int64)

    def effective(self, shared: Any, person: Person | None) -> Array:
        """What each feature counts, the prior's last but for the 1 of a learner without thresholds; shared and
        personal together. Empty for a learner without one direction."""
        if not self._directed:
            return np.zeros(0)
        w = np.array(self.learner.weights(shared), np.float64)
        return w if person is None else w + self._personal.share(person.lessons) * person.state.v

    def level(self, person: Person) -> float:
        """By how much a person's scores are lower than her weights make them: c a."""
        return self._personal.share(person.lessons) * float(person.state.a)

    def between(self, shared: Any, grade: int) -> tuple[float | None, float | None] | None:
        """The scores from which on, and up to which, this grade is predicted; None at the ends of the scale, and for a
        learner without one direction."""
        k = self.learner.space.k
        if self._cut:
            b = self.learner.thresholds(shared)
        elif self._directed:
            b = np.arange(1, k) + 0.5  # a number is predicted, and rounded
        else:
            return None
        return float(b[grade - 2]) if grade > 1 else None, float(b[grade - 1]) if grade < k else None

    def overflown(self, shared: Any) -> str:
        """Why the weights say nothing any more, and what to do, in one sentence; "" where they are numbers below
        `BEYOND`."""
        if bool((np.abs(self.effective(shared, None)) < BEYOND).all()):  # false of NaN
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

    def refusal(self, form: str) -> str | None:
        """Why the learner cannot use a form of feedback; None where it can."""
        if form in ("grade", "none"):
            return None
        expected = (
            f"{form}: expected grade or none: this loop learns grades, whole numbers from 1 to {self.learner.space.k}"
        )
        return f"{expected}; where stars are such numbers, send them as grade" if form == "rating" else expected

    def teach(self, context: Context, feedback: FeedbackRecord, extra: Floats, version: int) -> bool:
        """Learn from one piece of feedback, grade after grade; whether there was one in it. `extra` is for other forms
        than those that a grading loop takes."""
        lesson = self.lesson(context, feedback, extra)
        if lesson is None:
            return False
        person: Person | None = None
        if self.shrink > 0.0 and context.person is not None:
            known = self.people.get(context.person) or Person(self.nobody(), 0, version)
            person = known._replace(since=version)
        rng = generators(0)[2]
        for row, grade in zip(self._whole(lesson.x), lesson.grades):
            y = self.learner.propose(self.shared, row, rng)
            if person is None:
                self.shared = self.learner.update(self.shared, row, y, grade)
                continue
            before = PersonalState(self.shared, person.state, person.lessons)
            self.shared, own, n = self._personal.update(before, row, y, grade)
            person = person._replace(state=own, lessons=n)
        if person is not None and context.person is not None:
            self.people[context.person] = person
        return True

    def lesson(self, context: Context, feedback: FeedbackRecord, extra: Floats) -> Grades | None:
        """What a piece of feedback says to the learner: what was shown in the order it was shown, then the rest; None
        where it grades nothing."""
        if feedback.form != "grade":
            return None
        given = dict(zip(feedback.chosen, feedback.values))
        shown = [j for j in context.record.shown if j in given]
        among = [*shown, *sorted(given.keys() - set(shown))]
        return Grades(context.x[among], tuple([int(given[j]) for j in among]))

    # ------------------------------------------------------------------------ keeping

    def described(self, y: Any) -> dict[str, Any]:
        """What a proposal carries besides what is shown, as JSON: nothing."""
        return {}


def greatest(W: Array, x: Floats) -> Ints:
    """Of every row of x (m, N) the row of W (k, N) with the greatest product, ties to the lowest: (m,)."""
    best, most = np.zeros(len(x), np.int64), scores(x, W[0])
    for r in range(1, len(W)):  # not all at once: m k numbers may be too many
        s = scores(x, W[r])
        more = s > most
        best[more], most[more] = r, s[more]
    return best
