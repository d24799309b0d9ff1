"""Loader of the 2010 general election in the United Kingdom as preferences, as in [H12]: each seat "prefers" the party
with more votes.
"""

from os import PathLike
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from heedful.data.files import cut_repr, existing_or_gz, is_number, numbered_lines
from heedful.data.pairwise_dataset import PairwiseDataset, all_pairs, break_ties, check_labels, impute, prefers_first

PARTIES = ("BNP", "Conservative", "Green", "Independent", "Labour", "Liberal Democrat", "SNP", "UKIP")
STOOD = 6
"""The least number of parties that stood in a seat, for it to be used."""
SEATS = (261, 358, 64, 355, 107, 194, 285, 541, 49, 473, 74, 557, 160, 467, 264, 458, 535, 482, 313, 504)
"""The 20 seats that [H12] drew, by their numbers in the file; their votes are the features of the parties."""


def load_election(folder: str | PathLike[str], *, labels: str = "right", draw: int | None = None) -> PairwiseDataset:
    """Load all_polling_data.dat from a folder as preferences: seats of parliament are people, parties are items, and a
    seat prefers the party with more votes.

    Only seats where at least STOOD of the 8 parties stood are used. Missing votes are imputed from the 10 nearest seats
    (a party that stood in none of these gets its overall mean: the SNP, 8,153 votes in England). The votes in 20 seats
    are the features of the parties, which leaves 264 people with the latitude and longitude of their seat. `draw`: a
    seed for 20 seats other than those of [H12]; `labels`: "right", or "published" for the labels in the experiments of
    [H12], some of which are inverted.

    Raise FileNotFoundError if the file is missing; ValueError, as `NAME:LINE: field: expected ..., got ...`, for a
    malformed line.
    """
    check_labels(labels)
    path = existing_or_gz(Path(folder) / "all_polling_data.dat")
    rows = []
    for number, line in numbered_lines(path):
        fields = line.rstrip("\r\n").split("\t")
        if len(fields) != 11 or not all(map(is_number, fields[:3])) or not all(not f or is_number(f) for f in fields):
            expected = "a number, a latitude, a longitude and 8 votes or nothing, apart by tabs"
            raise ValueError(f"{path.name}:{number}: seat: expected {expected}, got {cut_repr(line.rstrip())}")
        rows.append([float(field or "nan") for field in fields])
    if len(rows) < 22:
        raise ValueError(f"{path.name}: seats: expected at least 22, got {len(rows)}")
    table = np.array(rows)
    table = table[(~np.isnan(table[:, 3:])).sum(axis=1) >= STOOD]
    rng = np.random.default_rng([draw or 0, 20])
    votes = break_ties(impute(table[:, 3:]), rng)
    voters = _draw_voters(table[:, 0], draw, rng)
    rest = np.setdiff1d(np.arange(len(table)), voters)
    if voters.size < 20 or not rest.size:
        expected = f"the 20 that [H12] drew and others, where at least {STOOD} parties stood"
        raise ValueError(f"{path.name}: seats: expected {expected}, got {voters.size} and {rest.size}")
    return PairwiseDataset(
        np.array(PARTIES), votes[voters].T, table[rest, 1:3], all_pairs(8), prefers_first(votes[rest], labels)
    )


def _draw_voters(numbers: NDArray[np.float64], draw: int | None, rng: np.random.Generator) -> NDArray[np.int64]:
    if draw is not None:
        return rng.permutation(len(numbers))[:20].astype(np.int64)
    row_of = {int(number): i for i, number in enumerate(numbers)}
    return np.array([row_of[seat] for seat in SEATS if seat in row_of], np.int64)
