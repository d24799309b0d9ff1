"""The ordinal learners as scikit-learn classifiers of ordered labels.

An estimator holds the state of its learner (`heedful.learners.ordinal.perceptrons`) and folds rows into it: one epoch
without shuffling gives the same state as a `Session` of the learner with the same rows, bit for bit.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from heedful.core.validation import describe
from heedful.estimators.base import OrdinalEstimator, OrdinalEstimatorWithIntercept
from heedful.estimators.folding import project
from heedful.jit.kernel import Floats, Ints, add_scaled, dot
from heedful.learners.ordinal.perceptrons import (
    AveragedPRank,
    ConstantRank,
    MulticlassPerceptron,
    PRank,
    WidrowHoff,
    WidrowHoffState,
)
from heedful.spaces.ordinal import Ranks

Array = npt.NDArray[np.float64]


def _inside(margins: Array) -> Array:
    """Return how far each score lies inside the interval of each rank (n, k), given how far it lies above each
    threshold (n, k-1).

    As in the learners, an interval includes its lower end and not its upper one. Distances to the upper end are
    therefore made one rounding smaller, so that only the interval that contains the score has a distance of 0 or more.
    """
    if margins.shape[1] == 1:
        return np.nextafter(margins[:, 0], np.inf)
    out = np.empty((len(margins), margins.shape[1] + 1))
    below = np.nextafter(-margins, -np.inf)
    out[:, 0], out[:, -1] = below[:, 0], margins[:, -1]
    np.minimum(margins[:, :-1], below[:, 1:], out=out[:, 1:-1])
    return out


class _WeightedWidrowHoff(NamedTuple):
    """Widrow-Hoff for weighted rows: the last number of a row is the factor of its step. Interaction: ordinal."""

    n_features: int
    n_ranks: int
    eta: float

    @property
    def space(self) -> Ranks:
        """The space of ranks."""
        return Ranks(self.n_ranks)

    def init(self, rng: np.random.Generator) -> WidrowHoffState:
        return WidrowHoffState(np.zeros(self.n_features), 0)

    def propose(self, state: WidrowHoffState, x: Floats, rng: np.random.Generator) -> int:
        return 1  # nobody looks at it

    def update(self, state: WidrowHoffState, x: Floats, y: int, feedback: int) -> WidrowHoffState:
        row = x[:-1]
        add_scaled(state.w, row, x[-1] * self.eta * (feedback - dot(row, state.w)))
        return WidrowHoffState(state.w, state.t + 1)


class PRankClassifier(OrdinalEstimator):
    """PRank ([P01] Figure 2): a direction w, and thresholds that cut w . x into ranks.

    Parameters: `epochs`, how often `fit` goes over the rows; `shuffle`, whether each time in a new random order;
    `random_state`; `order`, the labels from the lowest on, where they do not sort this way, such as ["bad", "ok",
    "good"]; not all of them need occur. After fitting: `classes_` (k,) from the lowest on, `coef_` (N,), `thresholds_`
    (k-1,), `n_features_in_`, `t_`. The scale of X matters, since thresholds move by 1: use StandardScaler. There is no
    `sample_weight`, because all steps have one size, and no `predict_proba`, because PRank gives no probabilities.
    """

    def _rule(self, n_features: int, n_ranks: int) -> Any:
        return PRank(n_features, n_ranks)

    @property
    def coef_(self) -> Array:
        """The direction w (N,)."""
        return self._state.w.copy()  # type: ignore[no-any-return]

    @property
    def thresholds_(self) -> Array:
        """The thresholds b (k-1,): the values of w . x at which the rank changes."""
        return self._state.b.copy()  # type: ignore[no-any-return]

    def _decisions(self, X: Floats) -> Array:
        return _inside(project(X, self._state.w[None], False) - self._state.b)


class AveragedPRankClassifier(OrdinalEstimator):
    """Averaged PRank: learns as PRank does, and predicts with the average of w and b over all rounds.

    Parameters and attributes as `PRankClassifier`; `coef_` and `thresholds_` are the averages.
    """

    def _rule(self, n_features: int, n_ranks: int) -> Any:
        return AveragedPRank(n_features, n_ranks)

    @property
    def coef_(self) -> Array:
        """The average direction (N,)."""
        return self._rule(self.n_features_in_, self.classes_.size).weights(self._state)  # type: ignore[no-any-return]

    @property
    def thresholds_(self) -> Array:
        """The average thresholds b (k-1,): the values of w . x at which the rank changes."""
        return self._rule(self.n_features_in_, self.classes_.size).thresholds(self._state)  # type: ignore[no-any-return]

    def _decisions(self, X: Floats) -> Array:
        s = self._state
        both = project(X, np.stack([s.w, s.drift]), False)
        # As AveragedPRank.propose: multiplied by t, exact where all is integer; only the distances are divided.
        return _inside(((s.t * both[:, 0] - both[:, 1])[:, None] - s.summed) / s.t)


class MulticlassPerceptronClassifier(OrdinalEstimatorWithIntercept):
    """Multiclass perceptron (Crammer & Singer): a direction for each label. It does not use the order of the labels.

    Parameters as `PRankClassifier`, and `fit_intercept`, whether each row gets a feature that is always 1.
    `sample_weight` multiplies the step of a row. There is no `predict_proba`, because scores are not probabilities.
    After fitting: `classes_`, `coef_` (k, N) and `intercept_` (k,) (with two labels (1, N) and (1,): those of the
    higher minus those of the lower), `n_features_in_`, `t_`.
    """

    _ordered = False

    def _rule(self, n_features: int, n_ranks: int) -> Any:
        return MulticlassPerceptron(n_features, n_ranks)

    def _weighted_learner(self, learner: Any, X: Floats, weights: Array) -> tuple[Any, Floats]:
        return learner, X * weights[:, None].astype(X.dtype)  # the prediction is the same, the step so much longer

    @property
    def _directions(self) -> Array:
        """The directions (k, N + 1), with two labels (1, N + 1); the last column is the intercept."""
        W: Array = self._state.W if self._one else np.pad(self._state.W, ((0, 0), (0, 1)))
        return W if len(W) > 2 else W[1:] - W[:1]

    @property
    def coef_(self) -> Array:
        """The directions (k, N); with two labels their difference (1, N)."""
        return self._directions[:, :-1].copy()

    @property
    def intercept_(self) -> Array:
        """The intercept of each label's score (k,); with two labels their difference (1,)."""
        return self._directions[:, -1].copy()

    def _decisions(self, X: Floats) -> Array:
        each = project(X, self._state.W, self._one)  # ties go to the lowest, as argmax has it
        return each if each.shape[1] > 2 else each[:, 1] - each[:, 0]


