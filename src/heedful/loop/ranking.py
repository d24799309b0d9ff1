"""The order that a model has of some candidates at this moment: nothing is drawn, left aside or logged."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from heedful.kernel import Ints, scores, top
from heedful.loop.choosing import ChoiceModel
from heedful.loop.grading import GradingModel
from heedful.loop.interaction import AnyModel
from heedful.loop.ledger import Published
from heedful.loop.model import Person
from heedful.loop.rating import RatingModel
from heedful.loop.request import Request


class Ranking(NamedTuple):
    """All candidates, best first."""

    ranking: tuple[str, ...]
    """their names"""
    version: int
    """of the model that ranks them so"""
    unknown: tuple[str, ...] | None = None
    """those of them that are not on offer; None where all are"""


def ranking(model: AnyModel, state: Published, own: Person | None, request: Request) -> Ranking:
    """The candidates of a request by what was learned, for the person whose offset is `own`, for all where it is
    None."""
    m, strangers = len(request.x), request.strangers
    order = [request.called[j] for j in (_order(model, state, own, request).tolist() if m else ())]
    if strangers is None:
        return Ranking(tuple(order), state.version)
    known, size = iter(order), m + len(strangers.names)
    places = strangers.places(m, size, own=False)
    names = tuple([next(known) if j < 0 else strangers.names[j] for j in places])
    return Ranking(names, state.version, strangers.names or None)


def _order(model: AnyModel, state: Published, own: Person | None, request: Request) -> Ints:
    """The places of the candidates (m,), best first; what is alike as it was asked for, as `decide` has it."""
    x = request.x
    if isinstance(model, RatingModel):
        expected = model.ratings(state.shared, own, x)
        return np.arange(len(x)) if expected is None else np.argsort(-expected, kind="stable")
    if isinstance(model, GradingModel):
        return model.order(state.shared, own, x)
    if isinstance(model, ChoiceModel):
        return np.argsort(-model.believed(state.shared, own, x).mean, kind="stable")
    return top(scores(x, model.effective(state.shared, own)), len(x))
