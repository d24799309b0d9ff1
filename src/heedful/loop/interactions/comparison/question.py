"""What a loop of choices asks: the pair that its rule gives most among what is on offer, or one that chance picks.

Which of the two stands first is drawn, from the loop's seed. The record of a decision keeps what was shown, in its
places, how likely each was to be chosen, and how many candidates there were.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from heedful.jit.kernel import Ints
from heedful.loop.interactions.comparison.model import ChoiceModel
from heedful.loop.interactions.protocol import Proposal, Question
from heedful.loop.model import Person
from heedful.loop.strangers import Strangers


def check_two(asked: Question) -> None:
    """Check that a request leaves at least two items to choose between.

    ValueError where the loop knows fewer than two of the candidates, or `show` is less than 2. A request with fewer
    than two known candidates passes if it also has unknown ones: then these are shown, and no question is asked.
    """
    m, size = len(asked.request.x), _size(asked)
    if m < 2 and asked.request.strangers is not None:
        return
    if m < 2:
        raise ValueError(f"candidates: expected two or more, to choose between, got {m}")
    if size < 2:
        raise ValueError(f"show: expected two or more, to choose between, got {size}")


def propose_question(
    model: ChoiceModel, shared: Any, own: Person | None, asked: Question, share: float, rng: Any
) -> Proposal:
    """The items that the learner would ask about, or in the control, which has this share, those that chance picks."""
    request, size = asked.request, _size(asked)
    m = len(request.x)
    strangers = request.strangers
    if m < 2 and strangers is not None:
        return _unasked(m, strangers, size)
    size = min(size, m)
    order = request.x.argsort()
    numbers: Ints = request.x[order]
    skip = model.pairs_asked(shared, None if asked.repeats else own, numbers)
    if len(skip) == math.comb(m, 2):  # all of them: from the beginning
        skip = skip[:0]
    left = math.comb(m, 2) - len(skip) if size == 2 else math.comb(m, size)
    before = _at(rng)
    learned = _places(numbers, model.propose(shared, own, numbers, size, skip, rng), size)
    drawn = _at(rng) != before
    places = _by_chance(m, size, numbers.searchsorted(skip), rng) if asked.control else learned
    probability = _probability(model.learner, places, learned, drawn, left, share)
    shown = order[places[rng.permutation(size)]]
    chances = model.chances(shared, own, request.x[shown])
    return Proposal(
        shown=shown,
        probability=probability,
        predicted=() if chances is None else tuple([float(f"{chance:.6g}") for chance in chances.tolist()]),
        unknown=() if strangers is None else strangers.told(()),  # no question is about them
        kept=shown.tolist(),
        of=m + (0 if strangers is None else len(strangers.names)),
    )


def _size(asked: Question) -> int:
    return 2 if asked.request.show is None else asked.request.show


def _unasked(m: int, strangers: Strangers, size: int) -> Proposal:
    """Too little is on offer to be a question: what there is is shown, and nothing can be learned from it."""
    places = strangers.places(m, size, own=False)
    return Proposal(
        shown=np.arange(sum(j < 0 for j in places)),
        probability=1.0,
        unknown=strangers.told(places),
        kept=list(range(m)),
        of=m + len(strangers.names),
    )


def _probability(learner: Any, places: Ints, learned: Ints, drawn: bool, left: int, control: float) -> float | None:
    """Of showing these in this order: by chance, which picks one of `left` sets, and by the learner. None where it
    draws, and does not say how."""
    orders = math.factorial(places.size)
    if getattr(learner, "rule", "") == "random" and places.size == 2:
        ours = 1.0 / left
    elif drawn and control < 1.0:
        return None
    else:
        ours = float(np.array_equal(places, learned))
    return (control / left + (1.0 - control) * ours) / orders


def _at(rng: Any) -> tuple[Any, ...]:
    """Where a generator is: the same as long as nothing is drawn from it."""
    state = rng.bit_generator.state
    return state["state"]["counter"].tolist(), state["buffer_pos"], state["has_uint32"]


def _places(numbers: Ints, y: Ints, size: int) -> Ints:
    """Where the items of y stand in numbers, which rise, in that order. ValueError where one is not among them, or
    there twice."""
    places = np.unique(np.minimum(numbers.searchsorted(y), numbers.size - 1))
    if places.size != size or not np.array_equal(numbers[places], np.sort(y)):
        raise ValueError(f"expected {size} items on offer, each once, got {y.tolist()[:5]}")
    return places


def _by_chance(m: int, size: int, skip: Ints, rng: Any) -> Ints:
    """The places of `size` of m items, any as likely as any other, rising; of two, none of the pairs skip (q x 2)."""
    if size > 2 or not len(skip):
        return np.sort(rng.permutation(m)[:size])
    from heedful.inference.gp.acquisition import random_pair

    return np.array(random_pair(m, skip, rng))
