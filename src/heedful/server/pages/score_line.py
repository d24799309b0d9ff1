"""The line of scores, cut into what is predicted."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

LISTED = 10
"""Up to so many parts are told one by one."""


class Part(NamedTuple):
    """The scores for which one grade is predicted."""

    grade: int
    told: str
    left: float
    """where it begins on the line that is drawn, and how long it is, in percent of the line"""
    width: float


class Line(NamedTuple):
    """The scores, cut into grades."""

    parts: tuple[Part, ...]
    told: str
    """what the thresholds are, for people who do not see the line"""
    listed: bool
    """whether the grades are few enough to be told one by one"""


def score_line(b: Sequence[float] | None) -> Line | None:
    """Where the score is cut; None where it is not."""
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
    """For which scores a grade is predicted."""
    if r == 1:
        return f"below {_number(b[0])}"
    if r == len(b) + 1:
        return f"{_number(b[-1])} and above"
    low, high = b[r - 2], b[r - 1]
    return f"{_number(low)} to {_number(high)}" if low < high else "no score so far"


def _number(value: float) -> str:
    return f"{value + 0.0:.2f}".replace("-", "−").replace("−0.00", "0.00")
