"""How good feedback was, and what the theorems of [J15] promise for it: for logs whose utilities are known.

`known_utilities` measures a log; alpha and the slack of every round follow from it ([J15] section 3.1), and the sign
test of section 3.2. `bounds` evaluates after every round the theorems that are about a learner. A theorem comes with
its hypotheses, each in words and with whether it holds here; its values are NaN unless all of them do.

>>> known = known_utilities(log, Ranking(5), w_star)
>>> quality(known, alpha=0.5).strict  # the greatest alpha that no round falls short of
>>> facts = Facts(w_star, R, S, alpha=0.5, slack=slacks(known, 0.5))
>>> for bound in bounds(learner, facts): print(bound.theorem, bound.holds, bound.lacking, bound.values[-1])
"""

from __future__ import annotations

from heedful.diagnostics.feedback import (
    Quality,
    SignTest,
    Utilities,
    alphas,
    gains,
    known_utilities,
    quality,
    regrets,
    sign_test,
    slacks,
    strict_alpha,
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
    "Quality",
    "SignTest",
    "Utilities",
    "alphas",
    "bounds",
    "convex_bound",
    "exponentiated_bound",
    "gains",
    "known_utilities",
    "lower_bound",
    "perceptron_bound",
    "quality",
    "regrets",
    "second_order_bound",
    "sign_test",
    "slacks",
    "strict_alpha",
]
