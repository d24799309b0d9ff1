"""From a table of choices to what is believed: hyperparameters against brute force, the mean of many people against one
large Gaussian written out, items without answers, and whether it is as sure as it is right."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from brute import by_grid, chosen

from heedful.data.orders import Answered, Choices, gathered, pooled, with_items
from heedful.preferences import estimating as module
from heedful.preferences import evidence
from heedful.preferences.answers import answers
from heedful.preferences.ep import infer_many
from heedful.preferences.estimating import Estimate, estimate
from heedful.preferences.evidence import AMPLITUDE, APART, KAPPA0, Chosen, choose, covariance
from heedful.preferences.people import infer_apart, people_of
from heedful.preferences.standing import standing

Array = np.ndarray[Any, np.dtype[np.float64]]
NONE = np.empty((0, 0))


def asked(f: Array, each: int, rng: np.random.Generator, who: str = "", items: int = 0) -> list[Answered]:
    """`each` answers of somebody with utilities f, about the first `items` (all)."""
    out = []
    for _ in range(each):
        a, b = rng.choice(items or f.size, 2, replace=False).tolist()
        won = f[a] - f[b] + rng.standard_normal() > 0.0
        out.append(Answered(who, ((str(a if won else b),), (str(b if won else a),)), 1, str(a)))
    return out


def crowd(people: int, n: int, each: int, seed: int) -> tuple[Choices, Array]:
    rng = np.random.default_rng(seed)
    m, B = rng.standard_normal(n), rng.standard_normal((n, 2))
    S = 0.5 * B @ B.T + 0.3 * np.eye(n)
    F = rng.multivariate_normal(m, S, people)
    told = [one for u, f in enumerate(F) for one in asked(f, each + u % 3, rng, f"p{u}")]  # some answer more
    return gathered(told, map(str, range(n))), m


# ---------------------------------------------------------------------------- hyperparameters


@pytest.mark.parametrize("pairs", [[(0, 1)] * 4 + [(1, 2)] * 3, [(0, 1), (1, 0), (0, 2), (2, 1)], [(2, 0)]])
def test_the_amplitude_is_the_likeliest_by_brute_force(pairs: list[tuple[int, int]]) -> None:
    got = choose(np.empty((3, 0)), 1, answers(pairs), 0.0, 0.0)
    logs = np.linspace(np.log(0.2), np.log(12.0), 60)
    worth = []
    for log in logs:
        log_evidence = by_grid(np.exp(2.0 * log) * np.eye(3), np.zeros(3), [chosen(a, b) for a, b in pairs])[1]
        worth.append(log_evidence - 0.5 * ((log - np.log(AMPLITUDE)) / APART) ** 2)
    assert abs(np.log(got.amplitude) - logs[int(np.argmax(worth))]) < 0.12  # EP's evidence is not that of the grid


def test_features_explain_what_they_explain() -> None:
    rng = np.random.default_rng(8)
    X = rng.standard_normal((24, 2))
    told = gathered(asked(2.0 * X[:, 0], 250, rng), map(str, range(24)))
    got = estimate(told, X)
    assert got.chosen.explained >= 0.8
    other = estimate(told, rng.standard_normal((24, 2)))
    assert other.chosen.explained <= 0.5
    assert got.log_evidence[0] > other.log_evidence[0] + 5.0


def test_k_is_the_share_of_the_features_and_the_rest_each_items_own() -> None:
    X = np.array([[0.0], [1.0], [3.0]])
    K = covariance(X, Chosen(2.0, 0.75, 0.5))
    unit = 0.5 * 2.0  # half of the median distance, of 1, 2, 3
    for i in range(3):
        for j in range(3):
            alike = np.exp(-0.5 * (X[i, 0] - X[j, 0]) ** 2 / unit**2)
            assert K[i, j] == pytest.approx(4.0 * (0.75 * alike + 0.25 * (i == j)))
    assert covariance(np.empty((3, 0)), Chosen(2.0)).tolist() == (4.0 * np.eye(3)).tolist()


# ---------------------------------------------------------------------------- many people


def test_the_mean_of_many_is_that_of_one_large_gaussian() -> None:
    """m and everybody's f in one vector: precision by precision, the sites of EP as they are, m's block read off."""
    choices, _ = crowd(5, 4, 6, 2)
    got = estimate(choices)
    assert got.population is not None
    n, U, S = 4, 5, got.population.cov
    P = np.zeros((n * (U + 1), n * (U + 1)))
    b = np.zeros(n * (U + 1))
    inverse = np.linalg.inv(S)
    P[:n, :n] = KAPPA0 * inverse
    for u in range(U):
        f = slice(n * (u + 1), n * (u + 2))
        P[:n, :n] += inverse
        P[f, f] += inverse
        P[:n, f] -= inverse
        P[f, :n] -= inverse
        for k in np.flatnonzero(got.rows.user == u):
            d = np.zeros(n)
            d[got.rows.pairs[k, 0]], d[got.rows.pairs[k, 1]] = 1.0, -1.0
            times = got.rows.times[k]
            P[f, f] += times * got.sites.tau[k] * np.outer(d, d)
            b[f] += times * got.sites.nu[k] * d
    cov = np.linalg.inv(P)
    np.testing.assert_allclose(got.posterior.cov, cov[:n, :n], atol=1e-9)
    np.testing.assert_allclose(got.posterior.mean, (cov @ b)[:n], atol=1e-9)
    new = got.new()
    np.testing.assert_allclose(new.cov, S + got.posterior.cov)
    np.testing.assert_array_equal(new.mean, got.posterior.mean)
    # m is where EM ended: the mean of the means, with those that KAPPA0 stands for
    means = np.array([got.of(u)[0].mean for u in range(U)])
    np.testing.assert_allclose(got.population.mean, means.sum(axis=0) / (U + KAPPA0), atol=0.05)


def test_the_evidence_with_m_integrated_out_is_that_of_a_grid_over_m() -> None:
    """Two items, so m is one difference: everybody's evidence at each m, weighed by the prior of m."""
    rng = np.random.default_rng(4)
    pairs = np.where(rng.random((30, 1)) < 0.7, [[0, 1]], [[1, 0]])
    rows = answers(pairs, user=np.repeat(np.arange(6), 5))
    K = 1.3 * np.eye(2)
    got = evidence._Worth(rows, 6, 0.0, 0.0)(K)
    gaps = np.linspace(-9.0, 9.0, 241)
    each = [infer_many(K, np.array([g / 2, -g / 2]), 6, rows, tolerance=1e-6).log_evidence.sum() for g in gaps]
    weight = np.exp(-0.25 * gaps**2 / 1.3) / np.sqrt(4.0 * np.pi * 1.3) * (gaps[1] - gaps[0])
    assert got == pytest.approx(np.log(np.exp(np.array(each)) @ weight), abs=0.05)


