"""A log with everything in it that a loop may have to speak of: every form of feedback, items that were not on offer,
items that were taken off or changed, people who were forgotten, answers that were taken back, decisions that were
imported, made ahead or drafted by two learners; and every report of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from heedful import Loop
from heedful.data.row_report import Report
from heedful.io import export_lines
from heedful.io.formats import FORMATS
from heedful.loop.interactions.forms import ITEM, Form
from kinds import NAMES, Kind, ask, teach

STRANGE = "nope"
"""An item that is never on offer."""
DIFFERENT = ("s0-p0", "s2-p0", "imported", "imported-strange", "d13", "d33")
"""A decision of each sort: to ask why costs a fold for each answer before it."""


def everything(kind: Kind, path: Path, **settings: Any) -> Loop:
    """A new loop of `kind` in the folder `path` that has all of it in its log."""
    loop = kind.make(path, **settings)
    teach(kind, loop, range(8))
    for at, candidates in enumerate((NAMES[:6], [*NAMES[:2], STRANGE, *NAMES[2:4]], [STRANGE], [STRANGE, "nor this"])):
        for person in ("p0", "p2"):
            asked = ask(kind, at) | {"id": f"s{at}-{person}", "candidates": candidates, "person": person}
            asked.pop("prior", None)
            shown = loop.decide(**asked).shown
            for form, fields in _answers(loop):
                _give(loop, asked["id"], _named(fields, [*shown, *candidates]))
                if form.name == "clicks":
                    _give(loop, asked["id"], {"clicks": []})
    for i in range(8, 12):  # people who said nothing, somebody who is nobody in particular
        loop.decide(**ask(kind, i) | ({} if i < 10 else {"person": None}))
    asked = ask(kind, 12) | {"candidates": NAMES[:3], "show": 2}
    asked.pop("prior", None)
    asked.pop("repeats", None)
    loop.record(NAMES[:3], NAMES[1:3], id="imported", person="p1", context=asked.get("context"), probability=0.5)
    loop.record([*NAMES[:2], STRANGE], [STRANGE, NAMES[0]], id="imported-strange", context=asked.get("context"))
    ahead = loop.decide(**ask(kind, 13), deferred=True).shown
    loop.activate("d13")
    loop.decide(**ask(kind, 14), deferred=True)
    for id, shown in {"imported": NAMES[1:3], "imported-strange": [STRANGE, NAMES[0]], "d13": ahead}.items():
        for _, fields in _answers(loop):
            _give(loop, id, _named(fields, shown))
    loop.withdraw("i11")
    loop.undo("e3")
    before = loop.version
    teach(kind, loop, range(20, 23), withdrawn="i11")
    loop.rollback(before)
    if kind.name not in ("comparison", "routing", "best-worst"):
        loop.start_experiment(kind.other, share=1.0)
    teach(kind, loop, range(30, 34), withdrawn="i11")
    loop.forget("p2")
    return loop


def _give(loop: Loop, decision: str, fields: Mapping[str, Any]) -> None:
    """An answer, which may be refused."""
    try:
        loop.feedback({**fields, "decision": decision})
    except ValueError:
        return


def _answers(loop: Loop) -> Iterator[tuple[Form, dict[str, Any]]]:
    """Every form of feedback that the loop takes, with the example of it and with every item that may come along, for
    items called a, b, c; the last of those is not on offer."""
    for form in loop.projection.interaction.forms.values():
        yield form, {form.name: form.example}
        for item in "abc":
            along = {name: item for name, schema in form.more_fields.items() if schema == ITEM}
            if along:
                yield form, {form.name: form.example, **along}
            if form.name in ("clicks", "better"):
                yield form, {form.name: [item]}


def _named(fields: Any, names: Sequence[str]) -> Any:
    """`fields` with the items a, b, c called by the first, second and last of `names`."""
    called = {"a": names[0], "b": names[min(1, len(names) - 1)], "c": names[-1]}
    if isinstance(fields, Mapping):
        return {called.get(name, name): _named(value, names) for name, value in fields.items()}
    if isinstance(fields, list):
        return [_named(each, names) for each in fields]
    return called.get(fields, fields) if isinstance(fields, str) else fields


# ---------------------------------------------------------------------------- what there is to say of it


def decisions(loop: Loop) -> list[dict[str, Any]]:
    """The decisions in its log, as they are exported."""
    return [line for line in export_lines(loop) if line["kind"] == "decision"]


def reports(loop: Loop, kind: Kind) -> Iterator[tuple[str, Callable[[], object]]]:
    """Everything that Python says of a loop, by name, to be called."""
    for name in ("report", "health", "experiment", "notes", "caveats", "style_of", "verify"):
        found = getattr(loop, name)
        yield name, found if callable(found) else lambda found=found: found
    yield "evaluate", lambda: loop.evaluate(kind.other)
    for person in (None, "p0", "p1", "nobody"):
        yield f"lessons of {person}", lambda person=person: loop.lessons(10_000, person=person)
        yield f"style of {person}", lambda person=person: loop.style_of(person)
        yield f"standing of {person}", lambda person=person: loop.standing(person)
    for line in decisions(loop):
        yield f"why {line['id']}", lambda line=line: loop.why(line["id"], budget=0.0)
        for item in dict.fromkeys([*line["shown"][:1], STRANGE]) if line["id"] in DIFFERENT else ():
            yield f"why {line['id']} {item}", lambda line=line, item=item: loop.why(line["id"], item)
    for each in FORMATS.values():
        if each.write is not None:
            yield f"export --as {each.name}", lambda each=each: list(each.write(loop, Report(), {}))
