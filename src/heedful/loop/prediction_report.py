"""How well answers were predicted, next to a baseline on the same answers: one report for all kinds of feedback.

A prediction is the one that was logged with its decision, so it was made before the answer was known. A kind of
feedback says of each answer what the prediction and the baseline score (an error, or whether they were right); the
means, their difference with its interval and the series over time are made here.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from heedful.data.frames import frame_of
from heedful.loop.cluster_robust import Difference, paired
from heedful.loop.windows import windows


class PredictionWindow(NamedTuple):
    """Consecutive answers: one point of a line over time."""

    seq: int
    """sequence number of the last answer, and its time in microseconds since 1970"""
    time: int
    answers: int
    score: float | None
    """the mean score of those that were predicted; None if none was"""
    baseline: float
    """the mean score of the baseline over all of them"""


class PredictionReport(NamedTuple):
    """The mean score of predictions, next to that of a baseline on the same answers."""

    measure: str
    """what a score is: "mean |predicted - given|\""""
    lower_is_better: bool
    compared_with: str
    """what the baseline predicts: "the median grade so far\""""
    answers: int
    """how many answers are compared"""
    score: float | None
    """the mean score of the predictions; None if there is none"""
    baseline: float | None
    """the mean score of the baseline on the same answers"""
    difference: Difference | None
    """score less baseline, with its 95 % interval over people; None if that cannot be said"""
    unsaid: str
    """why there is no difference, in words; "" if there is one"""
    series: tuple[PredictionWindow, ...]
    details: dict[str, Any] = {}  # noqa: RUF012  # nobody writes to it
    """what only this kind of feedback has to say, by name, as JSON"""

    def to_frame(self, package: str = "pandas") -> Any:
        """Return the windows, a row each, as a data frame of `package` (pandas, polars, or pyarrow for a table).

        Raise ModuleNotFoundError if it is not installed."""
        columns = {name: [getattr(each, name) for each in self.series] for name in PredictionWindow._fields}
        return frame_of(columns, package)


class Scored(NamedTuple):
    """The scores of the prediction and of the baseline for one answer. Scores sort by when the answer was given."""

    seq: int
    """sequence number of the feedback"""
    place: int
    """place of the answer in the feedback"""
    time: int
    who: str | int
    """the person; for a decision without a person its number"""
    score: float
    """nan if nothing was predicted"""
    baseline: float


class Wording(NamedTuple):
    """The words of a kind of feedback for its measure, and for why a difference is missing."""

    measure: str
    lower_is_better: bool
    compared_with: str
    no_answer: str
    """why nothing can be said: there is no answer"""
    one_person: str
    """why there is no difference: one person gave all answers"""
    no_spread: str
    """why there is no difference: both scores are equal for every answer"""
    no_prediction: str = "nothing was predicted of what was answered"


def prediction_report(
    answers: Iterable[Scored], wording: Wording, most: float, details: dict[str, Any]
) -> PredictionReport:
    """Return the report on `answers`, which come in any order; the two scores of one differ by at most `most`."""
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
        apart = paired((score - baseline)[known], np.array(people, np.int64), most)
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
