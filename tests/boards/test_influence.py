"""How few votes decide the first place: against every way of leaving votes out, and by fits beyond."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from drawn_votes import draw_votes
from heedful.boards.bradley_terry import Cells, Fit, count_cells, fit
from heedful.boards.influence import find_influence
from heedful.boards.tie_models import TieModel


def scores_of(n: int, first: Any, second: Any, outcome: Any, weight: Any, sd: float) -> Any:
    """Bradley-Terry scores, a tie being half a win, under N(0, sd^2): Newton's steps of our own."""
    X = np.zeros((len(first), n))
    X[np.arange(len(first)), first], X[np.arange(len(first)), second] = 1.0, -1.0
    u, y = np.zeros(n), outcome / 2.0
    for _ in range(50):
        p = 1.0 / (1.0 + np.exp(-(X @ u)))
        H = X.T @ ((weight * p * (1 - p))[:, None] * X) + np.eye(n) / sd**2
        step = np.linalg.solve(H, X.T @ (weight * (y - p)) - u / sd**2)
        u = u + step
        if np.abs(step).max() < 1e-10:
            break
    return u


def fewest(n: int, cells: Cells, sd: float) -> int:
    """The least number of votes without which another model is first, by looking at all sets."""
    leader = int(scores_of(n, cells.first, cells.second, cells.outcome, cells.weight, sd).argmax())
    most = [int(w) for w in cells.weight]
    for size in range(1, sum(most)):
        for taken in itertools.product(*(range(min(w, size) + 1) for w in most)):
            if sum(taken) != size:
                continue
            u = scores_of(n, cells.first, cells.second, cells.outcome, cells.weight - np.array(taken), sd)
            if np.delete(u, leader).max() >= u[leader] - 1e-9:
                return size
    return 0


def board(n: int, count: int, seed: int, ties: float = 0.0) -> Cells:
    rng = np.random.default_rng(seed)
    truth = 0.8 * rng.standard_normal(n)
    a = rng.integers(n, size=count)
    b = (a + rng.integers(1, n, size=count)) % n
    a, b = np.minimum(a, b), np.maximum(a, b)
    won = rng.random(count) < 1.0 / (1.0 + np.exp(truth[b] - truth[a]))
    outcome = np.where(rng.random(count) < ties, 1, np.where(won, 2, 0))
    return count_cells(n, a, b, outcome, np.ones(count, np.int64))[0]


@pytest.mark.parametrize(("n", "seed"), [*((3 + seed % 2, seed) for seed in range(8)), *((10, k) for k in range(4))])
def test_on_small_boards_it_is_the_least_of_all_sets(n: int, seed: int) -> None:
    cells = board(n, 14, seed, ties=0.2 * (seed % 3 == 0))
    found = fit(n, cells, "half", sd=1.0)
    got = find_influence(cells, found)
    assert got is not None
    assert got.votes == fewest(n, cells, found.sd)
    assert got.share == pytest.approx(got.votes / 14)
    left = without(cells, got.left_out)
    u = scores_of(n, left.first, left.second, left.outcome, left.weight, found.sd)
    assert u[got.second] >= u[got.first] - 1e-6


def without(cells: Cells, left_out: Any) -> Cells:
    """The votes that are left, where the two ways of showing a pair are counted together."""
    weight = cells.weight.copy()
    for a, b, outcome, count in left_out:
        left = count
        for k, kind in enumerate(zip(cells.first.tolist(), cells.second.tolist(), cells.outcome.tolist())):
            if kind in ((a, b, outcome), (b, a, 2 - outcome)):
                some = min(left, weight[k])
                weight[k] -= some
                left -= some
        assert left == 0
    return cells._replace(weight=weight)


def first_place(n: int, cells: Cells, model: TieModel, sd: float) -> int:
    return int(fit(n, cells, model, sd=sd).scores.argmax())


@pytest.mark.slow
@pytest.mark.parametrize(("n", "count"), [(10, 400), (10, 5_000), (40, 20_000)])
@pytest.mark.parametrize("model", ["half", "threshold", "odds"])
def test_without_these_votes_another_is_first_and_fewer_at_random_do_not_do(
    n: int, count: int, model: TieModel
) -> None:
    rng = np.random.default_rng(n + count)
    truth = 0.5 * rng.standard_normal(n)
    a, b, outcome = draw_votes(truth, count, model, rng)
    cells, _ = count_cells(n, a, b, outcome, np.ones(count, np.int64))
    found = fit(n, cells, model)
    got = find_influence(cells, found)
    assert got is not None
    assert got.votes is not None
    assert got.first == found.scores.argmax()
    assert sum(count for *_, count in got.left_out) == got.votes
    left = without(cells, got.left_out)
    assert first_place(n, left, model, found.sd) != got.first
    # as many votes by chance do not turn it, so the set says more than its size
    for seed in range(5):
        some = np.random.default_rng(seed).choice(count, got.votes, replace=False)
        kept = np.setdiff1d(np.arange(count), some)
        chance, _ = count_cells(n, a[kept], b[kept], outcome[kept], np.ones(kept.size, np.int64))
        assert first_place(n, chance, model, found.sd) == got.first


@pytest.mark.parametrize("model", ["threshold", "odds", "constant"])
@pytest.mark.parametrize("seed", range(3))
def test_a_model_far_ahead_is_not_turned_by_a_vote_though_fits_of_a_few_votes_come_up_on_the_way(
    model: TieModel, seed: int
) -> None:
    n, count = 12, 300
    rng = np.random.default_rng([n, count, seed])
    truth = 0.5 * rng.standard_normal(n)
    truth[0] = truth.max() + 3.0
    a, b, outcome = draw_votes(truth, count, model, rng)
    cells, _ = count_cells(n, a, b, outcome, np.ones(count, np.int64))
    found = fit(n, cells, model)
    got = find_influence(cells, found)
    assert got is not None
    assert got.votes is not None
    assert got.votes > 1
    again = fit(n, without(cells, got.left_out), model, sd=found.sd)
    assert again.scores[got.second] > again.scores[0] - 1e-6  # they are level, or the second is first


def test_a_close_race_is_turned_by_one_vote_and_a_clear_one_by_the_difference() -> None:
    first, second = np.zeros(2, np.int64), np.ones(2, np.int64)
    for won, lost, want in ((51, 50, 1), (60, 40, 20), (7, 0, 7)):
        cells = Cells(first, second, np.array([2, 0]), np.array([won, lost], np.float64), np.empty((2, 0)))
        got = find_influence(cells, fit(2, cells, "half", sd=1.0))
        assert got is not None
        if lost == 0:  # without all votes nobody is first
            assert got.votes is None or got.votes == won
        else:
            assert got.votes == want
            assert got.left_out == ((0, 1, 2, want),)


def test_one_model_has_no_race() -> None:
    empty = np.zeros(0, np.int64)
    cells = Cells(empty, empty, empty, np.zeros(0), np.empty((0, 0)))
    alone = Fit("half", np.zeros(1), 0.0, np.zeros(0), 1.0, 0.0, np.eye(1), False)
    assert find_influence(cells, alone) is None
