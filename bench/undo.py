"""A loop of each kind of feedback: import of all that people said, start, undo and forget, in seconds.

    .venv/bin/python bench/undo.py [--only KIND] [--database URL] [--only-print]

Ratings are drawn at random for people and items in proportion, 2 people and 1 / 5 of an item for each. Loops of lists
have 10,000 items with 50 features, of which each decision shows 20 and two are clicked; grades, and one of a few, are
of these items, too. Choices are between 100 items. A size that is in bench/results/undo.json already is not measured
again at the same commit. Every step but the import is done in one process, whose first undo reads the log and loads
compiled code; the others find it in memory. What is undone is among the first hundredth of what was said, so all the
rest is learned again. With `--database`, the loop is copied into this PostgreSQL and started there, too, from the log.
Seconds are of the clock and of the processor.
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
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import psycopg

from loop import CANDIDATES, N_ITEMS, new_loop
from machine import ROOT, description, record

from heedful import Loop, Settings

RUN = "from heedful.cli import main; main()"
STEPS = (
    "import",
    "start",
    "start from the log",
    "start from PostgreSQL",
    "undo, first",
    "undo",
    "undo of the last",
    "forget",
)


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


def write_lines(
    folder: Path, n: int, learner: str, answer: Callable[[int, list[str]], dict[str, Any]], shown: int = CANDIDATES
) -> Path:
    """Make a loop of lists that has learned nothing; return a file of n decisions with an `answer` to each."""
    with new_loop(folder / "loop", learner, k=shown) as loop:
        names = list(loop.items)
    rng, step, file = np.random.default_rng(1), N_ITEMS // CANDIDATES, folder / "events.jsonl"
    with open(file, "w") as out:
        for i in range(n):
            chosen = rng.integers(0, step, CANDIDATES) + step * np.arange(CANDIDATES)
            among = [names[j] for j in rng.permutation(chosen).tolist()]
            about = {"kind": "decision", "id": f"d{i}", "person": f"p{i % 997}"}
            print(json.dumps({**about, "candidates": among, "shown": among[:shown]}), file=out)
            about = {"kind": "feedback", "id": f"e{i}", "decision": f"d{i}"}
            print(json.dumps({**about, **answer(i, among[:shown])}), file=out)
    return file


def write_choices(folder: Path, n: int) -> Path:
    """Make a loop of choices between two of 100 items that has learned nothing; return a file of n of them."""
    names = [f"i{j}" for j in range(100)]
    with Loop.create(folder / "loop", items=[{"id": name} for name in names], settings=Settings(choices="best")):
        pass
    rng, file = np.random.default_rng(1), folder / "events.jsonl"
    with open(file, "w") as out:
        for i in range(n):
            two = [names[j] for j in rng.choice(100, 2, replace=False)]
            about = {"kind": "decision", "id": f"d{i}", "person": f"p{i % 97}", "candidates": two, "shown": two}
            print(json.dumps(about), file=out)
            said = {"choice": "first" if rng.random() < 0.7 else "second"}
            print(json.dumps({"kind": "feedback", "id": f"e{i}", "decision": f"d{i}", **said}), file=out)
    return file


def clicks(i: int, shown: list[str]) -> dict[str, Any]:
    return {"clicks": [shown[7 * i % CANDIDATES], shown[(7 * i + 3) % CANDIDATES]]}


def grade(i: int, shown: list[str]) -> dict[str, Any]:
    return {"grade": {shown[0]: 1 + 7 * i % 5}}


def click(i: int, shown: list[str]) -> dict[str, Any]:
    return {"clicks": shown if i % 3 else []}


WRITE: dict[str, Callable[[Path, int], Path]] = {
    "ratings": write_ratings,
    "lists, perceptron": partial(write_lines, learner="perceptron", answer=clicks),
    "lists, posterior": partial(write_lines, learner="posterior", answer=clicks),
    "grades": partial(write_lines, learner="ordinal-logistic:n_ranks=5", answer=grade, shown=1),
    "one of a few": partial(write_lines, learner="posterior", answer=click, shown=1),
    "choices": write_choices,
}
SIZES = {name: [5_000, 50_000] for name in WRITE} | {"ratings": [5_000, 20_000, 50_000], "choices": [500, 2_000]}


def seconds(step: Callable[[], Any]) -> dict[str, float]:
    """The seconds of a step."""
    wall, cpu = time.perf_counter(), time.process_time()
    step()
    return {"s": round(time.perf_counter() - wall, 2), "cpu_s": round(time.process_time() - cpu, 2)}


def imported(folder: Path, file: Path) -> dict[str, float]:
    """The seconds of `heedful import`, a process of its own."""
    command = [sys.executable, "-c", RUN, "import", str(folder / "loop"), str(file), "--json"]
    wall, before = time.perf_counter(), os.times()
    subprocess.run(command, check=True, capture_output=True)
    after = os.times()
    cpu = after.children_user + after.children_system - before.children_user - before.children_system
    return {"s": round(time.perf_counter() - wall, 2), "cpu_s": round(cpu, 2)}


def started(place: str) -> dict[str, float]:
    """The seconds in which a loop is opened."""
    return seconds(lambda: Loop.open(place).close())


def copied(folder: Path, to: str) -> None:
    """Copy the loop into the database, where it has no snapshot."""
    file = str(folder / "all.jsonl")
    with Loop.open(folder / "loop") as loop:
        told = loop.manifest
    with Loop.create(to, learner=told.learner, settings=told.settings, encoding=told.encoding):
        pass
    for command in (["export", str(folder / "loop"), file], ["import", to, file]):
        subprocess.run([sys.executable, "-c", RUN, *command], check=True, capture_output=True)
    with psycopg.connect(to.partition("#")[0]) as database:
        database.execute("DELETE FROM heedful.snapshot")


def measured(kind: str, n: int, database: str | None) -> dict[str, dict[str, float]]:
    """The seconds of each step with a loop of this kind, in which n answers were given."""
    found = dict[str, dict[str, float]]()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        file = WRITE[kind](folder, n)
        found["import"] = imported(folder, file)
        found["start"] = started(str(folder / "loop"))
        for snapshot in (folder / "loop").glob("snapshot-*"):
            snapshot.unlink()
        found["start from the log"] = started(str(folder / "loop"))
        if database is not None:
            place = f"{database}#{kind.replace(', ', '-').replace(' ', '-')}-{n}"
            copied(folder, place)
            found["start from PostgreSQL"] = started(place)
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
    parser.add_argument("--only", choices=WRITE, help="this kind alone")
    parser.add_argument("--database", metavar="URL", help="an empty database of PostgreSQL")
    parser.add_argument("--only-print", action="store_true", help="print what is in the file; measure nothing")
    given = parser.parse_args()
    file, about = ROOT / "bench" / "results" / "undo.json", description()
    there = json.loads(file.read_text()) if file.exists() else {}
    same = there.get("machine", {}).get("commit") == about["commit"] or given.only_print
    figures: dict[str, Any] = {"machine": there["machine"] if same and there else about}
    figures |= {kind: dict(there.get(kind, {})) if same else {} for kind in WRITE}
    for kind, sizes in {} if given.only_print else SIZES.items():
        for n in sizes if given.only in (None, kind) else ():
            if str(n) not in figures[kind]:
                figures[kind][str(n)] = measured(kind, n, given.database)
                record("undo", figures)
    for kind in WRITE:
        print(f"\n{kind:22}" + "".join(f"{int(n):>18,}" for n in figures[kind]))
        for step in STEPS:
            there = [each[step] for each in figures[kind].values() if step in each]
            told = [f"{each['s']:.2f} ({each['cpu_s']:.2f})" for each in there]
            print(f"{step:22}" + "".join(f"{cell:>18}" for cell in told))


if __name__ == "__main__":
    main()
