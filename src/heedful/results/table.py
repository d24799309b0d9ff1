"""Columns of results, each declared once next to its result, and tables of texts that are made from them.

The terminal, pages, notebooks and files show the same columns under the same headings, and write a cell the same way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple


class Column(NamedTuple):
    """A column of a result as it is shown: the field that it needs, what stands above it, what that means, and the
    text of a cell."""

    name: str
    """the field of a row that is shown"""
    heading: str
    """what stands above the column"""
    help: str
    """what that means, in words; "" if it needs no explanation"""
    cell: Callable[[Any], str]
    """the text of a cell, of the row"""
    text: bool = False
    """whether the cells are words, and no numbers"""


class Table(NamedTuple):
    """A table of texts: rows under headings, each with an optional line chart over time."""

    title: str
    """the heading of the table"""
    columns: tuple[str, ...]
    """the headings of the columns"""
    rows: tuple[tuple[str, ...], ...]
    """the cells of each row, as texts"""
    texts: tuple[int, ...] = (0,)
    """indices of the columns that hold texts; the others hold numbers"""
    trends: tuple[tuple[float | None, ...], ...] = ()
    """for each row the values of its line chart over time, scaled to 0 to 1, None where unknown; () for a table without
    charts"""

    @classmethod
    def of(cls, title: str, columns: Sequence[Column], rows: Iterable[object]) -> Table:
        """Return the `rows` of a result, written in these `columns`, under `title`."""
        return cls(
            title,
            tuple([column.heading for column in columns]),
            tuple([tuple([column.cell(row) for column in columns]) for row in rows]),
            tuple([i for i, column in enumerate(columns) if column.text]),
        )

    @classmethod
    def named(cls, title: str, noun: str, columns: Sequence[Column], rows: Mapping[str, object]) -> Table:
        """Return the `rows` of a result, by name, written in these `columns`, after their names below `noun`."""
        table = cls.of(title, columns, rows.values())
        texts = (0, *[i + 1 for i in table.texts])
        named = [(name, *cells) for name, cells in zip(rows, table.rows)]
        return cls(title, (noun, *table.columns), tuple(named), texts)
