"""What noise leaves: regret of the last quarter of the rounds, the posterior against the papers' learners.

`python bench/floor.py [FOLDER of LETOR 4.0 MQ2008]`. Writes bench/results/floor.json.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
from machine import record
from rich.console import Console
from rich.table import Table

from heedful import Ranking, trace
from heedful.data.letor import least_squares, load_letor
from heedful.learners.coactive.perceptron import ConvexPerceptron, ExponentiatedPerceptron, PreferencePerceptron
from heedful.learners.coactive.posterior import Posterior
from heedful.learners.coactive.second_order import SecondOrderPerceptron
from heedful.worlds.queries import feature_bounds, query_stream, synthetic_queries
from heedful.worlds.users import Noisy, StrictAlpha

SEEDS = 5


def last_quarter(learner: Any, world: Any, rounds: int) -> list[float]:
    """Mean and standard error over the seeds of the mean regret of the last quarter."""
    means = [float(trace(learner, world, rounds, seed)[-(rounds // 4) :].mean()) for seed in range(SEEDS)]
    return [round(float(np.mean(means)), 5), round(float(np.std(means, ddof=1) / np.sqrt(SEEDS)), 5)]


def compare(world: Any, rounds: int) -> dict[str, list[float]]:
    n, space = world.X.shape[1], Ranking(world.k)
    _, S = feature_bounds(world.X, world.offsets, space)
    learners: dict[str, Any] = {
        "perceptron": PreferencePerceptron(n, space),
        "batch of 10": PreferencePerceptron(n, space, 10),
        "exponentiated": ExponentiatedPerceptron(n, space, S),
        "convex": ConvexPerceptron(n, space, 100.0),
        "second-order": SecondOrderPerceptron(n, space),
        "posterior": Posterior(n, space, swap=0.0),
    }
    return {name: last_quarter(learner, world, rounds) for name, learner in learners.items()}


def main() -> None:
    results = {}
    for noise in (0.5, 1.0, 2.0):
        world, _ = synthetic_queries(10_000, 20, 50, noise=noise, user=Noisy(10))
        results[f"synthetic, 50 features, noise {noise}"] = compare(world, 10_000)
    if len(sys.argv) > 1:
        q = load_letor(*sorted(Path(sys.argv[1]).glob("S*.txt*")))
        w_star = least_squares(q.X, q.labels)
        passes = 10 * (q.offsets.size - 1)
        for name, user in (("noisy depth 10", Noisy(10)), ("strict alpha 0.5", StrictAlpha(0.5))):
            world = query_stream(q.X, q.labels, q.offsets, w_star, user)
            results[f"MQ2008, ten passes, {name}"] = compare(world, passes)
    table = Table("regret of the last quarter", *results, title=f"mean over {SEEDS} seeds (standard error)")
    for learner in next(iter(results.values())):
        table.add_row(learner, *(f"{r[learner][0]:.4f} ({r[learner][1]:.4f})" for r in results.values()))
    Console(width=200).print(table)
    record("floor", {"seeds": SEEDS, "regret of the last quarter: mean, standard error": results})


main()
