"""Shared parts of the rating learners: ridge regression on ratings, small linear algebra, scores of items, initial
factors.

Matrices are k x k for a handful of factors k, so they are handled by plain loops, each compiled as a function of its
own: calling LAPACK would take longer than the work. Item factors are stored as k x m, one column an item, so that the
loop over items is the inner one.

[A18]: Dadkhahi & Negahban, *Alternating Linear Bandits for Online Matrix-Factorization Recommendation*, 2018.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from heedful.jit.kernel import Ints, kernel, no_refcount, noinline, primitive
from heedful.learners.ratings.interaction_matrix import InteractionMatrix

Array = npt.NDArray[np.float64]

BLOCK = 256
"""the number of items that are scored at a time, so that all buffers stay in the first-level cache"""
LEAST = 1e-16
"""The least pivot of a Cholesky factorisation, as a share of the number on the diagonal. With a tiny penalty and large
factors, rounding can leave a pivot of 0 or less, which has no root."""
_MASK = 2**64 - 1


# ---------------------------------------------------------------------------- small linear algebra


@noinline
@no_refcount
@kernel
def ridge(pairs: InteractionMatrix, places: Ints, other: Ints, rows: Array, penalty: float, V: Array, r: Array) -> None:
    """Sum up the normal equations V beta = r of a ridge regression of one user's (or item's) ratings on k factors, in
    place.

    V = penalty I + sum c z z' is written into `V` (k x k, lower triangle), and r = sum s z into `r` (k,). The sums run
    over the pairs of the user (or item), at `places` (n,) of all P `pairs`: c is the number and s the sum of the
    ratings of a pair, z the factors of its item (or user). `rows` (m x k) are the factors of the m items (or users),
    `other` (P,) the index of the row for each pair.
    """
    k = r.size
    for a in range(k):
        r[a] = 0.0
        for b in range(a):
            V[a, b] = 0.0
        V[a, a] = penalty
    if k == 5:
        ridge_of_five(pairs, places, other, rows, V, r)
        return
    for p in places:
        c, s = pairs.count[p], pairs.total[p]
        if c > 0.0:
            z = rows[other[p]]
            for a in range(k):
                r[a] += s * z[a]
                cz = c * z[a]
                for b in range(a + 1):
                    V[a, b] += cz * z[b]


@noinline
@no_refcount
@kernel
def ridge_of_five(pairs: InteractionMatrix, places: Ints, other: Ints, rows: Array, V: Array, r: Array) -> None:
    """Add the sums of `ridge` (same arguments) to `V` and `r` for k = 5 factors, as many as [A18] uses. The twenty sums
    stay in registers, which takes a third of the time."""
    r0, r1, r2, r3, r4 = r[0], r[1], r[2], r[3], r[4]
    v00, v11, v22, v33, v44 = V[0, 0], V[1, 1], V[2, 2], V[3, 3], V[4, 4]
    v10, v20, v21, v30, v31, v32, v40, v41, v42, v43 = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    count, total = pairs.count, pairs.total
    for p in places:
        c, s, j = count[p], total[p], other[p]
        if c > 0.0:
            z0, z1, z2, z3, z4 = rows[j, 0], rows[j, 1], rows[j, 2], rows[j, 3], rows[j, 4]
            r0, r1, r2, r3, r4 = r0 + s * z0, r1 + s * z1, r2 + s * z2, r3 + s * z3, r4 + s * z4
            c0, c1, c2, c3, c4 = c * z0, c * z1, c * z2, c * z3, c * z4
            v00, v10, v11, v20, v21 = v00 + c0 * z0, v10 + c1 * z0, v11 + c1 * z1, v20 + c2 * z0, v21 + c2 * z1
            v22, v30, v31, v32, v33 = v22 + c2 * z2, v30 + c3 * z0, v31 + c3 * z1, v32 + c3 * z2, v33 + c3 * z3
            v40, v41, v42, v43, v44 = v40 + c4 * z0, v41 + c4 * z1, v42 + c4 * z2, v43 + c4 * z3, v44 + c4 * z4
    r[0], r[1], r[2], r[3], r[4] = r0, r1, r2, r3, r4
    V[0, 0], V[1, 1], V[2, 2], V[3, 3], V[4, 4] = v00, v11, v22, v33, v44
    V[1, 0], V[2, 0], V[2, 1], V[3, 0], V[3, 1], V[3, 2] = v10, v20, v21, v30, v31, v32
    V[4, 0], V[4, 1], V[4, 2], V[4, 3] = v40, v41, v42, v43


def _cholesky_loop(V: Array) -> None:
    k = V.shape[0]
    for a in range(k):
        for b in range(a + 1):
            v = V[a, b]
            least = LEAST * v
            for i in range(b):
                v -= V[a, i] * V[b, i]
            V[a, b] = math.sqrt(max(v, least)) if a == b else v / V[b, b]


@noinline
@no_refcount
@primitive(_cholesky_loop)
def cholesky(V: Array) -> None:
    """Replace the lower triangle of a positive definite matrix `V` (k x k) by its Cholesky factor L, V = L L'.

    The square of an element on the diagonal of L is at least 1e-16 (LEAST) times that element of V, even where rounding
    would make it 0 or less.
    """
    L = V.tolist()  # Python's numbers: a matter of microseconds, where numpy's would take ten times as long
    for a, row in enumerate(L):
        for b, other in enumerate(L[: a + 1]):
            v = row[b]
            least = LEAST * v
            for i in range(b):
                v -= row[i] * other[i]
            row[b] = math.sqrt(max(v, least)) if a == b else v / other[b]
    V[:] = L


def _invert_triangle_loop(L: Array, out: Array) -> None:
    k = L.shape[0]
    for b in range(k):
        out[b, b] = 1.0 / L[b, b]
        for a in range(b + 1, k):
            v = 0.0
            for i in range(b, a):
                v -= L[a, i] * out[i, b]
            out[a, b] = v / L[a, a]


@noinline
@no_refcount
@primitive(_invert_triangle_loop)
def invert_triangle(L: Array, out: Array) -> None:
    """Write the inverse of `L` into `out`, both lower triangular (k x k)."""
    rows, inverse = L.tolist(), out.tolist()
    for b in range(len(rows)):
        inverse[b][b] = 1.0 / rows[b][b]
        for a in range(b + 1, len(rows)):
            v, row = 0.0, rows[a]
            for i in range(b, a):
                v -= row[i] * inverse[i][b]
            inverse[a][b] = v / row[a]
    out[:] = inverse


def _solve_cholesky_loop(L: Array, r: Array) -> None:
    k = r.size
    for a in range(k):
        v = r[a]
        for b in range(a):
            v -= L[a, b] * r[b]
        r[a] = v / L[a, a]
    for a in range(k - 1, -1, -1):
        v = r[a]
        for b in range(a + 1, k):
            v -= L[b, a] * r[b]
        r[a] = v / L[a, a]


@noinline
@no_refcount
@primitive(_solve_cholesky_loop)
def solve_cholesky(L: Array, r: Array) -> None:
    """Solve L L' x = r in place: `r` (k,) becomes x; `L` is lower triangular (k x k)."""
    rows, out = L.tolist(), r.tolist()
    for a, row in enumerate(rows):
        v = out[a]
        for b in range(a):
            v -= row[b] * out[b]
        out[a] = v / row[a]
    for a in range(len(rows) - 1, -1, -1):
        v = out[a]
        for b in range(a + 1, len(rows)):
            v -= rows[b][a] * out[b]
        out[a] = v / rows[a][a]
    r[:] = out


