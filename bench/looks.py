"""How often the intervals of an evaluation miss if they are looked at again and again while the same people come back.

`python bench/looks.py` writes bench/results/looks.json. People answer 0 or 1, their share of ones is 1/2 or differs
from person to person (uniform from 0 to 1); each person's mean counts alike, as in an evaluation. `ratio` is looked at
after each hundredth of the answers (alpha = .05). A run has missed if 1/2 was outside at any look, and at the last.
`--quick` takes a tenth of the runs and writes nothing.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
from machine import record
from rich.console import Console
from rich.table import Table

from heedful.evaluation.ratio import ratio

ALPHA, LOOKS = 0.05, 100
CASES = ((1_000, 1_000, False), (200, 5_000, False), (1_000, 5_000, False), (1_000, 5_000, True))
"""(people, answers, whether they differ); as many answers as people: each person answers once"""


def missed(people: int, answers: int, differ: bool, rng: np.random.Generator) -> tuple[bool, bool]:
    """Return whether one run missed at any look, and whether it did at the last."""
    share = rng.random(people) if differ else np.full(people, 0.5)
    who = np.arange(people) if people == answers else rng.integers(people, size=answers)
    said = rng.random(answers) < share[who]
    _, first = np.unique(who, return_index=True)
    number = np.empty(people, np.int64)  # in order of arrival
    number[who[np.sort(first)]] = np.arange(first.size)
    ever = last = False
    for n in range(answers // LOOKS, answers + 1, answers // LOOKS):
        each = number[who[:n]]
        means = np.bincount(each, said[:n]) / np.bincount(each)
        _, low, high = ratio(means, np.ones(means.size), alpha=ALPHA)
        last = not low <= 0.5 <= high
        ever |= last
    return ever, last


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a tenth of the runs, and nothing is written")
    quick = parser.parse_args().quick
    runs = 30 if quick else 300
    figures: dict[str, Any] = {"alpha": ALPHA, "looks": LOOKS, "runs": runs}
    table = Table("people", "answers", "tastes", "missed ever", "missed at the last look")
    for people, answers, differ in CASES:
        found = np.mean(
            [missed(people, answers, differ, np.random.default_rng([people, run])) for run in range(runs)], 0
        )
        name = f"{people} people, {answers} answers{', who differ' if differ else ''}"
        figures[name] = {"ever": round(float(found[0]), 4), "last": round(float(found[1]), 4)}
        table.add_row(
            f"{people:,}", f"{answers:,}", "differ" if differ else "alike", *(f"{each:.3f}" for each in found)
        )
    Console().print(table)
    if not quick:
        record("looks", figures)


if __name__ == "__main__":
    main()
