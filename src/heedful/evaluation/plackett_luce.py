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
    """Return the weights r^(-1 / temperature) of the ranks r = 1, ..., m (best to worst) of m items, (m,)."""
    weights: Array = np.arange(1.0, m + 1.0) ** (-1.0 / temperature)
    return weights


def draw(m: int, size: int, temperature: float, rng: np.random.Generator) -> Ints:
    """Draw a list of `size` out of `m` ranked items with `rng`, one item after the other without replacement; return
    their ranks (size,), 0 for the best item, in the order to show them.

    The item at rank r = 0, ..., m - 1 has the weight (r + 1)^(-1 / temperature), and is drawn with its share of the
    weight that is left. So with a `temperature` near 0 the list is the top of the ranking; at infinity all lists are
    equally likely.
    """
    keys = -np.log(np.arange(1.0, m + 1.0)) / temperature + rng.gumbel(size=m)  # Gumbel top-k
    return np.asarray(np.argsort(-keys, kind="stable")[:size], np.int64)


def probability(ranks: Ints, m: int, temperature: float) -> float:
    """Return the probability that `draw` at this `temperature` gives one particular list of k out of `m` items.

    `ranks` (k,): the rank of each item of the list, in the order of the list, 0 for the best of the m items. The result
    is 0 if it is below 1e-308.
    """
    remaining, item_weights = _remaining_weights(ranks, m, temperature)
    return float(np.exp((np.log(item_weights) - np.log(remaining)).sum()))


def pair_weights(ranks: Ints, m: int, temperature: float, start: int = 0) -> Array:
    """Return a weight for each pair of neighbours ((k - start) // 2,) of a list of k items, at positions (1, 2), (3,
    4), ..., or from `start` = 1 at (2, 3), (4, 5), ...

    The weight is 1 / (2 P), where P is the probability that `draw` at this `temperature` puts the two in the order
    shown rather than the other, given the rest of the list. Weighted like this, both orders count as if they were
    equally likely. `ranks` (k,): the rank of each item of the list, 0 for the best of the `m` items.
    """
    remaining, item_weights = _remaining_weights(ranks, m, temperature)
    remaining, item_weights = remaining[start:], item_weights[start:]
    pairs = item_weights.size // 2
    before, first, second = remaining[: 2 * pairs : 2], item_weights[: 2 * pairs : 2], item_weights[1 : 2 * pairs : 2]
    # Both orders remove the same two items, so the factors of all later items cancel.
    shown, other = 1.0 / (before - first), 1.0 / (before - second)
    return np.asarray(0.5 * (shown + other) / shown, np.float64)


@lru_cache(maxsize=256)
def place_probabilities(m: int, temperature: float) -> Array:
    """Return the probability (m, 3) that `draw` at this `temperature` puts each of `m` >= 3 items in each of the first
    three places of a list.

    Row r is the item at rank r, 0 for the best item; column p is place p, from 0. The array is shared between calls and
    read-only.
    """
    w = weights_of(m, temperature)
    total = w.sum()
    second = w / (total * (total - w))  # first s, divided by what is left: P(r in place 2 | s in place 1) = w_r / left
    remaining = np.where(np.eye(m, dtype=bool), np.inf, total - w[:, None] - w[None, :])
    third = second[:, None] * w[None, :] / remaining  # first s, second q
    probabilities = np.empty((m, 3))
    probabilities[:, 0] = w / total
    probabilities[:, 1] = w * (second.sum() - second)
    probabilities[:, 2] = w * (third.sum() - third.sum(axis=0) - third.sum(axis=1))
    probabilities.flags.writeable = False
    return probabilities


def step_probabilities(ranks: Ints, m: int, temperature: float) -> Array:
    """Return the probability (k,) that `draw` at this `temperature` puts each of the k items of a list in its place,
    given the items before it.

    `ranks` (k,): the rank of each item of the list, in the order of the list, 0 for the best of the `m` items. The
    product of the result is the `probability` of the list.
    """
    remaining, item_weights = _remaining_weights(ranks, m, temperature)
    return np.asarray(item_weights / remaining, np.float64)


def _remaining_weights(ranks: Ints, m: int, temperature: float) -> tuple[Array, Array]:
    """Return for each place of a list (k,) each: (the weight of all items that are not in an earlier place, that of its
    item)."""
    weights = weights_of(m, temperature)
    item_weights = weights[ranks]
    rest = weights.sum() - weights[np.sort(ranks)].sum() if ranks.size < m else 0.0
    # Summed from the end, so that small remaining weights are not lost in rounding.
    return rest + np.cumsum(item_weights[::-1])[::-1], item_weights
