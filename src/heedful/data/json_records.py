"""Reader of records in JSON, one object each: JSON lines, a JSON list, or an object with a list in it; or in Parquet, a
part at a time. Plain or gzip."""

import gzip
import json
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any, TypeAlias

import msgspec

from heedful.core.extras import lacking
from heedful.core.validation import describe
from heedful.data.files import content_start, cut_list, first_lines, most_unpacked, open_uncompressed
from heedful.data.jsonl import AT_BYTE, json_fault, read_lines, unique_keys

MOST_BYTES = 2**30
"""The most bytes of a JSON list, or of an object with a list in it, which is read as a whole."""
LISTS = ("data", "rows", "records", "items", "results")
"""Fields of a JSON document in which its records may stand."""
AT_ONCE = 4000
"""How many rows of a Parquet file are read at a time."""

Located: TypeAlias = tuple[str, dict[str, Any]]
"""(place, record): the place is "NAME:LINE" or "NAME: record 3", for messages."""


def read_json(path: Path, inside: str) -> Iterator[Located]:
    """Yield (place, record) of each record in a file of JSON lines, a JSON list, or an object whose field `inside` is a
    list, of which a line of JSON may be one; "" stands for whichever field of a document is called as one of LISTS.

    Errors are those of `read_records`."""
    is_list = content_start(path).startswith(b"[")
    yield from (_document if is_list or _is_one_document(path) else _lines)(path, inside)


def _lines(path: Path, inside: str) -> Iterator[Located]:
    for line in read_lines(path):
        if line.record is None:
            raise ValueError(line.error)
        within = line.record.get(inside)
        if isinstance(within, list):
            yield from _numbered(f"{path.name}:{line.number}", within, inside)
        else:
            yield f"{path.name}:{line.number}", line.record


def _is_one_document(path: Path) -> bool:
    """Return whether a file that begins with { is one object on several lines, not one object a line."""
    lines = list(islice(first_lines(path), 2))
    try:
        json.loads(lines[0])
    except (ValueError, RecursionError):
        goes_on = lines[0].endswith((",", ":", "[", "{"))
        return len(lines) > 1 and (goes_on or not lines[1].startswith("{"))
    return False


def _document(path: Path, inside: str) -> Iterator[Located]:
    with open_uncompressed(path) as file:
        text = file.read(MOST_BYTES + 1)
    if len(text) > MOST_BYTES:
        raise ValueError(f"{path.name}: content: expected at most {MOST_BYTES:,} bytes in one document, got more")
    document = parse_document(path.name, text)
    if isinstance(document, dict):
        inside = inside or next((name for name in LISTS if isinstance(document.get(name), list)), LISTS[0])
        if not isinstance(document.get(inside), list):
            problem = (
                f"the fields {cut_list(sorted(document))}"
                if inside not in document
                else f"{inside} {describe(document[inside])}"
            )
            raise ValueError(f"{path.name}: {inside}: expected a list of records in it, got {problem}")
        document = document[inside]
    yield from _numbered(path.name, document, "")


def _numbered(name: str, records: list[Any], inside: str) -> Iterator[Located]:
    for i, record in enumerate(records, 1):
        place = f"{name}: {inside + ' ' if inside else ''}record {i}"
        if not isinstance(record, dict):
            raise ValueError(f"{place}: expected an object, got {describe(record)}")
        yield place, record


def parse_document(name: str, text: bytes) -> Any:
    """Return the value of a whole JSON document, called `name` in messages.

    Raise ValueError, which begins with `name` and says in which line, if it is not UTF-8 or not JSON, names a key twice
    in one object, or is nested too deep."""
    text = text.removeprefix(b"\xef\xbb\xbf")
    try:
        written = text.decode()
        msgspec.json.decode(text)  # stricter: no NaN, no half of a surrogate pair
        return json.loads(written, object_pairs_hook=unique_keys)
    except UnicodeDecodeError as error:
        broken = f"byte 0x{text[error.start]:02x} in line {_line_of(text, error.start)}"
        raise ValueError(f"{name}: text: expected UTF-8, got {broken}") from None
    except KeyError as error:
        problem = f"expected one JSON document, got a key twice: {describe(error.args[0])}"
        raise ValueError(f"{name}: json: {problem}") from None
    except RecursionError:
        raise ValueError(f"{name}: json: expected at most some hundred levels, got more") from None
    except ValueError as error:
        raise ValueError(f"{name}: json: expected one JSON document, got {_problem(text, error)}") from None


