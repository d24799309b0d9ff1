"""Is a standing as sure as it is right? `python bench/standing.py`.

Studies are drawn: people choose among items, with logistic noise, which the model does not have; their utilities are
what all like and what is their own. Of each study, P(the likeliest favourite is the best) is compared with how often it
is the best: of the mean of all people, as `Loop.standing`, the pages and `heedful rank` say it, which share one
inference, and of one person. What utilities were drawn from is not told to the model. One person, and three, are asked
what a loop asks; more are asked pairs at random.

A cell is a number of people, answers of each, a spread of utilities and how much of its square is each person's own. It
writes bench/results/standing/CELL.json and leaves out cells that are there, so cells may run in several processes at
once (`--only PEOPLE`). `--table` prints what there is; `--quick` takes 20 studies a cell and writes nothing.
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

from heedful.learners.preference.preference_gp import HierarchicalGP
from heedful.inference.pairwise import pair_rows, concatenate
from heedful.inference.estimation import infer_utilities
from heedful.boards.standing import standing
from heedful.spaces.comparison import Choice, ComparisonPool

ITEMS, SPREADS, SHARES = 5, (0.3, 0.6, 1.0, 3.0), (0.08, 0.5)
FOLDER = Path(__file__).parent / "results" / "standing"
ASKED_BY_THE_LOOP = 3
out = Console(width=120)


class Cell(NamedTuple):
    people: int
    answers: int
    """of each"""
    studies: int
    spread: float
    share: float
    """of the variance of a utility, that is each person's own"""

    @property
    def file(self) -> Path:
        return FOLDER / f"{self.people}x{self.answers}-spread-{self.spread:g}-own-{self.share:g}.json"


CELLS = [
    Cell(people, each, studies, spread, share)
    for people, each, studies in ((1, 20, 1_000), (1, 50, 1_000), (3, 25, 1_000), (20, 10, 1_000), (1_000, 5, 100))
    for spread in SPREADS
    for share in (SHARES if people > 1 else SHARES[:1])
]


def answered(cell: Cell, F: Any, rng: np.random.Generator) -> Any:
    """Rows of what people with utilities F (people x ITEMS) answer."""
    if cell.people <= ASKED_BY_THE_LOOP:
        return asked_by_the_loop(cell, F, rng)
    rows = []
    for u, f in enumerate(F):
        a = rng.integers(ITEMS, size=cell.answers)
        b = (a + rng.integers(1, ITEMS, size=cell.answers)) % ITEMS
        won = f[a] - f[b] + rng.logistic(size=cell.answers) > 0.0
        rows.append(pair_rows(np.column_stack([np.where(won, a, b), np.where(won, b, a)]), user=u))
    return concatenate(rows)


def asked_by_the_loop(cell: Cell, F: Any, rng: np.random.Generator) -> Any:
    learner = HierarchicalGP(Choice(ITEMS), rule="eubo")
    state, rows = learner.init(rng), []
    for t in range(cell.answers):
        for u, f in enumerate(F):
            known = np.sort(np.array([row for row, who in rows if who == u]).reshape(-1, 2), axis=1)[-(t % 10) :]
            pair = np.sort(learner.question(state, u, np.arange(ITEMS), 2, rng, known if t % 10 else ()))
            second = bool(f[pair[0]] - f[pair[1]] + rng.logistic() < 0.0)
            state = learner.update(state, ComparisonPool(u, pair[None]), pair, int(second))
            rows.append((pair[::-1] if second else pair, u))
    return pair_rows([row for row, _ in rows], user=[u for _, u in rows])


def study(cell: Cell, number: int) -> dict[str, list[float]]:
    """What was said of the favourite, whether it is the best, and -log P(the best): of all, and of one person."""
    rng = np.random.default_rng([cell.people, cell.answers, round(10 * cell.spread), round(100 * cell.share), number])
    common, own = rng.standard_normal(ITEMS), rng.standard_normal((cell.people, ITEMS))
    F = cell.spread * (np.sqrt(1.0 - cell.share) * common + np.sqrt(cell.share) * own)
    belief = infer_utilities(np.empty((ITEMS, 0)), cell.people, answered(cell, F, rng))
    found = {}
    for whose, posterior, truth in (("all", belief.average(), F.mean(axis=0)), ("one", belief.of(0), F[0])):
        best = standing(posterior).best
        right = int(truth.argmax())
        found[whose] = [float(best.max()), float(best.argmax() == right), float(-np.log(max(best[right], 1e-4)))]
    return found


def figures(each: list[list[float]]) -> dict[str, float]:
    """P that is claimed, how often that was right, the standard error of the difference, and the log loss."""
    said, right, loss = np.array(each).T
    error = (said - right).std() / np.sqrt(len(said))
    named = {"claimed": said.mean(), "right": right.mean(), "error": error, "loss": loss.mean()}
    return {name: round(float(value), 5) for name, value in named.items()}


def run(cell: Cell) -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    found = [study(cell, number) for number in range(cell.studies)]
    told = {**cell._asdict(), "items": ITEMS, "machine": description()}
    told |= {whose: figures([each[whose] for each in found]) for whose in ("all", "one")}
    part = cell.file.with_suffix(".part")
    part.write_text(json.dumps(told) + "\n")
    part.replace(cell.file)
    out.print(f"{cell.file.name}: {judged(told['all'])}")


def judged(told: dict[str, float]) -> str:
    """Claimed against right, by how much the two are apart and its standard error, and the log loss."""
    said, right, error, loss = (told[name] for name in ("claimed", "right", "error", "loss"))
    mark = "" if abs(said - right) <= 0.03 + 2.0 * error else "  off"
    return f"{said:.3f} / {right:.3f} (+- {error:.3f}), {loss:.3f}{mark}"


def table() -> Table:
    drawn = Table(title=f"{ITEMS} items: P(favourite is the best), claimed / right (standard error), log loss")
    for name in ("people x answers", "studies", "spread", "own", "all together", "one of them"):
        drawn.add_column(name, justify="right")
    for cell in CELLS:
        if cell.file.exists():
            had = json.loads(cell.file.read_text())
            told = [judged(had[whose]) for whose in ("all", "one")]
            size = f"{cell.people} x {cell.answers}"
            drawn.add_row(size, str(had["studies"]), f"{cell.spread:g}", f"{cell.share:g}", *told)
    return drawn


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="20 studies a cell; write nothing")
    parser.add_argument("--table", action="store_true", help="print what there is")
    parser.add_argument("--only", type=int, metavar="PEOPLE", action="append", help="cells of so many people")
    given = parser.parse_args()
    for cell in CELLS if not given.table else ():
        if given.only and cell.people not in given.only:
            continue
        if given.quick:
            found = figures([study(cell, k)["all"] for k in range(20)])
            out.print(f"{cell.people} x {cell.answers}, spread {cell.spread:g}, own {cell.share:g}: {judged(found)}")
        elif not cell.file.exists():
            run(cell)
    if not given.quick:
        out.print(table())


if __name__ == "__main__":
    main()