@noinline
@no_refcount
@kernel
def gram(M: Array, out: Array) -> None:
    """Write the product M' M of a lower triangular matrix M = `M` (K x K) into `out` (K x K)."""
    K = M.shape[0]
    for a in range(K):
        for b in range(a + 1):
            v = 0.0
            for i in range(a, K):
                v += M[i, a] * M[i, b]
            out[a, b] = out[b, a] = v


# ---------------------------------------------------------------------------- scores of a catalogue


@no_refcount
@kernel
def block_parts(
    B: Array, items: Ints, lo: int, n: int, mu: Array, inverse: Array, s: Array, q: Array, scratch: Array
) -> None:
    """Write s_j = mu . B_j and q_j = |L^-1 B_j|^2 for the `n` items from items[lo] on into `s` and `q` (n,); for
    compiled code.

    B_j are the k >= 4 factors of item j: column j of `B` (k x m), for m items. `items` are ascending item indices, `lo`
    a position in them, and `n` is at most 256 (BLOCK). `mu` (k,) is the mean of the user's factors, `inverse` is L^-1
    (k x k, lower triangle). `scratch` ((1 + k) x BLOCK) is a buffer.
    """
    k = mu.size
    contiguous = items[items.size - 1] == items.size - 1  # rising and distinct: all from 0 on
    if not contiguous:
        for a in range(k):
            row, source = scratch[1 + a], B[a]
            for j in range(n):
                row[j] = source[items[lo + j]]
    rows, start = (B, lo) if contiguous else (scratch[1:], 0)
    v = scratch[0]
    x0, x1, x2, x3 = (
        rows[0][start : start + n],
        rows[1][start : start + n],
        rows[2][start : start + n],
        rows[3][start : start + n],
    )
    # Four rows at once stay in registers: one after the other they would take twice as long.
    m0, m1, m2, m3 = mu[0], mu[1], mu[2], mu[3]
    f00, f10, f11 = inverse[0, 0], inverse[1, 0], inverse[1, 1]
    f20, f21, f22 = inverse[2, 0], inverse[2, 1], inverse[2, 2]
    f30, f31, f32, f33 = inverse[3, 0], inverse[3, 1], inverse[3, 2], inverse[3, 3]
    for j in range(n):
        b0, b1, b2, b3 = x0[j], x1[j], x2[j], x3[j]
        s[j] = m0 * b0 + m1 * b1 + m2 * b2 + m3 * b3
        w0, w1 = f00 * b0, f10 * b0 + f11 * b1
        w2, w3 = f20 * b0 + f21 * b1 + f22 * b2, f30 * b0 + f31 * b1 + f32 * b2 + f33 * b3
        q[j] = w0 * w0 + w1 * w1 + w2 * w2 + w3 * w3
    for a in range(4, k):
        f0, f1, f2, f3 = inverse[a, 0], inverse[a, 1], inverse[a, 2], inverse[a, 3]
        f, m, x = inverse[a, a], mu[a], rows[a][start : start + n]
        if a == 4:
            for j in range(n):
                w = f0 * x0[j] + f1 * x1[j] + f2 * x2[j] + f3 * x3[j] + f * x[j]
                s[j] += m * x[j]
                q[j] += w * w
            continue
        for j in range(n):
            v[j] = f0 * x0[j] + f1 * x1[j] + f2 * x2[j] + f3 * x3[j]
        for b in range(4, a):
            g, other = inverse[a, b], rows[b][start : start + n]
            for j in range(n):
                v[j] += g * other[j]
        for j in range(n):
            w = v[j] + f * x[j]
            s[j] += m * x[j]
            q[j] += w * w


