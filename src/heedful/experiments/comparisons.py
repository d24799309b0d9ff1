"""A small world of people who choose between two items, to try a learner of comparisons in."""

from __future__ import annotations

from typing import Any

import numpy as np

from heedful.experiments.setting import make_checked_learner
from heedful.spaces.comparison import Choice
from heedful.worlds.choices import gaussian_choosers


def make_trial(spec: str) -> tuple[Any, Any]:
    """Return (the learner that `spec` names, 5 people who choose between two of 9 items with 3 features).

    Sometimes they call the two equally good, or cannot judge.
    """
    features = np.random.default_rng(0).standard_normal((9, 3))
    learner = make_checked_learner(spec, 3, Choice(9, True, features))
    return learner, gaussian_choosers(5, 9, features=features, tie=0.3, unsure=0.1, lapse=0.05)