def _problem(text: bytes, error: ValueError) -> str:
    """Return what `error` says is wrong with a document and, where that is known, in which line."""
    if place := AT_BYTE.match(str(error)):
        return f"{json_fault(place[1])} in line {_line_of(text, int(place[2]))}"
    if "truncated" not in str(error):
        return str(error)
    try:
        json.loads(text)
    except ValueError:
        return f"one that ends early, in line {_line_of(text, len(text))}"
    return "half a surrogate pair in a text"


def _line_of(text: bytes, offset: int) -> int:
    """Return the number, from 1, of the line with the byte at this index."""
    return text.count(b"\n", 0, offset) + 1


def read_parquet(path: Path) -> Iterator[Located]:
    """Yield (place, record) of each row of a Parquet file, a part at a time. Errors are those of `read_batches`."""
    i = 0
    for batch in read_batches(path):
        for row in _rows(path.name, batch, i):
            i += 1
            yield f"{path.name}: row {i}", row


def read_batches(path: Path) -> Iterator[Any]:
    """Yield the rows of a Parquet file, plain or gzip, as record batches of pyarrow.

    Raise ModuleNotFoundError, with the command that installs it, if pyarrow is missing, and ValueError, with the file's
    name, if it is damaged, has a name twice or no rows, or if far more comes of it than anybody writes into so small a
    file."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ModuleNotFoundError:
        problem = lacking(f"{path.name}: reading Parquet", "pyarrow", "parquet")
        raise ModuleNotFoundError(problem, name="pyarrow") from None
    with open_uncompressed(path) as file:
        zipped = isinstance(file.raw, gzip.GzipFile)
        source = pyarrow.BufferReader(file.read()) if zipped else path
    most, unpacked = most_unpacked(path), 0
    too_much = f"{path.name}: content: expected at most {most:,} bytes of it, got more"
    try:
        with pyarrow.parquet.ParquetFile(source) as parquet:
            name, times = (
                Counter(parquet.schema_arrow.names).most_common(1)[0] if parquet.schema_arrow.names else ("", 1)
            )
            if times > 1:
                raise ValueError(f"{path.name}: columns: expected each name once, got {describe(name)} {times} times")
            about = parquet.metadata
            if about.num_rows == 0:
                raise ValueError(f"{path.name}: rows: expected at least one, got none")
            if sum(about.row_group(i).total_byte_size for i in range(about.num_row_groups)) > most:
                raise ValueError(too_much)
            for batch in parquet.iter_batches(AT_ONCE):
                unpacked += batch.nbytes  # cells that repeat take room here, not in the file
                if unpacked > most:
                    raise ValueError(too_much)
                yield batch
    except (pyarrow.ArrowException, OSError) as error:
        problem = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise ValueError(f"{path.name}: content: expected a whole Parquet file, got {problem}") from None


def _rows(name: str, batch: Any, before: int) -> list[dict[str, Any]]:
    """Return the rows of a batch of a Parquet file, after `before` others; raise ValueError for a text that is not
    UTF-8."""
    try:
        rows: list[dict[str, Any]] = batch.to_pylist()
        return rows
    except UnicodeDecodeError:
        for i in range(batch.num_rows):
            for column in batch.column_names:
                try:
                    batch.column(column)[i].as_py()
                except UnicodeDecodeError as error:
                    broken = f"byte 0x{error.object[error.start]:02x}"
                    place = f"{name}: row {before + i + 1}: {column}"
                    raise ValueError(f"{place}: expected a text in UTF-8, got {broken}") from None
        raise
