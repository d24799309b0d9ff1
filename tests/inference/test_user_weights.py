"""The weights of one person, with the functions fixed."""

from __future__ import annotations

import numpy as np
import pytest
from crowded import crowded

from heedful.inference.collaborative.cp import fit
from heedful.inference.collaborative.sparse_cells import cells
from heedful.inference.collaborative.user_weights import user_weights
from heedful.inference.pairwise import concatenate, pair_rows, take_rows


def test_they_are_those_of_a_fit_that_has_settled() -> None:
    world = crowded(40, 6, 25, seed=1, amplitude=1.5)
    settled = fit(world.K, 40, world.rows, D=3, tolerance=1e-8, cycles=2000)
    for user in (0, 7, 39):
        rows = take_rows(world.rows, world.rows.user == user)
        rows = rows._replace(user=np.zeros(rows.size, np.int64))
        of = cells(rows, 1, 6)
        mw, vw = user_weights(of, *settled.functions.at(of.first, of.second), rows, 0.0, 0.0, rounds=300)
        np.testing.assert_allclose(mw[0], settled.mw[user], atol=5e-3)
        np.testing.assert_allclose(vw[0], settled.vw[user], atol=5e-3)


def test_an_answer_given_twice_is_two_answers_in_any_order() -> None:
    rows = concatenate([crowded(1, 5, 9).rows, pair_rows([[0, 1], [2, 3]], equal=True)])
    often = rows._replace(times=np.full(rows.size, 2.0))
    twice = take_rows(concatenate([rows, rows]), np.random.default_rng(0).permutation(2 * rows.size))
    of = cells(often, 1, 5)
    rng = np.random.default_rng(1)
    mh, vh = rng.normal(size=(of.P, 3)), rng.random((of.P, 3))
    a = user_weights(of, mh, vh, often, 0.4, 0.1, rounds=5)
    b = user_weights(cells(twice, 1, 5), mh, vh, twice, 0.4, 0.1, rounds=5)
    np.testing.assert_allclose(a[0], b[0], atol=1e-10)
    np.testing.assert_allclose(a[1], b[1], atol=1e-10)


def test_one_function_that_is_known_against_quadrature() -> None:
    from scipy.special import ndtr

    rows = pair_rows([[0, 1]] * 6 + [[1, 0]] * 2 + [[0, 1]] * 5, None, [False] * 8 + [True] * 5)
    w, p = np.polynomial.hermite_e.hermegauss(80)
    joint = p * ndtr(1.5 * w - 0.5) ** 6 * ndtr(-1.5 * w - 0.5) ** 2
    joint *= (ndtr(0.5 - 1.5 * w) - ndtr(-0.5 - 1.5 * w)) ** 5
    mean = (joint * w).sum() / joint.sum()
    var = (joint * w * w).sum() / joint.sum() - mean**2
    mw, vw = user_weights(cells(rows, 1, 2), np.array([[1.5]]), np.array([[1e-12]]), rows, 0.5, 0.0, rounds=60)
    assert mw[0, 0] == pytest.approx(mean, abs=0.01)
    assert vw[0, 0] == pytest.approx(var, rel=0.05)
