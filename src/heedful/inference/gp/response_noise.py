"""Response noise of each person: the lapse rate (how often they answer at random) and the tie width (how small a
perceived difference must be for two items to be called equally good).

Both are learned from the person's answers, as the maximum a posteriori under EP's evidence.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from heedful.inference.gp.ep import EPResult, extend_to_items, infer_users, likelihood_of, moments
from heedful.inference.gp.sites import Design, Sites, Table, make_table, sum_by
from heedful.inference.gp.tilted_moments import HALF_LOG_TAU
from heedful.inference.pairwise import PairRows
from heedful.jit.kernel import Ints

Array = npt.NDArray[np.float64]

MOST_LAPSES = 0.99
HALVINGS = 26
MOVES = 1e-3
"""Learning ends when no lapse rate or tie width moves by this much."""


class NoisePrior(NamedTuple):
    """Prior of the response noise of a person.

    The lapse rate has a Beta distribution with the parameters `a` and `b`. The tie width is log-normal, with median
    `width` and standard deviation `spread` of the logarithm. With probability `random` a person always answers at
    random.
    """

    a: float = 1.2
    b: float = 10.0
    width: float = 0.25
    spread: float = 0.7
    random: float = 0.05

    @property
    def lapse(self) -> float:
        """Mode of the prior of the lapse rate, the probability of a random answer."""
        return (self.a - 1.0) / max(self.a + self.b - 2.0, 1e-12)


PRIOR = NoisePrior()


class UserNoise(NamedTuple):
    """How noisily one person answers: tie `width` (0 if ties are not allowed), `lapse` rate, and `random`, P(all their
    answers are random)."""

    width: float
    lapse: float
    random: float


class ResponseNoise(NamedTuple):
    """How noisily each of U people answers, (U,) each, as in `UserNoise`."""

    width: Array
    lapse: Array
    random: Array

    def of(self, user: int) -> UserNoise:
        """Return that of one person."""
        return UserNoise(*(float(part[user]) for part in self))


def infer_with_noise(
    K: Array,
    prior_mean: Array,
    rows: PairRows | Design,
    prior: NoisePrior = PRIOR,
    *,
    ties: bool | None = None,
) -> tuple[EPResult, ResponseNoise]:
    """Infer the posterior of one person's utilities of n items by expectation propagation (EP), with the prior
    N(prior_mean (n,), K (n x n)), and learn at the same time how noisily they answer, with the prior `prior`.

    The width is learned if `ties` (None: if a tie occurs), else it is 0. EP and `improve_noise` alternate at most 30
    times.
    """
    comparisons = rows.rows if isinstance(rows, Design) else rows._replace(user=np.zeros(rows.size, np.int64))
    noise = initial_noise(comparisons, 1, prior, ties)
    part: PairRows | Design | Table = rows if isinstance(rows, Design) else comparisons
    block, mean, compared = K, prior_mean, np.arange(len(prior_mean))
    if isinstance(rows, PairRows):
        compared = np.unique(rows.pairs)
        block, mean = K[np.ix_(compared, compared)], prior_mean[compared]
        part = make_table(comparisons._replace(pairs=np.searchsorted(compared, rows.pairs)), 1, compared.size)
    sites: Sites | None = None
    for _ in range(30):
        posteriors = infer_users(block, mean, 1, part, sites, width=noise.width, lapse=noise.lapse, tolerance=1e-6)
        sites = posteriors.sites
        noise, moved = improve_noise(comparisons, posteriors.cavities, noise, prior)
        if moved < MOVES:
            break
    posteriors = infer_users(block, mean, 1, part, sites, width=noise.width, lapse=noise.lapse)
    noise = noise._replace(random=random_probabilities(comparisons, posteriors.log_evidence, noise, prior))
    return extend_to_items(posteriors, K, prior_mean, compared), noise


def initial_noise(rows: PairRows, users: int, prior: NoisePrior, ties: bool | None = None) -> ResponseNoise:
    """Return how noisily each of U = `users` people is assumed to answer before anything is learned, by the modes or
    medians of `prior`; tie widths are 0 unless `ties` (None: if a tie occurs in `rows`).
    """
    width = prior.width if (rows.equal.any() if ties is None else ties) else 0.0
    ones = np.ones(users)
    return ResponseNoise(width * ones, prior.lapse * ones, prior.random * ones)


def improve_noise(
    rows: PairRows, cavities: tuple[Array, Array], noise: ResponseNoise, prior: NoisePrior, *, shared: bool = False
) -> tuple[ResponseNoise, float]:
    """Do one step towards the maximum a posteriori of the noise; return the new noise and the largest change in it.

    `cavities`: means and variances, (p,) each, of the EP cavities of the p `rows` under the present `noise`; `prior`:
    of the noise; `shared`: whether all people have one tie width. The derivative of EP's evidence is that of the log Z
    of each row with its cavity fixed, so where a step moves nothing it is at a maximum. People who only give rankings
    have the lapse rate of the prior, because EP has no lapses in rankings.
    """
    alone = rows.group < 0
    lapse = _lapses(rows, cavities, noise, prior)
    width = noise.width
    if (width > 0.0).any():
        width = _widths(rows, cavities, noise._replace(lapse=lapse), prior, alone, shared)
    moved = np.abs(np.concatenate([lapse - noise.lapse, width - noise.width])).max(initial=0.0)
    return noise._replace(width=width, lapse=lapse), float(moved)


def _lapses(rows: PairRows, cavities: tuple[Array, Array], noise: ResponseNoise, prior: NoisePrior) -> Array:
    """Return the most probable lapse rate of each of U people (U,), by bisection on the log posterior's slope."""
    alone = rows.group < 0
    log_z, _, _ = moments(likelihood_of(rows, noise.width, np.zeros_like(noise.lapse)), *cavities)
    user, times, z = rows.user[alone], rows.times[alone], np.exp(log_z[alone])
    any_of = 1.0 / np.where(noise.width[user] > 0.0, 3.0, 2.0)
    low, high = np.zeros_like(noise.lapse), np.full_like(noise.lapse, MOST_LAPSES)
    for _ in range(HALVINGS):
        rate = 0.5 * (low + high)
        rates = rate[user]
        slope = sum_by(user, times * (any_of - z) / ((1.0 - rates) * z + rates * any_of), rate.size)
        slope += (prior.a - 1.0) / rate - (prior.b - 1.0) / (1.0 - rate)
        low, high = np.where(slope > 0.0, rate, low), np.where(slope > 0.0, high, rate)
    return 0.5 * (low + high)


