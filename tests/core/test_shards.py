"""A log in shards gives the state of the whole log: bit for bit where a batch is summed in one place."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from heedful import PreferencePerceptron, Ranking, SecondOrderPerceptron
from heedful.core.engine import Costs
from heedful.core.fold import Round, replay
from heedful.core.shards import cut, replay_shards

FREE = Costs(0.0, 0.0, 0.0, -1.0)


def rounds(n: int, seed: int) -> list[Round[Any, Any, Any]]:
    """n rounds of 5 candidates with 4 features: what was shown, and a better order."""
    rng = np.random.default_rng(seed)
    return [
        Round(rng.standard_normal((5, 4)) * 10.0 ** rng.integers(-3, 4), rng.permutation(5), rng.permutation(5))
        for _ in range(n)
    ]


def drawn(shard: tuple[int, int]) -> Iterator[Round[Any, Any, Any]]:
    """The rounds that (how many, seed) names, made where they are summed."""
    yield from rounds(*shard)


@given(n=st.integers(0, 60), batch=st.integers(2, 12), size=st.integers(1, 40), seed=st.integers(0, 99))
def test_shards_of_whole_batches_give_the_state_bit_for_bit(n: int, batch: int, size: int, seed: int) -> None:
    log, learner = rounds(n, seed), PreferencePerceptron(4, Ranking(3), batch)
    whole, sharded = replay(learner, log, 0), replay_shards(learner, cut(log, batch, size))
    assert whole.t == sharded.t == n
    np.testing.assert_array_equal(sharded.w, whole.w)
    np.testing.assert_array_equal(sharded.pending, whole.pending)


@given(n=st.integers(0, 60), size=st.integers(1, 40), seed=st.integers(0, 99))
def test_without_batches_shards_agree_to_rounding(n: int, size: int, seed: int) -> None:
    log, learner = rounds(n, seed), PreferencePerceptron(4, Ranking(3))
    whole, sharded = replay(learner, log, 0), replay_shards(learner, cut(log, 1, size))
    assert whole.t == sharded.t == n
    scale = max(np.abs(log[i].x).max() for i in range(n)) * n if n else 1.0
    np.testing.assert_allclose(sharded.w, whole.w, rtol=1e-12, atol=1e-12 * scale)


def test_shards_are_of_whole_batches_but_the_last() -> None:
    assert [len(shard) for shard in cut(range(100), 7, 30)] == [28, 28, 28, 16]
    assert [len(shard) for shard in cut(range(10), 7, 3)] == [7, 3]
    assert cut([], 5) == []


def test_a_shard_may_name_rounds_that_are_read_where_they_are_summed() -> None:
    learner, shards = PreferencePerceptron(4, Ranking(3), 5), [(20, 1), (10, 2), (13, 3)]
    log = [each for shard in shards for each in drawn(shard)]
    got = replay_shards(learner, shards, read=drawn)
    np.testing.assert_array_equal(got.w, replay(learner, log, 0).w)
    assert got.t == 43


def test_what_cannot_be_sharded_is_refused() -> None:
    with pytest.raises(
        ValueError, match="expected whole batches of 5 rounds in all but the last, got 12 rounds in shard 0"
    ):
        replay_shards(PreferencePerceptron(4, Ranking(3), 5), [(12, 1), (10, 2)], read=drawn)
    with pytest.raises(ValueError, match="learner: expected one that learns in batches while its weights are fixed"):
        replay_shards(SecondOrderPerceptron(4, Ranking(3)), [[]])
