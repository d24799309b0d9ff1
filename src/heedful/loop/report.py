"""How well a loop does, measured from its log: learned lists against control lists, predictions, and the feedback
itself.

A learned list is in the order of the model; a control list is in the caller's own order (or a random one), shown to a
share of requests for comparison. The loop's interaction scores a list by the answers to it (`Interaction.score`), and
says whether the two arms can be compared at all. The file is long because a report is described field by field, and
one pass over the log collects all of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from heedful.core.validation import check_count
from heedful.evaluation.answers import Answer, credit
from heedful.evaluation.expected import contradicts
from heedful.loop import records
from heedful.loop.arms import DrawnArms, ShownList, arm_difference, compare_shares, sample_ratio
from heedful.loop.history import History
from heedful.loop.interactions.protocol import Interaction, Step
from heedful.loop.interactions.words import MUTE, Words
from heedful.loop.log import Event
from heedful.loop.packing import LoggedDecision
from heedful.loop.records import FeedbackRecord
from heedful.loop.silence import is_silence
from heedful.loop.simulation import SimulatedAnswer, Simulation, Truth
from heedful.loop.windows import windows
from heedful.results.report import (
    Arm,
    Counts,
    Difference,
    Report,
    SampleRatio,
    Shares,
    Window,
)

Given: TypeAlias = tuple[Event, FeedbackRecord, Answer]
"""One piece of feedback: its event in the log, its record, and what it says."""


class _ScoredList(NamedTuple):
    """A learned or control list that was shown, and its score by the answers to it (None if they do not say)."""

    seq: int
    time: int
    learned: bool
    person: str | None
    score: float | None
    answered: int | None
    """when the first answer that says something came, in microseconds since 1970; None if there is none"""
    clicked: bool
    """whether something in it was clicked, or acted on in its favour"""
    thumbs: tuple[tuple[int, float], ...]
    """(when, 1 for up or 0 for down) of each thumb, in order"""
    drawn: bool
    """whether its arm was drawn for it alone"""

    @property
    def who(self) -> str | int:
        return self.seq if self.person is None else self.person

    def shown(self, answered: int | None) -> ShownList:
        return ShownList(self.time, self.learned, self.who, answered, self.drawn)


def report(history: History, last: int) -> Report:
    """Return the report on the newest `last` decisions of the loop whose log and model are `history`.

    Raise ValueError, naming the field, on bad input, or if the loop's simulation.json makes no sense."""
    check_count("last", last)
    looked = _Look(history)
    for event in history.log.newest_first(history.log.last()[0] + 1):
        if event.kind == "decision" and looked.decisions == last:
            looked.whole = False
            break
        looked.at(event)
    interaction, settings, words = history.interaction, history.settings, history.interaction.words
    ratio = thumb_ratio = None
    if not words.incomparable:
        if settings.none_after is None:
            answered = [each.shown(each.answered) for each in looked.lists]
            ratio = sample_ratio(answered, settings, looked.until, interaction.orders)
        given = [each.shown(each.thumbs[0][0] if each.thumbs else None) for each in looked.lists]
        thumb_ratio = sample_ratio(given, settings, looked.until, False, noun="a thumb")
    lists = _with_silence(looked.lists[::-1], settings.none_after, looked.decided)
    learned, control = _arm(lists, True), _arm(lists, False)
    unequal = ratio.said if ratio is not None and ratio.differs else ""
    counted = lists if settings.none_after is None else [each for each in lists if each.score is not None]
    found = _difference(counted, *interaction.span) if not words.incomparable and not unequal else None
    return Report(
        history.published.version,
        looked.decisions,
        looked.whole,
        looked.since,
        looked.imported,
        looked.waiting,
        learned,
        control,
        found,
        ""
        if found is not None
        else unequal or _why_not_compared(words, settings.control, learned, control, _level(lists), looked.mute),
        _series(lists),
        Counts(**looked.counts),
        None if looked.truth is None else looked.truth.regret(looked.whole),
        prediction=None if looked.tally is None else looked.tally.report(),
        thumbs=_thumbs(looked.lists[::-1], thumb_ratio),
        unknown=looked.unknown or None,
        sample_ratio=ratio,
        click_through=_click_through(counted) if not words.incomparable else None,
        none_after=settings.none_after,
    )


