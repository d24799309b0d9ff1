"""Choices of many people as a scikit-learn classifier: equal to the hierarchical fit, and what it says of somebody new
and of new things."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy.special import ndtr
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

from heedful.estimators import HierarchicalGPClassifier, PreferenceGPClassifier
from heedful.inference.gp.hierarchical import fit
from heedful.inference.gp.kernels import kernel_for
from heedful.inference.gp.response_noise import NoisePrior, infer_with_noise
from heedful.inference.pairwise import pair_rows
from one_person import infer

Array = npt.NDArray[np.float64]
FEATURES = np.random.default_rng(0).normal(size=(6, 2))
PEOPLE = np.array([3.0, 12.0, 7.5, -1.0])


def choices(each: int = 25, tie: float = 0.0, seed: int = 1) -> tuple[Array, Any, Any]:
    """Rows (person, first - second), labels, and the same as a table of people 0 to 3 by their numbers' order."""
    rng = np.random.default_rng(seed)
    m = np.array([2.0, 1.0, 0.0, -1.0, -2.0, 0.0])
    X, y, rows = [], [], []
    for t in range(each * 4):
        u = t % 4
        f = m + np.random.default_rng(u).normal(size=6)
        a, b = rng.choice(6, 2, replace=False)
        row = np.zeros(7)
        row[0], row[1 + a], row[1 + b] = PEOPLE[u], 1.0, -1.0
        gap = f[a] - f[b] + rng.normal()
        X.append(row)
        y.append("same" if abs(gap) < tie else "left" if gap > 0 else "down")
        rows.append(((a, b) if gap > 0 else (b, a), abs(gap) < tie, (1, 3, 2, 0)[u]))
    pairs, equal, user = (np.array(part) for part in zip(*rows))
    return np.array(X), np.array(y), pair_rows(pairs, None, equal, user)


@pytest.mark.parametrize("features", [None, FEATURES])
@pytest.mark.parametrize("learns", [False, True])
@pytest.mark.parametrize("tie", [0.0, 0.4])
def test_it_is_the_fit_of_a_table(features: Any, learns: bool, tie: float) -> None:
    X, y, rows = choices(tie=tie)
    equal = "same" if tie else None
    model = HierarchicalGPClassifier(features=features, equal=equal, learn_noise=learns, width=0.3).fit(X, y)
    K = np.eye(6) if features is None else kernel_for(features).over(features)
    wanted = fit(
        K, 4, rows, kappa0=1.0, width=0.3 if tie else 0.0, steps=100,
        noise=NoisePrior(width=0.3) if learns else None,
    )  # fmt: skip
    np.testing.assert_allclose(model.mean_, wanted.population.mean, atol=1e-6)
    np.testing.assert_allclose(model.covariance_, wanted.population.cov, atol=1e-6)
    assert model.log_evidence_ == pytest.approx(wanted.trace[-1], abs=1e-6)
    assert model.people_.tolist() == sorted(PEOPLE.tolist())
    np.testing.assert_allclose(model.noise_.lapse, wanted.noise.lapse, atol=1e-6)
    np.testing.assert_allclose(model.noise_.width, wanted.noise.width, atol=1e-6)
    for place, person in enumerate(sorted(PEOPLE.tolist())):
        np.testing.assert_allclose(model.posterior(person).mean, wanted.people.of(place).mean, atol=1e-6)
        np.testing.assert_array_equal(model.rank(person), wanted.people.of(place).ranking())
        own = X[X[:, 0] == person]
        first, second = own[:, 1:].argmax(axis=1), own[:, 1:].argmin(axis=1)
        P, width = model.predict_proba(own), wanted.noise.width[0]
        beats = wanted.people.of(place)
        m, v = beats.gap(first, second)
        np.testing.assert_allclose(
            P[:, list(model.classes_).index("left")], ndtr((m - width) / np.sqrt(1 + v)), atol=1e-6
        )
        np.testing.assert_allclose(P.sum(axis=1), 1.0)
    assert model.predict_proba(X).shape == (100, 3 if tie else 2)


def test_somebody_new_is_as_people_are() -> None:
    X, y, _ = choices()
    model = HierarchicalGPClassifier().fit(X, y)
    for posterior in (model.posterior(), model.posterior(99.0)):
        np.testing.assert_array_equal(posterior.mean, model.mean_)
        np.testing.assert_array_equal(posterior.cov, model.covariance_)
    new = X.copy()
    new[:, 0] = 1e6
    a, b = new[:, 1:].argmax(axis=1), new[:, 1:].argmin(axis=1)
    np.testing.assert_allclose(model.predict_proba(new)[:, 1], model.posterior().beats(a, b), atol=1e-12)
    np.testing.assert_allclose(model.predict_proba(new)[:, 0], 1.0 - model.predict_proba(new)[:, 1])


def test_new_things_by_their_features() -> None:
    X, y, _ = choices()
    model = HierarchicalGPClassifier(features=FEATURES).fit(X, y)
    got = model.posterior(3.0, new=FEATURES[[1, 4]])
    assert got.mean.size == 8
    np.testing.assert_allclose(got.mean[6:], got.mean[[1, 4]], atol=1e-6)
    assert got.beats(6, 7) == pytest.approx(got.beats(1, 4), abs=1e-6)
    assert sorted(model.rank(new=FEATURES[[1]]).tolist()) == list(range(7))
    for other, new, named in (
        (model, np.zeros((1, 3)), "new: expected"),
        (HierarchicalGPClassifier().fit(X, y), np.empty((1, 0)), "new: expected items of an estimator with `features`"),
    ):
        with pytest.raises(ValueError, match=f"^{named}"):
            other.posterior(new=new)


