"""The description of a kind of feedback, from which a page, a command or OpenAPI is written."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from heedful.loop.interactions.forms import Form


class Prediction(NamedTuple):
    """What a decision predicts for each item that it shows: its name and range."""

    name: str
    """the name of the predicted quantity, as the heading of a column: "rating\""""
    low: float | None = None
    """the least value; None if there is none"""
    high: float | None = None
    """the greatest value; None if there is none"""
    order: str = "the learner also tries what it is unsure of"
    """why the predictions of a list that the model made need not fall from top to bottom"""


class Scale(NamedTuple):
    """The input with which people give a number to an item on a page, and the buttons for actions next to it."""

    form: str
    """the form of feedback that holds the number: "rating\""""
    low: float
    """the lowest number that can be given"""
    high: float
    """the highest number that can be given"""
    whole: bool = False
    """whether only whole numbers are taken"""
    selects: bool = False
    """whether the model chooses the items for each person from all that are on offer; otherwise a random sample is
    shown"""
    actions: Mapping[str, float] = {}  # nobody writes to it
    """the actions (buy, hide, ...) that have a button, with the weight of each as an answer"""
    hidden: bool = False
    """whether the buttons for actions are hidden until they are asked for"""


class Widget(NamedTuple):
    """The input with which a page takes answers to the items shown as cards; `name` is one of

    order   an order of the cards: the best is picked, or all are moved to another order
    scale   a number for each card, on `scale`
    pairs   a choice between two, on a page of its own
    fields  the JSON fields of the first form of feedback, whatever they are
    """

    name: str
    """the name of the input: "order", "scale", "pairs" or "fields\""""
    scale: Scale | None = None
    """the scale of the numbers, if `name` is "scale"; otherwise None"""


class Setting(NamedTuple):
    """A setting that only loops of this kind have, or that has another meaning in them."""

    name: str
    """the field of `Settings`"""
    help: str
    """the meaning of the setting, in one line"""
    example: Any
    """an example of its value, as JSON"""


class Card(NamedTuple):
    """The description of a kind of feedback, from which pages, commands and OpenAPI are made: texts, forms, widget,
    settings.
    """

    name: str
    """the name of the interaction, which a learner's docstring uses: "ordinal\""""
    title: str
    """the heading of a page: "Ratings\""""
    loop: str
    """a loop of this kind, as part of a sentence: "a loop of ratings\""""
    answer: str
    """the noun of one answer: "rating\""""
    question: str
    """what a person is asked about the items that are shown"""
    forms: tuple[Form, ...]
    """the forms of feedback that are taken, the most usual first"""
    prediction: Prediction | None = None
    """what is predicted for each item shown; None if nothing is"""
    widget: Widget = Widget("fields")
    """how a page takes answers"""
    badge: str = ""
    """a short label that marks such a loop in a list; "" for none"""
    weights: bool = True
    """whether a page shows what was learned as weights of features; otherwise as the highest predictions"""
    measure: str = "Mean score"
    """the name of the score that a report compares, as a heading"""
    measure_help: str = "How good what was shown was, by the answers to it, on average."
    """an explanation of that score for people who do not know it"""
    contradiction: str = "has it the other way round"
    """what the model does with feedback that it contradicts by now, in words that follow "by now the model\""""
    score: str = "how good what was shown was"
    """what the mean score in a report is the mean of, in words"""
    shown: str = "list"
    """the noun of what one decision shows: "list\""""
    arms: tuple[str, str] = ("learned lists", "control")
    """the names in a report of the two sorts of lists: those by the model, and those of the control (the caller's
    order)"""
    compares_arms: bool = True
    """whether a report compares these two sorts of lists"""
    settings: tuple[Setting, ...] = ()
    """the settings that only loops of this kind have"""
