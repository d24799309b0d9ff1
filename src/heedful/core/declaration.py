"""Declare attributes of a NamedTuple class that are the same for all of its instances, such as the version of a
learner."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

C = TypeVar("C", bound=type)


def declare(**facts: object) -> Callable[[C], C]:
    """Return a class decorator that sets each keyword argument as a class attribute, which is not a field.

    It is for NamedTuples: their class body has room for fields and methods only. The package reads these attributes of
    a learner; a property of the same name does as well:

    - `version` (int): the version of the learner's computation, raised with every change of its results
    - `partial` (True): feedback may be a part of an order, such as the clicked candidates
    - `must_interpret` (True): numba cannot compile it, for example because it calls a solver; a server then decides
      and learns in another thread, and states are kept more often
    - `simulation_only` (str): why the learner is for simulations only, in words
    - `additive` (True): feedback on a round adds the same vector to the weights, whatever they are
    - `lesson_cost` (float): the time of an update relative to one of a perceptron, roughly, if contexts and state are
      small; 100 if nothing is declared. Computations that repeat many updates, such as an explanation by leaving out
      one answer after the other, are refused if they cost too much by this number, not by a clock.

    Of a learner's state: `grows` (True), its arrays become longer as users and items arrive. Of a space: `approximate`
    (True), its argmax may return an object of less than the greatest utility.
    """

    def mark(cls: C) -> C:
        for name, value in facts.items():
            setattr(cls, name, value)
        return cls

    return mark
