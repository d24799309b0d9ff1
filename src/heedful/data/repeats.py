"""Which rows of a file are the same answer: one rule for every format.

- An id of the answer decides. Rows with the same id, of the same person and about the same things, are versions of one
  answer, and the newest counts: by its version or its time, otherwise the one that stands last.
- Without an id, a person and a time of day decide: such rows are one answer if they are alike in every cell.
- Rows that have neither are answers of their own, however alike they are.

A column that is just called `id` (MAYBE_IDS) may be about something else, such as prompts. It is that of the answer
where nothing speaks against it: where rows with the same id always say the same; or where a column of persons and one
of versions say whose and which version each row is.
"""

from __future__ import annotations

import math
import re
from array import array
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from hashlib import blake2b
from itertools import chain
from typing import Any, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from heedful.core.times import parse_time
from heedful.data.files import cell_number
from heedful.data.roles import NAMES, plain
from heedful.data.table import CodedColumn, Table, take_rows

Bools = npt.NDArray[np.bool_]
Ints = npt.NDArray[np.int64]
Array = npt.NDArray[np.float64]

ANSWER_IDS = (
    *("annotationid", "answerid", "voteid", "battleid", "judgementid", "judgmentid", "ratingid", "scoreid"),
    *("feedbackid", "eventid"),
)
"""Names of columns, apart from case and punctuation, that hold the id of an answer."""
MAYBE_IDS = ("id", "uuid")
"""Names of columns whose ids may also be those of something else."""
VERSIONS = ("version", "revision", "updatedat", "updated", "lastupdated", "lastupdatedat", "modifiedat", "lastmodified")
"""Names of columns that say which of several versions of an answer is the newest."""
TIMES = ("createdat", "submittedat", "annotatedat", "answeredat", "completedat", "timestamp", "tstamp", "time", "date")
"""Names of columns that say when an answer was given."""
SUBJECTS = ("item", "ballot", "action")
"""Roles of columns that hold what a row is about."""
SIDES = (("winner", "loser"), ("first", "second"))
"""Roles of two columns that hold the two items that a row is about, in whichever order."""

_PERSON_IDS = tuple(f"{name}id" for name in NAMES["person"])
_CLOCK = re.compile(r"\d[T ]\d?\d:\d\d|^\d{9,}(\.\d*)?$")
"""A text with a time of day, or seconds since 1970."""


class Repeats(NamedTuple):
    """How many `rows` were left out because their answer stands in another row."""

    rows: int = 0
    by: str = ""
    """the columns that tell, such as "annotation_id" """


class Identity(NamedTuple):
    """The fields of a row that tell which answer it is, by their names; None for one that it has not.

    `certain` says whether `id` is surely that of an answer."""

    id: str | None
    certain: bool
    person: str | None
    version: str | None
    time: str | None


def identity(names: Sequence[str], roles: Mapping[str, Sequence[str]] | None = None) -> Identity:
    """Return which of the columns or fields `names` tell what answer a row is.

    `roles`: columns whose meaning is known, such as {"person": ["who"]}; none of them is taken for an id or a time."""
    roles = roles or {}
    used = set(chain.from_iterable(roles.values()))
    free = [(plain(name), name) for name in names if name not in used]

    def first(words: Sequence[str]) -> str | None:
        return next((name for word in words for plain_name, name in free if plain_name == word), None)

    person = next(iter(roles.get("person", ())), None) or first(NAMES["person"]) or first(_PERSON_IDS)
    answer_id = first(ANSWER_IDS)
    return Identity(answer_id or first(MAYBE_IDS), answer_id is not None, person, first(VERSIONS), first(TIMES))


class Marks(NamedTuple):
    """What tells r rows apart, as numbers: equal numbers stand for equal values.

    All are (r,). `id`: -1 for none; `certain`: whether it is surely that of an answer; `person`, `subject`,
    `statement`: whose it is, what it is about, and what it says; `version`: higher for newer ones; `dated`: whether
    person and version are both there; `content`: the row as a whole, -1 where it has no person with a time of day."""

    id: Ints
    certain: Bools
    person: Ints
    subject: Ints
    statement: Ints
    version: Array
    dated: Bools
    content: Ints


