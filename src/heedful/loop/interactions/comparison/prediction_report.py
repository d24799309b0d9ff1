"""How well a loop of choices foretold them: the share of answers in which what was likeliest was chosen, beside 1/2.

What was foretold was told with the decision, in either arm, so before the answer was known. The questions that the rule
picks are those of which the answer is least certain, so it is foretold less often than that to a question that chance
picked; only the latter say how well choices between any two are foretold.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from heedful.loop.cluster_robust import Difference, paired
from heedful.loop.log import Event
from heedful.loop.packing import LoggedDecision
from heedful.loop.records import FeedbackRecord
from heedful.loop.windows import windows

Array = npt.NDArray[np.float64]


class Tried(NamedTuple):
    """Some answers that were given one after the other."""

    seq: int
    """of the last, and its time in microseconds since 1970"""
    time: int
    answers: int
    right: float
    guess: float


class Guessing(NamedTuple):
    """How often what was foretold was chosen, of answers to questions that the loop asked, in either arm."""

    answers: int
    """in how many something was chosen, of what it had foretold"""
    right: float | None
    """the share of them in which what was likeliest was; alike counts half; None without any"""
    guess: float | None
    """the same of who guesses: 1/2 where two were shown"""
    difference: Difference | None
    """right less guess, with its 95 % interval over people; None where it cannot be said"""
    unsaid: str
    """why not, in words; "" where it can"""
    by_chance: int
    """of the answers, how many were to questions that chance picked, and what was right of those; None without any"""
    right_by_chance: float | None
    equal: int
    """how often all that was shown was called equally good"""
    unsure: int
    """how often nobody could judge, or nothing was chosen"""
    series: tuple[Tried, ...]


class _Answer(NamedTuple):
    """One answer, and what was foretold."""

    seq: int
    place: int
    time: int
    who: str | int  # the person; of nobody in particular the decision
    right: float
    guess: float
    control: bool


class Guessed:
    """Takes in the decisions of a loop of choices, in any order, and says how well they foretold the answers."""

    def __init__(self) -> None:
        self._answers: list[_Answer] = []
        self._equal = self._unsure = 0

    def take(self, decision: LoggedDecision, given: Sequence[tuple[Event, FeedbackRecord]]) -> None:
        """A decision with the feedback on it that counts."""
        record = decision.record
        if record.arm == "imported":
            return
        who = decision.seq if decision.person is None else decision.person
        for i, (event, feedback) in enumerate(given):
            best = best_of(record.shown, feedback)
            if feedback.form == "choice" and feedback.text == "equal":
                self._equal += 1
            elif best is None:
                self._unsure += 1
            elif record.predicted:
                right, guess = share(record.predicted, record.shown.index(best)), 1.0 / len(record.shown)
                control = record.arm == "control"
                self._answers.append(_Answer(event.seq, i, event.time, who, right, guess, control))

    def measured(self) -> Guessing:
        """What was found."""
        found = sorted(self._answers)
        if not found:
            unsaid = "nothing was chosen so far of what it had foretold"
            return Guessing(0, None, None, None, unsaid, 0, None, self._equal, self._unsure, ())
        right, guess = np.array([each.right for each in found]), np.array([each.guess for each in found])
        numbers: dict[str | int, int] = {}
        people = np.array([numbers.setdefault(each.who, len(numbers)) for each in found], np.int64)
        apart = paired(right - guess, people)
        unsaid = "" if apart is not None else _unsaid(len(numbers))
        control = np.array([each.control for each in found])
        series = [
            Tried(found[b - 1].seq, found[b - 1].time, b - a, float(right[a:b].mean()), float(guess[a:b].mean()))
            for a, b in windows(right.size)
        ]
        return Guessing(
            right.size, float(right.mean()), float(guess.mean()), apart, unsaid, int(control.sum()),
            float(right[control].mean()) if control.any() else None, self._equal, self._unsure, tuple(series),
        )  # fmt: skip


def best_of(shown: Sequence[int], feedback: FeedbackRecord) -> int | None:
    """The candidate that an answer put first; None where it put none."""
    if feedback.form in ("better", "clicks") and feedback.chosen:
        return feedback.chosen[0]
    if feedback.form == "choice" and feedback.values[0] >= 0.0:
        return shown[int(feedback.values[0])]
    return None


def share(chances: tuple[float, ...], at: int) -> float:
    """1 where the one at this place was the likeliest, less where others were as likely, 0 where one was likelier."""
    most = max(chances)
    return 1.0 / chances.count(most) if chances[at] == most else 0.0


def _unsaid(people: int) -> str:
    if people < 2:
        return "too few people have chosen: it takes two at least"
    return "it was as often right as a guess in every answer: chance cannot be told"
