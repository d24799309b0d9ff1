"""Logs as heedful wrote them on the day that their records were first packed, and what it made of them.

    .venv/bin/python tests/logs/make.py FOLDER

The files beside this one are not made again: what is written by later code is another log. They are here to be read.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from heedful import Loop, Settings
from heedful.core.serialization import arrays_of
from heedful.features import infer
from heedful.io import export_lines

WORDS = ("quiet", "fast", "red", "old", "cheap", "warm", "slow", "blue")


def things(n: int) -> list[dict[str, Any]]:
    """n items "i0", "i1", ... with two numbers, a category and a text."""
    rng = np.random.default_rng(5)
    return [
        {
            "id": f"i{j}",
            "price": float(rng.integers(5, 90)),
            "weight": round(float(rng.normal()), 3),
            "kind": ("lamp", "chair", "rug")[j % 3],
            "about": " ".join(rng.choice(WORDS, 4)),
        }
        for j in range(n)
    ]


KINDS = {"price": "number", "weight": "number", "kind": "category", "about": "text"}
CONTEXT = [{"hour": float(h), "place": p} for h, p in ((8, "home"), (12, "work"), (20, "home"), (23, "out"))]


def orders(folder: Path, **settings: Any) -> Loop:
    """Of the whole catalogue, of names, of objects, of an array; with the caller's score, a context, people."""
    rows = things(70)
    encoding = infer(rows, identifier="id", kinds=KINDS, buckets=8)
    how: dict[str, Any] = {"shrink": 2.0, "control": 0.2} | settings
    loop = Loop.create(
        folder,
        encoding=encoding,
        items=rows,
        context=infer(CONTEXT, identifier="", kinds={"hour": "number", "place": "category"}),
        crosses=[("hour", "price"), ("place", "kind")],
        settings=Settings(**how),
    )
    loop.put_items([rows[3] | {"price": 1.0}, {"id": "new", "price": 7.0, "kind": "rug"}])
    loop.withdraw("i5")
    loop.withdraw("i9")
    loop.put_items([rows[9]])
    for t in range(24):
        context, person = CONTEXT[t % 4], f"p{t % 3}"
        among: Any = None
        if t % 4 == 1:
            among = [f"i{j}" for j in (*range(10, 30), *range(40, 31, -1))]
        elif t % 4 == 2:
            among = [row | {"id": f"came{t}-{j}"} for j, row in enumerate(things(15))]
        elif t % 4 == 3:
            among = np.random.default_rng(t).standard_normal((9, encoding.size)).round(2)
        prior = None if t % 3 else [float((7 * j) % 11) for j in range(len(loop.items if among is None else among))]
        show = None if t % 5 else 7
        d = loop.decide(among, person=person, context=context, prior=prior, show=show, id=f"d{t}", deferred=t == 20)
        if t in (20, 23):
            continue
        if t % 6 == 5:
            loop.feedback(d.id, id=f"e{t}", better=[d.shown[-1], d.shown[2]])
        elif t % 6 == 4:
            loop.feedback(d.id, id=f"e{t}", edit={"price": 3.0}, item=d.shown[1])
        elif t % 6 == 3:
            loop.feedback(d.id, id=f"e{t}", thumb="down", item=d.shown[0])
        else:
            loop.feedback(d.id, id=f"e{t}", clicks=[d.shown[1], d.shown[2]])
        if t == 10:
            loop.put_items([rows[20] | {"price": 66.0}])
        if t == 12:
            loop.undo("e9")
    loop.record(["i1", "i2", "i3"], ["i2", "i1"], id="told", person="p1", context=CONTEXT[0], prior={"i1": 2.0})
    loop.feedback("told", id="e-told", clicks=["i2"])
    return loop


def bare(folder: Path) -> Loop:
    """The same without texts, and without what was not shown."""
    return orders(folder, store_text=False, keep_unshown=False, shrink=0.0)


def grades(folder: Path) -> Loop:
    rows = things(70)
    encoding = infer(rows, identifier="id", kinds=KINDS, buckets=8)
    how = Settings(shrink=1.0, control=0.2)
    loop = Loop.create(folder, encoding=encoding, items=rows, learner="averaged-prank:n_ranks=5", settings=how)
    for t in range(12):
        among = None if t % 2 else [f"i{j}" for j in range(t, t + 6)]
        d = loop.decide(among, person=f"p{t % 2}", id=f"d{t}")
        if t != 11:
            loop.feedback(d.id, id=f"e{t}", grade={name: 1 + (3 * j + t) % 5 for j, name in enumerate(d.shown[:4])})
    loop.withdraw("i2")
    return loop


