"""Windows of a report: cut a series over time into parts of about the same size."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

WINDOWS, LEAST = 100, 10
"""The most windows of a series, and the fewest values in each, unless the series has fewer in all."""


def windows(n: int, most: int = WINDOWS) -> list[tuple[int, int]]:
    """Return (start, end) of each window of a series of `n` values, in order, `end` exclusive, at most `most` of them;
    [] for n = 0."""
    count = min(most, max(n // LEAST, min(n, 1)))
    return list(pairwise(np.linspace(0, n, count + 1).astype(int).tolist()))
