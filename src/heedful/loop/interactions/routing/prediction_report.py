"""How well thumbs were predicted: the squared error of the probability of a thumb up, next to that of a baseline.

The baseline predicts the mean of all thumbs that came before, so it knows how good answers are, and nothing of which
model suits which prompt."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from heedful.evaluation.expected import Compared
from heedful.loop.interactions.protocol import LoggedAnswer
from heedful.loop.interactions.routing.model import sigmoid
from heedful.loop.prediction_report import Judged, MeanSoFar, NumberTally, Wording, mean_of

WORDING = Wording(
    "mean (probability - thumb)²",
    True,
    "the mean thumb so far",
    "no answer was judged so far of what had been predicted",
    "too few people have judged: it takes two at least",
    "both were equally far off in every answer: chance cannot be told",
)


def thumb_tally() -> NumberTally:
    """Return a new collector of predicted and given thumbs.

    Its details are `predicted`, the mean probability that was predicted, and `came`, the mean thumb; None without any.
    A loop that is neither too hopeful nor too timid has two means alike."""
    return NumberTally(WORDING, 1.0, lambda predicted, thumb: (predicted - thumb) ** 2, MeanSoFar(0.5), _details)


def _details(judged: Sequence[Judged]) -> dict[str, float | None]:
    both = [each for each in judged if each.predicted == each.predicted]
    return {"predicted": mean_of([each.predicted for each in both]), "came": mean_of([each.value for each in both])}


def squared_error(said: LoggedAnswer) -> Compared | None:
    """Return by how much each model missed a thumb, or the choice of one of two answers; None if it is neither."""
    values, pairs = said.answer.values, said.answer.pairs
    if not (values or pairs):
        return None
    margins = [view.model.margins(view, said.step.context.x) for view in said.views]
    if values:
        j, thumb = next(iter(values.items()))
        missed = sigmoid(np.array([m[j] for m in margins])) - thumb
    else:
        better, worse = pairs[0]
        missed = sigmoid(np.array([m[better] - m[worse] for m in margins])) - 1.0
    return Compared(np.square(missed)[:, None], np.ones(1))
