"""How well answers were predicted, next to a baseline on the same answers: one report for all kinds of feedback.

A prediction is the one that was logged with its decision, so it was made before the answer was known. The kind of
feedback gives each answer two scores, one for the prediction and one for the baseline (an error, or whether it was
right); the means, their difference with its interval and the series over time are computed here.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from heedful.loop.cluster_robust import paired_difference
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


def _mean(values: npt.NDArray[np.float64]) -> float | None:
    """Return the mean of the values that are not nan; None if there is none."""
    there = values[~np.isnan(values)]
    return float(there.mean()) if there.size else None
