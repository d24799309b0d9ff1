"""The kernel that learns grades from columns."""

from __future__ import annotations

from typing import Any

from heedful.jit.kernel import Ints, kernel
from heedful.loop.interactions.columns import Lessons, differ


@kernel
def learn_grades(learner: Any, state: Any, lessons: Lessons, at: Ints, rng: Any) -> tuple[Any, int, int]:
    """Learn the examples with the indices `at` (k,) of `lessons`, in order, one grade at a time.

    Return (the learner's state, how many examples there are, how many changed its weights or thresholds). The arrays of
    `state`, the state of `learner` before, are overwritten. `rng` is not drawn from."""
    moved = 0
    for i in at:
        weights, thresholds = learner.weights(state).copy(), learner.thresholds(state).copy()
        x, grades = lessons.x.ith(i), lessons.answer.ith(i)
        for j in range(grades.size):
            y = learner.propose(state, x[j], rng)
            state = learner.update(state, x[j], y, grades[j])
        changed = differ(weights, learner.weights(state)) or differ(thresholds, learner.thresholds(state))
        moved += 1 if changed else 0
    return state, at.size, moved
