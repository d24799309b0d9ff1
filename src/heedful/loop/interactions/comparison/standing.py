"""The ranking of items in a loop of choices: its uncertainty, whether to stop, and how many questions are left.

The ranking of several people is that of the mean of their utilities, each counting alike. People's utilities are taken
to be independent, given what is known of the population. Nothing here changes the model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from heedful.boards.standing import board_groups, standing, verdict
from heedful.inference.gp.mixture import Mixture
from heedful.inference.gp.posterior import Posterior
from heedful.jit.kernel import Ints
from heedful.loop.interactions.comparison.model import ChoiceModel
from heedful.loop.interactions.protocol import Readable
from heedful.loop.model import Person, View
from heedful.loop.publication import PublishedState
from heedful.results.board import Board

Array = npt.NDArray[np.float64]

SURE = 0.9
"""The probability that is required to stop, and to call two neighbours in the ranking ordered."""


def board(history: Readable, person: str | None, people: Sequence[str] | None = None) -> Board:
    """Return the ranking of the items on offer for `person`, for `people` together, or, if both are None, for
    everybody.

    `history` holds the loop's log with the model learned from it. Raise ValueError with fewer than two items on
    offer."""
    model: Any = history.model
    goal = history.settings.choices or "best"
    offered = history.catalogue.on_offer()
    if len(offered) < 2:
        raise ValueError(f"items: expected two or more on offer, to choose between, got {len(offered)}")
    numbers = history.catalogue.items_at(history.catalogue.rows([version for _, version in offered]))
    state, view = history.reading_of(numbers, person or "")
    order = numbers.argsort()
    names, numbers = [offered[i][0] for i in order.tolist()], numbers[order]
    whose = (
        _people(state, person, view.person)
        if people is None
        else [state.people[n] for n in people if n in state.people]
    )
    posterior = _mean_utilities(model, state, whose, numbers)
    found = standing(posterior, at=SURE)
    rows = found.rows(names, SURE, comparisons=_count_pairs(model, state, [one.state for one in whose], numbers))
    return Board(
        person=person,
        people=len(whose),
        answers=sum(one.lessons for one in whose),
        sure=SURE,
        ranking=rows,
        alike=board_groups(rows, found.alike),
        verdict=verdict(posterior, names, goal, found, at=SURE),
        version=state.version,
    )


def _people(state: PublishedState, person: str | None, own: Person | None) -> list[Person]:
    """Return the people whose ranking it is: the person, or everybody; [] if they have not answered yet."""
    if person is not None:
        return [] if own is None else [own]
    return list(state.people.copy().values())


def _mean_utilities(
    model: ChoiceModel, state: PublishedState, people: list[Person], numbers: Ints
) -> Posterior | Mixture:
    """Return the posterior of the mean of the utilities of `people`, for the items with the numbers `numbers` (m,)."""
    if not people:
        return model.posterior(View(model, state.shared), numbers)
    if hasattr(model.learner, "group_posterior"):
        users: Ints = np.array([one.state for one in people], np.int64)
        whole: Posterior | Mixture = model.learner.group_posterior(model.ready(state.shared), users)
        return whole.of_items(numbers)
    mean, cov = np.zeros(numbers.size), np.zeros((numbers.size, numbers.size))
    for one in people:
        believed = model.posterior(View(model, state.shared, one), numbers)
        mean += believed.mean
        cov += believed.cov
    return Posterior(mean / len(people), cov / len(people) ** 2)


def _count_pairs(model: ChoiceModel, state: PublishedState, users: list[int], numbers: Ints) -> Ints:
    """Return, for each of the items `numbers` (m,), in how many of the pairs that `users` were asked about it occurs
    (m,)."""
    asked = state.shared.asked[: state.shared.rows]
    items = asked[np.isin(asked[:, 0], users), 1:]
    return np.bincount(items.ravel(), minlength=int(numbers.max()) + 1)[numbers]