def test_it_searches_and_clones() -> None:
    X, y, _ = choices(40)
    search = GridSearchCV(HierarchicalGPClassifier(), {"amplitude": [0.01, 1.5]}, scoring="neg_log_loss", cv=3).fit(
        X, y
    )
    assert search.best_params_ == {"amplitude": 1.5}
    assert clone(search.best_estimator_).get_params()["kappa0"] == 1.0


def test_people_help_one_another() -> None:
    """A common model predicts the last choices of the people better than a model for each of them."""
    X, y, _ = choices(60)
    train, test = X[:40], X[120:]
    together = HierarchicalGPClassifier().fit(train, y[:40]).score(test, y[120:])
    alone = []
    for person in PEOPLE:
        own, later = train[:, 0] == person, test[:, 0] == person
        model = PreferenceGPClassifier().fit(train[own, 1:], y[:40][own])
        alone.append(model.score(test[later, 1:], y[120:][later]))
    assert together > np.mean(alone) + 0.02


@pytest.mark.parametrize("equal", [None, "same"])
def test_one_person_whose_noise_is_learned(equal: Any) -> None:
    X, y, rows = choices(60, 0.4 if equal else 0.0)
    own = X[:, 0] == 12.0
    model = PreferenceGPClassifier(equal=equal, learn_noise=True).fit(X[own, 1:], y[own])
    mine = pair_rows(rows.pairs[own], None, rows.equal[own])
    wanted, noise = infer_with_noise(np.eye(6), np.zeros(6), mine)
    np.testing.assert_allclose(model.coef_, wanted.posterior.mean, atol=1e-6)
    assert list(model.noise_) == pytest.approx(list(noise.of(0)), abs=1e-6)
    assert set(model.predict(X[own, 1:])) <= set(y)


def test_equally_good_against_inference() -> None:
    X, y, rows = choices(20, 0.4)
    own = X[:, 0] == 12.0
    model = PreferenceGPClassifier(equal="same", width=0.4, lapse=0.02).fit(X[own, 1:], y[own])
    mine = pair_rows(rows.pairs[own], None, rows.equal[own])
    wanted = infer(np.eye(6), np.zeros(6), mine, width=0.4, lapse=0.02)
    np.testing.assert_allclose(model.coef_, wanted.posterior.mean, atol=1e-7)
    P = model.predict_proba(np.vstack([X[own, 1:], -X[own, 1:], 0.0 * X[own, 1:]]))
    n = int(own.sum())
    np.testing.assert_allclose(P[:n], P[n : 2 * n][:, [1, 0, 2]], atol=1e-12)  # down, left, same
    np.testing.assert_allclose(P[2 * n :], np.tile([ndtr(-0.4), ndtr(-0.4), 1 - 2 * ndtr(-0.4)], (n, 1)))


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"amplitude": 0.0}, "amplitude: expected"),
        ({"amplitude": 1e4}, "amplitude: expected a number above 0, at most 1000, got 10000.0"),
        ({"width": 1e4}, "width: expected a number from 1e-06 to 1000, got 10000.0"),
        ({"lapse": 1.0}, "lapse: expected a number from 0 to 0.99"),
        ({"width": 0.0}, "width: expected a number from 1e-06"),
        ({"learn_noise": "yes"}, "learn_noise: expected True or False"),
        ({"nu0": -1}, "nu0: expected a number, 0 or more"),
        ({"kappa0": None}, "kappa0: expected a number, 0 or more"),
        ({"max_iter": 0}, "max_iter: expected"),
        ({"tol": 0.0}, "tol: expected"),
        ({"features": FEATURES[:4]}, "features: expected 6 rows, one for each column of X, got 4"),
        ({"equal": "left"}, "Only binary classification is supported. y: expected labels of two classes, got 1"),
    ],
)
def test_bad_parameters_are_refused_by_name(given: dict[str, Any], named: str) -> None:
    X, y, _ = choices()
    with pytest.raises(ValueError, match=f"^{named}"):
        HierarchicalGPClassifier(**given).fit(X, y)


def test_a_column_of_things_is_wanted() -> None:
    with pytest.raises(ValueError, match="X: expected a column of people and those of things"):
        HierarchicalGPClassifier().fit(np.arange(4.0)[:, None], [0, 1, 0, 1])


def test_parameters_may_be_as_numpy_has_them_and_a_fit_that_is_refused_changes_nothing() -> None:
    X, y, _ = choices(5)
    given = {"nu0": np.int64(3), "kappa0": np.float32(1), "max_iter": np.int64(3), "learn_noise": np.False_}
    model = HierarchicalGPClassifier(**given, width=np.int64(1), lapse=np.float32(0)).fit(X, y)
    wanted = HierarchicalGPClassifier(nu0=3, max_iter=3, width=1.0).fit(X, y)
    np.testing.assert_array_equal(model.mean_, wanted.mean_)
    before = dict(vars(model))
    for wrong in (np.hstack([X, X]), X[:, :1]):
        with pytest.raises(ValueError, match=r"class|column"):
            model.fit(wrong, np.ones(len(X)))
        assert vars(model) == before
    assert model.predict(X).shape == (len(X),)
