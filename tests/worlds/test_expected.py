"""Feedback that is alpha-informative in expectation, [J15] Eq. 7 and section 6.2.4."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import naive
from heedful.core.fold import trace
from heedful.learners.coactive.perceptron import PreferencePerceptron
from heedful.spaces.ranking import Ranking
from heedful.worlds.answers import random_share
from heedful.worlds.items import item_pool
from heedful.worlds.queries import synthetic_queries
from heedful.worlds.users import ExpectedAlpha, StrictAlpha

SEEDS = st.integers(0, 2**32 - 1)


class Recorded:
    """A random generator that records its draws, and whose coin is fixed."""

    def __init__(self, seed: int, coin: float) -> None:
        self.rng, self.coin = np.random.default_rng(seed), coin
        self.drawn: list[int] = []

    def integers(self, low: int, high: int) -> int:
        self.drawn.append(int(self.rng.integers(low, high)))
        return self.drawn[-1]

    def random(self) -> float:
        return self.coin


def values(rng: np.random.Generator, m: int) -> np.ndarray:
    return rng.integers(-2, 3, m).astype(float) if rng.random() < 0.3 else rng.standard_normal(m)


@given(st.floats(-3, 3), st.lists(st.floats(-3, 3), min_size=1, max_size=5), st.floats(0, 3))
def test_the_greatest_share_of_chance(sure: float, gains: list[float], needed: float) -> None:
    """As much random mass as keeps Eq. 7; on the way, by hand."""
    sure = max(sure, needed)  # a strict answer gains enough
    p = random_share(sure, float(np.mean(gains)), needed)
    assert 0.0 <= p <= 1.0
    assert (1.0 - p) * sure + p * np.mean(gains) >= needed - 1e-9
    if abs(sure - np.mean(gains)) > 1e-6:
        assert p == pytest.approx(naive.most_random_mass(sure, gains, needed), abs=1e-5)


def test_the_share_by_hand() -> None:
    """Sure 2, needed 1: half of it at a mean of 0, a quarter at -2, all at 1 and where the random gain more."""
    assert random_share(2.0, 0.0, 1.0) == 0.5
    assert random_share(2.0, -2.0, 1.0) == 0.25
    assert [random_share(2.0, mean, 1.0) for mean in (1.0, 1.5, 2.0, 9.0)] == [1.0] * 4
    assert random_share(1.0, -2.0, 1.0) == 0.0  # nothing to give away
    assert random_share(0.0, 0.0, 0.0) == 1.0  # whatever comes back ties
    assert random_share(1.0, 1.0, 2.0) == 0.0  # not enough either way


@given(SEEDS, st.sampled_from([2, 3, 5]), st.integers(1, 10), st.sampled_from([0.25, 0.5]))
def test_rankings_are_informative_in_expectation(seed: int, k: int, m: int, alpha: float) -> None:
    """Of the coin and every random object: the expected gain is alpha r or more; at p < 1, no more."""
    rng = np.random.default_rng(seed)
    u, shown = values(rng, m), rng.permutation(m)
    user = ExpectedAlpha(alpha, 0.5)
    best = naive.utility(u, sorted(range(m), key=lambda j: -u[j]), k)
    here = naive.utility(u, shown.tolist(), k)
    sure = user.rank(k, u, u, best, shown, Recorded(seed, 1.0))  # type: ignore[arg-type]
    assert sure.tolist() == naive.strict_alpha_ranking(k, u, shown.tolist(), 0.5) or len({*u.tolist()}) < m
    size, gains, orders = min(k, m), [], []
    coins = Recorded(seed, 0.0)
    given_back = user.rank(k, u, u, best, shown, coins)  # type: ignore[arg-type]
    draws = iter(coins.drawn)
    for _ in range(5):
        order = shown.tolist()
        for i in range(size):
            j = next(draws)
            assert i <= j < m
            order[i], order[j] = order[j], order[i]
        orders.append(naive.on_top(order[:size], shown.tolist()))
        gains.append(naive.utility(u, orders[-1], k) - here)
    assert sorted(given_back.tolist()) == list(range(m))
    needed = alpha * (best - here)
    p = naive.most_random_mass(naive.utility(u, sure.tolist(), k) - here, gains, needed)
    if p > 1e-9:
        assert given_back.tolist() == orders[next(draws)]
    got = [user.rank(k, u, u, best, shown, Recorded(seed, c)).tolist() for c in (p - 1e-6, p + 1e-6)]  # type: ignore
    if 1e-3 < p < 1.0 - 1e-3:
        assert got[1] == sure.tolist()
        assert got[0] in orders


@given(SEEDS, st.integers(1, 10))
def test_items_are_informative_in_expectation(seed: int, m: int) -> None:
    rng = np.random.default_rng(seed)
    u, y = values(rng, m), int(rng.integers(0, m))
    user = ExpectedAlpha(0.5, 1.0)
    sure = user.pick(u, u, y, Recorded(seed, 1.0))  # type: ignore[arg-type]
    assert sure == naive.strict_alpha_item(u, y, 1.0)
    coins = Recorded(seed, 0.0)
    back = user.pick(u, u, y, coins)  # type: ignore[arg-type]
    gains = [u[j] - u[y] for j in coins.drawn[:5]]
    p = naive.most_random_mass(u[sure] - u[y], gains, 0.5 * (u.max() - u[y]))
    if p > 1e-9:
        assert back == coins.drawn[coins.drawn[5]]
    else:
        assert back == sure
    if 1e-3 < p < 1.0 - 1e-3:
        below, above = (user.pick(u, u, y, Recorded(seed, c)) for c in (p - 1e-6, p + 1e-6))  # type: ignore[arg-type]
        assert below in coins.drawn[:5]
        assert above == sure
        assert (1 - p) * (u[sure] - u[y]) + p * np.mean(gains) == pytest.approx(0.5 * (u.max() - u[y]), abs=1e-9)
    assert user.prefer(u, 0.0 * u, y, 0) == u[y] - u[0]


@pytest.mark.slow
def test_mean_gain_over_many_answers() -> None:
    """30 documents, shown in the order of a random w: on average half of what there is to gain, [J15] Eq. 7."""
    rng = np.random.default_rng(0)
    user, ratio = ExpectedAlpha(), []
    for _ in range(4000):
        u, shown = rng.standard_normal(30), rng.permutation(30)
        best = naive.utility(u, sorted(range(30), key=lambda j: -u[j]), 5)
        here = naive.utility(u, shown.tolist(), 5)
        gain = naive.utility(u, user.rank(5, u, u, best, shown, rng).tolist(), 5) - here
        ratio.append(gain / (best - here))
    assert np.mean(ratio) == pytest.approx(0.5, abs=4 * np.std(ratio) / np.sqrt(4000))
    assert min(ratio) < 0.0


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["rankings", "items"])
def test_compiled_they_answer_the_same_and_regret_falls(kind: str) -> None:
    """[J15] Corollary 2, section 6.2.4: regret still goes to zero."""
    world: Any
    if kind == "rankings":
        world, _ = synthetic_queries(100, 12, 6, noise=0.0, user=ExpectedAlpha())
        learner = PreferencePerceptron(6, Ranking(5))
    else:
        rng = np.random.default_rng(0)
        world = item_pool(rng.standard_normal((900, 6)), rng.standard_normal(6), ExpectedAlpha(0.5, 1.0))
        learner = PreferencePerceptron(6, Ranking(1))
    assert trace(learner, world, 150, 1).tobytes() == trace(learner, world, 150, 1, interpreted=True).tobytes()
    regrets = trace(learner, world, 3000, 0)
    assert regrets[-100:].mean() < 0.25 * regrets[:10].mean()


@pytest.mark.parametrize(
    ("user", "told"),
    [
        (ExpectedAlpha(0.0), "alpha: expected a number above 0, at most 1, got 0.0"),
        (ExpectedAlpha(0.6), "strict: expected a number from alpha = 0.6 to 1, got 0.5"),
        (ExpectedAlpha(0.5, 1.1), "strict: expected a number from alpha = 0.5 to 1, got 1.1"),
        (ExpectedAlpha(0.5, "1"), "strict: expected a number from alpha = 0.5 to 1, got '1'"),  # type: ignore[arg-type]
        (ExpectedAlpha(objects=0), "objects: expected a whole number, 1 to 1000, got 0"),
    ],
)
def test_what_is_refused(user: Any, told: str) -> None:
    with pytest.raises(ValueError) as error:
        synthetic_queries(3, 4, 2, noise=0.0, user=user)
    assert str(error.value) == told
    StrictAlpha(0.5).check()
    ExpectedAlpha(1, 1).check()
