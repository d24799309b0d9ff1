"""How well a grading loop predicted: |predicted - given| of every grade, beside a constant predictor's on the same.

A prediction is the one that was told with its decision, in either arm, so it was made before the grade was known. The
constant predictor says the median of all grades that came before: it knows at least as much as the model did.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from heedful.jit.kernel import Ints
from heedful.learners.ordinal.perceptrons import ConstantRank
from heedful.loop.cluster_robust import Difference, paired
from heedful.loop.log import Event
from heedful.loop.packing import LoggedDecision
from heedful.loop.records import FeedbackRecord
from heedful.loop.windows import windows


class Stretch(NamedTuple):
    """Some grades that were given one after the other."""

    seq: int
    """of the last, and its time in microseconds since 1970"""
    time: int
    grades: int
    loss: float
    constant: float


class Accuracy(NamedTuple):
    """How far what was predicted lay from what was given."""

    grades: int
    """how many were given to what had been predicted and shown"""
    loss: float | None
    """the mean of |predicted - given|; None without any"""
    exact: float | None
    """the share that was predicted exactly"""
    constant: float | None
    """the loss of who always says the median of the grades so far"""
    difference: Difference | None
    """loss less constant, with its 95 % interval over people: below 0 the model predicts better; None where it cannot
    be said"""
    unsaid: str
    """why not, in words; "" where it can"""
    series: tuple[Stretch, ...]


class _Pair(NamedTuple):
    """One grade, and what was predicted."""

    seq: int  # of the feedback
    time: int
    who: str | int  # the person; of nobody in particular the decision
    predicted: int
    given: int


class Predicted:
    """Takes in the decisions of a grading loop, in any order, and says how well they predicted."""

    def __init__(self, k: int) -> None:
        """Grades are 1 to `k`."""
        self._k = k
        self._given: list[tuple[int, int]] = []  # (seq, grade) of all that was learned
        self._pairs: list[_Pair] = []

    def take(self, decision: LoggedDecision, given: Sequence[tuple[Event, FeedbackRecord]]) -> None:
        """A decision with the feedback on it that counts."""
        predicted = dict(zip(decision.record.shown, decision.record.predicted))
        who = decision.seq if decision.person is None else decision.person
        for event, feedback in given:
            if feedback.form != "grade":
                continue
            for j, value in zip(feedback.chosen, feedback.values):
                self._given.append((event.seq, int(value)))
                if j in predicted:
                    self._pairs.append(_Pair(event.seq, event.time, who, int(predicted[j]), int(value)))

    def measured(self) -> Accuracy:
        """What was found."""
        if not self._pairs:
            return Accuracy(0, None, None, None, None, "no grade was given to what was predicted so far", ())
        pairs = sorted(self._pairs, key=lambda pair: pair.seq)
        given = np.array([pair.given for pair in pairs])
        loss = np.abs(np.array([pair.predicted for pair in pairs]) - given)
        constant = np.abs(np.array(self._medians([pair.seq for pair in pairs])) - given)
        numbers: dict[str | int, int] = {}
        people = np.array([numbers.setdefault(pair.who, len(numbers)) for pair in pairs], np.int64)
        apart = paired((loss - constant).astype(np.float64), people, self._k - 1.0)
        unsaid = "" if apart is not None else _unsaid(len(numbers))
        series = [
            Stretch(pairs[end - 1].seq, pairs[end - 1].time, end - start, *_means(loss[start:end], constant[start:end]))
            for start, end in windows(len(pairs))
        ]
        exact, means = float((loss == 0).mean()), _means(loss, constant)
        return Accuracy(len(pairs), means[0], exact, means[1], apart, unsaid, tuple(series))

    def _medians(self, seqs: list[int]) -> list[int]:
        """What the constant predictor says before each of these pieces of feedback, which are in order."""
        rule, given, at = ConstantRank(1, self._k), sorted(self._given), 0
        rng = np.random.default_rng(0)  # it draws nothing
        nothing = np.zeros(1)
        state, said = rule.init(rng), []
        for seq in seqs:
            while at < len(given) and given[at][0] < seq:
                state = rule.update(state, nothing, 0, given[at][1])
                at += 1
            said.append(rule.propose(state, nothing, rng))
        return said


def _means(loss: Ints, constant: Ints) -> tuple[float, float]:
    return float(loss.mean()), float(constant.mean())


def _unsaid(people: int) -> str:
    if people < 2:
        return "too few people have graded: it takes two at least"
    return "both were equally far off in every grade: chance cannot be told"
