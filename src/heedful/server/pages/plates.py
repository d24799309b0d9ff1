"""The sizes at which pictures are compared: all with the same area, each on a frame ("plate") of the same shape.

The style sheet makes the plates as large as the window allows. This module computes the size of each picture in percent
of its plate, so that a page needs no inline styles and no script for that."""

from __future__ import annotations

from collections.abc import Sequence
from math import log, sqrt
from typing import NamedTuple

SHAPES = {"1-2": 0.5, "2-3": 2 / 3, "1-1": 1.0, "3-2": 1.5, "2-1": 2.0, "3-1": 3.0}
"""The shapes of plates that the style sheet has: name -> width over height."""
WIDE = 1.5
"""Plates at least this wide (width over height) lie one above the other in a narrow window."""
MARGIN = 0.94
"""The largest share of a plate's width, and of its height, that a picture may take up."""


class Plates(NamedTuple):
    """The frames in which pictures are shown side by side, all of one shape, and the sizes of the pictures in them."""

    shape: str
    """a key of SHAPES"""
    wide: bool
    """whether the plates are put one above the other in a narrow window"""
    pictures: tuple[tuple[str, str], ...]
    """(width, height) of each picture in percent of those of its frame, as text: ("94.00%", "62.67%")"""


def plates(ratios: Sequence[float]) -> Plates:
    """Return the frames ("plates") on which pictures are shown side by side, and the size of each picture.

    `ratios` are the pictures' widths over their heights. All pictures get the same area, the largest for which each of
    them fits on its frame."""
    middle = sqrt(min(ratios) * max(ratios))
    shape = min(SHAPES, key=lambda name: abs(log(SHAPES[name] / middle)))
    across = SHAPES[shape]
    side = MARGIN * min(min(across / sqrt(ratio), sqrt(ratio)) for ratio in ratios)  # the root of the area
    sizes = [(f"{100 * side * sqrt(ratio) / across:.2f}%", f"{100 * side / sqrt(ratio):.2f}%") for ratio in ratios]
    return Plates(shape, across >= WIDE, tuple(sizes))
