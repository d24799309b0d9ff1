"""Gaussian process preference learning as scikit-learn classifiers of choices between two things: for one person, and
for many people jointly.

The file is long because scikit-learn wants every parameter and method in each class.
"""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from heedful.core.validation import check_count, check_positive, describe, finite_array, is_number, numbers
from heedful.estimators.labels import Labels, all_or_nothing, category_order, distinct
from heedful.inference.gp.ep import extend_to_items, infer_users
from heedful.inference.gp.hierarchical import Population, add_items, fit
from heedful.inference.gp.kernels import MOST, Kernel, check_amplitude, kernel_for
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


class _Choices(ClassifierMixin, BaseEstimator, ABC):
    """Base class of the two classifiers of choices between two things; they infer utilities f by a Gaussian process."""

    classes_: Labels
    n_features_in_: int
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

    def _rows(
        self, D: Array, y: object, sample_weight: object, categories: list[Any] | None
    ) -> tuple[_Rows, npt.NDArray[np.bool_]]:
        """Return (the choices made at least once, a mask (n,) of their rows); `categories` are all labels in order."""
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
        return _Rows(np.where((first | equal)[:, None], D, -D), times, equal, labels, classes), counted

    def _check_parameters(self) -> None:
        check_amplitude(self.amplitude)
        for name, value, least, most in (("lapse", self.lapse, 0.0, 0.99), ("width", self.width, 1e-6, MOST)):
            if not is_number(value, *NUMBERS) or not least <= value <= most:
                raise ValueError(f"{name}: expected a number from {least:g} to {most:g}, got {describe(value)}")
        if not isinstance(self.learn_noise, bool | np.bool_):
            raise ValueError(f"learn_noise: expected True or False, got {describe(self.learn_noise)}")

    def _kernel(self, n: int) -> tuple[Kernel, Array]:
        """Return (kernel of the utilities of n columns of X, their features (n, d)); d = 0 without features."""
        X = np.empty((n, 0))
        if self.features is not None:
            X = numbers("features", self.features, "2-dimensional numbers")
            X = finite_array("features", X, 2, X.shape[1] if X.ndim == 2 else 0).astype(np.float64)
            if len(X) != n:
                raise ValueError(f"features: expected {n} rows, one for each column of X, got {len(X)}")
        scale = self.lengthscale.item() if isinstance(self.lengthscale, np.generic) else self.lengthscale
        return kernel_for(X, scale, float(self.amplitude)), X

    def _proba(self, m: Array, v: Array, width: float) -> Array:
        """Return the probability of each class (n, classes), for differences of mean `m` and variance `v` (n,)."""
        from scipy.special import ndtr

        s = np.sqrt(1.0 + v)
        first, second = ndtr((m - width) / s), ndtr((-m - width) / s)
        if self.classes_.size == 2:
            first = first / (first + second)  # nobody answered "equally good"
            return np.column_stack([1.0 - first, first])
        out, labels = np.empty((m.size, 3)), self._labels
        for k, label in enumerate(self.classes_):
            out[:, k] = second if label == labels[0] else first if label == labels[1] else 1.0 - first - second
        return out

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
        m, v, width = self._gap(X)
        return self._proba(m, v, width)

    def decision_function(self, X: object) -> Array:
        """Return m / sqrt(1 + v) for each of n rows X (n,): above 0 if the first thing is more likely to win.

        m and v are mean and variance of the difference in utility. Without "equally good", Phi of it is the probability
        that the first thing wins.
        """
        m, v, _ = self._gap(X)
        return m / np.sqrt(1.0 + v)

    @abstractmethod
    def _gap(self, X: object) -> tuple[Array, Array, float]:
        """Return (mean, variance (n,) each, of the difference in utility of n rows X; the width of ties)."""


class PreferenceGPClassifier(_Choices):
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

    coef_: Array
    covariance_: Array
    noise_: UserNoise

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
            rows, _ = self._rows(D, y, sample_weight, categories)
            kernel, features = self._kernel(D.shape[1])
            K, mean = kernel.over(features), np.zeros(D.shape[1])
            design = make_design(rows.D, rows.times, np.zeros(len(rows.D), np.int64), 1, rows.equal)
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

    def _gap(self, X: object) -> tuple[Array, Array, float]:
        check_is_fitted(self)
        D = finite_array("X", validate_data(self, X, reset=False, dtype=np.float64), 2, self.n_features_in_)
        v = np.einsum("pi,ij,pj->p", D, self.covariance_, D, optimize=True)
        return D @ self.coef_, np.maximum(v, 0.0), self.noise_.width


