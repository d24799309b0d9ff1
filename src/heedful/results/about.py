"""What there is to know of the loops of a server, of one of them, and of its items and weights."""

from __future__ import annotations

from typing import Any, NamedTuple

from heedful.results.answers import Finite


class About(NamedTuple):
    """A loop as the server describes it. Settings that only loops of some kinds have are None in others."""

    name: str
    """the name of the loop"""
    learner: str
    """the learner that serves, by name and parameters"""
    version: int
    """the version of the model"""
    identifier: str
    """the column, or attribute, that names an item"""
    features: int
    """N, the number of features of an item: how many numbers a row of `decide(features=...)` has"""
    names: tuple[str, ...]
    """the names of the features, in their order in a row: crosses included, the caller's score the last"""
    items: int
    """how many items are on offer"""
    events: dict[str, int]
    """how many events of each kind the log has"""
    settings: dict[str, Any]
    """the loop's settings, by name"""
    caveats: tuple[str, ...] = ()
    """sentences on what the loop cannot do or measure as it is"""
    notes: tuple[str, ...] = ()
    """warnings for the person who runs the loop, such as a snapshot that could not be used"""
    unknown: dict[str, int] = {}  # noqa: RUF012  nobody changes it
    """how often values came that the encoding has no category for, by "column=value", since the server opened the
    loop"""
    query_features: tuple[str, ...] | None = None
    """the names of what each request says of each item; None if it says nothing"""
    grades: int | None = None
    """the number of grades, 1 the lowest, in a loop of grades"""
    ratings: tuple[float, float] | None = None
    """the lowest and highest rating, in a loop of ratings"""
    choices: str | None = None
    """the purpose of choices, best or ranking, in a loop of choices"""


class Loops(NamedTuple):
    """The names of the loops of the key's tenant."""

    loops: tuple[str, ...]
    """in the order of the alphabet"""


class Items(NamedTuple):
    """A page of the names of items on offer, and how many there are in all."""

    items: tuple[str, ...]
    """the names on this page"""
    total: int
    """how many are on offer"""


class Withdrawn(NamedTuple):
    """Whether the item was on offer."""

    withdrawn: bool
    """whether it was on offer, and is not any more"""


class Weights(NamedTuple):
    """The weight of each feature, by name."""

    version: int
    """the version of the model"""
    weights: dict[str, Finite]
    """the weight of each feature, by name"""
    spreads: dict[str, Finite]
    """the standard deviation of each weight, by name of the feature; {} if the learner cannot tell"""
