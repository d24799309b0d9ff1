"""Off-policy evaluation of rankings: the value that a target ranker would have had, estimated from the log of another
one.

A log has n decisions of k slots each: rewards r (n, k) in [0, 1], and probabilities of what was shown, by the ranker
that made the log (mu) and by the target (pi). The value of a ranker is E sum_i r_i. The estimators differ in the
weights that they give to rewards, and thereby in what they assume of people:

| estimator | weights | assumes that the reward of slot i depends on |
|---|---|---|
| `list_weights` | pi(y) / mu(y) of the whole list (SIPS) | anything |
| `prefix_weights` | the same of the first i items (RIPS, McInerney et al. 2020) | the items in slots 1 to i (cascade) |
| `slot_weights` | pi(y_i at i) / mu(y_i at i), of marginals (IIPS, Li et al. 2018) | the item and its slot alone |

`doubly_robust` is Cascade-DR (Kiyohara et al., WSDM 2022): it also uses predicted rewards, and assumes the cascade.

Weights have mean 1 if all that the target shows could have been in the log. The probability of the rest is its
unsupported mass; an estimate lacks at most this much. If the log tells too little, a `Refusal` says why in words.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from heedful.core.wording import share
from heedful.evaluation.confidence import HEADROOM

Array = npt.NDArray[np.float64]
Ints = npt.NDArray[np.intp]
Bools = npt.NDArray[np.bool_]


class Estimate(NamedTuple):
    """The estimated value of a target ranker, whose lists were not shown: the expected sum of the rewards of its list
    of k slots."""

    value: float
    """the estimate of E sum_i r_i, where r_i in [0, 1] is the reward of slot i; between 0 and k"""
    low: float
    """the lower end of an interval that is valid at all looks while new people come (see `heedful.evaluation.ratio`);
    what the log does not support counts 0 here"""
    high: float
    """the upper end of that interval; what the log does not support counts with all of its probability here"""
    mean_weight: float
    """mean importance weight; near 1 if the log supports all that the target shows"""
    effective: float
    """effective sample size (sum w)^2 / sum w^2 of the importance weights w, the least over slots"""
    unsupported: float
    """probability, per slot, that the target shows something that is not in the log"""
    warning: str
    """why the estimate should not be trusted; "" if there is no such reason"""


class Refusal(NamedTuple):
    """The result in place of an estimate if the log cannot tell the value of the ranker."""

    reason: str
    """why the log cannot tell it"""
    remedy: str
    """what would make it possible in future, as a sentence"""


# ---------------------------------------------------------------------------- weights


def list_weights(target: Array, logged: Array) -> Array:
    """Return the weight of each of k slots in n decisions (n, k): the ratio of the probabilities of the whole list, the
    same in each slot.

    `target` and `logged` (n, k): the probability of the item in a slot, given those in the slots before it, under the
    target ranker and under the one that made the log.
    """
    whole: Array = np.prod(target / logged, axis=1, keepdims=True)
    return np.broadcast_to(whole, target.shape)


def prefix_weights(target: Array, logged: Array) -> Array:
    """Return the weight of each of k slots in n decisions (n, k): the ratio of the probabilities of the list up to this
    slot.

    `target` and `logged` (n, k): the probability of the item in a slot, given those in the slots before it, under the
    target ranker and under the one that made the log.
    """
    return np.multiply.accumulate(target / logged, axis=1)


def slot_weights(target: Array, logged: Array) -> Array:
    """Return the weight of each of k slots in n decisions (n, k): the ratio of the probabilities of the item in this
    slot.

    `target` and `logged` (n, k): the marginal probability of the item in this slot, whatever is in the other slots,
    under the target ranker and under the one that made the log.
    """
    found: Array = target / logged
    return found


# ---------------------------------------------------------------------------- values


def value(weights: Array, rewards: Array, *, share: Array | None = None, normalise: bool = False) -> float:
    """Return the estimated value of a ranker: the mean over n decisions (lists shown) of the sum over k slots of weight
    times reward.

    `weights` (n, k): importance weights of the slots; `rewards` (n, k), in [0, 1]. `share` (n,): the share of each
    decision in the mean, summing to 1; None: all equal. With `normalise` the sum of each slot is divided by the mean
    weight there (self-normalised): less variance, and a bias that vanishes as 1 / n.
    """
    share = np.full(len(weights), 1.0 / len(weights)) if share is None else share
    each = share @ (weights * rewards)
    return float((each / (share @ weights)).sum() if normalise else each.sum())


def doubly_robust(weights: Array, rewards: Array, predicted: Array, expected: Array) -> float:
    """Return the Cascade-DR estimate of a ranker's value (Kiyohara et al., WSDM 2022), from n decisions of k slots.

    It is the mean over decisions of sum_i [w_i (r_i - Q_i) + w_{i-1} V_i], with w_0 = 1.
    - `weights` w (n, k): from `prefix_weights`
    - `rewards` r (n, k): in [0, 1]
    - `predicted` Q (n, k): a prediction of the sum of rewards from slot i on, given the items up to there
    - `expected` V (n, k): the mean of Q over what the target ranker would show in slot i

    The estimate is unbiased for any Q that was not fitted to these decisions; a good Q makes its variance small."""
    before = np.hstack([np.ones((len(weights), 1)), weights[:, :-1]])
    return float((weights * (rewards - predicted) + before * expected).sum(axis=1).mean())


# ---------------------------------------------------------------------------- an estimate or a refusal


LEAST = 30.0
"""The least effective sample size with which a value is estimated."""
MOST_UNSUPPORTED = 0.2
"""The greatest unsupported mass with which a value is estimated."""
WRONG = "logged probabilities are wrong, or some lists were answered more often than others"
"""What it means if the mean weight is more than four standard errors off."""
GREATEST = 1e100
"""The greatest weight with which a value is estimated: squares of greater ones are no numbers."""
GRID = np.unique(np.concatenate([np.geomspace(1e-6, 0.5, 400), 1.0 - np.geomspace(1e-4, 0.5, 200)]))
"""Candidate values against which bets are made."""
STRIDE = 25
ROWS = 2048
"""The number of values processed at a time, so that intermediate arrays stay in the processor's cache."""


