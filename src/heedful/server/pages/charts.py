"""Pictures as the script of a page draws them."""

from __future__ import annotations

import json
from typing import NamedTuple

from heedful.loop.interactions import findings

DASHES = [6, 5]


class Picture(NamedTuple):
    """Lines to be drawn in the browser."""

    data: str
    """JSON: {"x": numbers, "label": what they are, "y": the axis as `findings.Picture` has it, "lines": label, ink,
    dash and values of each}"""
    text: str
    """what it shows, for people who do not see it"""
    caption: str


def chart(picture: findings.Picture | None) -> Picture | None:
    """A picture for the browser: references are dashed and grey. None for none."""
    if picture is None:
        return None
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
    return Picture(json.dumps(data, separators=(",", ":")), picture.text, picture.caption)
