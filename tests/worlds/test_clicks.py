"""People who click: against their pseudo-code with the very same coins, by hand, and what they refuse."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import naive
from coins import Draws
from heedful.core.fold import trace
from heedful.learners.coactive.posterior import Posterior
from heedful.spaces.ranking import Ranking
from heedful.worlds.clicks import Cascade, PositionBiased, attraction
from heedful.worlds.queries import synthetic_queries

SEEDS = st.integers(0, 2**32 - 1)


def answer(user: Any, labels: np.ndarray, shown: list[int], coins: Any) -> list[int]:
    order = user.rank(3, np.zeros(labels.size), labels, 0.0, np.array(shown), coins)
    assert order.dtype == np.int64
    return order.tolist()  # type: ignore[no-any-return]


def test_attraction_by_hand() -> None:
    """Grades 0, 1, 2, 4 of 4: (2^label - 1) / 15 = 0, 1/15, 1/5, 1; noise .1 in the rest. Outside, the nearest."""
    assert [attraction(v, 4.0, 0.0) for v in (0.0, 1.0, 2.0, 4.0)] == pytest.approx([0.0, 1 / 15, 0.2, 1.0])
    assert [attraction(v, 4.0, 0.1) for v in (0.0, 2.0, 4.0)] == pytest.approx([0.1, 0.28, 1.0])
    assert [attraction(v, 2.0, 0.1) for v in (-3.0, 1.0, 9.0)] == pytest.approx([0.1, 0.1 + 0.9 / 3.0, 1.0])


@given(SEEDS, st.integers(1, 10), st.sampled_from([0.0, 0.5, 1.0, 3.0]), st.sampled_from([0.0, 0.3]))
def test_position_biased(seed: int, m: int, eta: float, noise: float) -> None:
    """The clicks of the pseudo-code; then the rest as shown, or nothing."""
    rng = np.random.default_rng(seed)
    labels, shown = rng.integers(0, 5, m).astype(float), rng.permutation(m).tolist()
    clicked = noise + (1.0 - noise) * (2.0**labels - 1.0) / 15.0
    coins = rng.random(m).tolist()
    draws = iter(coins)
    clicks = naive.position_biased_clicks(clicked, shown, eta, lambda: next(draws))
    assert answer(PositionBiased(eta, noise, True), labels, shown, Draws(*coins)) == clicks
    assert answer(PositionBiased(eta, noise), labels, shown, Draws(*coins)) == naive.on_top(clicks, shown)


@given(SEEDS, st.integers(1, 10), st.sampled_from([0.0, 0.5, 1.0]), st.sampled_from([0.0, 0.3]))
def test_cascade(seed: int, m: int, stop: float, noise: float) -> None:
    rng = np.random.default_rng(seed)
    labels, shown = rng.integers(0, 5, m).astype(float), rng.permutation(m).tolist()
    clicked = noise + (1.0 - noise) * (2.0**labels - 1.0) / 15.0
    coins = rng.random(2 * m).tolist()
    draws = iter(coins)
    clicks = naive.cascade_clicks(clicked, shown, stop, lambda: next(draws))
    assert answer(Cascade(stop, noise, True), labels, shown, Draws(*coins)) == clicks
    assert answer(Cascade(stop, noise), labels, shown, Draws(*coins)) == naive.on_top(clicks, shown)


def test_by_hand() -> None:
    """Shown 2 0 1, grades 4 of 4, 0, 2 of documents 0, 1, 2; no noise. eta = 1: click chances .2, 1/2, 0."""
    labels, shown = np.array([4.0, 0.0, 2.0]), [2, 0, 1]
    user = PositionBiased(1.0, 0.0, True)
    assert answer(user, labels, shown, Draws(0.19, 0.49, 0.0)) == [2, 0]
    assert answer(user, labels, shown, Draws(0.21, 0.49, 0.0)) == [0]
    assert answer(user, labels, shown, Draws(0.21, 0.51, 0.0)) == []
    assert answer(user._replace(clicks_only=False), labels, shown, Draws(0.21, 0.49, 0.0)) == [0, 2, 1]
    user = Cascade(0.5, 0.0, True)
    assert answer(user, labels, shown, Draws(0.19, 0.49)) == [2]  # found, and enough
    assert answer(user, labels, shown, Draws(0.19, 0.51, 0.99, 0.6, 0.0)) == [2, 0]
    assert answer(user, labels, shown, Draws(0.21, 0.99, 0.4)) == [0]


@pytest.mark.slow
@pytest.mark.parametrize("user", [PositionBiased(), PositionBiased(2.0, 0.0, True), Cascade(), Cascade(1.0, 0.1, True)])
def test_compiled_they_click_the_same(user: Any) -> None:
    """Also without any click, where the feedback is empty."""
    world, _ = synthetic_queries(30, 6, 4, noise=1.0, user=user)
    learner = Posterior(4, Ranking(3))
    assert trace(learner, world, 100, 1).tobytes() == trace(learner, world, 100, 1, interpreted=True).tobytes()


@pytest.mark.parametrize(
    ("user", "told"),
    [
        (PositionBiased(-0.1), "eta: expected a number from 0 to 100, got -0.1"),
        (PositionBiased(float("nan")), "eta: expected a number from 0 to 100, got nan"),
        (PositionBiased(True), "eta: expected a number from 0 to 100, got True"),
        (PositionBiased(noise=1.1), "noise: expected a number from 0 to 1, got 1.1"),
        (PositionBiased(highest=0.0), "highest: expected a number from 0.001 to 100, got 0.0"),
        (PositionBiased(clicks_only=1), "clicks_only: expected True or False, got 1"),  # type: ignore[arg-type]
        (Cascade(1.5), "stop: expected a number from 0 to 1, got 1.5"),
        (Cascade("1"), "stop: expected a number from 0 to 1, got '1'"),  # type: ignore[arg-type]
        (Cascade(noise=-1.0), "noise: expected a number from 0 to 1, got -1.0"),
    ],
)
def test_what_is_refused(user: Any, told: str) -> None:
    with pytest.raises(ValueError) as error:
        synthetic_queries(3, 4, 2, noise=0.0, user=user)
    assert str(error.value) == told
    for good in (PositionBiased(0), PositionBiased(100.0, 0, True, 2), Cascade(0), Cascade(1.0, 1.0)):
        good.check()
