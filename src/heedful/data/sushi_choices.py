"""Loads comparisons of ten sushi, with features of items and people, as in [H12]."""

from os import PathLike
from pathlib import Path

import numpy as np

from heedful.data.files import existing_or_gz
from heedful.data.pairwise_dataset import PairwiseDataset, all_pairs, numbers_of, one_hot
from heedful.data.sushi import load_sushi

PEOPLE_COLUMNS = (1, 2, 7, 8, 9)
"""The columns of sushi3.udata that [H12] uses: gender and age, and the prefecture, region and half of Japan where a
person lives."""


def load_sushi_choices(folder: str | PathLike[str], *, labels: str = "right") -> PairwiseDataset:
    """Load the orders of set A, sushi3.idata and sushi3.udata: 5,000 people, 10 items.

    The kinds among the features (style, major and minor group) are a 0 or 1 each, so are those of people. With
    `labels="published"` only salmon roe has the features of salmon, see `load_sushi`: the answers are the same.
    Errors as of `load_sushi`.
    """
    orders, names, known = load_sushi(folder, "a", labels=labels)
    path = existing_or_gz(Path(folder) / "sushi3.udata")
    told = numbers_of(path, 11)
    if len(told) != len(orders):
        raise ValueError(f"{path.name}: people: expected {len(orders)}, as there are orders, got {len(told)}")
    place = orders.argsort(axis=1)
    a, b = all_pairs(names.size).T
    style, major, minor = known[:, :3].T
    features = np.column_stack([style == 1, style != 1, major == 1, major != 1, one_hot(minor), known[:, 3:]]).astype(
        np.float64
    )
    people = np.column_stack([one_hot(told[:, j]) for j in PEOPLE_COLUMNS])
    return PairwiseDataset(names, features, people, all_pairs(names.size), place[:, a] < place[:, b])
