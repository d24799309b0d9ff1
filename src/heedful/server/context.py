"""What all routes share: loops, authentication, limits, metrics, threads."""

from __future__ import annotations

import asyncio
import os
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, suppress
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple, TypeVar

from heedful import __version__
from heedful.loop.copying import loops_in
from heedful.loop.log import Log
from heedful.loop.retraction import Unerased, unseen
from heedful.server.audit import Actor, Audit
from heedful.server.auth import Authenticator, Caller
from heedful.server.codecs import Limits
from heedful.server.keys import Keys
from heedful.server.links import Links
from heedful.server.loops import MAIN, Loops
from heedful.server.metrics import SILENT, Metrics
from heedful.server.server_log import log, request_id
from heedful.server.sessions import Sessions
from heedful.server.threads import Threads, Turns
from heedful.storage import Address, Owned, Place
from heedful.storage.address import LOG

T = TypeVar("T")

LARGE = 100_000
"""Bytes of JSON or msgpack from which on a request is decoded and handled in other threads."""

PATIENCE = 2.5
"""Seconds for which a server that stops waits for what its threads are doing, after requests had two to be answered."""

DISK = 1.0
"""Seconds in which the disk has to say whether the folder of the loops can be written, and has room."""
ROOM = 2**20
"""Bytes below which a disk is full: there may be no room for what comes with one request."""

EXPORTED = 3600.0
"""Seconds in which the audit log has one entry of a key that exports a loop again and again."""

RECORD = 60.0
"""Seconds between two times that the last uses of keys are written to the database."""

FORGET_EVERY = 86_400.0
"""Seconds between two rounds in which people are forgotten who were not seen for long."""

REST = 2.0
"""After a large body was decoded, the next one waits this many times as long, so that other requests have a turn."""


class Options(NamedTuple):
    """The options of a server."""

    limits: Limits = Limits()
    """the limits of each request: its size and its time"""
    rate: float | None = None
    """requests per second of a key without a rate of its own; None for no limit"""
    own: tuple[str, ...] = ()
    """learners that are the user's code (FILE.py:Class), which loops of the folder may have"""
    most_open: int = 200
    """the most loops that are kept open"""
    idle: float = 300.0
    """seconds after which a loop that nobody uses is closed"""
    threads: int = 32
    """the number of threads for long work"""
    words: Mapping[str, tuple[str, str]] = MappingProxyType({})
    """column -> (phrase for more of it, phrase for less of it), for pages: "weight" -> ("heavier", "lighter")"""
    passing: bool = False
    """whether the folder is removed when the server ends, as in the demo"""
    example: str = ""
    """the loop that pages of other loops point newcomers to, as in the demo; "" for none"""
    address: str = ""
    """where other servers of the same database pass requests on for a loop that this server owns,
    "http://192.0.2.7:8710"; "" for nowhere"""
    lease: float = 2.0
    """seconds for which this server stays the owner of a loop in a database when it does not renew that"""
    origins: tuple[str, ...] = ()
    """the origins of pages that may report clicks, "https://shop.example"; those of the server's own name may, too"""
    forget_unseen: float | None = None
    """after how many days people are forgotten of whom nothing came since; None for never"""
    shared: str = ""
    """the URL by which participants reach the server, "http://192.0.2.7:8711"; "" for the one by which the link was
    made"""


