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

from heedful.data.frames import frame_of
from heedful.loop.cluster_robust import Difference, paired_difference
from heedful.loop.windows import windows


class PredictionWindow(NamedTuple):
    """The mean scores over some consecutive answers: one point of a line over time.

    `score` is that of the model's predictions (None if none was made), `baseline` that of the baseline, over `answers`
    answers; `seq` and `time` (microseconds since 1970) are those of the last one."""

    seq: int
    """sequence number in the log of the feedback with the last of these answers"""
    time: int
    """when that was given, in microseconds since 1970"""
    answers: int
    """how many answers these are"""
    score: float | None
    """the mean score of the predictions of these answers; None if none was predicted"""
    baseline: float
    """the mean score of the baseline over all of these answers"""


class PredictionReport(NamedTuple):
    """The mean score of a loop's predictions (`score`), next to that of a `baseline` on the same answers.

    `measure` says in words what a score is, `compared_with` what the baseline predicts; `lower_is_better` is True for
    errors. `difference` is score minus baseline with its interval, `unsaid` the reason if there is none. `series` has
    both over time; `details` what only this kind of feedback reports."""

    measure: str
    """what a score is, in words: "mean |predicted - given|\""""
    lower_is_better: bool
    """whether a score is an error (lower is better) or a success rate"""
    compared_with: str
    """what the baseline predicts, in words: "the median grade so far\""""
    answers: int
    """how many answers there are"""
    score: float | None
    """the mean score of the predictions; None if no answer was predicted"""
    baseline: float | None
    """the mean score of the baseline on the answers that were predicted (on all, if none was); None without answers"""
    difference: Difference | None
    """score minus baseline, with its 95 % interval, which is cluster-robust over people; None if it cannot be
    computed"""
    unsaid: str
    """why there is no difference, in words; "" if there is one"""
    series: tuple[PredictionWindow, ...]
    """the scores over time, oldest first, in windows of about as many answers each"""
    details: dict[str, Any] = {}  # noqa: RUF012  # nobody writes to it
    """further results that only this kind of feedback has, by name, as JSON"""

    def to_frame(self, package: str = "pandas") -> Any:
        """Return the series, a row for each window, as a data frame of `package` ("pandas", "polars" or "pyarrow").

        Raise ModuleNotFoundError if it is not installed."""
        columns = {name: [getattr(each, name) for each in self.series] for name in PredictionWindow._fields}
        return frame_of(columns, package)


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
