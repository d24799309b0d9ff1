"""The offset of one person around a learner of ranks: what every learner promises, and its step by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import naive
from heedful.core.conformance import check_learner
from heedful.learners.ordinal.perceptrons import AveragedPRank, PRank
from heedful.learners.personal import Offset, Personal, PersonalState
from heedful.worlds.instances import synthetic_ordinal


@pytest.mark.parametrize("inside", [PRank(6, 5), AveragedPRank(6, 5)])
def test_it_keeps_every_promise_of_a_learner(inside: Any) -> None:
    found = list(check_learner(Personal(inside, 3.0), synthetic_ordinal(60, 6)[0]))
    assert len(found) == 11
    assert [(each.promise, each.where) for each in found if not each.kept] == []


def test_a_step_by_hand() -> None:
    """k = 3, w = 0, b = (0, 0), shrink 1: after one lesson c = 1/2. All scores are 0, so the rank 3 is predicted. The
    rank 1 of x = (1, 2): y_r = -1 and (0 - 0) y_r = 0 <= 0 for both: sum tau = -2, v = -2 x, a = 2; and the learner
    inside moves alike. Then s = w.x + c (v.x - a) = -10 + (-10 - 2) / 2 = -16, below b_1 = 1."""
    learner, rng = Personal(PRank(2, 3), 1.0), np.random.default_rng(0)
    state = learner.init(rng)
    x = np.array([1.0, 2.0])
    assert learner.propose(state, x, rng) == 3
    state = learner.update(state, x, 3, 1)
    assert (state.offset.v.tolist(), state.offset.a, state.lessons) == ([-2.0, -4.0], 2.0, 1)
    assert (state.shared.w.tolist(), state.shared.b.tolist()) == ([-2.0, -4.0], [1.0, 1.0])
    assert learner.propose(state, x, rng) == 1
    assert learner.propose(state._replace(offset=Offset(np.array([40.0, 0.0]), 0.0)), x, rng) == 3  # -10 + 40 / 2 >= 1


def test_where_the_shared_score_is_nothing_the_offset_is_pranks_step() -> None:
    """With w = 0 and thresholds that do not move, one step of v and a is PRank's step of w, and of b as one shift."""
    rng = np.random.default_rng(3)
    for _ in range(200):
        b = np.sort(rng.integers(-2, 3, 4)).astype(float)
        x, rank = rng.integers(-2, 3, 3).astype(float), int(rng.integers(1, 6))
        told = naive.PRank(3, 5)
        told.b |= dict(enumerate(b.tolist(), 1))
        told.update(x.tolist(), rank)
        before = PersonalState(PRank(3, 5).init(rng)._replace(b=b.copy()), Offset(np.zeros(3), 0.0), 0)
        own = Personal(PRank(3, 5), 1e-12).update(before, x, 0, rank).offset
        assert own.v.tolist() == pytest.approx(list(told.w))
        assert own.a == pytest.approx(sum(told.b[r] for r in range(1, 5)) - b.sum())


@pytest.mark.parametrize("shrink", [0.0, -1.0, float("nan")])
def test_it_has_to_shrink(shrink: float) -> None:
    with pytest.raises(ValueError, match="shrink"):
        Personal(PRank(2, 3), shrink).init(np.random.default_rng(0))
