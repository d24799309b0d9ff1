"""Joint EP over the mean utilities of a population and each person's own: m ~ N(0, P), f_u ~ N(m, S), and all answers.

Given m people are independent, so of the Gaussian over m and all f_u only that of m (n x n) is stored. Person u's
answers send m the message exp(-m' A_u m / 2 + b_u' m), with T_u, h_u the sites of their answers:

    A_u = (S + T_u^-1)^-1 = (I + T_u S)^-1 T_u,   b_u = (I + T_u S)^-1 h_u
    m | all: covariance V = (P^-1 + sum A_u)^-1, mean V sum b_u

A sweep takes u's message out, V_-u = (I - V A_u)^-1 V, and refreshes u's sites against the remaining prior N(m_-u, S +
V_-u). It ends where EP on one vector of all utilities of all people ends, in the memory of a batch of people.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from heedful.inference.gp.ep import infer_users
from heedful.inference.gp.per_user_ep import UserBatch, batches_of_users
from heedful.inference.gp.posterior import Posterior
from heedful.inference.gp.sites import Sites, initial_sites, root, site_changes
from heedful.inference.pairwise import PairRows
from heedful.jit.kernel import Ints

Array = npt.NDArray[np.float64]

AT_ONCE, HELD = 2_000_000, 20_000_000
"""The greatest number of entries in the covariances of the people who are refreshed at a time, and in the messages of
all people that are kept for the next sweep; larger messages are computed again."""

DAMPED, LEAST_STEP = 0.95, 0.1
"""If sites move by more than DAMPED times their move in the last sweep, the step is halved, down to LEAST_STEP."""


class Message(NamedTuple):
    """The message of answers to m: the factor exp(-m' A m / 2 + b' m), of one person or multiplied over several (A and
    b added).
    """

    A: Array
    b: Array


class JointPosterior(NamedTuple):
    """The Gaussian over m and the utilities of n items of U people, at which joint EP ends."""

    mean: Array
    """(n,) of m"""
    cov: Array
    """(n x n) of m"""
    own: Array
    """S (n x n)"""
    message: Message
    """of all people"""
    sites: Sites
    cavities: tuple[Array, Array]
    """mean and variance (p,) of what each answer is about, by all that is known but this answer"""
    log_evidence: float
    """log P(all answers)"""
    each: Array
    """(U,) log P(a person's answers | what all others said)"""
    gradient: tuple[float, float]
    """of the log evidence by log a and log b, where P = a^2 P_0, S = b^2 S_0"""
    apart: Array
    """(n x n) sum over people of E[g g'] - A_u with g = b_u - A_u m: S + S apart S / U is the next S of EM"""

    def average(self, users: int, message: Message | None = None) -> Posterior:
        """Return the posterior over the mean utilities (n,) of `users` people.

        `message`: the sum of the messages of these people; None means everybody.
        """
        A, b = self.message if message is None else message
        S = self.own
        shrunk = S @ A / users
        Q = np.eye(len(S)) - shrunk
        cov = Q @ self.cov @ Q.T + (S - shrunk @ S) / users
        return Posterior(Q @ self.mean + S @ b / users, 0.5 * (cov + cov.T))


def infer_joint(
    prior: Array,
    own: Array,
    users: int,
    rows: PairRows,
    parts: tuple[UserBatch, ...],
    sites: Sites | None = None,
    *,
    width: Array,
    lapse: Array,
    tolerance: float = 1e-3,
    sweeps: int = 100,
) -> JointPosterior:
    """Run joint EP for `users` people with answers `rows` about n items, with prior covariances P (`prior`) of m
    and S (`own`) of f_u - m (n x n).

    `width`, `lapse` (U,) as in `infer_users`; `parts`: the people in batches, from `user_batches`; `sites`: where an
    earlier run on the same rows ended. Sweeps end when no site moves by more than `tolerance`, as a share, or after
    `sweeps`.
    """
    n, p = len(prior), rows.size
    L = root(prior)
    tau, nu = initial_sites(sites, p)
    tau = np.maximum(tau, 0.0)
    step, last, moved, done = 1.0, np.inf, np.inf, 0
    centre, spread, each = np.zeros(p), np.ones(p), np.zeros(users)
    keep = sum(few.who.size * few.items.shape[1] ** 2 for few in parts) <= HELD
    while True:
        messages = [_messages(few, own, tau, nu) for few in parts] if keep else None
        whole = _sum_messages(n, parts, messages or (_messages(few, own, tau, nu) for few in parts))
        V, m = _mean_of(L, whole)
        if moved <= tolerance or done >= sweeps or p == 0:
            break
        new_tau, new_nu = tau.copy(), nu.copy()
        for k, few in enumerate(parts):
            message = messages[k] if messages else _messages(few, own, tau, nu)
            mean, cov = _cavity_priors(few, m, V, own, message)
            many = few.infer(mean, cov, (tau, nu), width, lapse, tolerance=0.0, sweeps=1)
            new_tau[few.at], new_nu[few.at] = many.sites.tau, many.sites.nu
        to_tau, to_nu = new_tau - tau, new_nu - nu
        moved = float(site_changes(to_tau, to_nu, tau, nu).max(initial=0.0))
        step = max(0.5 * step, LEAST_STEP) if moved > DAMPED * last else min(1.05 * step, 1.0)
        last = moved
        tau, nu = tau + step * to_tau, nu + step * to_nu
        done += 1
    evidence, apart = 0.0, np.zeros(n * n)
    for k, few in enumerate(parts):
        message = messages[k] if messages else _messages(few, own, tau, nu)
        mean, cov = _cavity_priors(few, m, V, own, message)
        many = infer_users(
            cov, mean, few.who.size, few.table, Sites(tau[few.at], nu[few.at]),
            width=width[few.who], lapse=lapse[few.who], sweeps=0,
        )  # fmt: skip
        centre[few.at], spread[few.at] = many.cavities
        each[few.who] = many.log_evidence
        between = cov - few.prior(m, own)[1]
        evidence += float((many.log_evidence - _integral(between, mean, message)).sum())
        g = message.b - (message.A @ few.prior(m, own)[0][:, :, None])[:, :, 0]
        W = g[:, :, None] * g[:, None, :] + message.A @ _of_mean(few, V) @ message.A - message.A
        apart += np.bincount(_places(few, n), W.ravel(), n * n)
    square = apart.reshape(n, n)
    inner = np.eye(L.shape[1]) + L.T @ whole.A @ L
    evidence += 0.5 * float(whole.b @ V @ whole.b) - 0.5 * float(np.linalg.slogdet(inner)[1])
    g = whole.b - whole.A @ m
    by_prior = float(g @ prior @ g - np.sum(prior * (whole.A - whole.A @ V @ whole.A)))
    gradient = by_prior, float(np.sum(own * square))
    return JointPosterior(
        m, V, own, whole, Sites(tau, nu, done, moved), (centre, spread), evidence, each, gradient, square
    )


def user_batches(rows: PairRows, users: int) -> tuple[UserBatch, ...]:
    """Return the batches of `batches_of_users`, split so that the covariances of each have at most AT_ONCE numbers."""
    out: list[UserBatch] = []
    for few in batches_of_users(rows, users):
        out += few.split(max(AT_ONCE // few.items.shape[1] ** 2, 1))
    return tuple(out)


def message_of(own: Array, parts: tuple[UserBatch, ...], tau: Array, nu: Array) -> Message:
    """Return the sum of the Gaussian messages that all people in `parts` send about the mean m of their utilities:
    precision A (n x n) and precision times mean b (n,). `own` (n x n) is the covariance of a person around m; tau, nu
    (p,) are the precisions, and precisions times means, of the sites."""
    return _sum_messages(len(own), parts, (_messages(few, own, tau, nu) for few in parts))


def _sum_messages(n: int, parts: tuple[UserBatch, ...], messages: Iterable[Message]) -> Message:
    A, b = np.zeros(n * n), np.zeros(n)
    for few, message in zip(parts, messages):
        A += np.bincount(_places(few, n), message.A.ravel(), n * n)
        b += np.bincount(few.items.ravel(), message.b.ravel(), n)
    return Message(A.reshape(n, n), b)


def person_prior(joint: JointPosterior, few: UserBatch, tau: Array, nu: Array) -> Posterior:
    """Return the prior over the n items of the single person in `few`, before their own answers.

    It is N(m, S) with the posterior of m given the answers of all others, which is `joint` without this person's
    message.
    """
    message = _messages(few, joint.own, tau, nu)
    there = few.there[0]
    met, A, b = few.items[0][there], message.A[0][np.ix_(there, there)], message.b[0][there]
    V, m = joint.cov, joint.mean
    hold = np.linalg.solve(np.eye(met.size) - A @ V[np.ix_(met, met)], np.column_stack([A, A @ m[met] - b]))
    cov = V + V[:, met] @ hold[:, :-1] @ V[met] + joint.own
    return Posterior(m + V[:, met] @ hold[:, -1], 0.5 * (cov + cov.T))


# ---------------------------------------------------------------------------- parts


def _messages(few: UserBatch, own: Array, tau: Array, nu: Array) -> Message:
    """Return each person's message about m, over the items they met: A (u x q x q), b (u x q)."""
    T, h = few.table.natural(tau[few.at], nu[few.at])
    S = few.prior(np.zeros(len(own)), own)[1]
    both = np.linalg.solve(np.eye(T.shape[-1]) + T @ S, np.concatenate([T, h[:, :, None]], axis=2))
    A = both[:, :, :-1]
    return Message(0.5 * (A + A.swapaxes(1, 2)), both[:, :, -1])


def _cavity_priors(few: UserBatch, m: Array, V: Array, own: Array, message: Message) -> tuple[Array, Array]:
    """Return the prior of each person's utilities given all others' answers: means (u x q), covariances (u x q x q)."""
    mean, S = few.prior(m, own)
    cov = _of_mean(few, V)
    right = np.concatenate([cov, (mean - (cov @ message.b[:, :, None])[:, :, 0])[:, :, None]], axis=2)
    both = np.linalg.solve(np.eye(cov.shape[-1]) - cov @ message.A, right)
    without = both[:, :, :-1]
    return both[:, :, -1], S + 0.5 * (without + without.swapaxes(1, 2))


def _of_mean(few: UserBatch, V: Array) -> Array:
    """Return the part of V (n x n) for the items each person met (u x q x q), with 0 in the padding."""
    there = few.there[:, :, None] & few.there[:, None, :]
    return np.where(there, V[few.items[:, :, None], few.items[:, None, :]], 0.0)


def _places(few: UserBatch, n: int) -> Ints:
    return (few.items[:, :, None] * n + few.items[:, None, :]).ravel()


def _mean_of(L: Array, message: Message) -> tuple[Array, Array]:
    """Return the covariance V and mean of m, with the prior N(0, L L')."""
    V = L @ np.linalg.solve(np.eye(L.shape[1]) + L.T @ message.A @ L, L.T)
    V = 0.5 * (V + V.T)
    return V, V @ message.b


def _integral(cov: Array, mean: Array, message: Message) -> Array:
    """Return the log integral of N(m; mean, cov) exp(-m' A m / 2 + b' m) (u,)."""
    A, b = message
    pull = (A @ mean[:, :, None])[:, :, 0]
    hold = np.eye(cov.shape[-1]) + cov @ A
    moved = np.linalg.solve(hold, cov @ (b - pull)[:, :, None])[:, :, 0]
    out = 0.5 * np.vecdot(b - pull, moved) - 0.5 * np.linalg.slogdet(hold)[1]
    return out + np.vecdot(b - 0.5 * pull, mean)  # type: ignore[no-any-return]
