"""How well learners predict the answers in a log, as a page shows it: values with intervals as pictures, verdicts as
sentences."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from heedful.core.wording import percent
from heedful.loop.interactions.findings import basis
from heedful.loop.interactions.telling import POSITION_BIAS, needed, refusals, value_texts
from heedful.results.evaluation import Evaluation, LearnerEvaluation, Measure, PositionBias, Value

ROOM = 0.04
"""The room on either side of the outermost interval, as a share of the length of the drawn scale."""


class Interval(NamedTuple):
    """An interval drawn on a scale; all positions and lengths are in percent of the scale's length."""

    left: float
    """where the interval begins"""
    width: float
    """its length"""
    at: float
    """where the estimate is"""
    text: str
    """the numbers, for people who cannot see the picture"""


class Scale(NamedTuple):
    """The numerical range of a column in which intervals are drawn, from its left to its right end."""

    low: float
    """the value at its left end"""
    high: float
    """the value at its right end"""

    def place(self, value: float) -> float:
        """Return the position of `value` in percent of the scale's length, 0 for its left end."""
        return round(100.0 * (value - self.low) / (self.high - self.low), 2)

    def interval(self, value: float, low: float, high: float, text: str) -> Interval:
        """Return the interval from `low` to `high` around the estimate `value` as positions on this scale.

        `text` has the same numbers in words, for people who cannot see the picture."""
        left = self.place(low)
        return Interval(left, round(self.place(high) - left, 2), self.place(value), text)


class Row(NamedTuple):
    """The result of one learner by one measure, as texts and pictures of intervals."""

    learner: str
    """the learner, by name and parameters"""
    value: str
    """the estimate; "unknown" if the log does not determine it"""
    between: str
    """its interval; "" if there is none"""
    drawn: Interval | None
    """the estimate and its interval, drawn on the scale of the column; None if the log gives none"""
    apart: str
    """the difference to the loop's own learner with its interval; "" if there is none"""
    apart_drawn: Interval | None
    """that difference and its interval, drawn on the scale of differences; None if the log gives none"""
    verdict: str
    """"better", "worse", "cannot be told", or "\""""
    effective: str
    """the effective sample size; "" without an estimate"""
    mean_weight: str
    """the mean weight, for values of lists; "" for other measures"""
    unsupported: str
    """the share of the learner's lists that are not in the log, for values of lists; "" for other measures"""


class MeasureView(NamedTuple):
    """How well all learners predict the answers in a log by one measure: a table with pictures, as a page shows it."""

    title: str
    """the name of the measure, with a capital letter"""
    about: str
    """what the measure is the mean of, as a sentence"""
    better: str
    """"higher is better" or "lower is better\""""
    rows: tuple[Row, ...]
    """a row for each learner, the loop's own first; () if the log determines the value of none"""
    zero: float
    """where no difference is on the scale of the differences, in percent of its length"""
    basis: str
    """how many comparisons of how many people the values rest on, and how many decisions it takes to tell the learners
    apart, as sentences; "" without rows"""
    weights: bool
    """whether the values rest on weighted lists, so that the mean weight and the unsupported share are shown"""
    refusals: tuple[str, ...]
    """why the log does not determine values, and what would make it, a paragraph each"""
    warnings: tuple[str, ...]
    """why values should not be trusted, a sentence each"""


class BiasRow(NamedTuple):
    """How much people look at one of two neighbouring positions of a list compared with the other, as texts and a
    picture."""

    positions: str
    """the two positions, such as 1 and 2"""
    ratio: str
    """how much people look at the lower one for each time that they look at the upper one"""
    between: str
    """its interval"""
    drawn: Interval | None
    """the ratio and its interval, drawn on the scale of the column; None if the interval has no upper end"""
    clicks: str
    """how many clicks it rests on"""


class EvaluationView(NamedTuple):
    """How well learners predict the answers in a log, as a page shows it: verdicts, and a table for each measure."""

    verdicts: tuple[tuple[str, str], ...]
    """for each learner but the loop's own (kind of verdict: "good", "bad" or "open"; the verdict as a sentence)"""
    measures: tuple[MeasureView, ...]
    """a table for each measure"""
    first: str
    """the name of the loop's own learner"""
    alpha: str
    """the probability with which an interval may miss, as text"""
    sure: str
    """1 - alpha, as a percentage"""
    bias: tuple[BiasRow, ...]
    """how much people look at each position, a row for each two neighbours; () if the log does not say
    it"""
    even: float
    """where the ratio 1, no position bias, is on the scale of those rows, in percent of its length"""
    bias_about: str
    """what the ratio is, as a paragraph"""


def evaluation_view(found: Evaluation) -> EvaluationView:
    """Return the evaluation `found` as texts and pictures."""
    own = found.learners[0].learner
    verdicts = [_verdict(each, own, found.measures) for each in found.learners[1:]]
    measures = [_measure(found, j) for j in range(len(found.measures))]
    bias, even = _bias(found.position_bias or ())
    return EvaluationView(
        tuple(verdicts), tuple(measures), own, f"{found.alpha:.2g}", percent(1.0 - found.alpha, 6), bias, even,
        POSITION_BIAS,
    )  # fmt: skip


