"""How well answers were predicted, next to a baseline on the same answers: one report for all kinds of feedback.

A prediction is the one that was logged with its decision, so it was made before the answer was known. The kind of
feedback gives each answer two scores, one for the prediction and one for the baseline (an error, or whether it was
right); the means, their difference with its interval and the series over time are computed here.

One rule holds for all kinds whose answers are numbers: an answer counts if it is about an item that this loop, and
nobody else, showed, and has a score if it was predicted; the baseline has learned from all that was answered before,
and from none of the same piece of feedback.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from itertools import groupby
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from heedful.evaluation.answers import Answer, likeliest_chosen
from heedful.loop.cluster_robust import paired_difference
from heedful.loop.log import Event
from heedful.loop.packing import LoggedDecision
from heedful.loop.windows import windows
from heedful.results.report import PredictionReport, PredictionWindow


class ScoredAnswer(NamedTuple):
    """One answer, with the score of the model's prediction (`score`, nan if nothing was predicted) and that of a simple
    baseline (`baseline`). Sorts by when the answer was given.

    `seq` and `time` are the sequence number and the time (microseconds since 1970) of the feedback, `place` is the
    index of the answer in it, and `who` names the person (the decision's sequence number if it was for nobody in
    particular)."""

    seq: int
    """sequence number of the feedback in the log"""
    place: int
    """index of the answer within the feedback, where that holds several (grades of several items)"""
    time: int
    """when it was given, in microseconds since 1970"""
    who: str | int
    """the person's name; for a decision for nobody in particular its sequence number"""
    score: float
    """the score of the prediction; nan if nothing was predicted"""
    baseline: float
    """the score of the baseline"""


class Wording(NamedTuple):
    """The texts of a prediction report for one kind of feedback: what its measure and its baseline are, and the reasons
    why the difference of the two may be missing (`no_answer`, `one_person`, `no_spread`, `no_prediction`)."""

    measure: str
    """what a score is: "mean |predicted - given|\""""
    lower_is_better: bool
    """whether a score is an error"""
    compared_with: str
    """what the baseline predicts: "the median grade so far\""""
    no_answer: str
    """the reason if there is no answer"""
    one_person: str
    """the reason if one person gave all answers"""
    no_spread: str
    """the reason if score minus baseline is the same for every answer"""
    no_prediction: str = "nothing was predicted of what was answered"
    """the reason if none of the answers was predicted"""


def prediction_report(
    answers: Iterable[ScoredAnswer], wording: Wording, most: float, details: dict[str, Any]
) -> PredictionReport:
    """Return the report on how well `answers` were predicted; they come in any order.

    The two scores of one answer, of its prediction and of the baseline, differ by at most `most`. `wording` holds the
    texts for this kind of feedback, `details` what else it reports, by name, as JSON."""
    found = sorted(answers, key=lambda each: (each.seq, each.place))
    named = wording.measure, wording.lower_is_better, wording.compared_with
    if not found:
        return PredictionReport(*named, 0, None, None, None, wording.no_answer, (), details)
    score, baseline = np.array([each.score for each in found]), np.array([each.baseline for each in found])
    known = ~np.isnan(score)
    numbers: dict[str | int, int] = {}
    people = [numbers.setdefault(each.who, len(numbers)) for each, there in zip(found, known) if there]
    apart, unsaid = None, wording.no_prediction
    if known.any():
        apart = paired_difference((score - baseline)[known], np.array(people, np.int64), most)
        unsaid = wording.one_person if len(numbers) < 2 else wording.no_spread
    series = [
        PredictionWindow(
            found[b - 1].seq, found[b - 1].time, b - a, _mean(score[a:b]), float(baseline[a:b].mean())
        )
        for a, b in windows(len(found))
    ]  # fmt: skip
    mean = float((baseline[known] if known.any() else baseline).mean())
    unsaid = "" if apart is not None else unsaid
    return PredictionReport(*named, len(found), _mean(score), mean, apart, unsaid, tuple(series), details)


class Baseline(Protocol):
    """Predicts answers from those before them, whatever the model knows."""

    def predict(self, item: str) -> float:
        """Return the answer that is expected about the item of this name."""

    def learn(self, item: str, value: float) -> None:
        """Take the answer `value` about the item into account."""


class MeanSoFar:
    """The mean of all answers so far."""

    def __init__(self, middle: float) -> None:
        """Begin without answers; `middle` is predicted until there is one."""
        self._middle, self._n, self._total = middle, 0, 0.0

    def predict(self, item: str) -> float:
        return self._total / self._n if self._n else self._middle

    def learn(self, item: str, value: float) -> None:
        self._n, self._total = self._n + 1, self._total + value


