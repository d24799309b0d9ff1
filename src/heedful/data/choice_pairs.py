"""Read comparisons of two items from whole columns at once, fast because a million rows have few distinct values."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeVar
from warnings import warn

import numpy as np

from heedful.core.validation import describe
from heedful.core.wording import count
from heedful.data.cells import BAD, WORDS, name_in, times, word
from heedful.data.comparisons import Bools, ComparisonColumns, Ints
from heedful.data.files import is_number
from heedful.data.roles import plain_role, winning_side
from heedful.data.table import CodedColumn, Table

T = TypeVar("T")
Check = tuple[Bools, Callable[[str, int], object]]
"""A mask of the rows (r,) that are wrong, and a function that raises the error for one: of its place, and its index."""

_SAID = {answer: number for number, answer in enumerate(WORDS, 1)}
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


def read_cells(coded: CodedColumn, read: Callable[[str, Any], T | None]) -> tuple[list[T | None], Check]:
    """Return what `read` makes of each distinct value of a column, None where it refuses one, and a check of the rows.

    `read` takes a place for messages and the value of a cell, and raises ValueError for one that makes no sense."""
    read_values: list[T | None] = []
    wrong = np.zeros(len(coded.values), bool)
    for k, value in enumerate(coded.values):
        try:
            read_values.append(read("", value))
        except ValueError:
            wrong[k] = True
            read_values.append(None)
    return read_values, (wrong[coded.codes], lambda where, i: read(where, coded.values[coded.codes[i]]))


class NameColumn:
    """A column of r names, which are numbered: `numbers` (r,) has the number of each row's name, `check` finds the rows
    whose cell is invalid."""

    def __init__(self, coded: CodedColumn, field: str, numbers: dict[str, int], empty: str | None = None) -> None:
        """Number the names in the column `coded`, adding new ones to `numbers`, which columns may share.

        `field`: its name for messages; `empty`: the name that an empty cell stands for; None if cells may not be empty.
        """

        def name(where: str, value: Any) -> str:
            if empty is not None and (value is None or isinstance(value, bool)):
                return empty if value is None else str(value).lower()
            return name_in(where, field, value)

        texts, self.check = read_cells(coded, name)
        self.field, self.codes, self.texts = field, coded.codes, [text or "" for text in texts]
        codes_of_texts = [-1 if text is None else numbers.setdefault(text, len(numbers)) for text in texts]
        self.numbers: Ints = np.array(codes_of_texts, np.int64)[self.codes]


def winners(table: Table, roles: Mapping[str, list[str]]) -> NamedPairs:
    """Read comparisons from a table with columns winner and loser, and optionally person and times (how often the
    answer was given).

    `roles`: names of the columns by role (winner, loser, person, times), from `find_columns`. Raise ValueError for the
    first malformed row."""
    columns = _columns(table, roles, "winner", "loser")
    items: dict[str, int] = {}
    winner, loser = (NameColumn(columns[role], roles[role][0], items) for role in ("winner", "loser"))
    often, odd_times = _times(columns)
    person, people, odd_person = _people(columns, roles, often.size)

    refuse(table, [winner.check, loser.check, odd_times, odd_person])
    often[_meets_itself(table, winner, loser)] = 0
    no, yes = np.zeros(often.size, bool), np.ones(often.size, bool)
    pairs = ComparisonColumns(person, winner.numbers, loser.numbers, no, yes, np.zeros(often.size, np.int64), often)
    return NamedPairs(pairs, list(items), people, no)


def pairs(table: Table, roles: Mapping[str, list[str]], words: Mapping[str, str]) -> NamedPairs:
    """Read comparisons from a table whose rows are a pair as shown and an answer.

    `roles`: names of the columns by role (first, second, answer, person, times), from `find_columns`; `words`: what
    further answers mean, in addition to WORDS, written as `word` returns them. Raise ValueError for the first malformed
    row."""
    columns = _columns(table, roles, "first", "second", "answer")
    column = roles["answer"][0]
    items: dict[str, int] = {}
    first, second = (NameColumn(columns[role], roles[role][0], items) for role in ("first", "second"))
    names = list(items)
    answer = NameColumn(columns["answer"], column, items, empty="")

    refuse(table, [first.check, second.check, answer.check])
    alone = _meets_itself(table, first, second)
    numbered = any(map(is_number, words))
    meanings = {word(roles[side][0]): side for side in ("first", "second")}  # a column's own name is an answer
    meanings |= {word(answer): meaning for meaning, several in WORDS.items() for answer in several}
    if side := winning_side(column):
        meanings |= {"true": side, "false": "second" if side == "first" else "first"}
    means = {answer: meaning for answer, meaning in meanings.items() if not (numbered and is_number(answer))} | dict(
        words
    )
    spoken = [word(text) for text in answer.texts]
    answers = np.array([_SAID.get(means.get(text, ""), 0) if text else _SAID["unsure"] for text in spoken], np.int64)
    explained = np.array([text in words for text in spoken])[answer.codes]
    named = np.where(answer.numbers == first.numbers, 1, np.where(answer.numbers == second.numbers, 2, 0)) * ~explained
    answers = answers[answer.codes]
    by_item = ((named > 0) | (answers >= _EQUAL)).all()

    def both(where: str, i: int) -> None:
        expected, text = "the name of an item, or a side, in all rows", answer.texts[answer.codes[i]]
        raise ValueError(f"{where}: {column}: expected {expected}, got {text!r}, which is both; say what it means")

    def refuse_unknown(where: str, i: int) -> None:
        sides = (first.field, second.field)
        usual = f"{', '.join(sides)}, tie, both_bad, skip" if of_models(roles) else ", ".join(WORDS)
        expected, text = f"{usual}, or the name of one of the two", answer.texts[answer.codes[i]]
        example = {"true": "first", "false": "second"} if word(text) in ("true", "false") else {text: "unsure"}
        typed = " ".join(f"--answer {answer}={meaning}" for answer, meaning in example.items())
        hint = f"say what it means, such as {typed}, or words={example} in Python"
        raise ValueError(f"{where}: {column}: expected {expected}, got {describe(text)}; {hint}")

    refuse(table, [((named > 0) & (answers > 0) & (named != answers) & ~by_item, both)])
    answers = np.where(named > 0, named, answers)
    often, odd_times = _times(columns)
    person, people, odd_person = _people(columns, roles, often.size)
    refuse(table, [((answers == 0) & ~alone, refuse_unknown), odd_times, odd_person])
    often[alone] = 0
    turned = answers == _SAID["second"]
    better = np.where(turned, second.numbers, first.numbers)
    worse = np.where(turned, first.numbers, second.numbers)
    tied = answers >= _EQUAL
    read = ComparisonColumns(person, better, worse, tied, answers != _SAID["unsure"], np.where(turned, 2, 1), often)
    bad_words = {word(answer) for answer in BAD} - set(words)
    bad = np.array([text in bad_words for text in spoken])[answer.codes] & (named == 0)
    return NamedPairs(read, names, people, bad)


def of_models(roles: Mapping[str, list[str]]) -> bool:
    """Return whether the two sides are called model_a and model_b, as in an arena, perhaps model_a_name."""
    return all(plain_role(roles[side][0], side) == name for side, name in (("first", "modela"), ("second", "modelb")))


def _meets_itself(table: Table, one: NameColumn, two: NameColumn) -> Bools:
    """Return which rows (r,) name one item twice, and warn; raise ValueError if more than half do."""
    same = np.asarray(one.numbers == two.numbers)
    rows = int(same.sum())

    def refused(where: str, i: int) -> None:
        name = two.texts[two.codes[i]]
        raise ValueError(f"{where}: {two.field}: expected another item than in {one.field}, got {describe(name)} twice")

    if 2 * rows > same.size:
        refuse(table, [(same, refused)])
    if rows:
        warn(f"{table.name}: {count(rows, 'row')} in which an item meets itself left out", stacklevel=5)
    return same


def _columns(table: Table, roles: Mapping[str, list[str]], *needed: str) -> dict[str, CodedColumn]:
    needed += tuple(role for role in ("person", "times") if role in roles)
    return dict(zip(needed, table.columns([roles[role][0] for role in needed])))


def _people(
    columns: Mapping[str, CodedColumn], roles: Mapping[str, list[str]], rows: int
) -> tuple[Ints, list[str], Check]:
    """Return for each of `rows` rows the number of its person, the people's names, and a check of rows without one."""
    numbers: dict[str, int] = {}
    if "person" not in columns:
        return np.zeros(rows, np.int64), [""], (np.zeros(rows, bool), lambda where, i: None)
    column = NameColumn(columns["person"], roles["person"][0], numbers)
    return column.numbers, list(numbers), column.check


def _times(columns: Mapping[str, CodedColumn]) -> tuple[Ints, Check]:
    """Return for each of r rows how often its answer was given (r,), and a check of the rows without a valid count."""
    if "times" not in columns:
        rows = next(iter(columns.values())).codes.size
        return np.ones(rows, np.int64), (np.zeros(rows, bool), lambda where, i: None)
    read_values, check = read_cells(columns["times"], times)
    return np.array([-1 if value is None else value for value in read_values], np.int64)[columns["times"].codes], check


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
