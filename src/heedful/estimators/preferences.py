"""Gaussian process preference learning as a scikit-learn classifier of choices between two things."""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from heedful.core.validation import describe, finite_array, is_number, numbers
from heedful.estimators.labels import Labels, all_or_nothing, category_order, distinct
from heedful.inference.gp.ep import extend_to_items, infer_users
from heedful.inference.gp.kernels import MOST, check_amplitude, kernel_for
from heedful.inference.gp.posterior import Posterior
from heedful.inference.gp.response_noise import (
    NoisePrior,
    ResponseNoise,
    UserNoise,
    infer_with_noise,
    random_probabilities,
)
from heedful.inference.gp.sites import make_design
from heedful.jit.kernel import Ints

Array = npt.NDArray[np.float64]

NUMBERS = int, float, np.integer, np.floating
"""Types that numeric parameters may have; the values of a grid search often come from an array."""


class _Rows(NamedTuple):
    """The p choices that an estimator learns from.

    `D` (p, columns): features of the winner minus those of the loser; `times` (p,): how often each was made; `equal`
    (p,): the answer was a tie; `labels`: that of a win of the second thing, and of the first; `classes`: all labels."""

    D: Array
    times: Array
    equal: npt.NDArray[np.bool_]
    labels: Labels
    classes: Labels


