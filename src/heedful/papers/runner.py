"""The common runner of learners in figures: learners that are compared meet the same scenes, and runs are cached.

A `Group` is what depends on the kind of world: which learners run together, in what settings, and how they are made.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from heedful.experiments.run import Advance, InterpretedNotice, Run, Setting, simulate
from heedful.papers.figure import Line

Array = npt.NDArray[np.float64]
Tell = Callable[[str, float], None]
"""Told what is being run, and which share of it is done."""

KEPT = 1_000_000_000
"""Bytes of regrets that are kept for the next panel."""


class LearnerRuns(NamedTuple):
    """All runs of one learner, by seed and person: regrets (runs x T), processor time (runs,)."""

    regrets: Array
    seconds: Array


class Group(NamedTuple):
    """Learners, as lines name them, that run together.

    `key`: what decides their runs besides the learner; `make`: the learner of a name in a setting. Settings are used
    once, in order; `scenes`: number of scenes of all of them; `what`: words for progress. `interpreted`: compile none,
    so that times compare; `sums`: keep only each run's sum.
    """

    key: tuple[Any, ...]
    learners: Sequence[str]
    settings: Iterable[Setting]
    make: Callable[[str, Setting], Any]
    scenes: int
    what: str
    interpreted: bool = False
    sums: bool = False


def run_group(group: Group, rounds: int, kept: dict[Any, Any], jobs: int, tell: Tell) -> dict[str, LearnerRuns]:
    """Runs of a group by learner; those not in `kept` are run together, and added to it."""
    keys = {spec: (*group.key, spec) for spec in group.learners}
    missing = [spec for spec, key in keys.items() if key not in kept]
    if missing:
        runs: dict[str, list[Run]] = {spec: [] for spec in missing}
        total, done = rounds * group.scenes * len(missing), 0
        for setting in group.settings:
            learners = {spec: group.make(spec, setting) for spec in missing}
            for event in simulate(learners, setting, rounds, jobs=jobs, interpreted=group.interpreted):
                if isinstance(event, Run):
                    runs[event.learner].append(event)
                elif isinstance(event, Advance):
                    done += event.rounds
                    tell(group.what, done / total)
                elif isinstance(event, InterpretedNotice):
                    warnings.warn(f"{event.learner} with {group.what} runs interpreted: {event.reason}", stacklevel=2)
        for spec in missing:
            kept[keys[spec]] = _collect(runs[spec], group.sums)
    found = {spec: kept[key] for spec, key in keys.items()}
    others = [key for key, many in kept.items() if isinstance(many, LearnerRuns) and key not in keys.values()]
    while others and sum(many.regrets.nbytes for many in kept.values() if isinstance(many, LearnerRuns)) > KEPT:
        del kept[others.pop(0)]
    return found


def best_of(line: Line, found: dict[str, LearnerRuns], judged: int | None = None) -> str:
    """The learner of a line with the lowest average regret over the first `judged` rounds (None: all)."""
    return min(line.learners, key=lambda spec: float(found[spec].regrets[:, :judged].mean()))


def _collect(runs: Sequence[Run], sums: bool) -> LearnerRuns:
    ordered = sorted(runs, key=lambda run: (run.seed, run.person))
    T = min(run.regrets.size for run in ordered)
    regrets = np.array([run.regrets[:T] for run in ordered])
    return LearnerRuns(
        regrets.sum(axis=1, keepdims=True) if sums else regrets, np.array([run.seconds for run in ordered])
    )
