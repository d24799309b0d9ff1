"""A learner of rankings that learns nothing: its weights are what its parameter says. For experiments whose truth is
known."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np


class State(NamedTuple):
    """How many answers came."""

    t: int


class Fixed(NamedTuple):
    """Ranks by `tilt` times the first feature, whatever people answer."""

    n_features: int
    space: Any
    tilt: float = 1.0
    interaction = "coactive"
    version = 1

    def init(self, rng: Any) -> State:
        return State(0)

    def weights(self, state: State) -> Any:
        w = np.zeros(self.n_features)
        w[0] = self.tilt
        return w

    def propose(self, state: State, x: Any, rng: Any) -> Any:
        return self.space.argmax(self.weights(state), x)

    def update(self, state: State, x: Any, y: Any, feedback: Any) -> State:
        return State(state.t + 1)
