"""How well ratings were predicted: |predicted - given| of every rating, compared with that of a baseline.

The baseline predicts the mean of all ratings of the item that came before, with one rating equal to the overall mean
added (`item-mean`): it has seen at least as much as the model.

Whether to show what the model predicts to be best or simply what is most popular is judged on lists of the control,
which neither of them chose. Of the items rated in such a list, three ratings are compared: that of the item with the
highest prediction, that of the item with the highest mean so far, and the mean of all, which is chance. Ties are
averaged."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from heedful.evaluation.answers import Answer
from heedful.loop.cluster_robust import paired_difference
from heedful.loop.log import Event
from heedful.loop.packing import LoggedDecision
from heedful.loop.prediction_report import ScoredAnswer, Wording, prediction_report
from heedful.results.answers import plain
from heedful.results.report import Picked, PredictionReport

Array = npt.NDArray[np.float64]

WORDING = Wording(
    "mean |predicted - given|",
    True,
    "the item's mean so far",
    "no rating was given to what was shown so far",
    "too few people have rated: it takes two at least",
    "both were equally far off in every rating: chance cannot be told",
    "the learner does not say what it expects",
)


class _Rating(NamedTuple):
    """A rating with its prediction."""

    seq: int  # of the feedback
    place: int  # in it
    time: int
    who: str | int  # the person; of nobody in particular the decision
    item: str
    given: float
    predicted: float | None
    shown: bool  # by the loop, not by somebody else
    control: int  # the decision, where that is one of the control; otherwise 0


class RatingTally:
    """Collects the predicted ratings of logged decisions and the ratings that were given, in any order, for the
    report."""

    def __init__(self, low: float, high: float) -> None:
        self._low, self._high = low, high
        self._given: list[_Rating] = []

    def take(self, decision: LoggedDecision, given: Sequence[tuple[Event, Answer]]) -> None:
        record = decision.record
        predicted = dict(zip(record.shown, record.predicted))
        who = decision.seq if decision.person is None else decision.person
        for event, answer in given:
            if answer.stated:
                for i, (j, value) in enumerate(answer.values.items()):
                    ours = record.arm != "imported"
                    control = decision.seq if record.arm == "control" else 0
                    expected = predicted.get(j)
                    rating = _Rating(event.seq, i, event.time, who, decision.names[j], value, expected, ours, control)
                    self._given.append(rating)

    def report(self) -> PredictionReport:
        self._given.sort()
        compared = [(each, mean) for each, mean in zip(self._given, self._item_means()) if each.shown]
        scored = [
            ScoredAnswer(
                each.seq, each.place, each.time, each.who,
                math.nan if each.predicted is None else abs(each.predicted - each.given), abs(mean - each.given),
            )
            for each, mean in compared
        ]  # fmt: skip
        mean = float(np.mean([each.given for each, _ in compared])) if compared else None
        details = {"mean": mean, "picked": plain(self._compare_picks())}
        return prediction_report(scored, WORDING, self._high - self._low, details)

    def _compare_picks(self) -> Picked | None:
        """Return the mean rating of one item of a control list, selected by prediction, by popularity, or at random."""
        lists: dict[int, dict[str, _Rating]] = {}
        for each in self._given:
            if each.control and each.predicted is not None:  # the first rating of an item in a list is the one it got
                lists.setdefault(each.control, {}).setdefault(each.item, each)
        means = _Means((self._low + self._high) / 2.0)
        found, numbers, people = [], dict[str | int, int](), []
        for each in self._given:
            rated = lists.pop(each.control, {})  # at the first rating of a list: what came of it is not known yet
            if len(rated) > 1:
                given = np.array([one.given for one in rated.values()])
                expected = np.array([one.predicted for one in rated.values()])
                popular = np.array([means.of(item) for item in rated])
                found.append((_given_to_best(expected, given), _given_to_best(popular, given), float(given.mean())))
                people.append(numbers.setdefault(each.who, len(numbers)))
            means.take(each.item, each.given)
        if not found:
            return None
        learned, most, chance = np.array(found).T
        apart = paired_difference(learned - most, np.array(people, np.int64), self._high - self._low)
        return Picked(len(found), float(learned.mean()), float(most.mean()), float(chance.mean()), apart)

    def _item_means(self) -> list[float]:
        """Return the baseline's prediction of each rating, the item's mean before it; ratings are in order."""
        means, said = _Means((self._low + self._high) / 2.0), []
        for each in self._given:
            said.append(means.of(each.item))
            means.take(each.item, each.given)
        return said


class _Means:
    """The running mean of each item's ratings, with one rating equal to the overall mean added."""

    def __init__(self, middle: float) -> None:
        self._middle, self._n, self._total = middle, 0, 0.0
        self._items: dict[str, tuple[int, float]] = {}

    def of(self, item: str) -> float:
        overall = self._total / self._n if self._n else self._middle
        count, total = self._items.get(item, (0, 0.0))
        return (total + overall) / (count + 1)

    def take(self, item: str, given: float) -> None:
        count, total = self._items.get(item, (0, 0.0))
        self._items[item] = count + 1, total + given
        self._n, self._total = self._n + 1, self._total + given


def _given_to_best(expected: Array, given: Array) -> float:
    """Return the rating that the item with the highest value in `expected` (n,) has in `given` (n,), for n items."""
    return float(given[expected == expected.max()].mean())
