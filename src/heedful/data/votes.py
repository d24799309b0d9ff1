"""Votes of an arena as columns: which of two models won, who voted, covariates of the answers, and a category."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from heedful.core.validation import describe
from heedful.data.cells import Bools, Ints, number_of, read_cells, refuse
from heedful.data.choice_pairs import of_models
from heedful.data.choices import LoadedPairs, say_columns
from heedful.data.comparisons import UNSURE, join_names, sort_names
from heedful.data.files import cut_list
from heedful.data.table import CodedColumn

Array = npt.NDArray[np.float64]
Numbers = Callable[[str, Any], float | None]
"""Reads a cell as a number, None if there is none; raises ValueError with the place, its first argument."""

MOST_CATEGORIES = 100
"""The greatest number of categories that votes may have."""
MOST_COVARIATES = 50
"""The greatest number of covariates that scores can be adjusted for."""
NO_CATEGORY = "(none)"
"""The category of votes whose cell is empty."""

_TOKENS = re.compile(r"[^\W_]+")


class Votes(NamedTuple):
    """p rows of votes about m models, as arrays (p,); a row stands for `times` equal votes of one person.

    Differences of covariates and `outcome` are those of the model shown first against the other.
    """

    models: tuple[str, ...]
    people: tuple[str, ...]
    """names of people by number; ("",) if the file names nobody"""
    first: Ints
    """(p,) number of the model that was shown first, or of the winner if the file does not say which was"""
    second: Ints
    outcome: Ints
    """(p,) 2 if the first model won, 1 if both are equally good, 0 if the second won"""
    person: Ints
    times: Ints
    """(p,) at least 1"""
    sided: bool
    """whether the file says which model was shown first"""
    bad: Bools
    """(p,) whether it is a tie because both answers were called bad"""
    covariates: tuple[str, ...]
    differences: Array
    """(p, k) by how much each of the k covariates of the first answer exceeds that of the second"""
    categories: tuple[str, ...]
    category: Ints
    """(p,) number of the category; 0 if there are no categories"""
    left_out: dict[str, int]
    """how many votes were left out, by reason"""
    summary: str
    """in words, which columns were read"""

    @property
    def total(self) -> int:
        """Number of votes."""
        return int(self.times.sum())

    def where(self, rows: Bools | Ints) -> Votes:
        """Return the rows of votes for which `rows` (p,) is True, or with these numbers; models and people stay."""
        columns = ("first", "second", "outcome", "person", "times", "bad", "differences", "category")
        return self._replace(**{name: getattr(self, name)[rows] for name in columns})


def is_arena(loaded: LoadedPairs) -> bool:
    """Return whether a table has the columns of an arena: model_a, model_b and winner, in any case and punctuation."""
    return "answer" in loaded.roles and of_models(loaded.roles)


def votes_of(
    loaded: LoadedPairs, *, adjust: Sequence[str] = (), by: str | None = None, without: Sequence[str] = ()
) -> Votes:
    """Return comparisons that were read as columns as votes.

    `adjust`: covariates, each the name of two columns without the part that says whose they are ("length" for length_a
    and length_b), or a column of JSON objects with such pairs of fields ("style", or "style.length" for one of them).
    `by`: the column of categories; an empty cell is the category "(none)". `without`: people whose votes are left out.

    Votes that say nothing, those of `without`, those without a covariate, and rows that repeat a vote are left out and
    counted by reason. Raise ValueError, as `NAME:LINE: field: ...` where a row is to blame, for a covariate or a
    category that is not there or is malformed, a person who is not there, and if no vote is left.
    """
    columns, people = loaded.pairs, loaded.pairs.people
    counted = np.ones(columns.times.size, bool)
    left_out: dict[str, int] = {}

    def leave_out(wrong: Bools, why: str, *, rows: bool = False) -> None:
        now = counted & wrong
        count = int(now.sum()) if rows else int(columns.times[now].sum())
        if count:
            left_out[why] = left_out.get(why, 0) + count
        counted[now] = False

    if loaded.repeats.rows:
        left_out[f"rows that repeat a vote, by its {loaded.repeats.by}"] = loaded.repeats.rows
    leave_out(columns.first == columns.second, "rows in which a model meets itself", rows=True)
    leave_out(columns.times == 0, "rows that count 0 times", rows=True)
    leave_out(columns.outcome == UNSURE, "could not be judged")
    for name in without:
        if people == [""] or name not in people:
            expected = "votes that name people" if people == [""] else f"one of {join_names(people)}"
            raise ValueError(f"without: expected {expected}, got {name!r}")
    if without:
        leave_out(np.isin(np.array(people), list(without))[columns.person], "of people left out")
    covariates, differences, used = _covariates(loaded, adjust)
    for k, name in enumerate(covariates):
        leave_out(np.isnan(differences[:, k]), f"without {name}")
    categories, category = _categories(loaded, by)
    if not counted.any():
        raise ValueError(f"{loaded.table.name}: answers: expected at least one about two items, got none")
    votes = Votes(
        models=tuple(columns.items),
        people=tuple(people),
        first=columns.first,
        second=columns.second,
        outcome=columns.outcome,
        person=columns.person,
        times=columns.times,
        sided=columns.sided,
        bad=columns.bad,
        covariates=covariates,
        differences=differences,
        categories=categories,
        category=category,
        left_out=left_out,
        summary=_summary(loaded, [*used, *([] if by is None else [by])]),
    )
    return _in_order(votes if counted.all() else votes.where(counted))


def _in_order(votes: Votes) -> Votes:
    """Return the same votes in an order, and with numbers, that depend on what they say alone, not on their rows."""
    models, model = sort_names(votes.models)
    people, person = sort_names(votes.people)
    categories, category = sort_names(votes.categories)
    ordered = votes._replace(
        models=models,
        people=people,
        categories=categories,
        first=model[votes.first],
        second=model[votes.second],
        person=person[votes.person],
        category=category[votes.category] if categories else votes.category,
    )
    codes = (ordered.first * len(models) + ordered.second) * 3 + ordered.outcome
    order = np.lexsort((*ordered.differences.T, ordered.bad, ordered.times, ordered.category, ordered.person, codes))
    return ordered.where(order.astype(np.int64))


# ---------------------------------------------------------------------------- covariates


def _summary(loaded: LoadedPairs, further: Sequence[str]) -> str:
    """Return in words which columns were read, `further` ones beside those of the votes included."""
    if not further:
        return loaded.summary
    used = dict.fromkeys([*(name for names in loaded.roles.values() for name in names), *further])
    return say_columns(list(used), loaded.table.header)


def _covariates(loaded: LoadedPairs, adjust: Sequence[str]) -> tuple[tuple[str, ...], Array, tuple[str, ...]]:
    """Return (names of the k covariates, their differences (p, k), names of the columns they are in)."""
    rows = loaded.pairs.times.size
    if not adjust:
        return (), np.empty((rows, 0)), ()
    if not loaded.pairs.sided:
        raise ValueError(f"adjust: expected votes that say which answer is whose, got {loaded.summary}")
    roles = {name for names in loaded.roles.values() for name in names}
    pairs = dict(_pairs_of(name for name in loaded.table.header if name not in roles))
    covariates: dict[str, Array] = {}
    used: list[str] = []
    for name in adjust:
        column, _, field = name.partition(".")
        if name in pairs:
            covariates[name] = _difference(loaded, pairs[name])
            used += pairs[name]
        elif name in loaded.table.header or column in loaded.table.header:
            column = name if name in loaded.table.header else column
            covariates |= _of_objects(loaded, column, field)
            used.append(column)
        else:
            possible = f"one of {cut_list(list(pairs))}" if pairs else "columns such as length_a and length_b"
            raise ValueError(f"adjust: expected {possible}, got {name!r}")
    if len(covariates) > MOST_COVARIATES:
        raise ValueError(f"adjust: expected at most {MOST_COVARIATES} covariates, got {len(covariates)}")
    return tuple(covariates), np.column_stack(list(covariates.values())), tuple(used)


def _pairs_of(names: Any) -> Iterator[tuple[str, tuple[str, str]]]:
    """Yield (length, (length_a, length_b)) for each two of `names` that differ in "a" and "b"."""
    tokens = {name: _TOKENS.findall(str(name)) for name in names}
    names_of_words = {tuple(token.casefold() for token in words): name for name, words in tokens.items()}
    for words, name in names_of_words.items():
        for place in (i for i, word in enumerate(words) if word == "a"):
            other = names_of_words.get((*words[:place], "b", *words[place + 1 :]))
            if other is not None:
                rest = [*tokens[name][:place], *tokens[name][place + 1 :]]
                if place and words[place - 1] in ("model", "assistant", "answer", "response") and len(rest) > 1:
                    del rest[place - 1]
                if rest:
                    yield "_".join(rest), (name, other)


def _difference(loaded: LoadedPairs, names: tuple[str, str]) -> Array:
    one, two = loaded.table.columns(names)
    return _numbers(loaded, names[0], one, _number(names[0])) - _numbers(loaded, names[1], two, _number(names[1]))


def _number(field: str) -> Numbers:
    return lambda where, cell: number_of(where, field, cell)


def _numbers(loaded: LoadedPairs, field: str, coded: CodedColumn, read: Numbers) -> Array:
    """Return the cells of a column as numbers, NaN for none; raise ValueError for the first that is neither."""
    numbers, check = read_cells(coded, read)
    refuse(loaded.table, [check])
    return np.array([np.nan if number is None else number for number in numbers], np.float64)[coded.codes]


def _of_objects(loaded: LoadedPairs, column: str, field: str) -> dict[str, Array]:
    """Return the differences of the covariates in a `column` of JSON objects (counts add up), all or `field`."""
    [coded] = loaded.table.columns([column])

    def read(where: str, cell: object) -> dict[str, Any] | None:
        if isinstance(cell, str):
            try:
                cell = msgspec.json.decode(cell)
            except (msgspec.MsgspecError, UnicodeDecodeError):
                raise ValueError(f"{where}: {column}: expected a JSON object, got {describe(cell)}") from None
        if cell is not None and not isinstance(cell, dict):
            expected = "a JSON object, or two columns such as length_a and length_b"
            raise ValueError(f"{where}: {column}: expected {expected}, got {describe(cell)}")
        return cell

    cells, check = read_cells(coded, read)
    refuse(loaded.table, [check])
    objects = [cell or {} for cell in cells]
    pairs = dict(_pairs_of(dict.fromkeys(key for object in objects for key in object)))
    if field:
        if field not in pairs:
            possible = f"one of {cut_list(list(pairs))}" if pairs else "fields such as length_a and length_b"
            raise ValueError(f"adjust: expected {possible} in {column}, got {field!r}")
        pairs = {field: pairs[field]}
    if not pairs:
        raise ValueError(f"adjust: expected fields such as length_a and length_b in {column}, got none")
    out: dict[str, Array] = {}
    for name, keys in pairs.items():
        sides = []
        for key in keys:
            inner = CodedColumn([object.get(key) for object in objects], coded.codes)
            sides.append(_numbers(loaded, column, inner, _count(f"{column}.{key}")))
        out[f"{column}.{name}"] = sides[0] - sides[1]
    return out


def _count(field: str) -> Numbers:
    def read(where: str, cell: Any) -> float | None:
        if isinstance(cell, dict):
            parts = [number_of(where, field, part) for part in cell.values()]
            return math.fsum(part for part in parts if part is not None)
        return number_of(where, field, cell)

    return read


# ---------------------------------------------------------------------------- categories


def _categories(loaded: LoadedPairs, by: str | None) -> tuple[tuple[str, ...], Ints]:
    """Return (names, number of each row's category (p,)) of the column `by`; no names without one."""
    rows = loaded.pairs.times.size
    if by is None:
        return (), np.zeros(rows, np.int64)
    if by not in loaded.table.header:
        raise ValueError(f"by: expected one of the columns {cut_list(loaded.table.header)}, got {by!r}")
    [coded] = loaded.table.columns([by])

    def name(where: str, cell: Any) -> str:
        if isinstance(cell, bool | int | float | str) or cell is None:
            return NO_CATEGORY if cell is None or not str(cell).strip() else str(cell).strip()
        raise ValueError(f"{where}: {by}: expected a text or a number, got {describe(cell)}")

    names, check = read_cells(coded, name)
    refuse(loaded.table, [check])
    numbers: dict[str, int] = {}
    which = np.array([numbers.setdefault(str(each), len(numbers)) for each in names], np.int64)
    if len(numbers) > MOST_CATEGORIES:
        raise ValueError(f"by: expected a column of at most {MOST_CATEGORIES} categories, got {len(numbers):,}")
    return tuple(numbers), which[coded.codes]
