"""A drawing of the line of scores, cut at the thresholds between predicted grades."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

LISTED = 10
"""The most grades that are listed one by one below the line."""


class Part(NamedTuple):
    """The interval of an item's score for which one grade is predicted, as a part of a drawn line."""

    grade: int
    """the grade, from 1"""
    told: str
    """the interval in words: "below 0.50\""""
    left: float
    """where it begins on the drawn line, in percent of the line's length"""
    width: float
    """its length, in percent of the line's"""


class Line(NamedTuple):
    """The scale of an item's score as a drawing, cut at the thresholds into one interval for each predicted grade."""

    parts: tuple[Part, ...]
    """the intervals of the grades, lowest first"""
    told: str
    """the thresholds in words, for people who cannot see the line"""
    listed: bool
    """whether the grades are few enough to be listed one by one"""


def score_line(b: Sequence[float] | None) -> Line | None:
    """Return the line of an item's score, cut at the thresholds `b` between grades; None if `b` is None.

    `b` has the k - 1 thresholds between k grades, in rising order."""
    if b is None:
        return None
    apart = b[-1] - b[0]
    pad = apart / len(b) if apart > 0.0 else 1.0
    low, high = b[0] - pad, b[-1] + pad
    edges = [low, *b, high]
    parts = [
        Part(
            r,
            _between(r, b),
            round(100 * (left - low) / (high - low), 2),
            round(100 * (right - left) / (high - low), 2),
        )
        for r, (left, right) in enumerate(pairwise(edges), 1)
    ]
    told = f"The line of scores, cut into the grades 1 to {len(parts)} at {len(b)} thresholds"
    ends = f"from {_number(b[0])} to {_number(b[-1])}" if apart > 0.0 else f"which all still lie at {_number(b[0])}"
    return Line(tuple(parts), f"{told}, {ends}.", len(parts) <= LISTED)


def _between(r: int, b: Sequence[float]) -> str:
    """Return in words which scores have grade `r` predicted; `b` has the k - 1 rising thresholds between k grades."""
    if r == 1:
        return f"below {_number(b[0])}"
    if r == len(b) + 1:
        return f"{_number(b[-1])} and above"
    low, high = b[r - 2], b[r - 1]
    return f"{_number(low)} to {_number(high)}" if low < high else "no score so far"


def _number(value: float) -> str:
    return f"{value + 0.0:.2f}".replace("-", "−").replace("−0.00", "0.00")
