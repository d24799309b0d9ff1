"""How well a loop does, measured from its log: learned lists against control lists, predictions, and the feedback
itself.

A learned list is in the order of the model; a control list is in the caller's own order (or a random one), shown to a
share of requests for comparison. The loop's interaction scores a list by the answers to it (`Interaction.score`), and
says whether the two arms can be compared at all.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from heedful.core.notebooks import table
from heedful.core.wording import count, share
from heedful.data.frames import frame_of
from heedful.loop import apprentice, records
from heedful.loop.apprentice import Apprentice
from heedful.loop.approval import Approval, ApprovalCounter
from heedful.loop.cluster_robust import Difference, difference
from heedful.loop.interactions.findings import interval, prediction_sentences, sentence
from heedful.loop.interactions.protocol import Step
from heedful.loop.log import Event
from heedful.loop.model import own_state
from heedful.loop.packing import LoggedDecision
from heedful.loop.prediction_report import PredictionReport
from heedful.loop.projection import Projection
from heedful.loop.records import FeedbackRecord
from heedful.loop.simulation import MeasuredRegret, SimulatedAnswer, Simulation, Truth
from heedful.loop.windows import windows


class Arm(NamedTuple):
    """How many lists of one arm were shown and answered, and the mean score of those answered (`mean`).

    There are two arms: learned lists, in the model's order, and control lists, in the caller's own order (or a random
    one), shown to a share of requests for comparison."""

    shown: int
    """how many lists of this arm were shown"""
    answered: int
    """how many of them have feedback that says which item was preferred, or that none was"""
    mean: float | None
    """the mean score of those answered, by `Interaction.score` (for lists by features 1 / the position of the preferred
    item); None if there are none"""


class Window(NamedTuple):
    """Counts and mean scores of learned and control lists among some consecutive lists: one point of a line over time.

    Learned lists are in the model's order, control lists in the caller's own. `seq` and `time` (microseconds since
    1970) are those of the last of the lists."""

    seq: int
    """sequence number in the log of the last of these lists"""
    time: int
    """when that list was shown, in microseconds since 1970"""
    learned: Arm
    """those in the model's order"""
    control: Arm
    """those in the caller's own order"""


class Counts(NamedTuple):
    """Counts of the feedback on all decisions looked at.

    `given` pieces count; of these `empty` hold nothing to learn, `contradictory` contradict the present model, and
    `late` came late. What was undone or rolled back counts in `undone` alone."""

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
    """A report on how well a loop does, measured from its log over the newest decisions.

    - `version`, `decisions`, `whole`, `since`: the model's version, how many decisions were looked at, whether these
      are all, and when the first was made.
    - `imported`, `waiting`: how many were made by another system, and how many are deferred and not activated.
    - `learned`, `control`, `difference`: lists in the model's order, lists in the caller's own order, and their
      difference with its interval; `unsaid` says why that is missing.
    - `series`: both over time. `feedback`: counts of the feedback.
    - `prediction`, `thumbs`, `simulation`, `apprentice`: what only some loops have, None in others."""

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
    """mean score of learned lists minus that of control lists, with its 95 % interval; None if it cannot be computed"""
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
    thumbs: Approval | None = None
    """the share of thumbs up on learned and on control lists; None if there was no thumb"""
    unknown: int | None = None
    """how many of the decisions were on candidates some of which were not on offer; None if none was"""
    apprentice: Apprentice | None = None
    """how well the learner imitates the caller's order, and whether it may serve; None in a loop without the setting
    `apprentice`"""

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
        arms: list[Any] = [("learned", *self.learned), ("control", *self.control)]
        title, columns = f"Report on {count(self.decisions, 'decision')}", ["arm", "shown", "answered", "mean"]
        told = sentence(self.unsaid) if self.difference is None else interval(self.difference)
        if self.thumbs is not None:
            shares = {"learned": self.thumbs.learned.share, "control": self.thumbs.control.share}
            told += f" Thumbs up: {', '.join(f'{name} {share(x)}' for name, x in shares.items() if x is not None)}."
        counts = self.feedback
        given = f"Feedback: {counts.given:,}, of them {counts.empty:,} with nothing to learn from, "
        given += f"{counts.contradictory:,} against what the model says by now, {counts.late:,} late; "
        given += f"{counts.undone:,} more undone."
        predicted = [] if self.prediction is None else [" ".join(prediction_sentences(self.prediction))]
        imitates = [] if self.apprentice is None else [self.apprentice.told]
        return table(title, columns, arms, [told, *predicted, given, *imitates])


class _ScoredList(NamedTuple):
    """A learned or control list that was shown, and its score by the answers to it (None if they do not say)."""

    seq: int
    time: int
    learned: bool
    person: str | None
    score: float | None


def report(projection: Projection, last: int) -> Report:
    """Return the report on the newest `last` decisions of the loop whose log and model are `projection`.

    Raise ValueError if the loop's simulation.json makes no sense."""
    looked = _Look(projection)
    for event in projection.log.newest_first(projection.log.last()[0] + 1):
        if event.kind == "decision" and looked.decisions == last:
            looked.whole = False
            break
        looked.at(event)
    lists, interaction = looked.lists[::-1], projection.interaction
    found = _difference(lists, *interaction.span()) if interaction.compares_arms else None
    learned, control = _arm(lists, True), _arm(lists, False)
    return Report(
        projection.published.version,
        looked.decisions,
        looked.whole,
        looked.since,
        looked.imported,
        looked.waiting,
        learned,
        control,
        found,
        "" if found is not None else interaction.why_not_compared(learned, control, _level(lists), looked.forms),
        _series(lists),
        Counts(**looked.counts),
        None if looked.truth is None else looked.truth.regret(looked.whole),
        prediction=None if looked.tally is None else looked.tally.report(),
        thumbs=None if interaction.scores_thumbs else looked.approved.approval(),
        unknown=looked.unknown or None,
        apprentice=apprentice.look(projection),
    )


