"""Many people's utilities of the same items: f_u ~ N(m, S), with m and S learned from everybody's choices."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from heedful.preferences.answers import Answers
from heedful.preferences.ep import Many, infer_many
from heedful.preferences.sites import Sites, ready

Array = npt.NDArray[np.float64]


SWEEPS = 1
GROW, FAR = 1.3, 8.0
"""By how much each step of EM is longer than the one before it in the same direction, and the most."""


class Population(NamedTuple):
    """What people's utilities of n items are like: mean m (n,), covariance S (n x n). The prior of somebody new."""

    mean: Array
    cov: Array


class Fitted(NamedTuple):
    """A population, the posteriors of the people it was learned from, and how it went.

    `trace` (e,): the log evidence of all answers before each step of EM, then of the end. `moved`: by how much the last
    step moved a utility's mean or standard deviation.
    """

    population: Population
    people: Many
    trace: Array
    moved: float


def fit(
    K: Array,
    users: int,
    rows: Answers,
    *,
    nu0: float | None = None,
    kappa0: float = 0.0,
    start: Population | None = None,
    sites: Sites | None = None,
    width: Any = 0.0,
    lapse: Any = 0.0,
    steps: int = 30,
    tolerance: float = 1e-2,
) -> Fitted:
    """EM for `users` people and their answers; K (n x n) is what utilities are like before anybody answered.

        m = sum mu_u / (U + kappa0)
        S = (nu0 K + sum (Sigma_u + d d') + kappa0 m m') / (U + nu0),  d = mu_u - m

    nu0 = 0, kappa0 = 0 is maximum likelihood, as Birlutiu et al. 2010 have it; nu0 > 0 the maximum a posteriori with an
    inverse-Wishart prior on S that counts as nu0 people (n where None); kappa0 > 0 keeps m near 0 as kappa0 people who
    are indifferent would: with few people of one mind m has no finite maximum otherwise. Steps end when m and the
    standard deviations of S move less than `tolerance`, or after `steps`. `start` and `sites`: where an earlier fit
    ended, to go on from there. Costs users x n^3 a sweep.
    """
    n = len(K)
    nu0 = float(n) if nu0 is None else float(nu0)
    mean, cov = (np.zeros(n), K) if start is None else (start.mean, start.cov)
    table = ready(rows, users, n)
    trace, moved = [], np.inf
    ahead, last = 1.0, np.zeros(n + n * n)
    for _ in range(steps if users + nu0 > 0.0 else 0):
        # A sweep is enough on the way: sites are kept, and the next step moves the prior anyhow
        people = infer_many(cov, mean, users, table, sites, width=width, lapse=lapse, tolerance=0.0, sweeps=SWEEPS)
        sites = people.sites
        trace.append(float(people.log_evidence.sum()))
        new_mean, new_cov = learned(K, people, nu0, kappa0)
        moved = float(max(np.abs(new_mean - mean).max(), np.abs(_sd(new_cov) - _sd(cov)).max()))
        if moved < tolerance:
            mean, cov = new_mean, new_cov
            break
        # Steps of EM are short and keep their direction, so they are lengthened while they do
        along = np.concatenate([new_mean - mean, (new_cov - cov).ravel()])
        ahead = min(GROW * ahead, FAR) if along @ last > 0.5 * np.linalg.norm(along) * np.linalg.norm(last) else 1.0
        last = along
        further = cov + ahead * (new_cov - cov)
        mean = mean + ahead * (new_mean - mean)
        cov = further if np.linalg.eigvalsh(further)[0] > 0.5 * np.linalg.eigvalsh(new_cov)[0] else new_cov
    people = infer_many(cov, mean, users, table, sites, width=width, lapse=lapse, tolerance=1e-6)
    trace.append(float(people.log_evidence.sum()))
    return Fitted(Population(mean, cov), people, np.array(trace), moved)


def learned(K: Array, people: Many, nu0: float, kappa0: float = 0.0) -> tuple[Array, Array]:
    """m (n,) and S (n x n) from the posteriors of people (at least one person, or nu0 > 0): one M step."""
    U = len(people.mean)
    m = people.mean.sum(axis=0) / max(U + kappa0, 1.0)
    d = people.mean - m
    S = (nu0 * K + people.cov.sum(axis=0) + d.T @ d + kappa0 * np.outer(m, m)) / (U + nu0)
    return m, 0.5 * (S + S.T)


def with_items(population: Population, K: Array, across: Array, own: Array) -> Population:
    """The population with q more items behind those it knows: K (n x n) of the known, `across` (n x q) of the known and
    the new, `own` (q x q) of the new. The new given the known is as the kernel has it; without features, each for
    itself."""
    n, q = across.shape
    A = np.linalg.lstsq(K, across, rcond=1e-10)[0].T  # K_new,known K^-1, K may be singular
    cov = np.empty((n + q, n + q))
    cov[:n, :n] = population.cov
    cov[n:, :n] = A @ population.cov
    cov[:n, n:] = cov[n:, :n].T
    cov[n:, n:] = A @ population.cov @ A.T + own - A @ across
    return Population(np.concatenate([population.mean, A @ population.mean]), 0.5 * (cov + cov.T))


def _sd(cov: Array) -> Array:
    return np.sqrt(cov.diagonal())