def _optimistic_loop(B: Array, items: Ints, mu: Array, inverse: Array, c: float) -> Array:
    m = items.size
    out, q, scratch = np.empty(m), np.empty(BLOCK), np.empty((1 + mu.size, BLOCK))
    for lo in range(0, m, BLOCK):
        n = min(BLOCK, m - lo)
        s = out[lo : lo + n]
        block_parts(B, items, lo, n, mu, inverse, s, q, scratch)
        for j in range(n):
            s[j] += c * math.sqrt(q[j])
    return out


@noinline
@primitive(_optimistic_loop)
def optimistic(B: Array, items: Ints, mu: Array, inverse: Array, c: float) -> Array:
    """Return the upper confidence bounds mu . B_j + c |L^-1 B_j| of the items with indices `items` (n,), as (n,).

    `B` (k x m), k >= 4, has the k factors B_j of each of m items j as column j; `mu` (k,) is the centre of the
    confidence ellipsoid, `inverse` is L^-1 (k x k) for its matrix V = L L', and `c` its radius.
    """
    columns = B[:, items]
    s, q = mu[0] * columns[0], np.zeros(items.size)
    for a in range(mu.size):
        v = inverse[a, 0] * columns[0]
        for b in range(1, a + 1):
            v += inverse[a, b] * columns[b]
        if a > 0:
            s += mu[a] * columns[a]
        q += v * v
    s += c * np.sqrt(q)
    return s  # type: ignore[no-any-return]


