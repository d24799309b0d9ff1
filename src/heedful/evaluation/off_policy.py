"""Off-policy evaluation of rankings: the value that a target ranker would have had, from the log of another one.

A log has n decisions of k slots each: rewards r (n, k) in [0, 1], and probabilities of what was shown, by the ranker
that made the log (mu) and by the target (pi). The value of a ranker is E sum_i r_i. The estimators differ in the
weights that they give to rewards, and thereby in what they assume of people:

| estimator | weights | assumes that the reward of slot i depends on |
|---|---|---|
| `list_weights` | pi(y) / mu(y) of the whole list (SIPS) | anything |
| `prefix_weights` | the same of the first i items (RIPS, McInerney et al. 2020) | the items in slots 1 to i (cascade) |
| `slot_weights` | pi(y_i at i) / mu(y_i at i), of marginals (IIPS, Li et al. 2018) | the item and its slot alone |

`doubly_robust` is Cascade-DR (Kiyohara et al., WSDM 2022): it also has predicted rewards, and needs the cascade.

Weights have mean 1 if whatever the target shows can be in the log. What cannot has a mass, which `unsupported` tells; a
value without it lies that far too low at most. An estimate that rests on too little is refused in words (`Refusal`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from heedful.evaluation.confidence import OffPolicy

Array = npt.NDArray[np.float64]
Ints = npt.NDArray[np.intp]


class Estimate(NamedTuple):
    """The estimated value of a ranker, with what it rests on."""

    value: float
    """E sum_i r_i, between 0 and k"""
    low: float
    """the ends of a confidence sequence: the interval holds at any time it is looked at. Both contain what the log does
    not support, between 0 and its mass"""
    high: float
    mean_weight: float
    """1 if the log supports all that the target shows"""
    effective: float
    """the effective sample size (sum w)^2 / sum w^2, the least over slots"""
    unsupported: float
    """the probability that the target shows what the log cannot have, per slot"""
    warning: str
    """why the estimate should not be trusted; "" if nothing speaks against it"""


class Refusal(NamedTuple):
    """The reason why a log cannot tell the value of a ranker."""

    reason: str
    remedy: str
    """the setting that would make it possible"""


# ---------------------------------------------------------------------------- weights


def list_weights(target: Array, logged: Array) -> Array:
    """Return the weight of each slot (n, k): the ratio of the probabilities of the whole list, the same in every slot.

    `target` and `logged` are (n, k): the probability of the item in a slot, given those in the slots before it."""
    whole: Array = np.prod(target / logged, axis=1, keepdims=True)
    return np.broadcast_to(whole, target.shape)


def prefix_weights(target: Array, logged: Array) -> Array:
    """Return the weight of each slot (n, k): the ratio of the probabilities of the list up to it; see above."""
    return np.multiply.accumulate(target / logged, axis=1)


def slot_weights(target: Array, logged: Array) -> Array:
    """Return the weight of each slot (n, k): the ratio of the probabilities of the item in this slot.

    `target` and `logged` are (n, k): marginal probabilities, whatever stands in the other slots."""
    found: Array = target / logged
    return found


# ---------------------------------------------------------------------------- values


def value(weights: Array, rewards: Array, *, share: Array | None = None, normalise: bool = False) -> float:
    """Return the mean of sum_i w_i r_i over decisions, for weights and rewards (n, k).

    `share` (n,) are the shares of the decisions in the mean, which sum to 1. With `normalise` the sum of each slot is
    divided by the mean weight there (self-normalised), which has less variance, and a bias that vanishes as 1 / n."""
    share = np.full(len(weights), 1.0 / len(weights)) if share is None else share
    each = share @ (weights * rewards)
    return float((each / (share @ weights)).sum() if normalise else each.sum())


def doubly_robust(weights: Array, rewards: Array, predicted: Array, expected: Array) -> float:
    """Return Cascade-DR: the mean of sum_i [w_i (r_i - Q_i) + w_{i-1} V_i] over decisions, with w_0 = 1.

    `weights` (n, k) are those of `prefix_weights`. `predicted` Q_i (n, k) is a prediction of the sum of rewards from
    slot i on, given the items up to there; `expected` V_i (n, k) is its mean over what the target would show in slot i.
    The estimate is unbiased for any Q that was not fitted to these decisions; a good Q makes its variance small."""
    before = np.hstack([np.ones((len(weights), 1)), weights[:, :-1]])
    return float((weights * (rewards - predicted) + before * expected).sum(axis=1).mean())


# ---------------------------------------------------------------------------- an estimate or a refusal


LEAST = 30.0
"""The effective sample size below which a value is refused."""
MOST_UNSUPPORTED = 0.2
"""The unsupported mass above which a value is refused."""


def estimate(
    weights: Array,
    rewards: Array,
    *,
    unsupported: Array | None = None,
    people: Sequence[Any] | None = None,
    normalise: bool = False,
    alpha: float = 0.05,
) -> Estimate | Refusal:
    """Return the value of a ranker by weights and rewards (n, k), rewards in [0, 1], or why the log cannot tell it.

    `unsupported` (n,) is, for each decision, the mass of what the target shows and the log cannot have. `people` (n,)
    says who answered: then the value is a mean over people, each of whom counts alike, however many decisions they
    had. Raise ValueError, naming the argument, if the shapes differ or rewards lie outside [0, 1]."""
    weights, rewards = _checked(weights, rewards)
    n = len(rewards)
    mass = 0.0 if unsupported is None else float(np.mean(unsupported))
    if mass > MOST_UNSUPPORTED:
        told = f"{mass:.0%} of what this ranker would show cannot be in the log"
        return Refusal(told, "exploration: show a share of lists drawn at random, with their probabilities")
    total = (weights**2).sum(axis=0)
    effective = float((weights.sum(axis=0) ** 2 / np.where(total > 0.0, total, 1.0)).min())
    if effective < LEAST:
        told = f"the log weighs as much as {effective:.0f} decisions of this ranker, and it takes {LEAST:.0f}"
        return Refusal(told, "more decisions, or a larger share of lists drawn at random")
    who = np.arange(n) if people is None else np.unique(np.asarray(people).astype(str), return_inverse=True)[1]
    size = np.bincount(who)
    low, high = _limits(weights, rewards, who, size, alpha)
    error = weights.std(axis=0) / np.sqrt(n)
    gaps = np.abs(weights.mean(axis=0) - (1.0 - mass))
    warning = ""
    if (gaps > 4.0 * error + 1e-9).any():
        warning = (
            f"the mean weight is {weights.mean():.3g} where it has to be {1.0 - mass:.3g}: probabilities are wrong"
        )
    found = value(weights, rewards, share=1.0 / (size[who] * size.size), normalise=normalise)
    return Estimate(found, low, high, float(weights.mean()), effective, mass, warning)


def _checked(weights: Any, rewards: Any) -> tuple[Array, Array]:
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


def _limits(weights: Array, rewards: Array, who: Ints, size: Ints, alpha: float) -> tuple[float, float]:
    """Return the ends of a confidence sequence for E sum_i r_i, over the means of people; `who` (n,) are their numbers.

    With V = E sum_i w_i r_i and U = E sum_i w_i (1 - r_i) there is V + U = k (1 - unsupported mass), so a lower limit
    of U gives an upper limit of V; what is not supported adds at most k times its mass and need not be known here."""
    k = rewards.shape[1]
    gains = np.bincount(who, (weights * rewards).sum(axis=1)) / (size * k)
    losses = np.bincount(who, (weights * (1.0 - rewards)).sum(axis=1)) / (size * k)
    sequence = OffPolicy(alpha)
    state = sequence.init()
    for gain, loss in zip(gains.tolist(), losses.tolist()):
        w = gain + loss
        state = sequence.update(state, w, gain / w if w > 0.0 else 0.0)
    low, high = sequence.interval(state)
    return float(k * low), float(k * high)
