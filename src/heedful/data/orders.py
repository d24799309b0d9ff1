"""What people answered when they chose among things, by name: choices, best ones of several, rankings."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import count
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Tiers = tuple[tuple[int, ...], ...]


class Given(NamedTuple):
    """An answer, and how often it was given: tiers of items (their numbers), the best tier first.

    ((3,), (1,)) is a choice, 3 over 1; ((3,), (1, 2)) is the best of three; ((3,), (1,), (2,)) a ranking. One tier says
    that all of it are equally good: ((3, 1),) of two, ((3, 1, 2),) of three. In an answer of more than one tier nothing
    is said among the items of a tier.
    """

    person: int
    tiers: Tiers
    times: int = 1
    first: int = -1
    """which of two items stood first, or on the left; -1 where that is not known"""
    judged: bool = True
    """False where the answer is that one cannot judge; then the tiers are one, those that were shown"""


class Choices(NamedTuple):
    """Names of items and people, by their numbers, and what the people answered; equal answers are one `Given`.

    Where nobody is named, there is one person with the name "".
    """

    items: tuple[str, ...]
    people: tuple[str, ...]
    given: tuple[Given, ...]

    @property
    def answers(self) -> int:
        """How many were given, those who could not judge included."""
        return sum(each.times for each in self.given)


class Answered(NamedTuple):
    """An answer by names; `first` and `judged` as of `Given`, "" where it is not known which stood first."""

    person: str
    tiers: tuple[tuple[str, ...], ...]
    times: int = 1
    first: str = ""
    judged: bool = True


def gathered(answered: Iterable[Answered], items: Iterable[str] = ()) -> Choices:
    """The answers with names as numbers: `items` first, others as they come; people as they come."""
    numbers: dict[str, int] = {name: i for i, name in enumerate(dict.fromkeys(items))}
    people: dict[str, int] = {}
    times: Counter[tuple[int, Tiers, int, bool]] = Counter()
    for person, tiers, often, first, judged in answered:
        who = people.setdefault(person, len(people))
        told = tuple(tuple(numbers.setdefault(name, len(numbers)) for name in tier) for tier in tiers)
        times[who, told, numbers[first] if first else -1, judged] += often
    given = tuple(Given(who, told, often, first, judged) for (who, told, first, judged), often in times.items())
    return Choices(tuple(numbers), tuple(people), given)


class Pairs(NamedTuple):
    """Answers about two items as columns (p,), by the numbers of names."""

    person: Ints
    better: Ints
    worse: Ints
    """of two that are equally good, or could not be judged, the one that stood second"""
    tied: Bools
    judged: Bools
    side: Ints
    """1 where the better one stood first, 2 where the worse did, 0 where that is not known"""
    times: Ints


def choices_of_pairs(pairs: Pairs, items: Sequence[str], people: Sequence[str]) -> Choices:
    """The same as `gathered` makes of answers about two items, from columns; those given no times are left out."""
    kept: Any = (column[pairs.times > 0] for column in pairs)
    person, better, worse, tied, judged, side, times = Pairs(*kept)
    both, pair = np.unique(better * len(items) + worse, return_inverse=True)
    key = (((person * max(both.size, 1) + pair) * 3 + side) * 2 + tied) * 2 + judged
    _, first, which = np.unique(key, return_index=True, return_inverse=True)
    often = np.zeros(first.size, np.int64)
    np.add.at(often, which, times)
    rising = first.argsort()
    at = first[rising]
    shown, numbers = _as_they_come(np.column_stack([better[at], worse[at]]))
    whose, who = _as_they_come(person[at])
    tiers: dict[tuple[int, int, bool], Tiers] = {}  # of many people's answers many are the same
    given = []
    sides = zip(*numbers.T.tolist(), tied[at].tolist(), side[at].tolist())
    for u, (a, b, level, stood), n, sure in zip(who.tolist(), sides, often[rising].tolist(), judged[at].tolist()):
        told = tiers.get((a, b, level))
        if told is None:
            told = tiers[a, b, level] = ((a, b),) if level else ((a,), (b,))
        given.append(Given(u, told, n, (-1, a, b)[stood], sure))
    return Choices(tuple(items[i] for i in shown), tuple(people[i] for i in whose), tuple(given))


def _as_they_come(values: Ints) -> tuple[list[int], Ints]:
    """The distinct values as they first come, and the values as places among them."""
    found, first, which = np.unique(values, return_index=True, return_inverse=True)
    order = first.argsort()
    place = np.empty_like(order)
    place[order] = np.arange(order.size)
    return found[order].tolist(), place[which].reshape(values.shape)


def by_name(choices: Choices) -> Iterable[Answered]:
    """Each answer by names."""
    items, people, given = choices
    for who, tiers, times, first, judged in given:
        named = tuple(tuple(items[i] for i in tier) for tier in tiers)
        yield Answered(people[who], named, times, items[first] if first >= 0 else "", judged)


def pooled(choices: Choices) -> Choices:
    """The answers as if one person had given them all."""
    times: Counter[tuple[Tiers, int, bool]] = Counter()
    for _, tiers, often, first, judged in choices.given:
        times[tiers, first, judged] += often
    given = tuple(Given(0, tiers, often, first, judged) for (tiers, first, judged), often in times.items())
    return Choices(choices.items, ("",), given)


def apart(choices: Choices, most: int = 100_000) -> Choices:
    """The answers of nobody by name as if each were another person's, called "1", "2", ... as nobody else is.

    ValueError where they are more than `most`.
    """
    taken = set(choices.people)
    nameless = sum(each.times for each in choices.given if not choices.people[each.person])
    if nameless > most:
        raise ValueError(f"answers: wanted at most {most:,} to take each for another person's, got {nameless:,}")
    free = (name for name in map(str, count(1)) if name not in taken)

    def each() -> Iterator[Answered]:
        for answer in by_name(choices):
            if answer.person:
                yield answer
            else:
                yield from (answer._replace(person=next(free), times=1) for _ in range(answer.times))

    return gathered(each(), choices.items)


def without(choices: Choices, people: Sequence[str], name: str = "people") -> Choices:
    """The answers of all but those people, which were told as `name`. ValueError where one is not there, or nobody is
    left."""
    for person in people:
        if person not in choices.people:
            raise ValueError(f"{name}: wanted one of {listed(choices.people)}, got {person!r}")
    kept = [each for each in by_name(choices) if each.person not in people]
    if not kept:
        raise ValueError(f"{name}: wanted one whose answers are left, got none")
    return gathered(kept, choices.items)


def with_items(choices: Choices, names: Iterable[str]) -> Choices:
    """The answers with items in the order of these names (distinct), which may have more than were answered about.

    ValueError where an item is not among them.
    """
    names = tuple(names)
    known = set(names)
    missing = [item for item in choices.items if item not in known]
    if missing:
        raise ValueError(f"items: wanted all that were answered about, got none called {listed(missing)}")
    return gathered(by_name(choices), names)


def listed(names: Iterable[str], most: int = 5) -> str:
    """Names in a sentence: the first few, and how many more."""
    names = list(names)
    told = ", ".join(repr(name) for name in names[:most])
    return told + (f" and {len(names) - most} more" if len(names) > most else "")
