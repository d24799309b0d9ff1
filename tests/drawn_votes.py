"""Votes about models drawn by a model of ties, for tests of leaderboards."""

from __future__ import annotations

from typing import Any

import numpy as np

from heedful.boards.tie_models import TieModel, initial_tie, probabilities

TIED = 0.2
"""How often two equal models tie."""


def draw_votes(truth: Any, count: int, model: TieModel, rng: np.random.Generator) -> tuple[Any, Any, Any]:
    """(first models, second models, outcomes) (count,) of votes about uniform pairs of the models with scores `truth`
    (n,); the outcome is 2, 1 or 0: the first won, a tie, it lost. In "half" nothing ties."""
    n = truth.size
    a = rng.integers(n, size=count)
    b = (a + rng.integers(1, n, size=count)) % n
    win, tie, _ = probabilities(model, truth[a] - truth[b], 0.0 if model == "half" else initial_tie(model, TIED))
    u = rng.random(count)
    return a, b, np.where(u < win, 2, np.where(u < win + tie, 1, 0))
