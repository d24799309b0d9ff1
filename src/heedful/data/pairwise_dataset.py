"""Data sets in the form of [H12]: each person's preference on every pair of a few items, from votes, ratings and the
like.
"""

from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from heedful.data.files import cut_repr, is_number, numbered_lines

Array = NDArray[np.float64]
Ints = NDArray[np.int64]

LABELS = ("right", "published")
NEAREST = 10


class PairwiseDataset(NamedTuple):
    """The preferences of U people over every pair of the same I items, and features of both."""

    names: NDArray[np.str_]  # I
    features: Array  # I x d, of the items
    people: Array  # U x q, features of the people
    pairs: Ints  # P x 2, P = I (I - 1) / 2, the first item before the second
    first: NDArray[np.bool_]  # U x P, whether the first of the pair is preferred


def all_pairs(items: int) -> Ints:
    """Return all pairs of items (P x 2): (0, 1), (0, 2), ..."""
    return np.column_stack(np.triu_indices(items, 1)).astype(np.int64)


def prefers_first(values: Array, labels: str = "right") -> NDArray[np.bool_]:
    """Return whether the first item of each pair is preferred (U x P), from values (U x I) that differ within a
    row.

    "right": the higher value is preferred. "published": as the experiments of [H12] were labelled, item j before k
    where the item with the j-th lowest value has the lower number than the one with the k-th lowest: ranks were read as
    an order.
    """
    a, b = all_pairs(values.shape[1]).T
    if check_labels(labels) == "right":
        return values[:, a] > values[:, b]
    order = values.argsort(axis=1, kind="stable")
    return order[:, a] < order[:, b]


def check_labels(labels: str) -> str:
    """Check that labels are "right" or "published", and return them. Raise ValueError otherwise."""
    if labels not in LABELS:
        raise ValueError(f"labels: expected right or published, got {labels!r}")
    return labels


def impute(X: Array, nearest: int = NEAREST) -> Array:
    """Return X (n x m) with NaN filled in: the mean over the nearest rows that have a value there, else the mean of
    the column.

    The distance of rows is the mean squared difference over the columns that both have (Troyanskaya et al., Missing
    value estimation methods for DNA microarrays, 2001, as in the R package impute).
    """
    out, there = X.copy(), ~np.isnan(X)
    filled = np.where(there, X, 0.0)
    means = filled.sum(axis=0) / np.maximum(there.sum(axis=0), 1)
    for i in np.flatnonzero(~there.all(axis=1)):
        both = there & there[i]
        apart = (np.square(filled - filled[i]) * both).sum(axis=1)
        far = np.where(both.any(axis=1), apart / np.maximum(both.sum(axis=1), 1), np.inf)
        far[i] = np.inf
        near = far.argsort(kind="stable")[:nearest]
        some = there[near].sum(axis=0)
        mean = np.where(some > 0, filled[near].sum(axis=0) / np.maximum(some, 1), means)
        out[i, ~there[i]] = mean[~there[i]]
    return out


def break_ties(X: Array, rng: np.random.Generator) -> Array:
    """Return X plus noise of 1e-5: ties are put in random order, other orders do not change."""
    noisy: Array = X + 1e-5 * rng.standard_normal(X.shape)
    return noisy


def one_hot(column: NDArray[np.generic]) -> Array:
    """Return the one-hot coding of a column of categories (n,), in rising order.

    Two categories have one column: whether the category is that of the first row.
    """
    kinds = np.unique(column)
    hot = column[:, None] == (column[:1] if kinds.size == 2 else kinds)[None, :]
    numbers: Array = hot.astype(np.float64)
    return numbers


def numbers_of(path: Path, columns: int = 0) -> Array:
    """Read the numbers in a text file, separated by blanks, equally many in each line (n x columns; 0: as many as
    in the first line).

    Raise ValueError, as NAME:LINE: numbers: expected ..., got ..., for a malformed line, and for a file without
    numbers.
    """
    rows: list[list[float]] = []
    for number, line in numbered_lines(path):
        fields = line.split()
        if not fields:
            continue
        columns = columns or len(fields)
        if len(fields) != columns or not all(map(is_number, fields)):
            raise ValueError(
                f"{path.name}:{number}: numbers: expected {columns}, apart by blanks, got {cut_repr(line.strip())}"
            )
        rows.append([float(field) for field in fields])
    if not rows:
        raise ValueError(f"{path.name}: lines: expected at least one, got none")
    return np.array(rows)
