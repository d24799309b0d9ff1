"""An open loop behind the server's event loop: what comes at the same moment is committed together.

One thread reads requests, decides, commits and learns; the disk is waited for once for all that had come by then. So
nobody waits for the interpreter's lock, and a commit costs each of many callers little. What would hold the others up
is done in a thread of its own: what waits for another writer, what folds the log again, what reads much.
"""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import Callable, Sequence, Sized
from concurrent.futures import Executor
from functools import cache, partial
from typing import Any, TypeVar

import numpy as np

from heedful.loop import Loop
from heedful.loop.decide import DecisionRequest
from heedful.loop.feedback import UnknownDecision
from heedful.loop.projection import AGAIN, PendingEvent
from heedful.loop.records import Answer, Decision, check_id
from heedful.storage import Moved

T = TypeVar("T")

Request = tuple[list[PendingEvent], "asyncio.Future[Sequence[Answer]]"]
"""The events that a request hands in, and what it waits for."""
Group = list[Request]

THREADS = 4
"""Threads that one loop takes at a time for what is long."""
WRITE_AHEAD = 4_000_000
"""Bytes after which the write-ahead file is moved: often, so that the disk never has much to do at once."""

log = logging.getLogger("heedful.server")

GROUP = 256
"""Requests that are not kept waiting for others to come; more events than that are committed in a thread."""

LARGE, FEW, NUMBERS = 2000, 100, 2**20
"""From how many candidates on a request is worked on in a thread, where they are names; from how many objects that come
along, or events in a list; and from how many bytes of raw numbers."""


