"""What pages draw: charts of a report, as data for the script that draws them, and values on a scale or line."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple

from heedful.loop.interactions.findings import Picture

DASHES = [6, 5]
ROOM = 0.04
"""The room on either side of the outermost interval, as a share of the length of the drawn scale."""


def chart(picture: Picture) -> str:
    """Return a `picture` of a report as JSON for the browser.

    It has "x" (numbers), "label" (what they count), "y" (the kind of axis, `Picture.axis`), and "lines": label, ink,
    dash and values of each. Lines of reference, with which the others are compared, are dashed and grey."""
    lines = [
        {
            "label": line.label,
            "ink": "--muted" if line.reference else "--accent",
            "dash": DASHES if line.reference else [],
            "values": line.values,
        }
        for line in picture.lines
    ]
    data = {"x": picture.x, "label": picture.label, "y": picture.axis, "lines": lines}
    return json.dumps(data, separators=(",", ":"))


class Axis(NamedTuple):
    """A range of numbers on which values are drawn, from its left to its right end."""

    low: float
    """the value at its left end"""
    high: float
    """the value at its right end"""

    @classmethod
    def around(cls, ends: Iterable[tuple[float | None, float | None]], low: float = 0.0, high: float = 1.0) -> Axis:
        """Return a scale with room for the intervals `ends` that can be drawn, (low, high) each; without any it is the
        range from `low` to `high`."""
        drawn = [(a, b) for a, b in ends if a is not None and b is not None and math.isfinite(a) and math.isfinite(b)]
        if not drawn:
            return cls(low, high)
        low, high = min(a for a, _ in drawn), max(b for _, b in drawn)
        room = ROOM * (high - low) or 1.0
        return cls(low - room, high + room)

    def place(self, value: float) -> float:
        """Return the position of `value` in percent of the scale's length, 0 for its left end."""
        return round(100.0 * (value - self.low) / (self.high - self.low), 2)

    def interval(self, value: float | None, low: float | None, high: float | None) -> tuple[float, float, float] | None:
        """Return (where an interval begins, its length, where `value` is) in percent of the scale's length; None if an
        end is not known or not finite."""
        if value is None or low is None or high is None or not (math.isfinite(low) and math.isfinite(high)):
            return None
        left = self.place(low)
        return left, round(self.place(high) - left, 2), self.place(value)

    def inside(self, value: float) -> float:
        """Return `value`, or the end of the scale that it is beyond."""
        return min(max(value, self.low), self.high)

    def number(self, value: float) -> str:
        """Return `value` as text, with so many decimals that the scale has at least 40 steps."""
        span = self.high - self.low
        if span > 1e6 or span < 1e-6:
            return f"{value:.3g}".replace("-", "−")
        places = min(max(math.ceil(math.log10(40.0 / span)), 0), 8)
        text = f"{value:.{places}f}"
        return text.lstrip("-") if float(text) == 0.0 else text.replace("-", "−")


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
