"""Reads the material of a study: a table, a folder of pictures or of texts, or a PrefLib file."""

from __future__ import annotations

import os
import re
import stat
from collections import Counter
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal, NamedTuple

from heedful.data.files import MISSING, cut_repr
from heedful.data.preflib import SUFFIXES as PREFLIB
from heedful.data.preflib import load_preflib
from heedful.data.table import read_located_rows
from heedful.features import Encoding, encode_names
from heedful.studies.pictures import KINDS, MOST, picture_type
from heedful.studies.pictures import SUFFIXES as PICTURES

Kind = Literal["rows", "pictures", "texts"]

TEXTS = (".txt", ".md", ".text", ".html", ".htm")
LONGEST = 20_000
"""Characters of a text."""
_NAMED = re.compile("id|identifier|key|name|item|sku|title|label", re.IGNORECASE)
"""What a column that names things is called."""
THINGS = 10_000
"""That are compared, at most."""
FILES = 100_000
"""Files of a folder that are looked at."""
NUMBER = 16
"""Digits of the number of a picture, which are the first of its SHA-256."""


class LeftOut(NamedTuple):
    """A file left out of the study, and why."""

    name: str
    why: str


class Material(NamedTuple):
    """The items to compare."""

    kind: Kind
    rows: list[dict[str, Any]]
    encoding: Encoding
    files: dict[str, Path]
    """of pictures, by their numbers"""
    left_out: tuple[LeftOut, ...]


def read_material(source: Path, identifier: str | None = None) -> Material:
    """Read what `source` holds: a folder with pictures in it, else one of texts; PrefLib, whose alternatives are the
    items; or a table, `read_located_rows`, of which the column `identifier` names the items.

    A file of a folder that is no whole picture, or no text, is left out by name. FileNotFoundError where there is
    nothing; ValueError, naming what is wrong, also where fewer than two things are left to compare.
    """
    if not source.exists():
        raise FileNotFoundError(f"{source}: no such file or folder")
    if source.is_dir():
        if identifier is not None:
            raise ValueError("identifier: expected none with a folder, whose files name the items, got one")
        found = _folder(source)
    elif source.name.removesuffix(".gz").endswith(PREFLIB):
        if identifier is not None:
            raise ValueError("identifier: expected none with PrefLib, which names its alternatives, got one")
        rows = [{"name": name} for name in load_preflib(source).items]
        found = Material("rows", rows, encode_names(rows, identifier="name"), {}, ())
    else:
        found = _table(read_located_rows(source), identifier)
    if len(found.rows) < 2:
        told = "".join(f"; {each.name}: {each.why}" for each in found.left_out[:5])
        told += f"; and {len(found.left_out) - 5} more" if len(found.left_out) > 5 else ""
        raise ValueError(f"{source.name}: expected two things or more to compare, got {len(found.rows)}{told}")
    if len(found.rows) > THINGS:
        raise ValueError(f"{source.name}: expected at most {THINGS:,} things to compare, got {len(found.rows):,}")
    return found


def _table(placed: Sequence[tuple[str, dict[str, Any]]], identifier: str | None) -> Material:
    """Rows by the column that names them; by their numbers where none does. ValueError, as NAME:LINE, where a column
    is called as one that names things, and does not do it in every row."""
    rows = [row for _, row in placed]
    if identifier is None:
        called = [column for column in dict.fromkeys(key for row in rows for key in row) if _NAMED.fullmatch(column)]
        faults = [_first_nameless(placed, column) for column in called]
        if faults and all(faults):
            raise ValueError(f"{faults[0]}; --identifier picks another column")
    try:
        return Material("rows", rows, encode_names(rows, identifier=identifier), {}, ())
    except ValueError:
        if identifier is not None or not rows or any("row" in row for row in rows):
            raise
    rows = [{"row": str(i), **row} for i, row in enumerate(rows, 1)]
    return Material("rows", rows, encode_names(rows, identifier="row"), {}, ())


