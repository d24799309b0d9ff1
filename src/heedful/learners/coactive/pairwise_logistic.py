"""Coactive learning with the logistic loss of all pairs that a correction implies: ours, not from the papers.

The papers' learners use one difference of features D a round and learn only where the person disagreed; under noise
their regret does not fall below a floor. The same feedback also says that each chosen candidate beats each candidate
above it that was not chosen.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from heedful.core.declaration import declare
from heedful.core.space import Space
from heedful.core.validation import check_linear, check_positive
from heedful.jit.kernel import Floats, Ints, primitive

Array = npt.NDArray[np.float64]

# Where candidates do not differ, the gradient is a rounding error near 1e-17. It must not become a step of size `rate`.
_TINY = 1e-20


def _adagrad_loop(w: Array, total: Array, g: Array, rate: float) -> None:
    for i in range(w.size):
        total[i] += g[i] * g[i]
        w[i] += rate * g[i] / np.sqrt(total[i] + _TINY)


@primitive(_adagrad_loop)
def adagrad_step(w: Array, total: Array, g: Array, rate: float) -> None:
    """Make one AdaGrad step up the gradient `g` in place, with step size `rate`: total += g^2; w += rate g /
    sqrt(total). The weights `w`, the sum of squared gradients `total` and g are (N,), for N features."""
    total += g * g
    w += rate * g / np.sqrt(total + _TINY)


class PairwiseLogisticState(NamedTuple):
    """The state of `PairwiseLogistic` for N features."""

    w: Array
    """the utility weights (N,)"""
    g: Array
    """a buffer for the gradient (N,), overwritten in every update"""
    total: Array
    """the sum of the squared gradients (N,)"""
    t: int
    """number of rounds learned from"""


@declare(version=1, partial=True, lesson_cost=1)
class PairwiseLogistic(NamedTuple):
    """Pairwise logistic: ours, all implied pairs with AdaGrad steps. Interaction: coactive.

    Shows the object y of `space` of greatest utility w . phi(x, y), for weights w and joint features phi of
    `n_features` numbers. Each round is one step up the gradient of sum log sigma(w . (x_a - x_b)) over the pairs
    "candidate a is better than b" that the correction implies (`Ranking.add_pair_gradient`), with features x_a and x_b
    and the logistic function sigma. The step size of each weight is `rate` / sqrt(the sum of its squared gradients).
    """

    n_features: int
    space: Space
    rate: float = 0.1

    def init(self, rng: np.random.Generator) -> PairwiseLogisticState:
        check_linear(self.n_features, self.space)
        check_positive("rate", self.rate)
        n = self.n_features
        return PairwiseLogisticState(np.zeros(n), np.zeros(n), np.zeros(n), 0)

    def propose(self, state: PairwiseLogisticState, x: Floats, rng: np.random.Generator) -> Ints:
        return self.space.argmax(state.w, x)

    def update(self, state: PairwiseLogisticState, x: Floats, y: Ints, feedback: Ints) -> PairwiseLogisticState:
        state.g[:] = 0.0
        self.space.add_pair_gradient(state.g, state.w, x, feedback, y)
        return self.step(state, state.g)

    def direction(self, state: PairwiseLogisticState, x: Floats, y: Ints, feedback: Ints) -> Array:
        """Return the gradient (N,) in the N weights, at the weights of `state`, that `update` would take a step along
        after `feedback`, a better object than the proposal `y`, in the context `x`."""
        D = np.zeros(self.n_features)
        self.space.add_pair_gradient(D, state.w, x, feedback, y)
        return D

    def step(self, state: PairwiseLogisticState, D: Array) -> PairwiseLogisticState:
        adagrad_step(state.w, state.total, D, self.rate)
        return PairwiseLogisticState(state.w, state.g, state.total, state.t + 1)

    def weights(self, state: PairwiseLogisticState) -> Array:
        return state.w
