"""How well grades were predicted: |predicted - given| of every grade, compared with that of a baseline.

The baseline predicts the median of all grades that came before, so it has seen at least as much as the model."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from heedful.evaluation.answers import Answer
from heedful.learners.ordinal.perceptrons import ConstantRank
from heedful.loop.log import Event
from heedful.loop.packing import LoggedDecision
from heedful.loop.prediction_report import ScoredAnswer, Wording, prediction_report
from heedful.results.report import PredictionReport

MEDIAN = "the median grade so far"
WORDING = Wording(
    "mean |predicted - given|",
    True,
    MEDIAN,
    "no grade was given to what was predicted so far",
    "too few people have graded: it takes two at least",
    "both were equally far off in every grade: chance cannot be told",
)


class GradeTally:
    """Collects the predicted grades of logged decisions and the grades that were given, in any order, for the
    report."""

    def __init__(self, k: int) -> None:
        self._k = k
        self._given: list[tuple[int, int]] = []  # (seq, grade) of all that was learned
        self._compared: list[tuple[Event, int, str | int, int, int]] = []  # with the place, who, predicted, given

    def take(self, decision: LoggedDecision, given: Sequence[tuple[Event, Answer]]) -> None:
        predicted = dict(zip(decision.record.shown, decision.record.predicted))
        who = decision.seq if decision.person is None else decision.person
        for event, answer in given:
            for i, (j, value) in enumerate(answer.values.items()):
                self._given.append((event.seq, int(value)))
                if j in predicted:
                    self._compared.append((event, i, who, int(predicted[j]), int(value)))

    def report(self) -> PredictionReport:
        found = sorted(self._compared, key=lambda each: (each[0].seq, each[1]))
        medians = self._medians([event.seq for event, *_ in found])
        scored = [
            ScoredAnswer(event.seq, place, event.time, who, float(abs(predicted - given)), float(abs(median - given)))
            for (event, place, who, predicted, given), median in zip(found, medians)
        ]
        exact = float(np.mean([each.score == 0.0 for each in scored])) if scored else None
        return prediction_report(scored, WORDING, self._k - 1.0, {"exact": exact})

    def _medians(self, seqs: list[int]) -> list[int]:
        """Return, for each piece of feedback, the median of the grades given before it."""
        rule, given, at = ConstantRank(1, self._k), sorted(self._given), 0
        rng = np.random.default_rng(0)  # it draws nothing
        nothing = np.zeros(1)
        state, said = rule.init(rng), []
        for seq in seqs:
            while at < len(given) and given[at][0] < seq:
                state = rule.update(state, nothing, 0, given[at][1])
                at += 1
            said.append(rule.propose(state, nothing, rng))
        return said
