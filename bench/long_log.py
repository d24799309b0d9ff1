"""A long log is written, folded one by one and in batches, exported and evaluated: time and memory.

    .venv/bin/python bench/long_log.py [--events N] [--folder DIR] [--only STAGE ...] [--keep]

Half of the events are decisions (20 candidates out of 10,000 items with 50 features), each followed by two clicks,
learned by a perceptron. Every stage is a process of its own, whose peak memory is measured; seconds of the clock and
of the processor. The two folds have to end in the same state, bit for bit.
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import argparse
import hashlib
import json
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from loop import CANDIDATES, N_ITEMS, new_loop
from machine import record

from heedful import Loop
from heedful.core.serialization import arrays_of
from heedful.io import export_lines
from heedful.loop import batch
from heedful.loop.log import Event, now
from heedful.loop.projection import Projection
from heedful.loop.records import DecisionRecord, FeedbackRecord, encode

STAGES = ("write", "fold one by one", "fold in batches", "export", "evaluate")


def write(path: Path, events: int) -> None:
    """A log of about so many events, appended as `decide` and `feedback` write them; nothing is learned meanwhile."""
    with new_loop(path, "perceptron") as loop:
        log, versions = loop.projection.log, list(loop.projection.catalogue.current.values())
        rng, step, head = np.random.default_rng(1), N_ITEMS // CANDIDATES, log.last()[0]
        at = now()
        for start in range(0, events // 2, 5000):
            made = []
            for i in range(start, min(start + 5000, events // 2)):
                chosen = (rng.integers(0, step, CANDIDATES) + step * np.arange(CANDIDATES)).tolist()
                shown = rng.permutation(CANDIDATES).tolist()
                known = DecisionRecord(
                    shown=shown, items=[versions[j] for j in chosen], learner="perceptron", probability=0.95
                )
                said = FeedbackRecord("clicks", [shown[7 * i % CANDIDATES], shown[(7 * i + 3) % CANDIDATES]])
                made.append(Event(head + 1, "decision", f"d{i}", at + i, f"p{i % 997}", None, 0, encode(known)))
                made.append(Event(head + 2, "feedback", f"e{i}", at + i, None, head + 1, 0, encode(said)))
                head += 2
            with log.writing(durable=False):
                log.append(made)


def fold(path: Path, batched: bool) -> dict[str, Any]:
    """Open the loop without any snapshot, which folds all of it."""
    for snapshot in path.glob("snapshot-*"):
        snapshot.unlink()
    if not batched:
        batch.LEAST = 2**62
    projection = Projection(path, None)
    digest = hashlib.sha256()
    for name, array in sorted(arrays_of(projection.model.shared).items()):
        digest.update(name.encode() + array.tobytes())
    told = {"state": digest.hexdigest()[:16], "moves": list(projection.moves), "notes": projection.notes}
    projection.close()
    return told


def stage(name: str, path: Path, events: int) -> dict[str, Any]:
    if name == "write":
        write(path, events)
        return {"megabytes": round((path / "log.db").stat().st_size / 1e6)}
    if name == "export":
        with Loop(path) as loop, open(os.devnull, "w") as out:
            lines = 0
            for line in export_lines(loop):
                out.write(json.dumps(line))
                lines += 1
        return {"lines": lines}
    if name == "evaluate":
        with Loop(path) as loop:
            [own] = loop.evaluate(loop.manifest.learner).learners
        return {"lessons": own.lessons}
    return fold(path, name == "fold in batches")


def measured(name: str, path: Path, events: int) -> dict[str, Any]:
    """What a stage tells, with its seconds and its memory, out of a process of its own."""
    command = [sys.executable, __file__, "--stage", name, "--folder", str(path), "--events", str(events)]
    start = time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{name}: {done.stderr}")
    return {"wall_s": round(time.perf_counter() - start, 1), **json.loads(done.stdout)}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--events", type=int, default=2_000_000)
    parser.add_argument("--folder", help="where the log is written")
    parser.add_argument("--stage", help=argparse.SUPPRESS)
    parser.add_argument("--only", nargs="*", default=STAGES, help="these stages alone, and nothing is recorded")
    parser.add_argument("--keep", action="store_true", help="the log stays")
    given = parser.parse_args()
    if given.stage:
        told = stage(given.stage, Path(given.folder), given.events)
        used = resource.getrusage(resource.RUSAGE_SELF)
        print(
            json.dumps(
                {"cpu_all_s": round(used.ru_utime + used.ru_stime, 1), "peak_mb": used.ru_maxrss // 1024, **told}
            )
        )
        return
    folder = Path(given.folder or tempfile.mkdtemp(prefix="long-log-"))
    folder.mkdir(exist_ok=True)
    figures: dict[str, Any] = {"events": given.events}
    try:
        for name in given.only:
            figures[name] = measured(name, folder / "l.heedful", given.events)
            print(name, figures[name], flush=True)
    finally:
        if not given.keep:
            shutil.rmtree(folder)
    if list(given.only) == list(STAGES):
        same = figures["fold in batches"]["state"] == figures["fold one by one"]["state"]
        print("the same state" if same else "ANOTHER STATE")
        record(f"long-log-{given.events}", figures)


if __name__ == "__main__":
    main()
