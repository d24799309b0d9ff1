"""Bets on the mean of numbers that are never negative and have no upper bound, as importance weights times rewards.

A bet that the mean is above m stakes at most c / m for a constant c < 1, so it loses at most the fraction c of its
capital at a time, however large a number is (Waudby-Smith et al., arXiv 2210.10768). Its capital is a nonnegative
supermartingale if the mean is m or less, given all numbers before, so that by Ville's inequality it ever reaches 1 / p
with probability p at most. A bet that the mean is below m needs the greatest number that is possible.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import numpy.typing as npt

from heedful.evaluation.ratio import HEADROOM

Array = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

GRID = np.unique(np.concatenate([np.geomspace(1e-6, 0.5, 400), 1.0 - np.geomspace(1e-4, 0.5, 200)]))
"""Candidate values against which bets are made."""
POWERS = 2.0 ** (np.arange(-30 * 64, 1) / 64.0)
"""Candidate values for a mean without an upper bound, in units of a power of two. With every other such unit the
candidates are of the same series, so that which ones are tried may depend on the log."""
STRIDE = 25
ROWS = 2048
"""The number of values processed at a time, so that intermediate arrays stay in the processor's cache."""


def limits(gains: Array, losses: Array, most: float | None, alpha: float) -> tuple[float, float]:
    """Return (low, high), a confidence sequence with error probability `alpha` for the mean v = E gain of n decisions.

    - `gains`, `losses` (n,), in order of arrival: weight times reward, and weight times 1 - reward; both are >= 0, and
      E[gain + loss] <= 1
    - `most`: the greatest possible gain, if it is known beforehand and the log supports all that the target shows; None
      if not. Half of the capital for `high` then bets on small gains, which narrows the interval much where rewards are
      rare.

    Each candidate value m for v is tested by bets that E gain is above m. They stake at most c / m for a constant c <
    1, so they lose at most the fraction c of their capital in a decision, however large the gain. Hence weights need no
    bound, and the ranker that made the log may have learned meanwhile (Waudby-Smith et al., arXiv 2210.10768). The
    candidates that are not rejected give `low`; the same bets on losses give a lower end for E loss, and `high` is 1
    minus that.
    """
    target = np.log(2.0 / alpha)

    def too_high(m: Array) -> Bools:
        bets = [higher(losses, 1.0 - m)]
        return np.asarray(_peaks(bets if most is None else [*bets, lower(gains, m, most)]) >= target)

    return _last(_too_low(gains, alpha), GRID, 0.0), _last(too_high, GRID[::-1], 1.0)


def lower_limit(x: Array, alpha: float) -> float:
    """Return the lower end of a confidence sequence for the mean of n values `x` (n,) >= 0, in order of arrival, which
    have no upper bound; it is above the mean with probability `alpha` / 2 at most.

    The bets are those of `limits`."""
    if not x.any():
        return 0.0
    return _last(_too_low(x, alpha), POWERS * 2.0 ** np.ceil(np.log2(x.max())), 0.0)


def _too_low(x: Array, alpha: float) -> Callable[[Array], Bools]:
    """Return a function of candidates (M,) that says which of them the mean of `x` (n,) >= 0 is above."""
    return lambda m: np.asarray(_peaks([higher(x, m)]) >= np.log(2.0 / alpha))


def _last(rejected: Callable[[Array], Bools], grid: Array, otherwise: float) -> float:
    """Return the last candidate of `grid` (M,) before the first that is `rejected`, found by every STRIDE-th;
    `otherwise` if none is."""
    coarse = grid[::STRIDE]
    first_kept = int(np.argmin([*rejected(coarse), False]))
    if first_kept == 0:
        return otherwise
    fine = grid[(first_kept - 1) * STRIDE : first_kept * STRIDE]
    return float(fine[int(np.argmin([*rejected(fine), False])) - 1])


Bets = Iterator[Array]
"""What a bet yields: blocks (rows, M) of the log of the factors by which each value multiplies its capital against each
of M candidates.
"""


def _peaks(bets: Sequence[Bets]) -> Array:
    """Return the greatest log that the mean capital of several `bets` ever has, against each of M candidates (M,)."""
    return np.asarray(np.max([path.max(axis=0) for path in _capital(bets)], axis=0))


def _capital(bets: Sequence[Bets]) -> Iterator[Array]:
    """Yield blocks (rows, M) of the log of the mean capital of several `bets`, against each of M candidates."""
    capital: list[Array | float] = [0.0] * len(bets)
    for blocks in zip(*bets):
        paths = [start + np.cumsum(block, axis=0) for start, block in zip(capital, blocks)]
        capital = [path[-1] for path in paths]
        yield np.asarray(np.logaddexp.reduce(paths, axis=0) - np.log(len(bets)))


def log_capital(bets: Sequence[Bets]) -> Array:
    """Return the log of the mean capital that several `bets` have in the end, against each of M candidates (M,): of a
    candidate that is right it is log(1 / p) with probability p at most."""
    *_, last = _capital(bets)
    return np.asarray(last[-1])


def higher(x: Array, m: Array) -> Bets:
    """Yield the log growth (rows, M) of the bet that the mean of n values `x` (n,) >= 0 is higher than each of M
    candidates `m` (M,)."""
    for values, mean, variance in _blocks_with_moments(x, m):
        gap = np.maximum(mean - m, 0.0)
        yield np.log1p(np.minimum(gap / (variance + gap * gap), HEADROOM / m) * (values - m))


def lower(x: Array, m: Array, most: float) -> Bets:
    """Yield the log growth (rows, M) of the bet that the mean of n values `x` (n,), from 0 to `most`, is lower than
    each of M candidates `m` (M,)."""
    for values, mean, variance in _blocks_with_moments(x, m):
        gap = np.maximum(m - mean, 0.0)
        yield np.log1p(
            np.minimum(gap / (variance + gap * gap), HEADROOM / np.maximum(most - m, HEADROOM)) * (m - values)
        )


def _blocks_with_moments(x: Array, m: Array) -> Iterator[tuple[Array, Array, Array]]:
    """Yield blocks of n values x (n,) (rows, 1), with the running mean and variance of all values before each one, and
    of one more, which is each of M candidates `m` (M,) with the variance m^2: (rows, M) each.

    So a bet does not depend on the unit of the values."""
    n = np.arange(1, x.size + 1)[:, None]
    sums, squares = (np.concatenate([[0.0], np.cumsum(terms)[:-1]])[:, None] for terms in (x, x * x))
    for first in range(0, x.size, ROWS):
        rows = slice(first, first + ROWS)
        mean = (sums[rows] + m) / n[rows]
        variance = np.maximum((squares[rows] + 2.0 * m * m) / n[rows] - mean * mean, 1e-9 * m * m)
        yield x[rows, None], mean, variance
