"""Is "10 to 31 questions left (with 80 % probability)" right as often as it says? `python bench/remaining.py`.

Studies are drawn: a person chooses among items, first in random pairs, then in those that `heedful rank` asks for next,
with logistic noise, which the model does not have, until it says that it is sure enough. After the random ones it says
how many questions are left; what it then really takes is counted. What the utilities were drawn from is not told to the
model, which infers it anew after each answer.

A cell is a goal, a number of items, a spread of utilities and a number of answers before. It writes
bench/results/remaining/CELL.json while it goes and takes up where it was stopped, also for more `--studies`. A study
ends where it is known whether its number is below, within or above what was said: where "or more" was said, it goes on
to the lower end alone. `--table` prints what there is; `--quick` takes 20 studies a cell and writes nothing; `--pilot`
draws other ones, 60 a cell; `--only TEXT` takes the cells whose names have it.
"""

from __future__ import annotations

import os
import sys

if os.environ.get("OPENBLAS_NUM_THREADS") != "1":  # before numpy starts its threads
    os.environ["OPENBLAS_NUM_THREADS"] = "1"
    os.execv(sys.executable, [sys.executable, *sys.argv])

import argparse
import json
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from machine import description
from rich.console import Console
from rich.table import Table

from heedful.inference.estimation import infer_utilities
from heedful.inference.gp.acquisition import next_question
from heedful.inference.gp.remaining_questions import HOLDS, estimate_remaining
from heedful.inference.gp.stopping import GOALS
from heedful.inference.pairwise import pair_rows
from heedful.boards.standing import standing, verdict

FOLDER = Path(__file__).parent / "results" / "remaining"
SEED = 552894
"""Of the studies that are reported; drawn after the forecast was as it is."""
SAVE, AT = 10, 0.9
out = Console(width=130)


class Cell(NamedTuple):
    goal: str
    items: int
    spread: float
    answers: int
    """before the forecast"""

    @property
    def name(self) -> str:
        return f"{self.goal}-{self.items}-items-spread-{self.spread:g}-after-{self.answers}"

    @property
    def file(self) -> Path:
        return FOLDER / f"{self.name}.json"


CELLS = [  # those that differ most come first
    *(Cell("best", 5, spread, answers) for spread, answers in ((1.0, 10), (0.5, 40), (2.0, 10))),
    Cell("ranking", 5, 1.0, 10),
    *(Cell("best", items, 1.0, 10) for items in (3, 10)),
    *(Cell("best", items, spread, 40) for items in (5, 10) for spread in (1.0, 2.0)),
    *(Cell("ranking", items, spread, 10) for items, spread in ((5, 2.0), (10, 1.0), (10, 2.0))),
    *(Cell("best", 3, spread, answers) for spread in (0.5, 2.0) for answers in (10, 40)),
    *(Cell("best", 10, spread, 10) for spread in (0.5, 2.0)),
]


def study(cell: Cell, seed: int, number: int) -> tuple[int, int, int] | None:
    """(-1, 0 or 1: it took fewer, as many, or more than said; low, high); None if nothing was left to ask."""
    rng = np.random.default_rng([seed, cell.items, round(10 * cell.spread), cell.answers, len(cell.goal), number])
    truth = cell.spread * rng.standard_normal(cell.items)
    pairs = [answered(truth, rng.choice(cell.items, 2, replace=False), rng) for _ in range(cell.answers)]
    said, asked = None, 0
    while True:
        posterior = infer_utilities(np.empty((cell.items, 0)), 1, pair_rows(pairs)).average()
        sure = enough(cell, posterior)
        if said is None:
            if sure:
                return None
            said = estimate_remaining(posterior, cell.goal, at=AT)
        elif sure:
            return (-1 if asked < said.low else 0, said.low, said.high)
        if asked >= said.low and said.high >= said.most:
            return (0, said.low, said.high)
        if asked >= said.high:
            return (1, said.low, said.high)
        pairs.append(answered(truth, np.array(next_question(posterior.whole(), GOALS[cell.goal])[:2]), rng))
        asked += 1


