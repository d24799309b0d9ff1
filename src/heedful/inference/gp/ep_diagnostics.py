"""Diagnostics of EP: by how much its choice probabilities differ from those of the exact posterior.

For plain choices without lapses EP is accurate, as brute force confirms. With lapses, contradicting answers make the
posterior multimodal, which no Gaussian can represent. The error is measured by importance sampling from EP's Gaussian
and from the prior; this is reliable if the draws reach all modes, as they do with few items.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from heedful.core.validation import check_count
from heedful.inference.gp.posterior import Posterior
from heedful.inference.gp.sites import make_table
from heedful.inference.gp.stopping import FEW, AnswerSites, log_likelihoods

WITHIN = 0.03
"""The largest error of a probability that counts as accurate."""

MOST_ITEMS = 60

_AGAIN = 1_000_003  # difference between the seeds of the two halves of the draws


class EPDiagnostics(NamedTuple):
    """Whether EP's choice probabilities of one person are accurate to WITHIN (`reliable`), the largest error found
    (`max_error`), and the effective number of importance-sampling draws behind it (`effective_draws`).

    With fewer than 200 effective draws `reliable` is False and `max_error` 1. If there are rankings or best-of-k
    answers, or no answers, nothing is checked: `reliable` is True, and `effective_draws` and `max_error` are 0.
    """

    reliable: bool
    max_error: float
    effective_draws: float


def diagnose_ep(prior: Posterior, posterior: Posterior, answers: AnswerSites, *, draws: int = 20_000) -> EPDiagnostics:
    """Compare EP's posterior of one person with importance sampling of the exact posterior.

    `prior`: the person's prior; `posterior`: EP's result; `answers`: the answers with their sites. The probabilities of
    choices between compared items are checked, at most those of the MOST_ITEMS (60) items compared most often. The
    number of draws is `draws`, half of them from the prior.
    """
    from scipy.special import ndtr

    check_count("draws", draws, least=2)
    if not answers.rows.size or (answers.rows.group >= 0).any():
        return EPDiagnostics(True, 0.0, 0.0)
    items, inverse, often = np.unique(answers.rows.pairs, return_inverse=True, return_counts=True)
    answers = answers._replace(
        rows=answers.rows._replace(pairs=inverse.reshape(-1, 2), user=np.zeros(inverse.size // 2, np.int64))
    )
    before, after = prior.of_items(items), posterior.of_items(items)
    plain = after.draws(draws)
    f = np.concatenate([plain[: draws // 2], before.draws(draws - draws // 2, _AGAIN)])
    of_answers, assumed = log_likelihoods(f, answers)
    log_w = of_answers - np.logaddexp(0.0, assumed - _log_scale(before, answers))
    w = np.exp(log_w - log_w.max())
    w /= w.sum()
    left = float(1.0 / (w @ w))
    if left < FEW:
        return EPDiagnostics(False, 1.0, left)
    looked_at = np.sort(np.argsort(-often, kind="stable")[:MOST_ITEMS])
    off = 0.0
    for place, a in enumerate(looked_at[:-1].tolist()):
        b = looked_at[place + 1 :]
        exact = w @ ndtr(f[:, [a]] - f[:, b])
        off = max(off, float(np.abs(exact - after.beats(np.full(b.size, a), b)).max()))
    return EPDiagnostics(off <= WITHIN, off, left)


def _log_scale(before: Posterior, answers: AnswerSites) -> float:
    """Return the log integral of the prior `before` times the product of the sites of the answers `answers`."""
    table = make_table(answers.rows, 1, before.mean.size)
    [T], [h] = table.natural(answers.sites.tau, answers.sites.nu)
    r = h - T @ before.mean
    hold = np.eye(len(T)) + T @ before.cov
    cov = before.cov @ np.linalg.inv(hold)
    return float(0.5 * (h + r) @ before.mean + 0.5 * r @ cov @ r - 0.5 * np.linalg.slogdet(hold)[1])
