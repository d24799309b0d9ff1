"""Find the files of the data sets that the papers' figures need, and load those of comparisons.

A data set has a key, called its `world` in a figure: one of `panels.WORLDS`, such as `panels.WEB`.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from heedful.core.paths import path_kind
from heedful.papers.panels import (
    BOOKS,
    CHAINS,
    ELECTION,
    JESTER,
    JURA,
    MOVIE_CHOICES,
    MOVIES,
    MOVIES_100K,
    SUSHI,
    SYNTHETIC_CHOICES,
    WEB,
)

if TYPE_CHECKING:
    from heedful.data.movielens import Ratings
    from heedful.data.pairwise_dataset import PairwiseDataset

FOLDERS = {
    WEB: ("letor4-mq2008", "MQ2008"),
    MOVIES: ("movielens-1m", "ml-1m"),
    CHAINS: ("trec-session-2012", "trec-session-2013", "trec-session"),
    BOOKS: ("book-crossing-subset", "book-crossing"),
    MOVIES_100K: ("movielens-100k", "ml-100k"),
    JESTER: ("jester-1", "jester"),
    SYNTHETIC_CHOICES: ("cgp-synthetic",),
    SUSHI: ("sushi",),
    MOVIE_CHOICES: ("movielens-1m", "ml-1m"),
    ELECTION: ("uk-election-2010",),
    JURA: ("jura",),
}
"""For each data set, by key, the folders under the data folder in which its files are searched, first the one that
docs/data.md names; the data folder itself is searched last."""
FILES = {
    WEB: ("S1.txt", "S2.txt", "S3.txt", "S4.txt", "S5.txt"),
    MOVIES: ("ratings.dat",),
    CHAINS: ("sessiontrack2012.xml", "qrels.2012.txt"),
    BOOKS: ("BX-Book-Ratings.subset.csv",),
    MOVIES_100K: ("u.data",),
    JESTER: ("jester-data-1.csv",),
    SYNTHETIC_CHOICES: ("itemFeatures.txt", "userFeatures.txt", "dataset.txt"),
    SUSHI: ("sushi3a.5000.10.order", "sushi3.idata", "sushi3.udata"),
    MOVIE_CHOICES: ("ratings.dat", "users.dat"),
    ELECTION: ("all_polling_data.dat",),
    JURA: ("jura.dat",),
}
"""for each data set, by key, its files, in the order that its loader expects"""
EDITIONS = {CHAINS: (FILES[CHAINS], ("sessiontrack2013.xml", "qrels.2013.txt"))}
"""The files of each year of a data set that has several years: one year is enough, and all that are present are
used."""


def files_of(world: str, data: Path) -> list[Path]:
    """Return the files of the data set with the key `world`, in its folder under `data` or in `data` itself, plain or
    gzip; [] if one is missing.

    If a data set has editions of several years, the files of each year that is present are returned, in order.
    """
    places = (*(data / folder for folder in FOLDERS[world]), data)
    return [file for names in EDITIONS.get(world, (FILES[world],)) for file in _complete(names, places)]


def _complete(names: Sequence[str], places: Sequence[Path]) -> list[Path]:
    """Return the files `names` in the first of the folders `places` that has all of them, plain or gzip; [] if none
    has."""
    for place in places:
        versions = [
            [file for file in (place / name, place / f"{name}.gz") if path_kind(file) == "file"] for name in names
        ]
        if all(versions):
            return [files[0] for files in versions]
    return []


def missing_files(world: str, data: Path) -> str:
    """Return in words which folders under `data` and which files `files_of` looked for, for the data set with the key
    `world`."""
    folders = _join((*FOLDERS[world], "the folder itself"))
    files = ", or ".join(map(_join, EDITIONS.get(world, (FILES[world],))))
    return f"no {FOLDERS[world][0]} in {data}: looked in {folders} for {files}, plain or .gz"


def _join(names: Sequence[str]) -> str:
    *more, last = names
    return f"{', '.join(more)} and {last}" if more else last


def load_choices(world: str, folder: Path, labels: str, ratings: Ratings | None = None) -> PairwiseDataset:
    """Load from `folder` the preference of each person on each pair of items of the data set with the key `world`: with
    `labels` "right", the correct preferences, or "published", those that were published, some of which are inverted.

    `ratings`: the ratings of MovieLens in the folder, if already read; they are used for movies.
    """
    from heedful.data import pairwise_dataset

    if world == SYNTHETIC_CHOICES:
        return pairwise_dataset.load_collaborative(folder)
    if world == MOVIE_CHOICES:
        return pairwise_dataset.load_movie_choices(folder, ratings, labels)
    load = {
        SUSHI: pairwise_dataset.load_sushi_choices,
        ELECTION: pairwise_dataset.load_election,
        JURA: pairwise_dataset.load_jura,
    }[world]
    return load(folder, labels)
