"""Decisions of a loop of ratings: the best of the items on offer that the person has not rated, or a random sample.

The record of a decision keeps what was shown, best first, and how many candidates there were."""

from __future__ import annotations

import math
from typing import Any, cast

import numpy as np

from heedful.jit.kernel import Ints
from heedful.loop.interactions.protocol import Proposal, Question
from heedful.loop.interactions.rating.model import RatingModel
from heedful.loop.model import View
from heedful.loop.settings import Settings


def find_unrated(view: View[RatingModel], asked: Question) -> Ints | None:
    """Return the indices of the candidates that the person has not rated yet, None for all.

    Actions count as a rating once their weights sum to 1. `asked` is the request. Raise ValueError if none is left,
    unless the request asks for repeats or has unknown items."""
    request = asked.request
    if asked.repeats or view.person is None:
        return None
    there = np.flatnonzero(~np.isin(request.x, view.model.consumed_items(view)))
    if there.size == 0 and request.strangers is None:
        expected = f"expected one that {asked.person} has not consumed, got {len(request.x)} that were"
        raise ValueError(f"candidates: {expected}; repeats shows them again")
    return there


def propose_slate(
    view: View[RatingModel],
    asked: Question,
    left: Ints | None,
    settings: Settings,
    rng: np.random.Generator,
) -> Proposal:
    """Return the list for the request `asked`, with the probability of showing exactly that list.

    It is the best by the model; if it is made for comparison (control), the best by the caller's score or, without
    scores, a random sample.

    - `left`: indices of the candidates that may be shown; None for all
    - `settings`: the loop's, with the share of the control and the length of lists
    - `rng`: the random generator of this decision"""
    request, control, share = asked.request, asked.control, asked.shares(settings).control
    left = np.arange(len(request.x)) if left is None else left
    strangers, size = request.strangers, min(request.show or settings.k, left.size)
    strange: tuple[int, ...] | list[int] = ()
    if strangers is not None:  # they have the same places in lists of the control, which chance makes
        size = min(request.show or settings.k, left.size + len(strangers.names))
        strange = strangers.places(len(request.x), size, False, set(left.tolist()))
        size = sum(j < 0 for j in strange)
    by_score = (-np.array(request.prior)[left]).argsort(kind="stable") if request.prior else None
    aside = by_score if by_score is not None else rng.permutation(left.size) if control else None
    aside = None if aside is None else left[aside[:size]]
    watched = WatchedGenerator(rng)
    order = request.x[left].argsort()
    numbers = request.x[left][order]
    match = asked.match.among(left) if asked.match is not None and size else None
    carried: dict[str, Any] = {}
    if match is None:
        y = view.model.propose(view, numbers, size, cast(np.random.Generator, watched)) if size else numbers
        learned = left[order[_places(numbers, y)]] if size else left[:0]
    else:
        learned, carried = match.draft(size)
    carried = {} if control else carried
    shown = aside if control and aside is not None else learned
    by_score = None if by_score is None else aside
    if not size:
        probability: float | None = 1.0
    elif match is None:
        probability = _probability(view.model.learner, watched, shown, learned, by_score, left.size, share)
    else:
        caller = _by_control(shown, by_score, left.size)
        probability = share * caller + (1.0 - share) * match.probability(shown) or None
    ratings = view.model.ratings(view, request.x[shown]) if size else None
    low, high = settings.ratings or (-math.inf, math.inf)
    return Proposal(
        shown=shown,
        probability=probability,
        carried=carried,
        # As it is told, to six digits; not beyond the range, which may have more.
        predicted=()
        if ratings is None
        else tuple([min(max(float(f"{rating:.6g}"), low), high) for rating in ratings.tolist()]),
        unknown=() if strangers is None else strangers.to_record(strange),
        kept=shown.tolist(),
        of=len(request.called) + (0 if strangers is None else len(strangers.names)),
    )


def _probability(
    learner: Any,
    watched: WatchedGenerator,
    shown: Ints,
    learned: Ints,
    by_score: Ints | None,
    there: int,
    control: float,
) -> float | None:
    """Return the probability that the loop shows exactly the list `shown`; None if the `learner` cannot tell."""
    chance = _chance(shown.size, there)
    aside = _by_control(shown, by_score, there)
    if control == 1.0:
        return aside or None
    from heedful.learners.ratings.baselines import RandomItem

    if isinstance(learner, RandomItem):
        ours = chance
    elif watched.drawn:
        return None
    else:
        ours = float(np.array_equal(shown, learned))
    return control * aside + (1.0 - control) * ours or None


def _chance(size: int, there: int) -> float:
    """Return the probability of one particular list of `size` items, if it is drawn at random from `there`
    candidates."""
    return math.exp(-sum(math.log(there - i) for i in range(size)))


def _by_control(shown: Ints, by_score: Ints | None, there: int) -> float:
    """Return the probability that the control shows exactly the list `shown`."""
    return _chance(shown.size, there) if by_score is None else float(np.array_equal(shown, by_score))


class WatchedGenerator:
    """A random generator that notes in `drawn` whether it was used: a learner that draws nothing shows its list with
    certainty."""

    def __init__(self, rng: np.random.Generator) -> None:
        self._rng = rng
        self.drawn = False

    def __getattr__(self, name: str) -> Any:
        self.drawn = True
        return getattr(self._rng, name)


def _places(numbers: Ints, y: Ints) -> Ints:
    """Return the index of each item of `y` in `numbers`, which rise. Raise ValueError if one is missing or comes
    twice."""
    places = np.minimum(numbers.searchsorted(y), numbers.size - 1)
    if not np.array_equal(numbers[places], y) or np.unique(y).size < y.size or y.size == 0:
        raise ValueError(f"expected items on offer, each once, got {y.tolist()[:5]}")
    return places
