"""Do values lean to one side of zero? Evidence about many questions at once that may be looked at at any time.

Values x_1, x_2, ... in [-1, 1] come one after another. For any bet 0 < l < 1 the product of (1 + l x_i) is a
nonnegative supermartingale that starts at 1 if the mean of each value, given those before it, is at most 0
(Waudby-Smith and Ramdas, JRSS B 2024). So is its mean over several bets, the evidence that the values lean upwards;
that of -x is the evidence that they lean downwards. By Ville's inequality either ever reaches 1 / alpha with
probability alpha at most if there is no such leaning.

Among m questions `sure` finds those that may be answered so that any answer is ever wrong with probability alpha at
most, whatever depends on what: it is the closed test whose test of several hypotheses together is the mean of their
evidence (Vovk and Wang, Ann. Stat. 2021). No question needs more than m / alpha, Bonferroni's limit.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from heedful.evaluation.confidence import check_alpha

Array = npt.NDArray[np.float64]

BETS = np.array([0.2, 0.5, 0.8, 0.97])
"""The bets l; the large ones are for values that hardly ever contradict each other."""
SHARES = np.array([0.1, 0.2, 0.3, 0.4])
"""The share of each bet in the mean."""
MOST = 600.0
"""The log of the evidence beyond which more makes no difference."""


def log_evidence(values: npt.NDArray[np.floating]) -> tuple[Array, Array]:
    """Return the logs of the evidence (upwards, downwards) that values lean to one side of 0, for each of m sequences.

    `values` (n, m) are in [-1, 1], a row for each time; 0 is no evidence of anything. Both results are (m,), and 0
    without values. Raise ValueError if a value is out of range."""
    x = np.asarray(values, np.float64)
    if x.ndim != 2 or not (np.abs(x) <= 1.0).all():
        raise ValueError("values: expected numbers from -1 to 1, a row for each time, got others")
    up, down = (np.log1p(BETS[:, None, None] * sign * x).sum(axis=1) for sign in (1.0, -1.0))
    return _mixed(up), _mixed(down)


def _mixed(logs: Array) -> Array:
    """Return the log of the mean over the bets, (m,), of the capitals whose logs are `logs` (bets, m)."""
    top = logs.max(axis=0)
    mixed: Array = top + np.log(SHARES @ np.exp(logs - top))
    return mixed


def sure(log_evidence: Array, alpha: float = 0.05) -> npt.NDArray[np.bool_]:
    """Return which of m questions have enough evidence to be answered (m,), so that any answer is wrong with
    probability at most `alpha`.

    `log_evidence` (m,) are the logs of the evidence for each. A question is answered if the mean evidence of every
    group of questions that it is in reaches 1 / alpha. Raise ValueError unless 0 < alpha < 1."""
    check_alpha(alpha)
    evidence = np.exp(np.clip(log_evidence, -MOST, MOST))
    m = evidence.size
    order = np.argsort(evidence, kind="stable")
    sums = np.concatenate([[0.0], np.cumsum(evidence[order])])
    # Of the groups of k + 1 questions with the one of rank r, the mean is least with the k smallest of the others.
    rank, k = np.arange(m)[:, None], np.arange(m)
    totals = np.where(k <= rank, evidence[order][:, None] + sums[:-1], sums[1:])
    answered = np.zeros(m, bool)
    answered[order] = (totals / (k + 1.0)).min(axis=1, initial=np.inf) >= 1.0 / alpha
    return answered
