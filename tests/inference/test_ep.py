"""Expectation propagation in item space: against the transcription in pair space, and against grids."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from brute import Likelihood, best, by_grid, chosen, order_of_three, tied
from scipy.special import ndtr

from heedful.inference.gp.ep import EPResult, Sites, infer_users
from heedful.inference.gp.posterior import Posterior
from heedful.inference.pairwise import PairRows, concatenate, order_rows, pair_rows
from naive_preferences import ep_over_pairs, predict_pair
from one_person import infer

Array = npt.NDArray[np.float64]
CONTRADICTING = [(0, 1), (1, 2), (2, 3), (3, 0), (0, 2), (0, 2)]


def prior(seed: int, n: int, amplitude: float = 1.0) -> tuple[Array, Array]:
    """Covariances of items with two features, and means that are not 0."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    d2 = ((X[:, None] - X[None]) ** 2).sum(axis=-1)
    return amplitude**2 * np.exp(-0.5 * d2), 0.5 * rng.normal(size=n)


def random_pairs(seed: int, n: int, p: int) -> npt.NDArray[np.int64]:
    rng = np.random.default_rng(seed)
    return np.array([rng.choice(n, 2, replace=False) for _ in range(p)])


def difference(a: Posterior, b: Posterior) -> float:
    """The largest difference between what two posteriors say of choices, in the unit of the noise."""
    i, j = np.indices(a.cov.shape)
    return float(max(np.abs(x - y).max() for x, y in zip(a.gap(i, j), b.gap(i, j))))


# ---------------------------------------------------------------------------- equal to what is slow


@pytest.mark.parametrize("seed", range(4))
def test_item_space_is_pair_space(seed: int) -> None:
    """[H12] Section 2 with the preference kernel, site by site: the same sites, evidence, predictions (Eq. 1, 2, 7)."""
    K, mean = prior(seed, 7, 1.0 + seed)
    pairs = random_pairs(seed, 6, 25)  # with contradictions and repeats; the item 6 is never shown
    tau, nu, evidence, _, _ = ep_over_pairs(K, mean, pairs)
    got = infer(K, mean, pairs, tolerance=1e-13)
    np.testing.assert_allclose(got.sites.tau, tau, atol=1e-8)
    np.testing.assert_allclose(got.sites.nu, nu, atol=1e-8)
    assert got.log_evidence == pytest.approx(evidence, abs=1e-8)
    for a, b in [(0, 1), (2, 5), (6, 0), (3, 6)]:
        assert got.posterior.beats(a, b) == pytest.approx(predict_pair(K, mean, pairs, tau, nu, (a, b)), abs=1e-8)


def check(K: Array, mean: Array, likelihoods: list[Likelihood], rows: PairRows, **options: Any) -> EPResult:
    """Probabilities within .01 and evidence within .05 of the grid."""
    P, evidence = by_grid(K, mean, likelihoods)
    got = infer(K, mean, rows, **options)
    i, j = np.triu_indices(len(mean), 1)
    np.testing.assert_allclose(got.posterior.beats(i, j), P[i, j], atol=0.01)
    assert got.log_evidence == pytest.approx(evidence, abs=0.05)
    assert got.sites.moved <= 1e-9
    return got


def test_the_grid_itself() -> None:
    """One choice in closed form: log Phi(m / sqrt(1 + v)); a ranking of three alike items: 1/6; best of four: 1/4."""
    K, mean = prior(0, 4)
    z = (mean[1] - mean[2]) / np.sqrt(1 + K[1, 1] + K[2, 2] - 2 * K[1, 2])
    assert by_grid(K, mean, [chosen(1, 2)])[1] == pytest.approx(
        np.log(Posterior(np.r_[z, 0], np.zeros((2, 2))).beats(0, 1))
    )
    alike = np.eye(4)
    assert by_grid(alike, np.zeros(4), [order_of_three(2, 0, 1)])[1] == pytest.approx(np.log(1 / 6), abs=1e-6)
    assert by_grid(alike, np.zeros(4), [best(range(4), 2)])[1] == pytest.approx(np.log(1 / 4), abs=1e-6)


@pytest.mark.parametrize("amplitude", [1.0, 2.0])
@pytest.mark.parametrize("seed", range(3))
def test_choices_against_the_grid(seed: int, amplitude: float) -> None:
    K, mean = prior(seed, 4, amplitude)
    check(K, mean, [chosen(a, b) for a, b in CONTRADICTING * 3], pair_rows(CONTRADICTING, 3))


