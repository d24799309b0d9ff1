"""Grids of runs: a TOML file as cells, each of which is computed once and kept in a file of its own.

    data = {letor = ["letor4-mq2008/S*.txt.gz"]}     # or {catalogue = "items.csv", people = 20}
    users = ["strict:alpha=0.5", "noisy:depth=10"]
    seeds = 5                                        # 0 to 4
    rounds = 784                                     # default: one pass over the queries, or 100 items
    k = 5                                            # rankings: positions that count

    [[learners]]
    name = "second-order"
    gamma = [0.1, 1, 10]                             # a list stands for each of its values

Grades: data = {ordinal = "films.csv", target = "rating", scale = "unit"} (also order, map, without, missing), no users,
and constant-rank among the learners whether or not it is named.

A cell is one learner with one person's manner on one seed. Its file is named by a hash of all that decides the
result: what the grid says of it, the sums of the data files, the source of the learner, the version of heedful.
"""

from __future__ import annotations

import glob
import hashlib
import inspect
import itertools
import json
import os
import tempfile
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from heedful import __version__

if TYPE_CHECKING:
    from heedful.experiment import Setting

_KEYS = {"data": dict, "users": list, "learners": list, "seeds": int, "rounds": int, "k": int}
_DATA = {"letor": list, "catalogue": str, "people": int, "ordinal": str}
_ORDINAL = {"target": str, "order": list, "scale": str, "map": str, "without": list, "missing": str}
GRADER = "grades"
"""Who answers where grades are predicted: nobody's manner, so there is one."""
_RESULT = {"rounds": int, "checkpoints": list, "regret": list, "stderr": list, "rounds_per_second": float}


class Cell(NamedTuple):
    """One learner, one user, one seed; `spec` is everything that decides the result, as JSON."""

    spec: dict[str, Any]
    files: tuple[str, ...]  # where the data lie, which decides nothing
    learner: str  # the name to load it by, which may hold a path
    seeds: tuple[int, ...]  # all those of the grid

    @property
    def name(self) -> str:
        """The name of its file: a hash of the spec."""
        return hashlib.sha256(json.dumps(self.spec, sort_keys=True).encode()).hexdigest()[:32] + ".json"


# ---------------------------------------------------------------------------- from TOML to cells


def read_grid(path: Path) -> list[Cell]:
    """The cells of a grid, by user. Paths in it are relative to its own folder.

    ValueError, naming the key, for a grid that says something unknown or nothing; OSError for a file that cannot be
    read.
    """
    with path.open("rb") as file:
        try:
            grid = tomllib.load(file)
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise ValueError(f"{path.name}: wanted TOML, got {error}") from None
    _known(path.name, grid, _KEYS)
    graded = "ordinal" in grid.get("data", {})
    if graded and "users" in grid:
        raise ValueError(f"{path.name}: users: wanted none with ordinal data, got {grid['users']!r}")
    for key in ("data", "learners") if graded else ("data", "users", "learners"):
        if not grid.get(key):
            raise ValueError(f"{path.name}: {key}: wanted something, got nothing")
    for key, least in {"seeds": 1, "rounds": 1, "k": 2}.items():
        if key in grid and grid[key] < least:
            raise ValueError(f"{path.name}: {key}: wanted a whole number, {least} or more, got {grid[key]}")
    files, data = _data(path, grid)
    users = [GRADER] if graded else [_text(path.name, "users", user) for user in grid["users"]]
    learners = [spec for entry in grid["learners"] for spec in _specs(path.name, entry)]
    if graded and "constant-rank" not in learners:
        learners.append("constant-rank")
    for key, specs in {"users": users, "learners": learners}.items():
        if twice := [spec for spec in specs if specs.count(spec) > 1]:
            raise ValueError(f"{path.name}: {key}: wanted each once, got {twice[0]} {len(twice)} times")
    if graded:
        graded_setting(files[0], data, 0)
    loads = {spec: _check_learner(path.parent, spec, data) for spec in learners}
    for user in users if not graded else ():
        _check_user(path.name, user, data)
    seeds, decided = tuple(range(grid.get("seeds", 1))), {"heedful": __version__, "rounds": grid.get("rounds")}
    return [
        Cell(
            spec=decided | {"data": data, "user": user, "learner": spec, "source": loads[spec][1], "seed": seed},
            files=files,
            learner=loads[spec][0],
            seeds=seeds,
        )
        for user in users
        for seed in seeds
        for spec in learners
    ]


