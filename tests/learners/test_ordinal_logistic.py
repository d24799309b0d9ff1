"""Ordinal logistic regression: the textbook's mode and precision, for all people and for one, whatever the features."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import naive
from budget import examples
from heedful.core.fold import trace
from heedful.learners.logistic import MOST_FULL
from heedful.learners.ordinal.ordinal_logistic import OrdinalLogistic
from heedful.learners.ordinal.perceptrons import ConstantRank
from heedful.worlds.instances import synthetic_instances

RNG = np.random.default_rng(0)
SEEDS = st.integers(0, 2**32 - 1)
NEAR = 1e-3
"""How near the mode Newton's method ends, in standard deviations; it is nearer by far, mostly."""


@examples(25)
@given(SEEDS, st.integers(2, 6), st.integers(0, 1))
def test_every_grade_moves_it_to_the_mode_with_the_precision_there(seed: int, k: int, products: int) -> None:
    """On features of unlike scales, one of them constant."""
    rng = np.random.default_rng(seed)
    learner, oracle = OrdinalLogistic(3, k, 2.0, products), naive.OrdinalLogistic(3, k, 2.0, products)
    state = learner.init(RNG)
    for _ in range(9):
        x, grade = rng.standard_normal(3) * [5.0, 0.0, 0.3] + [1.0, 1.0, 0.0], int(rng.integers(1, k + 1))
        state = learner.update(state, x, 0, grade)
        oracle.update(x, grade)
        P, theirs = np.tril(state.P) + np.tril(state.P, -1).T, np.linalg.inv(oracle.L)
        sd, missed = np.sqrt(np.diag(theirs)), learner.weights(state) - oracle.m[:3]
        assert np.abs(missed / sd[:3]).max() < NEAR
        assert np.abs((learner.thresholds(state) - np.sort(oracle.m[3:])) / sd[3:].min()).max() < NEAR
        for z in [*np.eye(3, k + 2), *oracle.rows_of(x)]:  # the weights; what is said of the next instance
            ours = np.array([*z[:3], *-z[3:]])
            if z[3:].any():
                ours[:3] -= state.usual
            assert ours @ P @ ours == pytest.approx(z @ theirs @ z, rel=NEAR, abs=1e-8)


@examples(25)
@given(SEEDS)
def test_an_offset_moves_to_its_mode(seed: int) -> None:
    """With the shared scores as they are, and as if its own weights were independent."""
    rng = np.random.default_rng(seed)
    learner, oracle, shrink = OrdinalLogistic(3, 4), naive.OrdinalLogistic(3, 4), 3.0
    state, own = learner.init(RNG), learner.stranger()
    for t in range(8):
        x, grade = rng.standard_normal(3) * [2.0, 1.0, 0.3], int(rng.integers(1, 5))
        if t == 3:
            oracle.stranger(shrink)
        if t >= 3:
            own = learner.learn_offset(state, own, x, grade, shrink)
            oracle.own_update(x, grade)
            found = np.append(own.v, own.v @ state.usual - own.a)
            assert np.abs((found - oracle.own) / np.sqrt(oracle.own_variance)).max() < NEAR
            assert own.variances == pytest.approx(oracle.own_variance, rel=NEAR)
        state = learner.update(state, x, 0, grade)
        oracle.update(x, grade)


@examples(10)
@given(SEEDS)
def test_scale_and_origin_of_features_change_nothing(seed: int) -> None:
    """From the second instance on the prior has followed; weights change with the scale, and nothing else does."""
    rng = np.random.default_rng(seed)
    X, ranks = rng.standard_normal((40, 4)), rng.integers(1, 5, 40)
    scale, origin = np.array([1.0, 100.0, 0.01, 3.0]), np.array([0.0, 1e4, 5.0, -3.0])
    learner = OrdinalLogistic(4, 4)
    a, b = learner.init(RNG), learner.init(RNG)
    a, b = learner.update(a, X[0], 0, 2), learner.update(b, X[0] * scale + origin, 0, 2)
    for x, y in zip(X[1:], ranks.tolist()):
        a, b = learner.update(a, x, 0, y), learner.update(b, x * scale + origin, 0, y)
    assert learner.weights(b) * scale == pytest.approx(learner.weights(a), rel=1e-5, abs=1e-7)
    scores = X @ learner.weights(a), (X * scale + origin) @ learner.weights(b)
    first = [s[:, None] - learner.thresholds(state) for s, state in zip(scores, (a, b))]
    assert first[1] == pytest.approx(first[0], rel=1e-4, abs=1e-6)


def test_thresholds_are_read_in_order() -> None:
    """Grades that contradict each other move them past one another; what predicts is sorted."""
    learner = OrdinalLogistic(2, 6)
    state = learner.init(RNG)
    rng = np.random.default_rng(4)
    for _ in range(30):
        state = learner.update(state, rng.standard_normal(2), 0, int(rng.choice([1, 6])))
        assert np.all(np.diff(learner.thresholds(state)) >= 0.0)


@pytest.mark.parametrize("n", [MOST_FULL, MOST_FULL + 1])
def test_with_many_features_only_variances_are_kept(n: int) -> None:
    learner = OrdinalLogistic(n, 3)
    state = learner.init(RNG)
    assert state.P.shape == ((n + 2, n + 2) if n == MOST_FULL else (1, n + 2))
    rng = np.random.default_rng(1)
    for _ in range(120):
        x = rng.standard_normal(n)
        state = learner.update(state, x, 0, 1 + int(x[0] > -0.5) + int(x[0] > 0.5))
    assert learner.weights(state).argmax() == 0


def test_it_beats_a_constant_on_the_papers_stream() -> None:
    world = synthetic_instances(300)
    ours, constant = (
        trace(learner, world, 300, 0, interpreted=True).mean()
        for learner in (OrdinalLogistic(6, 5), ConstantRank(6, 5))
    )
    assert ours < constant / 2
