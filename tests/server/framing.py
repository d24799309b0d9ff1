"""A connection without a socket: what a protocol makes of bytes, however they are cut."""

from __future__ import annotations

import asyncio
import itertools
import random
import re
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from uvicorn import Config
from uvicorn.server import ServerState

QUIET = 12
"""Turns of the event loop in which nothing happens, after which nothing will."""


class Request(NamedTuple):
    """A request as the application got it."""

    method: str
    path: str
    headers: list[tuple[bytes, bytes]]
    body: bytes


class Outcome(NamedTuple):
    """What came of some bytes."""

    answers: tuple[int, ...]
    """the status of each answer"""
    closed: bool
    """whether the server hung up"""
    requests: list[Request]
    """what the application was asked, and answered with 200"""
    written: bytes

    @property
    def told(self) -> str:
        """The answers as the table writes them: "2 4!" are one 200, one 4xx, and the end of the connection."""
        return " ".join(str(status // 100) for status in self.answers) + "!" * self.closed


class Wanted:
    """An application that notes what it is asked, once all of it is there."""

    def __init__(self) -> None:
        self.requests: list[Request] = []

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        body, more = b"", True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                return
            body, more = body + message["body"], message["more_body"]
        headers = [header for header in scope["headers"] if header[0] != b"x-request-id"]  # which the server adds
        self.requests.append(Request(scope["method"], scope["path"], headers, body))
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"0")]})
        await send({"type": "http.response.body", "body": b""})


class Transport(asyncio.Transport):
    """Keeps what is written."""

    def __init__(self) -> None:
        super().__init__({"sockname": ("127.0.0.1", 8710), "peername": ("127.0.0.1", 50000)})
        self.written = bytearray()
        self.closing = self.paused = False

    def write(self, data: Any) -> None:
        if not self.closing:
            self.written += data

    def close(self) -> None:
        self.closing = True

    def abort(self) -> None:
        self.closing = True

    def is_closing(self) -> bool:
        return self.closing

    def pause_reading(self) -> None:
        self.paused = True

    def resume_reading(self) -> None:
        self.paused = False

    def get_write_buffer_size(self) -> int:
        return 0


def outcome(protocol: Callable[..., Any], pieces: Iterable[bytes], app: Any = None) -> Outcome:
    """What a protocol makes of these bytes, that come piece by piece; of an app, where it is another."""
    return asyncio.run(_outcome(protocol, pieces, app or Wanted()))


async def _outcome(protocol: Callable[..., Any], pieces: Iterable[bytes], app: Any) -> Outcome:
    config = Config(app, lifespan="off", ws="none", log_config=None, access_log=False, proxy_headers=False)
    state, transport = ServerState(), Transport()
    config.load()
    made = protocol(config=config, server_state=state, app_state={})
    made.connection_made(transport)

    async def quiet() -> None:
        """Until nothing happens any more."""
        same, seen = 0, None
        while same < QUIET:
            await asyncio.sleep(0)
            now = len(transport.written), len(state.tasks), transport.paused, transport.closing
            same, seen = (same + 1, seen) if now == seen else (0, now)

    for piece in pieces:
        if transport.paused or not piece:  # none: what came is answered first
            await quiet()
        if transport.closing:
            break
        if piece:
            made.data_received(piece)
        await asyncio.sleep(0)
    await quiet()
    found = Outcome(statuses(bytes(transport.written)), transport.closing, _requests(app), bytes(transport.written))
    made.connection_lost(None)  # whoever waits for more of a request is told
    await quiet()
    assert not state.tasks
    return found


def _requests(app: Any) -> list[Request]:
    return list(getattr(app, "requests", []))


def statuses(written: bytes) -> tuple[int, ...]:
    """The status of each answer that was written; AssertionError where they are none."""
    found = []
    while written:
        head, _, written = written.partition(b"\r\n\r\n")
        match = re.match(rb"HTTP/1\.1 (\d{3}) ", head)
        assert match, head[:200]
        status = int(match[1])
        if status >= 200:
            found.append(status)
        length = re.search(rb"\r\ncontent-length: *(\d+)", head, re.IGNORECASE)
        if length:
            assert len(written) >= int(length[1]), "an answer was cut off"
            written = written[int(length[1]) :]
        elif status >= 200:
            written = b""  # it ends with the connection
    return tuple(found)


def cuts(data: bytes, seed: int) -> list[list[bytes]]:
    """The same bytes: at once, byte by byte (a long one in pieces), and cut at random, twice."""
    draw = random.Random(seed)
    step = 1 if len(data) <= 4096 else 1021
    several = [[data], [data[at : at + step] for at in range(0, len(data), step)]]
    for most in (3, 12):
        at = [0, *sorted(draw.randrange(len(data) + 1) for _ in range(draw.randint(1, most))), len(data)]
        several.append([data[one:other] for one, other in itertools.pairwise(at) if other > one])
    return several
