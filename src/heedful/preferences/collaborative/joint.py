"""One Gaussian process over people and items at once: Bonilla, Guo and Sanner, NIPS 2010, BO in [H12]."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from heedful.doors import wanted_count
from heedful.preferences.answers import Answers
from heedful.preferences.collaborative.cells import part_of
from heedful.preferences.collaborative.crowds import features
from heedful.preferences.collaborative.distances import half_median, standardised
from heedful.preferences.collaborative.fitted import chance
from heedful.preferences.ep import Inferred, infer
from heedful.preferences.posterior import Posterior
from heedful.preferences.sites import Sites

Array = npt.NDArray[np.float64]

MOST = 6000
"""People times items, at most: all answers are one problem, and it costs the cube of these."""


class Joint(NamedTuple):
    """f(u, i) ~ GP(0, K_users (x) K_items) and what the answers made of it, for U people and n items."""

    inferred: Inferred
    users: int
    n: int

    def gap(self, user: Any, a: Any, b: Any) -> tuple[Array, Array]:
        """Mean and variance of f(u, a) - f(u, b): people and items, or arrays of them of one shape."""
        user, a, b = (np.asarray(x, np.int64) for x in (user, a, b))
        return self.inferred.posterior.gap(user * self.n + a, user * self.n + b)

    def predict_proba(self, user: Any, a: Any, b: Any) -> Array:
        """P(a beats b) of a person, the noise of the choice included."""
        return chance(*self.gap(user, a, b))

    def posterior(self, user: int) -> Posterior:
        own = slice(user * self.n, (user + 1) * self.n)
        return Posterior(self.inferred.posterior.mean[own], self.inferred.posterior.cov[own, own])

    @property
    def log_evidence(self) -> float:
        return self.inferred.log_evidence

    @property
    def cycles(self) -> int:
        return self.inferred.sites.sweeps

    @property
    def moved(self) -> float:
        return self.inferred.sites.moved


def fit_joint(
    K_items: Array, K_users: Array, rows: Answers, *, sites: Sites | None = None, tolerance: float = 1e-4
) -> Joint:
    """BO by EP: K_items (n x n), K_users (U x U), all answers together. Cubic in U n, so for up to MOST of them: people
    whose features are the same have the same utilities, but for what K_users has on its diagonal."""
    n, U = len(K_items), len(K_users)
    wanted_count("people times items", U * n, most=MOST)
    flat = rows._replace(pairs=rows.user[:, None] * n + rows.pairs, user=np.zeros(rows.size, np.int64))
    K: Array = np.kron(K_users, K_items).astype(np.float64, copy=False)
    return Joint(infer(K, np.zeros(U * n), flat, sites=sites, tolerance=tolerance), U, n)


class Scales(NamedTuple):
    """Hyper-parameters of BO: length-scales of the features of items (d,) and of people (q,), standardised; the
    standard deviation of utilities; what K_users has on its diagonal besides."""

    items: Array
    users: Array
    amplitude: float
    nugget: float

    def kernels(self, X: Array, Z: Array) -> tuple[Array, Array]:
        """K_items, K_users for standardised features X (n x d), Z (U x q)."""
        K_items = self.amplitude**2 * np.exp(-0.5 * _squares(X / self.items))
        return K_items, np.exp(-0.5 * _squares(Z / self.users)) + self.nugget * np.eye(len(Z))


def tune_joint(X: Any, Z: Any, rows: Answers, *, people: int = 25, steps: int = 30) -> Scales:
    """Automatic relevance determination: the Scales of the greatest evidence, from the answers of the first `people`.

    From the median length-scales, by L-BFGS on the logarithms with the exact gradient of the evidence of EP; at most
    `steps`. X (n x d) and Z (U x q): features of items and of all people; they are standardised, as `fit_joint` of the
    kernels needs them too.
    """
    from scipy.optimize import minimize

    X, Z = standardised(features("X", X)), standardised(features("Z", Z))
    wanted_count("people", people)
    d, q = X.shape[1], Z.shape[1]
    some = rows.user < people
    part = part_of(rows, some)
    own = Z[:people]
    held: dict[str, Sites | None] = {"sites": None}

    def loss(x: Array) -> tuple[float, Array]:
        value, slope, held["sites"] = evidence(_scales(x, d, q), X, own, part, held["sites"])
        return -value, -slope

    start = np.log(np.concatenate([np.full(d, half_median(X)), np.full(q, half_median(Z)), [1.0, 0.1]]))
    best = minimize(
        loss, start, jac=True, method="L-BFGS-B", bounds=[(-4.0, 5.0)] * start.size, options={"maxiter": steps}
    )
    return _scales(best.x, d, q)


def evidence(
    scales: Scales, X: Array, Z: Array, rows: Answers, sites: Sites | None = None
) -> tuple[float, Array, Sites]:
    """The log evidence of BO, its gradient by the logarithms of the scales (d + q + 2,), and the sites of EP."""
    K_items, K_users = scales.kernels(X, Z)
    fit = fit_joint(K_items, K_users, rows, sites=sites, tolerance=1e-6)
    U, n = len(Z), len(X)
    tau, nu = fit.inferred.sites.tau * rows.times, fit.inferred.sites.nu * rows.times
    a, b = (rows.user * n + rows.pairs[:, i] for i in (0, 1))
    T, h = np.zeros((U * n, U * n)), np.zeros(U * n)
    for i, j, sign in ((a, a, 1.0), (b, b, 1.0), (a, b, -1.0), (b, a, -1.0)):
        np.add.at(T, (i, j), sign * tau)
    np.add.at(h, a, nu)
    np.add.at(h, b, -nu)
    # d log Z / d theta = tr((r r' - W) dK) / 2 with W = (T^-1 + K)^-1: sites do not move it, they are stationary
    hold = np.linalg.solve(np.eye(U * n) + T @ np.kron(K_users, K_items), np.column_stack([T, h]))
    G = 0.5 * (np.outer(hold[:, -1], hold[:, -1]) - hold[:, :-1]).reshape(U, n, U, n)
    by_items = np.einsum("uivj,uv->ij", G, K_users)
    by_users = np.einsum("uivj,ij->uv", G, K_items)
    smooth = K_users - scales.nugget * np.eye(U)
    slope = [float((by_items * K_items * _square(X[:, k] / scales.items[k])).sum()) for k in range(X.shape[1])]
    slope += [float((by_users * smooth * _square(Z[:, k] / scales.users[k])).sum()) for k in range(Z.shape[1])]
    slope += [float(2.0 * (by_items * K_items).sum()), float(scales.nugget * np.trace(by_users))]
    return fit.log_evidence, np.array(slope), fit.inferred.sites


def _scales(x: Array, d: int, q: int) -> Scales:
    e = np.exp(x)
    return Scales(e[:d], e[d : d + q], float(e[d + q]), float(e[d + q + 1]))


def _square(x: Array) -> Array:
    return np.square(x[:, None] - x[None, :])


def _squares(X: Array) -> Array:
    return sum((_square(x) for x in X.T), np.zeros((len(X), len(X))))
