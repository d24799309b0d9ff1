"""A small simulated world of people who choose between two items, in which a learner of comparisons can be tried."""

from __future__ import annotations

from typing import Any

import numpy as np

from heedful.experiments.setting import make_checked_learner
from heedful.spaces.comparison import Choice
from heedful.worlds.choices import gaussian_choosers


def make_trial(spec: str) -> tuple[Any, Any]:
    """Return (the learner that the text `spec` names, a small simulated environment to try it in): 5 people who choose
    between two of 9 items.

    The items have 3 features. People sometimes call the two equally good, cannot judge, or answer at random.
    """
    features = np.random.default_rng(0).standard_normal((9, 3))
    learner = make_checked_learner(spec, 3, Choice(9, True, features))
    return learner, gaussian_choosers(5, 9, features=features, tie=0.3, unsure=0.1, lapse=0.05)
