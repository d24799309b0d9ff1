"""How an interaction speaks of itself: what a page, a command or OpenAPI says of one kind of feedback."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from heedful.loop.interactions.forms import Form

PREDICTED = ("predicted", "grades", "ratings", "chances")
"""The field of a decision that says what was predicted, and how kinds called it before."""


class Prediction(NamedTuple):
    """The prediction that a decision makes for each item that it shows, in words."""

    name: str
    """the heading of a column: "rating\""""
    meaning: str
    """what that is, in one line"""
    low: float | None = None
    """the least value; None if there is none"""
    high: float | None = None
    """the greatest value; None if there is none"""


class Scale(NamedTuple):
    """The scale of the numbers that people give to cards, and actions next to them."""

    form: str
    """the form of feedback that holds the number: "rating\""""
    low: float
    high: float
    whole: bool = False
    """whether it is a whole number"""
    selects: bool = False
    """whether the loop selects the cards for each person from all that is on offer; otherwise some are drawn"""
    actions: Mapping[str, float] = {}  # nobody writes to it
    """the actions that have a button, and how much of an answer each counts for"""
    hidden: bool = False
    """whether the buttons for actions are hidden until they are asked for"""


class Widget(NamedTuple):
    """The controls with which a page takes answers.

    order   an order of the cards: one is picked as the best, or all are put in another order
    scale   a number for each card, on a `scale`
    pairs   two are compared, on a page of its own, which is what a study looks like
    fields  the fields of the first form of feedback, whatever they are
    """

    name: str
    scale: Scale | None = None


class Setting(NamedTuple):
    """A setting that only loops of this kind have, or that means something else in them."""

    name: str
    """the field of `Settings`"""
    help: str
    """in one line"""
    example: Any
    """a value, as JSON"""


class Card(NamedTuple):
    """The description of a kind of feedback, for people and for programs."""

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
    """what is predicted for each item that is shown; None if nothing is"""
    widget: Widget = Widget("fields")
    """how a page takes answers"""
    badge: str = ""
    """what tells such a loop from others in a list; "" if nothing does"""
    weights: bool = True
    """whether what was learned is told as weights of features; otherwise as the highest predictions"""
    measure: str = "Mean score"
    """the heading of what a report compares"""
    measure_help: str = "How good what was shown was, by the answers to it, on average."
    """what that is, for people who do not know it"""
    contradiction: str = "has it the other way round"
    """what a contradicted model does, in words that follow "by now the model\""""
    score: str = "how good what was shown was"
    """what the mean in a report is of"""
    arms: tuple[str, str] = ("learned lists", "control")
    """how a report calls the learned arm and the control"""
    compares_arms: bool = True
    """whether a report compares the two arms"""
    settings: tuple[Setting, ...] = ()
