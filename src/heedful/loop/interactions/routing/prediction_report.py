"""How well thumbs were predicted: the squared error of the probability of a thumb up, next to that of a baseline.

The baseline predicts the mean of all thumbs that came before, so it knows how good answers are, and nothing of which
model suits which prompt."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from heedful.evaluation.answers import Answer
from heedful.loop.log import Event
from heedful.loop.packing import LoggedDecision
from heedful.loop.prediction_report import ScoredAnswer, Wording, prediction_report
from heedful.results.report import PredictionReport

WORDING = Wording(
    "mean (probability - thumb)²",
    True,
    "the mean thumb so far",
    "no answer was judged so far of what had been predicted",
    "too few people have judged: it takes two at least",
    "both were equally far off in every answer: chance cannot be told",
)


class ThumbTally:
    """Collects the predictions of logged decisions and the thumbs that came, in any order, for the report."""

    def __init__(self) -> None:
        self._judged: list[tuple[Event, int, str | int, float, float]] = []  # place, who, predicted, thumb

    def take(self, decision: LoggedDecision, given: Sequence[tuple[Event, Answer]]) -> None:
        record = decision.record
        if record.arm == "imported" or not record.predicted:
            return
        who = decision.seq if decision.person is None else decision.person
        predicted = dict(zip(record.shown, record.predicted))
        for i, (event, answer) in enumerate(given):
            self._judged += [(event, i, who, predicted[j], v) for j, v in answer.values.items() if j in predicted]

    def report(self) -> PredictionReport:
        scored, total = [], 0.0
        for n, (event, i, who, predicted, thumb) in enumerate(sorted(self._judged, key=lambda each: each[0].seq)):
            mean = total / n if n else 0.5
            scored.append(ScoredAnswer(event.seq, i, event.time, who, (predicted - thumb) ** 2, (mean - thumb) ** 2))
            total += thumb
        means = [float(np.mean([each[j] for each in self._judged])) if self._judged else None for j in (3, 4)]
        return prediction_report(scored, WORDING, 1.0, {"predicted": means[0], "came": means[1]})