def ratings(folder: Path) -> Loop:
    loop = Loop.create(folder, items=[{"id": f"i{j}"} for j in range(20)], settings=Settings(ratings=(1, 5), k=4))
    for t in range(12):
        d = loop.decide(person=f"p{t % 3}", id=f"d{t}")
        if t != 11:
            loop.feedback(d.id, id=f"e{t}", rating={name: 1 + (2 * j + t) % 5 for j, name in enumerate(d.shown[:3])})
    loop.withdraw("i2")
    return loop


def choices(folder: Path) -> Loop:
    rows = [{"id": f"i{j}", "price": float((3 * j) % 7)} for j in range(8)]
    encoding = infer(rows, identifier="id", kinds={"price": "number"})
    loop = Loop.create(folder, encoding=encoding, items=rows, settings=Settings(choices="best"))
    for t in range(8):
        d = loop.decide(person=f"p{t % 2}", id=f"d{t}")
        if t != 7:
            loop.feedback(d.id, id=f"e{t}", choice=("first", "second", "equal")[t % 3])
    return loop


MAKERS: dict[str, Callable[[Path], Loop]] = {
    "orders": orders,
    "bare": bare,
    "grades": grades,
    "ratings": ratings,
    "choices": choices,
}


def seen(loop: Loop) -> dict[str, Any]:
    """What a loop makes of its log: the model, every decision told again, what it decides next, what it exports."""
    model = loop.projection.model
    numbers = {name: np.asarray(value) for name, value in arrays_of(model.shared, "shared").items()}
    lines = [json.dumps(as_then(loop, line), sort_keys=True) for line in export_lines(loop)]
    found: dict[str, Any] = {
        "version": loop.version,
        "bits": hashlib.sha256(b"".join(value.tobytes() for value in numbers.values())).hexdigest(),
        "sums": {name: float(np.abs(value.astype(np.float64)).sum()) for name, value in numbers.items()},
        "people": {name: person.lessons for name, person in sorted(model.people.items())},
        "export": hashlib.sha256("\n".join(lines).encode()).hexdigest(),
        "again": {event.id: told(loop, event.id) for event in loop.projection.log.events(kinds=["decision"])},
    }
    found["next"] = [
        as_then(loop, loop.decide(person=person, id=f"next{j}", prior=prior).plain())
        for j, (person, prior) in enumerate(((None, None), ("p0", None), ("p1", _prior(loop)), ("p9", None)))
    ]
    return found


def _prior(loop: Loop) -> list[float] | None:
    return None if loop.facts.get("choices") is not None else [float(j % 7) for j in range(len(loop.items))]


def told(loop: Loop, id: str) -> dict[str, Any]:
    """A decision that is in the log, as `decide` tells it again."""
    known = loop.projection.find_decision(id)
    assert known is not None
    return as_then(loop, loop.decide(id=id, person=known.person).plain())


def as_then(loop: Loop, line: dict[str, Any]) -> dict[str, Any]:
    """A decision with what was predicted under the name that each kind of loop had for it then."""
    names = {"ordinal": "grades", "rating": "ratings", "pairwise": "chances"}
    return {names[loop.projection.interaction.name] if name == "predicted" else name: line[name] for name in line}


def answer(loop: Loop) -> dict[str, Any]:
    """Feedback on decisions that were left open, and what it makes of the model."""
    open_ones = {"grades": "d11", "ratings": "d11", "choices": "d7"}
    kind = next(iter(loop.facts), "")
    id = open_ones.get(kind, "d23")
    shown = told(loop, id)["shown"]
    form: dict[str, Any] = {
        "grades": {"grade": {shown[0]: 5}},
        "ratings": {"rating": {shown[0]: 5}},
        "choices": {"choice": "second"},
    }.get(kind, {"better": [shown[-1]]})
    told_back = loop.feedback(id, id="late", **form)
    numbers = arrays_of(loop.projection.model.shared, "shared").items()
    return {
        "status": told_back.status,
        "learned": told_back.learned,
        "sums": {name: float(np.abs(np.asarray(value, np.float64)).sum()) for name, value in numbers},
    }


def main() -> None:
    into = Path(sys.argv[1])
    for name, make in MAKERS.items():
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "loop"
            make(path).close()
            for snapshot in path.glob("snapshot-*"):
                snapshot.unlink()
            written = (path / "log.db").read_bytes()
            loop = Loop.open(path)
            expected = seen(loop) | {"answer": answer(loop)}
            loop.close()
        (into / f"{name}.db.gz").write_bytes(gzip.compress(written, 9, mtime=0))
        (into / f"{name}.json").write_text(json.dumps(expected, indent=1) + "\n")


if __name__ == "__main__":
    main()
