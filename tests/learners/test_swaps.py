"""Random swaps of neighbours: the coins of 3PR, and exact probabilities of lists.

3PR is Raman, Joachims, Shivaswamy & Schnabel, Stable Coactive Learning via Perturbation, ICML 2013.
"""

from collections import defaultdict
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from streams import candidates

import naive
from budget import examples
from coins import Draws
from heedful.learners.coactive.swaps import PerturbedRanking, Swaps, swap_probability
from heedful.spaces.ranking import Ranking

N = 4
SEEDS = st.integers(0, 2**32 - 1)


@examples(100)
@given(SEEDS, st.integers(1, 12), st.sampled_from([2, 3, 5]), st.sampled_from([0.1, 0.5]))
def test_the_order_is_that_of_3pr(seed: int, m: int, k: int, swap: float) -> None:
    """With the same coins the same order, start and swaps."""
    rng = np.random.default_rng(seed)
    x, coins = candidates(rng, (m, N)), rng.random(20).tolist()
    draws = iter(coins)
    oracle = naive.PerturbedPreferencePerceptron(N, naive.Rankings(k), swap, 2 * k)
    shown, start, swapped = oracle.propose(x, lambda: next(draws))
    y = Swaps(Ranking(k), swap).propose(np.zeros(N), x, Draws(*coins))
    assert y.shown.tolist() == shown
    if m > 1:
        assert y.start == start
        assert y.swapped.tolist() == swapped


@pytest.mark.parametrize("m", range(1, 8))
@pytest.mark.parametrize("swap", [0.5, 0.2])
@pytest.mark.parametrize("k", [2, 5])
def test_the_probability_of_an_order_is_exact(m: int, swap: float, k: int) -> None:
    """Summed over every coin there can be, an order turns up as often as it says; together once."""
    swaps = Swaps(Ranking(k), swap)
    w, x = np.ones(1), np.arange(m, 0.0, -1.0)[:, None]
    came: dict[tuple[int, ...], float] = defaultdict(float)
    said: dict[tuple[int, ...], float] = {}
    for start in (0, 1):
        pairs = max(0, (min(m, 2 * k) - start) // 2)
        for turned in product([False, True], repeat=pairs):
            coins = Draws(0.25 if start else 0.75, *(0.0 if s else 1.0 for s in turned))
            y = swaps.propose(w, x, coins)
            share = np.prod([swap if s else 1.0 - swap for s in turned])
            came[tuple(y.shown.tolist())] += 0.5 * share
            assert said.setdefault(tuple(y.shown.tolist()), y.probability) == y.probability
            assert (y.start, y.swapped.tolist()) == ((start, list(turned)) if m > 1 else (-1, []))
            for i, j in enumerate(y.shown):
                assert abs(i - j) <= 1  # neighbours alone change places
                assert j == i or i < 2 * k
    assert said == pytest.approx(came, abs=1e-15)
    assert sum(came.values()) == pytest.approx(1.0)
    assert len(said) == (1 if m == 1 else 2 ** (min(m, 2 * k) // 2) + 2 ** ((min(m, 2 * k) - 1) // 2) - 1)


def test_chance_by_hand() -> None:
    """Five deep, swap 1/4: pairs at 0 or at 1, two of each. All stood: either start; one swapped: this start alone."""
    assert swap_probability(np.array([False, False]), 0, 5, 0.25) == 0.5 * 0.75**2 + 0.5 * 0.75**2
    assert swap_probability(np.array([False, False]), 0, 4, 0.25) == 0.5 * 0.75**2 + 0.5 * 0.75
    assert swap_probability(np.array([False]), 1, 4, 0.25) == 0.5 * 0.75 + 0.5 * 0.75**2
    assert swap_probability(np.array([False, True]), 1, 5, 0.25) == 0.5 * 0.75 * 0.25
    assert swap_probability(np.zeros(0, bool), 1, 2, 0.25) == 0.5 + 0.5 * 0.75


def test_far_positions_stay() -> None:
    """k = 3, twenty documents: the first six may move, and each of them does; the rest never."""
    swaps, x = Swaps(Ranking(3), 0.5), np.arange(20, 0.0, -1.0)[:, None]
    w, rng = np.ones(1), np.random.default_rng(1)
    moved = np.zeros(20, int)
    starts = []
    for _ in range(400):
        y = swaps.propose(w, x, rng)
        moved += y.shown != np.arange(20)
        starts.append(y.start)
    assert moved[6:].tolist() == [0] * 14
    assert moved[:6].min() > 60
    assert 150 < sum(starts) < 250


def test_an_item_alone_and_swap_0_are_shown_as_they_are() -> None:
    for swaps, m, shown in [
        (Swaps(Ranking(1), 0.25), 4, [0]),
        (Swaps(Ranking(3), 0.25), 1, [0]),
        (Swaps(Ranking(3), 0.0), 4, [0, 1, 2, 3]),
    ]:
        y = swaps.propose(np.ones(1), np.arange(m, 0.0, -1.0)[:, None], Draws())
        assert (y.shown.tolist(), y.start, y.swapped.tolist(), y.probability) == (shown, -1, [], 1.0)


def test_what_is_logged_is_what_the_docstring_says() -> None:
    assert PerturbedRanking._fields == ("shown", "start", "swapped", "swap", "probability")


@pytest.mark.parametrize("swap", [0.0, 0.1, 0.25, 0.5])
@pytest.mark.parametrize("m", [1, 2, 3, 9, 10, 11, 30])
def test_a_person_who_sees_all_that_was_drawn_sees_it_with_the_proposals_own_probability(m: int, swap: float) -> None:
    """Bit for bit what `chance` says: a loop need not reckon it again."""
    swaps = Swaps(Ranking(5), swap)
    x = np.random.default_rng(m).standard_normal((m, 2))
    w = np.array([1.0, -0.5])
    for draw in range(50):
        y = swaps.propose(w, x, np.random.default_rng(draw))
        for size in range(swaps.depth(m), m + 1):
            assert swaps.chance(swaps.order(y), y.shown[:size]) == y.probability
    assert swaps.depth(m) == min(m, 10)
