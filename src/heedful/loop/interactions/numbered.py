"""Models whose learner knows people and items by number."""

from __future__ import annotations

from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np

from heedful.core.fold import copy_arrays
from heedful.jit.kernel import Floats
from heedful.loop.model import Person

S = TypeVar("S")


class Number(NamedTuple):
    """The state of one person: the number by which the learner knows them."""

    user: int


class Numbered(Generic[S]):
    """A model whose state S is a NamedTuple with the learner's state in `learned`. Candidates are numbers of items
    (m,)."""

    def __init__(self, learner: Any, shared: S) -> None:
        """Begin with `shared`, the state of `learner` before anything was learned."""
        self.learner, self.shared = learner, shared
        self.people: dict[str, Person] = {}
        self._lent = False  # somebody decides from these arrays: they are not written to

    def nobody(self) -> Number:
        """Return a state like those kept for each person."""
        return Number(0)

    def effective(self, shared: S, person: Person | None) -> Floats:
        """Return no weights (0,): these models have no features."""
        return np.zeros(0)

    def published(self) -> S:
        """Return the state for readers. It is not written to any more: the next lesson begins with a copy."""
        self._lent = True
        return self.shared

    def _own(self) -> S:
        """Return the state in arrays that no reader has."""
        if self._lent:
            shared: Any = self.shared
            rest = copy_arrays(shared._replace(learned=()))
            self.shared, self._lent = rest._replace(learned=own_copy(shared.learned)), False
        return self.shared


def own_copy(learned: Any) -> Any:
    """Return a copy of what was learned, for `update`; a state with a method `own` decides itself which arrays are
    never written to."""
    return learned.own() if hasattr(learned, "own") else copy_arrays(learned)
