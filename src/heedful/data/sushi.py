"""Loader of Sushi (Kamishima, *Nantonac Collaborative Filtering*, KDD 2003): rankings of sushi by 5,000 people, with
features of items.
"""

import re
from os import PathLike
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from heedful.core.validation import describe
from heedful.data.files import existing_or_gz, is_number, numbered_lines

Ints = NDArray[np.int64]

_A = (0, 1, 2, 3, 4, 6, 7, 8, 26, 29)
_PUBLISHED = (0, 1, 2, 3, 4, 15, 7, 8, 26, 29)  # [H12] took 5, ikura, salmon roe, for salmon


LABELS = ("right", "published")


def check_labels(labels: str) -> str:
    """Return `labels` unchanged if it is "right" or "published"; else raise ValueError."""
    if labels not in LABELS:
        raise ValueError(f"labels: expected right or published, got {labels!r}")
    return labels


class Sushi(NamedTuple):
    """Rankings of the same 10 sushi by U people, one row per person, most preferred first, and features of the items.

    `orders` (U, 10): items, as indices into `names` (10,). `features` (10, 7), as README-en.txt describes them: three
    categories (style, 0 a roll; major group, 0 seafood; minor group), heaviness (0 heavy to 4 light), how often eaten
    (0 never to 3 often), price (normalised), the share of the shops that sell it."""

    orders: Ints
    names: NDArray[np.str_]
    features: NDArray[np.float64]


def load_sushi(folder: str | PathLike[str], *, labels: str = "right") -> Sushi:
    """Load rankings of sushi and features of items from a folder; files are plain or gzip.

    The numbers of the 10 items in sushi3a.5000.10.order are not those of sushi3.idata, and are translated.
    `labels="published"` takes the sixth of them for salmon (it is salmon roe), as the experiments of [H12] did.

    Raise FileNotFoundError if a file does not exist; ValueError, as `NAME:LINE: field: expected ..., got ...`, for a
    malformed line.
    """
    check_labels(labels)
    folder = Path(folder)
    names, features = _items(existing_or_gz(folder / "sushi3.idata"))
    orders = _orders(existing_or_gz(folder / "sushi3a.5000.10.order"))
    rows = list(_PUBLISHED if labels == "published" else _A)
    if max(rows) >= len(names):
        raise ValueError(f"sushi3.idata: items: expected at least {max(rows) + 1}, got {len(names)}")
    return Sushi(orders, names[rows], features[rows])


def _items(path: Path) -> tuple[NDArray[np.str_], NDArray[np.float64]]:
    names: list[str] = []
    rows: list[list[float]] = []
    for number, line in numbered_lines(path):
        fields = line.rstrip("\r\n").split("\t")
        if len(fields) != 9 or fields[0] != str(len(names)) or not all(map(is_number, fields[2:])):
            expected = f"the number {len(names)}, a name and 7 numbers, apart by tabs"
            raise ValueError(f"{path.name}:{number}: item: expected {expected}, got {describe(line.rstrip())}")
        names.append(fields[1])
        rows.append([float(field) for field in fields[2:]])
    if not names:
        raise ValueError(f"{path.name}: items: expected at least one, got none")
    return np.array(names), np.array(rows)


def _orders(path: Path) -> Ints:
    rows = []
    for number, line in numbered_lines(path):
        text = line.strip()
        if number == 1 and len(text.split()) == 2:  # the header, "10 1", which older copies do not have
            continue
        fields = text.split(" ")
        order = [int(field) for field in fields[2:] if re.fullmatch("[0-9]{1,9}", field)]
        if len(fields) != 12 or fields[:2] != ["0", "10"] or len(order) != 10:
            raise ValueError(
                f"{path.name}:{number}: order: expected 0, 10 and ten numbers of items, got {describe(text)}"
            )
        if sorted(order) != list(range(10)):
            expected = "ten different items, 0 to 9"
            raise ValueError(f"{path.name}:{number}: order: expected {expected}, got {describe(text)}")
        rows.append(order)
    if not rows:
        raise ValueError(f"{path.name}: orders: expected at least one, got none")
    return np.array(rows, np.int64)
