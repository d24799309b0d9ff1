"""Are leaderboards as sure as they are right, where votes or people are few? `python bench/boards.py`.

Boards are drawn: models with scores N(0, spread) in logits (a cell without a spread draws it between .5 and 4, its
logarithm uniform), pairs that are uniform, and votes by Bradley-Terry's model; answers that seem closer than a width
tie (Rao and Kupper). People who differ have scores of their own, N(0, .5) around those of all, and are equally active
or by Pareto's law with exponent 1. Where they differ, or answers tie, the truth is what infinitely many votes of such
people would give with the model of ties that the board took. Of each study: the share of 90 % intervals of scores that
hold the truth; of neighbours on the board the mean probability that the upper one is better, how often it is, and both
where the board tells the two apart; P(best) of the model that is likeliest the best, and how often it is; and the share
of 90 % intervals that hold the side's effect, or the score of the model that is far ahead.

Writes bench/results/boards/CELL.json, and leaves out cells that are there; `--only CELL`, `--table`, `--seed N`, and
`--quick N`, which takes N studies a cell and writes nothing.
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
from scipy.special import expit

from heedful.data.votes import Votes
from heedful.boards.bradley_terry import Cells, fit
from heedful.boards.leaderboard import MIDDLE, POINTS, leaderboard
from heedful.boards.tie_models import TieModel

FOLDER = Path(__file__).parent / "results" / "boards"
OWN, SIDE, LENGTH = 0.5, 0.3, 0.4
SURE = 0.9
SEED = 77_272_367
out = Console(width=160)


class Cell(NamedTuple):
    models: int
    votes: int
    spread: float | None = None
    """None: drawn between .5 and 4"""
    ties: float = 0.0
    """share of ties among equal models"""
    people: int = 0
    """people who differ; 0: each vote is of nobody in particular"""
    own: float = OWN
    """standard deviation of people's own scores around those of all"""
    pareto: bool = False
    """whether their activity is by Pareto's law"""
    side: bool = False
    lengths: bool = False
    """whether there are two covariates, one of them nearly a multiple of the other"""
    ahead: float = 0.0
    """logits by which the first model is ahead of its draw"""

    @property
    def width(self) -> float:
        """Differences in logits below which answers tie."""
        return float(np.log((1.0 + self.ties) / (1.0 - self.ties)))

    @property
    def name(self) -> str:
        told = f"{self.models} models, {self.votes} votes, spread {self.spread or 'drawn'}"
        told += f", ties {self.ties}" if self.ties else ""
        told += f", {self.people} people{' (Pareto)' if self.pareto else ''}" if self.people else ""
        told += " who agree" if self.people and not self.own else ""
        told += ", side" if self.side else ""
        told += ", collinear covariates" if self.lengths else ""
        return told + (f", one {self.ahead} ahead" if self.ahead else "")


CELLS = [
    *[Cell(2, votes, spread) for votes, spread in ((1, None), (10, None), (100, 0.5), (100, 2.0), (1_000, 4.0))],
    *[Cell(3, votes, spread) for votes, spread in ((3, None), (10, None), (10, 2.0), (100, 4.0))],
    *[Cell(5, votes, spread) for votes, spread in ((10, None), (10, 1.0), (100, 4.0))],
    *[Cell(10, votes, spread) for votes in (40, 200) for spread in (0.5, None, 4.0)],
    *[Cell(30, 100), Cell(30, 1_000, 4.0), Cell(100, 200, 1.0), Cell(100, 1_000, 0.5), Cell(100, 1_000, 4.0)],
    *[Cell(100, 10_000, 4.0), Cell(100, 100_000, 2.0)],
    *[Cell(3, 10, None, 0.3), Cell(5, 40, 2.0, 0.8), Cell(10, 200, 0.5, 0.8), Cell(10, 200, 4.0, 0.3)],
    Cell(100, 10_000, 1.0, 0.8),
    *[Cell(3, 20, 1.0, side=True), Cell(10, 200, 1.0, side=True, lengths=True)],
    *[Cell(10, 2_000, 2.0, 0.3, side=True, lengths=True), Cell(100, 10_000, 1.0, lengths=True)],
    *[Cell(3, 30, 1.0, people=5), Cell(5, 200, 1.0, people=2), Cell(10, 400, 1.0, people=10)],
    *[Cell(10, 1_000, 1.0, people=10, pareto=True), Cell(10, 1_000, 1.0, people=100)],
    *[Cell(20, 2_000, 1.0, people=100, pareto=True), Cell(100, 10_000, 1.0, people=100, pareto=True)],
    *[Cell(10, 5_000, 1.0, people=1_000, pareto=True), Cell(10, 5_000, 0.5, 0.3, people=1_000)],
    *[Cell(100, 20_000, 1.0, people=1_000), Cell(10, 1_000, 1.0, 0.3, people=30, pareto=True, side=True)],
    *[Cell(5, 400, 1.0, people=people, own=0.0) for people in (2, 20)],
    *[Cell(5, 200, 0.5, ahead=4.0), Cell(10, 900, 0.5, ahead=4.0)],
]


