"""Loops of ratings and of lists: import of all that people said, start, undo and forget, in seconds.

    .venv/bin/python bench/undo.py [--ratings N ...] [--lists N ...] [--only-print]

Ratings are drawn at random for people and items in proportion, 2 people and 1 / 5 of an item for each; a loop of lists
has 10,000 items with 50 features, of which each decision shows 20 and two are clicked. A size that is in
bench/results/undo.json already is not measured again at the same commit. Every step but the import is done in one
process, whose first undo reads the log and loads compiled code; the others find it in memory. What is undone is among
the first hundredth of what was said, so all the rest is learned again. Seconds are of the clock and of the processor.
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from loop import CANDIDATES, N_ITEMS, new_loop
from machine import ROOT, description, record

from heedful import Loop, Settings

STEPS = ("import", "start", "start from the log", "undo, first", "undo", "undo of the last", "forget")


def write_ratings(folder: Path, n: int) -> Path:
    """Make a loop of ratings that has learned nothing; return a table of n ratings."""
    with Loop.create(folder / "loop", learner="bmf", settings=Settings(ratings=(1, 5))):
        pass
    rng, file = np.random.default_rng(0), folder / "ratings.csv"
    columns = rng.integers(2 * n, size=n), rng.integers(max(n // 5, 10), size=n), rng.integers(1, 6, size=n)
    with open(file, "w") as out:
        print("user,item,rating", file=out)
        for user, item, rating in zip(*columns):
            print(f"u{user},i{item},{rating}", file=out)
    return file


def write_lists(folder: Path, n: int) -> Path:
    """Make a loop of lists that has learned nothing; return a file of n decisions with two clicks each."""
    with new_loop(folder / "loop", "perceptron") as loop:
        names = list(loop.items)
    rng, step, file = np.random.default_rng(1), N_ITEMS // CANDIDATES, folder / "events.jsonl"
    with open(file, "w") as out:
        for i in range(n):
            chosen = rng.integers(0, step, CANDIDATES) + step * np.arange(CANDIDATES)
            shown = [names[j] for j in rng.permutation(chosen).tolist()]
            decision = {"kind": "decision", "id": f"d{i}", "person": f"p{i % 997}", "candidates": shown, "shown": shown}
            clicks = [shown[7 * i % CANDIDATES], shown[(7 * i + 3) % CANDIDATES]]
            print(json.dumps(decision), file=out)
            print(json.dumps({"kind": "feedback", "id": f"e{i}", "decision": f"d{i}", "clicks": clicks}), file=out)
    return file


WRITE = {"ratings": write_ratings, "lists": write_lists}


def seconds(step: Callable[[], Any]) -> dict[str, float]:
    """The seconds of a step."""
    wall, cpu = time.perf_counter(), time.process_time()
    step()
    return {"s": round(time.perf_counter() - wall, 2), "cpu_s": round(time.process_time() - cpu, 2)}


def imported(folder: Path, file: Path) -> dict[str, float]:
    """The seconds of `heedful import`, a process of its own."""
    run = "from heedful.cli import main; main()"
    command = [sys.executable, "-c", run, "import", str(folder / "loop"), str(file), "--json"]
    wall, before = time.perf_counter(), os.times()
    subprocess.run(command, check=True, capture_output=True)
    after = os.times()
    cpu = after.children_user + after.children_system - before.children_user - before.children_system
    return {"s": round(time.perf_counter() - wall, 2), "cpu_s": round(cpu, 2)}


def measured(kind: str, n: int) -> dict[str, dict[str, float]]:
    """The seconds of each step with a loop of this kind, in which n answers were given."""
    found = dict[str, dict[str, float]]()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        file = WRITE[kind](folder, n)
        found["import"] = imported(folder, file)
        found["start"] = seconds(lambda: Loop.open(folder / "loop").close())
        for snapshot in (folder / "loop").glob("snapshot-*"):
            snapshot.unlink()
        found["start from the log"] = seconds(lambda: Loop.open(folder / "loop").close())
        with Loop.open(folder / "loop") as loop:
            log = loop.projection.log
            given = [event.id for event in log.events(kinds=["feedback"])]
            [person] = {event.subject for event in log.many(log.places("decision")[n // 2 : n // 2 + 1])}
            found["undo, first"] = seconds(lambda: loop.undo(given[n // 100]))
            found["undo"] = seconds(lambda: loop.undo(given[n // 200]))
            found["undo of the last"] = seconds(lambda: loop.undo(given[-1]))
            found["forget"] = seconds(lambda: loop.forget(str(person)))
    return found


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--ratings", type=int, nargs="*", default=[5_000, 20_000, 50_000])
    parser.add_argument("--lists", type=int, nargs="*", default=[5_000, 50_000])
    parser.add_argument("--only-print", action="store_true", help="print what is in the file; measure nothing")
    given = parser.parse_args()
    file, about = ROOT / "bench" / "results" / "undo.json", description()
    there = json.loads(file.read_text()) if file.exists() else {}
    same = there.get("machine", {}).get("commit") == about["commit"] or given.only_print
    figures: dict[str, Any] = {"machine": there["machine"] if same and there else about}
    figures |= {kind: dict(there.get(kind, {})) if same else {} for kind in WRITE}
    for kind, sizes in {} if given.only_print else {"ratings": given.ratings, "lists": given.lists}.items():
        for n in sizes:
            if str(n) not in figures[kind]:
                figures[kind][str(n)] = measured(kind, n)
                record("undo", figures)
    for kind in WRITE:
        print(f"\n{kind:20}" + "".join(f"{int(n):>18,}" for n in figures[kind]))
        for step in STEPS:
            told = [f"{each[step]['s']:.2f} ({each[step]['cpu_s']:.2f})" for each in figures[kind].values()]
            print(f"{step:20}" + "".join(f"{cell:>18}" for cell in told))


if __name__ == "__main__":
    main()