def _known(where: str, table: Mapping[str, Any], keys: Mapping[str, type]) -> None:
    from heedful.naming import nearest

    for key, value in table.items():
        if key not in keys:
            raise ValueError(f"{where}: {key}: wanted {', '.join(keys)}, got {key!r}{nearest(key, keys)}")
        if not isinstance(value, keys[key]) or isinstance(value, bool):
            wanted = {dict: "a table", list: "a list", int: "a whole number", str: "a text"}[keys[key]]
            raise ValueError(f"{where}: {key}: wanted {wanted}, got {value!r}")


def _text(where: str, key: str, value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{where}: {key}: wanted texts, got {value!r}")
    return value


def _data(path: Path, grid: Mapping[str, Any]) -> tuple[tuple[str, ...], dict[str, Any]]:
    """(paths of the data files, what decides the result: kind, names, sums, k or people)."""
    where, data = f"{path.name}: data", grid["data"]
    _known(where, data, _DATA | (_ORDINAL if "ordinal" in data else {}))
    kinds = [kind for kind in ("letor", "catalogue", "ordinal") if kind in data]
    if len(kinds) != 1:
        raise ValueError(
            f'{where}: wanted letor = [...], catalogue = "..." or ordinal = "...", '
            f"got {', '.join(sorted(data)) or 'neither'}"
        )
    kind = kinds[0]
    if kind == "ordinal":
        for name in ("people", "k"):
            if name in data or (name == "k" and name in grid):
                raise ValueError(f"{path.name}: {name}: wanted none with ordinal data")
    other, of = ("people", data) if kind == "letor" else ("k", grid)
    if kind != "ordinal" and other in of:
        raise ValueError(f"{path.name}: {other}: wanted only with {'catalogue' if kind == 'letor' else 'letor'} data")
    if data.get("people", 1) < 1:
        raise ValueError(f"{where}: people: wanted a whole number, 1 or more, got {data['people']}")
    files: list[Path] = []
    for pattern in data["letor"] if kind == "letor" else [data[kind]]:
        found = glob.glob(_text(where, kind, pattern), root_dir=path.parent)
        if not found or (kind != "letor" and len(found) > 1):
            wanted = "files" if kind == "letor" else "one file"
            raise ValueError(f"{where}: {kind}: wanted {wanted}, got {len(found) or 'none'} that match {pattern!r}")
        files += [path.parent / name for name in sorted(found)]
    if not files:
        raise ValueError(f"{where}: letor: wanted files, got an empty list")
    sums = []
    for file in files:
        with file.open("rb") as content:
            sums.append(hashlib.file_digest(content, "sha256").hexdigest())
    size: dict[str, Any] = {"k": grid.get("k", 5)} if kind == "letor" else {"people": data.get("people", 20)}
    if kind == "ordinal":
        size = {"target": "", "order": [], "scale": "standard", "map": "", "without": [], "missing": "refuse"}
        size |= {key: data[key] for key in size if key in data}
        for key in ("order", "without"):
            size[key] = [_text(where, key, value) for value in size[key]]
    return tuple(map(str, files)), {"kind": kind, "sha256": sums} | size


def _specs(where: str, entry: Any) -> list[str]:
    """A learner's name as it stands, or the product of a table's lists as names with parameters."""
    if isinstance(entry, str):
        return [entry]
    if not isinstance(entry, dict) or not isinstance(entry.get("name"), str):
        raise ValueError(f"{where}: learners: wanted a name, or a table with one, got {entry!r}")
    fields = {field: value if isinstance(value, list) else [value] for field, value in entry.items() if field != "name"}
    for field, values in fields.items():
        if not values or not all(isinstance(value, int | float | str) for value in values):
            raise ValueError(f"{where}: learners: {entry['name']}: {field}: wanted values, got {entry[field]!r}")
    combinations = itertools.product(*fields.values())
    given = [",".join(f"{field}={value}" for field, value in zip(fields, values)) for values in combinations]
    return [f"{entry['name']}:{text}" if text else entry["name"] for text in given]


def _check_learner(folder: Path, spec: str, data: Mapping[str, Any]) -> tuple[str, str]:
    """(the name to load it by, the sum of its source). ValueError where there is no such learner."""
    from heedful.experiment import Setting
    from heedful.naming import learner_class
    from heedful.spaces import Ranking
    from heedful.spaces_graded import Ranks

    file = spec.partition(".py:")[0] + ".py"
    load = str(folder / file) + spec[len(file) :] if ".py:" in spec and not Path(file).is_absolute() else spec
    setting = Setting(n_features=50, space=Ranking(data.get("k", 1)), R=1.0, S=1.0, alpha=1.0, rounds=1, scenes=())
    if data["kind"] == "ordinal":
        setting = setting._replace(space=Ranks(5), interaction="ordinal")
    setting.learner(load)
    return load, hashlib.sha256(Path(inspect.getfile(learner_class(load))).read_bytes()).hexdigest()


def _check_user(where: str, user: str, data: Mapping[str, Any]) -> None:
    from heedful.naming import make_user

    act, wanted = ("rank", "strict, noisy") if data["kind"] == "letor" else ("pick", "strict, better, best")
    if not hasattr(make_user(user), act):
        raise ValueError(f"{where}: users: wanted {wanted} for {data['kind']} data, got {user}")


def graded_setting(file: str, data: Mapping[str, Any], seed: int) -> Setting:
    """What a cell of grades is computed in. ValueError as the loader, and for a scale or map there is not."""
    from heedful.data.graded import load_graded
    from heedful.grades import ordinal_setting

    found = load_graded(file, data["target"], order=data["order"], without=data["without"], missing=data["missing"])
    how = {"scale": data["scale"], "features": data["map"] or "as they are"}
    return ordinal_setting(found.X, found.ranks, len(found.grades), seeds=(seed,), **how)


# ---------------------------------------------------------------------------- cells and their files


def load_cell(folder: Path, cell: Cell) -> tuple[dict[str, Any] | None, str]:
    """(the result in a cell's file, what is wrong with the file); no result where it is not there or not whole."""
    try:
        kept = json.loads((folder / cell.name).read_text(encoding="utf-8"))
        result = kept["result"]
        if kept["cell"] != cell.spec:
            return None, "it is of another cell"
        if any(not isinstance(result[key], kind) for key, kind in _RESULT.items()):
            return None, "its result is not whole"
    except FileNotFoundError:
        return None, ""
    except (ValueError, KeyError, TypeError) as error:
        return None, f"{type(error).__name__}: {error}"
    return result, ""


def write_cell(folder: Path, cell: Cell, result: Mapping[str, Any]) -> None:
    """Write a cell's file."""
    write_whole(folder / cell.name, json.dumps({"cell": cell.spec, "result": result}, indent=1))


def write_whole(path: Path, text: str) -> None:
    """Write a file in one step: it is there whole, or as it was before."""
    handle, aside = tempfile.mkstemp(dir=path.parent, suffix=".tmp")
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="") as file:
            file.write(text)
        os.replace(aside, path)
    except BaseException:
        os.unlink(aside)
        raise
