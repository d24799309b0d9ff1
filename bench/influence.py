"""How often is the number of votes that decide the first place proved to be the least? `python bench/influence.py`.

Boards of 5 or 10 models with scores N(0, .5) in logits, whose votes are drawn in uniform pairs, without ties ("half")
or with as many as each model of ties has if equal models tie in one vote of five. Of each cell of 12 boards: on how
many the number is proved, the greatest share of all votes up to which every number was, how far what is proved is below
the number elsewhere, and the processor time of the whole search.

Writes bench/results/influence.json; `--quick` takes two boards a cell and writes nothing.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

import numpy as np
from machine import description
from rich.console import Console
from rich.table import Table

from heedful.boards.bradley_terry import Cells, count_cells, fit
from heedful.boards.influence import find_influence
from heedful.boards.tie_models import TieModel, initial_tie, probabilities

FILE = Path(__file__).parent / "results" / "influence.json"
BOARDS, SPREAD, TIED, SEED = 12, 0.5, 0.2, 20261126
MODELS: tuple[TieModel, ...] = ("half", "constant", "odds", "threshold")
SIZES = [(5, 200), (5, 1_000), (10, 400), (10, 1_000), (10, 10_000), (10, 100_000), (10, 1_000_000)]


def draw(n: int, count: int, model: TieModel, number: int) -> Cells:
    rng = np.random.default_rng([SEED, n, count, MODELS.index(model), number])
    truth = SPREAD * rng.standard_normal(n)
    a = rng.integers(n, size=count)
    b = (a + rng.integers(1, n, size=count)) % n
    win, tie, _ = probabilities(model, truth[a] - truth[b], 0.0 if model == "half" else initial_tie(model, TIED))
    u = rng.random(count)
    outcome = np.where(u < win, 2, np.where(u < win + tie, 1, 0))
    return count_cells(n, a, b, outcome, np.ones(count, np.int64))[0]


def measure(n: int, count: int, model: TieModel, number: int) -> dict[str, float]:
    cells = draw(n, count, model, number)
    found = fit(n, cells, model)
    start = time.process_time()
    got = find_influence(cells, found)
    if got is None or got.votes is None:
        raise SystemExit(f"{n} models, {count} votes, {model}, board {number}: no set of votes was found")
    return {"votes": got.votes, "at_least": got.at_least, "seconds": round(time.process_time() - start, 3)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="two boards a cell; write nothing")
    quick = parser.parse_args().quick
    table = Table("models", "votes", "ties", "proved", "always up to", "elsewhere at least", "CPU s, median", "at most")
    cells: dict[str, list[dict[str, float]]] = {}
    for n, count in SIZES:
        for model in MODELS:
            boards = [measure(n, count, model, k) for k in range(2 if quick else BOARDS)]
            cells[f"{n} models, {count} votes, {model}"] = boards
            open_ones = [each for each in boards if each["at_least"] < each["votes"]]
            first = min((each["votes"] for each in open_ones), default=np.inf)
            share = max((each["votes"] for each in boards if each["votes"] < first), default=0) / count
            rest = f"{min(each['at_least'] / each['votes'] for each in open_ones):.0%}" if open_ones else ""
            seconds = [each["seconds"] for each in boards]
            proved = f"{len(boards) - len(open_ones)} of {len(boards)}"
            times = [f"{np.median(seconds):.2f}", f"{max(seconds):.2f}"]
            table.add_row(str(n), f"{count:,}", model, proved, f"{share:.2%}", rest, *times)
    Console(width=110).print(table)
    if not quick:
        FILE.write_text(json.dumps({"boards": cells, "machine": description()}, indent=1) + "\n")


if __name__ == "__main__":
    main()
