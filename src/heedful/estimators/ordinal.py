"""The ordinal learners as scikit-learn classifiers of ordered labels.

An estimator holds the state of its learner (`heedful.learners.ordinal`) and updates it with each row: one
epoch without shuffling gives the same state as a `Session` of the learner with the same rows, bit for bit.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from heedful.estimators.base import OrdinalEstimator
from heedful.estimators.folding import project
from heedful.jit.kernel import Floats
from heedful.learners.ordinal.ordinal_logistic import OrdinalLogistic
from heedful.learners.ordinal.perceptrons import PRank

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


class PRankClassifier(OrdinalEstimator):
    """Classifier of k ordered labels by PRank ([P01] Figure 2): a direction w, and thresholds that cut w . x into
    ranks.

    Parameters:

    - `epochs`: how often `fit` goes over the rows; `shuffle`: whether in a new random order each time, drawn from
      `random_state`.
    - `order`: all labels, lowest first, such as ["bad", "ok", "good"]; needed if that is not how they sort. Not all
      need to occur.

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
        return _inside(project(X, self._state.w[None]) - self._state.b)


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
    ) -> None:
        super().__init__(epochs=epochs, shuffle=shuffle, random_state=random_state, order=order)
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
        return _inside(project(X, self.coef_[None]) - self.thresholds_)