class PreferenceGPClassifier(ClassifierMixin, BaseEstimator):
    """Predict which of two things a person prefers, by a Gaussian process ([H12] section 2): f ~ N(0, K), P(the first
    beats the second) = Phi(f_first - f_second).

    A row of X is the first thing minus the second. For a fixed set of items, X has a column for each, with 1 at the
    first item and -1 at the second; f are the items' utilities. For things described by features, a row is x_first -
    x_second, and f are weights of the features. Of the two labels, the higher one (as they sort, or as in an ordered
    Categorical) says that the first thing wins. There is no intercept, so the opposite row has the opposite prediction.

    Parameters:

    - `features` (columns, d): d features of each column of X; K is then an RBF kernel of these. Without, K is
      amplitude^2 I.
    - `lengthscale`: that of the kernel: "median", a number, or one for each of the d features; `amplitude`: the prior
      standard deviation of each entry of f.
    - `lapse`: the probability that an answer is random.
    - `equal`: a third label, for "equally good"; this is the answer if perceived utilities differ by less than `width`.
    - `learn_noise`: whether lapse and width are learned.

    `sample_weight` (n,) of `fit` says how often each choice was made, in whole numbers. After fitting: `classes_`;
    `coef_` (columns,), the posterior mean of f; `covariance_` (columns, columns), its posterior covariance; `noise_`
    (width, lapse, probability that all answers are random); `log_evidence_`, `n_iter_`, `n_features_in_`.
    """

    classes_: Labels
    coef_: Array
    covariance_: Array
    n_features_in_: int
    noise_: UserNoise
    _labels: Labels

    def __init__(
        self,
        *,
        features: object = None,
        lengthscale: str | npt.ArrayLike = "median",
        amplitude: float = 1.0,
        lapse: float = 0.0,
        equal: object = None,
        width: float = 0.25,
        learn_noise: bool = False,
    ) -> None:
        self.features = features
        self.lengthscale = lengthscale
        self.amplitude = amplitude
        self.lapse = lapse
        self.equal = equal
        self.width = width
        self.learn_noise = learn_noise

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags

    def fit(self, X: object, y: object, sample_weight: object = None) -> Self:
        """Learn from n choices X (n, columns), rows of the first thing minus the second, with labels y (n,), each made
        `sample_weight` (n,) times; return the estimator.

        Anything learned before is discarded. Raise ValueError, naming the argument, if one is invalid; the estimator is
        then unchanged.
        """
        categories = category_order(y)
        with all_or_nothing(self):
            checked, y = validate_data(self, X, y, dtype=np.float64)
            D = finite_array("X", checked, 2, checked.shape[1]).astype(np.float64)
            rows = self._rows(D, y, sample_weight, categories)
            K, mean = self._covariance(D.shape[1]), np.zeros(D.shape[1])
            design = make_design(rows.D, rows.times, rows.equal)
            prior = NoisePrior(width=float(self.width))
            ties = self.equal is not None
            if self.learn_noise:
                result, noise = infer_with_noise(K, mean, design, prior, ties=ties)
            else:
                noise = ResponseNoise(
                    np.array([float(self.width) if ties else 0.0]), np.array([float(self.lapse)]), np.zeros(1)
                )
                result = extend_to_items(
                    infer_users(K, mean, 1, design, width=noise.width, lapse=noise.lapse), K, mean, np.arange(mean.size)
                )
                noise = noise._replace(
                    random=random_probabilities(design.rows, np.array([result.log_evidence]), noise, prior)
                )
            self.classes_, self._labels = rows.classes, rows.labels
            self.coef_, self.covariance_ = result.posterior
            self.log_evidence_ = result.log_evidence
            self.noise_ = noise.of(0)
            self.n_iter_ = result.sites.sweeps
        return self

    def _rows(self, D: Array, y: object, sample_weight: object, categories: list[Any] | None) -> _Rows:
        """Return the choices made at least once; `categories` are all labels in order."""
        self._check_parameters()
        times = _times(sample_weight, len(D))
        counted = times > 0.0
        D, y, times = D[counted], np.asarray(y)[counted], times[counted]
        classes, _ = distinct(y)
        if categories is not None:
            classes = np.array([label for label in categories if label in classes.tolist()], classes.dtype)
        equal = np.zeros(len(y), bool) if self.equal is None else y == self.equal
        labels = classes[classes != self.equal] if equal.any() else classes
        if labels.size != 2:
            expected = f"Only binary classification is supported. y: expected labels of two classes, got {labels.size}"
            besides = "" if self.equal is None else f" besides equal={self.equal!r}"
            occurring = f"{'class' if labels.size == 1 else 'classes'}{besides}: {describe(labels.tolist())}"
            raise ValueError(f"{expected} {occurring}")
        lower, higher = labels.tolist()
        if categories is None and isinstance(lower, str) and isinstance(higher, str):
            warnings.warn(
                f"y: expected to be told which label says that the first thing won, got texts: {higher!r} says that "
                f"the first thing won, as it sorts after {lower!r}. An ordered Categorical with it last, or True "
                "and False, say so themselves",
                UserWarning,
                stacklevel=3,
            )
        first = y == labels[1]
        return _Rows(np.where((first | equal)[:, None], D, -D), times, equal, labels, classes)

    def _check_parameters(self) -> None:
        check_amplitude(self.amplitude)
        for name, value, least, most in (("lapse", self.lapse, 0.0, 0.99), ("width", self.width, 1e-6, MOST)):
            if not is_number(value, *NUMBERS) or not least <= value <= most:
                raise ValueError(f"{name}: expected a number from {least:g} to {most:g}, got {describe(value)}")
        if not isinstance(self.learn_noise, bool | np.bool_):
            raise ValueError(f"learn_noise: expected True or False, got {describe(self.learn_noise)}")

    def _covariance(self, n: int) -> Array:
        """Return the prior covariance (n x n) of the utilities of n columns of X."""
        X = np.empty((n, 0))
        if self.features is not None:
            X = numbers("features", self.features, "2-dimensional numbers")
            X = finite_array("features", X, 2, X.shape[1] if X.ndim == 2 else 0).astype(np.float64)
            if len(X) != n:
                raise ValueError(f"features: expected {n} rows, one for each column of X, got {len(X)}")
        scale = self.lengthscale.item() if isinstance(self.lengthscale, np.generic) else self.lengthscale
        return kernel_for(X, scale, float(self.amplitude)).over(X)

    def predict(self, X: object) -> Labels:
        """Return the most probable label (n,) of each of n rows X; of equally probable labels the first
        in `classes_`.
        """
        check_is_fitted(self)
        labels: Labels = self.classes_[self.predict_proba(X).argmax(axis=1)]
        return labels

    def predict_proba(self, X: object) -> Array:
        """Return for each of n rows X the probabilities of `classes_`: (n, 2), or with `equal` (n, 3).

        With two classes that is P(the second thing wins), P(the first thing wins).
        """
        from scipy.special import ndtr

        (m, v), width = self._gap(X), self.noise_.width
        s = np.sqrt(1.0 + v)
        first, second = ndtr((m - width) / s), ndtr((-m - width) / s)
        if self.classes_.size == 2:
            first = first / (first + second)  # nobody answered "equally good"
            return np.column_stack([1.0 - first, first])
        out, labels = np.empty((m.size, 3)), self._labels
        for k, label in enumerate(self.classes_):
            out[:, k] = second if label == labels[0] else first if label == labels[1] else 1.0 - first - second
        return out

    def decision_function(self, X: object) -> Array:
        """Return m / sqrt(1 + v) for each of n rows X (n,): above 0 if the first thing is more likely to win.

        m and v are mean and variance of the difference in utility. Without "equally good", Phi of it is the probability
        that the first thing wins.
        """
        m, v = self._gap(X)
        return m / np.sqrt(1.0 + v)

    def posterior(self) -> Posterior:
        """Return the posterior over the utilities (or weights) of the columns.

        It has, among others, their `mean` and `sd()`, the `ranking()` by mean, `best()` (the probability that each is
        the best), and `beats(a, b)` (the probability that a is chosen over b).
        """
        check_is_fitted(self)
        return Posterior(self.coef_, self.covariance_)

    def rank(self) -> Ints:
        """Return the indices of the columns of X (the items or features) by posterior mean (columns,), best first."""
        return self.posterior().ranking()

    def _gap(self, X: object) -> tuple[Array, Array]:
        """Return (mean, variance (n,) each, of the difference in utility of n rows X)."""
        check_is_fitted(self)
        D = finite_array("X", validate_data(self, X, reset=False, dtype=np.float64), 2, self.n_features_in_)
        v = np.einsum("pi,ij,pj->p", D, self.covariance_, D, optimize=True)
        return D @ self.coef_, np.maximum(v, 0.0)


def _times(weight: object, n: int) -> Array:
    if weight is None:
        return np.ones(n)
    times = numbers("sample_weight", np.asarray(weight), "whole numbers").astype(np.float64)
    if times.ndim == 0:
        times = np.full(n, float(times))
    if times.shape != (n,) or not ((times >= 0.0) & (times == np.round(times)) & (times <= 1e15)).all():
        raise ValueError(
            f"sample_weight: expected {n} whole numbers, how often each was chosen, got {describe(weight)}"
        )
    if not times.any():
        raise ValueError("sample_weight: expected a choice that was made at least once, got zeros alone")
    return times
