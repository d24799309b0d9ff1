"""The difference of two means, or a mean of paired differences, with a 95 % interval that is robust to clusters of
people.

One person's lists resemble each other, so a person, not a list, is what was drawn at random. With y_i the score of list
i, n_a the number of lists of arm a (L learned, C control), m_ga the number of those that cluster (person) g answered,
e_i = y_i - mean of its arm:

    d    = mean_L - mean_C
    s_g  = sum_{i in g, L} e_i / (n_L r_gL)  -  sum_{i in g, C} e_i / (n_C r_gC),     r_ga = sqrt(1 - m_ga / n_a)
    V(d) = sum_g s_g^2
    d +- t_{.975, nu} sqrt(V),   nu = tr(M)^2 / tr(M^2)

This is the bias-reduced sandwich estimator CR2 of Bell & McCaffrey (2002), which for two means has this closed form,
with their degrees of freedom nu: M_gh = E[s_g s_h] where the scores are independent of equal variance. Where everybody
answered one list V is that of Welch's test. It holds up where one arm is small, as a control arm is.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from heedful.results.report import Difference

Array = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]
Ints = npt.NDArray[np.int64]


def difference(scores: Array, learned: Bools, people: Ints) -> Difference | None:
    """Return the mean score of the learned lists minus that of the control lists, with its 95 % interval, for n lists.

    `scores` (n,) lie in [0, 1]; `learned` (n,) is True for a list in the model's order and False for one in the
    caller's own order (control); `people` (n,) numbers the person who answered, from 0. Return None if no interval can
    be computed: an arm is empty, comes from one person, or has no spread.
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


def paired_difference(differences: Array, people: Ints, most: float = 1.0) -> Difference | None:
    """Return the mean of n paired `differences` (n,), with its 95 % interval.

    Each difference lies between -`most` and `most`; `people` (n,) numbers the person whom it is from, from 0. The
    variance of the mean is V = sum_g s_g^2, s_g = sum_{i in g} e_i / (n r_g), r_g = sqrt(1 - m_g / n), where g is a
    person, m_g the number of their differences, and e_i a difference minus the mean. Return None if no interval can be
    computed: all come from one person, or there is no spread.
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
