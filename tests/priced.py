"""Best-worst scaling of items that have a price, for people who have a budget: the kind of `fifth.py`, which also makes
the features of items and requests itself, checks both, and judges lists by what they cost.

Brought in by `priced.py:PricedBestWorst`; nothing of heedful's is changed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import numpy as np

from fifth import BestWorst, BestWorstScaling
from heedful.features import Encoding, declare
from heedful.loop.interactions.protocol import ListValue, LoggedAnswer
from heedful.loop.settings import Manifest
from heedful.results.evaluation import Measure

PRICE = Measure(
    "price", "Mean price of what is shown.", "no list was answered so far", "More answers.", 0.0, 1.0, False, once=True
)


class PricedScaling(BestWorstScaling):
    """Of what is shown the best and the worst; each item has a `price`, each request a `budget`."""

    name = "priced-best-worst"
    words = BestWorstScaling.words._replace(loop="a loop of priced extremes")

    @classmethod
    def arrange(
        cls, rows: Sequence[Mapping[str, Any]], identifier: str | None, context: Encoding | None
    ) -> tuple[Encoding, Encoding, list[tuple[str, str]]]:
        """The numbers of the items and the budget as they are, and budget times price."""
        numbers = declare({name: (-1.0, 1.0) for name in rows[0] if name != "id"})
        budget = declare({"budget": (-1.0, 1.0)})
        return msgspec.structs.replace(numbers, identifier="id"), budget, [("budget", "price")]

    @classmethod
    def check_items(cls, manifest: Manifest, rows: Sequence[Mapping[str, Any]]) -> None:
        for i, row in enumerate(rows):
            if not 0.0 <= float(row["price"]) <= 1.0:  # from a CSV file it is a text
                raise ValueError(f"row {i + 1}: price: expected a number from 0 to 1, got {row['price']}")

    def check_context(self, context: Mapping[str, Any]) -> None:
        if not context.get("budget", 0.0) >= 0.0:
            raise ValueError(f"budget: expected a number of 0 or more, got {context['budget']}")

    def example_request(self) -> list[str]:
        return ["--context", '{"budget": 0.5}']

    def baselines(self, items: Sequence[str]) -> tuple[str, ...]:
        """The same learner with small steps."""
        return (f"{__file__}:PricedBestWorst:rate=0.001",)

    def chances(self, said: LoggedAnswer) -> np.ndarray[Any, np.dtype[np.float64]]:
        """How likely each model shows just this list: its best, and others by chance, in any order."""
        x, shown = said.step.context.x, said.shown
        m, k = len(x), len(shown)
        best = [int(np.argmax(x @ view.shared.w)) for view in said.views]
        return np.array([(one in shown) * m / k / math.perm(m, k) for one in best])

    def list_measures(self) -> Sequence[tuple[Measure, ListValue]]:
        """The mean price of what was shown."""
        at = self.names.index("price")
        return ((PRICE, lambda said: float(said.step.context.x[list(said.shown), at].mean())),)


class PricedBestWorst(BestWorst):
    """Best-worst scaling of what has a price: the steps of `BestWorst`."""

    interaction = PricedScaling
