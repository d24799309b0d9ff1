"""The statistics of paired runs, in numbers and in words."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from heedful.experiment import standard_error
from heedful.figures.figure import Paired

Array = npt.NDArray[np.float64]

SIGNIFICANT = 0.05


def paired(a: Array, b: Array) -> Paired:
    """The paired t-test of a - b (runs,); NaN where there is one run, p = 0 or 1 where all differences are equal."""
    d = np.asarray(a - b, np.float64)
    n, mean = d.size, float(d.mean())
    if n < 2:
        return Paired(mean, math.nan, math.nan, math.nan, n)
    error = float(standard_error(d))
    if error == 0.0:
        return Paired(mean, 0.0, math.copysign(math.inf, mean) if mean else 0.0, 0.0 if mean else 1.0, n)
    from scipy.stats import t as student

    t = mean / error
    return Paired(mean, error, t, float(2.0 * student.sf(abs(t), n - 1)), n)


def reach(found: Paired) -> float:
    """Half the width of the 95 % interval of a difference; infinite where there is one run."""
    from scipy.stats import t as student

    return float(student.ppf(0.975, found.pairs - 1) * found.stderr) if found.pairs > 1 else math.inf


def told(found: Paired) -> str:
    """A paired difference in words."""
    p = "p < 0.0001" if found.p < 1e-4 else f"p = {found.p:.2g}"
    return f"difference {found.difference:+.3g} ± {found.stderr:.2g}, {p}, {found.pairs} pairs"


def log_spaced(T: int, n: int = 60) -> npt.NDArray[np.int64]:
    """At most n different rounds of 1..T, evenly on a logarithmic scale."""
    return np.unique(np.geomspace(1, T, n).round().astype(np.int64))


def significantly_lower(found: Paired) -> bool:
    """Whether a difference is significantly below 0."""
    return bool(found.difference < 0 and found.p < SIGNIFICANT)


def ratio(u: Array, v: Array) -> float:
    """The mean of u over that of v; NaN where v has none."""
    return float(u.mean() / v.mean()) if v.mean() else math.nan
