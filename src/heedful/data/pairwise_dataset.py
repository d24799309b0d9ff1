"""Data sets of [H12]: what each person prefers of every pair of a few items, from votes, ratings and the like."""

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
    """A data set with the preferences of U people over every pair of the same I items, and features of both."""

    names: NDArray[np.str_]  # I
    features: Array  # I x d, of the items
    people: Array  # U x q, features of the people
    pairs: Ints  # P x 2, P = I (I - 1) / 2, the first item before the second
    first: NDArray[np.bool_]  # U x P, whether the first of the pair is preferred


def all_pairs(items: int) -> Ints:
    """(0, 1), (0, 2), ... (P x 2)."""
    return np.column_stack(np.triu_indices(items, 1)).astype(np.int64)


def first_preferred(values: Array, labels: str = "right") -> NDArray[np.bool_]:
    """Whether the first item of every pair is preferred (U x P), of values (U x I) that are all different in a row.

    "right": by the higher value. "published": as the experiments of [H12] were labelled, item j before k where the
    item with the j-th lowest value has the lower number than the one with the k-th lowest: ranks were read as an order.
    """
    a, b = all_pairs(values.shape[1]).T
    if check_labels(labels) == "right":
        return values[:, a] > values[:, b]
    order = values.argsort(axis=1, kind="stable")
    return order[:, a] < order[:, b]


def check_labels(labels: str) -> str:
    if labels not in LABELS:
        raise ValueError(f"labels: expected right or published, got {labels!r}")
    return labels


def impute(X: Array, nearest: int = NEAREST) -> Array:
    """X (n x m) with a number for each NaN: the mean of the nearest rows that have one there, else of the column.

    Rows are as far apart as the mean square of their differences, over the columns that both have. (Troyanskaya et al.,
    Missing value estimation methods for DNA microarrays, 2001, as the R package impute has it.)
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
    """X with so little noise, 1e-5, that equal numbers are put in a random order and no others change theirs."""
    noisy: Array = X + 1e-5 * rng.standard_normal(X.shape)
    return noisy


def one_hot(column: NDArray[np.generic]) -> Array:
    """A column of kinds (n,) as a 0 or 1 for each kind, rising; of two kinds, as whether it is the first row's."""
    kinds = np.unique(column)
    hot = column[:, None] == (column[:1] if kinds.size == 2 else kinds)[None, :]
    numbers: Array = hot.astype(np.float64)
    return numbers


def numbers_of(path: Path, columns: int = 0) -> Array:
    """A text of numbers apart by blanks, as many in each line (n x columns; 0: as in the first line).

    ValueError, as NAME:LINE: numbers: expected ..., got ..., for a malformed line; also where there is none.
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
