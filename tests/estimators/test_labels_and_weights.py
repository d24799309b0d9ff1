"""Labels that say their order themselves, rows that count for more, a score by ranks, and what compiling says."""

from __future__ import annotations

import importlib.util
import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.dummy import DummyClassifier
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.validation import has_fit_parameter

import heedful.jit.cache
from heedful.core.fold import run
from heedful.estimators import (
    ConstantRankClassifier,
    HierarchicalGPClassifier,
    MulticlassPerceptronClassifier,
    OrdinalLogisticClassifier,
    PRankClassifier,
    PreferenceGPClassifier,
    WidrowHoffClassifier,
    folding,
    neg_rank_loss,
)

SCALE = ["bad", "fair", "good", "excellent"]  # sorted otherwise
RNG = np.random.default_rng(5)
X = RNG.standard_normal((300, 3))
RANKS = np.digitize(X @ [1.0, -1.0, 0.5], [-1.0, 0.0, 1.0])
Y = pd.Categorical(np.array(SCALE)[RANKS], categories=SCALE, ordered=True)


class Enum:
    """The type of a column of polars whose values are some texts in their order, as it is where polars is missing."""

    def __init__(self, categories: list[str]) -> None:
        self.categories = categories


class Column:
    def __init__(self, values: Any, dtype: Any) -> None:
        self.values, self.dtype, self.shape = np.asarray(values), dtype, (len(values),)

    def __len__(self) -> int:
        return len(self.values)

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        return np.array(self.values, dtype)


def enum(values: Any) -> Any:
    if importlib.util.find_spec("polars") is None:
        return Column(values, Enum(SCALE))
    polars = importlib.import_module("polars")
    return polars.Series(np.asarray(values).tolist(), dtype=polars.Enum(SCALE))


# ---------------------------------------------------------------------------- an order of its own


@pytest.mark.slow
@pytest.mark.parametrize("y", [Y, pd.Series(Y), enum(Y)], ids=["categorical", "series", "enum"])
def test_an_ordered_column_keeps_its_order(y: Any) -> None:
    """It learns what `order` would have it learn, and so does better than a constant; sorted labels do not."""
    told = OrdinalLogisticClassifier(random_state=0).fit(X, y)
    order = OrdinalLogisticClassifier(random_state=0, order=SCALE).fit(X, np.asarray(Y))
    assert told.classes_.tolist() == SCALE
    assert (told.coef_ == order.coef_).all()
    assert (told.thresholds_ == order.thresholds_).all()
    constant = ConstantRankClassifier().fit(X, y).rank_loss(X, y)
    assert told.rank_loss(X, y) < 0.2 < constant
    sorted_ = OrdinalLogisticClassifier(random_state=0).fit(X, np.asarray(Y))
    assert sorted_.classes_.tolist() == sorted(SCALE)


def test_a_column_without_an_order_is_sorted_and_order_goes_before_all() -> None:
    unordered = pd.Categorical(np.asarray(Y), categories=SCALE)
    assert PRankClassifier().fit(X, unordered).classes_.tolist() == sorted(SCALE)
    backwards = SCALE[::-1]
    assert PRankClassifier(order=backwards).fit(X, Y).classes_.tolist() == backwards


def test_a_category_that_does_not_occur_is_a_rank_all_the_same() -> None:
    few = Y[RANKS < 3]
    assert PRankClassifier().fit(X[RANKS < 3], few).classes_.tolist() == SCALE


def test_a_column_names_all_labels_of_the_first_partial_fit() -> None:
    pieces = PRankClassifier().partial_fit(X[:10], Y[:10]).partial_fit(X[10:], Y[10:])
    whole = PRankClassifier(epochs=1, shuffle=False).fit(X, Y)
    assert (pieces.coef_ == whole.coef_).all()
    other = pd.Categorical(np.asarray(Y), categories=SCALE[::-1], ordered=True)
    with pytest.raises(ValueError, match=r"y: expected categories in the order \['bad', .*, got \['excellent', "):
        pieces.partial_fit(X, other)
    assert pieces.t_ == 300


