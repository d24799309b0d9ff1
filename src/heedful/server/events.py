"""The events of a loop as a stream of server-sent events, from any position in its log."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from itertools import islice
from typing import Any, NamedTuple

import msgspec
from starlette.responses import StreamingResponse

from heedful.core.validation import describe
from heedful.io.exports import Exporter
from heedful.loop import Loop
from heedful.server.auth import Caller
from heedful.server.codecs import Headers
from heedful.server.context import ServerContext
from heedful.server.loop_worker import LoopWorker
from heedful.server.parameters import AFTER, KINDS
from heedful.server.problems import Problem, unavailable
from heedful.server.server_log import log

AT_ONCE = 500
SILENCE = 15.0
"""Seconds without an event after which a comment is sent, to show that the stream is alive."""
LOOK = 1.0
"""Seconds between two reads of what other processes wrote."""
TOGETHER, PAUSE = 25, 0.005
"""How many followers of a loop are sent new events in one turn of the event loop, and the seconds until the next
turn."""

pause = asyncio.sleep
Holds = Callable[[], Awaitable[bool]]


async def stream(
    service: ServerContext,
    caller: Caller,
    worker: LoopWorker,
    headers: Headers,
    holds: Holds | None = None,
    after: int = 0,
    kinds: str | None = None,
    follow: bool = True,
) -> StreamingResponse:
    """Return the HTTP response that streams a loop's events as server-sent events.

    It starts `after` the event with that sequence number (the header Last-Event-ID takes precedence); `kinds` selects
    kinds of events, with commas. Without `follow` the stream ends at the end of the log. It also ends when the caller
    loses the scope read, `holds` returns False, or the server stops. If the log can no longer be read, the connection
    is cut off, so that nobody takes it for the end of the log; so it is without `follow` where it ends before that.
    Raise ValueError, beginning with the name, if `kinds` or the header is invalid, and what the log raises if its
    beginning cannot be read."""
    if (last := headers.get(b"last-event-id")) is not None:
        after = AFTER._replace(name="Last-Event-ID").read(last.decode("latin-1"))
    selected = KINDS if kinds is None else tuple(kinds.split(","))
    if strange := [kind for kind in selected if kind not in KINDS]:
        raise ValueError(f"kinds: expected some of {', '.join(KINDS)}, got {describe(strange[0])}")

    async def goes_on() -> bool:
        may = not service.stopping.is_set() and service.authenticator.holds(caller, "read")
        return may and (holds is None or await holds())

    parts = _parts(service, caller.tenant, worker, after, selected, follow, goes_on)
    return Stream([await anext(parts, b"")], parts, worker)


class Stream(StreamingResponse):
    """A stream of server-sent events; as long as it lasts, the server does not close the loop."""

    def __init__(self, first: Iterable[bytes], parts: AsyncIterator[bytes], worker: LoopWorker) -> None:
        super().__init__(parts, media_type="text/event-stream", headers={"cache-control": "no-store"})
        self._first, self._worker = first, worker

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Send the stream until it ends or the client disconnects."""
        with self._worker:
            await super().__call__(scope, receive, send)

    async def stream_response(self, send: Any) -> None:
        """Send all parts; if the log cannot be read any more, do not send the end, which cuts off the connection."""
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        for first in self._first:
            await send({"type": "http.response.body", "body": first, "more_body": True})
        try:
            async for part in self.body_iterator:
                await send({"type": "http.response.body", "body": part, "more_body": True})
        except (OSError, ValueError, Problem) as error:
            log.warning("%s: a stream of events ended: %s", self._worker.path, error)
            return
        await send({"type": "http.response.body", "body": b"", "more_body": False})


async def _parts(
    service: ServerContext,
    tenant: str,
    worker: LoopWorker,
    after: int,
    kinds: tuple[str, ...],
    follow: bool,
    goes_on: Holds,
) -> AsyncIterator[bytes]:
    aio = asyncio.get_running_loop()
    sent_at, opening = aio.time(), b": events of the loop\n\n"
    while await goes_on():
        feed: Feed | None = service.feeds.get(worker)
        coming = feed.coming() if feed is not None else None  # before the log is read: what comes meanwhile is there
        async with service.turns.of(tenant, "streams"):
            new, more = await worker.read(_round, worker.loop, after)
        if opening:
            yield opening
            opening = b""
        while (selected := new.select(after, kinds)) is not None:  # otherwise some were missed, which the log has
            content, after = selected
            if content or aio.time() - sent_at >= SILENCE:
                sent_at = aio.time()
                yield content or b": nothing new\n\n"
            if more:
                break
            if not follow:
                return
            if feed is None or coming is None:
                feed = Feed.of(service, worker, after)
                coming = feed.coming()
            came = await coming
            coming = feed.coming()
            if not await goes_on():
                return
            new = came
    if not follow:  # who copies the log would take this for its end
        why = "the log was not read to its end: the server ends, or the key was revoked; read the rest"
        raise unavailable(why)


