"""[J15] Lemma 3: contexts that never return. Every learner has the regret that Theorem 1 allows, and no less."""

from typing import Any

import numpy as np
import pytest

from heedful.core.fold import copy_arrays, play, trace
from heedful.diagnostics import Facts, bounds, lower_bound, strict_alpha, true_utilities
from heedful.learners.coactive.perceptron import PreferencePerceptron
from heedful.learners.registry import find_learners, summarise
from heedful.spaces.ranking import Ranking
from heedful.worlds.unlearnable import unlearnable

T = 16
REQUIRED = {"bound": 1.0, "radius": 1.0}


COACTIVE = {name for name, cls in find_learners().items() if summarise(cls).interaction == "coactive"}


@pytest.mark.parametrize("name", sorted(COACTIVE - {"dueling-bandit"}))
def test_nobody_learns_it(name: str) -> None:
    """Every learner that shows one item: the average regret is 2 / sqrt T, by the world and by w* itself."""
    cls = find_learners()[name]
    learner: Any = cls(n_features=T, space=Ranking(1), **{f: v for f, v in REQUIRED.items() if f in cls._fields})
    world = unlearnable(T)
    log = [copy_arrays(played) for played, _ in play(learner, world, T + 5, 0)]
    assert len(log) == T
    truth = world.init(np.random.default_rng(0))
    for x, y, feedback in log:
        truth = world.advance(truth, x, y, feedback)
    w_star = truth.w_star
    assert np.linalg.norm(w_star) == pytest.approx(1.0)
    known = true_utilities(log, Ranking(1), w_star)
    assert strict_alpha(known) == 1.0
    assert np.mean(known.best - known.shown) == pytest.approx(lower_bound(T))
    assert trace(learner, world, T, 0, interpreted=True).mean() == pytest.approx(2.0 / np.sqrt(T))


def test_it_is_what_theorem_1_allows() -> None:
    """R = |w*| = alpha = 1: lower bound and upper bound are one number, and w_{T+1} is as long as it may be."""
    for horizon in (1, 4, 64):
        learner = PreferencePerceptron(horizon, Ranking(1))
        w_star = np.full(horizon, -1.0 / np.sqrt(horizon))
        [bound] = bounds(learner, Facts(w_star, 1.0, 1.0, 1.0, np.zeros(horizon)))
        assert bound.values[-1] == pytest.approx(lower_bound(horizon))
        *_, (_, state) = play(learner, unlearnable(horizon), horizon, 0)
        assert np.linalg.norm(state.w) == pytest.approx(2.0 * np.sqrt(horizon))  # 2 R sqrt T


@pytest.mark.slow
def test_compiled() -> None:
    learner, world = PreferencePerceptron(T, Ranking(1)), unlearnable(T)
    assert trace(learner, world, 99, 0).tolist() == [2.0 / np.sqrt(T)] * T


def test_by_hand() -> None:
    world = unlearnable(4)
    state = world.init(np.random.default_rng(0))
    x = world.context(state, 2, np.random.default_rng(0))
    assert x.tolist() == [[0.0, 0.0, 1.0, 0.0], [0.0, 0.0, -1.0, 0.0]]
    assert world.respond(state, x, np.array([0]), np.random.default_rng(0)).tolist() == [1]
    assert world.respond(state, x, np.array([1]), np.random.default_rng(0)).tolist() == [0]
    assert not world.over(state, 3)
    assert world.over(state, 4)


@pytest.mark.parametrize("horizon", [0, -1, 2.5, "3"])
def test_a_horizon_that_makes_no_sense_is_refused(horizon: Any) -> None:
    with pytest.raises(ValueError, match=r"^horizon: expected a whole number"):
        unlearnable(horizon)
