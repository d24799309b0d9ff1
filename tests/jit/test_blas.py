"""The four routines of BLAS and LAPACK: the same from interpreted and compiled code, bit for bit, and right."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from heedful.jit import blas
from heedful.jit.kernel import kernel
from heedful.jit.overloads import register
from heedful.learners.coactive.second_order import project_onto_ball
from kernels import compile_kernel


@pytest.fixture(scope="module")
def fast() -> Callable[..., Any]:
    """Compiled kernels, each compiled once, that may call the routines."""
    register([blas])
    known: dict[Any, Any] = {}

    def get(f: Callable[..., Any]) -> Any:
        if f not in known:
            known[f] = compile_kernel(f)
        return known[f]

    return get


@kernel
def times(S: Any, v: Any, out: Any) -> None:
    blas.symmetric_times(S, v, out)


@kernel
def rank_one(S: Any, v: Any, scale: float) -> None:
    blas.add_rank_one(S, v, scale)


@kernel
def solve(S: Any, b: Any) -> Any:
    return blas.solve_definite(S, b)


@kernel
def solve_again(S: Any, b: Any) -> Any:
    return blas.solve_factored(S, b)


@pytest.mark.slow
@pytest.mark.parametrize("n", [1, 2, 3, 8, 33, 136])
def test_blas_from_either_side(fast: Any, n: int) -> None:
    """The same bits interpreted and compiled, and right; the upper triangle neither read nor written."""
    rng = np.random.default_rng(n)
    half = rng.standard_normal((n, n))
    S, v = half @ half.T + n * np.eye(n), rng.standard_normal(n)
    junk = np.tril(S) + np.triu(np.full((n, n), 7.0), 1)
    out, out_fast = np.full(n, np.nan), np.full(n, np.nan)
    blas.symmetric_times(junk.copy(), v, out)
    fast(times)(junk.copy(), v, out_fast)
    assert out.tobytes() == out_fast.tobytes()
    assert out == pytest.approx(S @ v, abs=1e-10 * n)

    one, other = junk.copy(), junk.copy()
    blas.add_rank_one(one, v, -0.25)
    fast(rank_one)(other, v, -0.25)
    assert one.tobytes() == other.tobytes()
    assert np.tril(one) == pytest.approx(np.tril(S - 0.25 * np.outer(v, v)), abs=1e-10 * n)
    assert (np.triu(one, 1) == np.triu(junk, 1)).all()

    one, other, b = junk.copy(), junk.copy(), v.copy()
    x, x_fast = blas.solve_definite(one, b), fast(solve)(other, b)
    assert x.tobytes() == x_fast.tobytes()
    assert x == pytest.approx(np.linalg.solve(S, v), abs=1e-10)
    c = 3.0 * b
    again, again_fast = blas.solve_factored(one, c), fast(solve_again)(other, c)
    assert again.tobytes() == again_fast.tobytes()
    assert again == pytest.approx(3.0 * x, abs=1e-10)
    assert (b == v).all()
    assert (c == 3.0 * v).all()


@pytest.mark.slow
def test_a_matrix_that_is_not_definite_is_refused(fast: Any) -> None:
    for body in (blas.solve_definite, fast(solve)):
        with pytest.raises(ValueError, match="not positive definite"):
            body(np.diag([1.0, -1.0]), np.ones(2))


@pytest.mark.slow
def test_compiled_reaches_what_a_kernel_calls_in_another_module() -> None:
    program = (
        "import numpy as np\n"
        "from heedful.jit.cache import kernel_for\n"
        "from heedful.learners.coactive.second_order import project_onto_ball\n"
        "args = np.diag([0.25, 1.0]), np.array([4.5, 12.0]), 5.0\n"
        "print(kernel_for(project_onto_ball, *args)(*args).round(9).tolist())"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout == "[3.0, 4.0]\n"


@pytest.mark.slow
def test_the_projection_of_both_bodies(fast: Any) -> None:
    rng = np.random.default_rng(5)
    for n in (1, 2, 5, 20):
        half = rng.standard_normal((n, n))
        A_inv, w_bar = half @ half.T + 0.1 * np.eye(n), rng.standard_normal(n)
        radius = 0.3 * float(np.linalg.norm(w_bar))
        assert (
            project_onto_ball(A_inv, w_bar, radius).tobytes() == fast(project_onto_ball)(A_inv, w_bar, radius).tobytes()
        )
