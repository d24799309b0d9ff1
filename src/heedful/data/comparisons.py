"""Comparisons of items that people made: choices, best-of-k answers and rankings, by name or by number."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import count
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from heedful.data.files import cut_list, cut_repr

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Tiers = tuple[tuple[int, ...], ...]
Name = TypeVar("Name", int, str)


class Comparison(NamedTuple, Generic[Name]):
    """An answer that compares items, and how often it was given: tiers of items, the best tier first.

    Items and people are names (`Comparison[str]`) or numbers in a table (`Comparison[int]`). ((3,), (1,)) is a choice,
    3 over 1; ((3,), (1, 2)) is the best of three; ((3,), (1,), (2,)) a ranking. One tier says that all its items are
    equally good: ((3, 1),) of two, ((3, 1, 2),) of three. An answer of more than one tier says nothing about the items
    within a tier.
    """

    person: Name
    """who answered; the name is "" where nobody is named"""
    tiers: tuple[tuple[Name, ...], ...]
    times: int = 1
    first: Name | None = None
    """which of two items stood first, or on the left; None where that is not known"""
    judged: bool = True
    """False where the answer is that one cannot judge; then there is one tier, the items that were shown"""


class ComparisonTable(NamedTuple):
    """The comparisons of a data set as numbers, with the names of its items and people; equal ones are one entry.

    Where nobody is named, there is one person with the name "".
    """

    items: tuple[str, ...]
    people: tuple[str, ...]
    comparisons: tuple[Comparison[int], ...]

    @property
    def answers(self) -> int:
        """Number of answers, "cannot judge" included."""
        return sum(each.times for each in self.comparisons)


def comparison_of(person: str, shown: tuple[str, ...], answer: str) -> Comparison[str]:
    """Return the comparison that an answer of a study stands for.

    `shown`: the items as they stood, two or more, distinct; `answer`: first, second, equal, cannot_judge, or the name
    of the best. Raise ValueError if the answer is none of these.
    """
    first = shown[0] if len(shown) == 2 else None
    if answer in ("equal", "cannot_judge"):
        return Comparison(person, (shown,), 1, first, answer == "equal")
    best = dict(zip(("first", "second"), shown)).get(answer, answer) if len(shown) == 2 else answer
    if best not in shown:
        raise ValueError(f"answer: expected first, second, equal, cannot_judge or an item, got {cut_repr(answer)}")
    return Comparison(person, ((best,), tuple(name for name in shown if name != best)), 1, first)


def tabulate(answered: Iterable[Comparison[str]], items: Iterable[str] = ()) -> ComparisonTable:
    """Return the comparisons as a table. Names get numbers: first those of `items`, then others in order of
    appearance."""
    numbers: dict[str, int] = {name: i for i, name in enumerate(dict.fromkeys(items))}
    people: dict[str, int] = {}
    times: Counter[tuple[int, Tiers, int | None, bool]] = Counter()
    for person, tiers, often, first, judged in answered:
        who = people.setdefault(person, len(people))
        told = tuple(tuple(numbers.setdefault(name, len(numbers)) for name in tier) for tier in tiers)
        times[who, told, None if first is None else numbers[first], judged] += often
    given = tuple(Comparison(who, told, often, first, judged) for (who, told, first, judged), often in times.items())
    return ComparisonTable(tuple(numbers), tuple(people), given)


class ComparisonColumns(NamedTuple):
    """The comparisons of two items as columns (p,) of numbers: the form in which large files are read."""

    person: Ints
    better: Ints
    worse: Ints
    """of two that are equally good, or could not be judged, the one that stood second"""
    tied: Bools
    judged: Bools
    side: Ints
    """1 where the better one stood first, 2 where the worse did, 0 where that is not known"""
    times: Ints


def table_of_columns(pairs: ComparisonColumns, items: Sequence[str], people: Sequence[str]) -> ComparisonTable:
    """Return the table that `tabulate` would make of the same comparisons, from columns of numbers: of items and people
    by their places in `items` and `people`, which name them. Comparisons with `times` 0 are left out."""
    kept: Any = (column[pairs.times > 0] for column in pairs)
    person, better, worse, tied, judged, side, times = ComparisonColumns(*kept)
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
        given.append(Comparison(u, told, n, (None, a, b)[stood], sure))
    return ComparisonTable(tuple(items[i] for i in shown), tuple(people[i] for i in whose), tuple(given))


def _as_they_come(values: Ints) -> tuple[list[int], Ints]:
    """Return the distinct values in order of appearance, and all values as indices into them."""
    found, first, which = np.unique(values, return_index=True, return_inverse=True)
    order = first.argsort()
    place = np.empty_like(order)
    place[order] = np.arange(order.size)
    return found[order].tolist(), place[which].reshape(values.shape)


def by_name(choices: ComparisonTable) -> Iterator[Comparison[str]]:
    """Yield the comparisons of a table with names in place of numbers."""
    items, people, given = choices
    for who, tiers, times, first, judged in given:
        named = tuple(tuple(items[i] for i in tier) for tier in tiers)
        yield Comparison(people[who], named, times, None if first is None else items[first], judged)


def pool_people(choices: ComparisonTable) -> ComparisonTable:
    """Return the table with all answers given by one person without a name."""
    times: Counter[tuple[Tiers, int | None, bool]] = Counter()
    for _, tiers, often, first, judged in choices.comparisons:
        times[tiers, first, judged] += often
    given = tuple(Comparison(0, tiers, often, first, judged) for (tiers, first, judged), often in times.items())
    return ComparisonTable(choices.items, ("",), given)


def split_nameless(choices: ComparisonTable, most: int = 100_000) -> ComparisonTable:
    """Return the table with each answer of the nameless person given by a new person, named "1", "2", ....

    Raise ValueError if these are more than `most`.
    """
    taken = set(choices.people)
    nameless = sum(each.times for each in choices.comparisons if not choices.people[each.person])
    if nameless > most:
        raise ValueError(f"answers: expected at most {most:,} to take each for another person's, got {nameless:,}")
    free = (name for name in map(str, count(1)) if name not in taken)

    def each() -> Iterator[Comparison[str]]:
        for answer in by_name(choices):
            if answer.person:
                yield answer
            else:
                yield from (answer._replace(person=next(free), times=1) for _ in range(answer.times))

    return tabulate(each(), choices.items)


def without_people(choices: ComparisonTable, people: Sequence[str], name: str = "people") -> ComparisonTable:
    """Return the table without the answers of these people. Raise ValueError, under `name`, if one is not in it, or
    if nobody is left.
    """
    for person in people:
        if person not in choices.people:
            raise ValueError(f"{name}: expected one of {join_names(choices.people)}, got {person!r}")
    kept = [each for each in by_name(choices) if each.person not in people]
    if not kept:
        raise ValueError(f"{name}: expected one whose answers are left, got none")
    return tabulate(kept, choices.items)


def with_items(choices: ComparisonTable, names: Iterable[str]) -> ComparisonTable:
    """Return the table with its items in the order of `names` (distinct), which may contain more items.

    Raise ValueError if an item of the table is not among them.
    """
    names = tuple(names)
    known = set(names)
    missing = [item for item in choices.items if item not in known]
    if missing:
        raise ValueError(f"items: expected all that were answered about, got none called {join_names(missing)}")
    return tabulate(by_name(choices), names)


def join_names(names: Iterable[str], most: int = 5) -> str:
    """Return names for a message: the first `most` of them, and how many more there are."""
    return cut_list([repr(name) for name in names], most)
