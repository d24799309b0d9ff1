"""When to stop asking: rules on the posterior probability that the goal is reached.

Goal "best": some item is the best one with probability `at`. Goal "ranking": the expected fraction of pairs of items in
the right order is `at`. Both are posterior probabilities, so stopping at .9 is right nine times in ten, whichever
questions were asked, provided that the model holds: the noise, and a prior that people are drawn from. EP's Gaussian
has the right mean and variance but no skew; it says .9 where .96 is closer and so asks somewhat too many questions.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from heedful.core.validation import check_count, describe, is_number
from heedful.inference.gp.mixture import Mixture
from heedful.inference.gp.posterior import SAME, Posterior
from heedful.jit.kernel import Ints

Array = npt.NDArray[np.float64]

GOALS = {"best": "eubo", "ranking": "bald"}
"""The goals, each with the acquisition rule that reaches it with the fewest questions."""

NEGLIGIBLE = 1e-4
"""Items that together are the best with less than this probability are left out of P(best)."""

_AGAIN = 1_000_003  # difference between the seeds of the first draws and the confirming ones


class Stop(NamedTuple):
    """The decision of `stopping`.

    `stop`: True to stop asking. `sure`: P(`item` is the best), or the expected fraction of pairs in the right order.
    `item`: number of the most probable best item, or of the first in the ranking.
    """

    stop: bool
    sure: float
    item: int


def stopping(
    posterior: Posterior | Mixture,
    goal: str = "best",
    *,
    at: float = 0.9,
    draws: int = 4000,
    seed: int = 0,
) -> Stop:
    """Decide whether the goal, "best" or "ranking", is reached with probability `at`.

    P(best) is a share of `draws` draws from the posterior, made with `seed`; its standard error at .9 is .005 for 4000
    draws, plus at most NEGLIGIBLE (1e-4) for items left out. Checking after every answer would sooner or later stop by
    luck, so a probability that is high enough must be confirmed by four times as many other draws; then theirs is
    returned. For "ranking" the result is exact. Items with identical utilities count as best together, and as in the
    right order. Raise ValueError, naming the argument, if one is invalid.
    """
    check_goal(posterior, goal, at)
    check_count("draws", draws)
    check_count("seed", seed, least=0)
    if goal == "ranking":
        sure = sum(w * in_order(part.mean[None], part.cov[None])[0] for w, part in posterior.components())
        return Stop(bool(sure >= at), float(sure), int(posterior.mean.argmax()))
    items = contenders(posterior)
    spread = float(np.sqrt(max(posterior.cov.diagonal().max(), 0.0)))
    verdict = Stop(False, 0.0, 0)
    for look in range(2):
        f = posterior.of_items(items).draws(draws * 4**look, seed + look * _AGAIN)
        chances = np.full(len(f), 1.0 / len(f)) @ (f >= f.max(axis=1, keepdims=True) - SAME * max(spread, 1e-12))
        k = int(chances.argmax())
        verdict = Stop(bool(chances[k] >= at), min(float(chances[k]), 1.0), int(items[k]))
        if not verdict.stop:
            break
    return verdict


def contenders(posterior: Posterior | Mixture) -> Ints:
    """Return the numbers of the items that may be the best under `posterior`, rising: all except some that have a total
    probability of being the best below 1e-4 (NEGLIGIBLE).

    P(an item is the best) is at most P(it is better than the item with the highest mean); the items with the lowest
    such bounds are left out, as long as their bounds add up to less than this.
    """
    top = int(posterior.mean.argmax())
    bound = posterior.better(np.arange(posterior.mean.size), np.full(posterior.mean.size, top))
    order = np.argsort(bound, kind="stable")
    return np.sort(order[np.cumsum(bound[order]) >= NEGLIGIBLE])


# ---------------------------------------------------------------------------- parts


def in_order(mean: Array, cov: Array) -> Array:
    """Return the expected fraction of item pairs that the order of means puts in the right order, for F Gaussians over
    n items (F,).

    `mean` (F x n), `cov` (F x n x n). Pairs with identical utilities count as in order.
    """
    from scipy.special import ndtr

    n = mean.shape[1]
    a, b = np.triu_indices(n, 1)
    var = cov[:, np.arange(n), np.arange(n)]
    v = (var[:, a] - cov[:, a, b]) + (var[:, b] - cov[:, b, a])
    same = v <= SAME * SAME * np.maximum(var.max(axis=1, keepdims=True), np.finfo(np.float64).tiny)
    right = ndtr(np.abs(mean[:, a] - mean[:, b]) / np.sqrt(np.where(same, 1.0, v)))
    return np.where(same, 1.0, right).mean(axis=1)  # type: ignore[no-any-return]


def check_goal(posterior: Posterior | Mixture, goal: str, at: float) -> None:
    """Raise ValueError, naming the argument, unless `goal` is "best" or "ranking", 0 < `at` < 1, and `posterior` has at
    least two items.
    """
    if goal not in GOALS:
        raise ValueError(f"goal: expected one of {', '.join(GOALS)}, got {describe(goal)}")
    if not is_number(at, int, float) or not 0.0 < at < 1.0:
        raise ValueError(f"at: expected a number between 0 and 1, got {describe(at)}")
    check_count("items", posterior.mean.size, least=2)
