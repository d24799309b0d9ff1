"""Who stands where: how surely items are in their order, whether to go on asking, and what."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from heedful.kernel import Ints
from heedful.preferences.futures import Left, questions_left
from heedful.preferences.posterior import SAME, Posterior
from heedful.preferences.questions import Asked, next_question
from heedful.preferences.stopping import FEW, GOALS, Seen, Stop, stopping, weights

Array = npt.NDArray[np.float64]


WEIGHED = 500
"""Different answers that draws are weighed by, at most: of more, hardly a draw is left that weighs anything."""


class Standing(NamedTuple):
    """The items, by their numbers, and how sure it is where they stand."""

    order: Ints
    """n; the best first"""
    mean: Array
    """n; utilities less their average, in units of the noise of one choice"""
    sd: Array
    """n"""
    best: Array
    """n; P(it is the best one)"""
    places: Ints
    """n x 2; from where to where it stands with 90 % probability, 1 the first"""
    better: Array
    """n - 1; P(each in `order` is better than the next)"""


class Verdict(NamedTuple):
    """Whether it is sure enough for a goal, about how many questions are left, and the next."""

    goal: str
    stop: Stop
    left: Left | None
    next: Asked


def standing(posterior: Posterior, seen: Seen | None = None, seed: int = 0) -> Standing:
    """Where items stand by what is believed; told the answers (`seen`), P(best) and places are those of the exact
    posterior, as of `stopping`. From seeded draws: shares are off by .004 at most (one standard error), with more than
    100 items by .008, with more than 1000 by .016."""
    n = posterior.mean.size
    f = posterior.draws(16_000 if n <= 100 else 4_000 if n <= 1_000 else 1_000, seed)
    w = np.full(len(f), 1.0 / len(f))
    if seen is not None and 0 < seen.rows.size <= WEIGHED and not (seen.rows.group >= 0).any():
        exact = weights(f, seen)
        w = exact if 1.0 / (exact @ exact) >= FEW else w
    spread = max(float(np.sqrt(posterior.cov.diagonal().max())), 1e-12)
    top = f >= f.max(axis=1, keepdims=True) - SAME * spread
    best = w @ (top / top.sum(axis=1, keepdims=True))
    place = np.empty(f.shape, np.int64)
    np.put_along_axis(place, (-f).argsort(axis=1, kind="stable"), np.arange(n)[None], axis=1)
    within = np.zeros((n, n))
    np.add.at(within, (np.broadcast_to(np.arange(n), f.shape), place), np.broadcast_to(w[:, None], f.shape))
    within = within.cumsum(axis=1)
    places = np.column_stack([(within < 0.05 + 1e-9).sum(axis=1), (within < 0.95 - 1e-9).sum(axis=1)]) + 1
    order = posterior.ranking()
    better = posterior.better(order[:-1], order[1:])
    mean = posterior.mean - posterior.mean.mean()
    return Standing(order, mean, posterior.sd(), best, np.minimum(places, n), better)


def verdict(
    posterior: Posterior, goal: str = "best", seen: Seen | None = None, *, at: float = 0.9, ask: bool = True
) -> Verdict:
    """Whether it is as sure as `at`; where one person answers (`ask`), about how many questions are left. The next one
    is that of the goal's rule. ValueError, naming what is wrong."""
    if seen is not None and seen.rows.size > WEIGHED:
        seen = None
    stop = stopping(posterior, goal, seen=seen, at=at)
    left = questions_left(posterior, goal, seen=seen, at=at) if ask else None
    return Verdict(goal, stop, left, next_question(posterior, GOALS[goal]))


def alike(better: Array, at: float = 0.9) -> list[tuple[int, int]]:
    """Runs of places (from, to), 0 the first, in which no neighbour is better than the next with probability `at`."""
    runs, start = [], 0
    for place, sure in enumerate([*better.tolist(), 1.0]):
        if sure >= at:
            if place > start:
                runs.append((start, place))
            start = place + 1
    return runs
