"""The events of a loop as they come: a stream of server-sent events, from any place in the log on."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from functools import partial
from itertools import islice
from typing import Any

import msgspec
from starlette.responses import StreamingResponse

from heedful.doors import describe
from heedful.exchange.exporting import Exporter
from heedful.loop import Loop
from heedful.server.bodies import Headers
from heedful.server.desk import Desk
from heedful.server.gate import Caller
from heedful.server.service import Service

KINDS = ("item", "decision", "activate", "feedback", "undo")
AT_ONCE = 500
SILENCE = 15.0
"""Seconds after which a comment says that the stream is alive."""
LOOK = 1.0
"""Seconds between two looks at what another process wrote."""

log = logging.getLogger("heedful.server")

Holds = Callable[[], Awaitable[bool]]


async def always() -> bool:
    """Nothing but the gate says when a stream ends."""
    return True


def stream(
    service: Service, caller: Caller, desk: Desk, query: Mapping[str, str], headers: Headers, holds: Holds = always
) -> StreamingResponse:
    """The answer that tells the events, for as long as the gate lets the caller in and `holds` says so. ValueError, by
    name, where the query makes no sense."""
    after = _after(query.get("after"), headers.get(b"last-event-id"))
    kinds = _kinds(query.get("kinds"))
    follow = query.get("follow", "true")
    if follow not in ("true", "false"):
        raise ValueError(f"follow: wanted true or false, got {describe(follow)}")

    async def goes_on() -> bool:
        return not service.stopping.is_set() and service.gate.holds(caller, "read") and await holds()

    parts = _parts(desk, after, kinds, follow == "true", goes_on, service.stopping)
    return Stream(parts, desk)


class Stream(StreamingResponse):
    """An answer that lasts; the loop stays open for it."""

    def __init__(self, parts: AsyncIterator[bytes], desk: Desk) -> None:
        super().__init__(parts, media_type="text/event-stream", headers={"cache-control": "no-store"})
        self._desk = desk

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Send it, until its end or its reader's."""
        with self._desk:
            await super().__call__(scope, receive, send)


def _after(given: str | None, last: bytes | None) -> int:
    text = last.decode("latin-1") if last is not None else given if given is not None else "0"
    name = "Last-Event-ID" if last is not None else "after"
    if not text.isascii() or not text.isdecimal() or len(text) > 18:
        raise ValueError(f"{name}: wanted the number of an event, got {describe(text)}")
    return int(text)


def _kinds(given: str | None) -> tuple[str, ...]:
    if given is None:
        return KINDS
    kinds = tuple(given.split(","))
    if strange := [kind for kind in kinds if kind not in KINDS]:
        raise ValueError(f"kinds: wanted some of {', '.join(KINDS)}, got {describe(strange[0])}")
    return kinds


async def _parts(
    desk: Desk, after: int, kinds: tuple[str, ...], follow: bool, goes_on: Holds, stopping: asyncio.Event
) -> AsyncIterator[bytes]:
    silent = 0.0
    yield b": events of the loop\n\n"
    while await goes_on():
        changed = desk.changed
        try:
            told, after, more = await desk.read(partial(_told, desk.loop, after, kinds))
        except (OSError, ValueError) as error:  # the answer has begun: whoever reads can only be left to come again
            log.warning("%s: a stream of events ended: %s", desk.path, error)
            return
        if told:
            silent = 0.0
            yield told
        if more:
            continue
        if not follow:
            return
        await _wait(changed, stopping)
        silent += LOOK
        if silent >= SILENCE:
            silent = 0.0
            yield b": nothing new\n\n"


async def _wait(changed: asyncio.Event, stopping: asyncio.Event) -> None:
    """Until something was written here, the server is about to stop, or it is time to look."""
    waiting = [asyncio.ensure_future(changed.wait()), asyncio.ensure_future(stopping.wait())]
    await asyncio.wait(waiting, timeout=LOOK, return_when=asyncio.FIRST_COMPLETED)
    for each in waiting:
        each.cancel()


def _told(loop: Loop, after: int, kinds: tuple[str, ...]) -> tuple[bytes, int, bool]:
    """(the next events as text, the place of the last that was looked at, whether there may be more)."""
    exporter = Exporter(loop, by_name=True)
    parts: list[bytes] = []
    seen, last = 0, after
    for event in islice(loop.ledger.log.events(after), AT_ONCE):
        seen += 1
        after = event.seq
        if event.kind in kinds and (line := exporter.line(event)) is not None:
            parts.append(_as_text(event.seq, event.kind, line))
            last = event.seq
    if last != after:  # what was passed over need not be looked at again by whoever comes back
        parts.append(b"id: %d\n\n" % after)
    return b"".join(parts), after, seen == AT_ONCE


def _as_text(seq: int, kind: str, line: dict[str, Any]) -> bytes:
    if "seq" in line:  # an item's own
        head = {name: line[name] for name in ("kind", "id")}
        line = head | {"attributes": {name: value for name, value in line.items() if name != "kind"}}
    return b"id: %d\nevent: %s\ndata: %s\n\n" % (seq, kind.encode(), msgspec.json.encode({"seq": seq} | line))
