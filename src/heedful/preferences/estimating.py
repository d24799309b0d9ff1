"""What a table of choices says: of the one person who gave them, or of what people are like and of each."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from heedful.doors import finite_array, numbers
from heedful.preferences.answers import Answers
from heedful.preferences.ep import infer
from heedful.preferences.evidence import (
    AGAIN,
    KAPPA0,
    QUICK,
    Chosen,
    choose,
    chosen_rows,
    covariance,
    mean_of,
    some_of,
    told_of_mean,
)
from heedful.preferences.hierarchical import Population, fit
from heedful.preferences.noise import PRIOR, Noise, at_random, infer_with_noise
from heedful.preferences.people import infer_apart, people_of
from heedful.preferences.posterior import Posterior
from heedful.preferences.sites import Sites
from heedful.preferences.stopping import Seen
from heedful.preferences.table import Choices, rows_of

Array = npt.NDArray[np.float64]

MOST_ITEMS = 3_000
MOST_ITEMS_OF_MANY = 1_000
"""Items that are ranked at most; where what people are like is learned, too."""

HELD = 20_000_000
"""Numbers in the covariances of the people from whom m and S are learned, at most."""

NU0 = 4.0
"""The prior on S counts as so many people for each item: with few answers each, S would soon be far too wide."""


class Estimate(NamedTuple):
    """What is believed after a table of choices. Of one person (or all pooled): `posterior` is theirs. Of many:
    `population` is what people are like, N(m, S), and `posterior` what is believed of m."""

    choices: Choices
    rows: Answers
    K: Array
    """n x n; before anything was answered"""
    chosen: Chosen
    posterior: Posterior
    sites: Sites
    log_evidence: Array
    """of each person's answers"""
    noise: Noise
    """how each person answers"""
    population: Population | None = None
    learned_from: int = 0
    """how many people m and S were learned from; of more there are, the rest then count for m"""

    def prior(self) -> Population:
        """What is known of a person's utilities before they answer."""
        n = len(self.K)
        return Population(np.zeros(n), self.K) if self.population is None else self.population

    def new(self) -> Posterior:
        """Of somebody new: what people are like, and how uncertain that is."""
        if self.population is None:
            return self.posterior
        return Posterior(self.posterior.mean, self.population.cov + self.posterior.cov)

    def of(self, person: int) -> tuple[Posterior, Seen]:
        """What is believed of one person, and from which answers."""
        at = np.flatnonzero(self.rows.user == person)
        rows = chosen_rows(self.rows, at)._replace(user=np.zeros(at.size, np.int64))
        width, lapse = float(self.noise.width[person]), float(self.noise.lapse[person])
        if self.population is None:
            return self.posterior, Seen(rows, self.sites, width, lapse)
        sites = Sites(self.sites.tau[at], self.sites.nu[at])
        got = infer(self.population.cov, self.population.mean, rows, None, sites, width=width, lapse=lapse)
        return got.posterior, Seen(rows, got.sites, width, lapse)


