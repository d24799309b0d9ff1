"""Gaussian process classification of binary labels by EP: [H12] section 4.1."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from heedful.core.validation import describe
from heedful.inference.gp.ep import infer_rows
from heedful.inference.gp.posterior import Posterior
from heedful.inference.gp.sites import Sites

Array = npt.NDArray[np.float64]


class LabelPosterior(NamedTuple):
    """The posterior of a latent function f ~ GP(0, K) given binary labels at n inputs, with P(label y) = Phi(y f), y =
    -1 or 1.

    `K` (n x n) is their prior covariance, `sites` EP's Gaussian factors of the labels, and `log_evidence` is log
    P(labels), in nats."""

    posterior: Posterior
    """over f at the n inputs"""
    K: Array
    signs: Array
    """(n,) the labels, -1 or 1"""
    sites: Sites
    log_evidence: float

    def predict(self, across: Array, variance: Array) -> tuple[Array, Array]:
        """Return the posterior mean and variance of the latent function f at m new inputs, (m,) each.

        `across` (m x n) are their prior covariances with the n labelled inputs, `variance` (m,) their prior variances.
        """
        T, r = np.diag(self.sites.tau), self.signs * self.sites.nu
        hold = np.linalg.solve(np.eye(len(T)) + T @ self.K, np.column_stack([T, r]))
        return across @ hold[:, -1], np.maximum(variance - np.einsum("mi,ij,mj->m", across, hold[:, :-1], across), 0.0)


def fit_labels(K: Array, y: npt.ArrayLike) -> LabelPosterior:
    """Return the posterior of a latent function f at n inputs, given their labels `y` (n,) of -1 or 1, by EP.

    The prior is f ~ N(0, `K`), K (n x n), and P(label y) = Phi(y f). Raise ValueError if `y` is not n labels.
    """
    signs = np.asarray(y, np.float64)
    if signs.shape != (len(K),) or not (np.abs(signs) == 1.0).all():
        raise ValueError(f"y: expected {len(K)} labels, each -1 or 1, got {describe(y)}")
    result = infer_rows(K, np.diag(signs), np.ones(signs.size))
    return LabelPosterior(result.posterior, K, signs, result.sites, result.log_evidence)
