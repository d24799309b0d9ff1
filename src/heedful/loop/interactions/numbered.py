"""The base of models whose learner knows people and items by number instead of by features."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, compress
from typing import Any, Generic, TypeVar

import numpy as np

from heedful.core.fold import copy_arrays
from heedful.jit.kernel import Floats, Ints
from heedful.loop.model import LoopModel, Person, View

S = TypeVar("S")


_UNKNOWN = Person(-1, 0, 0)


class Numbered(LoopModel, Generic[S]):
    """The base of models whose learner knows people and items by number. The m candidates x (m,) are numbers of items.

    S is the state that all people share: a NamedTuple whose field `learned` is the learner's state."""

    shared: S

    _lent = False
    """whether somebody decides from the arrays of `shared`: they are not written to then"""

    def nobody(self) -> int:
        """Return an example of a person's state: the number by which the learner knows them."""
        return 0

    def known(self, names: Sequence[str]) -> Ints:
        """Return what is known of each of the p people called `names` (p, 3): the number by which the learner knows
        them, -1 for none yet, how many lessons of theirs were learned, and `Person.since`."""
        found = [self.people.get(name, _UNKNOWN) for name in names]
        return np.fromiter(chain.from_iterable(found), np.int64, 3 * len(found)).reshape(-1, 3)

    def learn_people(self, names: Sequence[str], known: Ints) -> None:
        """Put what is `known` of each of the p people called `names` (p, 3) in place of what was known before."""
        there = known[:, 0] >= 0
        users, lessons, since = known[there].T.tolist()
        self.people.update(zip(compress(names, there.tolist()), map(Person, users, lessons, since)))

    def replace(self, shared: Any) -> None:
        self.shared, self._lent = shared, False

    def effective(self, view: View[Any]) -> Floats:
        return np.zeros(0)

    def publish(self) -> S:
        """Nothing is copied: the next update copies the arrays first."""
        self._lent = True
        return self.shared

    def _own(self) -> S:
        """Return the state in arrays that may be written to: a copy if readers hold the present ones."""
        if self._lent:
            shared: Any = self.shared
            rest = copy_arrays(shared._replace(learned=()))
            self.shared, self._lent = rest._replace(learned=own_copy(shared.learned)), False
        return self.shared


def own_copy(learned: object) -> Any:
    """Return a copy of a learner's state `learned` that `update` may overwrite.

    A state with a method `own` copies itself, and may share arrays that are never written to."""
    return learned.own() if hasattr(learned, "own") else copy_arrays(learned)
