"""What an event, a model, a person and a commit cost: bytes, waits for the disk, processor time; for docs/scale.md.

    .venv/bin/python bench/costs.py [--folder DIR] [--database URL] [--quick]

Loops of corrections: 1,000 items with 50 features, 20 of them by name in a decision, ten shown, one click. Without a
--database (PostgreSQL, one of its own, on this machine) that half is left out. HTTP needs wrk, and waits for the disk
are counted with strace, where they are there.
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import argparse
import json
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from loop import single_commits
from machine import record
from server import cpu, lua, running, wrk

from heedful import Loop, Settings, infer
from heedful.server.keys import Keys
from heedful.storage import place_of

ITEMS, FEATURES, CANDIDATES, SHOW, PEOPLE = 1000, 50, 20, 10, 10_000
X = np.random.default_rng(0).standard_normal((ITEMS, FEATURES)).round(4)
ROWS = [{"id": f"item-{j}", **{f"f{k}": float(v) for k, v in enumerate(row)}} for j, row in enumerate(X)]
ENCODING = infer(ROWS, identifier="id", kinds={f"f{k}": "number" for k in range(FEATURES)})
NAMES = [[f"item-{(i * 37 + k * 13) % ITEMS}" for i in range(CANDIDATES)] for k in range(500)]
WAITS = """
import sys
sys.path.insert(0, sys.argv[1])
from costs import Loop, new_loop, taught
from pathlib import Path
with Loop.open(Path(sys.argv[2])) as loop:
    decided = taught(loop, "w", int(sys.argv[3]))
