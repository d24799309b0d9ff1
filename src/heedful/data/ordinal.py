"""Loader of ordinal data, rows of features with a grade each, from a table with a target column or an SVMlight file."""

import math
import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from heedful.core.validation import describe
from heedful.data.cells import number_columns
from heedful.data.files import MISSING, NUMBER, cut_list, first_lines, number_in
from heedful.data.set_aside import ASIDE, counted_rows
from heedful.data.svmlight import MAX_FEATURES, Target, read_svmlight, stack_blocks
from heedful.data.table import open_table

Missing = Literal["refuse", "mean"]

MOST_GRADES = 100
"""The default for the greatest number of grades; a target with more distinct values is probably not a grade."""

_TARGET = Target(NUMBER, "a number")
_LOOKS_SVMLIGHT = re.compile(r"[ \t]*[+-]?[0-9.][^\s,;]*[ \t]+(?:qid:|[^\s:,;#\"]+:)")
_EXACT = 2.0**53  # smaller whole numbers are exact as floats


class OrdinalData(NamedTuple):
    """Rows of N features with a rank each, from 1 to k; rank r stands for the grade grades[r - 1]."""

    X: NDArray[np.float64]  # rows x N
    ranks: NDArray[np.int64]  # rows; 1 to k
    grades: tuple[str, ...]  # k; as in the file, the lowest first
    features: tuple[str, ...]  # N; the columns' names
    left_out: tuple[str, ...]  # columns that are not numbers
    filled: tuple[str, ...]  # columns of which missing values were taken as the mean


def load_ordinal(
    path: str | PathLike[str],
    target: str = "",
    *,
    order: Sequence[str] = (),
    most: int = MOST_GRADES,
    without: Collection[str] = (),
    missing: Missing = "refuse",
    columns: Mapping[str, Sequence[str]] | None = None,
) -> OrdinalData:
    """Load rows of features with a grade each, from a table or an SVMlight file, plain or gzip; the content tells
    which.

    In a table (CSV, JSON lines or Parquet, as in `read_table`) the grades are in the column `target`. Columns in which
    each value is a number or a truth value are the features; the others are left out, as are those in `without`.
    `missing`: what to do with a missing value in a feature: "refuse" it, or fill in the column's "mean". `columns`:
    those that say which rows do not count, as {"aside": ["draft"]}, or {"aside": ["none"]} for none.

    SVMlight has lines `GRADE [qid:ID] INDEX:VALUE ... # comment`, and takes no `target`; qid is ignored. Indices begin
    at 1 and rise within a line; a feature that is left out is 0. Feature names are the indices.

    Grades are whole numbers, whose k distinct values become the ranks 1 to k; or the labels in `order`, lowest first,
    which need not all occur. There are at least two and at most `most`.

    Raise FileNotFoundError if the path does not exist. Raise ValueError, as `NAME:LINE: field: expected ..., got ...`
    if one line is to blame, for malformed content, a target that does not exist, a grade that is missing, not whole or
    not in `order`, no feature, and a feature that is not finite.
    """
    path = Path(path)
    columns = columns or {}
    if other := sorted(set(columns) - {ASIDE}):
        raise ValueError(f"columns: expected {ASIDE}, got {describe(other[0])}")
    if missing not in ("refuse", "mean"):
        raise ValueError(f"missing: expected refuse or mean, got {missing!r}")
    if twice := [(label, times) for label, times in Counter(map(_same, order)).items() if times > 1]:
        raise ValueError(f"order: expected each label once, got {describe(twice[0][0])} {twice[0][1]} times")
    if len(order) == 1 or "" in order:
        raise ValueError(
            f"order: expected at least two labels, from the lowest to the highest, got {describe(list(order))}"
        )
    if is_svmlight(path):
        if target or without or columns:
            what, named = ("target", target) if target else ("without", ", ".join([*without, *columns]))
            raise ValueError(
                f"{what}: expected none, as the grade begins each line of {path.name}, got {describe(named)}"
            )
        return _svmlight(path, order, most)
    return _table(path, target, order, most, without, missing, columns)


def is_svmlight(path: Path) -> bool:
    """Return True if the first line that is neither blank nor a comment looks like GRADE INDEX:VALUE or
    GRADE qid:ID.
    """
    for line in first_lines(path):
        if (text := line[:4096].partition("#")[0].strip()) and not _is_whole(text):
            return _LOOKS_SVMLIGHT.match(line[:4096]) is not None
    return False


# ---------------------------------------------------------------------------- grades