def test_who_won_is_the_higher_of_an_ordered_column() -> None:
    """ "win" is sorted behind "loss", and told to be below it: then the other way round."""
    D, y = np.array([[1.0, -1.0], [1.0, -1.0], [-1.0, 1.0]]), np.array(["win", "win", "loss"])
    told = pd.Categorical(y, categories=["win", "loss"], ordered=True)
    plain, turned = PreferenceGPClassifier().fit(D, y), PreferenceGPClassifier().fit(D, told)
    assert turned.classes_.tolist() == ["win", "loss"]
    assert (turned.coef_ == -plain.coef_).all()
    assert plain.coef_[0] > 0.0
    assert (plain.predict(D) == turned.predict(D)).all()


# ---------------------------------------------------------------------------- rows that count for more


def perceptron(weights: np.ndarray) -> np.ndarray:
    """Crammer & Singer's multiclass perceptron with a feature 1, steps as long as the weights."""
    W = np.zeros((4, 4))
    for x, y, s in zip(np.column_stack([X, np.ones(300)]), RANKS, weights):
        shown = int((W @ x).argmax())
        if shown != y:
            W[y] += s * x
            W[shown] -= s * x
    return W


def widrow_hoff(weights: np.ndarray, eta: float) -> np.ndarray:
    """w += eta s (y - w . x) x, ranks from 1."""
    w = np.zeros(4)
    for x, y, s in zip(np.column_stack([X, np.ones(300)]), RANKS + 1, weights):
        w = w + s * eta * (y - w @ x) * x
    return w


@pytest.mark.slow
@pytest.mark.parametrize("patience", [10**9, 0], ids=["interpreted", "compiled"])
def test_a_weight_is_how_long_the_step_is(patience: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folding, "PATIENCE", patience)
    weights = RNG.integers(0, 5, 300) / 2.0
    got = MulticlassPerceptronClassifier(epochs=1, shuffle=False).fit(X, RANKS, weights)
    W = perceptron(weights)
    assert got.coef_ == pytest.approx(W[:, :3], abs=1e-12)
    assert got.intercept_ == pytest.approx(W[:, 3], abs=1e-12)
    online = WidrowHoffClassifier(eta=0.05, epochs=1, shuffle=False).fit(X, RANKS, sample_weight=weights)
    w = widrow_hoff(weights, 0.05)
    assert [*online.coef_, online.intercept_] == pytest.approx(w.tolist(), abs=1e-12)
    pieces = WidrowHoffClassifier(eta=0.05)
    for rows in (slice(0, 100), slice(100, 300)):
        pieces.partial_fit(X[rows], RANKS[rows], classes=range(4), sample_weight=weights[rows])
    assert (pieces.coef_ == online.coef_).all()


@pytest.mark.parametrize("kind", [MulticlassPerceptronClassifier, WidrowHoffClassifier])
def test_weights_of_one_change_nothing_and_of_zero_leave_rows_out(kind: Any) -> None:
    plain = kind(random_state=0).fit(X, RANKS)
    for ones in (np.ones(300), 1.0):
        assert (kind(random_state=0).fit(X, RANKS, sample_weight=ones).coef_ == plain.coef_).all()
    some = RNG.integers(0, 2, 300)
    some[[RANKS.tolist().index(r) for r in range(4)]] = 1
    left = kind(random_state=0).fit(X, RANKS, sample_weight=some)
    want = kind(random_state=0).fit(X[some > 0], RANKS[some > 0])
    assert (left.coef_ == want.coef_).all()
    assert left.t_ == want.t_


@pytest.mark.parametrize(
    "weights", [[1.0], [-1.0] * 300, [float("nan")] * 300, [0.0] * 300, ["a"] * 300, np.ones((300, 1))]
)
def test_weights_that_are_none_are_refused(weights: Any) -> None:
    estimator = MulticlassPerceptronClassifier()
    with pytest.raises(ValueError, match=r"sample_weight: expected (300 numbers, 0 or more|a weight above 0), got"):
        estimator.fit(X, RANKS, weights)
    assert not hasattr(estimator, "classes_")


