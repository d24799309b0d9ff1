"""Summary of a posterior over utilities: the order of items, its uncertainty, and whether to stop asking."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from heedful.core.wording import BAR
from heedful.inference.gp.mixture import Mixture
from heedful.inference.gp.posterior import SAME, Posterior
from heedful.inference.gp.remaining_questions import estimate_remaining
from heedful.inference.gp.stopping import Stop, stopping
from heedful.jit.kernel import Ints
from heedful.results.board import BoardRow, Goal, QuestionsLeft, Verdict

Array = npt.NDArray[np.float64]


MATRIX = 200
"""The greatest number of items whose matrix of wins is in JSON."""


class Standing(NamedTuple):
    """The ranking of n items, given by their numbers, with the uncertainty of their places."""

    order: Ints
    """(n,) item numbers, best first"""
    mean: Array
    """(n,) by item number: mean utility less the average over items; 1 is the standard deviation of the noise of one
    choice
    """
    sd: Array
    """(n,) by item number: standard deviation of `mean`"""
    best: Array
    """(n,) by item number: P(the item is the best one)"""
    places: Ints
    """(n, 2) by item number: first and last place of the central 90 % interval; place 1 is the best"""
    better: Array
    """(n - 1,) P(the item at a place of `order` is better than the one after it)"""
    alike: tuple[tuple[int, int], ...]
    """runs of places (first, last), from 0, in which no two items can be told apart; runs may overlap, none contains
    another
    """

    def rows(self, names: Sequence[str], at: float, **more: Array | Ints) -> tuple[BoardRow, ...]:
        """Return the items, which have these `names` (n,), as rows of a board, best first.

        Two items are told apart with probability `at`; `more` are other fields of the rows, (n,) by item number."""
        place = np.empty(self.order.size, np.int64)
        place[self.order] = np.arange(1, self.order.size + 1)
        low, high = self.mean - BAR * self.sd, self.mean + BAR * self.sd
        more |= {"utility": self.mean, "utility_low": low, "utility_high": high, "best": np.minimum(self.best, 1.0)}
        more |= {"place": place, "place_low": self.places[:, 0], "place_high": self.places[:, 1]}
        return board_rows(names, self.order, self.better.tolist(), at, **more)


def board_rows(
    names: Sequence[str], order: Ints, better: Sequence[float | None], at: float, **fields: Array | Ints
) -> tuple[BoardRow, ...]:
    """Return n items as rows of a board in this `order` (n,); `names` and `fields` of the rows are by item number (n,).

    `better` (n - 1,): P(the item at a place is better than the next), None where that is not known."""
    table: dict[str, list[Any]] = {name: values[order].tolist() for name, values in fields.items()}
    table["item"] = [names[i] for i in order.tolist()]
    table["better_than_next"] = [*better, None]
    table["told_apart"] = [None if sure is None else sure >= at for sure in table["better_than_next"]]
    return tuple([BoardRow(**dict(zip(table, row))) for row in zip(*table.values())])


def board_groups(rows: Sequence[BoardRow], alike: Sequence[tuple[int, int]]) -> tuple[tuple[str, ...], ...]:
    """Return the names of the items in each run of places (first, last), from 0."""
    return tuple([tuple([row.item for row in rows[first : last + 1]]) for first, last in alike])


def board_matrix(
    items: Sequence[str], order: Ints, wins: Ints, ties: Ints, beats: Callable[[], Array]
) -> dict[str, Any] | None:
    """Return how often the item of each row won against that of the column, how often they tied, and P(row beats
    column), best first as `items`; None with more than MATRIX items.

    `order` (n,) has the numbers of the items, by which `wins` and `ties` (n, n) are ordered; `beats` returns (n, n)."""
    if len(items) > MATRIX:
        return None
    at = np.ix_(order, order)
    return {"items": list(items), "wins": wins[at].tolist(), "ties": ties[at].tolist(), "beats": beats().tolist()}


def standing(posterior: Posterior | Mixture, seed: int = 0, *, at: float = 0.9) -> Standing:
    """Return the ranking of items under a posterior over their utilities, with the uncertainty of their places.

    Two items cannot be told apart if neither is better with probability `at`. P(best) and the intervals of places are
    shares of draws, made with `seed`: the standard error is at most .004, .008 with more than 100 items, .016 with more
    than 1000. The order, means, standard deviations and pairwise probabilities are exact.
    """
    n = posterior.mean.size
    f = posterior.draws(16_000 if n <= 100 else 4_000 if n <= 1_000 else 1_000, seed)
    spread = max(float(np.sqrt(posterior.cov.diagonal().max())), 1e-12)
    best, places = places_of(f, SAME * spread)
    order = posterior.ranking()
    better = posterior.better(order[:-1], order[1:])
    mean = posterior.mean - posterior.mean.mean()
    return Standing(order, mean, posterior.sd(), best, places, better, alike(posterior, order, at))


def places_of(f: Array, same: float = 0.0) -> tuple[Array, Ints]:
    """Return P(best) (n,) and the first and last place (n, 2) of the central 90 % interval of each of n items, from d
    draws `f` (d x n), which are overwritten; items that differ by up to `same` are the best together."""
    d, n = f.shape
    top = f >= f.max(axis=1, keepdims=True) - same
    best = (top / top.sum(axis=1, keepdims=True)).mean(axis=0)
    place = np.empty(f.shape, np.int32)
    np.put_along_axis(place, _descending(f), np.arange(1, n + 1, dtype=np.int32)[None], axis=1)
    ends = np.sort(place.T, axis=1)[:, [int(0.05 * d), math.ceil(0.95 * d) - 1]]
    return best, ends.astype(np.int64)


def _descending(f: Array) -> Ints:
    """Return for each of d rows of `f` (d x n) its n column indices by value, highest first (d x n); of equal values
    the lower column comes first. `f` is overwritten."""
    order = np.negative(f, out=f).argsort(axis=1)  # faster than a stable sort; ties are sorted again below
    rising = np.take_along_axis(f, order, axis=1)
    tied = (rising[:, 1:] == rising[:, :-1]).any(axis=1)
    order[tied] = f[tied].argsort(axis=1, kind="stable")
    return order


def verdict(
    posterior: Posterior | Mixture,
    names: Sequence[str],
    goal: Goal,
    found: Standing,
    *,
    at: float = 0.9,
    ask: bool = True,
) -> Verdict:
    """Return whether `goal` ("best" or "ranking") is reached with probability `at`, for items of these `names` (n,).

    `found`: the `Standing` under the same `posterior`. If `ask`, also forecast how many questions are left, assuming
    that one person answers them. Raise ValueError, naming the argument, if one is invalid.
    """
    if goal == "best":  # the item and its probability are those of the rows; `stopping` confirms them by other draws
        item = int(found.best.argmax())
        sure = min(float(found.best[item]), 1.0)
        stop = Stop(sure >= at and stopping(posterior, goal, at=at).stop, sure, item)
    else:
        stop = stopping(posterior, goal, at=at)
    left = estimate_remaining(posterior, goal, at=at, stop=stop) if ask else None
    forecast = None if left is None else QuestionsLeft(left.low, left.high, left.most, str(left))
    return Verdict(goal, stop.stop, stop.sure, names[stop.item], forecast)


def alike(posterior: Posterior | Mixture, order: Ints, at: float = 0.9) -> tuple[tuple[int, int], ...]:
    """Return the runs of places (first, last), from 0, in `order` in which no two items can be told apart.

    `order` (n,): the numbers of n items, best first. Within a run no item is better than a later one with probability
    `at` under `posterior`. Runs have at least two places; they may overlap, but none contains another.
    """

    def last_better(start: int, place: int) -> int:
        before = np.arange(start, place)
        [sure] = np.nonzero(posterior.better(order[before], np.full(before.size, order[place])) >= at)
        return start + int(sure[-1]) if sure.size else -1

    return runs(order.size, last_better)


def runs(n: int, last_better: Callable[[int, int], int]) -> tuple[tuple[int, int], ...]:
    """Return the runs of n places, as `alike` does.

    `last_better(start, place)` is the last place from `start` on, before `place`, whose item is surely better than that
    at `place`; -1 if there is none.
    """
    found, start = [], 0
    for place in range(n):
        last = last_better(start, place)
        if last >= 0:
            if place - 1 > start:
                found.append((start, place - 1))
            start = last + 1
    if n - 1 > start:
        found.append((start, n - 1))
    return tuple(found)
