"""Forecast of how many questions remain until a goal is reached (`stopping`), from simulated futures (rollouts)."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from heedful.core.validation import check_count, describe
from heedful.core.wording import count, percent
from heedful.inference.gp.acquisition import RULES, acquisition_score, expected_change
from heedful.inference.gp.mixture import Mixture
from heedful.inference.gp.posterior import Posterior
from heedful.inference.gp.stopping import GOALS, Stop, check_goal, contenders, in_order, stopping
from heedful.jit.kernel import Ints

Array = npt.NDArray[np.float64]

PLAYED = 40
"""The greatest number of items that a rollout compares."""
DRAWS = 200
"""The number of draws, each with its opposite, from which P(best) is computed where bounds do not decide."""
CLOSE = 6
"""The greatest number of items against which such draws compare the best one; P(it is better than all others) is taken
to be a factor of its own for each other item."""
HOLDS = 0.8
"""The probability with which the number of questions lies within what is said."""
LEAST_WEIGHT = 0.05
"""Gaussians of a mixture with less weight than this are left out of rollouts."""


class RemainingQuestions(NamedTuple):
    """How many questions are left: from `low` to `high` with probability HOLDS (80 %); 0 and 0 if none is.

    Rollouts end after `most` questions, so a value equal to `most` stands for that many or more. Where `high` is less,
    fewer questions are as likely as more.
    """

    low: int
    high: int
    most: int

    def __str__(self) -> str:
        if self.high == 0:
            return "no questions left"
        if self.low >= self.most:
            return f"{self.most} questions left, or more"
        if self.low == self.high:
            return f"{count(self.low, 'question')} left"
        range_ = f"{self.low} or more" if self.high >= self.most else f"{self.low} to {self.high}"
        return f"{range_} questions left (with {percent(HOLDS)} probability)"


class _Rollouts(NamedTuple):
    """The F simulations of future answers that have not reached the goal yet, about n items.

    What is believed in each is a mixture of g Gaussians. `number` (F,): which simulation; `truth` (F x n): utilities
    that answer; `weight` (F x g): logs of the weights, up to a constant; `mean` (F x g x n), `cov` (F x g x n x n)."""

    number: Ints  # F; which simulation
    truth: Array  # F x n
    weight: Array  # F x g
    mean: Array  # F x g x n
    cov: Array  # F x g x n x n

    def of(self, which: npt.NDArray[np.bool_]) -> _Rollouts:
        columns: list[Any] = [x[which] for x in self]
        return _Rollouts(*columns)

    def shares(self) -> Array:
        """Return the weights (F x g) of the Gaussians; those of a simulation sum to 1."""
        w = np.exp(self.weight - self.weight.max(axis=1, keepdims=True))
        return w / w.sum(axis=1, keepdims=True)  # type: ignore[no-any-return]


def estimate_remaining(
    posterior: Posterior | Mixture,
    goal: str = "best",
    rule: str = "",
    *,
    at: float = 0.9,
    most: int = 100,
    futures: int | None = None,
    seed: int = 0,
    stop: Stop | None = None,
) -> RemainingQuestions:
    """Forecast how many more questions one person must answer until `stopping` is satisfied.

    `goal`: "best" or "ranking"; `at`: the probability to reach; `rule`: the acquisition rule that picks questions, by
    default that of the goal. Each of `futures` rollouts (None: 99, 49 with many items, 29 for a ranking) draws
    utilities from the posterior, which answer the questions with noise; each answer updates what is believed as
    `expected_change` does, and the weights of a mixture by how likely it was, until the goal is reached or `most`
    questions were asked. `seed` makes the draws. `stop`: the result of `stopping`, if known already.

    The forecast is that of `stopping` without `answers`, and approximate: of a mixture, Gaussians with a weight below
    LEAST_WEIGHT (.05) are left out. Rollouts compare at most PLAYED (40) items: those most likely to be the best or,
    for "ranking", evenly spaced ones, with the count scaled up. The numbers of items do not matter. Raise ValueError,
    naming the argument, if one is invalid.
    """
    rule = rule or GOALS.get(goal, "")
    check_goal(posterior, goal, at)
    if rule not in RULES:
        raise ValueError(f"rule: expected one of {', '.join(RULES)}, got {describe(rule)}")
    for name, number, least in (
        ("most", most, 1),
        ("futures", 1 if futures is None else futures, 1),
        ("seed", seed, 0),
    ):
        check_count(name, number, least=least)
    stop = stopping(posterior, goal, at=at, seed=seed) if stop is None else stop
    if stop.stop:
        return RemainingQuestions(0, 0, most)
    posterior = posterior.of_items(_by_content(posterior))
    items, times = _items_in_play(posterior, goal, seed)
    if items.size < 2:
        return RemainingQuestions(1, 1, most)
    rng, posterior = np.random.default_rng(seed), posterior.of_items(items)
    if futures is None:
        size = items.size**2 * len(posterior.components())
        futures = 29 if goal == "ranking" else 99 if size <= 2000 else 49
    counts = _counts(_start(posterior, futures, rng), goal, rule, at, most, rng)
    every = np.minimum(np.maximum(np.sort(counts * times).round().astype(np.int64), 1), most)
    # One more count than these F is less than the k-th of them, or more than the k-th last, with probability
    # k / (F + 1) each. Where it cannot be said what is too many, what is too few may be missed twice as often.
    k = max(int((futures + 1) * (1.0 - HOLDS) / 2.0 + 1e-9), 1)
    low, high = every[[k - 1, futures - k]].tolist()
    if high == most:
        low = int(every[min(2 * k, futures) - 1])
    return RemainingQuestions(low, high, most)


def _by_content(posterior: Posterior | Mixture) -> Ints:
    """Return the numbers of the items in an order that depends on their means, variances and covariances alone."""
    size = max(float(np.sqrt(posterior.cov.diagonal().max())), 1e-12)
    keys = np.column_stack([posterior.mean / size, posterior.cov.diagonal() / size**2, posterior.cov.sum(1) / size**2])
    return np.lexsort(keys.round(9).T[::-1]).astype(np.int64)


def _items_in_play(posterior: Posterior | Mixture, goal: str, seed: int) -> tuple[Ints, float]:
    """Return the items that simulations compare (rising, at most 40), and the questions each simulated one means."""
    n = posterior.mean.size
    if n <= PLAYED:
        return np.arange(n), 1.0
    if goal == "ranking":
        spread = np.linspace(0, n - 1, PLAYED).round().astype(np.int64)
        return np.sort(posterior.ranking()[spread]), n / PLAYED
    items = contenders(posterior)
    if items.size > PLAYED:
        top = posterior.of_items(items).draws(1000, seed).argmax(axis=1)
        items = items[np.argsort(-np.bincount(top, minlength=items.size), kind="stable")[:PLAYED]]
    return np.sort(items), 1.0


def _start(posterior: Posterior | Mixture, futures: int, rng: np.random.Generator) -> _Rollouts:
    """Return simulations before their first question: true utilities are drawn, those of every other one mirrored."""
    parts = [(w, part) for w, part in posterior.components() if w >= LEAST_WEIGHT] or posterior.components()[:1]
    weights = np.array([w for w, _ in parts])
    half = (futures + 1) // 2
    which = np.searchsorted(np.cumsum(weights / weights.sum()), (np.arange(half) + rng.random()) / half)
    truth = np.empty((2 * half, posterior.mean.size))
    for k, (_, part) in enumerate(parts):
        chosen = np.flatnonzero(which == k)
        truth[2 * chosen] = part.draws(chosen.size, int(rng.integers(2**31)))
        truth[2 * chosen + 1] = 2.0 * part.mean - truth[2 * chosen]
    mean, cov = (np.array([getattr(part, name) for _, part in parts]) for name in ("mean", "cov"))
    columns: list[Any] = [np.repeat(x[None], futures, axis=0) for x in (np.log(weights), mean, cov)]
    return _Rollouts(np.arange(futures), truth[:futures], *columns)


def _counts(played: _Rollouts, goal: str, rule: str, at: float, most: int, rng: np.random.Generator) -> Ints:
    """Return the number of questions that each simulation needs (F,), halfway between its last two looks."""
    n = played.mean.shape[2]
    a, b = np.triu_indices(n, 1)
    normal = rng.standard_normal((DRAWS, CLOSE + 1))
    normal = np.concatenate([normal, -normal])
    counts, last = np.full(played.number.size, most), 0
    for t in range(1, most + 1):
        played = _ask(played, rule, a, b, rng)
        if t - last >= max(1, t // 8) or t == most:
            done = _in_order(played) >= at if goal == "ranking" else _is_best(played, at, normal)
            counts[played.number[done]] = (last + 1 + t) // 2
            played, last = played.of(~done) if done.any() else played, t
            if not played.number.size:
                break
    return counts


def _ask(played: _Rollouts, rule: str, a: Ints, b: Ints, rng: np.random.Generator) -> _Rollouts:
    """Return the simulations after one more question each, of the pairs (a, b), and its simulated answer."""
    from scipy.special import log_ndtr

    number, truth, weight, mean, cov = played
    n, every = truth.shape[1], np.arange(number.size)
    if rule == "random":
        k = rng.integers(a.size, size=number.size)
    else:
        w = played.shares()
        average = np.einsum("fg,fgn->fn", w, mean)
        spread = np.einsum("fg,fgnm->fnm", w, cov)
        if w.shape[1] > 1:
            off = np.sqrt(w)[:, :, None] * (mean - average[:, None])
            spread += off.transpose(0, 2, 1) @ off
        var = spread[:, np.arange(n), np.arange(n)]
        v = np.maximum(var[:, a] + var[:, b] - 2.0 * spread[:, a, b], 0.0)
        k = acquisition_score(rule, average[:, a], average[:, b], v).argmax(axis=1)
    first = truth[every, a[k]] - truth[every, b[k]] + rng.standard_normal(number.size) > 0.0
    winner, loser = np.where(first, a[k], b[k]), np.where(first, b[k], a[k])
    along = cov[every, :, winner] - cov[every, :, loser]  # F x g x n
    gap = mean[every, :, winner] - mean[every, :, loser]
    v = np.maximum(along[every, :, winner] - along[every, :, loser], 0.0)
    shift, shrink = expected_change(gap, v)
    down = along * np.sqrt(shrink)[:, :, None]
    return _Rollouts(
        number,
        truth,
        weight + log_ndtr(gap / np.sqrt(1.0 + v)),
        mean + along * shift[:, :, None],
        cov - down[:, :, :, None] * down[:, :, None, :],
    )


def _in_order(played: _Rollouts) -> Array:
    """Return for each of F simulations (F,) the expected fraction of pairs that its order of means puts right."""
    F, g, n = played.mean.shape
    orders = in_order(played.mean.reshape(F * g, n), played.cov.reshape(F * g, n, n)).reshape(F, g)
    shares: Array = np.vecdot(played.shares(), orders)
    return shares


def _is_best(played: _Rollouts, at: float, normal: Array) -> npt.NDArray[np.bool_]:
    """Return for each simulation (F,) whether some item is the best with probability `at`, by bounds, then by draws."""
    from scipy.special import ndtr

    mean, cov, w = played.mean, played.cov, played.shares()
    n, every = mean.shape[2], np.arange(len(mean))
    top = np.einsum("fg,fgn->fn", w, mean).argmax(axis=1)
    var = cov[:, :, np.arange(n), np.arange(n)]
    v = np.maximum(var[every, :, top][:, :, None] + var - 2.0 * cov[every, :, top], 1e-12)
    over = ndtr((mean - mean[every, :, top][:, :, None]) / np.sqrt(v))  # F x g x n, P(an item is better than the top)
    over[every, :, top] = 0.0
    worse = np.einsum("fg,fgn->fn", w, over)
    done: npt.NDArray[np.bool_] = worse.sum(axis=1) <= 1.0 - at
    open_ = np.flatnonzero(~done & (worse.max(axis=1) <= 1.0 - at))
    if not open_.size:
        return done
    worse, w, mean, cov = worse[open_], w[open_], mean[open_], cov[open_]
    worse[np.arange(open_.size), top[open_]] = np.inf
    order = np.argsort(-worse, axis=1, kind="stable")  # the top first, then those that are closest to it
    items, far = order[:, : CLOSE + 1], order[:, CLOSE + 1 :]
    m = np.take_along_axis(mean, items[:, None], axis=2)
    S = np.take_along_axis(np.take_along_axis(cov, items[:, None, :, None], axis=2), items[:, None, None], axis=3)
    size = items.shape[1]
    scale = np.maximum(S[..., np.arange(size), np.arange(size)].max(axis=2), 1e-12)
    root = np.linalg.cholesky(S + 1e-8 * scale[..., None, None] * np.eye(size))
    f = m[..., None] + root @ normal[:, :size].T  # F x g x size x draws
    best = np.vecdot(w, (f[:, :, 0] >= f[:, :, 1:].max(axis=2)).mean(axis=2))
    done[open_] = best * np.prod(1.0 - np.take_along_axis(worse, far, axis=1), axis=1) >= at
    return done
