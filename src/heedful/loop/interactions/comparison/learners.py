"""Learners of choices by name, such as `hierarchical-gp`, for loops with one person or many."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from heedful.core.validation import describe
from heedful.loop.interactions.named import loop_learner
from heedful.spaces.comparison import Choice

DEFAULT = "hierarchical-gp"
"""The learner of a loop of choices if none is named."""
_RULE = re.compile(r"[:,]\s*rule\s*=")
_NEEDED = {"with_items": "state, features", "posterior": "state, user, items"}


def chooser(spec: str, goal: str | None, n_features: int = 0) -> Any:
    """Return the learner of choices that `spec` names, with parameters, over items with `n_features` features.

    `goal` is "best" or "ranking". If `spec` gives no rule for selecting questions (acquisition rule), the learner gets
    the rule for that goal. Raise ValueError if there is no such learner of choices, if it does not fit, or if `goal` is
    None."""
    if goal is None:
        expected = "expected what they are for, best or ranking"
        raise ValueError(f"choices: {expected}, as {spec} learns from choices, got none")
    nothing = Choice(0, features=np.empty((0, n_features)))
    learner = loop_learner(spec, 0, nothing, "pairwise", f"of choices, such as {DEFAULT}")
    if not isinstance(getattr(learner, "space", None), Choice):
        raise ValueError(f"learner: expected one whose space is a Choice, of what it shows, got {spec}")
    for method, takes in _NEEDED.items():
        if not hasattr(learner, method):
            raise ValueError(f"learner: expected one with {method}({takes}), got {spec}, which has none")
    from heedful.inference.gp.stopping import GOALS

    if "rule" in learner._fields and not _RULE.search(spec):
        return learner._replace(rule=GOALS[goal])
    return learner


def check_purpose(given: object) -> str:
    """Return `given` if it is a goal of choices, "best" or "ranking". Raise ValueError if not."""
    from heedful.inference.gp.stopping import GOALS

    if not isinstance(given, str) or given not in GOALS:
        raise ValueError(f"choices: expected {' or '.join(GOALS)}, got {describe(given)}")
    return given