def _why_not_compared(words: Words, share: float, learned: Arm, control: Arm, level: bool, mute: bool) -> str:
    """Return in words why the model's lists cannot be compared with those of the control.

    - `share`: the share of the control in the settings
    - `learned`, `control`: the counts of either sort of lists, and how good they were
    - `level`: whether all lists have the same score
    - `mute`: whether all their feedback is mute (`Answer.mute`)"""
    if words.incomparable:
        return words.incomparable
    because = words.not_compared
    if mute:
        return MUTE
    if share == 0.0 and control.shown == 0:
        return f"{because.no_control}, as control is 0: there is nothing to compare with"
    for arm, name in zip((learned, control), because.arms):
        if arm.shown == 0 and because.unshown:
            return because.unshown.format(name)
        if arm.answered == 0:
            return because.unanswered.format(name)
    return because.level if level else because.few


class _Look:
    """Collects the numbers of a report from the events of a log, which have to be given to `at` newest first.

    Feedback therefore comes before the decision that it answers, and is kept until that comes."""

    def __init__(self, history: History) -> None:
        self._history = history
        self._state = history.published
        self.tally = history.interaction.tally()
        self._drawn = DrawnArms(history.log)
        self.until = self.decided = 0
        """when the last event and the last decision were, in microseconds since 1970"""
        self._retractions = history.log.retractions()
        self._activated: dict[int | None, int] = {}
        self._answers: dict[int | None, list[Event]] = {}
        self.decisions = self.imported = self.waiting = self.unknown = 0
        self.since: int | None = None
        self.whole = True
        self.lists: list[_ScoredList] = []
        self._said: set[bool] = set()
        """whether answers to learned and control lists are mute"""
        self.counts = dict.fromkeys(Counts._fields, 0)
        known = history.settings.keep_unshown and not history.interaction.by_number  # else the best is not
        simulation = Simulation.read(history.path) if known else None
        self.truth = None if simulation is None else Truth(history, simulation)

    @property
    def mute(self) -> bool:
        """whether all answers to learned and control lists are mute"""
        return self._said == {True}

    def at(self, event: Event) -> None:
        self.until = max(self.until, event.time)
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
        decision, read = self._history.decision(event), self._history.interaction.answer
        kept = [(each, records.decode_feedback(each.payload)) for each in answers if each.seq not in self._retractions]
        counts = [each for each in kept if not is_silence(each[0])] or kept  # or else nobody has answered
        given = [(each, feedback, read(decision, feedback)) for each, feedback in counts]
        record = decision.record
        self.decisions, self.since, self.decided = self.decisions + 1, event.time, max(self.decided, event.time)
        self.unknown += bool(record.unknown)
        when = self._activated.get(event.seq) if record.deferred else event.time
        if when is None:
            self.waiting += 1
            return
        self._count(len(answers) - len(kept), given, decision, when)
        if record.arm == "imported":
            self.imported += 1
        elif record.shown and record.arm in ("learned", "control"):  # unknown items alone say nothing of either arm
            self._said |= {answer.mute for each, _, answer in given if not is_silence(each)}
            self.lists.append(self._scored(event, decision, when, given))

    def _scored(self, event: Event, decision: LoggedDecision, when: int, given: Sequence[Given]) -> _ScoredList:
        interaction, record, person = self._history.interaction, decision.record, decision.person
        score = interaction.score(decision, [feedback for _, feedback, _ in given])
        answered = None if score is None else answered_at(interaction, decision, given)
        clicked = any(
            (answer.picked or not answer.stated)  # by the way, without judging the list
            and any(value > 0.0 for value in (credit(record.shown, answer, interaction.scale) or {}).values())
            for _, _, answer in given
        )
        verdicts = [(each.time, answer.verdict) for each, _, answer in given]
        thumbs = [(time, float(verdict[1] > 0.0)) for time, verdict in verdicts if verdict is not None]
        drawn = self._drawn.drawn(record, person)
        return _ScoredList(
            event.seq, when, record.arm == "learned", person, score, answered, clicked, tuple(thumbs), drawn
        )

    def _count(self, undone: int, given: Sequence[Given], decision: LoggedDecision, when: int) -> None:
        history, counts, truth = self._history, self.counts, self.truth
        counts["undone"] += undone
        if undone and truth is not None:
            truth.disturb("something was undone")
        if not given:
            return
        said = []
        for event, feedback, answer in given:
            if is_silence(event):
                continue  # which nobody gave
            step = history.step(event, decision, feedback)
            lesson = history.model.lesson(step.context, feedback, step.extra)
            counts["given"] += 1
            counts["late"] += event.time - when > 1e6 * history.settings.late_after
            counts["empty"] += lesson is None or not history.model.teaches(lesson)
            counts["contradictory"] += lesson is not None and self._contradicts(step, answer)
            said.append(SimulatedAnswer(step, answer if lesson is not None and history.interaction.linear else None))
        if truth is not None:
            truth.take(decision, said)
        if self.tally is not None:
            self.tally.take(decision, [(event, answer) for event, _, answer in given])

    def _contradicts(self, step: Step, answer: Answer) -> bool:
        interaction = self._history.interaction
        expected = interaction.expected(self._state.view(step.decision.person), step)
        k = self._history.settings.k
        return contradicts(step.context.record.shown, answer, expected, interaction.scale, k)


