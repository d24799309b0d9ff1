"""Reader of JSON lines, one object a line, plain or gzip. A bad line is reported, not raised, so that the others can be
read.
"""

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import count
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from heedful.core.validation import describe
from heedful.data.files import open_uncompressed

MAX_BYTES = 16 * 2**20  # greatest length of a line with its end, which is held in memory
MAX_DEPTH = 64  # the object of the line is the first level

_DECODER = msgspec.json.Decoder()
AT_BYTE = re.compile(r"^JSON is malformed: (.*) \(byte ([0-9]+)\)$")
"""What msgspec says of text that is no JSON: (what is wrong, index of the byte)."""


class Line(NamedTuple):
    """A line of a JSON-lines file: its `number`, from 1, and either its object (`record`) or an `error`, NAME:LINE:
    field: expected ..., got ....
    """

    number: int  # from 1
    record: dict[str, Any] | None
    error: str | None  # NAME:LINE: field: expected ..., got ...
    size: int = 0  # its bytes, 0 if it comes from no file


def as_lines(records: Iterable[dict[str, Any]]) -> Iterator[Line]:
    """Yield `records`, which come from no file of JSON lines, as lines, numbered from 1."""
    return (Line(number, record, None) for number, record in enumerate(records, 1))


def read_lines(path: str | PathLike[str]) -> Iterator[Line]:
    """Yield the lines of a JSON-lines file (RFC 8259 texts, one a line), in constant memory; blank lines are skipped.

    A line has an `error` instead of a `record` if it is not UTF-8, not JSON, not an object, names a key twice in one
    object, holds NaN, an infinity or a number too large for a double, is nested deeper than MAX_DEPTH, or is longer
    than MAX_BYTES. A byte order mark at the beginning is skipped.

    Raise as `files.open_uncompressed` does if there is no such file. Raise ValueError if gzip data are cut off or
    damaged; no more lines come after that.
    """
    path = Path(path)
    with open_uncompressed(path) as file:
        for number in count(1):
            text = file.readline(MAX_BYTES + 1)
            if not text:
                return
            error: str | None
            record: dict[str, Any] | None
            if len(text) > MAX_BYTES:
                while text and not text.endswith(b"\n"):
                    text = file.readline(2**16)
                record, error = None, f"line: expected at most {MAX_BYTES} bytes, got more"
            else:
                if number == 1:
                    text = text.removeprefix(b"\xef\xbb\xbf")
                text = text.rstrip(b" \t\r\n")
                if not text:
                    continue
                record, error = _object(text)
            yield Line(number, record, error and f"{path.name}:{number}: {error}", len(text))


def _object(text: bytes) -> tuple[dict[str, Any] | None, str | None]:
    """Return (object, None) if the line `text` holds a JSON object, else (None, what is wrong with it)."""
    too_deep = f"json: expected at most {MAX_DEPTH} levels, got more"
    try:
        record = _DECODER.decode(text)
    except RecursionError:
        return None, too_deep
    except ValueError as problem:
        return None, _json_problem(text, problem)
    if not isinstance(record, dict):
        return None, f"line: expected one JSON object, got {describe(record)}"
    # Brackets in strings only make this count too high; then the levels are counted exactly.
    if text.count(b"{") + text.count(b"[") > MAX_DEPTH and _levels(record) > MAX_DEPTH:
        return None, too_deep
    # The decoder silently keeps the last of equal keys. Without white space every key ends in `":`, so if there are
    # no more of these than keys kept, none was lost; strings that contain it only make this count too high.
    if text.translate(None, b" \t\r\n").count(b'":') != _keys(record):
        try:
            json.loads(text, object_pairs_hook=unique_keys)
        except KeyError as problem:
            return None, f"key: expected each once, got {describe(problem.args[0])} twice"
    return record, None


def _levels(record: dict[str, Any]) -> int:
    """Return the depth to which objects and lists are nested; 1 if none contains another."""
    level: list[Any] = [record]
    levels = 0
    while level:
        levels += 1
        inside = (value.values() if type(value) is dict else value for value in level)
        level = [inner for values in inside for inner in values if type(inner) is dict or type(inner) is list]
    return levels


def _keys(record: dict[str, Any]) -> int:
    """Return how many keys an object has, nested ones included; lists that begin with no object are not searched."""
    keys = len(record)
    for value in record.values():
        if type(value) is dict:
            keys += _keys(value)
        elif type(value) is list and value and type(value[0]) is dict:
            keys += sum(_keys(inner) for inner in value if type(inner) is dict)
    return keys


def unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the object with these (key, value) pairs. Raise KeyError for a key that is repeated."""
    record = dict(pairs)
    if len(record) < len(pairs):
        raise KeyError(Counter(key for key, _ in pairs).most_common(1)[0][0])
    return record


def json_fault(problem: str) -> str:
    """Return the `problem` that msgspec has with malformed JSON as what came, to be said after "got"."""
    if problem == "object keys must be strings":
        return "a key without double quotes"
    return f"something other than {problem.removeprefix('expected ')}" if problem.startswith("expected ") else problem


def _json_problem(text: bytes, problem: ValueError) -> str:
    """Return why a line is not JSON, as "field: expected ..., got ..."."""
    try:
        text.decode()
    except UnicodeDecodeError as error:
        return f"text: expected UTF-8, got byte 0x{text[error.start]:02x} at byte {error.start + 1} of the line"
    if "out of range" in str(problem):
        return "number: expected one that a double can hold, got a larger one"
    if place := AT_BYTE.match(str(problem)):
        offset = int(place[2])
        rest = text[offset:].decode(errors="replace").rstrip()
        return f"json: expected JSON, got {json_fault(place[1])} at byte {offset + 1}: {describe(rest)}"
    return "json: expected a whole line of JSON, got one that ends early or has half a surrogate pair"
