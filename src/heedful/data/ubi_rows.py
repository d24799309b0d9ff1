"""Reader of the rows of OpenSearch UBI exports, and parsers of their fields."""

import csv
import io
import math
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec

from heedful.core.times import EPOCH, parse_time
from heedful.core.validation import describe
from heedful.core.wording import UNPRINTABLE
from heedful.data.files import open_uncompressed
from heedful.data.jsonl import Line, read_lines

MAX_NAME = 200  # greatest length of an id, as in a loop; the indices of UBI ignore ids longer than 100
_EARLIEST = datetime(2000, 1, 1, tzinfo=UTC)  # earlier times are probably seconds that were taken for milliseconds


def read_rows(path: Path) -> Iterator[Line]:
    """Yield the documents of a file: JSON lines, bare or within `_source`, or CSV if it is named .csv or .csv.gz."""
    reader = _read_csv if path.name.lower().removesuffix(".gz").endswith(".csv") else read_lines
    for line in reader(path):
        source = line.record and line.record.get("_source")
        yield line._replace(record=source) if isinstance(source, dict) else line


def _read_csv(path: Path) -> Iterator[Line]:
    """Yield the rows of a CSV, without empty cells; raise ValueError for names that cannot be read or occur twice."""
    with open_uncompressed(path) as file:
        # Bytes that are not UTF-8 are read as surrogates, which UTF-8 cannot encode: so only their row is refused.
        table = csv.reader(io.TextIOWrapper(file, "utf-8-sig", "surrogateescape", newline=""))
        names: list[str] | None = None
        while True:
            record, error = None, None
            try:
                cells = next(table)
                "".join(cells).encode()
            except StopIteration:
                return
            except UnicodeEncodeError:
                error = "text: expected UTF-8, got other bytes"
            except csv.Error as problem:
                error = f"row: expected CSV, got {problem}"
            else:
                if not cells:
                    continue
                if names is None:
                    if len(set(cells)) == len(cells):
                        names = cells
                        continue
                    error = f"first row: expected each name once, got {describe(cells)}"
                elif len(cells) == len(names):
                    record = {name: cell for name, cell in zip(names, cells) if cell}
                else:
                    error = f"row: expected {len(names)} cells as in the first row, got {len(cells)}"
            place = f"{path.name}:{table.line_num}"
            if names is None:
                raise ValueError(f"{place}: {error}")
            yield Line(table.line_num, record, error and f"{place}: {error}")


def as_time(value: object) -> datetime | None:
    """Return a value as a time in UTC: ISO 8601 (UTC unless it says otherwise) or milliseconds since 1970.

    Return None for anything else, and for a time before 2000.
    """
    try:
        if isinstance(value, int) or (isinstance(value, str) and value.isdecimal()):
            time = EPOCH + timedelta(milliseconds=int(value))
        else:
            time = parse_time(value)
    except (ValueError, OverflowError):
        return None
    return time if time >= _EARLIEST else None


def as_name(value: object) -> str:
    """Return an id as text, a whole number by its digits; "" unless it has 1 to MAX_NAME characters, none of them a
    control character.
    """
    if isinstance(value, int) and not isinstance(value, bool):
        value = str(value)
    valid = isinstance(value, str) and len(value) <= MAX_NAME and not UNPRINTABLE.search(value)
    return value if isinstance(value, str) and valid else ""


def as_position(value: object) -> float:
    """Return a value as a position in a list; infinity if it is not a finite number."""
    if isinstance(value, str | int | float) and not isinstance(value, bool):
        try:
            number = float(value)
        except (ValueError, OverflowError):
            return math.inf
        return number if math.isfinite(number) else math.inf
    return math.inf


def first(*values: object) -> object:
    """Return the first value that is not None; None if there is none."""
    return next((value for value in values if value is not None), None)


def _json(value: object) -> Any:
    """Return the value of a cell that is a JSON object or list, None if malformed; any other cell unchanged."""
    if isinstance(value, str) and value[:1] in ("[", "{"):
        try:
            return msgspec.json.decode(value)
        except (ValueError, RecursionError):
            return None
    return value


def as_object(value: object) -> dict[str, Any]:
    """Return a value that is a JSON object, or text of one, as a dictionary; {} for anything else."""
    value = _json(value)
    return value if isinstance(value, dict) else {}


def as_hits(value: object) -> list[str]:
    """Return the ids of the hits (results) of a query in order, "" for a hit without a valid one.

    `value` is a list, a JSON text of one, a text of ids separated by commas (CSV), or a single id, which OpenSearch
    treats as a list.
    """
    value = _json(value)
    if isinstance(value, str):
        value = [part.strip() for part in value.split(",")]
    if not isinstance(value, list):
        value = [value] if as_name(value) else []
    return [as_name(hit) for hit in value]


def as_context(user_query: object, attributes: dict[str, Any]) -> dict[str, Any]:
    """Return a query as a context: its text `user_query`, as "query", and those of its `attributes` that are texts,
    numbers or truth values, sorted by name.
    """
    context = {key: attributes[key] for key in sorted(attributes) if _is_scalar(attributes[key])}
    return context | ({"query": user_query} if isinstance(user_query, str) and user_query else {})


def _is_scalar(value: object) -> bool:
    return isinstance(value, str | float) or (isinstance(value, int) and abs(value) < 2**53)


def is_bulk(row: dict[str, Any]) -> bool:
    """Return True if a row is an action line of OpenSearch's bulk interface rather than a document."""
    return len(row) == 1 and not row.keys().isdisjoint({"index", "create"})