# ---------------------------------------------------------------------------- the arms


def answered_at(interaction: Interaction[Any], decision: LoggedDecision, given: Iterable[Given]) -> int | None:
    """Return when the first of the feedback `given` on `decision` came that says how good its list was, in microseconds
    since 1970; None if none does."""
    times = (event.time for event, feedback, _ in given if interaction.score(decision, [feedback]) is not None)
    return min(times, default=None)


def _with_silence(lists: Sequence[_ScoredList], none_after: float | None, until: int) -> list[_ScoredList]:
    """Return `lists` as they count at the time `until`, in microseconds since 1970: if silence is an answer after
    `none_after` seconds, younger ones are not scored."""
    over = until - 1e6 * (none_after or 0.0)
    return [each if none_after is None or each.time <= over else each._replace(score=None) for each in lists]


def _thumbs(lists: Sequence[_ScoredList], ratio: SampleRatio | None) -> Shares | None:
    """Return the share of thumbs up on learned lists and on control lists; None if there is no thumb."""
    rows = [(each.learned, each.who, up) for each in lists for _, up in each.thumbs or ((0, None),)]
    return compare_shares(rows, ratio.said if ratio is not None and ratio.differs else "")


def _click_through(lists: Sequence[_ScoredList]) -> Shares | None:
    """Return the share of learned lists and of control lists with a click; None if no list has one."""
    if not any(each.clicked for each in lists):
        return None
    return compare_shares([(each.learned, each.who, float(each.clicked)) for each in lists])


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
    computed."""
    if not lists:
        return None
    numbers: dict[str | int, int] = {}
    people = np.array([numbers.setdefault(each.who, len(numbers)) for each in lists], np.int64)
    learned = np.array([each.learned for each in lists], bool)
    answered = np.array([each.score is not None for each in lists], bool)
    span = high - low
    scores = np.array([0.0 if each.score is None else (each.score - low) / span for each in lists])
    found = arm_difference(scores, answered, learned, people)
    return None if found is None else Difference(found.by * span, found.low * span, found.high * span, found.people)


def _level(lists: Sequence[_ScoredList]) -> bool:
    """Return whether all answered learned lists have one score and all answered control lists have one: no interval can
    be computed."""
    arms = [[each.score for each in lists if each.learned == arm and each.score is not None] for arm in (True, False)]
    return max(len(set(scores)) for scores in arms) == 1 and min(map(len, arms)) > 1
