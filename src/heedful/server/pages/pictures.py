"""What is drawn and judged alike for all loops: lines over time, a verdict, numbers with a sign."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

POINTS = 20
"""Of a line over time, at most."""
DASHES = [6, 5]


class Verdict(NamedTuple):
    """Whether learning helps."""

    kind: str
    """good, bad or open"""
    short: str
    more: tuple[str, ...]


class Picture(NamedTuple):
    """Lines to be drawn in the browser."""

    data: str
    """JSON: {"x": numbers, "label": what they are, "y": "place", "log" or "off", "lines": as `stroke` makes them}"""
    said: str
    """what it shows, for who does not see it"""
    caption: str


def signed(value: float) -> str:
    """A difference, +0.38 or −0.38."""
    return f"{value:+.2f}".replace("-", "−")


def stroke(label: str, ink: str, values: Sequence[float | None], dash: Sequence[int] = ()) -> dict[str, Any]:
    """One line; `ink` is a colour of the style sheet."""
    return {"label": label, "ink": ink, "dash": list(dash), "values": list(values)}


def drawn(x: Sequence[int], label: str, y: str, lines: Sequence[dict[str, Any]]) -> str:
    """Lines as the page's script takes them."""
    return json.dumps({"x": list(x), "label": label, "y": y, "lines": list(lines)}, separators=(",", ":"))
