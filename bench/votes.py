"""Do the bars of `heedful rank` hold where there are many votes? `python bench/votes.py`.

Votes are drawn from the model itself, without lapses: items with a spread of .6, two called equally good within .3;
pairs uniform, or skewed (an item's share falls as one over its rank). Of each study: the share of 90 % bars that hold,
the lapse rate and the scale that were found, and the correlation with the truth, next to that of a logistic
Bradley-Terry. Writes bench/results/votes/CELL.json while it goes and takes up where it was stopped; `--only CELL`,
`--table`, and `--quick`, which takes two studies a cell and writes nothing.
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

from heedful.inference.pairwise import pair_rows
from heedful.inference.estimation import infer_utilities

FOLDER = Path(__file__).parent / "results" / "votes"
SPREAD, STUDIES = 0.6, 20
SEED = 20261123
"""Drawn again after the priors were chosen, so that no study here had a part in choosing them."""
out = Console(width=120)


class Cell(NamedTuple):
    items: int
    votes: int
    """of all people"""
    skewed: bool = False
    people: int = 1
    width: float = 0.3

    @property
    def name(self) -> str:
        told = f"{self.people}-people" if self.people > 1 else "skewed" if self.skewed else "uniform"
        return f"{self.items}-items-{self.votes}-votes-{told}"


CELLS = [
    *[Cell(100, votes, skewed) for votes in (30_000, 300_000, 1_000_000) for skewed in (False, True)],
    Cell(30, 100_000, people=20_000, width=0.0),
    Cell(2_000, 1_000_000),
]


def study(cell: Cell, number: int) -> dict[str, float]:
    rng = np.random.default_rng([SEED, cell.items, cell.votes, cell.people, cell.skewed, number])
    n = cell.items
    truth = SPREAD * rng.standard_normal(n)
    share = rng.permutation(1.0 / np.arange(1, n + 1)) if cell.skewed else np.ones(n)
    share /= share.sum()
    a, b = rng.choice(n, (2, cell.votes), p=share)
    while (same := a == b).any():
        b[same] = rng.choice(n, int(same.sum()), p=share)
    gap = truth[a] - truth[b] + rng.standard_normal(cell.votes)
    won = gap > 0.0
    pairs = np.column_stack([np.where(won, a, b), np.where(won, b, a)])
    tied = np.abs(gap) < cell.width
    user = np.repeat(np.arange(cell.people), cell.votes // cell.people)
    start = time.process_time()
    found = infer_utilities(np.empty((n, 0)), cell.people, pair_rows(pairs, None, tied, user))
    seconds = time.process_time() - start
    got = found.average()
    error = (got.mean - got.mean.mean()) - (truth - truth.mean())
    centred = truth - truth.mean()
    return {
        "bars": float((np.abs(error) < 1.6449 * got.sd()).mean()),
        "lapse": float(np.median(found.noise.lapse)),
        "scale": float(centred @ (got.mean - got.mean.mean()) / (centred @ centred)),
        "correlation": float(np.corrcoef(got.mean, truth)[0, 1]),
        "bradley-terry": float(np.corrcoef(bradley_terry(n, pairs, tied), truth)[0, 1]),
        "seconds": seconds,
    }


def bradley_terry(n: int, pairs: Any, tied: Any) -> Any:
    """Logistic Bradley-Terry by Newton's steps, a tie as half a win for each, with a little ridge."""
    each = np.where(tied, 0.5, 1.0)
    win = np.bincount(pairs[:, 0] * n + pairs[:, 1], each, n * n).reshape(n, n)
    win += np.bincount(pairs[:, 1] * n + pairs[:, 0], 1.0 - each, n * n).reshape(n, n)
    met, u = win + win.T, np.zeros(n)
    for _ in range(30):
        p = 1.0 / (1.0 + np.exp(u[None, :] - u[:, None]))
        w = met * p * (1.0 - p)
        step = np.linalg.solve(np.diag(w.sum(axis=1) + 1e-3) - w, (win - met * p).sum(axis=1) - 1e-3 * u)
        u += step
        if np.abs(step).max() < 1e-9:
            break
    return u


def run(cell: Cell) -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    file = FOLDER / f"{cell.name}.json"
    had = json.loads(file.read_text())["studies"] if file.exists() else []
    while len(had) < STUDIES:
        had.append({name: round(value, 5) for name, value in study(cell, len(had)).items()})
        told = {**cell._asdict(), "spread": SPREAD, "machine": description(), "studies": had}
        part = file.with_suffix(".part")
        part.write_text(json.dumps(told, indent=1) + "\n")
        part.replace(file)


def row(cell: Cell, studies: list[dict[str, float]]) -> list[str]:
    bars, lapse, scale, ours, theirs, seconds = (
        np.array([each[name] for each in studies])
        for name in ("bars", "lapse", "scale", "correlation", "bradley-terry", "seconds")
    )
    error = bars.std(ddof=1) / np.sqrt(len(bars)) if len(bars) > 1 else np.nan
    return [
        cell.name, str(len(studies)), f"{bars.mean():.3f} +- {error:.3f}",
        f"{np.median(lapse):.4f} (most {lapse.max():.4f})",
        f"{scale.mean():.3f}", f"{(ours - theirs).mean():+.6f}", f"{seconds.mean():.1f}",
    ]  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="two studies a cell; write nothing")
    parser.add_argument("--table", action="store_true", help="print what there is")
    parser.add_argument("--only", metavar="CELL", action="append", help="cells whose name has this in it")
    given = parser.parse_args()
    drawn = Table(title="Votes: 90 % bars that hold, lapse rate (truth 0), scale, correlation beyond Bradley-Terry's")
    for name in ("cell", "studies", "bars", "lapse", "scale", "correlation", "CPU s"):
        drawn.add_column(name, justify="left" if name == "cell" else "right")
    for cell in CELLS:
        if given.only and not any(part in cell.name for part in given.only):
            continue
        file = FOLDER / f"{cell.name}.json"
        if not given.table and not given.quick:
            run(cell)
        studies = [study(cell, k) for k in range(2)] if given.quick else []
        if not given.quick and file.exists():
            studies = json.loads(file.read_text())["studies"]
        if studies:
            drawn.add_row(*row(cell, studies))
    out.print(drawn)


if __name__ == "__main__":
    main()
