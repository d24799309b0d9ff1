"""Small linear algebra against numpy's; the scores of a catalogue: compiled and interpreted, in parts, with ties."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from heedful.learners.ratings.alb import ALB
from heedful.learners.ratings.interaction_matrix import add_rating, empty_matrix, places_of
from heedful.learners.ratings.pts import PTS
from heedful.learners.ratings.ridge import (
    BLOCK,
    cholesky,
    invert_triangle,
    most_optimistic,
    normals_of,
    optimistic,
    ridge,
    solve_cholesky,
    with_items,
    with_users,
)
from heedful.spaces.slate import SlateContext, SlateRatings
from kernels import compile_kernel

RNG = np.random.default_rng(0)


def definite(k: int) -> Any:
    X = RNG.standard_normal((k, k))
    return X @ X.T + 0.5 * np.eye(k)


@pytest.mark.parametrize("k", [1, 2, 5, 9])
def test_triangles(k: int) -> None:
    V, r = definite(k), RNG.standard_normal(k)
    L, inverse, x = np.tril(V), np.zeros((k, k)), r.copy()
    cholesky(L)
    np.testing.assert_allclose(L, np.linalg.cholesky(V), atol=1e-12)
    invert_triangle(L, inverse)
    np.testing.assert_allclose(inverse @ L, np.eye(k), atol=1e-9)
    solve_cholesky(L, x)
    np.testing.assert_allclose(V @ x, r, atol=1e-9)


def test_what_stands_above_the_diagonal_is_not_read() -> None:
    V = definite(4)
    lower, r = np.tril(V) + np.triu(np.full((4, 4), np.nan), 1), np.ones(4)
    cholesky(lower)
    solve_cholesky(lower, r)
    np.testing.assert_allclose(V @ r, np.ones(4), atol=1e-9)


@pytest.mark.slow
def test_a_pivot_that_rounding_ate_is_a_small_one() -> None:
    """Rows far beyond the penalty: of the second pivot nothing is left, or less; compiled and interpreted alike."""
    fast = compile_kernel(cholesky)
    below = 0
    for each in range(200):
        x = np.random.default_rng(each).standard_normal(3) * 1e6
        V = np.tril(np.outer(x, x) + 1e-10 * np.eye(3))
        below += not V[1, 1] > (V[1, 0] / np.sqrt(V[0, 0])) ** 2
        slow, quick, r = V.copy(), V.copy(), np.ones(3)
        cholesky(slow)
        fast(quick)
        assert slow.tobytes() == quick.tobytes()
        assert (np.diag(slow) >= 1e-8 * np.sqrt(np.diag(V)) * (1.0 - 1e-12)).all()
        solve_cholesky(slow, r)
        assert np.isfinite(r).all()
    assert below > 50


@pytest.mark.parametrize(
    ("learner", "scale"),
    [
        (ALB(penalty=1e-10), 1.0),
        (ALB(), 1e10),
        (ALB(penalty=1e-10, switching=0.5), 1.0),
        (PTS(n_particles=3, sigma=1e-8), 1.0),
        (PTS(n_particles=3), 1e10),
    ],
)
def test_a_penalty_that_rounding_eats_beside_the_factors_ends_nothing(learner: Any, scale: float) -> None:
    state, rng = learner.init(np.random.default_rng(0)), np.random.default_rng(1)
    for _ in range(60 if isinstance(learner, PTS) else 300):
        x = SlateContext(int(rng.integers(10)), np.arange(10))
        rated = SlateRatings(learner.propose(state, x, rng), scale * rng.integers(1, 6, 1).astype(np.float64))
        state = learner.update(state, x, rated.items, rated)
    for factors in (state.U, state.V) if isinstance(learner, PTS) else (state.A, state.B):
        assert np.isfinite(factors).all()


@pytest.mark.parametrize("k", [3, 5])
def test_ridge_sums_over_the_pairs_of_one(k: int) -> None:
    pairs, rows = empty_matrix(1, 1), RNG.standard_normal((6, k))
    log = [(0, 2, 1.0), (1, 2, 5.0), (0, 4, -2.0), (0, 2, 3.0)]
    for entry in log:
        pairs = add_rating(pairs, *entry)
    V, r = np.full((k, k), np.nan), np.full(k, np.nan)
    ridge(pairs, places_of(pairs.by_user, 0), pairs.item, rows, 0.5, V, r)
    mine = [(j, y) for i, j, y in log if i == 0]
    wanted = 0.5 * np.eye(k) + sum(np.outer(rows[j], rows[j]) for j, _ in mine)
    np.testing.assert_allclose(np.tril(V), np.tril(wanted), atol=1e-12)
    np.testing.assert_allclose(r, sum(y * rows[j] for j, y in mine), atol=1e-12)
    ridge(pairs, places_of(pairs.by_user, 9), pairs.item, rows, 2.0, V, r)
    np.testing.assert_array_equal(np.tril(V), 2.0 * np.eye(k))
    assert not r.any()


def parts(k: int, m: int) -> tuple[Any, Any, Any]:
    """Columns of a catalogue, a mean, the inverse of a triangle."""
    inverse = np.zeros((k, k))
    invert_triangle(np.linalg.cholesky(definite(k)), inverse)
    return RNG.standard_normal((k, m)), RNG.standard_normal(k), inverse


@pytest.mark.slow
@pytest.mark.parametrize("k", [4, 5, 6, 8])
def test_scores_of_all_of_some_and_of_several_blocks(k: int) -> None:
    """Both bodies alike to the bit, and right; the best is the first of the highest."""
    scores_of, best_of = compile_kernel(optimistic), compile_kernel(most_optimistic)
    B, mu, inverse = parts(k, 3 * BLOCK + 17)
    for m in (1, 7, BLOCK, BLOCK + 1, B.shape[1]):
        for items in (np.arange(m), np.sort(RNG.choice(B.shape[1], m, replace=False))):
            for c in (0.0, 0.3, 5.0):
                scores = optimistic(B, items, mu, inverse, c)
                wanted = B[:, items].T @ mu + c * np.linalg.norm(inverse @ B[:, items], axis=0)
                np.testing.assert_allclose(scores, wanted, atol=1e-9)
                np.testing.assert_array_equal(scores, scores_of(B, items, mu, inverse, c))
                assert most_optimistic(B, items, mu, inverse, c) == scores.argmax()
                assert best_of(B, items, mu, inverse, c) == scores.argmax()


@pytest.mark.slow
def test_ties_go_to_the_first() -> None:
    best_of = compile_kernel(most_optimistic)
    B, mu, inverse = parts(5, 900)
    B[:, 400:] = B[:, 100:600]  # whatever is best comes twice, or is one of the first
    for body in (most_optimistic, best_of):
        assert body(B, np.arange(900), mu, inverse, 1.0) == optimistic(B, np.arange(900), mu, inverse, 1.0).argmax()
        assert body(np.zeros((5, 900)), np.arange(300, 900), mu, inverse, 1.0) == 0


@pytest.mark.slow
def test_first_factors_are_standard_normal_and_of_the_item_alone() -> None:
    fast = compile_kernel(normals_of)
    out = np.empty((4000, 5))
    for j in range(4000):
        normals_of(7, j, out[j])
    again, other = np.empty(5), np.empty(5)
    for j in (0, 3, 3998, 10**7 - 1):
        normals_of(7, j, again)
        fast(7, j, other)
        np.testing.assert_array_equal(again, other)
    assert abs(out.mean()) < 4.0 / np.sqrt(out.size)
    assert out.std() == pytest.approx(1.0, rel=0.02)
    assert np.abs(np.corrcoef(out.T) - np.eye(5)).max() < 0.06
    assert abs(np.corrcoef(out[:-1, 0], out[1:, 0])[0, 1]) < 0.06
    assert np.unique(out).size == out.size
    normals_of(8, 3, other)
    assert not np.array_equal(other, out[3])


def test_growth() -> None:
    B = with_items(np.zeros((4, 0)), 1, 2.0, 3, 5)
    assert with_items(B, 1, 2.0, 3, 5) is B
    more = with_items(B, 1, 2.0, 3, 6)
    assert more.shape == (4, 10)
    np.testing.assert_array_equal(more[:, :5], B)
    one = np.empty(3)
    normals_of(1, 8, one)
    np.testing.assert_array_equal(more[:3, 8], 2.0 * one)
    assert not more[3].any()
    A = np.ones((2, 3))
    assert with_users(A, 2) is A
    assert with_users(A, 3).tolist() == [[1.0] * 3] * 2 + [[0.0] * 3] * 2
    assert with_users(A, 9).shape == (9, 3)
