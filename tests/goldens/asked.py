"""What golden loops are asked: what they decide, in numbers; and how they say it, in words.

Decisions and states are values without the names of fields; what a name is called stands in the texts.
"""

from __future__ import annotations

import itertools
import json
import random
import re
import time
from contextlib import chdir
from pathlib import Path
from typing import Any
from unittest import mock

import msgspec
import numpy as np
from asking import Caller
from browsing import Seen, Visitor
from command import heedful

from goldens import folds
from goldens.logs import LAST, LATER, LEARNERS, MAKERS, clock, place, place_all
from heedful import Loop
from heedful.core.serialization import arrays_of
from heedful.io import export_lines
from heedful.server.main import served
from loops import empty_copy

FEEDBACK: dict[str, Any] = {
    "ranking": lambda shown: {"clicks": [shown[1]]},
    "grades": lambda shown: {"grade": {shown[0]: 5, shown[1]: 1}},
    "ratings": lambda shown: {"rating": {shown[0]: 5}},
    "choices": lambda shown: {"choice": "second"},
    "routes": lambda shown: {"thumb": "down", "item": shown[0]},
}
OTHERS = {
    "ranking": "perceptron",
    "grades": "prank:n_ranks=5",
    "ratings": "item-mean",
    "choices": "gp",
    "routes": "cheapest",
}
"""What a loop is evaluated with."""
OPTIONS = {
    "ranking": ("--clicks FIRST", "--clicks nobody", "--thumb sideways", "--none"),
    "grades": ("--grade FIRST=5 --grade LAST=1", "--grade FIRST=6", "--clicks FIRST", "--none"),
    "ratings": ("--rating FIRST=4.5 --rating LAST=2", "--rating FIRST=6", "--clicks FIRST", "--did LAST=buy", "--none"),
    "choices": ("--choice first", "--better LAST", "--rating FIRST=4", "--choice cannot_judge", "--none"),
    "routes": ("--thumb up", "--thumb sideways", "--clicks FIRST", "--none"),
}
"""What is answered on the command line: right, wrong, what such a loop does not take, and that nothing was wanted."""
PEOPLE = (None, "p0", "p1", "p3", "p9")


# ---------------------------------------------------------------------------- in numbers


def state(loop: Loop) -> str:
    """The state of the model, of all and of each person, as JSON."""
    with loop.projection.turn:
        model = loop.projection.model
        found = list(arrays_of(model.shared, "shared").items())
        for name, person in sorted(model.people.items()):
            found += arrays_of(person.state, name).items()
            found += arrays_of((person.lessons,), f"{name}.lessons").items()
        return folds.as_json(loop.projection.learner_version, found)


def differences(kind: str, expected: str, found: str) -> list[str]:
    """What differs between two states of a loop of a kind; nothing where it is rounding alone."""
    return folds.differences(LEARNERS[kind], folds.from_json(expected)[1], folds.from_json(found)[1])


def values(decision: Any) -> dict[str, Any]:
    """What was decided."""
    return {
        "id": decision.id,
        "shown": decision.shown,
        "arm": decision.arm,
        "probability": decision.probability,
        "predicted": decision.predicted,
    }


def decisions(kind: str, loop: Loop) -> str:
    """Those in the log, told again; new ones; and new ones after one more feedback, as JSON."""
    log = loop.projection.log
    known = {event.id: event.subject for event in log.events(kinds=["decision"])}
    again = [values(loop.decide(id=id, person=person)) for id, person in known.items()]
    fresh = [values(loop.decide(id=f"next-{person}", person=person)) for person in PEOPLE]
    shown = next(each["shown"] for each in again if each["id"] == LAST[kind])
    loop.feedback(LAST[kind], id="late", **FEEDBACK[kind](shown))
    after = [values(loop.decide(id=f"after-{person}", person=person)) for person in PEOPLE]
    rows = [json.dumps(each) for each in (*again, *fresh, *after)]
    return "[\n" + ",\n".join(rows) + "\n]\n"