def importance(target: npt.NDArray[np.floating[Any]], logged: npt.NDArray[np.floating[Any]] | float) -> Array:
    """Return the importance weights `target` / `logged`, two probabilities; weights that are too large to be estimated
    with are finite, too."""
    with np.errstate(over="ignore"):
        weights: Array = np.minimum(target / logged, 10.0 * GREATEST)
    return weights


def estimate(
    weights: Array,
    rewards: Array,
    *,
    unsupported: Array | None = None,
    people: Sequence[object] | Ints | None = None,
    normalise: bool = False,
    most: float | None = None,
    alpha: float = 0.05,
) -> Estimate | Refusal:
    """Estimate the value of a ranker, the expected sum of rewards of its list, from n logged decisions of k slots; or
    say why it cannot be estimated.

    - `weights` (n, k): importance weights; `rewards` (n, k), in [0, 1]
    - `unsupported` (n,): for each decision the probability, per slot, that the ranker shows something that could not
      be in the log
    - `people` (n,): who received each decision; the value is then a mean over people, each with the same weight,
      however many decisions they had
    - `normalise`: whether to divide the sum of each slot by its mean weight
    - `most`: the greatest possible weight, if there is a bound, which narrows the interval
    - `alpha`: the error probability of the interval

    Return a `Refusal` if the unsupported probability exceeds 0.2 (MOST_UNSUPPORTED), the effective sample size is below
    30 (LEAST), or a weight is above 1e100 (GREATEST). The interval is empty, `low` > `high`, if no value agrees with
    all of the log, whose probabilities are then wrong. Raise ValueError, naming the argument, if the shapes differ or
    rewards lie outside [0, 1].
    """
    weights, rewards = _check_tables(weights, rewards)
    n = len(rewards)
    if weights.max() > GREATEST:
        told = "a logged probability is next to 0, so that its weight has no number to count with"
        return Refusal(told, "Logged probabilities as they were when it was shown.")
    mass = 0.0 if unsupported is None else float(np.mean(unsupported))
    if mass > MOST_UNSUPPORTED:
        told = f"{share(mass)} of what this ranker would show is not in the log"
        return Refusal(told, "Exploration: a share drawn at random, with known probabilities.")
    total = (weights**2).sum(axis=0)
    effective = float((weights.sum(axis=0) ** 2 / np.where(total > 0.0, total, 1.0)).min())
    if effective < LEAST:
        told = f"the effective sample size is {effective:.0f}, and it takes {LEAST:.0f}"
        return Refusal(told, "More decisions, or a larger share of them drawn at random.")
    who = np.arange(n) if people is None else _numbers(people)
    size, k = np.bincount(who), rewards.shape[1]
    gains = np.bincount(who, (weights * rewards).sum(axis=1)) / (size * k)
    losses = np.bincount(who, (weights * (1.0 - rewards)).sum(axis=1)) / (size * k)
    low, high = limits(gains, losses, None if mass > 0.0 else most, alpha)
    error = weights.std(axis=0) / np.sqrt(n)
    gaps = np.abs(weights.mean(axis=0) - (1.0 - mass))
    warning = ""
    if (gaps > 4.0 * error + 1e-9).any():
        warning = f"the mean weight is {weights.mean():.3g}, not {1.0 - mass:.3g}: {WRONG}"
    found = value(weights, rewards, share=1.0 / (size[who] * size.size), normalise=normalise)
    return Estimate(found, k * low, k * high, float(weights.mean()), effective, mass, warning)


