"""What CP is compared with in [H12] section 6.1: each person alone (SU), and the hierarchical model of Birlutiu, Groot
and Heskes 2010 by EM as published (BI). Both by EP in the space of items."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from heedful.inference.collaborative.fitted import chance
from heedful.inference.gp.ep import Many, infer_many
from heedful.inference.gp.hierarchical import Population, maximise_population
from heedful.inference.gp.posterior import Posterior
from heedful.inference.gp.sites import Sites, ready
from heedful.inference.pairwise import PairRows

Array = npt.NDArray[np.float64]


class Individuals(NamedTuple):
    """A posterior over the items for each of U people, and the prior that they have in common."""

    people: Many
    population: Population
    cycles: int
    """sweeps of EP, or steps of EM"""
    moved: float

    def gap(self, user: Any, a: Any, b: Any) -> tuple[Array, Array]:
        """Mean and variance of f_u(a) - f_u(b): people and items, or arrays of them of one shape."""
        user, a, b = (np.asarray(x, np.int64) for x in (user, a, b))
        mean, cov = self.people.mean, self.people.cov
        v = (cov[user, a, a] - cov[user, a, b]) + (cov[user, b, b] - cov[user, b, a])
        return mean[user, a] - mean[user, b], np.maximum(v, 0.0)

    def predict_proba(self, user: Any, a: Any, b: Any) -> Array:
        """P(a beats b) of a person, the noise of the choice included."""
        return chance(*self.gap(user, a, b))

    def posterior(self, user: int) -> Posterior:
        return self.people.of(user)

    @property
    def log_evidence(self) -> float:
        return float(self.people.log_evidence.sum())


def fit_single(
    K: Array, users: int, rows: PairRows, *, width: Any = 0.0, lapse: Any = 0.0, sites: Sites | None = None
) -> Individuals:
    """SU: everybody alone, f_u ~ N(0, K), K (n x n). `sites`: of the first rows, where an earlier fit ended."""
    none = np.zeros(len(K))
    people = infer_many(K, none, users, rows, sites, width=width, lapse=lapse, tolerance=1e-6)
    return Individuals(people, Population(none, K), people.sites.sweeps, people.sites.moved)


def fit_birlutiu(
    K: Array,
    users: int,
    rows: PairRows,
    *,
    width: Any = 0.0,
    lapse: Any = 0.0,
    sites: Sites | None = None,
    steps: int = 20,
    tolerance: float = 1e-2,
) -> Individuals:
    """BI: f_u ~ N(m, S), m and S by EM from m = 0, S = K, the maximum of the likelihood, EP to its end in each step.

    As published: at most `steps`, until the means and covariances of all differences of two items move less than
    `tolerance`; the posteriors are those of the last E step. `heedful.inference.gp.hierarchical.fit` does better with a
    prior on S, and sooner.
    """
    n = len(K)
    mean, cov = np.zeros(n), K
    table = ready(rows, users, n)
    moved, done = np.inf, 0
    while True:
        people = infer_many(cov, mean, users, table, sites, width=width, lapse=lapse, tolerance=1e-9)
        sites, done = people.sites, done + 1
        new_mean, new_cov = maximise_population(K, people, 0.0)
        moved = max(_span(new_mean - mean), _widest(new_cov - cov))
        if moved < tolerance or done >= steps:
            return Individuals(people, Population(mean, cov), done, moved)
        mean, cov = new_mean, new_cov


def _span(m: Array) -> float:
    """The most that a difference of two moved."""
    return float(m.max() - m.min())


def _widest(S: Array) -> float:
    """The most a covariance of two differences moved, max |S_ac - S_ad - S_bc + S_bd|; of many items, a variance."""
    n = len(S)
    if n > 60:
        var = S.diagonal()
        return float(np.abs(var[:, None] + var - 2.0 * S).max())
    a, b = np.triu_indices(n, 1)
    rows = S[a] - S[b]
    return float(np.abs(rows[:, a] - rows[:, b]).max(initial=0.0))
