"""What a study is about, read from where it lies: a table, a folder of pictures or of texts, a file of PrefLib."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal, NamedTuple

from heedful.data.preflib import SUFFIXES as PREFLIB
from heedful.data.preflib import load_preflib
from heedful.data.table import read_table
from heedful.features import Encoding, unseen
from heedful.studies.pictures import KINDS, MOST, picture_type
from heedful.studies.pictures import SUFFIXES as PICTURES

Kind = Literal["rows", "pictures", "texts"]

TEXTS = (".txt", ".md", ".text", ".html", ".htm")
LONGEST = 20_000
"""Characters of a text."""
FILES = 100_000
"""Files of a folder that are looked at."""
NUMBER = 16
"""Digits of the number of a picture, which are the first of its SHA-256."""


class LeftOut(NamedTuple):
    """A file that the study goes on without, and why."""

    name: str
    why: str


class Material(NamedTuple):
    """What is compared."""

    kind: Kind
    rows: list[dict[str, Any]]
    encoding: Encoding
    files: dict[str, Path]
    """of pictures, by their numbers"""
    left_out: tuple[LeftOut, ...]


def read_material(source: Path, identifier: str | None = None) -> Material:
    """Read what `source` holds: a folder with pictures in it, else one of texts; PrefLib, whose alternatives are the
    items; or a table, `read_table`, of which the column `identifier` names the items.

    A file of a folder that is no whole picture, or no text, is left out by name. FileNotFoundError where there is
    nothing; ValueError, naming what is wrong, also where fewer than two things are left to compare.
    """
    if not source.exists():
        raise FileNotFoundError(f"{source}: no such file or folder")
    if source.is_dir():
        if identifier is not None:
            raise ValueError("identifier: wanted none with a folder, whose files name the items, got one")
        found = _folder(source)
    elif source.name.removesuffix(".gz").endswith(PREFLIB):
        if identifier is not None:
            raise ValueError("identifier: wanted none with PrefLib, which names its alternatives, got one")
        rows = [{"name": name} for name in load_preflib(source).items]
        found = Material("rows", rows, unseen(rows, identifier="name"), {}, ())
    else:
        found = _table(read_table(source), identifier)
    if len(found.rows) < 2:
        told = "".join(f"; {each.name}: {each.why}" for each in found.left_out[:5])
        raise ValueError(f"{source.name}: wanted two things or more to compare, got {len(found.rows)}{told}")
    return found


def _table(rows: list[dict[str, Any]], identifier: str | None) -> Material:
    """Rows by the column that names them; by their numbers where none does."""
    try:
        return Material("rows", rows, unseen(rows, identifier=identifier), {}, ())
    except ValueError:
        if identifier is not None or not rows or any("row" in row for row in rows):
            raise
    rows = [{"row": str(i), **row} for i, row in enumerate(rows, 1)]
    return Material("rows", rows, unseen(rows, identifier="row"), {}, ())


# ---------------------------------------------------------------------------- folders


def _folder(source: Path) -> Material:
    paths = sorted(path for path in source.iterdir() if not path.name.startswith(".") and path.is_file())
    if len(paths) > FILES:
        raise ValueError(f"{source.name}: wanted at most {FILES:,} files, got {len(paths):,}")
    pictures = any(path.suffix.lower() in PICTURES for path in paths)
    return _pictures(paths) if pictures else _texts(paths)


def _pictures(paths: Sequence[Path]) -> Material:
    rows, files, left_out = [], dict[str, Path](), []
    names = _names(paths)
    for path in paths:
        try:
            if path.suffix.lower() not in PICTURES:
                raise ValueError(f"wanted {KINDS}, got another kind of file")
            if (size := path.stat().st_size) > MOST:
                raise ValueError(f"wanted at most {MOST // 2**20} MiB, got {size / 2**20:.1f}")
            content = path.read_bytes()
            picture_type(content)
        except (ValueError, OSError) as error:
            left_out.append(LeftOut(path.name, _why(error)))
            continue
        number = sha256(content).hexdigest()[:NUMBER]
        files[number] = path
        rows.append({"name": names[path], "picture": number})
    return Material("pictures", rows, _named(rows), files, tuple(left_out))


def _texts(paths: Sequence[Path]) -> Material:
    rows, left_out = [], []
    names = _names(paths)
    for path in paths:
        try:
            if path.suffix.lower() not in TEXTS:
                raise ValueError(f"wanted a text ({', '.join(TEXTS)}), got another kind of file")
            if path.stat().st_size > 4 * LONGEST:
                raise ValueError(f"wanted at most {LONGEST:,} characters, got more")
            text = path.read_bytes().decode("utf-8-sig").replace("\r\n", "\n").strip()
            if not text or len(text) > LONGEST or "\0" in text:
                raise ValueError(f"wanted 1 to {LONGEST:,} characters of text, got {len(text):,}")
        except UnicodeDecodeError:
            left_out.append(LeftOut(path.name, "wanted UTF-8, got something else"))
            continue
        except (ValueError, OSError) as error:
            left_out.append(LeftOut(path.name, _why(error)))
            continue
        rows.append({"name": names[path], "text": text})
    return Material("texts", rows, _named(rows), {}, tuple(left_out))


def _named(rows: Sequence[dict[str, Any]]) -> Encoding:
    return unseen(rows, identifier="name")


def _names(paths: Sequence[Path]) -> dict[Path, str]:
    """What each file is called: its name without the ending, where no other has the same. Names are told as they can
    be: bytes that are no UTF-8, and what does not print, as question marks; at most 190 characters."""
    times = Counter(path.stem for path in paths)
    found, taken = dict[Path, str](), set[str]()
    for path in paths:
        told = path.stem if times[path.stem] == 1 else path.name
        told = "".join(mark if mark.isprintable() else "?" for mark in told)[:190].strip() or "?"
        name, i = told, 1
        while name in taken:
            i += 1
            name = f"{told} ({i})"
        taken.add(name)
        found[path] = name
    return found


def _why(error: Exception) -> str:
    return (error.strerror or str(error)) if isinstance(error, OSError) else str(error)
