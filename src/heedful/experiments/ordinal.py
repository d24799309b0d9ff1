"""Grades on rows of features: an experiment for ordinal learners, with the scaling of the features named.

>>> data = load_ordinal("wine.csv", "quality")
>>> setting = ordinal_setting(data.X, data.ranks, len(data.grades), scale="standard", seeds=range(5))
>>> runs = [event for event in simulate({"prank": setting.learner("prank")}, setting, 1000) if isinstance(event, Run)]

Hardly any of these learners is invariant to the scale of x, so a result means something only with its scaling, and
beside a predictor that does not look at x.
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
Ints = npt.NDArray[np.int64]

SCALES = {
    "standard": "each feature less its mean, over its standard deviation, both of the whole file: it looks ahead",
    "unit": "each row divided by its length",
    "none": "as they are",
}
"""How features are scaled, in words."""

MOST_FEATURES = 100_000
"""The most features that an instance may have, with those that a map adds."""


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
    dtype: str = "float64",
) -> Setting:
    """Make the setting of rows X (T x N) with ranks (T,) from 1 to n_ranks, each once in each seed's own order, then
    again.

    The rows are scaled (`SCALES`) before the map of features: "as they are", "intercept" or
    "polynomial:2" (`map_features`). R is the length of the longest row, S the greatest size of a feature.

    Raise ValueError for a scale or map there is not, and what the stream refuses.
    """
    mapped = map_features(scale_features(np.asarray(X, np.float64), scale), features).astype(dtype, copy=False)
    world = instance_stream(mapped, ranks, n_ranks=n_ranks)
    nothing = np.empty(0)
    scenes = tuple(Scene(seed, 0, seed, world, nothing) for seed in seeds)
    R, S = float(np.linalg.norm(mapped, axis=1).max()), float(np.abs(mapped).max())
    T, N = mapped.shape
    return Setting(N, Ranks(n_ranks), R, S, math.nan, T, scenes, ORDINAL, "rank loss")


def scale_features(X: Array, scale: str) -> Array:
    """Scale X (T x N) by one of `SCALES`; a constant feature is 0 under standard, a row of zeros stays so under
    unit."""
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
    """Return X (T x N) "as they are"; with an "intercept", a first feature that is 1; or "polynomial:2" of them.

    Of the latter there are (N + 1)(N + 2) / 2, one of which is 1.
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
    """Return a warning that the learner's step size is too large for rows of this length; empty if it is not."""
    if isinstance(learner, WidrowHoff) and learner.eta * setting.R**2 >= 2.0:
        return (
            f"eta = {learner.eta:g} is too large for rows of length {setting.R:.3g}: "
            f"stable below 2 / {setting.R:.3g}^2 = {2.0 / setting.R**2:.2g}"
        )
    return ""


def make_trial(spec: str) -> tuple[Any, Any]:
    """Return (the learner that `spec` names, instances of 6 features with grades from 1 to 5, or as many as the learner
    says)."""
    learner = make_checked_learner(spec, 6, Ranks(5))
    return learner, synthetic_ordinal(40, 6, getattr(getattr(learner, "space", None), "k", 5))[0]
