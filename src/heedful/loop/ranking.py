"""The order that a model has of some candidates at this moment: nothing is drawn, left aside or logged."""

from __future__ import annotations

from typing import NamedTuple

from heedful.loop.model import Person
from heedful.loop.projection import Projection, PublishedState
from heedful.loop.request import Request


class Ranking(NamedTuple):
    """All candidates, best first."""

    ranking: tuple[str, ...]
    """their names"""
    version: int
    """of the model that ranks them so"""
    unknown: tuple[str, ...] | None = None
    """those of them that are not on offer; None where all are"""


def ranking(projection: Projection, state: PublishedState, own: Person | None, request: Request) -> Ranking:
    """The candidates of a request by what was learned, for the person whose offset is `own`, for all where it is
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
