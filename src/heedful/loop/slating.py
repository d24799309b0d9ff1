"""What a loop of ratings shows: the best few of what is on offer and was not consumed, or as many that chance picks.

As `heedful.loop.deciding`, nothing here writes. The record of a decision keeps what was shown, best first, and how
many candidates there were.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from heedful.kernel import Ints
from heedful.loop.ledger import Draft, Ledger, Published
from heedful.loop.log import Event, now
from heedful.loop.model import Person
from heedful.loop.packing import Known, pack
from heedful.loop.rating import RatingModel
from heedful.loop.request import Request
from heedful.loop.wire import DecisionRecord


class Slating:
    """What a loop of ratings needs to decide."""

    def __init__(self, ledger: Ledger) -> None:
        """From what `ledger` publishes."""
        self._ledger = ledger
        self._settings = ledger.settings

    def proposed(
        self, id: str, request: Request, person: str | None, deferred: bool, repeats: bool | None, rng: Any
    ) -> Draft:
        """The event of a decision, from the state published at this moment. ValueError where nothing is left to show;
        `rng` is the decision's own."""
        ledger, settings, model = self._ledger, self._settings, self._ledger.model
        assert isinstance(model, RatingModel)
        state, own = ledger.reading(person)
        left = self.left(model, state, own, request, settings.repeats if repeats is None else repeats, person)
        strangers, size = request.strangers, min(request.show or settings.k, left.size)
        if strangers is not None:  # they have the same places in lists of the control, which chance makes
            size = min(request.show or settings.k, left.size + len(strangers.names))
            strange = strangers.places(len(request.x), size, False, set(left.tolist()))
            size = sum(j < 0 for j in strange)
        control = rng.random() < settings.control
        by_score = (-np.array(request.prior)[left]).argsort(kind="stable") if request.prior else None
        try:
            aside = by_score if by_score is not None else rng.permutation(left.size) if control else None
            aside = None if aside is None else left[aside[:size]]
            watched = Watched(rng)
            order = request.x[left].argsort()
            numbers = request.x[left][order]
            y = model.propose(state.shared, model.offer(state.shared, own, numbers), size, watched) if size else numbers
            learned = left[order[_places(numbers, y)]] if size else left[:0]
            shown = aside if control and aside is not None else learned
            by_score = None if by_score is None else aside
            probability = self._probability(watched, shown, learned, by_score, left.size) if size else 1.0
            ratings = model.ratings(state.shared, own, request.x[shown]) if size else None
        except Exception as error:  # what a learner raises is nobody's bad input
            told = f"{type(ledger.learner).__name__} cannot propose: {type(error).__name__}: {error}"
            raise RuntimeError(told) from error
        kept = request.only(shown.tolist())
        record = DecisionRecord(
            shown=tuple(range(len(kept.called))),
            items=kept.items,
            prior=kept.prior,
            arm="control" if control else "learned",
            learner=ledger.named,
            seed=settings.seed,
            probability=probability,
            context=request.context,
            of=len(request.called) + (0 if strangers is None else len(strangers.names)),
            deferred=deferred,
            unknown=() if strangers is None else strangers.told(strange),
            ratings=() if ratings is None else self._rounded(ratings.tolist()),
        )
        when, version = now(), state.version
        known = Known(id, 0, when, person, record, b"", kept.called, version, kept.rows)
        event = Event(0, "decision", id, when, person, None, version, *pack(record, b""))
        return Draft(event, known, again=True)

    def _rounded(self, ratings: list[float]) -> tuple[float, ...]:
        """What is expected as it is told, to six digits; not beyond the range, which may have more."""
        low, high = self._ledger.ratings or (-math.inf, math.inf)
        return tuple([min(max(float(f"{rating:.6g}"), low), high) for rating in ratings])

    def left(
        self,
        model: RatingModel,
        state: Published,
        own: Person | None,
        request: Request,
        repeats: bool,
        person: str | None = None,
    ) -> Ints:
        """The places of the candidates that may be shown. ValueError where there is none."""
        if repeats or own is None:
            return np.arange(len(request.x))
        left = np.flatnonzero(~np.isin(request.x, model.consumed(state.shared, own)))
        if left.size == 0 and request.strangers is None:
            wanted = f"wanted one that {person} has not consumed, got {len(request.x)} that were"
            raise ValueError(f"candidates: {wanted}; repeats shows them again")
        return left

    def _probability(
        self, watched: Watched, shown: Ints, learned: Ints, by_score: Ints | None, there: int
    ) -> float | None:
        """Of showing this list: by the control, which is the caller's score or chance, and by the learner. None where
        the learner draws, and does not say how."""
        control = self._settings.control
        chance = math.exp(-sum(math.log(there - i) for i in range(shown.size)))  # of any list of this length
        aside = chance if by_score is None else float(np.array_equal(shown, by_score))
        if control == 1.0:
            return aside or None
        from heedful.learners.simple_ratings import RandomItem

        if isinstance(self._ledger.learner, RandomItem):
            ours = chance
        elif watched.drawn:
            return None
        else:
            ours = float(np.array_equal(shown, learned))
        return control * aside + (1.0 - control) * ours or None


class Watched:
    """A generator that knows whether anything was drawn from it: a learner that draws nothing shows what it shows for
    certain."""

    def __init__(self, rng: Any) -> None:
        self._rng = rng
        self.drawn = False

    def __getattr__(self, name: str) -> Any:
        self.drawn = True
        return getattr(self._rng, name)


def _places(numbers: Ints, y: Ints) -> Ints:
    """Where each of y stands in numbers, which rise. ValueError where one is not among them, or there twice."""
    places = np.minimum(numbers.searchsorted(y), numbers.size - 1)
    if not np.array_equal(numbers[places], y) or np.unique(y).size < y.size or y.size == 0:
        raise ValueError(f"wanted items on offer, each once, got {y.tolist()[:5]}")
    return places
