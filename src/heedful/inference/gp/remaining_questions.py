"""Estimate of how many questions remain until a goal is reached (`stopping`), by simulating future answers
(rollouts).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from heedful.core.validation import check_count, describe
from heedful.inference.gp.acquisition import RULES, acquisition_score, expected_change
from heedful.inference.gp.posterior import Posterior
from heedful.inference.gp.stopping import GOALS, AnswerSites, Stop, check_goal, contenders, in_order, stopping, weights
from heedful.jit.kernel import Ints

Array = npt.NDArray[np.float64]

PLAYED = 40
"""The greatest number of items that a rollout compares."""

DRAWS = 400
"""The number of draws from which P(best) is computed in a rollout."""


class RemainingQuestions(NamedTuple):
    """How many questions are left: the median (`about`) and the quartiles (`low`, `high`) over simulated futures
    (rollouts).

    Rollouts end after `most` questions, so a value equal to `most` stands for that many or more.
    """

    about: int
    low: int
    high: int
    most: int

    def __str__(self) -> str:
        if self.about == 0:
            return "no questions left"
        if self.about >= self.most:
            return f"{self.most} questions left, or more"
        return f"about {self.about} {'question' if self.about == 1 else 'questions'} left"


class _Rollouts(NamedTuple):
    """The F simulations of future answers that have not reached the goal yet, about n items, each with p real answers
    and t simulated ones.

    `number` (F,): which simulation; `truth` (F x n): utilities that answer; `mean` (F x n), `cov` (F x n x n):
    posterior; `winner`, `loser`, `tau`, `nu` (F x (p + t)): answers and their EP sites.
    """

    number: Ints  # F; which simulation
    truth: Array  # F x n
    mean: Array  # F x n
    cov: Array  # F x n x n
    winner: Ints  # F x (p + t)
    loser: Ints  # F x (p + t)
    tau: Array  # F x (p + t)
    nu: Array  # F x (p + t)

    def of(self, which: npt.NDArray[np.bool_]) -> _Rollouts:
        columns: list[Any] = [x[which] for x in self]
        return _Rollouts(*columns)


def estimate_remaining(
    posterior: Posterior,
    goal: str = "best",
    rule: str = "",
    *,
    seen: AnswerSites | None = None,
    at: float = 0.9,
    most: int = 100,
    futures: int = 32,
    seed: int = 0,
    stop: Stop | None = None,
) -> RemainingQuestions:
    """Estimate how many more questions one person must answer until `stopping` is satisfied.

    `goal`: "best" or "ranking"; `at`: the probability to reach; `rule`: the acquisition rule that picks questions, by
    default that of the goal. Each of `futures` rollouts draws utilities from the posterior, which answer the questions
    with noise; each answer updates the Gaussian as `posterior_after` does, until the goal is reached or `most`
    questions were asked. `seed` makes the draws. `stop`: the result of `stopping`, if known already.

    The result is approximate. P(best) in a rollout is from DRAWS (400) draws and is checked less often the longer the
    rollout takes; the answers `seen` count only if all are plain choices between compared items. Rollouts compare at
    most PLAYED (40) items: those most likely to be the best or, for "ranking", evenly spaced ones, with the count
    scaled up. Raise ValueError, naming the argument, if one is invalid.
    """
    rule = rule or GOALS.get(goal, "")
    check_goal(posterior, goal, at)
    if rule not in RULES:
        raise ValueError(f"rule: expected one of {', '.join(RULES)}, got {describe(rule)}")
    for name, count, least in (("most", most, 1), ("futures", futures, 1), ("seed", seed, 0)):
        check_count(name, count, least=least)
    stop = stopping(posterior, goal, seen=seen, at=at, seed=seed) if stop is None else stop
    if stop.stop:
        return RemainingQuestions(0, 0, 0, most)
    items, times = _items_in_play(posterior, goal, seed)
    if items.size < 2:
        return RemainingQuestions(1, 1, 1, most)
    rng = np.random.default_rng(seed)
    start = _start(posterior.of_items(items), _plain_choices(seen, items), futures, rng)
    counts = _counts(start, goal, rule, at, most, rng)
    low, about, high = np.quantile(counts, (0.25, 0.5, 0.75), method="nearest")
    low, about, high = (min(most, max(1, round(float(count) * times))) for count in (low, about, high))
    return RemainingQuestions(about, low, high, most)


def _items_in_play(posterior: Posterior, goal: str, seed: int) -> tuple[Ints, float]:
    """Return the numbers of the items that simulations compare (rising, at most 40), and a factor: the number of
    questions that each simulated question stands for.

    For the goal "ranking" the items are evenly spaced over the ranking, and the factor is above 1 if not all take part.
    Otherwise they are the items most likely to be the best, drawn with `seed`, and the factor is 1.
    """
    n = posterior.mean.size
    if n <= PLAYED:
        return np.arange(n), 1.0
    if goal == "ranking":
        spread = np.linspace(0, n - 1, PLAYED).round().astype(np.int64)
        return np.sort(posterior.ranking()[spread]), n / PLAYED
    items = contenders(posterior)
    if items.size > PLAYED:
        chances = posterior.of_items(items).best(1000, seed)
        items = items[np.argsort(-chances, kind="stable")[:PLAYED]]
    return np.sort(items), 1.0


def _plain_choices(seen: AnswerSites | None, items: Ints) -> AnswerSites | None:
    """Return the answers `seen` with items renumbered by their place in `items`; None unless all are plain choices of
    them.
    """
    if seen is None or seen.rows.size == 0 or seen.lapse > 0.0 or seen.width > 0.0:
        return None
    rows = seen.rows
    if (rows.group >= 0).any() or (rows.times != 1.0).any() or not np.isin(rows.pairs, items).all():
        return None
    return seen._replace(rows=rows._replace(pairs=np.searchsorted(items, rows.pairs)))


def _start(posterior: Posterior, seen: AnswerSites | None, futures: int, rng: np.random.Generator) -> _Rollouts:
    """Return `futures` simulations of future answers, before their first question.

    Each has utilities of its own, which are taken as true. They are drawn from the Gaussian `posterior` or, if the
    answers `seen` are given, from the exact posterior after these answers, by importance sampling.
    """
    truth = posterior.draws(futures if seen is None else 2000, int(rng.integers(2**31)))
    pairs, tau, nu = np.empty((0, 2), np.int64), np.empty(0), np.empty(0)
    if seen is not None:
        truth = truth[rng.choice(len(truth), futures, p=weights(truth, seen))]
        pairs, tau, nu = seen.rows.pairs, seen.sites.tau, seen.sites.nu

    columns: list[Any] = [posterior.mean, posterior.cov, pairs[:, 0], pairs[:, 1], tau, nu]
    return _Rollouts(np.arange(futures), truth, *(np.repeat(x[None], futures, axis=0) for x in columns))


def _counts(played: _Rollouts, goal: str, rule: str, at: float, most: int, rng: np.random.Generator) -> Ints:
    """Return the number of questions that each of F simulations needs (F,) to reach `goal` with probability `at`.

    It is at most `most`. The goal is not checked after each question; the number is halfway between the last two
    checks.
    """
    n = played.mean.shape[1]
    a, b = np.triu_indices(n, 1)
    normal = rng.standard_normal((DRAWS, n))
    counts, last = np.full(played.number.size, most), 0
    for t in range(1, most + 1):
        played = _ask(played, rule, a, b, rng)
        if t - last >= max(1, t // 8):
            sure = in_order(played.mean, played.cov) if goal == "ranking" else _best(played, normal)
            counts[played.number[sure >= at]] = (last + 1 + t) // 2
            played, last = played.of(sure < at), t
            if not played.number.size:
                break
    return counts


def _ask(played: _Rollouts, rule: str, a: Ints, b: Ints, rng: np.random.Generator) -> _Rollouts:
    """Return the simulations after one more question each and its simulated answer.

    `rule`: acquisition rule; `a`, `b`: the items of the candidate pairs.
    """
    number, truth, mean, cov = played[:4]
    n, every = mean.shape[1], np.arange(number.size)
    if rule == "random":
        k = rng.integers(a.size, size=number.size)
    else:
        var = cov[:, np.arange(n), np.arange(n)]
        v = np.maximum(var[:, a] + var[:, b] - 2.0 * cov[:, a, b], 0.0)
        k = acquisition_score(rule, mean[:, a], mean[:, b], v).argmax(axis=1)
    first = truth[every, a[k]] - truth[every, b[k]] + rng.standard_normal(number.size) > 0.0
    winner, loser = np.where(first, a[k], b[k]), np.where(first, b[k], a[k])
    along = cov[every, :, winner] - cov[every, :, loser]
    gap, v = mean[every, winner] - mean[every, loser], np.maximum(along[every, winner] - along[every, loser], 0.0)
    shift, shrink = expected_change(gap, v)
    down = along * np.sqrt(shrink)[:, None]
    left = np.maximum(1.0 - v * shrink, 1e-12)
    return _Rollouts(
        number,
        truth,
        mean + along * shift[:, None],
        cov - down[:, :, None] * down[:, None, :],
        np.column_stack([played.winner, winner]),
        np.column_stack([played.loser, loser]),
        np.column_stack([played.tau, shrink / left]),  # the site that changes the Gaussian by as much
        np.column_stack([played.nu, (shift + gap * shrink) / left]),
    )


def _best(played: _Rollouts, normal: Array) -> Array:
    """Return for each of F simulations (F,) the probability that some item is the best, for the item where it is
    highest.

    It is a share of importance-weighted draws; `normal` (draws x n) are standard normal numbers for n items, the same
    in all simulations.
    """
    from scipy.special import ndtr

    mean, cov = played.mean, played.cov
    F, n = mean.shape
    size = np.maximum(cov[:, np.arange(n), np.arange(n)].max(axis=1), 1e-12)
    root = np.linalg.cholesky(cov + (1e-8 * size)[:, None, None] * np.eye(n))
    f = mean[:, :, None] + root @ normal.T  # F x n x draws
    every = np.arange(F)[:, None]
    g = f[every, played.winner] - f[every, played.loser]  # F x (p + t) x draws
    log_w = np.log(np.maximum(ndtr(g), 1e-300)) + g * (0.5 * g * played.tau[:, :, None] - played.nu[:, :, None])
    log_w = log_w.sum(axis=1)
    w = np.exp(log_w - log_w.max(axis=1, keepdims=True))
    flat = (every * n + f.argmax(axis=1)).ravel()
    shares = np.bincount(flat, w.ravel(), F * n).reshape(F, n) / w.sum(axis=1, keepdims=True)
    return shares.max(axis=1)  # type: ignore[no-any-return]
