"""Simulated people who rate the items that they are shown: by a low-rank model ([A18] section 4), or by the known
ratings of a data set.

[A18]: Dadkhahi & Negahban, *Alternating Linear Bandits for Online Matrix-Factorization Recommendation*, 2018.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from heedful.core.validation import MOST, check_between, check_count, check_flag, describe, numbers
from heedful.jit.kernel import Ints, kernel
from heedful.spaces.slate import MOST as MOST_ITEMS
from heedful.spaces.slate import SlateContext, SlateRatings
from heedful.worlds.answers import without_user

Array = npt.NDArray[np.float64]

GAUSSIAN, UNIFORM, BERNOULLI = 0, 1, 2


class LowRankState(NamedTuple):
    """The state of the simulated environment `LowRank`; `t` is the number of rounds played."""

    t: int


class LowRank(NamedTuple):
    """A simulated environment of n users whose expected ratings of m items are a hidden low-rank matrix ([A18] section
    4).

    - `Y` (n x m): the expected rating of each item by each user.
    - `best` (n,): the highest expected rating of each user.
    - `items` (m,): the indices of the items, 0 to m - 1.
    - `noise`: how a rating scatters around its mean in Y: GAUSSIAN with standard deviation `width`, UNIFORM on Y +-
      `width` / 2, or BERNOULLI, which is 1 with probability Y and else 0.
    - `width`: the width of this noise.

    In each round a random user comes, and all items can be shown, also repeatedly. Regret is the user's highest
    expected rating minus that of the item shown (of a slate, the mean). Made by `gaussian_ratings`, `uniform_ratings`
    and `bernoulli_ratings`.
    """

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


def gaussian_ratings(
    n_users: int = 200, n_items: int = 200, n_factors: int = 5, *, noise: float = 0.5, seed: int = 0
) -> LowRank:
    """Return a simulated environment with the Gaussian ratings of [A18]: user factors A (n_users x n_factors) and item
    factors B (n_items x n_factors) have entries N(0, 1), Y = A B', and ratings are N(Y, noise^2). All is drawn from
    `seed`.

    Raise ValueError, naming the argument, if one is not valid.
    """
    rng = _generator(n_users, n_items, n_factors, seed)
    A, B = rng.standard_normal((n_users, n_factors)), rng.standard_normal((n_items, n_factors))
    return _low_rank(A, B, GAUSSIAN, "noise", noise)


def uniform_ratings(
    n_users: int = 200, n_items: int = 200, n_factors: int = 5, *, width: float = 0.5, seed: int = 0
) -> LowRank:
    """Return a simulated environment with the uniform ratings of [A18]: user factors A (n_users x n_factors) have rows
    uniform on the simplex, item factors B (n_items x n_factors) entries uniform on [0, 1], Y = A B', and ratings are
    uniform on Y +- `width` / 2. All is drawn from `seed`.

    Raise ValueError, naming the argument, if one is not valid.
    """
    A, B = _simplex_factors(n_users, n_items, n_factors, seed)
    return _low_rank(A, B, UNIFORM, "width", width)


def bernoulli_ratings(n_users: int = 200, n_items: int = 200, n_factors: int = 5, *, seed: int = 0) -> LowRank:
    """Return a simulated environment with the Bernoulli ratings of [A18]: a rating is 1 with probability Y = A B', else
    0.

    User factors A (n_users x n_factors) have rows uniform on the simplex, item factors B (n_items x n_factors) entries
    uniform on [0, 1], drawn from `seed`. Raise ValueError, naming the argument, if one is not valid.
    """
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
    check_between(name, width, 0.0, 1e50)
    Y = A @ B.T
    return LowRank(Y, Y.max(axis=1), np.arange(len(B)), noise, float(width))


# ---------------------------------------------------------------------------- ratings from a file


class ReplayState(NamedTuple):
    """The state of `Replay`: the items that each of U users has not consumed yet.

    - `items` (n,): the items that each user rated, one user after the other; the first remaining[i] in the part of
      user i are not consumed yet.
    - `remaining` (U,): the number of items left for each user.
    - `users` (U,): indices of users; the first `n` are those with items left.
    - `n`: the number of users with items left.
    """

    items: Ints
    remaining: Ints
    users: Ints
    n: int


class Replay(NamedTuple):
    """A simulated environment of U users who give n known ratings, such as those of a data set, when they are shown the
    items.

    - `starts` (U + 1,): user i has the ratings from starts[i] to starts[i + 1] - 1.
    - `items` (n,): the indices of the items that each user rated, ascending, one user after the other.
    - `values` (n,): the ratings of these items.
    - `repeats`: whether an item may be shown to a user again; otherwise each item comes once for each user, and the
      simulation ends when no user has items left.

    In each round a random user with items left comes, and only items that this user rated can be shown. Regret is the
    user's best rating of an available item minus that of the item shown (of a slate, the mean). Made by
    `replay_ratings`.
    """

    starts: Ints
    items: Ints
    values: Array
    repeats: bool

    def init(self, rng: np.random.Generator) -> ReplayState:
        n = self.starts.size - 1
        remaining, users = np.empty(n, np.int64), np.empty(n, np.int64)
        size = 0
        for i in range(n):
            remaining[i] = self.starts[i + 1] - self.starts[i]
            if remaining[i] > 0:
                users[size] = i
                size += 1
        return ReplayState(self.items.copy(), remaining, users, size)

    def over(self, state: ReplayState, t: int) -> bool:
        return state.n == 0

    def context(self, state: ReplayState, t: int, rng: np.random.Generator) -> SlateContext:
        user = state.users[int(rng.random() * state.n)]
        start = self.starts[user]
        return SlateContext(int(user), state.items[start : start + state.remaining[user]])

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
        for i in range(state.remaining[user]):
            j = state.items[start + i]
            if not np.any(shown == j):
                state.items[start + kept] = j
                kept += 1
        state.remaining[user] = kept
        n = without_user(state.users, state.n, user) if kept == 0 else state.n
        return ReplayState(state.items, state.remaining, state.users, n)


@kernel
def rating_of(world: Replay, user: int, item: int) -> float:
    """Return the rating that `user` gave to `item` (indices) in `world`; the user must have rated it."""
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
    """Return a simulated environment that answers with n known ratings: `users` and `items` (indices from 0) and
    `values` (the ratings), (n,) each, with each pair of user and item at most once.

    With `repeats` an item may be shown to a user again, otherwise only once. Raise ValueError, naming the argument, if
    the three do not fit together.
    """
    user_index, item_index = _whole("users", users), _whole("items", items)
    ratings = numbers("values", values, "numbers, one for each rating").astype(np.float64)
    for name, column in (("items", item_index), ("values", ratings)):
        if column.shape != user_index.shape:
            raise ValueError(f"{name}: expected {user_index.size}, one for each rating, got shape {column.shape}")
    wrong = np.flatnonzero(~(np.abs(ratings) <= MOST))
    if wrong.size:
        raise ValueError(f"values: expected finite numbers, got {ratings[wrong[0]]} at [{wrong[0]}]")
    check_flag("repeats", repeats)
    order = np.lexsort((item_index, user_index))
    user_index, item_index, ratings = user_index[order], item_index[order], ratings[order]
    twice = np.flatnonzero((np.diff(user_index) == 0) & (np.diff(item_index) == 0))
    if twice.size:
        i = twice[0]
        raise ValueError(f"items: expected each once for user {user_index[i]}, got {item_index[i]} twice")
    starts = np.searchsorted(user_index, np.arange(user_index[-1] + 2))
    return Replay(starts, item_index, ratings, repeats)


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