def answered(truth: Any, pair: Any, rng: np.random.Generator) -> Any:
    return pair if truth[pair[0]] - truth[pair[1]] + rng.logistic() > 0.0 else pair[::-1]


def enough(cell: Cell, posterior: Any) -> bool:
    if cell.goal == "best":  # most often seen at once
        top = int(posterior.mean.argmax())
        others = np.delete(np.arange(cell.items), top)
        if float(posterior.better(np.full(others.size, top), others).min()) < AT - 0.03:
            return False
    names = list(map(str, range(cell.items)))
    return verdict(posterior, names, cell.goal, standing(posterior, at=AT), at=AT, ask=False).stop


def run(cell: Cell, studies: int) -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    had = json.loads(cell.file.read_text()) if cell.file.exists() else {"drawn": 0, "seconds": 0.0, "studies": []}
    while len(had["studies"]) < studies:
        start = time.process_time()
        for number in range(had["drawn"], had["drawn"] + SAVE):
            if (found := study(cell, SEED, number)) is not None:
                had["studies"].append(found)
        had["drawn"] += SAVE
        had["seconds"] = round(had["seconds"] + time.process_time() - start, 1)
        told = {**cell._asdict(), "seed": SEED, "machine": description()} | had
        part = cell.file.with_suffix(".part")
        part.write_text(json.dumps(told | {"studies": had["studies"]}, separators=(",", ":")) + "\n")
        part.replace(cell.file)
    out.print(f"{cell.name}: {judged(had['studies'])} ({had['drawn']} drawn, {had['seconds']:.0f} s)")


def judged(studies: list[list[int]]) -> str:
    """How often it took fewer, as many and more than was said, with the standard error, and what was said, medians."""
    where, low, high = np.array(studies).T
    inside = float((where == 0).mean())
    error = np.sqrt(max(inside * (1.0 - inside), 1e-9) / where.size)
    mark = "" if inside >= HOLDS - 2.0 * error else "  less"
    fewer, more = float((where < 0).mean()), float((where > 0).mean())
    open_ = float((high >= 100).mean())
    told = f"{np.median(low):g} to {np.median(high):g}"
    return f"{inside:.3f} +- {error:.3f}, fewer {fewer:.3f}, more {more:.3f}; said {told}, open {open_:.2f}{mark}"


def table() -> Table:
    drawn = Table(title="How often it took as many questions as was said (80 %), and what was said")
    for name in ("cell", "studies", "within, standard error; fewer; more; said, medians; share of 'or more'"):
        drawn.add_column(name)
    for cell in CELLS:
        if cell.file.exists():
            had = json.loads(cell.file.read_text())
            drawn.add_row(cell.name, str(len(had["studies"])), judged(had["studies"]))
    return drawn


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="20 studies a cell; write nothing")
    parser.add_argument("--pilot", action="store_true", help="60 other studies a cell; write nothing")
    parser.add_argument("--table", action="store_true", help="print what there is")
    parser.add_argument("--only", default="", metavar="TEXT", help="cells whose names have this text")
    parser.add_argument("--studies", type=int, default=200, metavar="N", help="of each cell, at least; default: 200")
    given = parser.parse_args()
    for cell in CELLS if not given.table else ():
        if given.only not in cell.name:
            continue
        if given.quick or given.pilot:
            start, seed, size = time.process_time(), 1 if given.pilot else SEED, 60 if given.pilot else 20
            found = [each for k in range(size) if (each := study(cell, seed, k)) is not None]
            took = time.process_time() - start
            out.print(f"{cell.name}: {judged(found) if found else 'none'} ({len(found)} studies, {took:.0f} s)")
        else:
            run(cell, given.studies)
    if not (given.quick or given.pilot):
        out.print(table())


if __name__ == "__main__":
    main()
