"""Loader of SVMlight / LETOR ranking files, `GRADE qid:ID INDEX:VALUE ... # comment`, as arrays.

The format is SVMlight's (https://www.cs.cornell.edu/people/tj/svm_light/svm_rank.html) as LETOR, MSLR and Yahoo! LTRC
write it; without `qid:` it is LightGBM's, which keeps the sizes of the queries in a separate file.
"""

import re
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from heedful.core.paths import path_kind
from heedful.core.validation import describe
from heedful.data.files import numbered_lines
from heedful.data.svmlight import MAX_FEATURES, Array, Lines, Target, read_svmlight, stack_blocks

_GRADE = Target("[0-4]", "an integer 0 to 4")


class Queries(NamedTuple):
    """The documents of ranking files by query, with N features: those of query q are the rows offsets[q] to offsets[q +
    1] - 1."""

    X: Array  # rows x N, C-contiguous
    labels: NDArray[np.int64]  # rows; grades 0 (irrelevant) to 4
    offsets: NDArray[np.int64]  # n_queries + 1
    qids: NDArray[np.str_]  # n_queries


def load_letor(*paths: str | PathLike[str], n_features: int = 0) -> Queries:
    """Load ranking files (SVMlight / LETOR; plain or gzip), one after the other, as dense arrays with N features.

    Features are numbered from 1, rising within a line; one that is left out is 0. N is `n_features`, or the largest
    index in all files if that is 0; at most MAX_FEATURES. Blank lines and lines with only a comment are skipped. The
    same qid in two files is two queries.

    If lines have no `qid:`, the number of rows of each query, one a line, is read from FILE.query or FILE.group (for
    x.txt.gz also x.txt.query or x.txt.group; the first that exists), and the qids are "1", "2", ... in each file. If
    lines have it, no such file is read.

    Raise FileNotFoundError if a path does not exist. Raise ValueError, as `NAME:LINE: field: expected ..., got ...`,
    for a malformed line, a file without documents, a query in two places, counts that do not add up, gzip data that are
    cut off or bytes that are not UTF-8; without NAME:LINE for an invalid argument.
    """
    if not 0 <= n_features <= MAX_FEATURES:
        raise ValueError(f"n_features: expected 0 (the largest index) to {MAX_FEATURES}, got {n_features}")
    if not paths:
        raise ValueError("paths: expected at least one file, got none")

    blocks: list[Array] = []
    labels: list[int] = []
    sizes: list[int] = []
    qids: list[str] = []
    for path in map(Path, paths):
        read = read_svmlight(path, n_features or MAX_FEATURES, _GRADE)
        starts, rows = _starts(path, read), len(read.targets)
        if None in starts:
            counts = _counts(path, rows)
            sizes += counts
            qids += map(str, range(1, len(counts) + 1))
        else:
            sizes += np.diff([*starts.values(), rows]).tolist()
            qids += map(str, starts)
        labels += map(int, read.targets)
        blocks += read.blocks

    N = n_features or max(block.shape[1] for block in blocks)
    if N == 0:
        raise ValueError(f"{Path(paths[0]).name}: features: expected at least one INDEX:VALUE, got none")
    X = stack_blocks(blocks, N)
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    return Queries(X, np.array(labels, np.int64), offsets, np.array(qids))


def least_squares(X: Array, y: NDArray[Any]) -> Array:
    """Return the weights w (N,) of N features that minimise |X w - y|, without an intercept: the utility of [J15]
    section 6.1.1.

    `X` (rows, N): features; `y` (rows,): labels. Of several solutions it is the shortest, so identical features share
    their weight. Raise numpy.linalg.LinAlgError if the shapes do not fit.
    """
    w: Array = np.linalg.lstsq(X, y, rcond=None)[0]
    return w


def _starts(path: Path, read: Lines) -> dict[str | None, int]:
    """Return the first row of each query; raise ValueError if the rows of one are not together, or lack a qid that
    others have."""
    starts: dict[str | None, int] = {}
    for row, (qid, before) in enumerate(zip(read.qids, [None, *read.qids])):
        where = f"{path.name}:{read.numbers[row]}: qid"
        if not row or qid != before:
            if row and qid is None:
                raise ValueError(f"{where}: expected qid:ID as on the lines before, got none")
            if row and before is None:
                raise ValueError(f"{where}: expected none as on the lines before, got {describe(f'qid:{qid}')}")
            if qid in starts:
                raise ValueError(f"{where}: expected a query's lines together, got {describe(qid)} once more")
            starts[qid] = row
    if not starts:
        raise ValueError(f"{path.name}: documents: expected a line GRADE qid:ID INDEX:VALUE ..., got none")
    return starts


def _counts(path: Path, rows: int) -> list[int]:
    """Return the rows of each query, from the file next to `path`; raise ValueError unless they sum to `rows`."""
    names = [stem + end for stem in (path.name, path.name.removesuffix(".gz")) for end in (".query", ".group")]
    side = next((path.with_name(name) for name in names if path_kind(path.with_name(name))), None)
    if side is None:
        files = " or ".join(dict.fromkeys(names))
        raise ValueError(f"{path.name}: qid: expected qid:ID in every line or counts in {files}, got neither")
    counts: list[int] = []
    for number, line in numbered_lines(side):
        text = line.strip()
        if text and not re.fullmatch("0*[1-9][0-9]{0,14}", text):
            raise ValueError(f"{side.name}:{number}: count: expected an integer from 1, got {describe(text)}")
        if text:
            counts.append(int(text))
    if sum(counts) != rows:
        sums = f"{sum(counts)} in {len(counts)} lines"
        raise ValueError(f"{side.name}: counts: expected a sum of {rows}, the rows of {path.name}, got {sums}")
    return counts
