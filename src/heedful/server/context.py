"""What all routes share: loops, authentication, limits, metrics; and how an error becomes an answer."""

from __future__ import annotations

import asyncio
import errno
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple, TypeVar

from heedful.server.auth import Authenticator
from heedful.server.codecs import Limits
from heedful.server.keys import Keys
from heedful.server.links import Links
from heedful.server.loops import Loops
from heedful.server.metrics import Metrics, Texts
from heedful.server.problems import Problem, bad_input, out_of_files
from heedful.server.sessions import Sessions
from heedful.storage import Closed, Damaged, Moved

T = TypeVar("T")

LARGE = 100_000
"""Bytes of JSON or msgpack from which on a request is decoded and handled in threads."""

REST = 2.0
"""After a large body was decoded, how many times that long other requests have the interpreter before the next one."""

log = logging.getLogger("heedful.server")


class Options(NamedTuple):
    """The options of serving a folder."""

    limits: Limits = Limits()
    rate: float | None = None
    """requests a second for a key without a rate of its own; None for no limit"""
    own: tuple[str, ...] = ()
    """learners of the user's own (FILE.py:Class) that loops may have"""
    most_open: int = 200
    """the most loops that are kept open"""
    idle: float = 300.0
    """seconds after which a loop that nobody uses is closed"""
    threads: int = 32
    """the number of threads for long work"""
    words: Mapping[str, tuple[str, str]] = MappingProxyType({})
    """column -> (what pages call more of it, what they call less): "weight" -> ("heavier", "lighter")"""
    passing: bool = False
    """whether the folder is removed when the server ends, as in the demo"""
    example: str = ""
    """the loop that serves as an example, as in the demo, to which the pages of other loops point; "" for none"""
    shared: str = ""
    """the address at which participants reach the server, "http://192.0.2.7:8711"; "" for the one at which a link was
    made"""


class ServerContext:
    """The state of a server: a folder of loops, served by one event loop."""

    def __init__(self, folder: Path, options: Options | None = None) -> None:
        """Prepare to serve the loops in `folder`, without opening a socket. Raise ValueError if the file of its API
        keys cannot be read."""
        self.folder = folder
        self.options = options = Options() if options is None else options
        self.limits = options.limits
        self.keys = Keys(folder)
        self.sessions = Sessions(folder)
        self.links = Links(folder)
        self.authenticator = Authenticator(self.keys, rate=options.rate)
        self.metrics = Metrics()
        self.pool = ThreadPoolExecutor(options.threads, thread_name_prefix="heedful")
        self.signing = ThreadPoolExecutor(2, thread_name_prefix="heedful-sessions")
        """threads for sessions and links alone: any visitor can cause such a look-up, which must not take a thread of
        the loops"""
        self.loops = Loops(folder, self.pool, own=options.own, most_open=options.most_open, idle=options.idle)
        self._reading = ThreadPoolExecutor(1, thread_name_prefix="heedful-reading")
        self._rested = 0.0  # when the next one may be read
        self._turns: dict[tuple[str, str], asyncio.Lock] = {}
        self.feeds: dict[Any, Any] = {}
        """by loop worker, the new events of a loop for all who follow it (`heedful.server.events`)"""
        self.metrics_texts = Texts(self.metrics, self.loops.workers, folder, self.pool)
        self.stopping = asyncio.Event()
        """set when the server is about to end, to release requests that wait for events"""
        self._tasks: Sequence[asyncio.Task[None]] = ()

    def turn(self, tenant: str, what: str = "requests") -> asyncio.Lock:
        """Return the lock that a tenant's large requests hold while they are decoded and handled, and its streams for
        each look: one at a time, as a thread that works slows down all others."""
        return self._turns.setdefault((tenant, what), asyncio.Lock())

    async def read(self, work: Callable[[], T]) -> T:
        """Return the result of `work`, which decodes a large body in a thread. One is decoded at a time, and the next
        waits `REST` times as long, because no other thread runs meanwhile."""

        def done() -> T:
            time.sleep(max(self._rested - time.perf_counter(), 0.0))
            began = time.thread_time()
            try:
                return work()
            finally:
                self._rested = time.perf_counter() + REST * (time.thread_time() - began)

        return await asyncio.get_running_loop().run_in_executor(self._reading, done)

    async def start(self) -> None:
        """Start the task that closes loops nobody uses."""
        self._tasks = [asyncio.create_task(self._close_idle())]

    async def stop(self) -> None:
        """Close all loops; each writes a snapshot if it has learned something since its last."""
        self.stopping.set()
        for task in self._tasks:
            task.cancel()
        await self.loops.close_all()
        self.pool.shutdown(wait=True)
        self.signing.shutdown(wait=True)
        self._reading.shutdown(wait=True)
        self.keys.close()

    async def _close_idle(self) -> None:
        while True:
            await asyncio.sleep(min(0.25, max(self.options.idle / 4, 0.05)))
            try:
                await self.loops.close_idle()
                await self.loops.finish_forgetting()
            except Exception:
                log.exception("loops that nobody uses could not be closed")


def as_problem(error: Exception, lookup: str = "bad-input") -> Problem:
    """Return the Problem that answers an error; `lookup` is its kind for a LookupError. An error that is not the
    caller's fault is logged here, and the answer says nothing of it.

    A Problem is returned without its traceback and cause: the caller keeps it in a variable of a frame that the
    traceback would hold, a reference cycle for every refusal.
    """
    if isinstance(error, Problem):
        error.__context__ = error.__cause__ = None
        return error.with_traceback(None)
    if isinstance(error, FileExistsError):
        return Problem("exists", "there is a loop of that name")
    if isinstance(error, TimeoutError | InterruptedError):
        told = "somebody else has been writing for too long; nothing was changed: send it again"
        return Problem("unavailable", told, headers={"Retry-After": "1"})
    if isinstance(error, OSError) and out_of_files(error):
        log.error("no more files may be opened: %s", error)
        told = "the server has as many files open as it may; nothing was changed: send it again"
        return Problem("unavailable", told, headers={"Retry-After": "1"})
    if isinstance(error, OSError) and error.errno == errno.ENOSPC:
        log.error("the disk is full: %s", error)
        return Problem("unavailable", "the disk is full; nothing was changed", headers={"Retry-After": "60"})
    if isinstance(error, Moved):  # the next request gets what is in its place
        log.warning("%s", error)
        told = "the loop's folder was moved or replaced; nothing was changed: send it again"
        return Problem("unavailable", told, headers={"Retry-After": "1"})
    inside = isinstance(error, Closed | Damaged | KeyError | IndexError)
    if isinstance(error, LookupError) and not inside:
        return bad_input(str(error)) if lookup == "bad-input" else Problem(lookup, str(error))
    if isinstance(error, ValueError) and not inside:
        return bad_input(str(error))
    log.error("a request failed", exc_info=error)
    return Problem("damaged", "the request failed for a reason that is in the server's log; nothing of it was kept")
