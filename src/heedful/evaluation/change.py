"""Has a mean of values of people risen, and since when? Evidence that may be looked at whenever one likes.

Values x_1, x_2, ... in [0, 1] come one after another, n so far, with the sum S. For any rate l > 0 and any p, both

    exp(l S - n log(1 - p + p e^l))                                  best for answers yes and no, 0 or 1
    exp(l (S - n p) - psi(l) sum (x_i - m_i)^2),   l < 1             best for values that vary little
    where psi(l) = -log(1 - l) - l, and m_i is the mean of the values before x_i

have at any time a mean of at most 1 if, on average, the mean of each value, given those before it, is at most p (the
first as log(1 - p + p e^l) is concave in p, Hoeffding 1963; the second: Fan, Grama, Liu 2015, and Howard, Ramdas,
McAuliffe, Sekhon 2021). Their mean over several rates is the evidence A+(p) that the mean is above p; that of 1 - x is
the evidence A-(p) that it is below. From these comes the interval: the p for which both are below 2 / alpha.

Values of people who differ are not of that kind: their mean changes with who is there. So whether a mean has risen
since some moment, `rise` finds by counting people:

    new people   each counts once, by the mean of their first m values, in the order of their m-th, for m = 1, 4, 16 (a
                 value of nobody in particular is a person's only one);
    the same     log is cut into rounds, and what a person says in one round counts once, as its mean.

For a start s the k-th mean from s on, of the new people or of a person, is compared with the k-th before s, counted
backwards: the evidence is the capital of bets 1 + l (y after - y before) on all these pairs, as in `leaning`. If the
two have the same expectation and are independent, or that after is lower, as the error of a learner that learns, each
bet gains nothing on average, so the capital ever reaches 1 / alpha with probability at most alpha (Ville). The starts
and their weights, which sum to at most 1, do not depend on the values; the largest of all capitals, each with its
weight, is the evidence: half for the same people, half for new ones.

A round ends as soon as two thirds of the people who came in the latter half of the log so far came in it, and somebody
else comes; while only one person ever came, every value is a round. A round that has not ended does not count. It does
not matter how much people differ, or how alike it is what a person says in one visit or in one round.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from heedful.evaluation.confidence import check_alpha
from heedful.evaluation.leaning import log_evidence

Array = npt.NDArray[np.float64]

RATES = 0.8 * 0.5 ** np.arange(4.0)
"""The rates l of the second kind of evidence (4,); all rates are mixed with equal weights."""
PSI = -np.log1p(-RATES) - RATES
ODDS = 3.2 * 0.5 ** np.arange(5.0)
"""The rates l of the first kind of evidence (5,): by how much each bets that the log odds of a 1 have risen."""
GROWTH = 1.2
"""The factor from each start at which a change is looked for to the next."""
OFFSET = 8.0
"""The weight of start k is OFFSET / ((k + OFFSET) (k + 1 + OFFSET)), k = 0, 1, ...: they sum to 1."""
COUNTS = 1, 4, 16
"""By how many of their first values new people are compared."""
STEPS = 24
"""Number of steps of a search for p, each of which halves the interval."""


class Rise(NamedTuple):
    """Evidence that the mean of values of people has risen from some value on, with the likeliest start of the
    change."""

    log_evidence: float
    """the log of the evidence: below log(1 / alpha) at all times with probability 1 - alpha if there is no change"""
    start: int
    """the index of the first value since the likeliest change; 0 if there is nothing to compare"""
    before: float
    """the mean before it of what is compared, each person's values of one round, or first values, counting once; nan if
    there is nothing to compare"""
    after: float
    """that mean since then; the mean of all values if there is nothing to compare"""
    same: bool
    """whether people are compared with themselves before; otherwise new people with those who came before"""


class _Sums(NamedTuple):
    """Sums over the values of each of G segments, (G,) each, on which the evidence depends."""

    n: Array
    """the number of values in each segment"""
    total: Array
    """the sum of the values in each segment"""
    squares: Array
    """sum of (x_i - m_i)^2, where m_i is the mean of the values before x_i"""


def starts(n: int) -> npt.NDArray[np.int64]:
    """Return the positions in a sequence of `n` values at which a change may begin, as numbers of values before it;
    they rise from 1 on and are below n."""
    count = int(math.log(max(n, 1)) / math.log(GROWTH)) + 2
    positions = np.unique((GROWTH ** np.arange(count)).astype(np.int64))
    return positions[positions < n]


def start_weight(k: Any) -> Any:
    """Return the log of the weight of start number `k`, from 0; or of each, if these are several."""
    return np.log(OFFSET / ((k + OFFSET) * (k + 1.0 + OFFSET)))


def rise(values: npt.NDArray[Any], people: Sequence[str | None]) -> Rise:
    """Return the evidence that the mean of n values of people is higher from some value on than before it, with the
    likeliest such value.

    `values` (n,): in [0, 1], in order of arrival; `people` (n): whom each is from, None for nobody in particular. Raise
    ValueError if a value is not in [0, 1]."""
    x = _check_values(values)
    named = [i for i, person in enumerate(people) if person is not None]
    rises = _same_people(x[named], [str(people[i]) for i in named], np.array(named, np.int64))
    for count in COUNTS:
        means, places = _new_people(x, people, count)
        together = np.zeros(means.size, np.int64)
        rises += _rises(together, np.arange(means.size), means, places, False, 2.0 * len(COUNTS))
    if not rises:
        return Rise(0.0, 0, math.nan, _mean(x), True)
    return max(rises, key=lambda candidate: candidate.log_evidence)


def _new_people(x: Array, people: Sequence[str | None], count: int) -> tuple[Array, npt.NDArray[np.int64]]:
    """Return (the mean of the first `count` of the values x (n,) of each person who has so many, the index of the last
    of these), in the order of the latter."""
    by_person, means, places = dict[str, list[float]](), list[float](), list[int]()
    for i, (person, value) in enumerate(zip(people, x.tolist())):
        first = by_person.setdefault(person, []) if person is not None else []
        first.append(value)
        if len(first) == count:
            means.append(sum(first) / count)
            places.append(i)
    return np.clip(np.array(means, np.float64), 0.0, 1.0), np.array(places, np.int64)


def _same_people(x: Array, people: Sequence[str], places: npt.NDArray[np.int64]) -> list[Rise]:
    """Return the strongest evidence that people have risen above themselves, with `places` (n,) as indices of the
    values x (n,); [] if there is nothing to compare."""
    rounds = _rounds(people)
    number = {person: j for j, person in enumerate(dict.fromkeys(people))}
    last = int(rounds.max(initial=0))
    ended = rounds < last
    keys = np.array([number[person] for person in people], np.int64) * (last + 1) + rounds
    key, groups = np.unique(keys[ended], return_inverse=True)
    owners, moments = np.divmod(key, last + 1)  # of all that a person said in one round: by person, then by round
    y = np.clip(np.bincount(groups, x[ended]) / np.bincount(groups), 0.0, 1.0)
    begins = places[np.searchsorted(rounds, np.arange(last))]
    return _rises(owners, moments, y, begins, True, 2.0)


def _rises(
    owners: npt.NDArray[np.int64],
    moments: npt.NDArray[np.int64],
    y: Array,
    begins: npt.NDArray[np.int64],
    same: bool,
    parts: float,
) -> list[Rise]:
    """Return the evidence, divided by `parts`, that the means y (m,) of the same `owners` have risen, for each of
    `moments` with any to compare."""
    rises = []
    for k, start in enumerate(starts(begins.size)):
        earlier = np.bincount(owners[moments < start], minlength=int(owners.max(initial=0)) + 1)[owners]
        nth = np.arange(owners.size) - np.searchsorted(owners, owners) - earlier
        later = np.flatnonzero((nth >= 0) & (nth < earlier))
        if later.size:
            before, after = y[later - 2 * nth[later] - 1], y[later]
            log_e = float(log_evidence((after - before)[:, None])[0][0] + start_weight(k)) - math.log(parts)
            rises.append(Rise(log_e, int(begins[start]), _mean(before), _mean(after), same))
    return rises


def _rounds(people: Sequence[str]) -> npt.NDArray[np.int64]:
    """Return the number of the round (n,) of each of n values, which are from these people."""
    rounds, number = np.zeros(len(people), np.int64), 0
    last, arrived = dict[str, int](), set[str]()
    recent = oldest = 0  # how many people came in the latter half so far, and where it begins
    for i, person in enumerate(people):
        recent += last.get(person, -1) < oldest
        last[person] = i
        while oldest < (i + 1) // 2:
            recent -= last[people[oldest]] == oldest
            oldest += 1
        if i and 3 * len(arrived) >= 2 * recent and (person != people[i - 1] or len(last) == 1):
            number += 1
            arrived.clear()
        arrived.add(person)
        rounds[i] = number
    return rounds


def interval(values: npt.NDArray[Any], alpha: float = 0.05) -> tuple[float, float, float]:
    """Return (mean, low, high) of n values: a confidence interval for the average of their expectations.

    `values` (n,): in [0, 1], in order of arrival. The expectation of a value is that given all values before it. The
    interval misses their average, at any time at all, with probability at most `alpha`; without values the result is
    (nan, 0, 1). Raise ValueError if a value is not in [0, 1], or unless 0 < alpha < 1."""
    check_alpha(alpha)
    x = _check_values(values)
    if not x.size:
        return math.nan, 0.0, 1.0
    sums, mean = _Sums(*(column[-1:] for column in _sums(x))), _mean(x)
    limit = math.log(2.0 / alpha)
    mirrored = sums._replace(total=sums.n - sums.total)  # the sums of 1 - x
    return mean, _lowest(sums, mean, limit), 1.0 - _lowest(mirrored, 1.0 - mean, limit)


def _lowest(sums: _Sums, mean: float, limit: float) -> float:
    """Return the least p in [0, 1] for which the log evidence that the mean is above p is below `limit`."""
    low, high = 0.0, mean
    if float(_above(sums, np.zeros(1))[0][0]) < limit:
        return 0.0
    for _ in range(STEPS):
        p = (low + high) / 2.0
        rejected = float(_above(sums, np.array([p]))[0][0]) >= limit
        low, high = (p, high) if rejected else (low, p)
    return low


# ---------------------------------------------------------------------------- parts


def _check_values(values: npt.NDArray[Any]) -> Array:
    x = np.asarray(values, np.float64)
    if x.ndim != 1 or not ((x >= 0.0) & (x <= 1.0)).all():
        raise ValueError("values: expected numbers from 0 to 1, got others")
    return x


def _mean(x: Array) -> float:
    return float(x.mean()) if x.size else math.nan


def _sums(x: Array) -> _Sums:
    """Return the sums over the first j of n values x (n,), j = 0, ..., n; before the first value the mean is taken as
    1/2."""
    n = np.arange(x.size + 1.0)
    total = np.concatenate([[0.0], np.cumsum(x)])
    expected = (total[:-1] + 0.5) / (n[:-1] + 1.0)
    return _Sums(n, total, np.concatenate([[0.0], np.cumsum((x - expected) ** 2)]))


def _above(sums: _Sums, p: Array) -> tuple[Array, Array]:
    """Return (log evidence that the mean is above p, its derivative by p), (G,) each, for each of G segments.

    `sums` are the sums of the segments, `p` (G,) has the value of p for each. The evidence that the mean is below p is
    that of the values 1 - x for 1 - p."""
    n, total, squares, p = (column[:, None] for column in (*sums, p))
    grown = np.expm1(ODDS)
    varied = RATES * (total - n * p) - PSI * squares
    yes_no = ODDS * total - n * np.log1p(p * grown)
    terms = np.concatenate([varied, yes_no], axis=1)
    slopes = np.concatenate([-RATES * n, -n * grown / (1.0 + p * grown)], axis=1)
    top = terms.max(axis=1)
    shares = np.exp(terms - top[:, None])
    return top + np.log(shares.mean(axis=1)), (shares * slopes).sum(axis=1) / shares.sum(axis=1)
