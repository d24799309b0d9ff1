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
    """The help of one parameter of the method `prepare` of an experiment, as `heedful simulate NAME --help` shows it.

    - `help`: the text.
    - `metavar`: what stands for the value in the help, such as FILE.
    - `least`, `most`: the least and the greatest value that is allowed; None: no limit.
    - `default`: the default in words; None if the help shows its value.
    - `negatable`: for a flag, whether there is also an option --no-NAME.

    A parameter without a default becomes an argument of the command, any other an option --NAME.
    """

    help: str
    metavar: str | None = None
    least: float | None = None
    most: float | None = None
    default: str | None = None
    negatable: bool = False


Float32 = Annotated[bool, Option("Features in single precision.")]


class BadOption(ValueError):
    """Raised for an option of an experiment that makes no sense. The message begins with the name of the parameter of
    the experiment's `prepare`.
    """


class PreparedExperiment(NamedTuple):
    """An experiment on given data, ready to run, and what the command prints about it.

    - `setting`: the simulated environments, and what they share.
    - `title`: the heading of tables and plots.
    - `conditions`: the options, by name, that are part of each result with --json.
    - `notes`: sentences about the data, for the user.
    - `rules`: learners, as text NAME:FIELD=VALUE,..., that are run for comparison, even if the user does not name them.
    - `yardsticks`: simple learners, as text: all others are compared with the best of these after the last round.
    - `remark`: a sentence below the table.
    - `most_rounds`: the number of rounds after which nothing is left to show; None if there is no end.
    - `warn`: a function that returns a warning about a learner in this setting, or "".
    """

    setting: Setting
    title: str
    conditions: dict[str, object]
    notes: tuple[str, ...] = ()
    rules: tuple[str, ...] = ()
    yardsticks: tuple[str, ...] = ()
    remark: str = ""
    most_rounds: int | None = None
    warn: Callable[[Any], str] = lambda learner: ""


class Experiment(ABC):
    """Base class of the experiments that `heedful simulate NAME` runs.

    - `name`: the name of the command.
    - `learners`: the learners, as text, that are run if the user names none.
    - `seeds`: the default number of seeds.
    - `rounds`: the default number of rounds; in words if it depends on the data.
    - `prepare`: a function of the command's own options, each annotated with an `Option`, and the seeds; it returns the
      experiment ready to run. It raises OSError or ValueError for data that cannot be read or make no sense, and
      BadOption for an option that makes no sense.

    The help of the command is its line in `experiments.registry`, followed by the docstring of `prepare`.
    """

    name: str
    learners: tuple[str, ...] = ("perceptron",)
    seeds: int = 1
    rounds: int | str
    prepare: Callable[..., PreparedExperiment]


class GridExperiment(Experiment):
    """Base class of the experiments that also run in `heedful sweep`, for every combination of a learner, a simulated
    user and a seed of a grid. A grid is a TOML file; its table `data` names the experiment and the data files.

    - `syntax`: the shortest table `data` of a grid, for error messages.
    - `grid_help`: what a grid may contain, for the help of `heedful sweep`.
    - `keys`: the keys of the table `data`, with the types of their values; one of them is the experiment's name.
    - `grid_keys`: keys of the grid outside `data` that only this experiment takes.
    - `act`: the method that a simulated user needs to answer, "rank" or "pick"; "" if a grid names no users.
    - `answers`: what results have in place of a user if grids name none, such as "grades"; otherwise "".
    - `all_seeds`: whether a setting is made for all seeds of a grid at once, because that takes no longer than for one.
    """

    syntax: str
    grid_help: str
    keys: ClassVar[Mapping[str, type]]
    grid_keys: tuple[str, ...] = ()
    answers: str = ""
    act: str = ""
    all_seeds: bool = False

    def rules(self) -> tuple[str, ...]:
        """Return the learners, as text NAME:FIELD=VALUE,..., that are always run too, for comparison, even if a grid
        does not name them.
        """
        return ()

    @abstractmethod
    def check(
        self, where: str, folder: Path, data: Mapping[str, object], grid: Mapping[str, object]
    ) -> tuple[tuple[str, ...], dict[str, Any]]:
        """Check the table `data` of a grid, and return (paths of the data files, the values that a result depends on).

        `where`: the name of the grid, for errors; `folder`: where relative paths in `data` begin; `grid`: the whole
        grid. The values, such as the checksums of the files, are plain JSON; they are part of the key under which a
        result is stored. Raise ValueError, naming the key, for values that make no sense.
        """

    @abstractmethod
    def blank(self, values: Mapping[str, object]) -> Setting:
        """Return a setting without simulated environments, in which learners can be made just to see whether their text
        is valid.

        `values` are the values that `check` returned.
        """

    @abstractmethod
    def setting(self, files: tuple[str, ...], values: Mapping[str, object], user: str, seeds: Sequence[int]) -> Setting:
        """Return the setting (the simulated environments and what they share) in which the learners of a grid run with
        one simulated user, given as text `user`, and these `seeds`.

        `files` and `values` are what `check` returned; `user` is ignored if grids of this experiment name no users.
        Raise ValueError if the files cannot be used.
        """


def check_keys(where: str, table: Mapping[str, object], keys: Mapping[str, type]) -> None:
    """Raise ValueError, naming the key, if `table` has a key that is not in `keys`, or a value that is not of its type
    there.

    `where` names the table in the message.
    """
    from heedful.learners.registry import did_you_mean

    words = {dict: "a table", list: "a list", int: "a whole number", str: "a text", bool: "true or false"}
    for key, value in table.items():
        if key not in keys:
            raise ValueError(f"{where}: {key}: expected {', '.join(keys)}, got {key!r}{did_you_mean(key, keys)}")
        if not isinstance(value, keys[key]) or (isinstance(value, bool) and keys[key] is not bool):
            raise ValueError(f"{where}: {key}: expected {words[keys[key]]}, got {value!r}")


def check_text(where: str, key: str, value: object) -> str:
    """Return `value`, one element of the list under `key` of a grid, if it is text. Raise ValueError, beginning with
    `where` (the name of the grid), if it is not.
    """
    if not isinstance(value, str):
        raise ValueError(f"{where}: {key}: expected texts, got {value!r}")
    return value


def matching_files(where: str, key: str, folder: Path, patterns: Iterable[object], *, single: bool) -> list[Path]:
    """Return the files in `folder` that match the glob `patterns`; with `single`, a pattern has to match exactly one
    file.

    Raise ValueError, naming the grid (`where`) and the `key` of the patterns, if a pattern matches no file.
    """
    files: list[Path] = []
    for pattern in patterns:
        names = glob.glob(check_text(where, key, pattern), root_dir=folder)
        if not names or (single and len(names) > 1):
            expected = "one file" if single else "files"
            raise ValueError(f"{where}: {key}: expected {expected}, got {len(names) or 'none'} that match {pattern!r}")
        files += [folder / name for name in sorted(names)]
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
