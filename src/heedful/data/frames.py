"""Convert between rows and tables in memory: pandas and polars data frames, and Arrow tables.

None of these packages is required: tables are recognised by their methods, and a package is imported only when used.
"""

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date, datetime, time
from decimal import Decimal
from importlib import import_module
from typing import Any, TypeAlias
from warnings import warn

from heedful.core.validation import describe
from heedful.data.files import cell_number

Frame: TypeAlias = Any
"""A data frame or Arrow table that `rows_in` can read. These types have no base class in common, hence Any."""

PACKAGES = ("pandas", "polars", "pyarrow")
"""The packages in whose data frames results can be returned."""

_INDEX = re.compile(r"|Unnamed: 0(\.\d+)*|__index_level_0__")
"""The column names that pandas gives to an index that it writes or reads back."""


def rows_in(name: str, table: Any) -> Any:
    """Return the rows of a data frame or Arrow table as dictionaries, in the form of `read_table`; anything else
    unchanged.

    In pandas, index levels with a name become the first columns; any other index is left out, and so is a column of row
    numbers that pandas wrote. Dates and times become ISO 8601 texts, missing cells (NaN, NaT, NA) None. `name`: name of
    the table in messages. Raise ModuleNotFoundError if the table can only be read with pyarrow and that is not
    installed; ValueError for a column name that occurs twice.
    """
    read: Callable[[], Any]
    if hasattr(table, "columns") and hasattr(table, "reset_index"):
        table = _with_index(name, table)
        columns, read = list(table.columns), lambda: table.to_dict("records")
    elif hasattr(table, "columns") and hasattr(table, "to_dicts"):
        columns, read = list(table.columns), table.to_dicts
    elif hasattr(table, "column_names") and hasattr(table, "to_pylist"):
        columns, read = list(table.column_names), table.to_pylist
    elif hasattr(table, "__arrow_c_stream__"):
        try:
            pyarrow = import_module("pyarrow")
        except ModuleNotFoundError:
            problem = (
                f"{name}: reading {type(table).__name__} needs pyarrow, which is not installed: pip install pyarrow"
            )
            raise ModuleNotFoundError(problem, name="pyarrow") from None
        return rows_in(name, pyarrow.table(table))
    else:
        return table
    column, times = Counter(columns).most_common(1)[0] if columns else ("", 1)
    if times > 1:
        raise ValueError(f"{name}: columns: expected each name once, got {describe(column)} {times} times")
    return without_index(name, [{key: cell(value) for key, value in row.items()} for row in read()])


def _with_index(name: str, frame: Any) -> Any:
    """Return a pandas `frame` with the named levels of its index as columns; warn of an index without a name."""
    named = [level for level in frame.index.names if level is not None]
    if not named:
        if frame.index.dtype.kind not in "iu":
            warn(f"{name}: the index has no name and is left out; reset_index() makes it a column", stacklevel=4)
        return frame
    try:
        return frame.reset_index(level=named)
    except ValueError as error:
        raise ValueError(f"{name}: index: expected names that no column has, got {describe(named)}: {error}") from None


def cell(value: object) -> Any:
    """Return the `value` of a table's cell as a JSON value, if it can be one: numpy to Python, missing to None, dates
    to ISO 8601 text. Anything else is returned unchanged."""
    if isinstance(value, Decimal):
        value = float(value)
    elif hasattr(value, "tolist"):  # a number or an array of numpy
        value = value.tolist()
    if (
        value is None
        or (isinstance(value, float) and math.isnan(value))
        or type(value).__name__ in ("NAType", "NaTType")
    ):
        return None
    return value.isoformat() if isinstance(value, date | datetime | time) else value


def without_index(name: str, rows: Sequence[Mapping[str, object]]) -> list[dict[str, Any]]:
    """Return copies of the rows without columns that number them from 0, as pandas writes an index, with a warning for
    each.

    A table without other columns keeps them. `name`: name of the table in the warning.
    """
    columns = list(rows[0]) if rows else []
    left = {columns[j] for j in index_of(columns, lambda j: [row.get(columns[j]) for row in rows])}
    warn_index(name, left)
    return [{key: value for key, value in row.items() if key not in left} for row in rows]


def index_of(columns: Sequence[str], cells: Callable[[int], Iterable[object]]) -> list[int]:
    """Return the positions, among `columns` (names), of columns that are an index written by pandas: named as one, and
    holding 0, 1, 2, ....

    `cells(j)` returns the cells of the column at position j. Such columns come first, or are called
    `__index_level_0__`; a table without other columns has none."""
    indices: list[int] = []
    for j, column in enumerate(columns):
        leading = len(indices) == j or str(column).startswith("__")
        if leading and is_index(column) and _counts(cells(j)):
            indices.append(j)
    return indices if len(indices) < len(columns) else []


def is_index(column: object) -> bool:
    """Return True if `column`, the name of a column, is one that pandas gives to an index when it writes a table.

    These names are "", "Unnamed: 0" (or "Unnamed: 0.1" and so on) and "__index_level_0__"; a name that is not a text is
    none of them."""
    return isinstance(column, str) and _INDEX.fullmatch(column) is not None


def warn_index(name: str, columns: Iterable[str]) -> None:
    """Warn, for each of `columns` of the table called `name`, that it is a pandas index of row numbers
    and is left out.
    """
    for column in columns:
        label = repr(column) if column else "that has no name"
        warn(f"{name}: the column {label} numbers the rows, as pandas writes an index: it is left out", stacklevel=5)


def _counts(cells: Iterable[object]) -> bool:
    return all(cell_number(value) == i for i, value in enumerate(cells))


def frame_of(columns: Mapping[str, Sequence[object]], package: str = "pandas") -> Any:
    """Return `columns` (name to values) as a data frame of the given `package`: "pandas", "polars", or "pyarrow" for
    its table.

    Raise ValueError for another package, and ModuleNotFoundError, with what to install, if the package is missing.
    """
    if package not in PACKAGES:
        raise ValueError(f"package: expected {', '.join(PACKAGES)}, got {describe(package)}")
    try:
        module = import_module(package)
    except ModuleNotFoundError as error:
        if error.name != package:
            raise
        others = " or ".join(other for other in PACKAGES if other != package)
        problem = f"to_frame needs {package}, which is not installed: pip install {package}, or name {others}"
        raise ModuleNotFoundError(problem, name=package) from None
    return (module.table if package == "pyarrow" else module.DataFrame)(dict(columns))
