"""Hyper-parameters by held-out pairs: what is held back, what is told of candidates, what is chosen."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from crowded import crowded, error

from heedful.inference.collaborative.baselines import fit_single
from heedful.inference.collaborative.cp import fit
from heedful.inference.collaborative.distances import half_median
from heedful.inference.collaborative.model_selection import tune, tune_cp
from heedful.inference.pairwise import PairRows, concatenate, pair_rows


class Told:
    """A model that says the same of everything, and remembers what it was fitted to."""

    def __init__(self, p: float, rows: PairRows) -> None:
        self.p, self.rows, self.log_evidence, self.asked = p, rows, -rows.times.sum() * p, 0

    def predict_proba(self, user: Any, a: Any, b: Any) -> Any:
        self.asked = len(user)
        return np.where(a < b, self.p, 1.0 - self.p)


def test_what_is_held_back_and_what_is_told_of_it() -> None:
    """A share of each person's answers, no answer twice, ties and lonely answers never; all candidates alike."""
    user = np.repeat([0, 1, 2, 4], [10, 5, 1, 3])
    rows = pair_rows([[0, 1]] * user.size, np.arange(1, 20), False, user)
    rows = concatenate([rows, pair_rows([[0, 1]] * 4, None, True, 1)])
    seen: list[Told] = []

    def fitted(p: float, part: PairRows) -> Told:
        seen.append(Told(p, part))
        return seen[-1]

    trials = tune([0.6, 0.9, 0.5, 0.2], fitted, rows, folds=2)
    assert [t.choice for t in trials] == [0.9, 0.6, 0.5, 0.2]
    assert [t.error for t in trials] == [0.0, 0.0, 0.5, 1.0]
    np.testing.assert_allclose([t.log_probability for t in trials], np.log([0.9, 0.6, 0.5, 0.2]))
    np.testing.assert_allclose([t.log_evidence for t in trials], [-0.9, -0.6, -0.5, -0.2])
    assert len(seen) == 8
    for fold in (seen[:4], seen[4:]):
        kept = np.bincount(fold[0].rows.user[~fold[0].rows.equal], minlength=5)
        assert kept.tolist() == [10 - 2, 5 - 1, 1, 0, 3 - 1]  # of person 1, a share of nine answers with four ties
        assert fold[0].rows.equal.sum() == 4
        assert fold[0].asked == 2 + 1 + 1
        assert all(np.array_equal(fold[0].rows.times, other.rows.times) for other in fold)
    assert not np.array_equal(seen[0].rows.times, seen[4].rows.times)


def test_the_length_scale_that_foretells_is_found() -> None:
    """A prior ten times too smooth, or with an amplitude that is far off, is not chosen, whatever the evidence says."""
    world = crowded(60, 10, 20, D=2, seed=1, amplitude=2.0)
    tuned = tune_cp(world.X, world.rows, 60, D=4, stretches=(1.0, 10.0), amplitudes=(0.1, 2.0))
    assert tuned.choice == (pytest.approx(half_median(world.X)), 2.0, 0.0)
    assert len(tuned.trials) == 4
    assert tuned.trials[0].choice == tuned.choice
    poor = tune_cp(world.X, world.rows, 60, D=4, stretches=(10.0,), amplitudes=(0.1,))
    assert error(tuned.fit, world.f) < error(poor.fit, world.f) - 0.02


@pytest.mark.slow
def test_rho_stays_nought_where_features_say_nothing_and_not_where_they_do() -> None:
    world = crowded(80, 8, 14, D=2, seed=2, amplitude=1.5)
    noise = np.random.default_rng(0).normal(size=(80, 6))
    taste = world.f @ np.linalg.svd(world.f, full_matrices=False)[2][:2].T  # what tells tastes apart
    given: dict[str, Any] = {"D": 4, "stretches": (1.0,), "amplitudes": (1.5,), "folds": 2}
    assert tune_cp(world.X, world.rows, 80, Z=noise, **given).choice.rho <= 0.25
    informed = tune_cp(world.X, world.rows, 80, Z=taste, **given)
    assert informed.choice.rho >= 0.5
    assert informed.fit.people is not None
    assert [t.choice.rho for t in informed.trials[1:]] != [0.0] * 4


def test_items_without_features() -> None:
    world = crowded(20, 5, 15)
    tuned = tune_cp(np.empty((5, 0)), world.rows, 20, D=2, amplitudes=(0.5, 1.0))
    assert tuned.choice.lengthscale == 0.0
    again = fit(tuned.choice.amplitude**2 * np.eye(5), 20, world.rows, D=2)
    np.testing.assert_allclose(tuned.fit.predict_proba(0, 0, 1), again.predict_proba(0, 0, 1))


def test_any_model_can_be_tuned() -> None:
    world = crowded(30, 6, 20, amplitude=2.0)
    trials = tune([0.01, 1.0], lambda s, part: fit_single(s * world.K, 30, part), world.rows)
    assert trials[0].choice == 1.0


def test_refusals() -> None:
    rows = pair_rows([[0, 1]] * 4, user=[0, 1, 2, 3])
    with pytest.raises(ValueError, match="rows: expected at least two answers of somebody"):
        tune([1.0], lambda p, part: Told(p, part), rows)
    with pytest.raises(ValueError, match="candidates: expected"):
        tune([], lambda p, part: Told(p, part), rows)
    with pytest.raises(ValueError, match="folds: expected"):
        tune([1.0], lambda p, part: Told(p, part), rows, folds=0)
