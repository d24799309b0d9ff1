"""A study: a loop in which people compare items two at a time, with its question and pictures in the loop's folder."""

from __future__ import annotations

import errno
import glob
import os
import re
import secrets
import shutil
import tempfile
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

import msgspec

from heedful.core.decoding import decoder
from heedful.core.validation import check_count, describe
from heedful.loop import Loop
from heedful.loop.interactions.comparison import comparison_settings
from heedful.loop.snapshots import read_own
from heedful.storage import Place
from heedful.studies.pictures import MOST, aspect_ratio, media_type
from heedful.studies.reading import NUMBER, Kind, Material

FILE, PICTURES = "study.json", "pictures"
LARGEST = 2**20
"""The most bytes of study.json."""
ASK = "Which is better?"
CONSENT = "Your answers are kept under a random name, and used for this study alone. You may stop at any time."
QUESTIONS = 20
"""The number of questions that each participant is asked, by default."""
_NUMBER = re.compile(rf"[0-9a-f]{{{NUMBER}}}")


class Study(msgspec.Struct, frozen=True, kw_only=True):
    """What participants see of a study, as it is stored in its file study.json.

    Raise ValueError, naming the field, for a value that makes no sense.
    """

    ask: str = ASK
    """the question that participants answer"""
    kind: Kind = "rows"
    """what the items are: rows of a table, pictures or texts"""
    show: tuple[str, ...] = ()
    """if the items are rows, the columns that are shown; () for all"""
    consent: str = CONSENT
    """what a participant reads before the first question"""
    questions: int = QUESTIONS
    """the number of questions that each participant is asked"""
    schema: int = 1
    """the version of the file's format"""

    def __post_init__(self) -> None:
        for name, most in (("ask", 300), ("consent", 4000)):
            value = getattr(self, name)
            if not isinstance(value, str) or not value.strip() or len(value) > most or "\0" in value:
                raise ValueError(f"{name}: expected a text of 1 to {most} characters, got {describe(value)}")
        check_count("questions", self.questions, most=10_000)


def create_study(path: Path, material: Material, study: Study, goal: Literal["best", "ranking"]) -> Loop:
    """Create a study of the items in `material` in the new folder `path` and return its loop, open.

    `study` is what participants see; `goal` says what is to be found, the best item or the whole ranking. Raise
    FileExistsError if the folder exists, and ValueError, naming the field, for invalid values. After an error there is
    no folder.
    """
    known = {name for row in material.rows for name in row}
    for column in study.show:
        if column not in known:
            raise ValueError(f"show: expected one of {', '.join(sorted(known))}, got {describe(column)}")
    # No control arm: a study does not compare learned questions with random ones.
    settings = comparison_settings(goal, control=0.0, seed=secrets.randbits(62))
    if path.exists() or path.is_symlink():
        raise FileExistsError(errno.EEXIST, "there is something of that name", str(path))
    _clear(path)
    # Made in a neighbouring folder and moved when complete, so that no crash leaves half a study.
    with tempfile.TemporaryDirectory(prefix=f".{path.name}.", suffix=".part", dir=path.parent) as folder:
        part = Path(folder) / "study"
        with Loop.create(part, encoding=material.encoding, items=material.rows, settings=settings):
            _keep_pictures(part, material)
            _write(part / FILE, msgspec.json.format(msgspec.json.encode(study)))
        part.rename(path)
    return Loop.open(path)


def update_study(path: Path, study: Study) -> None:
    """Replace what participants see of the study in the folder `path`; its answers are kept.

    So the caller may change only fields that leave the meaning of the answers as it is, such as `questions`.
    """
    _write(path / FILE, msgspec.json.format(msgspec.json.encode(study)))


def add_material(loop: Loop, material: Material) -> tuple[int, list[str]]:
    """Add the items of `material` to the study `loop`; return (how many are new or changed, names of its other items).

    The other items are those of the study that `material` does not have; they stay in it. A picture or text whose
    content is in the study already is that item, under the name that it has there. Raise ValueError if the study began
    with items of another kind (rows, pictures or texts).
    """
    kind = study_of(loop.path).kind
    if material.kind != kind:
        raise ValueError(f"SOURCE: expected {kind}, as the study began with, got {material.kind}")
    if not isinstance(loop.path, Path):
        raise ValueError("SOURCE: expected the study's folder: a loop in a database has no pictures")
    _keep_pictures(loop.path, material)
    rows = _as_before(loop, material)
    named = {loop.manifest.encoding.name_of(row) for row in rows}
    return loop.put_items(rows), [name for name in loop.items if name not in named]


def _as_before(loop: Loop, material: Material) -> list[dict[str, Any]]:
    """Return the rows of `material`, where each picture or text that the study in `loop` has already keeps its name
    there.

    The name of a file depends on the other files, and an item with two names would be compared with itself.
    """
    if material.kind == "rows":
        return material.rows
    key = "picture" if material.kind == "pictures" else "text"
    items = loop.projection.log.many(list(loop.projection.catalogue.current.values()))
    holds = {row["name"]: row.get(key) for row in (msgspec.json.decode(event.payload) for event in items)}
    now, free = {row["name"] for row in material.rows}, dict[str, list[str]]()
    for name, content in holds.items():
        if name not in now:
            free.setdefault(content, []).append(name)
    rows = []
    for row in material.rows:
        name, before = row["name"], free.get(row[key])
        rows.append(row if holds.get(name) == row[key] or not before else {**row, "name": before.pop(0)})
    return rows


def study_of(path: Place) -> Study:
    """Return what participants see of the loop in the folder `path`: its study.json, or the default study if it has
    none, as a loop in a database.

    Raise ValueError if the file is damaged.
    """
    try:
        content = read_own(path, FILE, most=LARGEST)
    except FileNotFoundError:
        return Study()
    try:
        return decoder(Study).decode(content)
    except (msgspec.MsgspecError, ValueError) as error:
        raise ValueError(f"{FILE}: expected a study as it was written, got another: {error}") from None


def picture_in(path: Place, number: str) -> tuple[bytes, str] | None:
    """Return (content, media type) of the picture `number` in a loop's folder `path`; None if there is no such
    picture."""
    if not _NUMBER.fullmatch(number):
        return None
    try:
        content = read_own(path, PICTURES, number, most=MOST)
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return None
    kind = media_type(content)
    return None if kind is None else (content, kind)


@lru_cache(maxsize=10_000)
def picture_ratio(path: Path, number: str) -> float:
    """Return width over height of the picture `number` in a loop's folder `path`; 1 if there is no such picture.

    The number is a digest of the content, so the result is cached.
    """
    found = picture_in(path, number)
    return 1.0 if found is None else aspect_ratio(found[0])


def _clear(path: Path) -> None:
    """Remove temporary folders that were left when the creation of the study `path` was interrupted."""
    for left in path.parent.glob(f".{glob.escape(path.name)}.{'[a-z0-9_]' * 8}.part"):
        shutil.rmtree(left, ignore_errors=True)


def _keep_pictures(path: Path, material: Material) -> None:
    """Copy the pictures of `material` into the study's folder `path`, each under its number, as the originals may be
    removed."""
    if not material.files:
        return
    folder = path / PICTURES
    folder.mkdir(mode=0o700, exist_ok=True)
    for number, source in material.files.items():
        if not (folder / number).exists():
            _write(folder / number, source.read_bytes())


def _write(path: Path, content: bytes) -> None:
    """Write `content` to the file `path` in one step, readable by its owner only: after an error it is as it was
    before."""
    part = path.with_name(f".{path.name}.part")
    with open(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
        file.write(content)
    os.replace(part, path)
