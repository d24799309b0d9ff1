"""Tables of comparisons that have other rows than one answer about two items, or one order, as rows that are: counts of
wins, the best and the worst of several, ranks in a column for each item."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias
from warnings import warn

from heedful.data.cells import FALSE, TRUE, name_in, times
from heedful.data.json_records import Located
from heedful.data.roles import fitting, plain
from heedful.data.table import Table, table_of

Rows: TypeAlias = Iterator[Located]

_NUMBERED = re.compile(r"(?:item|option|alternative|alt|attribute|concept|card)(\d{1,2})")
_BEST = ("best", "most", "mostimportant", "mostpreferred")
_WORST = ("worst", "least", "leastimportant", "leastpreferred")
_WINS = re.compile(r"(?:wins?|won|votes?|count|n)(?P<side>1|2|a|b)|(?P<other>a|b|1|2)(?:wins|votes)")
_TIES = ("ties", "draws", "tied", "equal")
_EQUAL = ("bothequal", "tie", "istie", "tied", "equal", "isequal", "draw")
"""Names of columns that say, true or false, whether two items are equally good."""
_ORDINAL = re.compile(r"(\d{1,3})(?:st|nd|rd|th|\.)?", re.IGNORECASE)
_BRACKETS = re.compile(r"[^\[]*\[(.+)\]\s*", re.DOTALL)


def with_ties(table: Table) -> Table:
    """Return a table of pairs with an answer "equal" in each row in which a column says that both are equally good.

    A table without such a column is returned unchanged."""
    flags = [name for name in table.header if plain(name) in _EQUAL]
    answers = fitting("answer", [name for name in table.header if name not in flags])
    if not flags or not answers or not fitting("first", table.header) or not fitting("second", table.header):
        return table
    [column] = table.columns(flags[:1])
    if not all(str(value).lower() in (*TRUE, *FALSE, "none") for value in column.values):
        return table
    rows = [
        (where, row | {answers[0]: "equal"} if str(row.get(flags[0])).lower() in TRUE else row)
        for where, row in table.located()
    ]
    return table_of([(where, {k: v for k, v in row.items() if k != flags[0]}) for where, row in rows], table.name)


def as_answers(table: Table, named: Mapping[str, Sequence[str]]) -> Table | None:
    """Return a table in one of these other forms as one of answers, and warn how it was read; None if it has none.

    `named`: the columns that the caller gives, by role; of those only person is taken into account."""
    if set(named) - {"person"}:
        return None
    person = named.get("person") or fitting("person", table.header)[:1]
    person = [name for name in person if name in table.header]  # "none" is none
    for read in (_best_and_worst, _counted_pairs, _win_matrix, _option_columns):
        answers = read(table, person)
        if answers is not None:
            summary, rows = answers
            warn(f"{table.name}: {summary}", stacklevel=4)
            return table_of(list(rows), table.name)
    return None


def _person_of(row: Mapping[str, Any], person: Sequence[str]) -> dict[str, Any]:
    return {"person": row.get(person[0])} if person else {}


def _best_and_worst(table: Table, person: Sequence[str]) -> tuple[str, Rows] | None:
    """Read tasks with columns item1, item2, ..., best and worst: the best beats all others, which beat the worst."""
    items = [name for name in table.header if _NUMBERED.fullmatch(plain(name))]
    best = [name for name in table.header if plain(name) in _BEST]
    worst = [name for name in table.header if plain(name) in _WORST]
    if len(items) < 3 or not (best or worst):
        return None

    def rows() -> Rows:
        for where, row in table.located():
            shown = [name_in(where, name, row[name]) for name in items if row.get(name) is not None]
            top, low = (
                [_chosen(where, names[0], row.get(names[0]), shown)] if names else [] for names in (best, worst)
            )
            rest = [name for name in shown if name not in (*top, *low)]
            if top == low or len(shown) > len(set(shown)):
                raise ValueError(f"{where}: best, worst: expected two of {len(shown)} different items, got {top + low}")
            yield where, _person_of(row, person) | {"order": [tier for tier in (top, rest, low) if tier]}

    return f"the {' and the '.join([*best[:1], *worst[:1]])} of {len(items)}", rows()


def _chosen(where: str, field: str, cell: object, shown: Sequence[str]) -> str:
    name = name_in(where, field, cell)
    if name not in shown and name.isdigit() and 1 <= int(name) <= len(shown):
        return shown[int(name) - 1]
    if name not in shown:
        raise ValueError(f"{where}: {field}: expected one of {', '.join(shown)}, got {name!r}")
    return name


def _counted_pairs(table: Table, person: Sequence[str]) -> tuple[str, Rows] | None:
    """Read pairs with how often each of the two won, and perhaps how often neither did."""
    first, second = fitting("first", table.header)[:1], fitting("second", table.header)[:1]
    sides: dict[str, str] = {}
    for name in table.header:
        if name not in (*first, *second) and (match := _WINS.fullmatch(plain(name))):
            sides.setdefault({"a": "1", "b": "2"}.get(side := match["side"] or match["other"], side), name)
    if not first or not second or set(sides) != {"1", "2"}:
        return None
    ties = [name for name in table.header if plain(name) in _TIES]

    def rows() -> Rows:
        for where, row in table.located():
            pair = {"first": row.get(first[0]), "second": row.get(second[0])} | _person_of(row, person)
            for answer, name in (("first", sides["1"]), ("second", sides["2"]), *(("equal", name) for name in ties)):
                yield where, pair | {"answer": answer, "times": times(where, row.get(name) or 0)}

    return f"counts: {sides['1']} of {first[0]}, {sides['2']} of {second[0]}", rows()


def _win_matrix(table: Table, person: Sequence[str]) -> tuple[str, Rows] | None:
    """Read a matrix of how often the item of the row won against that of the column."""
    label, *items = table.header
    if len(items) < 2:
        return None
    [column] = table.columns([label])
    if sorted(map(str, column.values)) != sorted(items):
        return None

    def rows() -> Rows:
        for where, row in table.located():
            for other in items:
                if str(row[label]) != other and row.get(other) is not None and (n := times(where, row[other])):
                    yield where, {"winner": str(row[label]), "loser": other, "times": n}

    return "a matrix of wins, of the item of the row against that of the column", rows()


def _option_columns(table: Table, person: Sequence[str]) -> tuple[str, Rows] | None:
    """Read ballots with a column for each item, whose cells are its ranks; an empty cell is an item not placed."""
    ranked: dict[str, dict[str, int]] = {}
    names = [name for name in table.header if name not in person]
    for name, column in zip(names, table.columns(names)):
        ranks = {str(value): _rank(value) for value in column.values if value is not None}
        if ranks and all(ranks.values()):
            ranked[name] = ranks
    if len(ranked) < 2:
        return None
    rows: list[Located] = []
    for where, row in table.located():
        placed = {name: ranks[str(row[name])] for name, ranks in ranked.items() if row.get(name) is not None}
        if len(set(placed.values())) < len(placed) or max(placed.values(), default=1) > len(ranked):
            return None  # scores, or ties: not certainly ranks
        order = [[_inner(name)] for name in sorted(placed, key=lambda name: placed[name])]
        rows.append((where, _person_of(row, person) | {"order": order}))
    return f"a rank in each of the columns {', '.join(map(_inner, ranked))}", iter(rows)


def _rank(value: object) -> int:
    """Return a cell as a rank from 1; 0 if it is none."""
    match = _ORDINAL.fullmatch(str(value).strip().removesuffix(".0"))
    return int(match[1]) if match and not isinstance(value, bool) else 0


def _inner(name: str) -> str:
    """Return what stands in brackets in the name of a column, where forms put the item."""
    match = _BRACKETS.fullmatch(name)
    return match[1].strip() if match else name
