"""Group commit: events that many callers submit at the same time are written to the disk in one transaction."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

T = TypeVar("T")
R = TypeVar("R")


class _Waiting(Generic[T, R]):
    """The items that one caller submitted, with what becomes of them."""

    __slots__ = ("after", "answers", "done", "error", "gone", "holds", "items", "turn", "writes")

    def __init__(self, items: list[T]) -> None:
        self.items = items
        self.answers: Sequence[R] = ()
        self.done = False
        self.error: BaseException | None = None
        self.writes = False
        """whether this caller is to write the next group"""
        self.holds = False
        """whether this caller, once it is done, wakes the next one"""
        self.gone = False
        """whether this caller has stopped waiting"""
        self.after = deque[_Waiting[T, R]]()
        """the callers in the same group that are still to be woken, in turn"""
        self.turn = threading.Lock()
        self.turn.acquire()


class GroupCommit(Generic[T, R]):
    """A queue of many callers with one writer: items that come during a write wait, and are written together by the
    next one.

    `commit(items)` writes a group and returns one answer for each item, in order, once they are on the disk; what it
    raises is raised in every caller of the group. `most` is the greatest number of callers in one group. There is no
    extra thread: the first caller of a group writes for all. Callers that were answered wake one another in turn, as
    all at once they would compete for the interpreter's lock.
    """

    def __init__(self, commit: Callable[[list[T]], Sequence[R]], most: int = 1000) -> None:
        self._commit = commit
        self._most = most
        self._mutex = threading.Lock()
        self._queue: list[_Waiting[T, R]] = []
        self._busy = False

    def submit(self, items: list[T]) -> Sequence[R]:
        """Block until `items` are committed, and return the answers to them, one for each, in order.

        Raise what `commit` raised, and InterruptedError if the thread that wrote for this one was interrupted."""
        mine = _Waiting[T, R](items)
        try:
            with self._mutex:
                self._queue.append(mine)
                mine.writes = mine.holds = not self._busy
                self._busy = True
            if not mine.writes:
                mine.turn.acquire()  # until answered, or until it is this caller's turn to write
            if mine.writes:
                self._write_group(mine)
        finally:
            self._leave(mine)  # also of a caller that was interrupted, wherever that was
        if mine.error is not None:
            raise mine.error
        return mine.answers

    def _write_group(self, mine: _Waiting[T, R]) -> None:
        """Commit the items of this caller and of those who wait, this caller's first, and give each caller its
        answers."""
        with self._mutex:
            mine.after = deque(self._queue[1 : self._most])
            self._queue = self._queue[self._most :]
        group = [mine, *mine.after]
        try:
            answers = self._commit([item for waiting in group for item in waiting.items])
        except Exception as error:
            for waiting in group:
                waiting.error = error
        else:
            done = 0
            for waiting in group:
                waiting.answers = answers[done : done + len(waiting.items)]
                waiting.done = True
                done += len(waiting.items)

    def _leave(self, mine: _Waiting[T, R]) -> None:
        """Wake the caller that waits for `mine`: the next one of its group or, after the last of the group, the next
        writer."""
        with self._mutex:
            if mine in self._queue:
                self._queue.remove(mine)
            for waiting in mine.after:
                if not waiting.done and waiting.error is None:  # an interruption is its own thread's affair
                    waiting.error = InterruptedError("the commit was interrupted: send the event again, with its id")
            mine.gone = True
            while mine.after and mine.after[0].gone:  # interrupted while it waited
                mine.after.popleft()
            if mine.holds and mine.after:
                following = mine.after.popleft()
                following.holds, following.after = True, mine.after
                following.turn.release()
            elif mine.holds:
                self._busy = bool(self._queue)
                if self._queue:
                    self._queue[0].writes = self._queue[0].holds = True
                    self._queue[0].turn.release()
            mine.holds = False
