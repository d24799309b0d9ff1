"""Models whose learner knows people and items by number: who has which number, and whose arrays are read."""

from __future__ import annotations

from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np

from heedful.core.fold import copy_arrays
from heedful.jit.kernel import Floats
from heedful.loop.model import Person

S = TypeVar("S")


class Number(NamedTuple):
    """What is one person's own: the number the learner knows them by."""

    user: int


class Numbered(Generic[S]):
    """A model whose state S is a NamedTuple with the learner's own in `learned`. Candidates are the numbers of items
    (m,)."""

    def __init__(self, learner: Any, shared: S) -> None:
        """Of `learner`, in the state before anything was learned."""
        self.learner, self.shared = learner, shared
        self.people: dict[str, Person] = {}
        self._lent = False  # somebody decides from these arrays: they are not written to

    def nobody(self) -> Number:
        """A number as it is kept of a person."""
        return Number(0)

    def effective(self, shared: S, person: Person | None) -> Floats:
        """No weights of features: there are none (0,)."""
        return np.zeros(0)

    def published(self) -> S:
        """The state for readers, which is not written to from now on: the next lesson begins with a copy."""
        self._lent = True
        return self.shared

    def _own(self) -> S:
        """The state, in arrays that nobody reads."""
        if self._lent:
            shared: Any = self.shared
            rest = copy_arrays(shared._replace(learned=()))
            self.shared, self._lent = rest._replace(learned=own_copy(shared.learned)), False
        return self.shared


def own_copy(learned: Any) -> Any:
    """What was learned, for `update`; a state that has `own` says itself which arrays it never writes to."""
    return learned.own() if hasattr(learned, "own") else copy_arrays(learned)