def test_of_more_people_than_fit_some_teach_what_people_are_like_and_all_count(monkeypatch: pytest.MonkeyPatch) -> None:
    choices, _ = crowd(60, 5, 12, 3)
    whole = estimate(choices)
    assert whole.learned_from == 60
    monkeypatch.setattr(module, "HELD", 40 * (5 + 4) ** 2)
    part = estimate(choices)
    assert 20 <= part.learned_from <= 40
    assert part.sites.tau.shape == whole.sites.tau.shape
    gap = np.abs(standing(part.posterior).mean - standing(whole.posterior).mean)
    assert gap.max() < 2.0 * whole.posterior.sd().max()
    assert part.posterior.sd().max() < 1.5 * whole.posterior.sd().max()


def test_what_a_person_is_told_by_is_what_they_said() -> None:
    choices, _ = crowd(4, 5, 9, 5)
    got = estimate(choices)
    posterior, seen = got.of(2)
    assert seen.rows.times.sum() == 9 + 2
    one = infer_apart(
        got.population.cov, got.population.mean, 1, seen.rows, people_of(seen.rows, 1),  # type: ignore[union-attr]
        width=np.zeros(1), lapse=got.noise.lapse[2:3],
    )  # fmt: skip
    np.testing.assert_allclose(posterior.mean, one.of(0).mean, atol=1e-6)
    assert got.noise.lapse.shape == got.noise.random.shape == got.log_evidence.shape == (4,)


# ---------------------------------------------------------------------------- whatever comes


def believed(found: Estimate) -> tuple[Array, Array]:
    return found.posterior.mean, found.posterior.cov


@pytest.mark.parametrize("people", [1, 6])
def test_permuting_items_changes_nothing(people: int) -> None:
    choices, _ = crowd(people, 6, 12, 6)
    order = [3, 0, 5, 1, 4, 2]
    mean, cov = believed(estimate(choices))
    other_mean, other_cov = believed(estimate(with_items(choices, [choices.items[i] for i in order])))
    np.testing.assert_allclose(other_mean, mean[order], atol=1e-5)
    np.testing.assert_allclose(other_cov, cov[np.ix_(order, order)], atol=1e-5)


