"""Whether the Gaussian of EP can be trusted: by how much its probabilities differ from those of the exact posterior.

Where answers are choices alone, and not given at random, it can: brute force says so. With lapses, many answers that
contradict one another have several explanations, and no Gaussian is all of them. Draws from it and from the prior, each
weighed by what the answers say of it over how likely it was drawn, tell by how much it is off, as far as they come near
all explanations: with few items they do.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from heedful.core.validation import check_count
from heedful.inference.gp.posterior import Posterior
from heedful.inference.gp.sites import ready
from heedful.inference.gp.stopping import FEW, Seen, log_likelihoods

Array = npt.NDArray[np.float64]

WITHIN = 0.03
"""Probabilities that are off by no more are said to be right."""

MOST_ITEMS = 60

_AGAIN = 1_000_003  # between the seeds of both halves of the draws


class Trust(NamedTuple):
    """Whether the probabilities of choices are right to WITHIN, as far as can be told; by how much the worst is off;
    how many draws, as good as unweighed, that is from. Where the weights leave fewer than 200, nothing can be told, and
    it is not to be trusted: `off` is 1. Where answers share noise, nothing is looked at: `draws` and `off` are 0."""

    right: bool
    off: float
    draws: float


def trust(prior: Posterior, posterior: Posterior, seen: Seen, *, draws: int = 20_000, seed: int = 0) -> Trust:
    """How far the posterior of one person (`infer`, a learner's) can be trusted, from what was believed before and the
    answers and sites in `seen`.

    Looks at the choices between items that were compared, of more than MOST_ITEMS those compared most often.
    """
    from scipy.special import ndtr

    check_count("draws", draws, least=2)
    check_count("seed", seed, least=0)
    if not seen.rows.size or (seen.rows.group >= 0).any():
        return Trust(True, 0.0, 0.0)
    items, inverse, often = np.unique(seen.rows.pairs, return_inverse=True, return_counts=True)
    seen = seen._replace(
        rows=seen.rows._replace(pairs=inverse.reshape(-1, 2), user=np.zeros(inverse.size // 2, np.int64))
    )
    before, after = prior.of_items(items), posterior.of_items(items)
    plain = after.draws(draws, seed)
    f = np.concatenate([plain[: draws // 2], before.draws(draws - draws // 2, seed + _AGAIN)])
    said, assumed = log_likelihoods(f, seen)
    log_w = said - np.logaddexp(0.0, assumed - _log_scale(before, seen))
    w = np.exp(log_w - log_w.max())
    w /= w.sum()
    left = float(1.0 / (w @ w))
    if left < FEW:
        return Trust(False, 1.0, left)
    looked_at = np.sort(np.argsort(-often, kind="stable")[:MOST_ITEMS])
    off = 0.0
    for place, a in enumerate(looked_at[:-1].tolist()):
        b = looked_at[place + 1 :]
        exact = w @ ndtr(f[:, [a]] - f[:, b])
        off = max(off, float(np.abs(exact - after.beats(np.full(b.size, a), b)).max()))
    return Trust(off <= WITHIN, off, left)


def _log_scale(before: Posterior, seen: Seen) -> float:
    """log of what the product of the sites integrates to against the prior."""
    table = ready(seen.rows, 1, before.mean.size)
    [T], [h] = table.natural(seen.sites.tau, seen.sites.nu)
    r = h - T @ before.mean
    hold = np.eye(len(T)) + T @ before.cov
    cov = before.cov @ np.linalg.inv(hold)
    return float(0.5 * (h + r) @ before.mean + 0.5 * r @ cov @ r - 0.5 * np.linalg.slogdet(hold)[1])
