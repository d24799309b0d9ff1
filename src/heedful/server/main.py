"""The server as a process: the socket that it listens on, its limits, its signals, and how it stops."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType

import uvicorn

from heedful.server.app import App, create_app
from heedful.server.context import Options
from heedful.server.problems import FILES, unavailable
from heedful.server.protocol import Protocol
from heedful.server.server_log import log
from heedful.storage import Address, Place, place_of

# Of a stream that is cut off as its log cannot be read any more, which is logged where that is known.
logging.getLogger("uvicorn.error").addFilter(lambda record: "without completing response" not in str(record.msg))

OWN_FILES = 100
"""About how many files the server opens besides those of connections and loops."""
KEEP_ALIVE = 75
"""Seconds after which an idle connection is closed."""
SWITCH = 0.0005
"""Seconds after which a thread with long work yields the interpreter to the event loop's thread; Python's default is
ten times as long. A request waits for that about as often as for the disk."""
REFUSED, PAUSE = 20, 0.01
"""How many requests that did not arrive in time are refused in one turn of the event loop, and the seconds until the
next turn. Each refusal takes a millisecond, and most clients connect again at once."""
LOOK = 0.005
"""Seconds after which a server that stops looks again whether all requests are answered."""
TICK = 1.0
"""Seconds after which the date of the answers is set again."""
AT_ONCE = 1.0
"""Seconds after the first signal from which on another signal ends the server at once."""
LOOPBACK = ("127.0.0.1", "::1", "localhost")


class Server(uvicorn.Server):
    """uvicorn's server, which also closes connections that are too slow.

    When it stops, it ends the requests that wait for new events. It stops at once when it is told to: uvicorn asks ten
    times a second whether it was, and then sleeps a tenth of a second."""

    def __init__(self, config: uvicorn.Config, app: App, ready: Callable[[], None] | None = None) -> None:
        """Serve `app` with the configuration `config` of uvicorn; `ready` is called once the server answers."""
        super().__init__(config)
        self._app = app
        self._ready = ready
        self._signalled: float | None = None  # when the first signal came
        self._stop: tuple[asyncio.AbstractEventLoop, asyncio.Event] | None = None  # once it has started

    def stop(self) -> None:
        """Stop the server in order. It may be called in any thread, in a signal handler, and more than once."""
        self.should_exit = True
        if self._stop is not None:
            loop, stopping = self._stop
            with suppress(RuntimeError):  # the loop is closed: the server has stopped
                loop.call_soon_threadsafe(stopping.set)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Handle the signal `sig`: the first stops the server in order, a later one ends the process at once.

        A second signal within a second counts as the first. Ending at once loses nothing that was acknowledged."""
        now = time.monotonic()
        if self._signalled is None:
            self._signalled = now
            super().handle_exit(sig, frame)
            self.stop()
            waiting = threading.Timer(
                2 * AT_ONCE, print, ("heedful: ending; Ctrl-C ends it at once",), {"file": sys.stderr}
            )
            waiting.daemon = True
            waiting.start()
        elif now - self._signalled > AT_ONCE:
            os.write(2, b"heedful: ended at once; what was acknowledged is kept\n")
            os._exit(128 + sig)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen on `sockets`, and start the task that closes slow connections."""
        self._stop = asyncio.get_running_loop(), asyncio.Event()
        await super().startup(sockets)
        self._watching = asyncio.create_task(self._hang_up())
        if self._ready is not None:
            self._ready()

    async def _hang_up(self) -> None:
        seconds = self._app.service.limits.seconds
        while True:
            await asyncio.sleep(min(1.0, seconds / 4))
            late = asyncio.get_running_loop().time() - seconds
            refused = 0
            for connection in list(self.server_state.connections):
                if isinstance(connection, Protocol):
                    if connection.began is not None and connection.began < late:
                        connection.too_slow(seconds)
                        refused += 1
                        if refused % REFUSED == 0:
                            await asyncio.sleep(PAUSE)
                    connection.hang_up_unread()

    async def main_loop(self) -> None:
        """Serve until the server is told to stop."""
        assert self._stop is not None
        _, stopping = self._stop
        while not await self.on_tick(0):
            with suppress(TimeoutError):
                await asyncio.wait_for(stopping.wait(), TICK)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stop the server: end the requests that wait for new events, give up the ownership of loops in a database,
        then let the requests in progress end, as uvicorn does, and close the loops."""
        self._app.service.begin_to_stop()
        self._watching.cancel()
        for server in self.servers:
            server.close()
        for listener in sockets or []:
            listener.close()
        for connection in list(self.server_state.connections):
            connection.shutdown()
        try:
            await asyncio.wait_for(self._all_answered(), self.config.timeout_graceful_shutdown)
        except TimeoutError:
            # uvicorn answers what is cancelled with a 500 that ends as any answer does.
            for connection in list(self.server_state.connections):
                if isinstance(connection, Protocol) and connection.began is not None:
                    detail = "the server ends before all of the request came; nothing was changed: send it again"
                    connection.refuse(unavailable(detail))
                else:
                    connection.transport.abort()
            for task in self.server_state.tasks:
                task.cancel()
        await self.lifespan.shutdown()

    async def _all_answered(self) -> None:
        while self.server_state.connections or self.server_state.tasks:
            await asyncio.sleep(LOOK)
        for server in self.servers:
            await server.wait_closed()


