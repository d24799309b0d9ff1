"""People who rate what they are shown: those that [A18] section 4 simulates, and those of a file of ratings."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from heedful.core.validation import MOST, check_count, describe, is_number, numbers
from heedful.jit.kernel import Ints, kernel
from heedful.spaces.slate import MOST as MOST_ITEMS
from heedful.spaces.slate import SlateContext, SlateRatings

Array = npt.NDArray[np.float64]

GAUSSIAN, UNIFORM, BERNOULLI = 0, 1, 2


class LowRankState(NamedTuple):
    """How many rounds were played."""

    t: int


class LowRank(NamedTuple):
    """Users who rate items of a hidden matrix Y (n x m) with noise: Gaussian (sd `width`), uniform around Y (support
    `width`) or Bernoulli(Y). A random user comes, everything is on offer, also again. Regret: the best of the row less
    what is expected of what was shown (the mean of a slate). Made by `gaussian_ratings` and its like."""

    Y: Array
    best: Array
    items: Ints
    noise: int
    width: float

    def init(self, rng: np.random.Generator) -> LowRankState:
        return LowRankState(0)

    def over(self, state: LowRankState, t: int) -> bool:
        return False

    def context(self, state: LowRankState, t: int, rng: np.random.Generator) -> SlateContext:
        return SlateContext(int(rng.random() * self.Y.shape[0]), self.items)

    def respond(self, state: LowRankState, x: SlateContext, shown: Ints, rng: np.random.Generator) -> SlateRatings:
        ratings = np.empty(shown.size)
        for r in range(shown.size):
            mean = self.Y[x.user, shown[r]]
            if self.noise == GAUSSIAN:
                ratings[r] = mean + self.width * rng.standard_normal()
            elif self.noise == UNIFORM:
                ratings[r] = mean + self.width * (rng.random() - 0.5)
            else:
                ratings[r] = 1.0 if rng.random() < mean else 0.0
        return SlateRatings(shown.copy(), ratings)

    def regret(self, state: LowRankState, x: SlateContext, shown: Ints) -> float:
        mean = 0.0
        for j in shown:
            mean += self.Y[x.user, j] / shown.size
        return self.best[x.user] - mean  # type: ignore[no-any-return]

    def advance(self, state: LowRankState, x: SlateContext, shown: Ints, feedback: SlateRatings) -> LowRankState:
        return LowRankState(state.t + 1)

    def value(self, user: int, item: int) -> float:
        """What the item is worth to the user: the expected rating."""
        return self.Y[user, item]  # type: ignore[no-any-return]


def gaussian_ratings(
    n_users: int = 200, n_items: int = 200, n_factors: int = 5, *, noise: float = 0.5, seed: int = 0
) -> LowRank:
    """[A18]: A and B of N(0, 1), Y = A B', ratings N(Y, noise^2). ValueError, naming what is wrong; so the others."""
    rng = _generator(n_users, n_items, n_factors, seed)
    A, B = rng.standard_normal((n_users, n_factors)), rng.standard_normal((n_items, n_factors))
    return _low_rank(A, B, GAUSSIAN, "noise", noise)


def uniform_ratings(
    n_users: int = 200, n_items: int = 200, n_factors: int = 5, *, width: float = 0.5, seed: int = 0
) -> LowRank:
    """[A18]: rows of A uniform on the simplex, B uniform on [0, 1], ratings uniform on Y = A B' +- `width` / 2."""
    A, B = _simplex_factors(n_users, n_items, n_factors, seed)
    return _low_rank(A, B, UNIFORM, "width", width)


def bernoulli_ratings(n_users: int = 200, n_items: int = 200, n_factors: int = 5, *, seed: int = 0) -> LowRank:
    """[A18]: A and B as in `uniform_ratings`; a rating is 1 with probability Y, else 0."""
    A, B = _simplex_factors(n_users, n_items, n_factors, seed)
    return _low_rank(A, B, BERNOULLI, "width", 0.0)


def _generator(n_users: int, n_items: int, n_factors: int, seed: int) -> np.random.Generator:
    for name, count in (("n_users", n_users), ("n_items", n_items), ("n_factors", n_factors)):
        check_count(name, count, most=MOST_ITEMS)
    check_count("seed", seed, least=0)
    return np.random.default_rng(seed)


def _simplex_factors(n_users: int, n_items: int, n_factors: int, seed: int) -> tuple[Array, Array]:
    rng = _generator(n_users, n_items, n_factors, seed)
    return rng.dirichlet(np.ones(n_factors), n_users), rng.random((n_items, n_factors))


def _low_rank(A: Array, B: Array, noise: int, name: str, width: float) -> LowRank:
    if not is_number(width, int, float) or not 0.0 <= width <= 1e50:
        raise ValueError(f"{name}: expected a number from 0 to 1e50, got {describe(width)}")
    Y = A @ B.T
    return LowRank(Y, Y.max(axis=1), np.arange(len(B)), noise, float(width))


# ---------------------------------------------------------------------------- ratings that were given once


class ReplayState(NamedTuple):
    """What is left of the items of each user (as in the world, the first `left` of each), who may still come."""

    items: Ints
    left: Ints
    users: Ints  # the first n
    n: int


