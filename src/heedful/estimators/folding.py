"""Update the state of an ordinal learner with each row of a table, by an interpreted or a compiled loop."""

from __future__ import annotations

import builtins
import sys
from collections import Counter
from collections.abc import Iterator
from typing import Any, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from heedful.core.fold import Learner, copy_arrays, generators, run
from heedful.jit.kernel import Floats, Ints, scores
from heedful.worlds.instances import InstanceStream

Array = npt.NDArray[np.float64]

PATIENCE = 20_000
"""The number of rows that a process handles interpreted for one class of learner before it compiles; they take about as
long as loading compiled code.
"""
FEW = 50
"""Calls with fewer rows are always interpreted: calling compiled code would take as long."""
S = TypeVar("S")
"""the type of a learner's state"""
RankLearner: TypeAlias = Learner[Floats, int, int, Any]
"""A learner of ranks, from 1, of rows of features."""
BLOCK = 2**18  # numbers copied at a time, so that the copy stays in the cache

_waited: Counter[str] = Counter()  # rows handled interpreted in this process, by the name of the learner


def blocks(X: Floats, order: Ints | None = None) -> Iterator[tuple[Any, Floats]]:
    """Yield n rows of N numbers X (n, N) in blocks: (indices of the rows, C-contiguous and writable array of them).

    `order` (n,): indices of the rows in the order to use; None: as they are. The
    arrays are writable because numba would compile again for read-only ones.
    """
    size = max(1, BLOCK // max(1, X.shape[1]))
    for lo in range(0, len(X), size):
        rows: Any = slice(lo, lo + size) if order is None else order[lo : lo + size]
        yield rows, np.require(X[rows], requirements=["C", "W"])


def compiles(learner: object, rows: int, lessons: int) -> bool:
    """Return True if a loop over training rows should be compiled rather than interpreted, for speed; results are the
    same.

    `rows`: number of rows of this call; `lessons`: rows times epochs. Return False for fewer than 50 rows. Otherwise
    return True once the interpreted rows of this call and of earlier ones in this process, counted for each class of
    `learner`, would be more than 20,000.
    """
    if rows < FEW:
        return False
    name = type(learner).__name__
    if _waited[name] + lessons > PATIENCE:
        _waited[name] = PATIENCE  # from now on always
        return True
    _waited[name] += lessons
    return False


def fold_rows(
    learner: Learner[Floats, int, int, S],
    state: S,
    X: Floats,
    ranks: Ints,
    order: Ints | None,
    fast: bool,
) -> S:
    """Return the state of `learner` after learning from each of n rows of N features X (n, N) with its rank, from 1.

    `ranks` (n,): the ranks; `order` (n,): indices of the rows in the order to use; None: as they are.
    `fast`: compile the loop, with the same result bit for bit; the first compilation is reported on stderr
    in an interactive session. The arrays of `state` may be overwritten.
    """
    draws = generators(0)  # none of these learners draws from them
    for rows, piece in blocks(X, order):
        world = InstanceStream(piece, np.require(ranks[rows], requirements=["C", "W"]), fixed=True)
        truth, regrets = world.init(draws[0]), np.empty(len(piece))
        loop: Any = run
        if fast:
            from heedful.jit.cache import is_cached, loop_for

            if is_interactive() and not is_cached(learner, world, state, truth, regrets, 0, *draws):
                print(f"heedful: compiling {type(learner).__name__} (first time only)", file=sys.stderr, flush=True)
            loop = loop_for(learner, world, state, truth, regrets, 0, *draws)
        out = loop(learner, world, state, truth, regrets, 0, *draws)
        state = copy_arrays(out[0])  # its arrays belong to the compiled loop
    return state


def is_interactive() -> bool:
    """Return True if a person is waiting: at a terminal, at a Python prompt, or in a notebook."""
    return (sys.stderr is not None and sys.stderr.isatty()) or hasattr(sys, "ps1") or "get_ipython" in vars(builtins)


def project(X: Floats, W: Array) -> Array:
    """Return the scores X W' (n, k) of n rows of N features X (n, N) in k directions W (k, N).

    Each is summed in the same order as by a learner.
    """
    out = np.empty((len(X), len(W)))
    for rows, piece in blocks(X):
        for r, w in enumerate(W):
            out[rows, r] = scores(piece, w)
    return out
