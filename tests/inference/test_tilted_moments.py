"""Moments of answers, against quadrature, and far in the tails."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy.special import ndtr

from heedful.inference.gp.tilted_moments import choice_moments, lapse_moments, tie_moments

Array = npt.NDArray[np.float64]
WIDTH = 0.4


def by_quadrature(likelihood: Any, m: float, v: float) -> tuple[float, float, float]:
    """log Z, and the mean and variance of the Gaussian N(m, v) times the likelihood."""
    g = m + np.sqrt(v) * np.linspace(-9, 9, 20001)
    p = np.exp(-0.5 * (g - m) ** 2 / v) * likelihood(g)
    Z = p.sum() * (g[1] - g[0]) / np.sqrt(2 * np.pi * v)
    mean = (p * g).sum() / p.sum()
    return np.log(Z), mean, (p * (g - mean) ** 2).sum() / p.sum()


@pytest.mark.parametrize("lapse", [0.0, 0.1])
@pytest.mark.parametrize("kind", ["choice", "wide choice", "tie"])
def test_moments_are_those_of_quadrature(kind: str, lapse: float) -> None:
    """The mean is m + v slope, the variance v - v^2 bend."""
    for m, v in [(0.0, 1.0), (1.5, 0.3), (-2.0, 4.0), (3.0, 2.0), (-0.1, 0.01)]:
        width = 0.0 if kind == "choice" else WIDTH
        kinds = 2.0 if kind == "choice" else 3.0
        of = tie_moments if kind == "tie" else choice_moments
        got = of(*(np.array([x]) for x in (m, np.sqrt(1 + v), width)))
        if lapse:
            got = lapse_moments(*got, np.array([lapse]), np.array([kinds]))

        def likelihood(g: Array, kind: str = kind, width: float = width, kinds: float = kinds) -> Array:
            plain = ndtr(width - g) - ndtr(-width - g) if kind == "tie" else ndtr(g - width)
            return (1 - lapse) * plain + lapse / kinds

        log_z, slope, bend = (float(x[0]) for x in got)
        wanted = by_quadrature(likelihood, m, v)
        assert (log_z, m + v * slope, v - v * v * bend) == pytest.approx(wanted, abs=1e-6)


@pytest.mark.parametrize("of", [choice_moments, tie_moments])
def test_the_tails_are_finite(of: Any) -> None:
    m = np.array([-1e6, -1e3, -50.0, 50.0, 1e3, 1e6])
    for s in (1e-3, 1.0, 1e3):
        log_z, slope, bend = of(m, np.full(6, s), np.full(6, 0.1))
        for part in (log_z, slope, bend):
            assert np.isfinite(part).all()
        assert (log_z <= 0.0).all()
        assert (bend >= 0.0).all()
        assert (bend < 1.0 / s**2).all()


def test_all_answers_together_are_certain() -> None:
    m, s, width = np.linspace(-5, 5, 11), np.full(11, 1.3), np.full(11, WIDTH)
    first, second, tie = choice_moments(m, s, width), choice_moments(-m, s, width), tie_moments(m, s, width)
    np.testing.assert_allclose(np.exp(first[0]) + np.exp(second[0]) + np.exp(tie[0]), 1.0, atol=1e-14)
    lapses = [lapse_moments(*of, np.full(11, 0.3), np.full(11, 3.0))[0] for of in (first, second, tie)]
    np.testing.assert_allclose(np.exp(lapses).sum(axis=0), 1.0, atol=1e-14)