@pytest.mark.parametrize("seed", range(3))
def test_equally_good_against_the_grid(seed: int) -> None:
    K, mean = prior(seed, 4)
    likelihoods = [chosen(a, b, 0.4) for a, b in CONTRADICTING] + [tied(1, 3, 0.4), tied(0, 1, 0.4)]
    check(
        K,
        mean,
        likelihoods,
        concatenate([pair_rows(CONTRADICTING), pair_rows([(3, 1), (0, 1)], equal=True)]),
        width=0.4,
    )


@pytest.mark.parametrize("width", [0.0, 0.3])
@pytest.mark.parametrize("lapse", [0.02, 0.1])
@pytest.mark.parametrize("seed", range(3))
def test_lapses_against_the_grid(seed: int, lapse: float, width: float) -> None:
    K, mean = prior(seed, 4)
    likelihoods = [chosen(a, b, width, lapse) for a, b in CONTRADICTING]
    rows = [pair_rows(CONTRADICTING)]
    if width:
        likelihoods.append(tied(1, 3, width, lapse))
        rows.append(pair_rows([(1, 3)], equal=True))
    check(K, mean, likelihoods, concatenate(rows), lapse=lapse, width=width)


@pytest.mark.parametrize("lapse", [0.2, 0.3])
@pytest.mark.parametrize("width", [0.0, 0.3])
@pytest.mark.parametrize("seed", range(2))
def test_many_lapses_against_the_grid(seed: int, width: float, lapse: float) -> None:
    """Circles three times over, where a surprising answer widens the posterior: sites that may not are off by .02."""
    K, mean = prior(seed, 4)
    likelihoods = [chosen(a, b, width, lapse) for a, b in CONTRADICTING * 3]
    rows = [pair_rows(CONTRADICTING, 3)]
    if width:
        likelihoods += [tied(1, 3, width, lapse)] * 3
        rows.append(pair_rows([(1, 3)], 3, equal=True))
    got = check(K, mean, likelihoods, concatenate(rows), lapse=lapse, width=width)
    assert got.sites.tau.min() < 0.0 or lapse < 0.3


@pytest.mark.parametrize(("amplitude", "lapse", "times"), [(3.0, 0.2, 6), (3.0, 0.1, 3), (2.0, 0.3, 6)])
def test_it_stays_finite_where_the_posterior_has_several_modes(amplitude: float, lapse: float, times: int) -> None:
    K, mean = prior(0, 4, amplitude)
    got = infer(K, mean, pair_rows(CONTRADICTING, times), lapse=lapse)
    assert all(np.isfinite(part).all() for part in (*got.posterior, got.log_evidence))


@pytest.mark.slow
def test_ties_within_an_order_against_draws() -> None:
    """Orders with tiers of equally good items: a million draws. Within .025, and the evidence within .25."""
    rng = np.random.default_rng(0)
    K, mean = 2.0 * np.eye(4), np.array([0.5, 0.0, 0.0, -0.3])
    f = mean + np.sqrt(2.0) * rng.normal(size=(1_000_000, 4))
    y = f + np.sqrt(0.5) * rng.normal(size=f.shape)
    near = np.abs(y[:, 0] - y[:, 1]) < 0.4
    cases = {
        "all": (order_rows([[0, 1, 2]], equal=True), np.ptp(y[:, :3], axis=1) < 0.4),
        "two": (order_rows([[0, 1], 2], equal=True), near & (y[:, :2].min(axis=1) > y[:, 2])),
        "between": (
            order_rows([3, [0, 1], 2], equal=True),
            near & (y[:, :2].min(axis=1) > y[:, 2]) & (y[:, 3] > y[:, :2].max(axis=1)),
        ),
    }
    i, j = np.triu_indices(4, 1)
    for rows, happened in cases.values():
        got = infer(K, mean, rows, width=0.4)
        wanted = ndtr(f[happened][:, i] - f[happened][:, j]).mean(axis=0)
        np.testing.assert_allclose(got.posterior.beats(i, j), wanted, atol=0.025)
        assert got.log_evidence == pytest.approx(np.log(happened.mean()), abs=0.25)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_best_of_several_and_rankings_against_the_grid(seed: int) -> None:
    """One answer about several items shares its noise."""
    K, mean = prior(seed, 4)
    check(K, mean, [best([0, 1, 2, 3], 1)], order_rows([1, [0, 2, 3]]))
    check(K, mean, [order_of_three(2, 0, 1)], order_rows([2, 0, 1]))
    likelihoods = [order_of_three(0, 1, 2), best([1, 2, 3], 1), order_of_three(2, 1, 3), chosen(3, 0)]
    check(
        K,
        mean,
        likelihoods,
        concatenate([order_rows([0, 1, 2]), order_rows([1, [2, 3]]), order_rows([2, 1, 3]), pair_rows([(3, 0)])]),
    )


