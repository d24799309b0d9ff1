"""Hierarchical model of many people's utilities of the same items: f_u ~ N(m, S), with m and S learned from all
answers.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from heedful.inference.gp.ep import UserPosteriors, infer_users
from heedful.inference.gp.per_user_ep import (
    PerUserPosteriors,
    UserBatch,
    batches_of_users,
    infer_per_user,
    pull_sums,
)
from heedful.inference.gp.response_noise import (
    NoisePrior,
    ResponseNoise,
    improve_noise,
    initial_noise,
    random_probabilities,
)
from heedful.inference.gp.sites import Sites, make_table
from heedful.inference.pairwise import PairRows
from heedful.jit.kernel import Ints

Array = npt.NDArray[np.float64]

SWEEPS = 1
SMALL, FEW = 24, 0.8
"""The fit is over all n items if n <= SMALL, or if answers mention more than the fraction FEW of them; else only over
those that answers mention.
"""
SETTLED = 1e-3
"""EM may stop when a step raises the log evidence by less than this many nats per answer."""
GROW, FAR = 1.3, 8.0
"""EM is accelerated: while its steps keep their direction, each is lengthened GROW times as much as the one before, at
most FAR times in all.
"""


class Population(NamedTuple):
    """The distribution of people's utilities of n items, N(mean (n,), cov (n x n)); it is the prior of a new person."""

    mean: Array
    cov: Array


class HierarchicalFit(NamedTuple):
    """The result of `fit`: the `population` (mean and covariance of utilities), the posteriors of U `people`, and how
    EM went.

    `trace`: log evidence of all answers before each EM step, and at the end. `moved`: by how much the last step moved
    the mean or the standard deviation of a utility, at most. `noise`: as the arguments say or as learned.
    """

    population: Population
    people: UserPosteriors | PerUserPosteriors
    trace: Array
    moved: float
    noise: ResponseNoise


def fit(
    K: Array,
    users: int,
    rows: PairRows,
    *,
    nu0: float | None = None,
    kappa0: float = 0.0,
    start: Population | None = None,
    sites: Sites | None = None,
    width: npt.ArrayLike = 0.0,
    lapse: npt.ArrayLike = 0.0,
    noise: NoisePrior | None = None,
    steps: int = 30,
    tolerance: float = 1e-2,
) -> HierarchicalFit:
    """Fit m and S by EM to the answers `rows` of U = `users` people about n items; K (n x n) is the prior covariance of
    utilities.

            m = sum mu_u / (U + kappa0)
            S = (nu0 K + sum (Sigma_u + d d') + kappa0 m m') / (U + nu0),  d = mu_u - m

    mu_u and Sigma_u are EP's posterior of person u. nu0 = 0, kappa0 = 0 is maximum likelihood, as in Birlutiu et al.
    2010. nu0 > 0 is maximum a posteriori with an inverse-Wishart prior on S that counts as nu0 people (None: n). kappa0
    > 0 shrinks m to 0, as kappa0 indifferent people would; without it, a few people who all agree have no finite
    maximum.

    `width`, `lapse`: as in `infer_users`. With `noise`, the lapse rate of each person is learned too, and one tie width
    if `width` is above 0 or a tie occurs; learning starts from `width` and `lapse` where these are above 0, else from
    the mode of the prior. EM ends when m and the standard deviations of S move by less
    than `tolerance` and the evidence no longer rises, or after `steps`. `start` and `sites`: where an earlier fit
    ended.

    The cost is U q^3 per sweep, with q items that a person compares, and k^3 per step, with k items in answers. Given
    these, the other items are distributed as under N(0, K), so EM over all items would end at the same fit.
    """
    n = len(K)
    nu0 = float(n) if nu0 is None else float(nu0)
    mean, cov = (np.zeros(n), K) if start is None else (start.mean, start.cov)
    learning = _EMOptions(nu0, kappa0, noise, steps if users + nu0 > 0.0 else 0, tolerance)
    supposed = _initial_noise(rows, users, width, lapse, noise)
    compared = np.unique(rows.pairs)
    if n <= SMALL or compared.size > FEW * n:
        return _fit(K, users, rows, Population(mean, cov), sites, learning, supposed)
    part = rows._replace(pairs=np.searchsorted(compared, rows.pairs))
    block = np.ix_(compared, compared)
    fitted = _fit(K[block], users, part, Population(mean[compared], cov[block]), sites, learning, supposed)
    population = extend_population(fitted.population, K, compared)
    people = infer_per_user(
        population.cov, population.mean, users, rows, batches_of_users(rows, users), fitted.people.sites,
        width=fitted.noise.width, lapse=fitted.noise.lapse, tolerance=1e-6,
    )  # fmt: skip
    return fitted._replace(population=population, people=people)


