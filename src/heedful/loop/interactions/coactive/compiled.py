"""Kernels that learn corrections from columns: the fold of a segment of the log, compiled."""

from __future__ import annotations

from typing import Any

from heedful.jit.kernel import Ints, kernel, rebuilt
from heedful.jit.kernel import ith as each
from heedful.loop.interactions.coactive.model import State
from heedful.loop.interactions.columns import Lessons, differ


@kernel
def learn_orders(learner: Any, state: Any, lessons: Lessons, at: Ints) -> tuple[Any, int]:
    """Learn the examples with the indices `at` (k,) of `lessons`, in order, for a `learner` whose proposal is just the
    order shown.

    Return (the state after them, how many changed the weights). The arrays of `state`, the one before, are
    overwritten."""
    moved, learned = 0, state.learned
    for i in at:
        before = learner.weights(learned).copy()
        learned = learner.update(learned, lessons.x(i), lessons.shown.ith(i), lessons.answer.ith(i))
        moved += 1 if differ(before, learner.weights(learned)) else 0
    return State(learned, state.usual), moved


@kernel
def learn_proposals(learner: Any, state: Any, lessons: Lessons, at: Ints, like: Any) -> tuple[Any, int]:
    """Learn the examples with the indices `at` (k,) of `lessons`, in order, for a `learner` whose proposal is a named
    tuple.

    `like` is an example of such a proposal. Return (the state after them, how many changed the weights). The arrays of
    `state`, the one before, are overwritten."""
    moved, learned = 0, state.learned
    for i in at:
        before = learner.weights(learned).copy()
        y = rebuilt(like, lessons.shown.ith(i), each(lessons.parts, i))
        learned = learner.update(learned, lessons.x(i), y, lessons.answer.ith(i))
        moved += 1 if differ(before, learner.weights(learned)) else 0
    return State(learned, state.usual), moved
