"""Sample ratio mismatch: are the lists of one arm answered less often than those of the other?

Which arm a list belongs to, learned or control, is drawn by chance, the control with a known probability c. If an arm
loses answers (a cache, an app that is silent without a click), or if people answer one kind of list more often, then
what was answered in either arm cannot be compared. Commercial tests of websites check the same (Fabijan et al., KDD
2019: "Diagnosing sample ratio mismatch in online controlled experiments").

Lists are counted in the order in which it comes out whether they are answered: with their first answer, or without one
once their time is over. List i is then a step

    x_i = (A_i - c) (R_i - r_i),    A_i = 1 for the control, R_i = 1 if answered, r_i the share answered before it

If answering does not depend on the arm, A_i is 1 with probability c given all of that, so x_i has mean 0, whatever
people are like and however their habits change. With N_g the sum of the steps of person g, stopped once it reaches
plus or minus 1 / l - 1, the person changes the capital of a bet l by the factor 1 + l N_g, from 0 to 2, and that of the
opposite bet by 1 - l N_g. Capitals are products over people; their mean over all bets is the evidence. A step changes
one factor of each product, so the mean is a nonnegative martingale from 1: it ever reaches 1 / alpha with probability
alpha at most (Ville), however often one looks and whoever comes back, and nobody decides alone.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

BETS = 0.5 ** np.arange(6.0)
"""The bets l (6,), from 1, for large differences, to 1/32, for small ones; all are mixed with equal weights."""


def steps(
    shown: npt.NDArray[Any], answered: npt.NDArray[Any], control: npt.NDArray[np.bool_], c: float, wait: float,
    until: float,
) -> tuple[Array, Ints]:  # fmt: skip
    """Return (steps x (m,), indices of the m lists that they are of (m,)), in the order in which these came out.

    For n lists:
    - `shown` (n,): when each was shown; all times are in one unit
    - `answered` (n,): when each was first answered; nan for never
    - `control` (n,): whether it is in the control, which has the probability `c`, 0 < c < 1
    - `wait`: after how long without an answer a list counts as not answered
    - `until`: the time of the look; lists that are neither answered nor so old do not count"""
    over = shown + wait
    in_time = answered <= over  # nan: no
    out = np.where(in_time, np.maximum(np.nan_to_num(answered), shown), over)
    settled = np.flatnonzero(in_time | (over <= until))
    order = settled[np.argsort(out[settled], kind="stable")]
    answers = in_time[order].astype(np.float64)
    before = np.cumsum(answers) - answers
    shown_before = np.searchsorted(np.sort(shown), out[order], side="right")
    share = np.minimum((before + 0.5) / (shown_before + 1.0), 1.0)
    return (control[order] - c) * (answers - share), order


def log_evidence(x: Array, people: Ints) -> float:
    """Return the log of the evidence that the steps `x` (m,), in order, have another mean than 0; 0 without any.

    `people` (m,) has the number of the person of each, which may be any whole number."""
    if not x.size:
        return 0.0
    by_person = np.argsort(people, kind="stable")
    x, people = x[by_person], people[by_person]
    firsts = np.flatnonzero(np.r_[True, people[1:] != people[:-1]])
    lasts = np.r_[firsts[1:], x.size] - 1
    total = np.cumsum(x)
    sums = total - np.repeat(total[firsts] - x[firsts], lasts - firsts + 1)
    places, logs = np.arange(x.size), list[float]()
    for bet in BETS.tolist():
        reached = np.where(np.abs(sums) >= 1.0 / bet - 1.0, places, x.size)
        net = bet * sums[np.minimum(np.minimum.reduceat(reached, firsts), lasts)]
        logs += [float(np.log1p(net).sum()), float(np.log1p(-net).sum())]
    return float(np.logaddexp.reduce(logs)) - math.log(len(logs))
