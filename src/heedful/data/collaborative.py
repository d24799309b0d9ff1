"""Loader of the synthetic data set of [H12]: 1,000 people, whose preferences derive from five utility functions that
they share, gave a noisy answer on every pair of 10 items."""

from os import PathLike
from pathlib import Path

import numpy as np

from heedful.data.files import existing_or_gz
from heedful.data.pairwise_dataset import Array, PairwiseDataset, all_pairs, numbers_of


def load_collaborative(folder: str | PathLike[str]) -> PairwiseDataset:
    """Load the synthetic data set of [H12], people's preferences on all pairs of 10 items, from itemFeatures.txt,
    userFeatures.txt and dataset.txt, plain or gzip, in a folder.

    A row of dataset.txt has the features of two items, the number of a person from 1, and 1 if the first item is
    preferred, else -1. Raise FileNotFoundError if a file is missing; ValueError, as `NAME:LINE: numbers: expected ...,
    got ...`, for a malformed line, or if not every person answered every pair once.
    """
    folder = Path(folder)
    features, people = (numbers_of(existing_or_gz(folder / name)) for name in ("itemFeatures.txt", "userFeatures.txt"))
    (n, d), U = features.shape, len(people)
    path = existing_or_gz(folder / "dataset.txt")
    table = numbers_of(path, 2 * d + 2)
    pairs = all_pairs(n)
    a, b = _items(features, table[:, :d]), _items(features, table[:, d : 2 * d])
    user, label = table[:, -2].astype(np.int64) - 1, table[:, -1]
    place = np.full((n, n), -1)
    place[pairs[:, 0], pairs[:, 1]] = np.arange(len(pairs))
    good = (a >= 0) & (b >= 0) & (user >= 0) & (user < U) & np.isin(label, (-1.0, 1.0))
    good[good] &= place[a[good], b[good]] >= 0
    if not good.all():
        expected = f"two of the {n} items, the first listed first, a person from 1 to {U}, and 1 or -1"
        raise ValueError(f"{path.name}: row {int((~good).argmax()) + 1}: expected {expected}, got others")
    where = user * len(pairs) + place[a, b]
    if np.unique(where).size != where.size or where.size != U * len(pairs):
        raise ValueError(
            f"{path.name}: rows: expected each of {len(pairs)} pairs once of each of {U} people, got others"
        )
    first = np.zeros(U * len(pairs), bool)
    first[where] = label > 0.0
    names = np.array([str(i) for i in range(1, n + 1)])
    return PairwiseDataset(names, features, people, pairs, first.reshape(U, len(pairs)))


def _items(features: Array, rows: Array) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Return for each of n `rows` (n x d) the index (n,) of the item with these `features` (items x d); -1 for none."""
    same = (rows[:, None, :] == features[None, :, :]).all(axis=2)
    return np.where(same.any(axis=1), same.argmax(axis=1), -1)
