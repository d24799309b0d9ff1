"""A connection, from the socket on: requests whose head came before on it are answered at once.

Whoever asks often says the same in every head. A head that comes for the second time on a connection is remembered as
it was parsed, and from then on a request that begins with the same bytes is not parsed again: its body goes from the
socket to the desk, and the answer from there to the socket, without a task, an ASGI message or a future, and while the
body is still in the processor's cache. All else (other routes, unusual heads, several requests at once, what takes
long) goes through `Protocol`, uvicorn's with an end to patience, byte for byte as it came.
"""

from __future__ import annotations

import asyncio
import time
from typing import Any, NamedTuple

import httptools
from uvicorn.protocols.http.httptools_impl import STATUS_LINE

from heedful.server import framing
from heedful.server.bodies import Headers
from heedful.server.fast import Fast, Head
from heedful.server.gate import Caller
from heedful.server.protocol import Protocol

BUFFER = 262_144
"""Bytes read at once, at most."""
LARGE, LARGEST = 8192, 1_048_576
"""Bytes of a body from which on its connection has a buffer of its own, so that it is not copied; and up to which: room
is made for all of it when it begins, and who announces more may never send it."""
ALIGNED = 16
"""What the place in memory where a large body begins is a multiple of: of numbers that stand elsewhere numpy makes a
copy each time that it looks at them."""
LONGEST, MOST = 2048, 32
"""Bytes of a head that is remembered, and how many are on one connection."""
_BEGINS = b"POST /v1/loops/"
_ENDS = b"\r\n\r\n"


class Lanes:
    """What uvicorn makes connections with."""

    def __init__(self, app: Any) -> None:
        """Of `app`; with `fast`, where it has that."""
        self.app = app
        self.fast: Fast | None = getattr(app, "fast", None)
        self.buffer = bytearray(BUFFER)
        """what one connection reads into at a time: all of them belong to one event loop"""
        self.view = memoryview(self.buffer)
        self._headers: list[tuple[bytes, bytes]] = []
        self._date = b""

    def date(self, headers: list[tuple[bytes, bytes]]) -> bytes:
        """The headers that every answer has, as they are sent: new ones every second."""
        if headers is not self._headers:
            self._headers, self._date = headers, b"".join([b"%s: %s\r\n" % each for each in headers])
        return self._date

    def __call__(self, *given: Any, **named: Any) -> Lane:
        return Lane(self, Protocol(*given, **named))


class Arriving(NamedTuple):
    """A request whose body is not all there yet."""

    head: Head
    caller: Caller
    began: float
    start: int
    """where its body begins"""
    end: int


