"""The collaborative model of [H12] sections 3 and 5, written in the space of pairs, one factor after the other, one
person, one pair, one function at a time. Slow, and imports nothing of ours.

A message is a pair (precision, precision times mean) a value; the paper's (m, v) are (second / first, 1 / first).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import log_ndtr
from scipy.stats import norm

Array = npt.NDArray[np.float64]


def preference_kernel(k: Array, left: Sequence[Any], right: Sequence[Any]) -> Array:
    """k_pref((i, j), (k, l)) = k(i, k) + k(j, l) - k(i, l) - k(j, k)."""
    return np.array([[k[i, m] + k[j, n] - k[i, n] - k[j, m] for m, n in right] for i, j in left])


def under_sites(K: Array, t: Array, n: Array) -> tuple[Array, Array, float]:
    """Mean and covariance of N(0, K) times sites exp(-t x^2 / 2 + n x); log of the integral. K may be singular."""
    B = np.eye(len(K)) + K * t
    S = np.linalg.solve(B, K)
    return S @ n, S, float(0.5 * n @ S @ n - 0.5 * np.linalg.slogdet(B)[1])


class EPVB:
    """Answers are (user, i, j): the user prefers i to j. K_users None: CP."""

    def __init__(
        self, k: Array, users: int, answers: Sequence[Any], D: int, K_users: Array | None, K_items: Array | None = None
    ) -> None:
        self.k, self.U, self.D = k, users, D
        self.pairs = sorted({(min(i, j), max(i, j)) for _, i, j in answers})
        self.P = len(self.pairs)
        self.rows = [(u, self.pairs.index((min(i, j), max(i, j))), 1.0 if i < j else -1.0) for u, i, j in answers]
        self.K_items = preference_kernel(k, self.pairs, self.pairs) if K_items is None else K_items
        self.K_users = np.eye(users) if K_users is None else K_users
        R = len(self.rows)
        self.f1 = [[0.0, 0.0] for _ in range(R)]
        self.f3 = np.array([[[1.0 / self.K_users[u, u], 0.0] for _ in range(D)] for u in range(users)])
        self.f4 = np.array([[[1.0 / self.K_items[i, i], 0.0] for i in range(self.P)] for _ in range(D)])
        self.f2g = [[1.0 / (D * self.K_users[u, u] * self.K_items[i, i]), 0.0] for u, i, _ in self.rows]
        self.f2w = np.zeros((users, D, 2))
        self.f2h = np.zeros((D, self.P, 2))
        self.mw = self.vw = self.mh = self.vh = None  # type: Any
        self.damping = 1.0

    def refine_f1(self) -> None:
        for r, (_, _, y) in enumerate(self.rows):
            m, v = self.f2g[r][1] / self.f2g[r][0], 1.0 / self.f2g[r][0]
            z = y * m / math.sqrt(1.0 + v)
            ratio = math.exp(norm.logpdf(z) - log_ndtr(z))
            mean = m + y * v * ratio / math.sqrt(1.0 + v)
            var = v - v * v * ratio / (1.0 + v) * (z + ratio)
            self.damp(self.f1[r], 1.0 / var - 1.0 / v, mean / var - m / v)

    def start(self) -> None:
        """Singular vectors of the table of the sites' means, 0 where nothing was answered."""
        T, N = np.zeros((self.U, self.P)), np.zeros((self.U, self.P))
        for (u, i, _), (t, n) in zip(self.rows, self.f1):
            T[u, i] += t
            N[u, i] += n
        M = np.where(T > 0, N / np.where(T > 0, T, 1.0), 0.0)
        left, s, right = np.linalg.svd(M, full_matrices=False)
        k = min(self.D, len(s))
        self.mw, self.mh = np.zeros((self.U, self.D)), np.zeros((self.D, self.P))
        self.mw[:, :k], self.mh[:k] = left[:, :k] * s[:k], right[:k]
        self.vw, self.vh = 1.0 / self.f3[:, :, 0], 1.0 / self.f4[:, :, 0]

    def variational_pass(self) -> None:
        """Minimise the KL of q against f1 f2 f3 f4's messages, of one weight, then of one value, after the other."""
        new_v = np.zeros_like(self.vw)
        for u in range(self.U):
            own = [(i, *self.f1[r]) for r, (who, i, _) in enumerate(self.rows) if who == u]
            for d in range(self.D):
                t, n = self.f3[u, d]
                for i, t1, n1 in own:
                    others = sum(self.mw[u, e] * self.mh[e, i] for e in range(self.D) if e != d)
                    t += t1 * (self.mh[d, i] ** 2 + self.vh[d, i])
                    n += self.mh[d, i] * (n1 - t1 * others)
                self.mw[u, d], new_v[u, d] = n / t, 1.0 / t
        self.vw = new_v
        new_v = np.zeros_like(self.vh)
        for i in range(self.P):
            own = [(u, *self.f1[r]) for r, (u, which, _) in enumerate(self.rows) if which == i]
            for d in range(self.D):
                t, n = self.f4[d, i]
                for u, t1, n1 in own:
                    others = sum(self.mw[u, e] * self.mh[e, i] for e in range(self.D) if e != d)
                    t += t1 * (self.mw[u, d] ** 2 + self.vw[u, d])
                    n += self.mw[u, d] * (n1 - t1 * others)
                self.mh[d, i], new_v[d, i] = n / t, 1.0 / t
        self.vh = new_v

    def product(self, u: int, i: int) -> tuple[float, float]:
        """Mean and variance of w_u . h_i."""
        w, s, h, c = self.mw[u], self.vw[u], self.mh[:, i], self.vh[:, i]
        return float(w @ h), float(sum(w * w * c + s * h * h + s * c))

    def refine_f2(self, passes: int) -> None:
        for _ in range(passes):
            self.variational_pass()
        for r, (u, i, _) in enumerate(self.rows):
            m, v = self.product(u, i)
            self.damp(self.f2g[r], 1.0 / v - self.f1[r][0], m / v - self.f1[r][1])
        for u in range(self.U):
            for d in range(self.D):
                v, (t, n) = self.vw[u, d], self.f3[u, d]
                self.damp(self.f2w[u, d], 1.0 / v - t, self.mw[u, d] / v - n)
        for i in range(self.P):
            for d in range(self.D):
                v, (t, n) = self.vh[d, i], self.f4[d, i]
                self.damp(self.f2h[d, i], 1.0 / v - t, self.mh[d, i] / v - n)

    def refine_f4(self) -> None:
        for d in range(self.D):
            t, n = self.f2h[d].T.copy()
            m, S, _ = under_sites(self.K_items, t, n)
            for i in range(self.P):
                self.damp(self.f4[d, i], 1.0 / S[i, i] - t[i], m[i] / S[i, i] - n[i])

    def refine_f3(self) -> None:
        for d in range(self.D):
            t, n = self.f2w[:, d].T.copy()
            m, S, _ = under_sites(self.K_users, t, n)
            for u in range(self.U):
                self.damp(self.f3[u, d], 1.0 / S[u, u] - t[u], m[u] / S[u, u] - n[u])

    def damp(self, message: Any, t: float, n: float) -> None:
        if t > 0:
            message[0] = self.damping * t + (1 - self.damping) * message[0]
            message[1] = self.damping * n + (1 - self.damping) * message[1]

    def cycles(self, count: int) -> None:
        for _ in range(count):
            self.refine_f1()
            first = self.mw is None
            if first:
                self.start()
            self.refine_f2(50 if first else 2)
            self.refine_f4()
            self.refine_f3()
            self.damping *= 0.98

    def predict(self, u: int, i: int, j: int) -> tuple[float, float]:
        """Eq. 7 and 8: mean and variance of g_u at a pair of items that may be new."""
        pairs = [*self.pairs, (i, j)]
        K = preference_kernel(self.k, pairs, pairs)
        mean = var = 0.0
        for d in range(self.D):
            t, n = np.append(self.f2h[d, :, 0], 0.0), np.append(self.f2h[d, :, 1], 0.0)
            m, S, _ = under_sites(K, t, n)
            w, s = self.mw[u, d], self.vw[u, d]
            mean += w * m[-1]
            var += w * w * S[-1, -1] + s * m[-1] ** 2 + s * S[-1, -1]
        return float(mean), float(var)

    def log_evidence(self) -> float:
        """log of the integral of the product of the messages, each scaled as its factor: s_a and all."""

        def normal(m: float, v: float, t: float, n: float) -> float:
            """log of the integral of N(m, v) exp(-t x^2 / 2 + n x)."""
            c = 1.0 / v + t
            return 0.5 * (n + m / v) ** 2 / c - 0.5 * m * m / v - 0.5 * math.log(v * c)

        total = 0.0
        for r, (u, i, y) in enumerate(self.rows):
            (t1, n1), (t2, n2) = self.f1[r], self.f2g[r]
            total += float(log_ndtr(y * n2 / t2 / math.sqrt(1.0 + 1.0 / t2))) - normal(n2 / t2, 1.0 / t2, t1, n1)
            m, v = self.product(u, i)
            total += n1 * m - 0.5 * t1 * (m * m + v)
        for means, variances, prior in ((self.mw, self.vw, self.f3), (self.mh, self.vh, self.f4)):
            for x, m in np.ndenumerate(means):
                t, n = prior[x]
                v = variances[x]
                total -= 0.5 * (t * (v + (m - n / t) ** 2) - 1.0 - math.log(v * t))
        for d in range(self.D):
            total += under_sites(self.K_items, *self.f2h[d].T)[2] + under_sites(self.K_users, *self.f2w[:, d].T)[2]
        for prior, message in ((self.f3, self.f2w), (self.f4, self.f2h)):
            for x in np.ndindex(prior.shape[:2]):
                (t, n), (s, k) = prior[x], message[x]
                total -= normal(n / t, 1.0 / t, s, k)
        return total


