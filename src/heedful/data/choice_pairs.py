"""Read comparisons of two items from whole columns at once, fast because a million rows have few distinct values."""

from collections.abc import Callable, Mapping
from typing import NamedTuple
from warnings import warn

import numpy as np

from heedful.core.wording import count
from heedful.data.cells import BAD, WORDS, name_in, times, word
from heedful.data.comparisons import Bools, ComparisonColumns, Ints
from heedful.data.files import cut_repr, is_number
from heedful.data.roles import plain_role, winning_side
from heedful.data.table import CodedColumn, Table

Check = tuple[Bools, Callable[[str, int], object]]
"""A mask of the rows (r,) that are wrong, and a function that raises the error for one: of its place, and its index."""

_SAID = {said: number for number, said in enumerate(WORDS, 1)}
_EQUAL = _SAID["equal"]
"""Codes of answers: first 1, second 2, equal 3, unsure 4; 0 is not an answer."""


class NamedPairs(NamedTuple):
    """Comparisons of two items as `columns`, with the names of `items` and `people` by the numbers that the columns
    use; `bad` (p,) is True for each of the p comparisons that is a tie because both items were called bad.
    """

    columns: ComparisonColumns
    items: list[str]
    people: list[str]
    bad: Bools


class NameColumn:
    """A column of r names, which are numbered: `numbers` (r,) has the number of each row's name, `wrong` (r,) whether
    the cell is invalid."""

    def __init__(self, coded: CodedColumn, field: str, numbers: dict[str, int], empty: str | None = None) -> None:
        """Number the names in the column `coded`, adding new ones to `numbers`, which columns may share.

        `field`: its name for messages; `empty`: the name that an empty cell stands for; None if cells may not be empty.
        """
        self.texts, self.field, self.values, self.codes = [], field, coded.values, coded.codes
        wrong = np.zeros(len(coded.values), bool)
        for k, value in enumerate(coded.values):
            try:
                value = str(value).lower() if isinstance(value, bool) and empty is not None else value
                text = empty if empty is not None and value is None else name_in("", field, value)
            except ValueError:
                wrong[k], text = True, ""
            self.texts.append(text)
        known = [numbers.setdefault(text, len(numbers)) if not bad else -1 for text, bad in zip(self.texts, wrong)]
        self.numbers: Ints = np.array(known, np.int64)[self.codes]
        self.wrong: Bools = wrong[self.codes]

    def check(self) -> Check:
        return self.wrong, lambda where, i: name_in(where, self.field, self.values[self.codes[i]])


def winners(table: Table, at: Mapping[str, list[str]]) -> NamedPairs:
    """Read comparisons from a table with columns winner and loser, and optionally person and times (how often the
    answer was given).

    `at`: names of the columns by role (winner, loser, person, times), from `find_columns`. Raise ValueError for the
    first malformed row."""
    got = _columns(table, at, "winner", "loser")
    items: dict[str, int] = {}
    winner, loser = (NameColumn(got[role], at[role][0], items) for role in ("winner", "loser"))
    often, odd_times = _times(got)
    person, people, odd_person = _people(got, at, often.size)

    refuse(table, [winner.check(), loser.check(), odd_times, odd_person])
    often[_meets_itself(table, winner, loser)] = 0
    no, yes = np.zeros(often.size, bool), np.ones(often.size, bool)
    pairs = ComparisonColumns(person, winner.numbers, loser.numbers, no, yes, np.zeros(often.size, np.int64), often)
    return NamedPairs(pairs, list(items), people, no)


