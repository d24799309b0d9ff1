"""Joint EP for the answers of several people: m ~ N(0, P) is the mean utility of a population, f_u ~ N(m, S) a
person's.

Given m people are independent, so of the Gaussian over m and all f_u only that of m (n x n) is stored. The answers of
person u give m a Gaussian message exp(-m' A_u m / 2 + b_u' m). With T_u, h_u the natural parameters of the person's
sites:

    A_u = (S + T_u^-1)^-1 = (I + T_u S)^-1 T_u,   b_u = (I + T_u S)^-1 h_u
    m | all answers: covariance V = (P^-1 + sum_u A_u)^-1, mean V sum_u b_u

A sweep removes the message of u, V_-u = (I - V A_u)^-1 V, and updates the sites of u under the remaining prior N(m_-u,
S + V_-u). It has the same fixed point as EP on one vector of all utilities of all people, and needs memory only for one
batch of people at a time.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from heedful.inference.gp.per_user_ep import UserBatch, batches_of_users
from heedful.inference.gp.posterior import Posterior
from heedful.inference.gp.sites import Sites, initial_sites, root, site_changes
from heedful.inference.pairwise import PairRows
from heedful.jit.kernel import Ints

Array = npt.NDArray[np.float64]

AT_ONCE, HELD = 2_000_000, 20_000_000
"""Limits of memory, in numbers: the covariances of the people who are updated together, and the messages of all people
that are kept for the next sweep. If there are more messages, they are computed again.
"""

DAMPED, LEAST_STEP = 0.95, 0.1
"""If the largest step of a site exceeds DAMPED times that of the last sweep, the damping factor is halved, down to
LEAST_STEP.
"""


class Message(NamedTuple):
    """A Gaussian factor exp(-m' A m / 2 + b' m), with A (n x n) and b (n,), for one person or summed over several; or,
    stacked for u people over q items each, A (u x q x q) and b (u x q)."""

    A: Array
    b: Array


class JointPosterior(NamedTuple):
    """The result of joint EP for U people with utilities f_u ~ N(m, S) of n items, and the prior m ~ N(0, P) of their
    mean.

    Evidences are in nats."""

    mean: Array
    """(n,) posterior mean of m"""
    cov: Array
    """(n x n) posterior covariance of m"""
    person_cov: Array
    """S (n x n)"""
    message: Message
    """sum of the messages of all people"""
    sites: Sites
    cavities: tuple[Array, Array]
    """mean and variance, (p,) each, of the difference of utilities of each of p rows, given all answers but this row"""
    log_evidence: float
    """log P(all answers), EP's approximation"""
    log_evidences: Array
    """(U,) log P(the answers of a person | the answers of all others)"""
    gradient: tuple[float, float]
    """derivatives of the log evidence by log a and log b, if the prior covariance P is scaled by a^2 and S by b^2"""
    apart: Array
    """(n x n) sum over people of E[g g'] - A_u, with g = b_u - A_u m: an EM step sets S to S + S apart S / U"""

    def average(self, users: int, message: Message | None = None) -> Posterior:
        """Return the posterior over the utilities (n,) of n items, averaged over `users` people.

        `message`: the sum of the messages of these people (`message_of`); None takes all people, and `users` is then U.
        """
        A, b = self.message if message is None else message
        S = self.person_cov
        shrunk = S @ A / users
        Q = np.eye(len(S)) - shrunk
        cov = Q @ self.cov @ Q.T + (S - shrunk @ S) / users
        return Posterior(Q @ self.mean + S @ b / users, 0.5 * (cov + cov.T))


