"""How often the intervals of an evaluation miss what is true, in loops of five sorts and in tables, and what mean
weights say.

`python bench/intervals.py` writes a file for each cell into bench/results/intervals, and leaves out cells that are
there. Loops (`LOGS` of `tests/logged.py`): lists that another system drew uniformly, random swaps, lists drawn
around a fixed ranking (Plackett-Luce), a loop that learns and draws, and one that shows the same list to everybody. 300
lists are shown to 250 people of one or two sorts, whose tastes are known. A ranker that the log was not made by is
evaluated after 100, 200 and 300 lists; told is the share of logs in which any of its intervals ever missed the true
value (alpha = .05 each), which may be .05 and three standard errors. Then the mean of its mean weights over the logs,
with its standard error; of logs whose probabilities are claimed to be a quarter, or three times, of what they are, a
tenth as many, the reasons why there is no number.

Tables of single items (`TABLES` of the same file), with actions that are hardly ever shown, rewards that are amounts of
which few are large, wrong probabilities in both directions, and sound ones: in how many the value was refused, and why;
of the others in how many the interval has a lower and an upper end, which of them missed, and the verdicts.

`--logs N` sets the number of logs of each cell, `--only NAME` takes one cell; `--quick` takes 20 and writes nothing.
"""

from __future__ import annotations

import argparse
import math
import re
import shutil
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
from machine import ROOT, record
from rich.console import Console
from rich.progress import track

sys.path += [str(ROOT / "tests")]
from logged import ALPHA, LOGS, LOOKS_AT, SOUND, TABLES, Looked, look, look_at_table

SEED = 405007
"""Drawn after the intervals were made as they are."""
FAULTY = [name for name in LOGS if name.startswith("chances said")]


def looked(name: str, seed: int) -> Looked:
    """Return what was found in one log, made in memory if the machine has such a place.

    What is not in a log at all is not there after 100 lists."""
    folder = Path(tempfile.mkdtemp(dir="/dev/shm" if Path("/dev/shm").is_dir() else None))
    try:
        return look(name, seed, folder / "loop", LOOKS_AT if name != "deterministic" else LOOKS_AT[:1])
    finally:
        shutil.rmtree(folder)


def sound(found: list[Looked]) -> dict[str, Any]:
    """Return the share of logs whose intervals missed, and the means of mean weights, of logs that tell something."""
    rows: dict[str, Any] = {}
    for key in sorted({key for each in found for key in each.missed}):
        told = [each.missed[key] for each in found if key in each.missed]
        most = ALPHA + 3.0 * math.sqrt(ALPHA * (1.0 - ALPHA) / len(told))
        rows[": ".join(key)] = {"logs": len(told), "missed": round(float(np.mean(told)), 4), "at most": round(most, 4)}
    return rows | weights(found)


def weights(found: list[Looked]) -> dict[str, Any]:
    """Return, for each value of lists, the mean over logs of the mean weight, its standard error, and the share of
    logs with a warning."""
    rows: dict[str, Any] = {}
    for j, one in enumerate(found[0].last.measures):
        values = [each.last.learners[1].values[j] for each in found]
        told = [value.mean_weight for value in values if value.mean_weight is not None]
        if told:
            error = float(np.std(told)) / math.sqrt(len(told))
            warned = float(np.mean([bool(value.warning) for value in values]))
            rows[f"{one.name}: mean weight"] = {
                "logs": len(told), "mean": round(float(np.mean(told)), 4), "standard error": round(error, 4),
                "warned": round(warned, 4),
            }  # fmt: skip
    return rows


def refusals(found: list[Looked]) -> dict[str, Any]:
    """Return how many logs gave the other ranker any number, and the reasons why not."""
    values = [value for each in found for value in each.last.learners[1].values]
    numbers = sum(any(value.value is not None for value in each.last.learners[1].values) for each in found)
    return {"numbers": numbers, "reasons": dict(Counter(value.refused for value in values))}


def table(name: str, logs: int) -> dict[str, Any]:
    """Return what was said of the target in so many tables of this name."""
    found = [look_at_table(name, (SEED, list(TABLES).index(name), number)) for number in range(logs)]
    ended = [each for each in found if not each.refused]
    # A reason without its numbers: what the mean weight is differs from table to table.
    reasons = Counter(re.sub(r"[\d.]+|always \w", "#", each.refused).split(", or logged")[0] for each in found)
    row: dict[str, Any] = {
        "seed": SEED, "rows": TABLES[name].rows, "truth": TABLES[name].truth, "known": dict(TABLES[name].options),
        "refused": share([bool(each.refused) for each in found]), "reasons": dict(reasons),
    }  # fmt: skip
    if ended:
        row["missed"] = share([any(each.missed) for each in ended])
        for j, end in enumerate(("lower end", "upper end")):
            row[end] = {"there": int(sum(each.told[j] for each in ended)),
                        "missed": share([each.missed[j] for each in ended if each.told[j]])}  # fmt: skip
        row["width"] = round(float(np.median([each.width for each in ended])), 4)
        row["verdicts"] = dict(Counter(each.verdict for each in ended))
    return row


def share(of: list[bool]) -> dict[str, float]:
    """Return the number of cases, the share of them in which it is so, and its standard error."""
    p = float(np.mean(of)) if of else 0.0
    return {"of": len(of), "share": round(p, 4), "standard error": round(math.sqrt(p * (1.0 - p) / max(len(of), 1)), 4)}


def loop(name: str, logs: int) -> dict[str, Any]:
    """Return what was said of the other ranker in so many loops of this name."""
    found = [looked(name, SEED + number) for number in range(max(logs // 10, 1) if name in FAULTY else logs)]
    told = sound(found) if name in SOUND else refusals(found)
    return {"seed": SEED, "logs": len(found), **told, **(weights(found) if name in FAULTY else {})}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="20 logs of each cell; nothing is written")
    parser.add_argument("--logs", type=int, default=1_000)
    parser.add_argument("--only", choices=[*LOGS, *TABLES], action="append")
    asked = parser.parse_args()
    screen = Console(width=120)
    (ROOT / "bench" / "results" / "intervals").mkdir(exist_ok=True)
    for name in track(asked.only or [*TABLES, *LOGS], "cells", console=screen):
        cell = "intervals/" + re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
        if not asked.quick and (ROOT / "bench" / "results" / f"{cell}.json").exists():
            continue
        found = (table if name in TABLES else loop)(name, 20 if asked.quick else asked.logs)
        if not asked.quick:
            record(cell, {"alpha": ALPHA, "name": name, **found})
        screen.print(name, found)


if __name__ == "__main__":
    main()