def _numbers(people: Sequence[object] | Ints) -> Ints:
    """Return for each of n entries of `people` the number of the person (n,), from 0 in order of first appearance."""
    if isinstance(people, np.ndarray) and people.dtype.kind in "iu":  # without an object for each
        _, first, inverse = np.unique(people, return_index=True, return_inverse=True)
        place = np.empty(first.size, np.int64)
        place[np.argsort(first)] = np.arange(first.size)
        return place[inverse]
    numbers: dict[Any, int] = {}
    return np.array([numbers.setdefault(each, len(numbers)) for each in people])


def _check_tables(weights: object, rewards: object) -> tuple[Array, Array]:
    w, r = np.asarray(weights, float), np.asarray(rewards, float)
    if r.ndim != 2 or not r.size:
        raise ValueError(f"rewards: expected decisions x slots, got shape {r.shape}")
    if w.shape != r.shape:
        raise ValueError(f"weights: expected shape {r.shape}, as rewards, got {w.shape}")
    if not (np.isfinite(w) & (w >= 0.0)).all():
        raise ValueError("weights: expected finite numbers of at least 0, got another")
    if not ((r >= 0.0) & (r <= 1.0)).all():
        raise ValueError("rewards: expected numbers from 0 to 1, got another")
    return w, r


def limits(gains: Array, losses: Array, most: float | None, alpha: float) -> tuple[float, float]:
    """Return (low, high), a confidence sequence with error probability `alpha` for the mean v = E gain of n decisions.

    - `gains`, `losses` (n,), in order of arrival: weight times reward, and weight times 1 - reward; both are >= 0, and
      E[gain + loss] <= 1
    - `most`: the greatest possible gain, if there is a bound and the log supports all that the target shows; None if
      not. Half of the capital for `high` then bets on small gains, which narrows the interval much where rewards are
      rare.

    Each candidate value m for v is tested by bets that E gain is above m. They stake at most c / m for a constant c <
    1, so they lose at most the fraction c of their capital in a decision, however large the gain. Hence weights need no
    bound, and the ranker that made the log may have learned meanwhile (Waudby-Smith et al., arXiv 2210.10768). The
    candidates that are not rejected give `low`; the same bets on losses give a lower end for E loss, and `high` is 1
    minus that.
    """
    target = np.log(2.0 / alpha)

    def too_low(m: Array) -> Bools:
        return np.asarray(_peaks([_higher(gains, m)]) >= target)

    def too_high(m: Array) -> Bools:
        bets = [_higher(losses, 1.0 - m)]
        return np.asarray(_peaks(bets if most is None else [*bets, _lower(gains, m, most)]) >= target)

    return _last(too_low, GRID, 0.0), _last(too_high, GRID[::-1], 1.0)


