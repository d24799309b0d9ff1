"""MovieLens folders made up here, in the form of the real ones, and where the real ones lie."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

GENRES = ("Action", "Comedy", "Film-Noir")


def ratings_of(seed: int = 0, users: int = 24, movies: int = 30, share: float = 0.5) -> dict[tuple[int, int], int]:
    """{(user, movie): 1..5}, numbered from 1, of two hidden factors; every user and movie has some."""
    rng = np.random.default_rng(seed)
    P, Q = rng.standard_normal((users, 2)), rng.standard_normal((movies, 2))
    values = np.clip(np.floor(3.5 + P @ Q.T + 0.3 * rng.standard_normal((users, movies))), 1, 5).astype(int)
    there = rng.random((users, movies)) < share
    there[np.arange(max(users, movies)) % users, np.arange(max(users, movies)) % movies] = True
    pairs = np.argwhere(there)
    return {(int(u) + 1, int(j) + 1): int(values[u, j]) for u, j in pairs[rng.permutation(len(pairs))]}


def write_1m(folder: Path, ratings: dict[tuple[int, int], int], movies: int = 30) -> Path:
    """ratings.dat and movies.dat; the last movie's name is not ASCII."""
    names = [f"Film {j} ({1950 + j})" for j in range(1, movies)] + ["Am\xe9lie (1984) (2001)"]
    films = [f"{j}::{name}::{GENRES[j % 3]}|{GENRES[0]}" for j, name in enumerate(names, 1)]
    folder.mkdir(exist_ok=True)
    (folder / "movies.dat").write_bytes("".join(f"{line}\n" for line in films).encode("latin-1"))
    lines = [f"{u}::{j}::{r}::{1000 + u}\n" for (u, j), r in ratings.items()]
    (folder / "ratings.dat").write_text("".join(lines), newline="")
    return folder


def write_100k(folder: Path, ratings: dict[tuple[int, int], int], movies: int = 30) -> Path:
    """The same as u.data, u.item and u.genre; flags in place of names of genres."""
    folder.mkdir(exist_ok=True)
    (folder / "u.genre").write_text("".join(f"{name}|{i}\n" for i, name in enumerate(GENRES)) + "\n")
    names = [f"Film {j} ({1950 + j})" for j in range(1, movies)] + ["Am\xe9lie (1984) (2001)"]
    films = [
        f"{j}|{name}|01-Jan-1995||http://example.org/{j}|" + "|".join(str(int(i in (0, j % 3))) for i in range(3))
        for j, name in enumerate(names, 1)
    ]
    (folder / "u.item").write_bytes("".join(f"{line}\n" for line in films).encode("latin-1"))
    (folder / "u.data").write_text("".join(f"{u}\t{j}\t{r}\t{1000 + u}\n" for (u, j), r in ratings.items()), newline="")
    return folder


def shared(name: str) -> Path:
    """The folder of a real data set, or a skip that says where to put it."""
    beside = Path(__file__).resolve().parents[1] / ".." / "shared" / "data"
    folder = Path(os.environ.get("HEEDFUL_DATA") or beside) / name
    if not folder.is_dir():
        pytest.skip(f"{name} is not here: put its files into {folder}, or name the folder above in HEEDFUL_DATA")
    return folder