@pytest.mark.parametrize("kind", [PRankClassifier, OrdinalLogisticClassifier, ConstantRankClassifier])
def test_steps_of_one_size_take_no_weights(kind: Any) -> None:
    assert not has_fit_parameter(kind(), "sample_weight")
    told = rf"^{kind.__name__}\.{{}}: expected X and y.*, got sample_weight: .* a row that counts twice is given twice$"
    with pytest.raises(TypeError, match=told.format("fit")):
        kind().fit(X, RANKS, sample_weight=np.ones(300))
    with pytest.raises(TypeError, match=told.format("partial_fit")):
        kind().partial_fit(X, RANKS, classes=range(4), sample_weight=np.ones(300))
    with pytest.raises(TypeError, match=r"^PRankClassifier\.fit: expected X and y, got groups$"):
        PRankClassifier().fit(X, RANKS, groups=np.ones(300))


# ---------------------------------------------------------------------------- what comes out, what is told


@pytest.mark.parametrize("kind", [PRankClassifier, MulticlassPerceptronClassifier, WidrowHoffClassifier])
def test_there_are_no_probabilities_where_none_are_meant_and_it_is_said(kind: Any) -> None:
    assert not hasattr(kind().fit(X, RANKS), "predict_proba")
    assert "no `predict_proba`" in " ".join(kind.__doc__.lower().split())


@pytest.mark.slow
def test_searches_by_the_rank_loss_of_texts() -> None:
    chain = make_pipeline(StandardScaler(), OrdinalLogisticClassifier(order=SCALE, random_state=0))
    texts = np.asarray(Y)
    found = cross_val_score(chain, X, texts, scoring=neg_rank_loss, cv=3)
    assert (found > -0.3).all()
    fitted = chain.fit(X, texts)
    assert neg_rank_loss(fitted, X, texts) == -fitted[-1].rank_loss(fitted[:-1].transform(X), texts)
    search = GridSearchCV(chain, {"ordinallogisticclassifier__epochs": [1, 5]}, scoring=neg_rank_loss, cv=2)
    assert search.fit(X, texts).best_score_ > -0.3
    with pytest.raises(ValueError, match="y: expected one of the classes"):
        neg_rank_loss(fitted, X[:1], ["awful"])


