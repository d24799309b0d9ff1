"""How well rewards were predicted: the squared error of the expected reward, next to that of a baseline.

The baseline predicts the mean of all rewards that came before, so it knows how good the items are, and nothing of which
one suits which request."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from heedful.evaluation.expected import Compared
from heedful.loop.interactions.one.model import sigmoid
from heedful.loop.interactions.protocol import LoggedAnswer
from heedful.loop.prediction_report import Judged, MeanSoFar, NumberTally, Wording, mean_of

WORDING = Wording(
    "mean (predicted - reward)²",
    True,
    "the mean reward so far",
    "nothing was judged so far that had been predicted",
    "too few people have judged: it takes two at least",
    "both were equally far off in every answer: chance cannot be told",
)


def reward_tally(low: float, high: float) -> NumberTally:
    """Return a new collector of predicted and given rewards, from `low` to `high`.

    Its details are `predicted`, the mean reward that was predicted, and `came`, the mean reward; None without any. A
    loop that is neither too hopeful nor too timid has two means alike."""
    baseline = MeanSoFar((low + high) / 2.0)
    return NumberTally(
        WORDING, (high - low) ** 2, lambda predicted, reward: (predicted - reward) ** 2, baseline, _details
    )


def _details(judged: Sequence[Judged]) -> dict[str, float | None]:
    both = [each for each in judged if each.predicted == each.predicted]
    return {"predicted": mean_of([each.predicted for each in both]), "came": mean_of([each.value for each in both])}


def squared_error(said: LoggedAnswer) -> Compared | None:
    """Return by how much each model missed a reward, as a share of its range, or the choice of one of two items; None
    if the answer is neither."""
    values, pairs = said.answer.values, said.answer.pairs
    if not (values or pairs):
        return None
    x = said.step.rows(list(values)[:1] or pairs[0])
    margins = np.array([view.model.margins(view, x) for view in said.views])
    if values:
        missed = sigmoid(margins[:, 0]) - said.views[0].model.share(next(iter(values.values())))
    else:
        missed = sigmoid(margins[:, 0] - margins[:, 1]) - 1.0
    return Compared(np.square(missed)[:, None], np.ones(1))
