"""The health of the feedback: windows of time, signals and alarms."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

from heedful.core.notebooks import table
from heedful.data.frames import frame_of

SignalName = Literal["unanswered", "late", "empty", "contradictory", "one person", "error", "sample ratio"]


class Signal(NamedTuple):
    """One test of the feedback: what was compared, with what evidence, and what to do next."""

    name: SignalName
    """what it is: "unanswered", "late", "empty", "contradictory", "one person", "error" or "sample ratio\""""
    alarm: bool
    """whether the evidence suffices for an alarm: `evidence` >= 1 / `error_rate`"""
    about: str
    """what is compared, as a sentence"""
    said: str
    """what was found, as a sentence"""
    evidence: float
    """an e-value: if nothing is wrong, it ever reaches 1 / `error_rate` with probability `error_rate` at most"""
    error_rate: float
    """the probability of a false alarm, at most, however often one looks"""
    values: int
    """how many values there are; people and rounds are compared, so fewer"""
    people: int
    """how many people they come from; a decision for nobody in particular counts as one"""
    before: float | None
    """the mean before the likeliest time of a change; None if there is no such time"""
    after: float | None
    """the mean since then, or over all if there is no such time; None without values"""
    since: int | None
    """when the likeliest change was, in microseconds since 1970; None if there is none"""
    remedy: str
    """what to do next, as sentences"""


FLOODS = "The log does not say which key sent an event, so a flood is seen by person alone."


class HealthWindow(NamedTuple):
    """Counts and errors of the feedback on some consecutive decisions, as one point of each line over time."""

    since: int
    """when the first was shown, in microseconds since 1970"""
    until: int
    """when the last was shown, in microseconds since 1970"""
    decisions: int
    """how many decisions these are"""
    answered: int
    """how many have any feedback so far"""
    settled: int
    """how many were shown long enough ago to judge whether they are answered: twice the setting `late_after` before the
    last event"""
    unanswered: int
    """of those settled, how many had no feedback in that time"""
    late: int
    """of those settled, how many had their first feedback in that time, but later than `late_after`"""
    delay: float | None
    """median time from a decision to its first feedback, in seconds; None without feedback"""
    feedback: int
    """how many pieces of feedback there are on all of them"""
    empty: int
    """how many pieces of feedback hold nothing to learn: nothing was clicked, corrected or chosen"""
    repeated: int
    """how many questions were answered by a person who had answered the same ones before"""
    contradictory: int
    """how many of those were answered otherwise than the last time"""
    error: float | None
    """the mean error of predictions, from 0 to 1, each made before the answer was learned; None if nothing was
    predicted"""
    alpha: float | None
    """the utility that corrections gained, as a share of what the best list would have gained; None without
    corrections"""
    slack: float | None
    """the mean of the utility by which corrections gained less than `Corrections.alpha` says, 0 where they gained more;
    None without corrections"""


class Corrections(NamedTuple):
    """How much utility lists gain when people correct them, by the utility of the present model, which is an estimate
    itself.

    Feedback is alpha-informative with slack xi if U(x, ybar) - U(x, y) = alpha (U(x, y*) - U(x, y)) - xi, where U is
    the utility, x the candidates, y the list shown, ybar the corrected and y* the best one (Shivaswamy & Joachims
    2012). `alpha` is estimated over all `answers`, `slack` is the mean of max(0, xi), and `worse` the share of
    corrections that lower the utility."""

    answers: int
    """how many answers corrected a list that the model could improve"""
    alpha: float
    """the sum of gains over the sum of the greatest gains: the alpha at which slacks add up to zero"""
    slack: float
    """the mean of max(0, xi) at this alpha, in units of utility"""
    worse: float
    """the share of corrections after which the list has a lower utility than what was shown"""


class Bin(NamedTuple):
    """Predictions in an interval, with the outcomes that were observed: one point of a calibration curve."""

    low: float
    """the lower end of the interval that the predictions are in"""
    high: float
    """its upper end"""
    answers: int
    """how many answers have predictions in it"""
    predicted: float
    """the mean of the predictions"""
    came: float
    """the mean of the outcomes"""
    came_low: float
    """the lower end of an interval of that mean, which holds however often it is looked at"""
    came_high: float
    """its upper end"""


class Largest(NamedTuple):
    """The person who gives the most feedback, and the person whose feedback moves the model most.

    Feedback on decisions for nobody in particular counts in the totals only."""

    people: int
    """how many people gave feedback"""
    person: str | None
    """who gave the most feedback; None if nobody has a name"""
    feedback: float
    """the share of the feedback that is theirs"""
    mover: str | None
    """whose feedback moved the model the most"""
    movement: float
    """the share of the model's movement that is theirs: the sum over their lessons of |change| of the weights or, for a
    model without weights, of the predictions of what was shown, over the same sum for all lessons"""


class Health(NamedTuple):
    """How sound the feedback of a loop is: shares over time, alarms with their evidence, quality of corrections,
    calibration of predictions, and who gives the most."""

    decisions: int
    """how many decisions were shown"""
    feedback: int
    """how many pieces of feedback are in effect: without what was undone or rolled back"""
    since: int | None
    """when the first decision was shown, in microseconds since 1970; None if there is none"""
    until: int | None
    """when the last event was, in microseconds since 1970; None if there is none"""
    alpha: float
    """the probability, at most, that a sound log ever raises any of the alarms"""
    late_after: float
    """how many seconds after its decision feedback counts as late, a setting of the loop"""
    delay: float | None
    """the delay in seconds that 95 % of first answers stay below (the 0.95 quantile); None without feedback"""
    windows: tuple[HealthWindow, ...]
    """the shares over time, oldest first"""
    signals: tuple[Signal, ...]
    """what may be wrong, each with its evidence, alarm or not"""
    corrections: Corrections | None
    """how much corrected lists gain; None if there are none"""
    uncorrected: str
    """why there are no corrections, in words; "" if there are"""
    calibration: tuple[Bin, ...]
    """predictions by interval, lowest first, with what was observed; () without predictions"""
    uncalibrated: str
    """why there is no calibration, in words; "" if there is"""
    largest: Largest
    """who gives the most feedback, and who moves the model most"""
    floods: str = FLOODS
    """a sentence on how far a flood of feedback from one source can be seen"""

    @property
    def alarms(self) -> tuple[Signal, ...]:
        """the signals whose evidence suffices for an alarm"""
        return tuple([each for each in self.signals if each.alarm])

    def to_frame(self, package: str = "pandas") -> Any:
        """Return the windows, a row each, as a data frame of `package` ("pandas", "polars" or "pyarrow").

        Raise ModuleNotFoundError if the package is not installed."""
        return frame_of(
            {name: [getattr(each, name) for each in self.windows] for name in HealthWindow._fields}, package
        )

    def _repr_html_(self) -> str:
        rows = [(each.name, "alarm" if each.alarm else "", each.before, each.after, each.evidence, each.said)
                for each in self.signals]  # fmt: skip
        notes = [each.remedy for each in self.alarms]
        return table("Health of the feedback", ["", "", "before", "after", "evidence", "found"], rows, notes)
