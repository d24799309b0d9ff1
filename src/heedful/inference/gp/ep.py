"""Expectation propagation (EP) for pairwise choices, in the space of items: [H12] Section 2 without a matrix over
pairs.

The preference kernel of [H12] is A K A', with A the incidence matrix of the pairs, so a site exp(-tau g^2 / 2 + nu g)
on g = f_a - f_b adds four entries to a matrix over the items. One sweep costs O(items^3 + pairs). It updates all sites
at once, with damping if their changes do not shrink, and has the same fixed point as the sequential sweep over the
matrix of pairs.

Rows of one answer share noise (`PairRows.group`). There the sites act on the perceived differences y = D f + e, with e
~ N(0, D D' / 2) integrated out exactly; each row says y > 0. So a ranking is one factor with shared noise, and EP
approximates its truncations row by row: with one row that is the plain choice to rounding, with several it is an
approximation.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from heedful.inference.gp.posterior import Posterior
from heedful.inference.gp.sites import (
    Design,
    Table,
    cavities,
    initial_sites,
    inverses,
    is_diagonal,
    log_scales,
    make_design,
    make_table,
    root,
    site_changes,
    site_steps,
    sum_by,
)
from heedful.inference.gp.sites import Sites as Sites
from heedful.inference.gp.tilted_moments import choice_moments, lapse_moments, tie_moments
from heedful.inference.pairwise import PairRows
from heedful.jit.kernel import Ints

Array = npt.NDArray[np.float64]

WIDENED = 1e-9
WIDENING, MOST_WIDENING = 10, 100
"""Sites may take negative precision if at least WIDENING sweeps are allowed; then up to MOST_WIDENING
sweeps are added.
"""

LEAST = 1e-2
"""The least eigenvalue of posterior precision relative to the prior: no direction may get more than 1 / LEAST times its
prior variance, because a wider posterior is far from Gaussian.
"""


class EPResult(NamedTuple):
    """The result of expectation propagation (EP) for one person: the `posterior` over utilities, the `sites` (the
    Gaussian factors of the answers, to start a later run from), and `log_evidence`, log P(answers).
    """

    posterior: Posterior
    sites: Sites
    log_evidence: float


class UserPosteriors(NamedTuple):
    """Posteriors of U people over the utilities f of the same n items: `mean` (U x n) and `cov` (U x n x n).

    `sites` are EP's Gaussian factors of the p comparisons. Those of a person together are exp(-d' T d / 2 + r' d), with
    d = f - prior mean, `T` (U x n x n) and `r` (U x n). `log_evidence` (U,) is log P(answers of the person), in nats.
    `cavities` are mean and variance, (p,) each, of the difference of utilities that a comparison is about, given
    everything except this comparison.
    """

    mean: Array
    cov: Array
    sites: Sites
    log_evidence: Array
    T: Array
    r: Array
    cavities: tuple[Array, Array]

    def of(self, user: int) -> Posterior:
        """Return the posterior of the person with number `user`."""
        return Posterior(self.mean[user], self.cov[user])


def infer_users(
    K: Array,
    prior_mean: Array,
    users: int,
    rows: PairRows | Table | Design,
    sites: Sites | None = None,
    *,
    width: npt.ArrayLike = 0.0,
    lapse: npt.ArrayLike = 0.0,
    tolerance: float = 1e-9,
    sweeps: int = 500,
) -> UserPosteriors:
    """Infer the posteriors over n items of U = `users` people by EP from their comparisons `rows`, independently of
    each other.

    The prior N(prior_mean, K) is common, prior_mean (n,) and K (n x n), or each person has one, and n items of their
    own: prior_mean (U x n), K (U x n x n). A `Table` or `Design` already made from the rows saves time.

    `width` and `lapse` are one number, or (U,). `width`: how much better an item must be perceived not to tie; 0 if
    ties are not allowed. `lapse`: probability of a random answer; rankings and best-of-k answers have no lapses,
    because their rows share noise. `sites`: where an earlier run ended, on the first of these rows. Sweeps end when no
    site moves by more than the fraction `tolerance`, or after `sweeps`.

    With lapses and contradicting answers the posterior may have several modes; the Gaussian found lies around one of
    them or covers several. Raise ValueError if there are ties and `width` is 0.
    """
    table = make_table(rows, users, K.shape[-1]) if isinstance(rows, PairRows) else rows
    rows, U = table.rows, table.U
    likelihood = likelihood_of(rows, np.broadcast_to(width, (U,)), np.broadcast_to(lapse, (U,)))
    L, user, p = root(K), rows.user, rows.size
    where = np.broadcast_to(prior_mean, (U, K.shape[-1]))
    tau, nu = initial_sites(sites, p)
    step, last, moved, done = np.ones(U), np.full(U, np.inf), np.zeros(U), 0
    wide = np.zeros(U, bool)
    if U == 1 and (tau < 0.0).any() and sweeps >= WIDENING:  # the earlier run ended with widened sites
        tau, nu, state, moved, wide = _widen(table, likelihood, L, where, tau, nu, moved, ~wide, tolerance)
    tau = np.where(wide[user], tau, np.maximum(tau, 0.0))
    while not wide.any():
        state = _gaussian(table, likelihood, L, where, tau, nu)
        if done >= sweeps or (done > 0 and (moved <= tolerance).all()) or p == 0:
            break
        # With lapses, a surprising answer can widen the posterior. Here a site may not: it only moves the mean
        to_tau, to_nu = site_steps(state.m, state.v, state.slope, np.maximum(state.bend, 0.0), tau, nu)
        moved = _largest_change(to_tau, to_nu, tau, nu, user, U)
        step = np.where(moved > 0.95 * last, np.maximum(0.5 * step, 0.05), np.minimum(1.05 * step, 1.0))
        last = moved
        tau, nu = tau + step[user] * to_tau, nu + step[user] * to_nu
        done += 1
    if not wide.any() and sweeps >= WIDENING:
        people = np.zeros(U, bool)
        people[user[state.bend < -WIDENED]] = True
        if people.any():
            tau, nu, state, moved, _ = _widen(table, likelihood, L, where, tau, nu, moved, people, tolerance)

    # log Z = sum of log (Z_p / what its site integrates to) + log of what the product of all sites integrates to
    m, v = state.m, state.v
    scale = log_scales(state.log_z, m, v, tau, nu)
    terms = np.vecdot(0.5 * (state.h + state.r), where) + 0.5 * np.einsum("ui,uij,uj->u", state.r, state.cov, state.r)
    terms += table.noise_evidence(tau, nu) - 0.5 * np.linalg.slogdet(state.B)[1]
    evidence = sum_by(user, rows.times * scale, U) + terms
    reached = Sites(tau, nu, done, float(moved.max(initial=0.0)))
    return UserPosteriors(state.mean, state.cov, reached, evidence, state.T, state.r, (m, v))


class _At(NamedTuple):
    """The Gaussians that the sites define for U people, and the moments of each row's likelihood over its cavity (m,
    v).

    `B` is I + L' T L for each person, where L L' is the prior covariance; the others are as in `UserPosteriors`."""

    T: Array
    h: Array
    B: Array
    cov: Array
    r: Array
    mean: Array
    m: Array
    v: Array
    log_z: Array
    slope: Array
    bend: Array


def _gaussian(table: Table | Design, likelihood: Likelihood, L: Array, prior_mean: Array, tau: Array, nu: Array) -> _At:
    T, h = table.natural(tau, nu)
    Lt = L.swapaxes(-1, -2)
    if is_diagonal(L):  # independent items: with a thousand of them, matrix products would take most of the time
        scale = L.diagonal()
        B = np.eye(scale.size) + scale[:, None] * T * scale
        cov = scale[:, None] * inverses(B) * scale
    else:
        B = np.eye(L.shape[-1]) + Lt @ T @ L
        cov = L @ np.linalg.inv(B) @ Lt
    cov = 0.5 * (cov + cov.transpose(0, 2, 1))
    r = h - (T @ prior_mean[:, :, None])[:, :, 0]
    mean = prior_mean + (cov @ r[:, :, None])[:, :, 0]
    m, v = table.site_marginals(mean, cov, tau, nu)
    m, v = cavities(m, v, tau, nu)
    return _At(T, h, B, cov, r, mean, m, v, *moments(likelihood, m, v))


def _largest_change(to_tau: Array, to_nu: Array, tau: Array, nu: Array, user: Ints, U: int) -> Array:
    moved = np.zeros(U)
    np.maximum.at(moved, user, site_changes(to_tau, to_nu, tau, nu))
    return moved


def _widen(
    table: Table | Design,
    likelihood: Likelihood,
    L: Array,
    prior_mean: Array,
    tau: Array,
    nu: Array,
    moved: Array,
    people: npt.NDArray[np.bool_],
    tolerance: float,
) -> tuple[Array, Array, _At, Array, npt.NDArray[np.bool_]]:
    """Continue EP, more accurately, with sites of negative precision for `people` (U,), as far as it converges."""
    user, U = table.rows.user, table.U
    Lt, one = L.swapaxes(-1, -2), np.eye(L.shape[-1])
    begun_tau, begun_nu = tau, nu
    going, settled = people.copy(), np.zeros(U, bool)
    step, last = np.full(U, 0.5), np.full(U, np.inf)
    state = _gaussian(table, likelihood, L, prior_mean, tau, nu)
    going &= np.linalg.eigvalsh(state.B)[:, 0] >= LEAST
    for _ in range(MOST_WIDENING):
        left = 1.0 - np.where(state.v > 0.0, tau * state.v / (1.0 + tau * state.v), 0.0)
        to_tau, to_nu = site_steps(state.m, state.v, state.slope, state.bend, tau, nu)
        now = _largest_change(to_tau, to_nu, tau, nu, user, U)
        improper = np.zeros(U, bool)
        improper[user[~((left > 0.0) & np.isfinite(to_tau) & np.isfinite(to_nu))]] = True
        done = going & (now <= tolerance) & ~improper
        settled, moved = settled | done, np.where(done, now, moved)
        going &= ~settled & ~improper
        if not going.any():
            break
        step = np.where(now > 0.95 * last, np.maximum(0.5 * step, 0.02), np.minimum(1.1 * step, 1.0))
        last = now
        length = np.where(going, step, 0.0)[user]
        for _ in range(4):  # shorten the step until the product of sites and prior is a Gaussian
            next_tau = tau + length * to_tau
            B = one + Lt @ table.natural(next_tau, nu)[0] @ L
            improper_now = np.linalg.eigvalsh(B)[:, 0] < LEAST
            if not (improper_now & going).any():
                break
            length = np.where(improper_now[user], 0.25 * length, length)
        going &= ~improper_now
        length = np.where(going[user], length, 0.0)
        tau, nu = tau + length * to_tau, nu + length * to_nu
        state = _gaussian(table, likelihood, L, prior_mean, tau, nu)
    back = ~settled[user]
    tau, nu = np.where(back, begun_tau, tau), np.where(back, begun_nu, nu)
    return tau, nu, _gaussian(table, likelihood, L, prior_mean, tau, nu), moved, settled


class Likelihood(NamedTuple):
    """The constants of the likelihood of p comparisons, from which `moments` computes.

    `width` (p,): the perceived difference below which items tie; `tied`, `lapsing`: indices of the rows that tie, and
    of those whose answer may be random."""

    width: Array
    noise: Array
    """(p,) noise variance that the site's quantity does not contain: 1 for an answer of its own, 0 in a group"""
    tied: Ints
    lapsing: Ints
    lapse: Array
    """(l,) probability that the answer is random"""
    kinds: Array
    """(l,) number of possible answers to choose from at random: 2, or 3 with ties"""


