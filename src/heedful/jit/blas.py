"""Eight BLAS and LAPACK routines, with the same results interpreted and compiled, bit for bit.

Interpreted code calls them through scipy.linalg; compiled code calls the addresses that scipy exports. A symmetric
matrix is stored in the lower triangle of an n x n C-ordered array; the rest of the array is never read. Fortran sees
such an array transposed, as an upper triangle: hence "U" below.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]


def symmetric_times(S: Array, v: Array, out: Array) -> None:
    """Write the product S v into `out` (n,), for a symmetric matrix `S` (n x n, only its lower triangle is read) and a
    vector `v` (n,)."""
    from scipy.linalg.blas import dsymv

    dsymv(1.0, S.T, v, beta=0.0, y=out, lower=0, overwrite_y=1)


def add_rank_one(S: Array, v: Array, scale: float) -> None:
    """Add scale v v^T in place to a symmetric matrix `S` (n x n, only its lower triangle is read and written); `v`
    (n,)."""
    from scipy.linalg.blas import dsyr

    dsyr(scale, v, a=S.T, lower=0, overwrite_a=1)


def times_symmetric(A: Array, S: Array, out: Array) -> None:
    """Write the product A S into `out` (m x n), for a matrix `A` (m x n) and a symmetric matrix `S` (n x n, only its
    lower triangle is read)."""
    from scipy.linalg.blas import dsymm

    dsymm(1.0, S.T, A.T, beta=0.0, c=out.T, lower=0, overwrite_c=1)


def add_symmetric_product(S: Array, A: Array, B: Array, scale: float) -> None:
    """Add scale (A' B + B' A) in place to a symmetric matrix `S` (n x n, only its lower triangle is read and written);
    `A` and `B` are (m x n)."""
    from scipy.linalg.blas import dsyr2k

    dsyr2k(scale, A.T, B.T, beta=1.0, c=S.T, lower=0, overwrite_c=1)


def product(A: Array, B: Array, out: Array) -> None:
    """Write the product A B into `out` (m x n), for matrices `A` (m x k) and `B` (k x n)."""
    from scipy.linalg.blas import dgemm

    dgemm(1.0, B.T, A.T, beta=0.0, c=out.T, overwrite_c=1)


def solve_rows(M: Array, B: Array) -> None:
    """Overwrite `B` (m x n) by the solution X of X M = B, for a matrix `M` (n x n), which is overwritten."""
    from scipy.linalg.lapack import dgesv

    dgesv(M.T, B.T, overwrite_a=1, overwrite_b=1)


def solve_definite(S: Array, b: Array) -> Array:
    """Return the solution x (n,) of S x = b by Cholesky decomposition, for a symmetric matrix `S` (n x n, only its
    lower triangle is read) and a vector `b` (n,). S is overwritten by its Cholesky factor.

    Raise ValueError if S is not positive definite.
    """
    from scipy.linalg.lapack import dposv

    _, x, info = dposv(S.T, b, lower=0, overwrite_a=1)
    if info != 0:
        raise ValueError("the matrix is not positive definite")
    return x  # type: ignore[no-any-return]


def solve_factored(S: Array, b: Array) -> Array:
    """Return the solution x (n,) of S x = b for a further right-hand side `b` (n,), after `solve_definite` was called
    with the same `S` (n x n) and overwrote it by its Cholesky factor.
    """
    from scipy.linalg.lapack import dpotrs

    x, _ = dpotrs(S.T, b, lower=0)
    return x  # type: ignore[no-any-return]


def register() -> None:
    """Make this module's routines callable from numba-compiled code: add their addresses to LLVM's symbols, and
    overload the Python functions."""
    from llvmlite import binding
    from numba import types
    from numba.extending import get_cython_function_address, overload

    def routine(name: str, arguments: int) -> types.ExternalFunction:
        library = "scipy.linalg.cython_lapack" if name in ("dposv", "dpotrs", "dgesv") else "scipy.linalg.cython_blas"
        binding.add_symbol(f"heedful_{name}", get_cython_function_address(library, name))
        return types.ExternalFunction(f"heedful_{name}", types.void(*[types.voidptr] * arguments))

    dsymv, dsyr = routine("dsymv", 10), routine("dsyr", 7)
    dsymm, dsyr2k, dgemm = routine("dsymm", 12), routine("dsyr2k", 12), routine("dgemm", 13)
    dposv, dpotrs, dgesv = routine("dposv", 8), routine("dpotrs", 8), routine("dgesv", 8)
    upper = ord("U")

    def symmetric_times_loop(S: Array, v: Array, out: Array) -> None:
        uplo, n, step = np.array([upper], np.uint8), np.array([v.size], np.int32), np.ones(1, np.int32)
        one, zero = np.ones(1), np.zeros(1)
        dsymv(
            uplo.ctypes, n.ctypes, one.ctypes, S.ctypes, n.ctypes, v.ctypes, step.ctypes,
            zero.ctypes, out.ctypes, step.ctypes,
        )  # fmt: skip

    def add_rank_one_loop(S: Array, v: Array, scale: float) -> None:
        uplo, n, step = np.array([upper], np.uint8), np.array([v.size], np.int32), np.ones(1, np.int32)
        alpha = np.array([scale])
        dsyr(uplo.ctypes, n.ctypes, alpha.ctypes, v.ctypes, step.ctypes, S.ctypes, n.ctypes)

    def times_symmetric_loop(A: Array, S: Array, out: Array) -> None:
        side, uplo = np.array([ord("L")], np.uint8), np.array([upper], np.uint8)
        size, one, zero = np.array(A.shape, np.int32), np.ones(1), np.zeros(1)
        m, n = size[:1], size[1:]
        dsymm(
            side.ctypes, uplo.ctypes, n.ctypes, m.ctypes, one.ctypes, S.ctypes, n.ctypes, A.ctypes, n.ctypes,
            zero.ctypes, out.ctypes, n.ctypes,
        )  # fmt: skip

    def add_symmetric_product_loop(S: Array, A: Array, B: Array, scale: float) -> None:
        uplo, plain = np.array([upper], np.uint8), np.array([ord("N")], np.uint8)
        size, alpha, one = np.array(A.shape, np.int32), np.array([scale]), np.ones(1)
        m, n = size[:1], size[1:]
        dsyr2k(
            uplo.ctypes, plain.ctypes, n.ctypes, m.ctypes, alpha.ctypes, A.ctypes, n.ctypes, B.ctypes, n.ctypes,
            one.ctypes, S.ctypes, n.ctypes,
        )  # fmt: skip

    def product_loop(A: Array, B: Array, out: Array) -> None:
        plain, one, zero = np.array([ord("N")], np.uint8), np.ones(1), np.zeros(1)
        m, k, n = np.array([A.shape[0]], np.int32), np.array([A.shape[1]], np.int32), np.array([B.shape[1]], np.int32)
        dgemm(
            plain.ctypes, plain.ctypes, n.ctypes, m.ctypes, k.ctypes, one.ctypes, B.ctypes, n.ctypes, A.ctypes,
            k.ctypes, zero.ctypes, out.ctypes, n.ctypes,
        )  # fmt: skip

    def solve_rows_loop(M: Array, B: Array) -> None:
        size, info = np.array(B.shape, np.int32), np.zeros(1, np.int32)
        m, n, pivots = size[:1], size[1:], np.zeros(B.shape[1], np.int32)
        dgesv(
            n.ctypes, m.ctypes, M.ctypes, n.ctypes, pivots.ctypes, B.ctypes, n.ctypes, info.ctypes,
        )  # fmt: skip

    def solve_definite_loop(S: Array, b: Array) -> Array:
        uplo, n, one = np.array([upper], np.uint8), np.array([b.size], np.int32), np.ones(1, np.int32)
        x, info = b.copy(), np.zeros(1, np.int32)
        dposv(uplo.ctypes, n.ctypes, one.ctypes, S.ctypes, n.ctypes, x.ctypes, n.ctypes, info.ctypes)
        if info[0] != 0:
            raise ValueError("the matrix is not positive definite")
        return x

    def solve_factored_loop(S: Array, b: Array) -> Array:
        uplo, n, one = np.array([upper], np.uint8), np.array([b.size], np.int32), np.ones(1, np.int32)
        x, info = b.copy(), np.zeros(1, np.int32)
        dpotrs(uplo.ctypes, n.ctypes, one.ctypes, S.ctypes, n.ctypes, x.ctypes, n.ctypes, info.ctypes)
        return x

    for f, loop in (
        (symmetric_times, symmetric_times_loop),
        (add_rank_one, add_rank_one_loop),
        (times_symmetric, times_symmetric_loop),
        (add_symmetric_product, add_symmetric_product_loop),
        (product, product_loop),
        (solve_rows, solve_rows_loop),
        (solve_definite, solve_definite_loop),
        (solve_factored, solve_factored_loop),
    ):
        overload(f, strict=False)(lambda *args, loop=loop: loop)
