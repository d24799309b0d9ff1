"""Sets whose members overlap, round after round, and someone who exchanges members.

The best set is the best there is, found by trying all of them, not by greed: regret is against that.
"""

from __future__ import annotations

from itertools import combinations
from math import comb
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from heedful.doors import wanted_count
from heedful.kernel import Floats, Ints
from heedful.spaces_structured import Subset
from heedful.worlds.answers import gain
from heedful.worlds.queries import StreamState
from heedful.worlds.users import wanted_user

Array = npt.NDArray[np.float64]

MOST_SETS = 20_000
"""Of one context, as many as are tried for the best."""


class SubsetStream(NamedTuple):
    """X (T x m x N): in round t, what each of m candidates covers; rounds beyond the last begin again.

    w_star (N,), nothing below 0, are the utility weights of the user; best (T x k) the sets of greatest utility
    (`user.exchange`). Made by `subset_stream`.
    """

    X: Floats
    w_star: Array
    best: Ints
    space: Subset
    user: Any

    def init(self, rng: np.random.Generator) -> StreamState:
        return StreamState(rng.permutation(self.X.shape[0]), 0)

    def over(self, state: StreamState, t: int) -> bool:
        return False

    def context(self, state: StreamState, t: int, rng: np.random.Generator) -> Floats:
        x: Floats = self.X[state.order[t % state.order.size]]
        return x

    def respond(self, state: StreamState, x: Floats, shown: Ints, rng: np.random.Generator) -> Ints:
        best = self.best[state.order[state.t % state.order.size]]
        other: Ints = self.user.exchange(self.space, x, self.w_star, best, shown)
        return other

    def regret(self, state: StreamState, x: Floats, shown: Ints) -> float:
        best = self.best[state.order[state.t % state.order.size]]
        return gain(self.space, x, self.w_star, best, shown)

    def advance(self, state: StreamState, x: Floats, shown: Ints, feedback: Ints) -> StreamState:
        return StreamState(state.order, state.t + 1)


def synthetic_subsets(
    rounds: int, candidates: int, k: int, n_features: int, user: Any, seed: int = 0
) -> tuple[SubsetStream, Array]:
    """Candidates that cover each feature with chance .3, as much as a uniform number; w* >= 0 (N,), |w*| = 1.

    ValueError where there are fewer candidates than k, or more sets than MOST_SETS to try.
    """
    for name, value in (("rounds", rounds), ("k", k), ("n_features", n_features)):
        wanted_count(name, value)
    wanted_count("candidates", candidates, least=k)
    if comb(candidates, k) > MOST_SETS:
        raise ValueError(f"k: wanted at most {MOST_SETS} sets to try, got {comb(candidates, k)}")
    wanted_count("seed", seed, least=0, most=2**128)
    wanted_user(user, "exchange", "exchanges members of a set")
    rng = np.random.default_rng(seed)
    X = rng.random((rounds, candidates, n_features)) * (rng.random((rounds, candidates, n_features)) < 0.3)
    w_star = np.abs(rng.standard_normal(n_features))
    w_star /= np.linalg.norm(w_star)
    sets = np.array([*combinations(range(candidates), k)], np.int64)  # sets x k
    covered = [np.sqrt(x[sets].sum(axis=1)) @ w_star for x in X]
    best = sets[[int(u.argmax()) for u in covered]]
    return SubsetStream(X, w_star, np.ascontiguousarray(best), Subset(k), user), w_star