def pairs(table: Table, at: Mapping[str, list[str]], words: Mapping[str, str]) -> NamedPairs:
    """Read comparisons from a table whose rows are a pair as shown and an answer.

    `at`: names of the columns by role (first, second, answer, person, times), from `find_columns`; `words`: what
    further answers mean, in addition to WORDS, written as `word` returns them. Raise ValueError for the first malformed
    row."""
    got = _columns(table, at, "first", "second", "answer")
    column = at["answer"][0]
    items: dict[str, int] = {}
    first, second = (NameColumn(got[role], at[role][0], items) for role in ("first", "second"))
    names = list(items)
    answer = NameColumn(got["answer"], column, items, empty="")

    refuse(table, [first.check(), second.check(), answer.check()])
    alone = _meets_itself(table, first, second)
    numbered = any(map(is_number, words))
    known = {word(at[side][0]): side for side in ("first", "second")}  # a column's own name is an answer
    known |= {word(said): meaning for meaning, several in WORDS.items() for said in several}
    if side := winning_side(column):
        known |= {"true": side, "false": "second" if side == "first" else "first"}
    means = {said: meaning for said, meaning in known.items() if not (numbered and is_number(said))} | dict(words)
    spoken = [word(text) for text in answer.texts]
    said = np.array([_SAID.get(means.get(each, ""), 0) if each else _SAID["unsure"] for each in spoken], np.int64)
    told = np.array([each in words for each in spoken])[answer.codes]
    named = np.where(answer.numbers == first.numbers, 1, np.where(answer.numbers == second.numbers, 2, 0)) * ~told
    said = said[answer.codes]
    by_item = ((named > 0) | (said >= _EQUAL)).all()

    def both(where: str, i: int) -> None:
        expected, text = "the name of an item, or a side, in all rows", answer.texts[answer.codes[i]]
        raise ValueError(f"{where}: {column}: expected {expected}, got {text!r}, which is both; say what it means")

    def refuse_unknown(where: str, i: int) -> None:
        sides = (first.field, second.field)
        usual = f"{', '.join(sides)}, tie, both_bad, skip" if of_models(at) else ", ".join(WORDS)
        expected, text = f"{usual}, or the name of one of the two", answer.texts[answer.codes[i]]
        told = {"true": "first", "false": "second"} if word(text) in ("true", "false") else {text: "unsure"}
        typed = " ".join(f"--answer {each}={meaning}" for each, meaning in told.items())
        hint = f"say what it means, such as {typed}, or words={told} in Python"
        raise ValueError(f"{where}: {column}: expected {expected}, got {cut_repr(text)}; {hint}")

    refuse(table, [((named > 0) & (said > 0) & (named != said) & ~by_item, both)])
    said = np.where(named > 0, named, said)
    often, odd_times = _times(got)
    person, people, odd_person = _people(got, at, often.size)
    refuse(table, [((said == 0) & ~alone, refuse_unknown), odd_times, odd_person])
    often[alone] = 0
    turned = said == _SAID["second"]
    better = np.where(turned, second.numbers, first.numbers)
    worse = np.where(turned, first.numbers, second.numbers)
    tied = said >= _EQUAL
    read = ComparisonColumns(person, better, worse, tied, said != _SAID["unsure"], np.where(turned, 2, 1), often)
    bad_words = {word(each) for each in BAD} - set(words)
    bad = np.array([each in bad_words for each in spoken])[answer.codes] & (named == 0)
    return NamedPairs(read, names, people, bad)


def of_models(at: Mapping[str, list[str]]) -> bool:
    """Return whether the two sides are called model_a and model_b, as in an arena, perhaps model_a_name."""
    return all(plain_role(at[side][0], side) == name for side, name in (("first", "modela"), ("second", "modelb")))


def _meets_itself(table: Table, one: NameColumn, two: NameColumn) -> Bools:
    """Return which rows (r,) name one item twice, and so say nothing, and warn of them. Raise ValueError if more than
    half do: then the two columns are hardly those of two items."""
    same = np.asarray(one.numbers == two.numbers)
    rows = int(same.sum())

    def refused(where: str, i: int) -> None:
        name = two.texts[two.codes[i]]
        raise ValueError(f"{where}: {two.field}: expected another item than in {one.field}, got {cut_repr(name)} twice")

    if 2 * rows > same.size:
        refuse(table, [(same, refused)])
    if rows:
        warn(f"{table.name}: {count(rows, 'row')} in which an item meets itself left out", stacklevel=5)
    return same


def _columns(table: Table, at: Mapping[str, list[str]], *roles: str) -> dict[str, CodedColumn]:
    roles += tuple(role for role in ("person", "times") if role in at)
    return dict(zip(roles, table.columns([at[role][0] for role in roles])))


def _people(got: Mapping[str, CodedColumn], at: Mapping[str, list[str]], rows: int) -> tuple[Ints, list[str], Check]:
    """Return (people, names, check): for each of r rows the number of its person (r,), the names of people by number,
    and a check of the rows that lack a person.

    `got`: the columns by role, read; `at`: their names by role; `rows`: r. A check is used by `refuse`."""
    numbers: dict[str, int] = {}
    if "person" not in got:
        return np.zeros(rows, np.int64), [""], (np.zeros(rows, bool), lambda where, i: None)
    column = NameColumn(got["person"], at["person"][0], numbers)
    return column.numbers, list(numbers), column.check()


def _times(got: Mapping[str, CodedColumn]) -> tuple[Ints, Check]:
    """Return (counts, check): for each of r rows how often its answer was given (r,), and a check of the rows without a
    valid count.

    `got`: the columns by role, read. A check is used by `refuse`."""
    if "times" not in got:
        rows = next(iter(got.values())).codes.size
        return np.ones(rows, np.int64), (np.zeros(rows, bool), lambda where, i: None)
    values, codes = got["times"]
    often: list[int] = []
    for value in values:
        try:
            often.append(times("", value))
        except ValueError:
            often.append(-1)
    counts = np.array(often, np.int64)[codes]
    return counts, (counts < 0, lambda where, i: times(where, values[codes[i]]))


def refuse(table: Table, checks: list[Check]) -> None:
    """Raise ValueError for the first row of `table` that fails one of `checks`; if it fails several, for the first of
    these.

    A check is (which rows fail it, a mask (r,) of r rows; a function of a place and a row's index that raises the
    error)."""
    failed = [(int(wrong.argmax()), k) for k, (wrong, _) in enumerate(checks) if wrong.any()]
    if failed:
        i, k = min(failed)
        where = table.located()[i][0]
        checks[k][1](where, i)
