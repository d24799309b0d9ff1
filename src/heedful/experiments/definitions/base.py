"""The base classes of experiments: what `heedful simulate` and `heedful sweep` need to know of each one."""

from __future__ import annotations

import glob
import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, NamedTuple

if TYPE_CHECKING:
    from heedful.experiments.setting import Setting


class Option(NamedTuple):
    """The help of one parameter of `prepare`, which is an argument of the command if it has no default, else an
    option."""

    help: str
    metavar: str | None = None
    least: float | None = None
    most: float | None = None
    default: str | None = None
    """what stands for the default, in words; None where it is said as it is"""
    negatable: bool = False
    """of a flag: whether there is --no-NAME, too"""


Float32 = Annotated[bool, Option("Features in single precision.")]


class BadOption(ValueError):
    """A parameter of `prepare` makes no sense: the message begins with its name."""


class PreparedExperiment(NamedTuple):
    """An experiment on somebody's data, ready to be run."""

    setting: Setting
    title: str
    conditions: dict[str, object]
    """the options that are recorded with each result, as JSON values"""
    notes: tuple[str, ...] = ()
    """sentences on what the data contain"""
    rules: tuple[str, ...] = ()
    """learners that are run for comparison, whether or not they are named"""
    yardsticks: tuple[str, ...] = ()
    """learners, if they are run: the others are compared with the best of them by the last round"""
    remark: str = ""
    """a sentence for the end"""
    most_rounds: int | None = None
    """the number of rounds after which nothing is left; None if there is always more"""
    warn: Callable[[Any], str] = lambda learner: ""
    """returns a warning about a learner in this setting, or "" """


class Experiment(ABC):
    """An experiment of `heedful simulate NAME`. Its help is the line that `registry` has of it, then the docstring of
    `prepare`."""

    name: str
    learners: tuple[str, ...] = ("perceptron",)
    """where none is named"""
    seeds: int = 1
    """the default number of seeds"""
    rounds: int | str
    """the default number of rounds; in words where the data decide"""
    prepare: Callable[..., PreparedExperiment]
    """(its own options, as annotated; seeds) -> PreparedExperiment. Raise OSError or ValueError for data that cannot be
    read or make no sense, and BadOption for an option that makes no sense."""


class GridExperiment(Experiment):
    """An experiment that a grid of `heedful sweep` may name, too."""

    syntax: str
    """the table `data` of a grid, at its shortest"""
    grid_help: str
    """what a grid may say, in sentences"""
    keys: ClassVar[Mapping[str, type]]
    """of the table `data`; one of them is the experiment's name"""
    grid_keys: tuple[str, ...] = ()
    """of the grid itself, that go with this experiment alone"""
    answers: str = ""
    """who answers where no users are named; "" where a grid names users"""
    act: str = ""
    """the method that users need"""
    all_seeds: bool = False
    """whether a setting is made for all seeds at once, as that takes no longer than for one"""

    def rules(self) -> tuple[str, ...]:
        """Return the learners that are run for comparison, whether or not a grid names them."""
        return ()

    @abstractmethod
    def check(
        self, where: str, folder: Path, data: Mapping[str, Any], grid: Mapping[str, Any]
    ) -> tuple[tuple[str, ...], dict[str, Any]]:
        """Return (paths of the data files, the JSON values that decide a result). Raise ValueError, naming the key, for
        values that make no sense."""

    @abstractmethod
    def blank(self, decided: Mapping[str, Any]) -> Setting:
        """Return a setting without scenes, in which learners can be made to see whether their specs are valid."""

    @abstractmethod
    def setting(self, files: tuple[str, ...], decided: Mapping[str, Any], user: str, seeds: Sequence[int]) -> Setting:
        """Return the setting in which the cells of a grid are computed. Raise ValueError as the loaders and settings
        do."""


def check_keys(where: str, table: Mapping[str, Any], keys: Mapping[str, type]) -> None:
    """Raise ValueError, naming the key, for a key of `table` that is not in `keys`, or a value of another type."""
    from heedful.learners.registry import did_you_mean

    words = {dict: "a table", list: "a list", int: "a whole number", str: "a text", bool: "true or false"}
    for key, value in table.items():
        if key not in keys:
            raise ValueError(f"{where}: {key}: expected {', '.join(keys)}, got {key!r}{did_you_mean(key, keys)}")
        if not isinstance(value, keys[key]) or (isinstance(value, bool) and keys[key] is not bool):
            raise ValueError(f"{where}: {key}: expected {words[keys[key]]}, got {value!r}")


def check_text(where: str, key: str, value: object) -> str:
    """Return `value`, an entry of a list, if it is a text; else raise ValueError."""
    if not isinstance(value, str):
        raise ValueError(f"{where}: {key}: expected texts, got {value!r}")
    return value


def matching_files(where: str, key: str, folder: Path, patterns: Iterable[object], *, one: bool) -> list[Path]:
    """Return the files that `patterns` match, exactly one each with `one`. Raise ValueError if there are none."""
    files: list[Path] = []
    for pattern in patterns:
        found = glob.glob(check_text(where, key, pattern), root_dir=folder)
        if not found or (one and len(found) > 1):
            expected = "one file" if one else "files"
            raise ValueError(f"{where}: {key}: expected {expected}, got {len(found) or 'none'} that match {pattern!r}")
        files += [folder / name for name in sorted(found)]
    if not files:
        raise ValueError(f"{where}: {key}: expected files, got an empty list")
    return files


def checksums(files: Iterable[Path]) -> list[str]:
    """Return the SHA-256 of each file, in hex."""
    sums = []
    for file in files:
        with file.open("rb") as content:
            sums.append(hashlib.file_digest(content, "sha256").hexdigest())
    return sums
