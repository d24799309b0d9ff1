"""One Gaussian process over people and items jointly (Bonilla, Guo and Sanner, NIPS 2010), a baseline called BO in
[H12].
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from heedful.core.validation import check_count
from heedful.inference.collaborative.distances import half_median, standardise
from heedful.inference.collaborative.priors import triangle
from heedful.inference.collaborative.user_covariance import features
from heedful.inference.gp.ep import likelihood_of, moments
from heedful.inference.gp.kernels import rbf
from heedful.inference.gp.posterior import Posterior, PreferenceModel, user_gap
from heedful.inference.gp.sites import (
    Sites,
    cavities,
    initial_sites,
    log_scales,
    make_table,
    root,
    site_changes,
    site_steps,
)
from heedful.inference.pairwise import Index, PairRows, take_rows

Array = npt.NDArray[np.float64]

MOST = 6000
"""The greatest number of people times items: the cost is cubic in it, since all answers are one problem."""

SWEEPS, PATIENCE = 500, 50
"""The greatest number of EP sweeps, and the number of first sweeps in which the damping factor is at least one half. On
the way to large sites the changes grow at first, and stronger damping would prolong that.
"""


@dataclass(frozen=True)
class JointGPFit(PreferenceModel):
    """The posterior of the utilities f(u, i) of n items i for U people u, with the prior GP(0, K_users (x) K_items).

    `mean` (U x n), `cov` (U x n x n) are those of each person's utilities; `log_evidence` is log P(answers), in nats.
    """

    mean: Array
    cov: Array
    sites: Sites
    log_evidence: float

    def gap(self, user: Index, a: Index, b: Index) -> tuple[Array, Array]:
        return user_gap(self.mean, self.cov, user, a, b)

    def posterior(self, user: int) -> Posterior:
        """Return the posterior over the utilities (n,) of n items of a person."""
        return Posterior(self.mean[user], self.cov[user])


def fit_joint(
    K_items: Array, K_users: Array, rows: PairRows, *, sites: Sites | None = None, tolerance: float = 1e-4
) -> JointGPFit:
    """Fit the joint Gaussian process over U people and n items (BO in [H12]) by EP to all answers `rows`.

    `K_items` (n x n), `K_users` (U x U): covariances of items and of people; people with the same features have the
    same utilities, but for the diagonal of K_users. `sites`: where an earlier fit ended, on the first of these rows.
    Sweeps end when no site moves by more than the fraction `tolerance`. The cost is cubic in U n: raise ValueError if
    that exceeds MOST (6000).

    Each site concerns one person, so only the diagonal blocks of the posterior covariance are needed: a sweep costs one
    Cholesky factor and its inverse. The result is that of `infer_users` for one person with people times items.
    """
    n, U = len(K_items), len(K_users)
    check_count("people times items", U * n, most=MOST)
    table, p = make_table(rows, U, n), rows.size
    likelihood, both = likelihood_of(rows, np.zeros(U), np.zeros(U)), _Product(root(K_users), root(K_items))
    tau, nu = initial_sites(sites, p)
    tau = np.maximum(tau, 0.0)
    step, last, moved, done = 1.0, np.inf, np.inf, 0
    while True:
        T, h = table.natural(tau, nu)
        mean, cov, log_det = both.under(T, h)
        m, v = table.site_marginals(mean, cov, tau, nu)
        m, v = cavities(m, v, tau, nu)
        log_z, slope, bend = moments(likelihood, m, v)
        if p == 0 or moved <= tolerance or done >= SWEEPS:
            break
        to_tau, to_nu = site_steps(m, v, slope, bend, tau, nu)
        moved = float(site_changes(to_tau, to_nu, tau, nu).max())
        least = 0.5 if done < PATIENCE else 0.05
        step = max(0.5 * step, least) if moved > 0.95 * last else min(1.05 * step, 1.0)
        last = moved
        tau, nu, done = tau + step * to_tau, nu + step * to_nu, done + 1
    evidence = float(rows.times @ log_scales(log_z, m, v, tau, nu)) + 0.5 * float((h * mean).sum()) - 0.5 * log_det
    evidence += float(table.noise_evidence(tau, nu).sum())
    return JointGPFit(mean, cov, Sites(tau, nu, done, moved if p else 0.0), evidence)


class _Product(NamedTuple):
    """The prior f = A Z B' of utilities (U x n), with standard normal Z (k x m), A A' = K_users and B B' = K_items."""

    A: Array
    B: Array

    def under(self, T: Array, h: Array) -> tuple[Array, Array, float]:
        """Return (means (U x n), covariances (U x n x n), log determinant of the precision of Z) given exp(-f' T f / 2
        + h' f)."""
        from scipy.linalg.lapack import dpotrf, dpotri, dpotrs

        (U, k), m = self.A.shape, self.B.shape[1]
        a, b = np.triu_indices(k)
        products = np.empty((a.size, U))
        triangle(np.ascontiguousarray(self.A.T), products)
        precision = np.zeros((k, m, k, m))  # only its lower triangle, and that of its inverse, is set and read
        precision[b, :, a, :] = (products @ (self.B.T @ T @ self.B).reshape(U, m * m)).reshape(-1, m, m)
        flat = precision.reshape(k * m, k * m)
        i = np.arange(k * m)
        flat[i, i] += 1.0
        upper, _ = dpotrf(flat.T, lower=0, overwrite_a=1)  # Fortran sees the transpose, an upper triangle
        log_det = 2.0 * float(np.log(upper.diagonal()).sum())
        z, _ = dpotrs(upper, (self.A.T @ h @ self.B).ravel(), lower=0)
        mean = self.A @ z.reshape(k, m) @ self.B.T
        inverse, _ = dpotri(upper, lower=0, overwrite_c=1)
        blocks = inverse.T.reshape(k, m, k, m)[b, :, a, :]
        diagonal = np.flatnonzero(a == b)
        lower = np.tril(blocks[diagonal])
        blocks[diagonal] = 0.5 * (lower + np.tril(lower, -1).transpose(0, 2, 1))
        half = self.B @ (products.T @ blocks.reshape(-1, m * m)).reshape(U, m, m) @ self.B.T
        return mean, half + half.transpose(0, 2, 1), log_det


