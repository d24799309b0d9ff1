"""Off-policy evaluation of rankings: the value that a target ranker would have had, estimated from the log of another
one.

A log has n decisions of k slots each: rewards r (n, k) in [0, 1], and probabilities of what was shown, by the ranker
that made the log (mu) and by the target (pi). The value of a ranker is E sum_i r_i. The estimators differ in the
weights that they give to rewards, and thereby in what they assume of people:

| weights | assumes that the reward of slot i depends on |
|---|---|
| pi(y) / mu(y) of the whole list (SIPS) | anything |
| the same of the first i items (RIPS, McInerney et al. 2020) | the items in slots 1 to i (cascade) |
| pi(y_i at i) / mu(y_i at i), of marginals (IIPS, Li et al. 2018) | the item and its slot alone |

Weights have mean 1 if logged probabilities are right and all that the target shows could have been in the log; the
probability of the rest is its unsupported mass. If the log tells too little, or its weights have another mean, a
`Refusal` says why in words.

Nothing is taken to be bounded by what was seen. Intervals rest on bets that need no greatest weight
(`heedful.evaluation.unbounded`); one that is known beforehand makes them narrower. Of rewards that may be any amount an
end of the interval takes the least or the greatest one that is possible: E w r is least + E w (r - least), and a lower
limit of the mean of numbers that are never negative needs no upper bound; so with the upper end. Whether the mean
weight is above 1 can be told without any bound as well. Whether it is below 1 cannot: what has a small enough
probability under the log is missing in most logs of any length. Then the interval allows for what is missing, up to
MOST_UNSUPPORTED.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from heedful.core.wording import share
from heedful.evaluation.change import starts
from heedful.evaluation.unbounded import higher, limits, log_capital, lower, lower_limit

Array = npt.NDArray[np.float64]
Ints = npt.NDArray[np.intp]


class Estimate(NamedTuple):
    """The estimated value of a target ranker, whose lists were not shown: the expected sum of the rewards of its list
    of k slots."""

    value: float
    """the estimate of E sum_i r_i, where r_i is the reward of slot i"""
    low: float
    """the lower end of an interval that is valid at all looks while new people come (see `heedful.evaluation.ratio`);
    what the log does not support counts with the least reward here; -inf if that is not known"""
    high: float
    """the upper end of that interval; what the log does not support counts with the greatest reward here; inf if that
    is not known"""
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


# ---------------------------------------------------------------------------- values


def value(weights: Array, rewards: Array, *, share: Array | None = None) -> float:
    """Return the estimated value of a ranker: the mean over n decisions (lists shown) of the sum over k slots of weight
    times reward.

    `weights` (n, k): importance weights of the slots; `rewards` (n, k), in [0, 1]. `share` (n,): the share of each
    decision in the mean, summing to 1; None: all equal.
    """
    share = np.full(len(weights), 1.0 / len(weights)) if share is None else share
    slot_values = share @ (weights * rewards)
    return float(slot_values.sum())


# ---------------------------------------------------------------------------- an estimate or a refusal


LEAST = 30.0
"""The effective sample size below which a value is said to be rough."""
MOST_UNSUPPORTED = 0.2
"""The greatest unsupported mass with which a value is estimated."""
LEVEL = 1e-3
"""The probability, at most, with which a sound log is said to have a mean weight that differs from 1 by more than
chance."""
WRONG = "logged probabilities are wrong, or some lists were answered more often than others"
"""What it means if the mean weight is not 1."""
EXPLORATION = "Exploration: a share drawn at random, with known probabilities."
RIGHT = "Log each probability as it was when the item was shown."
GREATEST = 1e100
"""The greatest weight with which a value is estimated: squares of greater ones are no numbers."""
ROUNDING = 1e-9
"""By how much rewards may be out of their range, in units of its greater end, because they are rounded means."""


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
    span: tuple[float, float] = (0.0, 1.0),
    people: Sequence[object] | Ints | None = None,
    most: float | None = None,
    alpha: float = 0.05,
) -> Estimate | Refusal:
    """Estimate the value of a ranker, the expected sum of rewards of its list, from n logged decisions of k slots; or
    say why it cannot be estimated.

    - `weights` (n, k): importance weights; `rewards` (n, k)
    - `span`: the (least, greatest) reward that is possible in a slot; -inf or inf for one that is not known: the
      interval then lacks that end
    - `people` (n,): who received each decision; the value is then a mean over people, each with the same weight,
      however many decisions they had
    - `most`: the greatest possible weight if it is known beforehand, which narrows the interval where
      rewards are rare; never the greatest that was seen
    - `alpha`: the error probability of the interval

    The interval holds however few and large weights are; with an effective sample size below 30 (LEAST) the warning
    says that the value is rough. Return a `Refusal` if the mean weight differs from 1 by more than chance, which a
    sound log has with probability .001 (LEVEL) at most; if it says that more than 0.2 (MOST_UNSUPPORTED) of what the
    ranker shows is not in the log; if the interval would be all of `span`; or if a weight is above 1e100 (GREATEST).
    Raise ValueError, naming the argument, if the shapes differ or rewards lie outside `span`.
    """
    weights, rewards = _check_tables(weights, rewards, span)
    n, k = rewards.shape
    if weights.max() > GREATEST:
        reason = "a logged probability is next to 0, so that its weight has no number to count with"
        return Refusal(reason, RIGHT)
    means, error = weights.mean(axis=0), weights.std(axis=0) / np.sqrt(n)
    lacking = np.where((n >= LEAST) & (means < 1.0 - 4.0 * error - 1e-9), 1.0 - means, 0.0)
    mass, furthest = float(lacking.mean()), float(means[np.abs(means - 1.0).argmax()])
    lacks = f"{share(1.0 - furthest)} of what it would show is not in the log" if furthest < 1.0 else ""
    reason = f"the mean weight is {furthest:.3g}, not 1: {f'{lacks}, or ' if lacks else ''}{WRONG}"
    reason = reason if furthest > 0.0 else lacks
    if mass > MOST_UNSUPPORTED or _off_balance(weights, most):
        return Refusal(reason, EXPLORATION if lacks else RIGHT)
    total = (weights**2).sum(axis=0)
    effective = float((weights.sum(axis=0) ** 2 / np.where(total > 0.0, total, 1.0)).min())
    person = np.arange(n) if people is None else _numbers(people)
    size = np.bincount(person)
    low, high = _ends(weights, rewards, span, person, None if mass > 0.0 else most, alpha)
    if effective < LEAST and (low, high) == span:
        doubt = f"the effective sample size is {effective:.0f}, which leaves any value possible"
        return Refusal(doubt, "More decisions, or a larger share of them drawn at random.")
    mean = value(weights, rewards, share=1.0 / (size[person] * size.size))
    mean = min(max(mean, k * span[0]), k * span[1])
    # An interval that the value is outside of, as by an early run of chance, is made wider by that.
    low, high = max(min(low, mean / k), span[0]), min(max(high, mean / k), span[1])
    warnings = [f"{reason}; the interval allows for what is not there"] if mass > 0.0 else []
    if effective < LEAST:
        needed = f"about {math.ceil(n * LEAST / effective):,} decisions like these would make it {LEAST:.0f}"
        warnings.append(f"the effective sample size is {effective:.0f}, so the value is rough; the interval allows for "
                        f"that, and {needed}")  # fmt: skip
    return Estimate(mean, k * low, k * high, float(weights.mean()), effective, mass, "; ".join(warnings))


def _ends(
    weights: Array, rewards: Array, span: tuple[float, float], person: Ints, most: float | None, alpha: float
) -> tuple[float, float]:
    """Return the ends (low, high) of the interval for the mean reward of a slot, those of `span` where one is
    infinite."""
    (least, greatest), size = span, np.bincount(person) * rewards.shape[1]

    def by_person(amounts: Array) -> Array:
        return np.asarray(np.bincount(person, (weights * amounts).sum(axis=1)) / size)

    if np.isfinite(wide := greatest - least):
        gains, losses = by_person(rewards - least) / wide, by_person(greatest - rewards) / wide
        low, high = limits(gains, losses, most, alpha)
        return least + wide * low, greatest - wide * (1.0 - high)
    return (
        least + lower_limit(by_person(rewards - least), alpha) if np.isfinite(least) else least,
        greatest - lower_limit(by_person(greatest - rewards), alpha) if np.isfinite(greatest) else greatest,
    )


def _off_balance(weights: Array, most: float | None) -> bool:
    """Return whether the mean of the `weights` (n, k) of any slot differs from 1 by more than chance; that it is below
    1 is only found out if `most` is the greatest weight that is possible.

    Each row is a bet, however people come back: given all before it, its weight has the mean 1."""
    unit = np.ones(1)
    bets = [higher(column, unit) for column in weights.T]
    bets += [] if most is None else [lower(column, unit, most) for column in weights.T]
    return bool(log_capital(bets)[0] >= np.log(1.0 / LEVEL))


def shown_too_often(actions: Ints, probability: Array) -> tuple[int, float] | None:
    """Return (the action, its mean weight) that a log of single actions shows more often than its probabilities say;
    None if chance explains it, as in a sound log it does with probability .999 (1 - LEVEL).

    `actions` (n,) are numbers from 0, `probability` (n,) is that with which each was shown. Wrong probabilities of one
    action are those of others, too, whose mean weight may happen to be 1. The weight of any action, and of any way to
    choose one by the rows before, has a mean of at most 1 if probabilities are right: that of the action which was
    shown too often so far is bet on."""
    n, count = actions.size, int(actions.max()) + 1
    weights = importance(np.ones(n), probability)
    sums, squares, bet = np.zeros(count), np.zeros(count), np.zeros(n)
    for first, end in pairwise((0, *starts(n).tolist(), n)):
        segment, w = actions[first:end], weights[first:end]
        bet[first:end] = np.where(segment == _too_often(sums, squares, first), w, 0.0)
        sums += np.bincount(segment, w, count)
        squares += np.bincount(segment, w * w, count)
    if log_capital([higher(bet, np.ones(1))])[0] < np.log(1.0 / LEVEL):
        return None
    action = _too_often(sums, squares, n)
    return action, float(sums[action]) / n


def _too_often(sums: Array, squares: Array, n: int) -> int:
    """Return the action whose sum of weights is the most standard errors above the number of rows, `n`."""
    return int(((sums - n) / np.sqrt(squares + 1.0)).argmax())


def _numbers(people: Sequence[object] | Ints) -> Ints:
    """Return for each of n entries of `people` the number of the person (n,), from 0 in order of first appearance."""
    if isinstance(people, np.ndarray) and people.dtype.kind in "iu":  # without an object for each
        _, first, inverse = np.unique(people, return_index=True, return_inverse=True)
        place = np.empty(first.size, np.int64)
        place[np.argsort(first)] = np.arange(first.size)
        return place[inverse]
    numbers: dict[Any, int] = {}
    return np.array([numbers.setdefault(person, len(numbers)) for person in people])


def _check_tables(weights: object, rewards: object, span: tuple[float, float]) -> tuple[Array, Array]:
    w, r = np.asarray(weights, float), np.asarray(rewards, float)
    if r.ndim != 2 or not r.size:
        raise ValueError(f"rewards: expected decisions x slots, got shape {r.shape}")
    if w.shape != r.shape:
        raise ValueError(f"weights: expected shape {r.shape}, as rewards, got {w.shape}")
    if not (np.isfinite(w) & (w >= 0.0)).all():
        raise ValueError("weights: expected finite numbers of at least 0, got another")
    low, high = span
    slack = ROUNDING * max(abs(end) if np.isfinite(end) else 0.0 for end in span)
    if not (np.isfinite(r) & (r >= low - slack) & (r <= high + slack)).all():
        raise ValueError(f"rewards: expected numbers from {low:g} to {high:g}, got another")
    return w, r.clip(low, high)
