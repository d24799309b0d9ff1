"""Read lines of plain or gzip text, with errors that name the place, and parse numbers and names in them."""

import gzip
import io
import math
import re
import shlex
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from heedful.core.paths import path_kind

# A decimal number and nothing else: `float` would also take nan, inf, 1_0 and the digits of other scripts.
NUMBER = r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"

_IS_NUMBER = re.compile(NUMBER)
_INFINITE = re.compile(r"[+-]?inf(?:inity)?", re.IGNORECASE)

# How a cell says that there is nothing in it, in lower case.
MISSING = frozenset({"", "na", "nan", "null"})

# What reading gzip raises when the stream ends early, is damaged, or goes on with something else.
_GZIP_ERRORS = (EOFError, gzip.BadGzipFile, zlib.error)


TEMPORARY = 86_400.0
"""After how many seconds an unfinished file counts as left by a process that was killed."""
UNZIPPED, TIMES = 2**28, 300
"""The most bytes that come of a compressed file: so many, or so many times as many as it has. Text takes a twentieth at
best."""


def most_unpacked(path: Path) -> int:
    """Return the most bytes that come of the compressed file at `path`, if somebody wrote what is in it."""
    return max(UNZIPPED, TIMES * path.stat().st_size)


class _Unzipped(gzip.GzipFile):
    """The bytes in a gzip file, of which no more are read than anybody wrote."""

    def __init__(self, file: io.BufferedReader, path: Path) -> None:
        super().__init__(fileobj=file)
        self._path, self._most = path, most_unpacked(path)

    def read(self, size: int | None = -1) -> bytes:
        """Return up to `size` bytes; raise ValueError, with the file's name, where too many came."""
        content = super().read(size)
        if self.tell() > self._most:
            expected = f"expected at most {self._most:,} bytes of it, got more: if it is meant, gunzip it first"
            raise ValueError(f"{self._path.name}: gzip: {expected}")
        return content


@contextmanager
def open_uncompressed(path: Path) -> Iterator[io.BufferedReader]:
    """Open the file at `path`, plain or gzip, and return its uncompressed bytes as a stream; a context manager.

    The first two bytes, not the name, tell whether it is gzip. Raise FileNotFoundError if there is no such file,
    IsADirectoryError if it is a folder, both with a hint what to do. While it is read, raise ValueError, with the
    file's name, if gzip data are cut off, damaged, or far more than anybody writes into so small a file."""
    try:
        file = path.open("rb")
    except FileNotFoundError:
        expected = "nothing is fetched: put it there, or name the path where it lies"
        raise FileNotFoundError(f"{path}: no such file; {expected}") from None
    except IsADirectoryError:
        if path.name.endswith(".heedful"):
            name = shlex.quote(str(path))
            ranked = f"`heedful standing {name}` ranks what people chose in it, and its page Results has their answers"
            instead = f"of choices: {ranked}; any loop: `heedful export {name} FILE`"
            raise IsADirectoryError(f"{path}: expected a file, got a loop; {instead}") from None
        raise IsADirectoryError(f"{path}: expected a file, got a folder; name a file in it") from None
    with file:
        if file.peek(2)[:2] == b"\x1f\x8b":
            with _Unzipped(file, path) as unzipped:
                try:
                    # The buffer iterates over lines in C, which gzip itself does not.
                    yield io.BufferedReader(unzipped)
                except _GZIP_ERRORS as error:
                    raise ValueError(f"{path.name}: gzip: expected a whole stream, got {error}") from None
        else:
            yield file


def content_start(path: Path) -> bytes:
    """Return the first bytes, at most 4096, that come of the file at `path`, plain or gzip, without a byte order mark
    of UTF-8 and blanks. Errors are those of `open_uncompressed`."""
    with open_uncompressed(path) as file:
        return file.peek(4096)[:4096].removeprefix(b"\xef\xbb\xbf").lstrip()


def first_lines(path: Path) -> Iterator[str]:
    """Yield the lines of a text, plain or gzip, that are not blank, without blanks around them and a byte order mark,
    at most 16 MiB of each; what is not UTF-8 is replaced. Errors are those of `open_uncompressed`."""
    with open_uncompressed(path) as file:
        while line := file.readline(2**24):
            if text := line.decode(errors="replace").removeprefix("\ufeff").strip():
                yield text


def numbered_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yield (line number from 1, line with its end) of a UTF-8 text, plain or gzip, with or without a byte order mark.

    Raise ValueError, as NAME:LINE, for bytes that are not UTF-8; other errors are those of `open_uncompressed`.
    """
    with open_uncompressed(path) as file:
        try:
            for number, line in enumerate(file, 1):
                yield number, line.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError as error:
            broken = f"byte 0x{error.object[error.start]:02x} at byte {error.start + 1} of the line"
            raise ValueError(f"{path.name}:{number}: text: expected UTF-8, got {broken}") from None


def find_unfinished(path: Path) -> list[Path]:
    """Return the files next to `path`, or where it points, that were written to take its place and did not: `mkstemp`
    named them, and their process ended before it could remove them, or has not ended yet."""
    target = path.resolve()
    named = re.compile(re.escape(target.name) + r"[a-z0-9_]{8}\.tmp")
    with suppress(OSError):
        return sorted(file for file in target.parent.iterdir() if named.fullmatch(file.name))
    return []


def is_number(text: str) -> bool:
    """Return True if the text is a decimal number and nothing else (no blanks, no "nan", no "inf")."""
    return _IS_NUMBER.fullmatch(text) is not None


def existing_or_gz(path: Path) -> Path:
    """Return the path, or the same path with ".gz" appended if only that file exists."""
    packed = path.with_name(path.name + ".gz")
    return packed if path_kind(packed) == "file" and path_kind(path) != "file" else path


def number_in(text: str) -> float | None:
    """Return the number that `text` is, without surrounding blanks, possibly infinite; NaN if it stands for a missing
    value (one of MISSING), None for any other text."""
    if is_number(text):
        return float(text)
    if text.lower() in MISSING:
        return math.nan
    return float(text) if _INFINITE.fullmatch(text) else None


def cell_number(cell: object) -> float | None:
    """Return a cell as a number, possibly infinite; NaN if it is missing, None if it is something else, also a truth
    value."""
    value = number_in(cell.strip()) if isinstance(cell, str) else math.nan if cell is None else cell
    try:
        return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
    except OverflowError:
        return math.inf


def cell_truth(cell: object) -> bool | None:
    """Return a cell as a truth value, of which 1 and 0 and texts are ones; None if it is something else."""
    if isinstance(cell, str | bool) and (text := str(cell).lower()) in ("true", "false"):
        return text == "true"
    number = cell_number(cell)
    return bool(number) if number in (0.0, 1.0) else None


def cut_list(names: Sequence[str], most: int = 8) -> str:
    """Return names as a text for a message: the first `most`, separated by commas, and how many more there are."""
    return ", ".join(names[:most]) + (f" and {len(names) - most:,} more" if len(names) > most else "")
