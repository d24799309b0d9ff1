"""Many loops at once, and one long log in shards: evaluation and replay on any engine of `heedful.core.engine`.

>>> found = evaluate_loops(["cars.heedful", "films.heedful"], "posterior", engine="processes")

Each loop is opened, read and closed in one process. Loops in folders have to be on the disk of the machine that reads
them; those in a PostgreSQL database can be read from anywhere.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from heedful.core.engine import Engine, Outcome, map_tasks, run_tasks
from heedful.core.fold import generators
from heedful.core.shards import check_batches
from heedful.core.validation import check_count
from heedful.loop.interactions.protocol import find_candidate
from heedful.loop.loop import Loop
from heedful.loop.model import View
from heedful.results.evaluation import Evaluation
from heedful.storage import Address

Array = npt.NDArray[np.float64]
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


def verify_loops(
    places: Iterable[Where],
    *,
    own: str | Sequence[str] | None = None,
    engine: Engine = "serial",
    jobs: int | None = None,
    tell: Tell = lambda told: None,
) -> list[list[str]]:
    """Replay the log of the loop at each of `places`, and return what is wrong with each, in order: a list of sentences
    per loop, [] if nothing is (`Loop.verify`).

    Nothing is wrong with a loop if its log is undamaged and a model made again from the whole log equals its model bit
    for bit. The other arguments and errors are those of `evaluate_loops`."""
    return in_order(map_loops(Loop.verify, places, own=own, engine=engine, jobs=jobs, tell=tell))


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


def _open(place: Where, own: str | Sequence[str] | None) -> Loop:
    return Loop.open(place if isinstance(place, Address) else os.fspath(place), learner=own, read_only=True)


def _with_loop(
    function: Callable[..., object], arguments: tuple[object, ...], own: str | Sequence[str] | None, place: Where
) -> Any:
    with _open(place, own) as loop:
        return function(loop, *arguments)


def _evaluate(loop: Loop, learners: Sequence[str], alpha: float) -> Evaluation:
    return loop.evaluate(*learners, alpha=alpha)


# ---------------------------------------------------------------------------- one long log


def replay_loop(
    place: Where,
    learner: str | None = None,
    *,
    own: str | Sequence[str] | None = None,
    events: int = 20_000,
    engine: Engine = "serial",
    jobs: int | None = None,
    tell: Tell = lambda told: None,
) -> dict[str, float]:
    """Let a learner learn the whole log of the loop at `place` in parallel; return its weight for each feature, by
    name.

    `learner` is a learner of mini-batches with parameters, such as "perceptron:batch=10"; None is the loop's own. The
    log is read in shards of `events` events. The update direction of each piece of feedback does not depend on the
    weights, so directions are computed on any engine, and the sums of each batch are added in the order of the log. The
    weights are those of a loop of this learner (`Loop.weights`) up to rounding (1e-12), and bit for bit the same with
    every engine and any number of shards. Feedback that was undone is left out.

    `own`, `engine`, `jobs` and `tell` are those of `evaluate_loops`. Raise ValueError if the learner has no batches."""
    check_count("events", events)
    with _open(place, own) as loop:
        projection = loop.projection
        head, spec = projection.log.last()[0], projection.manifest.learner if learner is None else learner
        model = find_candidate(projection.interaction, spec)
        check_batches(model.learner)
        names = loop.feature_names
    spans = [(after, min(after + events, head)) for after in range(0, head, events)]
    told = [f"events {after + 1:,} to {last:,}" for after, last in spans]
    found = map_tasks(_directions, spans, engine=engine, jobs=jobs, shared=(place, own, spec), names=told, tell=tell)
    rule: Any = model.learner
    state = model.shared
    for directions in found:
        for D in directions:
            state = rule.step(state, D)
    weights = model.effective(View(model, state))
    return dict(zip(names, weights.tolist()))


def _directions(place: Where, own: str | Sequence[str] | None, spec: str, span: tuple[int, int]) -> Array:
    """Return the update directions (n, N) of the n pieces of feedback, among the events after span[0] up to span[1],
    that teach the learner `spec` anything, for N features."""
    with _open(place, own) as loop:
        projection = loop.projection
        interaction = projection.interaction
        model: Any = interaction.candidate(spec)
        rule = model.learner = model.learner._replace(batch=1)
        found = []
        for event, decision, feedback in projection.lessons(span[0]):
            if event.seq > span[1]:
                break
            step = projection.step(event, decision, feedback)
            model.shared = rule.init(generators(0)[2])
            model.teach(step.context._replace(person=None), feedback, step.extra, event.seq)
            # What agrees with the list is a round of its batch, too, although nothing is learned from it.
            if model.refusal(feedback.form) is None and model.lesson(step.context, feedback, step.extra) is not None:
                found.append(np.array(rule.weights(model.shared), np.float64))
        return np.array(found, np.float64).reshape(len(found), len(interaction.names))
