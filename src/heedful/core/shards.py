"""Replay one long log in shards: the updates of each batch of k rounds, during which the weights are fixed, are added
up on any engine; the sums are then added in the order of the log.

Such a learner has a field `batch` (k), and two methods: `merge`, and `weights`, which after the rounds of one whole
batch from the first state are the sum of their updates. `heedful.PreferencePerceptron` is one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from typing import Any

import numpy as np
import numpy.typing as npt

from heedful.core.engine import Engine, map_tasks
from heedful.core.fold import Round, coerce, generators
from heedful.core.validation import check_count, describe

Array = npt.NDArray[np.float64]


def check_batches(learner: Any) -> None:
    """Raise ValueError unless `learner` learns in batches: it keeps its weights fixed for k rounds, adds up their
    updates, and has the field `batch` (k) and the method `merge`.
    """
    if not (hasattr(learner, "batch") and hasattr(learner, "merge")):
        expected = "one that learns in batches while its weights are fixed, such as perceptron:batch=10"
        raise ValueError(f"learner: expected {expected}, got {describe(learner)}")


def cut(log: Sequence[object], batch: int, rounds: int = 10_000) -> list[Sequence[Any]]:
    """Cut a log, a sequence of rounds, into shards: return consecutive slices of it, in order.

    Each shard but the last has the greatest multiple of `batch` up to `rounds` (at least one batch) of rounds.
    """
    check_count("batch", batch)
    check_count("rounds", rounds)
    size = max(rounds // batch, 1) * batch
    return [log[i : i + size] for i in range(0, len(log), size)]


def replay_shards(
    learner: Any,
    shards: Sequence[object],
    seed: int = 0,
    *,
    read: Callable[[Any], Iterable[Round[Any, Any, Any]]] = iter,
    engine: Engine = "serial",
    jobs: int | None = None,
    tell: Callable[[str], None] = lambda words: None,
) -> Any:
    """Return the state of `learner` after all rounds of a log, as `heedful.replay` does, with shards of the log summed
    in parallel.

    - `shards`: the log in pieces, in order: lists of rounds (`cut` makes them), or names of parts of a file. Each but
      the last has to hold whole batches.
    - `read`: called with a shard in the process that sums it; returns its rounds
    - `seed`: that of the learner's first state, as in `heedful.replay`
    - `engine`, `jobs`, `tell`: as in `heedful.core.engine.run_tasks`

    With batches of two rounds or more the state is that of `heedful.replay` bit for bit, with every engine: a batch is
    summed in one place, and the sums are added in order. With batches of one round the updates of a shard are summed
    first, so weights agree with those of `heedful.replay` to rounding (1e-12), and bit for bit with every engine on the
    same shards. Raise ValueError if the learner does not learn in batches, or if a shard before the last one ends
    within a batch.
    """
    check_batches(learner)
    learner = coerce(learner)
    state, k = learner.init(generators(seed)[2]), learner.batch
    parts = map_tasks(_sums, shards, engine=engine, jobs=jobs, shared=(learner, read, seed), tell=tell)
    for i, (sums, rounds, rest) in enumerate(parts):
        if rest and i < len(parts) - 1:
            expected = f"expected whole batches of {k} rounds in all but the last"
            raise ValueError(f"shards: {expected}, got {rounds + len(rest):,} rounds in shard {i}")
        state = learner.merge(state, sums, rounds)
        for x, y, feedback in rest:
            state = learner.update(state, x, y, feedback)
    return state


def _sums(learner: Any, read: Callable[[Any], Iterable[Any]], seed: int, shard: Any) -> tuple[Array, int, list[Any]]:
    """Return (the sums of updates of the whole batches of a shard, or of all its rounds where a batch is one; their
    number of rounds; the other rounds)."""
    rounds, count = iter(read(shard)), 0
    sums: list[Array] = []
    k: int = learner.batch
    while True:
        batch = list(islice(rounds, k if k > 1 else None))
        if not batch or len(batch) < k:
            N = learner.weights(learner.init(generators(seed)[2])).size
            return np.array(sums, np.float64).reshape(-1, N), count, batch
        state = learner.init(generators(seed)[2])
        for x, y, feedback in batch:
            state = learner.update(state, x, y, feedback)
        sums.append(np.array(learner.weights(state), np.float64))
        count += len(batch)
