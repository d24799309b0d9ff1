"""What a loop learned, measured from its log: learned lists against those left alone, and what feedback was worth.

How good a list was, is said by whoever it was shown to: 1 / the place of what she preferred in it (1 where it stood
first, 1/2 where it stood second, 0 where it was not there or she wanted none of it). Only what is the same for both
arms is counted, so feedback that names no preferred item of the list, thumbs and edits, says nothing here. In a loop of
ratings the rating says it: the mean of those that were given to what was shown. In a loop of choices it is whether what
was chosen had been foretold; as the rule asks what is least certain, arms are not compared.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from heedful.data.frames import frame_of
from heedful.loop import wire
from heedful.loop.accuracy import Accuracy, Predicted, Stretch
from heedful.loop.approval import Approval, Approved
from heedful.loop.choosing import ChoiceModel, Heard
from heedful.loop.comparison import Difference, difference
from heedful.loop.foretelling import Foretelling, Foretold
from heedful.loop.grading import Grades, GradingModel
from heedful.loop.guessing import Guessed, Guessing, best_of, share
from heedful.loop.interactions.coactive import direction, order_reader
from heedful.loop.interactions.comparison import chosen_place
from heedful.loop.ledger import Ledger
from heedful.loop.lessons import lesson_of
from heedful.loop.log import Event
from heedful.loop.model import Person
from heedful.loop.rating import RatingModel
from heedful.loop.simulation import Measured, Said, Simulation, Truth
from heedful.loop.standing import SURE
from heedful.loop.strangers import around
from heedful.loop.wire import DecisionRecord, FeedbackRecord
from heedful.notebooks import table
from heedful.spaces_offers import Weighed

WINDOWS, LEAST = 100, 10
"""Windows that the lists are divided into over time, at most; lists of a window, at least."""
HARDER = "the rule asks what is least certain, so that fewer of its questions are foretold says nothing"
"""Why the arms of a loop of choices are not compared."""
MUTE = "thumbs and edits, which are all that came, do not say what was wanted rather than what"
"""Why nothing can be said where that is so."""


class Arm(NamedTuple):
    """Lists that came about in one way: made from what was learned, or left in the caller's order."""

    shown: int
    answered: int
    """of them, how many got feedback that says what was preferred, or that nothing was"""
    mean: float | None
    """of 1 / the place of what was preferred, over those answered; in a loop of ratings of the lists' mean ratings, in
    a loop of choices of 1 where what was chosen was foretold and 0 where not; None without any"""


class Window(NamedTuple):
    """Some lists that were shown one after the other."""

    seq: int
    """of the last, and its time in microseconds since 1970"""
    time: int
    learned: Arm
    control: Arm


class Counts(NamedTuple):
    """What feedback there was, in all arms, imported decisions included; what was undone counts in `undone` alone."""

    given: int
    empty: int
    """there is no lesson in it: nothing was clicked, or what was said compares nothing"""
    contradictory: int
    """the model, as it is now, would have it the other way round: w . D < 0, the negative part in [J15]; in a grading
    loop it would say a grade two or more away, in a loop of ratings a rating more than a quarter of the range away; in
    a loop of choices it is 90 % sure that another of those shown is better than the one that was put first"""
    late: int
    """came later after its decision than the setting `late_after`; it was learned all the same"""
    undone: int


