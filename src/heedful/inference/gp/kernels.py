"""Covariance functions of utilities: an RBF kernel of the items' features or, without features, independent items."""

from __future__ import annotations

import hashlib
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from heedful.core.validation import check_positive, describe, is_number, numbers

Array = npt.NDArray[np.float64]

MOST = 1e3
"""The greatest standard deviation of utilities, and the greatest tie width, in units of the noise of one choice. Far
above it EP loses all precision.
"""

_BLOCK = 1 << 14


class Kernel(NamedTuple):
    """RBF kernel k(x, x') = amplitude^2 exp(-1/2 sum_j ((x_j - x'_j) / (scale_j l_j))^2) of items with d features.

    `scale` (d,): standard deviation of each feature over the items it was made for, inf for a constant feature;
    `lengthscale` (d,): l, in these units; `amplitude`: standard deviation of a utility. With d = 0, items are
    independent: amplitude^2 for an item with itself, 0 for two items.
    """

    scale: Array
    lengthscale: Array
    amplitude: float = 1.0

    def between(self, X: Array, Z: Array) -> Array:
        """Return the covariances (n x m) of n items with d features X (n x d) and m other items with features Z (m x
        d).

        They are 0 if d = 0.
        """
        if X.shape[1] == 0:
            return np.zeros((len(X), len(Z)))
        unit = self.scale * self.lengthscale
        return rbf(X / unit, Z / unit) * self.amplitude**2

    def over(self, X: Array) -> Array:
        """Return the covariance matrix (n x n) of n items with d features X (n x d)."""
        if X.shape[1] == 0:
            return self.amplitude**2 * np.eye(len(X))
        out, rows = np.empty((len(X), len(X))), max(1, _BLOCK // max(len(X), 1))
        for lo in range(0, len(X), rows):  # the half on the right of the diagonal; the other half is its mirror image
            hi = lo + rows
            out[lo:hi, lo:] = self.between(X[lo:hi], X[lo:])
            out[hi:, lo:hi] = out[lo:hi, hi:].T
        return out


def rbf(a: Array, b: Array) -> Array:
    """Return exp(-|x - z|^2 / 2) for the rows x of `a` (n x d) and z of `b` (m x d), as a matrix (n x m)."""
    # From differences, not from squares: symmetric, and exactly 0 for identical items
    out = np.zeros((len(a), len(b)))
    rows = max(1, _BLOCK // max(len(b), 1))
    for lo in range(0, len(a), rows):  # as many rows at a time as fit the cache
        d2 = out[lo : lo + rows]
        for i in range(a.shape[1]):
            gap = a[lo : lo + rows, i, None] - b[None, :, i]
            d2 += np.square(gap, out=gap)
        d2 *= -0.5
        np.exp(d2, out=d2)
    return out


def check_amplitude(value: float) -> None:
    """Raise ValueError unless `value`, a standard deviation of utilities, is above 0 and at most 1000."""
    check_positive("amplitude", value)
    if value > MOST:
        raise ValueError(f"amplitude: expected a number above 0, at most {MOST:.0f}, got {describe(value)}")


def kernel_for(X: Array, lengthscale: str | npt.ArrayLike = "median", amplitude: float = 1.0) -> Kernel:
    """Make the RBF kernel for n items with d features X (n x d), d = 0 without, scaled by their standard deviations.

    `lengthscale`: "median" (the median distance of two distinct items, as in [H12]), a number, or one number for each
    feature, in standard deviations. `amplitude`: standard deviation of a utility. Raise ValueError if one is invalid.
    """
    check_amplitude(amplitude)
    d = X.shape[1]
    spread = X.std(axis=0) if len(X) else np.zeros(d)
    scale = np.where(spread > 1e-12 * np.abs(X).max(axis=0, initial=0.0), spread, np.inf)
    if isinstance(lengthscale, str):
        if lengthscale != "median":
            raise ValueError(f"lengthscale: expected 'median' or numbers, got {lengthscale!r}")
        return Kernel(scale, np.full(d, _median(X / scale) if d else 1.0), float(amplitude))
    if is_number(lengthscale, int, float):
        check_positive("lengthscale", lengthscale)
        return Kernel(scale, np.full(d, float(lengthscale)), float(amplitude))
    scales = np.atleast_1d(numbers("lengthscale", lengthscale, "numbers")).astype(np.float64)
    if scales.shape != (d,) or not (scales > 0.0).all() or np.isnan(scales).any():
        raise ValueError(
            f"lengthscale: expected {d} numbers above 0, one for each feature, got {describe(lengthscale)}"
        )
    return Kernel(scale, scales, float(amplitude))


def _median(Z: Array) -> float:
    """Return `median_distance(Z)` from a small cache, because repeated fits use the same items."""
    key = Z.shape, hashlib.blake2b(Z.tobytes(), digest_size=16).digest()
    if (distance := _medians.get(key)) is None:
        if len(_medians) >= _FEW:
            _medians.clear()
        distance = _medians[key] = median_distance(Z)
    return distance


_FEW = 64
_medians: dict[tuple[tuple[int, ...], bytes], float] = {}


def median_distance(Z: Array) -> float:
    """Return the median Euclidean distance between two distinct rows of `Z` (n x d); 1 if all rows are the same.

    With many rows the median is over 100,000 pairs of rows, always the same ones.
    """
    a, b = np.triu_indices(len(Z), 1)
    if a.size > 100_000:  # a sample is enough for a median
        chosen = np.random.default_rng(0).choice(a.size, 100_000, replace=False)
        a, b = a[chosen], b[chosen]
    d2 = np.zeros(a.size)
    for i in range(Z.shape[1]):
        d2 += np.square(Z[a, i] - Z[b, i])
    apart = np.sqrt(d2[d2 > 0.0])
    return float(np.median(apart)) if apart.size else 1.0
