"""Loader of heavy metals in the soil of the Swiss Jura (Goovaerts 1997) as preferences, as in [H12]: each place
"prefers" the metal with the higher concentration.
"""

from os import PathLike
from pathlib import Path

import numpy as np

from heedful.data.files import existing_or_gz
from heedful.data.pairwise_dataset import (
    PairwiseDataset,
    all_pairs,
    check_labels,
    numbers_of,
    one_hot,
    prefers_first,
)

METALS = ("Cd", "Cu", "Pb", "Co", "Cr", "Ni", "Zn")
PLACES = (72, 316, 243, 21, 84, 313, 43, 254, 324, 264, 294, 245, 183, 167, 349, 0, 73, 259, 5, 197)
"""The 20 places that [H12] drew, as rows of the file from 0; the measurements there are the features of the metals."""


def load_jura(folder: str | PathLike[str], *, labels: str = "right", draw: int | None = None) -> PairwiseDataset:
    """Load jura.dat from a folder as preferences: places are people, metals are items; a place prefers the metal with
    the higher standardised concentration.

    Measurements in 20 places are the features of the metals, which leaves 339 people, described by their two
    coordinates, the rock and the land use. `draw`: a seed for 20 places other than those of [H12]; `labels`: "right",
    or "published" for the labels in the experiments of [H12], some of which are inverted.

    Raise FileNotFoundError if the file is missing; ValueError, as `NAME:LINE: numbers: expected ..., got ...`, for a
    malformed line.
    """
    check_labels(labels)
    path = existing_or_gz(Path(folder) / "jura.dat")
    table = numbers_of(path, 11)
    places = np.array(PLACES) if draw is None else np.random.default_rng([draw, 21]).permutation(len(table))[:20]
    if len(table) <= places.max() or len(table) < 22:
        raise ValueError(f"{path.name}: places: expected at least {max(22, places.max() + 1)}, got {len(table)}")
    spread = table[:, 4:].std(axis=0)
    if not spread.all():
        raise ValueError(
            f"{path.name}: metals: expected different amounts of each, got the same of {METALS[int(spread.argmin())]}"
        )
    measured = (table[:, 4:] - table[:, 4:].mean(axis=0)) / spread
    rest = np.setdiff1d(np.arange(len(table)), places)
    people = np.column_stack([table[:, :2], one_hot(table[:, 2]), one_hot(table[:, 3])])
    return PairwiseDataset(
        np.array(METALS), measured[places].T, people[rest], all_pairs(7), prefers_first(measured[rest], labels)
    )
