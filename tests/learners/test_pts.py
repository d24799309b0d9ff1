"""Particle Thompson sampling against a slow version that keeps every rating and works with Lambda itself."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from ratings_streams import offers, played

import naive_ratings as naive
from heedful.learners.ratings.pts import PTS, effective_sample_size, systematic_resampling
from heedful.spaces.slate import Slate, SlateContext, SlateRatings


@pytest.mark.parametrize(
    ("options", "size", "late", "weigh"),
    [
        ({"resample": 1.0, "spread": 0.8}, 1, 0, False),
        ({"resample": 0.5, "sigma": 1.5}, 3, 40, False),
        ({"resample": 0.0, "n_factors": 1, "sigma": 4.0}, 2, 0, False),
        ({"n_particles": 1}, 1, 20, False),
        ({"sigma": 1.5}, 2, 0, True),
    ],
    ids=["resampled always", "at half, slates, late comers", "never", "one particle", "weights"],
)
def test_it_is_its_readable_version_round_for_round(options: dict[str, Any], size: int, late: int, weigh: bool) -> None:
    learner = PTS(Slate(size), **{"n_factors": 3, "n_particles": 4, **options})
    seed = int(np.random.default_rng(6).integers(2**62))
    slow = naive.PTS(seed, learner.n_factors, learner.n_particles, learner.sigma, learner.spread, learner.resample)

    def update(x: SlateContext, feedback: SlateRatings) -> None:
        if x.items[-1] >= len(slow.V[0]):  # room doubles, or reaches the highest on offer
            slow.make_room(max(int(x.items[-1]) + 1, 2 * len(slow.V[0])))
        for r, item in enumerate(feedback.items.tolist()):
            slow.update(x.user, item, float(feedback.ratings[r]), feedback.weight(r))

    def propose(user: int, items: list[int], rng: Any) -> list[int]:
        if items[-1] >= len(slow.V[0]):
            slow.make_room(max(items[-1] + 1, 2 * len(slow.V[0])))
        return slow.propose(user, items, size, rng)

    state = played(learner, propose, update, rounds=100, seed=6, late=late, weigh=weigh)
    weights = np.exp(state.log_weights)
    np.testing.assert_allclose(weights / weights.sum(), slow.weights, rtol=1e-7, atol=1e-12)
    for d in range(learner.n_particles):
        for item, v in slow.V[d].items():
            np.testing.assert_allclose(state.V[d, item], v, rtol=1e-7, atol=1e-9)
        for user, u in slow.U[d].items():
            np.testing.assert_allclose(state.U[d, user], u, rtol=1e-7, atol=1e-9)


def test_particles_are_resampled_at_every_step_unless_the_hyperparameter_says_otherwise() -> None:
    """Kawale et al. resample at every step, and [A18] compares with theirs."""
    rounds = {}
    for name, learner in {"as it is": PTS(n_particles=8), "always": PTS(n_particles=8, resample=1.0)}.items():
        rng = np.random.default_rng(2)
        state = learner.init(rng)
        for t in range(30):
            x = SlateContext(t % 3, np.arange(6))
            shown = learner.propose(state, x, rng)
            state = learner.update(state, x, shown, SlateRatings(shown, np.array([float(shown[0] % 3)])))
            assert np.abs(state.log_weights).max() < 1e-9  # all particles weigh the same after resampling
        rounds[name] = state.V.tobytes()
    assert rounds["as it is"] == rounds["always"]


def test_systematic_draws() -> None:
    """Each particle as often as its share says, rounded one way or the other; by hand for three."""
    assert systematic_resampling(np.log([0.5, 0.25, 0.25]), 0.1).tolist() == [2, 1, 0]
    assert systematic_resampling(np.log([0.5, 0.25, 0.25]), 0.9).tolist() == [1, 1, 1]
    assert systematic_resampling(np.array([0.0, -np.inf, -np.inf]), 0.99).tolist() == [3, 0, 0]
    rng = np.random.default_rng(0)
    for _ in range(50):
        log_weights = rng.standard_normal(20) * 3
        share = np.exp(log_weights - log_weights.max())
        share *= 20 / share.sum()
        times = systematic_resampling(log_weights, rng.random())
        assert times.sum() == 20
        assert (times >= np.floor(share - 1e-9)).all()
        assert (times <= np.ceil(share + 1e-9)).all()


def test_how_many_particles_count() -> None:
    assert effective_sample_size(np.zeros(7)) == pytest.approx(7.0)
    assert effective_sample_size(np.log([3.0, 1.0])) == pytest.approx(16 / 10)
    assert effective_sample_size(np.array([0.0, -2000.0])) == 1.0


def test_the_weight_is_the_predictive_likelihood() -> None:
    """The second rating of a user, by hand: sigma^2 + v' Lambda^-1 v, and not the precision in its place."""
    learner = PTS(n_factors=1, n_particles=2, sigma=0.5, resample=0.0)
    state = learner.init(np.random.default_rng(0))
    state.V[:, 0, 0], state.V[:, 1, 0] = [1.0, 2.0], [1.0, -1.0]
    state = learner.update(
        state, SlateContext(0, np.array([0])), np.array([0]), SlateRatings(np.array([0]), np.array([3.0]))
    )
    state.log_weights[:] = 0.0
    v, w = state.V[:, 0, 0].copy(), state.V[:, 1, 0].copy()
    state = learner.update(
        state, SlateContext(0, np.array([1])), np.array([1]), SlateRatings(np.array([1]), np.array([2.0]))
    )
    Lambda = 1.0 + v * v / 0.25
    mu, var = v * 3.0 / 0.25 / Lambda, 0.25 + w * w / Lambda
    log = [-0.5 * (math.log(s) + (2.0 - m * z) ** 2 / s) for m, z, s in zip(mu, w, var)]
    assert state.log_weights[0] - state.log_weights[1] == pytest.approx(log[0] - log[1])


def test_what_is_expected_is_the_mean_of_the_particles() -> None:
    """sum w_d u_d . v_dj over the sum of the weights; 0 for somebody unknown; an item that came later counts, too."""
    learner = PTS(n_factors=2, n_particles=3)
    rng = np.random.default_rng(0)
    state = learner.init(rng)
    for x, answer in offers(40, 3):
        y = learner.propose(state, x, rng)
        state = learner.update(state, x, y, answer(y))
    state.log_weights[:] = np.log([0.5, 0.2, 0.3]) + 7.0
    user = int(state.pairs.user[0])
    x = SlateContext(user, np.array([0, 2, 5, 70]))
    wanted = sum(w * state.V[d, x.items[:3]] @ state.U[d, user] for d, w in enumerate((0.5, 0.2, 0.3)))
    np.testing.assert_allclose(learner.ratings(state, x)[:3], wanted)
    assert np.abs(wanted).max() > 0.1
    assert learner.ratings(state, SlateContext(10**4, x.items)).tolist() == [0.0] * 4
