"""What is said of a file does not depend on the order of its rows, nor on which of its people or items comes first."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from heedful import leaderboard
from heedful.boards.ranking import rank
from heedful.data.choices import pairs_in
from heedful.data.comparisons import Comparison, tabulate
from heedful.data.votes import votes_of
from heedful.inference.gp.posterior import Posterior
from heedful.inference.gp.remaining_questions import estimate_remaining

Rows = list[dict[str, Any]]
TREES = ("oak", "ash", "elm", "yew", "fir")


def choices(n: int, people: int = 0) -> Rows:
    rng = np.random.default_rng(5)
    rows = []
    for i in range(n):
        a, b = rng.choice(5, 2, replace=False)
        a, b = (a, b) if rng.random() < 1.0 / (1.0 + np.exp(0.4 * (a - b))) else (b, a)
        rows.append({"winner": TREES[a], "loser": TREES[b]} | ({"person": f"p{i % people}"} if people else {}))
    return rows


def orders(n: int) -> Rows:
    rng = np.random.default_rng(6)
    return [{"person": f"p{i % 7}", "order": " > ".join(rng.permutation(TREES)[:3])} for i in range(n)]


def votes(n: int) -> Rows:
    rng = np.random.default_rng(7)
    rows = []
    for i in range(n):
        a, b = rng.choice(5, 2, replace=False)
        said = ("model_a", "model_b", "tie", "both_bad")[rng.integers(4)]
        rows.append(
            {"model_a": TREES[a], "model_b": TREES[b], "winner": said, "judge": f"j{i % 9}"}
            | {"length_a": int(a) * 10 + i % 3, "length_b": int(b) * 10 + i % 5, "topic": "xy"[i % 2]}
        )
    return rows


FILES: dict[str, Rows] = {
    "one person": choices(40),
    "people": choices(40, people=4),
    "orders": orders(20),
    "pairs as shown": [
        {"first": a["winner"], "second": a["loser"], "answer": ("first", "second", "equal", "unsure")[i % 4]}
        for i, a in enumerate(choices(30))
    ],
}


def turned(rows: Rows) -> list[Rows]:
    return [rows[::-1], [rows[i] for i in np.random.default_rng(1).permutation(len(rows))]]


@pytest.mark.parametrize("name", FILES)
def test_a_table_is_the_same_in_any_order(name: str) -> None:
    [found, *others] = [pairs_in("rows", rows).to_choices().choices for rows in (FILES[name], *turned(FILES[name]))]
    assert all(each == found for each in others)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["one person", "people", "orders"])
def test_a_ranking_is_the_same_in_any_order(name: str) -> None:
    rows = FILES[name][:14]
    found = rank(rows).to_dict()
    assert rank(turned(rows)[1]).to_dict() == found


def test_votes_are_the_same_in_any_order() -> None:
    rows = votes(60)
    [found, *others] = [
        votes_of(pairs_in("rows", each), adjust=["length"], by="topic") for each in (rows, *turned(rows))
    ]  # type: ignore[arg-type]
    for other in others:
        for name, column in found._asdict().items():
            assert np.array_equal(column, getattr(other, name)), name


@pytest.mark.slow
def test_a_leaderboard_is_the_same_in_any_order() -> None:
    rows = votes(60)
    how: dict[str, Any] = {"adjust": ["length"], "by": "topic"}
    found = leaderboard(rows, **how).to_dict()
    assert leaderboard(turned(rows)[1], **how).to_dict() == found


def test_items_that_are_given_keep_their_order() -> None:
    answered = [Comparison("x", (("b",), ("a",))), Comparison("w", (("c",), ("b",)))]
    assert tabulate(answered, ["b", "a"]).items == ("b", "a", "c")
    assert tabulate(answered).items == ("a", "b", "c")
    assert tabulate(answered).people == ("w", "x")


def test_questions_left_do_not_depend_on_the_numbers_of_the_items() -> None:
    rng = np.random.default_rng(0)
    A = rng.standard_normal((6, 6))
    mean, cov = rng.standard_normal(6), A @ A.T / 6 + 0.2 * np.eye(6)
    said = estimate_remaining(Posterior(mean, cov))
    for seed in range(3):
        at = np.random.default_rng(seed).permutation(6)
        assert estimate_remaining(Posterior(mean[at], cov[np.ix_(at, at)])) == said
