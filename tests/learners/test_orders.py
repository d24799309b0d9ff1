"""The baselines that learn nothing: a random order, each equally likely, and the order of the candidates."""

from collections import Counter
from itertools import permutations
from typing import Any

import numpy as np
import pytest

from heedful.learners.coactive.baselines import FixedOrder, RandomOrder
from heedful.spaces.assignment import Assignment
from heedful.spaces.ranking import Ranking, WithBaseScore

DRAWS = 3000


def proposals(space: Any, x: Any) -> Counter[tuple[int, ...]]:
    learner, rng = RandomOrder(x.shape[-1], space), np.random.default_rng(0)
    state = learner.init(rng)
    return Counter(tuple(learner.propose(state, x, rng).tolist()) for _ in range(DRAWS))


@pytest.mark.parametrize(
    ("space", "x", "objects"),
    [
        (Ranking(5), np.zeros((3, 2)), list(permutations(range(3)))),
        (WithBaseScore(Ranking(2)), np.diag([9.0, 1.0, 0.0]), list(permutations(range(3)))),
        (Ranking(1), np.arange(8.0).reshape(4, 2), [(0,), (1,), (2,), (3,)]),
        (Assignment(2), np.arange(12.0).reshape(3, 2, 2), list(permutations(range(3), 2))),
    ],
    ids=["orders", "with a caller's score", "items", "assignments"],
)
def test_every_object_is_equally_likely(space: Any, x: Any, objects: list[tuple[int, ...]]) -> None:
    """Pearson's statistic against its 99.9 % quantile; whatever the candidates look like."""
    from scipy.stats import chi2

    seen = proposals(space, x)
    assert set(seen) == set(objects)
    expected = DRAWS / len(objects)
    assert sum((seen[each] - expected) ** 2 / expected for each in objects) < chi2.ppf(0.999, len(objects) - 1)


def test_the_fixed_order_is_that_of_the_candidates_or_the_callers() -> None:
    x = np.array([[0.0, 1.0], [5.0, 3.0], [2.0, 2.0]])
    rng = np.random.default_rng(0)
    for space, wanted in ((Ranking(2), [0, 1, 2]), (Ranking(1), [0]), (WithBaseScore(Ranking(2)), [1, 2, 0])):
        learner = FixedOrder(2, space)
        assert learner.propose(learner.init(rng), x, rng).tolist() == wanted


@pytest.mark.parametrize("cls", [FixedOrder, RandomOrder])
def test_nothing_is_learned(cls: Any) -> None:
    rng = np.random.default_rng(1)
    learner = cls(2, Ranking(2))
    state = learner.init(rng)
    for t in range(5):
        assert state.t == t
        state = learner.update(state, np.eye(2), np.array([0, 1]), np.array([1, 0]))
    assert learner.weights(state).tolist() == [0.0, 0.0]
