"""What grows while a log is read: it holds what was put in, at any size, in a few bytes an entry."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

from heedful.loop.growing import MORE, Column, GrowingTable, Marks, People

N = 3 * MORE + 17


def test_a_table_holds_its_rows() -> None:
    rows = np.random.default_rng(0).normal(size=(N, 3))
    table = GrowingTable(3)
    assert table.rows.shape == (0, 3)
    for row in rows:
        table.append(row)
    assert np.array_equal(table.rows, rows)


def test_a_table_adds_as_bincount_does() -> None:
    rng = np.random.default_rng(1)
    rows, who = rng.normal(size=(N, 2)), rng.integers(0, 50, N)
    _, first, inverse = np.unique(who, return_index=True, return_inverse=True)
    order = np.argsort(np.argsort(first))[inverse]  # in order of first appearance
    table = GrowingTable(2)
    for i, row in zip(order.tolist(), rows):
        table.add(i, row)
    assert np.array_equal(table.rows, np.column_stack([np.bincount(order, rows[:, j]) for j in (0, 1)]))


def test_marks_are_a_set() -> None:
    marks, numbers = Marks(), {0, 5, MORE - 1, MORE, 7 * MORE}
    assert 0 not in marks
    for number in numbers:
        marks.add(number)
    assert {number for number in range(8 * MORE) if number in marks} == numbers


def test_people_are_numbered_as_they_come() -> None:
    """A decision for nobody is a person of its own, also where somebody is called like its number."""
    people, numbers = People(), {}
    for who in ["ann", 7, "bob", 0, "7", 7, "ann", 5 * MORE, 0, "bob"]:
        assert people.number(who) == numbers.setdefault(who, len(numbers))
        assert people.n == len(numbers)


@pytest.mark.slow
def test_an_entry_takes_few_bytes() -> None:
    """A Python object each would take a hundred."""

    def grown(n: int) -> int:
        tracemalloc.start()
        people, marks, column, table = People(), Marks(), Column(), GrowingTable(4)
        for i in range(n):
            marks.add(i)
            column.append(people.number(i))
            table.append((1.0, 2.0, 3.0, 4.0))
        taken = tracemalloc.get_traced_memory()[0]
        tracemalloc.stop()
        assert len(people._nobody) == len(marks._marks) >= n == len(column) == table.n
        return taken

    assert (grown(10 * MORE) - grown(5 * MORE)) / (5 * MORE) < 80  # 4 numbers, as many in reserve, 4 + 4 + 1