def infer_joint(
    prior: Array,
    person_cov: Array,
    users: int,
    rows: PairRows,
    parts: tuple[UserBatch, ...],
    sites: Sites | None = None,
    *,
    width: Array,
    lapse: Array,
    tolerance: float = 1e-3,
) -> JointPosterior:
    """Run joint EP for U = `users` people and their p answers `rows` about n items, with the covariances P = `prior`
    and S = `person_cov` (n x n).

    `parts`: the people in batches, made by `user_batches`. Sweeps end after 100. The other arguments and the error are
    those of `infer_users`.
    """
    n, p = len(prior), rows.size
    L = root(prior)
    tau, nu = initial_sites(sites, p)
    tau = np.maximum(tau, 0.0)
    step, last, moved, done = 1.0, np.inf, np.inf, 0
    centre, spread, log_evidences = np.zeros(p), np.ones(p), np.zeros(users)
    keep = sum(batch.people.size * batch.items.shape[1] ** 2 for batch in parts) <= HELD
    while True:
        messages = [_messages(batch, person_cov, tau, nu) for batch in parts] if keep else None
        total = _sum_messages(n, parts, messages or (_messages(batch, person_cov, tau, nu) for batch in parts))
        V, m = _mean_of(L, total)
        if moved <= tolerance or done >= 100 or p == 0:
            break
        new_tau, new_nu = tau.copy(), nu.copy()
        for k, batch in enumerate(parts):
            message = messages[k] if messages else _messages(batch, person_cov, tau, nu)
            mean, cov = _cavity_priors(batch, m, V, person_cov, message)
            posteriors = batch.infer(mean, cov, (tau, nu), width, lapse, tolerance=0.0, sweeps=1)
            new_tau[batch.indices], new_nu[batch.indices] = posteriors.sites.tau, posteriors.sites.nu
        to_tau, to_nu = new_tau - tau, new_nu - nu
        moved = float(site_changes(to_tau, to_nu, tau, nu).max(initial=0.0))
        step = max(0.5 * step, LEAST_STEP) if moved > DAMPED * last else min(1.05 * step, 1.0)
        last = moved
        tau, nu = tau + step * to_tau, nu + step * to_nu
        done += 1
    evidence, apart = 0.0, np.zeros(n * n)
    for k, batch in enumerate(parts):
        message = messages[k] if messages else _messages(batch, person_cov, tau, nu)
        mean, cov = _cavity_priors(batch, m, V, person_cov, message)
        posteriors = batch.infer(mean, cov, (tau, nu), width, lapse, tolerance=0.0, sweeps=0)
        centre[batch.indices], spread[batch.indices] = posteriors.cavities
        log_evidences[batch.people] = posteriors.log_evidence
        between = cov - batch.prior(m, person_cov)[1]
        evidence += float((posteriors.log_evidence - _integral(between, mean, message)).sum())
        g = message.b - (message.A @ batch.prior(m, person_cov)[0][:, :, None])[:, :, 0]
        W = g[:, :, None] * g[:, None, :] + message.A @ _of_mean(batch, V) @ message.A - message.A
        apart += np.bincount(_places(batch, n), W.ravel(), n * n)
    square = apart.reshape(n, n)
    inner = np.eye(L.shape[1]) + L.T @ total.A @ L
    evidence += 0.5 * float(total.b @ V @ total.b) - 0.5 * float(np.linalg.slogdet(inner)[1])
    g = total.b - total.A @ m
    by_prior = float(g @ prior @ g - np.sum(prior * (total.A - total.A @ V @ total.A)))
    gradient = by_prior, float(np.sum(person_cov * square))
    return JointPosterior(
        m,
        V,
        person_cov,
        total,
        Sites(tau, nu, done, moved),
        (centre, spread),
        evidence,
        log_evidences,
        gradient,
        square,
    )


