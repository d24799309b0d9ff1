"""Spread, share and noise by the marginal likelihood: its slopes, all answers, not a sample, and what is recovered."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from heedful.inference.estimation import Belief, infer_utilities
from heedful.inference.gp import hyperparameters as module
from heedful.inference.gp import subsample
from heedful.inference.gp.hyperparameters import MarginalLikelihood, infer_hyperparameters
from heedful.inference.gp.joint_ep import JointPosterior
from heedful.inference.gp.response_noise import PRIOR
from heedful.inference.gp.subsample import sample_people
from heedful.inference.pairwise import PairRows, merge_equal, pair_rows, take_rows

Array = npt.NDArray[np.float64]


def votes(n: int, each: int, seed: int, spread: float, width: float, users: int = 1, share: float = 0.0) -> Any:
    """The true mean of utilities (n,), and what people with utilities of this spread say, each so often, of pairs at
    random; without lapses."""
    rng = np.random.default_rng(seed)
    m = rng.standard_normal(n) * spread * np.sqrt(1.0 - share)
    F = m + rng.standard_normal((users, n)) * spread * np.sqrt(share)
    user = np.repeat(np.arange(users), each)
    a = rng.integers(n, size=user.size)
    b = (a + rng.integers(1, n, size=user.size)) % n
    gap = F[user, a] - F[user, b] + rng.standard_normal(user.size)
    won = gap > 0.0
    pairs = np.column_stack([np.where(won, a, b), np.where(won, b, a)])
    return F.mean(axis=0), pair_rows(pairs, None, np.abs(gap) < width, user)


def off(truth: Array, found: Belief) -> tuple[Array, Array]:
    """How far utilities (n,) are from the truth, both less their average, and how far they are said to be."""
    got = found.average()
    return (got.mean - got.mean.mean()) - (truth - truth.mean()), got.sd()


NONE = np.empty((0, 0))


@pytest.mark.parametrize("users", [1, 4])
def test_slopes_are_those_of_the_evidence(monkeypatch: pytest.MonkeyPatch, users: int) -> None:
    monkeypatch.setattr(module, "SETTLED", 1e-11)
    rows = merge_equal(votes(5, 60, 2, 1.0, 0.3, users, 0.3)[1])
    problem = MarginalLikelihood(np.eye(5), users, rows, PRIOR)
    x = np.array([0.1, -0.6, -7.0, -1.2])
    slope = problem.at(x)[1]
    for k in problem.free:
        step = 1e-4 * np.eye(4)[k]
        assert slope[k] == pytest.approx((problem.at(x + step)[0] - problem.at(x - step)[0]) / 2e-4, rel=0.02, abs=0.02)


def test_all_outcomes_of_a_pair_count() -> None:
    """A pair that was asked two hundred times, 110 to 90, is no clear win, whatever the rest is."""
    rng = np.random.default_rng(0)
    pairs, times = [], []
    for a in range(60):
        for b in range(a):
            won = int(rng.binomial(200, 0.5 + 0.002 * (a - b)))
            pairs += [(a, b), (b, a)]
            times += [won, 200 - won]
    found = infer_utilities(np.empty((60, 0)), 1, pair_rows(pairs, times))
    assert found.spread < 0.3
    assert found.average().ranking()[:10].min() >= 45


@pytest.mark.slow
def test_many_repeated_votes_are_recovered() -> None:
    """30,000 votes about 100 items, of the model itself: no lapses, the spread, bars that hold, and the order of a
    logistic Bradley-Terry."""
    inside, corr = [], []
    for seed in range(4):
        truth, rows = votes(100, 30_000, seed, 0.6, 0.3)
        found = infer_utilities(np.empty((100, 0)), 1, rows)
        error, sd = off(truth, found)
        inside += (np.abs(error) < 1.6449 * sd).tolist()
        assert float(found.noise.lapse[0]) < 0.02
        assert abs(float(found.noise.width[0]) - 0.3) < 0.02
        assert abs(found.spread / float(np.std(truth)) - 1.0) < 0.1
        plain = bradley_terry(100, rows)
        corr.append(np.corrcoef(found.average().mean, truth)[0, 1] - np.corrcoef(plain, truth)[0, 1])
    assert 0.8 < np.mean(inside) < 0.97
    assert min(corr) > -2e-4


def bradley_terry(n: int, rows: PairRows) -> Array:
    """Logistic Bradley-Terry by Newton's steps, ties as half a win each, with a little ridge."""
    win = np.zeros((n, n))
    for (a, b), tied in zip(rows.pairs, rows.equal):
        win[a, b] += 0.5 if tied else 1.0
        win[b, a] += 0.5 if tied else 0.0
    met, u = win + win.T, np.zeros(n)
    for _ in range(30):
        p = 1.0 / (1.0 + np.exp(u[None, :] - u[:, None]))
        w = met * p * (1.0 - p)
        u += np.linalg.solve(np.diag(w.sum(axis=1) + 1e-3) - w, (win - met * p).sum(axis=1) - 1e-3 * u)
    return u


