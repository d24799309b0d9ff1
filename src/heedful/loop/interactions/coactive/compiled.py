"""Kernels that learn corrections from columns: the fold of a segment of the log, compiled."""

from __future__ import annotations

from typing import Any

from heedful.jit.kernel import Ints, kernel, rebuilt
from heedful.jit.kernel import ith as each
from heedful.loop.interactions.columns import Lessons, differ


@kernel
def learn_orders(learner: Any, state: Any, lessons: Lessons, at: Ints) -> tuple[Any, int]:
    """Learn the examples `at` (k,) of `lessons`, in order, where a proposal is the order shown alone.

    Return (the learner's state, how many of them changed its weights). The arrays of `state` are overwritten."""
    moved = 0
    for i in at:
        before = learner.weights(state).copy()
        state = learner.update(state, lessons.x(i), lessons.shown.ith(i), lessons.answer.ith(i))
        moved += 1 if differ(before, learner.weights(state)) else 0
    return state, moved


@kernel
def learn_proposals(learner: Any, state: Any, lessons: Lessons, at: Ints, like: Any) -> tuple[Any, int]:
    """Learn the examples `at` (k,) of `lessons`, in order, where a proposal is a named tuple like `like`.

    Return (the learner's state, how many of them changed its weights). The arrays of `state` are overwritten."""
    moved = 0
    for i in at:
        before = learner.weights(state).copy()
        y = rebuilt(like, lessons.shown.ith(i), each(lessons.parts, i))
        state = learner.update(state, lessons.x(i), y, lessons.answer.ith(i))
        moved += 1 if differ(before, learner.weights(state)) else 0
    return state, moved
