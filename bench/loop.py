"""The log and the loop at work: a million events folded again, a restart from a snapshot, durable feedback a second.

    .venv/bin/python bench/loop.py [--quick] [--folder DIR]

A perceptron over 50 features, 20 candidates a decision out of 10,000 items. The disk's own pace, measured in the same
run, is that of single commits of one row of 200 bytes, WAL and synchronous=FULL, as the log has them.
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import argparse
import shutil
import sqlite3
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np

from machine import record

from heedful import Loop, Settings, infer
from heedful.loop.replay import replay
from heedful.loop.pending import PendingEvent
from heedful.loop.log import Event, now
from heedful.loop.records import DecisionRecord, encode

N_FEATURES, N_ITEMS, CANDIDATES = 50, 10_000, 20


def new_loop(folder: Path, learner: str, snapshot_every: int = 10**9, **settings: Any) -> Loop:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((N_ITEMS, N_FEATURES))
    rows = [{"id": f"i{j}", **{f"f{k}": float(v) for k, v in enumerate(row)}} for j, row in enumerate(X)]
    how = Settings(snapshot_every=snapshot_every, **settings)
    return Loop.create(folder, encoding=infer(rows), items=rows, learner=learner, settings=how)


def fill(loop: Loop, decisions: int) -> list[tuple[str, list[str]]]:
    """Decisions as `decide` writes them, written a thousand at a time; (id, names shown) of each."""
    rng = np.random.default_rng(1)
    versions = list(loop.projection.catalogue.current.values())
    names = loop.items
    step = N_ITEMS // CANDIDATES
    made: list[tuple[str, list[str]]] = []
    for start in range(0, decisions, 1000):
        drafts = []
        for i in range(start, min(start + 1000, decisions)):
            chosen = (rng.integers(0, step, CANDIDATES) + step * np.arange(CANDIDATES)).tolist()
            shown = rng.permutation(CANDIDATES).tolist()
            known = DecisionRecord(
                shown=shown, items=[versions[j] for j in chosen], learner="perceptron", probability=0.95
            )
            drafts.append(PendingEvent(Event(0, "decision", f"d{i}", now(), f"p{i % 997}", None, 0, encode(known))))
            made.append((f"d{i}", [names[chosen[j]] for j in shown]))
        loop.projection.submit(drafts)
    return made


def clicks(made: list[tuple[str, list[str]]], i: int) -> dict[str, Any]:
    id, shown = made[i % len(made)]
    return {"decision": id, "id": f"e{i}", "clicks": [shown[(7 * i) % CANDIDATES], shown[(7 * i + 3) % CANDIDATES]]}


def single_commits(folder: Path, seconds: float = 1.0) -> float:
    """Commits of one row each, a second: what the disk does."""
    db = sqlite3.connect(folder / "pace.db", isolation_level=None)
    db.execute("PRAGMA journal_mode = WAL")
    db.execute("PRAGMA synchronous = FULL")
    db.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, b BLOB)")
    start, n = time.perf_counter(), 0
    while time.perf_counter() - start < seconds:
        db.execute("BEGIN IMMEDIATE")
        db.execute("INSERT INTO t VALUES (?, ?)", (n, bytes(200)))
        db.execute("COMMIT")
        n += 1
    rate = n / (time.perf_counter() - start)
    db.close()
    return rate


def durable(folder: Path, learner: str, threads: int, each: int) -> dict[str, float]:
    """Feedback a second from many threads, each waiting for its own answer, next to the disk's single commits."""
    loop = new_loop(folder / f"threads-{learner}-{threads}.heedful", learner)
    made = fill(loop, 20_000)
    pace = single_commits(folder)

    def work(k: int) -> None:
        for i in range(k * each, (k + 1) * each):
            event = clicks(made, i)
            answer = loop.feedback(event["decision"], id=event["id"], clicks=event["clicks"])
            if answer.status != "applied":
                raise SystemExit(f"not applied: {answer}")

    pool = [threading.Thread(target=work, args=(k,)) for k in range(threads)]
    start, cpu = time.perf_counter(), time.process_time()
    for thread in pool:
        thread.start()
    for thread in pool:
        thread.join()
    wall, spent = time.perf_counter() - start, time.process_time() - cpu
    loop.close()
    (folder / "pace.db").unlink()
    rate = threads * each / wall
    return {
        "threads": threads,
        "feedback_per_second": round(rate),
        "single_commits_per_second": round(pace),
        "ratio": round(rate / pace, 2),
        "cpu_us_per_feedback": round(1e6 * spent / (threads * each), 1),
    }


def folding(folder: Path, learner: str, events: int) -> dict[str, float]:
    """A log of that many lessons: folded from the first event, and opened from a snapshot."""
    path = folder / f"fold-{learner}.heedful"
    loop = new_loop(path, learner, Settings().snapshot_every)
    made = fill(loop, events)
    start = time.perf_counter()
    for first in range(0, events, 1000):
        loop.feedback_many([clicks(made, i) for i in range(first, min(first + 1000, events))])
    writing = time.perf_counter() - start
    start = time.perf_counter()
    replay(loop.projection, loop.projection.log.last()[0])
    fold = time.perf_counter() - start
    loop.close()
    start = time.perf_counter()
    loop = Loop.open(path)
    opening = time.perf_counter() - start
    start = time.perf_counter()
    answer = loop.undo(f"e{events - 1}")
    undo = time.perf_counter() - start
    assert answer.learned
    loop.close()
    size = (path / "log.db").stat().st_size
    return {
        "events": events,
        "write_us_per_event": round(1e6 * writing / events, 1),
        "fold_s": round(fold, 2),
        "fold_us_per_event": round(1e6 * fold / events, 1),
        "open_from_snapshot_s": round(opening, 3),
        "undo_of_the_last_s": round(undo, 3),
        "megabytes": round(size / 1e6, 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true", help="a tenth of it, and nothing is recorded")
    parser.add_argument("--folder", help="where the logs are written: the disk that is measured")
    given = parser.parse_args()
    events = 100_000 if given.quick else 1_000_000
    folder = Path(tempfile.mkdtemp(dir=given.folder or Path(__file__).parent, prefix="loop-"))
    try:
        figures: dict[str, Any] = {"durable": [], "fold": {}}
        for learner in ("perceptron", "posterior"):
            for threads in (1, 16, 64):
                each = (2_000 if threads == 1 else 64_000 // threads) // (4 if given.quick else 1)
                found = {"learner": learner, **durable(folder, learner, threads, each)}
                figures["durable"].append(found)
                print(found, flush=True)
        figures["fold"] = {"learner": "perceptron", **folding(folder, "perceptron", events)}
        print(figures["fold"])
        if not given.quick:
            record("loop", figures)
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
