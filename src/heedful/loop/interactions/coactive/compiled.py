"""Kernels that learn corrections from columns: the fold of a segment of the log, compiled."""

from __future__ import annotations

from typing import Any

from heedful.jit.kernel import Ints, kernel, rebuilt
from heedful.jit.kernel import ith as each
from heedful.loop.interactions.columns import Lessons, differ


@kernel
def learn_orders(learner: Any, state: Any, lessons: Lessons, at: Ints) -> tuple[Any, int]:
    """Learn the examples with the indices `at` (k,) of `lessons`, in order, for a `learner` whose proposal is just the
    order shown.

    Return (the learner's state, how many examples changed its weights). The arrays of `state`, the learner's state
    before, are overwritten."""
    moved = 0
    for i in at:
        before = learner.weights(state).copy()
        state = learner.update(state, lessons.x(i), lessons.shown.ith(i), lessons.answer.ith(i))
        moved += 1 if differ(before, learner.weights(state)) else 0
    return state, moved


@kernel
def learn_proposals(learner: Any, state: Any, lessons: Lessons, at: Ints, like: Any) -> tuple[Any, int]:
    """Learn the examples with the indices `at` (k,) of `lessons`, in order, for a `learner` whose proposal is a named
    tuple.

    `like` is an example of such a proposal. Return (the learner's state, how many examples changed its weights). The
    arrays of `state`, the learner's state before, are overwritten."""
    moved = 0
    for i in at:
        before = learner.weights(state).copy()
        y = rebuilt(like, lessons.shown.ith(i), each(lessons.parts, i))
        state = learner.update(state, lessons.x(i), y, lessons.answer.ith(i))
        moved += 1 if differ(before, learner.weights(state)) else 0
    return state, moved
