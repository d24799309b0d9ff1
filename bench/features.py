"""What features gain that a column of numbers can become beside itself: `python bench/features.py`.

Catalogues of 2,000 items with five numbers, three of them with long tails (lognormal prices and counts of reviews,
exponential ages). What an item is worth is linear in their logarithms, or in the numbers themselves, or it is the price
times the count in standard scores. Lists have 20 items; people put the best five of the ten at the top first, by what
they are worth with noise of half its standard deviation, or click what they like and look at place i with probability
1/i. `posterior` learns from half of the items; NDCG@10 is of 200 lists of the other half. The columns are left as
numbers, become what `infer` makes of them (logarithms beside the numbers), or that with products of each two features.

Prints a table, mean of 20 catalogues with standard errors; writes bench/results/features.json. `--quick` takes three
and writes nothing.
"""

from __future__ import annotations

import os
import sys

if os.environ.get("OPENBLAS_NUM_THREADS") != "1":  # before numpy starts its threads
    os.environ["OPENBLAS_NUM_THREADS"] = "1"
    os.execv(sys.executable, [sys.executable, *sys.argv])

import argparse
from collections import defaultdict
from typing import Any

import numpy as np
from machine import record
from rich.console import Console
from rich.progress import track
from rich.table import Table
from scipy.special import expit

from heedful import Ranking
from heedful.features import UNSEEN, FeatureCross, infer
from heedful.learners.coactive.posterior import Posterior
from heedful.spaces.ranking import WithBaseScore

ITEMS, LIST, SHOWN, K, HELD, SEED = 2_000, 20, 10, 5, 200, 606_215
LOOKS, CATALOGUES = (50, 500), 20
COLUMNS = ("price", "reviews", "age", "size", "weight")
TRUTHS, ANSWERS, FORMS = (
    ("logarithms", "numbers", "product"),
    ("corrections", "clicks"),
    ("number", "infer", "products"),
)
Array = Any


def catalogue(rng: np.random.Generator) -> list[dict[str, Any]]:
    columns = (
        rng.lognormal(3.0, 1.0, ITEMS), np.floor(rng.lognormal(2.0, 1.5, ITEMS)), rng.exponential(10.0, ITEMS),
        rng.standard_normal(ITEMS), rng.random(ITEMS),
    )  # fmt: skip
    return [{"id": f"i{j}"} | dict(zip(COLUMNS, row)) for j, row in enumerate(np.array(columns).T.tolist())]


def worth(rows: list[dict[str, Any]], truth: str, rng: np.random.Generator) -> Array:
    """What each item is worth (n,), with mean 0 and standard deviation 1."""
    Z = np.array([[row[name] for name in COLUMNS] for row in rows])
    if truth != "numbers":
        Z[:, :3] = np.log1p(Z[:, :3])
    Z = (Z - Z.mean(axis=0)) / Z.std(axis=0)
    u = Z[:, 0] * Z[:, 1] if truth == "product" else Z @ rng.standard_normal(len(COLUMNS))
    return (u - u.mean()) / u.std()


def features(rows: list[dict[str, Any]], form: str) -> tuple[Array, int]:
    """The features of the items as a loop has them, the caller's score the last (n, N), and how many are products."""
    encoding = infer(rows, kinds=dict.fromkeys(COLUMNS, "number") if form == "number" else {})
    crossed = FeatureCross(UNSEEN, encoding, (), products=form == "products")
    X = crossed.apply(None, encoding.encode_many(rows))
    return np.column_stack([X, np.zeros(len(rows))]), crossed.n_products


def ndcg(score: Array, u: Array) -> float:
    """NDCG@10 with what items are worth above the least of their list as gain."""
    gains, discounts = u - u.min(), 1.0 / np.log2(np.arange(SHOWN) + 2.0)
    order, best = np.argsort(-score, kind="stable")[:SHOWN], -np.sort(-gains)[:SHOWN]
    return float(gains[order] @ discounts / (best @ discounts))


def play(X: Array, products: int, u: Array, answers: str, seed: int) -> dict[int, float]:
    """NDCG@10 after each look."""
    rng, held = np.random.default_rng([seed, 1]), np.random.default_rng([seed, 2])
    learner = Posterior(X.shape[1], WithBaseScore(Ranking(K)), swap=0.0, products=products)
    state, half, found = learner.init(rng), ITEMS // 2, {}
    lists = [half + held.choice(half, LIST, replace=False) for _ in range(HELD)]
    for t in range(1, max(LOOKS) + 1):
        some = rng.choice(half, LIST, replace=False)
        shown = np.argsort(-(X[some] @ learner.weights(state)), kind="stable")[:SHOWN]
        if answers == "corrections":
            heard = u[some][shown] + 0.5 * rng.standard_normal(SHOWN)
            state = learner.learn(state, X[some], shown, shown[np.argsort(-heard)[:K]], False, 1.0)
        else:
            likely = expit(2.0 * u[some][shown] - 1.0) / np.arange(1.0, SHOWN + 1.0)
            state = learner.learn(state, X[some], shown, shown[rng.random(SHOWN) < likely], True, 1.0)
        if t in LOOKS:
            found[t] = float(np.mean([ndcg(X[some] @ learner.weights(state), u[some]) for some in lists]))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    quick = parser.parse_args().quick
    figures: dict[tuple[str, str, str, int], list[float]] = defaultdict(list)
    for j in track(range(3 if quick else CATALOGUES), "catalogues"):
        rng = np.random.default_rng([SEED, j])
        rows = catalogue(rng)
        for truth in TRUTHS:
            u = worth(rows, truth, rng)
            for form in FORMS:
                X, products = features(rows, form)
                for answers in ANSWERS:
                    for look, value in play(X, products, u, answers, SEED + j).items():
                        figures[truth, answers, form, look].append(value)
    table = Table("worth is linear in", "answers", "after", *FORMS)
    results = {}
    for truth in TRUTHS:
        for answers in ANSWERS:
            for look in LOOKS:
                cells = {form: np.array(figures[truth, answers, form, look]) for form in FORMS}
                told = {form: (v.mean(), v.std(ddof=1) / np.sqrt(v.size)) for form, v in cells.items()}
                table.add_row(truth, answers, str(look), *(f"{m:.4f} ± {e:.4f}" for m, e in told.values()))
                results[f"{truth}, {answers}, {look}"] = {f: [round(x, 5) for x in both] for f, both in told.items()}
    Console().print(table)
    if not quick:
        record("features", results)


if __name__ == "__main__":
    main()
