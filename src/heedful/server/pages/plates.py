"""Pictures that are compared, shown in one size: each has the same area, on a plate of the same shape.

The style sheet makes the plate as large as there is room for, whatever the window; here it is found out, as shares of
the plate, how large each picture is on it. So no style has to be written into a page, and it needs no script.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import log, sqrt
from typing import NamedTuple

SHAPES = {"1-2": 0.5, "2-3": 2 / 3, "1-1": 1.0, "3-2": 1.5, "2-1": 2.0, "3-1": 3.0}
"""Plates that the style sheet knows: width by height."""
WIDE = 1.5
"""Width by height of a plate from which on two of them lie one above the other where a window is narrow."""
MARGIN = 0.94
"""How much of a plate a picture takes up, at most, in each direction."""


class PlateSize(NamedTuple):
    """One picture on its plate, in percent of that."""

    width: str
    height: str


class Plates(NamedTuple):
    """The plates of pictures that are shown side by side."""

    shape: str
    """one of SHAPES"""
    wide: bool
    pictures: tuple[PlateSize, ...]


def plates(ratios: Sequence[float]) -> Plates:
    """How pictures of these shapes, width by height, are shown: with one area, the largest for which each fits."""
    middle = sqrt(min(ratios) * max(ratios))
    shape = min(SHAPES, key=lambda name: abs(log(SHAPES[name] / middle)))
    across = SHAPES[shape]
    side = MARGIN * min(min(across / sqrt(ratio), sqrt(ratio)) for ratio in ratios)  # the root of the area
    shown = [
        PlateSize(f"{100 * side * sqrt(ratio) / across:.2f}%", f"{100 * side / sqrt(ratio):.2f}%") for ratio in ratios
    ]
    return Plates(shape, across >= WIDE, tuple(shown))
