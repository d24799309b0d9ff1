"""Is `heedful rank` as sure as it is right? `python bench/ranking.py`.

Studies are drawn: people with utilities, who choose or put in order. Of each, what is said (P(the likeliest favourite
is the best), P(an item is better than the next), bars of 90 %) is compared with what is true: of one person, with
their utilities; of several, with the mean of those that people were drawn from. Nothing of it is told to the model.
Prints a table and writes bench/results/ranking.json; `--quick` takes a tenth of the studies and writes nothing.
"""

from __future__ import annotations

import os
import sys

if os.environ.get("OPENBLAS_NUM_THREADS") != "1":  # before numpy starts its threads
    os.environ["OPENBLAS_NUM_THREADS"] = "1"
    os.execv(sys.executable, [sys.executable, *sys.argv])

import argparse
from typing import Any, NamedTuple

import numpy as np
from machine import record
from rich.console import Console
from rich.table import Table

from heedful.data.comparisons import Comparison, tabulate
from heedful.inference.estimation import estimate
from heedful.boards.standing import standing

ITEMS = 8
out = Console(width=120)
Array = Any


class Study(NamedTuple):
    people: int
    answers: int  # of each; 0: each puts all items in order, once
    studies: int


STUDIES = (Study(1, 15, 200), Study(1, 40, 200), Study(8, 30, 60), Study(30, 15, 60), Study(100, 0, 40))


def drawn(study: Study, rng: np.random.Generator) -> tuple[Array, list[Comparison[str]]]:
    """True utilities (ITEMS,), and the answers."""
    if study.people == 1:
        m = 1.5 * np.exp(0.5 * rng.standard_normal()) * rng.standard_normal(ITEMS)
        F = m[None]
    else:
        m, B = rng.standard_normal(ITEMS), rng.standard_normal((ITEMS, 2))
        F = rng.multivariate_normal(m, 0.5 * B @ B.T + 0.3 * np.eye(ITEMS), study.people)
    told = []
    for u, f in enumerate(F):
        if study.answers == 0:
            order = np.argsort(-(f + rng.standard_normal(ITEMS) / np.sqrt(2.0)))
            told.append(Comparison(str(u), tuple((str(i),) for i in order)))
        for _ in range(study.answers):
            a, b = rng.choice(ITEMS, 2, replace=False)
            if f[a] - f[b] + rng.standard_normal() < 0.0:
                a, b = b, a
            told.append(Comparison(str(u), ((str(a),), (str(b),))))
    return m, told


def judged(study: Study, studies: int) -> dict[str, Any]:
    """What was said, and what was true, over so many studies."""
    rng = np.random.default_rng(1)
    best, is_best, better, is_better, held, scale = [], [], [], [], [], []
    for _ in range(studies):
        m, told = drawn(study, rng)
        found = estimate(tabulate(told, map(str, range(ITEMS))))
        got = standing(found.posterior)
        favourite = int(got.best.argmax())
        best.append(got.best[favourite])
        is_best.append(favourite == m.argmax())
        better += got.better.tolist()
        is_better += (m[got.order[:-1]] > m[got.order[1:]]).tolist()
        centred = m - m.mean()
        held.append((np.abs(got.mean - centred) <= 1.645 * got.sd).mean())
        scale.append((got.mean @ centred) / (centred @ centred))
    sure = np.array(better) >= 0.9
    return {
        **study._asdict(),
        "studies": studies,
        "best_said": float(np.mean(best)),
        "best_true": float(np.mean(is_best)),
        "better_said": float(np.mean(better)),
        "better_true": float(np.mean(is_better)),
        "sure": int(sure.sum()),
        "sure_said": float(np.array(better)[sure].mean()),
        "sure_true": float(np.array(is_better)[sure].mean()),
        "bars_hold": float(np.mean(held)),
        "scale": float(np.mean(scale)),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a tenth of the studies; write nothing")
    quick = parser.parse_args().quick
    table = Table(title=f"{ITEMS} items: what is said, and how often it is true")
    told = "P(best)", "P(over the next)", "where >= .9", "90 % bars hold"
    for name in ("people", "answers of each", "studies", *told):
        table.add_column(name, justify="right")
    rows = []
    for study in STUDIES:
        row = judged(study, max(study.studies // 10, 4) if quick else study.studies)
        rows.append(row)
        table.add_row(
            f"{study.people}", f"{study.answers}" if study.answers else "one order", f"{row['studies']}",
            f"{row['best_said']:.2f} / {row['best_true']:.2f}", f"{row['better_said']:.3f} / {row['better_true']:.3f}",
            f"{row['sure_said']:.3f} / {row['sure_true']:.3f} ({row['sure']})", f"{row['bars_hold']:.2f}",
        )  # fmt: skip
    out.print(table)
    if not quick:
        record("ranking", {"items": ITEMS, "rows": rows})


if __name__ == "__main__":
    main()
