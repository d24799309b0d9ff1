"""The order in which the current model ranks candidates, without making a decision: nothing is drawn at random, left
out or logged."""

from __future__ import annotations

from typing import NamedTuple

from heedful.loop.model import Person
from heedful.loop.projection import PublishedState
from heedful.loop.request import Request


class Ranking(NamedTuple):
    """All candidates of a request, ordered best first by the current model: their names (`ranking`), the version of
    that model (a sequence number in the log), the names of those that are not on offer (`unknown`, None if all are),
    and the fields that the loop makes no feature of (`undeclared`, None if there are none)."""

    ranking: tuple[str, ...]
    """the names of the candidates, best first"""
    version: int
    """the version of the model: the sequence number of the last event that it was made of"""
    unknown: tuple[str, ...] | None = None
    """the names of candidates that are not items on offer; None if all are"""
    undeclared: tuple[str, ...] | None = None
    """the fields of candidates and of the context that are no features of the loop, such as "candidates.bm25"; None if
    there are none"""


def ranking(state: PublishedState, own: Person | None, request: Request) -> Ranking:
    """Return the candidates of `request` ranked by the published `state`, best first, for one person if `own` is given.

    `own` is the person's own state, None for nobody in particular. Candidates that are not on offer keep the places
    that the caller's score gives them, or come last."""
    m, strangers, undeclared = len(request.x), request.strangers, request.undeclared or None
    places = state.interaction.order(state.model, state.shared, own, request.x).tolist() if m else []
    order = [request.called[j] for j in places]
    if strangers is None:
        return Ranking(tuple(order), state.version, undeclared=undeclared)
    known, size = iter(order), m + len(strangers.names)
    strange = strangers.places(m, size, own=False)
    names = tuple([next(known) if j < 0 else strangers.names[j] for j in strange])
    return Ranking(names, state.version, strangers.names or None, undeclared)
