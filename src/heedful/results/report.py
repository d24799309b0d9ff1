"""A report on how well a loop does."""

from __future__ import annotations

from typing import Any, NamedTuple

from heedful.core.notebooks import table
from heedful.core.wording import count
from heedful.data.frames import frame_of
from heedful.results.sentences import (
    CLICK_THROUGH,
    interval,
    number,
    prediction_sentences,
    sentence,
    shares_sentence,
)
from heedful.results.table import Column, Table


class Difference(NamedTuple):
    """A difference of two means, such as learned minus control lists, or a mean of differences, with its 95 %
    interval."""

    by: float
    """the difference, in units of the scores"""
    low: float
    """the lower end of the interval"""
    high: float
    """its upper end"""
    people: int
    """the number of people who answered; a list without a person counts as one"""


class Share(NamedTuple):
    """How many lists of one sort (learned or control) have a property, such as a click, or how many of the thumbs on
    them were up, with a 95 % interval."""

    total: int
    """how many lists, or thumbs, were counted"""
    yes: int
    """how many of them have a click, or were up"""
    share: float | None
    """`yes` / `total`; None if nothing was counted"""
    low: float | None
    """the lower end of the 95 % interval; None if it cannot be computed: all come from one person"""
    high: float | None
    """its upper end"""


class Shares(NamedTuple):
    """A share of learned lists and of control lists (the caller's own order), with their difference."""

    learned: Share
    """of lists in the order of the model"""
    control: Share
    """of lists in the caller's own order"""
    difference: Difference | None
    """the share of learned lists minus that of control lists; None if there is none"""
    unsaid: str
    """why there is no difference, in words; "" if there is one"""


class SampleRatio(NamedTuple):
    """Whether learned lists and control lists are answered equally often, as they have to be to be compared.

    Those lists count that were answered, and those that are old enough to count as not answered."""

    learned: float | None
    """the share of learned lists with an answer; None without lists"""
    control: float | None
    """the same of control lists"""
    lists: int
    """how many lists are compared"""
    people: int
    """how many people they were shown to; a list for nobody in particular counts as one"""
    e_value: float
    """evidence that either kind is answered less often; if not, it ever reaches 1 / `alpha` with probability `alpha` at
    most, however often one looks, as long as all decisions in the log are looked at"""
    alpha: float
    """that probability"""
    differs: bool
    """whether the evidence suffices: what was answered is not to be compared then"""
    said: str
    """the two shares with the evidence, in words, and if they differ why that matters and what to do"""


class At(NamedTuple):
    """One point of a regret curve, of the first learned lists that were answered."""

    t: int
    """how many learned lists had been answered"""
    regret: float
    """the mean of U(best list) - U(list shown) over them"""
    bound: float | None
    """the theorem's bound on that; None if it does not apply"""


class MeasuredRegret(NamedTuple):
    """The regret of a simulated loop: how far the true utility of its learned lists fell short of that of the best
    lists."""

    lists: int
    """the number of learned lists that were answered"""
    regret: float | None
    """the mean of U(best list) - U(list shown) over them, where U is the true utility; None if there are none"""
    bound: float | None
    """the bound on it by the learner's theorem; None if the theorem does not apply"""
    unbound: str
    """why there is no bound, in words; "" if there is one"""
    curve: tuple[At, ...]
    """the average regret over time, at most `POINTS` points, in order"""


class PredictionWindow(NamedTuple):
    """The mean scores over some consecutive answers: one point of a line over time."""

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
    """The mean score of a loop's predictions, next to that of a baseline on the same answers."""

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


class Arm(NamedTuple):
    """How many lists of one arm were shown and answered, and the mean score of those answered (`mean`).

    There are two arms: learned lists, in the model's order, and control lists, in the caller's own order (or a random
    one), shown to a share of requests for comparison."""

    shown: int
    """how many lists of this arm were shown"""
    answered: int
    """how many of them have feedback that says which item was preferred, or that none was; with the setting
    `none_after` all that are so old, as those without feedback count as answered with none"""
    mean: float | None
    """the mean score of those answered, by `Interaction.score` (for lists by features 1 / the position of the preferred
    item); None if there are none"""


ARM_COLUMNS = (
    Column("shown", "shown", "How many were shown", lambda arm: f"{arm.shown:,}"),
    Column("answered", "answered", "How many of them say what was preferred", lambda arm: f"{arm.answered:,}"),
    Column("mean", "mean", "The mean score of those answered", lambda arm: number(arm.mean)),
)
"""The columns in which arms are compared in the terminal, on pages and in notebooks, after that of their names."""


class Window(NamedTuple):
    """Counts and mean scores of learned lists, in the model's order, and of control lists, in the caller's own, among
    some consecutive lists: one point of a line over time."""

    seq: int
    """sequence number in the log of the last of these lists"""
    time: int
    """when that list was shown, in microseconds since 1970"""
    learned: Arm
    """those in the model's order"""
    control: Arm
    """those in the caller's own order"""


class Counts(NamedTuple):
    """Counts of the feedback on all decisions looked at. What was undone or rolled back counts there alone."""

    given: int
    """how many pieces of feedback there are that were not undone or rolled back"""
    empty: int
    """how many of them hold nothing to learn: nothing was clicked, or nothing is compared"""
    contradictory: int
    """how many of them contradict the model as it is now. For rankings: w . D < 0, the negative part in Shivaswamy &
    Joachims 2015 ([J15]), where w are the weights and D the features of the preferred minus those of the shown list;
    for others, a prediction that is far off"""
    late: int
    """how many of them came later after their decision than the setting `late_after`; they were learned all the same"""
    undone: int
    """how many pieces of feedback were undone or rolled back"""


