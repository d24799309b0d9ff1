"""What a model expects of the candidates of a decision, and how an answer compares with that, whatever the kind of
feedback.

A kind says what its model expects (`Expected`); the figures here are functions of that and of an `Answer`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from heedful.evaluation.answers import Answer, Scale
from heedful.jit.kernel import DISCOUNTS, Floats, Ints, top

SURE = 0.9
"""How probable it has to be that another item is better than the one put first, for an answer to contradict a model
that says how probable that is."""
ROUNDING = 1e-12
"""A sum whose size is at most this share of the sum of the sizes of its terms is what rounding leaves of 0."""


class Expected(NamedTuple):
    """What a model expects of a decision's candidates and of objects that were none; None: nothing of the sort.

    Nothing is computed before it is asked. Items are indices of candidates, or below 0, as in an `Answer`."""

    utilities: Callable[[Sequence[int]], Floats] | None = None
    """the scores (k,) by which k items are ordered; in them, lists are worth the discounted sum of their items"""
    values: Callable[[Sequence[int]], Floats | Ints | None] | None = None
    """the numbers (k,) on the scale of the kind that k items will get; None, or nan, where nothing is predicted"""
    better: Callable[[Sequence[int], int], Floats] | None = None
    """the probabilities (k,) that each of k items has a greater utility than one other item"""
    verdict: Callable[[Sequence[int]], float] | None = None
    """by how much a list is better than usual, above 0, or worse, below 0"""


class Compared(NamedTuple):
    """How good the predictions of L learners were for one answer in the log, by one `Measure`."""

    values: Floats
    """how good each prediction is (L, c), for L learners and c comparisons, between `low` and `high` of the measure;
    nan for a learner that makes no such prediction"""
    weights: Floats
    """the weight of each comparison (c,): an inverse probability of what was shown, or 1"""
    most: float = 0.0
    """the greatest value that any prediction could have had, if the `high` of the measure is not known beforehand: that
    of what could have been chosen, not of what was"""
    most_weight: float = 1.0
    """the greatest weight that any of these comparisons could have had"""


class ListClick(NamedTuple):
    """One click on an item of a list, for L learners."""

    place: int
    """the place of the item, from 0"""
    upper: float
    """1 / (2 P) if it is the upper one of two neighbours that were shown in either order at random, P being the
    probability of the order in which they were; 0 if it is not"""
    lower: float
    """the same if it is the lower one of two"""
    above: Sequence[int]
    """(L,) the items that each learner ranks before it, of those shown at the first `MOST_PLACES` places of
    `heedful.evaluation.examination`: bit q is 1 if it does the item at place q"""


# ---------------------------------------------------------------------------- corrected lists


def corrected(shown: Sequence[int], answer: Answer) -> tuple[list[int], list[int]]:
    """Return (items as they were shown, the same and others as `answer` orders them, best first); both are alike if it
    corrects nothing.

    Items that it does not name follow in the order shown. Of numbers only the items that have one are compared, of
    pairs said outright only their items; an item that it speaks against comes last."""
    if answer.values:
        listed = set(shown)
        items = [*(j for j in shown if j in answer.values), *sorted(j for j in answer.values if j not in listed)]
        return items, sorted(items, key=lambda j: -answer.values[j])
    best: Any = answer.best
    if not best and answer.pairs:
        better, worse = (list(dict.fromkeys(side)) for side in zip(*answer.pairs))
        return [*worse, *better], [*better, *worse]
    if best is None:
        best = [j for j in shown if answer.weights.get(j, 0.0) >= 0.0]
    ahead = set(best)
    return list(shown), [*best, *(j for j in shown if j not in ahead)]


def list_gain(shown: Sequence[int], answer: Answer, utilities: Callable[[Sequence[int]], Floats], k: int) -> float:
    """Return by how much the list that `answer` asks for is worth more than the one `shown`: the difference of the
    discounted sums of the `utilities` of the first `k` items; 0 for what rounding leaves.

    It is w . (phi(x, ybar) - phi(x, y)) in Shivaswamy & Joachims (JAIR 2015)."""
    before, after = (items[:k] for items in corrected(shown, answer))
    if before == after:
        return 0.0
    terms = np.concatenate([DISCOUNTS[: len(after)] * utilities(after), -DISCOUNTS[: len(before)] * utilities(before)])
    gain = float(terms.sum())
    return 0.0 if abs(gain) <= ROUNDING * float(np.abs(terms).sum()) else gain


def gains(shown: Sequence[int], answer: Answer, expected: Expected, m: int, k: int) -> tuple[float, float] | None:
    """Return (utility of the corrected list, utility of the best list of all `m` candidates), each minus the utility of
    the list `shown`, of the first `k` items; None if `answer` corrects no list.

    A choice between two items does not, nor does an action, nor clicks in later decisions."""
    best: Any = answer.listed
    later = answer.picked and any(j < 0 for j in best)
    if expected.utilities is None or not best or later or not shown:
        return None
    u = expected.utilities(range(m))
    k = min(k, len(shown))
    order = top(u, k)
    most = float(DISCOUNTS[:k] @ (u[order[:k]] - u[list(shown[:k])]))
    small = ROUNDING * float(np.abs(u).sum())
    gain = list_gain(shown, answer, expected.utilities, k)
    return 0.0 if abs(gain) <= small else gain, 0.0 if abs(most) <= small else most


# ---------------------------------------------------------------------------- several models and one answer


def numbers_expected(shown: Sequence[int], answer: Answer, models: Sequence[Expected]) -> tuple[Floats, Floats] | None:
    """Return (the numbers that `answer` states (k,), those that each of L `models` expects (L, k), nan where none);
    None if it states none."""
    if not answer.values or not answer.stated:
        return None
    items, _ = corrected(shown, answer)
    predicted = np.full((len(models), len(items)), np.nan)
    for row, model in zip(predicted, models):
        values = None if model.values is None else model.values(items)
        row[:] = np.nan if values is None else values
    return np.array([answer.values[j] for j in items]), predicted


def absolute_error(both: tuple[Floats, Floats] | None, most: float = np.inf) -> Compared | None:
    """Return how far the numbers predicted (L, k) are from those stated (k,), at most `most`; `both` is what
    `numbers_expected` returns."""
    if both is None:
        return None
    numbers, predicted = both
    return Compared(np.minimum(np.abs(predicted - numbers), most), np.ones(numbers.size))


def value_order(both: tuple[Floats, Floats] | None) -> Compared | None:
    """Return, for each two items of which different numbers (k,) were stated, 1 if those predicted (L, k) are in the
    same order, 1/2 if they are equal, otherwise 0; `both` is what `numbers_expected` returns."""
    if both is None:
        return None
    numbers, predicted = both
    first, second = np.nonzero(np.triu(numbers[:, None] != numbers[None, :]))
    signs = np.sign(numbers[first] - numbers[second]) * np.sign(predicted[:, first] - predicted[:, second])
    return Compared((signs + 1.0) / 2.0, np.ones(first.size))


def best_expected(shown: Sequence[int], answer: Answer, models: Sequence[Expected]) -> Compared | None:
    """Return, for each other item `shown`, 1 if `models` expect a lower utility of it than of the one that `answer`
    puts first, 1/2 if the same, otherwise 0; None if it puts none first."""
    others = [j for j in shown if answer.best and j != answer.best[0]]
    if not others:
        return None
    first: Any = answer.best
    utilities = np.array([model.utilities([first[0], *others]) for model in models if model.utilities is not None])
    return Compared((np.sign(utilities[:, :1] - utilities[:, 1:]) + 1.0) / 2.0, np.ones(len(others)))


# ---------------------------------------------------------------------------- one answer against one model


def contradicts(shown: Sequence[int], answer: Answer, expected: Expected, scale: Scale | None, k: int) -> bool:
    """Return whether `answer` says the opposite of what is `expected`.

    It does if a number is further from the prediction than the scale's `apart`; if it approves of what is worse than
    usual, or the other way round; if an item that was passed over is better than the one put first with probability
    `SURE`. Of a model without such probabilities: if the better item of a pair that is said outright has the lower
    utility, or if the list that it asks for is worth less than the one `shown`, by the first `k` items."""
    if answer.values and scale is not None:
        predicted = None if expected.values is None else expected.values(list(answer.values))
        numbers = np.array(list(answer.values.values()))
        return predicted is not None and bool(np.abs(predicted - numbers).max() > scale.apart)
    if answer.verdict is not None:
        items, sign = answer.verdict
        return expected.verdict is not None and sign * expected.verdict(items or shown) < 0.0
    if expected.better is not None:
        others = [j for j in shown if answer.best and j != answer.best[0]]
        first: Any = answer.best[0] if answer.best else None
        return bool(others) and bool(expected.better(others, first).max() >= SURE)
    if expected.utilities is None:
        return False
    if answer.pairs:
        better, worse = (expected.utilities(side) for side in zip(*answer.pairs))
        return bool((better - worse < -ROUNDING * (np.abs(better) + np.abs(worse))).any())
    return list_gain(shown, answer, expected.utilities, k) < 0.0


def picked_error(shown: Sequence[int], answer: Answer, expected: Expected) -> float | None:
    """Return the share of pairs (item picked, item shown and not picked) that the model orders the wrong way, a tie
    counting 1/2; None if `answer` picks nothing, or all that was `shown`.

    As people pick more at the top, this does not measure how good a learner is; a change over time says that something
    has changed."""
    if expected.utilities is None:
        return None
    picked = sorted({j for j in answer.listed if isinstance(j, int) and j >= 0})
    others = [j for j in shown if j not in picked]
    if not picked or not others:
        return None
    gaps = expected.utilities(others)[:, None] - expected.utilities(picked)
    return float(((np.sign(gaps) + 1.0) / 2.0).mean())
