"""Instances with their ranks: every one in turn, in an order of the seed; the synthetic streams as they are defined."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from heedful.core.fold import play, trace
from heedful.learners.ordinal.perceptrons import ConstantRank, PRank
from heedful.worlds.instances import instance_stream, polynomial, synthetic_instances, synthetic_ordinal

X = np.arange(40.0).reshape(20, 2)
RANKS = np.arange(20) % 5 + 1


def met(world: Any, rounds: int, seed: int) -> list[tuple[float, int]]:
    """(the first feature, the grade given) of each round."""
    return [(float(r.x[0]), r.feedback) for r, _ in play(PRank(2, 5), world, rounds, seed)]


def test_each_once_with_its_rank_then_again() -> None:
    world = instance_stream(X, RANKS, n_ranks=5)
    rounds = met(world, 45, 1)
    assert sorted(rounds[:20]) == list(zip(X[:, 0].tolist(), RANKS.tolist()))
    assert rounds[20:40] == rounds[:20]
    assert rounds[40:] == rounds[:5]
    assert {type(rank) for _, rank in rounds} == {int}


@pytest.mark.slow
def test_every_seed_has_an_order_of_its_own() -> None:
    world = instance_stream(X, RANKS, n_ranks=5)
    assert len({tuple(met(world, 20, seed)) for seed in range(20)}) == 20
    assert met(world, 20, 3) == met(world, 20, 3)
    compiled = {trace(PRank(2, 5), world, 20, seed).tobytes() for seed in range(20)}
    assert len(compiled) > 10


def test_fixed() -> None:
    assert met(instance_stream(X, RANKS, n_ranks=5, fixed=True), 20, 7) == list(zip(X[:, 0].tolist(), RANKS.tolist()))


@pytest.mark.slow
def test_regret_is_the_rank_loss() -> None:
    world = instance_stream(X, RANKS, n_ranks=5, fixed=True)
    state = world.init(np.random.default_rng(0))
    assert [world.regret(state, X[0], shown) for shown in (1, 2, 5)] == [0.0, 1.0, 4.0]
    regrets = trace(ConstantRank(2, 5), world, 60, 0)
    shown = [r.y for r, _ in play(ConstantRank(2, 5), world, 60, 0)]
    assert regrets.tolist() == [abs(a - RANKS[t % 20]) for t, a in enumerate(shown)]


def test_the_data_are_copied() -> None:
    X_, ranks_ = X.copy(), RANKS.copy()
    world = instance_stream(X_, ranks_, n_ranks=5)
    X_[:], ranks_[:] = 0, 1
    assert sorted(met(world, 20, 0)) == list(zip(X[:, 0].tolist(), RANKS.tolist()))
    assert instance_stream(X.astype(np.float32), RANKS.astype(float), n_ranks=5).X.dtype == np.float32


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"n_ranks": 1}, "n_ranks: expected a whole number, 2 to 1000, got 1"),
        ({"n_ranks": 4}, "ranks: expected a whole number from 1 to 4 for each of the 20 instances, got 5 at [4]"),
        ({"ranks": RANKS - 1}, "ranks: expected .*, got 0 at [0]"),
        ({"ranks": RANKS + 0.5}, "ranks: expected .*, got 1.5 at [0]"),
        ({"ranks": np.where(RANKS > 4, np.nan, RANKS)}, "ranks: expected .*, got nan at [4]"),
        ({"ranks": RANKS[:-1]}, "ranks: expected .*, got an array of int64 with shape (19,)"),
        ({"ranks": RANKS > 2}, "ranks: expected .*, got an array of bool with shape (20,)"),
        ({"ranks": ["good"] * 20}, "ranks: expected .*, got ['good'"),
        ({"X": X[0]}, "X: expected shape (m, 0), got (2,)"),
        ({"X": X[:0], "ranks": RANKS[:0]}, "X: expected at least one instance with at least one feature, got"),
        ({"X": X[:, :0]}, "X: expected at least one instance with at least one feature, got"),
        ({"X": np.where(X == 39, np.inf, X)}, "X: expected finite numbers, got inf at [19, 1]"),
        ({"fixed": 1}, "fixed: expected True or False, got 1"),
    ],
)
def test_data_that_do_not_fit_are_refused(change: dict[str, Any], said: str) -> None:
    given = {"X": X, "ranks": RANKS, "n_ranks": 5, **change}
    with pytest.raises(ValueError) as caught:
        instance_stream(**given)
    head, _, tail = said.partition(".*")
    assert str(caught.value).startswith(head)
    assert tail in str(caught.value)


def test_polynomial_features() -> None:
    """(1, sqrt 2 x_i, x_i^2, sqrt 2 x_i x_j), by hand."""
    two = math.sqrt(2)
    assert polynomial([[3.0, 5.0]])[0] == pytest.approx([1, 3 * two, 5 * two, 9, 25, 15 * two])
    with pytest.raises(ValueError, match=r"^X: expected finite numbers, got nan at \[0, 0\]"):
        polynomial([[np.nan]])


def test_the_stream_of_the_paper() -> None:
    """Uniform on the square; the rank from the noisy value, strictly above its threshold; noise of .125."""
    world = synthetic_instances(20_000, seed=1)
    assert world.X.shape == (20_000, 6)
    x = world.X[:, 1:3] / math.sqrt(2)
    np.testing.assert_allclose(world.X, polynomial(x), rtol=1e-12)
    assert 0 <= x.min() < 0.001 < 0.999 < x.max() <= 1
    assert np.abs(x.mean(axis=0) - 0.5).max() < 0.01
    value = 10 * (x[:, 0] - 0.5) * (x[:, 1] - 0.5)
    edges = [-math.inf, -1.0, -0.1, 0.25, 1.0, math.inf]
    cdf = np.vectorize(lambda z: 0.5 * (1 + math.erf(z / math.sqrt(2))))
    for r in range(1, 6):  # how many have rank r, against the sum of their probabilities
        p = cdf((edges[r] - value) / 0.125) - cdf((edges[r - 1] - value) / 0.125)
        assert abs((world.ranks == r).sum() - p.sum()) < 4 * math.sqrt((p * (1 - p)).sum()), r
        assert (world.ranks == r).sum() > 1000
    other = synthetic_instances(20_000, seed=2)
    assert not np.array_equal(world.X, other.X)
    with pytest.raises(ValueError, match=r"^seed: expected a whole number, 0 or more, got -1$"):
        synthetic_instances(5, seed=-1)
    with pytest.raises(ValueError, match=r"^n: expected a whole number, 1 or more, got 0$"):
        synthetic_instances(0)


def test_the_linear_stream() -> None:
    """Without noise the rule it returns ranks every instance right; the ranks are equally frequent."""
    world, w, b = synthetic_ordinal(5000, 7, 4, noise=0.0, seed=3)
    assert np.linalg.norm(w) == pytest.approx(1.0)
    assert world.ranks.tolist() == (1 + (world.X @ w >= b[:, None]).sum(axis=0)).tolist()
    world, w, b = synthetic_ordinal(20_000, noise=1.0)
    assert world.X.shape == (20_000, 50)
    assert np.abs(np.bincount(world.ranks)[1:] / 4000 - 1).max() < 0.06
    value = world.X @ w  # P(rank > r | w.x) = P(N(0,1) >= b_r - w.x)
    for r, edge in enumerate(b, 1):
        p = np.array([0.5 * math.erfc((edge - v) / math.sqrt(2)) for v in value])
        assert abs((world.ranks > r).sum() - p.sum()) < 4 * math.sqrt((p * (1 - p)).sum())
    assert synthetic_ordinal(5, 2, 2, noise=0, dtype="float32")[0].X.dtype == np.float32


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"n": 0}, "n: expected a whole number, 1 or more"),
        ({"n_features": 0}, "n_features: expected"),
        ({"n_ranks": 1}, "n_ranks: expected"),
        ({"noise": -1.0}, "noise: expected a number from 0 to 1e50, got -1.0"),
        ({"noise": math.nan}, "noise: expected a number from 0 to 1e50, got nan"),
        ({"seed": -1}, "seed: expected a whole number, 0 or more, got -1"),
        ({"dtype": "float16"}, "dtype: expected float64 or float32, got 'float16'"),
    ],
)
def test_the_linear_stream_refuses_nonsense(change: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError) as caught:
        synthetic_ordinal(**{"n": 5, "n_features": 2, **change})
    assert str(caught.value).startswith(said)