class Scales(NamedTuple):
    """Hyperparameters of the joint Gaussian process over people and items.

    `items` (d,), `users` (q,): length-scales of the d standardised features of items and the q of people; `amplitude`:
    standard deviation of utilities; `nugget`: what is added to the diagonal of the covariance of people.
    """

    items: Array
    users: Array
    amplitude: float
    nugget: float

    def kernels(self, X: Array, Z: Array) -> tuple[Array, Array]:
        """Return the covariances of n items (n x n) and of U people (U x U), from their standardised features.

        X (n x d), Z (U x q): d features of items, q of people.
        """
        K_items = self.amplitude**2 * rbf(X / self.items, X / self.items)
        return K_items, rbf(Z / self.users, Z / self.users) + self.nugget * np.eye(len(Z))


def tune_joint(X: npt.ArrayLike, Z: npt.ArrayLike, rows: PairRows, *, people: int = 25, steps: int = 30) -> Scales:
    """Return the hyperparameters of the joint Gaussian process that maximise the evidence of the answers in `rows` by
    people 0 to `people` - 1.

    X (n x d), Z (U x q): d features of the n items and q of all U people, which are standardised here; standardise them
    for `Scales.kernels`, too. Each feature has a length-scale of its own (automatic relevance determination). L-BFGS on
    the logarithms, with the exact gradient of EP's evidence, takes at most `steps` steps from median length-scales.
    """
    from scipy.optimize import minimize

    X, Z = standardise(features("X", X)), standardise(features("Z", Z))
    check_count("people", people)
    d, q = X.shape[1], Z.shape[1]
    sampled = rows.user < people
    part = take_rows(rows, sampled)
    Z_sample = Z[:people]
    warm: dict[str, Sites | None] = {"sites": None}

    def loss(x: Array) -> tuple[float, Array]:
        value, slope, warm["sites"] = evidence(_scales(x, d, q), X, Z_sample, part, warm["sites"])
        return -value, -slope

    start = np.log(np.concatenate([np.full(d, half_median(X)), np.full(q, half_median(Z)), [1.0, 0.1]]))
    best = minimize(
        loss, start, jac=True, method="L-BFGS-B", bounds=[(-4.0, 5.0)] * start.size, options={"maxiter": steps}
    )
    return _scales(best.x, d, q)


def evidence(
    scales: Scales, X: Array, Z: Array, rows: PairRows, sites: Sites | None = None
) -> tuple[float, Array, Sites]:
    """Return the log evidence of the joint Gaussian process, its gradient by the logarithms of `scales`, and the EP
    sites.

    X (n x d), Z (U x q): d standardised features of n items, q of U people; the gradient is (d + q + 2,), in the order
    of the fields of `Scales`. `rows`: the answers; `sites`: where EP starts.
    """
    K_items, K_users = scales.kernels(X, Z)
    fit = fit_joint(K_items, K_users, rows, sites=sites, tolerance=1e-6)
    U, n = len(Z), len(X)
    of_one = rows._replace(user=0 * rows.user, pairs=rows.user[:, None] * n + rows.pairs)
    [T], [h] = make_table(of_one, 1, U * n).natural(fit.sites.tau, fit.sites.nu)
    # d log Z / d theta = tr((r r' - W) dK) / 2 with W = (T^-1 + K)^-1: the evidence is stationary in the sites
    hold = np.linalg.solve(np.eye(U * n) + T @ np.kron(K_users, K_items), np.column_stack([T, h]))
    G = 0.5 * (np.outer(hold[:, -1], hold[:, -1]) - hold[:, :-1]).reshape(U, n, U, n)
    by_items = np.einsum("uivj,uv->ij", G, K_users)
    by_users = np.einsum("uivj,ij->uv", G, K_items)
    smooth = K_users - scales.nugget * np.eye(U)
    slope = [float((by_items * K_items * _square(X[:, k] / scales.items[k])).sum()) for k in range(X.shape[1])]
    slope += [float((by_users * smooth * _square(Z[:, k] / scales.users[k])).sum()) for k in range(Z.shape[1])]
    slope += [float(2.0 * (by_items * K_items).sum()), float(scales.nugget * np.trace(by_users))]
    return fit.log_evidence, np.array(slope), fit.sites


def _scales(x: Array, d: int, q: int) -> Scales:
    e = np.exp(x)
    return Scales(e[:d], e[d : d + q], float(e[d + q]), float(e[d + q + 1]))


def _square(x: Array) -> Array:
    return np.square(x[:, None] - x[None, :])
