"""What other learners would have done, by the log."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

from heedful.core.notebooks import table
from heedful.core.wording import percent
from heedful.data.frames import frame_of
from heedful.results.answers import Finite
from heedful.results.sentences import number
from heedful.results.table import Column


class Measure(NamedTuple):
    """A measure by which learners are compared on a log: a weighted mean, over answers, of how good their predictions
    of these were."""

    name: str
    """the name of the measure: "mean error\""""
    about: str
    """a sentence that says what the measure is the mean of"""
    missing: str
    """the reason why some logs do not allow to compute it, in words that follow "because\""""
    remedy: str
    """a sentence that says how to obtain a log that allows to compute it"""
    low: float = 0.0
    """the least possible value; -inf if it is not known, as of rewards that are amounts"""
    high: float = 1.0
    """the greatest possible value; inf if it is not known; `low`, which is 0 then, if it is what comparisons say
    (`Compared.most`)"""
    more_is_better: bool = True
    """whether a greater value is a better one; False for errors"""
    once: bool = False
    """whether a decision counts once, with the first of its answers that can be compared, instead of with each"""
    decisive: bool = True
    """whether a learner that is better by it is the better one to serve; False for a part of what a loop is for, such
    as the cost alone"""
    counts: str = "comparison"
    """what a value rests on a number of, as a noun: "pair", "list" or "click", in the singular"""

    @property
    def is_share(self) -> bool:
        """whether its values are shares, which are written as percentages; an error is none"""
        return (self.low, self.high, self.more_is_better) == (0.0, 1.0, True)


class PositionBias(NamedTuple):
    """How much people look at a place of a list compared with the place above it, whatever items are there: by
    `heedful.evaluation.examination`, from clicks on items that were shown in either order at random."""

    place: int
    """the upper of the two places, from 1"""
    ratio: Finite
    """the number of clicks at the lower place for each click at the upper one, where the same items stood at both;
    below 1 where people look less"""
    low: Finite
    """the lower end of a confidence interval for `ratio`, which holds at one look"""
    high: Finite
    """the upper end of that interval"""
    clicks: int
    """the number of clicks on two neighbours at these places, which were shown in either order at random"""


Verdict = Literal["better", "worse", "cannot be told", ""]


class Value(NamedTuple):
    """How good one learner is by one measure, from the log: an estimate with its interval, and the difference to the
    loop's own learner."""

    measure: str
    """the name of the measure, which `Evaluation.measures` describes"""
    value: float | None
    """the estimate, in units of the measure; None if the log does not determine it"""
    low: float | None
    """the lower end of an interval, which holds at all looks while new people come; while the same people come back, at
    one look (`heedful.evaluation.ratio`), and so it does for examination-weighted clicks
    (`heedful.evaluation.examination`); None with `value`; -inf if it is not known how low a reward may be"""
    high: float | None
    """the upper end; inf if it is not known how high a reward may be"""
    comparisons: int
    """how many predictions were compared with answers, or how many lists or clicks were weighted (`Measure.counts`)"""
    people: int
    """how many people gave those answers; each person counts alike, and a decision for nobody in particular counts as a
    person"""
    effective: float
    """the effective sample size (sum w)^2 / sum w^2, where w are the weights of the comparisons"""
    difference: float | None
    """this learner's value minus that of the loop's own learner, on the same answers; None for the own learner itself,
    and where the values cannot be compared"""
    difference_low: float | None
    """the lower end of the interval of the difference"""
    difference_high: float | None
    """the upper end"""
    verdict: Verdict
    """"better", "worse" or "cannot be told": how this learner compares with the loop's own, by the interval of the
    difference; "" if there is no difference"""
    refused: str
    """why the log does not determine the value; "" if it does"""
    remedy: str
    """what would make the log determine it, as a sentence"""
    mean_weight: float | None = None
    """for values of lists: the mean of the weights (probability of a list under the learner / probability with which it
    was shown), which is 1 if the log supports all that the learner would show; None for other measures"""
    unsupported: float | None = None
    """for values of lists: the probability that the learner shows a list that is not in the log; None for other
    measures"""
    warning: str = ""
    """why the value should not be trusted; "" if there is no reason known"""
    decisions_needed: int | None = None
    """about how many decisions it takes, in all, until the interval of the difference leaves out 0, if the difference
    stays as it was measured, which is a guess while it cannot be told; None without a difference, with fewer than 30
    people or an effective sample size below 30, and if it takes more than 1e9"""


