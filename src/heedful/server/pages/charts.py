"""What is drawn and judged alike for all loops: lines over time, a verdict, numbers with a sign."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

from heedful.loop.report import Arm, Report
from heedful.server.pages.formatting import count

POINTS = 20
"""Of a line over time, at most."""
DASHES = [6, 5]
EACH = 8
"""Answered lists behind each point of a line over time, at least: of fewer, chance is all that one sees."""


class Lists(NamedTuple):
    """One kind of list in the table."""

    name: str
    shown: int
    answered: int
    height: str
    """how high what was wanted stood in them, on average"""


class Verdict(NamedTuple):
    """Whether learning helps."""

    kind: str
    """good, bad or open"""
    short: str
    more: tuple[str, ...]


class Picture(NamedTuple):
    """Lines to be drawn in the browser."""

    data: str
    """JSON: {"x": numbers, "label": what they are, "y": "place", "log", "off", or [low, high], "lines": as `stroke`
    makes them}"""
    said: str
    """what it shows, for who does not see it"""
    caption: str


def format_signed(value: float) -> str:
    """A difference, +0.38 or −0.38."""
    return f"{value:+.2f}".replace("-", "−")


def stroke(label: str, ink: str, values: Sequence[float | None], dash: Sequence[int] = ()) -> dict[str, Any]:
    """One line; `ink` is a colour of the style sheet."""
    return {"label": label, "ink": ink, "dash": list(dash), "values": list(values)}


def chart_json(x: Sequence[int], label: str, y: str | Sequence[float], lines: Sequence[dict[str, Any]]) -> str:
    """Lines as the page's script takes them."""
    return json.dumps({"x": list(x), "label": label, "y": y, "lines": list(lines)}, separators=(",", ":"))


def describe_excluded(
    report: Report, imported: str = "put in order by the page itself after a lesson, or imported"
) -> str:
    """What is in neither kind of list, in a sentence; "" where nothing is. `imported` says what lists are that somebody
    else made."""
    apart = [(report.imported, imported), (report.waiting, "made ahead and never shown")]
    told = [f"{count(n, 'list')} {what}" for n, what in apart if n]
    told += [f"{count(report.feedback.undone, 'answer')} taken back"] if report.feedback.undone else []
    return f"Besides these: {'; '.join(told)}." if told else ""


def mean_points(arms: Sequence[Arm]) -> list[float | None]:
    """The means of one arm over time, window by window: several together, at the last of them, so that no point rests
    on a handful of lists."""
    found: list[float | None] = [None] * len(arms)
    step, began, part = -(-len(arms) // POINTS), 0, list[tuple[int, float]]()
    for i, arm in enumerate(arms):
        part += [(arm.answered, arm.mean)] if arm.mean is not None else []
        answered = sum(n for n, _ in part)
        if i - began + 1 >= step and answered >= EACH:
            found[i] = round(sum(n * mean for n, mean in part) / answered, 4)
            began, part = i + 1, []
    return found


def merge_windows(series: Sequence[tuple[int, float, float]]) -> list[tuple[int, float, float]]:
    """Neighbouring (how many, mean, another mean) as one, so that no more than `POINTS` are left."""
    step, found = -(-len(series) // POINTS) or 1, list[tuple[int, float, float]]()
    for start in range(0, len(series), step):
        part = series[start : start + step]
        n = sum(each[0] for each in part)
        ours, other = (sum(each[0] * each[i] for each in part) / n for i in (1, 2))
        found.append((n, ours, other))
    return found
