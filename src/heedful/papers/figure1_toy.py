"""[H12] Figure 1: where the acquisition functions BALD and MES ask next, given labels on a line and a Gaussian process
classifier.

[H12]: Houlsby, Huszár, Ghahramani & Hernández-Lobato, *Collaborative Gaussian Processes for Preference Learning*, NIPS
2012.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from heedful.inference.collaborative.classifier import fit_labels
from heedful.inference.gp.acquisition import bald, mes
from heedful.papers.figure import LineResult, Panel

Array = npt.NDArray[np.float64]

LENGTHSCALE, AMPLITUDE = 1.0, 2.0
MEAN, SD, BALD, MES, LABELS = "mean", "standard deviation", "BALD", "MES", "labels"
GRID = np.linspace(-4.0, 4.0, 401)


def toy_data(seed: int) -> tuple[Array, Array]:
    """Return n inputs on a line (n,) and their labels (n,), 1 or -1, drawn from `seed`.

    One class lies on the left, the other on the right, and between them are many inputs with random labels; none lies
    beyond 2.5.
    """
    rng = np.random.default_rng([seed, 1])
    left, mixed, right = rng.uniform(-3.5, -1.0, 8), rng.uniform(-0.6, 0.6, 40), rng.uniform(1.0, 2.5, 8)
    coins = np.where(rng.permutation(40) < 20, 1.0, -1.0)
    return np.concatenate([left, mixed, right]), np.concatenate([-np.ones(8), coins, np.ones(8)])


def covariance(x: Array, z: Array) -> Array:
    """Return the covariance k(x_i, z_j) = amplitude^2 exp(-(x_i - z_j)^2 / (2 l^2)) (n x m) of n inputs `x` (n,) and m
    inputs `z` (m,), with the amplitude AMPLITUDE and the lengthscale l LENGTHSCALE of this module."""
    out: Array = AMPLITUDE**2 * np.exp(-0.5 * np.square((x[:, None] - z[None, :]) / LENGTHSCALE))
    return out


def on_a_line(panel: Panel) -> dict[str, LineResult]:
    """Return the results of each curve of the plot `panel`, by label, over the g inputs of GRID, as (1 x g): the mean
    and standard deviation of the function, and the values of the acquisition functions BALD and MES, in bits.

    The curve LABELS has the labels (1 x n) at the inputs, its `marks` (n,).
    """
    x, y = toy_data(0)
    classifier = fit_labels(covariance(x, x), y)
    mean, var = classifier.predict(covariance(GRID, x), np.full(GRID.size, AMPLITUDE**2))
    values = {MEAN: mean, SD: np.sqrt(var), BALD: bald(mean, var), MES: mes(mean, var), LABELS: y}
    return {
        line.label: LineResult(
            line,
            "gp classifier",
            values[line.label][None],
            np.ones(1),
            marks=x if line.label == LABELS else GRID,
        )
        for line in panel.lines
    }