def likelihood_of(rows: PairRows, width: Array, lapse: Array) -> Likelihood:
    """Return the constants of the likelihood of `rows`, for the tie width (U,) and lapse rate (U,) of each of U people.

    Raise ValueError if there is a tie of a person with width 0.
    """
    grouped = rows.group >= 0
    # In an answer about several items a strict order needs no least difference, even if ties are allowed elsewhere
    widths = np.where(grouped & ~rows.equal, 0.0, width[rows.user])
    [tied] = rows.equal.nonzero()
    if not (widths[tied] > 0.0).all():
        raise ValueError("width: expected more than 0 where items are called equally good, got 0")
    [lapsing] = ((lapse[rows.user] > 0.0) & ~grouped).nonzero()
    kinds = np.where(widths[lapsing] > 0.0, 3.0, 2.0)
    return Likelihood(widths, np.where(grouped, 0.0, 1.0), tied, lapsing, lapse[rows.user[lapsing]], kinds)


def moments(of: Likelihood, m: Array, v: Array) -> tuple[Array, Array, Array]:
    """Return for each of p rows log Z, its first derivative by m, and minus its second derivative by m, (p,) each.

    Z is the integral of the row's likelihood over its cavity, N(m, v): the Gaussian over the row's difference of
    utilities without the row's own site. `m`, `v` (p,) are its means and variances; `of` are the constants of the
    likelihoods, made by `likelihood_of`.
    """
    s = np.sqrt(v + of.noise)
    out = choice_moments(m, s, of.width)
    if of.tied.size:
        k = of.tied
        for total, part in zip(out, tie_moments(m[k], s[k], of.width[k])):
            total[k] = part
    if of.lapsing.size:
        k = of.lapsing
        for total, part in zip(out, lapse_moments(out[0][k], out[1][k], out[2][k], of.lapse, of.kinds)):
            total[k] = part
    return out