def studies(cell: Cell) -> int:
    return 200 if cell.models >= 100 else 1_000


def chances(width: float, eta: Any) -> tuple[Any, Any]:
    """P(the first wins), P(tie), by the difference in logits."""
    win, loss = expit(eta - width), expit(-eta - width)
    return win, np.maximum(1.0 - win - loss, 0.0)


def limit(cell: Cell, truth: Any, model: TieModel) -> Any:
    """The scores that are fitted, with this model of ties, to infinitely many votes."""
    if not cell.people and not cell.ties:
        return truth
    x, w = np.polynomial.hermite_e.hermegauss(20 if cell.people else 1)
    a, b = np.triu_indices(truth.size, 1)
    gaps = (truth[a] - truth[b])[:, None] + np.sqrt(2.0) * cell.own * x
    win, tie = (each @ w / w.sum() for each in chances(cell.width, gaps))
    parts = {2: win, 1: tie, 0: 1.0 - win - tie}
    if model == "half":  # no vote was a tie
        del parts[1]
    outcome = np.repeat(list(parts), a.size)
    first, second = (np.tile(each, len(parts)) for each in (a, b))
    cells = Cells(first, second, outcome, 1e6 * np.concatenate([*parts.values()]), np.empty((outcome.size, 0)))
    return fit(truth.size, cells, model, sd=20.0).scores


def draw(cell: Cell, number: int, seed: int) -> tuple[Votes, Any]:
    key = [
        cell.models,
        cell.votes,
        int(10 * (cell.spread or 0)),
        int(10 * cell.ties),
        cell.people,
        cell.pareto,
        int(10 * cell.own),
    ]
    rng = np.random.default_rng([seed, *key, cell.side, cell.lengths, int(cell.ahead), number])
    n, p = cell.models, cell.votes
    spread = cell.spread or float(np.exp(rng.uniform(np.log(0.5), np.log(4.0))))
    truth = spread * rng.standard_normal(n)
    truth[0] += cell.ahead
    a = rng.integers(n, size=p)
    b = (a + rng.integers(1, n, size=p)) % n
    eta = truth[a] - truth[b] + SIDE * cell.side
    person = np.zeros(p, np.int64)
    if cell.people:
        activity = 1.0 + rng.pareto(1.0, cell.people) if cell.pareto else np.ones(cell.people)
        person = rng.choice(cell.people, p, p=activity / activity.sum())
        own = cell.own * rng.standard_normal((cell.people, n))
        eta = eta + own[person, a] - own[person, b]
    x = np.empty((p, 0))
    if cell.lengths:
        length = rng.standard_normal(p)
        eta = eta + LENGTH * length
        x = np.column_stack([length, 1.3 * length + 0.05 * rng.standard_normal(p)])
    win, tie = chances(cell.width, eta)
    u = rng.random(p)
    outcome = np.where(u < win, 2, np.where(u < win + tie, 1, 0))
    people = tuple(map(str, range(cell.people))) if cell.people else ("",)
    ones, no, names = np.ones(p, np.int64), np.zeros(p, bool), tuple(f"m{i}" for i in range(n))
    covariates = ("length", "tokens") if cell.lengths else ()
    votes = Votes(
        names, people, a, b, outcome, person, ones, True, no, covariates, x, (), np.zeros_like(ones), {}, "drawn"
    )
    return votes, truth


