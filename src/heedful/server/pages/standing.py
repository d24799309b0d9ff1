"""The ranking of a study as pages show it: utilities with their uncertainty, ties, and whether to stop.

With a thousand items the ranking takes seconds to compute, so it is cached until the next answer. If it takes long,
pages show an older ranking for some time, and say how many answers it is made of."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from typing import NamedTuple
from weakref import WeakKeyDictionary

from heedful.loop import Loop
from heedful.results.board import Board, BoardRow
from heedful.server.loop_worker import LoopWorker
from heedful.server.pages.card_selection import compares_pairs
from heedful.server.pages.page import Visit
from heedful.server.problems import Problem
from heedful.studies.answers import OWN, habits, segment_of
from heedful.studies.study import Study, study_of
from heedful.studies.things import Thing, labels, things

MOST = 200
"""The most places of the ranking that a page shows."""
MANY = 100
"""With more items than this the page says that computing the ranking takes a while."""
REST = 4.0
"""An outdated ranking is shown for this many times the seconds that it took to compute."""
CACHED = 100
"""The most rankings of a study in the cache: of segments, and without single people."""
PATIENCE = 2.0
"""The most seconds that a page waits for a new ranking."""
PERCENT = 94
"""The share of the drawing's width, in percent, that the scale of utilities takes; the rest is for labels."""
NOT_OWN = "-you"
"""The segment (group of participants) of everybody except the owner of the study; no other segment can have this
name."""


class DrawnRow(NamedTuple):
    """One item of the ranking, with what people see of it and its bar in the drawing."""

    row: BoardRow
    """its numbers"""
    thing: Thing
    """the item as people see it, with what they saw of it in a line as its title"""
    bar: tuple[float, ...]
    """where its 90 % interval begins, its utility is and the interval ends, in percent of the drawing's width"""


class Summary(NamedTuple):
    """The ranking of the items of a study as a page shows it, with sentences on what is known."""

    board: Board
    """the whole ranking"""
    named: Board
    """the same, in which items are called what people saw of them"""
    rows: tuple[DrawnRow, ...]
    """the first items of the ranking, best first, at most `MOST`"""
    called: Mapping[str, str]
    """what people saw of each item, in a line, by its name"""
    odd: tuple[tuple[str, tuple[str, ...]], ...]
    """(a sentence on people whose answers look odd, their names)"""

    @property
    def verdict(self) -> str:
        """The result, in a sentence."""
        return "" if self.named.verdict is None else self.named.verdict.sentence(self.named.sure)


class _CachedRanking(NamedTuple):
    """A ranking in the cache."""

    version: int
    """the version of the model: the last event that the ranking knows of"""
    at: float
    """when it was computed, in seconds of the monotonic clock"""
    took: float
    """how long that took, in seconds"""
    summary: Summary
    """the ranking"""


_cache: WeakKeyDictionary[Loop, dict[str, _CachedRanking]] = WeakKeyDictionary()  # by segment: its people come and go
_tasks: WeakKeyDictionary[Loop, dict[str, asyncio.Task[None]]] = WeakKeyDictionary()


async def study_in(visit: Visit) -> Study:
    """Return the study of the loop that a page is about. Raise Problem (404) if people do not compare pairs in it."""
    if not compares_pairs(visit.loop):
        raise Problem("not-found", "in this loop people do not compare pairs")
    return await visit.worker.read(study_of, visit.loop.path)


async def summary(worker: LoopWorker, people: Sequence[str] | None, segment: str = "") -> tuple[Summary | None, bool]:
    """Return (the ranking by the answers of `people`, whether it includes all their answers so far).

    `people` are the members of `segment`, a group of participants; None and "" stand for everybody; the segment is the
    key of the cache, and names those who are left out, too. The ranking is None if nobody answered, or while the first
    one is being computed."""
    loop = worker.loop
    if not await worker.read(_is_answered, loop, people):
        return None, True
    version = loop.version
    cache, tasks = _cache.setdefault(loop, {}), _tasks.setdefault(loop, {})
    cached = cache.get(segment)
    if cached is None or (cached.version != version and time.monotonic() - cached.at > REST * cached.took):
        # Two who look at once share one computation, and it goes on if one of them leaves.
        if segment not in tasks:
            tasks[segment] = asyncio.create_task(_compute(worker, people, segment, version))
            tasks[segment].add_done_callback(lambda _: tasks.pop(segment, None))
        task = tasks[segment]
        await asyncio.wait({task}, timeout=PATIENCE)
        if task.done():
            task.result()
        cached = cache.get(segment)
    return (None, False) if cached is None else (cached.summary, cached.version == version)


async def _compute(worker: LoopWorker, people: Sequence[str] | None, segment: str, version: int) -> None:
    """Compute the ranking by the answers of `people`, and put it into the cache under `segment` and `version`."""
    with worker:
        began = time.monotonic()
        ranking = await worker.analyse(summarise, people)
        now = time.monotonic()
        if len(_cache[worker.loop]) >= CACHED:
            _cache[worker.loop].clear()
        _cache[worker.loop][segment] = _CachedRanking(version, now, now - began, ranking)


def _is_answered(loop: Loop, people: Sequence[str] | None) -> bool:
    """Return whether any of these people (None: of all) has answered."""
    loop.projection.look()
    models = loop.projection.reading(None)[0].people.copy()
    return any(one.lessons for name, one in models.items() if people is None or name in people)


def segments(loop: Loop) -> dict[str, list[str]]:
    """Return the people who answered, by segment (group of participants).

    NOT_OWN has everybody except the owner of the study, if both the owner and others answered."""
    loop.projection.look()  # another process may have written
    by_segment: dict[str, list[str]] = {}
    answered = list(loop.projection.reading(None)[0].people.copy())
    for name in answered:
        by_segment.setdefault(segment_of(name), []).append(name)
    by_segment = dict(sorted(by_segment.items()))
    others = [name for people in by_segment.values() for name in people if name != OWN]
    return {NOT_OWN: others, **by_segment} if OWN in answered and others else by_segment


def summarise(loop: Loop, people: Sequence[str] | None) -> Summary:
    """Return the ranking by the answers of `people` (None: of all), drawn and in sentences. This takes seconds with a
    thousand items."""
    board = loop.standing(people=people)
    ranking = board.ranking[:MOST]
    low = min(row.bar[0] for row in ranking)
    span = max(max(row.bar[2] for row in ranking) - low, 1e-9)
    study = study_of(loop.path)
    called = labels(loop, board.items)
    seen = things(loop, study, [row.item for row in ranking])
    shown = {thing.name: thing._replace(title=called[thing.name]) for thing in seen}

    def drawn(row: BoardRow) -> DrawnRow:
        bar = tuple([float(round(PERCENT * (value - low) / span, 2)) for value in row.bar])
        return DrawnRow(row, shown[row.item], bar)

    return Summary(
        board=board,
        named=board.called(called),
        rows=tuple([drawn(row) for row in ranking if row.item in shown]),
        called=called,
        odd=tuple([(each.message, each.people) for each in habits(loop, None if people is None else set(people))]),
    )
