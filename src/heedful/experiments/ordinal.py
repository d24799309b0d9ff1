"""Simulated experiments for learners that predict grades from features, with the scaling of the features stated.

>>> data = load_ordinal("wine.csv", "quality")
>>> setting = ordinal_setting(data.X, data.ranks, len(data.grades), scale="standard", seeds=range(5))
>>> runs = [event for event in simulate({"prank": setting.learner("prank")}, setting, 1000) if isinstance(event, Run)]

Hardly any of these learners is invariant to the scale of the features. So a result means something only together with
its scaling, and next to that of a predictor that ignores the features.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from heedful.data.catalogue import scaled_moments
from heedful.experiments.setting import Kind, Scene, Setting, make_checked_learner
from heedful.learners.ordinal.perceptrons import WidrowHoff
from heedful.spaces.ordinal import Ranks
from heedful.worlds.instances import instance_stream, polynomial, synthetic_ordinal

Array = npt.NDArray[np.float64]

SCALES = {
    "standard": "each feature less its mean, over its standard deviation, both of the whole file: it looks ahead",
    "unit": "each row divided by its length",
    "none": "as they are",
}
"""The ways to scale features, each in words."""

MOST_FEATURES = 100_000
"""The most features that a row may have, with those that a map adds."""


def _check(spec: str, learner: Any, setting: Setting) -> None:
    if (space := getattr(learner, "space", setting.space)) != setting.space:
        raise ValueError(f"{spec}: n_ranks: expected the {setting.space.k} of the data, got {space.k}")


ORDINAL = Kind("ordinal", "predicts grades", check=_check)


def ordinal_setting(
    X: npt.ArrayLike,
    ranks: npt.ArrayLike,
    n_ranks: int,
    *,
    scale: str = "none",
    features: str = "as they are",
    seeds: Sequence[int] = (0,),
) -> Setting:
    """Return the experiment in which a learner predicts the `ranks` (T,), from 1 to `n_ranks`, of T rows with N
    features, `X` (T, N), one row in each round.

    Each of `seeds` gives the rows another random order; after the last row they come again. Rows are first scaled by
    `scale` ("standard", "unit" or "none", as `scale_features` does), then mapped by `features` ("as they are",
    "intercept" or "polynomial:2", as `map_features` does). The bound R of the returned
    `Setting` is the length of the longest row, S the greatest absolute value of a feature.

    Raise ValueError for an unknown scale or map, and for rows or ranks that make no sense.
    """
    mapped = map_features(scale_features(np.asarray(X, np.float64), scale), features)
    world = instance_stream(mapped, ranks, n_ranks=n_ranks)
    nothing = np.empty(0)
    scenes = tuple(Scene(seed, 0, seed, world, nothing) for seed in seeds)
    R, S = float(np.linalg.norm(mapped, axis=1).max()), float(np.abs(mapped).max())
    T, N = mapped.shape
    return Setting(N, Ranks(n_ranks), R, S, math.nan, T, scenes, ORDINAL, "rank loss")


def scale_features(X: Array, scale: str) -> Array:
    """Return T rows of N features `X` (T, N) scaled as `scale` says: "standard", "unit" or "none".

    "standard" gives each feature mean 0 and standard deviation 1 (a constant feature becomes 0); "unit" divides each
    row by its length (a row of zeros stays as it is); "none" returns X itself. Raise ValueError for another `scale`.
    """
    if scale not in SCALES:
        raise ValueError(f"scale: expected {', '.join(SCALES)}, got {scale!r}")
    if scale == "standard":
        out = np.zeros_like(X)
        for j, column in enumerate(X.T):
            if column.min() < column.max():
                power, mean, deviation = scaled_moments(column)
                out[:, j] = (np.ldexp(column, -power) - mean) / deviation
        return out
    if scale == "unit":
        largest = np.abs(X).max(axis=1, keepdims=True)
        safe = X / np.where(largest > 0.0, largest, 1.0)  # no square overflows
        length = np.linalg.norm(safe, axis=1, keepdims=True)
        unit: Array = safe / np.where(length > 0.0, length, 1.0)
        return unit
    return X


def map_features(X: Array, features: str) -> Array:
    """Return T rows of N features `X` (T, N) as they are, or with features added, as `features` says.

    "as they are" returns X itself; "intercept" puts a feature first that is always 1; "polynomial:2" returns all
    products of up to two features, (N + 1)(N + 2) / 2 of them, one of which is 1. Raise ValueError for another map, or
    if there would be more than `MOST_FEATURES`.
    """
    if features == "as they are":
        return X
    if features == "intercept":
        return np.hstack([np.ones((len(X), 1)), X])
    if features not in ("polynomial", "polynomial:2"):
        raise ValueError(f"map: expected intercept or polynomial:2, got {features!r}")
    if (many := math.comb(X.shape[1] + 2, 2)) > MOST_FEATURES:
        raise ValueError(f"map: expected at most {MOST_FEATURES:,} features, got {many:,} of {X.shape[1]:,}")
    return polynomial(X)


def unstable(learner: Any, setting: Setting) -> str:
    """Return a warning if `learner` is Widrow-Hoff with a step size `eta` too large for rows as long as the longest of
    `setting`, otherwise "".
    """
    if isinstance(learner, WidrowHoff) and learner.eta * setting.R**2 >= 2.0:
        return (
            f"eta = {learner.eta:g} is too large for rows of length {setting.R:.3g}: "
            f"stable below 2 / {setting.R:.3g}^2 = {2.0 / setting.R**2:.2g}"
        )
    return ""


def make_trial(spec: str) -> tuple[Any, Any]:
    """Return (the learner that the text `spec` names, a small simulated environment to try it in): instances of 6
    features with a grade each.

    There are as many grades as the learner says, 5 if it says nothing.
    """
    learner = make_checked_learner(spec, 6, Ranks(5))
    return learner, synthetic_ordinal(40, 6, getattr(getattr(learner, "space", None), "k", 5))[0]
