"""Numbers, times, feedback and events as text for pages: the filters of templates (`FILTERS`), and sentences."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from heedful.core.formatting import brief
from heedful.core.times import iso, utc
from heedful.core.wording import count, percent, share, share_of
from heedful.loop import Loop
from heedful.loop.interactions.forms import Json, known_forms
from heedful.loop.signals import duration
from heedful.results.history import LessonTold
from heedful.results.sentences import number
from heedful.results.sentences import sentence as as_sentence
from heedful.server.pages.charts import chart, threshold

SOME = 4
"""The number of names that a sentence lists before it says how many more there are."""


def moment(micros: int) -> Markup:
    """Return a time, given in microseconds since 1970, as an HTML element, for machines and for people."""
    return Markup('<time datetime="{}">{}</time>').format(iso(micros), utc(micros))


def thousands(n: int) -> str:
    """Return a whole number with commas: "12,345"."""
    return f"{n:,}"


def general(value: float) -> str:
    """Return a number with as many figures as it needs, up to six, and a typographic minus."""
    return f"{value:g}".replace("-", "−")


def size(n: float) -> str:
    """Return `n` bytes as text: "1.2 kB"."""
    for unit in ("B", "kB", "MB", "GB"):
        if n < 1000:
            return f"{n:.0f} {unit}" if unit == "B" or n >= 10 else f"{n:.1f} {unit}"
        n /= 1000
    return f"{n:,.1f} TB"


def sentence(text: str) -> str:
    """Return `text` with a capital letter and one full stop."""
    return as_sentence(text.rstrip("."))


def join_names(names: Sequence[str], most: int = SOME) -> str:
    """Return names joined for a sentence: "a, b and c". If there are more than `most`, name the first ones and count
    the others: "a, b and 7 more"."""
    if len(names) > most:
        return f"{', '.join(names[:most])} and {len(names) - most:,} more"
    return f"{', '.join(names[:-1])} and {names[-1]}" if len(names) > 1 else "".join(names)


FILTERS = {
    "brief": brief,
    "chart": chart,
    "count_of": count,
    "duration": duration,
    "general": general,
    "moment": moment,
    "number": number,
    "percent": percent,
    "share": share,
    "share_of": share_of,
    "sentence": sentence,
    "size": size,
    "thousands": thousands,
    "threshold": threshold,
}
"""How templates write numbers and times of results, by the name of the filter."""

# ---------------------------------------------------------------------------- lessons


def describe_lesson(loop: Loop, lesson: LessonTold) -> str:
    """Return in words what a person said in the piece of feedback `lesson`."""
    form = known_forms(loop.projection.interaction)[lesson.form]
    if lesson.said is None:
        return form.tell(lesson)
    text = form.say(lesson.said)
    return text[:1].upper() + text[1:]


# ---------------------------------------------------------------------------- events


def describe_event(loop: Loop, line: Json) -> str:
    """Return what happened in one event of the log, in words; `line` is the event as `heedful.io.exports` writes it."""
    kind, person = line["kind"], line.get("person")
    if kind == "item":
        return f"Item {line.get('id', '')} is on offer"
    if kind == "withdraw":
        return f"Item {line.get('id', '')} was taken off"
    if kind == "activate":
        return "What was made ahead was shown"
    if kind == "undo":
        return "A correction was taken back"
    if kind == "rollback":
        return "The model went back to an earlier version" + (f": {line['reason']}" if line.get("reason") else "")
    if kind == "experiment":
        return f"The learner {line['learner']} is tried against {line['against']}"
    if kind == "stop":
        return "The experiment ended"
    if kind == "promote":
        return f"The learner {line['learner']} serves in place of {line['before']}"
    if kind == "style":
        whose = f"the style of {person}" if person else "the style of everybody"
        return f"Said by hand of {whose}: " + (f"not {line['deny']}" if "deny" in line else f"always: {line['always']}")
    if kind == "decision":
        who = f" to {person}" if person else ""
        by_page = line["arm"] == "imported" and str(line["id"]).endswith(SEEN)
        how = " (not a first deal: the page had put these in order)" if by_page else _ARMS.get(line["arm"], "")
        shown = list(line["shown"])
        for name, at in sorted((line.get("unknown") or {}).items(), key=lambda entry: entry[1] or 0):
            if at is not None:
                shown.insert(at, name)
        return f"Shown{who}: {join_names(shown)}{how}"
    forms = known_forms(loop.projection.interaction).items()
    return f"Answer: {next(form for name, form in forms if line.get(name) is not None).say(line)}"


_ARMS = {
    "control": " (control)",
    "sampled": " (drawn at random)",
    "interleaved": " (of two learners)",
    "imported": " (in an order from elsewhere)",
}
SEEN = "-seen"
"""The ending of the ids of decisions that stand for lists which the page itself put in order after feedback."""
