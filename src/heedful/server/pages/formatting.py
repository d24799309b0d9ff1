"""What is in a log, in words: moments, sizes, shares, events."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

from heedful.loop.lessons import LessonTold
from heedful.server.pages.feature_phrases import short

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


def count(n: int, one: str, many: str | None = None) -> str:
    """So many of something."""
    return f"{n:,} {one if n == 1 else many or f'{one}s'}"


def share(n: int, of: int) -> str:
    """A part of a whole in percent; what is there is never 0 %, and what is missing never makes 100 %."""
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


def beginning(text: str, words: int = 8) -> str:
    """How a text begins."""
    told = text.split()
    return short(" ".join(told[:words]) + (" …" if len(told) > words else ""))


# ---------------------------------------------------------------------------- lessons


def describe_lesson(told: LessonTold) -> str:
    """What was said in one piece of feedback."""
    chosen, over = join_names(told.chosen), f" before {join_names(told.over)}" if told.over else ""
    if told.form == "clicks":
        return f"Clicked {chosen}{over and f', not {join_names(told.over)}'}" if told.chosen else "Clicked nothing"
    if told.form == "thumb":
        return f"Thumb {'up' if told.values[0] > 0.0 else 'down'} for {chosen or 'the list'}"
    if told.form == "action":
        return f"{(told.text or 'an action').capitalize()}: {chosen}{over and f', shown below {join_names(told.over)}'}"
    if told.form in ("rating", "grade"):
        numbers = [f"{name}: {value:g}" for name, value in zip(told.chosen, told.values)]
        return f"{'Rated' if told.form == 'rating' else 'Graded'} {join_names(numbers)}"
    if told.form == "actions":
        done = (told.text or "an action").split("; ")
        if len(done) != len(told.chosen):  # a name of an action may have a semicolon
            return f"{(told.text or 'an action').capitalize()}: {join_names(told.chosen)}"
        return join_names([f"{what.capitalize()}: {name}" for name, what in zip(told.chosen, done)])
    if told.form == "edit":
        if told.chosen:
            return f"Corrected {join_names(told.over)} to {chosen}"
        return "Corrected what was shown" + (f" to “{beginning(told.text)}”" if told.text else "")
    if told.form == "choice":
        return f"Chose {chosen}, not {join_names(told.over)}" if told.chosen else "Could not choose between the two"
    if told.form == "none":
        return "Wanted none of these"
    return f"Put {chosen}{over}" if over else f"Agreed that {told.chosen[0]} is first"


# ---------------------------------------------------------------------------- events


def describe_event(line: Mapping[str, Any]) -> str:
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
    if kind == "decision":
        who = f" to {person}" if person else ""
        own = line["arm"] == "imported" and str(line["id"]).endswith(SEEN)
        how = " (not a first deal: the page had put these in order)" if own else _ARMS.get(line["arm"], "")
        if "predicted" in line and line["arm"] == "control":
            how = " (for comparison)"
        return f"Shown{who}: {join_names(line['shown'])}{how}"
    return f"Answer: {answer(line)}"


_CHOICES = {"first": "the first", "second": "the second", "equal": "both alike", "cannot_judge": "cannot judge"}
_ARMS = {"control": " (left in the list's own order)", "imported": " (in an order from elsewhere)"}
SEEN = "-seen"
"""How the ids of lists end that the page put in order after a lesson, and noted as shown."""


def _name(line: Mapping[str, Any]) -> str:
    return str(line.get("id", ""))


def answer(line: Mapping[str, Any]) -> str:
    """What a person answered, in words, without the names of what was shown beside it."""
    if "clicks" in line:
        return f"clicked {join_names(line['clicks'])}" if line["clicks"] else "clicked nothing"
    if "better" in line:
        return f"{'would rather have ' if len(line['better']) == 1 else 'put first '}{join_names(line['better'])}"
    if "edit" in line:
        return "corrected what was shown"
    if "thumb" in line:
        return f"thumb {line['thumb']}" + (f" for {line['item']}" if "item" in line else "")
    if "action" in line:
        return f"{line['action'] or 'did something'}: {line.get('item', '')}"
    for form in ("rating", "grade"):
        if form in line:
            return f"{form} {join_names([f'{name}: {value:g}' for name, value in line[form].items()])}"
    if "actions" in line:
        done = line["actions"].items()
        return join_names([f"{what if isinstance(what, str) else ', '.join(what)}: {name}" for name, what in done])
    if "choice" in line:
        return _CHOICES[line["choice"]]
    return "none of these"
