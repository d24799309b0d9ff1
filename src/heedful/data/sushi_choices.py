"""Loader of pairwise comparisons of ten sushi, with features of items and people, as in [H12]."""

from os import PathLike
from pathlib import Path

import numpy as np

from heedful.data.files import existing_or_gz
from heedful.data.pairwise_dataset import PairwiseDataset, all_pairs, numbers_of, one_hot
from heedful.data.sushi import load_sushi

PEOPLE_COLUMNS = (1, 2, 7, 8, 9)
"""The columns of sushi3.udata that [H12] uses: gender, age, and the prefecture, region and half of Japan where the
person lives.
"""


def load_sushi_choices(folder: str | PathLike[str], *, labels: str = "right") -> PairwiseDataset:
    """Load the rankings of the same 10 sushi by 5,000 people as pairwise preferences, with features of items and
    people.

    Categorical features (style, major and minor group of items; all of people) are one-hot. `labels="published"` gives
    salmon roe the features of salmon, as the experiments of [H12] did; the answers are the same. Errors are those of
    `load_sushi`.
    """
    orders, names, attributes = load_sushi(folder, "a", labels=labels)
    path = existing_or_gz(Path(folder) / "sushi3.udata")
    answers = numbers_of(path, 11)
    if len(answers) != len(orders):
        raise ValueError(f"{path.name}: people: expected {len(orders)}, as there are orders, got {len(answers)}")
    place = orders.argsort(axis=1)
    a, b = all_pairs(names.size).T
    style, major, minor = attributes[:, :3].T
    features = np.column_stack(
        [style == 1, style != 1, major == 1, major != 1, one_hot(minor), attributes[:, 3:]]
    ).astype(np.float64)
    people = np.column_stack([one_hot(answers[:, j]) for j in PEOPLE_COLUMNS])
    return PairwiseDataset(names, features, people, all_pairs(names.size), place[:, a] < place[:, b])
