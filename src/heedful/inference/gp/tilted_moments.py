"""Moments of the likelihood of one answer over a Gaussian (the cavity), which is all that EP needs of a likelihood."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]

HALF_LOG_TAU = 0.5 * float(np.log(2.0 * np.pi))


def choice_moments(m: Array, s: Array, width: Array) -> tuple[Array, Array, Array]:
    """Return the log probability log Z of p choices between two items, and its first and minus its second derivative by
    `m`, as three arrays (p,).

    Z = Phi((m - width) / s) is the probability that the chosen item is perceived better by more than the tie width
    `width` (p,), which is 0 if ties are not allowed. `m`, `s` (p,) are mean and standard deviation of the perceived
    difference, its noise included.
    """
    from scipy.special import log_ndtr

    z = (m - width) / s
    log_z = log_ndtr(z)
    ratio = np.exp(-0.5 * z * z - HALF_LOG_TAU - log_z)  # phi / Phi
    slope = ratio / s
    # 0 < phi/Phi (z + phi/Phi) < 1; clipped, because rounding far in the tail may leave this interval
    bend = np.clip(ratio * (ratio + z), 0.0, 1.0 - 1e-9) / (s * s)
    return log_z, slope, bend


def tie_moments(m: Array, s: Array, width: Array) -> tuple[Array, Array, Array]:
    """Return the log probability log Z of p ties, and its first and minus its second derivative by `m`, as three arrays
    (p,).

    Z = Phi((width - m) / s) - Phi((-width - m) / s) is the probability that the perceived difference of the two items
    is less than the tie width `width` > 0 (p,) in absolute value. `m`, `s` (p,) are mean and standard deviation of this
    difference, its noise included.
    """
    from scipy.special import log_ndtr

    side = np.where(m < 0.0, -1.0, 1.0)
    up, low = (width - np.abs(m)) / s, (-width - np.abs(m)) / s  # Z is even in m; this tail is accurate
    log_up = log_ndtr(up)
    log_z = log_up + np.log(-np.expm1(log_ndtr(low) - log_up))
    at_up = np.exp(-0.5 * up * up - HALF_LOG_TAU - log_z)
    at_low = np.exp(-0.5 * low * low - HALF_LOG_TAU - log_z)
    slope = (at_low - at_up) / s
    bend = np.clip(np.square(at_low - at_up) + up * at_up - low * at_low, 0.0, 1.0 - 1e-9) / (s * s)
    return log_z, side * slope, bend


def lapse_moments(log_z: Array, slope: Array, bend: Array, lapse: Array, kinds: Array) -> tuple[Array, Array, Array]:
    """Return log Z, its first and minus its second derivative by the cavity's mean, (p,) each, of p answers that may be
    random.

    With probability `lapse` the answer is drawn from `kinds` possible ones, so Z is (1 - lapse) Z_0 + lapse / kinds,
    with Z_0 that of an answer without lapses. `log_z`, `slope`, `bend` (p,): log Z_0 and its derivatives. All arguments
    are (p,).
    """
    with np.errstate(divide="ignore"):
        log_meant = np.log1p(-lapse) + log_z
        log_any = np.logaddexp(log_meant, np.log(lapse / kinds))
    not_lapsed = np.exp(log_meant - log_any)  # the probability that the answer was no lapse
    return log_any, not_lapsed * slope, not_lapsed * bend - not_lapsed * (1.0 - not_lapsed) * slope * slope
