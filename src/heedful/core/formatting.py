"""Numbers as people read them, for whatever prints them."""

from __future__ import annotations

import math


def short(value: float) -> str:
    """Return a number in three figures, with all of its digits from 100 on."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:#.3g}"


def brief(value: float) -> str:
    """Return a number in three figures, in powers of ten from 1e15 on; NaN and infinity in words."""
    if math.isnan(value):
        return "no number"
    if math.isinf(value):
        return "beyond all numbers" if value > 0.0 else "-beyond all numbers"
    return short(value) if abs(value) < 1e15 else f"{value:.2e}"


def signed(value: float) -> str:
    """Return a number as `brief` does, with its sign."""
    return brief(value) if math.isnan(value) else f"{'+' if value >= 0.0 else '-'}{brief(abs(value))}"