def _most_optimistic_loop(B: Array, items: Ints, mu: Array, inverse: Array, c: float) -> int:
    s, q, scratch = np.empty(BLOCK), np.empty(BLOCK), np.empty((1 + mu.size, BLOCK))
    best, most = 0, -np.inf
    square = c * c * (1.0 + 1e-9)  # roots, which take longer than all the rest, only where the bound may be the highest
    for lo in range(0, items.size, BLOCK):
        n = min(BLOCK, items.size - lo)
        block_parts(B, items, lo, n, mu, inverse, s, q, scratch)
        higher = 0
        for j in range(n):
            d = most - s[j]
            higher |= (d <= 0.0) | (square * q[j] >= d * d)
        if higher:
            for j in range(n):
                d = most - s[j]
                if d <= 0.0 or square * q[j] >= d * d:
                    score = s[j] + c * math.sqrt(q[j])
                    if score > most:
                        best, most = lo + j, score
    return best


@noinline
@primitive(_most_optimistic_loop)
def most_optimistic(B: Array, items: Ints, mu: Array, inverse: Array, c: float) -> int:
    """Return the position in `items` (n,) of the item with the highest upper confidence bound, ties to the first.
    Arguments are those of `optimistic`."""
    return int(optimistic(B, items, mu, inverse, c).argmax())


def _normals_of_loop(seed: int, item: int, out: Array) -> None:
    state = np.uint64(seed) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(item) * np.uint64(0xD1B54A32D192ED03)
    for a in range(out.size):
        u = v = 0.0
        for _ in range(2):
            state += np.uint64(0x9E3779B97F4A7C15)
            z = state
            z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
            z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
            z = z ^ (z >> np.uint64(31))
            u, v = v, (float(z >> np.uint64(11)) + 0.5) / 9007199254740992.0
        out[a] = math.sqrt(-2.0 * math.log(u)) * math.cos(2.0 * math.pi * v)


@noinline
@no_refcount
@primitive(_normals_of_loop)
def normals_of(seed: int, item: int, out: Array) -> None:
    """Fill `out` (k,) with standard normal numbers that depend only on `seed` and `item`, by SplitMix64 and Box-Muller.

    So an item's initial factors do not depend on when it arrives.
    """
    state = (seed * 0x9E3779B97F4A7C15 + item * 0xD1B54A32D192ED03) & _MASK
    for a in range(out.size):
        u = [0.0, 0.0]
        for h in range(2):
            state = (state + 0x9E3779B97F4A7C15) & _MASK
            z = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
            z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _MASK
            z ^= z >> 31
            u[h] = (float(z >> 11) + 0.5) / 9007199254740992.0
        out[a] = math.sqrt(-2.0 * math.log(u[0])) * math.cos(2.0 * math.pi * u[1])


@noinline
@kernel
def with_items(B: Array, seed: int, scale: float, k: int, items: int) -> Array:
    """Return the item factors `B` (K x m), one column for each of m items, or a wider copy if there are fewer than
    `items` columns.

    In a new column the first `k` rows are normal numbers with standard deviation `scale`, which depend only on `seed`
    and the index of the item; the other rows are 0.
    """
    m = B.shape[1]
    if m >= items:
        return B
    more = np.zeros((B.shape[0], max(items, 2 * m)))
    for a in range(k):
        for j in range(m):
            more[a, j] = B[a, j]
    factors = np.empty(k)
    for j in range(m, more.shape[1]):
        normals_of(seed, j, factors)
        for a in range(k):
            more[a, j] = scale * factors[a]
    return more


@noinline
@kernel
def with_users(A: Array, users: int) -> Array:
    """Return factors of at least `users` users: `A` (n x k) itself if n is enough, else a longer copy, whose new rows
    are 0."""
    n, k = A.shape
    if n >= users:
        return A
    more = np.zeros((max(users, 2 * n), k))
    for i in range(n):
        for a in range(k):
            more[i, a] = A[i, a]
    return more
