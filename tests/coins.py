"""Random generators whose draws are given."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np


class Draws:
    """A random generator whose uniform draws are given; what was not drawn is in `draws`."""

    def __init__(self, *draws: float) -> None:
        self.draws = list(draws)

    def random(self, size: int | None = None) -> Any:
        return self.draws.pop(0) if size is None else np.array([self.draws.pop(0) for _ in range(size)])


class Coins:
    """A random generator whose coins are given: below one half for 1, above it for 0; the rest is in `left`."""

    def __init__(self, coins: Iterable[int]) -> None:
        self.left = list(coins)

    def random(self) -> float:
        return 0.25 if self.left.pop(0) else 0.75
