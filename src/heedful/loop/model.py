"""What the models of all interactions share: the state of one person, and a decision with its arrays. Each interaction
has its model in its own module `model`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from heedful.jit.kernel import Floats
from heedful.loop.records import DecisionRecord


class Person(NamedTuple):
    """The state of one person, with the number of lessons that it is made of and the version of the model it came
    with."""

    state: Any
    lessons: int
    since: int


def own_state(people: Mapping[str, Person], name: str | None) -> Person | None:
    """Return the state of the person `name`; None if there is none, or `name` is None."""
    return people.get(name) if name is not None else None


class Context(NamedTuple):
    """A decision with its arrays: its record, and either the features of its candidates (m, N), with the caller's score
    last, or the numbers of its items (m,)."""

    record: DecisionRecord
    x: Floats
    person: str | None
