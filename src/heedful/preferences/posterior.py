"""What is believed of the utilities of items: a Gaussian, and what it says of choices among them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from heedful.kernel import Ints

Array = npt.NDArray[np.float64]

SAME = 1e-6
"""Utilities of a draw that are closer than this, in units of the largest standard deviation, are equally good."""


class Posterior(NamedTuple):
    """The utilities of n items: mean (n,), covariance (n x n). Only differences matter: a choice between a and b is
    Phi(f_a - f_b), so the unit of utility is the standard deviation of the noise of one choice."""

    mean: Array
    cov: Array

    def gap(self, a: Any, b: Any) -> tuple[Array, Array]:
        """Mean and variance of f_a - f_b, for items or arrays of items a and b (one shape)."""
        cov = self.cov
        v = (cov[a, a] - cov[a, b]) + (cov[b, b] - cov[b, a])  # so grouped, it is the same for b and a
        return self.mean[a] - self.mean[b], np.maximum(v, 0.0)

    def beats(self, a: Any, b: Any) -> Array:
        """P(a beats b) in the next choice, its noise included: Phi(m / sqrt(1 + v)); items or arrays of them."""
        from scipy.special import ndtr

        m, v = self.gap(a, b)
        return ndtr(m / np.sqrt(1.0 + v))  # type: ignore[no-any-return]

    def better(self, a: Any, b: Any) -> Array:
        """P(f_a > f_b), no noise of a choice included: how sure it is which is better; 1/2 where both are the same."""
        from scipy.special import ndtr

        m, v = self.gap(a, b)
        floor = (SAME * SAME) * max(float(self.cov.diagonal().max(initial=0.0)), np.finfo(float).tiny)
        return ndtr(m / np.sqrt(np.maximum(v, floor)))  # type: ignore[no-any-return]

    def ranking(self) -> Ints:
        """The items (n,), the highest mean first, ties to the lowest number."""
        return (-self.mean).argsort(kind="stable")

    def sd(self) -> Array:
        """Standard deviation of each utility (n,), the part that all items share taken out: that of f_i - mean f."""
        cov = self.cov - self.cov.mean(axis=0)
        centred = cov - cov.mean(axis=1, keepdims=True)
        return np.sqrt(np.maximum(centred.diagonal(), 0.0))  # type: ignore[no-any-return]

    def draws(self, count: int, seed: int = 0) -> Array:
        """Utilities drawn from the posterior (count x n); the covariance may be singular."""
        values, vectors = np.linalg.eigh(self.cov)
        root = vectors * np.sqrt(np.maximum(values, 0.0))
        rng = np.random.default_rng(seed)
        out: Array = self.mean + rng.standard_normal((count, self.mean.size)) @ root.T
        return out

    def best(self, count: int = 4000, seed: int = 0) -> Array:
        """P(each item is the best one) (n,), adding up to 1: its share of `count` seeded draws, so the standard error
        is at most .5 / sqrt(count), .008. Items that are as good as one another share."""
        f = self.draws(count, seed)
        spread = float(np.sqrt(max(self.cov.diagonal().max(initial=0.0), 0.0)))
        top = f >= f.max(axis=1, keepdims=True) - SAME * max(spread, 1e-12)
        return (top / top.sum(axis=1, keepdims=True)).mean(axis=0)  # type: ignore[no-any-return]

    def positions(self, count: int = 4000, seed: int = 0) -> Array:
        """P(item i is in position j) (n x n), the first position 0, from seeded draws; rows and columns add up to 1."""
        f = self.draws(count, seed)
        n = self.mean.size
        places = np.empty_like(f, dtype=np.int64)
        np.put_along_axis(places, (-f).argsort(axis=1, kind="stable"), np.arange(n)[None], axis=1)
        flat = (np.arange(n) * n + places).ravel()
        return np.bincount(flat, minlength=n * n).reshape(n, n) / count
