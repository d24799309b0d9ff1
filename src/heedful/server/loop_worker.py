"""An open loop, used from the server's event loop: events that arrive at the same time are committed together.

The event loop's thread parses requests, decides, commits and learns, and waits for the disk once for all events that
had come by then. So requests do not compete for the interpreter's lock, and many callers share the cost of a commit.
Work that would hold up other requests is done in other threads: waiting for another writer, replaying the log,
large reads. The file is long because deciding, learning and leaving share one thread's state."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence, Sized
from concurrent.futures import Executor
from contextlib import AbstractAsyncContextManager, AbstractContextManager, nullcontext
from functools import cache, partial
from typing import Any, Concatenate, ParamSpec, TypeVar

import numpy as np

from heedful.core.fold import must_interpret
from heedful.loop import Loop
from heedful.loop.decide import DecisionRequest
from heedful.loop.feedback import UnknownDecision
from heedful.loop.pending import AGAIN, PendingEvent
from heedful.loop.records import check_id
from heedful.results.answers import Answer, Decision
from heedful.server.analyst import QUESTIONS
from heedful.server.analysts import Analysts
from heedful.server.problems import Problem
from heedful.server.server_log import log
from heedful.server.threads import AT_ONCE, Turn, Turns
from heedful.storage import Address, Busy, Moved
from heedful.storage.postgres import hurried

P = ParamSpec("P")
T = TypeVar("T")

Request = tuple[list[PendingEvent], "asyncio.Future[Sequence[Answer]]"]
"""The events that one HTTP request submits, and the future that gets their answers."""
Group = list[Request]

_AT_ONCE = nullcontext()
WRITE_AHEAD = 4_000_000
"""Bytes after which SQLite's write-ahead file is moved into the log: often, so that no move takes long."""

GROUP = 256
"""The number of waiting requests from which on they are committed without waiting for more. A group with more events
than this is committed in another thread."""

LARGE, FEW, NUMBERS, COSTLY = 2000, 100, 2**20, 4000
"""The sizes from which on a request is handled in another thread: candidates that are names, mappings or events in a
list, bytes of raw numbers, what content costs (`cost`), of which so much takes .4 to 1 ms."""
VALUE = 5
"""What a value costs, in characters: a number takes .6 microseconds, a category 1.2, a character of a text .1."""

SHORT = 200
"""The most events of a log that is analysed in a thread: that takes a tenth of a second for most kinds of feedback, and
to begin a process takes half a second."""


