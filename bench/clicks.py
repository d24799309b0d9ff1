"""Clicks under position bias: the caller's order, clicks at face value, and fair pairs.

`python bench/clicks.py` writes bench/results/clicks.json. Ten thousand queries of 20 documents with 20 features and
the caller's score, which says little (correlation 0.45 with the utility); a person looks at position i with
probability (1/i)^eta, or reads from the top and stops after most clicks. Every learner starts from the caller's order
(`WithBaseScore`). The learned order is that of the last weights, unperturbed, on 500 fresh queries. All with 95 %
intervals over the seeds; the difference from pairwise logistic at face value is paired by seed.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from machine import record
from rich.console import Console
from rich.table import Table

from heedful import Ranking
from heedful.jit.cache import loop_for
from heedful.core.fold import coerce, copy_arrays, generators
from heedful.jit.kernel import DISCOUNTS
from heedful.learners.coactive.perceptron import PreferencePerceptron
from heedful.learners.coactive.fair_pairs import FairPairs
from heedful.learners.coactive.pairwise_logistic import PairwiseLogistic
from heedful.learners.coactive.perturbed import PerturbedPerceptron
from heedful.spaces.ranking import WithBaseScore
from heedful.worlds.clicks import Cascade, PositionBiased
from heedful.worlds.queries import query_stream

SEEDS, ROUNDS, EARLY, FRESH = 10, 10_000, 1_000, 500
FEATURES, DOCUMENTS, K = 20, 20, 5
T95 = 2.262  # Student's t, nine degrees of freedom
USERS = {
    "no bias (eta 0)": PositionBiased(0.0, clicks_only=True),
    "eta 1": PositionBiased(1.0, clicks_only=True),
    "eta 2": PositionBiased(2.0, clicks_only=True),
    "eta 3": PositionBiased(3.0, clicks_only=True),
    "cascade, stop 0.9": Cascade(0.9, clicks_only=True),
}
SPACE, N = WithBaseScore(Ranking(K)), FEATURES + 1
FACE = "pairwise-logistic at face value"
LEARNERS: dict[str, Any] = {
    "perceptron at face value": PreferencePerceptron(N, SPACE),
    FACE: PairwiseLogistic(N, SPACE),
    **{f"3PR, swap {swap}": PerturbedPerceptron(N, SPACE, swap) for swap in (0.25, 0.5)},
    **{f"fair-pairs, swap {swap}": FairPairs(N, SPACE, swap=swap) for swap in (0.1, 0.25, 0.5)},
    **{f"fair-pairs alone, swap {swap}": FairPairs(N, SPACE, swap=swap, implied=0.0) for swap in (0.25, 0.5)},
}


def documents(queries: int, seed: int, part: int) -> tuple[Any, Any, Any, Any]:
    """Documents with the caller's score last (rows x 21), grades, utilities (rows,), w* (21,)."""
    w_star = np.random.default_rng([seed, 0]).standard_normal(FEATURES)
    w_star /= np.linalg.norm(w_star)
    rng = np.random.default_rng([seed, part])
    X = rng.standard_normal((queries * DOCUMENTS, FEATURES))
    u = X @ w_star
    grades = np.clip(np.round(2.0 + 1.2 * (u + 0.5 * rng.standard_normal(u.size))), 0.0, 4.0)
    caller = 0.5 * u + rng.standard_normal(u.size)
    return np.column_stack([X, caller]), grades, u, np.append(w_star, 0.0)


def quality(w: Any, fresh: tuple[Any, Any, Any, Any]) -> tuple[float, float]:
    """(NDCG@5 by grade, regret in utility) of the order that w makes of fresh queries, the caller's score primed."""
    X, grades, u, _ = fresh
    scores = (X @ w + X[:, -1]).reshape(-1, DOCUMENTS)
    order = np.argsort(-scores, axis=1, kind="stable")[:, :K]

    def of(values: Any) -> tuple[Any, Any]:
        rows = values.reshape(-1, DOCUMENTS)
        discounts = DISCOUNTS[:K]
        return np.take_along_axis(rows, order, 1) @ discounts, -np.sort(-rows, axis=1)[:, :K] @ discounts

    gained, best = of(2.0**grades - 1.0)
    utility, most = of(u)
    return float(np.mean(gained / best)), float(np.mean(most - utility))


def played(learner: Any, world: Any, seed: int, rounds: int) -> tuple[float, Any]:
    """(mean regret of what was shown in the last quarter, the last weights)."""
    learner, world = coerce(learner), coerce(world)
    asked, answered, drawn = generators(seed)
    state, truth, regrets = learner.init(drawn), world.init(asked), np.empty(rounds)
    arguments = (learner, world, state, truth, regrets, 0, asked, answered, drawn)
    last = copy_arrays(loop_for(*arguments)(*arguments)[0])
    return float(regrets[-(rounds // 4) :].mean()), learner.weights(last)


def interval(values: Any) -> list[float]:
    """Mean, and half of the 95 % interval."""
    return [round(float(np.mean(values)), 4), round(T95 * float(np.std(values, ddof=1)) / np.sqrt(len(values)), 4)]


def main() -> None:
    seen: dict[str, dict[str, list[tuple[float, ...]]]] = {name: {} for name in USERS}
    for seed in range(SEEDS):
        X, grades, _, w_star = documents(ROUNDS, seed, 1)
        fresh = documents(FRESH, seed, 2)
        offsets = np.arange(0, len(X) + 1, DOCUMENTS)
        stream = query_stream(X, grades, offsets, w_star, next(iter(USERS.values())), k=K, shuffle=seed)
        ndcg, regret = quality(np.zeros(N), fresh)
        for user_name, user in USERS.items():
            rows = seen[user_name]
            rows.setdefault("the caller's order", []).append((ndcg, regret, regret, regret))
            for name, learner in LEARNERS.items():
                # a perceptron needs the whole order that the clicks make; the others take the clicks alone
                whole = user._replace(clicks_only=not isinstance(learner, PreferencePerceptron))
                world = stream._replace(user=whole)
                late, w = played(learner, world, seed, ROUNDS)
                _, early = quality(played(learner, world, seed, EARLY)[1], fresh)
                rows.setdefault(name, []).append((*quality(w, fresh), late, early))
    results = {}
    for user_name, rows in seen.items():
        face = np.array(rows[FACE])
        columns = ("NDCG@5 learned", "regret learned", "less face value", "shown, last quarter", "learned in 1000")
        table = Table(user_name, *columns)
        results[user_name] = {}
        for name, values in rows.items():
            got = np.array(values)
            figures = {
                "NDCG@5 of the learned order": interval(got[:, 0]),
                "regret of the learned order": interval(got[:, 1]),
                "regret of the learned order less that of face value": interval(got[:, 1] - face[:, 1]),
                "regret of what was shown, last quarter": interval(got[:, 2]),
                "regret of the order learned in 1000 rounds": interval(got[:, 3]),
            }
            results[user_name][name] = figures
            table.add_row(name, *(f"{mean:.4f} ± {half:.4f}" for mean, half in figures.values()))
        Console(width=150).print(table)
    record("clicks", {"seeds": SEEDS, "rounds": ROUNDS, "mean, half of the 95 % interval": results})


main()
