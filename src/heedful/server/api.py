"""What the routes do that are asked now and then: `heedful.server.routes` has the table of all of them."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any, NamedTuple

from starlette.responses import Response

from heedful.core.validation import describe
from heedful.learners.registry import is_packaged
from heedful.loop import Loop
from heedful.loop.loop import Unerased
from heedful.loop.records import plain
from heedful.loop.settings import check_learner
from heedful.server.auth import Caller
from heedful.server.codecs import Headers, listed
from heedful.server.context import Service
from heedful.server.events import stream
from heedful.server.fast import accepted, outcome
from heedful.server.loop_worker import LoopWorker
from heedful.server.loops import MAIN, loop_name
from heedful.server.manifest import found, naming
from heedful.storage import Closed, Damaged


class Asked(NamedTuple):
    """One request, past the gate."""

    service: Service
    caller: Caller
    headers: Headers
    query: Mapping[str, str]
    path: Mapping[str, str]
    given: Any
    """the body, decoded, with no other fields than the table has; None without one"""
    worker: Any
    """of the loop that the path names; None where it names none"""

    @property
    def loop(self) -> Loop:
        """The loop that the path names."""
        worker: LoopWorker = self.worker
        return worker.loop

    def note(self, kind: str, result: str, n: int = 1) -> None:
        """Add `n` to the server's count of events of this `kind` and `result`, for this caller's tenant and loop."""
        self.service.metrics.events[self.caller.tenant, self.path["loop"], kind, result] += n


# ---------------------------------------------------------------------------- loops


async def loops(asked: Asked) -> Any:
    return {"loops": asked.service.loops.names(asked.caller.tenant)}


async def new_loop(asked: Asked) -> Any:
    given = asked.given
    name = loop_name("name", given.get("name"))
    if given.get("learner") is not None:
        with about_learner():
            check_learner(packaged(given["learner"]))
    make = found({key: value for key, value in given.items() if key != "name"})
    worker = await asked.service.loops.create(asked.caller.tenant, name, make)
    with worker:
        return await worker.run(partial(about, worker.loop, name))


async def one_loop(asked: Asked) -> Any:
    return await asked.worker.run(partial(about, asked.loop, asked.path["loop"]))


def about(loop: Loop, name: str) -> dict[str, Any]:
    """What there is to know of a loop."""
    loop.projection.look()  # another process may have taught it
    manifest = loop.manifest
    return {
        "name": name,
        "learner": manifest.learner,
        "identifier": manifest.encoding.identifier or "id",
        "version": loop.version,
        "features": manifest.encoding.size,
        "names": loop.feature_names,
        "items": len(loop.projection.catalogue.current),
        "events": loop.projection.log.counts(),
        "settings": manifest.settings,
        "caveats": loop.caveats,
        "notes": [note.replace(f"{loop.path}/", "") for note in loop.notes],
        "unknown": dict(loop.unknown),
        **({} if manifest.query is None else {"query_features": list(manifest.query.places)}),
        **loop.projection.interaction.facts(),
    }


async def weights(asked: Asked) -> Any:
    await asked.worker.read(asked.loop.projection.look)  # another process may have taught it
    return {"version": asked.loop.version, "weights": plain(asked.loop.weights_of(asked.query.get("person")))}


# ---------------------------------------------------------------------------- items


async def put_items(asked: Asked) -> Any:
    rows = listed(asked.given, asked.service.limits.batch * 10)
    with naming("items"):
        return {"put": await asked.worker.run(partial(asked.loop.put_items, rows))}


async def items(asked: Asked) -> Any:
    start, limit = whole(asked.query, "start", 0, 0), whole(asked.query, "limit", 1000, 1, 10_000)
    await asked.worker.read(asked.loop.projection.look)  # another process may have put some
    names = asked.loop.items
    return {"items": names[start : start + limit], "total": len(names)}


async def withdraw(asked: Asked) -> Any:
    return {"withdrawn": await asked.worker.run(partial(asked.loop.withdraw, asked.path["item"]))}


# ---------------------------------------------------------------------------- decisions and what came of them


async def record(asked: Asked) -> Any:
    given = expected(asked.given, "candidates", "shown", "id")
    decision, again = await asked.worker.once(partial(asked.loop.record, **given), given["id"])
    asked.note("decision", "duplicate" if again else decision.arm)
    if decision.unknown and not again:
        asked.note("candidate", "unknown", len(decision.unknown))
    return decision.plain()


def expected(given: dict[str, Any], *names: str) -> dict[str, Any]:
    """given, with none of these fields missing. ValueError where one is."""
    for name in names:
        if given.get(name) is None:
            raise ValueError(f"{name}: expected, got none")
    return given


async def rank(asked: Asked) -> Any:
    def ranked() -> Any:
        asked.loop.projection.look()  # another process may have taught it
        return plain(asked.loop.ranking(**asked.given))

    return await asked.worker.read(ranked)


async def activate(asked: Asked) -> Any:
    given = expected(asked.given, "decision")
    answer = await asked.worker.run(partial(asked.loop.activate, given["decision"], time=given.get("time")))
    asked.note("activate", outcome(answer))
    return accepted(answer)


async def undo(asked: Asked) -> Any:
    given = expected(asked.given, "event")
    answer = await asked.worker.run(partial(asked.loop.undo, given["event"], id=given.get("id")))
    asked.note("undo", outcome(answer))
    return accepted(answer)


async def forget(asked: Asked) -> Any:
    try:
        gone = await asked.worker.run(partial(asked.loop.forget, asked.path["person"]))
    except Unerased as error:  # somebody else is reading: it is tried again until nobody is
        gone = error.forgotten
        asked.worker.unerased = time.monotonic()
    asked.note("forget", "applied")
    return plain(gone)


async def explanation(asked: Asked) -> Any:
    return plain(await asked.worker.run(partial(asked.loop.explain, asked.path["id"])))


async def report(asked: Asked) -> Any:
    last = whole(asked.query, "last", 10_000, 1, 1_000_000)
    return plain(await asked.worker.read(partial(asked.loop.report, last)))


async def standing(asked: Asked) -> Any:
    return plain(await asked.worker.read(partial(asked.loop.standing, asked.query.get("person"))))


async def replay(asked: Asked) -> Any:
    learner = packaged(asked.given.get("learner"))
    with about_learner():
        return plain(await asked.worker.run(partial(asked.loop.replay, learner)))


@contextmanager
def about_learner() -> Iterator[None]:
    """What is refused inside, "second-order: epsilon: expected ...", is refused of the field `learner`."""
    try:
        yield
    except (Closed, Damaged):
        raise
    except ValueError as error:
        told = str(error)
        raise ValueError(told if told.startswith("learner") else f"learner: {told}") from None


def packaged(learner: Any) -> str:
    """learner as the name of one of the package's: nobody names code to be run over the network. ValueError."""
    if not isinstance(learner, str) or len(learner) > 500 or not is_packaged(learner.partition(":")[0]):
        raise ValueError(f"learner: expected one of heedful's, such as fair-pairs, got {describe(learner)}")
    return learner


def whole(query: Mapping[str, str], name: str, default: int, least: int, most: int = 2**62) -> int:
    """A whole number of the query. ValueError where it is none."""
    text = query.get(name)
    if text is None:
        return default
    if not text.isascii() or not text.isdecimal() or len(text) > 19 or not least <= int(text) <= most:
        raise ValueError(f"{name}: expected a whole number from {least} to {most}, got {describe(text)}")
    return int(text)


# ---------------------------------------------------------------------------- the server


TEXT = "text/plain; version=0.0.4; charset=utf-8"
"""What Prometheus reads."""


async def metrics(asked: Asked) -> Any:
    caller = asked.caller
    everything = caller.tenant == MAIN and "admin" in caller.scopes
    text = await asked.service.metrics_texts.text(None if everything else caller.tenant)
    return Response(text, headers={"cache-control": "no-store"}, media_type=TEXT)


async def events(asked: Asked) -> Any:
    return stream(asked.service, asked.caller, asked.worker, asked.query, asked.headers)