class Report(NamedTuple):
    """A report on how well a loop does, measured from its log over the newest decisions."""

    version: int
    """the version of the model at the time of the report"""
    decisions: int
    """how many decisions were looked at: the newest"""
    whole: bool
    """whether those are all decisions in the log"""
    since: int | None
    """when the oldest of them was made, in microseconds since 1970; None if there are none"""
    imported: int
    """how many of the decisions another system made: they count as neither learned nor control"""
    waiting: int
    """how many of the decisions were deferred and never activated: they were not shown"""
    learned: Arm
    """the lists that the model ordered"""
    control: Arm
    """the lists that were left in the caller's own order, for comparison"""
    difference: Difference | None
    """mean score of learned lists minus that of control lists, with a 95 % interval that holds although one of the two
    loses answers (`heedful.loop.arms`); None if it cannot be computed, or if one is answered less often
    (`sample_ratio`)"""
    unsaid: str
    """why there is no difference, in words; "" if there is one"""
    series: tuple[Window, ...]
    """learned and control lists over time, oldest first"""
    feedback: Counts
    """counts of the feedback"""
    simulation: MeasuredRegret | None
    """the regret and its bound, if a simulated person teaches the loop; otherwise None"""
    prediction: PredictionReport | None = None
    """how well answers were predicted; None if this kind of feedback predicts nothing"""
    thumbs: Shares | None = None
    """the share of thumbs up on learned and on control lists; None if there was no thumb"""
    unknown: int | None = None
    """how many of the decisions were on candidates some of which were not on offer; None if none was"""
    sample_ratio: SampleRatio | None = None
    """whether learned lists and control lists are answered equally often, as they have to be to be compared; None if
    they are not compared, or if silence is an answer (`none_after`)"""
    click_through: Shares | None = None
    """the share of learned lists and of control lists in which something was clicked or acted on in its favour, whether
    they have an answer or not; None if nothing ever was"""
    none_after: float | None = None
    """after how many seconds a list without an answer counts as answered with none: the setting `none_after`"""

    def to_frame(self, package: str = "pandas") -> Any:
        """Return the series as a data frame of `package` ("pandas", "polars" or "pyarrow"): a row for each window of
        time.

        Columns are `seq`, `time` and the fields of both arms, such as `learned_mean`. `prediction` has a frame of its
        own. Raise ModuleNotFoundError if the package is not installed."""
        columns: dict[str, list[Any]] = {
            name: [getattr(each, name) for each in self.series] for name in ("seq", "time")
        }
        for arm in ("learned", "control"):
            for name in Arm._fields:
                columns[f"{arm}_{name}"] = [getattr(getattr(each, arm), name) for each in self.series]
        return frame_of(columns, package)

    def _repr_html_(self) -> str:
        arms = {"learned": self.learned, "control": self.control}
        told_arms = Table.named(f"Report on {count(self.decisions, 'decision')}", "arm", ARM_COLUMNS, arms)
        told = sentence(self.unsaid) if self.difference is None else interval(self.difference)
        if self.thumbs is not None:
            told += f" {shares_sentence('Thumbs up', self.thumbs, 'learned', 'control')}."
        if self.click_through is not None:
            told += f" {shares_sentence(CLICK_THROUGH, self.click_through, 'learned', 'control')}."
        counts = self.feedback
        given = f"Feedback: {counts.given:,}, of them {counts.empty:,} with nothing to learn from, "
        given += f"{counts.contradictory:,} against what the model says by now, {counts.late:,} late; "
        given += f"{counts.undone:,} more undone."
        predicted = [] if self.prediction is None else [" ".join(prediction_sentences(self.prediction))]
        return table(told_arms.title, told_arms.columns, told_arms.rows, [told, *predicted, given])


class GradeDetails(NamedTuple):
    """What a loop of grades adds to the report of its predictions."""

    exact: float | None
    """the share of grades predicted exactly; None without any"""


class Picked(NamedTuple):
    """The mean rating of one item of a list, if it is selected in one of three ways.

    It is over the lists of the control, made by the caller's score or at random and not by the model, of which two or
    more items were rated."""

    lists: int
    """the number of lists"""
    learned: float
    """the mean rating of the item with the highest predicted rating"""
    popular: float
    """the mean rating of the item with the highest mean rating so far"""
    chance: float
    """the mean rating of an item selected at random"""
    difference: Difference | None
    """learned minus popular, with its 95 % interval over people; None if it cannot be computed"""


class RatingDetails(NamedTuple):
    """What a loop of ratings adds to the report of its predictions."""

    mean: float | None
    """the mean rating of what was shown; None without any"""
    picked: Picked | None
    """which way of picking an item finds better ones; None without a control list that has two or more rated items"""


class ChoiceDetails(NamedTuple):
    """What a loop of choices adds to the report of its predictions."""

    by_chance: int
    """how many answers there are to questions that chance picked"""
    right_by_chance: float | None
    """the score of predictions of these answers; None without any"""
    equal: int
    """how often all were called equally good"""
    unsure: int
    """how often nobody could judge, or nothing was chosen"""


class RewardDetails(NamedTuple):
    """What a loop that shows one item adds to the report of its predictions."""

    predicted: float | None
    """the mean reward that was predicted; None without any"""
    came: float | None
    """the mean of the rewards that came, an edit of an answer being the share that it left"""