def _bias(found: Sequence[PositionBias]) -> tuple[tuple[BiasRow, ...], float]:
    """Return (a row for each two neighbouring positions in `found`, where the ratio 1 is on their scale, in percent of
    its length)."""
    known = [each for each in found if math.isfinite(each.high)]
    scale = _scale([*((each.low, each.high) for each in known), (1.0, 1.0)])
    rows = []
    for each in found:
        ratio, between = f"{each.ratio:.2f}", f"{each.low:.2f} to {each.high:.2f}"
        text = f"{ratio}, interval {between}"
        drawn = scale.interval(each.ratio, each.low, each.high, text) if each in known else None
        rows.append(BiasRow(f"{each.place} and {each.place + 1}", ratio, between, drawn, f"{each.clicks:,}"))
    return tuple(rows), scale.place(1.0)


def _verdict(each: LearnerEvaluation, own: str, measures: Sequence[Measure]) -> tuple[str, str]:
    """Return (kind of verdict: "good", "bad" or "open"; a sentence) on whether the learner of `each` is better than the
    learner `own`.

    It goes by the first of the `measures` in which the log determines the difference between the two, of those that are
    decisive; if that one cannot tell, what others say is added."""
    told = [
        (measure, value)
        for measure, value in zip(measures, each.values)
        if measure.decisive and value.difference is not None
    ]
    if not told:
        return "open", f"The log cannot tell whether {each.learner} is better than {own}: what follows says why."
    measure, value = told[0]
    apart = value_texts(value, measure.is_share)[2]
    if value.verdict == "cannot be told":
        so_far = f"the difference in {measure.name} is {apart}"
        other = [f" By {m.name} it is {v.verdict}." for m, v in told[1:] if v.verdict != value.verdict]
        return "open", f"It cannot be told yet whether {each.learner} is better than {own}: {so_far}.{''.join(other)}"
    kind = "good" if value.verdict == "better" else "bad"
    return kind, f"{each.learner} is {value.verdict} than {own}: the difference in {measure.name} is {apart}."


def _measure(found: Evaluation, j: int) -> MeasureView:
    """Return the values of all learners in `found` by its `j`-th measure, with their intervals drawn, as a page shows
    them."""
    measure, values = found.measures[j], [each.values[j] for each in found.learners]
    known = next((value for value in values if value.comparisons), None)
    ends = [(v.low, v.high) for v in values if v.low is not None and v.high is not None]
    apart = [
        (v.difference_low, v.difference_high)
        for v in values
        if v.difference_low is not None and v.difference_high is not None
    ]
    scale = _scale(ends, (measure.low, measure.high))
    difference = _scale([*apart, (0.0, 0.0)])
    rows = [_row(each.learner, value, measure, scale, difference) for each, value in zip(found.learners, values)]
    by = "" if known is None else f"{basis(known.comparisons, known.people, measure.counts)}."
    return MeasureView(
        measure.name[:1].upper() + measure.name[1:],
        measure.about,
        "higher is better" if measure.more_is_better else "lower is better",
        tuple(rows) if known is not None else (),
        difference.place(0.0),
        by and f"{by}{needed(found, j)}",
        any(value.mean_weight is not None for value in values),
        tuple([line.text for line in refusals(found, j)]),
        tuple([f"{each.learner}: {value.warning}." for each, value in zip(found.learners, values) if value.warning]),
    )


def _row(learner: str, value: Value, measure: Measure, scale: Scale, difference: Scale) -> Row:
    """Return the `value` of `learner` by `measure` as texts and pictures.

    The value's interval is drawn on `scale`, that of its difference from the first learner on the scale
    `difference`."""
    text, between, apart = value_texts(value, measure.is_share)
    drawn = apart_drawn = None
    if value.value is not None and value.low is not None and value.high is not None:
        drawn = scale.interval(value.value, value.low, value.high, f"{text}, interval {between}")
    if value.difference is not None and value.difference_low is not None and value.difference_high is not None:
        apart_drawn = difference.interval(value.difference, value.difference_low, value.difference_high, apart)
    told = value.value is not None
    return Row(
        learner, text, between, drawn, apart, apart_drawn, value.verdict,
        f"{value.effective:,.0f}" if told else "",
        "" if value.mean_weight is None else f"{value.mean_weight:.2f}",
        "" if value.unsupported is None else percent(value.unsupported),
    )  # fmt: skip


def _scale(ends: Sequence[tuple[float, float]], within: tuple[float, float] | None = None) -> Scale:
    """Return a scale with room for all intervals `ends`, (low, high) each. Without intervals it is the range `within`,
    by default 0 to 1."""
    if not ends:
        return Scale(*(within or (0.0, 1.0)))
    low, high = min(low for low, _ in ends), max(high for _, high in ends)
    room = ROOM * (high - low) or 1.0
    return Scale(low - room, high + room)
