"""Reads the items that a study compares, from a table, a folder of pictures or of texts, or a PrefLib file."""

from __future__ import annotations

import os
import re
import stat
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeVar

from heedful.core.paths import path_kind
from heedful.core.validation import describe
from heedful.data.files import MISSING
from heedful.data.preflib import SUFFIXES as PREFLIB
from heedful.data.preflib import load_preflib
from heedful.data.table import open_table
from heedful.features import Encoding, encode_names
from heedful.studies.pictures import KINDS, MOST, picture_type
from heedful.studies.pictures import SUFFIXES as PICTURES

T = TypeVar("T")
Kind = Literal["rows", "pictures", "texts", "answers"]

TEXTS = (".txt", ".md", ".text", ".html", ".htm")
LONGEST = 20_000
"""The most characters of a text."""
_NAMED = re.compile("id|identifier|key|name|item|sku|title|label", re.IGNORECASE)
"""Headings of columns that name the items."""
THINGS = 10_000
"""The most items of a study."""
FILES = 100_000
"""The most files of a folder."""
NUMBER = 16
"""The number of a picture is the first so many hexadecimal digits of its SHA-256."""


class LeftOut(NamedTuple):
    """A file that could not become an item of the study: its `name`, and `why`, the reason in words."""

    name: str
    why: str


class Material(NamedTuple):
    """What `read_material` read: the items to compare.

    - `kind`: what the items are: "rows" of a table, "pictures", "texts", or models by their "answers" to prompts.
    - `rows`: a row, from column to value, for each item: that of the table, or one with the item's name and its text or
      the number of its picture.
    - `encoding`: which column names the items, and which columns become features.
    - `files`: the file of each picture, by the picture's number; {} if there are no pictures.
    - `left_out`: the files of the folder that could not become items, with the reasons.
    """

    kind: Kind
    rows: list[dict[str, Any]]
    encoding: Encoding
    files: dict[str, Path]
    left_out: tuple[LeftOut, ...]


def read_material(source: Path, identifier: str | None = None) -> Material:
    """Read the items of a study from `source`, a folder or a file.

    A folder is read as pictures, or as texts if there are more files of texts in it. A PrefLib file names the items as
    its alternatives. Any other file is a table (see `open_table`): the column `identifier` names its items. If
    that is None, a column such as id or name is looked for, and without one the rows are numbered.

    A file of a folder that is no complete picture, or no text, goes to `left_out`. Raise FileNotFoundError if `source`
    does not exist, and ValueError, naming what is wrong, if it cannot be read or has fewer than 2 or more than 10,000
    items.
    """
    if not (kind := path_kind(source)):
        raise FileNotFoundError(f"{source}: no such file or folder")
    if kind == "folder":
        if identifier is not None:
            raise ValueError("identifier: expected none with a folder, whose files name the items, got one")
        material = _folder(source)
    elif source.name.removesuffix(".gz").endswith(PREFLIB):
        if identifier is not None:
            raise ValueError("identifier: expected none with PrefLib, which names its alternatives, got one")
        rows = [{"name": name} for name in load_preflib(source).items]
        material = Material("rows", rows, encode_names(rows, identifier="name"), {}, ())
    else:
        material = _table(open_table(source).located(), identifier)
    if len(material.rows) < 2:
        problems = "".join(f"; {file.name}: {file.why}" for file in material.left_out[:5])
        problems += f"; and {len(material.left_out) - 5} more" if len(material.left_out) > 5 else ""
        raise ValueError(f"{source.name}: expected two things or more to compare, got {len(material.rows)}{problems}")
    if len(material.rows) > THINGS:
        raise ValueError(f"{source.name}: expected at most {THINGS:,} things to compare, got {len(material.rows):,}")
    return material


def _table(placed: Sequence[tuple[str, dict[str, Any]]], identifier: str | None) -> Material:
    """Return `placed` rows as material; raise ValueError if each column of names lacks or repeats one."""
    rows = [row for _, row in placed]
    if identifier is None:
        headings = [column for column in dict.fromkeys(key for row in rows for key in row) if _NAMED.fullmatch(column)]
        faults = [_first_nameless(placed, column) for column in headings]
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
    """Return an error message for the first row whose name in `column` is missing or repeated; "" if there is none."""
    places = dict[str, str]()
    for where, row in placed:
        name = str(row.get(column) if row.get(column) is not None else "").strip()
        if not name:
            return f"{where}: {column}: expected a name, got nothing"
        if name in places:
            return f"{where}: {column}: expected another name in every row, got {describe(name)}, as in {places[name]}"
        places[name] = where
    return ""


# ---------------------------------------------------------------------------- folders