def _last(rejected: Callable[[Array], Bools], grid: Array, otherwise: float) -> float:
    """Return the last of M candidates, in the order of `grid` (M,), before the first that is not `rejected`.

    `rejected` is a function of candidates that returns a mask. Return `otherwise` if none is rejected. Only every
    STRIDE-th candidate is tried first, and then those in between."""
    coarse = grid[::STRIDE]
    left = int(np.argmin([*rejected(coarse), False]))
    if left == 0:
        return otherwise
    fine = grid[(left - 1) * STRIDE : left * STRIDE]
    return float(fine[int(np.argmin([*rejected(fine), False])) - 1])


Bets = Iterator[Array]
"""What a bet yields: blocks (rows, M) of the log of the factors by which each value multiplies its capital against each
of M candidates.
"""


def _peaks(bets: Sequence[Bets]) -> Array:
    """Return the greatest log that the mean capital of several `bets` ever has, against each of M candidates (M,)."""
    capital: list[Array | float] = [0.0] * len(bets)
    peak: Array | float = -np.inf
    for blocks in zip(*bets):
        paths = [start + np.cumsum(block, axis=0) for start, block in zip(capital, blocks)]
        capital = [path[-1] for path in paths]
        peak = np.maximum(peak, (np.logaddexp.reduce(paths, axis=0) - np.log(len(bets))).max(axis=0))
    return np.asarray(peak)


def _higher(x: Array, m: Array) -> Bets:
    """Yield the log growth (rows, M) of the bet that the mean of n values `x` (n,) >= 0 is higher than each of M
    candidates `m` (M,)."""
    for values, mean, variance in _blocks_with_moments(x):
        gap = np.maximum(mean - m, 0.0)
        yield np.log1p(np.minimum(gap / (variance + gap * gap), HEADROOM / m) * (values - m))


def _lower(x: Array, m: Array, most: float) -> Bets:
    """Yield the log growth (rows, M) of the bet that the mean of n values `x` (n,), from 0 to `most`, is lower than
    each of M candidates `m` (M,)."""
    for values, mean, variance in _blocks_with_moments(x):
        gap = np.maximum(m - mean, 0.0)
        yield np.log1p(
            np.minimum(gap / (variance + gap * gap), HEADROOM / np.maximum(most - m, HEADROOM)) * (m - values)
        )


def _blocks_with_moments(x: Array) -> Iterator[tuple[Array, Array, Array]]:
    """Yield blocks of n values x (n,), with the running mean and variance of all values before each one, (rows, 1)
    each.
    """
    n = np.arange(1, x.size + 1)
    sums = np.concatenate([[0.5], 0.5 + np.cumsum(x)[:-1]])
    squares = np.concatenate([[0.5], 0.5 + np.cumsum(x * x)[:-1]])  # first one value of 1/2 with variance 1/4
    mean = sums / n
    variance = np.maximum(squares / n - mean * mean, 1e-9)
    for first in range(0, x.size, ROWS):
        rows = slice(first, first + ROWS)
        yield x[rows, None], mean[rows, None], variance[rows, None]
