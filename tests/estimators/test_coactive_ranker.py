"""The coactive learners as an estimator that ranks rows in groups."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import sklearn
from sklearn.base import clone
from sklearn.model_selection import GroupKFold, cross_val_score
from sklearn.utils.estimator_checks import parametrize_with_checks

from heedful import Posterior, Ranking, Session
from heedful.estimators import CoactiveRanker


@parametrize_with_checks([CoactiveRanker(epochs=1)])
def test_scikit_learns_checks(estimator: Any, check: Any) -> None:
    check(estimator)


def searches(n: int = 60, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows of n groups of 2 to 8, their relevance 0 to 3 by hidden weights and noise, and their groups, interleaved."""
    rng = np.random.default_rng(seed)
    groups = rng.permutation(np.repeat(np.arange(n), rng.integers(2, 9, n)))
    X = rng.standard_normal((groups.size, 4))
    value = X @ [2.0, -1.0, 0.5, 0.0] + 0.3 * rng.standard_normal(groups.size)
    return X, np.digitize(value, [-1.0, 0.5, 2.0]), groups


@pytest.mark.parametrize("learner", ["posterior:swap=0", "perceptron", "second-order:epsilon=1", "posterior"])
def test_it_learns_to_rank_groups_that_it_has_not_seen(learner: str) -> None:
    X, y, groups = searches()
    train = groups < 40
    ranker = CoactiveRanker(learner, random_state=0).fit(X[train], y[train], groups[train])
    rest = (X[~train], y[~train], groups[~train])
    before = CoactiveRanker(learner).fit(X[train], np.zeros(train.sum()), groups[train])
    assert before.score(*rest) < 0.85
    assert ranker.score(*rest) > 0.93
    assert ranker.t_ == 5 * 40
    assert (ranker.predict(X) == X @ ranker.coef_).all()


def test_one_epoch_in_order_is_a_session_of_the_learner_bit_for_bit() -> None:
    X, y, groups = searches(20)
    ranker = CoactiveRanker(k=5, epochs=1, shuffle=False, random_state=0).fit(X, y, groups)
    session = Session(Posterior(n_features=4, space=Ranking(5), swap=0.0))
    pieces = CoactiveRanker(k=5)
    for group in dict.fromkeys(groups.tolist()):
        rows = groups == group
        shown = session.propose(X[rows])
        session.learn(sorted(shown.tolist(), key=lambda j: -y[rows][j]))  # stable: equals as they were shown
        pieces.partial_fit(X[rows], y[rows])
    assert (ranker.coef_ == session.weights).all()
    assert (pieces.coef_ == session.weights).all()
    assert ranker.t_ == pieces.t_ == 20


def test_a_pair_is_a_group_of_two() -> None:
    """By hand: the perceptron of one position shows the first of equals, is told the second, adds their difference."""
    X, y = np.array([[1.0, 0.0], [0.0, 2.0]]), [0, 1]
    ranker = CoactiveRanker("perceptron", k=1, epochs=1).fit(X, y)
    assert ranker.coef_.tolist() == [-1.0, 2.0]
    assert ranker.predict(X).tolist() == [-1.0, 4.0]


def test_the_score_is_ndcg_by_hand() -> None:
    """Of two groups: one right, one the wrong way round; a third has nothing relevant, a fourth one row."""
    ranker = CoactiveRanker(k=10, epochs=1).fit([[0.0], [1.0]], [0, 1])
    assert ranker.coef_[0] > 0.0
    X, y, groups = [[2.0], [1.0], [2.0], [1.0], [3.0], [2.0], [9.0]], [2, 1, 0, 3, 0, 0, 1], list("aabbccd")
    want = (1.0 + 1.0 / math.log2(3.0)) / 2.0
    assert ranker.score(X, y, groups) == pytest.approx(want)
    with pytest.raises(ValueError, match="y: expected a group of two rows or more with something relevant in it"):
        ranker.score(X, [0] * 7, groups)
    with pytest.raises(ValueError, match="y: expected 7 numbers, 0 or more, got"):
        ranker.score(X, [-1, 0, 0, 0, 0, 0, 0], groups)


def test_folds_of_whole_groups_score_by_group() -> None:
    X, y, groups = searches()
    with sklearn.config_context(enable_metadata_routing=True):
        ranker = CoactiveRanker(random_state=0).set_fit_request(groups=True).set_score_request(groups=True)
        found = cross_val_score(ranker, X, y, cv=GroupKFold(3), params={"groups": groups})
    assert (found > 0.9).all()
    assert clone(CoactiveRanker("perceptron", k=3)).get_params()["k"] == 3


@pytest.mark.parametrize(
    ("parameters", "y", "groups", "told"),
    [
        ({"learner": "prank"}, [1, 0], None, "learner: expected a coactive one, such as posterior:swap=0, got prank"),
        ({"learner": "bmf"}, [1, 0], None, "learner: expected a coactive one"),
        ({"learner": 3}, [1, 0], None, "learner: expected its name, such as posterior:swap=0, got 3"),
        ({"learner": "perceptrom"}, [1, 0], None, "learner: expected .*; did you mean perceptron"),
        ({"k": 0}, [1, 0], None, "k: expected"),
        ({"epochs": 0}, [1, 0], None, "epochs: expected"),
        ({"shuffle": "no"}, [1, 0], None, "shuffle: expected True or False, got 'no'"),
        ({}, [1, 0], [1], "groups: expected the group of each of 2 rows, got"),
    ],
)
def test_what_it_refuses_leaves_it_as_it_was(parameters: Any, y: Any, groups: Any, told: str) -> None:
    ranker = CoactiveRanker(**parameters)
    before = dict(vars(ranker))
    with pytest.raises(ValueError, match=told):
        ranker.fit([[1.0], [2.0]], y, groups)
    assert vars(ranker) == before


def test_shuffling_follows_the_random_state() -> None:
    X, y, groups = searches(30)
    one, two, other = (CoactiveRanker(random_state=seed).fit(X, y, groups).coef_ for seed in (1, 1, 2))
    assert (one == two).all()
    assert (one != other).any()