def _first_nameless(placed: Sequence[tuple[str, dict[str, Any]]], column: str) -> str:
    """The place of the first row without a name in the column; "" where every row has one."""
    seen = dict[str, str]()
    for where, row in placed:
        name = str(row.get(column) if row.get(column) is not None else "").strip()
        if not name:
            return f"{where}: {column}: expected a name, got nothing"
        if name in seen:
            return f"{where}: {column}: expected another name in every row, got {cut_repr(name)}, as in {seen[name]}"
        seen[name] = where
    return ""


# ---------------------------------------------------------------------------- folders


def _folder(source: Path) -> Material:
    paths = sorted(path for path in source.iterdir() if not path.name.startswith(".") and not path.is_dir())
    if len(paths) > FILES:
        raise ValueError(f"{source.name}: expected at most {FILES:,} files, got {len(paths):,}")
    pictures, texts = (sum(path.suffix.lower() in kind for path in paths) for kind in (PICTURES, TEXTS))
    return _pictures(paths) if pictures >= texts > 0 or (pictures and not texts) else _texts(paths)


def _pictures(paths: Sequence[Path]) -> Material:
    rows, files, left_out = [], dict[str, Path](), []
    names = _names(paths)
    for path in paths:
        try:
            if path.suffix.lower() not in PICTURES:
                raise ValueError(f"expected {KINDS}, got another kind of file")
            content = _read(path, MOST, f"at most {MOST // 2**20} MiB")
            picture_type(content)
        except (ValueError, OSError) as error:
            left_out.append(LeftOut(path.name, _why(error)))
            continue
        number = sha256(content).hexdigest()[:NUMBER]
        files[number] = path
        rows.append({"name": names[path], "picture": number})
    return Material("pictures", rows, encode_names(rows, identifier="name"), files, tuple(left_out))


def _texts(paths: Sequence[Path]) -> Material:
    rows, left_out = [], []
    names = _names(paths)
    for path in paths:
        try:
            if path.suffix.lower() not in TEXTS:
                raise ValueError(f"expected a text ({', '.join(TEXTS)}), got another kind of file")
            content = _read(path, 4 * LONGEST + 3, f"at most {LONGEST:,} characters")
            text = content.decode("utf-8-sig").replace("\r\n", "\n").strip()
            if not text or len(text) > LONGEST or "\0" in text:
                raise ValueError(f"expected 1 to {LONGEST:,} characters of text, got {len(text):,}")
        except UnicodeDecodeError:
            left_out.append(LeftOut(path.name, "expected UTF-8, got something else"))
            continue
        except (ValueError, OSError) as error:
            left_out.append(LeftOut(path.name, _why(error)))
            continue
        rows.append({"name": names[path], "text": text})
    return Material("texts", rows, encode_names(rows, identifier="name"), {}, tuple(left_out))


def _read(path: Path, most: int, told: str) -> bytes:
    """What is in a file of the folder. ValueError where it is a link to elsewhere, no plain file, or holds more than
    `most` bytes: what is in the folder may be from somebody else, and others are shown it."""
    # os.path.realpath, unlike Path.resolve, goes no further where a link is to itself: opening it tells of that.
    inside = Path(os.path.realpath(path.parent))
    if path.is_symlink() and inside not in Path(os.path.realpath(path)).parents:
        raise ValueError("expected a file of this folder, got a link to elsewhere")
    with open(os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0)), "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise ValueError("expected a plain file, got another kind")
        content = file.read(most + 1)
    if len(content) > most:
        raise ValueError(f"expected {told}, got more")
    return content


def _names(paths: Sequence[Path]) -> dict[Path, str]:
    """What each file is called: its name without the ending, where no other has the same. Names are told as they can
    be: bytes that are no UTF-8, and what does not print, as question marks; at most 190 characters."""
    times = Counter(path.stem for path in paths)
    found, taken = dict[Path, str](), set[str]()
    for path in paths:
        told = path.stem if times[path.stem] == 1 else path.name
        told = "".join(mark if mark.isprintable() else "?" for mark in told)[:190].strip() or "?"
        # A table of answers would not give a name like NA back.
        told = path.name if told.lower() in MISSING else told
        name, i = told, 1
        while name in taken:
            i += 1
            name = f"{told} ({i})"
        taken.add(name)
        found[path] = name
    return found


def _why(error: Exception) -> str:
    return (error.strerror or str(error)) if isinstance(error, OSError) else str(error)
