"""Labels that say their order themselves, a score by ranks, and what compiling says."""

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

import heedful.jit.cache
from heedful.core.fold import run
from heedful.estimators import (
    OrdinalLogisticClassifier,
    PRankClassifier,
    PreferenceGPClassifier,
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
    assert neg_rank_loss(told, X, y) > -0.2
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


# ---------------------------------------------------------------------------- what comes out, what is told


@pytest.mark.parametrize("kind", [PRankClassifier, OrdinalLogisticClassifier])
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
    assert neg_rank_loss(fitted, X, texts) == neg_rank_loss(fitted[-1], fitted[:-1].transform(X), texts)
    search = GridSearchCV(chain, {"ordinallogisticclassifier__epochs": [1, 5]}, scoring=neg_rank_loss, cv=2)
    assert search.fit(X, texts).best_score_ > -0.3
    with pytest.raises(ValueError, match="y: expected one of the classes"):
        neg_rank_loss(fitted, X[:1], ["awful"])


@pytest.mark.parametrize("looked_at", [True, False])
def test_compiling_is_told_where_somebody_waits(
    looked_at: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(folding, "PATIENCE", 0)
    monkeypatch.setattr(folding, "is_interactive", lambda: looked_at)
    kept = iter([False, *[True] * 100])
    monkeypatch.setattr(heedful.jit.cache, "is_cached", lambda *_: next(kept))
    monkeypatch.setattr(heedful.jit.cache, "loop_for", lambda *_: run)
    PRankClassifier().fit(X, RANKS)
    got = capsys.readouterr()
    assert got.out == ""
    assert got.err == ("heedful: compiling PRank (first time only)\n" if looked_at else "")


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
    """Also of classifiers that know no order: those of scikit-learn."""
    rule = PRankClassifier(epochs=1)
    warned(rule.fit, POINTS, WORDS)
    [told] = warned(neg_rank_loss, rule, POINTS, WORDS)
    assert "fair, good, great, poor" in told
    told_order = PRankClassifier(epochs=1, order=["poor", "fair", "good", "great"]).fit(POINTS, WORDS)
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
