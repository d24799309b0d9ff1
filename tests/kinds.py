"""One loop of each kind of feedback, that of `fifth.py` too, for what holds of all of them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from heedful import Loop, Settings, infer
from loops import choice_loop, rating_loop, rows, small_loop
from reference import (
    FIFTH,
    BestWorstReference,
    CoactiveReference,
    ComparisonReference,
    OrdinalReference,
    RatingReference,
    Reference,
)


class Kind(NamedTuple):
    """A kind of feedback: a loop of it over "i0", "i1", ..., what is asked and what is answered in round i."""

    name: str
    make: Callable[[Path], Loop]
    """a new loop in a folder"""
    ask: Callable[[int], dict[str, Any]]
    """the fields of a decision"""
    answer: Callable[[int, tuple[str, ...]], dict[str, Any]]
    """a form of feedback to what is shown"""
    other: str
    """a learner that its log can be evaluated with"""
    reference: type[Reference]
    """what any loop of it must do"""
    own: str | None = None
    """the learner to name when its loop is opened, where that is not heedful's"""


def _number(name: str) -> int:
    return int(name[1:])


def _best_worst(path: Path) -> Loop:
    items = rows(12, 3)
    encoding = infer(items, identifier="id", kinds={f"f{i}": "number" for i in range(3)})
    return Loop.create(path, encoding=encoding, items=items, learner=FIFTH, settings=Settings(control=0.2))


def _extremes(i: int, shown: tuple[str, ...]) -> dict[str, Any]:
    best = shown[i % len(shown)]
    return {"best": best, "worst": next(name for name in reversed(shown) if name != best)}


def _choose(i: int, shown: tuple[str, ...]) -> dict[str, Any]:
    return {"choice": "equal" if i % 7 == 6 else "first"} if len(shown) == 2 else {"better": [max(shown)]}


NAMES = [f"i{j}" for j in range(12)]
KINDS = (
    Kind(
        "coactive",
        lambda path: small_loop(path, control=0.2, shrink=2.0),
        lambda i: {"show": 4, "candidates": NAMES[i % 4 :]} if i % 2 else {},
        lambda i, shown: {"clicks": [shown[i % 3]]} if i % 3 else {"better": [shown[-1]]},
        "perceptron",
        CoactiveReference,
    ),
    Kind(
        "ordinal",
        lambda path: small_loop(path, "averaged-prank:n_ranks=5", control=0.2, shrink=2.0),
        lambda i: {"show": 4, "candidates": NAMES[i % 4 :]} if i % 2 else {"show": 3},
        lambda i, shown: {"grade": {name: 1 + (_number(name) + i % 3) % 5 for name in shown[:3]}},
        "prank",
        OrdinalReference,
    ),
    Kind(
        "rating",
        lambda path: rating_loop(path, control=0.2),
        lambda i: {"show": 4, "candidates": NAMES, "repeats": i >= 12} if i % 2 else {"repeats": i >= 12},
        lambda i, shown: (
            {"actions": {shown[0]: ["view", "buy"]}}
            if i % 5 == 4
            else {"rating": {name: 1 + (_number(name) + i % 4) % 5 for name in shown[:2]}}
        ),
        "item-mean",
        RatingReference,
    ),
    Kind(
        "comparison",
        lambda path: choice_loop(path, control=0.2, n_items=12),
        lambda i: {"candidates": NAMES[:6], "show": 3} if i % 4 == 3 else {},
        lambda i, shown: _choose(i, shown),
        "preference-gp",
        ComparisonReference,
    ),
    Kind(
        "best-worst",
        _best_worst,
        lambda i: {"candidates": NAMES[i % 3 :]} if i % 2 else {},
        _extremes,
        FIFTH,
        BestWorstReference,
        FIFTH,
    ),
)
each_kind = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)


def teach(kind: Kind, loop: Loop, rounds: range) -> None:
    """Let three people answer a decision in each of these rounds."""
    for i in rounds:
        shown = loop.decide(person=f"p{i % 3}", id=f"d{i}", **kind.ask(i)).shown
        assert loop.feedback({**kind.answer(i, shown), "decision": f"d{i}", "id": f"e{i}"}).status == "applied"