@pytest.mark.slow
def test_many_people_who_say_little() -> None:
    """1,500 people with five answers each, of one mind or not: utilities are not blown up."""
    for share in (0.0, 0.4):
        inside = []
        for seed in range(2):
            truth, rows = votes(12, 5, seed, 0.8, 0.0, 1_500, share)
            found = infer_utilities(np.empty((12, 0)), 1_500, rows)
            error, sd = off(truth, found)
            inside += (np.abs(error) < 1.6449 * sd).tolist()
            own = found.spread**2 * found.share  # of 12 items the spread itself is known to a fifth
            assert own == pytest.approx(0.64 * share, abs=0.12)
            assert float(np.median(found.noise.lapse)) < 0.03
        assert np.mean(inside) > 0.7  # of 24 that move together


@pytest.mark.slow
def test_some_of_many_people_give_the_curvature_and_all_the_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    _, rows = votes(6, 10, 3, 1.0, 0.0, 120, 0.3)
    rows = merge_equal(rows)
    whole = infer_hyperparameters(np.eye(6), 120, rows, PRIOR)[1]
    monkeypatch.setattr(module, "ENOUGH", 400)
    some, size = sample_people(rows, 120, 400)
    assert some.size <= 400
    assert size == np.unique(some.user).size == some.user.max() + 1
    part = infer_hyperparameters(np.eye(6), 120, rows, PRIOR)[1]
    few, everybody = part[0].people, whole[0].people
    assert isinstance(few, JointPosterior)
    assert isinstance(everybody, JointPosterior)
    np.testing.assert_allclose(few.mean, everybody.mean, atol=0.1 * whole[0].hyper.spread)
    assert few.log_evidences.size == 120


def test_some_of_many_items_are_where_the_search_begins(monkeypatch: pytest.MonkeyPatch) -> None:
    """The search ends where a search over all answers ends."""
    _, rows = votes(60, 6_000, 5, 0.7, 0.1)
    whole = infer_utilities(np.empty((60, 0)), 1, rows)
    monkeypatch.setattr(subsample, "NEAR", 25)
    part = infer_utilities(np.empty((60, 0)), 1, rows)
    assert whole.spread == pytest.approx(part.spread, rel=0.03)
    assert abs(whole.noise.lapse[0] - part.noise.lapse[0]) < 0.005
    ours, theirs = part.average(), whole.average()
    np.testing.assert_allclose(ours.mean, theirs.mean, atol=0.3 * theirs.sd().max())
    np.testing.assert_allclose(ours.sd(), theirs.sd(), rtol=0.1)


@pytest.mark.parametrize("users", [1, 5])
def test_the_order_of_rows_and_how_they_are_counted_change_nothing(users: int) -> None:
    _, rows = votes(6, 30, 4, 1.0, 0.2, users, 0.3)
    order = np.random.default_rng(1).permutation(rows.size)
    want = infer_utilities(np.empty((6, 0)), users, rows).average()
    for other in (take_rows(rows, order), merge_equal(rows)):
        got = infer_utilities(np.empty((6, 0)), users, other).average()
        np.testing.assert_allclose(got.mean, want.mean, atol=1e-3)
        np.testing.assert_allclose(got.cov, want.cov, atol=1e-3)


def test_who_answers_at_random_is_found_among_people_who_do_not() -> None:
    _, rows = votes(6, 40, 5, 2.0, 0.0, 10, 0.1)
    rng = np.random.default_rng(2)
    flip = (rows.user == 3) & (rng.random(rows.size) < 0.5)
    rows = rows._replace(pairs=np.where(flip[:, None], rows.pairs[:, ::-1], rows.pairs))
    found = infer_utilities(np.empty((6, 0)), 10, rows)
    assert found.noise.random[3] > 0.5 > np.delete(found.noise.random, 3).max()
    others = rows.user != 3
    without = take_rows(rows, others)
    without = without._replace(user=without.user - (without.user > 3))
    want, got = infer_utilities(np.empty((6, 0)), 9, without), found
    assert got.share == pytest.approx(want.share, abs=0.1)  # it is not taken for a taste of their own
