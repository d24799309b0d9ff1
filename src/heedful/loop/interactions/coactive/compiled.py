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


@kernel
def learn_answers(learner: Any, state: Any, lessons: Lessons, at: Ints) -> tuple[Any, int, int]:
    """Learn as `learn_orders` does, for a `learner` that tells clicks from better orders (`learn`); which it is stands
    in the only column of `lessons.parts`."""
    moved = 0
    for i in at:
        before, clicked = learner.weights(state).copy(), lessons.parts[0].ith(i) > 0
        state = learner.learn(state, lessons.x.ith(i), lessons.shown.ith(i), lessons.answer.ith(i), clicked, 1.0)
        moved += 1 if differ(before, learner.weights(state)) else 0
    return state, at.size, moved
