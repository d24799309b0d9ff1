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
"""The probability that is required to stop, and to call two neighbours ordered."""


class Standing(NamedTuple):
    """An item in the ranking."""

    item: str
    utility: float
    """in units of the noise of one choice, minus the mean of all items"""
    sd: float
    """the standard deviation of that, without the part that all items share"""
    best: float
    """the probability that it is the best"""
    low: int
    """the ends of its rank's 90 % interval; 1 is first"""
    high: int
    asked: int
    """in how many pairs that somebody was asked about it occurs; a repeated pair counts once"""
    level: bool
    """whether it cannot be told from the next in the ranking, because the probability of being better is below 90 %"""


class Left(NamedTuple):
    """An estimate of how many questions are left: the median and the quartiles; `most` stands for that many or more."""

    about: int
    low: int
    high: int
    most: int
    told: str
    """the estimate in words"""


class Standings(NamedTuple):
    """The ranking for one person, or for all together, with its uncertainty."""

    version: int
    goal: str
    """the purpose, best or ranking"""
    person: str | None
    people: int
    """the number of people whose answers it is made of"""
    answers: int
    stop: bool
    """whether the required probability, 90 %, is reached"""
    sure: float
    """for best, the probability that the likeliest best item is the best; for ranking, the expected share of pairs in
    order"""
    favourite: str
    """the item with the highest probability of being the best; for ranking, the first"""
    left: Left
    ranking: tuple[Standing, ...]
    """all items, best first"""
    alike: tuple[tuple[str, ...], ...]
    """groups of neighbours in the ranking that cannot be told apart, best first; an item may be in several"""

    def to_frame(self, package: str = "pandas") -> Any:
        """Return the ranking, best first, as a data frame of `package`: pandas, polars, or pyarrow for a table. Raise
        ModuleNotFoundError if the package is not installed."""
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
    """Return the ranking for a person, for some people together, or for all. Raise ValueError with fewer than two items
    on offer."""
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
    """Return whose ranking it is: the person's, or everybody's; nobody's if nobody has answered."""
    if person is not None:
        return [] if own is None else [own]
    return list(state.people.copy().values())


def _believed(model: ChoiceModel, state: PublishedState, people: list[Person], numbers: Ints) -> Posterior | Mixture:
    """Return the posterior of the mean of these people's utilities of the items `numbers` (m,); for nobody, that of a
    stranger. A learner with `group_posterior` also counts the uncertainty of what these people have in common."""
    if not people:
        return model.posterior(state.shared, None, numbers)
    if hasattr(model.learner, "group_posterior"):
        users: Ints = np.array([one.state.user for one in people], np.int64)
        whole: Posterior | Mixture = model.learner.group_posterior(model.ready(state.shared), users)
        return whole.of_items(numbers)
    mean, cov = np.zeros(numbers.size), np.zeros((numbers.size, numbers.size))
    for one in people:
        believed = model.posterior(state.shared, one, numbers)
        mean += believed.mean
        cov += believed.cov
    return Posterior(mean / len(people), cov / len(people) ** 2)


def _asked(model: ChoiceModel, state: PublishedState, users: list[int], numbers: Ints) -> Ints:
    """Return, for each item (m,), in how many of the pairs that these people were asked it occurs."""
    asked = state.shared.asked[: state.shared.rows]
    items = asked[np.isin(asked[:, 0], users), 1:]
    return np.bincount(items.ravel(), minlength=int(numbers.max()) + 1)[numbers]


def _ranked(found: Found, names: list[str], asked: Ints) -> tuple[Standing, ...]:
    """Return the ranking; `names` and `asked` are (m,) each."""
    level = [*(found.better < SURE).tolist(), False]
    return tuple([
        Standing(
            names[i], float(found.mean[i]), float(found.sd[i]), float(found.best[i]),
            int(found.places[i, 0]), int(found.places[i, 1]), int(asked[i]), near,
        )
        for i, near in zip(found.order.tolist(), level)
    ])  # fmt: skip
