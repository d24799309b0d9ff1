"""Experiments on ratings: what is made of a table and of a name, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from heedful.core.fold import trace
from heedful.data.ratings import RatingTable
from heedful.experiments.ratings import SIMPLE, is_drawn, make_world, rating_setting
from heedful.experiments.run import Run, difference, simulate
from heedful.spaces.slate import Slate
from heedful.worlds.offers import WarmStart
from heedful.worlds.ratings import GAUSSIAN, LowRank, Replay


@pytest.fixture
def table() -> RatingTable:
    """Forty ratings, -2 to 2, of 10 items by 5 users."""
    rng = np.random.default_rng(1)
    chosen = rng.permutation(50)[:40]
    names = np.arange(5).astype(str), np.arange(10).astype(str)
    return RatingTable(chosen // 10, chosen % 10, rng.integers(-2, 3, 40).astype(float), *names)


def test_a_table_as_it_is(table: RatingTable) -> None:
    setting = rating_setting(table, seeds=(3, 5))
    assert setting.space == Slate(1, -2.0, 2.0)
    assert (setting.rounds, setting.measure, setting.kind.name, setting.warm) == (40, "regret", "rating", 0)
    assert [scene.seed for scene in setting.scenes] == [3, 5]
    assert isinstance(setting.scenes[0].world, Replay)
    assert setting.scenes[0].world.repeats is False
    assert rating_setting(table, repeats=True).rounds == 25_000
    per_user = np.bincount(table.users)
    assert rating_setting(table, slate=3).rounds == np.ceil(per_user / 3).sum()
    for slate in (1, 3):
        setting = rating_setting(table, slate=slate)
        assert (
            trace(setting.learner("item-mean"), setting.scenes[0].world, 99, 0, interpreted=True).size == setting.rounds
        )


def test_what_is_told_before_does_not_count(table: RatingTable) -> None:
    setting = rating_setting(table, warm=10, seeds=(0, 1))
    assert (setting.rounds, setting.warm) == (30, 10)
    assert isinstance(setting.scenes[0].world, WarmStart)
    learner = setting.learner("item-mean")
    events = list(simulate({"it": learner}, setting, 30, interpreted=True))
    for run in (event for event in events if isinstance(event, Run)):
        whole = trace(learner, setting.scenes[run.seed].world, 40, run.seed, interpreted=True)
        assert run.regrets.tolist() == whole[10:].tolist()
    scenes = setting.scenes
    assert not np.array_equal(scenes[0].world.items, scenes[1].world.items)


def test_worlds_by_name() -> None:
    world = make_world("gaussian:n_users=3,noise=0.25", 4)
    assert isinstance(world, LowRank)
    assert (world.Y.shape, world.noise, world.width) == ((3, 200), GAUSSIAN, 0.25)
    assert not np.array_equal(world.Y, make_world("gaussian:n_users=3", 5).Y)
    setting = rating_setting("uniform:n_users=4,n_items=5,n_factors=2", seeds=(0, 1))
    assert setting.space == Slate(1, -0.25, 1.25)
    assert not np.array_equal(setting.scenes[0].world.Y, setting.scenes[1].world.Y)  # drawn anew
    assert rating_setting("bernoulli").space == Slate(1, 0.0, 1.0)
    assert rating_setting("gaussian").space == Slate()
    assert is_drawn("gaussian:noise=1")
    assert not is_drawn("./gaussian")


@pytest.mark.parametrize(
    ("source", "how", "told"),
    [
        ("normal", {}, "ratings: expected a file or gaussian, uniform, bernoulli, got 'normal'"),
        (
            "gaussian:nois=1",
            {},
            "gaussian: expected n_users, n_items, n_factors, noise, got 'nois'; did you mean noise?",
        ),
        ("gaussian:n_users=0", {}, "gaussian: n_users: expected a whole number, 1 to 10000000, got 0"),
        ("gaussian:noise=-1", {}, "gaussian: noise: expected a number from 0 to 1e50, got -1.0"),
        ("gaussian:seed=1", {}, "got 'seed'"),
        ("gaussian", {"slate": 0}, "slate: expected a whole number, 1 to 1000, got 0"),
        ("gaussian", {"warm": -1}, "warm: expected a whole number, 0 or more, got -1"),
    ],
)
def test_what_makes_no_sense(source: str, how: Any, told: str) -> None:
    with pytest.raises(ValueError) as error:
        rating_setting(source, **how)
    assert told in str(error.value)


def test_learners_of_this_interaction_alone(table: RatingTable) -> None:
    setting = rating_setting(table)
    for name in (*SIMPLE, "alb", "bmf", "pts", "nmf-bandit"):
        assert setting.learner(name).space == setting.space
    with pytest.raises(ValueError, match=r"expected one that takes ratings \(rating\), got prank, which is ordinal"):
        setting.learner("prank")


def test_a_difference_is_taken_seed_by_seed() -> None:
    def run(seed: int, regrets: list[float]) -> Run:
        return Run("it", seed, 0, np.array(regrets), 1.0)

    ours, theirs = [run(0, [1, 2, 9]), run(1, [2, 2])], [run(1, [1, 1]), run(0, [0, 0])]
    mean, error = difference(ours, theirs)
    d = [1.5, 1.0]  # of the two rounds that all have
    assert mean == pytest.approx(np.mean(d))
    assert error == pytest.approx(np.std(d, ddof=1) / np.sqrt(2))
    assert np.isnan(difference(ours[:1], theirs[1:])[1])
    with pytest.raises(ValueError, match=r"^theirs: expected runs on the seeds"):
        difference(ours, theirs[:1])
