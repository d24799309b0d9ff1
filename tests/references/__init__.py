"""What a loop of each kind of feedback must do, in lists and dictionaries: the references of `loop/test_any_life.py`.

A reference keeps nothing of heedful but a learner's own functions, which it folds over what survives of the log. What
holds for every kind stands in the test. Here is what a reference is made of; a module for each kind says what that kind
alone knows: what its loops are made of, what is asked and answered, what an answer teaches, what may be shown.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
from hypothesis import strategies as st

from heedful import Loop
from heedful.results.explanation import Why

SOME = st.integers(0, 10**6)
"""Which of those that there are."""
PERSON = st.sampled_from([None, "p", "q", "r"])


class Shown(NamedTuple):
    """A decision as the reference keeps it."""

    names: list[str]
    """of the candidates"""
    rows: list[dict[str, Any]]
    """the items as they were then"""
    shown: list[str]
    person: str | None
    arm: str
    predicted: tuple[float, ...] | None
    prior: Sequence[float]
    """the caller's scores as the log keeps them, one a candidate, or none"""
    proposal: Any
    context: Mapping[str, Any]
    """what was asked with it of the request"""

    @property
    def places(self) -> list[int]:
        """Where the shown items stand among the candidates."""
        return [self.names.index(name) for name in self.shown]


class Given(NamedTuple):
    """An answer: what is sent, and what the loop must make of it."""

    form: dict[str, Any]
    lesson: Any = None
    """what is learned from it; None where that is nothing"""
    refused: bool = False
    """whether the loop rejects it"""


class Fold(ABC):
    """The model that the surviving part of a log makes."""

    @abstractmethod
    def learn(self, decision: Shown, lesson: Any) -> None:
        """Take a lesson in."""

    def put(self, name: str, row: Mapping[str, Any]) -> None:  # noqa: B027 - most kinds learn nothing from it
        """Take in that an item is on offer, or changed."""

    def withdraw(self, name: str) -> None:  # noqa: B027
        """Take in that an item is on offer no more."""

    def eligible(self, names: list[str], person: str | None, fields: Mapping[str, Any]) -> list[str]:
        """Return the candidates that may be shown."""
        return names

    def learns(self, given: Given) -> bool:
        """Return whether this answer teaches anything."""
        return given.lesson is not None

    @abstractmethod
    def check(self, loop: Loop) -> None:
        """Assert that the loop's model is this one."""


class Reference(ABC):
    """What a loop of one kind must do."""

    names: ClassVar[list[str]] = [f"i{j}" for j in range(5)]
    first: ClassVar[int] = 5
    """How many of the items are on offer from the beginning."""
    ways: ClassVar[tuple[str, ...]] = ("names", "names", "all")
    """How candidates are given: by name, "inline" with attributes, "all" on offer; "recorded" is decided by others."""
    fields: ClassVar[dict[str, st.SearchStrategy[Any]]] = {}
    """What else a decision is asked with."""
    setups: ClassVar[dict[str, st.SearchStrategy[Any]]]
    """What a loop is made with, besides `control` and `every`."""
    answers: ClassVar[st.SearchStrategy[Any]]
    """What an answer is made of."""
    wrong: ClassVar[list[dict[str, Any]]]
    """Answers that the loop rejects, whatever was shown."""
    turns: ClassVar[st.SearchStrategy[Any]] = st.integers(0, 2)
    """What the attributes of an item are made of."""
    least = 1
    """With fewer candidates nothing is decided."""
    exact = True
    """Whether there is a fold to compare the model with."""
    own: str | None = None
    lives = 10
    """How many lives hypothesis tries."""
    rules: ClassVar[dict[str, Any]] = {}
    """Rules of hypothesis that only this kind has, by name."""

    @abstractmethod
    def create(self, path: Path, control: float, every: int) -> Loop:
        """Make the loop in a new folder, with the first items on offer."""

    @abstractmethod
    def row(self, name: str, turn: Any) -> dict[str, Any]:
        """Return an item's attributes."""

    def start(self, name: str) -> dict[str, Any]:
        """Return an item as it is at the beginning."""
        return self.row(name, 0)

    @abstractmethod
    def fold(self) -> Fold:
        """Return a model that has learned nothing."""

    @abstractmethod
    def size(self, show: int | None, eligible: int) -> int:
        """Return how many must be shown."""

    @abstractmethod
    def answer(self, decision: Shown, drawn: Any) -> Given:
        """Return an answer to a decision."""

    def another_answer(self, decision: Shown, form: Mapping[str, Any]) -> dict[str, Any]:
        """Return an answer to the decision that the loop would take, other than `form`."""
        return {"clicks": []} if "none" in form else {"none": True}

    def asked(self, drawn: Mapping[str, Any], n: int) -> dict[str, Any]:
        """Return what a decision about n candidates is asked with."""
        return dict(drawn)

    def check_decision(self, fold: Any, decision: Shown, eligible: list[str]) -> None:  # noqa: B027
        """Assert that this may be shown by what is learned."""

    def check_explanation(self, why: Why, decision: Shown, forgot: bool) -> None:
        """Assert that the explanation is of this decision; `forgot` once somebody was forgotten since it."""
        assert why.decision

    def encode(self, rows: Sequence[Mapping[str, Any]]) -> Any:
        """The features of items, (n, k), as the log keeps them."""
        return np.array([self.encoding.encode(row) for row in rows], np.float32).astype(float)

    encoding: Any = None


PRIOR = {"prior": st.one_of(st.none(), st.lists(st.integers(0, 3), min_size=6, max_size=6))}


def with_prior(drawn: Mapping[str, Any], n: int) -> dict[str, Any]:
    """The caller's scores of n candidates."""
    return {"prior": None if drawn["prior"] is None else [float(score) for score in drawn["prior"][:n]]}


def with_scores(X: Any, decision: Shown) -> Any:
    """X (n, k) with the caller's scores as the last column, 0 where there are none."""
    return np.column_stack([X, decision.prior or np.zeros(len(X))])


def by_prior(decision: Shown) -> list[str]:
    """The candidates in the caller's order."""
    prior = decision.prior or [0.0] * len(decision.names)
    return [decision.names[j] for j in sorted(range(len(prior)), key=lambda j: -prior[j])]