class Lane(asyncio.BufferedProtocol):
    """One connection."""

    def __init__(self, lanes: Lanes, slow: Protocol) -> None:
        self._lanes, self._slow = lanes, slow
        self.fast = lanes.fast
        """where there is a lane"""
        self._heads: dict[bytes, Head | None] = {}  # by their bytes; None: came once, or is not for the lane
        self._buffer = lanes.buffer  # that is read into
        self._at = 0  # where in it the next bytes go
        self._own: bytearray | None = None  # where a large request stays until it is answered: it is not copied
        self._own_at = 0  # where in it a request begins, so that its body stands well
        self._arriving: Arriving | None = None
        self._there = 0  # bytes of it
        self._ahead = b""  # what came while a request was under way
        self._transport: Any = None

    # ------------------------------------------------------------------------ what uvicorn's does

    def connection_made(self, transport: Any) -> None:
        """A connection."""
        self._transport = transport
        self._slow.connection_made(transport)
        if self._slow.shared:
            self.fast = None  # for participants: whatever they may ask is asked elsewhere

    def connection_lost(self, error: Exception | None) -> None:
        """Its end."""
        self._arriving = None
        self._heads.clear()
        self._slow.connection_lost(error)

    def eof_received(self) -> None:
        """No more will come."""
        self._slow.eof_received()

    def pause_writing(self) -> None:
        """Who is answered does not read."""
        self._slow.pause_writing()

    def resume_writing(self) -> None:
        """He does again."""
        self._slow.resume_writing()

    # ------------------------------------------------------------------------ what comes

    def get_buffer(self, hint: int) -> memoryview:
        """Where the next bytes go."""
        if self._arriving is not None:
            return memoryview(self._buffer)[self._there : self._arriving.end]
        if self._own is not None and not self._slow.under_way:
            self._buffer, self._at = self._own, self._own_at
            return memoryview(self._own)[self._own_at :]
        self._buffer, self._at = self._lanes.buffer, 0
        return self._lanes.view

    def buffer_updated(self, n: int) -> None:
        """They are there."""
        if self._arriving is not None:
            self._there += n
            if self._there == self._arriving.end:
                head, caller, began, start, end = self._arriving
                self._arriving = None
                self._begin(head, caller, self._body(start, end), began)
        elif self._slow.under_way:
            self._ahead += self._buffer[self._at : self._at + n]
            self._transport.pause_reading()
        elif not self._taken(n):
            self._slow.data_received(bytes(memoryview(self._buffer)[self._at : self._at + n]))

    def _taken(self, n: int) -> bool:
        """Whether the n bytes that are there are a request, or its beginning, that is answered here."""
        buffer, at = self._buffer, self._at
        if self.fast is None or not buffer.startswith(_BEGINS, at):
            return False
        start = buffer.find(_ENDS, at, at + min(n, LONGEST)) + len(_ENDS)
        if start < len(_ENDS):
            return False
        key = bytes(memoryview(buffer)[at:start])
        head = self._heads.get(key)
        if head is None:
            head = self._second(key)
        if head is None or at + n > (end := start + head.length) or not self._slow.between:
            return False
        began = time.perf_counter()
        try:
            caller = self.fast.admit(head)
        except Exception:
            return False  # it is refused once more there, and told so
        if at + n == end:
            self._begin(head, caller, self._body(start, end), began)
        else:
            if buffer is not self._own or len(buffer) < end:
                own = self._room(start - at, head.length)
                own[self._own_at : self._own_at + n] = memoryview(buffer)[at : at + n]
                moved, self._buffer = self._own_at - at, own
                at, start, end = self._own_at, start + moved, end + moved
            self._arriving, self._there = Arriving(head, caller, began, start, end), at + n
            self._slow.begins(arriving=True)
        if LARGE < head.length and (self._own is None or len(self._own) <= end):
            self._room(start - at, head.length)  # for the next one
        return True

    def _room(self, head: int, body: int) -> bytearray:
        """A buffer of one's own for requests with so many bytes in head and body, and for one more: a buffer that is
        filled is taken for a sign that more is there."""
        self._own_at = -head % ALIGNED
        self._own = bytearray(self._own_at + head + body + 1)
        return self._own

    def _body(self, start: int, end: int) -> bytes | memoryview:
        """A body that stays as it is until it is answered."""
        body = memoryview(self._buffer)[start:end]
        return body.toreadonly() if self._buffer is self._own else bytes(body)

    def _second(self, key: bytes) -> Head | None:
        """A head that is not remembered: parsed where it came before."""
        if key not in self._heads:
            if len(self._heads) >= MOST:
                self._heads.clear()
            self._heads[key] = None
            return None
        if self.fast is None:
            return None
        read = _Reading()
        head = self.fast.head(*found) if (found := read.all_of(key)) is not None else None
        if head is None or head.length > LARGEST:
            return None
        self._heads[key] = head
        return head

    # ------------------------------------------------------------------------ what is answered

    def _begin(self, head: Head, caller: Caller, body: bytes | memoryview, began: float) -> None:
        fast = self.fast
        self._slow.begins()
        if fast is not None and not fast.begin(head, caller, body, self._answer, began):
            fast.later(head, caller, body, self._answer, began)

    def _answer(self, status: int, headers: bytes, body: bytes) -> None:
        slow, transport = self._slow, self._transport
        slow.answered()
        if transport.is_closing():
            return
        date = self._lanes.date(slow.server_state.default_headers)
        last = b"connection: close\r\n\r\n" if slow.ending else b"\r\n"
        transport.write(b"".join([STATUS_LINE[status], date, headers, last, body]))
        if slow.ending:
            transport.close()
        elif self._ahead:
            ahead, self._ahead = self._ahead, b""
            transport.resume_reading()
            slow.data_received(ahead)


class _Reading:
    """A head alone, as the parser sees it."""

    def __init__(self) -> None:
        self._url = b""
        self._headers: list[tuple[bytes, bytes]] = []
        self._seen: list[str] = []

    def all_of(self, key: bytes) -> tuple[bytes, bytes, Headers] | None:
        """(path, query, headers) of a whole head of a POST that has nothing strange; None of any other."""
        lines = key.split(b"\r\n")
        if any(b"\n" in line or b"\r" in line for line in lines):
            return None
        parser = httptools.HttpRequestParser(self)
        try:
            parser.feed_data(key)
            plain = parser.get_method() == b"POST" and parser.get_http_version() == "1.1"
            if not plain or not parser.should_keep_alive() or parser.should_upgrade():
                return None
            if framing.fault("1.1", self._url, self._headers):
                return None
            url = httptools.parse_url(self._url)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade):
            return None
        headers = dict(self._headers)
        if self._seen != ["begin", "headers"] or len(headers) < len(self._headers):
            return None  # it has a body, or none: no length was said; or a header came twice
        return url.path, url.query or b"", headers

    def on_message_begin(self) -> None:
        self._seen.append("begin")

    def on_url(self, url: bytes) -> None:
        self._url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        self._headers.append((name.lower(), value))

    def on_headers_complete(self) -> None:
        self._seen.append("headers")

    def on_body(self, body: bytes) -> None:
        self._seen.append("body")

    def on_message_complete(self) -> None:
        self._seen.append("complete")
