"""Where items stand: against closed forms and hand-made posteriors."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import pytest

from heedful.boards.standing import alike, standing, verdict
from heedful.data.comparisons import Comparison, tabulate
from heedful.inference.estimation import estimate
from heedful.inference.gp.mixture import mixture
from heedful.inference.gp.posterior import Posterior
from heedful.inference.gp.stopping import stopping
from heedful.results.board import Goal


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


def test_of_a_mixture_what_is_said_is_of_its_parts() -> None:
    """Two Gaussians, with three quarters and one: P(best), P(better) and places are the weighted ones."""
    one, other = (
        Posterior(np.array([0.0, 1.0]), np.diag([0.5, 0.5])),
        Posterior(np.array([0.0, 6.0]), np.diag([8.0, 8.0])),
    )
    both = mixture([3.0, 1.0], [one, other])
    better = 0.75 * phi(1.0) + 0.25 * phi(6.0 / 4.0)
    got = standing(both)
    assert got.order.tolist() == [1, 0]
    assert got.better == pytest.approx([better])
    assert got.best[1] == pytest.approx(better, abs=0.01)
    assert both.mean == pytest.approx([0.0, 0.75 + 1.5])
    assert both.cov[1, 1] == pytest.approx(0.75 * (0.5 + 1.25**2) + 0.25 * (8.0 + 3.75**2))
    assert float(both.beats(1, 0)) == pytest.approx(
        0.75 * phi(1.0 / math.sqrt(2.0)) + 0.25 * phi(6.0 / math.sqrt(17.0))
    )
    f = both.draws(20_000)
    assert (len(f), len(both.draws(7)), len(both.draws(1))) == (20_000, 7, 1)
    assert f.mean(axis=0) == pytest.approx(both.mean, abs=0.1)
    assert mixture([1.0], [one]) is one
    few = both.of_items(np.array([1]))
    assert (few.mean.tolist(), few.cov.shape) == ([both.mean[1]], (1, 1))
    assert stopping(both, "ranking").sure == pytest.approx(better)


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
def test_a_verdict_is_that_of_stopping(goal: Goal) -> None:
    told = [Comparison("", ((a,), (b,)), 2) for a, b in ("ab", "ac", "bc", "cd", "bd")]
    table = tabulate(told)
    posterior = estimate(table).posterior
    places = standing(posterior, at=0.8)
    got = verdict(posterior, table.items, goal, places, at=0.8)
    plain = stopping(posterior, goal, at=0.8)
    if goal == "best":  # what is told is what stands in the row of the favourite
        assert got.favourite == table.items[int(places.best.argmax())]
        assert got.probability == pytest.approx(places.best.max())
        assert got.stop == (plain.stop and got.probability >= 0.8)
    else:
        assert (got.favourite, got.probability, got.stop) == (table.items[plain.item], plain.sure, plain.stop)
    assert got.goal == goal
    assert got.left is not None
    assert (got.left.high == 0) == got.stop
    assert verdict(posterior, table.items, goal, places, ask=False).left is None
