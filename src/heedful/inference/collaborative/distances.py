"""Length-scales from distances."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]


def standardise(X: Any) -> Array:
    """The columns of X (n x d) in their standard deviations, from their means; those that are constant are 0."""
    X = np.asarray(X, np.float64)
    spread = X.std(axis=0)
    constant = spread <= 1e-12 * np.abs(X).max(axis=0, initial=0.0)
    return (X - X.mean(axis=0)) / np.where(constant, np.inf, spread)  # type: ignore[no-any-return]


def half_median(X: Any) -> float:
    """The length-scale l, l^2 = median(d^2) / 2, d the distances of two different rows of X (n x d), standardised.

    The paper writes median(d); this is what its tables were made with. 1 where all rows are the same.
    """
    from scipy.spatial.distance import pdist

    Z = standardise(X)
    if len(Z) > 1500:  # enough for a median
        Z = Z[np.random.default_rng(0).choice(len(Z), 1500, replace=False)]
    d2 = pdist(Z, "sqeuclidean")
    middle = float(np.median(d2)) if d2.size else 0.0
    return float(np.sqrt(0.5 * middle)) if middle > 0.0 else 1.0
