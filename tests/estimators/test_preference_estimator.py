"""Choices as a scikit-learn classifier: equal to inference over items, and what it says of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest
from scipy.special import ndtr
from sklearn.model_selection import GridSearchCV

from heedful.estimators import PreferenceGPClassifier
from heedful.inference.gp.ep import infer_rows
from heedful.inference.gp.kernels import kernel_for
from heedful.inference.gp.response_noise import infer_with_noise
from heedful.inference.pairwise import pair_rows
from one_person import infer

Array = npt.NDArray[np.float64]
FEATURES = np.random.default_rng(0).normal(size=(6, 2))


def choices(n: int = 40, tie: float = 0.0, seed: int = 1) -> tuple[Array, Array, Any]:
    """Rows, labels and the same as pairs, the winner first; item 5 is never shown. Closer than `tie` is "same"."""
    rng = np.random.default_rng(seed)
    utilities = np.array([2.0, 1.0, 0.0, -1.0, -2.0, 0.0])
    pairs = np.array([rng.choice(5, 2, replace=False) for _ in range(n)])
    gap = utilities[pairs[:, 0]] - utilities[pairs[:, 1]] + rng.normal(size=n)
    won, y = gap > 0, np.where(gap > 0, "left", "down")
    y[np.abs(gap) < tie] = "same"
    X = np.zeros((n, 6))
    X[np.arange(n), pairs[:, 0]], X[np.arange(n), pairs[:, 1]] = 1.0, -1.0
    return X, y, np.where(won[:, None], pairs, pairs[:, ::-1])


@pytest.mark.parametrize("lapse", [0.0, 0.05])
@pytest.mark.parametrize("features", [None, FEATURES])
def test_it_is_inference_over_items(features: Any, lapse: float) -> None:
    X, y, pairs = choices()
    model = PreferenceGPClassifier(features=features, amplitude=1.5, lapse=lapse).fit(X, y)
    K = 2.25 * np.eye(6) if features is None else kernel_for(features, amplitude=1.5).over(features)
    wanted = infer(K, np.zeros(6), pairs, lapse=lapse)
    np.testing.assert_allclose(model.coef_, wanted.posterior.mean, atol=1e-7)
    np.testing.assert_allclose(model.covariance_, wanted.posterior.cov, atol=1e-7)
    assert model.log_evidence_ == pytest.approx(wanted.log_evidence, abs=1e-7)
    first = X.argmax(axis=1), X.argmin(axis=1)
    np.testing.assert_allclose(model.predict_proba(X)[:, 1], wanted.posterior.beats(*first), atol=1e-7)
    np.testing.assert_array_equal(model.rank(), wanted.posterior.ranking())
    assert model.classes_.tolist() == ["down", "left"]
    assert model.posterior().sd()[5] > 1.3 * model.posterior().sd()[1:4].max() or features is not None


@pytest.mark.parametrize("equal", [None, "same"])
def test_noise_is_learned(equal: Any) -> None:
    X, y, pairs = choices(25, 0.4 if equal else 0.0)
    model = PreferenceGPClassifier(equal=equal, learn_noise=True).fit(X, y)
    wanted, noise = infer_with_noise(np.eye(6), np.zeros(6), pair_rows(pairs, None, y == "same"))
    np.testing.assert_allclose(model.coef_, wanted.posterior.mean, atol=1e-6)
    assert list(model.noise_) == pytest.approx(list(noise.of(0)), abs=1e-6)
    assert set(model.predict(X)) <= set(y)


def test_equally_good_against_inference() -> None:
    X, y, pairs = choices(20, 0.4)
    model = PreferenceGPClassifier(equal="same", width=0.4, lapse=0.02).fit(X, y)
    wanted = infer(np.eye(6), np.zeros(6), pair_rows(pairs, None, y == "same"), width=0.4, lapse=0.02)
    np.testing.assert_allclose(model.coef_, wanted.posterior.mean, atol=1e-7)
    P = model.predict_proba(np.vstack([X, -X, 0.0 * X]))
    np.testing.assert_allclose(P[:20], P[20:40][:, [1, 0, 2]], atol=1e-12)  # down, left, same
    np.testing.assert_allclose(P[40:], np.tile([ndtr(-0.4), ndtr(-0.4), 1 - 2 * ndtr(-0.4)], (20, 1)))


@pytest.mark.slow
def test_rows_with_any_differences_against_draws() -> None:
    """Weights of two features, by brute force: a million draws of them."""
    rng = np.random.default_rng(2)
    D = rng.normal(size=(6, 2))
    times = np.array([1.0, 2.0, 1.0, 1.0, 3.0, 1.0])
    got = infer_rows(np.eye(2), D, times)
    f = rng.normal(size=(1_000_000, 2))
    weight = (ndtr(f @ D.T) ** times).prod(axis=1)
    assert got.log_evidence == pytest.approx(np.log(weight.mean()), abs=0.05)
    P = (weight[:, None] * ndtr(f @ D.T)).sum(axis=0) / weight.sum()
    v = np.einsum("pi,ij,pj->p", D, got.posterior.cov, D)
    np.testing.assert_allclose(ndtr(D @ got.posterior.mean / np.sqrt(1 + v)), P, atol=0.01)


def test_turned_round_the_answer_is() -> None:
    X, y, _ = choices()
    model = PreferenceGPClassifier().fit(X, y)
    np.testing.assert_allclose(model.predict_proba(X), model.predict_proba(-X)[:, ::-1], atol=1e-14)
    turned = PreferenceGPClassifier().fit(
        np.vstack([X, -X[:5]]), np.concatenate([y, np.where(y[:5] == "left", "down", "left")])
    )
    twice = PreferenceGPClassifier().fit(np.vstack([X, X[:5]]), np.concatenate([y, y[:5]]))
    np.testing.assert_allclose(turned.coef_, twice.coef_, atol=1e-7)


def test_the_evidence_and_cross_validation_choose() -> None:
    X, y, _ = choices(200)
    search = GridSearchCV(PreferenceGPClassifier(), {"amplitude": [0.01, 1.5]}, scoring="neg_log_loss", cv=3).fit(X, y)
    assert search.best_params_ == {"amplitude": 1.5}
    evidence = [PreferenceGPClassifier(amplitude=a).fit(X, y).log_evidence_ for a in (0.01, 1.5, 100.0)]
    assert evidence[1] == max(evidence)


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"amplitude": -1.0}, "amplitude: expected"),
        ({"amplitude": 1e4}, "amplitude: expected a number above 0, at most 1000, got 10000.0"),
        ({"width": 1e4}, "width: expected a number from 1e-06 to 1000, got 10000.0"),
        ({"lapse": 1.0}, "lapse: expected a number from 0 to 0.99"),
        ({"learn_noise": "yes"}, "learn_noise: expected True or False"),
        ({"equal": "left"}, "Only binary classification is supported. y: expected labels of two classes, got 1"),
        ({"features": FEATURES[:4]}, "features: expected 6 rows, one for each column of X, got 4"),
        ({"features": "none"}, "features: expected"),
        ({"features": FEATURES, "lengthscale": [1.0]}, "lengthscale: expected 2 numbers"),
    ],
)
def test_bad_parameters_are_refused_by_name(given: dict[str, Any], named: str) -> None:
    X, y, _ = choices()
    with pytest.raises(ValueError, match=f"^{named}"):
        PreferenceGPClassifier(**given).fit(X, y)


@pytest.mark.parametrize("weight", [0.5, -1.0, np.nan, [1, 2], "many"])
def test_weights_are_whole_numbers(weight: Any) -> None:
    X, y, _ = choices(10)
    with pytest.raises(ValueError, match="sample_weight: expected"):
        PreferenceGPClassifier().fit(X, y, weight if isinstance(weight, list | str) else [weight] * 10)


@pytest.mark.parametrize(
    ("numpy", "python"),
    [
        ({"learn_noise": np.True_, "lapse": np.float32(0.0)}, {"learn_noise": True}),
        ({"amplitude": np.int64(2), "lapse": np.int64(0)}, {"amplitude": 2.0}),
        ({"width": np.int64(1), "equal": "same"}, {"width": 1.0, "equal": "same"}),
        ({"features": FEATURES, "lengthscale": np.float32(0.5)}, {"features": FEATURES, "lengthscale": 0.5}),
    ],
)
def test_parameters_may_be_as_a_grid_of_arrays_has_them(numpy: dict[str, Any], python: dict[str, Any]) -> None:
    X, y, _ = choices(20)
    y[:2] = "same" if "equal" in python else y[:2]
    got, wanted = PreferenceGPClassifier(**numpy).fit(X, y), PreferenceGPClassifier(**python).fit(X, y)
    np.testing.assert_array_equal(got.coef_, wanted.coef_)
    assert got.noise_ == wanted.noise_


def test_features_may_be_a_table_and_none_may_be_missing() -> None:
    X, y, _ = choices(20)
    wanted = PreferenceGPClassifier(features=FEATURES).fit(X, y).coef_
    table = pd.DataFrame(FEATURES, columns=["height", "width"])
    np.testing.assert_array_equal(PreferenceGPClassifier(features=table).fit(X, y).coef_, wanted)
    weighed = PreferenceGPClassifier(features=FEATURES).fit(X, y, sample_weight=pd.Series(np.ones(20)))
    np.testing.assert_array_equal(weighed.coef_, wanted)
    for missing in (np.ma.MaskedArray(FEATURES, mask=FEATURES > 1.0), table.where(FEATURES < 1.0)):
        with pytest.raises(ValueError, match="features: expected"):
            PreferenceGPClassifier(features=missing).fit(X, y)


def test_a_fit_that_is_refused_changes_nothing() -> None:
    X, y, _ = choices(20)
    model = PreferenceGPClassifier().fit(X, y)
    before, predicted = dict(vars(model)), model.predict(X)
    for wrong in ((np.hstack([X, X]), np.ones(20)), (pd.DataFrame(X, columns=list("abcdef")), np.arange(20))):
        with pytest.raises(ValueError, match=r"classes|class"):
            model.fit(*wrong)
        assert vars(model) == before
    np.testing.assert_array_equal(model.predict(X), predicted)
