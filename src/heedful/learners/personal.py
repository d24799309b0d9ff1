"""A learner around a learner of ranks: what one person has of their own, on top of what all share.

    s     = w . x + c (v . x - a)    w and thresholds b of the learner inside; v and a this person's own,
                                     c = n / (n + shrink) after n lessons of this person
    rank  = the least r with s < b_r, b_k infinite

v and a take PRank's own step ([P01] Figure 2), with tau_r where s is on the wrong side of b_r:
v += (sum tau) x, a -= sum tau. The thresholds stay with the learner inside, and with them their order.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from heedful.core.validation import check_positive
from heedful.jit.kernel import Floats, Ints, scores
from heedful.spaces.ordinal import Ranks

Array = npt.NDArray[np.float64]


class Offset(NamedTuple):
    """The state of one person: a direction v (N,), and a level a that is subtracted from their scores."""

    v: Array
    a: float


class PersonalState(NamedTuple):
    """The state of `Personal`: the state of the learner inside, and one person's offset."""

    shared: Any
    """the state of the learner inside"""
    own: Offset
    lessons: int
    """number of lessons of this person"""


class Personal(NamedTuple):
    """A learner of ranks with an offset for one person, which counts half after `shrink` lessons.

    `learner` has one direction, `weights(state)`, and `thresholds(state)`. Every lesson is learned twice: by the
    offset, on top of the score that all share, and by `learner`. It is made around a learner, not by name.
    """

    learner: Any
    shrink: float

    @property
    def version(self) -> int:
        """The version of the fold: raised with every change of what it computes."""
        return 1

    @property
    def must_interpret(self) -> bool:
        """Whether it must run interpreted: yes, because an offset is a new array after every lesson."""
        return True

    @property
    def n_features(self) -> int:
        """The number of features, those of the learner inside."""
        return int(self.learner.n_features)

    @property
    def space(self) -> Ranks:
        """The space of ranks, that of the learner inside."""
        space: Ranks = self.learner.space
        return space

    def init(self, rng: np.random.Generator) -> PersonalState:
        """Return the state before any lesson. Raise ValueError unless `shrink` is above 0."""
        check_positive("shrink", self.shrink)
        return PersonalState(self.learner.init(rng), self.nobody(), 0)

    def propose(self, state: PersonalState, x: Floats, rng: np.random.Generator) -> int:
        """Return the rank predicted of x (N,)."""
        s = self._score(state.shared, state.own, self.share(state.lessons), x)
        return int(ranks(np.array([s]), self.learner.thresholds(state.shared))[0])

    def update(self, state: PersonalState, x: Floats, y: int, feedback: int) -> PersonalState:
        """Return the state after the true rank `feedback` of x (N,): the offset's step, then that of the learner.

        The offset is a new one, so that the state before the lesson can still be read."""
        n = state.lessons + 1
        own = self._step(state.shared, state.own, self.share(n), x, feedback)
        return PersonalState(self.learner.update(state.shared, x, y, feedback), own, n)

    def nobody(self) -> Offset:
        """Return the offset of a person without lessons."""
        return Offset(np.zeros(self.learner.n_features), 0.0)

    def share(self, lessons: int) -> float:
        """Return c, the weight of the offset after this number of lessons."""
        return lessons / (lessons + self.shrink)

    def _score(self, shared: Any, own: Offset, c: float, x: Floats) -> float:
        return float(scores(x[None, :], self.learner.weights(shared) + c * own.v)[0]) - c * own.a

    def _step(self, shared: Any, own: Offset, c: float, x: Floats, rank: int) -> Offset:
        b = self.learner.thresholds(shared)
        s = self._score(shared, own, c, x)
        if int(ranks(np.array([s]), b)[0]) == rank:
            return own
        signs = np.where(np.arange(1, b.size + 1) < rank, 1.0, -1.0)
        total = float(signs[(s - b) * signs <= 0.0].sum())
        return Offset(own.v + total * x, own.a - total)


def ranks(s: Array, thresholds: Array) -> Ints:
    """Return the least r with s < b_r for each score s (m,); thresholds b_1 <= ... <= b_{k-1} (k-1,), b_k infinite."""
    return 1 + np.searchsorted(thresholds, s, side="right").astype(np.int64)
