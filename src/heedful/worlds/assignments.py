"""People to be assigned to slots, round after round: a structured space with someone who rearranges."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from heedful.doors import wanted_count
from heedful.kernel import Floats, Ints, scores
from heedful.spaces import Assignment
from heedful.worlds.users import wanted_user

Array = npt.NDArray[np.float64]


class AssignmentStream(NamedTuple):
    """X (T x m x slots x N): in round t, m people described for each slot; rounds beyond the last begin again.

    w_star (N,) are the utility weights of the user, who knows the best assignment (`user.rearrange`).
    """

    X: Floats
    w_star: Array
    space: Assignment
    user: Any

    def init(self, rng: np.random.Generator) -> Ints:
        return rng.permutation(self.X.shape[0])

    def over(self, state: Ints, t: int) -> bool:
        return False

    def context(self, state: Ints, t: int, rng: np.random.Generator) -> Floats:
        x: Floats = self.X[state[t % state.size]]
        return x

    def utilities(self, x: Floats) -> Array:
        """The utility of each person in each slot (m x slots)."""
        m, slots, n = x.shape
        return scores(x.reshape(m * slots, n), self.w_star).reshape(m, slots)

    def respond(self, state: Ints, x: Floats, shown: Ints, rng: np.random.Generator) -> Ints:
        rearranged: Ints = self.user.rearrange(self.utilities(x), self.space.argmax(self.w_star, x), shown)
        return rearranged

    def regret(self, state: Ints, x: Floats, shown: Ints) -> float:
        u = self.utilities(x)
        best = self.space.argmax(self.w_star, x)
        gap = 0.0
        for s in range(shown.size):
            gap += u[best[s], s] - u[shown[s], s]
        return gap

    def advance(self, state: Ints, x: Floats, shown: Ints, feedback: Ints) -> Ints:
        return state


def synthetic_assignments(
    rounds: int, people: int, slots: int, n_features: int, user: Any, seed: int = 0
) -> AssignmentStream:
    """Normal features, |w*| = 1. ValueError where there are fewer people than slots."""
    for name, value in (("rounds", rounds), ("slots", slots), ("n_features", n_features)):
        wanted_count(name, value)
    wanted_count("people", people, least=slots)
    wanted_count("seed", seed, least=0, most=2**128)
    wanted_user(user, "rearrange", "rearranges assignments")
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((rounds, people, slots, n_features))
    w_star = rng.standard_normal(n_features)
    return AssignmentStream(X, w_star / np.linalg.norm(w_star), Assignment(slots), user)