class Replay(NamedTuple):
    """Users who rate as they once did: of user i, the items (rising) and values from starts[i] to starts[i + 1].

    A random user comes, of those who have something left; the items that the user rated are on offer, all, also again
    (`repeats`), or each only once: then the world is over when nobody has any left. Regret: the best rating on offer
    less that of what was shown (the mean of a slate). Made by `replay_ratings`.
    """

    starts: Ints
    items: Ints
    values: Array
    repeats: bool

    def init(self, rng: np.random.Generator) -> ReplayState:
        n = self.starts.size - 1
        left, users = np.empty(n, np.int64), np.empty(n, np.int64)
        size = 0
        for i in range(n):
            left[i] = self.starts[i + 1] - self.starts[i]
            if left[i] > 0:
                users[size] = i
                size += 1
        return ReplayState(self.items.copy(), left, users, size)

    def over(self, state: ReplayState, t: int) -> bool:
        return state.n == 0

    def context(self, state: ReplayState, t: int, rng: np.random.Generator) -> SlateContext:
        user = state.users[int(rng.random() * state.n)]
        start = self.starts[user]
        return SlateContext(int(user), state.items[start : start + state.left[user]])

    def respond(self, state: ReplayState, x: SlateContext, shown: Ints, rng: np.random.Generator) -> SlateRatings:
        ratings = np.empty(shown.size)
        for r in range(shown.size):
            ratings[r] = rating_of(self, x.user, shown[r])
        return SlateRatings(shown.copy(), ratings)

    def regret(self, state: ReplayState, x: SlateContext, shown: Ints) -> float:
        best, mean, p = -np.inf, 0.0, self.starts[x.user]
        for j in x.items:
            while self.items[p] < j:
                p += 1
            best = max(best, self.values[p])
        for j in shown:
            mean += rating_of(self, x.user, j) / shown.size
        return best - mean

    def advance(self, state: ReplayState, x: SlateContext, shown: Ints, feedback: SlateRatings) -> ReplayState:
        if self.repeats:
            return state
        user, start = x.user, self.starts[x.user]
        kept = 0
        for i in range(state.left[user]):
            j = state.items[start + i]
            if not np.any(shown == j):
                state.items[start + kept] = j
                kept += 1
        state.left[user] = kept
        n = state.n
        if kept == 0:
            for i in range(n):
                if state.users[i] == user:
                    state.users[i] = state.users[n - 1]
                    n -= 1
                    break
        return ReplayState(state.items, state.left, state.users, n)

    def value(self, user: int, item: int) -> float:
        """What the item is worth to the user: the rating, of an item among theirs."""
        return rating_of(self, user, item)


@kernel
def rating_of(world: Replay, user: int, item: int) -> float:
    """The rating that a user once gave to an item that is among theirs."""
    lo, hi = world.starts[user], world.starts[user + 1]
    while hi - lo > 1:
        mid = (lo + hi) // 2
        if world.items[mid] <= item:
            lo = mid
        else:
            hi = mid
    return world.values[lo]  # type: ignore[no-any-return]


def replay_ratings(
    users: npt.ArrayLike, items: npt.ArrayLike, values: npt.ArrayLike, *, repeats: bool = True
) -> Replay:
    """The world of these ratings: users, items (whole numbers from 0) and values (n,), each pair once.

    ValueError, naming what is wrong, where the three do not fit together.
    """
    whose, what = _whole("users", users), _whole("items", items)
    ratings = numbers("values", values, "numbers, one for each rating").astype(np.float64)
    for name, column in (("items", what), ("values", ratings)):
        if column.shape != whose.shape:
            raise ValueError(f"{name}: expected {whose.size}, one for each rating, got shape {column.shape}")
    wrong = np.flatnonzero(~(np.abs(ratings) <= MOST))
    if wrong.size:
        raise ValueError(f"values: expected finite numbers, got {ratings[wrong[0]]} at [{wrong[0]}]")
    if not isinstance(repeats, bool):
        raise ValueError(f"repeats: expected True or False, got {describe(repeats)}")
    order = np.lexsort((what, whose))
    whose, what, ratings = whose[order], what[order], ratings[order]
    twice = np.flatnonzero((np.diff(whose) == 0) & (np.diff(what) == 0))
    if twice.size:
        i = twice[0]
        raise ValueError(f"items: expected each once for user {whose[i]}, got {what[i]} twice")
    starts = np.searchsorted(whose, np.arange(whose[-1] + 2))
    return Replay(starts, what, ratings, repeats)


def _whole(name: str, value: npt.ArrayLike) -> Ints:
    array = numbers(name, value, "whole numbers from 0, one for each rating")
    if array.ndim != 1 or array.size == 0 or array.dtype.kind not in "iu":
        raise ValueError(f"{name}: expected whole numbers from 0, one for each rating, got {describe(array)}")
    wrong = np.flatnonzero((array < 0) | (array >= MOST_ITEMS))
    if wrong.size:
        raise ValueError(
            f"{name}: expected whole numbers, 0 to {MOST_ITEMS - 1}, got {array[wrong[0]]} at [{wrong[0]}]"
        )
    return array.astype(np.int64)
