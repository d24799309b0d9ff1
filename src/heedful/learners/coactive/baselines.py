"""Two baselines that learn nothing, for comparison with a learner: a fixed and a random order."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from heedful.core.declaration import declare
from heedful.core.space import Space
from heedful.core.validation import check_linear
from heedful.jit.kernel import Floats, Ints

Array = npt.NDArray[np.float64]


class OrderState(NamedTuple):
    """The state of `FixedOrder` and `RandomOrder` for N features, from which nothing is learned."""

    w: Array
    """utility weights, always 0 (N,)"""
    t: int
    """number of rounds so far"""


@declare(version=1, simulation_only="it learns nothing", partial=True)
class FixedOrder(NamedTuple):
    """Fixed order: ours, for comparison, the candidates as they come. Interaction: coactive.

    Shows the object y of greatest utility w . phi(x, y), phi being `n_features` joint features, for weights w = 0,
    where all candidates tie: with `Ranking` as the `space` the candidates by their index, with `WithBaseScore` the
    order by the caller's own score. It learns nothing.
    """

    n_features: int
    space: Space

    def init(self, rng: np.random.Generator) -> OrderState:
        check_linear(self.n_features, self.space)
        return OrderState(np.zeros(self.n_features), 0)

    def propose(self, state: OrderState, x: Floats, rng: np.random.Generator) -> Ints:
        return self.space.argmax(state.w, x)

    def update(self, state: OrderState, x: Floats, y: Ints, feedback: Ints) -> OrderState:
        return OrderState(state.w, state.t + 1)

    def weights(self, state: OrderState) -> Array:
        return state.w


@declare(version=1, simulation_only="it learns nothing", partial=True)
class RandomOrder(NamedTuple):
    """Random order: ours, for comparison, a random object each time. Interaction: coactive.

    Shows the argmax for one feature, drawn at random for each candidate, in place of the candidates' own `n_features`:
    with `Ranking` as the `space` every order is equally likely, with `Assignment` every assignment. It learns nothing.
    """

    n_features: int
    space: Space

    def init(self, rng: np.random.Generator) -> OrderState:
        check_linear(self.n_features, self.space)
        return OrderState(np.zeros(self.n_features), 0)

    def propose(self, state: OrderState, x: Floats, rng: np.random.Generator) -> Ints:
        return self.space.argmax(np.ones(1), rng.random((*x.shape[:-1], 1)))

    def update(self, state: OrderState, x: Floats, y: Ints, feedback: Ints) -> OrderState:
        return OrderState(state.w, state.t + 1)

    def weights(self, state: OrderState) -> Array:
        return state.w
