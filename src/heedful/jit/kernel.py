"""Decorators that mark functions for compilation, and the primitives that have an interpreted and a compiled body.

`@kernel` marks a pure function of arrays and named tuples. It stays plain Python: nothing is compiled, and
numba is not imported, until `heedful.jit.cache` compiles. A loop that is fast compiled is slow interpreted,
and a numpy expression that is fast interpreted allocates when compiled; so a handful of *primitives* have two
bodies: `@primitive(loop)` gives the loop to compile in place of the numpy body that it decorates.

Both bodies of every primitive round alike, operation for operation, so that compiled and interpreted learners
agree bit for bit, also where scores tie (docs/decisions/0002). What that needs: sums in numpy's order, no fused
multiply-add, the same libm, the same BLAS.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

F = TypeVar("F", bound=Callable[..., Any])
Floats = npt.NDArray[np.floating[Any]]
Ints = npt.NDArray[np.int64]
Array = npt.NDArray[np.float64]

DISCOUNTS = 1.0 / np.array([math.log2(i + 2.0) for i in range(1024)])
"""the discounts 1 / log2(i + 1) of the positions i = 1, 2, ..., 1024 in a discounted cumulative gain (DCG)"""


def kernel(f: F) -> F:
    """Mark `f`, a pure function of arrays and named tuples, as one that compiled code may call; return f itself, still
    plain Python."""
    f.__kernel__ = f  # type: ignore[attr-defined]
    return f


def noinline(f: F) -> F:
    """Mark the kernel `f` as one that compiled code does not inline, because it is large or called from many places."""
    f.__noinline__ = True  # type: ignore[attr-defined]
    return f


def no_refcount(f: F) -> F:
    """Mark the kernel `f`, which allocates no array, to be compiled without reference counting. Write it above
    `@kernel`."""
    f.__no_refcount__ = True  # type: ignore[attr-defined]
    return f


def primitive(loop: Callable[..., Any]) -> Callable[[F], F]:
    """Return a decorator that marks a numpy function as a kernel whose compiled version is `loop`.

    `loop` takes the same arguments and gives the same results, bit for bit, in loops that compile to fast code.
    """

    def mark(body: F) -> F:
        body.__kernel__ = loop  # type: ignore[attr-defined]
        return body

    return mark


@kernel
def eight_lanes(X: Floats, j: int, w: Floats, lo: int, count: int) -> float:
    """Return the sum of X[j, i] w[i] over the `count` columns i from `lo` on, added up in eight running sums as numpy
    does; `count` is a positive multiple of 8.

    Compiled, it is an intrinsic of `heedful.jit.overloads`: vector instructions in the same order. There `X` may be one
    row (n,), and `j` is ignored.
    """
    lanes = np.add.reduce((X[j, lo : lo + count] * w[lo : lo + count]).reshape(-1, 8), axis=0).tolist()
    a, b, c, d, e, f, g, h = lanes
    return float(((a + b) + (c + d)) + ((e + f) + (g + h)))


@kernel
def pairwise_tree(n: int, plan: Ints) -> int:
    """Write the order in which numpy's pairwise summation adds `n` numbers into `plan`, and return how many entries it
    takes.

    The entries are pairs: the size of a block of addends that is summed in 8 lanes, then how many of the open partial
    sums are added to it afterwards. numpy splits into halves that are multiples of 8 until at most 128 addends are
    left. The last 64 entries of plan are used as a stack.
    """
    waiting = plan[plan.size - 64 :]  # a stack of pairs (size, sums to close) that are still to be split
    waiting[0], waiting[1] = n, 0
    depth, leaves = 2, 0
    while depth:
        depth -= 2
        size, closes = waiting[depth], waiting[depth + 1]
        if size <= 128:
            plan[leaves], plan[leaves + 1] = size, closes
            leaves += 2
        else:
            half = size // 2
            half -= half % 8
            waiting[depth], waiting[depth + 1] = size - half, closes + 1
            waiting[depth + 2], waiting[depth + 3] = half, 0
            depth += 4
    return leaves


_IN_CACHE = 65_536  # numbers that a processor keeps close by


def _scores_loop(X: Floats, w: Floats) -> Array:
    m, n = X.shape
    if w.size != n:  # one comparison a round; without it, a wrong n_features would read outside of the array
        raise ValueError("n_features: expected as many as the context has features")
    plan = np.empty(n // 32 + 66, np.int64)
    leaves = pairwise_tree(n, plan)
    out = np.empty(m + 32)  # the scores, then a stack of open sums
    sums = out[m:]
    for j in range(m):
        lo, depth = 0, 0
        for b in range(0, leaves, 2):
            even = plan[b] - plan[b] % 8
            s = eight_lanes(X, j, w, lo, even) if even else -0.0
            for i in range(lo + even, lo + plan[b]):
                s += X[j, i] * w[i]
            lo += plan[b]
            for _ in range(plan[b + 1]):
                depth -= 1
                s = sums[depth] + s
            sums[depth] = s
            depth += 1
        out[j] = 0.0 + sums[0]  # numpy starts from 0, so a sum of -0.0 is 0.0
    return out[:m]


@primitive(_scores_loop)
def scores(X: Floats, w: Floats) -> Array:
    """Return the scores X w (m,) of the rows of `X` (m x n) with weights `w` (n,); equal rows get equal scores.

    Every row is summed in the same order. `X @ w` would give equal rows different last bits, which breaks ties; and
    BLAS sums in an order that no loop can repeat. Raise ValueError if the sizes differ.
    """
    if w.size != X.shape[1]:
        raise ValueError(f"n_features: expected {X.shape[1]}, as many as the context has features, got {w.size}")
    out, rows = np.empty(len(X)), 1 + _IN_CACHE // (w.size + 1)
    for j in range(0, len(X), rows):
        np.add.reduce(X[j : j + rows] * w, axis=1, out=out[j : j + rows])
    return out


@kernel
def precedes(a: float, b: float) -> bool:
    """Return True if `a` comes before `b` in descending order, with NaN last."""
    return a > b or (a == a and b != b)


def _top_loop(values: Floats, size: int) -> Ints:
    m = values.size
    order = np.empty(size, np.int64)
    if m <= 64:  # the rank of each, by comparing all pairs: there is no branch to mispredict
        for j in range(m):
            v, rank = values[j], 0
            if v == v:
                for i in range(m):
                    rank += (values[i] > v) | ((values[i] == v) & (i < j))
            else:
                for i in range(m):
                    rank += (values[i] == values[i]) | (i < j)
            if rank < size:
                order[rank] = j
        return order
    if size <= 8:  # insertion
        filled = 0
        for j in range(m):
            v = values[j]
            if filled < size:
                i = filled
                filled += 1
            elif precedes(v, values[order[size - 1]]):
                i = size - 1
            else:
                continue
            while i > 0 and precedes(v, values[order[i - 1]]):
                order[i] = order[i - 1]
                i -= 1
            order[i] = j
        return order
    a = np.arange(m)  # bottom-up merge sort
    b = np.empty(m, np.int64)
    width = 1
    while width < m:
        for lo in range(0, m, 2 * width):
            mid, hi = min(lo + width, m), min(lo + 2 * width, m)
            i, j = lo, mid
            for t in range(lo, hi):
                if i < mid and (j >= hi or not precedes(values[a[j]], values[a[i]])):
                    b[t] = a[i]
                    i += 1
                else:
                    b[t] = a[j]
                    j += 1
        a, b = b, a
        width *= 2
    for t in range(size):
        order[t] = a[t]
    return order


@primitive(_top_loop)
def top(values: Floats, size: int) -> Ints:
    """Return the indices of the `size` (<= m) largest of `values` (m,), in descending order of value; ties to the
    lowest index, NaN last."""
    return (-values).argsort(kind="stable")[:size]


def _add_discounts_loop(coef: Floats, order: Ints, k: int, scale: float) -> None:
    for i in range(min(k, order.size)):
        coef[order[i]] += scale * DISCOUNTS[i]


@primitive(_add_discounts_loop)
def add_discounts(coef: Floats, order: Ints, k: int, scale: float) -> None:
    """Add scale / log2(i + 1) to coef[order_i] in place for the positions i = 1, ..., k: the DCG discounts of an
    `order` of distinct indices into `coef` (m,)."""
    head = order[:k]
    coef[head] += scale * DISCOUNTS[: head.size]


def _add_rows_loop(out: Floats, X: Floats, coef: Floats, scale: float) -> None:
    m, n = X.shape
    if out.size != n or coef.size != m:
        raise ValueError("n_features: expected as many as the context has features")
    rows = np.empty(m, np.int64)
    size = 0
    for j in range(m):
        if coef[j] != 0.0:
            rows[size] = j
            size += 1
    acc = np.empty(min(n, 1024))  # the result block by block: it stays in the first cache while the rows pass
    for lo in range(0, n if size else 0, 1024):
        hi = min(lo + 1024, n)
        part, into = acc[: hi - lo], out[lo:hi]
        part[:] = 0.0
        for b in range(size):
            c, x = coef[rows[b]], X[rows[b], lo:hi]
            for i in range(hi - lo):
                part[i] += c * x[i]
        for i in range(hi - lo):
            into[i] += scale * part[i]


@primitive(_add_rows_loop)
def add_rows(out: Floats, X: Floats, coef: Floats, scale: float) -> None:
    """Add scale times the linear combination coef X of the rows of `X` (m x n) to `out` (n,) in place, for coefficients
    `coef` (m,); rows with coefficient 0 are not read.

    Raise ValueError if the sizes do not match.
    """
    if coef.size != X.shape[0] or out.size != X.shape[1]:
        raise ValueError(f"n_features: expected {X.shape[1]}, as many as the context has features, got {out.size}")
    [rows] = coef.nonzero()
    if rows.size:
        products = coef.take(rows)[:, None] * X.take(rows, axis=0)
        # numpy adds rows one after the other, but a single column pairwise, as it adds along a row
        added = np.add.reduce(products, axis=0) if X.shape[1] > 1 else 0.0 + np.add.accumulate(products)[-1]
        out += added if scale == 1.0 else scale * added


def _dot_loop(x: Floats, w: Floats) -> float:
    n = x.size
    if n > 128:
        return scores(x.reshape(1, -1), w)[0]  # type: ignore[no-any-return]
    if w.size != n:
        raise ValueError("n_features: expected as many as the context has features")
    even = n - n % 8  # numpy adds up to 128 numbers in eight lanes, then the rest
    s = eight_lanes(x, 0, w, 0, even) if even else -0.0
    for i in range(even, n):
        s += x[i] * w[i]
    return 0.0 + s


@primitive(_dot_loop)
def dot(x: Floats, w: Floats) -> float:
    """Return the inner product of two vectors `x` and `w` (n,), summed in the order of `scores`."""
    return float(scores(x.reshape(1, -1), w)[0])


def _add_scaled_loop(out: Array, x: Floats, scale: float) -> None:
    if out.size != x.size:
        raise ValueError("n_features: expected as many as the context has features")
    for i in range(x.size):
        out[i] += scale * x[i]


@primitive(_add_scaled_loop)
def add_scaled(out: Array, x: Floats, scale: float) -> None:
    """Add scale x to `out` in place, (n,) each. Compiled, raise ValueError if their sizes differ; interpreted, numpy's
    broadcasting decides."""
    out += np.float64(scale) * x


@kernel
def fetch_row(X: Floats, j: int) -> None:
    """Prefetch row `j` of `X`, of any shape (m, ...), into the processor's cache, for later. Interpreted, it does
    nothing."""


@kernel
def squared_norm(v: Floats) -> float:
    """Return the squared norm of the vector `v`, summed in the order of `scores`."""
    return scores(v.reshape(1, -1), v)[0]  # type: ignore[no-any-return]


@kernel
def logistic(z: float) -> float:
    """Return 1 / (1 + exp(-z)), without overflow."""
    if z >= 0.0:
        return 1.0 / (1.0 + math.exp(-z))
    e = math.exp(z)
    return e / (1.0 + e)


@kernel
def visible(y: Any) -> Any:
    """Return the part of the proposal `y` that the person sees: its first field if it is a tuple, else all of it.

    Compiled, the type of the proposal decides (`heedful.jit.overloads`).
    """
    return y[0] if isinstance(y, tuple) else y
