"""A loop of every interaction, with all that a log may hold: people, undoing, forgetting, items that come and go.

`make` wrote them once. What is asked of them, and in which words they answer, is in `asked`.
"""

from __future__ import annotations

import gzip
import itertools
import json
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

from heedful import Loop, Settings
from heedful.core import ids
from heedful.core.serialization import read_arrays, write_arrays
from heedful.features import infer
from heedful.loop.interactions.routing.table import embeddings
from heedful.server.keys import Keys

FOLDER = Path(__file__).parent
BEGIN = 1_790_000_000 * 10**9
"""Nanoseconds since 1970 when the first of the events was written; each came a second after the one before."""
LATER = BEGIN + 3600 * 10**9
WORDS = ("quiet red lamp", "old warm chair", "fast blue rug", "cheap quiet chair", "slow old lamp")


@contextmanager
def clock(start: int, step: int = 0) -> Iterator[None]:
    """The wall clock stands still, or goes on by so much whenever it is looked at."""
    ticks = itertools.count(start, step)
    in_ids = mock.patch.object(ids, "_milliseconds", _milliseconds)
    with mock.patch.object(time, "time_ns", side_effect=ticks), in_ids:
        yield


def _milliseconds() -> int:
    return time.time_ns() // 1_000_000


def things(n: int) -> list[dict[str, Any]]:
    """Items "i0", "i1", ... with two numbers, a category and a text."""
    return [
        {
            "id": f"i{j}",
            "price": float(5 + (7 * j) % 11),
            "weight": ((3 * j) % 8 - 4) / 4,
            "kind": ("lamp", "chair", "rug")[j % 3],
            "about": WORDS[j % 5],
        }
        for j in range(n)
    ]


KINDS = {"price": "number", "weight": "number", "kind": "category", "about": "text"}
CONTEXT = [{"hour": float(h), "place": p} for h, p in ((8, "home"), (12, "work"), (20, "home"), (23, "out"))]


def ranking(folder: Path) -> Loop:
    """Coactive: clicks, better orders, picks, thumbs, edits, actions; a context, priors, offsets of people."""
    rows = things(12)
    loop = Loop.create(
        folder,
        encoding=infer(rows, identifier="id", kinds=KINDS, buckets=8),
        items=rows,
        context=infer(CONTEXT, identifier="", kinds={"hour": "number", "place": "category"}),
        crosses=[("hour", "price")],
        settings=Settings(k=5, shrink=2.0, control=0.2),
    )
    loop.put_items([rows[3] | {"price": 1.0}, {"id": "new", "price": 7.0, "kind": "rug"}])
    loop.withdraw("i5")
    forms: list[Callable[[list[str]], dict[str, Any]]] = [
        lambda shown: {"clicks": [shown[1], shown[2]]},
        lambda shown: {"better": [shown[-1], shown[2]]},
        lambda shown: {"clicks": [shown[0]]},
        lambda shown: {"thumb": "down", "item": shown[0]},
        lambda shown: {"edit": {"price": 3.0}, "item": shown[1]},
        lambda shown: {"action": "buy", "item": shown[3]},
        lambda shown: {"rating": {shown[0]: 1, shown[1]: 4, shown[2]: 2}},
    ]
    for t in range(21):
        came = [row | {"id": f"came{t}-{j}"} for j, row in enumerate(rows[:6])]
        among: Any = (None, ["i1", "i2", "i3", "i4", "i7"], came)[t % 3]
        size = len(loop.items) if among is None else len(among)
        prior = None if t % 2 else [float((7 * j) % 5) for j in range(size)]
        d = loop.decide(among, person=f"p{t % 4}", context=CONTEXT[t % 4], prior=prior, id=f"d{t}")
        if t != 20:
            loop.feedback(d.id, id=f"e{t}", **forms[t % 7](d.shown))
    loop.record(["i1", "i2", "i3"], ["i2", "i1"], id="told", person="p1", context=CONTEXT[0], prior={"i1": 2.0})
    loop.feedback("told", id="e-told", clicks=["i2"])
    return loop


