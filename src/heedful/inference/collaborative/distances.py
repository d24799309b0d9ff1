"""Standardisation of features, and a length-scale from the distances between rows."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]


def standardise(X: npt.ArrayLike) -> Array:
    """Return n rows of d features X (n x d) less the mean of each feature, divided by its standard deviation.

    Constant features become 0.
    """
    X = np.asarray(X, np.float64)
    centre, spread = moments(X)
    return (X - centre) / spread


def moments(X: Array) -> tuple[Array, Array]:
    """Return mean and standard deviation of each of d features of n rows X (n x d), (d,) each; inf for the deviation of
    a constant one."""
    spread = X.std(axis=0)
    constant = spread <= 1e-12 * np.abs(X).max(axis=0, initial=0.0)
    return X.mean(axis=0), np.where(constant, np.inf, spread)


def half_median(X: npt.ArrayLike) -> float:
    """Return the length-scale sqrt(median(e^2) / 2), where e are the Euclidean distances between any two rows of `X` (n
    x d).

    The d features are standardised first. The result is 1 if all rows are the same; of many rows a fixed sample is
    used. [H12] states median(e), but its tables agree with this length-scale.
    """
    from scipy.spatial.distance import pdist

    Z = standardise(X)
    if len(Z) > 1500:  # a sample is enough for a median
        Z = Z[np.random.default_rng(0).choice(len(Z), 1500, replace=False)]
    d2 = pdist(Z, "sqeuclidean")
    middle = float(np.median(d2)) if d2.size else 0.0
    return float(np.sqrt(0.5 * middle)) if middle > 0.0 else 1.0
