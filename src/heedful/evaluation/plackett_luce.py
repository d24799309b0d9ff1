"""Lists drawn at random around a ranking, so that every list has a known probability: Plackett-Luce over ranks.

The item at rank r = 1, ..., m has the weight r^(-1 / temperature). Items are drawn one after the other without
replacement, each with its share of the weight that is left (Plackett 1975). Ranks, not scores, have the weights, so
that a temperature means the same whatever the scale of scores: near 0 the ranking itself is drawn, at infinity any
list.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


def weights_of(m: int, temperature: float) -> Array:
    """Return the weights r^(-1 / temperature) of the m ranks r = 1, ..., m (m,)."""
    found: Array = np.arange(1.0, m + 1.0) ** (-1.0 / temperature)
    return found


def draw(m: int, size: int, temperature: float, rng: np.random.Generator) -> Ints:
    """Draw a list of `size` out of m ranked items with `rng`; return their ranks (size,), from 0, in the order to show
    them.

    `temperature` > 0 says how far the list may depart from the ranking: near 0 it is the ranking itself, at infinity
    any list.
    """
    keys = -np.log(np.arange(1.0, m + 1.0)) / temperature + rng.gumbel(size=m)  # Gumbel top-k
    return np.asarray(np.argsort(-keys, kind="stable")[:size], np.int64)


def probability(ranks: Ints, m: int, temperature: float) -> float:
    """Return the probability that `draw` at this `temperature` gives one particular list of k out of m items.

    `ranks` (k,): the ranks, from 0, of the items of the list, in order. The result is 0 if it is below 1e-308."""
    left, each = _left(ranks, m, temperature)
    return float(np.exp((np.log(each) - np.log(left)).sum()))


def pair_weights(ranks: Ints, m: int, temperature: float) -> Array:
    """Return a weight for each pair of neighbours (k // 2,), at positions (1, 2), (3, 4), ..., of a list of k items.

    The weight is 1 / (2 P), where P is the probability that `draw` at this `temperature` puts the two in the order
    shown rather than the other, given the rest of the list. With it both orders count as if they were equally likely.
    `ranks` (k,): the ranks, from 0 out of m items, of the items of the list."""
    left, each = _left(ranks, m, temperature)
    pairs = ranks.size // 2
    before, first, second = left[: 2 * pairs : 2], each[: 2 * pairs : 2], each[1 : 2 * pairs : 2]
    # Both orders remove the same two items, so the factors of all later items cancel.
    shown, other = 1.0 / (before - first), 1.0 / (before - second)
    return np.asarray(0.5 * (shown + other) / shown, np.float64)


@lru_cache(maxsize=256)
def place_probabilities(m: int, temperature: float) -> Array:
    """Return the probability (m, 3) that `draw` at this `temperature` puts each of m >= 3 items in each of the first
    three places.

    Row r is the item at rank r, from 0. The array is shared between calls and read-only."""
    w = weights_of(m, temperature)
    total = w.sum()
    second = w / (total * (total - w))  # first s, divided by what is left: P(r in place 2 | s in place 1) = w_r / left
    left = np.where(np.eye(m, dtype=bool), np.inf, total - w[:, None] - w[None, :])
    third = second[:, None] * w[None, :] / left  # first s, second q
    found = np.empty((m, 3))
    found[:, 0] = w / total
    found[:, 1] = w * (second.sum() - second)
    found[:, 2] = w * (third.sum() - third.sum(axis=0) - third.sum(axis=1))
    found.flags.writeable = False
    return found


def step_probabilities(ranks: Ints, m: int, temperature: float) -> Array:
    """Return the probability (k,) that `draw` puts each of the k items of a list in its place, given the items before
    it.

    `ranks` (k,): the ranks, from 0 out of m items, of the items of the list. The product of the result is
    `probability`."""
    left, each = _left(ranks, m, temperature)
    return np.asarray(each / left, np.float64)


def _left(ranks: Ints, m: int, temperature: float) -> tuple[Array, Array]:
    """Return (weight of all items not placed before it, weight of the item placed there), (k,) each, for each position
    of a list of k out of m items.

    `ranks` (k,): the ranks, from 0, of the items of the list."""
    weights = weights_of(m, temperature)
    each = weights[ranks]
    rest = weights.sum() - weights[np.sort(ranks)].sum() if ranks.size < m else 0.0
    # Summed from the end, so that small remaining weights are not lost in rounding.
    return rest + np.cumsum(each[::-1])[::-1], each
