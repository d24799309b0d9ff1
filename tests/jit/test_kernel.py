"""Primitives: both bodies agree bit for bit, on ties too, and both are right."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from heedful.jit.kernel import (
    DISCOUNTS,
    add_discounts,
    add_rows,
    add_scaled,
    dot,
    fetch_row,
    kernel,
    logistic,
    pairwise_tree,
    primitive,
    scores,
    squared_norm,
    top,
    visible,
)
from heedful.learners.coactive.dueling import Duel
from kernels import compile_kernel

LENGTHS = [*range(1, 300), *range(376, 392), *range(505, 521), *range(1000, 1050), 1100, 2049]
FLOATS = [np.float64, np.float32]


@pytest.fixture(scope="module")
def fast() -> Callable[..., Any]:
    """Compiled kernels, each compiled once."""
    known: dict[Any, Any] = {}

    def get(f: Callable[..., Any]) -> Any:
        if f not in known:
            known[f] = compile_kernel(f)
        return known[f]

    return get


def numbers(rng: np.random.Generator, shape: Any, dtype: Any = np.float64) -> np.ndarray:
    """Small integers with zeros of both signs, or floats over many magnitudes."""
    if rng.random() < 0.4:
        return rng.choice([-2.0, -1.0, -0.0, 0.0, 1.0, 3.0], shape).astype(dtype)
    return (rng.standard_normal(shape) * 10.0 ** rng.integers(-6, 7, shape)).astype(dtype)


def test_discounts() -> None:
    """1 / log2(i + 1) for positions from 1 ([J15] Eq. 21): 1, .63, 1/2, ..., 1/3 at the seventh."""
    assert DISCOUNTS[[0, 2, 6, 14]].tolist() == [1.0, 0.5, 1 / 3, 0.25]
    assert pytest.approx([1.0 / math.log2(i + 1) for i in range(1, 1025)], rel=1e-15) == DISCOUNTS.tolist()


# ---------------------------------------------------------------------------- scores


@pytest.mark.slow
@pytest.mark.parametrize("dtype", FLOATS)
def test_scores_of_both_bodies(fast: Any, dtype: Any) -> None:
    rng = np.random.default_rng(0)
    for n in LENGTHS:
        X, w = numbers(rng, (1 + n % 9, n), dtype), numbers(rng, n)
        plain = scores(X, w)
        assert plain.dtype == np.float64
        assert plain.tobytes() == fast(scores)(X, w).tobytes(), n
        for row, score in zip(X.tolist(), plain):
            products = [a * b for a, b in zip(row, w.tolist())]
            assert abs(score - math.fsum(products)) <= 1e-14 * math.fsum(map(abs, products)), n


@pytest.mark.slow
def test_zeros_keep_their_sign(fast: Any) -> None:
    for n in (1, 3, 8, 9, 130):
        for zero in (0.0, -0.0):
            X, w = np.full((2, n), zero), np.ones(n)
            assert scores(X, w).tobytes() == fast(scores)(X, w).tobytes(), (n, zero)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", FLOATS)
def test_equal_rows_have_equal_scores(fast: Any, dtype: Any) -> None:
    """Wherever they stand, so that equal candidates tie; `X @ w` does not promise it."""
    rng = np.random.default_rng(1)
    for n in (1, 2, 5, 8, 20, 46, 136, 700):
        X, w = rng.standard_normal((17, n)).astype(dtype), rng.standard_normal(n)
        X[::2] = X[0]
        for body in (scores, fast(scores)):
            assert len(set(body(X, w)[::2].tolist())) == 1, n


@pytest.mark.slow
@pytest.mark.parametrize("dtype", FLOATS)
def test_dot_of_both_bodies(fast: Any, dtype: Any) -> None:
    """x . w is the score of a row, in both bodies, on both sides of the 128 that numpy adds in one piece."""
    rng = np.random.default_rng(5)
    for n in LENGTHS:
        x, w = numbers(rng, n, dtype), numbers(rng, n)
        wanted = scores(x.reshape(1, -1), w)[0]
        for body in (dot, fast(dot)):
            assert math.copysign(1.0, body(x, w)) == math.copysign(1.0, wanted)
            assert body(x, w) == wanted, n
    for body in (dot, fast(dot)):
        for n in (5, 200):
            with pytest.raises(ValueError, match=r"^n_features: expected"):
                body(np.ones(n), np.ones(n + 1))


@pytest.mark.slow
@pytest.mark.parametrize("dtype", FLOATS)
def test_add_scaled_of_both_bodies(fast: Any, dtype: Any) -> None:
    rng = np.random.default_rng(6)
    for n in (1, 3, 8, 50, 129):
        for scale in (1.0, -2.0, 0.1):
            x, out = numbers(rng, n, dtype), numbers(rng, n)
            wanted = [a + scale * float(b) for a, b in zip(out.tolist(), x)]
            for body in (add_scaled, fast(add_scaled)):
                got = out.copy()
                body(got, x, scale)
                assert got.tolist() == wanted
    with pytest.raises(ValueError, match=r"^n_features: expected"):
        fast(add_scaled)(np.ones(3), np.ones(4), 1.0)


@kernel
def fetched(X: Any, j: int) -> float:
    fetch_row(X, j)
    return float(X[j, 0])


@pytest.mark.slow
def test_fetching_a_row_changes_nothing(fast: Any) -> None:
    for dtype in FLOATS:
        X = np.arange(60.0).reshape(6, 10).astype(dtype)
        before = X.copy()
        assert [fast(fetched)(X, j) for j in range(6)] == [fetched(X, j) for j in range(6)]
        assert np.array_equal(X, before)


@pytest.mark.slow
def test_squared_norm(fast: Any) -> None:
    rng = np.random.default_rng(2)
    for n in (1, 7, 8, 129, 1025):
        v = numbers(rng, n)
        assert squared_norm(v) == fast(squared_norm)(v) == np.add.reduce(v * v)  # not BLAS's order
        assert squared_norm(v) == pytest.approx(math.fsum(x * x for x in v.tolist()), rel=1e-13)


@pytest.mark.slow
def test_leaves_of_the_summation_tree(fast: Any) -> None:
    """Leaves of at most 128 that sum to n, and as many sums closed as there are leaves but one."""
    for n in (1, 8, 128, 129, 136, 257, 1000, 4097, 100_000):
        plan, other = np.zeros(n // 32 + 66), np.zeros(n // 32 + 66)
        leaves = pairwise_tree(n, plan)
        assert fast(pairwise_tree)(n, other) == leaves
        assert plan[:leaves].tolist() == other[:leaves].tolist()
        sizes, closes = plan[:leaves:2], plan[1:leaves:2]
        assert sizes.sum() == n
        assert sizes.max() <= 128
        assert closes.sum() == sizes.size - 1


# ---------------------------------------------------------------------------- top


@pytest.mark.slow
@pytest.mark.parametrize("m", [1, 2, 3, 8, 9, 20, 63, 64, 65, 100, 455, 456, 1000, 2500])
def test_top_of_both_bodies(fast: Any, m: int) -> None:
    """Decreasing, ties to the lowest index; sizes on both sides of the switch from insertion to merging."""
    rng = np.random.default_rng(m)
    for size in sorted({1, 2, 5, 8, 9, 10, 41, 64, 65, m // 2 + 1, m}):
        if size > m:
            continue
        for values in (
            rng.integers(-2, 3, m).astype(float),
            rng.choice([0.0, -0.0], m),
            rng.standard_normal(m),
            np.arange(m) * 1.0,
            np.arange(m) * -1.0,
        ):
            wanted = sorted(range(m), key=lambda j: -values[j])[:size]
            assert top(values, size).tolist() == wanted, size
            assert fast(top)(values, size).tolist() == wanted, size


# ---------------------------------------------------------------------------- place, add_rows


@pytest.mark.slow
def test_place_of_both_bodies(fast: Any) -> None:
    """Orders longer and shorter than k; nothing else is touched."""
    rng = np.random.default_rng(3)
    for k in (1, 2, 5, 100, 1024):
        for size in (0, 1, 2, 4, 5, 6, 300, 1500):
            coef = numbers(rng, max(size, 1) + 3)
            order, scale = rng.permutation(coef.size)[:size], float(rng.standard_normal())
            wanted = coef.copy()
            for i in range(min(k, size)):
                wanted[order[i]] += scale / math.log2(i + 2)
            one, other = coef.copy(), coef.copy()
            add_discounts(one, order, k, scale)
            fast(add_discounts)(other, order, k, scale)
            assert one.tobytes() == other.tobytes()
            assert one == pytest.approx(wanted, rel=1e-14)


ADDED = [(n, m) for n in (2, 3, 7, 8, 9, 100, 1023, 1024, 1025, 2049) for m in (1, 2, 5, 9, 40)]


def check_add_rows(fast: Any, n: int, m: int, dtype: Any) -> None:
    rng = np.random.default_rng(n * 100 + m)
    X, out, scale = numbers(rng, (m, n), dtype), numbers(rng, n), float(rng.standard_normal())
    for coef in (numbers(rng, m), rng.standard_normal(m) * rng.integers(0, 2, m), np.zeros(m)):
        one, other = out.copy(), out.copy()
        add_rows(one, X, coef, scale)
        fast(add_rows)(other, X, coef, scale)
        assert one.tobytes() == other.tobytes(), (n, m)
        sizes = np.abs(out) + abs(scale) * (np.abs(coef) @ np.abs(X.astype(float)))
        assert (np.abs(one - (out + scale * (coef @ X.astype(float)))) <= 1e-13 * sizes).all()


@pytest.mark.slow
@pytest.mark.parametrize("dtype", FLOATS)
def test_add_rows_of_both_bodies(fast: Any, dtype: Any) -> None:
    """Across the block of 1024; rows with coefficient 0 are not read, so what is in them does not matter."""
    for n, m in ADDED:
        check_add_rows(fast, n, m, dtype)
    for body in (add_rows, fast(add_rows)):
        out = np.array([1.0, 2.0, 3.0])
        X = np.array([[1.0, 1.0, 1.0], [np.nan, np.inf, 0.0], [5.0, -1.0, 0.5]]).astype(dtype)
        body(out, X, np.array([2.0, 0.0, -1.0]), 10.0)
        assert out.tolist() == [1.0 + 10.0 * -3.0, 2.0 + 10.0 * 3.0, 3.0 + 10.0 * 1.5]


@pytest.mark.slow
def test_add_rows_of_both_bodies_for_one_feature(fast: Any) -> None:
    for m in (1, 7, 8, 9, 16, 40, 200):
        check_add_rows(fast, 1, m, np.float64)


# ---------------------------------------------------------------------------- logistic, shown, marks


@pytest.mark.slow
def test_logistic(fast: Any) -> None:
    """Both bodies, no overflow, and sigma(z) + sigma(-z) = 1."""
    rng = np.random.default_rng(4)
    for z in [0.0, -0.0, 1.0, -1.0, 36.0, -36.0, 709.0, -709.0, 1e6, -1e6, *(10.0 * rng.standard_normal(300)).tolist()]:
        assert logistic(z) == fast(logistic)(z)
        assert logistic(z) + logistic(-z) == pytest.approx(1.0, abs=1e-15)
        if abs(z) < 700.0:
            assert logistic(z) == pytest.approx(1.0 / (1.0 + math.exp(-z)), rel=1e-14)
    assert logistic(1e6) == 1.0
    assert logistic(-1e6) == 0.0


@kernel
def first_shown(y: Any) -> Any:
    return visible(y)


@pytest.mark.slow
def test_shown(fast: Any) -> None:
    """The first field of a proposal that carries more, else all of it."""
    order = np.array([2, 0, 1])
    for body in (visible, fast(first_shown)):
        assert body(order).tolist() == [2, 0, 1]
        assert body(Duel(order, np.array([0, 1, 0]), np.ones(2))).tolist() == [2, 0, 1]


@pytest.mark.slow
def test_marks() -> None:
    """A mark changes nothing: plain Python calls plain Python; the loop is what is compiled."""

    def loop(a: float) -> float:
        return a + 2.0

    @primitive(loop)
    def body(a: float) -> float:
        return a + 1.0

    assert body(1.0) == 2.0
    assert compile_kernel(body)(1.0) == 3.0
    assert kernel(loop) is loop
