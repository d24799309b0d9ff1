"""Is it right as often as it says? `python bench/sure.py`.

Of two documents that nobody has judged, the posterior says how probable it is that the first is the better one
(`Posterior.better`). Synthetic queries of 20 documents with 20 features and noisy grades, k is 5; people correct the
list strictly (alpha 1/2) or by noisy grades, or click: with probability 1 / i they look at place i, or read from the
top; or they give thumbs to single documents. After 50, 300 and 1,000 answers, 1,000 pairs of documents of one query
are judged, in 20 loops a cell: how often the document that is said to be better is, by what was said (reliability).

Writes bench/results/sure.json; `--quick` takes two loops and 300 answers, and writes nothing.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
from machine import record
from rich.console import Console
from rich.progress import track
from rich.table import Table

from heedful import Ranking, Session
from heedful.learners.coactive.posterior import Posterior
from heedful.worlds.clicks import Cascade, PositionBiased
from heedful.worlds.queries import synthetic_queries
from heedful.worlds.users import Noisy, StrictAlpha

LOOKS, LOOPS, PAIRS, SEED = (50, 300, 1000), 20, 1000, 771_402
EDGES = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 1.0)
USERS: dict[str, Any] = {
    "strict": StrictAlpha(0.5),
    "noisy 10": Noisy(10),
    "clicks, eta 1": PositionBiased(1.0, clicks_only=True),
    "clicks, cascade": Cascade(0.7, clicks_only=True),
    "thumbs": None,
}
Rows = list[tuple[float, float]]


def loop(user: str, seed: int, looks: tuple[int, ...]) -> dict[int, Rows]:
    """(what was said, whether it was right) of each pair, after each number of answers."""
    rng = np.random.default_rng(seed)
    noise = 0.0 if user == "strict" else 1.0
    world, w_star = synthetic_queries(4000, 20, 20, noise=noise, user=USERS[user] or Noisy(10), k=5, seed=seed)
    learner, found = Posterior(20, Ranking(5), swap=0.0), {}
    session = Session(learner, seed=seed)
    X, starts = world.X, world.offsets
    for t in range(1, max(looks) + 1):
        x = X[starts[t] : starts[t + 1]]
        if user == "thumbs":
            z = x[rng.integers(len(x))].astype(np.float64)
            up = float(rng.random() < 1.0 / (1.0 + np.exp(1.0 - z @ w_star)))
            session.state = learner.judge(session.state, z, np.zeros(z.size), up)
        else:
            y = session.propose(x)
            session.learn(world.user.feedback(w_star, x, world.relevance[starts[t] : starts[t + 1]], y, rng))
        if t in looks:
            found[t] = judged(learner, session.state, world, w_star, rng)
    return found
