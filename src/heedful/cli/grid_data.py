"""What a grid says of its data: whether it makes sense, what of it decides a result, and what is made of it."""

from __future__ import annotations

import functools
import glob
import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from heedful.data.ratings import RatingTable
    from heedful.experiments.run import Setting

_DATA = {"letor": list, "catalogue": str, "people": int, "ordinal": str, "ratings": str}
_ORDINAL = {"target": str, "order": list, "scale": str, "map": str, "without": list, "missing": str}
_RATINGS = {"repeats": bool, "slate": int, "warm": int, "twice": str, "densest": int, "columns": dict}
ALONE = {"ordinal": "grades", "ratings": "ratings"}
"""Who answers where grades are predicted, or things are rated: nobody's manner, so there is one."""


def known(where: str, table: Mapping[str, Any], keys: Mapping[str, type]) -> None:
    from heedful.learners.registry import did_you_mean

    for key, value in table.items():
        if key not in keys:
            raise ValueError(f"{where}: {key}: expected {', '.join(keys)}, got {key!r}{did_you_mean(key, keys)}")
        if not isinstance(value, keys[key]) or (isinstance(value, bool) and keys[key] is not bool):
            kinds = {dict: "a table", list: "a list", int: "a whole number", str: "a text", bool: "true or false"}
            wanted = kinds[keys[key]]
            raise ValueError(f"{where}: {key}: expected {wanted}, got {value!r}")


def text_of(where: str, key: str, value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{where}: {key}: expected texts, got {value!r}")
    return value


def data_of(path: Path, grid: Mapping[str, Any]) -> tuple[tuple[str, ...], dict[str, Any]]:
    """(paths of the data files, what decides the result: kind, names, sums, k or people)."""
    where, data = f"{path.name}: data", grid["data"]
    known(where, data, _DATA | (_ORDINAL if "ordinal" in data else _RATINGS if "ratings" in data else {}))
    kinds = [kind for kind in ("letor", "catalogue", *ALONE) if kind in data]
    if len(kinds) != 1:
        raise ValueError(
            f'{where}: expected letor = [...], catalogue = "...", ordinal = "..." or ratings = "...", '
            f"got {', '.join(sorted(data)) or 'neither'}"
        )
    kind = kinds[0]
    if kind in ALONE:
        for name in ("people", "k"):
            if name in data or (name == "k" and name in grid):
                raise ValueError(f"{path.name}: {name}: expected none with {kind} data")
    if kind == "ratings":
        return _rated(path, where, data)
    other, of = ("people", data) if kind == "letor" else ("k", grid)
    if kind != "ordinal" and other in of:
        raise ValueError(f"{path.name}: {other}: expected only with {'catalogue' if kind == 'letor' else 'letor'} data")
    if data.get("people", 1) < 1:
        raise ValueError(f"{where}: people: expected a whole number, 1 or more, got {data['people']}")
    files: list[Path] = []
    for pattern in data["letor"] if kind == "letor" else [data[kind]]:
        found = glob.glob(text_of(where, kind, pattern), root_dir=path.parent)
        if not found or (kind != "letor" and len(found) > 1):
            wanted = "files" if kind == "letor" else "one file"
            raise ValueError(f"{where}: {kind}: expected {wanted}, got {len(found) or 'none'} that match {pattern!r}")
        files += [path.parent / name for name in sorted(found)]
    if not files:
        raise ValueError(f"{where}: letor: expected files, got an empty list")
    sums = _sums(files)
    size: dict[str, Any] = {"k": grid.get("k", 5)} if kind == "letor" else {"people": data.get("people", 20)}
    if kind == "ordinal":
        size = {"target": "", "order": [], "scale": "standard", "map": "", "without": [], "missing": "refuse"}
        size |= {key: data[key] for key in size if key in data}
        for key in ("order", "without"):
            size[key] = [text_of(where, key, value) for value in size[key]]
    return tuple(map(str, files)), {"kind": kind, "sha256": sums} | size


def _sums(files: list[Path]) -> list[str]:
    sums = []
    for file in files:
        with file.open("rb") as content:
            sums.append(hashlib.file_digest(content, "sha256").hexdigest())
    return sums


def _rated(path: Path, where: str, data: Mapping[str, Any]) -> tuple[tuple[str, ...], dict[str, Any]]:
    """As `data_of`, of ratings: a file, all files of a folder, or a world that is drawn, which is no file."""
    from heedful.experiments.ratings import is_drawn

    name = data["ratings"]
    decided: dict[str, Any] = {"kind": "ratings", "slate": 1, "warm": 0}
    if not is_drawn(name):
        decided |= {"repeats": False, "twice": "refuse", "densest": 0, "columns": {}}
    for key in _RATINGS:
        if key in data and key not in decided:
            raise ValueError(f"{where}: {key}: expected none with {name}, which is drawn")
    decided |= {key: data[key] for key in decided if key in data}
    known(f"{where}: columns", decided.get("columns", {}), {"user": str, "item": str, "rating": str})
    for key, least in {"slate": 1, "warm": 0, "densest": 1}.items():
        if key in data and data[key] < least:
            raise ValueError(f"{where}: {key}: expected a whole number, {least} or more, got {data[key]}")
    if is_drawn(name):
        return (), decided | {"world": name}
    place = path.parent / name
    files = sorted(file for file in place.iterdir() if file.is_file()) if place.is_dir() else [place]
    return (str(place),), decided | {"sha256": _sums(files)}


def alone_setting(files: tuple[str, ...], data: Mapping[str, Any], seed: int) -> Setting:
    """What a cell of grades or ratings is computed in. ValueError as the loaders, and as the settings refuse."""
    return rated_setting(files, data, seed) if data["kind"] == "ratings" else graded_setting(files[0], data, seed)


def rated_setting(files: tuple[str, ...], data: Mapping[str, Any], seed: int) -> Setting:
    """What a cell of ratings is computed in. ValueError as the loader, and for a world there is not."""
    from heedful.experiments.ratings import rating_setting

    size = {"slate": data["slate"], "warm": data["warm"], "seeds": (seed,)}
    if "world" in data:
        return rating_setting(data["world"], **size)
    columns = (data["columns"].get("user", ""), data["columns"].get("item", ""), data["columns"].get("rating", ""))
    table = _table(files[0], columns, data["twice"], data["densest"])
    return rating_setting(table, repeats=data["repeats"], **size)


@functools.lru_cache(maxsize=1)
def _table(file: str, columns: tuple[str, str, str], twice: Any, most: int) -> RatingTable:
    from heedful.data.rating_files import open_ratings
    from heedful.data.ratings import Columns, densest

    table = open_ratings(file, Columns(*columns), twice=twice).table
    return densest(table, most, most) if most else table


def graded_setting(file: str, data: Mapping[str, Any], seed: int) -> Setting:
    """What a cell of grades is computed in. ValueError as the loader, and for a scale or map there is not."""
    from heedful.data.graded import load_graded
    from heedful.experiments.ordinal import ordinal_setting

    found = load_graded(file, data["target"], order=data["order"], without=data["without"], missing=data["missing"])
    how = {"scale": data["scale"], "features": data["map"] or "as they are"}
    return ordinal_setting(found.X, found.ranks, len(found.grades), seeds=(seed,), **how)