@pytest.mark.parametrize("looked_at", [True, False])
@pytest.mark.parametrize("verbose", [True, False])
def test_compiling_is_told_where_somebody_waits(
    verbose: bool, looked_at: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(folding, "PATIENCE", 0)
    monkeypatch.setattr(folding, "is_interactive", lambda: looked_at)
    kept = iter([False, *[True] * 100])
    monkeypatch.setattr(heedful.jit.cache, "is_cached", lambda *_: next(kept))
    monkeypatch.setattr(heedful.jit.cache, "loop_for", lambda *_: run)
    PRankClassifier(verbose=verbose).fit(X, RANKS)
    got = capsys.readouterr()
    assert got.out == ""
    assert got.err == ("heedful: compiling PRank (first time only)\n" if verbose or looked_at else "")


def test_a_prompt_a_notebook_and_a_terminal_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stderr", None)
    assert not folding.is_interactive()
    monkeypatch.setattr("sys.ps1", ">>> ", raising=False)
    assert folding.is_interactive()
    monkeypatch.delattr("sys.ps1")
    monkeypatch.setattr("builtins.get_ipython", object, raising=False)
    assert folding.is_interactive()


# ---------------------------------------------------------------------------- texts do not say their order

POINTS = np.linspace(-2.0, 2.0, 40)[:, None]
WORDS = np.array(["poor", "fair", "good", "great"])[np.arange(40) // 10]


def warned(call: Any, *args: Any, **named: Any) -> list[str]:
    """What a call warns of."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call(*args, **named)
    return [str(each.message) for each in caught]


def test_texts_that_are_sorted_by_the_alphabet_are_warned_of_with_the_order_and_how_to_tell_it() -> None:
    rule = OrdinalLogisticClassifier(epochs=1)
    [told] = warned(rule.fit, POINTS, WORDS)
    assert told.startswith(
        "y: expected to be told the order of texts, got none: by the alphabet it is fair, good, great, "
    )
    assert 'order=["fair", "good", "great", "poor"]' in told
    assert "ordered Categorical" in told
    [told] = warned(PRankClassifier().partial_fit, POINTS, WORDS, classes=WORDS)
    assert "fair, good, great, poor" in told
    assert warned(rule.partial_fit, POINTS, WORDS) == []  # the order is that of fit
    for cls in (PRankClassifier, WidrowHoffClassifier, ConstantRankClassifier):
        assert len(warned(cls(epochs=1).fit, POINTS, WORDS)) == 1
    assert warned(OrdinalLogisticClassifier(epochs=1, order=["poor", "fair", "good", "great"]).fit, POINTS, WORDS) == []
    alphabet = OrdinalLogisticClassifier(epochs=1, order=sorted(set(WORDS.tolist())))
    assert warned(alphabet.fit, POINTS, WORDS) == warned(neg_rank_loss, alphabet, POINTS, WORDS) == []
    ordered = pd.Categorical(WORDS, categories=["poor", "fair", "good", "great"], ordered=True)
    assert warned(rule.fit, POINTS, ordered) == []
    assert warned(rule.fit, POINTS, np.where(POINTS[:, 0] > 0, "yes", "no")) == []  # either way round is the same
    assert warned(rule.fit, POINTS, np.arange(40) // 10) == []


def test_texts_that_are_numbers_are_in_their_order() -> None:
    digits = np.array(["0", "1", "2", "10"])[np.arange(40) // 10]
    rule = OrdinalLogisticClassifier(epochs=3, random_state=0)
    assert warned(rule.fit, POINTS, digits) == []
    assert rule.classes_.tolist() == ["0", "1", "2", "10"]
    same = OrdinalLogisticClassifier(epochs=3, random_state=0).fit(POINTS, np.arange(40) // 10)
    assert (rule.coef_ == same.coef_).all()
    first = PRankClassifier().partial_fit(POINTS, digits, classes=["10", "9", "-1.5", "2", "1", "0"])
    assert first.classes_.tolist() == ["-1.5", "0", "1", "2", "9", "10"]
    assert warned(rule.fit, POINTS, np.array(["1", "1.0", "2"])[np.arange(40) % 3])  # two of them are one number


def test_the_loss_by_ranks_is_counted_in_the_order_that_is_meant_or_it_says_which_it_took() -> None:
    """Also of classifiers that know no order: those of scikit-learn, and the multiclass perceptron."""
    rule = MulticlassPerceptronClassifier(epochs=1)
    assert warned(rule.fit, POINTS, WORDS) == []
    [told] = warned(neg_rank_loss, rule, POINTS, WORDS)
    assert "fair, good, great, poor" in told
    assert len(warned(rule.rank_loss, POINTS, WORDS)) == 1
    told_order = MulticlassPerceptronClassifier(epochs=1, order=["poor", "fair", "good", "great"]).fit(POINTS, WORDS)
    assert warned(neg_rank_loss, make_pipeline(told_order), POINTS, WORDS) == []
    other = DummyClassifier(strategy="constant", constant="10").fit(
        POINTS, np.array(["0", "1", "2", "10"])[np.arange(40) // 10]
    )
    assert other.classes_.tolist() == ["0", "1", "10", "2"]
    assert warned(neg_rank_loss, other, POINTS[:2], ["2", "0"]) == []
    assert neg_rank_loss(other, POINTS[:2], ["2", "0"]) == -(1 + 3) / 2
    words = DummyClassifier().fit(POINTS, WORDS)
    assert len(warned(neg_rank_loss, make_pipeline(words), POINTS, WORDS)) == 1


def test_which_text_says_that_the_first_thing_won_is_told() -> None:
    """Of choices the higher label says so: by the alphabet "second" is higher than "first"."""
    D, y = np.array([[1.0, -1.0], [-1.0, 1.0], [1.0, -1.0]]), np.array(["first", "second", "first"])
    [told] = warned(PreferenceGPClassifier().fit, D, y)
    assert "'second' says that the first thing won" in told
    ordered = pd.Categorical(y, categories=["second", "first"], ordered=True)
    choices = PreferenceGPClassifier()
    assert warned(choices.fit, D, ordered) == []
    assert choices.rank().tolist() == [0, 1]
    assert warned(PreferenceGPClassifier().fit, D, y == "first") == []
    people = np.column_stack([[0, 1, 0], D])
    assert len(warned(HierarchicalGPClassifier().fit, people, y)) == 1
