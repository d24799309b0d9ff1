"""Two arms compared, or pairs: a difference of means with a 95 % interval that is robust to who answered.

One person's lists resemble each other, so a person, not a list, is what was drawn at random. With y_i the score of
list i, n_a the lists of arm a, m_ga those of them that cluster (person) g answered, e_i = y_i - mean of its arm:

    d    = mean_L - mean_C
    s_g  = sum_{i in g, L} e_i / (n_L r_gL)  -  sum_{i in g, C} e_i / (n_C r_gC),     r_ga = sqrt(1 - m_ga / n_a)
    V(d) = sum_g s_g^2
    d +- t_{.975, nu} sqrt(V),   nu = tr(M)^2 / tr(M^2)

This is the bias-reduced sandwich estimator CR2 of Bell & McCaffrey (2002), which for two means has this closed form,
with their degrees of freedom: M_gh = E[s_g s_h] where the scores are independent of equal variance. Where everybody
answered one list V is that of Welch's test. It holds up where one arm is small, as a control is.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]
Ints = npt.NDArray[np.int64]


class Difference(NamedTuple):
    """The difference of two means (learned lists minus control lists), with a 95 % interval."""

    by: float
    low: float
    high: float
    people: int
    """the number of people who answered; a list without a person counts as one"""


def difference(scores: Array, learned: Bools, people: Ints) -> Difference | None:
    """Return the difference of the two arms' means, of scores from 0 to 1 (n,); `learned` (n,) says the arm of each,
    `people` (n,) who answered, numbered from 0.

    Return None if chance cannot be told: an arm is empty, or comes from one person, or has no spread.
    """
    arms = learned, ~learned
    n = [int(arm.sum()) for arm in arms]
    if min(n) == 0:
        return None
    means = [float(scores[arm].mean()) for arm in arms]
    residuals = scores - np.where(learned, *means)
    size = int(people.max()) + 1
    m = [np.bincount(people[arm], minlength=size).astype(np.float64) for arm in arms]
    left = [1.0 - m[a] / n[a] for a in (0, 1)]  # r^2
    if min(float(each.min()) for each in left) <= 0.0:
        return None
    u = [m[a] / (n[a] * np.sqrt(left[a])) for a in (0, 1)]  # the weights of a cluster's lists, summed
    sums = [np.bincount(people[arm], residuals[arm], size) for arm in arms]
    s = sums[0] / (n[0] * np.sqrt(left[0])) - sums[1] / (n[1] * np.sqrt(left[1]))
    variance = float(s @ s)
    if variance <= 1e-24:
        return None
    # M = diag(d) - v_L v_L' - v_C v_C'
    d = m[0] / (n[0] ** 2 * left[0]) + m[1] / (n[1] ** 2 * left[1])
    v = [u[a] / math.sqrt(n[a]) for a in (0, 1)]
    trace = float(d.sum() - v[0] @ v[0] - v[1] @ v[1])
    squared = float(d @ d - 2.0 * d @ (v[0] ** 2 + v[1] ** 2))
    squared += float((v[0] @ v[0]) ** 2 + (v[1] @ v[1]) ** 2 + 2.0 * (v[0] @ v[1]) ** 2)
    by = means[0] - means[1]
    half = quantile(trace**2 / squared) * math.sqrt(variance)
    return Difference(by, max(by - half, -1.0), min(by + half, 1.0), int(np.unique(people).size))


def paired(differences: Array, people: Ints, most: float = 1.0) -> Difference | None:
    """Return the mean of paired differences (n,), each from -`most` to `most`, of `people` (n,) numbered from 0.

    It is the same estimator with one arm: V = sum_g s_g^2, s_g = sum_{i in g} e_i / (n r_g), r_g = sqrt(1 - m_g / n).
    Return None if chance cannot be told: all come from one person, or there is no spread.
    """
    n = differences.size
    m = np.bincount(people).astype(np.float64)
    left = 1.0 - m / n  # r^2
    if n == 0 or float(left.min()) <= 0.0:
        return None
    by = float(differences.mean())
    s = np.bincount(people, differences - by) / (n * np.sqrt(left))
    variance = float(s @ s)
    if variance <= 1e-24:
        return None
    # M = diag(d) - v v'
    d, v = m / (n**2 * left), m / (n**1.5 * np.sqrt(left))
    trace = float(d.sum() - v @ v)
    squared = float(d @ d - 2.0 * d @ v**2 + (v @ v) ** 2)
    half = quantile(trace**2 / squared) * math.sqrt(variance)
    return Difference(by, max(by - half, -most), min(by + half, most), int((m > 0).sum()))


def quantile(freedom: float) -> float:
    """Return t_{.975}, the quantile of Student's t distribution with `freedom` degrees of freedom."""
    from scipy.special import stdtrit

    return float(stdtrit(freedom, 0.975))
