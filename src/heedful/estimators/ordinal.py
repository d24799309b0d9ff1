"""The ordinal learners as scikit-learn classifiers of ordered labels.

An estimator holds the state of its learner (`heedful.learners.ordinal`) and updates it with each row: one
epoch without shuffling gives the same state as a `Session` of the learner with the same rows, bit for bit.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from heedful.core.validation import describe
from heedful.estimators.base import OrdinalEstimator, OrdinalEstimatorWithIntercept
from heedful.estimators.folding import RankLearner, project
from heedful.jit.kernel import Floats, Ints, add_scaled, dot
from heedful.learners.ordinal.ordinal_logistic import OrdinalLogistic
from heedful.learners.ordinal.perceptrons import (
    ConstantRank,
    MulticlassPerceptron,
    PRank,
    WidrowHoff,
    WidrowHoffState,
)
from heedful.spaces.ordinal import Ranks

Array = npt.NDArray[np.float64]


def _inside(margins: Array) -> Array:
    """Return how far scores lie inside the interval of each of k ranks (n, k), from `margins` over thresholds (n, k-1).

    Distances to the upper end are one rounding smaller, so that only the interval that contains the score has one of 0
    or more. For two ranks the result is the value of the higher one (n,)."""
    if margins.shape[1] == 1:
        return np.nextafter(margins[:, 0], np.inf)
    out = np.empty((len(margins), margins.shape[1] + 1))
    below = np.nextafter(-margins, -np.inf)
    out[:, 0], out[:, -1] = below[:, 0], margins[:, -1]
    np.minimum(margins[:, :-1], below[:, 1:], out=out[:, 1:-1])
    return out


class _WeightedWidrowHoff(NamedTuple):
    """Widrow-Hoff for weighted rows: the last number of a row multiplies the size of its step. Interaction: ordinal."""

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
        return 1  # the proposal is not used

    def update(self, state: WidrowHoffState, x: Floats, y: int, feedback: int) -> WidrowHoffState:
        row = x[:-1]
        add_scaled(state.w, row, x[-1] * self.eta * (feedback - dot(row, state.w)))
        return WidrowHoffState(state.w, state.t + 1)


class PRankClassifier(OrdinalEstimator):
    """Classifier of k ordered labels by PRank ([P01] Figure 2): a direction w, and thresholds that cut w . x into
    ranks.

    Parameters:

    - `epochs`: how often `fit` goes over the rows; `shuffle`: whether in a new random order each time, drawn from
      `random_state`.
    - `order`: all labels, lowest first, such as ["bad", "ok", "good"]; needed if that is not how they sort. Not all
      need to occur.
    - `verbose`: whether to report compilation on stderr.

    After fitting to rows of N features: `classes_` (k,), lowest first; `coef_` (N,), the direction w; `thresholds_`
    (k-1,); `n_features_in_`; `t_`, the number of rows learned from. The scale of X matters, since thresholds move by 1:
    use StandardScaler. There is no `sample_weight`, because all steps have one size, and no `predict_proba`, because
    PRank gives no probabilities.
    """

    def _rule(self, n_features: int, n_ranks: int) -> PRank:
        return PRank(n_features, n_ranks)

    @property
    def coef_(self) -> Array:
        """Direction w (N,), as a copy: a weight for each of N features."""
        return self._state.w.copy()  # type: ignore[no-any-return]

    @property
    def thresholds_(self) -> Array:
        """Thresholds b (k-1,), as a copy: the values of w . x at which the predicted rank changes, for k labels."""
        return self._state.b.copy()  # type: ignore[no-any-return]

    def _decisions(self, X: Floats) -> Array:
        return _inside(project(X, self._state.w[None], False) - self._state.b)


class OrdinalLogisticClassifier(OrdinalEstimator):
    """Classifier of ordered labels by ordinal logistic regression ("all thresholds"), one row after the other: a
    direction w, and thresholds that cut w . x into ranks.

    - `prior`: the prior variance of w for standardised features, times their number
    - `epochs`: every pass counts the rows once more, as if there were as many again; one is enough

    Other parameters and attributes are those of `PRankClassifier`. There is no `predict_proba`.
    """

    def __init__(
        self,
        *,
        prior: float = 4.0,
        epochs: int = 1,
        shuffle: bool = True,
        random_state: object = None,
        order: object = None,
        verbose: bool = False,
    ) -> None:
        super().__init__(epochs=epochs, shuffle=shuffle, random_state=random_state, order=order, verbose=verbose)
        self.prior = prior

    def _rule(self, n_features: int, n_ranks: int) -> OrdinalLogistic:
        return OrdinalLogistic(n_features, n_ranks, self.prior)

    @property
    def coef_(self) -> Array:
        """Direction w (N,), as a copy: a weight for each of N features."""
        return self._rule(self.n_features_in_, self.classes_.size).weights(self._state).copy()

    @property
    def thresholds_(self) -> Array:
        """Thresholds (k-1,): the values of w . x at which the predicted rank changes, for k labels."""
        return self._rule(self.n_features_in_, self.classes_.size).thresholds(self._state)

    def _decisions(self, X: Floats) -> Array:
        return _inside(project(X, self.coef_[None], False) - self.thresholds_)


class MulticlassPerceptronClassifier(OrdinalEstimatorWithIntercept):
    """Classifier with a direction for each of k labels (Crammer & Singer's perceptron). It ignores the order of the
    labels.

    Parameters are those of `PRankClassifier`, and `fit_intercept`, whether each row gets a feature that is always 1.
    `sample_weight` multiplies the step of a row. There is no `predict_proba`, because scores are not probabilities.
    After fitting to rows of N features: `classes_` (k,), `coef_` (k, N), `intercept_` (k,), `n_features_in_`, `t_`
    (number of rows learned from). With two labels, `coef_` is (1, N) and `intercept_` (1,): those of the higher label
    minus those of the lower.
    """

    _ordered = False

    def _rule(self, n_features: int, n_ranks: int) -> MulticlassPerceptron:
        return MulticlassPerceptron(n_features, n_ranks)

    def _weighted_learner(self, learner: Any, X: Floats, weights: Array) -> tuple[RankLearner, Floats]:
        return learner, X * weights[:, None].astype(X.dtype)  # the same prediction, the step times the weight

    @property
    def _directions(self) -> Array:
        """The direction of each of k labels, then its intercept (k, N + 1); with two labels their difference (1, N +
        1)."""
        W: Array = self._state.W if self._one else np.pad(self._state.W, ((0, 0), (0, 1)))
        return W if len(W) > 2 else W[1:] - W[:1]

    @property
    def coef_(self) -> Array:
        """Directions of k labels over N features (k, N), as a copy; with two labels the higher one's minus the lower
        one's (1, N).
        """
        return self._directions[:, :-1].copy()

    @property
    def intercept_(self) -> Array:
        """Intercepts of the scores of k labels (k,), as a copy; with two labels the higher one's minus the lower one's
        (1,).
        """
        return self._directions[:, -1].copy()

    def _decisions(self, X: Floats) -> Array:
        scores = project(X, self._state.W, self._one)  # ties go to the lowest label, as in argmax
        return scores if scores.shape[1] > 2 else scores[:, 1] - scores[:, 0]


class WidrowHoffClassifier(OrdinalEstimatorWithIntercept):
    """Classifier of k ordered labels by online linear regression (Widrow-Hoff) on the ranks 1 to k, rounded.

    Parameters are those of `PRankClassifier`; `fit_intercept`, whether each row gets a feature that is always 1; and
    `eta`, the step size. Learning is stable if eta |x|^2 < 2. "auto" is .01, or less if that is needed for eta |x|^2 <=
    1 in all rows of `fit` or of the first `partial_fit`. `sample_weight` multiplies the step of a row. There is no
    `predict_proba`, because rounding gives no probabilities. After fitting to rows of N features: `classes_` (k,),
    `coef_` (N,), `intercept_`, `thresholds_` (k-1,), `eta_`, `n_features_in_`, `t_` (number of rows learned from).
    """

    def __init__(
        self,
        *,
        eta: Any = "auto",
        fit_intercept: bool = True,
        epochs: int = 5,
        shuffle: bool = True,
        random_state: object = None,
        order: object = None,
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

    def _rule(self, n_features: int, n_ranks: int) -> WidrowHoff:
        return WidrowHoff(n_features, n_ranks, self.eta_)

    def _weighted_learner(self, learner: Any, X: Floats, weights: Array) -> tuple[RankLearner, Floats]:
        return _WeightedWidrowHoff(*learner), np.hstack([X, weights[:, None].astype(X.dtype)])

    def _take(self, X: Floats, ranks: Ints, weights: Array | None, epochs: int, shuffle: bool, afresh: bool) -> None:
        if not isinstance(self.eta, str):
            self.eta_ = self.eta
        elif self.eta != "auto":
            raise ValueError(f"eta: expected 'auto' or a number above 0, got {describe(self.eta)}")
        elif afresh:
            squares = np.einsum("ij,ij->i", X, X, dtype=np.float64) + 1.0  # includes the feature 1
            longest = float((squares if weights is None else squares * weights).max())
            self.eta_ = max(min(0.01, 1.0 / longest), 1e-50)
        super()._take(X, ranks, weights, epochs, shuffle, afresh)

    @property
    def coef_(self) -> Array:
        """Direction w (N,), as a copy: a weight for each of N features."""
        return self._state.w[: self.n_features_in_].copy()  # type: ignore[no-any-return]

    @property
    def intercept_(self) -> float:
        """Intercept that is added to w . x; 0 without `fit_intercept`."""
        return float(self._state.w[-1]) if self._one else 0.0

    @property
    def thresholds_(self) -> Array:
        """Values of w . x + intercept at which the predicted rank changes, for k labels: 1.5, 2.5, ... (k-1,)."""
        return np.arange(1.5, self.classes_.size)

    def _decisions(self, X: Floats) -> Array:
        rounded_up = project(X, self._state.w[None], self._one) + 0.5  # as WidrowHoff.propose rounds
        return _inside(rounded_up - np.arange(2, self.classes_.size + 1))


class ConstantRankClassifier(OrdinalEstimator):
    """Baseline that ignores X and predicts the median of the labels so far.

    Parameters are those of `PRankClassifier`; attributes after fitting are `classes_`, `n_features_in_` and `t_`. There
    is no `predict_proba`.
    """

    def _rule(self, n_features: int, n_ranks: int) -> ConstantRank:
        return ConstantRank(n_features, n_ranks)

    def _decisions(self, X: Floats) -> Array:
        k = self.classes_.size
        rule = self._rule(self.n_features_in_, k)
        shown = rule.propose(self._state, np.zeros(self.n_features_in_), np.random.default_rng(0))
        inside = 0.5 - np.abs(np.arange(1, k + 1) - shown)  # distances as if the score were the rank itself
        one = inside if k > 2 else inside[1]
        return np.tile(one, (len(X), 1)) if k > 2 else np.full(len(X), one)