def birlutiu(k: Array, people: Sequence[Sequence[Any]], steps: int) -> tuple[Array, Array]:
    """Means and covariances (U x P x P) of everybody's g over all pairs i < j, the E step after steps - 1 M steps: the
    published EM over pairs, m = mean of the means, S = mean of (Sigma_u + d d'); people's answers (i, j), i wins."""
    n = len(k)
    pairs = [(i, j) for i in range(n) for j in range(i + 1, n)]
    m, S = np.zeros(len(pairs)), preference_kernel(k, pairs, pairs)
    for step in range(steps):
        means, covs = [], []
        for answers in people:
            at = [pairs.index((min(i, j), max(i, j))) for i, j in answers]
            signs = [1.0 if i < j else -1.0 for i, j in answers]
            t, v = classifier_sites(S[np.ix_(at, at)], m[at], signs)
            gain = np.linalg.solve(S[np.ix_(at, at)] + np.diag(1.0 / t), S[at]).T
            means.append(m + gain @ (v / t - m[at]))
            covs.append(S - gain @ S[at])
        if step < steps - 1:
            m = sum(means) / len(people)
            S = sum(c + np.outer(x - m, x - m) for x, c in zip(means, covs)) / len(people)
    return np.array(means), np.array(covs)


def classifier_sites(K: Array, m0: Array, y: Sequence[float]) -> tuple[Array, Array]:
    """EP for f ~ N(m0, K), labels y, P = Phi(y f), one after the other: sites' precisions and those times means."""
    p = len(y)
    t, n = np.zeros(p), np.zeros(p)
    for _ in range(300):
        old = t.copy(), n.copy()
        for i in range(p):
            S = np.linalg.solve(np.eye(p) + K * t, K)
            mu = m0 + S @ (n - t * m0)
            c = 1.0 / S[i, i] - t[i]
            m, v = (mu[i] / S[i, i] - n[i]) / c, 1.0 / c
            z = y[i] * m / math.sqrt(1.0 + v)
            ratio = math.exp(norm.logpdf(z) - log_ndtr(z))
            mean = m + y[i] * v * ratio / math.sqrt(1.0 + v)
            var = v - v * v * ratio / (1.0 + v) * (z + ratio)
            t[i], n[i] = 1.0 / var - 1.0 / v, mean / var - m / v
        if max(np.abs(t - old[0]).max(), np.abs(n - old[1]).max()) < 1e-13:
            break
    return t, n
