"""Fold the rows of a table into a learner's state: `fold.run` over the rows, interpreted or compiled."""

from __future__ import annotations

import builtins
import sys
from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from heedful.core.fold import copy_arrays, generators, run
from heedful.jit.kernel import Floats, Ints, scores
from heedful.worlds.instances import InstanceStream

Array = npt.NDArray[np.float64]

PATIENCE = 20_000
"""How many rows a process folds interpreted for one kind of learner; they take as long as loading compiled code."""
FEW = 50
"""Fewer rows than this are always folded interpreted: calling compiled code would take as long."""
BLOCK = 2**18  # how many numbers are copied at a time, so that the copy stays in the cache

_waited: Counter[str] = Counter()  # rows folded interpreted in this process, by the name of the learner


def blocks(X: Floats, one: bool, order: Ints | None = None) -> Iterator[tuple[Any, Floats]]:
    """Iterate over the rows of X (n x N) in blocks: (the indices of the rows, a C-contiguous, writable array of them).

    The rows come in this `order` (n,), where given. With `one`, each row gets a 1 at its end. The arrays are writable
    because numba compiles again for read-only ones.
    """
    size = max(1, BLOCK // max(1, X.shape[1]))
    for lo in range(0, len(X), size):
        rows: Any = slice(lo, lo + size) if order is None else order[lo : lo + size]
        piece = X[rows]
        if one:
            piece = np.hstack([piece, np.ones((len(piece), 1), X.dtype)])
        yield rows, np.require(piece, requirements=["C", "W"])


def compiles(learner: Any, rows: int, lessons: int) -> bool:
    """Decide whether to compile the loop over the training rows (`lessons` in total, `rows` a call) or to interpret it.

    False for fewer than FEW rows a call. True once this process would otherwise have interpreted more than PATIENCE
    rows for this class of learner; the rows are counted here. This affects only speed, never the result.
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
    learner: Any,
    state: Any,
    X: Floats,
    ranks: Ints,
    order: Ints | None,
    one: bool,
    fast: bool,
    verbose: bool = False,
) -> Any:
    """Return the state after learning from each row of X (n x N) with its rank (n,), in this `order` where given.

    With `fast` the loop is compiled, with the same result bit for bit. A first compilation is reported on stderr in an
    interactive session, or with `verbose`. The arrays of `state` may be overwritten.
    """
    draws = generators(0)  # none of these learners draws from them
    for rows, piece in blocks(X, one, order):
        world = InstanceStream(piece, np.require(ranks[rows], requirements=["C", "W"]), fixed=True)
        truth, regrets = world.init(draws[0]), np.empty(len(piece))
        loop: Any = run
        if fast:
            from heedful.jit.cache import is_cached, loop_for

            if (verbose or is_interactive()) and not is_cached(learner, world, state, truth, regrets, 0, *draws):
                print(f"heedful: compiling {type(learner).__name__} (first time only)", file=sys.stderr, flush=True)
            loop = loop_for(learner, world, state, truth, regrets, 0, *draws)
        out = loop(learner, world, state, truth, regrets, 0, *draws)
        state = copy_arrays(out[0])  # the compiled loop borrowed its arrays
    return state


def is_interactive() -> bool:
    """Return whether a person waits for the answer: at a terminal, a prompt, or in a notebook."""
    return (sys.stderr is not None and sys.stderr.isatty()) or hasattr(sys, "ps1") or "get_ipython" in vars(builtins)


def project(X: Floats, W: Array, one: bool) -> Array:
    """Return X W' (n x k) for directions W (k x N), with every row summed as a learner sums it."""
    out = np.empty((len(X), len(W)))
    for rows, piece in blocks(X, one):
        for r, w in enumerate(W):
            out[rows, r] = scores(piece, w)
    return out
