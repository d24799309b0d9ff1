"""What is in a log, in words: moments, sizes, shares, events."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

from heedful.loop import Loop
from heedful.loop.history import LessonTold
from heedful.loop.interactions.findings import count as count
from heedful.loop.interactions.forms import known_forms

SOME = 4
"""How many names are told of many."""


class Moment(NamedTuple):
    """A point in time, for machines and for people."""

    iso: str
    told: str


def moment(micros: int) -> Moment:
    """Microseconds since 1970 as a moment."""
    at = datetime.fromtimestamp(micros // 1_000_000, UTC)
    return Moment(at.strftime("%Y-%m-%dT%H:%M:%SZ"), at.strftime("%Y-%m-%d %H:%M:%S UTC"))


def size(n: float) -> str:
    """A number of bytes."""
    for unit in ("B", "kB", "MB", "GB"):
        if n < 1000:
            return f"{n:.0f} {unit}" if unit == "B" or n >= 10 else f"{n:.1f} {unit}"
        n /= 1000
    return f"{n:,.1f} TB"


def share(n: int, of: int) -> str:
    """Format n out of `of` as a whole percentage, such as "42 %".

    Small shares read "under 1 %" and nearly full ones "over 99 %", so "0 %" always means none (or `of` is 0), and
    "100 %" all.
    """
    if of == 0 or n == 0:
        return "0 %"
    percent = 100 * n / of
    if percent < 1:
        return "under 1 %"
    return "over 99 %" if 99 < percent < 100 else f"{percent:.0f} %"


def join_names(names: Sequence[str], most: int = SOME) -> str:
    """Names in a sentence, the first of many."""
    told = list(names[:most])
    if len(names) > most:
        return f"{', '.join(told)} and {len(names) - most:,} more"
    return " and ".join([", ".join(told[:-1]), told[-1]]) if len(told) > 1 else "".join(told)


# ---------------------------------------------------------------------------- lessons


def describe_lesson(loop: Loop, lesson: LessonTold) -> str:
    """What was said in one piece of feedback."""
    return known_forms(loop.projection.interaction)[lesson.form].tell(lesson)


# ---------------------------------------------------------------------------- events


def describe_event(loop: Loop, line: Mapping[str, Any]) -> str:
    """One event, as `heedful.io` writes it, in words."""
    kind, person = line["kind"], line.get("person")
    if kind == "item":
        return f"Item {_name(line)} is on offer"
    if kind == "withdraw":
        return f"Item {_name(line)} was taken off"
    if kind == "activate":
        return "A list that was made ahead was shown"
    if kind == "undo":
        return "A correction was taken back"
    if kind == "rollback":
        return "The model went back to an earlier version" + (f": {line['reason']}" if line.get("reason") else "")
    if kind == "decision":
        who = f" to {person}" if person else ""
        own = line["arm"] == "imported" and str(line["id"]).endswith(SEEN)
        how = " (not a first deal: the page had put these in order)" if own else _ARMS.get(line["arm"], "")
        return f"Shown{who}: {join_names(line['shown'])}{how}"
    forms = known_forms(loop.projection.interaction).items()
    return f"Answer: {next(form for name, form in forms if line.get(name) is not None).say(line)}"


_ARMS = {"control": " (control)", "imported": " (in an order from elsewhere)"}
SEEN = "-seen"
"""How the ids of lists end that the page put in order after a lesson, and noted as shown."""


def _name(line: Mapping[str, Any]) -> str:
    return str(line.get("id", ""))
