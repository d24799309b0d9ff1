"""How things stand in a loop of choices: the ranking with its uncertainty, whether to stop, about how many questions
are left. Nothing here changes anything.

Of all people the ranking is that of the mean of their utilities: what is best for them together, each counting alike.
People are taken to be independent given what is known of the population.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from heedful.core.notebooks import table
from heedful.data.frames import frame_of
from heedful.inference.gp.mixture import Mixture
from heedful.inference.gp.posterior import Posterior
from heedful.inference.gp.remaining_questions import estimate_remaining
from heedful.inference.standing import Standing as Found
from heedful.inference.standing import standing, stop_at
from heedful.jit.kernel import Ints
from heedful.loop.interactions.comparison.model import ChoiceModel
from heedful.loop.model import Person
from heedful.loop.projection import Projection, PublishedState

Array = npt.NDArray[np.float64]

SURE = 0.9
"""How sure it has to be to stop, and that two neighbours are in the right order."""


class Standing(NamedTuple):
    """One item in the ranking."""

    item: str
    utility: float
    """in units of the noise of one choice, less the average of all"""
    sd: float
    """how uncertain that is, the part that all items share taken out"""
    best: float
    """P(it is the best)"""
    low: int
    """from this position, 1 the first, to the next with 90 % probability"""
    high: int
    asked: int
    """in how many pairs it was that somebody was asked about; a pair asked again counts once"""
    level: bool
    """whether it cannot be told from the next in the ranking: which is better is less than 90 % sure"""


class Left(NamedTuple):
    """About how many questions are left until it is sure: a median, and the middle half; `most`: that many or more."""

    about: int
    low: int
    high: int
    most: int
    told: str
    """in words"""


class Standings(NamedTuple):
    """How things stand for one person, or for all together."""

    version: int
    goal: str
    """best or ranking: what is to be known"""
    person: str | None
    people: int
    """whose answers it is made of"""
    answers: int
    stop: bool
    """whether it is as sure as it has to be, 90 %"""
    sure: float
    """of best: P(the likeliest best item is the best); of ranking: the share of pairs expected to be in order"""
    favourite: str
    """the likeliest best item, the one whose `best` is highest, however little that is; of ranking the first"""
    left: Left
    ranking: tuple[Standing, ...]
    """best first"""
    alike: tuple[tuple[str, ...], ...]
    """groups of neighbours in the ranking of which no two can be told apart, best first; an item may be in several"""

    def to_frame(self, package: str = "pandas") -> Any:
        """The ranking, best first, as a data frame of this package: pandas, polars, or pyarrow for a table.
        ModuleNotFoundError where it is not installed."""
        return frame_of({name: [getattr(each, name) for each in self.ranking] for name in Standing._fields}, package)

    def _repr_html_(self) -> str:
        whose = "all together" if self.person is None else self.person
        columns = ["", "item", "utility", "give or take", "positions", "the best", "asked"]
        rows = [
            [place, each.item, each.utility, each.sd, f"{each.low}-{each.high}", f"{each.best:.0%}", each.asked]
            for place, each in enumerate(self.ranking, 1)
        ]
        same = [each.item for each in self.ranking if each.level]
        level = f"cannot be told from the next: {', '.join(same)}" if same else ""
        enough = "sure enough to stop" if self.stop else self.left.told
        return table(f"What is preferred, of {whose}", columns, rows, [level, f"{self.sure:.0%} sure: {enough}"])


def standings(projection: Projection, person: str | None, people: Sequence[str] | None = None) -> Standings:
    """How things stand for a person, for these people together, or for all.

    ValueError where there are not two items on offer.
    """
    model: Any = projection.model
    goal = projection.settings.choices or "best"
    offered = projection.catalogue.on_offer()
    if len(offered) < 2:
        raise ValueError(f"items: expected two or more on offer, to choose between, got {len(offered)}")
    numbers = projection.catalogue.items_at(projection.catalogue.rows([version for _, version in offered]))
    state, own = projection.reading_of(numbers, person or "")
    order = numbers.argsort()
    names, numbers = [offered[i][0] for i in order.tolist()], numbers[order]
    whose = _people(state, person, own) if people is None else [state.people[n] for n in people if n in state.people]
    posterior = _believed(model, state, whose, numbers)
    found = standing(posterior, at=SURE)
    verdict = stop_at(posterior, goal, found, at=SURE)
    left = estimate_remaining(posterior.whole(), goal, at=SURE, stop=verdict)
    users, first = [one.state.user for one in whose], found.order.tolist()
    return Standings(
        state.version, goal, person, len(whose), sum(one.lessons for one in whose), verdict.stop, verdict.sure,
        names[verdict.item], Left(left.about, left.low, left.high, left.most, str(left)),
        _ranked(found, names, _asked(model, state, users, numbers)),
        tuple([tuple([names[i] for i in first[a : b + 1]]) for a, b in found.alike]),
    )  # fmt: skip


def _people(state: PublishedState, person: str | None, own: Person | None) -> list[Person]:
    """Whose ranking it is: that person's, or everybody's; nobody's where nobody said anything."""
    if person is not None:
        return [] if own is None else [own]
    return list(state.people.copy().values())


def _believed(model: ChoiceModel, state: PublishedState, people: list[Person], numbers: Ints) -> Posterior | Mixture:
    """What is believed of the mean of these people's utilities; of none of them, what somebody new is like. Nothing is
    taken for known that only their answers say, where the learner can."""
    if not people:
        return model.believed(state.shared, None, numbers)
    if hasattr(model.learner, "group_posterior"):
        users: Ints = np.array([one.state.user for one in people], np.int64)
        whole: Posterior | Mixture = model.learner.group_posterior(model.ready(state.shared), users)
        return whole.of_items(numbers)
    mean, cov = np.zeros(numbers.size), np.zeros((numbers.size, numbers.size))
    for one in people:
        believed = model.believed(state.shared, one, numbers)
        mean += believed.mean
        cov += believed.cov
    return Posterior(mean / len(people), cov / len(people) ** 2)


def _asked(model: ChoiceModel, state: PublishedState, users: list[int], numbers: Ints) -> Ints:
    """In how many of the pairs that these people were asked about each item was (m,)."""
    asked = state.shared.asked[: state.shared.rows]
    items = asked[np.isin(asked[:, 0], users), 1:]
    return np.bincount(items.ravel(), minlength=int(numbers.max()) + 1)[numbers]


def _ranked(found: Found, names: list[str], asked: Ints) -> tuple[Standing, ...]:
    """The ranking; names and how often each was asked about, (m,) each."""
    level = [*(found.better < SURE).tolist(), False]
    return tuple([
        Standing(
            names[i], float(found.mean[i]), float(found.sd[i]), float(found.best[i]),
            int(found.places[i, 0]), int(found.places[i, 1]), int(asked[i]), near,
        )
        for i, near in zip(found.order.tolist(), level)
    ])  # fmt: skip
