"""Grids: a TOML file of runs as a list of cells. Each cell is computed once, and its result kept in a file of its own.

The help of `heedful sweep` has an example. The experiment that the table `data` names decides what else that may
contain, whether there are users, and which learners are run for comparison.

A cell is one learner with one simulated user on one seed. The name of its file is a hash of everything that decides the
result: the grid's values, the checksums of the data files, the source of the learner, the version of heedful.
"""

from __future__ import annotations

import hashlib
import inspect
import itertools
import json
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from heedful import __version__
from heedful.cli.common import check_once
from heedful.core.paths import replacing
from heedful.experiments.definitions.base import GridExperiment, check_keys, check_text
from heedful.experiments.registry import grid_experiments

if TYPE_CHECKING:
    from heedful.experiments.setting import Setting

_KEYS = {"data": dict, "users": list, "learners": list, "seeds": int, "rounds": int, "k": int}
_RESULT = {"rounds": int, "checkpoints": list, "regret": list, "stderr": list, "rounds_per_second": float}


class Cell(NamedTuple):
    """One run of a grid: one learner with one simulated user on one seed, with all that decides its result."""

    spec: dict[str, Any]
    """everything that decides the result, as JSON values"""
    files: tuple[str, ...]
    """the paths of the data files; their content decides the result, not their place"""
    learner: str
    """the spec to load the learner by, which may contain a path"""
    seeds: tuple[int, ...]
    """all seeds of the grid"""

    @property
    def name(self) -> str:
        """the name of the file with the run's result: the first 32 hexadecimal digits of a hash of `spec`, and .json"""
        return hashlib.sha256(json.dumps(self.spec, sort_keys=True).encode()).hexdigest()[:32] + ".json"


# ---------------------------------------------------------------------------- from TOML to cells


def read_grid(path: Path) -> list[Cell]:
    """Return the runs (cells) that the TOML file `path` asks for, sorted by user, then by seed.

    Each is one learner with one simulated user on one seed; lists in the file stand for all combinations of their
    values. Paths in it are relative to its folder. Raise ValueError, naming the key, if the file says something unknown
    or makes no sense, and OSError if a file cannot be read.
    """
    with path.open("rb") as file:
        try:
            grid = tomllib.load(file)
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise ValueError(f"{path.name}: expected TOML, got {error}") from None
    check_keys(path.name, grid, _KEYS)
    if not grid.get("data"):
        raise ValueError(f"{path.name}: data: expected something, got nothing")
    experiment = _experiment(path.name, grid["data"])
    alone = bool(experiment.answers)
    if alone and "users" in grid:
        raise ValueError(f"{path.name}: users: expected none with {experiment.name} data, got {grid['users']!r}")
    for key in ("learners",) if alone else ("users", "learners"):
        if not grid.get(key):
            raise ValueError(f"{path.name}: {key}: expected something, got nothing")
    for key, least in {"seeds": 1, "rounds": 1, "k": 2}.items():
        if key in grid and grid[key] < least:
            raise ValueError(f"{path.name}: {key}: expected a whole number, {least} or more, got {grid[key]}")
    _check_data(path.name, grid, experiment)
    files, data = experiment.check(f"{path.name}: data", path.parent, grid["data"], grid)
    named = grid.get("users", ())
    users = [experiment.answers] if alone else [check_text(path.name, "users", user) for user in named]
    learners = [spec for entry in grid["learners"] for spec in _specs(path.name, entry)]
    learners += [name for name in experiment.rules() if name not in learners]
    for key, specs in {"users": users, "learners": learners}.items():
        check_once(f"{path.name}: {key}", specs)
    if alone:
        experiment.setting(files, data, "", (0,))
    from heedful.experiments.coactive import check_for_clicks
    from heedful.learners.registry import make_user

    loads = {spec: _check_learner(path.parent, spec, experiment.blank(data)) for spec in learners}
    for user in users if not alone else ():
        _check_user(path.name, user, experiment)
        for spec in learners:
            check_for_clicks(spec, loads[spec][2], make_user(user))
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


