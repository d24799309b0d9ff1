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
    """A posterior over n utilities that is a mixture of Gaussians.

    `mean` (n,) and `cov` (n x n) are those of the mixture. Probabilities of orders and places are those of the mixture
    itself, whose tails are heavier than a Gaussian's.
    """

    mean: Array
    cov: Array
    weights: Array
    """(g,) adding up to 1"""
    parts: tuple[Posterior, ...]
    """g Gaussians"""

    @property
    def var(self) -> Array:
        """The variance of each utility (n,)."""
        return self.cov.diagonal()

    def better(self, a: Index, b: Index) -> Array:
        """Return P(f_a > f_b), as `Posterior.better`."""
        return self.weights @ np.array([part.better(a, b) for part in self.parts])  # type: ignore[no-any-return]

    def beats(self, a: Index, b: Index) -> Array:
        """Return P(a beats b) in the next choice, as `Posterior.beats`."""
        return self.weights @ np.array([part.beats(a, b) for part in self.parts])  # type: ignore[no-any-return]

    def ranking(self) -> Ints:
        """Return the items (n,), the highest mean first, ties to the lowest number."""
        return self.whole().ranking()

    def sd(self) -> Array:
        """Return the standard deviation of each utility (n,), less the part that all items share: that of f_i - mean
        f."""
        return self.whole().sd()

    def draws(self, count: int, seed: int = 0) -> Array:
        """Return the draws from the mixture (count x n), from each Gaussian in proportion to its weight, rounded."""
        ends = np.rint(np.cumsum(self.weights) * count).astype(np.int64)
        sizes = np.diff(ends, prepend=0).tolist()
        return np.concatenate([part.draws(k, seed + i) for i, (k, part) in enumerate(zip(sizes, self.parts)) if k])

    def of_items(self, items: Ints) -> Mixture:
        """Return the marginal over these items (k,)."""
        parts = [part.of_items(items) for part in self.parts]
        return Mixture(self.mean[items], self.cov[np.ix_(items, items)], self.weights, tuple(parts))

    def components(self) -> list[tuple[float, Posterior]]:
        """Return the Gaussians with their weights."""
        return list(zip(self.weights.tolist(), self.parts))

    def whole(self) -> Posterior:
        """Return one Gaussian with the same mean and covariance."""
        return Posterior(self.mean, self.cov)


def mixture(weights: Sequence[float], parts: Sequence[Posterior]) -> Posterior | Mixture:
    """Mix Gaussians with these weights, which need not sum to 1; a single Gaussian is returned unchanged."""
    if len(parts) == 1:
        return parts[0]
    share = np.asarray(weights, np.float64) / np.sum(weights)
    mean = np.einsum("g,gn->n", share, np.array([part.mean for part in parts]))
    cov = np.zeros_like(parts[0].cov)
    for w, part in zip(share, parts):
        off = part.mean - mean
        cov += w * (part.cov + np.multiply.outer(off, off))
    return Mixture(mean, cov, share, tuple(parts))
