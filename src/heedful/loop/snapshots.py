"""Snapshots: the model as it was after one event of the log, in files of the loop's folder or in its database.

A snapshot only saves time. If one is missing or cannot be used, the model is made again from the log. While an
experiment runs, a snapshot also has the models that follow the log without serving.
"""

from __future__ import annotations

import errno
import os
import platform
import re
import stat
from collections.abc import Callable, Sequence
from functools import cache
from importlib.metadata import version as version_of
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from heedful.core.fold import copy_arrays
from heedful.core.serialization import arrays_of, read_arrays, stacked, state_like, write_arrays
from heedful.loop.interactions.protocol import Interaction
from heedful.loop.interactions.registry import learner_version
from heedful.loop.log import Log
from heedful.loop.log.store import Shelf
from heedful.loop.model import LoopModel, Moves, Person
from heedful.storage import Address, Place

KEPT = 3
"""How many of the newest snapshots are always kept: an older one serves when a recent lesson is undone."""


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


class FolderShelf:
    """The snapshots of a loop as files in its folder: a `Shelf`, as `heedful.loop.log.store` describes it."""

    def __init__(self, folder: Path) -> None:
        """Keep snapshots in the folder of a loop."""
        self._folder = folder

    def _path(self, position: int) -> Path:
        return self._folder / self.name(position)

    def positions(self) -> list[int]:
        names = [(re.fullmatch(r"snapshot-(\d{12,})\.safetensors", path.name), path) for path in self._folder.iterdir()]
        # What a link leads to is not of this folder.
        return sorted([int(match[1]) for match, path in names if match and not path.is_symlink()], reverse=True)

    def name(self, position: int) -> str:
        return f"snapshot-{position:012d}.safetensors"

    def read(self, position: int) -> tuple[dict[str, Any], dict[str, Any]]:
        return read_arrays(self._path(position))

    def prepare(self, arrays: dict[str, Any], about: dict[str, Any]) -> Any:
        return arrays, about

    def write(self, position: int, prepared: Any) -> Path:
        path = self._path(position)
        write_arrays(path, *prepared)
        return path

    def remove(self, positions: Sequence[int]) -> None:
        for position in positions:
            self._path(position).unlink(missing_ok=True)

    def clear(self) -> None:
        for path in self._folder.glob("snapshot-*"):
            if not path.is_dir():
                path.unlink(missing_ok=True)


def shelf_of(log: Log) -> Shelf:
    """Return where the snapshots of the loop with this `log` are."""
    if log.store.shelf is not None:
        return log.store.shelf
    return FolderShelf(Path(str(log.path)).parent)


