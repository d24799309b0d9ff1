"""How soon does one posterior learn a ranking, beside the papers' learners? `python bench/posterior.py`.

Streams of 10,000 queries of 20 documents, drawn anew for each seed and played five times, with 5, 20 or 136 features
and grades that are noisy (standard deviation 1) but for the strict cell; and MQ2008, if `--letor DIR` names its folder.
People correct the list strictly (alpha 1/2), or reorder what they take for the best of the first five or ten by the
grades, or click: with probability (1/i)^eta they look at place i, or read from the top and stop after most clicks. A
learner of clicks gets the clicks alone, the others the order that the clicks make. k is 5. The regret is the mean over
all rounds so far; +- is one standard error over the seeds.

Writes bench/results/posterior/CELL.json, and takes up where it was stopped; `--only CELL`, `--table`, `--seeds N`, and
`--quick`, which takes two seeds and 500 rounds and writes nothing.
"""

from __future__ import annotations

import os
import sys

if os.environ.get("OPENBLAS_NUM_THREADS") != "1":  # before numpy starts its threads
    os.environ["OPENBLAS_NUM_THREADS"] = "1"
    os.execv(sys.executable, [sys.executable, *sys.argv])

import argparse
import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from machine import description
from rich.console import Console
from rich.table import Table

from heedful import Ranking, trace
from heedful.data.letor import least_squares, load_letor
from heedful.learners.coactive.perceptron import PreferencePerceptron
from heedful.learners.coactive.posterior import Posterior
from heedful.learners.coactive.second_order import SecondOrderPerceptron
from heedful.worlds.clicks import Cascade, PositionBiased
from heedful.worlds.queries import query_stream, synthetic_queries
from heedful.worlds.users import Noisy, StrictAlpha

FOLDER = Path(__file__).parent / "results" / "posterior"
LOOKS, K, QUERIES, SEED = (50, 500, 5000, 50_000), 5, 10_000, 640_211
USERS: dict[str, Any] = {
    "strict": StrictAlpha(0.5),
    "noisy 5": Noisy(5),
    "noisy 10": Noisy(10),
    "clicks, eta 1": PositionBiased(1.0),
    "clicks, cascade": Cascade(0.7),
}
out = Console(width=160)


class Cell(NamedTuple):
    user: str
    features: int
    """0: MQ2008"""


CELLS = {f"{user}, {n or 'MQ2008'}": Cell(user, n) for n in (5, 20, 136, 0) for user in USERS}


def learners(n: int) -> dict[str, Any]:
    """The learners that are compared, for n features."""
    space = Ranking(K)
    return {
        "posterior": Posterior(n, space, swap=0.0),
        "second-order": SecondOrderPerceptron(n, space),
        "perceptron": PreferencePerceptron(n, space),
    }


def world_of(cell: Cell, letor: Any, seed: int) -> Any:
    """The stream of a cell; its queries depend on the seed, those of MQ2008 are what they are."""
    user = USERS[cell.user]
    if cell.features:
        noise = 0.0 if cell.user == "strict" else 1.0
        return synthetic_queries(QUERIES, 20, cell.features, noise=noise, user=user, k=K, seed=seed)[0]
    if isinstance(user, PositionBiased | Cascade):
        user = user._replace(highest=2.0)  # its grades are 0, 1 and 2
    return query_stream(letor.X, letor.labels, letor.offsets, least_squares(letor.X, letor.labels), user, k=K)


def regrets(cell: Cell, letor: Any, seeds: int, rounds: int) -> dict[str, list[list[float]]]:
    """By learner, the mean regret up to each look, one row a seed."""
    found: dict[str, list[list[float]]] = {}
    for seed in range(SEED, SEED + seeds):
        world = world_of(cell, letor, seed)
        for name, learner in learners(world.X.shape[1]).items():
            alone = name == "posterior" and cell.user.startswith("clicks")
            given = world._replace(user=world.user._replace(clicks_only=True)) if alone else world
            regret = trace(learner, given, rounds, seed)
            found.setdefault(name, []).append([float(regret[:look].mean()) for look in LOOKS if look <= rounds])
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--letor", type=Path, metavar="DIR", help="the folder with the files S1 to S5 of MQ2008")
    parser.add_argument("--only", choices=CELLS, action="append")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--table", action="store_true", help="print what was measured, and measure nothing")
    parser.add_argument("--quick", action="store_true")
    given = parser.parse_args()
    letor = load_letor(*sorted(given.letor.glob("S*.txt*"))) if given.letor else None
    table = Table("cell", "learner", *(f"to {look:,}" for look in LOOKS), title="mean regret (standard error)")
    for name in given.only or CELLS:
        path = FOLDER / f"{name.replace(', ', '_').replace(' ', '-')}.json"
        if given.quick:
            found = regrets(CELLS[name], letor, 2, 500) if CELLS[name].features or letor else {}
        elif path.exists():
            found = json.loads(path.read_text())["regret"]
        elif given.table or not (CELLS[name].features or letor):
            continue
        else:
            found = regrets(CELLS[name], letor, given.seeds, LOOKS[-1])
            FOLDER.mkdir(parents=True, exist_ok=True)
            shown = {learner: np.round(rows, 5).tolist() for learner, rows in found.items()}
            whole = {"machine": description(), "first seed": SEED, "looks": LOOKS, "regret": shown}
            path.write_text(json.dumps(whole, indent=1) + "\n")
        for learner, rows in found.items():
            values = np.array(rows)
            errors = values.std(axis=0, ddof=1) / np.sqrt(len(values))
            cells = [f"{mean:.4f} ({error:.4f})" for mean, error in zip(values.mean(axis=0), errors)]
            table.add_row(name, learner, *cells)
    out.print(table)


if __name__ == "__main__":
    main()