def _experiment(where: str, data: Mapping[str, object]) -> GridExperiment:
    """Return the experiment that the grid's table `data` names; raise ValueError if it names none, or several."""
    named = [experiment for name, experiment in grid_experiments().items() if name in data]
    if len(named) == 1:
        return named[0]
    everything = {key: kind for experiment in grid_experiments().values() for key, kind in experiment.keys.items()}
    if not named and not set(data) <= set(everything):
        check_keys(
            f"{where}: data", data, {name: experiment.keys[name] for name, experiment in grid_experiments().items()}
        )
    *most, last = [experiment.syntax for experiment in grid_experiments().values()]
    raise ValueError(f"{where}: data: expected {', '.join(most)} or {last}, got {', '.join(sorted(data))}")


def _check_data(where: str, grid: Mapping[str, Any], experiment: GridExperiment) -> None:
    """Raise ValueError, naming the key, if the experiment does not take a key of the grid or of its table `data`."""
    for key in (*grid["data"], *grid):
        is_known = key in (*experiment.keys, *experiment.grid_keys)
        others = [other.name for other in grid_experiments().values() if key in (*other.keys, *other.grid_keys)]
        if others and not is_known:
            raise ValueError(f"{where}: {key}: expected only with {' or '.join(others)} data")
    check_keys(f"{where}: data", grid["data"], experiment.keys)


def _specs(where: str, entry: object) -> list[str]:
    """Return the specs in an `entry` of the grid's learners: a text is one, a table gives one for each combination."""
    if isinstance(entry, str):
        return [entry]
    if not isinstance(entry, dict) or not isinstance(entry.get("name"), str):
        raise ValueError(f"{where}: learners: expected a name, or a table with one, got {entry!r}")
    fields = {field: value if isinstance(value, list) else [value] for field, value in entry.items() if field != "name"}
    for field, values in fields.items():
        if not values or not all(isinstance(value, int | float | str) for value in values):
            raise ValueError(f"{where}: learners: {entry['name']}: {field}: expected values, got {entry[field]!r}")
    combinations = itertools.product(*fields.values())
    parameters = [",".join(f"{field}={value}" for field, value in zip(fields, values)) for values in combinations]
    return [f"{entry['name']}:{text}" if text else entry["name"] for text in parameters]


def _check_learner(folder: Path, spec: str, setting: Setting) -> tuple[str, str, Any]:
    """Return (spec to load the learner by, SHA-256 of its source file, the learner); paths are relative to `folder`."""
    from heedful.learners.registry import learner_class

    file = spec.partition(".py:")[0] + ".py"
    load = str(folder / file) + spec[len(file) :] if ".py:" in spec and not Path(file).is_absolute() else spec
    learner = setting.learner(load)
    source = Path(inspect.getfile(learner_class(load))).read_bytes()
    return load, hashlib.sha256(source).hexdigest(), learner


def _check_user(where: str, user: str, experiment: GridExperiment) -> None:
    from heedful.learners.registry import make_user
    from heedful.worlds.users import users_that

    if not hasattr(make_user(user), experiment.act):
        expected = f"{users_that(experiment.act)} for {experiment.name} data"
        raise ValueError(f"{where}: users: expected {expected}, got {user}")


# ---------------------------------------------------------------------------- cells and their files


def load_cell(folder: Path, cell: Cell) -> tuple[dict[str, Any] | None, str]:
    """Return (the stored result of the run `cell`, what is wrong with its file in `folder`).

    A run is one learner with one simulated user on one seed. The result is None if the file is missing ("" is wrong
    then), damaged, or of another run.
    """
    try:
        stored = json.loads((folder / cell.name).read_text(encoding="utf-8"))
        result = stored["result"]
        if stored["cell"] != cell.spec:
            return None, "it is of another cell"
        if any(not isinstance(result[key], kind) for key, kind in _RESULT.items()):
            return None, "its result is not whole"
    except FileNotFoundError:
        return None, ""
    except (ValueError, KeyError, TypeError) as error:
        return None, f"{type(error).__name__}: {error}"
    return result, ""


def write_cell(folder: Path, cell: Cell, result: Mapping[str, object]) -> None:
    """Write the file of the run `cell` (one learner, simulated user and seed), with its `result`, into `folder`."""
    write_whole(folder / cell.name, json.dumps({"cell": cell.spec, "result": result}, indent=1))


def write_whole(path: Path, text: str) -> None:
    """Write `text` to the file `path` in one step: after an error the file is as it was before."""
    with replacing(path) as file:
        file.write(text.encode())
