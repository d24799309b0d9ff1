"""The order in which a model ranks candidates now, without a decision: nothing is drawn, left out or logged."""

from __future__ import annotations

from typing import NamedTuple

from heedful.loop.model import Person
from heedful.loop.projection import Projection, PublishedState
from heedful.loop.request import Request


class Ranking(NamedTuple):
    """All candidates, best first."""

    ranking: tuple[str, ...]
    """the names of the candidates"""
    version: int
    """the version of the model"""
    unknown: tuple[str, ...] | None = None
    """the names of candidates that are not on offer; None if all are"""


def ranking(projection: Projection, state: PublishedState, own: Person | None, request: Request) -> Ranking:
    """Return the candidates of `request`, best first, for the person with the state `own`; for everybody if it is
    None."""
    m, strangers = len(request.x), request.strangers
    places = projection.interaction.order(projection.model, state.shared, own, request.x).tolist() if m else []
    order = [request.called[j] for j in places]
    if strangers is None:
        return Ranking(tuple(order), state.version)
    known, size = iter(order), m + len(strangers.names)
    strange = strangers.places(m, size, own=False)
    names = tuple([next(known) if j < 0 else strangers.names[j] for j in strange])
    return Ranking(names, state.version, strangers.names or None)