class ServerContext:
    """What all requests to a server share: its loops, keys, sessions, links, metrics, limits and threads."""

    def __init__(self, folder: Place, options: Options | None = None) -> None:
        """Prepare to serve the loops in `folder`, or in the database of an address, without opening a socket or a loop.

        Raise ValueError if the file of keys, sessions and links cannot be read."""
        self.folder = folder
        self.options = options = Options() if options is None else options
        self.limits = options.limits
        self.keys = Keys(folder)
        self.sessions = Sessions(folder)
        self.links = Links(folder)
        self.audit = Audit(folder)
        self._exported: dict[tuple[str, str], float] = {}  # (key, loop) -> when the audit log was told
        self.authenticator = Authenticator(self.keys, rate=options.rate)
        self.pool = Threads(options.threads, "heedful")
        self.turns = Turns()
        """the turns of all tenants, without which nothing of theirs is done in a thread"""
        self.signing = Threads(2, "heedful-sessions")
        """threads for look-ups of sessions and links alone: any visitor can cause one, and it must not take a loop's
        thread"""
        self.observing = Threads(2, "heedful-observing")
        """threads for what watches the server: they never wait for what else it does"""
        self.loops = Loops(folder, self.pool, self.turns, options)
        self._reading = Threads(1, "heedful-reading")
        self._rested = 0.0  # when the next one may be read
        self.feeds: dict[Any, Any] = {}
        """by loop worker, the stream of a loop's new events for all its followers (`heedful.server.events.Feed`)"""
        self.metrics = Metrics(self)
        self.stopping = asyncio.Event()
        """set when the server begins to stop, to release requests that wait for events"""
        self._tasks: Sequence[asyncio.Task[None]] = ()
        self._handing_over: asyncio.Task[None] | None = None

    async def read(self, work: Callable[[], T]) -> T:
        """Run `work`, which decodes a large body, in the one thread that does so, and return its result.

        No other thread runs while a body is decoded. So after each one the next waits for `REST` times as long as that
        took."""

        def done() -> T:
            time.sleep(max(self._rested - time.perf_counter(), 0.0))
            began = time.thread_time()
            try:
                return work()
            finally:
                self._rested = time.perf_counter() + REST * (time.thread_time() - began)

        return await asyncio.get_running_loop().run_in_executor(self._reading, done)

    async def start(self) -> None:
        """Start the tasks that close idle loops, note when keys are used, forget people who were not seen for long, and
        own loops."""
        log.info("heedful %s begins to serve %s", __version__, self.folder)
        self._tasks = [asyncio.create_task(self._close_idle()), asyncio.create_task(self._record_all_uses())]
        if (days := self.options.forget_unseen) is not None:
            self._tasks = [*self._tasks, asyncio.create_task(self._forget_unseen(days))]
        if not isinstance(self.folder, Path):
            self._tasks = [*self._tasks, asyncio.create_task(self.loops.stay_owner())]

    def begin_to_stop(self) -> None:
        """End the requests that wait for new events or analyses, and let other servers own the loops in a database."""
        self.stopping.set()
        self.loops.analysts.end()
        for task in self._tasks:
            task.cancel()
        if self._handing_over is None and not isinstance(self.folder, Path):
            self._handing_over = asyncio.create_task(self.loops.hand_over())

    async def stop(self) -> None:
        """Close all loops, which writes a snapshot of each that has learned something since its last, and end all
        threads. Work that takes longer than `PATIENCE` is not waited for."""
        self.begin_to_stop()
        pools = self.pool, self.signing, self.observing, self._reading
        with suppress(TimeoutError):
            async with asyncio.timeout(PATIENCE):
                if self._handing_over is not None:
                    await self._handing_over
                await self.loops.analysts.wait()
                await self.loops.close_all()
                await self.record_uses()
                while any(pool.left for pool in pools):
                    await asyncio.sleep(0.01)
        if left := sum(pool.left for pool in pools):
            log.warning("work that takes long is cut off in %d threads; nothing that was acknowledged is lost", left)
        for pool in pools:
            pool.shutdown(wait=False, cancel_futures=True)
        self.keys.close()
        log.info("heedful has ended to serve %s", self.folder)

    async def why_unready(self) -> str:
        """Return why no requests should be sent to this server, as a sentence; "" if they should.

        It asks no database, and waits for the disk for a second at most."""
        if self.stopping.is_set():
            return "the server ends"
        if (silence := self.keys.silence) > SILENT:
            return f"the database has not answered for {silence:.0f} s"
        if not self.authenticator.readable:
            return "the keys cannot be read"
        if isinstance(self.folder, Path):
            asked = asyncio.get_running_loop().run_in_executor(self.observing, _why_unwritable, self.folder)
            await asyncio.wait((asked,), timeout=DISK)
            return asked.result() if asked.done() else "the disk does not answer"
        return ""

    async def note_act(self, caller: Caller, action: str, loop: str) -> None:
        """Add to the audit log what the key of `caller` has done to a `loop`; nothing while there is no key.

        An export, such as a stream of events that is followed, is noted once in `EXPORTED` seconds."""
        if not caller.prefix:
            return
        now, export = time.monotonic(), (caller.prefix, loop)
        if action == "export":
            if now - self._exported.get(export, -EXPORTED) < EXPORTED:
                return
            self._exported = {each: at for each, at in self._exported.items() if now - at < EXPORTED} | {export: now}
        actor = Actor(caller.prefix, request_id())
        try:
            add = asyncio.get_running_loop().run_in_executor
            await add(self.pool, self.audit.add, actor, caller.tenant, action, loop)
        except Exception as error:  # it was done, and is answered
            log.error("audit: %s of %s by %s could not be written: %s", action, loop, caller.prefix, error)

    async def _record_all_uses(self) -> None:
        while True:
            await asyncio.sleep(RECORD)
            await self.record_uses()

    async def record_uses(self) -> None:
        """Write to the database when keys were last used, which it does not have yet."""
        if uses := self.authenticator.new_uses():
            try:
                await asyncio.get_running_loop().run_in_executor(self.pool, self.keys.record_uses, uses)
            except Exception as error:
                log.warning("when keys were last used could not be written: %s", error)

    async def _close_idle(self) -> None:
        while True:
            await asyncio.sleep(min(0.25, max(self.options.idle / 4, 0.05)))
            try:
                await self.loops.close_idle()
                await self.loops.finish_forgetting()
            except Exception:
                log.exception("loops that nobody uses could not be closed")

    async def _forget_unseen(self, days: float) -> None:
        """Forget, once a day, in all loops of all tenants, the people who were not seen for so many `days`
        (`Loop.forget_unseen`). Only loops in which there are any are opened."""
        while True:
            try:
                for key in await asyncio.get_running_loop().run_in_executor(self.pool, loops_in, self.folder):
                    tenant, _, name = key.rpartition("/")
                    try:
                        await self._forget_unseen_in(tenant or MAIN, name, days)
                    except Exception as error:
                        log.warning("%s: people who were not seen for long could not be forgotten: %s", key, error)
            except Exception as error:
                log.warning("the loops in which people are to be forgotten could not be listed: %s", error)
            await asyncio.sleep(FORGET_EVERY)

    async def _forget_unseen_in(self, tenant: str, name: str, days: float) -> None:
        if await self.turns.run(self.pool, tenant, "long", _has_unseen, self.loops.path(tenant, name), days):
            with await self.loops.open(tenant, name) as worker:
                try:
                    await worker.run(worker.loop.forget_unseen, days)
                except Unerased:  # their bytes: it is tried again until nobody reads
                    worker.unerased = time.monotonic()
                except Owned:
                    pass  # the server that owns the loop does it


def _has_unseen(path: Place, days: float) -> bool:
    """Return whether there is anybody in the loop at `path` who was not seen for so many `days`."""
    with closing(Log(path if isinstance(path, Address) else path / LOG, read_only=True)) as log:
        return bool(unseen(log, days))


def _why_unwritable(folder: Path) -> str:
    """Return why nothing can be written to `folder`, as a sentence; "" if it can."""
    if not os.access(folder, os.W_OK, effective_ids=os.access in os.supports_effective_ids):
        return "the folder of the loops cannot be written"
    return "the disk is full" if shutil.disk_usage(folder).free < ROOM else ""