class LoopWorker:
    """One open loop, for the thread of one event loop."""

    def __init__(self, loop: Loop, pool: Executor) -> None:
        """`pool` runs what takes long."""
        self.loop = loop
        self.projection = loop.projection
        self._slow = loop.projection.interaction.slow
        """whether a decision, and a lesson, take milliseconds: nobody else waits for them, they are done in a thread"""
        if self._slow:
            use_one_core()
        self.users = 0
        """requests under way: it is not closed under them"""
        self.used = time.monotonic()
        self.groups = 0
        self.committed = 0
        """groups and events written by this thread"""
        self.changed = asyncio.Event()
        """set, and made again, after every group"""
        self._pool = pool
        self._aio = asyncio.get_running_loop()
        self._waiting: Group = []
        self._durable = loop.settings.durable == "decision"
        """whether a commit waits for the disk; otherwise decisions do not, and all else waits in a thread"""
        self._unsynced: list[tuple[Request, Sequence[Answer]]] = []
        self._syncing = False
        self._looked_at = 0
        self._scheduled = self._in_thread = False  # a flush is about to run; a thread is committing
        self._keeping = False
        self._threads = asyncio.Semaphore(THREADS)
        self.unerased: float | None = None
        """when it was last tried to remove what is left of somebody; None where nothing is"""
        self._file = _file(self.log_path)
        self.moved = self._file is None
        """whether it was found that its file is no longer the one that was opened: it has to be opened again"""
        self.projection.log.leave_write_ahead()

    def __enter__(self) -> LoopWorker:
        self.users += 1
        return self

    def __exit__(self, *_: object) -> None:
        self.users -= 1
        self.used = time.monotonic()

    @property
    def busy(self) -> bool:
        """Whether anything is under way."""
        unfinished = self._in_thread or self._keeping or self._syncing or self.unerased is not None
        return self.users > 0 or bool(self._waiting) or unfinished

    # ------------------------------------------------------------------------ what is asked most

    async def decide(self, given: dict[str, Any], large: bool = False) -> Decision:
        """As `Loop.decide`; what is `large` is worked on in a thread."""
        return (await self.decide_once(given, large))[0]

    async def decide_once(self, given: dict[str, Any], large: bool = False) -> tuple[Decision, bool]:
        """The same, and whether the decision was there before."""
        while (draft := None if large else self.decision_of(given)) is not None:
            if not isinstance(draft, PendingEvent):
                return draft, True
            [answer] = await self.submit([draft])
            if answer.reason != AGAIN:
                return self.loop.decider.decision_of(draft, answer), answer.status == "duplicate"
        return await self.decide_in_thread(partial(self.loop.decide, **given), given.get("id"))

    async def decide_in_thread(self, work: Callable[[], Decision], id: Any) -> tuple[Decision, bool]:
        """The decision that `work` makes under an id, in a thread, and whether it was there before."""

        def work_once() -> tuple[Decision, bool]:
            there = id is not None and self.projection.find_decision(check_id("id", id)) is not None
            return work(), there

        return await self.run(work_once)

    def decision_of(self, given: dict[str, Any]) -> PendingEvent | Decision | None:
        """The event of a decision, to be handed in; or the decision that was made under its id before. None where it
        takes long, or another process may have put there what it names: `decide` sees to that."""
        among = given.get("candidates")
        size = len(among) if isinstance(among, Sized) else len(self.projection.catalogue.current)
        if self._slow or size > LARGE:
            return None
        if size > FEW and type(among) is list and type(among[0]) is dict:
            return None
        if isinstance(among, np.ndarray) and among.nbytes > NUMBERS:
            return None
        try:
            asked = self.loop.decider.read(**given)
        except LookupError:
            return None
        # The request goes with this call: its arrays are the next one's while they are in the processor's cache.
        return self.loop.decider.propose(asked) if isinstance(asked, DecisionRequest) else asked

    async def feedback(self, event: dict[str, Any], large: bool = False) -> Answer:
        """As `Loop.feedback`."""
        draft = None if large else self.feedback_of(event)
        if draft is None:
            return await self.run(partial(self.loop.feedback, event))
        if isinstance(draft, Answer):
            return draft
        [answer] = await self.submit([draft])
        return answer

    def feedback_of(self, event: dict[str, Any]) -> PendingEvent | Answer | None:
        """The event of feedback, to be handed in; or the answer that rejects it. None where another process may have
        made the decision: `feedback` sees to that."""
        form = event.copy()
        decision, id, at = form.pop("decision", None), form.pop("id", None), form.pop("time", None)
        draft = self.loop.feedback_reader.read(decision, id, at, form)
        return None if isinstance(draft, UnknownDecision) else draft

    async def feedback_many(self, events: list[Any], large: bool = False) -> list[Answer]:
        """As `Loop.feedback_many`."""
        if large or len(events) > FEW:
            return await self.run(partial(self.loop.feedback_many, events))
        drafts = self.loop.feedback_reader.read_many(events)
        if any(isinstance(draft, UnknownDecision) for draft in drafts):
            return await self.run(partial(self.loop.feedback_many, events))
        good = [draft for draft in drafts if isinstance(draft, PendingEvent)]
        answers = iter(await self.submit(good) if good else ())
        return [draft if isinstance(draft, Answer) else next(answers) for draft in drafts]

    async def run(self, work: Callable[[], T]) -> T:
        """What `work` gives, done in a thread."""
        answer = await self.read(work)
        self._tell_watchers()
        self._look_after()
        return answer

    async def read(self, work: Callable[[], T]) -> T:
        """What `work`, which writes nothing, gives, done in a thread. Moved where the file went: what is in memory is
        of one that nobody can find again."""
        async with self._threads:  # one loop does not take the threads of all
            return await self._aio.run_in_executor(self._pool, self._run_here, work)

    def _run_here(self, work: Callable[[], T]) -> T:
        if self.has_moved():
            raise Moved(
                f"{self.log_path}: the file was removed or replaced while it was open: the loop is opened again"
            )
        try:
            return work()
        except Exception:
            self.has_moved()  # it may have gone meanwhile, whatever that was told as
            raise

    def has_moved(self) -> bool:
        """Whether its file is no longer the one that was opened."""
        self.moved = self.moved or _file(self.log_path) != self._file
        return self.moved

    # ------------------------------------------------------------------------ committing

    async def submit(self, drafts: list[PendingEvent]) -> Sequence[Answer]:
        """What became of each, once it is on the disk and learned."""
        answers: asyncio.Future[Sequence[Answer]] = self._aio.create_future()
        self._waiting.append((drafts, answers))
        if not self._scheduled and not self._in_thread:
            self._scheduled = True
            self._aio.call_soon(self._flush)  # after all that has come by now
        return await answers

    def _flush(self) -> None:
        """Commit what is waiting, unless more has come since it was last looked at: then that goes along."""
        if self._looked_at < len(self._waiting) < GROUP and not self._in_thread:
            self._looked_at, self._scheduled = len(self._waiting), True
            self._aio.call_soon(self._flush)
            return
        self._scheduled, self._looked_at = False, 0
        if not self._waiting or self._in_thread:
            return
        group, self._waiting = self._waiting, []
        drafts = [draft for each, _ in group for draft in each]
        try:
            few = len(drafts) <= GROUP and not self._slow
            answers = self.projection.attempt(drafts, self._durable) if few else None
        except Exception as error:
            self._fail(group, error)
        else:
            if answers is None:  # somebody else is writing, or there are many: in a thread
                self._in_thread = True
                under_way = self._aio.run_in_executor(self._pool, self.projection.submit, drafts)
                under_way.add_done_callback(partial(self._finish_commit, group))
                return
            self.groups += 1
            self._answer_or_sync(group, answers)
        self._look_after()

    def _answer_or_sync(self, group: Group, answers: Sequence[Answer]) -> None:
        """Answer a group that this thread committed: at once, but for what has yet to reach the disk."""
        if self._durable:
            self._answer(group, answers)
            return
        at = 0
        for drafts, future in group:
            mine, at = answers[at : at + len(drafts)], at + len(drafts)
            if self.projection.waits_for_disk(drafts):
                self._unsynced.append(((drafts, future), mine))
            else:
                self._answer([(drafts, future)], mine)
        self._sync()

    def _sync(self) -> None:
        """Wait in a thread until what was committed is on the disk, once for all that had been by then."""
        if self._unsynced and not self._syncing:
            self._syncing, waiting = True, self._unsynced
            self._unsynced = []
            under_way = self._aio.run_in_executor(self._pool, self.projection.log.sync)
            under_way.add_done_callback(partial(self._answer_synced, waiting))

    def _answer_synced(self, waiting: list[tuple[Request, Sequence[Answer]]], under_way: asyncio.Future[None]) -> None:
        error = under_way.exception()
        for request, answers in waiting:
            if error is not None:
                self._fail([request], error)
            else:
                self._answer([request], answers)
        self._syncing = False
        self._sync()

    def _look_after(self) -> None:
        if self.projection.due or self.projection.log.unmoved > WRITE_AHEAD:
            self._keep_up()

    def _finish_commit(self, group: Group, under_way: asyncio.Future[Sequence[Answer]]) -> None:
        error = under_way.exception()
        if error is not None:
            self._fail(group, error)
        else:
            self.groups += 1
            self._answer(group, under_way.result())
        self._in_thread = False
        self._look_after()
        self._flush()

    def _answer(self, group: Group, answers: Sequence[Answer]) -> None:
        self.committed += len(answers)
        at = 0
        for drafts, future in group:
            if not future.done():  # its caller may have gone away: it was written all the same
                future.set_result(answers[at : at + len(drafts)])
            at += len(drafts)
        self._tell_watchers()

    def _fail(self, group: Group, error: BaseException) -> None:
        self.moved = self.moved or isinstance(error, Moved)
        for _, future in group:
            if not future.done():
                future.set_exception(error)

    def _tell_watchers(self) -> None:
        self.changed.set()
        self.changed = asyncio.Event()

    def _keep_up(self) -> None:
        """Move the write-ahead file, and keep a snapshot where one is due, in a thread next to the commits."""
        if not self._keeping:
            self._keeping = True
            self._aio.run_in_executor(self._pool, self._move_and_snapshot).add_done_callback(self._finish_keeping)

    def _move_and_snapshot(self) -> None:
        self.projection.log.move_write_ahead()
        if self.projection.due:
            self.projection.keep()  # commits wait for that, in a thread of theirs

    def _finish_keeping(self, under_way: asyncio.Future[Any]) -> None:
        self._keeping = False
        if (error := under_way.exception()) is None and not self._in_thread:
            try:
                self.projection.log.begin_write_ahead_anew()
            except (OSError, ValueError) as failed:
                error = failed
        if error is not None:
            log.warning("%s: the write-ahead file could not be moved now: %s", self.path, error)

    @property
    def path(self) -> str:
        """Where the loop's folder is."""
        return os.fspath(self.loop.path)

    @property
    def log_path(self) -> str:
        """Where its log is."""
        return os.fspath(self.projection.log.path)


def _file(path: str) -> tuple[int, int] | None:
    """Which file it is, wherever it is moved to; None where there is none."""
    try:
        there = os.stat(path)
    except OSError:
        return None
    return there.st_ino, there.st_dev


@cache
def use_one_core() -> None:
    """From now on products of matrices take one core: a second one, where another request has it, is waited for in a
    loop that takes the rest of the machine (a question among 1,000 items .37 s instead of .006)."""
    import scipy.linalg  # noqa: F401  brings a BLAS of its own, which is to be there by now
    from threadpoolctl import threadpool_limits

    threadpool_limits(1, user_api="blas")