def _rank_grades(
    name: str, cells: Sequence[str], order: Sequence[str], most: int, where: Sequence[str], file: str
) -> tuple[NDArray[np.int64], tuple[str, ...]]:
    """Return (the rank of each row (rows,), from 1; the grade of each rank, lowest first)."""
    if order:
        if len(order) > most:
            raise ValueError(f"order: expected at most {most} labels, got {len(order)}")
        places = {_same(label): r for r, label in enumerate(order, 1)}
        for place, cell in zip(where, cells):
            if _same(cell) not in places:
                raise ValueError(f"{place}: {name}: expected one of {cut_list(order)}, got {describe(cell)}")
        return np.array([places[_same(cell)] for cell in cells], np.int64), tuple(order)
    for place, cell in zip(where, cells):
        if not _is_whole(cell):
            words = "" if number_in(cell) is not None else "; labels need their order: bad,ok,good"
            raise ValueError(f"{place}: {name}: expected a grade, a whole number, got {describe(cell)}{words}")
    values = np.array([float(cell) for cell in cells])
    distinct, ranks = np.unique(values, return_inverse=True)
    if not 2 <= distinct.size <= most:
        least_to_most = f"from {distinct[0]:.0f} to {distinct[-1]:.0f}" if distinct.size > 1 else f"{distinct[0]:.0f}"
        raise ValueError(
            f"{file}: {name}: expected 2 to {most} different grades, got {distinct.size} ({least_to_most})"
        )
    return ranks.reshape(-1).astype(np.int64) + 1, tuple(f"{value:.0f}" for value in distinct)


def _is_whole(text: str) -> bool:
    value = number_in(text)
    return value is not None and math.isfinite(value) and value == value // 1 and abs(value) < _EXACT


def _same(label: str) -> str:
    """Return a label in one form for comparison: "3.0", as a column of floats writes it, is "3"."""
    return f"{number_in(label):.0f}" if _is_whole(label) else label


# ---------------------------------------------------------------------------- SVMlight


def _svmlight(path: Path, order: Sequence[str], most: int) -> OrdinalData:
    read = read_svmlight(path, MAX_FEATURES, _TARGET)
    if not read.targets:
        raise ValueError(f"{path.name}: rows: expected a line GRADE INDEX:VALUE ..., got none")
    N = max(block.shape[1] for block in read.blocks)
    if N == 0:
        raise ValueError(f"{path.name}: features: expected at least one INDEX:VALUE, got none")
    where = [f"{path.name}:{number}" for number in read.numbers]
    ranks, grades = _rank_grades("grade", read.targets, order, most, where, path.name)
    features = tuple(map(str, range(1, N + 1)))
    return OrdinalData(stack_blocks(read.blocks, N), ranks, grades, features, (), ())


# ---------------------------------------------------------------------------- tables


def _table(
    path: Path,
    target: str,
    order: Sequence[str],
    most: int,
    without: Collection[str],
    missing: Missing,
    columns: Mapping[str, Sequence[str]],
) -> OrdinalData:
    used = {"target": [target], "without": list(without)} if target else {}
    table, _ = counted_rows(open_table(path), {**used, **columns})
    placed = table.located()
    where = [place for place, _ in placed]
    names = table.header
    if not target:
        raise ValueError(f"target: expected the column of the grades ({cut_list(names)}), got none")
    for name, what in ((target, "target"), *((name, "without") for name in without)):
        if name not in names:
            raise ValueError(f"{what}: expected a column of {path.name} ({cut_list(names)}), got {describe(name)}")
    if target in without:
        raise ValueError(f"without: expected another column than the target, got {describe(target)}")
    cells = []
    for place, row in placed:
        cell = _text(row.get(target))
        if cell.lower() in MISSING:
            raise ValueError(f"{place}: {target}: expected a grade, got nothing")
        cells.append(cell)
    ranks, grades = _rank_grades(target, cells, order, most, where, path.name)

    possible = [name for name in names if name != target and name not in without]
    features = number_columns(table, possible)
    left_out, filled = [name for name in possible if name not in features], []
    for name, column in features.items():
        if (gaps := np.isnan(column)).any():
            if missing == "refuse":
                others = f", as {gaps.sum() - 1} more" if gaps.sum() > 1 else ""
                raise ValueError(
                    f"{where[int(gaps.argmax())]}: {name}: expected a number, got nothing{others}; "
                    "the mean of the others can stand in, or the column be left out"
                )
            column[gaps] = column[~gaps].mean()
            filled.append(name)
    if not features:
        raise ValueError(
            f"{path.name}: columns: expected one of numbers other than {target}, got {cut_list(left_out) or 'none'}"
        )
    X = np.ascontiguousarray(np.column_stack(list(features.values())))
    return OrdinalData(X, ranks, grades, tuple(features), tuple(left_out), tuple(filled))


def _text(value: object) -> str:
    """Return a cell as text for comparison with grades; 3.0 is "3"."""
    if value is None:
        return ""
    if isinstance(value, float) and value == value // 1:
        return f"{value:.0f}"
    return str(value).strip()
