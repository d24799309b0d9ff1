"""Kernels that learn better lists from columns."""

from __future__ import annotations

from typing import Any

from heedful.jit.kernel import Ints, kernel
from heedful.loop.interactions.columns import Lessons, differ


@kernel
def learn_orders(learner: Any, state: Any, lessons: Lessons, at: Ints) -> tuple[Any, int, int]:
    """Learn the examples with the indices `at` (k,) of `lessons`, in order, for a `learner` whose proposal is just the
    order shown.

    Return (the state after them, how many they are, how many changed the weights). The arrays of `state`, the one
    before, are overwritten."""
    moved = 0
    for i in at:
        before = learner.weights(state).copy()
        state = learner.update(state, lessons.x.ith(i), lessons.shown.ith(i), lessons.answer.ith(i))
        moved += 1 if differ(before, learner.weights(state)) else 0
    return state, at.size, moved


ORDER, CLICKED, JUDGED, ALONE = range(4)
"""What an example is: a better order, clicks, a thumb on a list or one of its items, or on what was shown alone."""


@kernel
def learn_answers(learner: Any, state: Any, lessons: Lessons, at: Ints) -> tuple[Any, int, int]:
    """Learn as `learn_orders` does, for a `learner` that takes any answer (`learn`, `judge`).

    The columns of `lessons.parts` are what an example is of, and how much it counts or, of a thumb, how far it is up.
    Of a thumb `lessons.x` has the features of what was judged, and the mean of what was shown (2, N)."""
    moved = taught = 0
    for i in at:
        before, x = learner.weights(state).copy(), lessons.x.ith(i)
        of, much = lessons.parts[0].ith(i), lessons.parts[1].ith(i)
        if of < JUDGED:
            state = learner.learn(state, x, lessons.shown.ith(i), lessons.answer.ith(i), of == CLICKED, much)
        elif (x[0] == (x[1] if state.judged == 0 else state.usual)).all():
            continue  # as `Model.teaches` says
        else:
            state = learner.judge(state, x[0], x[1], much, of == ALONE)
        taught += 1
        moved += 1 if differ(before, learner.weights(state)) else 0
    return state, taught, moved
