"""A learner of rankings that learns nothing: its weights are its parameters. For experiments whose truth is known."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np


class State(NamedTuple):
    """How many answers came."""

    t: int


class FixedWeights(NamedTuple):
    """Ranks by the first four features, whatever people answer."""

    n_features: int
    space: Any
    w0: float = 0.0
    w1: float = 0.0
    w2: float = 0.0
    w3: float = 0.0
    interaction = "coactive"
    version = 1

    def init(self, rng: Any) -> State:
        return State(0)

    def weights(self, state: State) -> Any:
        w = np.zeros(self.n_features)
        w[:4] = self.w0, self.w1, self.w2, self.w3
        return w

    def propose(self, state: State, x: Any, rng: Any) -> Any:
        return self.space.argmax(self.weights(state), x)

    def update(self, state: State, x: Any, y: Any, feedback: Any) -> State:
        return State(state.t + 1)
