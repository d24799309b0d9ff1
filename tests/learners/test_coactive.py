"""[J15] Algorithms 1 to 5: against their pseudo-code, rounds worked by hand, the equalities of the proofs.

Every update rule meets every space, which is Algorithm 3; test_bounds.py brings a space that is not ours.
"""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from streams import by_hand, context, follow, plain, reaction

import naive
from budget import examples
from heedful.learners.coactive.perceptron import (
    ConvexPerceptron,
    ExponentiatedPerceptron,
    PreferencePerceptron,
    signed_weights,
    simplex_weights,
)
from heedful.spaces.assignment import Assignment
from heedful.spaces.ranking import Ranking
from kernels import compile_kernel

N = 4
SPACES = [Ranking(5), Ranking(2), Ranking(1), Assignment(3)]
SEEDS = st.integers(0, 2**32 - 1)


def learners(space: Any) -> list[Any]:
    """Every learner of the file, each with the hyperparameters that take it through its branches."""
    return [
        PreferencePerceptron(N, space),
        PreferencePerceptron(N, space, batch=7),
        ExponentiatedPerceptron(N, space, bound=3.0, horizon=60),
        ExponentiatedPerceptron(N, space, bound=3.0),
        ExponentiatedPerceptron(N, space, bound=3.0, horizon=60, signed=False),
        ExponentiatedPerceptron(N, space, bound=3.0, signed=False),
        ConvexPerceptron(N, space, radius=1.5),
        ConvexPerceptron(N, space, radius=100.0),
    ]


def oracle(learner: Any) -> Any:
    space = plain(learner.space)
    if isinstance(learner, ExponentiatedPerceptron):
        if not learner.signed:
            return naive.UnsignedExponentiatedPreferencePerceptron(N, space, learner.bound, learner.horizon)
        return naive.ExponentiatedPreferencePerceptron(N, space, learner.bound, learner.horizon)
    if isinstance(learner, ConvexPerceptron):
        return naive.ConvexPreferencePerceptron(N, space, learner.radius)
    if learner.batch > 1:
        return naive.BatchPreferencePerceptron(N, space, learner.batch)
    return naive.PreferencePerceptron(N, space)


ALL = [learner for space in SPACES for learner in learners(space)]


@pytest.mark.parametrize("learner", ALL, ids=repr)
@pytest.mark.parametrize("seed", range(3))
def test_pseudo_code(learner: Any, seed: int) -> None:
    """Algorithms 1, 2, 4 (as printed, and by Eq. 22 and 23 with doubled features) and 5, round for round."""
    state = follow(learner, oracle(learner), seed)
    assert state.t == 60


@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize("seed", range(8))
def test_the_very_same_items_where_arithmetic_is_exact(batch: int, seed: int) -> None:
    """Items with small integer features: Algorithms 1 and 2 without rounding, so ties are ties: the lowest index."""
    learner = PreferencePerceptron(N, Ranking(1), batch)
    follow(learner, oracle(learner), seed, rounds=200, exact=True)


def test_the_first_round_shows_the_candidates_as_they_come() -> None:
    x = np.random.default_rng(0).standard_normal((7, N))
    signed = [learner for learner in learners(Ranking(5)) if getattr(learner, "signed", True)]
    for learner in signed:  # the others have w_1 = 1/N
        assert learner.propose(learner.init(np.random.default_rng(0)), x, np.random.default_rng(0)).tolist() == [
            *range(7)
        ]


# ---------------------------------------------------------------------------- rounds by hand

ITEMS = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])


def test_algorithm_1_by_hand() -> None:
    by_hand(
        PreferencePerceptron(2, Ranking(1)),
        ITEMS,
        [
            ([0], [1], [-1, 1]),  # all tie: the first. D = (0,1) - (1,0)
            ([1], [2], [0, 1]),  # scores -1, 1, 0. D = (1,1) - (0,1)
            ([1], [2], [1, 1]),  # scores 0, 1, 1: the lower index. D = (1,0) again
            ([2], [2], [1, 1]),  # scores 1, 1, 2. D = 0
        ],
    )


def test_algorithm_1_by_hand_on_rankings() -> None:
    """Discounts 1, 1/log2(3), 1/2: swapping the first and the third gives D = (1 - 1/2)(third - first), Eq. 21."""
    x = np.array([[2.0, 0.0], [0.0, 2.0], [4.0, 4.0], [0.0, -8.0]])
    by_hand(
        PreferencePerceptron(2, Ranking(3)),
        x,
        [
            ([0, 1, 2, 3], [2, 1, 0, 3], [1, 2]),  # D = .5 ((4,4) - (2,0))
            ([2, 1, 0, 3], [2, 1, 3, 0], [0, -2]),  # scores 2, 4, 12, -16. D = .5 ((0,-8) - (2,0))
            ([3, 0, 1, 2], [3, 0, 1], [0, -2]),  # scores 0, -4, -8, 16. The first three as shown: D = 0
        ],
    )


