"""Add to a learner of ordinal grades (ranks 1 to k) an offset for one person, on top of what all people share.

    s     = w . x + c (v . x - a)    for an instance x (N,)
    rank  = the least r with s < b_r, b_k infinite

w (N,) and the thresholds b_1 <= ... <= b_{k-1} are those of a learner that all people share; v (N,) and the number a
are this person's own, with the weight c = n / (n + shrink) after n instances with their true rank from this person.

v and a take PRank's own step ([P01] Figure 2), with tau_r = 1 or -1 where s is on the wrong side of b_r, else 0: v +=
(sum tau) x, a -= sum tau. The thresholds stay with the shared learner, and with them their order.

[P01]: Crammer & Singer, *Pranking with Ranking*, NIPS 2001.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from heedful.core.validation import check_positive
from heedful.jit.kernel import Floats, Ints, scores
from heedful.spaces.ordinal import Ranks

Array = npt.NDArray[np.float64]


class ThresholdLearner(Protocol):
    """Protocol: a learner of ordinal grades (ranks from 1) that scores an instance x (N,) with one weight vector over N
    features, and cuts the scores at thresholds."""

    @property
    def n_features(self) -> int:
        """The number of features N."""

    @property
    def space(self) -> Ranks:
        """The ranks that it predicts."""

    def init(self, rng: np.random.Generator, /) -> Any:
        """Return the state before the first instance."""

    def weights(self, state: Any, /) -> Array:
        """Return the weight vector w (N,) in `state`; the score of an instance x (N,), with N features, is w . x."""

    def thresholds(self, state: Any, /) -> Array:
        """Return the thresholds (k-1,) in `state`, rising: the scores at which the predicted rank changes, for k
        ranks."""

    def update(self, state: Any, x: Floats, y: int, feedback: int, /) -> Any:
        """Return the state after learning that the true rank of the instance `x` (N,), N features, is `feedback`, where
        `y` was predicted."""


class Offset(NamedTuple):
    """What one person's scores add to the scores shared by all people: v . x - a for an instance x (N,) with N
    features.

    `v` (N,) is a weight vector, `a` a number.
    """

    v: Array
    a: float


class PersonalState(NamedTuple):
    """The state of `Personal`: that of the learner that all people share, and one person's offset."""

    shared: Any
    """the state of the shared learner"""
    offset: Offset
    lessons: int
    """the number of instances whose true rank this person has given"""


class Personal(NamedTuple):
    """A learner of ordinal grades with an offset for one person, which has half of its full weight after `shrink`
    lessons.

    `learner` is what all people share: a learner with one direction, `weights(state)`, and `thresholds(state)`. A
    lesson is an instance with its true rank, given by this person; it is learned twice: by the offset, on top of the
    shared score, and by `learner`. A `Personal` is made from a learner in Python, not by name.
    """

    learner: ThresholdLearner
    shrink: float

    @property
    def version(self) -> int:
        """The version of the learner's computation, raised with every change of its results."""
        return 1

    @property
    def must_interpret(self) -> bool:
        """True: numba cannot compile it, because the offset is a new array after every update."""
        return True

    @property
    def n_features(self) -> int:
        return self.learner.n_features

    @property
    def space(self) -> Ranks:
        return self.learner.space

    def init(self, rng: np.random.Generator) -> PersonalState:
        """Return the state before the first instance; `rng` is for the shared learner. Raise ValueError unless `shrink`
        is above 0."""
        check_positive("shrink", self.shrink)
        return PersonalState(self.learner.init(rng), self.nobody(), 0)

    def propose(self, state: PersonalState, x: Floats, rng: np.random.Generator) -> int:
        s = self._score(state.shared, state.offset, self.share(state.lessons), x)
        return int(ranks(np.array([s]), self.learner.thresholds(state.shared))[0])

    def update(self, state: PersonalState, x: Floats, y: int, feedback: int) -> PersonalState:
        """First the offset takes a step, then the shared learner. The offset is a new one, so that the offset in
        `state` can still be read."""
        n = state.lessons + 1
        offset = self._step(state.shared, state.offset, self.share(n), x, feedback)
        return PersonalState(self.learner.update(state.shared, x, y, feedback), offset, n)

    def nobody(self) -> Offset:
        """Return the offset of a person who has not given any rank yet: v = 0 and a = 0, so that their scores are the
        shared ones."""
        return Offset(np.zeros(self.learner.n_features), 0.0)

    def share(self, lessons: int) -> float:
        """Return c = lessons / (lessons + shrink), the weight of a person's offset in their scores, after they have
        given the true rank of `lessons` instances."""
        return lessons / (lessons + self.shrink)

    def _score(self, shared: object, offset: Offset, c: float, x: Floats) -> float:
        return float(scores(x[None, :], self.learner.weights(shared) + c * offset.v)[0]) - c * offset.a

    def _step(self, shared: object, offset: Offset, c: float, x: Floats, rank: int) -> Offset:
        b = self.learner.thresholds(shared)
        s = self._score(shared, offset, c, x)
        if int(ranks(np.array([s]), b)[0]) == rank:
            return offset
        signs = np.where(np.arange(1, b.size + 1) < rank, 1.0, -1.0)
        total = float(signs[(s - b) * signs <= 0.0].sum())
        return Offset(offset.v + total * x, offset.a - total)


def ranks(s: Array, thresholds: Array) -> Ints:
    """Return the rank of each of m scores `s` (m,), as integers (m,): the least r with s < b_r.

    `thresholds` are b_1 <= ... <= b_{k-1} (k-1,); b_k is infinite.
    """
    return 1 + np.searchsorted(thresholds, s, side="right").astype(np.int64)
