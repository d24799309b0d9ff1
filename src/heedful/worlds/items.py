"""A pool of items for one person, from which items are consumed: simulated movie recommendation ([J15] section
6.1.2).

[J15]: Shivaswamy & Joachims, *Coactive Learning*, JAIR 53, 2015.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from heedful.core.validation import describe, finite_array, finite_table, numbers
from heedful.jit.kernel import Floats, Ints, primitive, scores
from heedful.worlds.users import ItemUser, check_user, rounded_ratings

Array = npt.NDArray[np.float64]


class PoolState(NamedTuple):
    """The items left in the pool of an `ItemPool` environment; of each array only the first `remaining` entries are in
    use.

    - `rows` (m x N): the N features of each item.
    - `utilities` (m,): the true utility of each item.
    - `ratings` (m,): the person's rating of each item.
    - `remaining`: the number of items left in the pool.
    """

    rows: Floats
    utilities: Array
    ratings: Array
    remaining: int


def _close_ranks_loop(rows: Floats, utilities: Array, ratings: Array, dropped: npt.NDArray[np.bool_]) -> int:
    kept = 0
    for j in range(dropped.size):
        if not dropped[j]:
            if kept < j:
                for i in range(rows.shape[1]):  # numba takes twice as long to copy a row that might overlap
                    rows[kept, i] = rows[j, i]
                utilities[kept] = utilities[j]
                ratings[kept] = ratings[j]
            kept += 1
    return kept


@primitive(_close_ranks_loop)
def close_ranks(rows: Floats, utilities: Array, ratings: Array, dropped: npt.NDArray[np.bool_]) -> int:
    """Move the entries that are not `dropped` to the front of three arrays, in order and in place; return their number.

    The arrays have an entry for each of m items: `rows` (m x N), N features, `utilities` (m,) and `ratings` (m,).
    `dropped` (m,) says for each item whether it is dropped.
    """
    stay = np.flatnonzero(~dropped)
    for values in (rows, utilities, ratings):
        values[: stay.size] = values[stay]
    return stay.size


class ItemPool(NamedTuple):
    """A simulated environment of one person and m items, each of which can be shown once: an item that was shown, or
    came back as feedback, leaves the pool.

    - `X` (m x N): the N features of each item.
    - `utilities` (m,): the true utility w* . x of each item, for the person's weights w*.
    - `ratings` (m,): the person's rating of each item.
    - `user`: the simulated person, who answers an item with a better one.

    Regret is the utility of the best item left minus that of the item shown (of two, their mean). Made by `item_pool`.
    """

    X: Floats
    utilities: Array
    ratings: Array
    user: ItemUser

    def init(self, rng: np.random.Generator) -> PoolState:
        return PoolState(self.X.copy(), self.utilities.copy(), self.ratings.copy(), self.utilities.size)

    def over(self, state: PoolState, t: int) -> bool:
        return state.remaining == 0

    def context(self, state: PoolState, t: int, rng: np.random.Generator) -> Floats:
        return state.rows[: state.remaining]

    def respond(self, state: PoolState, x: Floats, shown: Ints, rng: np.random.Generator) -> Ints:
        u, r = state.utilities[: state.remaining], state.ratings[: state.remaining]
        if shown.size == 1:
            out = np.empty(1, np.int64)
            out[0] = self.user.pick(u, r, shown[0], rng)
            return out
        ahead = self.user.prefer(u, r, shown[0], shown[1])
        if ahead > 0.0 or shown[0] == shown[1]:
            return shown[:1].copy()
        if ahead < 0.0:
            return shown[1:2].copy()
        return shown.copy()

    def regret(self, state: PoolState, x: Floats, shown: Ints) -> float:
        u = state.utilities[: state.remaining]
        mean = 0.0
        for j in shown:
            mean += u[j] / shown.size
        return u.max() - mean  # type: ignore[no-any-return]

    def advance(self, state: PoolState, x: Floats, shown: Ints, feedback: Ints) -> PoolState:
        dropped = np.zeros(state.remaining, np.bool_)
        for j in shown:
            dropped[j] = True
        for j in feedback:
            dropped[j] = True
        remaining = close_ranks(state.rows, state.utilities, state.ratings, dropped)
        return PoolState(state.rows, state.utilities, state.ratings, remaining)


def item_pool(X: Floats, w_star: Array, user: ItemUser, ratings: npt.ArrayLike | None = None) -> ItemPool:
    """Return a simulated environment in which one person is shown one of m items at a time, each item once.

    `X` (m x N): the N features of each item; `w_star` (N,): the person's utility weights; `user`: the simulated person,
    who says how items are answered; `ratings` (m,): the person's ratings of the items. Where these are NaN or not
    given, they are the utilities, rounded half up and clipped to 1..5. Raise ValueError, naming the argument, if they
    do not fit together.
    """
    check_user(user, "pick", "picks items")
    X = finite_table("X", X)
    utilities = scores(X, finite_array("w_star", w_star, 1, X.shape[1]))
    observed = np.full(utilities.size, np.nan)
    if ratings is not None:
        array = numbers("ratings", ratings, "a number for every item, NaN where there is none").astype(np.float64)
        if array.shape != observed.shape or np.isinf(array).any():
            raise ValueError(
                f"ratings: expected {observed.size} of them, NaN where there is none, got {describe(ratings)}"
            )
        observed = array
    return ItemPool(X, utilities, np.where(np.isnan(observed), rounded_ratings(utilities), observed), user)


def taste(X: Floats, seed: int) -> tuple[Array, Array]:
    """Return (random utility weights w* (N,), |w*| = 1; ratings (m,) of m items that follow from them), drawn from
    `seed`, for tables of items without ratings.

    `X` (m x N): the N standardised features of each item. A rating is the utility, shifted and scaled to mean 3 and
    standard deviation 1 over the items, rounded half up and clipped to 1..5.
    """
    w_star: Array = np.random.default_rng([seed, 7]).standard_normal((X.shape[1],))
    w_star /= np.linalg.norm(w_star)
    u = scores(X, w_star)
    return w_star, rounded_ratings(3.0 + (u - u.mean()) / max(float(u.std()), 1e-12))