def user_batches(rows: PairRows, users: int) -> tuple[UserBatch, ...]:
    """Return the people with answers in batches (as `batches_of_users` makes them), so small that the covariances of a
    batch hold at most 2 million numbers."""
    out: list[UserBatch] = []
    for batch in batches_of_users(rows, users):
        out += batch.split(max(AT_ONCE // batch.items.shape[1] ** 2, 1))
    return tuple(out)


def message_of(person_cov: Array, parts: tuple[UserBatch, ...], tau: Array, nu: Array) -> Message:
    """Return what the answers of all people in the batches `parts` say about m, by the sites `tau`, `nu` (p,) of their
    p rows."""
    return _sum_messages(len(person_cov), parts, (_messages(batch, person_cov, tau, nu) for batch in parts))


def _sum_messages(n: int, parts: tuple[UserBatch, ...], messages: Iterable[Message]) -> Message:
    A, b = np.zeros(n * n), np.zeros(n)
    for batch, message in zip(parts, messages):
        A += np.bincount(_places(batch, n), message.A.ravel(), n * n)
        b += np.bincount(batch.items.ravel(), message.b.ravel(), n)
    return Message(A.reshape(n, n), b)


def person_prior(joint: JointPosterior, batch: UserBatch, tau: Array, nu: Array) -> Posterior:
    """Return the prior over the utilities of n items of the one person in `batch`, given the answers of all others: the
    message of the person's own sites `tau`, `nu` (p,) is included in `joint` and removed here."""
    message = _messages(batch, joint.person_cov, tau, nu)
    present = batch.present[0]
    compared, A, b = batch.items[0][present], message.A[0][np.ix_(present, present)], message.b[0][present]
    V, m = joint.cov, joint.mean
    hold = np.linalg.solve(
        np.eye(compared.size) - A @ V[np.ix_(compared, compared)], np.column_stack([A, A @ m[compared] - b])
    )
    cov = V + V[:, compared] @ hold[:, :-1] @ V[compared] + joint.person_cov
    return Posterior(m + V[:, compared] @ hold[:, -1], 0.5 * (cov + cov.T))


# ---------------------------------------------------------------------------- parts


def _messages(batch: UserBatch, person_cov: Array, tau: Array, nu: Array) -> Message:
    """Return what each person's answers say about m: Gaussian messages, A (u x q x q) and b (u x q), over q items."""
    T, h = batch.table.natural(tau[batch.indices], nu[batch.indices])
    S = batch.prior(np.zeros(len(person_cov)), person_cov)[1]
    both = np.linalg.solve(np.eye(T.shape[-1]) + T @ S, np.concatenate([T, h[:, :, None]], axis=2))
    A = both[:, :, :-1]
    return Message(0.5 * (A + A.swapaxes(1, 2)), both[:, :, -1])


def _cavity_priors(batch: UserBatch, m: Array, V: Array, person_cov: Array, message: Message) -> tuple[Array, Array]:
    """Return each person's utilities given all other people's answers: means (u x q), covariances (u x q x q)."""
    mean, S = batch.prior(m, person_cov)
    cov = _of_mean(batch, V)
    right = np.concatenate([cov, (mean - (cov @ message.b[:, :, None])[:, :, 0])[:, :, None]], axis=2)
    both = np.linalg.solve(np.eye(cov.shape[-1]) - cov @ message.A, right)
    without = both[:, :, :-1]
    return both[:, :, -1], S + 0.5 * (without + without.swapaxes(1, 2))


def _of_mean(batch: UserBatch, V: Array) -> Array:
    """Return the part of `V` (n x n) for the q items that each of u people compared (u x q x q); 0 in the padding."""
    present = batch.present[:, :, None] & batch.present[:, None, :]
    return np.where(present, V[batch.items[:, :, None], batch.items[:, None, :]], 0.0)


def _places(batch: UserBatch, n: int) -> Ints:
    return (batch.items[:, :, None] * n + batch.items[:, None, :]).ravel()


def _mean_of(L: Array, message: Message) -> tuple[Array, Array]:
    """Return the covariance (n x n) and mean (n,) of m ~ N(0, L L') given the factor exp(-m' A m / 2 + b' m)."""
    V = L @ np.linalg.solve(np.eye(L.shape[1]) + L.T @ message.A @ L, L.T)
    V = 0.5 * (V + V.T)
    return V, V @ message.b


def _integral(cov: Array, mean: Array, message: Message) -> Array:
    """Return for each of u people the log of the integral over m of N(m; mean, cov) exp(-m' A m / 2 + b' m) (u,)."""
    A, b = message
    pull = (A @ mean[:, :, None])[:, :, 0]
    hold = np.eye(cov.shape[-1]) + cov @ A
    moved = np.linalg.solve(hold, cov @ (b - pull)[:, :, None])[:, :, 0]
    out = 0.5 * np.vecdot(b - pull, moved) - 0.5 * np.linalg.slogdet(hold)[1]
    return out + np.vecdot(b - 0.5 * pull, mean)  # type: ignore[no-any-return]
