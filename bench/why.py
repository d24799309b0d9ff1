"""How long `Loop.why` takes: with feedback left out of the fold one by one, and to first order.

`python bench/why.py` writes bench/results/why.json; with `--only LEARNER` its rows alone, with their commit, take their
place there. Loops of each kind are taught n lists or pairs of 20 items with 10
features (ratings: of items by number); the last decision's first item is asked about, with `budget` without limit and
with 0. Times are CPU seconds, the least of some repetitions.
"""

from __future__ import annotations

import argparse
import json
import math
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from machine import ROOT, description, record
from rich.console import Console
from rich.table import Table

from heedful import infer
from heedful.loop import Loop
from heedful.loop.settings import Settings

ITEMS, FEATURES, PEOPLE = 20, 10, 5
KINDS: dict[str, tuple[dict[str, Any], Callable[[tuple[str, ...], Any], dict[str, Any]], tuple[int, ...]]] = {
    "perceptron": (
        {"learner": "perceptron"},
        lambda shown, rng: {"clicks": [shown[rng.integers(1, 5)]]},
        (100, 300, 1_000),
    ),
    "posterior": (
        {"learner": "posterior"},
        lambda shown, rng: {"clicks": [shown[rng.integers(1, 5)]]},
        (30, 100, 300),
    ),
    "ordinal-logistic": (
        {"learner": "ordinal-logistic:n_ranks=5"},
        lambda shown, rng: {"grade": {shown[0]: int(rng.integers(1, 6))}},
        (30, 100, 300),
    ),
    "bmf": (
        {"settings": Settings(ratings=(1, 5), repeats=True)},
        lambda shown, rng: {"rating": {shown[0]: int(rng.integers(1, 6))}},
        (30, 100, 300),
    ),
    "hierarchical-gp": (
        {"settings": Settings(choices="best")},
        lambda shown, rng: {"choice": "first" if rng.random() < 0.5 else "second"},
        (10, 30, 100),
    ),
}


def taught(folder: Path, name: str, n: int) -> Loop:
    """Return a loop of this learner with `n` answered decisions, and one more, `last`."""
    how, answer, _ = KINDS[name]
    rng = np.random.default_rng(0)
    items = [
        {"id": f"i{j}", **{f"f{i}": float(z) for i, z in enumerate(rng.standard_normal(FEATURES))}}
        for j in range(ITEMS)
    ]
    plain = "settings" in how
    encoding = None if plain else infer(items, identifier="id")
    loop = Loop.create(folder, encoding=encoding, items=[{"id": row["id"]} for row in items] if plain else items, **how)
    for t in range(n):
        d = loop.decide(id=f"d{t}", person=f"p{t % PEOPLE}")
        loop.feedback(d.id, id=f"e{t}", **answer(d.shown, rng))
    loop.decide(id="last", person="p0")
    return loop


def cpu(work: Callable[[], Any]) -> tuple[float, Any]:
    """Return the least CPU seconds of `work` and its last result: of three repetitions, of one if it takes long."""
    best, found = math.inf, None
    for _ in range(3):
        began = time.process_time()
        found = work()
        best = min(best, time.process_time() - began)
        if best > 2.0:
            break
    return best, found


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--only", choices=KINDS, metavar="LEARNER")
    only = parser.parse_args().only
    path = ROOT / "bench" / "results" / "why.json"
    before = json.loads(path.read_text()) if only else {}
    results = [row for row in before.get("runs", []) if row["learner"] in KINDS and row["learner"] != only]
    own = {"commit": description()["commit"]} if only else {}
    table = Table("learner", "feedback", "left out, s", "first order, s", "method of that")
    for name in [only] if only else KINDS:
        for n in KINDS[name][2]:
            with tempfile.TemporaryDirectory() as folder, taught(Path(folder) / "l", name, n) as loop:
                known = loop.projection.find_decision("last")
                assert known is not None
                item = known.names[known.record.shown[0]]
                exact, told = cpu(lambda: loop.why("last", item, budget=math.inf))
                assert told.events_by == "leave-one-out"
                quick, other = cpu(lambda: loop.why("last", item, budget=0.0))
            results.append({"learner": name, "n": n, "exact": exact, "quick": quick, "method": other.events_by} | own)
            table.add_row(name, f"{n:,}", f"{exact:.3f}", f"{quick:.3f}", other.events_by)
    Console().print(table)
    record("why", before | {"items": ITEMS, "features": FEATURES, "people": PEOPLE, "runs": results})


if __name__ == "__main__":
    main()
