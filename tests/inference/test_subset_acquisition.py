"""What to ask where more than two are shown: against draws of the answers themselves."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from heedful.inference.gp.acquisition import bald, next_question
from heedful.inference.gp.posterior import Posterior
from heedful.inference.gp.subset_acquisition import best_probabilities, next_set, subset_scores

Array = npt.NDArray[np.float64]


def some(n: int, seed: int = 0) -> Posterior:
    rng = np.random.default_rng(seed)
    B = rng.normal(size=(n, n))
    return Posterior(rng.normal(size=n), B @ B.T / n)


def perceived(posterior: Posterior, count: int) -> Array:
    """Utilities as perceived, each with noise of variance 1/2."""
    rng = np.random.default_rng(1)
    f = rng.multivariate_normal(posterior.mean, posterior.cov, count)
    out: Array = f + np.sqrt(0.5) * rng.normal(size=f.shape)
    return out


@pytest.mark.parametrize("items", [[0, 1, 2], [5, 3, 4, 0], [1, 4]])
def test_who_is_called_the_best(items: list[int]) -> None:
    posterior = some(6)
    shares = np.bincount(perceived(posterior, 400_000)[:, items].argmax(axis=1), minlength=len(items)) / 400_000
    np.testing.assert_allclose(best_probabilities(posterior, items), shares, atol=0.02)
    assert best_probabilities(posterior, items).sum() == pytest.approx(1.0)


def test_of_two_everything_is_that_of_the_pair() -> None:
    posterior = some(5)
    assert best_probabilities(posterior, [3, 1])[0] == posterior.beats(3, 1)
    pairs = np.array(list(combinations(range(5), 2)))
    m, v = posterior.gap(pairs[:, 0], pairs[:, 1])
    np.testing.assert_array_equal(subset_scores(posterior, "bald", pairs), bald(m, v))
    wanted = next_question(posterior, "eubo")[:2]
    assert tuple(next_set(posterior, "eubo")) == wanted
    assert tuple(next_set(posterior, "eubo", skip=[wanted])) == next_question(posterior, "eubo", skip=[wanted])[:2]


@pytest.mark.slow
def test_scores_of_sets_are_those_of_the_definition() -> None:
    """The expected utility of the best; the entropy of the answer; less what is left of it when utilities are known: of
    draws of f, each with 300 of the noise."""
    posterior = some(4, 3)
    sets = np.array([[0, 1, 2], [1, 2, 3]])
    rng = np.random.default_rng(2)
    many = rng.multivariate_normal(posterior.mean, posterior.cov, 100_000)
    f = many[:10_000]
    told: dict[str, list[float]] = {"eubo": [], "mes": [], "bald": []}
    for one in sets:
        y = f[:, None, one] + np.sqrt(0.5) * rng.normal(size=(10_000, 300, 3))
        p = (y.argmax(axis=2)[:, :, None] == np.arange(3)).mean(axis=1)
        told["eubo"].append(float(many[:, one].max(axis=1).mean()))
        once = many[:, one] + np.sqrt(0.5) * rng.normal(size=(100_000, 3))
        whole = entropy(np.bincount(once.argmax(axis=1), minlength=3) / 100_000)
        told["mes"].append(whole)
        told["bald"].append(whole - float(np.mean([entropy(row) for row in p])))
    for rule, wanted in told.items():
        np.testing.assert_allclose(subset_scores(posterior, rule, sets, draws=20_000), wanted, atol=0.02)


def entropy(p: Array) -> float:
    p = p[p > 0.0]
    return float(-(p * np.log2(p)).sum())


@pytest.mark.parametrize("rule", ["bald", "mes", "eubo"])
def test_the_grown_set_is_among_the_best(rule: str) -> None:
    for seed in range(3):
        posterior = some(9, seed)
        sets = np.array(list(combinations(range(9), 4)))
        every = subset_scores(posterior, rule, sets)
        shown = next_set(posterior, rule, 4)
        assert shown.tolist() == sorted(set(shown.tolist()))
        got = every[(sets == shown).all(axis=1)][0]
        assert got >= np.quantile(every, 0.85)
        gone = next_set(posterior, rule, 4, skip=[shown[::-1]])
        assert gone.tolist() != shown.tolist()


@pytest.mark.parametrize(("size", "n"), [(3, 4), (4, 6)])
def test_sets_run_out(size: int, n: int) -> None:
    every = list(combinations(range(n), size))
    for rule in ("bald", "eubo", "random"):
        posterior = some(n)
        seen: list[tuple[int, ...]] = []
        for _ in every:
            seen.append(tuple(next_set(posterior, rule, size, skip=seen, rng=np.random.default_rng(0)).tolist()))
        assert sorted(seen) == every
        with pytest.raises(ValueError, match=f"skip: expected a set left to ask, got all {len(every)}"):
            next_set(posterior, rule, size, skip=seen, rng=np.random.default_rng(0))


def test_a_set_that_no_pair_grows_to_is_found() -> None:
    """With two items far above the others, of which every set that is grown has one: the one set left has none."""
    posterior = Posterior(np.array([3.0, 2.5, 0.0, 0.0, 0.0, 0.0]), np.eye(6))
    left = [1, 3, 4, 5]
    skip = [one for one in combinations(range(6), 4) if list(one) != left]
    assert next_set(posterior, "eubo", 4, skip=skip).tolist() == left


def test_random_sets_are_drawn_evenly() -> None:
    rng = np.random.default_rng(0)
    seen = [tuple(next_set(some(4), "random", 3, rng=rng).tolist()) for _ in range(800)]
    counts = [seen.count(one) for one in combinations(range(4), 3)]
    assert min(counts) > 150


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"rule": "best"}, "rule: expected"),
        ({"rule": "random"}, "rng: expected"),
        ({"size": 1}, "size: expected"),
        ({"size": 5}, "posterior: expected at least 5 items, got 4"),
        ({"size": 3, "skip": [[0, 1]]}, "skip: expected sets of 3 different items"),
        ({"size": 3, "skip": [[0, 1, 2], [1, 0, 1]]}, r"skip: expected sets of 3 different items, each 0 to 3, got .*"),
    ],
)
def test_what_makes_no_sense(given: dict[str, Any], named: str) -> None:
    with pytest.raises(ValueError, match=f"^{named}"):
        next_set(some(4), **given)