WEIGHT_COLUMNS = (
    Column(
        "effective",
        "effective sample size",
        "How many comparisons of equal weight would tell as much: the squared sum of the weights over the sum of their "
        "squares",
        lambda value: "–" if value.value is None else f"{value.effective:,.0f}",
    ),
    Column(
        "mean_weight",
        "mean weight",
        "The mean of the probability of a list under the learner over the probability with which it was shown. It is 1 "
        "if all that the learner would show is in the log",
        lambda value: number(value.mean_weight),
    ),
    Column(
        "unsupported",
        "not in the log",
        "The probability that the learner shows a list that is not in the log",
        lambda value: "–" if value.unsupported is None else percent(value.unsupported),
    ),
)
"""The columns in which the weights of values are shown in the terminal and on pages; of values without weights the
first alone."""


class LearnerEvaluation(NamedTuple):
    """A learner after it learned from the log, and how good its predictions were by each measure."""

    learner: str
    """the learner as the caller named it: "prank", "posterior:swap=0.1"; "NAME@VERSION" stopped learning after
    that version; "NAME@VERSION.." or "NAME@2026-01-31T12:00:00Z.." began to learn after it"""
    lessons: int
    """how many pieces of feedback it learned from"""
    weights: dict[str, Finite]
    """its weights after the log, by feature, that of the caller's score last (1 + what was learned of it); {} if it has
    none"""
    values: tuple[Value, ...]
    """its value by each measure, in the order of `Evaluation.measures`; the first measure is the main one"""


class Evaluation(NamedTuple):
    """The result of `evaluate`: for each learner, the loop's own first, how good its predictions were by each
    measure."""

    learners: tuple[LearnerEvaluation, ...]
    """one entry for each learner, the loop's own first"""
    measures: tuple[Measure, ...]
    """what the learners are measured by, the main measure first and those that are not decisive last"""
    alpha: float
    """the probability with which each interval misses, at most"""
    after: int
    """only answers after this version (sequence number) are compared: the last version at which a learner is frozen
    or restarted, 0 if none is"""
    first: str = "the loop's own learner"
    """a description of the first learner, which the others are compared with"""
    position_bias: tuple[PositionBias, ...] | None = None
    """how much people look at a place of a list compared with the place above it; None if the log cannot tell"""
    decisions: int = 0
    """how many decisions were answered, which all of it rests on"""

    def to_frame(self, package: str = "pandas") -> Any:
        """Return a row for each learner and measure, as a data frame of `package` ("pandas", "polars" or "pyarrow").

        Raise ModuleNotFoundError if it is not installed."""
        rows = [(each, value) for each in self.learners for value in each.values]
        columns: dict[str, list[Any]] = {"learner": [each.learner for each, _ in rows]}
        columns |= {name: [getattr(value, name) for _, value in rows] for name in Value._fields}
        return frame_of(columns, package)

    def _repr_html_(self) -> str:
        rows = [(each.learner, value.measure, value.value, value.low, value.high, value.verdict)
                for each in self.learners for value in each.values]  # fmt: skip
        notes = [f"{each.learner}, {value.measure}: {value.warning or f'{value.refused}. {value.remedy}'.strip()}"
                 for each in self.learners for value in each.values if value.warning or value.refused]  # fmt: skip
        columns = ["learner", "measure", "value", "low", "high", "than the loop's own"]
        return table("What the log says", columns, rows, notes)
