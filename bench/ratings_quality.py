"""What learners of ratings are worth under their defaults: `python bench/ratings_quality.py [--data FOLDER]`.

Regret summed over 25,000 rounds of BMF, ALB (its defaults, and tuned by set as in [A18]) and the simple rows, means of
five seeds, on the synthetic sets of [A18] and on MovieLens-100K, Jester (first 5,000 users) and Book-Crossing (the
densest explicit 2,000 x 2,000 of the subset), an item offered again or not. Of BMF less the best simple row, and less
ALB on the synthetic sets, the mean by seed with its standard error; held: no more than two of these above 0. FOLDER is
where the data sets are. `--confirm` takes MovieLens-1M instead, which was left alone while BMF was made. Prints tables
and writes bench/results/ratings_quality.json, or ratings_quality_1m.json; `--learner` and `--set` narrow it down, and
then nothing is written.
"""

from __future__ import annotations

import os
import sys

if os.environ.get("OPENBLAS_NUM_THREADS") != "1":  # before numpy starts its threads
    os.environ["OPENBLAS_NUM_THREADS"] = "1"
    os.execv(sys.executable, [sys.executable, *sys.argv])

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np
from machine import record
from rich.console import Console
from rich.table import Table

from heedful import trace
from heedful.data.ratings import densest, load_book_crossing, load_jester, movielens_ratings
from heedful.learners.ratings.alb import ALB
from heedful.learners.ratings.bmf import BMF
from heedful.learners.ratings.baselines import ItemMean, PairMean, RandomItem, UserGreedy
from heedful.worlds.ratings import bernoulli_ratings, gaussian_ratings, replay_ratings, uniform_ratings

ROUNDS, SEEDS = 25_000, 5
SYNTHETIC = {"gaussian": gaussian_ratings, "uniform": uniform_ratings, "bernoulli": bernoulli_ratings}
# lambda and sigma of [A18]
TUNED = {
    "gaussian": (0.01, 0.5), "uniform": (0.001, 0.5), "bernoulli": (1.0, 0.4),
    "movielens": (1.0, 0.4), "jester": (1.0, 0.9), "book-crossing": (0.1, 0.1), "movielens-1m": (1.0, 0.4),
}  # fmt: skip
SIMPLE = {"random-item": RandomItem(), "user-greedy": UserGreedy(), "item-mean": ItemMean(), "pair-mean": PairMean()}
out = Console(width=150)


def tables(folder: Path, confirm: bool) -> dict[str, Any]:
    """How to load each real set."""
    if confirm:
        return {"movielens-1m": lambda: movielens_ratings(folder / "movielens-1m")}
    books = folder / "book-crossing-subset" / "BX-Book-Ratings.subset.csv.gz"
    return {
        "movielens": lambda: movielens_ratings(folder / "movielens-100k"),
        "jester": lambda: load_jester(folder / "jester-1" / "jester-data-1.csv.gz", users=5000),
        "book-crossing": lambda: densest(load_book_crossing(books), 2000, 2000),
    }


def regrets(learner: Any, worlds: list[Any]) -> list[float]:
    """The regret of all rounds, in each world, each on its own seed."""
    return [round(float(trace(learner, world, ROUNDS, seed).sum()), 2) for seed, world in enumerate(worlds)]


def against(ours: list[float], theirs: list[float]) -> dict[str, Any]:
    """Ours less theirs by seed: mean, standard error, and whether it is no more than two of these."""
    d = np.subtract(ours, theirs)
    error = float(d.std(ddof=1) / np.sqrt(d.size)) if d.size > 1 else 0.0
    return {"less": round(float(d.mean()), 1), "standard error": round(error, 1), "held": bool(d.mean() <= 2 * error)}


def judged(rows: dict[str, list[float]], synthetic: bool) -> dict[str, Any]:
    """BMF against the best simple row by its mean and, on the synthetic sets, against ALB."""
    said = {}
    if "bmf" in rows and any(name in SIMPLE for name in rows):
        best = min((name for name in rows if name in SIMPLE), key=lambda name: float(np.mean(rows[name])))
        said[best] = against(rows["bmf"], rows[best])
    if synthetic and "bmf" in rows:
        said |= {name: against(rows["bmf"], rows[name]) for name in rows if name.startswith("alb")}
    return said


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path(__file__).resolve().parents[2] / "shared" / "data")
    parser.add_argument("--confirm", action="store_true", help="MovieLens-1M alone")
    parser.add_argument("--learner", action="append", help="one of those in the table; may be given again")
    parser.add_argument("--set", action="append", help="one of the sets; may be given again")
    parser.add_argument("--seeds", type=int, default=SEEDS)
    args = parser.parse_args()
    figures: dict[str, Any] = {"rounds": ROUNDS, "seeds": args.seeds}
    loads = tables(args.data, args.confirm)
    names = [name for name in ({} if args.confirm else SYNTHETIC) | loads if not args.set or name in args.set]
    for name in names:
        penalty, sigma = TUNED[name]
        learners = {"bmf": BMF(), "alb": ALB(), "alb, tuned": ALB(penalty=penalty, sigma=sigma), **SIMPLE}
        chosen = {key: value for key, value in learners.items() if not args.learner or key in args.learner}
        if name in SYNTHETIC:
            cells = {name: [SYNTHETIC[name](seed=seed) for seed in range(args.seeds)]}
        else:
            data = loads[name]()
            worlds = {
                w: replay_ratings(data.users, data.items, data.values, repeats=w == "again") for w in ("again", "once")
            }
            cells = {f"{name}, {word}": [world] * args.seeds for word, world in worlds.items()}
        for cell, worlds_ in cells.items():
            rows, took = {}, time.thread_time()
            for key, learner in chosen.items():
                rows[key] = regrets(learner, worlds_)
            said = judged(rows, name in SYNTHETIC)
            figures[cell] = {"regret": rows, "BMF less": said}
            table = Table(cell, "mean", "standard error", "BMF less this", "held", title_justify="left")
            for key, values in rows.items():
                error = np.std(values, ddof=1) / np.sqrt(len(values)) if len(values) > 1 else 0.0
                less = said.get(key)
                words = (
                    (f"{less['less']:+,.0f} +- {less['standard error']:,.0f}", str(less["held"])) if less else ("", "")
                )
                table.add_row(key, f"{np.mean(values):,.0f}", f"{error:,.0f}", *words)
            out.print(table, f"{time.thread_time() - took:.0f} s")
    if not args.learner and not args.set and args.seeds == SEEDS:
        record("ratings_quality_1m" if args.confirm else "ratings_quality", figures)


if __name__ == "__main__":
    main()
