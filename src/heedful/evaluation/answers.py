"""What one piece of feedback says, whatever its form, and the figures that follow from that alone.

An `Answer` has no log and no kind of feedback: items are indices of a decision's candidates. Each form of feedback
makes one (`heedful.loop.interactions.forms.Form.answer`), and whatever judges lists, predictions or people asks it."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

Item: TypeAlias = int | str
"""The index of a candidate; below 0 an object that was none; a name: an item that was not on offer."""


class Answer(NamedTuple):
    """What one piece of feedback says of the items of a decision; what it does not say keeps its default."""

    values: Mapping[int, float] = {}  # nobody writes to it
    """numbers on the scale of the kind of feedback: ratings, grades, a thumb"""
    weights: Mapping[int, float] = {}  # nobody writes to it
    """how much each item counts (actions); 1 for an item that is not named"""
    best: tuple[Item, ...] | None = None
    """what was wanted before all else, in order; () nothing of it; None: it does not say"""
    picked: bool = False
    """whether `best` was picked out of what was shown, in no order: what was looked at besides was passed over"""
    tied: bool = False
    """whether all that was shown is equally good"""
    pairs: tuple[tuple[int, int], ...] = ()
    """(better, worse) of pairs that are said outright"""
    verdict: tuple[tuple[int, ...], float] | None = None
    """(items, -1 to 1): how good they are together; no items stand for the whole list"""
    stated: bool = True
    """False: read from actions by the settings, so that predictions are not judged by it"""

    @property
    def listed(self) -> tuple[Item, ...]:
        """what was wanted before all else of a list, as `best`; () if that was not stated, or of two items alone"""
        return (self.best or ()) if self.stated and not self.pairs else ()

    @property
    def mute(self) -> bool:
        """whether it judges what was shown, or corrects an item, without saying what was wanted before all else"""
        return self.best is None and bool(self.verdict or self.pairs)


class Scale(NamedTuple):
    """The numbers with which people answer in one kind of feedback."""

    low: float
    """the least"""
    high: float
    """the greatest"""
    differ: float | None = None
    """two numbers of one person for one item that are this far apart contradict each other; None: none do"""
    apart: float = math.inf
    """a number that is further than this from its prediction contradicts it"""
    whole: bool = False
    """whether all are whole numbers"""

    def check(self, field: str, number: float) -> None:
        """Raise ValueError, naming the `field`, if `number` is none of them."""
        if not self.low <= number <= self.high or (self.whole and number != int(number)):
            short = f"{number:g}"  # as many digits as tell it from a bound that it exceeds
            got = short if float(short) == number else repr(number)
            kind = "a whole number" if self.whole else "a number"
            raise ValueError(f"{field}: expected {kind} from {self.low:g} to {self.high:g}, got {got}")

    @property
    def middle(self) -> float:
        """The number halfway."""
        return (self.low + self.high) / 2.0


# ---------------------------------------------------------------------------- what was put before what


def passed_over(shown: Sequence[int], picked: Sequence[Item]) -> list[int]:
    """Return the items that were looked at and not `picked`: those above the last pick, and all where one was picked
    later on (below 0).

    `shown` are the items shown, best first."""
    chosen = set(picked)
    deepest = max((i for i, j in enumerate(shown, 1) if j in chosen), default=0)
    later = any(isinstance(j, int) and j < 0 for j in picked)
    return [j for j in shown[: None if later else deepest] if j not in chosen]


def risen(shown: Sequence[int], named: Sequence[int]) -> tuple[list[int], list[int]]:
    """Return (items that moved up, in their new order; items that fell behind one of them), as indices of candidates.

    `shown` is the order shown, `named` the beginning of the better order; the other items follow in the order shown. If
    nothing moved, return (`named`, [])."""
    place = {j: i for i, j in enumerate(shown)}
    last, ahead = len(shown), set(named)
    rest = [j for j in shown if j not in ahead]  # they follow, as they were shown
    before = [place.get(j, last) for j in named]
    highest = [*before, min((place[j] for j in rest), default=last)]
    for i in range(len(before) - 1, -1, -1):  # the highest place, as shown, of all that now stand from there on
        highest[i] = min(before[i], highest[i + 1])
    rose = {j: before[i] for i, j in enumerate(named) if before[i] > highest[i + 1]}
    if not rose:
        return list(named), []
    deepest, fallen = 0, set()
    for j in [*named, *rest]:
        if j in rose:
            deepest = max(deepest, rose[j])
        elif place.get(j, last) < deepest:
            fallen.add(j)
    return list(rose), [j for j in shown if j in fallen]


def chosen_over(shown: Sequence[int], answer: Answer) -> tuple[list[int], list[int]]:
    """Return (the items that `answer` chose, the items that it put below them), as indices of candidates.

    Of numbers these are all items, the highest first, and none below. `shown` are the items shown, best first."""
    if answer.pairs:
        better = dict.fromkeys(better for better, _ in answer.pairs)
        return list(better), list(dict.fromkeys(worse for _, worse in answer.pairs if worse not in better))
    best: Any = answer.best or ()
    if answer.picked:
        return list(best), passed_over(shown, best)
    if best:
        return risen(shown, best)
    if answer.verdict is not None:
        return list(answer.verdict[0]), []
    numbers = answer.values or answer.weights
    return sorted(numbers, key=lambda j: -numbers[j]), []


def said_pairs(shown: Sequence[int], answer: Answer) -> Iterator[tuple[int, int]]:
    """Yield (better, worse) for each two items of which `answer` says which is better: pairs said outright, each pick
    over each item passed over, and of a better order each two that it turns round.

    `shown` are the items shown, best first."""
    yield from answer.pairs
    best: Any = () if answer.pairs else answer.best or ()
    if answer.picked:
        others = passed_over(shown, best)
        yield from ((better, worse) for better in best for worse in others)
        return
    place, ahead = {j: i for i, j in enumerate(shown)}, set(best)
    order = [*best, *(j for j in shown if j not in ahead)]
    for i, better in enumerate(best):
        position = place.get(better, len(shown))
        yield from ((better, worse) for worse in order[i + 1 :] if place.get(worse, len(shown)) < position)


def first_wanted(shown: Sequence[Item], answer: Answer) -> Sequence[Item] | None:
    """Return the items that `answer` prefers to all others, the most preferred first; [] if it wants none, None if it
    does not say.

    Of clicks those on items of this list come before others; of equal numbers those `shown` first."""
    if answer.best is not None:
        listed = [j for j in answer.best if isinstance(j, str) or j >= 0]
        return listed if answer.picked and listed else answer.best
    if not answer.values or not answer.stated:
        return None
    most = max(answer.values.values())
    top = [j for j, value in answer.values.items() if value == most]
    return [j for j in shown if j in top] or top


# ---------------------------------------------------------------------------- how good a list was


def judged(shown: Sequence[int], answer: Answer, low: float, high: float) -> tuple[int, float] | None:
    """Return (item, reward from `low` to `high`) if `answer` judges one of the items `shown` by itself, otherwise None.

    A number is the reward itself; a thumb up or a click is the highest, a thumb down and none the lowest, and an action
    as much as its weight, the lowest for a weight below 0."""
    if answer.values:
        return next(iter(answer.values.items())) if len(answer.values) == 1 else None
    share: float | None = None
    items: Sequence[Any] = shown
    if answer.verdict is not None:
        items, share = answer.verdict[0] or shown, (1.0 + answer.verdict[1]) / 2.0
    elif answer.weights:
        share = max(0.0, *answer.weights.values()) if set(answer.weights) == set(shown) else None
    elif answer.best is not None and set(answer.best) <= set(shown) and (answer.picked or not answer.best):
        share = float(bool(answer.best))
    return (items[0], low + (high - low) * share) if share is not None and len(items) == 1 else None


def reciprocal_rank(shown: Sequence[Item], answers: Iterable[Answer]) -> float | None:
    """Return 1 / the position in the list `shown` of the item that the first of `answers` to prefer one prefers.

    The result is 0 if that item was not shown or none was wanted, None if no answer says."""
    score = None
    for answer in answers:
        preferred = first_wanted(shown, answer)
        if preferred:
            return 1.0 / (1 + shown.index(preferred[0])) if preferred[0] in shown else 0.0
        if preferred is not None:
            score = 0.0
    return score


def mean_value(answers: Iterable[Answer]) -> float | None:
    """Return the mean of all numbers that people stated in `answers`; None if there is none."""
    values = [value for answer in answers if answer.stated for value in answer.values.values()]
    return sum(values) / len(values) if values else None


def likeliest_chosen(shown: Sequence[int], predicted: Sequence[float], answer: Answer) -> float | None:
    """Return 1 if `answer` puts the item first that was `predicted` as the likeliest of those `shown`, 0 if another;
    1 / n if n items tie for the likeliest. None if it puts none first, or nothing was predicted."""
    if not answer.best or not predicted:
        return None
    best: Any = answer.best[0]
    most = max(predicted)
    return 1.0 / predicted.count(most) if predicted[shown.index(best)] == most else 0.0


def credit(shown: Sequence[int], answer: Answer, scale: Scale | None) -> dict[int, float] | None:
    """Return how strongly `answer` speaks for (above 0) or against (below 0) items `shown`: {index: number}.

    The number is 1 for an item picked and for the first item of a better order, the weight of an action, and how far a
    number is above the middle of the `scale` (None: the mean of this answer). Return {} if it speaks for none, None if
    it does not say."""
    listed = set(shown)
    if answer.values:
        values = {j: value for j, value in answer.values.items() if j in listed}
        middle = scale.middle if scale is not None else float(np.mean(list(values.values()))) if values else 0.0
        return {j: answer.weights.get(j, 1.0) * (value - middle) for j, value in values.items()}
    if answer.weights:
        return {j: weight for j, weight in answer.weights.items() if j in listed}
    if answer.best is None:
        return None
    best = first_wanted(shown, answer) or ()
    return {j: 1.0 for j in (best if answer.picked else best[:1]) if isinstance(j, int) and j in listed}


# ---------------------------------------------------------------------------- whether it agrees, with itself and others


def claims(
    shown: Sequence[int], answer: Answer, scale: Scale | None, key: Callable[[int], Hashable]
) -> dict[Any, float]:
    """Return the statements that `answer` makes, as {question: number}, to find answers that contradict each other: two
    of a person to one question do if their numbers differ by 1 or more.

    A question is the key of an item (how good is it?), or those of two, the smaller first (is the first better?). `key`
    identifies an item, as it was described in the request."""
    if answer.values and scale is not None:
        if scale.differ is None or not answer.stated:
            return {}
        return {key(j): value / scale.differ for j, value in answer.values.items()}
    if answer.verdict is not None:
        items = answer.verdict[0] or shown
        return {key(items[0]): answer.verdict[1] / 2.0} if len(items) == 1 and items[0] >= 0 else {}
    statements: dict[Any, float] = {}
    keys: dict[int, Any] = {}
    for pair in said_pairs(shown, answer):
        if min(pair) < 0:
            continue
        better, worse = (keys[j] if j in keys else keys.setdefault(j, key(j)) for j in pair)
        if better != worse:
            first, second = sorted((better, worse))
            statements[first, second] = float(better == first)
    return statements


def outcomes(
    shown: Sequence[int], predicted: Sequence[float], answer: Answer, scale: Scale | None
) -> list[tuple[float, float]]:
    """Return (predicted value, actual value) for each item that was `shown` with a prediction and that `answer` speaks
    of.

    On a `scale` the actual value is the number stated; without one the predicted value is the probability of being put
    first, the actual one 1 for the item put first and 0 for the others."""
    logged = dict(zip(shown, predicted))
    if scale is not None:
        return [(logged[j], value) for j, value in answer.values.items() if j in logged and answer.stated]
    if not answer.best or answer.best[0] not in logged:
        return []
    return [(chance, float(j == answer.best[0])) for j, chance in logged.items()]
