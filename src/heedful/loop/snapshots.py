"""Snapshots: the model as it was after one event of the log, in files of the loop's folder or in its database.

A snapshot only saves time. If one is missing or cannot be used, the model is made again from the log. While an
experiment runs, a snapshot also has the models that follow the log without serving (`Other`).
"""

from __future__ import annotations

import errno
import os
import platform
import re
import shutil
import stat
from collections.abc import Callable, Sequence
from functools import cache
from importlib.metadata import version as version_of
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from heedful.core.fold import copy_arrays
from heedful.core.serialization import arrays_of, read_arrays, state_like, write_arrays
from heedful.loop.log import Log
from heedful.loop.log.store import Shelf
from heedful.loop.model import LoopModel, Moves, Person
from heedful.loop.settings import Manifest
from heedful.storage import Address, Place

KEPT = 3
"""How many of the newest snapshots are always kept: an older one serves when a recent lesson is undone."""


def make_folder(folder: Path) -> None:
    """Create the folder of a new loop, for its owner alone.

    Raise FileExistsError if it exists, and FileNotFoundError if its parent does not."""
    try:
        folder.mkdir(mode=0o700, parents=False)
    except FileExistsError:
        told = "expected a new folder for the loop, got one that is there already"
        raise FileExistsError(errno.EEXIST, told, str(folder)) from None
    except FileNotFoundError:
        told = "expected a folder that is there to put the loop in"
        raise FileNotFoundError(errno.ENOENT, told, str(folder.parent)) from None


def remove_folder(folder: Path) -> None:
    """Remove the folder of a loop that could not be created, with all that is in it; errors are ignored."""
    shutil.rmtree(folder, ignore_errors=True)


def read_own(folder: Place, *parts: str, most: int) -> bytes:
    """Return the content of a file in a loop's `folder`, of at most `most` bytes; `parts` are the names in its path
    there.

    Raise FileNotFoundError if there is none, and ValueError, with its name, if it is larger, a link or no plain file: a
    folder may come from somebody else, and what is in the file is shown to users.
    """
    if isinstance(folder, Address):
        raise FileNotFoundError(errno.ENOENT, "a loop in a database has no files", "/".join(parts))
    name, path = "/".join(parts), folder
    for part in parts:
        path = path / part
        if path.is_symlink():
            raise ValueError(f"{name}: expected a file of this folder, got a link")
    # A pipe is not waited for; a link that came this moment is not followed.
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    file = os.open(path, flags)
    try:
        about = os.fstat(file)
        if not stat.S_ISREG(about.st_mode):
            raise ValueError(f"{name}: expected a plain file, got another kind")
        if about.st_size > most:
            raise ValueError(f"{name}: expected at most {most} bytes, got {about.st_size}")
        with open(file, "rb", closefd=False) as opened:
            return opened.read(most)
    finally:
        os.close(file)


def snapshot_path(folder: Path, position: int) -> Path:
    """Return the path in `folder` of the snapshot of the model after the event with sequence number `position`."""
    return folder / f"snapshot-{position:012d}.safetensors"


def snapshots(folder: Path) -> list[tuple[int, Path]]:
    """Return (position, path) of each snapshot in `folder`, the newest first; the position is the sequence number of an
    event."""
    found = [(re.fullmatch(r"snapshot-(\d{12,})\.safetensors", path.name), path) for path in folder.iterdir()]
    # What a link leads to is not of this folder.
    return sorted(((int(match[1]), path) for match, path in found if match and not path.is_symlink()), reverse=True)


def remove_snapshots(folder: Path) -> None:
    """Remove all snapshots in `folder`, and unfinished ones that an interrupted write left."""
    for path in folder.glob("snapshot-*"):
        if not path.is_dir():
            path.unlink(missing_ok=True)


