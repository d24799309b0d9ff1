"""[J15] Algorithm 3: an update rule is a function of D alone. `update` is the `step` along the direction."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from streams import context, reaction

from budget import examples
from heedful.core.fold import copy_arrays
from heedful.learners.coactive.online_convex import OnlineConvex
from heedful.learners.coactive.perceptron import ConvexPerceptron, ExponentiatedPerceptron, PreferencePerceptron
from heedful.learners.coactive.second_order import SecondOrderPerceptron
from heedful.spaces.assignment import Assignment
from heedful.spaces.ranking import Ranking, WithBaseScore

N = 4
SPACES = [Ranking(5), Ranking(1), Assignment(3), WithBaseScore(Ranking(2))]
SEEDS = st.integers(0, 2**32 - 1)


def learners(space: Any) -> list[Any]:
    return [
        PreferencePerceptron(N, space),
        PreferencePerceptron(N, space, batch=3),
        ExponentiatedPerceptron(N, space, bound=3.0, horizon=60),
        ExponentiatedPerceptron(N, space, bound=3.0),
        ConvexPerceptron(N, space, radius=1.5),
        SecondOrderPerceptron(N, space),
        SecondOrderPerceptron(N, space, radius=0.5),
        OnlineConvex(N, space),
    ]


ALL = [learner for space in SPACES for learner in learners(space)]


def close(a: Any, b: Any) -> bool:
    """Whether two states are equal to rounding, buffers aside."""
    return all(np.allclose(p, q, rtol=1e-9, atol=1e-12) for name, p, q in zip(a._fields, a, b) if name not in "Dgv")


@pytest.mark.parametrize("learner", ALL, ids=repr)
@examples(10)
@given(seed=SEEDS)
def test_update_is_a_step_along_the_direction(learner: Any, seed: int) -> None:
    """Algorithm 3, round for round: D = phi(x, ybar) - phi(x, y), whatever was learned before."""
    rng = np.random.default_rng(seed)
    state, space, rule = learner.init(rng), learner.space, getattr(learner, "rule", learner)
    inner = space.space if isinstance(space, WithBaseScore) else space
    for _ in range(12):
        x = context(rng, inner, N)
        y = learner.propose(state, x, rng)
        ybar = reaction(rng, inner, x, y)
        D = np.zeros(N)
        space.add_difference(D, x, ybar, y, 1.0)
        stepped = rule.step(copy_arrays(state), D)
        state = learner.update(state, x, y, ybar)
        assert close(stepped, state)


def test_a_weighted_lesson_by_hand() -> None:
    """step(2 D) of the perceptron adds 2 D; of a batch of two, only when the second lesson is in; t counts lessons."""
    D = np.array([1.0, -1.0, 0.0, 0.5])
    learner = PreferencePerceptron(N, Ranking(2))
    state = learner.step(learner.init(np.random.default_rng(0)), 2.0 * D)
    assert state.w.tolist() == [2.0, -2.0, 0.0, 1.0]
    assert state.t == 1
    learner = PreferencePerceptron(N, Ranking(2), batch=2)
    state = learner.step(learner.init(np.random.default_rng(0)), 2.0 * D)
    assert state.w.tolist() == [0.0] * 4
    state = learner.step(state, -D)
    assert state.w.tolist() == D.tolist()
    assert state.pending.tolist() == [0.0] * 4
