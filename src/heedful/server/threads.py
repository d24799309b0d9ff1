"""Threads for long work, and whose turn it is: no tenant takes the threads of all, and none holds up the end."""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import Callable
from concurrent.futures import Executor, Future
from contextlib import suppress
from contextvars import copy_context
from functools import partial
from math import inf
from typing import Any, Literal, TypeVar

from heedful.server.problems import Problem

T = TypeVar("T")

AT_ONCE: dict[str, tuple[int, float]] = {
    "long": (6, 256),
    "loop": (4, 256),
    "analyses": (1, 32),
    "large": (1, 32),
    "streams": (1, inf),
    "commits": (4, inf),
    "keeping": (1, inf),
    "opening": (2, 256),
}
"""What is done in threads -> (how much of it at a time for one tenant, how many requests of theirs may wait for it).

"long" is whatever takes long, "loop" that in a single loop, so that one that is locked leaves some to their others,
"analyses" what reads much of a log, and keeps a processor busy,
"large" the decoding and handling of a large body, which is in memory meanwhile,
"streams" a read for a stream of events, "commits" a commit or the wait for the disk, "keeping" a snapshot, "opening" a
loop that is opened."""


REFUSED_AFTER = 0.1
"""Seconds after which a request is told that too many of its tenant wait: most clients ask again at once, and answering
some thousands of them a second would take the interpreter from everybody else."""


class Turn(asyncio.Semaphore):
    """What one tenant may do at a time of one thing; whatever is more waits, in the order in which it came."""

    def __init__(self, most: int, waiting: float) -> None:
        """Let `most` do it at a time, and `waiting` wait for it."""
        super().__init__(most)
        self._most, self._longest = most, waiting
        self.waiting = self.rejected = 0
        """how many requests wait for it; how many were turned away, as too many did"""

    async def acquire(self) -> Literal[True]:
        """Wait for a turn. Raise Problem (429) if too many wait already."""
        if self.waiting >= self._longest:
            self.rejected += 1
            await asyncio.sleep(REFUSED_AFTER)
            detail = f"expected at most {self._most} at a time that take long and {self._longest:g} that wait, got more"
            raise Problem("too-many", f"{detail}; nothing was changed: send it again", headers={"Retry-After": "1"})
        self.waiting += 1
        try:
            return await super().acquire()
        finally:
            self.waiting -= 1


class Turns:
    """The turns of all tenants, by what is done."""

    def __init__(self) -> None:
        self.all: dict[tuple[str, str], Turn] = {}
        """the turns that were ever asked for, by (tenant, what is done)"""

    def of(self, tenant: str, what: str) -> Turn:
        """Return the turn that what this `tenant` does has to have; `what` is one of `AT_ONCE`."""
        turn = self.all.get((tenant, what))
        if turn is None:
            turn = self.all[tenant, what] = Turn(*AT_ONCE[what])
        return turn

    async def run(self, pool: Executor, tenant: str, what: str, work: Callable[..., T], *args: Any) -> T:
        """Call `work` with these arguments in a thread of `pool` when it is the tenant's turn, and return its result.

        The turn lasts until the thread is done, even if nobody waits for the result any more."""
        turn, aio = self.of(tenant, what), asyncio.get_running_loop()
        await turn.acquire()

        def release(_: object) -> None:
            with suppress(RuntimeError):  # the event loop is closed: the server has ended
                aio.call_soon_threadsafe(turn.release)

        try:
            under_way = pool.submit(work, *args)
        except BaseException:
            turn.release()
            raise
        under_way.add_done_callback(release)
        waiting = asyncio.wrap_future(under_way)
        try:
            return await waiting
        finally:
            del under_way, waiting  # an error has this frame in its traceback: they would keep one another


class Threads(Executor):
    """A pool of threads that does not hold up the end of the process, as that of the standard library does.

    What a thread is doing when the process ends is cut off."""

    def __init__(self, most: int, name: str) -> None:
        """Start at most `most` threads, each when it is needed; `name` begins their names."""
        self._most, self._name = most, name
        self._jobs: queue.SimpleQueue[tuple[Future[Any], Callable[[], Any]] | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._threads: list[threading.Thread] = []
        self.left = 0
        """how much work is under way or waits for a thread"""
        self._ended = False

    def submit(self, work: Callable[..., T], /, *args: Any, **more: Any) -> Future[T]:
        """Call `work` with these arguments in a thread and return the future of its result. Raise RuntimeError after
        `shutdown`."""
        future: Future[T] = Future()
        with self._lock:
            if self._ended:
                raise RuntimeError("the server has ended")
            self.left += 1
            self._jobs.put((future, partial(copy_context().run, work, *args, **more)))  # the log knows the request
            if len(self._threads) < min(self._most, self.left):
                thread = threading.Thread(target=self._work, name=f"{self._name}_{len(self._threads)}", daemon=True)
                self._threads.append(thread)
                thread.start()
        return future

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            future, work = job
            try:
                if future.set_running_or_notify_cancel():
                    _settle(future, work)
            finally:
                with self._lock:
                    self.left -= 1
            del job, future, work  # nothing is kept until the next one comes

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Take no more work; `wait` until what was taken is done, with `cancel_futures` what was begun."""
        with self._lock:
            self._ended = True
        if cancel_futures:
            with suppress(queue.Empty):
                while (job := self._jobs.get_nowait()) is not None:
                    job[0].cancel()
                    with self._lock:
                        self.left -= 1
        for _ in self._threads:
            self._jobs.put(None)
        if wait:
            for thread in self._threads:
                thread.join()


def _settle(future: Future[Any], work: Callable[[], Any]) -> None:
    try:
        result = work()
    except BaseException as error:
        future.set_exception(error)
        del future  # the error has this frame in its traceback
    else:
        future.set_result(result)
