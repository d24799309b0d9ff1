"""Run learners in the same simulated environments on the same seeds, and average their regret, with its standard error.

A `Setting` holds the environments, `simulate` runs learners in them, several at a time, and `curve` averages the runs
of one learner. Everything can be reproduced from the seeds.

>>> setting = letor_setting(load_letor(*files), StrictAlpha(0.5), seeds=range(5))
>>> runs = [event for event in simulate({"perceptron": learner}, setting, 784) if isinstance(event, Run)]
>>> curve(runs).mean  # REG_t, t = 1, 2, ...
"""

from __future__ import annotations

import math
import queue
import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import PurePath
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from heedful.core.engine import Engine, check_engine, run_tasks
from heedful.core.fold import must_interpret, trace, trace_in_chunks
from heedful.experiments.beside import Player
from heedful.experiments.setting import Scene, Setting
from heedful.learners.registry import Portable, unwrap
from heedful.spaces.ranking import is_exact

Array = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


class CompilationNotice(NamedTuple):
    """An event of `simulate`: the code of the learner with the name `learner` begins to be compiled."""

    learner: str


class InterpretedNotice(NamedTuple):
    """An event of `simulate`: a learner cannot be compiled, and runs interpreted, which is slower.

    - `learner`: the name of the learner.
    - `reason`: why it cannot be compiled, in one line.
    """

    learner: str
    reason: str


class Advance(NamedTuple):
    """An event of `simulate`, for a progress bar: `rounds` more rounds were played, or skipped because a simulation
    ended early.
    """

    rounds: int


class Run(NamedTuple):
    """The result of one learner in one simulated environment.

    - `learner`: its name in `simulate`.
    - `seed`: the experiment's seed that the environment belongs to.
    - `person`: the number of the simulated person; 0 where a seed has only one.
    - `regrets` (T,): the regret (loss or other measure) of each of T rounds.
    - `seconds`: the processor time of these rounds, without compilation and preparation.
    """

    learner: str
    seed: int
    person: int
    regrets: Array
    seconds: float


class Curve(NamedTuple):
    """The average of one learner's runs: its average regret after each number of rounds.

    - `mean` (T,): REG_t for t = 1..T, the mean regret of the first t rounds, averaged over runs.
    - `stderr` (T,): the standard error of REG_t; NaN if there is only one run.
    - `over`: what the standard error is over: "seeds", "people" (if there is one seed) or "nothing" (if there is one
      run).
    - `longest`: the number of rounds of the longest run; T is that of the shortest.
    - `rounds_per_second`: how fast the runs were, in processor time.
    """

    mean: Array
    stderr: Array
    over: str
    longest: int
    rounds_per_second: float


# ---------------------------------------------------------------------------- runs


def simulate(
    learners: Mapping[str, Any],
    setting: Setting,
    rounds: int,
    *,
    jobs: int = 1,
    interpreted: bool | None = False,
    engine: Engine = "serial",
    tell: Callable[[str], None] = lambda words: None,
) -> Iterator[CompilationNotice | InterpretedNotice | Advance | Run]:
    """Run every learner in every simulated environment of `setting` for `rounds` rounds, and yield events as they
    happen.

    `learners` are by name, which events repeat. `jobs` is the number of runs at a time. `interpreted`: True compiles
    no learner, False compiles each before it begins, and None begins interpreted and compiles in another process what
    that pays for (`heedful.experiments.beside`), for which the main module of the program must not run it when
    imported. Each run yields `Advance` events and ends with a `Run`; the runs come in any order. Regrets are the same
    with each `engine`:

    - "serial": runs are threads of this process. Compiled learners run in parallel; interpreted ones take turns.
    - "processes", "ray": each run is a task of `heedful.core.engine`, which may call `tell` with a message for the
      user.
    - "auto": tasks if all learners are interpreted and `jobs` is above 1; otherwise threads, which are as fast.

    Raise ValueError if the setting has no environments. An error of a learner is raised here too, as
    `heedful.core.engine.TaskError` if the run was in another process.
    """
    if not setting.scenes:
        raise ValueError("seeds: expected at least one, got none")
    check_engine(engine)
    if engine in ("processes", "ray"):  # each of their processes would compile for itself
        interpreted = bool(interpreted)
    world = setting.scenes[0].world
    plain = {
        name for name, learner in learners.items() if interpreted or must_interpret(learner) or must_interpret(world)
    }
    for name, learner in learners.items():
        if interpreted is False and name not in plain:
            yield CompilationNotice(name)
            try:
                trace(learner, world, 0, 0)
            except Exception as error:  # numba's own kinds and, for types it does not know, Python's
                plain.add(name)
                yield InterpretedNotice(name, error_reason(error))
    tasks = [(name, i) for i in range(len(setting.scenes)) for name in learners]
    distributed = engine in ("processes", "ray") or (engine == "auto" and jobs > 1 and plain == set(learners))
    play = _simulate_in_processes if distributed and len(tasks) > 1 else _simulate_in_threads
    runs = _Runs(learners, setting.scenes, setting.warm, rounds, frozenset(plain), interpreted is None)
    yield from play(runs, tasks, jobs, engine, tell)


