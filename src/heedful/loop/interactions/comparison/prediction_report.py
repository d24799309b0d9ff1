"""How well choices were predicted: the share of answers that chose the likeliest item, compared with guessing.

The questions that the acquisition rule selects are those with uncertain answers, so they are predicted less often than
random questions; only the latter tell how well choices between arbitrary items are predicted."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from heedful.evaluation.answers import Answer, likeliest_chosen
from heedful.loop.log import Event
from heedful.loop.packing import LoggedDecision
from heedful.loop.prediction_report import ScoredAnswer, Wording, prediction_report
from heedful.results.report import PredictionReport

WORDING = Wording(
    "share of answers that were predicted",
    False,
    "a guess",
    "nothing was chosen so far of what had been predicted",
    "too few people have chosen: it takes two at least",
    "it was as often right as a guess in every answer: chance cannot be told",
)


class ChoiceTally:
    """Collects the predictions of logged decisions and the choices that came, in any order, for the report."""

    def __init__(self) -> None:
        self._scored: list[ScoredAnswer] = []
        self._by_chance: list[float] = []  # scores of answers to questions that chance picked
        self._equal = self._unsure = 0

    def take(self, decision: LoggedDecision, given: Sequence[tuple[Event, Answer]]) -> None:
        record = decision.record
        if record.arm == "imported":
            return
        who = decision.seq if decision.person is None else decision.person
        for i, (event, answer) in enumerate(given):
            right = likeliest_chosen(record.shown, record.predicted, answer)
            if answer.tied:
                self._equal += 1
            elif not answer.best:
                self._unsure += 1
            elif right is not None:
                guess = 1.0 / len(record.shown)
                self._scored.append(ScoredAnswer(event.seq, i, event.time, who, right, guess))
                self._by_chance += [right] if record.arm == "control" else []

    def report(self) -> PredictionReport:
        chance = self._by_chance
        details = {
            "by_chance": len(chance),
            "right_by_chance": float(np.mean(chance)) if chance else None,
            "equal": self._equal,
            "unsure": self._unsure,
        }
        return prediction_report(self._scored, WORDING, 1.0, details)
