"""When to stop asking: rules on the posterior probability that the goal is reached.

Goal "best": some item is the best one with probability `at`. Goal "ranking": the expected fraction of pairs of items in
the right order is `at`. Both are posterior probabilities, so stopping at .9 is right nine times in ten, whichever
questions were asked, provided that the model holds: the noise, and a prior that people are drawn from. EP's Gaussian
has the right mean and variance but no skew; it says .9 where .96 is closer and so asks too many questions. If the
answers are given (`AnswerSites`), P(best) is therefore computed under the exact posterior, by importance sampling:
draws from the Gaussian, weighted by the likelihood of the answers over their EP sites.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from heedful.core.validation import check_count, describe, is_number
from heedful.inference.gp.ep import Sites
from heedful.inference.gp.mixture import Mixture
from heedful.inference.gp.posterior import SAME, Posterior
from heedful.inference.pairwise import PairRows
from heedful.jit.kernel import Ints

Array = npt.NDArray[np.float64]

GOALS = {"best": "eubo", "ranking": "bald"}
"""The goals, each with the acquisition rule that reaches it with the fewest questions."""

NEGLIGIBLE = 1e-4
"""Items that together are the best with less than this probability are left out of P(best)."""

_AGAIN = 1_000_003  # difference between the seeds of the first draws and the confirming ones

FEW = 200
"""Importance weights are used only if the effective number of draws is at least FEW."""


class AnswerSites(NamedTuple):
    """The answers of one person behind a posterior (`rows`), with the `sites` that stand for them in EP (Gaussian
    factors), and what was assumed of the person: `width`, the perceived difference below which items tie, and `lapse`,
    the probability of a random answer.
    """

    rows: PairRows
    sites: Sites
    width: float = 0.0
    lapse: float = 0.0


class Stop(NamedTuple):
    """The decision of `stopping`.

    `stop`: True to stop asking. `sure`: P(`item` is the best), or the expected fraction of pairs in the right order.
    `item`: number of the most probable best item, or of the first in the ranking. `draws`: effective number of draws
    behind `sure`; 0 for the goal "ranking", which needs none.
    """

    stop: bool
    sure: float
    item: int
    draws: float


def stopping(
    posterior: Posterior | Mixture,
    goal: str = "best",
    *,
    answers: AnswerSites | None = None,
    at: float = 0.9,
    draws: int = 4000,
    seed: int = 0,
) -> Stop:
    """Decide whether the goal, "best" or "ranking", is reached with probability `at`.

    P(best) is a share of `draws` draws from the posterior, made with `seed`; its standard error at .9 is .005 for 4000
    draws, plus at most NEGLIGIBLE (1e-4) for items left out. Checking after every answer would sooner or later stop by
    luck, so a probability that is high enough must be confirmed by four times as many other draws; then theirs is
    returned.

    With `answers`, P(best) is that of the exact posterior given these answers; but it is that of the Gaussian if fewer
    than FEW (200) effective draws remain, or if there are rankings or best-of-k answers, whose rows share noise. For
    "ranking" the result is exact for the Gaussian. Items with identical utilities count as best together, and as in the
    right order. Raise ValueError, naming the argument, if one is invalid.
    """
    check_goal(posterior, goal, at)
    check_count("draws", draws)
    check_count("seed", seed, least=0)
    if goal == "ranking":
        sure = sum(w * in_order(part.mean[None], part.cov[None])[0] for w, part in posterior.components())
        return Stop(bool(sure >= at), float(sure), int(posterior.mean.argmax()), 0.0)
    items = contenders(posterior)
    if answers is not None and (answers.rows.size == 0 or (answers.rows.group >= 0).any()):
        answers = None
    if answers is not None:
        items = np.union1d(items, answers.rows.pairs)
        answers = answers._replace(rows=answers.rows._replace(pairs=np.searchsorted(items, answers.rows.pairs)))
    spread = float(np.sqrt(max(posterior.cov.diagonal().max(), 0.0)))
    verdict = Stop(False, 0.0, 0, 0.0)
    for look in range(2):
        f = posterior.of_items(items).draws(draws * 4**look, seed + look * _AGAIN)
        w = np.full(len(f), 1.0 / len(f))
        if answers is not None:
            exact = weights(f, answers)
            w = exact if 1.0 / (exact @ exact) >= FEW else w
        chances = w @ (f >= f.max(axis=1, keepdims=True) - SAME * max(spread, 1e-12))
        k = int(chances.argmax())
        verdict = Stop(bool(chances[k] >= at), min(float(chances[k]), 1.0), int(items[k]), float(1.0 / (w @ w)))
        if not verdict.stop:
            break
    return verdict


def weights(f: Array, answers: AnswerSites) -> Array:
    """Return importance weights (d,), which sum to 1, that correct d draws `f` (d x n) of n utilities from EP's
    Gaussian to the exact posterior.

    They are proportional to the likelihood of the answers in `answers` divided by the product of their sites, the
    Gaussian factors that EP puts in its place. Answers with shared noise (rankings, best-of-k) are not allowed.
    """
    exact, assumed = log_likelihoods(f, answers)
    log_w = exact - assumed
    w = np.exp(log_w - log_w.max())
    return w / w.sum()  # type: ignore[no-any-return]


def log_likelihoods(f: Array, answers: AnswerSites) -> tuple[Array, Array]:
    """Return the log likelihood of the answers `answers` at each of d vectors of n utilities f (d x n), and the log of
    the product of their sites (EP's Gaussian factors), (d,) each.

    Answers with shared noise (rankings, best-of-k) are not allowed.
    """
    from scipy.special import ndtr

    rows = answers.rows
    questions = np.column_stack([rows.pairs, rows.equal])
    kinds, which = np.unique(questions, axis=0, return_inverse=True)  # repeated answers are evaluated once
    which = which.ravel()
    times, tau, nu = (
        np.bincount(which, rows.times * x) for x in (np.ones(rows.size), answers.sites.tau, answers.sites.nu)
    )
    g = f[:, kinds[:, 0]] - f[:, kinds[:, 1]]
    equal, width = kinds[:, 2] == 1, answers.width
    p = ndtr(g - width)
    if equal.any():
        apart = np.abs(g[:, equal])
        p[:, equal] = ndtr(width - apart) - ndtr(-width - apart)
    if answers.lapse > 0.0:
        p = (1.0 - answers.lapse) * p + answers.lapse / (3.0 if width > 0.0 else 2.0)
    return np.log(np.maximum(p, 1e-300)) @ times, g @ nu - 0.5 * np.square(g) @ tau


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