def test_algorithm_2_by_hand() -> None:
    learner = PreferencePerceptron(2, Ranking(1), batch=2)
    by_hand(
        learner,
        ITEMS,
        [
            ([0], [1], [0, 0]),  # D_1 = (-1,1) waits
            ([0], [2], [-1, 2]),  # still w = 0. D_2 = (0,1); D_1 + D_2
            ([1], [2], [-1, 2]),  # scores -1, 2, 1. D_3 = (1,0) waits
            ([1], [0], [1, 1]),  # D_4 = (1,-1); D_3 + D_4. Summed from s as printed, D_2 would count again: (1,2)
            ([2], [0], [1, 1]),  # scores 1, 1, 2. D_5 waits, and is never applied
        ],
    )


def test_algorithm_4_by_hand() -> None:
    """S = 1 / (2 ln 2), T = 1: eta = ln 2, so the weight of feature i is multiplied by 2^D_i, that of -i by 2^-D_i."""
    by_hand(
        ExponentiatedPerceptron(2, Ranking(1), bound=0.5 / math.log(2.0), horizon=1),
        ITEMS,
        [
            # D = (-1,1): (1/4)(1/2, 2, 2, 1/2), sum 5/4: (.1, .4, .4, .1) for features 1, 2, -1, -2
            ([0], [1], [-0.3, 0.3]),
            # D = (1,0): (.2, .4, .2, .1), sum .9
            ([1], [2], [0.0, 0.3 / 0.9]),
            # scores 0, 1/3, 1/3: item 1. D = (1,-1): (.4, .2, .1, .2) / .9, sum .9 / .9
            ([1], [0], [0.3 / 0.9, 0.0]),
            # scores 1/3, 0, 1/3: item 0. D = (-1,1): back to (.2, .4, .2, .1), sum .9
            ([0], [1], [0.0, 0.3 / 0.9]),
        ],
    )


def test_algorithm_4_unsigned_by_hand() -> None:
    """S = 1 / (2 ln 2), T = 1: the weight of feature i is multiplied by 2^D_i, from 1/2 on, and never negative."""
    learner = ExponentiatedPerceptron(2, Ranking(1), bound=0.5 / math.log(2.0), horizon=1, signed=False)
    assert learner.weights(learner.init(np.random.default_rng(0))).tolist() == [0.5, 0.5]
    by_hand(
        learner,
        ITEMS,
        [
            # scores 1/2, 1/2, 1. D = (-1,0): (1/4, 1/2), sum 3/4
            ([2], [1], [1 / 3, 2 / 3]),
            # scores 1/3, 2/3, 1. D = (0,-1): (1/3, 1/3)
            ([2], [0], [0.5, 0.5]),
            ([2], [0], [2 / 3, 1 / 3]),
            # scores 2/3, 1/3, 1. D = (-1,0): (1/3, 1/3)
            ([2], [1], [0.5, 0.5]),
        ],
    )


def test_algorithm_4_by_hand_with_a_variable_rate() -> None:
    """eta_t = ln 2 / sqrt t: the fourth round multiplies by 2^(D/2)."""
    x = np.array([[0.0, 0.0], [2.0, 0.0]])
    by_hand(
        ExponentiatedPerceptron(2, Ranking(1), bound=0.5 / math.log(2.0)),
        x,
        [
            ([0], [0], [0, 0]),
            ([0], [0], [0, 0]),
            ([0], [0], [0, 0]),
            ([0], [1], [1.5 / 4.5, 0]),  # D = (2,0): (2, 1, 1/2, 1), sum 4.5
        ],
    )


def test_algorithm_5_by_hand() -> None:
    x = np.array([[0.0, 0.0], [3.0, 4.0]])
    by_hand(
        ConvexPerceptron(2, Ranking(1), radius=1.0),
        x,
        [
            ([0], [1], [0.6, 0.8]),  # w + D = (3,4), of length 5, back to length 1
            ([1], [1], [0.6, 0.8]),
            ([1], [1], [0.6, 0.8]),
            ([1], [0], [-0.6, -0.8]),  # w - (3,4)/sqrt 4 = (-.9,-1.2), of length 1.5
        ],
    )
    by_hand(ConvexPerceptron(2, Ranking(1), radius=5.0), x, [([0], [1], [3, 4]), ([1], [1], [3, 4])])


# ---------------------------------------------------------------------------- equalities of the proofs


@examples(40)
@given(SEEDS, st.sampled_from(SPACES), st.integers(1, 5), st.integers(0, 20))
def test_weights_sum_the_gains(seed: int, space: Any, batch: int, rounds: int) -> None:
    """Eq. 11: w_{T+1}.w* is the sum of the gains U(x, ybar) - U(x, y); with batches, of the rounds applied."""
    rng = np.random.default_rng(seed)
    learner, phi = PreferencePerceptron(N, space, batch), plain(space).phi
    w_star, state, gains = rng.standard_normal(N), learner.init(rng), []
    for _ in range(rounds):
        x = context(rng, space, N)
        y = learner.propose(state, x, rng)
        ybar = reaction(rng, space, x, y)
        gains.append(w_star @ phi(x, ybar) - w_star @ phi(x, y))
        state = learner.update(state, x, y, ybar)
    applied = rounds - rounds % batch
    assert state.w @ w_star == pytest.approx(sum(gains[:applied]), abs=1e-9)


