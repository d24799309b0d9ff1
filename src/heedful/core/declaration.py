"""Declare facts about a NamedTuple that are the same for all of its values, such as the version of a learner."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

C = TypeVar("C", bound=type)


def declare(**facts: object) -> Callable[[C], C]:
    """Decorate a class with attributes that are no fields. The body of a NamedTuple has room for fields and methods
    only.

    Of a learner, the package reads these; any of them may as well be a property:
    - `version` (int): the version of its fold, raised with every change of what it computes
    - `partial` (True): feedback may be a part of an order, such as the clicked candidates
    - `must_interpret` (True): it cannot be compiled, as it calls a solver
    - `simulation_only` (str): why the learner is for simulations only, in words

    Of a state: `grows` (True), its arrays become longer as users and items arrive. Of a space: `approximate` (True), a
    proposal may be worse than the argmax; `has_fixed_rows` (True), the rows of x have fixed places, such as the edges
    of a graph.
    """

    def mark(cls: C) -> C:
        for name, value in facts.items():
            setattr(cls, name, value)
        return cls

    return mark
