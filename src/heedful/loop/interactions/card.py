"""How an interaction speaks of itself: what a page, a command or OpenAPI says of one kind of feedback."""

from __future__ import annotations

from typing import Any, NamedTuple

from heedful.loop.interactions.forms import Form

PREDICTED = ("predicted", "grades", "ratings", "chances")
"""The field of a decision that says what was predicted, and how kinds called it before."""


class Prediction(NamedTuple):
    """What a decision predicts of each item that it shows."""

    name: str
    """the heading of a column: "rating\""""
    meaning: str
    """in one line"""
    low: float | None = None
    """the least that is predicted; None where there is no least"""
    high: float | None = None


class Setting(NamedTuple):
    """A setting that only loops of this kind have, or that means something else in them."""

    name: str
    """the field of `Settings`"""
    help: str
    """in one line"""
    example: Any
    """a value, as JSON"""


class Card(NamedTuple):
    """One kind of feedback, as it is described to people and to programs."""

    name: str
    """by which a learner's docstring names the interaction"""
    title: str
    """the heading of a page: "Ratings\""""
    loop: str
    """a loop of this kind, in a sentence: "a loop of ratings\""""
    answer: str
    """the noun of one answer: "rating\""""
    question: str
    """what a person is asked about the items that are shown"""
    forms: tuple[Form, ...]
    """of feedback that is taken, the most usual first"""
    prediction: Prediction | None = None
    """what is predicted of each item that is shown; None where nothing is"""
    score: str = "how good what was shown was"
    """what the mean in a report is of"""
    arms: tuple[str, str] = ("learned", "control")
    """how a report calls what was made from what was learned, and what it is compared with"""
    compares_arms: bool = True
    """whether a report compares the two"""
    settings: tuple[Setting, ...] = ()