def config(app: App, grace: int = 2) -> uvicorn.Config:
    """Return uvicorn's configuration for `app`; at its end it waits `grace` seconds for requests in progress.

    With `heedful.server.context.PATIENCE`, for closing the loops, it is less than five seconds."""
    try:
        import uvloop  # noqa: F401

        loop = "uvloop"
    except ModuleNotFoundError:  # not made for Windows
        loop = "asyncio"
    return uvicorn.Config(
        app,
        http=Protocol,
        loop=loop,
        ws="none",
        lifespan="on",
        proxy_headers=False,
        server_header=False,
        headers=[("x-content-type-options", "nosniff")],  # of every answer
        access_log=False,
        log_config=None,
        timeout_keep_alive=KEEP_ALIVE,
        timeout_graceful_shutdown=grace,
    )


def more_files() -> int | None:
    """Raise the limit of files that this process may have open; return the new limit, None for no limit."""
    try:
        import resource
    except ModuleNotFoundError:
        return None
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return None if hard == resource.RLIM_INFINITY else hard


def most_connections(files: int | None, options: Options) -> int | None:
    """Return the most connections for a process that may have `files` files open; None (no limit) if `files` is None.

    It is `files` minus what the process itself and as many open loops as `options` allow need, but at least half of
    `files`. If loops need more than the other half, a warning is logged."""
    if files is None:
        return None
    needed = FILES * options.most_open
    if needed > files // 2:
        message = (
            "%d files may be open, and %d open loops need about %s: raise the limit (ulimit -n), or lower --most-open"
        )
        log.warning(message, files, options.most_open, f"{needed:,}")
    return max(files - OWN_FILES - needed, files // 2)


@contextmanager
def listening(folder: Place, host: str, port: int, options: Options) -> Iterator[tuple[App, socket.socket]]:
    """Yield (the application for the loops in `folder`, a socket on `host` and `port` on which to serve it).

    `port` 0 finds a free port; `options` are those of the server. Raise PermissionError, without an errno, if the host
    is not loopback and no key was ever made, and OSError if it cannot listen there."""
    app = create_app(folder, options)
    if host not in LOOPBACK and not app.service.keys.exist():
        message = f"--host: expected 127.0.0.1 until there is a key, got {host}; make one: heedful keys create NAME"
        raise PermissionError(message)
    with listening_socket(host, port) as listener:
        yield app, listener


def serve(
    app: App,
    listener: socket.socket,
    ready: Callable[[], None] | None = None,
    sharing: socket.socket | None = None,
) -> None:
    """Serve `app` on `listener` until the process is told to stop, then close every loop in order.

    `ready` is called when serving begins. On the second socket `sharing` only the pages of participants are served.
    Raise ValueError if both sockets have the same port."""
    if sharing is not None:
        app.sharing = sharing.getsockname()[1]
        if app.sharing == listener.getsockname()[1]:
            raise ValueError(f"sharing: expected another port than that of the listener, got {app.sharing} for both")
    app.connections = most_connections(more_files(), app.service.options)
    # What is there now stays for good: the collector need not look at it again. And what a request leaves behind is
    # mostly gone before it would be looked at.
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 50, 100)
    sys.setswitchinterval(SWITCH)
    Server(config(app), app, ready).run([listener] if sharing is None else [listener, sharing])


def listening_socket(host: str, port: int) -> socket.socket:
    """Return a socket that listens at an address of this machine, "0.0.0.0" or "::" for all of them; `port` 0 finds a
    free port. Raise OSError if it cannot listen there."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    both = host == "::" and socket.has_dualstack_ipv6()
    return socket.create_server((host, port), family=family, backlog=2048, dualstack_ipv6=both)


def own_address() -> str:
    """Return this machine's IP address in its network, found without sending anything; 127.0.0.1 if there is none."""
    with suppress(OSError), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect(("192.0.2.1", 9))  # of no machine: the system says from which address it would go there
        return str(probe.getsockname()[0])
    return LOOPBACK[0]


@contextmanager
def served(folder: str | Path | Address, options: Options | None = None) -> Iterator[str]:
    """Run a server for the loops in `folder` in a thread of this process, for tests and trials.

    Yield its address, "http://127.0.0.1:PORT"; it stops when the block ends."""
    with listening(place_of(folder), "127.0.0.1", 0, Options() if options is None else options) as (app, listener):
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
            server.stop()
            thread.join()