class _Look:
    """Collects the numbers of a report from the events of a log, which have to be given to `at` newest first.

    Feedback therefore comes before the decision that it answers, and is kept until that comes."""

    def __init__(self, projection: Projection) -> None:
        self._ledger = projection
        self._state = projection.published
        self.tally = projection.interaction.tally()
        self._reader = projection.interaction.order_reader()
        self.approved = ApprovalCounter()
        self._retractions = projection.log.retractions()
        self._activated: dict[int | None, int] = {}
        self._answers: dict[int | None, list[Event]] = {}
        self.decisions = self.imported = self.waiting = self.unknown = 0
        self.since: int | None = None
        self.whole = True
        self.lists: list[_ScoredList] = []
        self.forms: set[str] = set()
        self.counts = dict.fromkeys(Counts._fields, 0)
        known = projection.settings.keep_unshown and projection.interaction.keeps_unshown  # else the best is not
        simulation = Simulation.read(projection.path) if known else None
        self.truth = None if simulation is None else Truth(projection, simulation)

    def at(self, event: Event) -> None:
        if event.kind == "activate":
            self._activated[event.target] = event.time
        elif event.kind == "feedback":
            self._answers.setdefault(event.target, []).append(event)
        elif event.kind == "decision":
            self._add_decision(event)
        elif event.kind == "forget" and self.truth is not None:
            self.truth.disturb("somebody was forgotten")

    def _add_decision(self, event: Event) -> None:
        answers = self._answers.pop(event.seq, [])[::-1]
        given = [(each, records.decode_feedback(each.payload)) for each in answers if each.seq not in self._retractions]
        decision = self._ledger.decision(event)
        record = decision.record
        self.decisions, self.since = self.decisions + 1, event.time
        self.unknown += bool(record.unknown)
        when = self._activated.get(event.seq) if record.deferred else event.time
        if when is None:
            self.waiting += 1
            return
        self._count(len(answers) - len(given), given, decision, when)
        if record.arm == "imported":
            self.imported += 1
        elif record.shown and record.arm in ("learned", "control"):  # unknown items alone say nothing of either arm
            self.forms |= {feedback.form for _, feedback in given}
            self.approved.take(record.arm == "learned", decision.person or event.seq, given)
            score = self._ledger.interaction.score(decision, [feedback for _, feedback in given])
            self.lists.append(_ScoredList(event.seq, when, record.arm == "learned", decision.person, score))

    def _count(
        self, undone: int, given: list[tuple[Event, FeedbackRecord]], decision: LoggedDecision, when: int
    ) -> None:
        projection, counts, truth = self._ledger, self.counts, self.truth
        counts["undone"] += undone
        if undone and truth is not None:
            truth.disturb("something was undone")
        if not given:
            return
        read = []
        for event, feedback in given:
            step = projection.step(event, decision, feedback)
            lesson = projection.model.lesson(step.context, feedback, step.extra)
            counts["given"] += 1
            counts["late"] += event.time - when > 1e6 * projection.settings.late_after
            counts["empty"] += lesson is None or not projection.interaction.teaches(projection.model, lesson)
            counts["contradictory"] += lesson is not None and self._contradicts(step, lesson)
            order = None
            if truth is not None and lesson is not None and self._reader is not None:
                order = self._reader.lesson(step.context, feedback, step.extra)
            read.append(SimulatedAnswer(event, feedback, order))
        if truth is not None:
            truth.take(decision, projection.requests.context(decision).x, read, self._reader)
        if self.tally is not None:
            self.tally.take(decision, given)

    def _contradicts(self, step: Step, lesson: object) -> bool:
        interaction, state = self._ledger.interaction, self._state
        own = own_state(state.people, interaction.person(step.decision.person))
        return interaction.contradicts(self._ledger.model, state.shared, own, step, lesson)


# ---------------------------------------------------------------------------- the arms


def _arm(lists: Sequence[_ScoredList], learned: bool) -> Arm:
    arm = [each for each in lists if each.learned == learned]
    scores = [each.score for each in arm if each.score is not None]
    return Arm(len(arm), len(scores), sum(scores) / len(scores) if scores else None)


def _series(lists: list[_ScoredList]) -> tuple[Window, ...]:
    """Return learned and control lists over time, in windows of about as many lists each, oldest first."""
    parts = [lists[start:end] for start, end in windows(len(lists))]
    return tuple([Window(part[-1].seq, part[-1].time, _arm(part, True), _arm(part, False)) for part in parts])


def _difference(lists: Sequence[_ScoredList], low: float, high: float) -> Difference | None:
    """Return the mean score of learned lists minus that of control lists, with its interval; None if it cannot be
    computed.

    Scores lie between `low` and `high`; lists that were not answered do not count."""
    answered = [(each.score, each.learned, each.person) for each in lists if each.score is not None]
    if not answered:
        return None
    scores, learned, names = zip(*answered)
    numbers: dict[str | int, int] = {}
    people = [numbers.setdefault(i if name is None else name, len(numbers)) for i, name in enumerate(names)]
    span = high - low
    found = difference((np.array(scores) - low) / span, np.array(learned), np.array(people, np.int64))
    return None if found is None else Difference(found.by * span, found.low * span, found.high * span, found.people)


def _level(lists: Sequence[_ScoredList]) -> bool:
    """Return whether all answered learned lists have one score and all answered control lists have one: no interval can
    be computed."""
    arms = [[each.score for each in lists if each.learned == arm and each.score is not None] for arm in (True, False)]
    return max(len(set(scores)) for scores in arms) == 1 and min(map(len, arms)) > 1