def test_a_ranking_is_not_its_pairs() -> None:
    """Three independent choices of the same order are rarer, and tell more, than one ranking of three."""
    pairs = infer(np.eye(3), np.zeros(3), [(0, 1), (1, 2), (0, 2)])
    whole = infer(np.eye(3), np.zeros(3), order_rows([0, 1, 2]))
    assert whole.log_evidence == pytest.approx(np.log(1 / 6), abs=0.01)
    assert pairs.log_evidence < whole.log_evidence - 0.05
    assert whole.posterior.beats(0, 2) < pairs.posterior.beats(0, 2) - 0.01


def test_a_ranking_of_two_is_a_choice() -> None:
    """The noise kept apart, and integrated out, to rounding; three times over, too."""
    K, mean = prior(0, 4)
    plain = infer(K, mean, [(0, 1), (2, 1), (2, 1)], tolerance=1e-12)
    shared = concatenate([order_rows([0, 1]), order_rows([2, [1]], 2.0)])
    assert (shared.group == -1).all()
    for kept in (shared, shared._replace(group=np.array([4, 2]))):
        other = infer(K, mean, kept, tolerance=1e-12)
        assert difference(plain.posterior, other.posterior) < 1e-9
        assert other.log_evidence == pytest.approx(plain.log_evidence, abs=1e-9)


# ---------------------------------------------------------------------------- what changes nothing


def test_both_ways_round() -> None:
    """P(a beats b) = 1 - P(b beats a), and all answers turned round turn the posterior round."""
    K, mean = prior(1, 6)
    pairs = random_pairs(1, 6, 12)
    posterior = infer(K, 0 * mean, pairs, tolerance=1e-12).posterior
    turned = infer(K, 0 * mean, pairs[:, ::-1], tolerance=1e-12).posterior
    a, b = np.triu_indices(6, 1)
    np.testing.assert_allclose(posterior.beats(a, b), 1.0 - posterior.beats(b, a), rtol=1e-14)
    np.testing.assert_allclose(posterior.mean, -turned.mean, atol=1e-10)
    np.testing.assert_allclose(posterior.cov, turned.cov, atol=1e-10)


def test_permuting_items_and_answers_changes_nothing() -> None:
    K, mean = prior(2, 7)
    rows = concatenate([pair_rows(random_pairs(2, 6, 9)), pair_rows([(0, 4)], equal=True), order_rows([3, 1, 5, 0])])
    order, mixed = np.random.default_rng(0).permutation(7), np.random.default_rng(1).permutation(rows.size)
    place = np.argsort(order)
    moved = PairRows(*(column[mixed] for column in rows))
    moved = moved._replace(pairs=place[moved.pairs])
    a = infer(K, mean, rows, width=0.2, lapse=0.03, tolerance=1e-12)
    b = infer(K[np.ix_(order, order)], mean[order], moved, width=0.2, lapse=0.03, tolerance=1e-12)
    np.testing.assert_allclose(a.posterior.mean[order], b.posterior.mean, atol=1e-9)
    np.testing.assert_allclose(a.posterior.cov[np.ix_(order, order)], b.posterior.cov, atol=1e-9)
    assert a.log_evidence == pytest.approx(b.log_evidence, abs=1e-9)


def test_times_are_repeats() -> None:
    K, mean = prior(3, 5)
    once = concatenate(
        [pair_rows([(0, 1), (2, 1)], [3, 1]), pair_rows([(3, 4)], 2, equal=True), order_rows([0, 2, 4], 2)]
    )
    each = (
        [pair_rows([(0, 1)])] * 3
        + [pair_rows([(2, 1)])]
        + [pair_rows([(4, 3)], equal=True)] * 2
        + [order_rows([0, 2, 4])] * 2
    )
    a = infer(K, mean, once, width=0.3, lapse=0.02, tolerance=1e-12)
    b = infer(K, mean, concatenate(each), width=0.3, lapse=0.02, tolerance=1e-12)
    assert difference(a.posterior, b.posterior) < 1e-9
    assert a.log_evidence == pytest.approx(b.log_evidence, abs=1e-9)


