"""Write numbers as text for people to read, as pages, reports and commands do."""

from __future__ import annotations

import math


def short(value: float) -> str:
    """Return `value` as text with three significant figures; from 100 on rounded to a whole number, with commas between
    thousands."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:#.3g}"


def brief(value: float) -> str:
    """Return `value` as text as `short` does, and in powers of ten from 1e15 on; NaN is "no number", infinity "beyond
    all numbers"."""
    if math.isnan(value):
        return "no number"
    if math.isinf(value):
        return "beyond all numbers" if value > 0.0 else "-beyond all numbers"
    return short(value) if abs(value) < 1e15 else f"{value:.2e}"


def signed(value: float) -> str:
    """Return `value` as text as `brief` does, with "+" or "-" before it; NaN has no sign."""
    return brief(value) if math.isnan(value) else f"{'+' if value >= 0.0 else '-'}{brief(abs(value))}"