def grades(folder: Path) -> Loop:
    """Ordinal: grades from 1 to 5, offsets of people."""
    rows = things(12)
    loop = Loop.create(
        folder,
        encoding=infer(rows, identifier="id", kinds=KINDS, buckets=8),
        items=rows,
        learner="ordinal-logistic:n_ranks=5",
        settings=Settings(shrink=1.0, control=0.2),
    )
    for t in range(14):
        among = None if t % 2 else [f"i{j % 12}" for j in range(t, t + 6)]
        d = loop.decide(among, person=f"p{t % 3}", id=f"d{t}")
        if t != 13:
            loop.feedback(d.id, id=f"e{t}", grade={name: 1 + (3 * j + t) % 5 for j, name in enumerate(d.shown[:4])})
    loop.withdraw("i2")
    return loop


def ratings(folder: Path) -> Loop:
    """Rating: ratings from 1 to 5, actions, an item that goes and comes again."""
    rows = [{"id": f"i{j}", "title": f"film {j}"} for j in range(16)]
    loop = Loop.create(folder, items=rows, settings=Settings(ratings=(1, 5), k=4, control=0.2))
    for t in range(16):
        d = loop.decide(person=f"p{t % 4}" if t % 5 else None, id=f"d{t}")
        if t == 15:
            break
        if t % 4 == 3:
            loop.feedback(d.id, id=f"e{t}", actions={d.shown[0]: "view", d.shown[1]: "buy"})
        else:
            loop.feedback(d.id, id=f"e{t}", rating={name: 1 + (2 * j + t) % 5 for j, name in enumerate(d.shown[:3])})
        if t == 9:
            loop.withdraw("i2")
        if t == 11:
            loop.put_items([rows[2]])
    return loop


def choices(folder: Path) -> Loop:
    """Comparison: of two or three, equal, unsure, an order; an item that comes late."""
    rows = [{"id": f"i{j}", "price": float((3 * j) % 7), "weight": float(j * j % 5)} for j in range(7)]
    encoding = infer(rows, identifier="id", kinds={"price": "number", "weight": "number"})
    loop = Loop.create(folder, encoding=encoding, items=rows[:6], settings=Settings(choices="best", control=0.2))
    for t in range(13):
        d = loop.decide(person=f"p{t % 3}", id=f"d{t}", show=3 if t % 4 == 3 else 2)
        if t == 12:
            break
        if t % 4 == 3:
            loop.feedback(d.id, id=f"e{t}", better=[d.shown[2], d.shown[0]])
        else:
            loop.feedback(d.id, id=f"e{t}", choice=("first", "second", "equal", "cannot_judge", "first")[t % 5])
        if t == 6:
            loop.put_items([rows[6]])
    return loop


def routes(folder: Path) -> Loop:
    """Routing: thumbs, edits and choices; a cost that changes, a cost weight of a request, offsets of people."""
    rows = [{"id": f"i{j}", "cost_in": float(j * j), "cost_out": float(2 * j), "vendor": "x"} for j in range(4)]
    loop = Loop.create(
        folder,
        items=rows,
        settings=Settings(cost_weight=0.02, shrink=2.0, control=0.2),
        context=embeddings(3),
    )
    for t in range(18):
        about: dict[str, Any] = {"embedding": [float(j == t % 3) + (3 * t + j) % 5 / 8 for j in range(3)]}
        about |= {"cost_weight": 0.1} if t % 5 == 4 else {}
        d = loop.decide(
            None if t % 2 else ["i3", "i1", "i0"], person=f"p{t % 4}", context=about, id=f"d{t}", show=1 + (t % 4 == 3)
        )
        if t == 17:
            break
        if len(d.shown) == 2:
            loop.feedback(d.id, id=f"e{t}", choice="second" if t % 3 else "first")
        elif t % 3 == 1:
            loop.feedback(d.id, id=f"e{t}", edit={"from": "a short answer", "to": "a good answer" if t % 2 else "no"})
        else:
            loop.feedback(d.id, id=f"e{t}", thumb="down" if d.shown[0] == "i0" else "up")
        if t == 8:
            loop.put_items([{**rows[3], "cost_in": 2.0}])
        if t == 10:
            loop.withdraw("i2")
    return loop


