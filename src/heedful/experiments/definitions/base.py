"""The base class of experiments: what `heedful simulate` needs to know of each one."""

from __future__ import annotations

from abc import ABC
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from heedful.experiments.setting import Setting


class Option(NamedTuple):
    """The help of one parameter of the method `prepare` of an experiment, as `heedful simulate NAME --help` shows it.

    - `help`: the text.
    - `metavar`: what stands for the value in the help, such as FILE.
    - `least`, `most`: the least and the greatest value that is allowed; None: no limit.
    - `default`: the default in words; None if the help shows its value.

    A parameter without a default becomes an argument of the command, any other an option --NAME.
    """

    help: str
    metavar: str | None = None
    least: float | None = None
    most: float | None = None
    default: str | None = None


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