def other_decisions(expected: str, found: str) -> list[tuple[Any, Any]]:
    """The decisions that differ, as pairs; what was predicted may differ by rounding, as states may."""
    pairs = list(zip(json.loads(expected), json.loads(found), strict=True))

    def near(a: Any, b: Any) -> bool:
        return np.allclose(np.array(a, float), np.array(b, float), rtol=1e-9, equal_nan=True)

    rest = {"predicted": None}
    return [(a, b) for a, b in pairs if a | rest != b | rest or not near(a["predicted"], b["predicted"])]


# ---------------------------------------------------------------------------- in words


def exported(loop: Loop) -> str:
    """The loop as JSON lines."""
    return "".join(json.dumps(line) + "\n" for line in export_lines(loop))


def commands(kind: str, folder: Path) -> str:
    """What commands print, in words and as JSON; `folder`, with the loop in it, is the working directory."""
    spec = OTHERS[kind]
    lines = ["report", f"why {{}} {LAST[kind]}", "why {} d0", f"evaluate {{}} --learner {spec}", "doctor"]
    about = ' --context {"embedding":[0,1,0]}' if kind == "routes" else ""
    lines += [f"decide {{}} --person p0 --id cli{about}", *(["standing"] if kind == "choices" else []), "undo {} e3"]
    lines += ["forget {} p0 --yes", f"decide {{}} --person p1 --id again{about}"]
    told = _outputs(kind, lines)
    with Loop.open(folder / f"{kind}.heedful") as loop:
        known = loop.projection.find_decision("again")
        assert known is not None
        shown = [known.names[j] for j in known.record.shown]
    answers = [f"feedback {{}} again --id answer{i} {each}" for i, each in enumerate(OPTIONS[kind])]
    lines = [each.replace("FIRST", shown[0]).replace("LAST", shown[-1]) for each in answers]
    if kind == "choices":
        lines += ["decide {} --person p1 --id three --show 3", "standing {} --person p1", "standing {} --person [anm]"]
    lines += ["health {}", f"why {{}} d13 {shown[0]}"]
    return _steady("\n".join(told + _outputs(kind, lines)), folder)


def _outputs(kind: str, lines: list[str]) -> list[str]:
    """What each command prints, in words and as JSON."""
    told = []
    for line in lines:
        words = line if "{}" in line else f"{line} {{}}"
        for form in ("", " --json"):
            ended = heedful(f"{words}{form}", kind, width=100)
            told.append(f"$ heedful {words.replace('{}', kind)}{form}\n{ended.out}{ended.err}[{ended.code}]\n")
    return told


ROUTES = ("", "/items?limit=3", "/weights", "/weights?person=p0", "/report", "/standing", "/decisions/d0/why")
PAGES = ("", "?person=p0", "/learned", "/learned?person=p0", "/compare", "/results", "/row", "/health")
PAGES += ("/proof?learner=OTHER&plan=1", "/why?decision=LAST")
BEFORE = ("?person=p0", "/learned", "/results", "/health", "/row")
"""Pages of a loop in which nothing happened."""


def answers(kind: str, url: str, key: str, folder: Path) -> str:
    """What a server answers."""
    caller = Caller(url, key)
    base = f"/v1/loops/{kind}"
    sent: list[tuple[str, str, Any]] = [("GET", f"{base}{path}", ...) for path in ROUTES]
    sent += [
        ("POST", f"{base}/decisions", {"id": "http", "person": "p1"}),
        ("POST", f"{base}/feedback", FEEDBACK[kind]),
        ("POST", f"{base}/feedback", {"decision": "http", "id": "wrong", "thumb": "sideways"}),
        ("POST", f"{base}/feedback", {"decision": "nobody", "id": "x", "clicks": ["i1"]}),
        ("POST", f"{base}/undo", {"event": "e4", "id": "undo-e4"}),
        ("POST", f"{base}/forget", {"person": "p3"}),
        ("POST", f"{base}/rank", {"person": "p1"}),
    ]
    told, shown = [], list[str]()
    try:
        for method, path, body in sent:
            if callable(body):
                body = {"decision": "http", "id": "right", **body(shown)}
            answer = caller(method, path, body)
            shown = answer.value.get("shown", shown)
            answer.value.pop("request_id", None)  # drawn anew by each server
            written = msgspec.json.format(msgspec.json.encode(answer.value), indent=1).decode()
            told.append(f"{method} {path} {'' if body is ... else json.dumps(body)}\n{answer.status}\n{written}\n")
    finally:
        caller.close()
    return _steady("\n".join(told), folder)