def test_a_warm_start_ends_in_the_same_place_sooner() -> None:
    K, mean = prior(4, 8)
    pairs = random_pairs(4, 8, 40)
    before = infer(K, mean, pairs[:39])
    cold, warm = infer(K, mean, pairs), infer(K, mean, pairs, sites=before.sites)
    assert difference(cold.posterior, warm.posterior) < 1e-7
    few = {"sweeps": 2, "tolerance": 0.0}
    soon = difference(infer(K, mean, pairs, sites=before.sites, **few).posterior, cold.posterior)
    assert soon < 0.1 * difference(infer(K, mean, pairs, **few).posterior, cold.posterior)
    stay = infer(K, mean, pairs, sites=cold.sites)
    assert stay.sites.sweeps == 1


def test_many_people_at_once_are_each_alone() -> None:
    K, mean = prior(5, 6)
    parts = [concatenate([pair_rows(random_pairs(u, 6, 3 + 4 * u)), order_rows([u, 5, 4])]) for u in range(4)]
    rows = concatenate([part._replace(user=np.full(part.size, u)) for u, part in enumerate(parts)])
    lapse = np.array([0.0, 0.1, 0.02, 0.0, 0.1])
    many = infer_users(K, mean, 5, rows, lapse=lapse, tolerance=1e-12)
    for u, part in enumerate(parts):
        alone = infer(K, mean, part, lapse=float(lapse[u]), tolerance=1e-12)
        assert difference(many.of(u), alone.posterior) < 1e-9
        assert many.log_evidence[u] == pytest.approx(alone.log_evidence, abs=1e-9)
    np.testing.assert_allclose(many.mean[4], mean, atol=1e-12)  # who said nothing is like the prior
    np.testing.assert_allclose(many.cov[4], K, atol=1e-12)
    assert many.log_evidence[4] == pytest.approx(0.0, abs=1e-12)


def test_items_that_were_not_compared_come_last_and_change_nothing() -> None:
    """Sweeps over the items that were compared alone, then the others: as over all of them."""
    K, mean = prior(6, 30)
    pairs = random_pairs(6, 7, 10)
    quick = infer(K, mean, pairs, tolerance=1e-12)
    whole = infer_users(K, mean, 1, pair_rows(pairs), tolerance=1e-12)
    np.testing.assert_allclose(quick.posterior.mean, whole.mean[0], atol=1e-9)
    np.testing.assert_allclose(quick.posterior.cov, whole.cov[0], atol=1e-9)


# ---------------------------------------------------------------------------- odd people, odd items


def test_nothing_answered_leaves_the_prior() -> None:
    K, mean = prior(7, 4)
    got = infer(K, mean, np.empty((0, 2)))
    np.testing.assert_allclose(got.posterior.mean, mean)
    np.testing.assert_allclose(got.posterior.cov, K)
    assert got.log_evidence == 0.0


@pytest.mark.parametrize("lapse", [0.0, 0.05])
@pytest.mark.parametrize("times", [1, 100, 10**6])
def test_contradictory_answers_say_that_the_items_are_alike(times: int, lapse: float) -> None:
    got = infer(np.eye(3), np.zeros(3), [(0, 1), (1, 0)], [times, times], lapse=lapse)
    assert got.posterior.beats(0, 1) == pytest.approx(0.5, abs=1e-9)
    assert got.posterior.gap(0, 1)[1] <= 1.5
    assert np.isfinite(got.log_evidence)
    if times > 1:
        assert got.posterior.gap(0, 1)[1] < 0.01


def test_going_round_in_a_circle() -> None:
    got = infer(100.0 * np.eye(3), np.zeros(3), [(0, 1), (1, 2), (2, 0)])
    np.testing.assert_allclose(got.posterior.mean, 0.0, atol=1e-6)
    assert got.sites.moved <= 1e-9


@pytest.mark.parametrize("amplitude", [1e-3, 1.0, 1e2, 1e4])
def test_any_amplitude_is_finite(amplitude: float) -> None:
    """And without noise to speak of, one of 4! orders of items that are alike has the evidence 1/24."""
    got = infer(amplitude**2 * np.eye(4), np.zeros(4), [(0, 1), (1, 2), (2, 3)])
    assert all(np.isfinite(part).all() for part in got.posterior)
    assert got.posterior.ranking().tolist() == [0, 1, 2, 3]
    if amplitude >= 1e2:
        assert got.log_evidence == pytest.approx(-np.log(24), abs=0.05)


