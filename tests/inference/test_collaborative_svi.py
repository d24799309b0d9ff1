"""CP by streaming: it ends where the fit of all does, near enough on one pass; batches, going on, refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from crowded import crowded, error, queries

from heedful.inference.collaborative import svi as module
from heedful.inference.collaborative.cp import fit
from heedful.inference.collaborative.sparse_cells import cells
from heedful.inference.collaborative.svi import fit_streaming, user_weights
from heedful.inference.pairwise import concatenate, pair_rows, take_rows

Array = npt.NDArray[np.float64]


def test_a_step_leaves_a_fit_where_it_is() -> None:
    """Where EP and variational Bayes of all have settled, weights found anew and a whole step move next to nothing:
    both end in the same place."""
    world = crowded(40, 6, 25, seed=1, amplitude=1.5)
    settled = fit(world.K, 40, world.rows, D=3, tolerance=1e-8, cycles=2000)
    mh, vh = settled.functions.at(settled.cells.first, settled.cells.second)
    mw, vw, told = user_weights(settled.cells, mh, vh, world.rows, start=settled.mw, rounds=300)
    np.testing.assert_allclose(mw, settled.mw, atol=5e-3)
    np.testing.assert_allclose(vw, settled.vw, atol=5e-3)
    tau, nu = (x.copy() for x in settled.messages.to_h2)
    m, v = mh.copy(), vh.copy()
    module._step(settled.items, (tau, nu), (m, v), told, mw, vw, 1.0, 1.0)  # type: ignore[arg-type]
    np.testing.assert_allclose(m, mh, atol=0.02)
    np.testing.assert_allclose(v, vh, atol=0.02)
    np.testing.assert_allclose(tau, settled.messages.to_h2[0], rtol=0.01, atol=0.05)


def test_a_part_of_a_step_is_on_the_way() -> None:
    world = crowded(30, 5, 20)
    got = fit(world.K, 30, world.rows, D=2, cycles=4)
    mh, vh = got.functions.at(got.cells.first, got.cells.second)
    mw, vw, told = user_weights(got.cells, mh, vh, world.rows)
    old = got.messages.to_h2[0]
    ends = {}
    for share in (0.0, 0.25, 1.0):
        tau, nu = (x.copy() for x in got.messages.to_h2)
        module._step(got.items, (tau, nu), (mh.copy(), vh.copy()), told, mw, vw, 2.0, share)  # type: ignore[arg-type]
        ends[share] = tau
    np.testing.assert_allclose(ends[0.0], old)
    np.testing.assert_allclose(ends[0.25], 0.75 * old + 0.25 * ends[1.0])
    # all the way: what two such crowds would say, by hand
    T = np.zeros((30, got.cells.P))
    np.add.at(
        T, (got.cells.user, got.cells.pair), told.t if told.t.ndim == 1 else told.t[got.cells.user, got.cells.pair]
    )
    np.testing.assert_allclose(ends[1.0], 2.0 * (told.t.T @ (mw**2 + vw)).T)


@pytest.mark.slow
def test_one_pass_is_nearly_the_fit_of_all() -> None:
    world = crowded(1500, 12, 15, D=3, seed=2, amplitude=1.5)
    whole = error(fit(world.K, 1500, world.rows, D=6), world.f)
    first = error(fit(world.K, 30, take_rows(world.rows, world.rows.user < 30), D=6), world.f[:30])
    once = fit_streaming(world.K, 1500, world.rows, D=6, batch=30)
    assert first > whole + 0.02  # one batch alone is not enough
    assert error(once, world.f) < whole + 0.012
    thrice = fit_streaming(world.K, 1500, world.rows, D=6, batch=30, passes=3)
    assert error(thrice, world.f) < whole + 0.01
    assert (once.steps, thrice.steps) == (51, 151)
    np.testing.assert_array_equal(once.mw, fit_streaming(world.K, 1500, world.rows, D=6, batch=30).mw)


def test_what_is_told_of_people_is_as_of_a_fit() -> None:
    world = crowded(60, 6, 12)
    got = fit_streaming(world.K, 60, world.rows, D=3, batch=20)
    u, a, b = queries(60, 6)
    np.testing.assert_allclose(got.predict_proba(u, a, b), 1.0 - got.predict_proba(u, b, a), atol=1e-12)
    mean, var = got.posterior(7).gap(1, 2)
    np.testing.assert_allclose(got.gap(7, 1, 2), (mean, var), atol=1e-9)


def test_going_on_with_new_people_and_new_items() -> None:
    world = crowded(400, 8, 15, seed=5)
    old = (world.rows.user < 300) & (world.rows.pairs < 7).all(axis=1)
    before = fit_streaming(world.K, 300, take_rows(world.rows, old), D=4, batch=100)
    after = fit_streaming(world.K, 400, take_rows(world.rows, ~old), D=4, batch=100, start=before)
    assert after.steps > before.steps
    assert set(zip(after.items.first.tolist(), after.items.second.tolist())) == set(zip(*np.triu_indices(8, 1)))
    new = np.arange(300, 400)
    assert error_of(after, world.f, new) < 0.3
    silent = np.setdiff1d(np.arange(300), world.rows.user[~old])
    np.testing.assert_array_equal(after.mw[silent], before.mw[silent])


def error_of(model: Any, f: Array, people: Any) -> float:
    u, a, b = queries(len(people), f.shape[1])
    u = people[u]
    return float(((model.predict_proba(u, a, b) > 0.5) != (f[u, a] > f[u, b])).mean())


def test_ties_lapses_and_times() -> None:
    """Lists of rows are filled up: what fills them says nothing, whatever else is told of rows."""
    world = crowded(12, 5, 9)
    tied = pair_rows([[0, 1], [2, 3]], None, True, [3, 8])
    rows = concatenate([world.rows, tied])
    order = np.random.default_rng(0).permutation(rows.size)
    rows = take_rows(rows, order)
    of = cells(rows, 12, 5)
    rng = np.random.default_rng(1)
    mh, vh = rng.normal(size=(of.P, 3)), rng.random((of.P, 3))
    mw, vw, _ = user_weights(of, mh, vh, rows, width=0.4, lapse=0.1)
    for u in (3, 8, 0):
        own = take_rows(rows, rows.user == u)
        alone = cells(own._replace(user=np.zeros(own.size, np.int64)), 1, 5, (of.first, of.second))
        m, v, _ = user_weights(alone, mh, vh, own._replace(user=np.zeros(own.size, np.int64)), width=0.4, lapse=0.1)
        np.testing.assert_allclose(mw[u], m[0], atol=1e-12)
        np.testing.assert_allclose(vw[u], v[0], atol=1e-12)
    often = rows._replace(times=np.full(rows.size, 2.0))
    twice = concatenate([rows, rows])
    a = user_weights(cells(often, 12, 5), mh, vh, often, width=0.4)
    b = user_weights(cells(twice, 12, 5), mh, vh, twice, width=0.4)
    np.testing.assert_allclose(a[0], b[0], atol=1e-10)


def test_weights_with_functions_that_are_known() -> None:
    """One function, known for sure: one weight, against quadrature."""
    from scipy.special import ndtr

    rows = pair_rows([[0, 1]] * 6 + [[1, 0]] * 2 + [[0, 1]] * 5, None, [False] * 8 + [True] * 5)
    w, p = np.polynomial.hermite_e.hermegauss(80)
    joint = p * ndtr(1.5 * w - 0.5) ** 6 * ndtr(-1.5 * w - 0.5) ** 2
    joint *= (ndtr(0.5 - 1.5 * w) - ndtr(-0.5 - 1.5 * w)) ** 5
    mean = (joint * w).sum() / joint.sum()
    var = (joint * w * w).sum() / joint.sum() - mean**2
    mw, vw, _ = user_weights(cells(rows, 1, 2), np.array([[1.5]]), np.array([[1e-12]]), rows, width=0.5, rounds=60)
    assert mw[0, 0] == pytest.approx(mean, abs=0.01)
    assert vw[0, 0] == pytest.approx(var, rel=0.05)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"batch": 0}, "batch: expected"),
        ({"passes": 0}, "passes: expected"),
        ({"D": 0}, "D: expected"),
        ({"slower": 0.5}, "slower: expected a number above 0.5, at most 1, got 0.5"),
        (
            {"start": fit_streaming(np.eye(3), 3, pair_rows([[0, 1]]), D=2)},
            "start: expected at most 2 people and D 1, got 3",
        ),
    ],
)
def test_refusals(change: dict[str, Any], told: str) -> None:
    given: dict[str, Any] = {"K": np.eye(3), "users": 2, "rows": pair_rows([[0, 1]]), "D": 1, **change}
    with pytest.raises(ValueError, match=told):
        fit_streaming(**given)
