"""The estimators are their learners, bit for bit; labels, thresholds, decisions; what does not fit changes nothing."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.feature_selection import SelectFromModel
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

from heedful import Session, estimators, replay
from heedful.core.conformance import identical
from heedful.core.fold import Round
from heedful.estimators import OrdinalLogisticClassifier, PRankClassifier, base, folding, neg_rank_loss
from heedful.jit.kernel import dot
from heedful.learners.ordinal.ordinal_logistic import OrdinalLogistic
from heedful.learners.ordinal.perceptrons import PRank

FACES: dict[str, tuple[Any, Any]] = {
    "prank": (PRankClassifier(), PRank),
    "logistic": (OrdinalLogisticClassifier(), OrdinalLogistic),
}
each_face = pytest.mark.parametrize("name", FACES)


def face(name: str, **parameters: Any) -> Any:
    return clone(FACES[name][0]).set_params(**parameters)


def learner(name: str, n_features: int, n_ranks: int) -> Any:
    return FACES[name][1](n_features, n_ranks)


def stream(n: int, n_features: int, n_ranks: int, seed: int = 0) -> tuple[Any, Any]:
    """Small integers, so that scores tie with thresholds and with each other; every rank occurs."""
    rng = np.random.default_rng(seed)
    X = rng.integers(-1, 2, (n, n_features)).astype(float)
    y = np.clip((X[:, 0] + rng.integers(1, n_ranks + 1, n)).astype(int), 1, n_ranks)
    y[:n_ranks] = np.arange(1, n_ranks + 1)
    return X, y


def unchanged(estimator: Any, before: dict[str, Any]) -> bool:
    now = vars(estimator)
    return now.keys() == before.keys() and all(now[key] is before[key] for key in now)


# ---------------------------------------------------------------------------- the same fold


@each_face
@pytest.mark.parametrize(("n_features", "n_ranks"), [(1, 2), (3, 5), (9, 2), (40, 3), (200, 7)])
def test_one_epoch_without_shuffling_is_a_session(name: str, n_features: int, n_ranks: int) -> None:
    X, y = stream(90, n_features, n_ranks, seed=n_features)
    estimator = face(name, epochs=1, shuffle=False).fit(X, y)
    session = Session(learner(name, n_features, n_ranks))
    log = []
    for x, grade in zip(X, y):
        log.append(Round(x, session.propose(x), int(grade)))
        session.learn(grade)
    assert identical(estimator._state, session._state)
    assert identical(estimator._state, replay(learner(name, n_features, n_ranks), log, 0))
    assert estimator.t_ == 90
    asked = 20.0 * stream(200, n_features, n_ranks, seed=1)[0]
    asked[:20] = 0.0
    shown = [session.propose(x) for x in asked]
    assert len(set(shown)) > 1
    assert estimator.predict(asked).tolist() == shown


@pytest.mark.slow
@each_face
def test_compiled_is_interpreted_bit_for_bit(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(2)
    X, y = rng.standard_normal((400, 7)), rng.integers(1, 6, 400)
    states = []
    for patience in (0, 10**9):
        monkeypatch.setattr(folding, "PATIENCE", patience)
        monkeypatch.setattr(folding, "_waited", folding.Counter())
        states.append(face(name, epochs=3, random_state=1).fit(X, y)._state)
    assert identical(*states)
    assert states[0].t == 1200


def test_a_process_waits_so_long_before_it_compiles(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folding, "PATIENCE", 1000)
    monkeypatch.setattr(folding, "_waited", folding.Counter())
    one, other = PRank(2, 3), OrdinalLogistic(2, 3)
    asked = [(one, 60, 600), (one, 49, 10**6), (one, 60, 400), (one, 60, 60), (one, 50, 50), (other, 1000, 1000)]
    assert [folding.compiles(*each) for each in asked] == [False, False, False, True, True, False]
    assert folding.compiles(other, 500, 1)


@pytest.mark.parametrize("turn", [1, 2])
def test_a_test_does_not_count_what_others_waited_for(turn: int) -> None:
    assert not folding._waited
    folding.compiles(PRank(2, 3), 1000, 10**9)


@each_face
def test_pieces_are_the_whole(name: str) -> None:
    X, y = stream(120, 4, 3)
    whole = face(name, epochs=1, shuffle=False).fit(X, y)
    pieces = face(name)
    for lo, hi in [(0, 1), (1, 50), (50, 51), (51, 120)]:
        pieces.partial_fit(X[lo:hi], y[lo:hi], classes=[3, 1, 2])
    assert identical(pieces._state, whole._state)
    assert pieces.classes_.tolist() == [1, 2, 3]
    pieces.partial_fit(X[:5], y[:5])
    whole.partial_fit(X[:5], y[:5])
    assert identical(pieces._state, whole._state)
    assert pieces.t_ == 125


def test_epochs_go_over_the_rows_each_in_an_order_drawn_anew() -> None:
    X, y = stream(60, 4, 3)
    estimator = PRankClassifier(epochs=3, random_state=5).fit(X, y)
    session, draws = Session(PRank(4, 3)), np.random.RandomState(5)
    for _ in range(3):
        for i in draws.permutation(60):
            session.propose(X[i])
            session.learn(y[i])
    assert identical(estimator._state, session._state)
    afresh = estimator.fit(X, y)
    assert identical(afresh._state, session._state)


@each_face
def test_blocks_layout_and_kind_of_table_do_not_matter(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = stream(70, 5, 3)
    wanted = face(name, epochs=2, random_state=0).fit(X, y)
    kept = X.copy()
    kept.flags.writeable = False
    for table in (np.asfortranarray(X), kept, pd.DataFrame(X), X.astype(np.float32), X.astype(int), X.tolist()):
        got = face(name, epochs=2, random_state=0).fit(table, y)
        assert identical(got._state, wanted._state)
        assert (got.decision_function(table) == wanted.decision_function(X)).all()
    monkeypatch.setattr(folding, "BLOCK", 15)
    got = face(name, epochs=2, random_state=0).fit(X, y)
    assert identical(got._state, wanted._state)
    assert (got.decision_function(X) == wanted.decision_function(X)).all()


def test_scores_are_summed_as_the_learner_sums_them(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(4)
    monkeypatch.setattr(folding, "BLOCK", 2000)
    for n_features in (1, 7, 50, 300):
        X, W = rng.standard_normal((60, n_features)), rng.standard_normal((2, n_features))
        assert folding.project(X, W).tolist() == [[dot(x, w) for w in W] for x in X]


def test_blocks_are_writable_whatever_they_are_of() -> None:
    """Compiled code for what is read-only would be compiled again."""
    X = np.arange(12.0).reshape(4, 3)
    X.flags.writeable = False
    for order in (None, np.array([2, 0, 3])):
        [(_, piece)] = folding.blocks(X, order)
        assert piece.flags.writeable
        assert piece.flags.c_contiguous
        assert piece.tolist() == (X if order is None else X[order]).tolist()


# ---------------------------------------------------------------------------- what it shows


def test_prank_worked_by_hand() -> None:
    """b = (0, 0): x = 1 is shown 3, x = -1 then 1."""
    estimator = PRankClassifier(epochs=1, shuffle=False, order=["bad", "ok", "good"])
    estimator.fit([[1.0]], ["ok"])  # w . x = 0 = b_1 = b_2: both signs fail, +1 and -1
    assert (estimator.coef_.tolist(), estimator.thresholds_.tolist()) == ([0.0], [-1.0, 1.0])
    estimator.partial_fit([[2.0]], ["good"])  # shown "ok": b_2 is too high
    assert (estimator.coef_.tolist(), estimator.thresholds_.tolist()) == ([2.0], [-1.0, 0.0])
    assert estimator.classes_.tolist() == ["bad", "ok", "good"]
    X = [[-1.0], [-0.5], [-0.25], [0.0], [3.0]]
    assert estimator.predict(X).tolist() == ["bad", "ok", "ok", "good", "good"]
    inside = [[1.0, -1.0, -2.0], [0.0, 0.0, -1.0], [-0.5, 0.5, -0.5], [-1.0, 0.0, 0.0], [-7.0, -6.0, 6.0]]
    assert np.allclose(estimator.decision_function(X), inside, rtol=1e-15, atol=1e-300)
    assert neg_rank_loss(estimator, X, ["good", "ok", "bad", "good", "good"]) == -(2 + 0 + 1 + 0 + 0) / 5
    assert estimator.score(X, ["good", "ok", "bad", "good", "good"]) == 3 / 5


@each_face
@pytest.mark.parametrize("n_ranks", [2, 4])
def test_the_decision_is_the_greatest_where_the_learner_proposes_even_in_ties(name: str, n_ranks: int) -> None:
    X, y = stream(50, 2, n_ranks)
    estimator, rule, tied = face(name), learner(name, 2, n_ranks), 0
    asked = np.array([[a, b] for a in range(-3, 4) for b in range(-3, 4)], float)
    for x, grade in zip(X, y):
        estimator.partial_fit([x], [grade], classes=range(1, n_ranks + 1))
        decisions = estimator.decision_function(asked)
        shown = [rule.propose(estimator._state, row, None) for row in asked]
        if n_ranks == 2:
            assert decisions.shape == (49,)
            assert (1 + (decisions > 0)).tolist() == shown
            tied += (np.abs(decisions) < 1e-300).sum()
        else:
            assert decisions.shape == (49, n_ranks)
            assert (1 + decisions.argmax(axis=1)).tolist() == shown
            top = np.sort(decisions, axis=1)
            tied += (top[:, -1] - top[:, -2] < 1e-300).sum()
            assert ((decisions >= 0).sum(axis=1) == 1).all()
        assert estimator.predict(asked).tolist() == shown
    assert tied > 20 or name == "logistic"  # whose weights are no whole numbers


@pytest.mark.slow
@each_face
def test_the_attributes_say_what_is_predicted(name: str) -> None:
    rng = np.random.default_rng(3)
    X = rng.standard_normal((300, 4))
    y = np.digitize(X @ [1.0, -1.0, 0.5, 0.0], [-1.0, 0.0, 1.0])
    estimator = type(FACES[name][0])(random_state=0).fit(X, y)
    scores = X @ estimator.coef_
    assert estimator.coef_.shape == (4,)
    assert estimator.thresholds_.shape == (3,)
    assert (np.searchsorted(estimator.thresholds_, scores, side="right") == estimator.predict(X)).all()
    ends = np.concatenate([[-np.inf], estimator.thresholds_, [np.inf]])
    inside = np.minimum(scores[:, None] - ends[:-1], ends[1:] - scores[:, None])
    assert np.allclose(estimator.decision_function(X), inside, rtol=1e-9, atol=1e-9)
    assert estimator.t_ == 300 * estimator.epochs
    assert estimator.n_features_in_ == 4
    assert -neg_rank_loss(estimator, X, y) == np.abs(estimator.predict(X) - y).mean() < 0.5
    kept = estimator.coef_
    kept[:] = 0.0
    assert np.any(estimator.coef_)


# ---------------------------------------------------------------------------- labels


@pytest.mark.slow
def test_labels_in_their_sort_or_in_the_order_told() -> None:
    X = [[-2.0], [-1.0], [0.0], [0.5], [1.0], [2.0]] * 10
    texts = ["bad", "bad", "ok", "ok", "good", "good"] * 10
    ordered = PRankClassifier(random_state=0, epochs=30, order=["bad", "ok", "good"]).fit(X, texts)
    numbers = PRankClassifier(random_state=0, epochs=30).fit(X, [{"bad": 4, "ok": 5, "good": 9}[t] for t in texts])
    sorted_ = PRankClassifier(random_state=0, epochs=30).fit(X, texts)
    assert numbers.classes_.tolist() == [4, 5, 9]
    assert sorted_.classes_.tolist() == ["bad", "good", "ok"]
    assert identical(ordered._state, numbers._state)
    assert not identical(ordered._state, sorted_._state)
    assert ordered.score(X, texts) == 1.0
    assert ordered.predict(pd.DataFrame(X)).tolist() == texts
    assert neg_rank_loss(ordered, X, ["good"] * 60) == -1.0
    series = pd.Series(texts, dtype="category")
    assert identical(
        PRankClassifier(random_state=0, epochs=30, order=ordered.classes_).fit(X, series)._state, ordered._state
    )


def test_a_label_of_the_order_need_not_occur() -> None:
    estimator = PRankClassifier(order=[1, 2, 3, 4, 5]).fit([[0.0], [1.0]], [2, 2])
    assert estimator.thresholds_.shape == (4,)
    assert estimator.partial_fit([[2.0]], [5]).t_ == 11
    assert PRankClassifier(order=["low", "high"]).partial_fit([[2.0]], ["high"]).classes_.tolist() == ["low", "high"]


REFUSED: dict[str, tuple[Any, Any, dict[str, Any], str]] = {
    "NaN": ([[np.nan, 1.0]], [1], {}, "Input X contains NaN"),
    "infinity": ([[np.inf, 1.0]], [1], {}, "Input X contains infinity"),
    "size": ([[1e101, 1.0]], [1], {}, r"^X: expected numbers up to 1e\+100 in size, got 1e\+101 at \[0, 0\]$"),
    "features": ([[1.0, 1.0, 1.0]], [1], {}, "X has 3 features, but PRankClassifier is expecting 2 features"),
    "vector": ([1.0, 1.0], [1, 1], {}, "Expected 2D array, got 1D array"),
    "rows": ([[1.0, 1.0]], [1, 2], {}, "inconsistent numbers of samples"),
    "none": (np.zeros((0, 2)), [], {}, "0 sample"),
    "unknown": ([[1.0, 1.0]], [4], {}, r"^y: expected one of the classes \[1, 2, 3\], got 4$"),
    "text": ([[1.0, 1.0]], ["2"], {}, r"^y: expected one of the classes \[1, 2, 3\], got '2'$"),
    "half": (
        [[1.0, 1.0]],
        [1.5],
        {},
        "^y: expected labels of classes, grades like 3.5 .* Unknown label type: continuous$",
    ),
    "no label": ([[1.0, 1.0]], [np.nan], {}, "Input y contains NaN"),
    "classes": ([[1.0, 1.0]], [1], {"classes": [1, 2]}, r"^classes: expected the labels \[1, 2, 3\], got \[1, 2\]$"),
    "halves": ([[1.0, 1.0]], [1], {"classes": [1.5, 2]}, "^classes: expected labels of classes"),
    "mixed": ([[1.0, 1.0]], [1], {"classes": np.array([1, "a", None], object)}, "^classes: expected labels of classes"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_does_not_fit_is_refused_by_name_and_changes_nothing(case: str) -> None:
    estimator = PRankClassifier(epochs=1, shuffle=False).fit([[0.0, 1.0], [1.0, 0.0], [1.0, 1.0]], [1, 2, 3])
    before, weights = dict(vars(estimator)), estimator.coef_
    X, y, more, told = REFUSED[case]
    with pytest.raises(ValueError, match=told):
        estimator.partial_fit(X, y, **more)
    assert unchanged(estimator, before)
    assert (estimator.coef_ == weights).all()
    if case in ("NaN", "infinity", "size", "features", "vector", "none"):
        with pytest.raises(ValueError, match=told.replace("inconsistent", "")):
            estimator.decision_function(X)


@pytest.mark.parametrize(
    ("parameters", "y", "told"),
    [
        ({}, [2, 2, 2], r"^y: expected labels of two classes or more, got one class, \[2\]$"),
        ({"order": [1, 2]}, [1, 2, 3], r"^y: expected one of the classes \[1, 2\], got 3$"),
        ({"order": [1]}, [1, 1, 1], r"^order: expected two distinct labels or more, lowest first, got \[1\]$"),
        ({"order": [1, 2, 1]}, [1, 2, 1], "^order: expected two distinct labels or more"),
        ({"order": "abc"}, ["a", "b", "c"], "^order: expected two distinct labels or more"),
        ({"epochs": 0}, [1, 2, 3], "^epochs: expected a whole number, 1 or more, got 0$"),
        ({"shuffle": "no"}, [1, 2, 3], "^shuffle: expected True or False, got 'no'$"),
    ],
)
def test_a_fit_that_fails_leaves_what_was_fitted(parameters: dict[str, Any], y: Any, told: str) -> None:
    fitted = PRankClassifier(epochs=1, shuffle=False).fit([[0.0, 1.0], [1.0, 0.0]], ["a", "b"])
    for estimator in (fitted, PRankClassifier()):
        estimator.set_params(**{"epochs": 100, **parameters})
        before = dict(vars(estimator))
        with pytest.raises(ValueError, match=told):
            estimator.fit([[0.0], [10.0], [2.0]], y)
        assert unchanged(estimator, before)
    assert fitted.predict([[0.0, 1.0]]).shape == (1,)


def test_weights_that_overflow_are_refused() -> None:
    estimator = OrdinalLogisticClassifier(shuffle=False)
    with pytest.raises(ValueError, match=r"^X: expected features on a smaller scale .* weights that overflow$"):
        estimator.fit(1e99 * np.array([[1.0, -1.0], [-1.0, 1.0], [1.0, 1.0]] * 40), [1, 2, 3] * 40)
    assert not hasattr(estimator, "classes_")


def test_an_interrupted_fit_leaves_what_was_fitted(monkeypatch: pytest.MonkeyPatch) -> None:
    estimator = PRankClassifier(epochs=1, shuffle=False).fit([[0.0, 1.0], [1.0, 0.0]], [1, 2])
    before, weights, whole = dict(vars(estimator)), estimator.coef_, base.fold_rows

    def interrupted(*given: Any) -> Any:
        whole(*given)
        raise KeyboardInterrupt

    monkeypatch.setattr(base, "fold_rows", interrupted)
    with pytest.raises(KeyboardInterrupt):
        estimator.partial_fit([[5.0, 5.0]], [1])
    assert unchanged(estimator, before)
    assert (estimator.coef_ == weights).all()


def test_what_is_missing_is_said() -> None:
    with pytest.raises(ValueError, match=r"^classes: expected all labels in the first call of partial_fit"):
        PRankClassifier().partial_fit([[1.0]], [1])
    with pytest.raises(ValueError, match=r"^classes: expected labels of two classes or more, got one class, \[1\]$"):
        PRankClassifier().partial_fit([[1.0]], [1], classes=[1])
    with pytest.raises(TypeError, match="sample_weight"):
        PRankClassifier().fit([[1.0], [2.0]], [1, 2], sample_weight=[1.0, 1.0])
    for ask in (PRankClassifier().predict, PRankClassifier().decision_function):
        with pytest.raises(NotFittedError):
            ask([[1.0]])
    assert not hasattr(PRankClassifier(), "coef_")
    fitted = PRankClassifier().fit([[1.0], [2.0]], [1, 2])
    with pytest.raises(ValueError, match=r"^y: expected as many labels as X has rows, \(2,\), got \(1,\)$"):
        neg_rank_loss(fitted, [[1.0], [2.0]], [1])


# ---------------------------------------------------------------------------- in company


def saddle(n: int, seed: int) -> tuple[Any, Any]:
    """Ranks that are linear in the products of two features alone, [P01] section 5."""
    rng = np.random.default_rng(seed)
    x = rng.random((n, 2))
    value = 10.0 * (x[:, 0] - 0.5) * (x[:, 1] - 0.5) + 0.125 * rng.standard_normal(n)
    return x, 1 + np.digitize(value, [-1.0, -0.1, 0.25, 1.0])


@pytest.mark.slow
def test_in_pipelines_and_searches() -> None:
    X, y = saddle(600, 0)
    flat = make_pipeline(StandardScaler(), OrdinalLogisticClassifier(random_state=0)).fit(X, y)
    curved = make_pipeline(PolynomialFeatures(2), StandardScaler(), OrdinalLogisticClassifier(random_state=0))
    search = GridSearchCV(
        curved,
        {"polynomialfeatures__degree": [1, 2], "ordinallogisticclassifier__epochs": [5]},
        scoring=neg_rank_loss,
        cv=3,
    ).fit(X, y)
    assert search.best_params_["polynomialfeatures__degree"] == 2
    new, true = saddle(600, 1)
    losses = [np.abs(e.predict(new) - true).mean() for e in (flat, search)]
    assert losses[1] < 0.6 * losses[0]
    assert cross_val_score(clone(curved), X, y, cv=3, scoring="neg_mean_absolute_error").mean() > -0.8
    kept = SelectFromModel(OrdinalLogisticClassifier(random_state=0)).fit(np.c_[y, np.zeros(600)], y).get_support()
    assert kept.tolist() == [True, False]


def test_the_names_and_no_other() -> None:
    assert set(estimators.__all__) < set(dir(estimators))
    assert all(getattr(estimators, name).__name__ == name for name in estimators.__all__)
    with pytest.raises(AttributeError, match="PRank"):
        _ = estimators.PRank


def told_by(program: str) -> str:
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout


@pytest.mark.slow
def test_without_scikit_learn_it_says_how_to_get_it() -> None:
    program = (
        "import sys; sys.modules['sklearn'] = None\n"
        "import heedful, heedful.estimators\n"
        "try: from heedful.estimators import PRankClassifier\n"
        "except ModuleNotFoundError as error: print(error)"
    )
    told = "PRankClassifier needs scikit-learn, which is not installed: pip install '.[sklearn]'\n"
    assert told_by(program) == told


@pytest.mark.slow
def test_scikit_learn_and_numba_come_when_they_are_needed() -> None:
    program = (
        "import sys, heedful, heedful.estimators\n"
        "print('sklearn' in sys.modules)\n"
        "from heedful.estimators import PRankClassifier\n"
        "PRankClassifier().fit([[float(i)] for i in range(100)] , [i // 50 for i in range(100)])\n"
        "print('sklearn' in sys.modules, 'numba' in sys.modules)"
    )
    assert told_by(program) == "False\nTrue False\n"


@pytest.mark.parametrize(
    ("parameters", "told"),
    [
        ({"order": [0, 1, 2, float("nan")]}, "order: expected labels of classes"),
        ({"order": [0, "1", 2]}, "order: expected labels of one kind"),
        ({"order": [0, 0]}, "order: expected two distinct labels"),
        ({"shuffle": "no"}, "shuffle: expected True or False, got 'no'"),
    ],
)
def test_parameters_that_make_no_sense_are_refused_by_name(parameters: dict[str, Any], told: str) -> None:
    estimator = PRankClassifier(**parameters)
    before = dict(vars(estimator))
    with pytest.raises(ValueError, match=told):
        estimator.fit([[0.0], [1.0]], [0, 1])
    assert unchanged(estimator, before)
