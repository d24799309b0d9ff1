"""Utilities of items where hyperparameters are not known: a few Gaussians, each with a weight."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from heedful.inference.gp.posterior import Posterior
from heedful.jit.kernel import Ints

Array = npt.NDArray[np.float64]


class Mixture(NamedTuple):
    """As `Posterior`, whose mean (n,) and covariance (n x n) are these; what is said of order and place is of the
    Gaussians themselves, which have heavier tails together."""

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

    def better(self, a: Any, b: Any) -> Array:
        """P(f_a > f_b), as `Posterior.better`."""
        return self.weights @ np.array([part.better(a, b) for part in self.parts])  # type: ignore[no-any-return]

    def beats(self, a: Any, b: Any) -> Array:
        """P(a beats b) in the next choice, as `Posterior.beats`."""
        return self.weights @ np.array([part.beats(a, b) for part in self.parts])  # type: ignore[no-any-return]

    def ranking(self) -> Ints:
        """The items (n,), the highest mean first, ties to the lowest number."""
        return self.whole().ranking()

    def sd(self) -> Array:
        """Standard deviation of each utility (n,), the part that all items share taken out."""
        return self.whole().sd()

    def draws(self, count: int, seed: int = 0) -> Array:
        """Utilities drawn from it (count x n), from each Gaussian as many as its weight has it, to rounding."""
        ends = np.rint(np.cumsum(self.weights) * count).astype(np.int64)
        sizes = np.diff(ends, prepend=0).tolist()
        return np.concatenate([part.draws(k, seed + i) for i, (k, part) in enumerate(zip(sizes, self.parts)) if k])

    def of_items(self, items: Any) -> Mixture:
        """The same of these items (k,) alone."""
        parts = [part.of_items(items) for part in self.parts]
        return Mixture(self.mean[items], self.cov[np.ix_(items, items)], self.weights, tuple(parts))

    def weighted(self) -> list[tuple[float, Posterior]]:
        """The Gaussians it is made of, with their weights."""
        return list(zip(self.weights.tolist(), self.parts))

    def whole(self) -> Posterior:
        """One Gaussian with the same mean and covariance."""
        return Posterior(self.mean, self.cov)


def mixture(weights: Sequence[float], parts: Sequence[Posterior]) -> Posterior | Mixture:
    """The Gaussians together; of one, that one."""
    if len(parts) == 1:
        return parts[0]
    share = np.asarray(weights, np.float64) / np.sum(weights)
    mean = np.einsum("g,gn->n", share, np.array([part.mean for part in parts]))
    cov = np.zeros_like(parts[0].cov)
    for w, part in zip(share, parts):
        off = part.mean - mean
        cov += w * (part.cov + np.multiply.outer(off, off))
    return Mixture(mean, cov, share, tuple(parts))
