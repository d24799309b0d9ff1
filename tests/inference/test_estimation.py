"""From a table of choices to what is believed: hyperparameters against brute force, the mean of many people against one
large Gaussian written out, items without answers, and whether it is as sure as it is right."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.special import log_ndtr

from heedful.boards.standing import standing
from heedful.data.comparisons import Comparison, ComparisonTable, pool_people, tabulate, with_items
from heedful.inference.estimation import Estimate, estimate, infer_utilities
from heedful.inference.gp import hyperparameters, subsample
from heedful.inference.gp.hyperparameters import LOG_SD, MEDIAN
from heedful.inference.gp.joint_ep import JointPosterior
from heedful.inference.gp.marginal_likelihood import Kernel, covariance
from heedful.inference.pairwise import pair_rows, take_rows

Array = np.ndarray[Any, np.dtype[np.float64]]
NONE = np.empty((0, 0))


def asked(f: Array, each: int, rng: np.random.Generator, who: str = "", items: int = 0) -> list[Comparison[str]]:
    """`each` answers of somebody with utilities f, about the first `items` (all)."""
    out = []
    for _ in range(each):
        a, b = rng.choice(items or f.size, 2, replace=False).tolist()
        won = f[a] - f[b] + rng.standard_normal() > 0.0
        out.append(Comparison(who, ((str(a if won else b),), (str(b if won else a),)), 1, str(a)))
    return out


def crowd(people: int, n: int, each: int, seed: int) -> tuple[ComparisonTable, Array]:
    rng = np.random.default_rng(seed)
    m, B = rng.standard_normal(n), rng.standard_normal((n, 2))
    S = 0.5 * B @ B.T + 0.3 * np.eye(n)
    F = rng.multivariate_normal(m, S, people)
    told = [one for u, f in enumerate(F) for one in asked(f, each + u % 3, rng, f"p{u}")]  # some answer more
    return tabulate(told, map(str, range(n))), m


# ---------------------------------------------------------------------------- hyperparameters


@pytest.mark.slow
@pytest.mark.parametrize("pairs", [[(0, 1)] * 4 + [(1, 2)] * 3, [(0, 1), (1, 0), (0, 2), (2, 1)], [(2, 0)]])
def test_what_is_believed_is_that_of_a_sum_over_spreads(monkeypatch: pytest.MonkeyPatch, pairs: Any) -> None:
    """Means and covariances against a sum over spreads, each by brute force, weighed by the prior; no lapses."""
    monkeypatch.setattr(hyperparameters, "LAPSE", (0.01, 1e6))
    got = infer_utilities(np.empty((3, 0)), 1, pair_rows(pairs)).average()
    logs = np.linspace(np.log(0.05), np.log(20.0), 40)
    weights, means, covs = [], [], []
    for log in logs:
        mean, cov, log_evidence = brute(np.exp(2.0 * log) * np.eye(3), pairs)
        weights.append(log_evidence - 0.5 * ((log - np.log(MEDIAN)) / LOG_SD) ** 2)
        means.append(mean)
        covs.append(cov + np.multiply.outer(mean, mean))
    w = np.exp(np.array(weights) - max(weights))
    w /= w.sum()
    mean, square = np.einsum("g,gi->i", w, means), np.einsum("g,gij->ij", w, covs)
    cov = square - np.multiply.outer(mean, mean)
    np.testing.assert_allclose(got.mean, mean, rtol=0.1, atol=0.1)  # five nodes, and EP
    np.testing.assert_allclose(np.sqrt(got.var), np.sqrt(cov.diagonal()), rtol=0.15)


def brute(K: Array, pairs: list[tuple[int, int]]) -> tuple[Array, Array, float]:
    """Mean, covariance and log evidence of f ~ N(0, K), from seeded draws weighed by the answers."""
    f = np.random.default_rng(0).multivariate_normal(np.zeros(len(K)), K, 200_000)
    log = sum(log_ndtr(f[:, a] - f[:, b]) for a, b in pairs)
    w = np.exp(log - log.max())
    evidence = float(np.log(w.mean()) + log.max())
    w /= w.sum()
    mean = w @ f
    return mean, (f * w[:, None]).T @ f - np.multiply.outer(mean, mean), evidence


def test_features_explain_what_they_explain() -> None:
    rng = np.random.default_rng(8)
    X = rng.standard_normal((24, 2))
    told = tabulate(asked(2.0 * X[:, 0], 250, rng), map(str, range(24)))
    got = estimate(told, X).belief
    assert got.kernel.explained >= 0.8
    other = estimate(told, rng.standard_normal((24, 2))).belief
    assert other.kernel.explained <= 0.5
    assert got.log_evidence[0] > other.log_evidence[0] + 5.0


def test_k_is_the_share_of_the_features_and_the_rest_each_items_own() -> None:
    X = np.array([[0.0], [1.0], [3.0]])
    K = covariance(X, Kernel(0.75, 0.5))
    unit = 0.5 * 2.0  # half of the median distance, of 1, 2, 3
    for i in range(3):
        for j in range(3):
            alike = np.exp(-0.5 * (X[i, 0] - X[j, 0]) ** 2 / unit**2)
            assert K[i, j] == pytest.approx(0.75 * alike + 0.25 * (i == j))
    assert covariance(np.empty((3, 0)), Kernel()).tolist() == np.eye(3).tolist()


# ---------------------------------------------------------------------------- many people


def test_somebody_new_is_like_the_others_and_each_is_told_by_their_own_answers() -> None:
    choices, _ = crowd(5, 4, 12, 2)
    got = estimate(choices).belief
    first = got.nodes[0]
    assert isinstance(first.people, JointPosterior)
    new = got.new()
    assert new.var.min() > got.average().var.max()
    for u in range(5):
        own = got.of(u)
        assert own.sd().max() < new.sd().max()
        assert own.mean.shape == (4,)
    some = got.average(np.array([0, 3]))
    assert some.sd().mean() > got.average().sd().mean()
    np.testing.assert_allclose(got.average(np.arange(5)).mean, got.average().mean)
    assert got.noise.lapse.shape == got.noise.random.shape == got.log_evidence.shape == (5,)


@pytest.mark.slow
def test_what_people_differ_in_is_learned() -> None:
    """Two camps: who likes 0 likes 1 and not 2, 3; one answer of a new person then tells of other items."""
    rng = np.random.default_rng(3)
    told = []
    for u in range(80):
        f = (1.0 if u % 2 else -1.0) * np.array([2.0, 2.0, -2.0, -2.0])
        told += asked(f, 12, rng, f"p{u}")
    told += [Comparison("new", (("0",), ("2",)), 2)]
    got = estimate(tabulate(told, map(str, range(4)))).belief
    believed = got.of(80)
    assert float(believed.better(1, 3)) > 0.85


# ---------------------------------------------------------------------------- whatever comes


def believed(found: Estimate) -> tuple[Array, Array]:
    return found.posterior.mean, found.posterior.cov


@pytest.mark.parametrize("people", [1, 6])
def test_permuting_items_changes_nothing(people: int) -> None:
    choices, _ = crowd(people, 6, 12, 6)
    order = [3, 0, 5, 1, 4, 2]
    mean, cov = believed(estimate(choices))
    other_mean, other_cov = believed(estimate(with_items(choices, [choices.items[i] for i in order])))
    np.testing.assert_allclose(other_mean, mean[order], atol=2e-3)
    np.testing.assert_allclose(other_cov, cov[np.ix_(order, order)], atol=2e-3)


@pytest.mark.slow
@pytest.mark.parametrize("people", [1, 4])
def test_an_item_that_nobody_was_asked_about_stands_where_its_features_say(people: int) -> None:
    rng = np.random.default_rng(9)
    X = np.linspace(-1.5, 1.5, 10)[:, None]
    X = np.vstack([X, [[1.4]]])
    told = [each for u in range(people) for each in asked(3.0 * X[:, 0], 80, rng, f"p{u}", 10)]
    choices = tabulate(told, map(str, range(11)))
    bare, rich = estimate(choices), estimate(choices, X)
    for found in (bare, rich):
        assert np.isfinite(found.posterior.mean).all()
        assert np.linalg.eigvalsh(found.posterior.cov)[0] > 0.0
    assert bare.posterior.sd()[10] > 1.3 * np.delete(bare.posterior.sd(), 10).max()
    assert rich.posterior.ranking().tolist().index(10) <= 3
    assert rich.posterior.sd()[10] < 0.6 * bare.posterior.sd()[10]


def test_identical_items_stand_together_until_answers_part_them() -> None:
    rng = np.random.default_rng(10)
    X = np.array([[0.0], [0.0], [1.0], [2.0], [3.0]])
    f = np.array([0.0, 0.0, 1.0, 2.0, 3.0])
    got = estimate(tabulate(asked(f, 60, rng), map(str, range(5))), X)
    assert 0.1 < float(got.posterior.better(0, 1)) < 0.9
    clear = [*asked(f, 60, rng), *[Comparison("", (("0",), ("1",)))] * 40]
    assert float(estimate(tabulate(clear, map(str, range(5))), X).posterior.better(0, 1)) > 0.99


def test_contradictory_answers_are_finite_and_level() -> None:
    pairs = [Comparison("", ((a,), (b,)), 50) for a, b in ("ab", "ba", "bc", "ca", "ab", "bc", "cb", "ac")]
    got = estimate(tabulate(pairs))
    assert np.isfinite(got.posterior.mean).all()
    assert got.belief.spread < 1.0


def test_what_features_explain_is_looked_for_among_items_that_hang_together(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(12)
    f = 1.5 * rng.standard_normal(30)
    told = [*asked(f, 200, rng), Comparison("", (("0",), ("1",), ("2",))), Comparison("", (("0",), ("1",), ("29",)))]
    rows = estimate(tabulate(told, map(str, range(30)))).belief.rows
    monkeypatch.setattr(subsample, "NEAR", 12)
    part = subsample.sample_items(rows)
    assert np.unique(part.pairs).size <= 12
    assert 10 < part.size < rows.size
    inside = np.isin(rows.pairs, np.unique(part.pairs)).all(axis=1)
    alone = take_rows(rows, inside & (rows.group < 0))
    assert part.times[part.group < 0].sum() == alone.times.sum()  # all outcomes of a pair, and all pairs
    for group in set(part.group.tolist()) - {-1}:
        assert (part.group == group).sum() == (rows.group == group).sum()  # answers are whole, or not there


@pytest.mark.parametrize(
    ("items", "X", "message"),
    [
        (1, None, "items: expected 2 to 3,000, got 1"),
        (3, np.zeros((2, 2)), "X: expected 3 rows, one for each item, got 2"),
        (3, np.full((3, 1), np.nan), "X: expected finite numbers, got nan"),
        (3001, None, "items: expected 2 to 3,000, got 3,001"),
    ],
)
def test_what_makes_no_sense_is_refused(items: int, X: Any, message: str) -> None:
    given = tabulate([Comparison("", (("0",), ("1",)))], map(str, range(items)))
    if items == 1:
        given = ComparisonTable(("0",), ("",), ())
    with pytest.raises(ValueError, match=message):
        estimate(given, X)


def test_of_many_people_fewer_items_are_ranked_and_somebody_has_to_judge() -> None:
    wide = tabulate([Comparison("a", (("0",), ("1",))), Comparison("b", (("0",), ("1",)))], map(str, range(1001)))
    with pytest.raises(ValueError, match="items: expected 2 to 1,000 where people are told apart, got 1,001"):
        estimate(wide)
    assert len(estimate(pool_people(wide)).posterior.mean) == 1001
    with pytest.raises(ValueError, match="answers: expected at least one that judges, got none"):
        estimate(tabulate([Comparison("", (("0", "1"),), judged=False)]))


@pytest.mark.slow
def test_it_is_as_sure_of_neighbours_as_it_is_right() -> None:
    """30 studies of one person: where it says that the next one is worse with some probability, so often it is."""
    rng = np.random.default_rng(11)
    said, right = [], []
    for _ in range(30):
        f = np.exp(0.7 * rng.standard_normal()) * rng.standard_normal(9)
        got = estimate(tabulate(asked(f, 30, rng), map(str, range(9))))
        found = standing(got.posterior)
        said += found.better.tolist()
        right += (f[found.order[:-1]] > f[found.order[1:]]).tolist()
    error = np.sqrt(0.25 / len(said))
    assert abs(np.mean(said) - np.mean(right)) < 3.0 * error
