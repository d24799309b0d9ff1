"""Four BLAS and LAPACK routines for symmetric matrices, with the same results interpreted and compiled, bit for bit.

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
    """Make this module's four routines callable from numba-compiled code: add their addresses to LLVM's symbols, and
    overload the Python functions."""
    from llvmlite import binding
    from numba import types
    from numba.extending import get_cython_function_address, overload

    def routine(name: str, arguments: int) -> types.ExternalFunction:
        library = "scipy.linalg.cython_lapack" if name.startswith("dpo") else "scipy.linalg.cython_blas"
        binding.add_symbol(f"heedful_{name}", get_cython_function_address(library, name))
        return types.ExternalFunction(f"heedful_{name}", types.void(*[types.voidptr] * arguments))

    dsymv, dsyr = routine("dsymv", 10), routine("dsyr", 7)
    dposv, dpotrs = routine("dposv", 8), routine("dpotrs", 8)
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
        (solve_definite, solve_definite_loop),
        (solve_factored, solve_factored_loop),
    ):
        overload(f, strict=False)(lambda *args, loop=loop: loop)
