"""The pairwise logistic learner, ours: against its formula, rounds worked by hand, and below the papers' floor."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from streams import by_hand, context, follow, plain, reaction

import naive
from budget import examples
from heedful.core.fold import trace
from heedful.jit.cache import compile_kernel
from heedful.learners.coactive.pairwise_logistic import PairwiseLogistic, adagrad_step
from heedful.learners.coactive.perceptron import PreferencePerceptron
from heedful.spaces.assignment import Assignment
from heedful.spaces.ranking import Ranking
from heedful.worlds.queries import synthetic_queries
from heedful.worlds.users import Noisy

N = 4
SPACES = [Ranking(5), Ranking(2), Ranking(1), Assignment(3)]
SEEDS = st.integers(0, 2**32 - 1)


@pytest.mark.parametrize("space", SPACES, ids=repr)
@pytest.mark.parametrize("rate", [0.1, 2.0])
@pytest.mark.parametrize("seed", range(3))
def test_formula(space: Any, rate: float, seed: int) -> None:
    state = follow(PairwiseLogistic(N, space, rate), naive.PairwiseLogistic(N, plain(space), rate), seed)
    assert state.t == 60


def test_items_by_hand() -> None:
    """One pair a round, gradient sigma(-w.d) d for d = better - shown. The first step is rate sign(g), whatever |g|."""
    wrong = 1.0 / (1.0 + math.exp(-0.25))  # sigma(.25)
    by_hand(
        PairwiseLogistic(2, Ranking(1), rate=0.25),
        np.array([[0.0, 0.0], [1.0, 0.0]]),
        [
            ([0], [1], [0.25, 0.0]),  # g = sigma(0) (1,0) = (1/2,0), and 1/2 / sqrt(1/4) = 1
            ([1], [1], [0.25, 0.0]),  # the item itself: no pair
            ([1], [0], [0.25 - 0.25 * wrong / math.sqrt(0.25 + wrong**2), 0.0]),  # g = -sigma(.25) (1,0)
        ],
    )
    wrong = 2.0 / (1.0 + math.exp(-0.5))  # 2 sigma(.5)
    by_hand(
        PairwiseLogistic(1, Ranking(1), rate=0.25),
        np.array([[0.0], [1.0], [2.0]]),
        [
            ([0], [1], [0.25]),
            ([2], [0], [0.25 - 0.25 * wrong / math.sqrt(0.25 + wrong**2)]),  # d = -2, w.d = -.5
        ],
    )


def test_the_pairs_of_a_correction_by_hand() -> None:
    """Shown 0 1 2 3 4 with k = 2, and 3 1 came back: read down to 3, so 3 and 1 each beat 0 and 2, and 3, once behind,
    beats 1; 4 was not reached. From w = 0 each pair weighs 1/2: 3/2 for 3, (2 - 1)/2 for 1, -1 for 0 and for 2."""
    learner = PairwiseLogistic(5, Ranking(2), rate=0.5)
    state = learner.init(np.random.default_rng(0))
    state = learner.update(state, np.eye(5), np.arange(5), np.array([3, 1]))
    assert state.g.tolist() == [-1.0, 0.5, -1.0, 1.5, 0.0]
    assert state.total.tolist() == [1.0, 0.25, 1.0, 2.25, 0.0]
    assert state.w.tolist() == [-0.5, 0.5, -0.5, 0.5, 0.0]


def test_pairs_of_orders_by_hand() -> None:
    """Pairs (before, behind) that a correction implies, k = 3, seen through the gradient at w = 0, twice as large."""
    cases: list[tuple[list[int], list[int], list[tuple[int, int]]]] = [
        ([0, 1, 2, 3], [0, 1, 2, 3], []),  # confirmed as shown
        ([0, 1, 2, 3], [1, 0, 2], [(1, 0)]),  # two swapped
        ([0, 1, 2, 3], [2, 1, 0], [(2, 1), (2, 0), (1, 0)]),  # reversed
        ([0, 1, 2, 3], [0, 1, 3], [(0, 2), (1, 2), (3, 2)]),  # the fourth instead of the third
        ([0, 1, 2], [3, 0, 1], [(3, 2), (0, 2), (1, 2), (3, 0), (3, 1)]),  # one that was not shown
        ([0, 1, 2], [4, 3, 0], [(a, b) for a in (4, 3, 0) for b in (1, 2)] + [(4, 0), (3, 0)]),  # two of them
        ([1, 0], [0, 1], [(0, 1)]),  # a list shorter than k
        ([0, 1, 2, 3, 4], [0], [(0, 1), (0, 2)]),  # one choice: the first k were seen
    ]
    for y, ybar, pairs in cases:
        out, wanted = np.zeros(5), np.zeros(5)
        for before, behind in pairs:
            wanted[before] += 1.0
            wanted[behind] -= 1.0
        Ranking(3).add_pair_gradient(out, np.zeros(5), np.eye(5), np.array(ybar), np.array(y))
        assert (2.0 * out).tolist() == wanted.tolist(), (y, ybar)


@examples(50)
@given(SEEDS, st.sampled_from(SPACES))
def test_gradient_is_that_of_the_likelihood(seed: int, space: Any) -> None:
    """Central differences of sum log sigma(w.d) over the implied pairs; and it is added to what is there."""
    rng = np.random.default_rng(seed)
    x, w = context(rng, space, N), rng.standard_normal(N)
    y = space.argmax(rng.standard_normal(N), x)
    ybar = reaction(rng, space, x, y)

    def likelihood(w: np.ndarray) -> float:
        return -sum(math.log1p(math.exp(-float(w @ d))) for d in plain(space).pair_differences(x, y, ybar))

    out = np.arange(N, dtype=float)
    space.add_pair_gradient(out, w, x, ybar, y)
    h = 1e-5
    slopes = [(likelihood(w + h * e) - likelihood(w - h * e)) / (2.0 * h) for e in np.eye(N)]
    assert out - np.arange(N) == pytest.approx(slopes, abs=1e-6)


@examples(30)
@given(SEEDS, st.sampled_from(SPACES))
def test_shown_is_an_argmax(seed: int, space: Any) -> None:
    rng = np.random.default_rng(seed)
    learner, phi = PairwiseLogistic(N, space), plain(space).phi
    state = learner.init(rng)
    for _ in range(10):
        x = context(rng, space, N)
        y = learner.propose(state, x, rng)
        ybar = reaction(rng, space, x, y)
        assert learner.weights(state) @ (phi(x, ybar) - phi(x, y)) <= 1e-9
        state = learner.update(state, x, y, ybar)


@pytest.mark.slow
def test_both_bodies_of_the_step_round_alike() -> None:
    rng, fast = np.random.default_rng(0), compile_kernel(adagrad_step)
    for n in (1, 3, 8, 100):
        w, total = rng.standard_normal(n), rng.random(n) * rng.integers(0, 2, n)
        g = rng.standard_normal(n) * rng.integers(0, 2, n)
        w_fast, total_fast = w.copy(), total.copy()
        before, sums = w.copy(), total.copy()
        adagrad_step(w, total, g, 0.1)
        fast(w_fast, total_fast, g, 0.1)
        assert w.tobytes() == w_fast.tobytes()
        assert total.tobytes() == total_fast.tobytes()
        moved = g != 0.0
        assert (w[~moved] == before[~moved]).all()
        assert total == pytest.approx(sums + g**2)
        assert w[moved] == pytest.approx(before[moved] + 0.1 * g[moved] / np.sqrt(sums[moved] + g[moved] ** 2))


def test_label_noise_leaves_it_far_below_the_floor_of_the_perceptron() -> None:
    """Twenty documents, twenty features, noise 1, the best labels of the first ten: over the last quarter of 3000
    rounds, less than a fifth of the perceptron's regret."""
    world, _ = synthetic_queries(3000, 20, 20, noise=1.0, user=Noisy(10), seed=0)
    late = {
        type(learner).__name__: trace(learner, world, 3000, seed=0, interpreted=True)[2250:].mean()
        for learner in (PreferencePerceptron(20, Ranking()), PairwiseLogistic(20, Ranking()))
    }
    assert late["PreferencePerceptron"] > 5.0 * late["PairwiseLogistic"] > 0.0
