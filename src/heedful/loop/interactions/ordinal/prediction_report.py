"""How well grades were predicted: |predicted - given| of every grade, compared with that of a baseline.

The baseline predicts the median of all grades that came before, so it has seen at least as much as the model."""

from __future__ import annotations

import numpy as np

from heedful.learners.ordinal.perceptrons import ConstantRank
from heedful.loop.prediction_report import NumberTally, Wording, mean_of

MEDIAN = "the median grade so far"
WORDING = Wording(
    "mean |predicted - given|",
    True,
    MEDIAN,
    "no grade was given to what was predicted so far",
    "too few people have graded: it takes two at least",
    "both were equally far off in every grade: chance cannot be told",
)


def grade_tally(k: int) -> NumberTally:
    """Return a new collector of predicted and given grades, whole numbers from 1 to `k`.

    Its details have `exact`, the share of grades predicted exactly (None without any)."""
    return NumberTally(
        WORDING,
        k - 1.0,
        lambda predicted, grade: abs(predicted - grade),
        _Median(k),
        lambda judged: {
            "exact": mean_of([each.predicted == each.value for each in judged if each.predicted == each.predicted])
        },
    )


class _Median:
    """The median of all grades so far."""

    def __init__(self, k: int) -> None:
        self._rule, self._rng, self._nothing = ConstantRank(1, k), np.random.default_rng(0), np.zeros(1)
        self._state = self._rule.init(self._rng)

    def predict(self, item: str) -> float:
        return self._rule.propose(self._state, self._nothing, self._rng)

    def learn(self, item: str, value: float) -> None:
        self._state = self._rule.update(self._state, self._nothing, 0, int(value))
