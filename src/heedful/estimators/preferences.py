"""Preferences by a Gaussian process as a scikit-learn classifier of choices between two things."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from heedful.doors import describe, finite_array, is_number, numbers, wanted_positive
from heedful.estimators.labels import Labels, distinct
from heedful.kernel import Ints
from heedful.preferences.ep import infer_rows
from heedful.preferences.kernels import kernel_for
from heedful.preferences.posterior import Posterior

Array = npt.NDArray[np.float64]


class PreferenceGPClassifier(ClassifierMixin, BaseEstimator):
    """Who of two wins, [H12] section 2: f ~ N(0, K), P(the first beats the second) = Phi(the difference of f).

    A row of X is the first less the second. Of items, a column for each, 1 at the first and -1 at the second: f are
    their utilities, K = amplitude^2 I, or by `features` (columns x d) of the items, an RBF of `lengthscale` ("median",
    a number, or one for each feature). Of things described by features, x_first - x_second: f are weights. The label
    is the higher of two where the first wins; there is no intercept, so turning a row round turns its answer round.

    Parameters besides: `lapse`, the probability of an answer given at random. After fitting: `classes_`, `coef_`
    (columns,), `covariance_` (columns x columns), `log_evidence_`, `n_iter_`, `n_features_in_`; `rank()` and
    `posterior()`. `sample_weight` says how often a choice was made, in whole numbers.
    """

    classes_: Labels
    n_features_in_: int
    coef_: Array
    covariance_: Array

    def __init__(
        self, *, features: Any = None, lengthscale: Any = "median", amplitude: float = 1.0, lapse: float = 0.0
    ) -> None:
        self.features = features
        self.lengthscale = lengthscale
        self.amplitude = amplitude
        self.lapse = lapse

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn from choices X (n x columns) with labels y (n,). ValueError, naming what is wrong, where they do not
        fit."""
        wanted_positive("amplitude", self.amplitude)
        if not is_number(self.lapse, int, float) or not 0.0 <= self.lapse <= 0.99:
            raise ValueError(f"lapse: wanted a number from 0 to 0.99, got {describe(self.lapse)}")
        X, y = validate_data(self, X, y, dtype=np.float64)
        D = finite_array("X", X, 2, X.shape[1]).astype(np.float64)
        times = _times(sample_weight, len(D))
        D, y, times = D[times > 0.0], y[times > 0.0], times[times > 0.0]
        labels, at = distinct(y)
        if labels.size != 2:
            few = f"Only binary classification is supported. y: wanted labels of two classes, got {labels.size}"
            raise ValueError(f"{few} {'class' if labels.size == 1 else 'classes'}: {describe(labels.tolist())}")
        got = infer_rows(self._prior(D.shape[1]), np.where(at[:, None] == 1, D, -D), times, lapse=float(self.lapse))
        self.classes_ = labels
        self.coef_, self.covariance_ = got.posterior
        self.log_evidence_ = got.log_evidence
        self.n_iter_ = got.sites.sweeps
        return self

    def _prior(self, n: int) -> Array:
        X = np.empty((n, 0))
        if self.features is not None:
            X = numbers("features", self.features, "2-dimensional numbers")
            X = finite_array("features", X, 2, X.shape[1] if X.ndim == 2 else 0).astype(np.float64)
            if len(X) != n:
                raise ValueError(f"features: wanted {n} rows, one for each column of X, got {len(X)}")
        return kernel_for(X, self.lengthscale, float(self.amplitude)).over(X)

    def posterior(self) -> Posterior:
        """What is believed of the utilities of the columns: with `beats`, `ranking`, `best`, `sd`."""
        check_is_fitted(self)
        return Posterior(self.coef_, self.covariance_)

    def rank(self) -> Ints:
        """The columns, the best first."""
        return self.posterior().ranking()

    def decision_function(self, X: Any) -> Array:
        """m / sqrt(1 + v) of every row (n,): above 0 where the first is likelier to win; Phi of it is how likely."""
        check_is_fitted(self)
        D = finite_array("X", validate_data(self, X, reset=False, dtype=np.float64), 2, self.n_features_in_)
        v = np.einsum("pi,ij,pj->p", D, self.covariance_, D, optimize=True)
        return D @ self.coef_ / np.sqrt(1.0 + np.maximum(v, 0.0))  # type: ignore[no-any-return]

    def predict_proba(self, X: Any) -> Array:
        """P(the second wins), P(the first wins) of every row (n x 2)."""
        from scipy.special import ndtr

        first = ndtr(self.decision_function(X))
        return np.column_stack([1.0 - first, first])

    def predict(self, X: Any) -> Labels:
        """The label of every row (n,); the lower of two where neither is likelier."""
        won = self.decision_function(X) > 0.0
        return self.classes_[won.astype(np.int64)]


def _times(weight: Any, n: int) -> Array:
    if weight is None:
        return np.ones(n)
    times = numbers("sample_weight", np.asarray(weight), "whole numbers").astype(np.float64)
    if times.ndim == 0:
        times = np.full(n, float(times))
    if times.shape != (n,) or not ((times >= 0.0) & (times == np.round(times)) & (times <= 1e15)).all():
        raise ValueError(f"sample_weight: wanted {n} whole numbers, how often each was chosen, got {describe(weight)}")
    if not times.any():
        raise ValueError("sample_weight: wanted a choice that was made at least once, got zeros alone")
    return times