class _EMOptions(NamedTuple):
    nu0: float
    kappa0: float
    noise: NoisePrior | None
    steps: int
    tolerance: float


def _initial_noise(
    rows: PairRows, users: int, width: npt.ArrayLike, lapse: npt.ArrayLike, prior: NoisePrior | None
) -> ResponseNoise:
    width, lapse = (np.broadcast_to(np.asarray(x, np.float64), (users,)).copy() for x in (width, lapse))
    noise = ResponseNoise(width, lapse, np.zeros(users))
    if prior is None:
        return noise
    first = initial_noise(rows, users, prior, bool((noise.width > 0.0).any()) or None)
    return first._replace(
        width=np.where(noise.width > 0.0, noise.width, first.width),
        lapse=np.where(noise.lapse > 0.0, noise.lapse, first.lapse),
    )


def _fit(
    K: Array,
    users: int,
    rows: PairRows,
    start: Population,
    sites: Sites | None,
    learning: _EMOptions,
    noise: ResponseNoise,
) -> HierarchicalFit:
    n = len(K)
    mean, cov = start
    parts = _cheaper_batches(rows, users, n)
    table = rows if parts else make_table(rows, users, n)

    def infer(tolerance: float, sweeps: int) -> UserPosteriors | PerUserPosteriors:
        how: dict[str, Any] = {"width": noise.width, "lapse": noise.lapse, "tolerance": tolerance, "sweeps": sweeps}
        if parts:
            return infer_per_user(cov, mean, users, rows, parts, sites, **how)
        return infer_users(cov, mean, users, table, sites, **how)

    trace, moved = [], np.inf
    ahead, last, length = 1.0, np.zeros(n + n * n), 0.0
    for _ in range(learning.steps):
        # One sweep is enough in each step: sites are kept, and the next step moves the prior in any case
        people = infer(0.0, SWEEPS)
        sites = people.sites
        trace.append(float(people.log_evidence.sum()))
        new_mean, new_cov = maximise_population(K, people, learning.nu0, learning.kappa0)
        moved = float(max(np.abs(new_mean - mean).max(initial=0.0), np.abs(_sd(new_cov) - _sd(cov)).max(initial=0.0)))
        if learning.noise is not None:
            noise, moved_too = improve_noise(rows, people.cavities, noise, learning.noise, shared=True)
            moved = max(moved, moved_too)
        if moved < learning.tolerance and len(trace) > 1 and trace[-1] - trace[-2] < SETTLED * rows.times.sum():
            mean, cov = new_mean, new_cov
            break
        # Steps of EM are short and mostly keep their direction; while they do, they are lengthened
        along = np.concatenate([new_mean - mean, (new_cov - cov).ravel()])
        before, length = length, float(np.linalg.norm(along))
        ahead = min(GROW * ahead, FAR) if along @ last > 0.5 * length * before else 1.0
        last = along
        mean = mean + ahead * (new_mean - mean)
        cov = _extrapolate(cov, new_cov, ahead)
    people = infer(1e-6, 500)
    trace.append(float(people.log_evidence.sum()))
    if learning.noise is not None:
        noise = noise._replace(random=random_probabilities(rows, people.log_evidence, noise, learning.noise))
    return HierarchicalFit(Population(mean, cov), people, np.array(trace), moved, noise)


def _cheaper_batches(rows: PairRows, users: int, n: int) -> tuple[UserBatch, ...]:
    """Return the people in batches where EP over the items that each compared is cheaper than over all n items."""
    parts = batches_of_users(rows, users) if n > SMALL else ()
    cost = sum(batch.people.size * batch.items.shape[1] ** 3 for batch in parts)
    return parts if cost < 0.6 * users * n**3 else ()


def _extrapolate(cov: Array, new: Array, ahead: float) -> Array:
    """Return cov + ahead (new - cov), an EM step lengthened `ahead` times; `new` if that is not positive definite."""
    if ahead == 1.0:
        return new
    further = cov + ahead * (new - cov)
    try:
        np.linalg.cholesky(further - 0.5 * new)
    except np.linalg.LinAlgError:
        return new
    return further