def pages(kind: str, url: str, key: str, folder: Path) -> str:
    """The visible text of the main pages, a line for each piece."""
    visitor, told = Visitor(url), []
    try:
        visitor.sign_in(key)
        paths = [f"{kind}{page.replace('OTHER', OTHERS[kind]).replace('LAST', LAST[kind])}" for page in PAGES]
        paths += [f"new-{kind}{page}" for page in BEFORE if kind != "routes"]
        for path in paths:
            random.seed(0)  # which cards are dealt
            seen, until = visitor.get(f"/loops/{path}"), time.monotonic() + 60.0
            while "The ranking is being computed" in _visible(seen) and time.monotonic() < until:
                time.sleep(0.2)
                seen = visitor.get(f"/loops/{path}")
            told.append(f"GET /loops/{path} {seen.status}\n{_visible(seen)}\n")
    finally:
        visitor.close()
    return _steady("\n".join(told), folder)


def _visible(seen: Seen) -> str:
    found: list[str] = []

    def walk(element: Any) -> None:
        if element.tag not in ("script", "style", "template"):
            found.append(element.text or "")
            for child in element:
                walk(child)
                found.append(child.tail or "")

    walk(seen.tree)
    return "\n".join(" ".join(piece.split()) for piece in found if piece.strip())


def _steady(text: str, folder: Path) -> str:
    """Without what is another each time: where the folder is, how large files are, drawn ids, the last of 16 digits."""
    text = text.replace(str(folder), "FOLDER")
    text = re.sub(r"\b[0-9a-f]{32}\b", "ID", text)
    text = re.sub(r"\b\d[\d.,]* (bytes|[kKMG]B|ms)\b", r"N \1", text)
    text = re.sub(r"\d+\.\d{7,}(e-?\d+)?", lambda found: f"{float(found[0]):.6g}", text)  # the last bits
    return "\n".join(line.rstrip() for line in text.splitlines()) + "\n"


# ---------------------------------------------------------------------------- together


def texts(folder: Path) -> dict[str, str]:
    """All texts by file name, of all golden loops, of copies in `folder`."""
    found: dict[str, str] = {}
    for name in ("export", "cli", "served"):
        (folder / name).mkdir(mode=0o700)
    with clock(LATER):
        for kind in MAKERS:
            with Loop.open(place(kind, folder / "export")) as loop:
                found[f"{kind}/export.jsonl"] = exported(loop)
                if kind != "routes":  # which is nothing without its models
                    empty_copy(folder / "served" / f"new-{kind}.heedful", loop.manifest).close()
            with chdir(folder / "cli"):
                place(kind, folder / "cli", snapshot=False)
                found[f"{kind}/commands.txt"] = commands(kind, folder / "cli")
        key = place_all(folder / "served")
        with served(folder / "served") as url:
            for kind in MAKERS:
                numbers = itertools.count()
                with mock.patch("heedful.loop.records.new_id", lambda n=numbers: f"{next(n):032x}"):
                    found[f"{kind}/pages.txt"] = pages(kind, url, key, folder / "served")
                    found[f"{kind}/http.txt"] = answers(kind, url, key, folder / "served")
    return found
