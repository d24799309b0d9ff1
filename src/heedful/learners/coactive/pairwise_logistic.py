"""Logistic loss on all pairs that a correction implies: ours, beyond the papers.

A single D a round teaches only where the person disagreed, so under noise the papers' learners stop at a floor.
The same feedback also says that each of the chosen beats each that was passed over.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from heedful.core.validation import wanted_count, wanted_positive, wanted_space
from heedful.jit.kernel import primitive
from heedful.spaces.protocol import Space

Array = npt.NDArray[np.float64]

# Where candidates do not differ, their gradient is rounding, some 1e-17, which must not make a whole step of `rate`.
_TINY = 1e-20


def _adagrad_loop(w: Array, total: Array, g: Array, rate: float) -> None:
    for i in range(w.size):
        total[i] += g[i] * g[i]
        w[i] += rate * g[i] / np.sqrt(total[i] + _TINY)


@primitive(_adagrad_loop)
def adagrad_step(w: Array, total: Array, g: Array, rate: float) -> None:
    """total += g^2; w += rate g / sqrt(total), all (N,): a step up the gradient g, shorter where many went before."""
    total += g * g
    w += rate * g / np.sqrt(total + _TINY)


class PairwiseLogisticState(NamedTuple):
    """w (N,), the gradient's buffer (N,), the sum of its squares (N,), rounds learned."""

    w: Array
    g: Array
    total: Array
    t: int


class PairwiseLogistic(NamedTuple):
    """Pairwise logistic: ours, all implied pairs with AdaGrad steps. Interaction: coactive.

    Each round is one step up the gradient of sum log sigma(w . (x_a - x_b)) over the pairs "a before b" that the
    correction implies (`Ranking.add_pair_gradient`), at `rate` / sqrt(the sum of squared gradients) a coordinate.
    """

    n_features: int
    space: Space
    rate: float = 0.1

    @property
    def version(self) -> int:
        """Of what it folds: a change of that raises it."""
        return 1

    @property
    def partial(self) -> bool:
        """Whether what was chosen is an answer: it need not be a whole order."""
        return True

    def init(self, rng: np.random.Generator) -> PairwiseLogisticState:
        wanted_count("n_features", self.n_features)
        wanted_positive("rate", self.rate)
        wanted_space(self.space)
        n = self.n_features
        return PairwiseLogisticState(np.zeros(n), np.zeros(n), np.zeros(n), 0)

    def propose(self, state: PairwiseLogisticState, x: Any, rng: np.random.Generator) -> Any:
        return self.space.argmax(state.w, x)

    def update(self, state: PairwiseLogisticState, x: Any, y: Any, feedback: Any) -> PairwiseLogisticState:
        state.g[:] = 0.0
        self.space.add_pair_gradient(state.g, state.w, x, feedback, y)
        return self.step(state, state.g)

    def direction(self, state: PairwiseLogisticState, x: Any, y: Any, feedback: Any) -> Array:
        """The gradient at the weights of `state`, N."""
        D = np.zeros(self.n_features)
        self.space.add_pair_gradient(D, state.w, x, feedback, y)
        return D

    def step(self, state: PairwiseLogisticState, D: Array) -> PairwiseLogisticState:
        """The state after an AdaGrad step up D (N,); owns `state`, as update does."""
        adagrad_step(state.w, state.total, D, self.rate)
        return PairwiseLogisticState(state.w, state.g, state.total, state.t + 1)

    def weights(self, state: PairwiseLogisticState) -> Array:
        return state.w
