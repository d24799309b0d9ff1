"""Types for comparisons of items that people made (choices, best-of-k answers, rankings), by name or by number."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, count
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np

from heedful.core.validation import describe
from heedful.data.cells import Bools, Ints
from heedful.data.files import cut_list

Tiers = tuple[tuple[int, ...], ...]
Name = TypeVar("Name", int, str)

LOST, TIED, WON, UNSURE = range(4)
"""Outcomes of a comparison of two items, for the first of them."""


class Comparison(NamedTuple, Generic[Name]):
    """One answer that compares items, and how many `times` it was given.

    `tiers` are groups of items, best first:
    - ((3,), (1,)): the choice of 3 over 1;
    - ((3,), (1, 2)): 3 is the best of three, and nothing is said about 1 and 2;
    - ((3,), (1,), (2,)): a ranking of three;
    - ((3, 1),): a single tier says that all its items are equally good.

    Items and people are names (`Comparison[str]`) or their numbers in a table (`Comparison[int]`)."""

    person: Name
    """who answered; the name is "" if unknown"""
    tiers: tuple[tuple[Name, ...], ...]
    times: int = 1
    first: Name | None = None
    """which of two items was shown first, or on the left; None if unknown"""
    judged: bool = True
    """False for an answer "cannot judge"; it has one tier, the items shown"""


class ComparisonTable(NamedTuple):
    """Comparisons by number, with the names of all `items` and `people`; equal comparisons are stored once, with their
    count as `times`.

    If no person is named, there is one person with the name "".
    """

    items: tuple[str, ...]
    people: tuple[str, ...]
    comparisons: tuple[Comparison[int], ...]

    @property
    def answers(self) -> int:
        """Number of answers, including those that are "cannot judge"."""
        return sum(answer.times for answer in self.comparisons)


def comparison_of(person: str, shown: tuple[str, ...], answer: str) -> Comparison[str]:
    """Return the answer of `person` in a study as a comparison.

    `shown`: names of the two or more distinct items, as they stood; `answer`: "equal", "both_bad" (a tie, too),
    "cannot_judge", the name of the best item or, for two, "first" or "second". Raise ValueError for any other answer.
    """
    first = shown[0] if len(shown) == 2 else None
    if answer in ("equal", "both_bad", "cannot_judge"):
        return Comparison(person, (shown,), 1, first, answer != "cannot_judge")
    best = dict(zip(("first", "second"), shown)).get(answer, answer) if len(shown) == 2 else answer
    if best not in shown:
        raise ValueError(
            f"answer: expected first, second, equal, both_bad, cannot_judge or an item, got {describe(answer)}"
        )
    return Comparison(person, ((best,), tuple(name for name in shown if name != best)), 1, first)


def tabulate(answered: Iterable[Comparison[str]], items: Iterable[str] = ()) -> ComparisonTable:
    """Return the comparisons `answered`, which are by name, as a table, the same in whichever order they come.

    Items are numbered: first those in `items`, then others by their names; people are numbered by their names.
    """
    answered = list(answered)
    named = {name for answer in answered for tier in answer.tiers for name in tier}
    numbers: dict[str, int] = {name: i for i, name in enumerate(dict.fromkeys(chain(items, sorted(named))))}
    people: dict[str, int] = {name: i for i, name in enumerate(sorted({answer.person for answer in answered}))}
    times: Counter[tuple[int, Tiers, int | None, bool]] = Counter()
    for person, tiers, often, first, judged in answered:
        numbered = tuple(tuple(numbers[name] for name in tier) for tier in tiers)
        times[people[person], numbered, None if first is None else numbers[first], judged] += often
    comparisons = (
        Comparison(person, numbered, often, first, judged) for (person, numbered, first, judged), often in times.items()
    )
    return ComparisonTable(tuple(numbers), tuple(people), tuple(sorted(comparisons, key=_place)))


def _place(answer: Comparison[int]) -> tuple[int, Tiers, int, bool]:
    return answer.person, answer.tiers, -1 if answer.first is None else answer.first, answer.judged


class PairColumns(NamedTuple):
    """p comparisons of two items each as arrays (p,), one per property: the form in which large files are read."""

    person: Ints
    """the number of the person"""
    first: Ints
    """the number of the item that was shown first, or of the winner if nobody knows which was"""
    second: Ints
    outcome: Ints
    """WON if the first item is better, LOST if the second one is, TIED, or UNSURE, which says nothing"""
    times: Ints
    bad: Bools
    """whether it is a tie because both items were called bad"""
    items: Sequence[str]
    """the names of items by number"""
    people: Sequence[str]
    sided: bool
    """whether `first` was shown first"""


def table_of_columns(pairs: PairColumns) -> ComparisonTable:
    """Return the comparisons `pairs` as the table that `tabulate` would make of them, in which items and people are
    numbered by name. Comparisons with `times` 0 are left out."""
    counted: Any = (column[pairs.times > 0] for column in pairs[:5])
    person, first, second, outcome, times = counted
    both, pair = np.unique(first * len(pairs.items) + second, return_inverse=True)
    key = (person * max(both.size, 1) + pair) * 4 + outcome
    _, row, which = np.unique(key, return_index=True, return_inverse=True)
    often = np.zeros(row.size, np.int64)
    np.add.at(often, which, times)
    shown, numbers = _numbered_by_name(np.column_stack([first[row], second[row]]), pairs.items)
    people, numbers_of_people = _numbered_by_name(person[row], pairs.people)
    tiers: dict[tuple[int, int, int], Tiers] = {}  # many people give the same answer: share its tuples
    comparisons = []
    rows = zip(numbers_of_people.tolist(), *numbers.T.tolist(), outcome[row].tolist(), often.tolist())
    for u, a, b, found, n in rows:
        ordered: dict[int, Tiers] = {WON: ((a,), (b,)), LOST: ((b,), (a,))}
        tiers_of_pair = tiers.setdefault((a, b, found), ordered.get(found, ((a, b),)))
        comparisons.append(Comparison(u, tiers_of_pair, n, a if pairs.sided else None, found != UNSURE))
    return ComparisonTable(shown, people, tuple(sorted(comparisons, key=_place)))


def _numbered_by_name(values: Ints, names: Sequence[str]) -> tuple[tuple[str, ...], Ints]:
    """Return those of `names` that occur in `values`, sorted, and the number of each value among them."""
    distinct, which = np.unique(values, return_inverse=True)
    ordered, place = sort_names([names[k] for k in distinct.tolist()])
    return ordered, place[which].reshape(values.shape)


def sort_names(names: Sequence[str]) -> tuple[tuple[str, ...], Ints]:
    """Return the n `names` sorted, and the place of each among them (n,)."""
    order = sorted(range(len(names)), key=names.__getitem__)
    place = np.empty(len(names), np.int64)
    place[order] = np.arange(len(names))
    return tuple(names[k] for k in order), place


def by_name(choices: ComparisonTable) -> Iterator[Comparison[str]]:
    """Yield the comparisons of a table with names in place of numbers."""
    items, people, comparisons = choices
    for person, tiers, times, first, judged in comparisons:
        named = tuple(tuple(items[i] for i in tier) for tier in tiers)
        yield Comparison(people[person], named, times, None if first is None else items[first], judged)


def pool_people(choices: ComparisonTable) -> ComparisonTable:
    """Return the table with all answers attributed to one person without a name."""
    return tabulate((answer._replace(person="") for answer in by_name(choices)), choices.items)


def split_nameless(choices: ComparisonTable, most: int = 100_000) -> ComparisonTable:
    """Return the table `choices` with each answer of the person without a name attributed to a new person, named "1",
    "2", ....

    An answer given several times counts as many. Names that are taken are skipped. Raise ValueError if there are more
    than `most` such answers."""
    names = set(choices.people)
    nameless = sum(answer.times for answer in choices.comparisons if not choices.people[answer.person])
    if nameless > most:
        raise ValueError(f"answers: expected at most {most:,} to take each for another person's, got {nameless:,}")
    free = (name for name in map(str, count(1)) if name not in names)

    def renamed() -> Iterator[Comparison[str]]:
        for answer in by_name(choices):
            if answer.person:
                yield answer
            else:
                yield from (answer._replace(person=next(free), times=1) for _ in range(answer.times))

    return tabulate(renamed(), choices.items)


def without_people(choices: ComparisonTable, people: Sequence[str]) -> ComparisonTable:
    """Return the table `choices` without the answers of `people`, which are names.

    Raise ValueError if one of them is not in the table, or if no person is left."""
    for person in people:
        if person not in choices.people:
            raise ValueError(f"without: expected one of {join_names(choices.people)}, got {person!r}")
    answers = [answer for answer in by_name(choices) if answer.person not in people]
    if not answers:
        raise ValueError("without: expected one whose answers are left, got none")
    return tabulate(answers, choices.items)


def with_items(choices: ComparisonTable, names: Iterable[str]) -> ComparisonTable:
    """Return the table with its items numbered in the order of `names`, which are distinct and may include further
    items.

    Raise ValueError if an item of the table is not among them.
    """
    names = tuple(names)
    offered = set(names)
    missing = [item for item in choices.items if item not in offered]
    if missing:
        raise ValueError(f"items: expected all that were answered about, got none called {join_names(missing)}")
    return tabulate(by_name(choices), names)


def join_names(names: Iterable[str], most: int = 5) -> str:
    """Return names as a text for a message: the first `most` of them, quoted, and how many more there are."""
    return cut_list([repr(name) for name in names], most)