class _Runs(NamedTuple):
    """What the runs of one call of `simulate` share.

    - `learners`: the learners by name, wrapped as `Portable` if they are sent to another process.
    - `scenes`: the simulated environments.
    - `warm`: how many rounds are played before the first one that counts.
    - `rounds`: how many rounds count.
    - `plain`: the names of the learners that run interpreted, not compiled.
    - `change`: whether the others begin interpreted, and change over to compiled code.
    """

    learners: Any
    scenes: Sequence[Scene]
    warm: int
    rounds: int
    plain: frozenset[str]
    change: bool

    def fold(
        self,
        task: tuple[str, int],
        advance: Callable[[int], bool],
        notice: Callable[[CompilationNotice | InterpretedNotice], None],
    ) -> Run:
        """Run one learner in one environment; `task` is (the learner's name, the index of the environment in `scenes`).

        advance(n) is called after n more rounds; if it returns True, the run stops. notice(event) is called where code
        begins to be compiled, or cannot be.
        """
        name, scene = task[0], self.scenes[task[1]]
        learner, T = unwrap(self.learners)[name], self.warm + self.rounds
        interpreted, regrets = True if name in self.plain else None if self.change else False, np.empty(0)
        player = Player(
            interpreted,
            lambda: notice(CompilationNotice(name)),
            lambda error: notice(InterpretedNotice(name, error_reason(error))),
        )
        chunk = max(1000, self.rounds // 20) if interpreted is False else 200
        for so_far in trace_in_chunks(learner, scene.world, T, scene.draw, chunk=chunk, loop=player):
            stop = advance(so_far[self.warm :].size - regrets.size)
            regrets = so_far[self.warm :]
            if stop:
                break
        advance(self.rounds - regrets.size)
        took = player.seconds * regrets.size / max(so_far.size, 1)  # without the warm-up rounds
        return Run(name, scene.seed, scene.person, regrets, took)


def _fold_task(runs: _Runs, task: tuple[str, int]) -> Run:
    """Do the run `task` of `runs`, (the learner's name, the index of the environment), in whatever process this is
    called in."""
    return runs.fold(task, lambda more: False, lambda event: None)


def _simulate_in_processes(
    runs: _Runs, tasks: Sequence[tuple[str, int]], jobs: int, engine: Engine, tell: Callable[[str], None]
) -> Iterator[Advance | Run]:
    """Do the runs `tasks` in other processes, at most `jobs` at a time, and yield their events."""
    names = [f"{name}, seed {runs.scenes[i].seed}" for name, i in tasks]
    shared = (runs._replace(learners=Portable(runs.learners)),)
    for outcome in run_tasks(_fold_task, tasks, engine=engine, jobs=jobs, shared=shared, names=names, tell=tell):
        if outcome.error is not None:
            raise outcome.error.__cause__ or outcome.error
        yield Advance(runs.rounds)
        yield outcome.value


def _simulate_in_threads(
    runs: _Runs, tasks: Sequence[tuple[str, int]], jobs: int, engine: Engine, tell: Callable[[str], None]
) -> Iterator[CompilationNotice | InterpretedNotice | Advance | Run]:
    """Do the runs `tasks`, (a learner's name, the index of an environment) each, in threads of this process, and yield
    their events."""
    events: queue.SimpleQueue[CompilationNotice | InterpretedNotice | Advance | Future[Run]] = queue.SimpleQueue()
    stop = threading.Event()

    def advance(rounds: int) -> bool:
        events.put(Advance(rounds))
        return stop.is_set()

    pool = ThreadPoolExecutor(jobs)
    try:
        waiting = [pool.submit(runs.fold, task, advance, events.put) for task in tasks]
        for future in waiting:
            future.add_done_callback(events.put)
        unfinished = len(waiting)
        while unfinished:
            event = events.get()
            if isinstance(event, Future):
                unfinished -= 1
                yield event.result()
            elif not isinstance(event, Advance) or event.rounds:
                yield event
    finally:
        stop.set()
        pool.shutdown(cancel_futures=True)


def error_reason(error: BaseException) -> str:
    """Return the one line of an error's message that says why it happened, with file and line if the message has them.

    The messages of numba nest from the outermost call, so the line is taken from the innermost.
    """
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    starts = [i for i, line in enumerate(lines) if "Failed in nopython mode pipeline" in line]
    lines = lines[starts[-1] + 1 :] if starts else lines
    messages = [line for line in lines if not line.startswith("- Resolution failure")]
    if not messages:
        return type(error).__name__
    why = (
        f"no {messages[1].removeprefix('>>> ')}"
        if messages[0].endswith("found for signature:") and messages[1:]
        else messages[0]
    )
    place = next(filter(None, (re.fullmatch(r'File "(.+)", line (\d+):', line) for line in messages)), None)
    return f"{why} ({PurePath(place[1]).name}, line {place[2]})" if place else why


# ---------------------------------------------------------------------------- averages


def average_regret(regrets: Array) -> Array:
    """Return REG_t, the mean of the first t regrets, for t = 1..T: an array like `regrets`, (..., T), along its last
    axis."""
    average: Array = np.cumsum(regrets, axis=-1) / np.arange(1, regrets.shape[-1] + 1)
    return average


def curve(runs: Sequence[Run]) -> Curve:
    """Return the average of one learner's runs, as long as the shortest of them: over people first, then over seeds.

    The standard error is over seeds; with one seed, over people.
    """
    T = min(run.regrets.size for run in runs)
    seeds = sorted({run.seed for run in runs})
    by_seed = [[run for run in runs if run.seed == seed] for seed in seeds]
    regrets = np.array([np.mean([run.regrets[:T] for run in same], axis=0) for same in by_seed])  # seeds x T
    samples, over = (regrets, "seeds") if len(seeds) > 1 else (np.array([run.regrets[:T] for run in runs]), "people")
    return Curve(
        mean=average_regret(regrets).mean(axis=0),
        stderr=standard_error(average_regret(samples)),
        over=over if len(samples) > 1 else "nothing",
        longest=max(run.regrets.size for run in runs),
        rounds_per_second=sum(run.regrets.size for run in runs) / max(sum(run.seconds for run in runs), 1e-9),
    )


def standard_error(samples: Array) -> Array:
    """Return the standard error of the mean of n samples, (n, ...) -> (...), over the first axis; NaN if n is 1."""
    n = len(samples)
    error: Array = np.std(samples, axis=0, ddof=1) / math.sqrt(n) if n > 1 else np.full(samples.shape[1:], np.nan)
    return error


def difference(ours: Sequence[Run], theirs: Sequence[Run]) -> tuple[float, float]:
    """Return (mean, standard error) of the regret per round of the runs `ours` minus that of `theirs`, paired by seed.

    Only rounds that all runs have count. People are averaged first; the standard error is over seeds, NaN with one
    seed. Raise ValueError if the two have other seeds.
    """
    seeds = sorted({run.seed for run in ours})
    if seeds != sorted({run.seed for run in theirs}):
        raise ValueError(f"theirs: expected runs on the seeds {seeds}")
    T = min(run.regrets.size for run in (*ours, *theirs))

    def means(runs: Sequence[Run]) -> Array:
        by_seed = [[run.regrets[:T].mean() for run in runs if run.seed == seed] for seed in seeds]
        return np.array([np.mean(same) for same in by_seed])

    d = means(ours) - means(theirs)
    return float(d.mean()), float(standard_error(d))


def pair_agreement(u: Array, v: Array) -> float:
    """Return the share of pairs of items that `v` (m,) puts in the same order as `u` (m,) does: two lists of values for
    the same m items.

    Only pairs with different values in u count. It is NaN if all values of u are equal.
    """
    ordered = np.sign(u[:, None] - u)
    alike = ordered * np.sign(v[:, None] - v) > 0
    return float(alike.sum() / (ordered != 0).sum()) if ordered.any() else math.nan


def bound(learner: Any, setting: Setting, t: npt.ArrayLike) -> Array:
    """Return an upper bound of the learner's average regret REG_t for each number of rounds t in the array `t`,
    averaged over the simulated environments of `setting`.

    The bound is the learner's `regret_bound`, from its paper's theorem. It is NaN if the learner has none, or if an
    assumption of the theorem fails: the users are not strict (`setting.alpha` is NaN), the argmax of the space is
    approximate, or the space adds the caller's own score (`WithBaseScore`).
    """
    t = np.asarray(t, np.float64)
    if (
        math.isnan(setting.alpha)
        or not hasattr(learner, "regret_bound")
        or not is_exact(getattr(learner, "space", None))
    ):
        return np.full(t.shape, np.nan)
    bounds = [learner.regret_bound(t, setting.alpha, s.w_star, setting.R, setting.S) for s in setting.scenes]
    mean: Array = np.mean(bounds, axis=0)
    return mean


def checkpoints(rounds: int) -> Ints:
    """Return the rounds at which averages are shown: 1, 3, 10, 30, 100, 300, ..., below `rounds`, and `rounds`
    itself."""
    marks = [mantissa * 10**power for power in range(len(str(rounds))) for mantissa in (1, 3)]
    return np.array([mark for mark in marks if mark < rounds] + [rounds])
