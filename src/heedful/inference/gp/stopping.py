"""When to stop asking: from what is believed.

Two goals. "best": the likeliest favourite is the best item with probability `at`. "ranking": of the pairs of items,
the share `at` is expected to be in the right order. Both are probabilities of the posterior, so stopping at .9 is right
nine times in ten, whichever questions were asked, as far as the posterior is: noise as assumed, a prior that people
are drawn from. The Gaussian of EP has the right mean and variance but no skew, and so says .9 where it is more like
.96, and asks on. Told the answers (`Seen`), P(best) is that of the exact posterior: draws from the Gaussian, each
weighed by what the answers say of it over what the sites of EP say.
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
"""What can be expected, and the questions that get there in the fewest."""

NEGLIGIBLE = 1e-4
"""Items that together are best with less than this probability are left out of sampling, and of P(best)."""

_AGAIN = 1_000_003  # between the seeds of the two looks

FEW = 200
"""Draws, as good as unweighed ones, that weights have to leave."""


class Seen(NamedTuple):
    """The answers of one person that a posterior is from, and the sites that EP put in their place."""

    rows: PairRows
    sites: Sites
    width: float = 0.0
    lapse: float = 0.0


class Stop(NamedTuple):
    """Whether to stop; how sure it is (of "best": P(item is the best); of "ranking": the share of pairs expected to be
    in the right order); the likeliest best item, of "ranking" the first; and how many draws, as good as unweighed, that
    is from, of "ranking" 0."""

    stop: bool
    sure: float
    item: int
    draws: float


def stopping(
    posterior: Posterior | Mixture,
    goal: str = "best",
    *,
    seen: Seen | None = None,
    at: float = 0.9,
    draws: int = 4000,
    seed: int = 0,
) -> Stop:
    """Whether it is as sure as `at`, for the goal "best" or "ranking".

    P(best) is a share of seeded draws among the items that can be best: off by .005 (one standard error) at .9 for 4000
    of them, and up to NEGLIGIBLE for items left out. Who looks after every answer stops at the first lucky draws; so
    where it is sure, it has to be so again in four times as many others, and that share is told. With `seen` P(best) is
    that of the exact posterior; where its weights leave fewer than FEW draws, or answers share noise (rankings, best of
    several), that of the Gaussian. The ranking's is that of the Gaussian, exactly. Items that are equally good, the
    same difference in every draw, count as best together, and as in order. ValueError, naming what is wrong.
    """
    check_goal(posterior, goal, at)
    check_count("draws", draws)
    check_count("seed", seed, least=0)
    if goal == "ranking":
        sure = sum(w * in_order(each.mean[None], each.cov[None])[0] for w, each in posterior.weighted())
        return Stop(bool(sure >= at), float(sure), int(posterior.mean.argmax()), 0.0)
    items = contenders(posterior)
    if seen is not None and (seen.rows.size == 0 or (seen.rows.group >= 0).any()):
        seen = None
    if seen is not None:
        items = np.union1d(items, seen.rows.pairs)
        seen = seen._replace(rows=seen.rows._replace(pairs=np.searchsorted(items, seen.rows.pairs)))
    spread = float(np.sqrt(max(posterior.cov.diagonal().max(), 0.0)))
    verdict = Stop(False, 0.0, 0, 0.0)
    for look in range(2):
        f = posterior.of_items(items).draws(draws * 4**look, seed + look * _AGAIN)
        w = np.full(len(f), 1.0 / len(f))
        if seen is not None:
            exact = weights(f, seen)
            w = exact if 1.0 / (exact @ exact) >= FEW else w
        chances = w @ (f >= f.max(axis=1, keepdims=True) - SAME * max(spread, 1e-12))
        k = int(chances.argmax())
        verdict = Stop(bool(chances[k] >= at), min(float(chances[k]), 1.0), int(items[k]), float(1.0 / (w @ w)))
        if not verdict.stop:
            break
    return verdict


def weights(f: Array, seen: Seen) -> Array:
    """What draws f (d x n) from the Gaussian of EP stand for in the posterior (d,), adding up to 1: the likelihood of
    the answers, none of which share noise, over the product of their sites."""
    said, assumed = log_likelihoods(f, seen)
    log_w = said - assumed
    w = np.exp(log_w - log_w.max())
    return w / w.sum()  # type: ignore[no-any-return]


def log_likelihoods(f: Array, seen: Seen) -> tuple[Array, Array]:
    """The log of what the answers, none of which share noise, say of utilities f (d x n), (d,), and of what their sites
    do."""
    from scipy.special import ndtr

    rows = seen.rows
    known = np.column_stack([rows.pairs, rows.equal])
    kinds, which = np.unique(known, axis=0, return_inverse=True)  # what was asked again is looked at once
    which = which.ravel()
    times, tau, nu = (np.bincount(which, rows.times * x) for x in (np.ones(rows.size), seen.sites.tau, seen.sites.nu))
    g = f[:, kinds[:, 0]] - f[:, kinds[:, 1]]
    equal, width = kinds[:, 2] == 1, seen.width
    p = ndtr(g - width)
    if equal.any():
        apart = np.abs(g[:, equal])
        p[:, equal] = ndtr(width - apart) - ndtr(-width - apart)
    if seen.lapse > 0.0:
        p = (1.0 - seen.lapse) * p + seen.lapse / (3.0 if width > 0.0 else 2.0)
    return np.log(np.maximum(p, 1e-300)) @ times, g @ nu - 0.5 * np.square(g) @ tau


def contenders(posterior: Posterior | Mixture) -> Ints:
    """The items that can be the best (rising): all but those that together are so with less than NEGLIGIBLE.

    An item is the best with at most P(it is better than the one with the highest mean); the lowest of these go, while
    their sum stays below.
    """
    top = int(posterior.mean.argmax())
    bound = posterior.better(np.arange(posterior.mean.size), np.full(posterior.mean.size, top))
    order = np.argsort(bound, kind="stable")
    return np.sort(order[np.cumsum(bound[order]) >= NEGLIGIBLE])


# ---------------------------------------------------------------------------- parts


def in_order(mean: Array, cov: Array) -> Array:
    """Share of pairs expected to be in the right order, of some Gaussians (F x n, F x n x n), (F,)."""
    from scipy.special import ndtr

    n = mean.shape[1]
    a, b = np.triu_indices(n, 1)
    var = cov[:, np.arange(n), np.arange(n)]
    v = (var[:, a] - cov[:, a, b]) + (var[:, b] - cov[:, b, a])
    same = v <= SAME * SAME * np.maximum(var.max(axis=1, keepdims=True), np.finfo(np.float64).tiny)
    right = ndtr(np.abs(mean[:, a] - mean[:, b]) / np.sqrt(np.where(same, 1.0, v)))
    return np.where(same, 1.0, right).mean(axis=1)  # type: ignore[no-any-return]


def check_goal(posterior: Posterior | Mixture, goal: str, at: float) -> None:
    if goal not in GOALS:
        raise ValueError(f"goal: expected one of {', '.join(GOALS)}, got {describe(goal)}")
    if not is_number(at, int, float) or not 0.0 < at < 1.0:
        raise ValueError(f"at: expected a number between 0 and 1, got {describe(at)}")
    check_count("items", posterior.mean.size, least=2)
