"""A study: a loop in which people compare items two at a time, with its question and pictures in the loop's folder."""

from __future__ import annotations

import re
import secrets
from collections import Counter
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal, NamedTuple

import msgspec

from heedful.core.decoding import decoder
from heedful.core.paths import new_folder, replacing
from heedful.core.validation import check_count, describe
from heedful.core.wording import count
from heedful.features import Encoding
from heedful.loop import Loop
from heedful.loop.interactions.comparison import comparison_settings
from heedful.loop.snapshots import read_own
from heedful.storage import Place
from heedful.studies.answers import study_answers
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


class Study(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What participants see of a study, as it is stored in its file study.json.

    - `ask`: the question that participants answer, such as "Which is better?".
    - `kind`: what the items are: "rows" of a table, "pictures", "texts", or models by their "answers" to prompts.
    - `show`: the names of the columns that participants see, if the items are rows of a table; () for all columns.
    - `consent`: the text that a participant reads before the first question.
    - `questions`: how many questions each participant is asked.

    Raise ValueError, naming the field, for a value that makes no sense.
    """

    ask: str = ASK
    kind: Kind = "rows"
    show: tuple[str, ...] = ()
    consent: str = CONSENT
    questions: int = QUESTIONS

    def __post_init__(self) -> None:
        for name, most in (("ask", 300), ("consent", 4000)):
            value = getattr(self, name)
            if not isinstance(value, str) or not value.strip() or len(value) > most or "\0" in value:
                raise ValueError(f"{name}: expected a text of 1 to {most} characters, got {describe(value)}")
        check_count("questions", self.questions, most=10_000)


def create_study(
    path: Path,
    material: Material,
    study: Study,
    goal: Literal["best", "ranking"],
    *,
    context: Encoding | None = None,
    files: Mapping[str, bytes] | None = None,
) -> Loop:
    """Create a study of the items in `material` in the new folder `path` and return its loop, open.

    `study` is what participants see. `goal` says what the answers are to find: "best", the best item, or "ranking", the
    whole order. `context` is the encoding of what decisions keep about a question, `files` are further files of the
    folder, by name. Raise FileExistsError if the folder exists, and ValueError, naming the field, for invalid values.
    After an error there is no folder.
    """
    columns = {name for row in material.rows for name in row}
    for column in study.show:
        if column not in columns:
            raise ValueError(f"show: expected one of {', '.join(sorted(columns))}, got {describe(column)}")
    # No control arm: a study does not compare learned questions with random ones.
    settings = comparison_settings(goal, control=0.0, seed=secrets.randbits(62))
    with new_folder(path) as part:  # so that no crash leaves half a study
        Loop.create(part, encoding=material.encoding, items=material.rows, settings=settings, context=context).close()
        _keep_pictures(part, material)
        for name, content in (files or {}).items():
            write_own(part / name, content)
        update_study(part, study)
    return Loop.open(path)


def update_study(path: Path, study: Study) -> None:
    """Replace the file study.json in the folder `path` of a study, which says what participants see; their answers are
    kept.

    It is not checked that earlier answers keep their meaning: the caller changes only fields that leave it as it is,
    such as `questions`.
    """
    write_own(path / FILE, msgspec.json.format(msgspec.json.encode(study)))


class Added(NamedTuple):
    """What became of a study to which items were added: the names of those that are new, of those that people see
    otherwise than before, and of those that were not among the items added, which stay in the study."""

    new: tuple[str, ...]
    changed: tuple[str, ...]
    gone: tuple[str, ...]


def add_material(loop: Loop, material: Material, keep: bool = False) -> Added:
    """Add the items of `material` to the study `loop`; return which are new, changed, or not in `material`.

    Items that are not in `material` stay in the study. A picture or text with the content of one that the study already
    has is not added again but keeps its name in the study. Raise ValueError if the items of the study are of another
    kind (rows, pictures or texts), if the study is in a database, or if there are answers about an item that people see
    otherwise now, unless they are to `keep`: they were about what it was.
    """
    study = study_of(loop.path)
    if material.kind != study.kind:
        raise ValueError(f"SOURCE: expected {study.kind}, as the study began with, got {material.kind}")
    if not isinstance(loop.path, Path):
        raise ValueError("SOURCE: expected the study's folder: a loop in a database has no pictures")
    before, name_of = _rows_of(loop), loop.manifest.encoding.name_of
    rows = {name_of(row): row for row in _as_before(before, material)}
    shown = {name: (_shown(study, before[name]), _shown(study, rows[name])) for name in rows if name in before}
    changed = tuple([name for name, (old, now) in shown.items() if old != now])
    judged = Counter(name for answer in study_answers(loop) for name in answer.shown) if changed and not keep else {}
    if wrong := next((name for name in changed if name in judged), None):
        old, now = (describe(", ".join(texts)) for texts in shown[wrong])
        about = f"{count(judged[wrong], 'answer')} {'is' if judged[wrong] == 1 else 'are'} about what it was"
        raise ValueError(
            f"SOURCE: expected what participants judged, but {describe(wrong)} was {old}, and is {now} now; {about}: "
            "give it another name, or begin another study (--name); --keep-answers lets them stand for what it is now"
        )
    _keep_pictures(loop.path, material)
    loop.put_items(rows.values())
    new, removed = ([name for name in ones if name not in others] for ones, others in ((rows, before), (before, rows)))
    return Added(tuple(new), changed, tuple(removed))


def _rows_of(loop: Loop) -> dict[str, dict[str, Any]]:
    """Return the attributes of all items of the study `loop`, by name."""
    events = loop.projection.log.many(list(loop.projection.catalogue.current.values()))
    rows = [msgspec.json.decode(event.payload) for event in events]
    return {loop.manifest.encoding.name_of(row): row for row in rows}


def _shown(study: Study, row: Mapping[str, object]) -> tuple[str, ...]:
    """Return what people of the study see of an item with the attributes `row`."""
    columns = study.show or [name for name in row if name != "name" or study.kind == "rows"]
    return tuple([str(row[name]) for name in columns if row.get(name) is not None])


def _as_before(before: Mapping[str, Mapping[str, Any]], material: Material) -> list[dict[str, Any]]:
    """Return the rows of `material`, each picture or text that is among `before` with the name it has there."""
    if material.kind == "rows":
        return material.rows
    key = "picture" if material.kind == "pictures" else "text"
    holds = {name: str(row.get(key)) for name, row in before.items()}
    now, free = {row["name"] for row in material.rows}, dict[str, list[str]]()
    for name, content in holds.items():
        if name not in now:
            free.setdefault(content, []).append(name)
    rows = []
    for row in material.rows:
        name, others = row["name"], free.get(row[key])
        rows.append(row if holds.get(name) == row[key] or not others else {**row, "name": others.pop(0)})
    return rows


def study_of(path: Place) -> Study:
    """Return what participants see of the study in the folder `path`, from its study.json.

    Return the default `Study` if there is no such file, which is always so for a loop in a database. Raise ValueError
    if the file is damaged.
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
    """Return (content, media type) of the picture with this `number` in the folder `path` of a loop; None if there is
    none.

    The number of a picture is the beginning of the SHA-256 of its content, in hexadecimal digits.
    """
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
    """Return width over height of the picture with this `number` in the folder `path` of a loop; 1 if there is none.

    The number is the beginning of the SHA-256 of the content, so the same number always has the same result, which is
    cached.
    """
    picture = picture_in(path, number)
    return 1.0 if picture is None else aspect_ratio(picture[0])


def _keep_pictures(path: Path, material: Material) -> None:
    """Copy the pictures of `material` into the study's folder, each under its number, as originals may be removed."""
    if not material.files:
        return
    folder = path / PICTURES
    folder.mkdir(mode=0o700, exist_ok=True)
    for number, source in material.files.items():
        if not (folder / number).exists():
            write_own(folder / number, source.read_bytes())


def write_own(path: Path, content: bytes) -> None:
    """Write `content` to the file `path` in one step, readable by its owner only: after an error it is as it was
    before."""
    with replacing(path) as file:
        file.write(content)
