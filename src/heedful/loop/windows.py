"""Time in a report: a series is cut into windows of about as many each."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

WINDOWS, LEAST = 100, 10
"""Windows that a series is cut into, at most; how many are in a window, at least, unless there are fewer in all."""


def windows(n: int) -> list[tuple[int, int]]:
    """Return (first, one after the last) of each window of a series of n values, in order; [] for n = 0."""
    count = min(WINDOWS, max(n // LEAST, min(n, 1)))
    return list(pairwise(np.linspace(0, n, count + 1).astype(int).tolist()))
