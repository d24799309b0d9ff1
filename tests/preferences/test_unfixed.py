"""What is believed where neither the spread nor the mean of the people is taken for known: against all at once."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from heedful.preferences import unfixed
from heedful.preferences.answers import Answers, answers, together
from heedful.preferences.ep import infer
from heedful.preferences.evidence import APART, likeliest_spread
from heedful.preferences.unfixed import of_one, of_several

Array = npt.NDArray[np.float64]


def told(users: int, n: int, each: int, seed: int, amplitude: float = 1.0) -> Answers:
    """Answers of people of one mind, but for a little; nobody finds two equally good."""
    rng = np.random.default_rng(seed)
    f = amplitude * (rng.normal(size=n) + 0.3 * rng.normal(size=(users, n)))
    rows = []
    for u in range(users):
        pairs = np.array([rng.choice(n, 2, replace=False) for _ in range(each)])
        won = f[u, pairs[:, 0]] - f[u, pairs[:, 1]] + rng.normal(size=each) > 0
        rows.append(answers(np.where(won[:, None], pairs, pairs[:, ::-1]), user=u))
    return together(rows)


def prior(n: int, seed: int = 0) -> Array:
    A = np.random.default_rng(seed).normal(size=(n, n))
    return A @ A.T / n + 0.3 * np.eye(n)


def test_the_spread_is_the_likeliest() -> None:
    """Of the evidence of EP times the prior, on a grid; and it follows the answers."""
    K, found = prior(7), []
    for amplitude in (0.3, 4.0):
        rows = told(1, 7, 60, 1, amplitude)
        grid = np.linspace(np.log(0.1), np.log(10.0), 400)
        worth = [
            infer(np.exp(2.0 * g) * K, np.zeros(7), rows).log_evidence - 0.5 * ((g - np.log(1.5)) / APART) ** 2
            for g in grid
        ]
        got = likeliest_spread(K, 1, rows, 0.25, 0.0, 1.5)  # no width, as no two were called equally good
        assert np.log(got) == pytest.approx(grid[int(np.argmax(worth))], abs=0.05)
        found.append(got)
    assert found[0] < 0.8 < 2.0 < found[1]
    assert likeliest_spread(K, 1, answers(np.empty((0, 2))), 0.0, 0.0, 1.5) == 1.5


@pytest.mark.parametrize("unit", [0.01, 100.0])
def test_the_spread_is_as_likely_in_any_unit(unit: float) -> None:
    """A prior of utilities far too close, or far too wide, is put right as far as the answers, or their lack, go."""
    rows = told(1, 5, 20, 3)
    for some in (rows, answers(np.empty((0, 2)))):
        plain = likeliest_spread(np.eye(5), 1, some, 0.0, 0.0, 1.5)
        got = likeliest_spread(unit * unit * np.eye(5), 1, some, 0.0, 0.0, 1.5 / unit)
        assert np.log(got * unit) == pytest.approx(np.log(plain), abs=0.05)


def test_of_one_person_it_is_inference_with_that_spread() -> None:
    K, rows = prior(6), told(1, 6, 25, 2)
    posterior, seen = of_one(K, rows, 0.25, 0.1, 1.5)
    c = likeliest_spread(K, 1, rows, 0.0, 0.1, 1.5)
    wanted = infer(c * c * K, np.zeros(6), rows, lapse=0.1)
    np.testing.assert_allclose(posterior.mean, wanted.posterior.mean, atol=1e-9)
    np.testing.assert_allclose(posterior.cov, wanted.posterior.cov, atol=1e-9)
    assert (seen.width, seen.lapse) == (0.0, 0.1)
    tied = together([rows, answers([(0, 1)], equal=True)])
    assert of_one(K, tied, 0.25, 0.1)[1].width == 0.25


def everything(K: Array, users: int, rows: Answers, tau: Array, nu: Array) -> tuple[Array, Array]:
    """Mean and covariance of (m, f_1, ..., f_U) from sites: m ~ N(0, K), f_u ~ N(m, K), as one Gaussian."""
    n = len(K)
    one, P = np.linalg.inv(K), np.zeros(((users + 1) * n, (users + 1) * n))
    h = np.zeros(len(P))
    P[:n, :n] += one
    for u in range(1, users + 1):
        at = slice(u * n, (u + 1) * n)
        P[:n, :n] += one
        P[at, at] += one
        P[:n, at] -= one
        P[at, :n] -= one
    for (a, b), u, t, v in zip(rows.pairs, rows.user, tau, nu):
        e = np.zeros(len(P))
        e[(u + 1) * n + a], e[(u + 1) * n + b] = 1.0, -1.0
        P += t * np.outer(e, e)
        h += v * e
    cov = np.linalg.inv(P)
    return cov @ h, cov


@pytest.mark.parametrize("whose", [[0, 1, 2, 3], [1, 3]])
def test_of_several_it_is_the_mean_of_all_at_once(monkeypatch: pytest.MonkeyPatch, whose: list[int]) -> None:
    """One Gaussian over the mean of the people and everybody, with the sites that were found; 3 said nothing."""
    monkeypatch.setattr(unfixed, "FEW", 0)  # the spread as it is
    K, rows, n = prior(6), told(3, 6, 12, 3), 6
    sites: list[Any] = []
    plain = unfixed._mean

    def watched(*given: Any) -> Any:
        out = plain(*given)
        sites.append(out[0].sites)
        return out

    monkeypatch.setattr(unfixed, "_mean", watched)
    got, seen = of_several(K, 4, rows, np.array(whose), np.zeros(4), np.zeros(4))
    mean, cov = everything(K, 4, rows, sites[-1].tau, sites[-1].nu)
    take = np.zeros((n, 5 * n))
    for u in whose:
        take[:, (u + 1) * n : (u + 2) * n] = np.eye(n) / len(whose)
    np.testing.assert_allclose(got.mean, take @ mean, atol=0.02)  # m is put right in three rounds
    np.testing.assert_allclose(got.cov, take @ cov @ take.T, atol=1e-6)
    assert seen is None


def test_of_one_of_several_the_others_are_what_was_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unfixed, "FEW", 0)
    K, rows = prior(6), told(3, 6, 12, 4)
    got, seen = of_several(K, 3, rows, np.array([1]), np.zeros(3), np.zeros(3))
    assert seen is not None
    others = rows.user != 1
    among = Answers(*(column[others] for column in rows))
    people, mean = unfixed._mean(K, 3, among, np.zeros(3), np.zeros(3))
    all_mean, all_cov = everything(K, 3, among, people.sites.tau, people.sites.nu)
    np.testing.assert_allclose(mean.cov, all_cov[:6, :6], atol=1e-6)
    np.testing.assert_allclose(mean.mean, all_mean[:6], atol=0.02)
    own = Answers(*(column[~others] for column in rows))
    wanted = infer(K + mean.cov, mean.mean, own)
    np.testing.assert_allclose(got.mean, wanted.posterior.mean, atol=1e-9)
    np.testing.assert_allclose(got.cov, wanted.posterior.cov, atol=1e-9)
    assert (seen.rows.user == 0).all()
    np.testing.assert_array_equal(seen.rows.pairs, own.pairs)


def test_of_people_who_tell_nothing_of_one_another_it_is_each_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unfixed, "FEW", 0)
    K, rows = prior(6), told(3, 6, 12, 5)
    got, _ = of_several(K, 3, rows, np.arange(3), np.zeros(3), np.zeros(3), pooled=False)
    each = [infer(K, np.zeros(6), Answers(*(column[rows.user == u] for column in rows))).posterior for u in range(3)]
    np.testing.assert_allclose(got.mean, np.mean([one.mean for one in each], axis=0), atol=1e-5)
    np.testing.assert_allclose(got.cov, np.sum([one.cov for one in each], axis=0) / 9.0, atol=1e-5)
