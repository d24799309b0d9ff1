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

KINDS = {
    "style": "0 a roll, 1 not",
    "major": "0 seafood, 1 not",
    "minor": "0 blue-skinned fish, 1 red-meat, 2 white-meat, 3 like eel, 4 clam, 5 squid or octopus, 6 shrimp or crab, "
    "7 roe, 8 other seafood, 9 egg, 10 meat, 11 vegetables",
    "heaviness": "of taste, 0 heavy to 4 light, the mean of what people said",
    "eaten": "how often, 0 never to 3 often, the mean of what people said",
    "price": "normalised",
    "sold": "share of the shops that sell it",
}
"""The features of an item, in the order of the columns, as README-en.txt describes them."""

_A = (0, 1, 2, 3, 4, 6, 7, 8, 26, 29)
_PUBLISHED = (0, 1, 2, 3, 4, 15, 7, 8, 26, 29)  # [H12] took 5, ikura, salmon roe, for salmon


class Sushi(NamedTuple):
    """Rankings of 10 sushi each by U people, one row per person, most preferred first, and features of all I sushi.

    `orders` (U, 10): items, as indices into `names` (I,); `features` (I, 7): the columns of KINDS, of which the first
    three are categories."""

    orders: Ints  # U x 10
    names: NDArray[np.str_]  # I
    features: NDArray[np.float64]  # I x 7, the columns of KINDS; the first three are kinds and not numbers


def load_sushi(folder: str | PathLike[str], part: str = "a", *, labels: str = "right") -> Sushi:
    """Load rankings of sushi and features of items from a folder; files are plain or gzip.

    `part` "a" reads sushi3a.5000.10.order (all people rank the same 10 items), "b" reads sushi3b.5000.10.order (each
    ranks 10 of 100); both read sushi3.idata. The numbers of the 10 items are not those of sushi3.idata, and are
    translated. `labels="published"` takes the sixth of them for salmon (it is salmon roe), as the experiments of [H12]
    did.

    Raise FileNotFoundError if a file does not exist; ValueError, as `NAME:LINE: field: expected ..., got ...`, for a
    malformed line.
    """
    for name, value, possible in (("part", part, ("a", "b")), ("labels", labels, ("right", "published"))):
        if value not in possible:
            raise ValueError(f"{name}: expected {possible[0]} or {possible[1]}, got {value!r}")
    folder = Path(folder)
    names, features = _items(existing_or_gz(folder / "sushi3.idata"))
    orders = _orders(existing_or_gz(folder / f"sushi3{part}.5000.10.order"), 10 if part == "a" else len(names))
    if part == "a":
        rows = list(_PUBLISHED if labels == "published" else _A)
        if max(rows) >= len(names):
            raise ValueError(f"sushi3.idata: items: expected at least {max(rows) + 1}, got {len(names)}")
        names, features = names[rows], features[rows]
    return Sushi(orders, names, features)


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


def _orders(path: Path, items: int) -> Ints:
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
        if len(set(order)) < 10 or max(order) >= items:
            expected = f"ten different items, 0 to {items - 1}"
            raise ValueError(f"{path.name}:{number}: order: expected {expected}, got {describe(text)}")
        rows.append(order)
    if not rows:
        raise ValueError(f"{path.name}: orders: expected at least one, got none")
    return np.array(rows, np.int64)
