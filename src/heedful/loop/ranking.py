"""What the model says now, without making a decision: the order of candidates, predictions, the standing of all items.

Nothing is drawn at random, left out or logged."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from heedful.core.validation import describe, names_of
from heedful.loop import records
from heedful.loop.history import History
from heedful.loop.interactions.protocol import ItemPrediction
from heedful.loop.model import View
from heedful.loop.publication import PublishedState
from heedful.loop.request import Request
from heedful.results.answers import Ranking
from heedful.results.board import Board

MOST_SURE = 10
"""Of how many items of a ranking it is said how probably each is better than the next."""


def ranking(request: Request, state: PublishedState, view: View[Any]) -> Ranking:
    """Return the candidates of `request` ranked by the published `state`, which `view` is for one person, best first.

    Candidates that are not on offer keep the places that the caller's score gives them, or come last."""
    m, strangers, undeclared = len(request.x), request.strangers, request.undeclared or None
    places = state.interaction.order(view, request.x).tolist() if m else []
    order = [request.called[j] for j in places]
    if strangers is None:
        sure = state.interaction.sure(view, request.x[places[: MOST_SURE + 1]]) if m else None
        return Ranking(tuple(order), state.version, undeclared=undeclared, sure=None if sure is None else tuple(sure))
    known, size = iter(order), m + len(strangers.names)
    strange = strangers.places(m, size, own=False)
    names = tuple([next(known) if j < 0 else strangers.names[j] for j in strange])
    return Ranking(names, state.version, strangers.names or None, undeclared)


def predict(request: Request, state: PublishedState, view: View[Any]) -> dict[str, ItemPrediction]:
    """Return the prediction of the published `state`, which `view` is for one person, for each candidate of `request`,
    by name, best first.

    Raise ValueError if nothing is predicted."""
    interaction, x = state.interaction, request.x
    found = interaction.predict(view, x)
    if found is None:
        learner = interaction.manifest.learner
        raise ValueError(f"predict: expected a loop that predicts something, got one of {learner}")
    return {request.called[j]: found[j] for j in interaction.order(view, x).tolist()}


def standing(history: History, person: str | None, people: Sequence[str] | None, without: Sequence[str]) -> Board:
    """Return the ranking of all items in a loop of comparisons, as `Loop.standing` says."""
    person = None if person is None else records.check_id("person", person)
    for field, given in (("people", people is not None), ("without", bool(without))):
        if person is not None and given:
            raise ValueError(f"{field}: expected none with a person, got some")
    without = names_of("without", without)
    people = None if people is None else names_of("people", people)
    if without:
        answered = list(history.reading(None)[0].people.copy())
        if strange := [name for name in without if name not in answered]:
            raise ValueError(f"without: expected people who answered, got {describe(strange[0])}")
        people = [name for name in (answered if people is None else people) if name not in without]
    return history.interaction.standing(history, person, people)