MAKERS: dict[str, Callable[[Path], Loop]] = {
    "ranking": ranking,
    "grades": grades,
    "ratings": ratings,
    "choices": choices,
    "routes": routes,
}
LEARNERS = {
    "ranking": "posterior",
    "grades": "ordinal-logistic",
    "ratings": "bmf",
    "choices": "hierarchical-gp",
    "routes": "posterior",
}
LAST = {"ranking": "d20", "grades": "d13", "ratings": "d15", "choices": "d12", "routes": "d17"}
"""The decision that was left without an answer."""


def make(kind: str, folder: Path) -> None:
    """Make the loop of a kind in a new folder, and take one answer back and forget one person."""
    with clock(BEGIN, 10**9):
        loop = MAKERS[kind](folder)
        loop.undo("e5", id="undo-e5")
        loop.forget("p2")
        loop.undo("e1", id="undo-e1")
        loop.close()
        for old in sorted(folder.glob("snapshot-*"))[:-1]:
            old.unlink()


def keep(kind: str, folder: Path) -> None:
    """Keep what is in the folder of a loop."""
    to = FOLDER / kind
    to.mkdir(exist_ok=True)
    for path in sorted([folder / "log.db", *folder.glob("snapshot-*")]):
        (to / f"{path.name}.gz").write_bytes(gzip.compress(path.read_bytes(), 9, mtime=0))


def place(kind: str, folder: Path, *, snapshot: bool = True) -> Path:
    """Put a copy of the loop of a kind, as it was kept, into `folder`, KIND.heedful; without its snapshot, on request.

    The snapshot says that it was made by the builds that are here, though bits are promised of one build only."""
    to = folder / f"{kind}.heedful"
    to.mkdir(mode=0o700)
    for path in sorted((FOLDER / kind).glob("*.gz")):
        if snapshot or not path.name.startswith("snapshot"):
            (to / path.stem).write_bytes(gzip.decompress(path.read_bytes()))
    for path in to.glob("snapshot-*"):
        _as_of_here(path)
    return to


def _as_of_here(path: Path) -> None:
    import platform
    from importlib.metadata import version

    here = {"python": platform.python_version(), "numpy": version("numpy"), "scipy": version("scipy")}
    here["machine"] = f"{platform.system()} {platform.machine()}"
    arrays, manifest = read_arrays(path)
    assert here.keys() <= manifest.keys()
    if manifest | here != manifest:
        write_arrays(path, arrays, {name: each for name, each in (manifest | here).items() if name != "schema"})


def place_all(folder: Path) -> str:
    """Put all of them in one folder, for a server, with its keys; the text of the one that may everything."""
    for kind in MAKERS:
        place(kind, folder, snapshot=False)
    (folder / "server.db").write_bytes(gzip.decompress((FOLDER / "server" / "server.db.gz").read_bytes()))
    return key("all")


def key(name: str) -> str:
    """The text of a key of the golden server, which was made for these tests and opens nothing else."""
    keys: dict[str, str] = json.loads((FOLDER / "server" / "keys.json").read_text())
    return keys[name]


def make_server(folder: Path) -> None:
    """Make keys and keep them: one that may everything, one that may read, one that was revoked."""
    to = FOLDER / "server"
    to.mkdir(exist_ok=True)
    with clock(BEGIN, 10**9), closing(Keys(folder)) as keys:
        made = {"all": keys.create("all"), "read": keys.create("read", scopes=["read"]), "ended": keys.create("ended")}
        keys.revoke(made["ended"][0].prefix)
    (to / "server.db.gz").write_bytes(gzip.compress((folder / "server.db").read_bytes(), 9, mtime=0))
    texts = {name: text for name, (_, text) in made.items()}
    (to / "keys.json").write_text(json.dumps(texts, indent=1) + "\n")