class HierarchicalGPClassifier(_Choices):
    """Predict which of two things each of many people prefers: f_u ~ N(m, S), with m and S learned from all people.

    The first column of X is a number that identifies the person; the others are the first thing minus the second, as in
    `PreferenceGPClassifier`, which also explains the labels, `features`, `lengthscale`, `amplitude`, `lapse`, `equal`
    and `width`. `learn_noise` learns the lapse rate of each person and one width for all. m and S are estimated by EM,
    at most `max_iter` steps, to the tolerance `tol`. The prior of S is inverse-Wishart around the K of `features` and
    counts as `nu0` people (None: as many as there are columns of things); that of m counts as `kappa0` people who are
    indifferent between all things. A person who was not in the training data has the population's N(m, S).

    After fitting: `people_` (their numbers, rising), `mean_` and `covariance_` (m, S), `noise_` (of each person: width,
    lapse, probability that all answers are random), `log_evidence_`, `n_iter_`, `classes_`, `n_features_in_`;
    `posterior(person)` and `rank(person)`, also for new items by their features.
    """

    people_: Array
    mean_: Array
    covariance_: Array
    noise_: ResponseNoise

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
        nu0: float | None = None,
        kappa0: float = 1.0,
        max_iter: int = 100,
        tol: float = 1e-2,
    ) -> None:
        super().__init__(
            features=features, lengthscale=lengthscale, amplitude=amplitude,
            lapse=lapse, equal=equal, width=width, learn_noise=learn_noise,
        )  # fmt: skip
        self.nu0 = nu0
        self.kappa0 = kappa0
        self.max_iter = max_iter
        self.tol = tol

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True  # the checks' first column is a feature, not the number of a person
        return tags

    def fit(self, X: object, y: object, sample_weight: object = None) -> Self:
        """Learn from n choices X (n, 1 + columns) with labels y (n,), each made `sample_weight` (n,) times; return the
        estimator.

        A row of X is a number for the person, then the first thing minus the second. Anything learned before is
        discarded. Raise ValueError, naming the argument, if one is invalid; the estimator is then unchanged.
        """
        self._check_population()
        categories = category_order(y)
        with all_or_nothing(self):
            checked, y = validate_data(self, X, y, dtype=np.float64)
            D = finite_array("X", checked, 2, checked.shape[1]).astype(np.float64)
            n = D.shape[1] - 1
            if n < 1:
                raise ValueError("X: expected a column of people and those of things, got 1 feature(s)")
            rows, counted = self._rows(D[:, 1:], y, sample_weight, categories)
            people, user = np.unique(D[counted, 0], return_inverse=True)
            order = np.argsort(user, kind="stable")
            design = make_design(rows.D[order], rows.times[order], user[order], people.size, rows.equal[order])
            kernel, features = self._kernel(n)
            result = fit(
                kernel.over(features), people.size, design, nu0=self.nu0, kappa0=float(self.kappa0),
                width=float(self.width) if self.equal is not None else 0.0, lapse=float(self.lapse),
                noise=NoisePrior(width=float(self.width)) if self.learn_noise else None,
                steps=self.max_iter, tolerance=float(self.tol),
            )  # fmt: skip
            self.people_, self._kernel_, self._features = people, kernel, features
            self.classes_, self._labels = rows.classes, rows.labels
            self.mean_, self.covariance_ = result.population
            self._means, self._covs = result.people.mean, result.people.cov
            self.noise_ = result.noise._replace(
                random=random_probabilities(
                    design.rows, result.people.log_evidence, result.noise, NoisePrior(width=float(self.width))
                )
            )
            self.log_evidence_ = float(result.trace[-1])
            self.n_iter_ = result.trace.size - 1
        return self

    def _check_population(self) -> None:
        for name, value in (("nu0", 0.0 if self.nu0 is None else self.nu0), ("kappa0", self.kappa0)):
            if not is_number(value, *NUMBERS) or not 0.0 <= float(value) <= 1e50:
                raise ValueError(f"{name}: expected a number, 0 or more, got {describe(value)}")
        check_count("max_iter", self.max_iter)
        check_positive("tol", self.tol)

    def posterior(self, person: float | None = None, new: object = None) -> Posterior:
        """Return the Gaussian posterior over a person's utilities of the columns of X (items or features); for None or
        an unknown person, that of the population.

        `person`: the number of the person. `new` (q, d): d features of q new items, which are appended after the
        columns. Raise ValueError if `new` is given and does not fit `features`, or the estimator has no `features`.
        """
        check_is_fitted(self)
        index = -1 if person is None else self._of(np.array([person], np.float64))[0]
        posterior = (
            Posterior(self.mean_, self.covariance_) if index < 0 else Posterior(self._means[index], self._covs[index])
        )
        if new is None:
            return posterior
        more = numbers("new", new, "2-dimensional numbers")
        Z = finite_array("new", more, 2, self._features.shape[1]).astype(np.float64)
        if not Z.shape[1]:
            raise ValueError("new: expected items of an estimator with `features`, got one without")
        X, kernel = self._features, self._kernel_
        return Posterior(*add_items(Population(*posterior), kernel.over(X), kernel.between(X, Z), kernel.over(Z)))

    def rank(self, person: float | None = None, new: object = None) -> Ints:
        """Return the indices of the columns of X (items or features) by a person's posterior mean, best first; new
        items have the next indices.

        `person`: the number of the person, None for the population; `new` (q, d): d features of q new items. Raise
        ValueError if `new` is given and does not fit `features`, or the estimator has no `features`.
        """
        return self.posterior(person, new).ranking()

    def _of(self, people: Array) -> Ints:
        """Return for each of `people` (n,), by number, the index in `people_` (n,); -1 if unknown."""
        index = np.minimum(np.searchsorted(self.people_, people), self.people_.size - 1)
        return np.where(self.people_[index] == people, index, -1)

    def _gap(self, X: object) -> tuple[Array, Array, float]:
        check_is_fitted(self)
        checked = finite_array("X", validate_data(self, X, reset=False, dtype=np.float64), 2, self.n_features_in_)
        person_of_row, D = self._of(checked[:, 0].astype(np.float64)), checked[:, 1:]
        m, v = np.empty(len(D)), np.empty(len(D))
        for person in np.unique(person_of_row).tolist():
            rows = person_of_row == person
            mean, cov = (self.mean_, self.covariance_) if person < 0 else (self._means[person], self._covs[person])
            m[rows], v[rows] = D[rows] @ mean, np.vecdot(D[rows] @ cov, D[rows])
        return m, np.maximum(v, 0.0), float(self.noise_.width[0])


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
