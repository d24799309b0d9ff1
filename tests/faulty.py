"""A server that misbehaves as it is told, and both clients used alike: helpers for tests of the client."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import json
import re
import select
import socket
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import msgspec

from heedful.client import AsyncClient, AsyncRemoteLoop, Client
from processes import free_port


class Request(NamedTuple):
    """What came in."""

    method: str
    path: str
    query: str
    headers: dict[str, str]
    body: bytes

    @property
    def value(self) -> Any:
        """The body, read."""
        msgpack = self.headers.get("content-type") == "application/msgpack"
        return msgspec.msgpack.decode(self.body) if msgpack else msgspec.json.decode(self.body)


class Response(NamedTuple):
    """What goes out."""

    status: int = 200
    body: bytes = b"{}"
    headers: Mapping[str, str] = MappingProxyType({})

    @property
    def raw(self) -> bytes:
        """As it is on the wire."""
        lines = {"Content-Type": "application/json", "Content-Length": str(len(self.body)), **self.headers}
        return b"HTTP/1.1 %d X\r\n" % self.status + _lines(lines) + b"\r\n" + self.body


def _lines(headers: dict[str, str]) -> bytes:
    return "".join(f"{name}: {value}\r\n" for name, value in headers.items()).encode()


def say(value: Any, status: int = 200, **headers: str) -> Response:
    """A response of JSON."""
    return Response(status, json.dumps(value).encode(), {k.replace("_", "-"): v for k, v in headers.items()})


def problem(kind: str, status: int, detail: str = "told", **headers: str) -> Response:
    """A response that says what is wrong."""
    value = {"type": f"urn:heedful:problem:{kind}", "title": "T", "status": status, "detail": detail}
    return say(value, status, Content_Type="application/problem+json", **headers)


Fault = Callable[[socket.socket, Request, Callable[[Request], Response]], bool]
"""What is done with a request, given what answers it; whether the connection stays."""


def well(to: socket.socket, request: Request, answer: Callable[[Request], Response]) -> bool:
    to.sendall(answer(request).raw)
    return True


def with_(response: Response) -> Fault:
    """Answers with this, whatever is asked."""
    return lambda to, request, answer: well(to, request, lambda _: response)


def raw(some: bytes) -> Fault:
    """Sends these bytes, and closes."""

    def fault(to: socket.socket, request: Request, answer: Any) -> bool:
        to.sendall(some)
        return False

    return fault


def hang(to: socket.socket, request: Request, answer: Any) -> bool:
    """Never answers."""
    to.settimeout(20.0)
    with contextlib.suppress(ConnectionError):
        to.recv(1)  # until the other side goes
    return False


def late(to: socket.socket, request: Request, answer: Callable[[Request], Response]) -> bool:
    """Does what is asked, and answers when nobody waits for it any more."""
    found = answer(request)
    hang(to, request, answer)
    to.sendall(found.raw)
    return False


def later(to: socket.socket, request: Request, answer: Callable[[Request], Response]) -> bool:
    """Does what is asked when nobody waits for it any more."""
    hang(to, request, answer)
    well(to, request, answer)
    return False


def cut(to: socket.socket, request: Request, answer: Callable[[Request], Response]) -> bool:
    """Does what is asked, and closes without an answer."""
    answer(request)
    return False


def deaf(to: socket.socket, request: Request, answer: Any) -> bool:
    """Does nothing, and closes."""
    return False


def half(to: socket.socket, request: Request, answer: Callable[[Request], Response]) -> bool:
    """Sends half of an answer, and then nothing."""
    some = answer(request).raw
    to.sendall(some[: len(some) - 20])
    return hang(to, request, answer)


def dribble(to: socket.socket, request: Request, answer: Callable[[Request], Response]) -> bool:
    """Sends an answer byte by byte, each in time."""
    head, _, body = answer(request).raw.partition(b"\r\n\r\n")
    to.sendall(head + b"\r\n\r\n")
    for at in range(len(body)):
        time.sleep(0.02)
        to.sendall(body[at : at + 1])
    return True


class Faulty:
    """A server that does with each request what is next in `faults`, `otherwise` where there is nothing left."""

    def __init__(self, answer: Callable[[Request], Response]) -> None:
        self.answer = answer
        self.faults: deque[Fault] = deque()
        self.otherwise: Fault = well
        self.seen: list[Request] = []
        self._open = True
        self._accepted: list[socket.socket] = []
        self._turn = threading.Lock()
        self._socket = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}"
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        while self._open:
            try:
                to, _ = self._socket.accept()
            except OSError:
                return
            self._accepted.append(to)
            threading.Thread(target=self._serve, args=(to,), daemon=True).start()

    def _serve(self, to: socket.socket) -> None:
        try:
            to.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            with to:
                while (taken := self._take(to)) is not None:
                    request, fault = taken
                    if not fault(to, request, self.answer):
                        return
        except OSError:
            pass  # the other side went

    def _take(self, to: socket.socket) -> tuple[Request, Fault] | None:
        """Return the next request and what is done with it. On a busy machine a client may have given up and asked
        again before the first request is read: that has its turn first."""
        while to.recv(1, socket.MSG_PEEK):
            with self._turn:
                if not any(map(_is_waiting, self._accepted[: self._accepted.index(to)])):
                    request = _read(to)
                    if request is None:
                        return None
                    self.seen.append(request)
                    return request, self.faults.popleft() if self.faults else self.otherwise
            time.sleep(0.001)
        return None

    def close(self) -> None:
        """Be away: what is connected is cut off, too."""
        self._open = False
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)  # who waits for a connection gets none any more
        self._socket.close()
        for to in self._accepted:
            with contextlib.suppress(OSError):
                to.shutdown(socket.SHUT_RDWR)


def _is_waiting(connection: socket.socket) -> bool:
    """Return whether something came that nobody has read."""
    try:
        return bool(select.select([connection], [], [], 0.0)[0] and connection.recv(1, socket.MSG_PEEK))
    except (OSError, ValueError):  # it was closed
        return False


def _read(of: socket.socket) -> Request | None:
    data = b""
    while b"\r\n\r\n" not in data:
        some = of.recv(1 << 16)
        if not some:
            return None
        data += some
    head, _, body = data.partition(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    while len(body) < int(headers.get("content-length", 0)):
        body += of.recv(1 << 16)
    method, target, _ = first.split(" ")
    path, _, query = target.partition("?")
    return Request(method, path, query, headers, body)


def unused() -> str:
    """A url at which nobody listens."""
    return f"http://127.0.0.1:{free_port()}"


class Waited:
    """An AsyncClient, or a loop of one, that is used like the other."""

    def __init__(self, awaited: Any, aio: asyncio.AbstractEventLoop) -> None:
        self._awaited, self._aio = awaited, aio

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._awaited, name)
        if not inspect.ismethod(found):
            return found
        return lambda *args, **kwargs: self._plain(found(*args, **kwargs))

    def _plain(self, value: Any) -> Any:
        if inspect.iscoroutine(value):
            value = self._aio.run_until_complete(value)
        if isinstance(value, AsyncRemoteLoop):
            return Waited(value, self._aio)
        return self._each(value) if inspect.isasyncgen(value) else value

    def _each(self, values: Any) -> Iterator[Any]:
        try:
            while True:
                try:
                    yield self._aio.run_until_complete(anext(values))
                except StopAsyncIteration:
                    return
        finally:
            self._aio.run_until_complete(values.aclose())

    def __repr__(self) -> str:
        return repr(self._awaited)


class Connected:
    """Makes clients, of one kind, that are all used alike; closes them."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self._aio = asyncio.new_event_loop()
        self._made: list[Any] = []

    def __call__(self, url: str, key: str | None = None, **settings: Any) -> Any:
        settings = {"timeout": 5.0, **settings}  # a machine may be busy
        if self.kind == "sync":
            made: Any = Client(url, key, **settings)
        else:
            made = Waited(AsyncClient(url, key, **settings), self._aio)
        self._made.append(made)
        return made

    def close(self) -> None:
        """Close all of them."""
        for made in self._made:
            made.close()
        self._aio.run_until_complete(self._aio.shutdown_default_executor())
        self._aio.close()


@contextlib.contextmanager
def hurried(loop: Any, seconds: float = 0.3) -> Iterator[None]:
    """Let decisions of a loop wait no longer than that for their answers: where none comes. All others have time."""
    inside = getattr(loop, "_awaited", loop)
    patient, inside.timeout = inside.timeout, seconds
    yield
    inside.timeout = patient


class Clock:
    """Time that passes when somebody sleeps."""

    def __init__(self, client: Any) -> None:
        self.now = 0.0
        self.slept: list[float] = []
        inside = getattr(client, "_awaited", client)
        inside._clock = inside._breaker.clock = lambda: self.now
        inside._carrier.sleep = self._sleep if isinstance(inside, Client) else self._sleep_awaited

    def _sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds

    async def _sleep_awaited(self, seconds: float) -> None:
        self._sleep(seconds)


def number(text: str) -> int:
    """The first whole number in a text."""
    found = re.search(r"\d+", text)
    assert found is not None
    return int(found[0])
