from typing import Any, NamedTuple

import numpy as np

from heedful.jit.kernel import Floats


class State(NamedTuple):
    w: Floats  # N
    t: int  # lessons


class Mine(NamedTuple):
    """Forgetful perceptron: an example. Interaction: coactive."""

    n_features: int
    space: Any
    keep: float = 0.99  # of what was learned before, a lesson

    def init(self, rng: np.random.Generator) -> State:
        if not 0 < self.keep <= 1:
            raise ValueError(f"keep: expected a number above 0, at most 1, got {self.keep!r}")
        return State(np.zeros(self.n_features), 0)

    def propose(self, state: State, x: Any, rng: np.random.Generator) -> Any:
        return self.space.argmax(state.w, x)

    def update(self, state: State, x: Any, y: Any, feedback: Any) -> State:
        state.w[:] *= self.keep
        self.space.add_difference(state.w, x, feedback, y, 1.0)  # w += phi(x, ybar) - phi(x, y)
        return State(state.w, state.t + 1)

    def weights(self, state: State) -> Floats:
        return state.w
