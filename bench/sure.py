"""Is it right as often as it says? `python bench/sure.py`.

Of two documents that nobody has judged, the posterior says how probable it is that the one is better than the other:
Phi(lead / (1.2 standard deviations)), as `decide`, `rank` and `why` of a loop say it. Synthetic queries of 20
documents with 20 features and noisy grades, k is 5; people correct the list strictly (alpha 1/2) or by noisy grades, or
click: with probability 1 / i they look at place i, or read from the top; or they give thumbs to single documents. After
50, 300 and 1,000 answers, 500 pairs of documents of queries that did not come yet are compared, in 20 loops a cell: how
often the document that is said to be better is, by what was said (reliability).

Writes bench/results/sure.json; `--quick` takes two loops and 300 answers, and writes nothing.
"""

from __future__ import annotations

import os
import sys

if os.environ.get("OPENBLAS_NUM_THREADS") != "1":  # before numpy starts its threads
    os.environ["OPENBLAS_NUM_THREADS"] = "1"
    os.execv(sys.executable, [sys.executable, *sys.argv])

import argparse
from itertools import pairwise
from typing import Any

import numpy as np
from machine import record
from rich.console import Console
from rich.progress import track
from rich.table import Table
from scipy.special import expit, ndtr

from heedful import Ranking
from heedful.learners.coactive.posterior import MODEST, Posterior
from heedful.worlds.clicks import Cascade, PositionBiased
from heedful.worlds.queries import synthetic_queries
from heedful.worlds.users import Noisy, StrictAlpha

LOOKS, LOOPS, PAIRS, SEED, FEATURES = (50, 300, 1000), 20, 500, 771_402, 20
EDGES = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 1.0)
USERS: dict[str, Any] = {
    "strict": StrictAlpha(0.5),
    "noisy 10": Noisy(10),
    "clicks, eta 1": PositionBiased(1.0, clicks_only=True),
    "clicks, cascade": Cascade(0.7, clicks_only=True),
    "thumbs": None,
}
Pairs = list[tuple[float, bool]]
"""(the probability that is said, at least 1/2; whether it was right)"""


def play(user: str, seed: int, looks: tuple[int, ...]) -> dict[int, Pairs]:
    """One loop; what is said of pairs after each number of answers."""
    rng, noise = np.random.default_rng(seed), 0.0 if user == "strict" else 1.0
    by = USERS[user] or Noisy(10)
    world, _ = synthetic_queries(2 * max(looks), 20, FEATURES, noise=noise, user=by, k=5, seed=seed)
    learner = Posterior(FEATURES, Ranking(5), swap=0.0)
    state, truth, found = learner.init(rng), world.init(rng), {}
    for t in range(1, max(looks) + 1):
        x = world.context(truth, t - 1, rng)
        y = learner.propose(state, x, rng)
        answer = world.respond(truth, x, y.shown, rng)
        if USERS[user] is None:
            q, j = truth.order[truth.t], rng.integers(len(x))
            u = world.utilities[world.offsets[q] : world.offsets[q + 1]]
            up = float(rng.random() < expit(2.0 * (u[j] - u.mean())))
            state = learner.judge(state, x[j].astype(np.float64), np.zeros(FEATURES), up, True)
        else:
            state = learner.update(state, x, y, answer)
        truth = world.advance(truth, x, y.shown, answer)
        if t in looks:
            found[t] = [said(learner, state, world, q, rng) for q in truth.order[-PAIRS:]]
    return found


def said(learner: Posterior, state: Any, world: Any, q: int, rng: np.random.Generator) -> tuple[float, bool]:
    """What is said of two documents of the query q, and whether it is right."""
    a, b = world.offsets[q] + rng.choice(world.offsets[q + 1] - world.offsets[q], 2, replace=False)
    gap = world.X[[a]].astype(np.float64) - world.X[[b]]
    lead = float(gap[0] @ state.m[:FEATURES])
    chance = float(ndtr(abs(lead) / (MODEST * np.sqrt(learner.covariance(state, gap, 0.0)[0, 0]))))
    return chance, bool((world.utilities[a] > world.utilities[b]) == (lead > 0.0))


def reliability(pairs: Pairs) -> list[dict[str, float]]:
    """What was said, how often that was right, and of how many pairs; by what was said."""
    chance, right = np.array([p for p, _ in pairs]), np.array([r for _, r in pairs])
    rows = []
    for low, high in pairwise(EDGES):
        there = (chance >= low) & ((chance < high) | (high == 1.0))
        if there.sum() >= 50:
            means = chance[there].mean(), right[there].mean()
            rows.append({"said": round(means[0], 3), "right": round(means[1], 3), "pairs": int(there.sum())})
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--quick", action="store_true")
    quick = parser.parse_args().quick
    looks, loops, results = LOOKS[:2] if quick else LOOKS, 2 if quick else LOOPS, {}
    for user in USERS:
        runs = [play(user, SEED + i, looks) for i in track(range(loops), user)]
        for look in looks:
            results[f"{user}, {look:,}"] = reliability([pair for run in runs for pair in run[look]])
    table = Table("answers", *(f"{low:g} to {high:g}" for low, high in pairwise(EDGES)), title="said: right")
    for name, rows in results.items():
        cells = dict.fromkeys(EDGES[:-1], "")
        for row in rows:
            cells[max(edge for edge in EDGES[:-1] if edge <= row["said"])] = f"{row['said']:.2f}: {row['right']:.2f}"
        table.add_row(name, *cells.values())
    Console(width=160).print(table)
    if not quick:
        record("sure", {"loops": loops, "pairs": PAIRS, "first seed": SEED, "said and right": results})


if __name__ == "__main__":
    main()
