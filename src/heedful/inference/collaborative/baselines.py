"""Baselines of CP in [H12] section 6.1, both by EP in the space of items: SU fits each person alone; BI is the
hierarchical model of Birlutiu, Groot and Heskes (2010), fitted by EM.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from heedful.inference.gp.ep import UserPosteriors, infer_users
from heedful.inference.gp.hierarchical import Population, maximise_population
from heedful.inference.gp.posterior import Posterior, choice_probability, user_gap
from heedful.inference.gp.sites import Sites, make_table
from heedful.inference.pairwise import Index, PairRows

Array = npt.NDArray[np.float64]


class IndividualFit(NamedTuple):
    """The posteriors over the items for each of U people, and the prior that they share."""

    people: UserPosteriors
    population: Population
    cycles: int
    """sweeps of EP, or steps of EM"""
    moved: float

    def gap(self, user: Index, a: Index, b: Index) -> tuple[Array, Array]:
        """Return mean and variance of f_u(a) - f_u(b). `user`, `a`, `b`: numbers, or arrays of one shape, which the
        results have.
        """
        return user_gap(self.people.mean, self.people.cov, user, a, b)

    def predict_proba(self, user: Index, a: Index, b: Index) -> Array:
        """Return P(user prefers a to b), the noise of the answer included. Numbers, or arrays of one shape."""
        return choice_probability(*self.gap(user, a, b))

    def posterior(self, user: int) -> Posterior:
        """Return the posterior over the utilities (n,) of one user, with its covariance."""
        return self.people.of(user)

    @property
    def log_evidence(self) -> float:
        """Log marginal likelihood of all answers, in nats, as EP approximates it."""
        return float(self.people.log_evidence.sum())


def fit_single(
    K: Array,
    users: int,
    rows: PairRows,
    *,
    width: npt.ArrayLike = 0.0,
    lapse: npt.ArrayLike = 0.0,
    sites: Sites | None = None,
) -> IndividualFit:
    """Fit SU ([H12] section 6.1): each person alone, with the prior f_u ~ N(0, K).

    K (n x n): covariance of the items. `users`: how many people. `width` and `lapse` as in `infer_users`. `sites`:
    where an earlier fit of the first rows ended, to start from. Raise ValueError as `infer_users`.
    """
    none = np.zeros(len(K))
    people = infer_users(K, none, users, rows, sites, width=width, lapse=lapse, tolerance=1e-6)
    return IndividualFit(people, Population(none, K), people.sites.sweeps, people.sites.moved)


def fit_birlutiu(
    K: Array,
    users: int,
    rows: PairRows,
    *,
    width: npt.ArrayLike = 0.0,
    lapse: npt.ArrayLike = 0.0,
    sites: Sites | None = None,
    steps: int = 20,
    tolerance: float = 1e-2,
) -> IndividualFit:
    """Fit BI ([H12] section 6.1): f_u ~ N(m, S) with m and S by maximum likelihood, by EM from m = 0, S = K (n x n).

    Each step runs EP until it converges, as published. EM ends after `steps`, or once the means and covariances of all
    differences of two items move by less than `tolerance`; the posteriors are those of the last E step. `width`,
    `lapse`, `sites` as in `fit_single`. `heedful.inference.gp.hierarchical.fit` puts a prior on S, predicts better and
    is faster.
    """
    n = len(K)
    mean, cov = np.zeros(n), K
    table = make_table(rows, users, n)
    moved, done = np.inf, 0
    while True:
        people = infer_users(cov, mean, users, table, sites, width=width, lapse=lapse, tolerance=1e-9)
        sites, done = people.sites, done + 1
        new_mean, new_cov = maximise_population(K, people, 0.0)
        moved = max(_span(new_mean - mean), _widest(new_cov - cov))
        if moved < tolerance or done >= steps:
            return IndividualFit(people, Population(mean, cov), done, moved)
        mean, cov = new_mean, new_cov


def _span(m: Array) -> float:
    """Return the largest difference of two entries of m: the largest change of a difference of two means."""
    return float(m.max() - m.min())


def _widest(S: Array) -> float:
    """Return max |S_ac - S_ad - S_bc + S_bd|, the largest change of a covariance of two differences; with many
    items, the largest change of a variance of a difference.
    """
    n = len(S)
    if n > 60:
        var = S.diagonal()
        return float(np.abs(var[:, None] + var - 2.0 * S).max())
    a, b = np.triu_indices(n, 1)
    rows = S[a] - S[b]
    return float(np.abs(rows[:, a] - rows[:, b]).max(initial=0.0))
