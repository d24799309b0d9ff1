"""The common part of running figures: everything that is compared meets the same data, and runs are cached.

There are two kinds of runs. A `Group` of learners plays the rounds of simulated environments. `Trials` are anything
else that is repeated: run i is one call of a function, which fits and tests models or measures something besides
regret.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from heedful.core.engine import Engine, run_tasks
from heedful.experiments.run import Advance, InterpretedNotice, Run, simulate
from heedful.experiments.setting import Setting
from heedful.papers.figure import Line

Array = npt.NDArray[np.float64]
Tell = Callable[[str, float], None]
"""A function that reports progress: what is being run, and the share of it that is done, from 0 to 1."""

KEPT = 1_000_000_000
"""the greatest number of bytes of regrets that are kept for other panels"""


class Workers(NamedTuple):
    """The workers that do the runs of a figure: how many work at a time, and by which engine."""

    jobs: int = 1
    """how many runs are done at a time"""
    engine: Engine = "serial"
    """the engine of `heedful.core.engine` that does them"""
    note: Callable[[str], None] = lambda told: None
    """called with a sentence where that engine is not used"""
    interpreted: bool | None = False
    """what `simulate` is told of learners that a figure does not compare by time"""

    @property
    def apart(self) -> Workers:
        """The workers for runs that hold Python's global lock, where threads gain nothing: these if they are processes,
        otherwise one run after another in this process.
        """
        return HERE if self.engine == "serial" else self


HERE = Workers()
"""One run after another, in this process."""


def part_of(tell: Tell, i: int, parts: int, title: str = "") -> Tell:
    """Return a function that reports the progress of part `i` (from 0) of a task of `parts` equal parts to `tell`: the
    share of the whole task, with `title` before the words that describe it.
    """
    return lambda words, share: tell(f"{title}{words}", (i + share) / parts)


class LearnerRuns(NamedTuple):
    """The runs of one learner or model, in the order of seeds, then of people."""

    regrets: Array
    """(runs x T) the regret, or another value, of each of T rounds"""
    seconds: Array
    """(runs,) the processor time of each run"""


class Group(NamedTuple):
    """Learners that play the same simulated environments, and how to make and run them."""

    key: tuple[object, ...]
    """what decides the runs besides the learner; the key in the cache of runs"""
    learners: Sequence[str]
    """the learners, by the names that the curves of a figure use"""
    settings: Iterable[Setting]
    """the simulated environments with their seeds; used once, in order"""
    make: Callable[[str, Setting], Any]
    """makes the learner of a name for a setting"""
    scenes: int
    """the number of environments in all settings together"""
    what: str
    """what is run, in words, for progress"""
    interpreted: bool | None = None
    """True, no learner is compiled, or False, each is before it begins, so that times compare; None: as it pays"""
    sums: bool = False
    """whether only the sum of the regrets of each run is kept"""


class Trial(NamedTuple):
    """The result of one run of one model: its values, and the time that it took."""

    values: Array
    """(T,) one value for each of T steps, or (T x c) for c quantities"""
    seconds: float
    """the processor time of the run"""


class Trials(NamedTuple):
    """Repeated runs of models that are not learners in rounds, such as models that are fitted and tested."""

    key: tuple[object, ...]
    """what decides the runs besides the model; the key in the cache of runs"""
    models: Sequence[str]
    """the models, by the names that the curves of a figure use"""
    run: Callable[[int, Sequence[str]], Mapping[str, Trial]]
    """`run(i, names)` does run i and returns the result of each of these models by name; it is called in any process,
    so it is a function of a module, or a `functools.partial` of one"""
    runs: int
    """the number of runs"""
    what: str
    """what is run, in words, for progress"""


def run_group(group: Group, rounds: int, cache: dict[Any, Any], workers: Workers, tell: Tell) -> dict[str, LearnerRuns]:
    """Return the runs of each learner of `group`, of up to `rounds` rounds, by name: those in the cache `cache`; the
    others are played by `workers`, and added to it. `tell` is called to report progress.
    """

    def play(missing: Sequence[str]) -> dict[str, LearnerRuns]:
        runs: dict[str, list[Run]] = {spec: [] for spec in missing}
        total, done = rounds * group.scenes * len(missing), 0
        for setting in group.settings:
            learners = {spec: group.make(spec, setting) for spec in missing}
            for event in simulate(
                learners,
                setting,
                rounds,
                jobs=workers.jobs,
                interpreted=workers.interpreted if group.interpreted is None else group.interpreted,
                engine=workers.engine,
                tell=workers.note,
            ):
                if isinstance(event, Run):
                    runs[event.learner].append(event)
                elif isinstance(event, Advance):
                    done += event.rounds
                    tell(group.what, done / total)
                elif isinstance(event, InterpretedNotice):
                    warnings.warn(f"{event.learner} with {group.what} runs interpreted: {event.reason}", stacklevel=4)
        return {spec: _collect(runs[spec], group.sums) for spec in missing}

    return _run_missing(group.key, group.learners, play, cache)


def run_trials(trials: Trials, cache: dict[Any, Any], workers: Workers, tell: Tell) -> dict[str, LearnerRuns]:
    """Return the runs of each model of `trials`, by name: those in the cache `cache`; the others are run by `workers`,
    and added to it. `tell` is called to report progress.
    """

    def repeat(missing: Sequence[str]) -> dict[str, LearnerRuns]:
        tell(trials.what, 0.0)
        by_run: dict[int, Mapping[str, Trial]] = {}
        for i, trial in _repeat(trials, missing, workers):
            by_run[i] = trial
            tell(trials.what, len(by_run) / trials.runs)
        by_model = {name: [by_run[i][name] for i in range(trials.runs)] for name in missing}
        return {
            name: LearnerRuns(np.array([trial.values for trial in many]), np.array([trial.seconds for trial in many]))
            for name, many in by_model.items()
        }

    return _run_missing(trials.key, trials.models, repeat, cache)


def _repeat(trials: Trials, names: Sequence[str], workers: Workers) -> Iterator[tuple[int, Mapping[str, Trial]]]:
    """Yield (i, the trials of run i by name) of the models `names`, in any order."""
    if workers.engine == "serial" or workers.jobs == 1:
        with ThreadPoolExecutor(min(workers.jobs, trials.runs)) as threads:
            yield from enumerate(threads.map(lambda i: trials.run(i, names), range(trials.runs)))
        return
    outcomes = run_tasks(
        _repeat_once,
        range(trials.runs),
        engine=workers.engine,
        jobs=workers.jobs,
        shared=(trials.run, names),
        names=[f"{trials.what}, run {i}" for i in range(trials.runs)],
        tell=workers.note,
    )
    for i, trials_of_run, error in outcomes:
        if error is not None:
            raise error.__cause__ or error
        yield i, trials_of_run


def _repeat_once(
    run: Callable[[int, Sequence[str]], Mapping[str, Trial]], names: Sequence[str], i: int
) -> Mapping[str, Trial]:
    return run(i, names)


def _run_missing(
    prefix: tuple[object, ...],
    names: Sequence[str],
    run: Callable[[Sequence[str]], dict[str, LearnerRuns]],
    cache: dict[Any, Any],
) -> dict[str, LearnerRuns]:
    """Return the runs of `names`, from `cache` under (*key, name) or by `run`, which are added; those of other keys
    leave it, the oldest first, while it holds more than KEPT bytes."""
    keys = {name: (*prefix, name) for name in names}
    missing = [name for name, key in keys.items() if key not in cache]
    if missing:
        cache.update({keys[name]: learner_runs for name, learner_runs in run(missing).items()})
    runs = {name: cache[key] for name, key in keys.items()}
    others = [
        key for key, learner_runs in cache.items() if isinstance(learner_runs, LearnerRuns) and key not in keys.values()
    ]
    while (
        others
        and sum(learner_runs.regrets.nbytes for learner_runs in cache.values() if isinstance(learner_runs, LearnerRuns))
        > KEPT
    ):
        del cache[others.pop(0)]
    return runs


def best_of(line: Line, runs: dict[str, LearnerRuns], judged: int | None = None) -> str:
    """Return the name of the learner to draw as the curve `line`: of those it may be, the best in hindsight, with the
    lowest average regret over the first `judged` rounds (None: all). `runs` has the runs of each learner, by name.
    """
    return min(line.learners, key=lambda spec: float(runs[spec].regrets[:, :judged].mean()))


def _collect(runs: Sequence[Run], sums: bool) -> LearnerRuns:
    """Return the runs of one learner by seed and person, cut to the number of rounds of the shortest; with `sums`, only
    the sum of the regrets of each."""
    ordered = sorted(runs, key=lambda run: (run.seed, run.person))
    T = min(run.regrets.size for run in ordered)
    regrets = np.array([run.regrets[:T] for run in ordered])
    return LearnerRuns(
        regrets.sum(axis=1, keepdims=True) if sums else regrets, np.array([run.seconds for run in ordered])
    )