def stamp(interaction: Interaction[Any]) -> dict[str, Any]:
    """Return what a model of `interaction` depends on besides the log, {name: value}: learner, versions of code,
    Python, numpy, scipy, machine.

    A snapshot is used only if the stamp stored in it equals that of today."""
    manifest, learner = interaction.manifest, interaction.learner
    return {
        "learner": manifest.learner,
        "fields": {name: _values(repr(value)) for name, value in zip(learner._fields, learner)},
        "learner_version": learner_version(learner, manifest.settings),
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


@cache
def processor() -> str:
    """Return a name for what the processor here can do: libraries of linear algebra choose by it in which order they
    add up, so the same log makes models that differ in their last digits on different ones."""
    features: dict[str, bool] = np._core._multiarray_umath.__cpu_features__  # type: ignore[attr-defined]
    return " ".join(sorted(name for name, found in features.items() if found))


def _values(written: str) -> str:
    """Return the field values of a learner out of its repr, without the names of fields and types: renaming these
    changes no state."""
    return re.sub(r"\b[A-Za-z_]\w*=|\b[A-Za-z_][\w.]*(?=\()", "", written)


class KeptModel(NamedTuple):
    """A model as it was after one event, from which another one can begin."""

    position: int
    """the sequence number of that event: all events up to it are learned"""
    shared: Any
    """the state that all people share, of the learner's own type"""
    people: dict[str, Person]
    """the states of single people, by name"""
    moves: Moves
    """how much feedback it was made of"""
    stamped: dict[str, Any]
    """what it depends on besides the log (`stamp`)"""

    @classmethod
    def copy_of(cls, model: LoopModel, position: int, moves: Moves, stamped: dict[str, Any]) -> KeptModel:
        """Return a copy of `model` as it is after event `position`; the other arguments are the fields."""
        return cls(position, copy_arrays(model.shared), dict(model.people), moves, stamped)

    def load_into(self, model: LoopModel) -> tuple[int, Moves]:
        """Put a copy of the state into `model`, which has learned nothing; return (position, moves)."""
        model.shared, model.people = copy_arrays(self.shared), dict(self.people)
        return self.position, self.moves


def draw(shelf: Shelf, log: Log, serving: KeptModel, others: Sequence[KeptModel] = (), elsewhere: bool = False) -> Any:
    """Return a snapshot of the model that is `serving` the loop with this `log`, for `keep` to write to `shelf`.

    `others` are models that follow the log without serving; `elsewhere` says whether another kind of processor had a
    part in them."""
    arrays, about = _arrays(serving), _about(log, serving)
    about["processor"] = "several" if elsewhere else processor()
    for j, other in enumerate(others):
        arrays |= {f"{j}/{name}": array for name, array in _arrays(other).items()}
    told = [_about(log, other) for other in others]
    return shelf.prepare(arrays, about | ({"others": told} if told else {}))


def keep(shelf: Shelf, position: int, drawn: object) -> Place:
    """Write the snapshot `drawn` of the model after event `position` to `shelf`, then remove snapshots that are too
    many; return where it is.

    Raise OSError if it cannot be written."""
    there = shelf.write(position, drawn)
    shelf.remove(spare(shelf.positions()))
    return there


def _arrays(kept: KeptModel) -> dict[str, Any]:
    """Return the arrays of a model by name; those of people are stacked in the order in which it came to know them."""
    arrays, everybody = arrays_of(kept.shared, "shared"), list(kept.people.values())
    arrays |= stacked([person.state for person in everybody], "people")
    arrays["lessons"] = np.array([person.lessons for person in everybody], np.int64)
    arrays["since"] = np.array([person.since for person in everybody], np.int64)
    return arrays


def _about(log: Log, kept: KeptModel) -> dict[str, Any]:
    """Return the values about a model, by name, that a snapshot has besides its arrays."""
    counts = {"moves": list(kept.moves)}
    return kept.stamped | counts | _place(log, kept.position) | {"people": list(kept.people)}


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
    log: Log,
    head: int,
    stamped: dict[str, Any],
    note: Callable[[str], None],
    follows: bool = False,
    frozen: bool = False,
) -> tuple[int, Moves, bool]:
    """Load the newest snapshot on `shelf` that can be used, at most at position `head`, into `model`, which has learned
    nothing.

    Return (its position, how much feedback it is made of, whether another kind of processor had a part in it); zeros if
    there is none. A snapshot cannot be used if
    something in it was undone since, unless `model` is `frozen` at `head` and follows the log without serving. Nor can
    it if it is damaged, of another log, or made by other code or another version of Python, numpy or scipy than
    `stamped` (the value of `stamp` today) says; then `note` is called with the reason.

    A model in a snapshot that did not serve is used if no serving one is there; if the present one `follows` the log
    without serving, all snapshots are searched for one, as it may be older than the snapshot."""
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
                given, moved = about["moves"]
                _fill(model, arrays, about["people"])
            except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
                note(f"{shelf.name(position)}: {error}: the log is folded again")
                continue
            return at, Moves(int(given), int(moved)), parts[0][1].get("processor") != processor()
    return 0, Moves(), False


def _fill(model: LoopModel, arrays: dict[str, Any], names: list[str]) -> None:
    """Put the `arrays` of a snapshot into `model`; `names` are those of its people. Nothing is changed if they do not
    fit."""
    lessons, since = arrays.pop("lessons"), arrays.pop("since")
    own = {name: arrays.pop(name) for name in list(arrays) if name.split(".")[0] == "people"}
    shared, nobody = state_like(model.shared, arrays, "shared"), model.nobody()
    people = {
        name: Person(
            state_like(nobody, {leaf: array[i] for leaf, array in own.items()}, "people"),
            int(lessons[i]),
            int(since[i]),
        )
        for i, name in enumerate(names)
    }
    model.shared, model.people = shared, people


def same(a: LoopModel, b: LoopModel, *, rounded: bool = False) -> bool:
    """Return whether the models `a` and `b` are equal bit for bit, or, with `rounded`, to 1e-6 of the largest number of
    each array: the state for all people and that of every person.
    """

    def equal(one: Any, other: Any) -> bool:
        ours, theirs = (arrays_of(copy_arrays(state)) for state in (one, other))
        return ours.keys() == theirs.keys() and all(_equal(ours[name], theirs[name], rounded) for name in ours)

    return (
        equal(a.shared, b.shared)
        and {name: person.lessons for name, person in a.people.items()}
        == {name: person.lessons for name, person in b.people.items()}
        and all(equal(a.people[name].state, b.people[name].state) for name in a.people)
    )


def _equal(a: Any, b: Any, rounded: bool) -> bool:
    if (a.dtype, a.shape) != (b.dtype, b.shape):
        return False
    if rounded and a.dtype.kind == "f" and a.size:
        return bool(np.allclose(a, b, rtol=0.0, atol=1e-6 * np.max(np.abs(a)), equal_nan=True))
    return bool(a.tobytes() == b.tobytes())
