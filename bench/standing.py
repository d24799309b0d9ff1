"""Is a loop of choices as sure as it is right? `python bench/standing.py`.

Studies are drawn: people who choose among items, asked what the loop asks, for the best one. Of each, P(the likeliest
favourite is the best) as `Loop.standing` has it is compared with how often it is the best: of all people together, and
of one of them. What utilities were drawn from is not told to the model. Prints a table and writes
bench/results/standing.json; `--quick` takes a tenth of the studies and writes nothing.
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

from heedful.learners.preference_gp import HierarchicalGP
from heedful.preferences.standing import standing
from heedful.spaces_pairs import Choice, Pool

ITEMS, SPREADS, APART = 12, (0.5, 1.0, 2.0, 3.0), 0.3
out = Console(width=120)


class Study(NamedTuple):
    people: int
    answers: int  # of each
    studies: int


STUDIES = (Study(1, 20, 100), Study(1, 50, 100), Study(6, 20, 50))


def answered(study: Study, spread: float, rng: np.random.Generator) -> tuple[Any, Any, Any]:
    """The learner, its state after the answers, and the true utilities (people x ITEMS): what all like, and where there
    are several, APART of its spread of their own."""
    own = APART if study.people > 1 else 0.0
    F = spread * (rng.standard_normal(ITEMS) + own * rng.standard_normal((study.people, ITEMS)))
    learner = HierarchicalGP(Choice(ITEMS), rule="eubo")
    state, asked = learner.init(rng), [np.empty((0, 2), np.int64) for _ in F]
    for _ in range(study.answers):
        for u, f in enumerate(F):
            pair = np.sort(learner.question(state, u, np.arange(ITEMS), 2, rng, asked[u]))
            asked[u] = np.vstack([asked[u], pair])
            y = pair[rng.permutation(2)]
            state = learner.update(state, Pool(u, y[None]), y, int(f[y[0]] - f[y[1]] + rng.standard_normal() < 0.0))
    return learner, state, F


def judged(study: Study, spread: float, studies: int) -> dict[str, Any]:
    """What was said, and what was true."""
    found: dict[str, list[tuple[float, bool]]] = {"all": [], "one": []}
    for k in range(studies):
        learner, state, F = answered(study, spread, np.random.default_rng([k, round(10 * spread)]))
        for whose, users, truth in (("all", np.arange(study.people), F.mean(axis=0)), ("one", np.array([0]), F[0])):
            best = standing(*learner.stands(state, users)).best
            found[whose].append((float(best.max()), bool(best.argmax() == truth.argmax())))
    row: dict[str, Any] = {**study._asdict(), "studies": studies, "spread": spread}
    for whose, each in found.items():
        said, right = np.array(each).T
        sure = said >= 0.9
        row[whose] = {
            "said": float(said.mean()), "right": float(right.mean()), "sure": int(sure.sum()),
            "right where sure": int(right[sure].sum()),
        }  # fmt: skip
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a tenth of the studies; write nothing")
    quick = parser.parse_args().quick
    table = Table(title=f"{ITEMS} items: P(best) said / true; (right where it said .9 and more)")
    for name in ("people", "answers of each", "studies", "spread", "all together", "one of them"):
        table.add_column(name, justify="right")
    rows = []
    for study in STUDIES:
        for spread in SPREADS:
            row = judged(study, spread, study.studies // 10 if quick else study.studies)
            rows.append(row)
            told = [
                f"{one['said']:.2f} / {one['right']:.2f} ({one['right where sure']} of {one['sure']})"
                for one in (row["all"], row["one"])
            ]
            table.add_row(f"{study.people}", f"{study.answers}", f"{row['studies']}", f"{spread:g}", *told)
    out.print(table)
    if not quick:
        record("standing", {"items": ITEMS, "rows": rows})


if __name__ == "__main__":
    main()