class Report(NamedTuple):
    """What a loop learned, as far as its log says."""

    version: int
    decisions: int
    """how many were looked at: the newest"""
    whole: bool
    """whether those are all"""
    since: int | None
    """when the oldest of them was made, in microseconds since 1970"""
    imported: int
    """of the decisions, how many somebody else made: they are in neither arm"""
    waiting: int
    """... and how many were deferred and never activated: they were not shown"""
    learned: Arm
    control: Arm
    difference: Difference | None
    """learned less control; None where it cannot be said"""
    unsaid: str
    """why not, in words; "" where it can"""
    series: tuple[Window, ...]
    feedback: Counts
    simulation: Measured | None
    """regret, where the loop is taught by a simulated person; otherwise None"""
    grades: Accuracy | None = None
    """how well grades were predicted, in a grading loop; otherwise None"""
    ratings: Foretelling | None = None
    """what ratings were given, and how well they were predicted, in a loop of ratings; otherwise None"""
    choices: Guessing | None = None
    """how often what was foretold was chosen, in a loop of choices; otherwise None"""
    thumbs: Approval | None = None
    """the share of thumbs up in both arms; None where there was no thumb"""
    unknown: int | None = None
    """of the decisions, how many were asked about something that was not on offer; None where none was"""

    def to_frame(self, package: str = "pandas") -> Any:
        """The lists over time as a data frame of this package: pandas, polars, or pyarrow for a table. A row for each
        window, with both arms; in a loop of grades, with how far predictions lay from what was given.
        ModuleNotFoundError where it is not installed."""
        if self.grades is not None:
            return frame_of(
                {name: [getattr(each, name) for each in self.grades.series] for name in Stretch._fields}, package
            )
        columns: dict[str, list[Any]] = {
            name: [getattr(each, name) for each in self.series] for name in ("seq", "time")
        }
        for arm in ("learned", "control"):
            for name in Arm._fields:
                columns[f"{arm}_{name}"] = [getattr(getattr(each, arm), name) for each in self.series]
        return frame_of(columns, package)

    def _repr_html_(self) -> str:
        arms: list[Any] = [("learned", *self.learned), ("left alone", *self.control)]
        title, columns = f"Report on {self.decisions:,} decisions", ["lists", "shown", "answered", "mean"]
        by, unsaid = self.difference, self.unsaid
        if self.grades is not None:
            right = self.grades
            columns = ["predicted by", "grades", "mean error", "exactly right"]
            arms = [
                ("what was learned", right.grades, right.loss, right.exact),
                ("the median so far", right.grades, right.constant, None),
            ]
            by, unsaid = right.difference, right.unsaid
        elif self.choices is not None:
            by, unsaid = self.choices.difference, self.choices.unsaid
        told = f"Whether learning helps cannot be said: {unsaid}."
        if by is not None:
            told = f"Difference {by.by:+.3f}, from {by.low:+.3f} to {by.high:+.3f} with 95 % confidence"
            told += f" ({by.people:,} people)."
        if self.thumbs is not None:
            shares = {"learned": self.thumbs.learned.share, "left alone": self.thumbs.control.share}
            told += f" Thumbs up: {', '.join(f'{name} {x:.0%}' for name, x in shares.items() if x is not None)}."
        counts = self.feedback
        given = f"Feedback: {counts.given:,}, of them {counts.empty:,} with nothing to learn from, "
        given += f"{counts.contradictory:,} against what the model says by now, {counts.late:,} late; "
        given += f"{counts.undone:,} more undone."
        return table(title, columns, arms, [told, given])


class _Shown(NamedTuple):
    """One list, and what was said of it."""

    seq: int
    time: int
    learned: bool
    person: str | None
    score: float | None


def report(ledger: Ledger, last: int) -> Report:
    """The report on the newest `last` decisions of a loop. ValueError where its simulation.json makes no sense."""
    looked = _Look(ledger)
    for event in ledger.log.newest_first(ledger.log.last()[0] + 1):
        if event.kind == "decision" and looked.decisions == last:
            looked.whole = False
            break
        looked.at(event)
    lists = looked.lists[::-1]
    low, high = (0.0, 1.0) if ledger.ratings is None else ledger.ratings
    found = None if ledger.choices is not None else _difference(lists, low, high)
    return Report(
        ledger.published.version,
        looked.decisions,
        looked.whole,
        looked.since,
        looked.imported,
        looked.waiting,
        _arm(lists, True),
        _arm(lists, False),
        found,
        "" if found is not None else _unsaid(lists, ledger, looked.forms),
        _series(lists),
        Counts(**looked.counts),
        None if looked.truth is None else looked.truth.measured(looked.whole),
        None if looked.predicted is None else looked.predicted.measured(),
        None if looked.foretold is None else looked.foretold.measured(),
        None if looked.guessed is None else looked.guessed.measured(),
        looked.approved.measured(),
        looked.unknown or None,
    )


