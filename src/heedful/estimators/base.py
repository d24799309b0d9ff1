"""Base classes of the ordinal estimators: they map labels to ranks, and update the state of a learner with each row."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from heedful.core.fold import coerce, copy_arrays
from heedful.core.validation import check_count, describe, finite_array
from heedful.estimators.folding import RankLearner, compiles, fold_rows
from heedful.estimators.labels import (
    Labels,
    all_or_nothing,
    category_order,
    distinct,
    is_alphabetical,
    ranks_of,
    scale,
    warn_of_alphabet,
)
from heedful.jit.kernel import Floats, Ints

Array = npt.NDArray[np.float64]

HELD = 1e200
"""The greatest absolute value that a number of a state may have; beyond it, products with features would overflow."""


class OrdinalEstimator(ClassifierMixin, BaseEstimator, ABC):
    """Base class of scikit-learn classifiers of ordered labels, which map labels to ranks and update an online learner
    with each row.

    - `classes_`: the labels, lowest first.
    - `n_features_in_`: the number of features of a row.
    - `_state`: the state of the learner.

    A subclass defines `_rule`, which returns the learner, and `_decisions`, a value for each rank. Parameters are those
    of `PRankClassifier`.
    """

    classes_: Labels
    n_features_in_: int
    _state: Any  # state of the learner
    _assumed: bool  # whether the order of labels is that of the alphabet, as nobody gave it

    def __init__(
        self,
        *,
        epochs: int = 5,
        shuffle: bool = True,
        random_state: object = None,
        order: object = None,
    ) -> None:
        self.epochs = epochs
        self.shuffle = shuffle
        self.random_state = random_state
        self.order = order

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        # scikit-learn expects accuracy .83 for three clusters in a triangle; no direction with thresholds has .74.
        tags.classifier_tags.poor_score = True
        return tags

    @abstractmethod
    def _rule(self, n_features: int, n_ranks: int) -> RankLearner:
        """Return the learner, with its hyperparameters, for rows of `n_features` numbers and `n_ranks` ranks."""

    @abstractmethod
    def _decisions(self, X: Floats) -> Array:
        """Return a decision value for each of k ranks (n, k); for two ranks (n,), above 0 for the higher one."""

    def fit(self, X: object, y: object) -> Self:
        """Learn from n rows of N features X (n, N) with labels y (n,), going over them `epochs` times, and return the
        estimator.

        Anything learned before is discarded. Raise ValueError, naming the argument, if one is invalid; the estimator is
        then unchanged.
        """
        check_count("epochs", self.epochs)
        if not isinstance(self.shuffle, bool | np.bool_):
            raise ValueError(f"shuffle: expected True or False, got {describe(self.shuffle)}")
        return self._learn(X, y, None, int(self.epochs), bool(self.shuffle), True)

    def partial_fit(self, X: object, y: object, classes: object = None) -> Self:
        """Learn from n rows of N features X (n, N) with labels y (n,) once, in their order, in addition to earlier
        rows.

        Return the estimator. `classes`: all possible labels, in any order; the first call needs them, unless `order` or
        an ordered Categorical gives them. Raise ValueError, naming the argument, if one is invalid; the estimator is
        then unchanged.
        """
        afresh = not hasattr(self, "_state")
        if afresh and classes is None and self.order is None and category_order(y) is None:
            raise ValueError("classes: expected all labels in the first call of partial_fit (or order=...), got None")
        return self._learn(X, y, classes, 1, False, afresh)

    def _learn(self, X: object, y: object, classes: object, epochs: int, shuffle: bool, afresh: bool) -> Self:
        categories = category_order(y)
        with all_or_nothing(self):
            X, y = validate_data(self, X, y, dtype=(np.float64, np.float32), reset=afresh)
            X = finite_array("X", X, 2, self.n_features_in_)
            labels, inverse = distinct(y)
            order = categories if self.order is None else self.order
            self.classes_ = scale(labels, classes, order, self._previous_labels(categories, afresh))
            if afresh:
                self._assumed = order is None and is_alphabetical(self.classes_)
                if self._assumed:
                    warn_of_alphabet(self.classes_, 3)
            self._take(X, ranks_of(labels, self.classes_)[inverse], epochs, shuffle, afresh)
        return self

    def _previous_labels(self, categories: list[Any] | None, afresh: bool) -> Labels | None:
        """Return the labels of earlier calls, None without or `afresh`; raise ValueError if `categories` contradict."""
        if afresh:
            return None
        labels = self.classes_.tolist()
        in_order = [label for label in categories or () if label in labels]
        if categories is not None and self.order is None and in_order != labels:
            raise ValueError(f"y: expected categories in the order {describe(labels)}, got {describe(categories)}")
        return self.classes_

    def _take(self, X: Floats, ranks: Ints, epochs: int, shuffle: bool, afresh: bool) -> None:
        """Update the state with rows X (n, N) and `ranks` (n,) from 1, `epochs` times; raise ValueError if weights
        overflow."""
        learner = coerce(self._rule(self.n_features_in_, self.classes_.size))
        state = learner.init(np.random.default_rng(0))  # checks the hyperparameters, too
        if not afresh:
            state = copy_arrays(self._state)
        draws = check_random_state(self.random_state) if shuffle else None
        fast = compiles(learner, len(X), epochs * len(X))
        with np.errstate(over="ignore", invalid="ignore"):
            for _ in range(epochs):
                order = None if draws is None else draws.permutation(len(X))
                state = fold_rows(learner, state, X, ranks, order, fast)
        if not all(bool(np.all(np.abs(part) <= HELD)) for part in state):
            raise ValueError("X: expected features on a smaller scale (StandardScaler), got weights that overflow")
        self._state = state

    def _instances(self, X: object) -> Floats:
        """Return X as a checked array (n, N) of a fitted estimator."""
        check_is_fitted(self)
        return finite_array(
            "X", validate_data(self, X, dtype=(np.float64, np.float32), reset=False), 2, self.n_features_in_
        )

    def decision_function(self, X: object) -> Array:
        """Return how far the score of each of n rows lies inside the interval of scores for which each of k ranks is
        predicted (n, k); negative if it is outside.

        X (n, N): the N features of each row. The predicted rank has the greatest value. With two labels the result is
        (n,): above 0 for the higher label.
        """
        return self._decisions(self._instances(X))

    def predict(self, X: object) -> Labels:
        """Return the predicted label (n,) of each of n rows of N features X (n, N)."""
        places = self._places(X)
        return self.classes_[places]

    def _places(self, X: object) -> Ints:
        """Return for each of n rows X the index (n,) in `classes_` of its predicted label."""
        decisions = self.decision_function(X)
        return decisions.argmax(axis=1) if decisions.ndim == 2 else (decisions > 0.0).astype(np.int64)

    @property
    def t_(self) -> int:
        """Number of rows learned from; a row counts once in each epoch."""
        return int(self._state.t)
