"""The simulated environment of [J15] Lemma 3, in which no context is like another, so that nothing can be learned.

[J15]: Shivaswamy & Joachims, *Coactive Learning*, JAIR 53, 2015.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from heedful.core.validation import check_count
from heedful.jit.kernel import Ints

Array = npt.NDArray[np.float64]


class UnlearnableState(NamedTuple):
    """The state of `Unlearnable` with T rounds.

    - `w_star` (T,): the entries of the true weights w* that are determined so far, 0 elsewhere.
    - `t`: the round, from 0.
    """

    w_star: Array
    t: int


class Unlearnable(NamedTuple):
    """The simulated environment of [J15] Lemma 3, in which every proposal is wrong: T = `horizon` rounds, each with a
    feature of its own.

    Round t offers the two items e_t and -e_t of R^T, where e_t is the t-th unit vector; they are the objects y = +1 and
    y = -1 of `Ranking(1)`, with phi(x, y) = y e_t. The feedback is always the item not shown, and the true weights are
    w*_t = -y_t / sqrt T. So feedback is alpha-informative with alpha = 1, |w*| = 1, the bounds of phi are R = S = 1,
    and every learner that shows one item has the average regret REG_T = 2 / sqrt T, which equals Theorem 1's right
    side. Made by `unlearnable`.
    """

    horizon: int

    def init(self, rng: np.random.Generator) -> UnlearnableState:
        return UnlearnableState(np.zeros(self.horizon), 0)

    def over(self, state: UnlearnableState, t: int) -> bool:
        return t >= self.horizon

    def context(self, state: UnlearnableState, t: int, rng: np.random.Generator) -> Array:
        x = np.zeros((2, self.horizon))
        x[0, t], x[1, t] = 1.0, -1.0
        return x

    def respond(self, state: UnlearnableState, x: Array, shown: Ints, rng: np.random.Generator) -> Ints:
        answer = np.empty(1, np.int64)
        answer[0] = 1 - shown[0]
        return answer

    def regret(self, state: UnlearnableState, x: Array, shown: Ints) -> float:
        return 2.0 / np.sqrt(float(self.horizon))  # type: ignore[no-any-return]

    def advance(self, state: UnlearnableState, x: Array, shown: Ints, feedback: Ints) -> UnlearnableState:
        state.w_star[state.t] = (1.0 if feedback[0] == 0 else -1.0) / np.sqrt(float(self.horizon))
        return UnlearnableState(state.w_star, state.t + 1)


def unlearnable(horizon: int) -> Unlearnable:
    """Return the simulated environment of [J15] Lemma 3, in which every proposal is wrong, with `horizon` rounds and as
    many features. Raise ValueError unless `horizon` is a whole number above 0.
    """
    check_count("horizon", horizon)
    return Unlearnable(int(horizon))
