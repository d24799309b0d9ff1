"""Covariance of people's weights by their features, [H12] section 3: people with similar features get
similar weights.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from heedful.core.validation import check_count, check_positive, describe, is_number, numbers
from heedful.inference.collaborative.distances import half_median, moments
from heedful.inference.collaborative.priors import FactorPrior, whitening
from heedful.inference.gp.kernels import rbf

Array = npt.NDArray[np.float64]


class UserCovariance(NamedTuple):
    """The prior of the weights that people give to one of the latent functions they share: people with similar features
    (q each) get similar weights. `user_covariance` makes it.

    `shared` is the prior of the weights of the U people that it was made for. The other fields are for people who come
    later, whose features are rescaled: less `centre` (q,), divided by `unit`. `amount` is the variance of a weight that
    features explain, `alone` the rest of it."""

    shared: FactorPrior
    centre: Array
    unit: Array
    """(q,) the standard deviation of each feature times the length-scale"""
    pseudo: Array
    """(m x q) features of the pseudo-inputs (people), less `centre` and divided by `unit`"""
    back: Array
    """(m x k) maps covariances with the pseudo-inputs to rows of `shared.R`"""
    amount: float
    alone: float

    def of(self, Z: npt.ArrayLike) -> FactorPrior:
        """Return the prior of the weights of v other people, with q features `Z` (v x q), as a factor model with the
        same latent variables as that of the U people (`shared`).

        Raise ValueError if the number of features differs.
        """
        Z = features("Z", Z)
        if Z.shape[1] != self.unit.size:
            raise ValueError(f"Z: expected {self.unit.size} features of each person, got {Z.shape[1]}")
        R = self.amount * rbf((Z - self.centre) / self.unit, self.pseudo) @ self.back
        return FactorPrior(R, np.maximum(self.amount - np.einsum("ni,ni->n", R, R), 0.0) + self.alone)


def user_covariance(
    Z: npt.ArrayLike,
    *,
    lengthscale: float | None = None,
    rho: float | None = None,
    nugget: float = 0.1,
    pseudo: int | None = None,
    seed: int = 0,
) -> UserCovariance:
    """Return the covariance of the weights of U people by their q features `Z` (U x q): an RBF kernel of standardised
    features.

    `lengthscale`: one for all features, in standard deviations; None takes `half_median(Z)`. With `rho`, from 0 to 1,
    the covariance is rho RBF + (1 - rho) I, so at 0 features have no effect; with None it is RBF + nugget I, as in the
    paper's experiments. `pseudo`: the number of people, drawn with `seed`, used as pseudo-inputs of the FITC
    approximation; None is exact. Fitting costs U m^2 per function and cycle, with m pseudo-inputs or, if exact, the
    rank of the RBF. Raise ValueError, naming the argument, if one is invalid.
    """
    Z = features("Z", Z)
    U = len(Z)
    if rho is not None and not (is_number(rho, int, float) and 0.0 <= rho <= 1.0):
        raise ValueError(f"rho: expected a number from 0 to 1, got {describe(rho)}")
    if not is_number(nugget, int, float) or not 0.0 <= nugget < np.inf:
        raise ValueError(f"nugget: expected a number, 0 or more, got {describe(nugget)}")
    wide = half_median(Z) if lengthscale is None else lengthscale
    check_positive("lengthscale", wide)
    amount, alone = (1.0, float(nugget)) if rho is None else (float(rho), 1.0 - float(rho))
    centre, spread = moments(Z)
    unit = spread * float(wide)
    scaled = (Z - centre) / unit
    if pseudo is not None:
        check_count("pseudo", pseudo)
    pseudo_inputs = (
        scaled
        if pseudo is None or pseudo >= U
        else scaled[np.random.default_rng(seed).choice(U, pseudo, replace=False)]
    )
    back = whitening(rbf(pseudo_inputs, pseudo_inputs)) / np.sqrt(max(amount, 1e-300))
    shared = UserCovariance(FactorPrior(scaled, scaled[:, 0]), centre, unit, pseudo_inputs, back, amount, alone).of(Z)
    return UserCovariance(shared, centre, unit, pseudo_inputs, back, amount, alone)


def features(name: str, value: object) -> Array:
    """Return `value` as a matrix of finite float64 numbers with at least one row.

    Raise ValueError if it cannot be, with `name` as the name of the argument.
    """
    X = numbers(name, value, "rows of numbers").astype(np.float64)
    if X.ndim != 2 or not len(X) or not np.isfinite(X).all():
        raise ValueError(f"{name}: expected rows of finite numbers, at least one, got {describe(value)}")
    return X
