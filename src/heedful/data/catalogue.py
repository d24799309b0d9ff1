"""Loader of a table of items (CSV) as names and standardised numeric features."""

from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from heedful.core.validation import describe
from heedful.data.cells import number_columns
from heedful.data.files import MISSING, cut_list, number_in
from heedful.data.table import open_table


class Catalogue(NamedTuple):
    """m items by name, with N standardised features."""

    names: NDArray[np.str_]  # m
    features: NDArray[np.str_]  # N; the columns' names
    X: NDArray[np.float64]  # m x N; (value - mean) / scale, 0 where a value is missing
    mean: NDArray[np.float64]  # N; of the values that are there
    scale: NDArray[np.float64]  # N; their standard deviation
    missing: NDArray[np.int64]  # N; how many are not there


def load_catalogue(path: str | PathLike[str]) -> Catalogue:
    """Load a table of items as `read_table` does.

    A column is numeric if each of its cells is a finite number, a truth value or missing; numeric columns that vary are
    the features. The first column with some text gives the names; an item with an empty name, or each item if there is
    no such column, is called "item 3" by its place. Other columns are ignored, as are blank lines.

    Raise FileNotFoundError if the path does not exist. Raise ValueError, as `NAME:LINE: ...` if one line is to blame,
    for a table without a numeric column that varies, and for an infinite number; other errors are those of
    `read_table`.
    """
    path = Path(path)
    table = open_table(path)
    numeric = number_columns(table, table.header)
    rows = [row for _, row in table.located()]
    columns = {name: [_text(row.get(name)) for row in rows] for name in table.header if name not in numeric}
    worded = (cells for cells in columns.values() if any(number_in(cell) is None for cell in cells))
    names = ["" if cell.lower() in MISSING else cell for cell in next(worded, [""] * len(rows))]
    if not numeric:
        examples = [f"{name} ({_example(cells)})" for name, cells in columns.items()]
        raise ValueError(f"{path.name}: columns: expected at least one of finite numbers, got {cut_list(examples)}")

    standard = {name: _standardise(column) for name, column in numeric.items()}
    features = [name for name, (_, _, scale) in standard.items() if scale > 0]
    if not features:
        raise ValueError(f"{path.name}: columns: expected a numeric one that varies, got constant {', '.join(numeric)}")
    return Catalogue(
        names=np.array([name or f"item {i}" for i, name in enumerate(names, 1)]),
        features=np.array(features),
        X=np.column_stack([standard[name][0] for name in features]),
        mean=np.array([standard[name][1] for name in features]),
        scale=np.array([standard[name][2] for name in features]),
        missing=np.array([np.isnan(numeric[name]).sum() for name in features], np.int64),
    )


def _text(cell: object) -> str:
    return "" if cell is None else str(cell).strip()


def _example(cells: Sequence[str]) -> str:
    """Return, for a message, the first of `cells` that keeps the column from being numeric."""
    return next((describe(cell) for cell in cells if number_in(cell) is None), "nothing in it")


def _standardise(column: NDArray[np.float64]) -> tuple[NDArray[np.float64], float, float]:
    """Return (standardised `column`, mean, standard deviation); NaN becomes 0, a constant column stays as it is."""
    present = column[~np.isnan(column)]
    if present.min() == present.max():  # the standard deviation of equal numbers may be a rounding error
        return column, float(present[0]), 0.0
    power, mean, scale = scaled_moments(present)
    X = np.nan_to_num((np.ldexp(column, -power) - mean) / scale, nan=0.0)
    return X, float(np.ldexp(mean, power)), float(np.ldexp(scale, power))


def scaled_moments(values: NDArray[np.float64]) -> tuple[int, float, float]:
    """Return (p, mean, standard deviation) of finite `values` divided by 2^p, with p so large that no square overflows.

    Dividing by 2^p is exact."""
    power = int(np.frexp(np.abs(values).max())[1])
    scaled = np.ldexp(values, -power)
    return power, float(scaled.mean()), float(scaled.std())