def estimate(choices: Choices, X: Any = None) -> Estimate:
    """What is believed after these answers: of the one person who gave them; where several did, of what people are like
    and of each. `X` (n x d): features of the items.

    Hyperparameters and noise (lapses of each, the width of "equally good") are the likeliest, of the amplitude with a
    log-normal prior around AMPLITUDE: a number each, so with few answers what is believed is a little too sure of it.
    ValueError where there are fewer than two items, too many, or nothing was answered.
    """
    n, U = len(choices.items), len(choices.people)
    most = MOST_ITEMS if U == 1 else MOST_ITEMS_OF_MANY
    if not 2 <= n <= most:
        of_many = " where people are told apart" if most < n <= MOST_ITEMS else ""
        raise ValueError(f"items: wanted 2 to {most:,}{of_many}, got {n:,}")
    features = np.empty((n, 0)) if X is None else numbers("X", X, "2-dimensional numbers").astype(np.float64)
    finite_array("X", features, 2, features.shape[1] if features.ndim == 2 else 0)
    if len(features) != n:
        raise ValueError(f"X: wanted {n} rows, one for each item, got {len(features)}")
    rows = rows_of(choices)
    if not rows.size:
        raise ValueError("answers: wanted at least one that judges, got none")
    chosen = choose(features, U, rows, PRIOR.width, PRIOR.lapse)
    if U > 1:
        return _of_many(choices, rows, covariance(features, chosen), chosen)
    part, _ = some_of(rows, 1)
    K, mean = covariance(features, chosen), np.zeros(n)
    got, noise = infer_with_noise(K, mean, part)
    again = choose(features, U, rows, float(noise.width[0]), float(noise.lapse[0]), chosen)
    if abs(np.log(again.amplitude / chosen.amplitude)) > 0.1:
        chosen, K = again, covariance(features, again)
        got, noise = infer_with_noise(K, mean, part)
    if part is not rows:
        width, lapse = float(noise.width[0]), float(noise.lapse[0])
        sites = None
        for _ in range(AGAIN * AGAIN):
            got = infer(K, mean, rows, sites=sites, width=width, lapse=lapse, tolerance=1e-5, sweeps=QUICK)
            sites = got.sites
            if sites.moved <= 1e-5:
                break
        noise = noise._replace(random=at_random(rows, np.array([got.log_evidence]), noise, PRIOR))
    return Estimate(choices, rows, K, chosen, got.posterior, got.sites, np.array([got.log_evidence]), noise)


# ---------------------------------------------------------------------------- many people


def _of_many(choices: Choices, rows: Answers, K: Array, chosen: Chosen) -> Estimate:
    """m, S and noise by EM, from as many people as fit into memory; then m from all of them."""
    n, U = len(K), len(choices.people)
    rows = chosen_rows(rows, np.argsort(rows.user, kind="stable"))
    order = np.random.default_rng(0).permutation(U)
    some = np.sort(order[: max(int(np.searchsorted(np.cumsum(_held(rows, U, n)[order]), HELD)), 20)])
    part = chosen_rows(rows, np.isin(rows.user, some))
    part = part._replace(user=np.searchsorted(some, part.user))
    fitted = fit(K, some.size, part, nu0=NU0 * n, kappa0=KAPPA0, noise=PRIOR, steps=100)
    population, noise = fitted.population, Noise(*(np.full(U, np.median(x)) for x in fitted.noise))
    for whole, known in zip(noise, fitted.noise):
        whole[some] = known
    m, S = population
    precision, pull = np.zeros((n, n)), np.zeros(n)
    tau, nu, evidence = np.zeros(rows.size), np.zeros(rows.size), np.zeros(U)
    settled, sweeps = 0.0, 0
    for low in range(0, U, some.size):
        high = min(low + some.size, U)
        here = slice(*np.searchsorted(rows.user, [low, high]))
        of = chosen_rows(rows, here)
        of = of._replace(user=of.user - low)
        width, lapse, _ = (x[low:high] for x in noise)
        people = infer_apart(
            S, m, high - low, of, people_of(of, high - low), width=width, lapse=lapse, tolerance=1e-6, sweeps=200
        )
        tau[here], nu[here], evidence[low:high] = people.sites.tau, people.sites.nu, people.log_evidence
        settled, sweeps = max(settled, people.sites.moved), max(sweeps, people.sites.sweeps)
        more = told_of_mean(people)
        precision, pull = precision + more[0], pull + more[1]
    noise = noise._replace(random=at_random(rows, evidence, noise, PRIOR))
    sites = Sites(tau, nu, sweeps, settled)
    posterior = mean_of(S, precision, pull)
    return Estimate(choices, rows, K, chosen, posterior, sites, evidence, noise, population, some.size)


def _held(rows: Answers, users: int, n: int) -> Array:
    """How many numbers a person's covariance has (users,): of the items they met."""
    met = np.unique(np.repeat(rows.user, 2) * n + rows.pairs.ravel()) // n
    held: Array = np.square(np.bincount(met, minlength=users) + 4.0)
    return held
