"""Many loops at once, on any engine of `heedful.core.engine`.

>>> found = evaluate_loops(["cars.heedful", "films.heedful"], "posterior", engine="processes")

Each loop is opened, read and closed in one process. Loops in folders have to be on the disk of the machine that reads
them; those in a PostgreSQL database can be read from anywhere.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from heedful.core.engine import Engine, Outcome, run_tasks
from heedful.loop.loop import Loop
from heedful.results.evaluation import Evaluation
from heedful.storage import Address

Where = str | os.PathLike[str] | Address
"""Where a loop is, as `Loop.open` takes it."""
Tell = Callable[[str], None]


def evaluate_loops(
    places: Iterable[Where],
    *learners: str,
    alpha: float = 0.05,
    own: str | Sequence[str] | None = None,
    engine: Engine = "serial",
    jobs: int | None = None,
    tell: Tell = lambda told: None,
) -> list[Evaluation]:
    """Compare learners on the logs of many loops: return `Loop.evaluate(*learners, alpha=alpha)` of the loop at each of
    `places`, in order.

    - `places`: folders of loops, or addresses in a PostgreSQL database.
    - `learners`: names with parameters, such as "second-order:epsilon=0.1"; each interval misses with probability
      `alpha` at most.
    - `own`: needed only for loops whose learner is the user's own, a class in a Python file: its name "FILE.py:Class",
      such as "mine.py:Ranker", or several. A log does not say what code to run, so they are named each time.
    - `engine`, `jobs`: where the loops are read ("serial": in this process, "processes", "ray" or "auto"), and how many
      at a time (None: one on each core).
    - `tell`: called with a sentence where the engine that was asked for is not used.

    Raise `heedful.core.engine.TaskError`, which names the loop, if one fails."""
    outcomes = map_loops(_evaluate, places, learners, alpha, own=own, engine=engine, jobs=jobs, tell=tell)
    return in_order(outcomes)


def map_loops(
    function: Callable[..., object],
    places: Iterable[Where],
    *arguments: object,
    own: str | Sequence[str] | None = None,
    engine: Engine = "serial",
    jobs: int | None = None,
    tell: Tell = lambda told: None,
) -> Iterable[Outcome]:
    """Call `function(loop, *arguments)` on the loop at each of `places`, open for reading only, and yield the outcome
    of each call as soon as it is done.

    An outcome is (index in `places`, result, error), where the error is None unless the call failed. The function,
    arguments and results must be picklable for engines that distribute; the other arguments are those of
    `evaluate_loops`."""
    them = list(places)
    shared, names = (function, arguments, own), [str(place) for place in them]
    return run_tasks(_with_loop, them, engine=engine, jobs=jobs, shared=shared, names=names, tell=tell)


def in_order(outcomes: Iterable[Outcome]) -> list[Any]:
    """Return the results of `outcomes`, triples (index of the task, result, error or None), by index. Raise the error
    of the first outcome that has one."""
    found: dict[int, Any] = {}
    for number, value, error in outcomes:
        if error is not None:
            raise error
        found[number] = value
    return [found[number] for number in sorted(found)]


def _with_loop(
    function: Callable[..., object], arguments: tuple[object, ...], own: str | Sequence[str] | None, place: Where
) -> Any:
    where = place if isinstance(place, Address) else os.fspath(place)
    with Loop.open(where, learner=own, read_only=True) as loop:
        return function(loop, *arguments)


def _evaluate(loop: Loop, learners: Sequence[str], alpha: float) -> Evaluation:
    return loop.evaluate(*learners, alpha=alpha)
