"""Where items stand: against closed forms and hand-made posteriors."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import pytest

from heedful.data.orders import Answered, gathered
from heedful.preferences.answers import answers, ranked
from heedful.preferences.ep import infer
from heedful.preferences.estimating import estimate
from heedful.preferences.posterior import Posterior
from heedful.preferences.questions import next_question
from heedful.preferences.standing import alike, standing, verdict
from heedful.preferences.stopping import Seen, stopping


def phi(z: float) -> float:
    return 0.5 * math.erfc(-z / math.sqrt(2.0))


def test_places_and_the_best_of_two() -> None:
    got = standing(Posterior(np.array([1.0, 3.0]), np.diag([1.0, 3.0])))
    better = phi(2.0 / 2.0)
    assert got.order.tolist() == [1, 0]
    assert got.mean.tolist() == [-1.0, 1.0]
    assert got.better == pytest.approx([better])
    assert got.best == pytest.approx([1.0 - better, better], abs=0.01)
    assert got.places.tolist() == [[1, 2], [1, 2]]  # .84 is not sure enough for one place
    assert got.sd == pytest.approx([1.0, 1.0])  # sqrt(1 + 3) / 2: that of half of the difference


def test_places_hold_nine_tenths() -> None:
    """Three items; the last of them is second in one draw of six, third in five: not within 5 % at either end."""
    mean, sd = np.array([10.0, 0.0, -1.0]), 1.0 / math.sqrt(2.0)
    swapped = phi(-1.0)  # .16
    got = standing(Posterior(mean, sd * sd * np.eye(3)))
    assert got.places.tolist() == [[1, 1], [2, 3], [2, 3]]
    assert got.better == pytest.approx([1.0, 1.0 - swapped])
    surer = standing(Posterior(mean, 0.3**2 * np.eye(3)))  # swapped .009
    assert surer.places.tolist() == [[1, 1], [2, 2], [3, 3]]


def test_with_the_answers_it_is_the_exact_posterior() -> None:
    """f ~ N(0, a^2 I), of two: P(the sign of the gap | a choice) = 1/2 + asin(rho) / pi, rho that of gap and choice;
    after many that agree, a sum over the grid."""
    a2, times = 4.0, 6
    K = a2 * np.eye(2)
    rows = answers([(0, 1)], times)
    got = infer(K, np.zeros(2), rows)
    g = np.linspace(-14.0, 14.0, 8001) + 1e-9
    density = np.exp(-0.25 * g * g / a2) * np.array([phi(x) for x in g]) ** times
    exact = float(density[g > 0.0].sum() / density.sum())
    alone, told = standing(got.posterior), standing(got.posterior, Seen(rows, got.sites))
    assert told.best[0] == pytest.approx(exact, abs=0.006)
    assert abs(alone.best[0] - exact) > 0.01  # so the answers matter
    once = infer(K, np.zeros(2), [(0, 1)])
    rho = math.sqrt(2.0 * a2 / (2.0 * a2 + 1.0))
    seen = Seen(answers([(0, 1)]), once.sites)
    assert standing(once.posterior, seen).best[0] == pytest.approx(0.5 + math.asin(rho) / math.pi, abs=0.01)


def test_orders_and_nothing_said_are_the_gaussians() -> None:
    rows = ranked([0, 1, 2])
    got = infer(np.eye(3), np.zeros(3), rows)
    plain, told = standing(got.posterior), standing(got.posterior, Seen(rows, got.sites))
    assert told.best.tolist() == plain.best.tolist()
    assert plain.best == pytest.approx(got.posterior.best(16_000), abs=1e-9)


def test_items_that_are_the_same_share_and_nothing_is_wrong() -> None:
    cov = np.array([[1.0, 1.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    got = standing(Posterior(np.zeros(3), cov))
    assert got.best == pytest.approx([0.25, 0.25, 0.5], abs=0.02)
    assert got.best.sum() == pytest.approx(1.0)


def test_items_that_tie_stand_by_their_numbers() -> None:
    known = standing(Posterior(np.repeat([0.0, 1.0], 40), np.zeros((80, 80))))
    wanted = np.concatenate([np.arange(41, 81), np.arange(1, 41)])
    np.testing.assert_array_equal(known.places, np.column_stack([wanted, wanted]))


@pytest.mark.parametrize(
    ("mean", "runs"),
    [
        ([9.0, 6.0, 3.0, 0.0], []),
        ([3.0, 2.0, 1.0, 0.0], [(0, 1), (1, 2), (2, 3)]),  # neighbours, and nobody else
        ([0.1, 0.0, 9.0, 3.0], [(2, 3)]),  # by their places, not by their numbers
        ([1.0, 0.9, 0.8, -0.45, -0.9], [(0, 2), (2, 3), (3, 4)]),
        ([0.0, 0.0], [(0, 1)]),
        ([0.0], []),
    ],
)
def test_runs_of_which_no_two_can_be_told_apart(mean: list[float], runs: list[tuple[int, int]]) -> None:
    """With independent utilities of variance 1/2, better with .9 is 1.2816 apart."""
    posterior = Posterior(np.array(mean), 0.5 * np.eye(len(mean)))
    assert alike(posterior, posterior.ranking(), 0.9) == tuple(runs)


def test_runs_are_all_pairs_that_cannot_be_told_apart_and_none_is_within_another() -> None:
    """Correlated utilities, against a walk over all runs of places."""
    for seed in range(30):
        rng = np.random.default_rng(seed)
        A = rng.normal(size=(9, 9))
        posterior = Posterior(3.0 * rng.normal(size=9), A @ A.T / 3.0)
        got, order = standing(posterior, at=0.8), posterior.ranking().tolist()
        level = [
            (a, b)
            for a, b in combinations(range(9), 2)
            if all(float(posterior.better(order[i], order[j])) < 0.8 for i, j in combinations(range(a, b + 1), 2))
        ]
        inner = {(a, b) for a, b in level for c, d in level if c <= a and b <= d and (a, b) != (c, d)}
        assert list(got.alike) == [run for run in level if run not in inner]


@pytest.mark.parametrize("goal", ["best", "ranking"])
def test_a_verdict_is_that_of_stopping_and_the_goals_question(goal: str) -> None:
    told = [Answered("", ((a,), (b,)), 2) for a, b in ("ab", "ac", "bc", "cd", "bd")]
    found = estimate(gathered(told))
    posterior, seen = found.of(0)
    got = verdict(posterior, goal, seen, at=0.8)
    assert got.stop == stopping(posterior, goal, seen=seen, at=0.8)
    assert got.next == next_question(posterior, {"best": "eubo", "ranking": "bald"}[goal])
    assert got.left is not None
    assert (got.left.about == 0) == got.stop.stop
    assert verdict(posterior, goal, ask=False).left is None
