"""Charts of a report, as data for the script that draws them."""

from __future__ import annotations

import json
from typing import NamedTuple

from heedful.loop.interactions import findings

DASHES = [6, 5]


class Picture(NamedTuple):
    """A line chart: data for the script that draws it in the browser, and texts."""

    data: str
    """JSON: {"x": numbers, "label": what they count, "y": the kind of axis (`findings.Picture.axis`), "lines": label,
    ink, dash and values of each}"""
    text: str
    """what the chart shows, for people who cannot see it"""
    caption: str
    """the text below the chart"""


def chart(picture: findings.Picture | None) -> Picture | None:
    """Return a `picture` of a report as data for the browser; None for None.

    Lines of reference, with which the others are compared, are dashed and grey."""
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