@pytest.mark.parametrize("people", [1, 4])
def test_an_item_that_nobody_was_asked_about_stands_where_its_features_say(people: int) -> None:
    rng = np.random.default_rng(9)
    X = np.linspace(-1.5, 1.5, 10)[:, None]
    X = np.vstack([X, [[1.4]]])
    told = [each for u in range(people) for each in asked(3.0 * X[:, 0], 80, rng, f"p{u}", 10)]
    choices = gathered(told, map(str, range(11)))
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
    got = estimate(gathered(asked(f, 60, rng), map(str, range(5))), X)
    assert 0.1 < float(got.posterior.better(0, 1)) < 0.9
    clear = [*asked(f, 60, rng), *[Answered("", (("0",), ("1",)))] * 40]
    assert float(estimate(gathered(clear, map(str, range(5))), X).posterior.better(0, 1)) > 0.99


def test_contradictory_answers_are_finite_and_level() -> None:
    pairs = [Answered("", ((a,), (b,)), 50) for a, b in ("ab", "ba", "bc", "ca", "ab", "bc", "cb", "ac")]
    got = estimate(gathered(pairs))
    assert np.isfinite(got.posterior.mean).all()
    assert got.chosen.amplitude < 1.0


def test_of_many_items_those_that_hang_together_are_tried_and_all_are_ranked(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(12)
    f = 1.5 * rng.standard_normal(30)
    told = [*asked(f, 200, rng), Answered("", (("0",), ("1",), ("2",))), Answered("", (("0",), ("1",), ("29",)))]
    choices = gathered(told, map(str, range(30)))
    whole = estimate(choices)
    monkeypatch.setattr(evidence, "NEAR", 12)
    kept = evidence._near(whole.rows)
    part = evidence.chosen_rows(whole.rows, kept)
    assert np.unique(part.pairs).size <= 12
    assert 20 < part.size < 120
    out = set(whole.rows.group[~kept].tolist()) - {-1}
    assert not out & set(part.group.tolist())  # answers are whole, or not there
    got = estimate(choices)
    assert got.sites.tau.shape == whole.sites.tau.shape
    assert got.sites.moved <= 1e-5
    assert abs(np.log(got.chosen.amplitude / whole.chosen.amplitude)) < 0.7
    assert np.corrcoef(got.posterior.mean, whole.posterior.mean)[0, 1] > 0.99


@pytest.mark.parametrize(
    ("items", "X", "message"),
    [
        (1, None, "items: wanted 2 to 3,000, got 1"),
        (3, np.zeros((2, 2)), "X: wanted 3 rows, one for each item, got 2"),
        (3, np.full((3, 1), np.nan), "X: wanted finite numbers, got nan"),
        (3001, None, "items: wanted 2 to 3,000, got 3,001"),
    ],
)
def test_what_makes_no_sense_is_refused(items: int, X: Any, message: str) -> None:
    given = gathered([Answered("", (("0",), ("1",)))], map(str, range(items)))
    if items == 1:
        given = Choices(("0",), ("",), ())
    with pytest.raises(ValueError, match=message):
        estimate(given, X)


def test_of_many_people_fewer_items_are_ranked_and_somebody_has_to_judge() -> None:
    wide = gathered([Answered("a", (("0",), ("1",))), Answered("b", (("0",), ("1",)))], map(str, range(1001)))
    with pytest.raises(ValueError, match="items: wanted 2 to 1,000 where people are told apart, got 1,001"):
        estimate(wide)
    assert len(estimate(pooled(wide)).posterior.mean) == 1001
    with pytest.raises(ValueError, match="answers: wanted at least one that judges, got none"):
        estimate(gathered([Answered("", (("0", "1"),), judged=False)]))


def test_it_is_as_sure_of_neighbours_as_it_is_right() -> None:
    """30 studies of one person: where it says that the next one is worse with some probability, so often it is."""
    rng = np.random.default_rng(11)
    said, right = [], []
    for _ in range(30):
        f = np.exp(np.log(AMPLITUDE) + 0.5 * rng.standard_normal()) * rng.standard_normal(9)
        got = estimate(gathered(asked(f, 30, rng), map(str, range(9))))
        found = standing(got.posterior, got.of(0)[1])
        said += found.better.tolist()
        right += (f[found.order[:-1]] > f[found.order[1:]]).tolist()
    error = np.sqrt(0.25 / len(said))
    assert abs(np.mean(said) - np.mean(right)) < 3.0 * error
