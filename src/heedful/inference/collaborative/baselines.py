"""Baselines of the collaborative model of [H12] section 6.1, both by expectation propagation (EP) on the utilities of
the items.

SU ("single user") fits each person alone. BI is the hierarchical model of Birlutiu, Groot and Heskes (2010), fitted by
EM. [H12] is Houlsby, Huszár, Ghahramani & Hernández-Lobato, *Collaborative Gaussian Processes for Preference Learning*,
NIPS 2012.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from heedful.inference.gp.ep import UserPosteriors, infer_users
from heedful.inference.gp.hierarchical import Population, maximise_population
from heedful.inference.gp.posterior import Posterior, PreferenceModel, user_gap
from heedful.inference.gp.sites import Sites, make_table
from heedful.inference.pairwise import Index, PairRows

Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class IndividualFit(PreferenceModel):
    """The result of a baseline: posteriors over the utilities of n items for each of U people, and their common prior.

    `moved`: the largest change in the last EP sweep (relative, of a site, the Gaussian factor of an answer) or EM step
    (of a mean or covariance of differences of two items)."""

    people: UserPosteriors
    population: Population
    cycles: int
    """number of EP sweeps (SU) or of EM steps (BI)"""
    moved: float

    def gap(self, user: Index, a: Index, b: Index) -> tuple[Array, Array]:
        return user_gap(self.people.mean, self.people.cov, user, a, b)

    def posterior(self, user: int) -> Posterior:
        """Return the posterior over the utilities (n,) of n items of a person."""
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
    sites: Sites | None = None,
) -> IndividualFit:
    """Fit the baseline SU ([H12] section 6.1): each of `users` people alone, with the prior f_u ~ N(0, K).

    `K` (n x n): covariance of the utilities of n items; `rows`: the answers. `sites`: where an earlier fit ended, on
    the first of these rows; None starts at 0. Raise ValueError if there are ties.
    """
    zeros = np.zeros(len(K))
    people = infer_users(K, zeros, users, rows, sites, tolerance=1e-6)
    return IndividualFit(people, Population(zeros, K), people.sites.sweeps, people.sites.moved)


def fit_birlutiu(
    K: Array,
    users: int,
    rows: PairRows,
    *,
    steps: int = 20,
    tolerance: float = 1e-2,
) -> IndividualFit:
    """Fit the baseline BI ([H12] section 6.1) to the answers `rows` of `users` people: the utilities of person u are
    f_u ~ N(m, S), where the mean m (n,) and covariance S (n x n) over n items are estimated by maximum likelihood.

    EM starts from m = 0 and S = `K` (n x n), and runs EP to convergence in each step, as published. It ends after
    `steps` steps, or once a step moves no mean and no covariance of differences of two items by `tolerance`. The
    posteriors that are returned are those of the last E step. Raise ValueError if there are ties.
    `heedful.inference.gp.hierarchical.fit` puts a prior on S, predicts better and is faster.
    """
    n = len(K)
    mean, cov = np.zeros(n), K
    table = make_table(rows, users, n)
    sites: Sites | None = None
    moved, done = np.inf, 0
    while True:
        people = infer_users(cov, mean, users, table, sites, tolerance=1e-9)
        sites, done = people.sites, done + 1
        new_mean, new_cov = maximise_population(K, people, 0.0)
        moved = max(_span(new_mean - mean), _widest(new_cov - cov))
        if moved < tolerance or done >= steps:
            return IndividualFit(people, Population(mean, cov), done, moved)
        mean, cov = new_mean, new_cov


def _span(m: Array) -> float:
    """Return the largest minus the smallest element of `m` (n,): the largest change of a difference of two means."""
    return float(m.max() - m.min())


def _widest(S: Array) -> float:
    """Return the largest |S_ac - S_ad - S_bc + S_bd| of `S` (n x n), with c = a and d = b above 60 items."""
    n = len(S)
    if n > 60:
        var = S.diagonal()
        return float(np.abs(var[:, None] + var - 2.0 * S).max())
    a, b = np.triu_indices(n, 1)
    rows = S[a] - S[b]
    return float(np.abs(rows[:, a] - rows[:, b]).max(initial=0.0))