class Round(NamedTuple):
    """Consecutive events of a log that were read together, as server-sent events for all followers."""

    since: int
    """the sequence number after which they begin"""
    upto: int
    """the last sequence number that was read"""
    events: Sequence[tuple[int, str, bytes]]
    """(sequence number, kind, server-sent event as bytes) of each"""

    def select(self, after: int, kinds: tuple[str, ...]) -> tuple[bytes, int] | None:
        """Return (the events of these `kinds` after the sequence number `after`, as bytes; the last sequence number of
        this round, or `after` if that is larger).

        Return None if this round begins after `after`, so that events in between would be missed."""
        if after < self.since:
            return None
        mine = [(seq, text) for seq, kind, text in self.events if seq > after and kind in kinds]
        parts = [text for _, text in mine]
        if self.upto > (mine[-1][0] if mine else after):
            parts.append(b"id: %d\n\n" % self.upto)  # what was passed over need not be looked at again
        return b"".join(parts), max(after, self.upto)


_MISSED = Round(2**62, 0, ())


class Feed:
    """The new events of one loop for all its followers: the log is read once for all of them.

    Followers get them a few at a time, so that other requests have a turn. Events that were sent are not kept: they may
    be about a person who was forgotten since."""

    def __init__(self, service: ServerContext, worker: LoopWorker, after: int) -> None:
        self._service, self._worker = service, worker
        self._waiting: list[asyncio.Future[Round]] = []
        self._task = asyncio.ensure_future(self._run(after))

    @classmethod
    def of(cls, service: ServerContext, worker: LoopWorker, after: int) -> Feed:
        """Return the feed of a loop, or start one after the sequence number `after`."""
        feed: Feed | None = service.feeds.get(worker)
        if feed is None:
            feed = service.feeds[worker] = cls(service, worker, after)
        return feed

    def coming(self) -> asyncio.Future[Round]:
        """Return a future that resolves to the next round of events, which may be empty.

        If the feed has ended, because the log cannot be read or the server stops, it is a round that makes the caller
        read the log again."""
        future: asyncio.Future[Round] = asyncio.get_running_loop().create_future()
        if self._task.done():
            future.set_result(_MISSED)
        else:
            self._waiting.append(future)
        return future

    async def _run(self, after: int) -> None:
        worker, stopping = self._worker, self._service.stopping
        try:
            while not stopping.is_set() and not all(future.done() for future in self._waiting):
                changed = worker.changed
                with worker:
                    new, more = await worker.read(_round, worker.loop, after)
                after = new.upto
                await self._tell(new)
                if not more:
                    await _wait(changed, stopping)
        except (OSError, ValueError):
            pass  # each follower reads the log again, and says what is wrong
        finally:
            del self._service.feeds[worker]
            for future in self._waiting:
                if not future.done():
                    future.set_result(_MISSED)

    async def _tell(self, new: Round) -> None:
        waiting, self._waiting = self._waiting, []
        for at, future in enumerate(waiting):
            if at and at % TOGETHER == 0:
                await pause(PAUSE)
            if not future.done():  # they may have gone away
                future.set_result(new)


async def _wait(changed: asyncio.Event, stopping: asyncio.Event) -> None:
    """Wait until this process writes to the loop, the server stops, or `LOOK` seconds have passed."""
    waiting = [asyncio.ensure_future(changed.wait()), asyncio.ensure_future(stopping.wait())]
    await asyncio.wait(waiting, timeout=LOOK, return_when=asyncio.FIRST_COMPLETED)
    for task in waiting:
        task.cancel()


def _round(loop: Loop, after: int) -> tuple[Round, bool]:
    """Return (the next events of the loop's log after the sequence number `after`, whether there may be more)."""
    exporter = Exporter(loop, by_name=True)
    texts: list[tuple[int, str, bytes]] = []
    seen, last = 0, after
    for event in islice(loop.projection.log.events(after, page=AT_ONCE), AT_ONCE):
        seen, last = seen + 1, event.seq
        if event.kind in KINDS and (line := exporter.line(event)) is not None:
            texts.append((last, event.kind, _as_text(last, event.kind, line)))
    return Round(after, last, texts), seen == AT_ONCE


def _as_text(seq: int, kind: str, line: dict[str, Any]) -> bytes:
    if "seq" in line:  # an item's own
        head = {name: line[name] for name in ("kind", "id")}
        line = head | {"attributes": {name: value for name, value in line.items() if name != "kind"}}
    return b"id: %d\nevent: %s\ndata: %s\n\n" % (seq, kind.encode(), msgspec.json.encode({"seq": seq} | line))
