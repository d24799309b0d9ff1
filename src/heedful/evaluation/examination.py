"""How much people look at each place of a list, and how well a ranker orders what they like, from clicks.

The position-based model: a person clicks the item j at place q with probability theta_q gamma_j, where the examination
theta_q, how much people look at the place, depends on the place alone, and gamma_j on the item and the request. Where
two neighbours were shown in either order at random, with known probabilities P, each click on them weighs 1 / (2 P).
Either item then counts as often at the upper place as at the lower one, so that

    E[weighted clicks at q + 1] / E[weighted clicks at q] = theta_{q+1} / theta_q

(intervention harvesting: Agarwal et al., WSDM 2019). The product of these ratios is the examination of a place, that of
the first being 1. A click at place q weighs 1 / theta_q, and is as likely then wherever its item stood: so the mean of
1 / log2(1 + rank) over clicks weighted like this, where the rank is that which a ranker gives to the item clicked,
estimates sum_j gamma_j / log2(1 + rank_j) / sum_j gamma_j of the items shown (counterfactual evaluation: Joachims,
Swaminathan & Schnabel, WSDM 2017). Ranks are among the items that were shown at the first places, those whose
examination is known: ranked among all candidates, a ranker would lose for the good items that nobody was shown.

It is wrong where the model is: where people stop after a good item (cascade), trust the top blindly, or look at the
places of some lists otherwise than at those of others.

Intervals are by people, who are what was drawn at random, and hold at one look. That of a value is by a jackknife: the
whole estimate, examination included, is made again without each of them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

MOST_PLACES = 20
"""How many places of a list are looked at, at most."""
LEAST_CLICKS = 100
"""The least number of clicks on two neighbours that were shown in either order at random with which the examination of
the lower place is estimated."""
MOST_ERROR = 0.15
"""The greatest standard error of the logarithm of the examination of a place whose clicks are weighted: errors of the
ratios of neighbours add up from place to place, and a few clicks far down would outweigh all others."""
PEOPLE = 4096
"""The number of people that are left out at a time, so that intermediate arrays stay small."""


class Clicks(NamedTuple):
    """n clicks on items of lists, for L rankers."""

    person: Ints
    """(n,) who clicked, as a number from 0"""
    place: Ints
    """(n,) the place of the item clicked, from 0"""
    upper: Array
    """(n,) 1 / (2 P) if the item is the upper one of two neighbours that were shown in either order at random, P being
    the probability of the order in which they were; 0 if it is not"""
    lower: Array
    """(n,) the same if it is the lower one of two"""
    above: Ints
    """(n, L) which of the items shown each ranker puts before the one clicked: bit q is 1 if it does the item at place
    q"""
    weight: Array
    """(n,) the weight of the person who clicked, such as 1 / the number of their lists"""

    def select(self, mask: npt.NDArray[np.bool_]) -> Clicks:
        """Return the clicks that `mask` (n,) is True for."""
        return Clicks(self.person[mask], self.place[mask], self.upper[mask], self.lower[mask], self.above[mask],
                      self.weight[mask])  # fmt: skip


class Estimates(NamedTuple):
    """The values of L rankers by their clicks, each with the standard error of itself and of its difference to the
    first."""

    values: Array
    """(L,) the mean of 1 / log2(1 + rank) over weighted clicks, from 0 to 1"""
    errors: Array
    """(L,) the standard error of each value"""
    gap_errors: Array
    """(L,) that of its difference to the first"""
    freedom: float
    """the degrees of freedom of the errors: the effective number of people, less 1"""
    clicks: int
    """the number of clicks at the places whose examination is known"""
    people: int
    """the number of people who made these"""
    effective: float
    """the effective sample size (sum w)^2 / sum w^2 of their weights w"""


def pair_clicks(clicks: Clicks) -> Ints:
    """Return, for each place but the last (19,), the number of clicks on it and on the next one where the two items
    there were shown in either order at random."""
    upper, lower = clicks.place[clicks.upper > 0.0], clicks.place[clicks.lower > 0.0] - 1
    return np.bincount(np.concatenate([upper, lower]), minlength=MOST_PLACES)[: MOST_PLACES - 1]


def reliable_places(clicks: Clicks) -> int:
    """Return how many places, from the first on, have an examination that is known well enough to weigh clicks: down to
    where the error of its logarithm exceeds MOST_ERROR, or two neighbours have fewer than LEAST_CLICKS clicks.

    It is 1 if that of the second place is not known so well, and 2 if it has the clicks alone."""
    count, variance = 1, 0.0
    for place, n in enumerate(pair_clicks(clicks).tolist()):
        error = _log_ratio(clicks, place)[1:2] if n >= LEAST_CLICKS else ()
        variance += error[0] ** 2 if error else math.inf
        if variance > MOST_ERROR**2 and not (place == 0 and variance < math.inf):
            break
        count += 1
    return count


def _log_ratio(clicks: Clicks, place: int) -> tuple[float, float, float]:
    """Return (ratio, error of its logarithm, degrees of freedom) of how much people look at the place after `place` for
    each time that they look at this one; the error is infinite without clicks at both, by two people or more."""
    people, number = np.unique(clicks.person, return_inverse=True)
    sides = []
    for position, side in ((place, clicks.upper), (place + 1, clicks.lower)):
        weights = side * clicks.weight * (clicks.place == position)
        sides.append(np.bincount(number, weights, people.size).astype(np.float64))
    upper, lower = sides
    sums = float(upper.sum()), float(lower.sum())
    value, both = sums[1] / sums[0] if sums[0] > 0.0 else math.inf, upper + lower
    n = int((both > 0.0).sum())
    if min(sums) <= 0.0 or n < 2:
        return value, math.inf, 1.0
    moved = lower / sums[1] - upper / sums[0]
    error = math.sqrt(float(moved @ moved) * n / (n - 1.0))
    return value, error, max(float(both.sum() ** 2 / (both @ both)) - 1.0, 1.0)


def neighbour_ratio(clicks: Clicks, place: int, alpha: float) -> tuple[float, float, float]:
    """Return (ratio, low, high): how much people look at the place after `place` for each time that they look at this
    one, with an interval that misses with probability `alpha`.

    The ratio is that of the two sums of weights of clicks where the two items there were shown in either order at
    random. The error of its logarithm is by people: each moves it by the difference of their shares in the two sums.
    Without clicks at one of the two places, or with those of a single person, the interval is (0, infinity)."""
    value, error, freedom = _log_ratio(clicks, place)
    if error == math.inf:
        return value, 0.0, math.inf
    low, high = interval(math.log(value), error, freedom, alpha)
    return value, math.exp(low), math.exp(min(high, 700.0))


def examination(upper: Array, lower: Array) -> Array:
    """Return how much people look at each of p places compared with the first, (..., p).

    `upper` and `lower` (..., p - 1) are the sums of the weights of clicks on the upper and on the lower of two
    neighbours, from the first two on, where the two were shown in either order at random."""
    first = np.ones((*upper.shape[:-1], 1))
    return np.concatenate([first, np.cumprod(lower / upper, axis=-1)], axis=-1)


def estimate(clicks: Clicks, places: int) -> Estimates | None:
    """Return the values of L rankers by n `clicks`, with examination estimated from the same clicks.

    Only the first `places` (2 or more, from `reliable_places`) count. Return None if no error can be estimated: all
    clicks at one of these places come from one person.
    """
    in_range = clicks.place < places
    gains = 1.0 / np.log2(2.0 + np.bitwise_count(clicks.above[in_range] & ((1 << places) - 1)))  # (n, L)
    counted = clicks.select(in_range)
    total = np.sum([sums.sum(axis=0) for sums in _sums(counted, gains, places)], axis=0)
    if not len(total):
        return None
    values = _values(total)
    squares, weight = np.zeros((2, values.size)), np.zeros(2)
    examined = examination(total[0, : places - 1], total[1, : places - 1])
    with np.errstate(divide="ignore", invalid="ignore"):
        for sums in _sums(counted, gains, places):
            change = _values(total - sums) - values
            squares += np.square(change).sum(axis=0), np.square(change - change[:, :1]).sum(axis=0)
            person_weight = (sums[:, 2] / examined).sum(axis=1)
            weight += person_weight.sum(), person_weight @ person_weight
    if not np.isfinite(squares).all():
        return None
    n = int(np.unique(counted.person).size)
    errors = np.sqrt(squares * (n - 1.0) / n)
    single = counted.weight / examined[counted.place]
    return Estimates(
        values, errors[0], errors[1], max(float(weight[0] ** 2 / weight[1]) - 1.0, 1.0), counted.place.size, n,
        float(single.sum() ** 2 / (single @ single)),
    )  # fmt: skip


def _sums(clicks: Clicks, gains: Array, places: int) -> Iterator[Array]:
    """Yield sums over the clicks of each person, for some people at a time: (people, 3 + L, places).

    They are, by place: the weights of clicks on the upper of two random neighbours there; on the lower of two at the
    next place; of all clicks there; and these times the `gains` (n, L) of each of L rankers."""
    order = np.argsort(clicks.person, kind="stable")
    people, begins = np.unique(clicks.person[order], return_index=True)
    begins = np.append(begins, order.size)
    for first in range(0, people.size, PEOPLE):
        last = min(first + PEOPLE, people.size)
        rows = order[begins[first] : begins[last]]
        person = np.repeat(np.arange(last - first), np.diff(begins[first : last + 1]))
        place, weight = clicks.place[rows], clicks.weight[rows]
        parts = [clicks.upper[rows] * weight, clicks.lower[rows] * weight, weight]
        parts += [weight * gain for gain in gains[rows].T]
        cell = person * places + place
        stacked = np.array([np.bincount(cell, part, (last - first) * places) for part in parts], np.float64)
        sums = stacked.reshape(len(parts), -1, places).swapaxes(0, 1)
        sums[:, 1] = np.roll(sums[:, 1], -1, axis=-1)  # of nothing is the first place the lower one
        yield sums


def _values(sums: Array) -> Array:
    """Return the values of L rankers (..., L) from sums of clicks by place (..., 3 + L, places), as `_sums` makes
    them."""
    examined = examination(sums[..., 0, :-1], sums[..., 1, :-1])[..., None, :]
    weighted = (sums[..., 2:, :] / examined).sum(axis=-1)
    return np.asarray(weighted[..., 1:] / weighted[..., :1])


def interval(value: float, error: float, freedom: float, alpha: float) -> tuple[float, float]:
    """Return (low, high), the interval around an estimate with this standard `error` and these degrees of `freedom`
    (Student's t) that misses with probability `alpha`."""
    from scipy.special import stdtrit

    half = float(stdtrit(freedom, 1.0 - alpha / 2.0)) * error if error > 0.0 else 0.0
    return value - half, value + half
