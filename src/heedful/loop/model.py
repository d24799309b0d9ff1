"""What the models of all interactions have: what is a person's own, and a decision with its arrays.

The models stand with the interactions (`heedful.loop.interactions`), each in a module `model`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from heedful.jit.kernel import Floats
from heedful.loop.records import DecisionRecord


class Person(NamedTuple):
    """What is one person's own: a state, how many lessons it is made of, the version it came with."""

    state: Any
    lessons: int
    since: int


def own_state(people: Mapping[str, Person], name: str | None) -> Person | None:
    """Return what is the own of the person called `name`; None if there is nothing, or no name."""
    return people.get(name) if name is not None else None


class Context(NamedTuple):
    """A decision with its arrays: the record; the candidates' features (m x N), of which the last is the caller's
    score, or the numbers of the items (m,)."""

    record: DecisionRecord
    x: Floats
    person: str | None
