"""What pages draw: charts of a report, as data for the script that draws them, and values on a scale."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
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
