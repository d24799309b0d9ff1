"""Coactive learners as a scikit-learn estimator that ranks the rows within groups and learns from the relevance of
rows.

The estimator holds a `Session` of its learner, which learns from one group after the other: one epoch without shuffling
gives the same state as the `Session` with the same groups, bit for bit.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator
from sklearn.metrics import ndcg_score
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from heedful.core.session import Session
from heedful.core.validation import check_count, describe, finite_array, numbers
from heedful.estimators.labels import all_or_nothing
from heedful.jit.kernel import Ints
from heedful.learners.registry import learner_class, make_learner, summarise
from heedful.spaces.ranking import Ranking

Array = npt.NDArray[np.float64]


class CoactiveRanker(BaseEstimator):
    """Rank the rows of a group by a linear score w . x, with weights w (N,) of N features learned from the relevance of
    rows.

    A group is one list to rank, such as the documents of a query. In `fit` and `score`, `groups` says which group each
    row belongs to; None puts all in one. In each step the learner ranks a group and gets, as feedback, the same rows
    ordered by relevance; equally relevant rows stay in the order shown. A preference between two things is a group of
    two rows.

    Parameters:

    - `learner`: the name of a coactive learner with its parameters ("posterior:swap=0", "second-order:epsilon=1").
    - `k`: the learner optimises, and `score` measures, the first k positions of a ranking.
    - `epochs`: how often `fit` goes over the groups; `shuffle`: whether in a new random order each time, drawn from
      `random_state`.

    After fitting: `coef_` (N,), the weights w; `n_features_in_`; `t_`, the number of groups learned from. There is no
    `sample_weight`, since it learns from whole groups.
    """

    n_features_in_: int
    _session: Session[Any]

    def __init__(
        self,
        learner: str = "posterior:swap=0",
        *,
        k: int = 10,
        epochs: int = 5,
        shuffle: bool = True,
        random_state: object = None,
    ) -> None:
        self.learner = learner
        self.k = k
        self.epochs = epochs
        self.shuffle = shuffle
        self.random_state = random_state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.estimator_type = "ranker"
        tags.target_tags.required = True
        return tags

    def fit(self, X: object, y: object, groups: object = None) -> Self:
        """Learn from n rows of N features X (n, N) with relevance y (n,), higher is better; return the estimator.

        `groups` (n,): the group, i.e. the list to rank, of each row; None: one group. Anything learned before is
        discarded. Raise ValueError, naming the argument, if one is invalid; the estimator is then unchanged.
        """
        check_count("epochs", self.epochs)
        if not isinstance(self.shuffle, bool | np.bool_):
            raise ValueError(f"shuffle: expected True or False, got {describe(self.shuffle)}")
        return self._learn(X, y, groups, int(self.epochs), bool(self.shuffle), True)

    def partial_fit(self, X: object, y: object, groups: object = None) -> Self:
        """Learn from n rows of N features X (n, N) with relevance y (n,), higher is better, once, in addition to
        earlier rows.

        Return the estimator. `groups` (n,): the group, i.e. the list to rank, of each row; None: one group. Groups are
        learned in the order of their first rows; a group must be complete in one call. Raise ValueError, naming the
        argument, if one is invalid; the estimator is then unchanged.
        """
        return self._learn(X, y, groups, 1, False, not hasattr(self, "_session"))

    def _learn(self, X: object, y: object, groups: object, epochs: int, shuffle: bool, afresh: bool) -> Self:
        with all_or_nothing(self):
            X, y = validate_data(self, X, y, dtype=(np.float64, np.float32), reset=afresh, y_numeric=True)
            X = finite_array("X", X, 2, self.n_features_in_)
            relevance = numbers("y", y, "numbers, how relevant each row is")
            lists = list(_lists(groups, len(X)))
            draws = check_random_state(self.random_state)
            if afresh:
                session = Session(self._rule(), int(draws.randint(2**31)))
            else:
                old = self._session
                session = Session(old.learner, old.seed, state=old.state, learned=old.learned)
            for _ in range(epochs):
                for g in draws.permutation(len(lists)) if shuffle else range(len(lists)):
                    rows = lists[g]
                    shown = session.propose(X[rows])
                    shown = np.concatenate([shown, np.setdiff1d(np.arange(rows.size), shown)])  # k = 1 shows the first
                    session.learn(shown[np.argsort(-relevance[rows][shown], kind="stable")])
            if not np.isfinite(session.weights).all():
                raise ValueError("X: expected features on a smaller scale (StandardScaler), got weights that overflow")
            self._session = session
        return self

    def _rule(self) -> Any:
        if not isinstance(self.learner, str):
            raise ValueError(f"learner: expected its name, such as posterior:swap=0, got {describe(self.learner)}")
        cls: Any = learner_class(self.learner)
        if summarise(cls).interaction not in ("", "coactive") or not hasattr(cls, "weights"):
            raise ValueError(f"learner: expected a coactive one, such as posterior:swap=0, got {self.learner}")
        check_count("k", self.k)
        return make_learner(self.learner, n_features=self.n_features_in_, space=Ranking(int(self.k)))

    def predict(self, X: object) -> Array:
        """Return the score (n,) of each of n rows of N features X (n, N), higher is better; scores order the rows of a
        group.
        """
        check_is_fitted(self, "_session")
        X = validate_data(self, X, dtype=(np.float64, np.float32), reset=False)
        scores: Array = finite_array("X", X, 2, self.n_features_in_).astype(np.float64) @ self._session.weights
        return scores

    def score(self, X: object, y: object, groups: object = None) -> float:
        """Return NDCG@k of the order by score, averaged over the groups with at least two rows and a relevance above 0.

        X (n, N): n rows of N features; y (n,): their relevance, 0 or more; `groups` (n,): the group of each row, None
        for one group. Raise ValueError if there is no such group, or if a relevance is below 0.
        """
        scores, relevance = self.predict(X), numbers("y", y, "numbers, how relevant each row is")
        if relevance.shape != scores.shape or not (np.isfinite(relevance) & (relevance >= 0)).all():
            raise ValueError(f"y: expected {scores.size} numbers, 0 or more, got {describe(y)}")
        gains = [
            ndcg_score(relevance[None, rows], scores[None, rows], k=int(self.k))
            for rows in _lists(groups, scores.size)
            if rows.size > 1 and relevance[rows].any()
        ]
        if not gains:
            raise ValueError("y: expected a group of two rows or more with something relevant in it, got none")
        return float(np.mean(gains))

    @property
    def coef_(self) -> Array:
        """Weights w (N,) of the N features in the score."""
        return self._session.weights

    @property
    def t_(self) -> int:
        """Number of groups learned from; a group counts once in each epoch."""
        return self._session.learned


def _lists(groups: object, n: int) -> Iterator[Ints]:
    """Yield the row indices of each group, by first rows; None is one group. Raise ValueError for another length."""
    if groups is None:
        groups = np.zeros(n, np.int64)
    of = np.asarray(groups)
    if of.shape != (n,):
        raise ValueError(f"groups: expected the group of each of {n} rows, got {describe(groups)}")
    _, first, place = np.unique(of, return_index=True, return_inverse=True)
    order = np.argsort(place, kind="stable")
    rows = np.split(order, np.cumsum(np.bincount(place))[:-1])
    yield from (rows[g] for g in np.argsort(first, kind="stable"))