def _folder(source: Path) -> Material:
    """Read a folder: as pictures if it has at least as many files with a suffix of pictures as with one of texts."""
    paths = sorted(path for path in source.iterdir() if not path.name.startswith(".") and not path.is_dir())
    if len(paths) > FILES:
        raise ValueError(f"{source.name}: expected at most {FILES:,} files, got {len(paths):,}")
    pictures, texts = (sum(path.suffix.lower() in kind for path in paths) for kind in (PICTURES, TEXTS))
    return _pictures(paths) if pictures >= texts > 0 or (pictures and not texts) else _texts(paths)


def _pictures(paths: Sequence[Path]) -> Material:
    """Read the files at `paths`, all of one folder, as pictures; files that are no pictures go to `left_out`."""

    def read(path: Path) -> bytes:
        if path.suffix.lower() not in PICTURES:
            raise ValueError(f"expected {KINDS}, got another kind of file")
        content = read_file(path, MOST, f"at most {MOST // 2**20} MiB")
        picture_type(content)
        return content

    rows, files, left_out = [], dict[str, Path](), list[LeftOut]()
    names = _names(paths)
    for path, content in readable(paths, read, left_out):
        number = sha256(content).hexdigest()[:NUMBER]
        files[number] = path
        rows.append({"name": names[path], "picture": number})
    return Material("pictures", rows, encode_names(rows, identifier="name"), files, tuple(left_out))


def _texts(paths: Sequence[Path]) -> Material:
    """Read the files at `paths`, all of one folder, as texts; files that are no texts go to `left_out`."""

    def read(path: Path) -> str:
        text = read_text(path)
        if not text or len(text) > LONGEST or "\0" in text:
            raise ValueError(f"expected 1 to {LONGEST:,} characters of text, got {len(text):,}")
        return text

    left_out, names = list[LeftOut](), _names(paths)
    rows = [{"name": names[path], "text": text} for path, text in readable(paths, read, left_out)]
    return Material("texts", rows, encode_names(rows, identifier="name"), {}, tuple(left_out))


def readable(
    paths: Iterable[Path], read: Callable[[Path], T], left_out: list[LeftOut], within: str = ""
) -> Iterator[tuple[Path, T]]:
    """Yield (path, what `read` returns for it) for each of `paths` of which it raises no error; the others go to
    `left_out`, under their names after `within`."""
    for path in paths:
        try:
            content = read(path)
        except UnicodeDecodeError:
            left_out.append(LeftOut(f"{within}{path.name}", "expected UTF-8, got something else"))
        except (ValueError, OSError) as error:
            why = (error.strerror or str(error)) if isinstance(error, OSError) else str(error)
            left_out.append(LeftOut(f"{within}{path.name}", why))
        else:
            yield path, content


def read_text(path: Path) -> str:
    """Return the text in the file `path` of a folder. Raise ValueError, as `read_file` does and for another kind."""
    if path_kind(path) == "folder" or path.suffix.lower() not in TEXTS:
        raise ValueError(f"expected a text ({', '.join(TEXTS)}), got another kind of file")
    content = read_file(path, 4 * LONGEST + 3, f"at most {LONGEST:,} characters")
    return content.decode("utf-8-sig").replace("\r\n", "\n").strip()


def read_file(path: Path, most: int, expected: str) -> bytes:
    """Return the content of the file `path` of a folder.

    The folder may come from somebody else, and participants see what is read. So raise ValueError if the file is a link
    that leads out of the folder, is no plain file, or has more than `most` bytes. `expected` says in words what was
    expected, for the message.
    """
    # os.path.realpath, unlike Path.resolve, stops at a link to itself: opening the file then raises the error.
    inside = Path(os.path.realpath(path.parent))
    if path.is_symlink() and inside not in Path(os.path.realpath(path)).parents:
        raise ValueError("expected a file of this folder, got a link to elsewhere")
    with open(os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0)), "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise ValueError("expected a plain file, got another kind")
        content = file.read(most + 1)
    if len(content) > most:
        raise ValueError(f"expected {expected}, got more")
    return content


def _names(paths: Sequence[Path]) -> dict[Path, str]:
    """Return the name of each item, its file's stem, or whole name if stems are equal: printable and unique."""
    times = Counter(path.stem for path in paths)
    names, used = dict[Path, str](), set[str]()
    for path in paths:
        stem = path.stem if times[path.stem] == 1 else path.name
        stem = "".join(mark if mark.isprintable() else "?" for mark in stem)[:190].strip() or "?"
        # A table of answers reads a name like NA as no name.
        stem = path.name if stem.lower() in MISSING else stem
        name, i = stem, 1
        while name in used:
            i += 1
            name = f"{stem} ({i})"
        used.add(name)
        names[path] = name
    return names