class WidrowHoffClassifier(OrdinalEstimatorWithIntercept):
    """Widrow-Hoff: online regression on the ranks 1 to k, rounded.

    Parameters as `PRankClassifier`; `fit_intercept`, whether each row gets a feature that is always 1; and `eta`, the
    step size. Learning is stable where eta |x|^2 < 2. "auto" is .01, or less where that is needed for eta |x|^2 <= 1 in
    all rows of `fit` or of the first `partial_fit`. `sample_weight` multiplies the step of a row. There is no
    `predict_proba`, because rounding gives no probabilities.
    After fitting: `classes_`, `coef_` (N,), `intercept_`, `thresholds_` (k-1,), `eta_`, `n_features_in_`, `t_`.
    """

    def __init__(
        self,
        *,
        eta: Any = "auto",
        fit_intercept: bool = True,
        epochs: int = 5,
        shuffle: bool = True,
        random_state: Any = None,
        order: Any = None,
        verbose: bool = False,
    ) -> None:
        super().__init__(
            fit_intercept=fit_intercept,
            epochs=epochs,
            shuffle=shuffle,
            random_state=random_state,
            order=order,
            verbose=verbose,
        )
        self.eta = eta

    def _rule(self, n_features: int, n_ranks: int) -> Any:
        return WidrowHoff(n_features, n_ranks, self.eta_)

    def _weighted_learner(self, learner: Any, X: Floats, weights: Array) -> tuple[Any, Floats]:
        return _WeightedWidrowHoff(*learner), np.hstack([X, weights[:, None].astype(X.dtype)])

    def _take(self, X: Floats, ranks: Ints, weights: Array | None, epochs: int, shuffle: bool, afresh: bool) -> None:
        if not isinstance(self.eta, str):
            self.eta_ = self.eta
        elif self.eta != "auto":
            raise ValueError(f"eta: expected 'auto' or a number above 0, got {describe(self.eta)}")
        elif afresh:
            squares = np.einsum("ij,ij->i", X, X, dtype=np.float64) + 1.0  # with the feature 1
            longest = float((squares if weights is None else squares * weights).max())
            self.eta_ = max(min(0.01, 1.0 / longest), 1e-50)
        super()._take(X, ranks, weights, epochs, shuffle, afresh)

    @property
    def coef_(self) -> Array:
        """The direction w (N,)."""
        return self._state.w[: self.n_features_in_].copy()  # type: ignore[no-any-return]

    @property
    def intercept_(self) -> float:
        """The intercept, which is added to w . x."""
        return float(self._state.w[-1]) if self._one else 0.0

    @property
    def thresholds_(self) -> Array:
        """The values of w . x + intercept at which the rank changes: 1.5, 2.5, ... (k-1,)."""
        return np.arange(1.5, self.classes_.size)

    def _decisions(self, X: Floats) -> Array:
        rounded_up = project(X, self._state.w[None], self._one) + 0.5  # as WidrowHoff.propose rounds
        return _inside(rounded_up - np.arange(2, self.classes_.size + 1))


class ConstantRankClassifier(OrdinalEstimator):
    """A baseline that predicts the median of the labels so far and ignores X.

    Parameters as `PRankClassifier`; `classes_`, `n_features_in_` and `t_` after fitting.
    """

    def _rule(self, n_features: int, n_ranks: int) -> Any:
        return ConstantRank(n_features, n_ranks)

    def _decisions(self, X: Floats) -> Array:
        k = self.classes_.size
        rule = self._rule(self.n_features_in_, k)
        shown = rule.propose(self._state, np.zeros(self.n_features_in_), np.random.default_rng(0))
        inside = 0.5 - np.abs(np.arange(1, k + 1) - shown)  # of its interval, as if the score were the rank itself
        one = inside if k > 2 else inside[1]
        return np.tile(one, (len(X), 1)) if k > 2 else np.full(len(X), one)
