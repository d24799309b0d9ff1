"""The processes in which a server has logs analysed, so that it does not wait for the interpreter's lock meanwhile."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import Executor, Future
from functools import partial
from typing import Any

from heedful.server.analyst import pack, unpack
from heedful.server.problems import unavailable
from heedful.server.server_log import log
from heedful.storage import Place

MOST = 2
"""The most of these processes. A tenant has one question under way at a time, so each has its share of them."""
IDLE = 60.0
"""Seconds after which one is ended that nobody asked anything."""
GRACE = 1.0
"""Seconds that one has left whose answer nobody waits for any more: a new one takes most of that to begin."""


class _Process:
    """One of the processes: what it has open, and since when nobody asked it."""

    def __init__(
        self, child: subprocess.Popen[bytes], reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self.child, self.reader, self.writer = child, reader, writer
        self.places = set[Place]()
        self.used = time.monotonic()

    async def ask(self, question: bytes) -> bytes:
        self.writer.write(len(question).to_bytes(4, "big") + question)
        return await self.reader.readexactly(int.from_bytes(await self.reader.readexactly(4), "big"))


class Analysts:
    """At most `MOST` processes that answer questions about logs, each begun when it is needed."""

    def __init__(self, own: Sequence[str], pool: Executor) -> None:
        """Let them open loops with learners of the user's `own`; they are begun in a thread of `pool`."""
        self._command = [sys.executable, "-P", "-m", "heedful.server.analyst", *own]
        self._pool = pool
        self._free = asyncio.Semaphore(MOST)
        self._idle: list[_Process] = []
        self._all = set[_Process]()
        self._ending: list[Future[int]] = []
        self._ended = False

    async def ask(self, place: Place, name: str, arguments: Sequence[Any], named: dict[str, Any]) -> Any:
        """Return what the method `name` of the loop at `place` returns, called with these arguments in a process.

        Raise what it raises: ValueError, LookupError, or the Problem that answers anything else. If the caller is
        cancelled, the process is ended, unless it is done in a moment."""
        question = pack(place, name, arguments, named)
        async with self._free:
            process = await self._take(place)
            asked = asyncio.ensure_future(process.ask(question))
            try:
                answer = await asyncio.shield(asked)
            except asyncio.CancelledError:
                await asyncio.wait((asked,), timeout=GRACE)
                raise
            except (asyncio.IncompleteReadError, OSError):
                self._check_ended()
                log.error("%s: the process that was to %s ended", place, name)
                raise unavailable("the process that worked on it ended; nothing was changed: send it again") from None
            finally:
                if asked.done() and not asked.cancelled() and asked.exception() is None:
                    process.used = time.monotonic()
                    self._idle.append(process)
                else:
                    asked.cancel()
                    self._end(process)
        return unpack(name, answer)

    async def _take(self, place: Place) -> _Process:
        """Return a process that is idle, one that has the loop at `place` open if there is any; or begin one."""
        self.end_idle()
        if not self._idle:
            self._check_ended()
            self._idle.append(await self._begin())
            self._check_ended()
        process = next((each for each in self._idle if place in each.places), self._idle[-1])
        self._idle.remove(process)
        process.places.add(place)
        return process

    async def _begin(self) -> _Process:
        ours, theirs = socket.socketpair()
        with theirs:
            environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "OPENBLAS_NUM_THREADS": "1"}
            begin: Any = partial(subprocess.Popen, self._command, stdin=theirs, env=environment)
            child: subprocess.Popen[bytes] = await asyncio.get_running_loop().run_in_executor(self._pool, begin)
        process = _Process(child, *await asyncio.open_connection(sock=ours))
        self._all.add(process)
        return process

    def _check_ended(self) -> None:
        """Raise Problem (503) if the server ends, after ending what was begun meanwhile."""
        if self._ended:
            self.end()
            raise unavailable("the server ends; nothing was changed: send it again")

    def _end(self, process: _Process) -> None:
        if process in self._all:
            self._all.remove(process)
            process.child.kill()
            process.writer.close()
            self._ending = [each for each in self._ending if not each.done()]
            self._ending.append(self._pool.submit(process.child.wait))

    def end_idle(self) -> None:
        """End the processes that nobody has asked anything for `IDLE` seconds, and forget those that have ended."""
        for process in list(self._idle):
            ended = process.child.poll() is not None or process.reader.at_eof()
            if ended or time.monotonic() - process.used > IDLE:
                self._idle.remove(process)
                self._end(process)

    def end(self) -> None:
        """End all of them; what was asked is answered with 503."""
        self._ended = True
        self._idle = []
        for process in list(self._all):
            self._end(process)

    async def wait(self) -> None:
        """Wait until those are gone that were ended: they have logs open."""
        await asyncio.gather(*map(asyncio.wrap_future, self._ending))