class FolderShelf:
    """The snapshots of a loop as files in its folder."""

    def __init__(self, folder: Path) -> None:
        """Keep snapshots in the folder of a loop."""
        self._folder = folder

    def positions(self) -> list[int]:
        """Return the positions of all snapshots, the newest first."""
        return [position for position, _ in snapshots(self._folder)]

    def name(self, position: int) -> str:
        """Return the name of a snapshot's file."""
        return snapshot_path(self._folder, position).name

    def read(self, position: int) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return (arrays by name, the values about them) of a snapshot. Raise OSError or ValueError if it cannot be
        read."""
        return read_arrays(snapshot_path(self._folder, position))

    def prepare(self, arrays: dict[str, Any], about: dict[str, Any]) -> Any:
        """Return what `write` takes for these arrays by name, and the values about them."""
        return arrays, about

    def write(self, position: int, prepared: Any) -> Path:
        """Write a snapshot and return its path. Raise OSError if that fails."""
        path = snapshot_path(self._folder, position)
        write_arrays(path, *prepared)
        return path

    def remove(self, positions: Sequence[int]) -> None:
        """Remove these snapshots."""
        for position in positions:
            snapshot_path(self._folder, position).unlink(missing_ok=True)

    def clear(self) -> None:
        """Remove all snapshots, also unfinished ones."""
        remove_snapshots(self._folder)


def shelf_of(log: Log) -> Shelf:
    """Return where the snapshots of the loop with this `log` are."""
    if log.store.shelf is not None:
        return log.store.shelf
    return FolderShelf(Path(str(log.path)).parent)


def stamp(manifest: Manifest, learner: Any, version: str) -> dict[str, Any]:
    """Return what a model depends on besides the log, {name: value}: learner, versions of code, Python, numpy, scipy,
    machine.

    `version` is the version of the learner's code (`heedful.loop.versions`). A snapshot is used only if the stamp
    stored in it equals that of today."""
    return {
        "learner": manifest.learner,
        "fields": {name: _values(repr(value)) for name, value in zip(learner._fields, learner)},
        "learner_version": version,
        "executor": "interpreted",
        "shrink": manifest.settings.shrink,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "scipy": _scipy(),
        "machine": f"{platform.system()} {platform.machine()}",
    }


@cache
def _scipy() -> str:
    """Return the version of scipy, without importing it; to look it up takes milliseconds."""
    return version_of("scipy")


def _values(written: str) -> str:
    """Return the field values of a learner out of its repr, without the names of fields and types: renaming these
    changes no state."""
    return re.sub(r"\b[A-Za-z_]\w*=|\b[A-Za-z_][\w.]*(?=\()", "", written)


class Other(NamedTuple):
    """A model that follows the log without serving, such as that of an experiment's candidate, as it was after one
    event.

    `learner` is its learner, by name and parameters; `position` the sequence number of the last event that it has
    learned; `shared` the state that all people share, `people` those of single people, by name; `moves` counts the
    feedback in it; `stamped` is what it depends on besides the log (`stamp`)."""

    learner: str
    """its learner, by name and parameters"""
    position: int
    """the sequence number of the last event that it has learned"""
    shared: Any
    """the state that all people share"""
    people: dict[str, Person]
    """the states of single people, by name"""
    moves: Moves
    """how much feedback it was made of"""
    stamped: dict[str, Any]
    """what it depends on besides the log (`stamp`)"""


def draw(
    shelf: Shelf, model: LoopModel, position: int, log: Log, stamped: dict[str, Any], others: Sequence[Other] = ()
) -> Any:
    """Return a snapshot of `model`, as it is after event `position` of `log`, for `keep` to write to `shelf`.

    `stamped` is stored with it: what the model depends on besides the log, such as versions of code (`stamp`). `others`
    are models that follow the log without serving."""
    arrays, about = _arrays(model.shared, model.people), stamped | _about(log, position, model.people)
    told = []
    for j, other in enumerate(others):
        arrays |= {f"{j}/{name}": array for name, array in _arrays(other.shared, other.people).items()}
        told.append(other.stamped | {"moves": list(other.moves)} | _about(log, other.position, other.people))
    return shelf.prepare(arrays, about | ({"others": told} if told else {}))


def keep(shelf: Shelf, position: int, drawn: object) -> Place:
    """Write the snapshot `drawn` of the model after event `position` to `shelf`, then remove snapshots that are too
    many; return where it is.

    Raise OSError if it cannot be written."""
    there = shelf.write(position, drawn)
    shelf.remove(spare(shelf.positions()))
    return there


def _arrays(shared: object, people: dict[str, Person]) -> dict[str, Any]:
    """Return the arrays of a model by name; those of people are stacked in the order of their names."""
    arrays = arrays_of(shared, "shared")
    everybody = sorted(people.items())
    stacked = [arrays_of(person.state, "people") for _, person in everybody]
    for name in stacked[0] if stacked else ():
        arrays[name] = np.stack([each[name] for each in stacked])
    arrays["lessons"] = np.array([person.lessons for _, person in everybody], np.int64)
    arrays["since"] = np.array([person.since for _, person in everybody], np.int64)
    return arrays


def _about(log: Log, position: int, people: dict[str, Person]) -> dict[str, Any]:
    return _place(log, position) | {"people": sorted(people)}


def _parts(arrays: dict[str, Any], about: dict[str, Any]) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """Return (arrays by name, values about them) of each model in a snapshot: of the one that served, then of the
    others."""
    named = {name: re.fullmatch(r"(\d+)/(.+)", name) for name in arrays}
    found = [({name: array for name, array in arrays.items() if not named[name]}, about)]
    for j, other in enumerate(about.get("others", ())):
        own = {match[2]: arrays[name] for name, match in named.items() if match and int(match[1]) == j}
        found.append((own, dict(other)))
    return found


def spare(positions: Sequence[int]) -> list[int]:
    """Return which snapshots to remove, out of those at these `positions` (sequence numbers of events), the newest
    first.

    The newest `KEPT` stay. Of older ones, one stays for every doubling of the distance from the newest, so that after
    an undo of old feedback at most twice as much has to be learned again as without removing any."""
    kept: set[int] = set()
    found = []
    for position in positions[KEPT:]:
        octave = (positions[0] - position).bit_length()
        if octave in kept:
            found.append(position)
        kept.add(octave)
    return found


def _place(log: Log, position: int) -> dict[str, Any]:
    """Return values, by name, that identify the event at `position` in this log.

    A snapshot of another log, or of this one before it was restored from a back-up, has other values and is not used.
    """
    event = log.at(position)
    return {"position": position, "event": log.digest("event", repr(event)) if event is not None else ""}


def restore(
    shelf: Shelf,
    model: LoopModel,
    like: object,
    log: Log,
    head: int,
    stamped: dict[str, Any],
    note: Callable[[str], None],
    follows: bool = False,
    frozen: bool = False,
) -> tuple[int, tuple[int, int]]:
    """Load the newest snapshot on `shelf` that can be used, at most at position `head`, into `model`, which has learned
    nothing.

    Return (its position, (pieces of feedback it is made of, how many of them changed predictions)), or zeros if there
    is none. A snapshot cannot be used if something in it was undone since, unless `model` is `frozen` at `head` and
    follows the log without serving. Nor can it if it is damaged, of another log, or made by other code or another
    version of Python, numpy or scipy than `stamped` (the value of `stamp` today) says; then `note` is called with the
    reason.

    `like` is a state of the type that is kept for each person. A model in a snapshot that did not serve is used if no
    serving one is there; if the present one `follows` the log without serving, all snapshots are searched for one, as
    it may be older than the snapshot."""
    for position in shelf.positions():
        if not follows and (position > head or log.is_superseded(position)):
            continue
        try:
            parts = _parts(*shelf.read(position))
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            note(f"{shelf.name(position)}: {error}: the log is folded again")
            continue
        for j, (arrays, about) in enumerate(parts):
            try:
                at = int(about["position"]) if j else position
                if j and frozen and at == head:
                    if log.forgot_after(position):
                        continue
                elif (j or follows) and (at > head or log.is_superseded(at)):
                    continue
                other = sorted(name for name, value in stamped.items() if about.get(name) != value)
                if "learner" in other:  # of the one that served before a promotion: a rollback may want it
                    continue
                if other:
                    note(f"{shelf.name(position)}: made with another {', '.join(other)}: the log is folded again")
                    continue
                if any(about.get(name) != value for name, value in _place(log, at).items()):
                    told = "made of another log, or of what was in this one before: the log is folded again"
                    note(f"{shelf.name(position)}: {told}")
                    continue
                given, moved = about.get("moves", (1, 1))  # of one that does not say, that it moved
                _fill(model, like, arrays, about["people"])
            except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
                note(f"{shelf.name(position)}: {error}: the log is folded again")
                continue
            return at, (int(given), int(moved))
    return 0, (0, 0)


def _fill(model: LoopModel, like: object, arrays: dict[str, Any], names: list[str]) -> None:
    """Put the `arrays` of a snapshot into `model`; `names` are those of its people. Nothing is changed if they do not
    fit.

    `like` is a state of the type that is kept for each person."""
    lessons, since = arrays.pop("lessons"), arrays.pop("since")
    own = {name: arrays.pop(name) for name in list(arrays) if name.split(".")[0] == "people"}
    shared = state_like(model.shared, arrays, "shared")
    people = {
        name: Person(
            state_like(like, {leaf: array[i] for leaf, array in own.items()}, "people"),
            int(lessons[i]),
            int(since[i]),
        )
        for i, name in enumerate(names)
    }
    model.shared, model.people = shared, people


def same(a: LoopModel, b: LoopModel) -> bool:
    """Return whether the models `a` and `b` are equal bit for bit: the state for all people and that of every
    person.
    """

    def bits(state: Any) -> dict[str, tuple[str, bytes]]:
        return {name: (str(value.dtype), value.tobytes()) for name, value in arrays_of(copy_arrays(state)).items()}

    return (
        bits(a.shared) == bits(b.shared)
        and {name: person.lessons for name, person in a.people.items()}
        == {name: person.lessons for name, person in b.people.items()}
        and all(bits(a.people[name].state) == bits(b.people[name].state) for name in a.people)
    )
