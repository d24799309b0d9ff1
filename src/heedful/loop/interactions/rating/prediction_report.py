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
from typing import Any

import numpy as np
import numpy.typing as npt

from heedful.evaluation.answers import Scale
from heedful.loop.cluster_robust import paired_difference
from heedful.loop.prediction_report import ItemMean, Judged, NumberTally, Wording, mean_of
from heedful.results.answers import plain
from heedful.results.report import Picked

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


def rating_tally(scale: Scale) -> NumberTally:
    """Return a new collector of predicted and given ratings on the `scale`, with these details:

    - `mean`: the mean of the ratings of what this loop showed; None without any
    - `picked`: a `Picked` as JSON; None unless people rated two or more items of a list of the control (by the
      caller's score or at random)"""

    def details(judged: Sequence[Judged]) -> dict[str, Any]:
        mean = mean_of([each.value for each in judged if each.counts])
        return {"mean": mean, "picked": plain(_compare_picks(judged, scale))}

    loss, most = (lambda predicted, rating: abs(predicted - rating)), scale.high - scale.low
    return NumberTally(WORDING, most, loss, ItemMean(scale.middle), details)


def _compare_picks(judged: Sequence[Judged], scale: Scale) -> Picked | None:
    """Return the mean rating of one item of a control list, selected by prediction, by popularity, or at random."""
    lists: dict[int, dict[str, Judged]] = {}
    for each in judged:
        if each.arm == "control" and not math.isnan(each.predicted):  # the first rating of an item is the one it got
            lists.setdefault(each.decision, {}).setdefault(each.item, each)
    popularity = ItemMean(scale.middle)
    rows, numbers, people = [], dict[str | int, int](), []
    for each in judged:
        rated = lists.pop(each.decision, {})  # at the first rating of a list: what came of it is not known yet
        if len(rated) > 1:
            given = np.array([one.value for one in rated.values()])
            expected = np.array([one.predicted for one in rated.values()])
            popular = np.array([popularity.predict(item) for item in rated])
            rows.append((_given_to_best(expected, given), _given_to_best(popular, given), float(given.mean())))
            people.append(numbers.setdefault(each.who, len(numbers)))
        popularity.learn(each.item, each.value)
    if not rows:
        return None
    learned, most, chance = np.array(rows).T
    apart = paired_difference(learned - most, np.array(people, np.int64), scale.high - scale.low)
    return Picked(len(rows), float(learned.mean()), float(most.mean()), float(chance.mean()), apart)


def _given_to_best(expected: Array, given: Array) -> float:
    """Return the rating in `given` (n,) of the item with the highest value in `expected` (n,), of ties the mean."""
    return float(given[expected == expected.max()].mean())
