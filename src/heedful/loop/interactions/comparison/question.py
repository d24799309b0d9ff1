"""Questions of a loop of choices: the items that the learner's acquisition rule selects, or random ones, in random
order.

The record of a decision keeps what was shown, in its order, the probability of each to be chosen, and the number of
candidates."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from heedful.jit.kernel import Ints
from heedful.loop.interactions.comparison.model import ChoiceModel
from heedful.loop.interactions.protocol import Proposal, Question
from heedful.loop.model import View
from heedful.loop.strangers import Strangers


def check_two(asked: Question) -> None:
    """Raise ValueError unless the request `asked` leaves at least two known items to choose between, and shows at least
    two.

    A request with fewer than two known candidates passes if it also has unknown ones: then these are shown, and no
    question is asked."""
    m, size = len(asked.request.x), _size(asked)
    if m < 2 and asked.request.strangers is not None:
        return
    if m < 2:
        raise ValueError(f"candidates: expected two or more, to choose between, got {m}")
    if size < 2:
        raise ValueError(f"show: expected two or more, to choose between, got {size}")


def propose_question(view: View[ChoiceModel], asked: Question, share: float, rng: np.random.Generator) -> Proposal:
    """Return the items to ask about for the request `asked`, with the probability of showing exactly these in this
    order.

    The learner selects them, except for a `share` of questions, which are random (the control). `rng` is the random
    generator of this decision."""
    request, size = asked.request, _size(asked)
    m = len(request.x)
    strangers = request.strangers
    if m < 2 and strangers is not None:
        return _propose_unknown(m, strangers, size)
    size = min(size, m)
    order = request.x.argsort()
    numbers: Ints = request.x[order]
    skip = view.model.pairs_asked(view._replace(person=None) if asked.repeats else view, numbers)
    if len(skip) == math.comb(m, 2):  # all of them: from the beginning
        skip = skip[:0]
    left = math.comb(m, 2) - len(skip) if size == 2 else math.comb(m, size)
    before = _at(rng)
    learned = _places(numbers, view.model.propose(view, numbers, size, skip, rng), size)
    drawn = _at(rng) != before
    places = _by_chance(m, size, numbers.searchsorted(skip), rng) if asked.control else learned
    probability = _probability(view.model.learner, places, learned, drawn, left, share)
    shown = order[places[rng.permutation(size)]]
    chances = view.model.chances(view, request.x[shown])
    return Proposal(
        shown=shown,
        probability=probability,
        predicted=() if chances is None else tuple([float(f"{chance:.6g}") for chance in chances.tolist()]),
        unknown=() if strangers is None else strangers.to_record(()),  # no question is about them
        kept=shown.tolist(),
        of=m + (0 if strangers is None else len(strangers.names)),
    )


def _size(asked: Question) -> int:
    return 2 if asked.request.show is None else asked.request.show


def _propose_unknown(m: int, strangers: Strangers, size: int) -> Proposal:
    """Return a proposal for a request with `m` < 2 known candidates and some unknown ones, from which nothing can be
    learned."""
    places = strangers.places(m, size, own=False)
    return Proposal(
        shown=np.arange(sum(j < 0 for j in places)),
        probability=1.0,
        unknown=strangers.to_record(places),
        kept=list(range(m)),
        of=m + len(strangers.names),
    )


def _probability(learner: Any, places: Ints, learned: Ints, drawn: bool, left: int, control: float) -> float | None:
    """Return the probability of showing the items with the indices `places` in this order; None if the learner cannot
    tell."""
    orders = math.factorial(places.size)
    if getattr(learner, "rule", "") == "random" and places.size == 2:
        ours = 1.0 / left
    elif drawn and control < 1.0:
        return None
    else:
        ours = float(np.array_equal(places, learned))
    return (control / left + (1.0 - control) * ours) / orders


def _at(rng: np.random.Generator) -> tuple[Any, ...]:
    """Return the position of a random generator in its sequence."""
    state = rng.bit_generator.state
    return state["state"]["counter"].tolist(), state["buffer_pos"], state["has_uint32"]


def _places(numbers: Ints, y: Ints, size: int) -> Ints:
    """Return the indices in `numbers`, which rise, of the items `y`, in rising order."""
    places = np.unique(np.minimum(numbers.searchsorted(y), numbers.size - 1))
    if places.size != size or not np.array_equal(numbers[places], np.sort(y)):
        raise ValueError(f"expected {size} items on offer, each once, got {y.tolist()[:5]}")
    return places


def _by_chance(m: int, size: int, skip: Ints, rng: np.random.Generator) -> Ints:
    """Return the indices of `size` of m items, rising, drawn with `rng` so that each set is equally likely."""
    if size > 2 or not len(skip):
        return np.sort(rng.permutation(m)[:size])
    from heedful.inference.gp.acquisition import random_pair

    return np.array(random_pair(m, skip, rng))
