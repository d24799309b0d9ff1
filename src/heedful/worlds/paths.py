"""Ways through a graph whose edges change, round after round, and someone who goes another way."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from heedful.doors import wanted_count
from heedful.kernel import Floats, Ints, scores
from heedful.spaces_structured import Path, grid
from heedful.worlds.users import wanted_user

Array = npt.NDArray[np.float64]


class PathStream(NamedTuple):
    """X (T x E x N): in round t, the edges of the graph described; rounds beyond the last begin again.

    w_star (N,) are the utility weights of the user, who knows the best path (`user.detour`).
    """

    X: Floats
    w_star: Array
    space: Path
    user: Any

    def init(self, rng: np.random.Generator) -> Ints:
        return rng.permutation(self.X.shape[0])

    def over(self, state: Ints, t: int) -> bool:
        return False

    def context(self, state: Ints, t: int, rng: np.random.Generator) -> Floats:
        x: Floats = self.X[state[t % state.size]]
        return x

    def respond(self, state: Ints, x: Floats, shown: Ints, rng: np.random.Generator) -> Ints:
        best = self.space.argmax(self.w_star, x)
        other: Ints = self.user.detour(scores(x, self.w_star), best, shown, self.space.tails)
        return other

    def regret(self, state: Ints, x: Floats, shown: Ints) -> float:
        u = scores(x, self.w_star)
        gap = 0.0
        for e in self.space.argmax(self.w_star, x):
            gap += u[e]
        for e in shown:
            gap -= u[e]
        return gap

    def advance(self, state: Ints, x: Floats, shown: Ints, feedback: Ints) -> Ints:
        return state


def synthetic_paths(
    rounds: int, rows: int, columns: int, n_features: int, user: Any, seed: int = 0
) -> tuple[PathStream, Array]:
    """Paths from corner to corner of a grid, and w* (N,): normal features, |w*| = 1."""
    for name, value in (("rounds", rounds), ("n_features", n_features)):
        wanted_count(name, value)
    wanted_count("seed", seed, least=0, most=2**128)
    wanted_user(user, "detour", "goes another way")
    space = grid(rows, columns)
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((rounds, space.tails.size, n_features))
    w_star = rng.standard_normal(n_features)
    w_star /= np.linalg.norm(w_star)
    return PathStream(X, w_star, space, user), w_star