def test_an_answer_against_all_that_is_known() -> None:
    """Thirty units against the prior: finite, and all but taken for a lapse where there are lapses."""
    K, mean = 0.01 * np.eye(2), np.array([0.0, 30.0])
    plain, lapsing = infer(K, mean, [(0, 1)]), infer(K, mean, [(0, 1)], lapse=0.1)
    assert plain.posterior.mean[0] > 0.2
    assert lapsing.posterior.mean[0] == pytest.approx(0.0, abs=1e-9)
    assert lapsing.log_evidence == pytest.approx(np.log(0.05), abs=1e-6)
    for lapse in (0.0, 0.1):
        tie = infer(K, mean, pair_rows([(0, 1)], equal=True), width=0.1, lapse=lapse)
        assert np.isfinite(tie.posterior.mean).all()


@pytest.mark.parametrize("lapse", [0.0, 0.1])
def test_an_answer_that_was_sure_to_come_changes_nothing(lapse: float) -> None:
    got = infer(np.eye(2), np.array([30.0, 0.0]), [(0, 1)] * 5, lapse=lapse)
    np.testing.assert_allclose(got.posterior.mean, [30.0, 0.0], atol=1e-12)
    np.testing.assert_allclose(got.posterior.cov, np.eye(2), atol=1e-12)
    assert got.log_evidence == pytest.approx(5 * np.log(1 - lapse / 2), abs=1e-12)


def test_two_identical_items() -> None:
    """Their covariance is singular; whichever was chosen, nothing tells them apart."""
    K = np.eye(3)
    K[:2, :2] = 1.0
    for rows in (pair_rows([(0, 2), (2, 1), (0, 1)]), order_rows([0, 2, 1]), order_rows([0, [1, 2]], 3)):
        got = infer(K, np.zeros(3), rows)
        assert got.posterior.beats(0, 1) == 0.5
        assert got.posterior.better(0, 1) == 0.5
        assert got.posterior.mean[0] == pytest.approx(got.posterior.mean[1], abs=1e-12)
        assert np.isfinite(got.log_evidence)


def test_nothing_but_identical_items() -> None:
    """However often one was chosen: utilities are what they were before."""
    got = infer(np.ones((2, 2)), np.zeros(2), [(0, 1), (0, 1), (1, 0)])
    np.testing.assert_allclose(got.posterior.mean, 0.0, atol=1e-12)
    np.testing.assert_allclose(got.posterior.cov, np.ones((2, 2)), atol=1e-12)
    assert got.log_evidence == pytest.approx(-3.0 * np.log(2.0), abs=1e-12)


def test_an_item_never_shown_keeps_its_prior_or_learns_from_others_like_it() -> None:
    apart = infer(np.eye(3), np.zeros(3), [(0, 1)] * 5).posterior
    assert (apart.mean[2], apart.cov[2, 2]) == (0.0, 1.0)
    K = np.eye(3)
    K[0, 2] = K[2, 0] = 0.9
    alike = infer(K, np.zeros(3), [(0, 1)] * 5).posterior
    assert alike.beats(2, 1) > 0.7
    assert alike.cov[2, 2] < 1.0


@pytest.mark.parametrize("items", [(2, 2), (0, 0)])
def test_no_item_is_compared_with_itself(items: tuple[int, int]) -> None:
    with pytest.raises(ValueError, match=f"pairs: expected two items each, got {items[0]} compared with itself"):
        pair_rows([(0, 1), items])


def test_ties_want_a_width() -> None:
    with pytest.raises(ValueError, match="width: expected more than 0 where items are called equally good"):
        infer(np.eye(2), np.zeros(2), pair_rows([(0, 1)], equal=True))


def test_tiers_and_tables() -> None:
    rows = concatenate([order_rows([[3, 1], 2]), pair_rows([(0, 1)]), order_rows([0, 1, 2]), order_rows([1, [0]])])
    assert rows.pairs.tolist() == [[3, 2], [1, 2], [0, 1], [0, 1], [1, 2], [1, 0]]
    assert rows.group.tolist() == [0, 0, -1, 1, 1, -1]
    assert concatenate([]).size == order_rows([]).size == 0
    assert infer(np.eye(2), np.zeros(2), concatenate([])).log_evidence == 0.0


def test_sites_say_when_they_did_not_settle() -> None:
    got = infer(np.eye(3), np.zeros(3), [(0, 1), (1, 2)], [50, 50], sweeps=2)
    assert isinstance(got.sites, Sites)
    assert (got.sites.sweeps, got.sites.moved > 1e-3) == (2, True)
