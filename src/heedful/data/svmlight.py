"""Parser of lines of SVMlight files, `TARGET qid:ID INDEX:VALUE ... # comment`, for ranking files and ordinal data."""

import re
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from heedful.core.validation import describe
from heedful.data.files import NUMBER, is_number, numbered_lines

Array = NDArray[np.float64]

MAX_FEATURES = 100_000  # rows are dense: a larger index is a mistake, and would use up the memory
BLOCK = 1024  # lines parsed at once

_QID = r"[^\s#\x00-\x1f]+"


class Target(NamedTuple):
    """What each line begins with (a grade, say): a regular expression `pattern` for it, and the same in words for
    messages, `expected`."""

    pattern: str
    expected: str

    def line(self) -> re.Pattern[str]:
        """Return the pattern of a whole line, with groups target, qid and features; all are None for a blank line or a
        comment.

        A line is well-formed if and only if it matches, so the lenient number parser never sees anything else.
        """
        features = rf"(?:[ \t]+[0-9]{{1,9}}:{NUMBER})*"
        fields = rf"({self.pattern})(?:[ \t]+qid:({_QID}))?({features})"
        return re.compile(rf"[ \t]*(?:{fields})?[ \t]*(?:#.*)?\r?\n?")


class _Row(NamedTuple):
    """A well-formed line of a file: its number, its text, and the part of it with the features."""

    number: int
    text: str
    features: str  # " INDEX:VALUE INDEX:VALUE ..."


class Lines(NamedTuple):
    """The rows of an SVMlight file: for each its target, its qid, None if it has none, and the number of its line; and
    the features in `blocks` of b rows, arrays (b x largest index in the block)."""

    targets: list[str]
    qids: list[str | None]
    numbers: list[int]
    blocks: list[Array]


def read_svmlight(path: Path, limit: int, target: Target) -> Lines:
    """Read a file whose lines begin with `target`; `limit`: the greatest index. Raise ValueError, as NAME:LINE, for a
    malformed line."""
    pattern = target.line()
    read, rows = Lines([], [], [], []), list[_Row]()
    for number, text in numbered_lines(path):
        match = pattern.fullmatch(text)
        if match is None:
            raise ValueError(f"{path.name}:{number}: {_complaint(text, limit, target)}")
        value, qid, features = match.groups()
        if value is None:  # blank, or only a comment
            continue
        read.targets.append(value)
        read.qids.append(qid)
        read.numbers.append(number)
        rows.append(_Row(number, text, features))
        if len(rows) == BLOCK:
            read.blocks.append(_parse(path, rows, limit, target))
            rows.clear()
    if rows:
        read.blocks.append(_parse(path, rows, limit, target))
    return read


def _parse(path: Path, rows: list[_Row], limit: int, target: Target) -> Array:
    """Return the features of a block of lines (rows x its largest index); raise ValueError for a malformed field."""
    flat = np.fromstring("".join(row.features for row in rows).replace(":", " "), sep=" ")
    index, value = flat[::2].astype(np.int64), flat[1::2]
    row = np.repeat(np.arange(len(rows)), [line.features.count(":") for line in rows])
    previous = np.roll(index, 1)
    previous[np.diff(row, prepend=-1) > 0] = 0  # the first index of a row has none before it
    wrong = (index <= previous) | (index > limit) | ~np.isfinite(value)
    if wrong.any():
        line = rows[row[wrong.argmax()]]
        raise ValueError(f"{path.name}:{line.number}: {_complaint(line.text, limit, target)}")
    block = np.zeros((len(rows), index.max(initial=0)))
    block[row, index - 1] = value
    return block


def stack_blocks(blocks: list[Array], N: int) -> Array:
    """Return `blocks`, arrays with at most `N` columns, stacked into one array (all rows, N); missing columns are 0.

    Blocks are removed from the list, so that memory never holds two copies of all of them."""
    X = np.zeros((sum(map(len, blocks)), N))
    end = len(X)
    while blocks:
        block = blocks.pop()
        X[end - len(block) : end, : block.shape[1]] = block
        end -= len(block)
    return X


def _complaint(text: str, limit: int, target: Target) -> str:
    """Return which field of the malformed line `text` is wrong, as "field: expected ..., got ..."."""
    grade, *fields = re.split(r"[ \t]+", re.sub(r"\r?\n?\Z", "", text).partition("#")[0].strip(" \t"))
    if not re.fullmatch(target.pattern, grade):
        return f"grade: expected {target.expected}, got {describe(grade)}"
    if fields and fields[0].startswith("qid:"):
        qid = fields.pop(0)
        if not re.fullmatch("qid:" + _QID, qid):
            return f"qid: expected qid:ID, got {describe(qid)}"
    value, previous = "", 0
    for field in fields:
        index, colon, value = field.partition(":")
        if not colon:
            return f"feature: expected INDEX:VALUE, got {describe(field)}"
        if not re.fullmatch("[0-9]{1,9}", index) or not 1 <= int(index) <= limit:
            return f"feature index: expected an integer 1 to {limit}, got {describe(index)}"
        if int(index) <= previous:
            return f"feature index: expected more than the {previous} before it, got {describe(index)}"
        if not is_number(value) or not np.isfinite(float(value)):
            break
        previous = int(index)
    return f"feature value: expected a finite number, got {describe(value)}"
