"""What a loop of choices asks: the pair that its rule gives most among what is on offer, or one that chance picks.

Which of the two stands first is drawn, from the loop's seed. As `heedful.loop.deciding`, nothing here writes. The
record of a decision keeps what was shown, in its places, how likely each was to be chosen, and how many candidates
there were.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from heedful.kernel import Ints
from heedful.loop.choosing import ChoiceModel
from heedful.loop.ledger import Draft, Ledger
from heedful.loop.log import Event, now
from heedful.loop.packing import Known, pack
from heedful.loop.request import Request
from heedful.loop.wire import DecisionRecord


class Pairing:
    """What a loop of choices needs to decide."""

    def __init__(self, ledger: Ledger) -> None:
        """From what `ledger` publishes."""
        self._ledger = ledger
        self._settings = ledger.settings

    def proposed(
        self, id: str, request: Request, person: str | None, deferred: bool, repeats: bool | None, rng: Any
    ) -> Draft:
        """The event of a decision, from the state published at this moment. ValueError where there are not two to show;
        `rng` is the decision's own."""
        ledger, settings, model = self._ledger, self._settings, self._ledger.model
        assert isinstance(model, ChoiceModel)
        m, size = len(request.x), 2 if request.show is None else request.show
        if m < 2 and request.strangers is not None:
            return self._unasked(id, request, person, deferred, size, rng)
        if m < 2:
            raise ValueError(f"candidates: wanted two or more, to choose between, got {m}")
        if size < 2:
            raise ValueError(f"show: wanted two or more, to choose between, got {size}")
        size = min(size, m)
        state, own = ledger.reading_of(request.x, person or "")
        control = rng.random() < settings.control
        again = settings.repeats if repeats is None else repeats
        try:
            order = request.x.argsort()
            numbers: Ints = request.x[order]
            skip = model.pairs_asked(state.shared, None if again else own, numbers)
            if len(skip) == math.comb(m, 2):  # all of them: from the beginning
                skip = skip[:0]
            left = math.comb(m, 2) - len(skip) if size == 2 else math.comb(m, size)
            before = _at(rng)
            learned = _places(numbers, model.propose(state.shared, own, numbers, size, skip, rng), size)
            drawn = _at(rng) != before
            places = _by_chance(m, size, numbers.searchsorted(skip), rng) if control else learned
            probability = self._probability(places, learned, drawn, left)
            shown = order[places[rng.permutation(size)]]
            chances = model.chances(state.shared, own, request.x[shown])
        except Exception as error:  # what a learner raises is nobody's bad input
            told = f"{type(ledger.learner).__name__} cannot propose: {type(error).__name__}: {error}"
            raise RuntimeError(told) from error
        kept = request.only(shown.tolist())
        record = DecisionRecord(
            shown=tuple(range(size)),
            items=kept.items,
            arm="control" if control else "learned",
            learner=ledger.named,
            seed=settings.seed,
            probability=probability,
            context=request.context,
            of=m + (0 if request.strangers is None else len(request.strangers.names)),
            deferred=deferred,
            unknown=() if request.strangers is None else request.strangers.told(()),  # no question is about them
            chances=() if chances is None else tuple([float(f"{chance:.6g}") for chance in chances.tolist()]),
        )
        when, version = now(), state.version
        known = Known(id, 0, when, person, record, b"", kept.called, version, kept.rows)
        event = Event(0, "decision", id, when, person, None, version, *pack(record, b""))
        return Draft(event, known, again=True)

    def _unasked(self, id: str, request: Request, person: str | None, deferred: bool, size: int, rng: Any) -> Draft:
        """The event of a decision of which too little is on offer to be a question: what there is is shown, and nothing
        can be learned from it."""
        ledger, strangers = self._ledger, request.strangers
        assert strangers is not None
        m = len(request.x)
        control, places = rng.random() < self._settings.control, strangers.places(m, size, own=False)
        record = DecisionRecord(
            shown=tuple(range(sum(j < 0 for j in places))),
            items=request.items,
            arm="control" if control else "learned",
            learner=ledger.named,
            seed=self._settings.seed,
            probability=1.0,
            context=request.context,
            of=m + len(strangers.names),
            deferred=deferred,
            unknown=strangers.told(places),
        )
        when, version = now(), ledger.reading(person)[0].version
        known = Known(id, 0, when, person, record, b"", request.called, version, request.rows)
        event = Event(0, "decision", id, when, person, None, version, *pack(record, b""))
        return Draft(event, known, again=True)

    def _probability(self, places: Ints, learned: Ints, drawn: bool, left: int) -> float | None:
        """Of showing these in this order: by chance, which picks one of `left` sets, and by the learner. None where it
        draws, and does not say how."""
        control, orders = self._settings.control, math.factorial(places.size)
        if getattr(self._ledger.learner, "rule", "") == "random" and places.size == 2:
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
        raise ValueError(f"wanted {size} items on offer, each once, got {y.tolist()[:5]}")
    return places


def _by_chance(m: int, size: int, skip: Ints, rng: Any) -> Ints:
    """The places of `size` of m items, any as likely as any other, rising; of two, none of the pairs skip (q x 2)."""
    if size > 2 or not len(skip):
        return np.sort(rng.permutation(m)[:size])
    from heedful.preferences.questions import random_pair

    return np.array(random_pair(m, skip, rng))
