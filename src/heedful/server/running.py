"""The server as a process: where it listens, what it waits for, how it ends."""

from __future__ import annotations

import asyncio
import gc
import logging
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import httptools
import uvicorn
from uvicorn.protocols.http.flow_control import HIGH_WATER_LIMIT
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from heedful.server.app import App, create_app
from heedful.server.bodies import PROBLEM
from heedful.server.problems import Problem
from heedful.server.service import Options

log = logging.getLogger("heedful.server")

MOST_HEADERS = 65_536
"""Bytes of a request before its body."""
AHEAD = 32
"""Requests that one connection may send before the first is answered."""
FRAMES = 8
"""How many bytes may come for each of a body: small chunks have large frames."""
LOOPBACK = ("127.0.0.1", "::1", "localhost")


class Joined:
    """A transport of one answer that sends its head together with what follows: one system call, not two."""

    __slots__ = ("_head", "_transport")

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._head: bytes | None = b""  # what is written first; None once that was sent

    def write(self, data: bytes) -> None:
        """As a transport's."""
        if self._head is None:
            self._transport.write(data)
        elif self._head:
            self._transport.write(self._head + data)
            self._head = None
        else:
            self._head = data

    def close(self) -> None:
        """As a transport's."""
        if self._head:
            self.write(b"")
        self._transport.close()

    def is_closing(self) -> bool:
        """As a transport's."""
        return self._transport.is_closing()


class Protocol(HttpToolsProtocol):
    """uvicorn's, with an end to patience: a request that does not arrive in time, and headers without end."""

    began: float | None = None
    """when the request began that is not all there yet"""
    _before_body = _headers_so_far = _so_far = 0
    _ignored = False  # the parser is at a request that is parsed again, or that was refused

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """A connection: its first request is waited for from now."""
        super().connection_made(transport)
        self.began = self.loop.time()

    def data_received(self, data: bytes) -> None:
        """More of a request."""
        if self.transport.is_closing():
            return
        if self.began is None:
            self.began = self.loop.time()
        self._so_far += len(data)
        if self._before_body >= 0:
            self._before_body += len(data)
        if self._before_body > MOST_HEADERS + len(data) or self._headers_so_far > MOST_HEADERS:
            self._too_large("headers", MOST_HEADERS)
        elif self._so_far > MOST_HEADERS + FRAMES * self._most():
            self._too_large("body", self._most())
        else:
            self._unset_keepalive_if_required()
            self._feed(data)

    def _feed(self, data: bytes) -> None:
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade as offered:
            self._decline(data[offered.args[0] :])
        except httptools.HttpParserError:
            if not self.transport.is_closing():
                self.send_400_response("")

    def _decline(self, rest: bytes) -> None:
        """Ignore the offer of another protocol (RFC 9110, 7.8), which Java's client makes with its first request: the
        parser skips the body then, so the request is parsed again without it."""
        method = self.parser.get_method()
        if self._ignored is False or method == b"CONNECT":
            self.send_400_response("")
            return
        self._ignored = False
        kept = [(n, v) for n, v in self.headers if n not in (b"upgrade", b"http2-settings", b"connection")]
        head = [method + b" " + self.url + b" HTTP/" + self.parser.get_http_version().encode()]
        head += [name + b": " + value for name, value in kept]
        self.parser = httptools.HttpRequestParser(self)
        self._feed(b"\r\n".join([*head, b"", b""]) + rest)

    def _too_large(self, field: str, most: int) -> None:
        self.refuse(Problem("too-large", f"{field}: wanted at most {most} bytes, got more", field=field))

    def _most(self) -> int:
        service = getattr(self.config.app, "service", None)
        return service.limits.body if service is not None else 2**23

    def on_header(self, name: bytes, value: bytes) -> None:
        """A header, or a trailer after the body."""
        self._headers_so_far += len(name) + len(value) + 4
        if self._headers_so_far <= MOST_HEADERS:
            super().on_header(name, value)

    def on_message_begin(self) -> None:
        """The first byte of a request."""
        self._headers_so_far = 0
        if self.began is None:
            self.began = self.loop.time()
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """What comes now is the body."""
        self._before_body = -1
        if self.parser.should_upgrade():
            self._ignored = True
        elif self._headers_so_far > MOST_HEADERS:
            self._ignored = True
            self._too_large("headers", MOST_HEADERS)
        elif len(self.pipeline) >= AHEAD:
            self._ignored = True
            self.transport.abort()  # who sends that much ahead does not wait for answers
        else:
            super().on_headers_complete()
            if not self.expect_100_continue and self.scope["method"] != "HEAD":  # else a head is followed by nothing
                self.cycle.transport = Joined(self.transport)  # type: ignore[assignment]

    def on_body(self, body: bytes) -> None:
        """A part of the body: nearly always all of it, and then it is not copied."""
        if self._ignored or self.cycle.response_complete:
            return
        cycle: Any = self.cycle
        if not cycle.body:
            cycle.body = body
        else:  # in place from here on: there may be thousands of small parts
            if isinstance(cycle.body, bytes):
                cycle.body = bytearray(cycle.body)
            cycle.body += body
        if len(cycle.body) > HIGH_WATER_LIMIT:
            self.flow.pause_reading()
        cycle.message_event.set()

    def on_message_complete(self) -> None:
        """All of it is there."""
        if self._ignored:
            return
        self._before_body, self._so_far, self.began = 0, 0, None
        super().on_message_complete()

    def send_400_response(self, msg: str) -> None:
        """What is no HTTP is told so."""
        self.refuse(Problem("malformed", "request: wanted HTTP/1.1, got something else", field="request"))

    def too_slow(self, seconds: float) -> None:
        """The request has not arrived in time."""
        if self._before_body == 0:  # not a byte of one has come
            self.transport.close()
            return
        field = "headers" if self._before_body > 0 else "body"
        self.refuse(Problem("too-slow", f"{field}: wanted all of the request within {seconds:g} s", field=field))

    def refuse(self, problem: Problem) -> None:
        """Say what is wrong, and hang up."""
        if self.transport.is_closing():
            return
        if self._before_body < 0 and self.cycle is not None and self.cycle.response_complete:
            self.transport.close()  # it was answered before all of it had come; nobody waits for another answer
            return
        if self.cycle is not None and not self.cycle.response_complete:
            if self.cycle.response_started:
                self.transport.abort()
                return
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        status = f"HTTP/1.1 {problem.status} {problem.title}\r\n"
        headers = (
            f"content-type: {PROBLEM.decode()}\r\ncontent-length: {len(problem.body)}\r\nconnection: close\r\n\r\n"
        )
        self.transport.write(status.encode() + headers.encode() + problem.body)
        self.transport.close()


