"""Posterior over utilities with uncertain hyperparameters: a mixture of a few Gaussians."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from heedful.inference.gp.posterior import Posterior
from heedful.inference.pairwise import Index
from heedful.jit.kernel import Ints

Array = npt.NDArray[np.float64]


class Mixture(NamedTuple):
    """A posterior over the utilities of n items that is a mixture of g Gaussians, with the methods of `Posterior`; used
    when hyperparameters are uncertain.

    `mean` (n,) and `cov` (n x n) are those of the mixture. Probabilities are computed from the mixture, whose tails are
    heavier than those of the Gaussian with the same mean and covariance.
    """

    mean: Array
    cov: Array
    weights: Array
    """(g,) weights of the Gaussians; they sum to 1"""
    parts: tuple[Posterior, ...]
    """the g Gaussians"""

    @property
    def var(self) -> Array:
        return self.cov.diagonal()

    def better(self, a: Index, b: Index) -> Array:
        return self.weights @ np.array([part.better(a, b) for part in self.parts])  # type: ignore[no-any-return]

    def beats(self, a: Index, b: Index) -> Array:
        return self.weights @ np.array([part.beats(a, b) for part in self.parts])  # type: ignore[no-any-return]

    def ranking(self) -> Ints:
        return self.whole().ranking()

    def sd(self) -> Array:
        return self.whole().sd()

    def draws(self, count: int, seed: int = 0) -> Array:
        """Return `count` draws of the utilities of n items (count x n), made with `seed`.

        The number from each Gaussian is proportional to its weight, rounded; draws of one Gaussian are next to each
        other.
        """
        ends = np.rint(np.cumsum(self.weights) * count).astype(np.int64)
        sizes = np.diff(ends, prepend=0).tolist()
        return np.concatenate([part.draws(k, seed + i) for i, (k, part) in enumerate(zip(sizes, self.parts)) if k])

    def of_items(self, items: Ints) -> Mixture:
        parts = [part.of_items(items) for part in self.parts]
        return Mixture(self.mean[items], self.cov[np.ix_(items, items)], self.weights, tuple(parts))

    def components(self) -> list[tuple[float, Posterior]]:
        return list(zip(self.weights.tolist(), self.parts))

    def whole(self) -> Posterior:
        """Return the single Gaussian with the same mean and covariance."""
        return Posterior(self.mean, self.cov)


def mixture(weights: Sequence[float], parts: Sequence[Posterior]) -> Posterior | Mixture:
    """Return the mixture of the Gaussians `parts`, all over the same items, with `weights`, one for each, which need
    not sum to 1.

    A single Gaussian is returned unchanged.
    """
    if len(parts) == 1:
        return parts[0]
    share = np.asarray(weights, np.float64) / np.sum(weights)
    mean = np.einsum("g,gn->n", share, np.array([part.mean for part in parts]))
    cov = np.zeros_like(parts[0].cov)
    for w, part in zip(share, parts):
        off = part.mean - mean
        cov += w * (part.cov + np.multiply.outer(off, off))
    return Mixture(mean, cov, share, tuple(parts))


def interval(weights: Array, mean: Array, sd: Array, level: float) -> tuple[Array, Array]:
    """Return the central intervals (low, high), (n,) each, that hold `level` of n mixtures of g normal distributions.

    `weights` (g,) sum to 1; `mean` and `sd` (g, n).
    """
    from scipy.special import ndtr, ndtri

    tail = 0.5 * (1.0 - level)
    reach = -float(ndtri(tail)) * sd
    if len(weights) == 1:
        return mean[0] - reach[0], mean[0] + reach[0]
    ends = []
    for side, share in ((-1.0, tail), (1.0, 1.0 - tail)):
        quantiles = mean + side * reach  # the mixture's quantile is between those of its parts
        low, high = quantiles.min(axis=0), quantiles.max(axis=0)
        for _ in range(50):
            middle = 0.5 * (low + high)
            below = weights @ ndtr((middle - mean) / np.maximum(sd, 1e-300)) < share
            low, high = np.where(below, middle, low), np.where(below, high, middle)
        ends.append(0.5 * (low + high))
    return ends[0], ends[1]
