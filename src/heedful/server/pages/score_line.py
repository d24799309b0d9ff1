"""The line of scores, cut at the thresholds between predicted grades."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from heedful.server.pages.charts import Axis


def score_line(b: Sequence[float]) -> list[tuple[float, float, str]]:
    """Return for each grade from 1 to k the interval of scores for which it is predicted: (where it begins on the drawn
    line and how long it is, in percent of the line's length; the interval in words).

    `b` has the k - 1 thresholds between the grades, in rising order."""
    apart = b[-1] - b[0]
    pad = apart / len(b) if apart > 0.0 else 1.0
    low, high = b[0] - pad, b[-1] + pad
    axis, lengths = Axis(low, high), Axis(0.0, high - low)
    return [
        (axis.place(left), lengths.place(right - left), _between(grade, b))
        for grade, (left, right) in enumerate(pairwise([low, *b, high]), 1)
    ]


def threshold(value: float) -> str:
    """Return a threshold between grades as text."""
    return f"{value + 0.0:.2f}".replace("-", "−").replace("−0.00", "0.00")


def _between(grade: int, b: Sequence[float]) -> str:
    if grade == 1:
        return f"below {threshold(b[0])}"
    if grade == len(b) + 1:
        return f"{threshold(b[-1])} and above"
    low, high = b[grade - 2], b[grade - 1]
    return f"{threshold(low)} to {threshold(high)}" if low < high else "no score so far"