def study(cell: Cell, number: int, seed: int) -> dict[str, float]:
    votes, truth = draw(cell, number, seed)
    start = time.process_time()
    board = leaderboard(votes, side=cell.side, influence=False, sure=SURE)
    seconds = time.process_time() - start
    truth = limit(cell, truth, board.tie_model)[[int(name[1:]) for name in board.models]]
    want = POINTS * (truth - truth.mean()) + MIDDLE
    inside = (board.by_number("score_low") <= want) & (want <= board.by_number("score_high"))
    right = np.diff(truth[board.order]) < 0.0
    better = np.array(board.board.fields()["better_than_next"][:-1])
    sure = better >= SURE
    best = board.by_number("best")
    first = int(best.argmax())
    told = {
        "intervals": float(inside.mean()),
        "neighbours": float(better.size),
        "better_said": float(better.sum()),
        "better_right": float(right.sum()),
        "apart": float(sure.sum()),
        "apart_said": float(better[sure].sum()),
        "apart_right": float(right[sure].sum()),
        "best_said": float(best[first]),
        "best_right": float(truth[first] == truth.max()),
        "seconds": seconds,
    }
    if board.side is not None and not cell.people:  # where people differ, the side's effect seems smaller too
        told["side"] = float(board.side.low <= POINTS * SIDE <= board.side.high)
    if cell.ahead and "m0" in board.models:
        told["ahead"] = float(inside[board.models.index("m0")])
    return told


def figures(had: list[dict[str, float]]) -> dict[str, Any]:
    """What the table says of these studies: numbers, or pairs (value, standard error)."""
    got = {name: np.array([each[name] for each in had if name in each]) for name in had[0]}

    def mean(name: str) -> list[float]:
        return [got[name].mean(), got[name].std() / np.sqrt(max(len(had) - 1, 1))]

    def ratio(name: str, of: str) -> list[float]:
        total = got[of].sum()
        if not total:
            return []
        value = got[name].sum() / total
        return [value, np.sqrt(((got[name] - value * got[of]) ** 2).sum()) / total]

    told = {name: mean(name) for name in ("intervals", "best_said", "best_right", "side", "ahead") if name in got}
    told |= {name: ratio(name, "neighbours") for name in ("better_said", "better_right")}
    told |= {name: ratio(name, "apart") for name in ("apart_said", "apart_right")}
    rounded = {name: [round(float(x), 5) for x in pair] for name, pair in told.items()}
    seconds = round(float(got["seconds"].mean()), 4)
    return {"studies": len(had), **rounded, "apart": int(got["apart"].sum()), "seconds": seconds}


def row(cell: Cell, told: dict[str, Any]) -> list[str]:
    def pair(name: str) -> str:
        value = told.get(name)
        return f"{value[0]:.3f} ({value[1]:.3f})" if value else ""

    said = [f"{(told['apart_said'] or [0.0])[0]:.3f}", pair("apart_right"), str(told["apart"])]
    names = ("better_said", "better_right", "best_said", "best_right")
    more = [*map(pair, names), pair("side") or pair("ahead"), f"{told['seconds']:.2f}"]
    return [cell.name, str(told["studies"]), pair("intervals"), *said, *more]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", type=int, metavar="N", help="N studies a cell; write nothing")
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--table", action="store_true", help="print what there is")
    parser.add_argument("--only", metavar="CELL", action="append", help="cells whose name has this in it")
    given = parser.parse_args()
    table = Table(title="Leaderboards: what is said, and how often it is right (standard errors)")
    heads = ("studies", "90 % hold", "apart: said", "right", "of", "better: said", "right", "best: said", "right")
    table.add_column("cell")
    for name in (*heads, "side, or ahead", "CPU s"):
        table.add_column(name, justify="right")
    for cell in CELLS:
        if given.only and not any(part in cell.name for part in given.only):
            continue
        file = FOLDER / f"{cell.name.replace(', ', '_').replace(' ', '-')}.json"
        told = json.loads(file.read_text()) if file.exists() and not given.quick else None
        if told is None and not given.table:
            drawn = range(given.quick or studies(cell))
            told = {"seed": given.seed, "machine": description()}
            told |= figures([study(cell, number, given.seed) for number in drawn])
            if not given.quick:
                FOLDER.mkdir(exist_ok=True)
                part = file.with_suffix(".part")
                part.write_text(json.dumps(told) + "\n")
                part.replace(file)
        if told is not None:
            table.add_row(*row(cell, told))
            if given.quick:
                print(*row(cell, told), sep=" | ", flush=True)
    if not given.quick:
        out.print(table)


if __name__ == "__main__":
    main()
