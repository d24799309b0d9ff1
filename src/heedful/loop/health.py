"""The health of feedback: whether it is sound, and whether the model still predicts it. One pass over the log serves
all kinds of feedback.

The loop's interaction says what an answer claims, how far off its prediction was and what it gained (`claims`, `error`,
`outcomes`, `gains`, `position`). A model that begins with nothing learns on the way, so that every answer is predicted
before it is learned. Alarms come from evidence that holds however often it is looked at (`heedful.evaluation.change`),
not from limits on shares that vary by chance. The file is long because one pass collects all of it, and its results are
described field by field."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import partial
from heapq import merge
from shlex import quote
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from heedful.core.validation import check_alpha
from heedful.evaluation.answers import Answer, claims, outcomes
from heedful.evaluation.change import interval
from heedful.evaluation.expected import gains, picked_error
from heedful.jit.kernel import Floats
from heedful.loop.arms import DrawnArms, ShownList, sample_ratio
from heedful.loop.history import History
from heedful.loop.interactions.protocol import Interaction, LoggedAnswer, Step, item_key, prediction_scale
from heedful.loop.model import LoopModel, View
from heedful.loop.records import DecisionRecord
from heedful.loop.signals import Valued, WatchedLoop, one_person, ratio_signal, rise_signal
from heedful.loop.silence import broken_silences, is_silence
from heedful.loop.windows import windows
from heedful.results.health import Bin, Corrections, Health, HealthWindow, Largest, Signal, SignalName
from heedful.results.report import SampleRatio

Array = npt.NDArray[np.float64]

WINDOWS = 10
"""The most windows of time."""
SIGNALS = 7
"""The number of things that may be wrong, each of which has its share of alpha."""
BINS = 5
"""How many intervals of equal length predictions are sorted into."""
SECOND = 1e6


NO_GAINS = "answers of this kind of feedback correct no list"
NO_CORRECTIONS = "no answer corrected a list of which the present model would show another"
NOTHING_PREDICTED = "nothing is predicted of what is shown"
NO_OUTCOMES = "no answer says how a prediction came out"


def health(projection: History, alpha: float = 0.05) -> Health:
    """Return counts, quality and alarms of the feedback in the log of `projection`, a loop's log with its model.

    A sound log ever raises an alarm with probability `alpha` at most, however often one looks. Raise ValueError unless
    `alpha` is from 1e-6 to 0.5, or if the learner fails on the log."""
    check_alpha(alpha)
    reading = _Reading(projection)
    reading.read()
    return reading.result(alpha)


# ---------------------------------------------------------------------------- reading the log


@dataclass(slots=True)
class ShownDecision:
    """A decision that was shown to `person` at `when`, and first answered at `first` (None: not yet); times in
    microseconds since 1970."""

    when: int
    """when, in microseconds since 1970"""
    person: str | None
    first: int | None = None
    """when the first feedback came; None without any"""


class GivenFeedback(NamedTuple):
    """A piece of feedback with the numbers that are counted of it."""

    row: int
    """the number of its decision, 0 for the first that was shown"""
    time: int
    """when it came, in microseconds since 1970"""
    person: str | None
    empty: bool = False
    """whether there is nothing to learn"""
    repeated: int = 0
    """how many questions it answers that the person had answered before"""
    contradictory: int = 0
    """how many of these it answers otherwise"""
    error: float | None = None
    """how far off the prediction was, from 0 to 1; None if there was none"""
    gains: tuple[float, float] | None = None
    """what a correction gained, and what the best list would have; None if it corrects no list"""
    moved: float = 0.0
    """how far it moved the model"""
    outcomes: tuple[tuple[float, float], ...] = ()
    """what was predicted and what came, of each item shown"""


class _Reading:
    """Reads a log in order, while a new model learns from it, and collects the decisions shown and the feedback on
    them.

    Call `read`, then `result`."""

    def __init__(self, projection: History) -> None:
        self._projection, self._interaction = projection, projection.interaction
        self._published = projection.published
        self._model: LoopModel = projection.fresh()
        self._said: dict[str, dict[Hashable, float]] = {}
        """person -> question -> what the person answered to it last"""
        self._rows: dict[int, int] = {}
        """sequence number of a decision -> its index in `shown`"""
        self.shown: list[ShownDecision] = []
        self.given: list[GivenFeedback] = []
        self._drawn = DrawnArms(projection.log)
        self.lists: dict[int, ShownList] = {}
        """learned and control lists, by the sequence number of their decision"""
        self._until = 0
        self._broken = broken_silences(projection)

    def read(self) -> None:
        projection, waiting = self._projection, dict[int, str | None]()
        head, deferred = projection.log.last()[0], dict[int, DecisionRecord]()
        others = ((event, None, None) for event in projection.log.events(kinds=["decision", "activate"]))
        for event, decision, feedback in merge(
            projection.steps([self._model], 0, head), others, key=lambda each: each[0].seq
        ):
            if event.seq > head:
                break
            self._until = max(self._until, event.time)
            if decision is not None and feedback is not None:
                self._take(projection.step(event, decision, feedback))
            elif event.kind == "activate":
                if event.target in waiting:
                    person = waiting.pop(event.target)
                    self._show(event.target, event.time, person, deferred.pop(event.target))
            else:
                record = projection.decision(event).record
                if record.deferred:
                    waiting[event.seq], deferred[event.seq] = event.subject, record
                elif record.shown:
                    self._show(event.seq, event.time, event.subject, record)

    def _show(self, seq: int, when: int, person: str | None, record: DecisionRecord) -> None:
        if record.shown and record.arm in ("learned", "control"):
            who, drawn = (seq if person is None else person), self._drawn.drawn(record, person)
            self.lists[seq] = ShownList(when, record.arm == "learned", who, None, drawn)
        self._rows[seq] = len(self.shown)
        self.shown.append(ShownDecision(when, person))

    def _take(self, step: Step) -> None:
        row = self._rows.get(step.decision.seq)
        if row is None:  # nothing was shown
            return
        event, person = step.event, step.decision.person
        decision = self.shown[row]
        if not is_silence(event):  # or nobody has answered, which signals are about
            decision.first = event.time if decision.first is None else min(decision.first, event.time)
        interaction, model = self._interaction, self._model
        answer = interaction.answer(step.decision, step.feedback)
        shown = self.lists.get(step.decision.seq)
        earlier = shown is not None and (shown.answered is None or event.time < shown.answered)
        if shown is not None and earlier and interaction.score(step.decision, [step.feedback]) is not None:
            self.lists[step.decision.seq] = shown._replace(answered=event.time)
        try:
            empty = model.lesson(step.context, step.feedback, step.extra) is None
            view = model.view(person)
            error, before = _error(interaction, view, step, answer), _position(interaction, view, step)
            if event.seq not in self._projection.failed:
                model.teach(step.context, step.feedback, step.extra, event.seq)
            after = _position(interaction, model.view(person), step)
        except Exception as failure:  # whatever a learner of somebody's own raises
            learner = self._projection.manifest.learner
            raise ValueError(f"learner: {learner} failed on feedback {event.id}: {failure}") from failure
        if event.seq in self._broken:
            return
        moved = float(np.abs(after - before).sum()) if before.shape == after.shape else 0.0
        record, scale, gained = step.decision.record, interaction.scale, None
        if interaction.linear:
            expected = interaction.expected(self._published.view(person), step)
            gained = gains(record.shown, answer, expected, len(step.context.x), self._projection.settings.k)
        predicted = outcomes(record.shown, record.predicted, answer, scale)
        said = claims(record.shown, answer, scale, partial(item_key, step))
        repeated, contradictory = self._compare(person, said)
        self.given.append(
            GivenFeedback(
                row, event.time, person, empty, repeated, contradictory, error, gained,
                moved if math.isfinite(moved) else 0.0, tuple(predicted),
            )
        )  # fmt: skip

    def _compare(self, person: str | None, claims: dict[Any, float]) -> tuple[int, int]:
        """Return (how many questions the person had answered before, how many of these they answered differently
        then)."""
        if person is None:
            return 0, 0
        said = self._said.setdefault(person, {})
        again = [(said[question], value) for question, value in claims.items() if question in said]
        said.update(claims)
        return len(again), sum(abs(value - before) >= 1.0 - 1e-9 for before, value in again)

    # ------------------------------------------------------------------------ what it says

    def result(self, alpha: float) -> Health:
        shown, given = self.shown, self.given
        late_after = self._projection.settings.late_after
        times = [each.when for each in shown] + [each.time for each in given]
        until = max(times, default=None)
        delays = [delay for each in shown if (delay := _delay(each)) is not None]
        name = quote(self._projection.path.name.removesuffix(".heedful"))
        watched = WatchedLoop(name, self._projection.manifest.learner, late_after, alpha / SIGNALS)
        corrections = _corrections([each.gains for each in given if each.gains is not None])
        bins, uncalibrated = self._calibration(alpha)
        return Health(
            len(shown),
            len(given),
            min((each.when for each in shown), default=None),
            until,
            alpha,
            late_after,
            float(np.quantile(delays, 0.95)) if delays else None,
            self._windows(until or 0, None if corrections is None else corrections.alpha),
            (*signals(shown, given, until or 0, watched), ratio_signal(self._ratio(alpha / SIGNALS), watched)),
            corrections,
            "" if corrections is not None else NO_CORRECTIONS if self._interaction.linear else NO_GAINS,
            bins,
            uncalibrated,
            self._largest(),
        )

    def _ratio(self, error_rate: float) -> SampleRatio | None:
        """Return whether learned and control lists are answered equally often; None if they are not compared, or if
        silence is an answer."""
        projection, interaction = self._projection, self._interaction
        if interaction.words.incomparable or projection.settings.none_after is not None:
            return None
        lists = list(self.lists.values())
        return sample_ratio(lists, projection.settings, self._until, interaction.orders, error_rate)

    def _windows(self, until: int, alpha: float | None) -> tuple[HealthWindow, ...]:
        of: list[list[GivenFeedback]] = [[] for _ in self.shown]
        for each in self.given:
            of[each.row].append(each)
        limit = self._projection.settings.late_after
        found = []
        for start, end in windows(len(self.shown), WINDOWS):
            part, given = self.shown[start:end], [each for some in of[start:end] for each in some]
            statuses = [_status(each, until, limit) for each in part]
            delays = [delay for each in part if (delay := _delay(each)) is not None]
            errors = [each.error for each in given if each.error is not None]
            gains = [each.gains for each in given if each.gains is not None]
            own = _corrections(gains)
            found.append(
                HealthWindow(
                    min(each.when for each in part),
                    max(each.when for each in part),
                    len(part),
                    len(delays),
                    sum(status is not None for status in statuses),
                    statuses.count("none"),
                    statuses.count("late"),
                    float(np.median(delays)) if delays else None,
                    len(given),
                    sum(each.empty for each in given),
                    sum(each.repeated for each in given),
                    sum(each.contradictory for each in given),
                    float(np.mean(errors)) if errors else None,
                    None if own is None else own.alpha,
                    None if own is None or alpha is None else _slack(gains, alpha),
                )
            )
        return tuple(found)

    def _calibration(self, alpha: float) -> tuple[tuple[Bin, ...], str]:
        if not self._interaction.words.prediction:
            return (), NOTHING_PREDICTED
        scale = prediction_scale(self._interaction)
        low, span = scale.low, scale.high - scale.low
        binned: list[list[tuple[float, float]]] = [[] for _ in range(BINS)]
        for each in self.given:
            scaled = [((p - low) / span, (came - low) / span) for p, came in each.outcomes if math.isfinite(p)]
            of: dict[int, list[tuple[float, float]]] = {}
            for p, came in scaled:
                of.setdefault(min(max(int(BINS * p), 0), BINS - 1), []).append((p, min(max(came, 0.0), 1.0)))
            for j, pairs in of.items():  # what one answer says of several items is one value
                p, came = np.mean(pairs, axis=0).tolist()
                binned[j].append((p, came))
        if not any(binned):
            return (), NO_OUTCOMES
        found = []
        for j, pairs in enumerate(binned):
            if pairs:
                predicted, came = np.array(pairs).T
                ends = [
                    low + span * end
                    for end in (j / BINS, (j + 1) / BINS, float(predicted.mean()), *interval(came, alpha))
                ]
                found.append(Bin(ends[0], ends[1], len(pairs), *ends[2:]))
        return tuple(found), ""

    def _largest(self) -> Largest:
        counts, moved = dict[str, int](), dict[str, float]()
        for each in self.given:
            if each.person is not None:
                counts[each.person] = counts.get(each.person, 0) + 1
                moved[each.person] = moved.get(each.person, 0.0) + each.moved
        whole = sum(each.moved for each in self.given)
        person, mover = (
            max(counts, key=counts.__getitem__, default=None),
            max(moved, key=moved.__getitem__, default=None),
        )
        share = 0.0 if person is None else counts[person] / len(self.given)
        movement = moved[mover] / whole if mover is not None and whole > 0.0 else 0.0
        return Largest(len(counts), person, share, mover if movement > 0.0 else None, movement)


# ---------------------------------------------------------------------------- parts of it


def signals(
    shown: Sequence[ShownDecision], given: Sequence[GivenFeedback], until: int, watched: WatchedLoop
) -> tuple[Signal, ...]:
    """Run the tests of whether the feedback has changed (such as whether more of it is missing or late than before);
    return each with its evidence.

    `shown` are the decisions that were shown and `given` the pieces of feedback on them, both in order; the last event
    of the log was at `until`, in microseconds since 1970; `watched` names the loop and the error rate of each test."""
    limit = watched.late_after
    statuses = [(each, _status(each, until, limit)) for each in shown]
    settled = [(each, status) for each, status in statuses if status is not None]
    series: dict[SignalName, list[Valued]] = {
        "unanswered": [(float(status == "none"), each.person, each.when) for each, status in settled],
        "late": [(float(status == "late"), each.person, each.when) for each, status in settled if status != "none"],
        "empty": [(float(each.empty), each.person, each.time) for each in given],
        "contradictory": [
            (each.contradictory / each.repeated, each.person, each.time) for each in given if each.repeated
        ],
        "error": [(each.error, each.person, each.time) for each in given if each.error is not None],
    }
    found = [rise_signal(kind, values, watched) for kind, values in series.items()]
    found.insert(4, one_person([(each.person, each.time) for each in given], watched))
    return tuple(found)


def _delay(shown: ShownDecision) -> float | None:
    """Return the seconds from a decision to its first feedback; None without feedback."""
    return None if shown.first is None else max(shown.first - shown.when, 0) / SECOND


def _status(shown: ShownDecision, until: int, limit: float) -> str | None:
    """Return "in time", "late" or "none", by when the first feedback on a decision came.

    It is late after more than `limit` seconds, and none if it did not come within twice that. Return None if twice
    `limit` is not over yet at `until`, in microseconds since 1970."""
    if until - shown.when < 2.0 * limit * SECOND:
        return None
    delay = _delay(shown)
    return "none" if delay is None or delay > 2.0 * limit else "late" if delay > limit else "in time"


def _corrections(gains: Sequence[tuple[float, float]]) -> Corrections | None:
    """Return the quality of corrections, each given as (utility gained, the most that could be gained)."""
    known = [each for each in gains if each[1] > 0.0]
    if not known:
        return None
    gained, best = np.array(known).T
    alpha = float(gained.sum() / best.sum())
    return Corrections(len(known), alpha, _slack(known, alpha), float((gained < 0.0).mean()))


def _slack(gains: Sequence[tuple[float, float]], alpha: float) -> float:
    gained, best = np.array([each for each in gains if each[1] > 0.0]).T
    return float(np.maximum(alpha * best - gained, 0.0).mean())


def _error(interaction: Interaction[Any], view: View[Any], step: Step, answer: Answer) -> float | None:
    """Return how wrong the prediction of the `answer` in `step` is, from 0 to 1; None if nothing of it is predicted.

    Where feedback corrects lists, and no number is said, it is the share of pairs in the wrong order, elsewhere the
    first of `measures()`."""
    if interaction.linear and not answer.values:
        return picked_error(step.context.record.shown, answer, interaction.expected(view, step))
    measure, compare = interaction.measures()[0]
    compared = compare(LoggedAnswer(interaction, [view], step))
    if compared is None or not compared.weights.sum() > 0.0:
        return None
    value = float(compared.values[0] @ compared.weights / compared.weights.sum())
    good = (value - measure.low) / (measure.high - measure.low)
    return None if math.isnan(good) else min(max(1.0 - good if measure.more_is_better else good, 0.0), 1.0)


def _position(interaction: Interaction[Any], view: View[Any], step: Step) -> Floats:
    """Return the weights for all people (N,) or, without weights, the predictions for the items shown in `step`.

    How much this array changes while a model learns tells how far the feedback moved it. It is empty if there are
    neither."""
    weights = np.array(view.model.effective(view._replace(person=None)), np.float64)
    if weights.size:
        return weights
    predictions = interaction.predict(view, step.rows(step.context.record.shown))
    return np.array([] if predictions is None else [each.value for each in predictions], np.float64)