"""


def new_loop(place: Any, learner: str = "posterior", **settings: Any) -> Loop:
    return Loop.create(place, encoding=ENCODING, items=ROWS, learner=learner, settings=Settings(**settings))


def decided_by(loop: Loop, prefix: str, n: int) -> list[tuple[str, list[str]]]:
    found = []
    for i in range(n):
        decision = loop.decide(NAMES[i % 500], id=f"{prefix}-{i:08d}", show=SHOW, person=f"p{i % 1000}")
        found.append((decision.id, list(decision.shown)))
    return found


def answered(loop: Loop, decided: list[tuple[str, list[str]]], times: int = 1) -> None:
    """A click on each, in batches: what the disk does is measured elsewhere."""
    events = [{"decision": id, "id": f"{id}-{k}", "clicks": [shown[3]]} for k in range(times) for id, shown in decided]
    for i in range(0, len(events), 1000):
        loop.feedback_many(events[i : i + 1000])


def taught(loop: Loop, prefix: str, n: int) -> None:
    """Decisions and feedback one by one, each a commit."""
    for id, shown in decided_by(loop, prefix, n):
        loop.feedback(id, id=f"{id}-e", clicks=[shown[3]])


def size(folder: Path) -> int:
    """Bytes of a log with nothing left beside it."""
    import sqlite3

    with sqlite3.connect(folder / "log.db") as db:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)").close()
    return (folder / "log.db").stat().st_size


# ---------------------------------------------------------------------------- in this process


def events(home: Path, n: int) -> dict[str, Any]:
    """Bytes in the log and processor time of a decision and of a click, for some learners; what folding takes."""
    found: dict[str, Any] = {}
    for learner in ("posterior", "perceptron", "second-order"):
        at = home / f"{learner}.heedful"
        with new_loop(at, learner) as loop:
            taught(loop, "warm", 50)
            before, start = size(at), time.process_time()
            decided = decided_by(loop, "d", n)
            deciding, middle = time.process_time() - start, size(at)
            start = time.process_time()
            for id, shown in decided:
                loop.feedback(id, id=f"{id}-e", clicks=[shown[3]])
            learning, after = time.process_time() - start, size(at)
            answered(loop, decided, 10)
            loop.snapshot()
            total = sum(loop.projection.log.counts().values())
        [snapshot] = list(at.glob("snapshot-*"))[-1:]
        model = snapshot.stat().st_size
        start = time.process_time()
        Loop.open(at).close()
        opened = time.process_time() - start
        for each in at.glob("snapshot-*"):
            each.unlink()
        start = time.process_time()
        loop = Loop.open(at)
        folded = time.process_time() - start
        loop.close()
        found[learner] = {
            "decision_bytes": (middle - before) / n,
            "feedback_bytes": (after - middle) / n,
            "decision_cpu_ms": 1e3 * deciding / n,
            "feedback_cpu_ms": 1e3 * learning / n,
            "model_bytes": model,
            "open_from_snapshot_ms": 1e3 * opened,
            "fold_us_per_event": 1e6 * (folded - opened) / total,
        }
        print(learner, found[learner], flush=True)
    return found


RESIDENT = """
import sys
from pathlib import Path
from heedful import Loop
resident = lambda: 4096 * int(Path("/proc/self/statm").read_text().split()[1])
Loop.open(Path(sys.argv[1])).close()
before = resident()
loop = Loop.open(Path(sys.argv[2]))
print(resident() - before)
"""


def people(home: Path) -> dict[str, float]:
    """Bytes of what is learned for one person alone: in memory and in a snapshot."""
    sizes = {}
    for n in (1, PEOPLE):
        at = home / f"people-{n}.heedful"
        with new_loop(at, shrink=5.0) as loop:
            for start in range(0, n, 1000):
                decided = [
                    (f"d{i}", loop.decide(NAMES[i % 500], id=f"d{i}", show=SHOW, person=f"person-{i}").shown)
                    for i in range(start, min(start + 1000, n))
                ]
                answered(loop, [(id, list(shown)) for id, shown in decided])
            loop.snapshot()
        sizes[n] = max(each.stat().st_size for each in at.glob("snapshot-*"))
    command = [sys.executable, "-c", RESIDENT, home / "people-1.heedful"]
    held = [
        int(subprocess.run([*command, home / f"people-{n}.heedful"], capture_output=True, check=True).stdout)
        for n in (1, PEOPLE)
    ]
    return {
        "snapshot_bytes_per_person": (sizes[PEOPLE] - sizes[1]) / PEOPLE,
        "memory_bytes_per_person": (held[1] - held[0]) / PEOPLE,
    }


def waits(home: Path) -> dict[str, float]:
    """Waits for the disk (fsync, fdatasync) and bytes written for each commit of one event, counted by strace."""
    at = home / "waits.heedful"
    new_loop(at).close()
    counts, n = [], (50, 550)
    for k, each in enumerate(n):
        told = home / "strace"
        command = ["strace", "-f", "-c", "-o", str(told), "-e", "trace=fsync,fdatasync", sys.executable, "-c"]
        script = WAITS.replace('"w"', f'"w{k}"')
        subprocess.run([*command, script, str(Path(__file__).parent), str(at), str(each)], check=True)
        rows = [line.split() for line in told.read_text().splitlines() if line.rstrip().endswith("sync")]
        counts.append(sum(int(row[3]) for row in rows))
    return {"waits_per_commit": (counts[1] - counts[0]) / (2 * (n[1] - n[0]))}  # a decision and a click each


# ---------------------------------------------------------------------------- over HTTP


def decisions(key: str) -> str:
    setup = f"""  for k = 1, 500 do
    local names = {{}}
    for i = 1, {CANDIDATES} do names[i] = '"item-' .. ((i * 37 + k * 13) % {ITEMS}) .. '"' end
    local body = '{{"person":"p' .. k .. '","candidates":[' .. table.concat(names, ",") .. '],"show":{SHOW}}}'
    made[k] = wrk.format("POST", "/v1/loops/bench/decisions", headers, body)
  end"""
    return lua("", key, setup, "return made[n % 500 + 1]")


def clicks(key: str, decided: list[tuple[str, list[str]]]) -> str:
    rows = ",".join(f'{{"{id}","{shown[1]}"}}' for id, shown in decided)
    body = """local d = made[n % #made + 1]
  return wrk.format("POST", "/v1/loops/bench/feedback", headers,
    string.format('{"decision":"%s","id":"%s-%d","clicks":["%s"]}', d[1], run, n, d[2]))"""
    return lua("", key, f"  made = {{{rows}}}", body)


class Database:
    """What a PostgreSQL on this machine has written and spent."""

    def __init__(self, url: str) -> None:
        import psycopg

        self._connection = psycopg.connect(url, autocommit=True)
        pid = self._connection.info.backend_pid
        self._postmaster = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])

    def look(self) -> dict[str, float]:
        self._connection.execute("SELECT pg_stat_force_next_flush()")
        time.sleep(1.2)
        query = "SELECT wal_bytes, wal_sync, wal_records FROM pg_stat_wal"
        [[written, synced, _]] = self._connection.execute(query).fetchall()
        [[commits]] = self._connection.execute(
            "SELECT xact_commit FROM pg_stat_database WHERE datname = current_database()"
        ).fetchall()
        sizes = "SELECT sum(pg_total_relation_size(oid)) FROM pg_class WHERE relnamespace = 'heedful'::regnamespace"
        [[size]] = self._connection.execute(f"{sizes} AND relkind = 'r'").fetchall()
        [[events]] = self._connection.execute("SELECT count(*) FROM heedful.event").fetchall()
        spent = 0.0
        for path in Path("/proc").glob("[0-9]*/stat"):
            try:
                fields = path.read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if int(fields[1]) == self._postmaster:
                spent += (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
        return {
            "wal": float(written), "syncs": float(synced), "commits": float(commits), "size": float(size),
            "events": float(events), "cpu": spent,
        }  # fmt: skip


def served(place: Any, seconds: int, database: Database | None) -> dict[str, Any]:
    """Requests a second with 64 connections, processor time of each, of the server and of the database."""
    with new_loop(place / "bench.heedful") as loop:
        decided = decided_by(loop, "made", 1000)
    keys = Keys(place)
    _, key = keys.create("bench")
    keys.close()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    heedful = str(Path(sys.executable).with_name("heedful"))
    where = [heedful, "serve", str(place)] if isinstance(place, Path) else [heedful, "--database", place.url, "serve"]
    found: dict[str, Any] = {}
    scratch = Path(tempfile.mkdtemp(prefix="costs-"))
    try:
        with running([*where, "--port", str(port)], port) as pid:
            for name, script in (("decision", decisions(key)), ("feedback", clicks(key, decided))):
                before = None if database is None else database.look()
                found[name] = wrk(pid, port, script, seconds, scratch)
                if database is not None and before is not None:
                    after = database.look()
                    by = {each: after[each] - before[each] for each in after}
                    found[name] |= {
                        "wal_bytes_per_event": by["wal"] / by["events"],
                        "table_bytes_per_event": by["size"] / by["events"],
                        "waits_per_event": by["syncs"] / by["events"],
                        "events_per_commit": by["events"] / by["commits"],
                        "database_cpu_ms_per_event": 1e3 * by["cpu"] / by["events"],
                    }
                print(name, found[name], flush=True)
            found["memory"] = 4096 * int(Path(f"/proc/{pid}/statm").read_text().split()[1])
            found["cpu_seconds"] = cpu(pid)
    finally:
        shutil.rmtree(scratch)
    return found


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--folder", help="where the logs are written: the disk that is measured")
    parser.add_argument("--database", help="a PostgreSQL database on this machine, postgresql://...")
    parser.add_argument("--quick", action="store_true", help="a second each, and nothing is recorded")
    given = parser.parse_args()
    n, seconds = (200, 1) if given.quick else (2000, 5)
    home = Path(tempfile.mkdtemp(dir=given.folder, prefix="costs-"))
    figures: dict[str, Any] = {"items": ITEMS, "features": FEATURES, "candidates": CANDIDATES, "shown": SHOW}
    try:
        figures["load_average"] = os.getloadavg()[0]  # of this machine, which others may use
        figures["single_commits_per_second"] = round(single_commits(home))
        figures["learners"] = events(home, n)
        figures["people"] = people(home)
        print(figures["people"], flush=True)
        if shutil.which("strace") is not None:
            figures["waits"] = waits(home)
            print(figures["waits"], flush=True)
        if shutil.which("wrk") is not None:
            (home / "served").mkdir()
            figures["folder"] = served(home / "served", seconds, None)
            if given.database:
                address: Any = place_of(given.database)
                new_loop(address / "first").close()  # its tables are there
                figures["database"] = served(address, seconds, Database(given.database))
        print(json.dumps(figures, indent=1))
        if not given.quick:
            record("costs", figures)
    finally:
        shutil.rmtree(home)


if __name__ == "__main__":
    main()
