"""A made shop: items with features, and simulated people with known tastes who click with position bias.

Everything is drawn from one seed, so the true value of any ranking is known. For demonstrations and tests of what a log
or an experiment says about rankers.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from heedful.jit.kernel import Floats, Ints
from heedful.worlds.clicks import PositionBiased, attraction

ITEMS, FEATURES = 60, 12
"""How many items there are, and how many features each has."""
CANDIDATES, SIZE = 12, 6
"""How many candidates a request has, and how many items a list shows."""
SPREAD = 0.3
"""About how long the part of a taste is that is a person's own, where the common one is 1."""
CORRELATION = 0.4
"""About the correlation of the shop's scores with the mean taste."""


class ShopRequest(NamedTuple):
    """A request of a person: which items they could be shown.

    - `person`: the number of the person, from 0.
    - `candidates` (c,): the numbers of the items that they could be shown, from 0.
    """

    person: int
    candidates: Ints


class Shop(NamedTuple):
    """A simulated shop of m items with N features each, and P people with tastes of their own; made by `make_shop`.

    - `X` (m, N): the features of the items.
    - `tastes` (P, N): the weight that each person gives to each feature.
    - `grades` (P, m): how much each person likes each item, 0 to 1.
    - `scores` (m,): the shop's own score of each item, the same for everybody, by which it ranks before anything is
      learned.
    - `clicker`: the simulated person that says how people look at a list and click.
    """

    X: Floats
    tastes: Floats
    grades: Floats
    scores: Floats
    clicker: PositionBiased

    def rows(self) -> list[dict[str, Any]]:
        """Return the items as rows with an id ("item-1", ...) and a column for each feature ("f1", ...)."""
        return [{"id": f"item-{j}"} | {f"f{i}": x for i, x in enumerate(row, 1)} for j, row in
                enumerate(self.X.tolist(), 1)]  # fmt: skip

    def requests(self, rng: np.random.Generator) -> Iterator[ShopRequest]:
        """Yield requests without end: a person and their candidates, each drawn uniformly from `rng`."""
        people, items = self.grades.shape
        while True:
            yield ShopRequest(int(rng.integers(people)), rng.choice(items, CANDIDATES, replace=False))

    def click(self, person: int, shown: Sequence[int], rng: np.random.Generator) -> list[int]:
        """Return the items that a person clicks in the list `shown` (numbers of items, best first), from the top down.

        `person`: the number of the person; clicks are drawn from `rng`.
        """
        grades = self.grades[person]
        order = np.asarray(shown, np.int64)
        clicked: list[int] = self.clicker.rank(order.size, grades, grades, 0.0, order, rng).tolist()
        return clicked

    def expected_clicks(self, person: int, shown: Sequence[int]) -> float:
        """Return the expected number of clicks of the person with the number `person` on the list `shown` (numbers of
        items): the true value of the list."""
        model = self.clicker
        return sum(
            math.exp(-model.eta * math.log(i + 1.0)) * attraction(self.grades[person, j], model.highest, model.noise)
            for i, j in enumerate(shown)
        )


def make_shop(seed: int = 0, *, people: int = 300) -> Shop:
    """Return a simulated shop with so many `people`, drawn from `seed`.

    A person's taste is a common taste plus a part of their own, whose length is about `SPREAD` times that of the common
    one. A person looks at position i with probability 1/i.
    """
    clicker = PositionBiased(1.0, 0.02, clicks_only=True, highest=1.0)
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((ITEMS, FEATURES)).round(3)
    common = rng.standard_normal(FEATURES)
    individual = rng.standard_normal((people, FEATURES)) / math.sqrt(FEATURES)
    tastes = common / np.linalg.norm(common) + SPREAD * individual
    grades = 1.0 / (1.0 + np.exp(4.0 - 4.0 * (tastes @ X.T)))
    liked = X @ tastes.mean(axis=0)
    scores = CORRELATION * liked / liked.std() + math.sqrt(1.0 - CORRELATION**2) * rng.standard_normal(ITEMS)
    return Shop(X, tastes, grades, scores.round(3), clicker)
