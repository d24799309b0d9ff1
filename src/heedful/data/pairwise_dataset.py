"""Data sets in the form of [H12]: the preference of each person on each pair of a few items, derived from votes,
ratings or measurements.
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
    """Preferences of U people over all P = I (I - 1) / 2 pairs of the same I items, and features of both.

    - `names` (I,): of the items.
    - `features` (I, d): d features of each item; `people` (U, q): q features of each person.
    - `pairs` (P, 2): indices of the two items, the lower one first.
    - `first` (U, P): whether the person prefers the first item of the pair."""

    names: NDArray[np.str_]  # I
    features: Array  # I x d, of the items
    people: Array  # U x q, features of the people
    pairs: Ints  # P x 2, P = I (I - 1) / 2, the first item before the second
    first: NDArray[np.bool_]  # U x P, whether the first of the pair is preferred


def all_pairs(items: int) -> Ints:
    """Return all P pairs of `items` items (P x 2), in the order (0, 1), (0, 2), ..., (1, 2), ...."""
    return np.column_stack(np.triu_indices(items, 1)).astype(np.int64)


def prefers_first(values: Array, labels: str = "right") -> NDArray[np.bool_]:
    """Return for each of U people whether they prefer the first item of each of P pairs (U x P), by their values of the
    I items.

    `values` (U x I) are distinct within a row; pairs are in the order of `all_pairs`. With `labels` "right" the item
    with the higher value is preferred. "published" reproduces the labels in the experiments of [H12], which read an
    argsort as ranks: item j is preferred to k if the item with the j-th lowest value has a lower number than the one
    with the k-th lowest."""
    a, b = all_pairs(values.shape[1]).T
    if check_labels(labels) == "right":
        return values[:, a] > values[:, b]
    order = values.argsort(axis=1, kind="stable")
    return order[:, a] < order[:, b]


def check_labels(labels: str) -> str:
    """Return `labels` unchanged if it is "right" or "published"; else raise ValueError."""
    if labels not in LABELS:
        raise ValueError(f"labels: expected right or published, got {labels!r}")
    return labels


def impute(X: Array, nearest: int = NEAREST) -> Array:
    """Return a copy of n rows of m values X (n x m) with each NaN replaced by the mean of the `nearest` rows that have
    a value there; if none of these does, by the mean of the column.

    The distance of two rows is the mean squared difference over the columns that both have (Troyanskaya et al., Missing
    value estimation methods for DNA microarrays, 2001, as in the R package impute).
    """
    out, present = X.copy(), ~np.isnan(X)
    filled = np.where(present, X, 0.0)
    means = filled.sum(axis=0) / np.maximum(present.sum(axis=0), 1)
    for i in np.flatnonzero(~present.all(axis=1)):
        both = present & present[i]
        apart = (np.square(filled - filled[i]) * both).sum(axis=1)
        far = np.where(both.any(axis=1), apart / np.maximum(both.sum(axis=1), 1), np.inf)
        far[i] = np.inf
        near = far.argsort(kind="stable")[:nearest]
        votes = present[near].sum(axis=0)
        mean = np.where(votes > 0, filled[near].sum(axis=0) / np.maximum(votes, 1), means)
        out[i, ~present[i]] = mean[~present[i]]
    return out


def break_ties(X: Array, rng: np.random.Generator) -> Array:
    """Return X plus normal noise of standard deviation 1e-5, drawn with `rng`: ties get a random order, other orders do
    not change.
    """
    noisy: Array = X + 1e-5 * rng.standard_normal(X.shape)
    return noisy


def one_hot(column: NDArray[np.generic]) -> Array:
    """Return the one-hot coding (n x c) of a `column` of n values (n,) in c categories, categories in rising order.

    Two categories give a single column: whether the category is that of the first row.
    """
    kinds = np.unique(column)
    hot = column[:, None] == (column[:1] if kinds.size == 2 else kinds)[None, :]
    numbers: Array = hot.astype(np.float64)
    return numbers


def numbers_of(path: Path, columns: int = 0) -> Array:
    """Read a text file of numbers separated by blanks, the same number in each line (n x columns).

    `columns`: how many; 0: as many as in the first line. Raise ValueError, as NAME:LINE: numbers: expected ..., got
    ..., for a malformed line, and for a file without numbers.
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