@examples(40)
@given(SEEDS, st.sampled_from(ALL))
def test_shown_is_never_worse_than_the_answer_in_the_eyes_of_the_learner(seed: int, learner: Any) -> None:
    """w_t.D_t <= 0, for y_t is the argmax: what every proof starts with (Theorem 1, line two)."""
    rng = np.random.default_rng(seed)
    state, phi = learner.init(rng), plain(learner.space).phi
    for _ in range(15):
        x = context(rng, learner.space, N)
        y = learner.propose(state, x, rng)
        ybar = reaction(rng, learner.space, x, y)
        assert learner.weights(state) @ (phi(x, ybar) - phi(x, y)) <= 1e-9
        state = learner.update(state, x, y, ybar)


@examples(40)
@given(SEEDS, st.sampled_from(SPACES), st.sampled_from([0, 25]), st.booleans())
def test_divergence_falls_by_the_gain(seed: int, space: Any, horizon: int, signed: bool) -> None:
    """Eq. 24: KL(w*||w_t) - KL(w*||w_{t+1}) = eta w*.D - ln Z_t, over the doubled features where signed; and Eq. 25
    with the constant of Hoeffding's lemma, as |D|_inf <= 2 S: ln Z_t <= eta w_t.D + 2 eta^2 S^2."""
    rng = np.random.default_rng(seed)
    S = 3.0
    learner, phi = ExponentiatedPerceptron(N, space, S, horizon, signed), plain(space).phi

    def doubled(v: np.ndarray) -> np.ndarray:
        return np.concatenate([v, -v]) if signed else v

    w_star, state = rng.dirichlet(np.ones(doubled(np.zeros(N)).size)), learner.init(rng)
    for t in range(1, 16):
        eta = 1.0 / (2.0 * S * math.sqrt(horizon or t))
        x = context(rng, space, N)
        y = learner.propose(state, x, rng)
        ybar = reaction(rng, space, x, y)
        D = doubled(phi(x, ybar) - phi(x, y))
        before = np.exp(doubled(state.theta))
        before /= before.sum()
        weights = before[:N] - before[N:] if signed else before
        assert learner.weights(state) == pytest.approx(weights, abs=1e-12)
        state = learner.update(state, x, y, ybar)
        after = np.exp(doubled(state.theta))
        after /= after.sum()
        log_Z = math.log(before @ np.exp(eta * D))
        assert w_star @ np.log(after / before) == pytest.approx(eta * (w_star @ D) - log_Z, abs=1e-11)
        if np.abs(D).max() <= 2.0 * S:
            assert log_Z <= eta * (before @ D) + 2.0 * eta**2 * S**2


@examples(30)
@given(SEEDS, st.floats(0.01, 10.0))
def test_convex_weights_stay_in_the_ball(seed: int, radius: float) -> None:
    rng = np.random.default_rng(seed)
    learner = ConvexPerceptron(N, Ranking(2), radius)
    state = learner.init(rng)
    for _ in range(10):
        x = context(rng, learner.space, N)
        y = learner.propose(state, x, rng)
        state = learner.update(state, x, y, reaction(rng, learner.space, x, y))
        assert np.linalg.norm(state.w) <= radius * (1.0 + 1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("weights_of", [signed_weights, simplex_weights])
def test_both_bodies_of_the_weights_round_alike(weights_of: Any) -> None:
    rng, fast = np.random.default_rng(0), compile_kernel(weights_of)
    for n in (1, 2, 3, 7, 8, 100, 1000):
        for theta in (rng.standard_normal(n) * rng.choice([1e-9, 1.0, 30.0, 800.0]), np.zeros(n)):
            plain_w, fast_w = np.empty(n), np.empty(n)
            weights_of(theta, plain_w)
            fast(theta, fast_w)
            assert plain_w.tobytes() == fast_w.tobytes()
            assert np.abs(plain_w).sum() <= 1.0 + 1e-12


def test_signed_weights_do_not_overflow() -> None:
    """theta = 800 ln 2 (1, -1, 1/2): e^theta_1 and e^-theta_2 share the weight, the rest is nothing."""
    w = np.empty(3)
    signed_weights(800.0 * math.log(2.0) * np.array([1.0, -1.0, 0.5]), w)
    assert w == pytest.approx([0.5, -0.5, 0.0], abs=1e-15)


def test_weights_without_a_sign_do_not_overflow() -> None:
    w = np.empty(3)
    simplex_weights(800.0 * math.log(2.0) * np.array([1.0, -1.0, 1.0]), w)
    assert w.tolist() == [0.5, 0.0, 0.5]