class LoopWorker:
    """Handles all requests for one open loop in the thread of an event loop: it decides, takes feedback and commits.

    As a context manager it counts a request under way, during which the loop is not closed."""

    def __init__(self, loop: Loop, pool: Executor, analysts: Analysts, turns: Turns, tenant: str) -> None:
        """Serve `loop`, which belongs to `tenant`; long work is done in the threads of `pool` or by `analysts`, when it
        is the tenant's turn. This has to be called within the running event loop."""
        self.loop = loop
        self._analysts = analysts
        self._turns, self._tenant = turns, tenant
        self._tasks = set[asyncio.Task[Any]]()
        self._own_turn = Turn(*AT_ONCE["loop"])
        self.projection = loop.projection
        use_one_core()  # also where the learner calls no solver: another one may be promoted
        self._far = isinstance(loop.path, Address)
        """whether the log is in a database, for which the event loop does not wait"""
        self.users = 0
        """the number of requests under way, during which the loop is not closed"""
        self.used = time.monotonic()
        self.groups = 0
        self.committed = 0
        """how many groups of events, and how many events, were committed here"""
        self.changed = asyncio.Event()
        """an asyncio event that is set after every commit, and replaced by a new one"""
        self._pool = pool
        self._aio = asyncio.get_running_loop()
        self._waiting: Group = []
        self._durable = loop.settings.durable == "decision"
        """whether every commit waits for the disk; otherwise decisions are answered before, and other events wait in a
        thread"""
        self._unsynced: list[tuple[Request, Sequence[Answer]]] = []
        self._syncing = False
        self._looked_at = 0
        self._scheduled = self._in_thread = False  # a flush is about to run; a thread is committing
        self._keeping = False
        self.unerased: float | None = None
        """when removing the bytes of a forgotten person from the files was last tried; None if none are left"""
        self.moved = not self.projection.log.store.is_there()
        """whether the log's file was removed or replaced since it was opened, so that the loop has to be opened
        again"""
        self.projection.log.store.leave_write_ahead()

    def __enter__(self) -> LoopWorker:
        self.users += 1
        return self

    def __exit__(self, *_: object) -> None:
        self.users -= 1
        self.used = time.monotonic()

    @property
    def busy(self) -> bool:
        """whether requests or background work are under way, so that the loop cannot be closed"""
        unfinished = self._in_thread or self._keeping or self._syncing or self.unerased is not None
        return self.users > 0 or bool(self._waiting) or unfinished

    # ------------------------------------------------------------------------ what is asked most

    async def decide(self, arguments: dict[str, Any], large: bool = False) -> Decision:
        """Return the decision alone of what `decide_once` returns."""
        return (await self.decide_once(arguments, large))[0]

    async def decide_once(self, arguments: dict[str, Any], large: bool = False) -> tuple[Decision, bool]:
        """Return (the decision for the arguments `arguments` of `Loop.decide`, whether its id had been decided before).

        A `large` request is handled in another thread."""
        while (draft := None if large else self.decision_of(arguments)) is not None:
            if not isinstance(draft, PendingEvent):
                return draft, True
            [answer] = await self.submit([draft])
            if answer.reason != AGAIN:
                return self.loop.decider.decision_of(draft, answer), answer.status == "duplicate"
        return await self.decide_in_thread(partial(self.loop.decide, **arguments), arguments, large)

    async def decide_in_thread(
        self, work: Callable[[], Decision], arguments: dict[str, Any], large: bool
    ) -> tuple[Decision, bool]:
        """Return (the decision that `work` makes of these `arguments` in another thread, whether the log had its id
        before); of a `large` request the caller has the turn."""
        id = arguments.get("id")

        def work_once() -> tuple[Decision, bool]:
            there = id is not None and self.projection.find_decision(check_id("id", id)) is not None
            return work(), there

        async with self.turn(not large and self.is_costly(arguments)):
            return await self.run(work_once)

    def is_costly(self, arguments: dict[str, Any]) -> bool:
        """Return whether a request with these `arguments` of `Loop.decide` takes more than a millisecond or two."""
        among = arguments.get("candidates")
        size = len(among) if isinstance(among, Sized) else len(self.projection.catalogue.current)
        if isinstance(among, np.ndarray):
            return size > LARGE or among.nbytes > NUMBERS
        rows = among if type(among) is list and among and type(among[0]) is dict else []
        return size > LARGE or len(rows) > FEW or cost([rows, arguments.get("context")]) > COSTLY

    def turn(self, costly: bool) -> AbstractAsyncContextManager[object]:
        """Return the tenant's turn for one piece of work that keeps a processor busy, if this is so `costly`; threads
        that do so take the interpreter's lock from all others in turn."""
        return self._turns.of(self._tenant, "large") if costly else nullcontext()

    @property
    def _slow(self) -> bool:
        """whether a decision or an update of the model calls a solver, takes milliseconds, and is therefore done in
        another thread"""
        return must_interpret(self.loop.learner)

    def decision_of(self, arguments: dict[str, Any]) -> PendingEvent | Decision | None:
        """Return the event of a new decision, which the caller has to submit, or an earlier decision with the same id.

        `arguments` are the arguments of `Loop.decide`. Return None for a request that takes long, or that names an item
        which only another process may know; `decide_once` handles these in another thread."""
        try:
            with self._at_once():
                if self._slow or self.is_costly(arguments):
                    return None
                request = self.loop.decider.read(**arguments)
                # The request goes with this call: its arrays are the next one's while they are in the cache.
                return self.loop.decider.propose(request) if isinstance(request, DecisionRequest) else request
        except (LookupError, Busy):
            return None

    def _at_once(self) -> AbstractContextManager[None]:
        """Return the context in which the event loop's thread reads the log: Busy is raised where a database takes
        long."""
        return hurried() if self._far else _AT_ONCE

    async def feedback(self, event: dict[str, Any], large: bool = False) -> Answer:
        """Learn from one `event`, as `Loop.feedback` does; a `large` one is handled in another thread."""
        costly = not large and cost(event) > COSTLY
        draft = None if large or costly else self.feedback_of(event)
        if draft is None:
            async with self.turn(costly):
                return await self.run(self.loop.feedback, event)
        if isinstance(draft, Answer):
            return draft
        [answer] = await self.submit([draft])
        return answer

    def feedback_of(self, event: dict[str, Any]) -> PendingEvent | Answer | None:
        """Return the event of the feedback in the JSON object `event`, which the caller has to submit, or the answer
        that rejects it.

        Return None if its decision is not known here. Another process may have made it, so `feedback` looks again in a
        thread."""
        form = event.copy()
        decision, id, at = form.pop("decision", None), form.pop("id", None), form.pop("time", None)
        try:
            with self._at_once():
                draft = self.loop.feedback_reader.read(decision, id, at, form)
        except Busy:
            return None
        return None if isinstance(draft, UnknownDecision) else draft

    async def feedback_many(self, events: list[Any], large: bool = False) -> list[Answer]:
        """Learn from many `events`, as `Loop.feedback_many` does, and return their answers in order; many, or `large`
        ones, are handled in another thread."""
        if large or (costly := len(events) > FEW or cost(events) > COSTLY):
            async with self.turn(not large and costly):
                return await self.run(self.loop.feedback_many, events)
        try:
            with self._at_once():
                drafts = self.loop.feedback_reader.read_many(events)
        except Busy:
            return await self.run(self.loop.feedback_many, events)
        if any(isinstance(draft, UnknownDecision) for draft in drafts):
            return await self.run(self.loop.feedback_many, events)
        good = [draft for draft in drafts if isinstance(draft, PendingEvent)]
        answers = iter(await self.submit(good) if good else ())
        return [draft if isinstance(draft, Answer) else next(answers) for draft in drafts]

    async def run(self, work: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Call `work`, which may write to the loop, with these arguments in another thread and return its result. Raise
        Problem (429) if too much of the tenant's work waits for a thread."""
        answer = await self.read(work, *args, **kwargs)
        self._tell_watchers()
        self._look_after()
        return answer

    async def read(self, work: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Call `work`, which reads the loop and writes nothing, with these arguments in another thread and return its
        result.

        Raise Moved if the log's file was removed or replaced since it was opened, and Problem (429) if too much of the
        tenant's work waits for a thread."""
        async with self._own_turn:
            return await self._in_turn("long", self._run_here, partial(work, *args, **kwargs))

    async def analyse(self, question: Callable[Concatenate[Loop, P], T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Return what `question`, which reads much of the log, says of the loop with these arguments.

        One piece of such work is done at a time for each tenant. A method of `Loop` is called in another process if the
        log is long, as in a thread it would hold the interpreter's lock. Raise what `read` raises."""
        if question not in QUESTIONS or self.projection.head <= SHORT:
            return await self._in_turn("analyses", self._run_here, partial(question, self.loop, *args, **kwargs))
        async with self._turns.of(self._tenant, "analyses"):
            try:
                self._check_same()
                result: T = await self._analysts.ask(self.loop.path, question.__name__, args, kwargs)
            except Problem:
                self._check_same()
                raise
            return result

    async def _in_turn(self, what: str, work: Callable[..., T], *args: Any) -> T:
        return await self._turns.run(self._pool, self._tenant, what, work, *args)

    def _begin(self, then: Callable[[asyncio.Task[T]], None], what: str, work: Callable[..., T], *args: Any) -> None:
        """Begin to call `work` with these arguments in another thread, and call `then` when it is done."""
        under_way = self._aio.create_task(self._in_turn(what, work, *args))
        self._tasks.add(under_way)

        def finish(done: asyncio.Task[T]) -> None:
            self._tasks.discard(done)
            if not done.cancelled():  # or else the server has ended
                then(done)

        under_way.add_done_callback(finish)

    def _check_same(self) -> None:
        if self.has_moved():
            at = self.projection.log.path
            raise Moved(f"{at}: the file was removed or replaced while it was open: the loop is opened again")

    def _run_here(self, work: Callable[[], T]) -> T:
        self._check_same()
        try:
            return work()
        except Exception:
            self.has_moved()  # it may have gone meanwhile, whatever that was told as
            raise

    def has_moved(self) -> bool:
        """Return whether the log's file was removed or replaced since it was opened."""
        self.moved = self.moved or not self.projection.log.store.is_there()
        return self.moved

    # ------------------------------------------------------------------------ committing

    async def submit(self, drafts: list[PendingEvent]) -> Sequence[Answer]:
        """Commit the events `drafts` together with those of other requests; return their answers, in order.

        It returns once they are on the disk and the model has learned from them."""
        answers: asyncio.Future[Sequence[Answer]] = self._aio.create_future()
        self._waiting.append((drafts, answers))
        if not self._scheduled and not self._in_thread:
            self._scheduled = True
            self._aio.call_soon(self._flush)  # after all that has come by now
        return await answers

    def _flush(self) -> None:
        """Commit the events that wait."""
        if self._looked_at < len(self._waiting) < GROUP and not self._in_thread:
            self._looked_at, self._scheduled = len(self._waiting), True
            self._aio.call_soon(self._flush)
            return
        self._scheduled, self._looked_at = False, 0
        if not self._waiting or self._in_thread:
            return
        group, self._waiting = self._waiting, []
        drafts = [draft for events, _ in group for draft in events]
        try:
            few = len(drafts) <= GROUP and not self._slow and not self._far
            answers = self.projection.attempt(drafts, self._durable) if few else None
        except Exception as error:
            self._fail(group, error)
        else:
            if answers is None:  # somebody else is writing, or there are many: in a thread
                self._in_thread = True
                self._begin(partial(self._finish_commit, group), "commits", self.projection.submit, drafts)
                return
            self.groups += 1
            self._answer_or_sync(group, answers)
        self._look_after()

    def _answer_or_sync(self, group: Group, answers: Sequence[Answer]) -> None:
        """Send their `answers` to the requests of a `group` of events that this thread committed."""
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
        """Wait in a thread until all commits are on the disk, once for all who wait for it, and answer them."""
        if self._unsynced and not self._syncing:
            self._syncing, waiting = True, self._unsynced
            self._unsynced = []
            self._begin(partial(self._answer_synced, waiting), "commits", self.projection.log.sync)

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
        if self.projection.due or self.projection.log.store.unmoved > WRITE_AHEAD:
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
        """Move the contents of the write-ahead file into the log and, if one is due, write a snapshot."""
        if not self._keeping:
            self._keeping = True
            self._begin(self._finish_keeping, "keeping", self._move_and_snapshot)

    def _move_and_snapshot(self) -> None:
        self.projection.log.store.move_write_ahead()
        if self.projection.due:
            self.projection.keep()  # commits wait for that, in a thread of theirs

    def _finish_keeping(self, under_way: asyncio.Future[Any]) -> None:
        self._keeping = False
        if (error := under_way.exception()) is None and not self._in_thread:
            try:
                self.projection.log.store.begin_write_ahead_anew()
            except (OSError, ValueError) as failed:
                error = failed
        if error is not None:
            log.warning("%s: the write-ahead file could not be moved now: %s", self.path, error)

    @property
    def path(self) -> str:
        """where the loop is, for messages"""
        return str(self.loop.path)


def cost(content: object) -> int:
    """Return about what it costs to make features of a value of JSON, or to read it as feedback, in characters of
    text."""
    size, left = 0, [content]
    while left:
        value = left.pop()
        size += VALUE
        if type(value) is str:
            size += len(value)
        elif type(value) is list:
            left += value
        elif type(value) is dict:
            left += value.values()
    return size


@cache
def use_one_core() -> None:
    """Make matrix products (BLAS) use a single core from now on, in the whole process.

    A BLAS thread that waits for a core in use by another request keeps its own core busy, which slows down the whole
    machine: choosing a question among 1,000 items took 0.37 s instead of 0.006 s."""
    import scipy.linalg  # noqa: F401  brings a BLAS of its own, which is to be there by now
    from threadpoolctl import threadpool_limits

    threadpool_limits(1, user_api="blas")
