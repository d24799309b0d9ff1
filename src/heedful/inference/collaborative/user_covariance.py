"""Covariance of people's weights by their features, [H12] section 3: people with similar features get
similar weights.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from heedful.core.validation import check_count, describe, is_number, numbers
from heedful.inference.collaborative.distances import half_median, moments
from heedful.inference.collaborative.priors import FactorPrior, whitening
from heedful.inference.gp.kernels import rbf

Array = npt.NDArray[np.float64]


NUGGET = 0.1
"""The variance of a weight that features do not explain, in the paper's experiments."""


def user_covariance(
    Z: npt.ArrayLike, *, rho: float | None = None, pseudo: int | None = None, seed: int = 0
) -> FactorPrior:
    """Return the prior of the weights of U people by their q features `Z` (U x q): an RBF kernel of standardised
    features, with the length-scale `half_median(Z)`.

    With `rho`, from 0 to 1, the covariance is rho RBF + (1 - rho) I, so at 0 features have no effect; with None it is
    RBF + NUGGET I, as in the paper's experiments. `pseudo`: the number of people, drawn with `seed`, used as
    pseudo-inputs of the FITC approximation; None is exact. Fitting costs U m^2 per function and cycle, with m
    pseudo-inputs or, if exact, the rank of the RBF. Raise ValueError, naming the argument, if one is invalid.
    """
    Z = features("Z", Z)
    if rho is not None and not (is_number(rho, int, float) and 0.0 <= rho <= 1.0):
        raise ValueError(f"rho: expected a number from 0 to 1, got {describe(rho)}")
    amount, alone = (1.0, NUGGET) if rho is None else (float(rho), 1.0 - float(rho))
    centre, spread = moments(Z)
    scaled = (Z - centre) / (spread * half_median(Z))
    inputs = scaled
    if pseudo is not None:
        check_count("pseudo", pseudo)
        if pseudo < len(Z):
            inputs = scaled[np.random.default_rng(seed).choice(len(Z), pseudo, replace=False)]
    back = whitening(rbf(inputs, inputs)) / np.sqrt(max(amount, 1e-300))
    R = amount * rbf(scaled, inputs) @ back
    return FactorPrior(R, np.maximum(amount - np.einsum("ni,ni->n", R, R), 0.0) + alone)


def features(name: str, value: object) -> Array:
    """Return `value` as a matrix of finite float64 numbers with at least one row.

    Raise ValueError if it cannot be, with `name` as the name of the argument.
    """
    X = numbers(name, value, "rows of numbers").astype(np.float64)
    if X.ndim != 2 or not len(X) or not np.isfinite(X).all():
        raise ValueError(f"{name}: expected rows of finite numbers, at least one, got {describe(value)}")
    return X
