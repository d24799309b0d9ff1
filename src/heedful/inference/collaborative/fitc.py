"""FITC, a sparse approximation of the Gaussian process prior over pairs of items, [H12] section 5.1.

There it saves time. In the space of items it saves none: it is exact with as many pseudo-inputs as items and less
accurate with fewer. It is here for comparison with the paper.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from heedful.core.validation import check_count
from heedful.inference.collaborative.priors import FactorPrior, fitc
from heedful.jit.kernel import Ints

Array = npt.NDArray[np.float64]


class PairKernel(NamedTuple):
    """The covariance `K` (n x n) of a function over n items, and the pseudo-inputs of its FITC approximation.

    The m pseudo-inputs are pairs of items, with the item numbers `first` and `second` (m,).
    """

    K: Array
    first: Ints
    second: Ints

    def over(self, a: Ints, b: Ints) -> FactorPrior:
        """Return the FITC (sparse) prior of h(a, b) = f(a) - f(b) at P pairs of items; `a`, `b` (P,): their numbers."""
        gap = self.K[a] - self.K[b]
        gaps = self.K[self.first] - self.K[self.second]
        within = gaps[:, self.first] - gaps[:, self.second]
        diagonal = gap[np.arange(a.size), a] - gap[np.arange(a.size), b]
        return fitc(gap[:, self.first] - gap[:, self.second], 0.5 * (within + within.T), diagonal)


def pseudo_pairs_of(K: Array, first: Ints, second: Ints, count: int, seed: int) -> PairKernel:
    """Make a pair kernel with `count` of P pairs as pseudo-inputs, drawn with `seed`; with all if there are no more.

    `K` (n x n): covariance of n items; `first`, `second` (P,): the item numbers of the pairs.
    """
    check_count("pseudo_pairs", count)
    P = first.size
    chosen = np.arange(P) if count >= P else np.sort(np.random.default_rng(seed).choice(P, count, replace=False))
    return PairKernel(K, first[chosen], second[chosen])