def extend_to_items(posteriors: UserPosteriors, K: Array, prior_mean: Array, compared: Ints) -> EPResult:
    """Return the result for one person over all n items, from a result over only the q items that occur in the answers.

    `posteriors` is the latter, of one person (U = 1); `compared` (q,) are the numbers of the q items, rising. `K` (n x
    n) and `prior_mean` (n,) are the prior over all items.
    """
    posterior = posteriors.of(0)
    if compared.size < len(prior_mean):
        posterior = extend_posterior(
            K, prior_mean, K[:, compared], K[np.ix_(compared, compared)], posteriors.T[0], posteriors.r[0]
        )
    return EPResult(posterior, posteriors.sites, float(posteriors.log_evidence[0]))


def infer_rows(K: Array, D: Array, times: Array) -> EPResult:
    """Infer the posterior of n numbers f ~ N(0, K (n x n)) by EP from p observations that d . f > 0, each with
    probability Phi(d . f).

    `D` (p x n): the vectors d; `times` (p,): how often each was observed. f are weights of features and d the
    difference of the features of winner and loser.
    """
    design = make_design(D, times, np.zeros(len(D), bool))
    posteriors = infer_users(K, np.zeros(len(K)), 1, design)
    return EPResult(posteriors.of(0), posteriors.sites, float(posteriors.log_evidence[0]))


def extend_posterior(K: Array, prior_mean: Array, across: Array, within: Array, T: Array, r: Array) -> Posterior:
    """Return the posterior over the utilities f of n items, given answers about q items; the prior is N(`prior_mean`
    (n,), `K` (n x n)).

    `across` (n x q): prior covariances of the n items with the q items; `within` (q x q): those of the q items,
    possibly singular. The answers stand for the factor exp(-d' T d / 2 + r' d), `T` (q x q) and `r` (q,), where d are
    the utilities of the q items less their prior means.
    """
    hold = np.linalg.solve(np.eye(len(T)) + T @ within, np.column_stack([T, r]))  # among may be singular
    cov = K - across @ hold[:, :-1] @ across.T
    return Posterior(prior_mean + across @ hold[:, -1], 0.5 * (cov + cov.T))
