"""How often the intervals of an evaluation miss what is true, in whole logs of five sorts, and what mean weights say.

`python bench/intervals.py` writes bench/results/intervals.json. 1,000 loops for each sort of log (`tests/logged.py`):
lists that another system drew uniformly, swaps of fair pairs, lists drawn around a fixed ranking (Plackett-Luce), a
loop that learns and draws, and one that shows the same list to everybody. 300 lists are shown to 250 people of one or
two sorts, whose tastes are known. A ranker that the log was not made by is evaluated after 100, 200 and 300 lists; told
is the share of logs in which any of its intervals ever missed the true value (alpha = .05 each), which may be .05 and
three standard errors. Then the mean of its mean weights over the logs, with its standard error, and the share of logs
that warned of it; the same of 100 logs whose probabilities are claimed to be a quarter, or three times, of what they
are. Figures are written after each 50 logs of all sorts.

`--logs N` sets the number of logs of each sort, `--only NAME` takes one sort; `--quick` takes 20 and writes nothing.
"""

from __future__ import annotations

import argparse
import json
import math
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
from rich.table import Table

sys.path += [str(ROOT / "tests")]
from logged import ALPHA, LOGS, LOOKS_AT, SOUND, Looked, look

ROUND = 50
"""The number of logs of each sort after which the figures are written."""
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


def before() -> dict[str, dict[str, Any]]:
    """Return the figures that were written before."""
    path = ROOT / "bench" / "results" / "intervals.json"
    found = json.loads(path.read_text()) if path.exists() else {}
    return {name: found[name] for name in LOGS if name in found}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="20 logs of each sort; nothing is written")
    parser.add_argument("--logs", type=int, default=1_000)
    parser.add_argument("--only", choices=LOGS, action="append")
    asked = parser.parse_args()
    most, screen = 20 if asked.quick else asked.logs, Console(width=120)
    names = asked.only or list(LOGS)
    found: dict[str, list[Looked]] = {name: [] for name in names}
    results = {} if asked.quick else before()
    for begin in track(range(0, most, ROUND), "logs", console=screen):
        for name in names:
            logs = max(most // 10, 1) if name in FAULTY else most
            found[name] += [looked(name, seed) for seed in range(begin, min(begin + ROUND, logs))]
            told = sound(found[name]) if name in SOUND else refusals(found[name])
            results[name] = {"logs": len(found[name]), **told, **(weights(found[name]) if name in FAULTY else {})}
        if not asked.quick:
            record("intervals", {"alpha": ALPHA, **{name: results[name] for name in LOGS if name in results}})
    screen.print(results)
    table = Table("log", "", "logs", "missed", "at most")
    for name in SOUND:
        for key, row in results.get(name, {}).items():
            if key != "logs" and "missed" in row:
                table.add_row(name, key, *(str(value) for value in row.values()))
    screen.print(table)


if __name__ == "__main__":
    main()