def _widths(
    rows: PairRows,
    cavities: tuple[Array, Array],
    noise: ResponseNoise,
    prior: NoisePrior,
    alone: npt.NDArray[np.bool_],
    shared: bool,
) -> Array:
    """Return the most probable tie widths of U people (U,), one for all if `shared`, by bisection on the derivative."""
    from scipy.special import expit

    selected = np.flatnonzero(alone | rows.equal)
    user, times, tied, alone = rows.user[selected], rows.times[selected], rows.equal[selected], alone[selected]
    m, s = cavities[0][selected], np.sqrt(cavities[1][selected] + np.where(alone, 1.0, 0.0))
    rate = np.where(alone, noise.lapse[user], 0.0)
    with np.errstate(divide="ignore"):
        odds = np.log1p(-rate) - np.log(rate / 3.0)  # prior log odds that an answer is no lapse
    U = noise.width.size
    of = np.zeros(user.size, np.int64) if shared else user
    count = 1 if shared else U
    middle = float(np.log(prior.width))
    low, high = np.full(count, middle - 8.0 * prior.spread), np.full(count, middle + 8.0 * prior.spread)
    for _ in range(HALVINGS):
        log_width = 0.5 * (low + high)
        w = np.exp(log_width)[of]
        log_z, slope = _by_width(m, s, w, tied)
        slope = sum_by(of, times * expit(odds + log_z) * slope * w, count) - (log_width - middle) / prior.spread**2
        low, high = np.where(slope > 0.0, log_width, low), np.where(slope > 0.0, high, log_width)
    width: Array = np.exp(0.5 * (low + high))
    return np.full(U, width[0]) if shared else width


def _by_width(m: Array, s: Array, width: Array, tied: npt.NDArray[np.bool_]) -> tuple[Array, Array]:
    """Return log Z of p answers that are no lapse, and its derivative by their tie width, (p,) each; the arguments are
    those of `choice_moments`, and whether the answer is a tie."""
    from scipy.special import log_ndtr

    up, down, z = (width - np.abs(m)) / s, (-width - np.abs(m)) / s, (m - width) / s
    log_up = log_ndtr(up)
    log_z = np.where(tied, log_up + np.log(-np.expm1(log_ndtr(down) - log_up)), log_ndtr(z))
    at_up, at_down, at_z = (np.exp(-0.5 * x * x - HALF_LOG_TAU - log_z) for x in (up, down, z))
    return log_z, np.where(tied, at_up + at_down, -at_z) / s


