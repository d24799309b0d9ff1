"""The ranking of a study, as a page shows it: utilities with their uncertainty, ties, whether to stop.

With a thousand items it takes seconds to compute. So it is cached until the next answer. Where it takes long, the page
shows an older ranking for some time, and says from how many answers it is.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, Sequence
from functools import partial
from shlex import quote
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

from heedful.loop import Loop
from heedful.loop.interactions.comparison.standing import Standing
from heedful.server.loop_worker import LoopWorker
from heedful.server.pages.formatting import count, join_names
from heedful.server.pages.question_flow import Thing, things
from heedful.studies.answers import OWN, habits, segment_of
from heedful.studies.study import study_of

MOST = 200
"""Places of the ranking that are shown."""
MANY = 100
"""With more items than this the page says that the ranking takes a while."""
REST = 4.0
"""A ranking is shown for this many times as long as it took to compute."""
PATIENCE = 2.0
"""Seconds that a page waits for a new ranking."""
PERCENT = 94
"""Percent of the width of a drawing that utilities take; the rest is for the width of a mark."""


NOT_OWN = "-you"
"""Stands for everybody but the person at this machine: no segment has this name."""


class Row(NamedTuple):
    """One place of the ranking."""

    place: int
    thing: Thing
    best: str
    """how likely it is the best"""
    places: str
    """where it stands with 90 % probability"""
    low: float
    """its utility less, and more, one standard deviation, in percent of the drawing"""
    mid: float
    high: float
    asked: int
    level: bool
    """whether it cannot be told from the next"""


class Summary(NamedTuple):
    """How things stand."""

    answers: int
    people: int
    goal: str
    stop: bool
    verdict: str
    left: str
    """about how many questions are left"""
    level: tuple[str, ...]
    """who cannot be told apart, in sentences"""
    rows: tuple[Row, ...]
    ranking: tuple[Standing, ...]
    """all of it, in numbers"""
    more: int
    """places that are not shown"""
    minds: tuple[str, ...]
    """what is strange about how somebody answered, in sentences"""


class _Cached(NamedTuple):
    version: int
    at: float
    took: float
    summary: Summary


_kept: WeakKeyDictionary[Loop, dict[str, _Cached]] = WeakKeyDictionary()  # by segment: its people come and go
_working: WeakKeyDictionary[Loop, dict[str, asyncio.Task[None]]] = WeakKeyDictionary()


async def summary(worker: LoopWorker, people: Sequence[str] | None, segment: str = "") -> tuple[Summary | None, bool]:
    """How things stand for these people together, who are a `segment`; None, which is "": for all. None where nobody
    answered anything, or that is still being found out. And whether that is how they stand now."""
    loop = worker.loop
    if not await worker.read(partial(_anybody, loop, people)):
        return None, True
    version = loop.version
    known, working = _kept.setdefault(loop, {}), _working.setdefault(loop, {})
    kept = known.get(segment)
    if kept is None or (kept.version != version and time.monotonic() - kept.at > REST * kept.took):
        # Two who look at once do not have it found out twice, and who goes away does not end it.
        if segment not in working:
            working[segment] = asyncio.create_task(_compute(worker, people, segment, version))
            working[segment].add_done_callback(lambda _: working.pop(segment, None))
        task = working[segment]
        await asyncio.wait({task}, timeout=PATIENCE)
        if task.done():
            task.result()
        kept = known.get(segment)
    return (None, False) if kept is None else (kept.summary, kept.version == version)


async def _compute(worker: LoopWorker, people: Sequence[str] | None, segment: str, version: int) -> None:
    with worker:
        began = time.monotonic()
        found = await worker.read(partial(summarise, worker.loop, people))
        now = time.monotonic()
        _kept[worker.loop][segment] = _Cached(version, now, now - began, found)


def _anybody(loop: Loop, people: Sequence[str] | None) -> bool:
    loop.projection.look()
    own = loop.projection.reading(None)[0].people.copy()
    return any(one.lessons for name, one in own.items() if people is None or name in people)


def people_by_segment(loop: Loop) -> dict[str, list[str]]:
    """The people who answered anything, by segment."""
    loop.projection.look()  # somebody else may have written
    found: dict[str, list[str]] = {}
    for name in loop.projection.reading(None)[0].people.copy():
        found.setdefault(segment_of(name), []).append(name)
    return dict(sorted(found.items()))


def segments(loop: Loop) -> dict[str, list[str]]:
    """The people who answered, by segment; also everybody but the person at this machine, if others answered."""
    found = people_by_segment(loop)
    answered = [name for people in found.values() for name in people]
    others = [name for name in answered if name != OWN]  # somebody of a segment of that name is another
    return {NOT_OWN: others, **found} if OWN in answered and others else found


def summarise(loop: Loop, people: Sequence[str] | None) -> Summary:
    """How things stand, found out now."""
    told: Any = loop.standing() if people is None else loop.standing(people=people)
    ranking = told.ranking[:MOST]
    ends = [each.utility + sign * each.sd for each in ranking for sign in (-1.0, 1.0)]
    low, span = min(ends), max(max(ends) - min(ends), 1e-9)
    seen = {each.name: each for each in things(loop, study_of(loop.path), [each.item for each in ranking])}

    def at(utility: float) -> float:
        return float(round(PERCENT * (utility - low) / span, 2))

    rows = tuple([
        Row(
            place,
            seen[each.item],
            percent(each.best),
            f"{each.low}" if each.low == each.high else f"{each.low}–{each.high}",
            at(each.utility - each.sd),
            at(each.utility),
            at(each.utility + each.sd),
            each.asked,
            each.level,
        )
        for place, each in enumerate(ranking, 1)
        if each.item in seen
    ])  # fmt: skip
    return Summary(
        told.answers, told.people, told.goal, told.stop, _verdict(told), "" if told.stop else told.left.told,
        tuple(_level(told.alike)), rows, told.ranking, len(told.ranking) - len(ranking), tuple(_minds(loop, people)),
    )  # fmt: skip


def _verdict(told: Any) -> str:
    sure = percent(told.sure)
    if told.goal == "best":
        what = f"{told.favourite} is the best with {sure} probability"
        return (
            f"Enough: {what}."
            if told.stop
            else f"{told.favourite} is the likeliest best so far, with {sure} probability."
        )
    what = f"{sure} of all pairs are expected to be in the right order"
    return f"Enough: {what}." if told.stop else f"{what[0].upper()}{what[1:]} so far."


def _level(groups: Sequence[Sequence[str]], most: int = 3) -> list[str]:
    """Groups of neighbours that cannot be told apart, in sentences."""
    told = [f"{join_names(group)} cannot be told apart." for group in groups[:most]]
    return [*told, f"So it is in {count(len(groups) - most, 'more place')}."] if len(groups) > most else told


def _minds(loop: Loop, people: Sequence[str] | None) -> Iterator[str]:
    name = quote(loop.path.name.removesuffix(".heedful"))
    for told, whose in habits(loop, None if people is None else set(people)):
        out = f" heedful forget {name} {quote(whose[0])} takes their answers out." if len(whose) == 1 else ""
        yield told + out


def percent(chance: float) -> str:
    """A probability; what is possible is never 0 %, and what is not certain never 100 %."""
    told = 100.0 * chance
    return "under 1 %" if told < 1.0 else "over 99 %" if told > 99.0 else f"{told:.0f} %"