class ItemMean(MeanSoFar):
    """The running mean of each item's answers, with one answer equal to the overall mean added."""

    def __init__(self, middle: float) -> None:
        super().__init__(middle)
        self._items: dict[str, tuple[int, float]] = {}

    def predict(self, item: str) -> float:
        count, total = self._items.get(item, (0, 0.0))
        return (total + super().predict(item)) / (count + 1)

    def learn(self, item: str, value: float) -> None:
        super().learn(item, value)
        count, total = self._items.get(item, (0, 0.0))
        self._items[item] = count + 1, total + value


class Judged(NamedTuple):
    """A number that somebody gave to an item, with the one that was predicted. Sorts by when it was given."""

    seq: int
    """sequence number of the feedback in the log"""
    place: int
    """index of the number in it"""
    time: int
    """when it was given, in microseconds since 1970"""
    who: str | int
    """the person's name; for a decision for nobody in particular its sequence number"""
    item: str
    """the name of the item"""
    value: float
    """the number that was given"""
    predicted: float
    """the number that was predicted; nan if none was, or by somebody else"""
    arm: str
    """the arm of the decision"""
    decision: int
    """the sequence number of the decision"""
    counts: bool
    """whether it is about an item that this loop, and nobody else, showed"""


class NumberTally:
    """Collects predicted numbers and those that people gave, for the report."""

    def __init__(
        self,
        wording: Wording,
        most: float,
        loss: Callable[[float, float], float],
        baseline: Baseline,
        details: Callable[[Sequence[Judged]], dict[str, Any]],
    ) -> None:
        """Begin without numbers.

        `loss(predicted, given)` is from 0 to `most`; `details` makes what else the report says of all numbers, in the
        order in which they were given."""
        self._wording, self._most, self._loss, self._baseline, self._details = wording, most, loss, baseline, details
        self._judged: list[Judged] = []

    def take(self, decision: LoggedDecision, given: Sequence[tuple[Event, Answer]]) -> None:
        """Add one decision and compare the predictions in its record, one for each item shown, with the answers."""
        record = decision.record
        predicted = {} if record.arm == "imported" else dict(zip(record.shown, record.predicted))
        who = decision.seq if decision.person is None else decision.person
        for event, answer in given:
            for i, (j, value) in enumerate(answer.values.items() if answer.stated else ()):
                expected, counts = predicted.get(j, math.nan), record.arm != "imported" and j in record.shown
                name, arm = decision.names[j], record.arm
                self._judged.append(
                    Judged(event.seq, i, event.time, who, name, value, expected, arm, decision.seq, counts)
                )

    def report(self) -> PredictionReport:
        """Return the mean loss of the predictions of all decisions added, next to that of the baseline."""
        judged, scored = sorted(self._judged), list[ScoredAnswer]()
        for _, together in groupby(judged, key=lambda each: each.seq):
            numbers = list(together)
            for each in numbers:
                if each.counts:
                    losses = (self._loss(n, each.value) for n in (each.predicted, self._baseline.predict(each.item)))
                    scored.append(ScoredAnswer(each.seq, each.place, each.time, each.who, *losses))
            for each in numbers:
                self._baseline.learn(each.item, each.value)
        return prediction_report(scored, self._wording, self._most, self._details(judged))


class ChoiceTally:
    """Collects predicted probabilities of being put first and what people put first, for the report."""

    def __init__(self, wording: Wording) -> None:
        self._wording = wording
        self._scored: list[ScoredAnswer] = []
        self._by_chance: list[float] = []  # scores of answers to questions that chance picked
        self._equal = self._unsure = 0

    def take(self, decision: LoggedDecision, given: Sequence[tuple[Event, Answer]]) -> None:
        """Add one decision and compare the predictions in its record, one for each item shown, with the answers."""
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
                self._scored.append(ScoredAnswer(event.seq, i, event.time, who, right, 1.0 / len(record.shown)))
                self._by_chance += [right] if record.arm == "control" else []

    def report(self) -> PredictionReport:
        """Return the share of answers that chose the item predicted as likeliest, next to a guess."""
        chance = self._by_chance
        details = {
            "by_chance": len(chance),
            "right_by_chance": float(np.mean(chance)) if chance else None,
            "equal": self._equal,
            "unsure": self._unsure,
        }
        return prediction_report(self._scored, self._wording, 1.0, details)


def mean_of(values: Sequence[float]) -> float | None:
    """Return the mean of `values`; None if there is none."""
    return float(np.mean(values)) if values else None


def _mean(values: npt.NDArray[np.float64]) -> float | None:
    """Return the mean of the values that are not nan; None if there is none."""
    there = values[~np.isnan(values)]
    return float(there.mean()) if there.size else None