def newest(marks: Marks) -> tuple[Bools, Bools]:
    """Return which of r rows count (r,), and which have an id that decides (r,).

    Of rows that are the same answer the newest counts; of those that are equally new, the last."""
    by_id = (marks.id >= 0) & (marks.certain | _speaks_for(marks))
    counted = np.ones(by_id.size, bool)
    by_whole = ~by_id & (marks.content >= 0)
    for which, columns in ((by_id, (marks.id, marks.person, marks.subject)), (by_whole, (marks.content,))):
        rows = np.flatnonzero(which)
        if rows.size:
            answer = groups([column[rows] for column in columns])
            order = np.lexsort((rows, marks.version[rows], answer))
            counted[rows[order[:-1][answer[order][1:] == answer[order][:-1]]]] = False
    return counted, by_id


def _speaks_for(marks: Marks) -> Bools:
    """Return for which rows (r,) an id that may be about something else is that of the answer."""
    maybe = (marks.id >= 0) & ~marks.certain
    rows = np.flatnonzero(maybe)
    if not rows.size:
        return maybe
    answers = groups([column[rows] for column in (marks.person, marks.subject, marks.statement)])
    _, first, which = np.unique(marks.id[rows], return_index=True, return_inverse=True)
    return maybe if (answers == answers[first[which]]).all() else maybe & marks.dated


def groups(columns: Sequence[Ints]) -> Ints:
    """Return a number for each of r rows, from 0: the same for rows in which all `columns`, each (r,), are equal."""
    numbers = np.zeros(columns[0].size, np.int64)
    for column in columns:
        values, which = np.unique(column, return_inverse=True)
        _, numbers = np.unique(numbers * max(values.size, 1) + which, return_inverse=True)
    return numbers


# ---------------------------------------------------------------------------- records


class Answer(NamedTuple):
    """One row of a file that is read record by record: its `fields` that tell which answer it is, with their values.

    `subject` is what the row is about, `statement` what it says; both are anything that JSON can hold."""

    fields: Identity
    id: str | None
    person: str | None
    version: object
    time: object
    subject: object
    statement: object

    @property
    def by(self) -> str:
        """in words, what tells that this is the same answer as another"""
        return str(self.fields.id) if self.id is not None else f"{self.fields.person} and {self.fields.time}"


def answer_of(record: Mapping[str, object], subject: object, statement: object, *, certain: bool = False) -> Answer:
    """Return which answer a `record` is, a `statement` about `subject`; `certain`: its id is surely an answer's."""
    fields = _identity(tuple(record))
    fields = fields._replace(certain=fields.certain or certain)
    id, person, version, time = (
        None if name is None or record[name] == "" else record[name]
        for name in (fields.id, fields.person, fields.version, fields.time)
    )
    id, person = (None if value is None else str(value) for value in (id, person))
    return Answer(fields, id, person, version, time, subject, statement)


@cache
def _identity(names: tuple[str, ...]) -> Identity:
    return identity(names)


def newest_answers(answers: Iterable[Answer]) -> tuple[Bools, Bools, Bools]:
    """Return which of r rows `answers` count, by the rule of `newest`: (those that count, those with an id that
    decides, those whose id stands in another row that counts, too), each (r,).

    They are held as a few numbers each, so that there may be millions."""
    numbers = [array("q") for _ in range(5)]
    marked: list[object] = []
    certain, dated = bytearray(), bytearray()
    for answer in answers:
        clocked = answer.person is not None and has_clock(answer.time)
        values = (answer.id, answer.person, answer.subject, answer.statement, [*answer[1:]] if clocked else None)
        for column, value in zip(numbers, values):
            column.append(-1 if value is None else _number(value))
        certain.append(answer.fields.certain)
        dated.append(answer.person is not None and answer.version is not None)
        marked.append(answer.time if answer.version is None else answer.version)
    id, person, subject, statement, content = (np.array(column, np.int64) for column in numbers)
    sure, versioned = (np.frombuffer(bytes(flags), np.uint8).astype(bool) for flags in (certain, dated))
    counted, by_id = newest(Marks(id, sure, person, subject, statement, versions(marked), versioned, content))
    _, which, often = np.unique(id[counted], return_inverse=True, return_counts=True)
    several = np.zeros(id.size, bool)
    several[counted] = (often[which] > 1) & (id[counted] >= 0)
    return counted, by_id, several


def _number(value: object) -> int:
    return int.from_bytes(blake2b(msgspec.json.encode(value), digest_size=8).digest()) >> 1


# ---------------------------------------------------------------------------- tables