class Server(uvicorn.Server):
    """uvicorn's, which hangs up on who is too slow, and lets those who wait for events go when it ends."""

    def __init__(self, config: uvicorn.Config, app: App, ready: Callable[[], None] | None = None) -> None:
        """`ready` is called once it answers, and ends in order when it is told to."""
        super().__init__(config)
        self._app = app
        self._ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen, and watch the slow."""
        await super().startup(sockets)
        self._watching = asyncio.create_task(self._hang_up())
        if self._ready is not None:
            self._ready()

    async def _hang_up(self) -> None:
        seconds = self._app.service.limits.seconds
        while True:
            await asyncio.sleep(min(1.0, seconds / 4))
            late = asyncio.get_running_loop().time() - seconds
            for connection in list(self.server_state.connections):
                began = getattr(connection, "began", None)
                if began is not None and began < late and isinstance(connection, Protocol):
                    connection.too_slow(seconds)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End: whoever waits for events is let go first."""
        self._app.service.stopping.set()
        self._watching.cancel()
        await super().shutdown(sockets)


def config(app: App, **given: Any) -> uvicorn.Config:
    """How uvicorn serves the application."""
    try:
        import uvloop  # noqa: F401

        loop = "uvloop"
    except ModuleNotFoundError:  # not made for Windows
        loop = "asyncio"
    fixed: dict[str, Any] = {
        "http": Protocol,
        "loop": loop,
        "ws": "none",
        "lifespan": "on",
        "proxy_headers": False,
        "server_header": False,
        "access_log": False,
        "log_config": None,
        "timeout_keep_alive": 75,
        "timeout_graceful_shutdown": 10,
    }
    return uvicorn.Config(app, **fixed | given)


def more_files() -> None:
    """Let the process have as many files open as it may."""
    try:
        import resource
    except ModuleNotFoundError:
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


@contextmanager
def listening(folder: Path, host: str, port: int, options: Options) -> Iterator[tuple[App, socket.socket]]:
    """An application and the socket it will be served on; `port` 0 finds a free one.

    PermissionError, without an errno, where the host is not loopback and no key was ever made; OSError where it cannot
    listen there.
    """
    app = create_app(folder, options)
    if host not in LOOPBACK and not app.service.keys.exist():
        told = f"--host: wanted 127.0.0.1 until there is a key, got {host}; make one: heedful keys create NAME"
        raise PermissionError(told)
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.create_server((host, port), family=family, backlog=2048)
    with listener:
        yield app, listener


def serve(
    app: App,
    listener: socket.socket,
    ready: Callable[[], None] | None = None,
    sharing: socket.socket | None = None,
    **given: Any,
) -> None:
    """Serve until the process is told to end; then every loop is closed in order. `ready` is called when it began.
    Whoever comes by `sharing` gets what participants may."""
    if sharing is not None:
        app.sharing = sharing.getsockname()[1]
    more_files()
    # What is there now stays for good: the collector need not look at it again. And what a request leaves behind is
    # mostly gone before it would be looked at.
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 50, 100)
    Server(config(app, **given), app, ready).run([listener] if sharing is None else [listener, sharing])


def everywhere(port: int) -> socket.socket:
    """A socket that the whole network reaches, for `serve(sharing=...)`. OSError where it cannot listen there."""
    return socket.create_server(("0.0.0.0", port), backlog=2048)


def own_address() -> str:
    """This machine's address in its network; nothing is sent to find it out."""
    with suppress(OSError), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect(("192.0.2.1", 9))  # of no machine: the system says from which address it would go there
        return str(probe.getsockname()[0])
    return LOOPBACK[0]


@contextmanager
def served(folder: str | Path, options: Options | None = None) -> Iterator[str]:
    """A server in a thread of this process, for trying things out: its address, "http://127.0.0.1:PORT"."""
    with listening(Path(folder), "127.0.0.1", 0, Options() if options is None else options) as (app, listener):
        server = Server(config(app), app)
        thread = threading.Thread(target=server.run, args=([listener],), daemon=True)
        thread.start()
        try:
            while not server.started:
                if not thread.is_alive():
                    raise RuntimeError("the server did not start")
                thread.join(0.01)
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join()
