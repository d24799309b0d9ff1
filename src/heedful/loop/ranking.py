"""The order in which the current model ranks candidates, without making a decision: nothing is drawn at random, left
out or logged."""

from __future__ import annotations

from heedful.loop.model import Person
from heedful.loop.projection import PublishedState
from heedful.loop.request import Request
from heedful.results.answers import Ranking


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