def newest_rows(table: Table, roles: Mapping[str, Sequence[str]]) -> tuple[Table, Repeats]:
    """Return the rows of `table` that count, and how many were left out as the same answer again.

    `roles` are the columns of its answers by role, such as {"winner": ["better"], "person": ["who"]}. What a row is
    about is in the columns of SUBJECTS, or in both of two SIDES; what it says is in the other columns of a role."""
    fields = identity(table.header, roles)
    if fields.id is None and (fields.person is None or fields.time is None):
        return table, Repeats()
    names = [name for name in (fields.id, fields.person, fields.version, fields.time) if name is not None]
    names += [name for columns in roles.values() for name in columns if name not in names]
    if fields.id is not None:
        [ids] = table.columns([fields.id])
        if len(ids.values) == ids.codes.size and None not in ids.values:
            return table, Repeats()  # each row has an id of its own
    if fields.person is not None and fields.time is not None:
        when = groups([_codes(column) for column in table.columns([fields.person, fields.time])])
        if fields.id is None and int(when.max()) + 1 == when.size:
            return table, Repeats()  # nobody answered twice at one time
        names = [*names, *(name for name in table.header if name not in names)]
    counted, by_id = newest(_marks(dict(zip(names, table.columns(names))), fields, roles))
    if counted.all():
        return table, Repeats()
    by = [str(fields.id)] if (by_id & ~counted).any() else []
    by += [f"{fields.person} and {fields.time}"] if (~by_id & ~counted).any() else []
    return take_rows(table, counted), Repeats(int((~counted).sum()), " or ".join(by))


def _marks(columns: Mapping[str, CodedColumn], fields: Identity, roles: Mapping[str, Sequence[str]]) -> Marks:
    """Return what tells the rows of a table apart, of which these are the `columns` that matter, by name."""
    codes = {name: _codes(column) for name, column in columns.items()}
    rows = next(iter(codes.values())).size
    empty = np.full(rows, -1, np.int64)
    subject, statement = [empty], [empty]
    for role, names in roles.items():
        if role != "person":
            (subject if role in SUBJECTS else statement).extend(codes[name] for name in names)
    for pair in SIDES:
        if set(pair) <= roles.keys():
            one, two = _numbered([columns[roles[role][0]] for role in pair])
            subject += [np.minimum(one, two), np.maximum(one, two)]
    person = empty if fields.person is None else codes[fields.person]
    named = person >= 0
    version = _versions(columns, fields.version or fields.time)
    dated = named & (np.zeros(rows, bool) if fields.version is None else codes[fields.version] >= 0)
    content = empty
    if fields.person is not None and fields.time is not None:
        clock = np.array([has_clock(value) for value in columns[fields.time].values], bool)[columns[fields.time].codes]
        content = np.where(named & clock, groups(list(codes.values())), -1)
    id = empty if fields.id is None else codes[fields.id]
    return Marks(id, np.full(rows, fields.certain), person, groups(subject), groups(statement), version, dated, content)


def _codes(column: CodedColumn) -> Ints:
    """Return a number for each cell of a column, the same for equal ones, also for lists; -1 for an empty one."""
    return _numbered([column])[0]


def _numbered(columns: Sequence[CodedColumn]) -> list[Ints]:
    """Return a number for each cell of several columns, the same for equal values; -1 for an empty cell."""
    numbers: dict[Any, int] = {None: -1}
    return [
        np.array([numbers.setdefault(_key(value), len(numbers)) for value in column.values], np.int64)[column.codes]
        for column in columns
    ]


def _key(value: object) -> object:
    return value if value is None or isinstance(value, str) else f"{type(value).__name__} {value!r}"


def _versions(columns: Mapping[str, CodedColumn], name: str | None) -> Array:
    if name is None:
        return np.zeros(next(iter(columns.values())).codes.size)
    column = columns[name]
    return versions(column.values)[column.codes]


def versions(values: Sequence[object]) -> Array:
    """Return v versions or times as numbers that rise with them (v,); 0 for all if one of them is neither a number nor
    a time. An empty one is the oldest."""
    moments = [-np.inf if value is None or value == "" else _moment(value) for value in values]
    return np.zeros(len(moments)) if None in moments else np.array(moments, np.float64)


def _moment(value: object) -> float | None:
    number = cell_number(value)
    if number is not None and math.isfinite(number):
        return number
    try:
        return parse_time(str(value)).timestamp()
    except ValueError:
        return None


def has_clock(value: object) -> bool:
    """Return whether a time says more than a day: a time of day, or seconds since 1970."""
    return value is not None and not isinstance(value, bool) and _CLOCK.search(str(value)) is not None
