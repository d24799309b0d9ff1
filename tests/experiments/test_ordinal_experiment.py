"""Experiments with grades: how features are scaled and mapped, and which learners are let in."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from heedful.core.fold import trace
from heedful.experiments.ordinal import map_features, ordinal_setting, scale_features, unstable
from heedful.experiments.run import Run, bound, simulate
from heedful.learners.ordinal.perceptrons import PRank
from heedful.spaces.ordinal import Ranks
from heedful.worlds.instances import instance_stream

X = np.array([[1.0, -2.0, 5.0], [3.0, 0.0, 5.0], [8.0, 8.0, 5.0], [0.0, 1.0, 5.0]])
RANKS = np.array([1, 2, 4, 1])

tables = arrays(np.float64, (5, 3), elements=st.floats(-1e150, 1e150))


@given(tables)
def test_standard_features_have_mean_0_and_deviation_1(values: np.ndarray) -> None:
    got = scale_features(values, "standard")
    for before, after in zip(values.T, got.T):
        if before.max() > before.min():
            assert after.mean() == pytest.approx(0.0, abs=1e-6)
            assert after.std() == pytest.approx(1.0, rel=1e-6)
        else:
            assert not after.any()


@given(tables)
def test_unit_rows_have_length_1_and_their_direction(values: np.ndarray) -> None:
    got = scale_features(values, "unit")
    for before, after in zip(values, got):
        if before.any():
            assert np.linalg.norm(after) == pytest.approx(1.0)
            assert (np.sign(after)[np.abs(after) > 0] == np.sign(before)[np.abs(after) > 0]).all()
        else:
            assert not after.any()


def test_none_changes_nothing_and_others_are_refused() -> None:
    np.testing.assert_array_equal(scale_features(X, "none"), X)
    with pytest.raises(ValueError, match="scale: expected standard, unit, none, got 'log'"):
        scale_features(X, "log")


def test_maps() -> None:
    np.testing.assert_array_equal(map_features(X, "as they are"), X)
    np.testing.assert_array_equal(map_features(X, "intercept"), np.hstack([np.ones((4, 1)), X]))
    mapped = map_features(X, "polynomial:2")
    np.testing.assert_allclose(mapped @ mapped.T, (X @ X.T + 1.0) ** 2)
    with pytest.raises(ValueError, match="map: expected intercept or polynomial:2, got 'polynomial:3'"):
        map_features(X, "polynomial:3")
    with pytest.raises(ValueError, match="map: expected at most 100,000 features, got 125,751 of 500"):
        map_features(np.zeros((2, 500)), "polynomial:2")


def test_the_rows_are_scaled_before_they_are_mapped() -> None:
    setting = ordinal_setting(X, RANKS, 4, scale="standard", features="intercept", seeds=(3, 8))
    rows = np.hstack([np.ones((4, 1)), scale_features(X, "standard")])
    assert [(s.seed, s.person, s.draw) for s in setting.scenes] == [(3, 0, 3), (8, 0, 8)]
    world = setting.scenes[0].world
    np.testing.assert_array_equal(world.X, rows)
    np.testing.assert_array_equal(world.ranks, RANKS)
    assert (setting.n_features, setting.space, setting.rounds) == (4, Ranks(4), 4)
    assert (setting.kind.name, setting.measure) == ("ordinal", "rank loss")
    assert setting.R == pytest.approx(max(math.sqrt(float(row @ row)) for row in rows))
    assert setting.S == np.abs(rows).max()


def test_runs_are_those_of_the_fold() -> None:
    setting = ordinal_setting(X, RANKS, 4, seeds=range(3))
    events = simulate({"prank": setting.learner("prank")}, setting, 9, interpreted=True)
    runs = [event for event in events if isinstance(event, Run)]
    assert len(runs) == 3
    world = instance_stream(X, RANKS, n_ranks=4)
    for run in runs:
        np.testing.assert_array_equal(run.regrets, trace(PRank(3, 4), world, 9, run.seed, interpreted=True))
    assert np.isnan(bound(setting.learner("prank"), setting, 9))


def test_learners_are_those_that_predict_grades() -> None:
    setting = ordinal_setting(X, RANKS, 4)
    assert setting.learner("prank") == PRank(3, 4)
    assert setting.learner("widrow-hoff:eta=0.5").eta == 0.5
    told = "learner: expected one that predicts grades (ordinal), got perceptron, which is coactive"
    with pytest.raises(ValueError) as error:
        setting.learner("perceptron")
    assert str(error.value) == told
    with pytest.raises(ValueError, match="n_ranks"):
        setting.learner("prank:n_ranks=3")
    with pytest.raises(ValueError, match="eta"):
        setting.learner("widrow-hoff:eta=-1")


def test_a_step_at_which_widrow_hoff_diverges_is_told() -> None:
    setting = ordinal_setting(X, RANKS, 4)  # |x|^2 is at most 153
    assert unstable(setting.learner("widrow-hoff:eta=0.013"), setting) == ""
    assert "stable below 2 / 12.4^2 = 0.013" in unstable(setting.learner("widrow-hoff:eta=0.0131"), setting)
    assert unstable(setting.learner("prank"), setting) == ""