def maximise_population(
    K: Array, people: UserPosteriors | PerUserPosteriors, nu0: float, kappa0: float = 0.0
) -> tuple[Array, Array]:
    """Return mean m (n,) and covariance S (n x n) of a population's utilities of n items, given the posteriors of its
    people: one M step of EM.

    `K`, `nu0` and `kappa0` are as in `fit`. There must be at least one person, or nu0 > 0.
    """
    if isinstance(people, PerUserPosteriors):
        return _maximise_from_sums(K, people, nu0, kappa0)
    U = len(people.mean)
    m = people.mean.sum(axis=0) / max(U + kappa0, 1.0)
    d = people.mean - m
    S = (nu0 * K + people.cov.sum(axis=0) + d.T @ d + kappa0 * np.outer(m, m)) / (U + nu0)
    return m, 0.5 * (S + S.T)


def _maximise_from_sums(K: Array, people: PerUserPosteriors, nu0: float, kappa0: float) -> tuple[Array, Array]:
    """Do the M step of `maximise_population` for posteriors that are stored over only the items compared.

    With the old mean m and covariance S of the population, the posterior of person u has the mean mu_u = m + S a_u and
    the covariance Sigma_u = S - S W_u S, for a vector a_u and a matrix W_u. Let e be the new mean less m, and d = mu_u
    less the new mean; then Sigma_u + d d' = S - S W_u S + (S a_u - e) (S a_u - e)'. With A = sum (a_u a_u' - W_u) and p
    = S sum a_u over U people, the sum of this is U S + S A S - p e' - e p' + U e e', to which kappa0 m m' is added with
    the new m."""
    U, S, m = len(people.place), people.prior_cov, people.prior_mean
    a, A = pull_sums(people)
    pull = S @ a
    new = (U * m + pull) / max(U + kappa0, 1.0)
    factors = np.column_stack([pull, new - m, new])
    of_these = np.array([[0.0, -1.0, 0.0], [-1.0, U, 0.0], [0.0, 0.0, kappa0]])
    cov = S @ A @ S
    cov += factors @ of_these @ factors.T
    cov += U * S
    cov += nu0 * K
    cov += cov.T.copy()
    cov *= 0.5 / (U + nu0)
    return new, cov


def extend_population(population: Population, K: Array, compared: Ints) -> Population:
    """Return the population (mean and covariance of people's utilities) over all n items, from one over the q items
    with numbers `compared` (q,), rising.

    Given the utilities of these, those of the other items are distributed as under the prior N(0, K), K (n x n).
    """
    block = np.ix_(compared, compared)
    if K[compared].astype(bool).sum() == compared.size:  # items are independent
        mean, cov = np.zeros(len(K)), K.copy()
    else:
        B = _solve(K[block], K[compared]).T  # K_all,met K_met^-1
        mean = B @ population.mean
        cov = B @ (population.cov - K[block]) @ B.T
        cov += K
        cov = np.multiply(np.add(cov, cov.T), 0.5)
    mean[compared], cov[block] = population.mean, population.cov
    return Population(mean, cov)


def add_items(population: Population, K: Array, across: Array, own_cov: Array) -> Population:
    """Return the population (mean and covariance of people's utilities) with q new items appended to its n items.

    `K` (n x n): prior covariances of the old items; `across` (n x q): of old with new items; `own_cov` (q x q): of new
    items. Given the utilities of old items, those of new items are distributed as under the prior; without features
    they are independent.
    """
    n, q = across.shape
    A = _solve(K, across).T  # K_new,known K^-1
    cov = np.empty((n + q, n + q))
    cov[:n, :n] = population.cov
    cov[n:, :n] = A @ population.cov
    cov[:n, n:] = cov[n:, :n].T
    cov[n:, n:] = A @ population.cov @ A.T + own_cov - A @ across
    return Population(np.concatenate([population.mean, A @ population.mean]), 0.5 * (cov + cov.T))


def _solve(K: Array, across: Array) -> Array:
    """Return K^-1 `across` (n x q) for a symmetric `K` (n x n), with the pseudo-inverse where K is singular."""
    if not across.any():
        return np.zeros(across.shape)
    values, vectors = np.linalg.eigh(K)
    nonzero = values > 1e-13 * values[-1]
    basis = vectors[:, nonzero]
    return (basis / values[nonzero]) @ (basis.T @ across)  # type: ignore[no-any-return]


def _sd(cov: Array) -> Array:
    return np.sqrt(cov.diagonal())
