"""A plain Gaussian process classifier and what to ask it: BALD, MES and random on any labels, [H12] section 4.1."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from heedful.core.validation import describe
from heedful.inference.collaborative.fitted import chance
from heedful.inference.gp.acquisition import bald, mes
from heedful.inference.gp.ep import infer_rows
from heedful.inference.gp.posterior import Posterior
from heedful.inference.gp.sites import Sites

Array = npt.NDArray[np.float64]

RULES = ("bald", "mes", "random")


class Labelled(NamedTuple):
    """What is believed of f ~ GP(0, K) from labels at n inputs, P(y) = Phi(y f)."""

    posterior: Posterior
    """of f at the n inputs"""
    K: Array
    signs: Array
    """(n,) the labels, -1 or 1"""
    sites: Sites
    log_evidence: float

    def predict(self, across: Array, variance: Array) -> tuple[Array, Array]:
        """Mean and variance of f (m,) at m other inputs: their covariances with the inputs (m x n), their own prior
        variances (m,)."""
        T, r = np.diag(self.sites.tau), self.signs * self.sites.nu
        hold = np.linalg.solve(np.eye(len(T)) + T @ self.K, np.column_stack([T, r]))
        return across @ hold[:, -1], np.maximum(variance - np.einsum("mi,ij,mj->m", across, hold[:, :-1], across), 0.0)

    def predict_proba(self, across: Array, variance: Array) -> Array:
        """P(y = 1) at m other inputs (m,)."""
        return chance(*self.predict(across, variance))


def fit_labels(K: Array, y: npt.ArrayLike, times: npt.ArrayLike | None = None) -> Labelled:
    """EP for f ~ N(0, K), K (n x n), from labels y (n,), -1 or 1, each given so many times (n,), once where None."""
    signs = np.asarray(y, np.float64)
    if signs.shape != (len(K),) or not (np.abs(signs) == 1.0).all():
        raise ValueError(f"y: expected {len(K)} labels, each -1 or 1, got {describe(y)}")
    each = np.ones(signs.size) if times is None else np.asarray(times, np.float64)
    got = infer_rows(K, np.diag(signs), each)
    sites = got.sites._replace(tau=each * got.sites.tau, nu=each * got.sites.nu)
    return Labelled(got.posterior, K, signs, sites, got.log_evidence)


def worth_asking(mean: Array, var: Array, rule: str, rng: np.random.Generator | None = None) -> Array:
    """What a rule gives inputs with means and variances of f (m,): bits of "bald" or "mes", any numbers of "random".
    The next to ask is the one with the most, the first of equals."""
    if rule not in RULES:
        raise ValueError(f"rule: expected one of {', '.join(RULES)}, got {describe(rule)}")
    if rule == "random":
        if rng is None:
            raise ValueError("rng: expected a numpy.random.Generator for random questions, got None")
        return rng.random(np.shape(mean))
    return bald(mean, var) if rule == "bald" else mes(mean, var)