class _Look:
    """A look at the log, event by event, the newest first: what is about a decision is seen before it."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._state = ledger.published
        self._weights: dict[Any, Any] = {}
        other = ledger.grades is not None or ledger.ratings is not None or ledger.choices is not None
        self._reader = None if other else order_reader(ledger.learner)
        self.predicted = None if ledger.grades is None else Predicted(ledger.grades)
        self.foretold = None if ledger.ratings is None else Foretold(*ledger.ratings)
        self.guessed = None if ledger.choices is None else Guessed()
        self.approved = Approved()
        self._undone: set[int | None] = set()
        self._activated: dict[int | None, int] = {}
        self._answers: dict[int | None, list[Event]] = {}
        self.decisions = self.imported = self.waiting = self.unknown = 0
        self.since: int | None = None
        self.whole = True
        self.lists: list[_Shown] = []
        self.forms: set[str] = set()
        self.counts = dict.fromkeys(Counts._fields, 0)
        known = (
            ledger.settings.keep_unshown and ledger.ratings is None and ledger.choices is None
        )  # else the best is not
        simulation = Simulation.read(ledger.path) if known else None
        self.truth = None if simulation is None else Truth(ledger, simulation)

    def at(self, event: Event) -> None:
        if event.kind == "undo":
            self._undone.add(event.target)
        elif event.kind == "activate":
            self._activated[event.target] = event.time
        elif event.kind == "feedback":
            self._answers.setdefault(event.target, []).append(event)
        elif event.kind == "decision":
            self._decided(event)
        elif event.kind == "forget" and self.truth is not None:
            self.truth.disturb("somebody was forgotten")

    def _decided(self, event: Event) -> None:
        answers = self._answers.pop(event.seq, [])[::-1]
        given = [(each, wire.decode_feedback(each.payload)) for each in answers if each.seq not in self._undone]
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
        elif record.shown:  # what is unknown alone says nothing of either kind of list
            self.forms |= {feedback.form for _, feedback in given}
            self.approved.take(record.arm == "learned", decision.person or event.seq, given)
            said = [feedback for _, feedback in given]
            if self.guessed is not None:
                score = foretold(record, said)
            else:
                shown = around(record.shown, record, str) if record.unknown else record.shown
                score = standing(shown, said, decision.names) if self.foretold is None else rating(said)
            self.lists.append(_Shown(event.seq, when, record.arm == "learned", decision.person, score))

    def _count(self, undone: int, given: list[tuple[Event, FeedbackRecord]], decision: Any, when: int) -> None:
        ledger, counts, truth = self._ledger, self.counts, self.truth
        counts["undone"] += undone
        if undone and truth is not None:
            truth.disturb("something was undone")
        if not given:
            return
        context = ledger.requests.context(decision)
        read = []
        for event, feedback in given:
            counts["given"] += 1
            counts["late"] += event.time - when > 1e6 * ledger.settings.late_after
            lesson = lesson_of(ledger, ledger.model, event, decision, feedback, context)
            counts["empty"] += lesson is None
            if self._reader is None:
                far: Any = self._off if self.foretold is not None else self._far
                far = far if self.guessed is None else self._doubted
                counts["contradictory"] += lesson is not None and far(lesson, decision.person)
                read.append(Said(event, feedback, None))
                continue
            said = lesson_of(ledger, self._reader, event, decision, feedback, context)
            if lesson is not None and said is not None:
                counts["contradictory"] += self._against(direction(self._reader, said), decision.person)
            read.append(Said(event, feedback, said if lesson is not None else None))
        if truth is not None:
            truth.take(decision, context.x, read, self._reader)
        if self.predicted is not None:
            self.predicted.take(decision, given)
        if self.foretold is not None:
            self.foretold.take(decision, given)
        if self.guessed is not None:
            self.guessed.take(decision, given)

    def _against(self, D: Any, person: str | None) -> bool:
        """Whether the model, as it is, has it the other way round."""
        own = self._own(person)
        key = person if own is not None else None
        if key not in self._weights:
            self._weights[key] = self._ledger.model.effective(self._state.shared, own)
        products = self._weights[key] * D
        return bool(products.sum() < -1e-12 * np.abs(products).sum())  # less than what rounding makes

    def _far(self, lesson: Grades, person: str | None) -> bool:
        """Whether the model, as it is, would give one of these a grade two or more away."""
        model = self._ledger.model
        assert isinstance(model, GradingModel)
        predicted = model.grades(self._state.shared, self._own(person), lesson.x)
        return bool(np.abs(predicted - np.array(lesson.grades)).max() >= 2)

    def _off(self, lesson: Weighed, person: str | None) -> bool:
        """Whether the model, as it is, would expect another rating of one of these, by more than a quarter of the
        range."""
        model = self._ledger.model
        assert isinstance(model, RatingModel)
        expected = model.ratings(self._state.shared, self._own(person), lesson.items)
        low, high = self._ledger.ratings or (0.0, 0.0)
        return expected is not None and bool(np.abs(expected - lesson.ratings).max() > (high - low) / 4.0)

    def _doubted(self, lesson: Heard, person: str | None) -> bool:
        """Whether the model, as it is, is sure that another of those shown is better than the one put first."""
        model, best = self._ledger.model, chosen_place(lesson)
        assert isinstance(model, ChoiceModel)
        if best is None:
            return False
        k = lesson.items.size
        believed = model.believed(self._state.shared, self._state.people.get(person or ""), lesson.items)
        others = np.array([i for i in range(k) if i != best])
        return bool(believed.better(others, np.full(k - 1, best)).max() >= SURE)

    def _own(self, person: str | None) -> Person | None:
        return self._state.people.get(person) if person is not None else None


# ---------------------------------------------------------------------------- how good a list was


def standing(shown: Sequence[int | str], answers: Iterable[FeedbackRecord], names: Sequence[str] = ()) -> float | None:
    """1 / the place, in what was shown, of what was preferred by the first answer that says so; 0 where it was not
    there, or nothing was wanted; None where nobody said. Candidates are numbers into `names`; what was unknown is a
    name."""
    told = None
    for feedback in answers:
        wanted = preferred(shown, feedback) if feedback.said is None else _preferred_unknown(shown, feedback, names)
        if wanted:
            return 1.0 / (1 + shown.index(wanted[0])) if wanted[0] in shown else 0.0
        if wanted is not None:
            told = 0.0
    return told


def rating(answers: Iterable[FeedbackRecord]) -> float | None:
    """The mean of all ratings among these answers; None without any."""
    given = [value for feedback in answers if feedback.form == "rating" for value in feedback.values]
    return sum(given) / len(given) if given else None


def foretold(record: DecisionRecord, answers: Iterable[FeedbackRecord]) -> float | None:
    """Whether what the first answer put first was the likeliest; None where none of them put anything first."""
    for feedback in answers:
        best = best_of(record.shown, feedback)
        if best is not None and record.chances:
            return share(record.chances, record.shown.index(best))
    return None


def _preferred_unknown(shown: Sequence[int | str], feedback: FeedbackRecord, names: Sequence[str]) -> list[Any] | None:
    """The same as `preferred` of feedback that is about something unknown, as it was given."""
    said, number = feedback.said or {}, {name: j for j, name in enumerate(names)}
    wanted = said.get("clicks") or said.get("better")
    rated = said.get("rating") or said.get("grade")
    if rated:
        wanted = [name for name in rated if rated[name] == max(rated.values())]
    if said.get("choice") in ("first", "second"):
        return [shown[wire.CHOICES[said["choice"]]]]
    if not wanted:
        return None
    listed = [wanted] if isinstance(wanted, str) else [str(name) for name in wanted]
    best: list[Any] = [number.get(name, name) for name in listed]
    return [j for j in shown if j in best] if rated else best


def preferred(shown: Sequence[Any], feedback: FeedbackRecord) -> list[Any] | None:
    """What feedback prefers, the most preferred first: candidates; [] where nothing was wanted, None where it does not
    say. Of what is rated alike, what was shown first."""
    form, chosen, values = feedback.form, feedback.chosen, feedback.values
    if form == "none":
        return []
    if form == "clicks":  # of what was shown; else what was found later
        return [j for j in chosen if j >= 0] or chosen
    if form == "better" or (form == "action" and values[0] > 0.0):
        return chosen
    if form in ("rating", "grade"):
        best = [j for j, value in zip(chosen, values) if value == max(values)]
        return [j for j in shown if j in best] or best
    if form == "choice" and values[0] >= 0.0:
        return [shown[int(values[0])]]
    return None


# ---------------------------------------------------------------------------- the arms


def _arm(lists: Sequence[_Shown], learned: bool) -> Arm:
    arm = [each for each in lists if each.learned == learned]
    scores = [each.score for each in arm if each.score is not None]
    return Arm(len(arm), len(scores), sum(scores) / len(scores) if scores else None)


def _series(lists: list[_Shown]) -> tuple[Window, ...]:
    """The lists over time, in windows of about as many each."""
    n = min(WINDOWS, max(len(lists) // LEAST, min(len(lists), 1)))
    edges = np.linspace(0, len(lists), n + 1).astype(int).tolist()
    parts = [lists[start:end] for start, end in pairwise(edges)]
    return tuple([Window(part[-1].seq, part[-1].time, _arm(part, True), _arm(part, False)) for part in parts])


def _difference(lists: Sequence[_Shown], low: float, high: float) -> Difference | None:
    """Of scores from `low` to `high`."""
    answered = [(each.score, each.learned, each.person) for each in lists if each.score is not None]
    if not answered:
        return None
    scores, learned, names = zip(*answered)
    numbers: dict[Any, int] = {}
    people = [numbers.setdefault(i if name is None else name, len(numbers)) for i, name in enumerate(names)]
    span = high - low
    found = difference((np.array(scores) - low) / span, np.array(learned), np.array(people, np.int64))
    return None if found is None else Difference(found.by * span, found.low * span, found.high * span, found.people)


def _unsaid(lists: Sequence[_Shown], ledger: Ledger, forms: set[str]) -> str:
    """Why no difference can be told; `forms` are those of what was answered."""
    control = ledger.settings.control
    if ledger.choices is not None:
        return HARDER
    if ledger.ratings is not None:
        return _unsaid_ratings(lists, control)
    if forms and forms <= {"thumb", "edit"}:
        return MUTE
    arms = [(_arm(lists, True), "made from what was learned"), (_arm(lists, False), "left in its own order")]
    if control == 0.0 and arms[1][0].shown == 0:
        return "no list is left in its own order, as control is 0: there is nothing to compare with"
    for arm, how in arms:
        if arm.shown == 0:
            return f"no list was {how} so far"
        if arm.answered == 0:
            return f"no list that was {how} has an answer so far that says what was preferred"
    answers = [{each.score for each in lists if each.learned == arm} - {None} for arm in (True, False)]
    if max(map(len, answers)) == 1 and min(arm.answered for arm, _ in arms) > 1:
        return "in either kind of list what was preferred always stood in the same place: chance cannot be told"
    return "too few people have answered: of either kind of list it takes the answers of two at least"


def _unsaid_ratings(lists: Sequence[_Shown], control: float) -> str:
    """The same in a loop of ratings."""
    arms = [
        (_arm(lists, True), "made from what was learned"),
        (_arm(lists, False), "left to the caller's score or chance"),
    ]
    if control == 0.0 and arms[1][0].shown == 0:
        return "nothing is left to the caller's score or chance, as control is 0: there is nothing to compare with"
    for arm, how in arms:
        if arm.answered == 0:
            return f"nothing that was {how} was rated so far"
    answers = [{each.score for each in lists if each.learned == arm} - {None} for arm in (True, False)]
    if max(map(len, answers)) == 1 and min(arm.answered for arm, _ in arms) > 1:
        return "all ratings of either kind of list were the same: chance cannot be told"
    return "too few people have rated: of either kind of list it takes the ratings of two at least"
