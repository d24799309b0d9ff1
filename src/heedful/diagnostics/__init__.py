"""Diagnostics for logs with known utilities: the quality of the feedback, and the regret bounds of [J15].

[J15] is Shivaswamy & Joachims, *Coactive Learning*, JAIR 53, 2015. `true_utilities` computes the utilities of a log;
alpha and the slack of each round ([J15] section 3.1) and the sign test (section 3.2) follow from them. `bounds`
evaluates the theorems about a learner after each round. Each theorem comes with its hypotheses in words, and whether
each holds here; its values are NaN unless all hold.

    >>> utilities = true_utilities(log, Ranking(5), w_star)
    >>> strict_alpha(utilities)  # the greatest alpha that every round satisfies
    >>> facts = Facts(w_star, R, S, alpha=0.5, slack=slacks(utilities, 0.5))
    >>> for bound in bounds(learner, facts): print(bound.theorem, bound.holds, bound.lacking, bound.values[-1])
"""

from __future__ import annotations

from heedful.diagnostics.feedback import (
    SignTest,
    Utilities,
    alphas,
    gains,
    regrets,
    sign_test,
    slacks,
    strict_alpha,
    true_utilities,
)
from heedful.diagnostics.theorems import (
    Bound,
    Facts,
    Hypothesis,
    bounds,
    convex_bound,
    exponentiated_bound,
    lower_bound,
    perceptron_bound,
    second_order_bound,
)

__all__ = [
    "Bound",
    "Facts",
    "Hypothesis",
    "SignTest",
    "Utilities",
    "alphas",
    "bounds",
    "convex_bound",
    "exponentiated_bound",
    "gains",
    "lower_bound",
    "perceptron_bound",
    "regrets",
    "second_order_bound",
    "sign_test",
    "slacks",
    "strict_alpha",
    "true_utilities",
]