def noise_slopes(
    rows: PairRows, cavities: tuple[Array, Array], noise: ResponseNoise, lapsing: npt.NDArray[np.bool_]
) -> tuple[float, float]:
    """Return the derivatives of the log evidence of all answers: by the logit of the lapse rate, and by the log tie
    width.

    The lapse rate is common to those of the p `rows` in the mask `lapsing` (p,), the tie width to all people.
    `cavities`: means and variances, (p,) each, of the EP cavities of the rows, held fixed; `noise`: the present noise.
    """
    alone = rows.group < 0
    log_z, _, _ = moments(likelihood_of(rows, noise.width, np.zeros_like(noise.lapse)), *cavities)
    rate, any_of = noise.lapse[rows.user], 1.0 / np.where(noise.width[rows.user] > 0.0, 3.0, 2.0)
    z = np.exp(log_z)
    mixed = (1.0 - rate) * z + rate * any_of
    by_rate = np.where(alone & lapsing, (any_of - z) / mixed * rate * (1.0 - rate), 0.0)
    lapse = float(rows.times @ by_rate)
    selected = np.flatnonzero((alone | rows.equal) & (noise.width[rows.user] > 0.0))
    if not selected.size:
        return lapse, 0.0
    m, s, w = (
        cavities[0][selected],
        np.sqrt(cavities[1][selected] + np.where(alone[selected], 1.0, 0.0)),
        noise.width[rows.user[selected]],
    )
    _, slope = _by_width(m, s, w, rows.equal[selected])
    not_lapsed = np.where(alone[selected], (1.0 - rate[selected]) * z[selected] / mixed[selected], 1.0)
    return lapse, float(rows.times[selected] @ (not_lapsed * slope * w))


# ---------------------------------------------------------------------------- who answers at random


def random_probabilities(rows: PairRows, log_evidence: Array, noise: ResponseNoise, prior: NoisePrior) -> Array:
    """Return for each of U people P(they always answer at random) (U,), by Bayes' rule with the prior `prior.random`.

    `log_evidence` (U,): log P(their answers `rows`) if they do not. People without answers have the prior probability.
    """
    from scipy.special import expit

    odds = np.log(prior.random / (1.0 - prior.random))
    sure: Array = expit(odds + random_log_odds(rows, log_evidence, noise))
    return sure


def random_log_odds(rows: PairRows, log_evidence: Array, noise: ResponseNoise) -> Array:
    """Return for each of U people (U,) the log likelihood ratio of answering always at random against the model.

    The arguments are those of `random_probabilities`; the tie widths tell who may answer "equally good".
    """
    from scipy.special import betaln

    alone, U = rows.group < 0, noise.lapse.size
    tied = sum_by(rows.user, np.where(alone & rows.equal, rows.times, 0.0), U)
    chosen = sum_by(rows.user, np.where(alone & ~rows.equal, rows.times, 0.0), U)
    guessed: Array = -chosen * np.log(2.0)
    # How often random answers are "equally good" is unknown: Beta(1, 2), a third on average
    guessed += np.where(noise.width > 0.0, betaln(1.0 + tied, 2.0 + chosen) - betaln(1.0, 2.0), 0.0)
    log_orders: dict[bytes, float] = {}
    for answer in _groups(rows):
        _, local = np.unique(rows.pairs[answer], return_inverse=True)
        equal = rows.equal[answer]
        key = local.tobytes() + equal.tobytes()
        if key not in log_orders:
            log_orders[key] = _log_orders(local.reshape(-1, 2), equal)
        guessed[rows.user[answer[0]]] -= rows.times[answer[0]] * log_orders[key]
    return guessed - log_evidence


def _groups(rows: PairRows) -> list[Ints]:
    [shared] = (rows.group >= 0).nonzero()
    shared = shared[rows.group[shared].argsort(kind="stable")]
    _, starts = np.unique(rows.group[shared], return_index=True)
    return np.split(shared, starts[1:]) if shared.size else []


def _log_orders(pairs: Ints, tied: npt.NDArray[np.bool_]) -> float:
    """Return the log of the number of answers of the same form as one answer of r pairs (r x 2), winner first."""
    n = int(pairs.max()) + 1
    level = np.zeros(n, np.int64)
    beaten = pairs[~tied]
    for _ in range(n):
        np.maximum.at(level, beaten[:, 1], level[beaten[:, 0]] + 1)
        for a, b in pairs[tied]:  # of one tier
            level[a] = level[b] = max(level[a], level[b])
    sizes = np.bincount(level)
    if sizes.size == 1:  # all tie; the other possible answers name one item as the best
        return math.log(n + 1)
    return math.lgamma(n + 1) - sum(math.lgamma(size + 1) for size in sizes.tolist())
