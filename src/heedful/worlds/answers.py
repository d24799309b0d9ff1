"""Functions for the answers of simulated people, which numba can compile: sort by value, move items to the top of a
ranking, draw at random, measure gains in utility.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from heedful.core.space import Space
from heedful.jit.kernel import Floats, Ints, kernel, primitive, scores
from heedful.spaces.ranking import difference

Array = npt.NDArray[np.float64]


@kernel
def insert(chosen: Ints, size: int, k: int, values: Array, j: int) -> int:
    """Insert the index `j` into chosen[:size], which holds the indices of the greatest values so far; return the new
    size.

    `chosen` (k + 1,) is written in place: its first `size` entries are sorted by descending value, ties in order of
    arrival. `values` (m,): values[i] is the value of index i. Only the `k` best indices are kept, so j itself may drop
    out.
    """
    i = size
    while i > 0 and values[chosen[i - 1]] < values[j]:
        chosen[i] = chosen[i - 1]
        i -= 1
    chosen[i] = j
    return min(size + 1, k)


@kernel
def move_to_front(chosen: Ints, size: int, shown: Ints, m: int) -> Ints:
    """Return the ranking with the candidates chosen[:size] on top, then the other candidates of `shown` in the order
    shown, as long as `shown`.

    `chosen`: candidate indices in the order that they get; `shown`: candidate indices, best first; `m`: the number of
    all candidates.
    """
    picked = np.zeros(m, np.int64)
    out = np.empty(shown.size + 1, np.int64)  # one place more: picked candidates are written, then overwritten
    for i in range(size):
        out[i] = chosen[i]
        picked[chosen[i]] = 1
    position = size
    for i in range(shown.size):
        out[position] = shown[i]
        position += 1 - picked[shown[i]]
    return out[: shown.size]


@kernel
def nth(values: Array, value: float, n: int) -> int:
    """Return the index of the `n`-th (from 0) entry of `values` (m,) that equals `value`; -1 if fewer than n + 1
    entries do.
    """
    for j in range(values.size):
        if values[j] == value:
            if n == 0:
                return j
            n -= 1
    return -1


def _least_gaining_loop(utilities: Array, y: int, needed: float) -> int:
    best, least = y, np.inf
    for j in range(utilities.size):
        if utilities[j] - utilities[y] >= needed and utilities[j] < least:
            best, least = j, utilities[j]
    return best


@primitive(_least_gaining_loop)
def least_gaining(utilities: Array, y: int, needed: float) -> int:
    """Return the index of the item of least utility among those with at least `needed` more utility than item `y`, ties
    to the lowest index; y if there is none. `utilities` (m,)."""
    enough = np.where(utilities - utilities[y] >= needed, utilities, np.inf)
    best = int(enough.argmin())
    return best if enough[best] < np.inf else y


def _next_above_loop(ratings: Array, rating: float) -> float:
    nearest = np.inf
    for j in range(ratings.size):
        if rating < ratings[j] < nearest:
            nearest = ratings[j]
    return nearest


@primitive(_next_above_loop)
def next_above(ratings: Array, rating: float) -> float:
    """Return the smallest of `ratings` (m,) that is above `rating`; infinity if there is none."""
    return float(np.min(ratings, where=ratings > rating, initial=np.inf))


@kernel
def gain(space: Space, x: Floats, w: Array, ybar: Ints, y: Ints) -> float:
    """Return the gain in utility from the object `y` to `ybar` of the context `x`, w . (phi(x, ybar) - phi(x, y)), in
    any space, for weights `w` (N,) of N features."""
    D = difference(space, w.size, x, ybar, y)
    return scores(D.reshape(1, -1), w)[0]  # type: ignore[no-any-return]


@kernel
def random_share(sure: float, gained: float, needed: float) -> float:
    """Return the greatest probability p of giving a random answer, in place of a sure one, for which the expected gain
    in utility suffices: (1 - p) sure + p gained >= needed; 0 if there is no such p.

    `sure`: the gain in utility of the sure answer; `gained`: the expected gain of the random one; `needed`: the least
    expected gain that suffices. p is (sure - needed) / (sure - gained), clipped to 0..1, but 1 where gained >= needed:
    there the fraction may be negative.
    """
    if gained >= needed:
        return 1.0
    return min(max((sure - needed) / (sure - gained), 0.0), 1.0) if sure > gained else 0.0


@kernel
def draw_to_front(shown: Ints, size: int, rng: np.random.Generator) -> Ints:
    """Return a copy of `shown` with `size` of its candidates, drawn at random, moved to the front in the order of the
    draws."""
    out = shown.copy()
    for i in range(size):
        j = rng.integers(i, out.size)
        out[i], out[j] = out[j], out[i]
    return out


@kernel
def without_user(users: Ints, n: int, user: int) -> int:
    """Remove the index `user` from users[:n], in place, and return the new n. The last of these users takes the free
    place; nothing happens if `user` is not among them.
    """
    for i in range(n):
        if users[i] == user:
            users[i] = users[n - 1]
            return n - 1
    return n
