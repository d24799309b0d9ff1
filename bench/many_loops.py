"""Many loops on one server of which few are busy: how it starts, what it remembers of loops that nobody uses.

    .venv/bin/python bench/many_loops.py [--loops 10000] [--busy 100] [--folder DIR] [--database URL] [--quick]

Makes a folder of copies of one small loop, starts `heedful serve` on it, and reads its memory (resident, /proc) at the
start, with busy loops, after every loop was used once, and after all were left alone. With --database the same for
loops in a PostgreSQL database, which is left with the loops in it: give it one of its own. There 25 loops
are busy, and a thousand are used.
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import argparse
import json
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

from machine import record

from heedful import Loop, infer

ITEMS, FEATURES, ANSWERS = 12, 10, 20
IDLE = 5.0


def first_loop(place: str | Path) -> None:
    """A loop of twelve items that twenty answers have taught."""
    rows = [
        {"id": f"item-{i}", **{f"f{k}": float((7 * i + 3 * k) % 11) for k in range(FEATURES)}} for i in range(ITEMS)
    ]
    with Loop.create(place, encoding=infer(rows), items=rows) as loop:
        for i in range(ANSWERS):
            decision = loop.decide(id=f"made-{i}", person=f"p{i % 5}")
            loop.feedback(decision.id, id=f"answered-{i}", clicks=[decision.shown[2]])


def folder_of(home: Path, n: int) -> None:
    """Copies of one loop, `loop-00000` to `loop-(n-1)`: nothing in a log says where it is."""
    first_loop(home / "loop-00000.heedful")
    for i in range(1, n):
        (at := home / f"loop-{i:05d}.heedful").mkdir(mode=0o700)
        for file in (home / "loop-00000.heedful").iterdir():
            shutil.copyfile(file, at / file.name)


def database_of(url: str, n: int) -> None:
    """The same in a database: rows that are copied by one statement for each table."""
    import psycopg

    first_loop(f"{url}#loop-00000")
    with psycopg.connect(url) as connection:
        columns = [
            name
            for [name] in connection.execute(
                "SELECT column_name FROM information_schema.columns WHERE table_schema = 'heedful' "
                "AND table_name = 'event' AND column_name <> 'loop' ORDER BY ordinal_position"
            )
        ]
        connection.execute(
            "INSERT INTO heedful.loop (name, secret) SELECT 'loop-' || lpad(i::text, 5, '0'), secret "
            "FROM heedful.loop, generate_series(1, %s) AS i WHERE name = 'loop-00000'",
            [n - 1],
        )
        connection.execute(
            "INSERT INTO heedful.lease SELECT number, '', '', 0, '-infinity' FROM heedful.loop "
            "WHERE name <> 'loop-00000'"
        )
        kept = ", ".join(columns)
        connection.execute(
            f"INSERT INTO heedful.event (loop, {kept}) SELECT l.number, {', '.join(f'e.{c}' for c in columns)} "  # type: ignore[arg-type]
            "FROM heedful.loop l, heedful.event e, heedful.loop f "
            "WHERE f.name = 'loop-00000' AND e.loop = f.number AND l.name <> f.name"
        )
        connection.execute("ANALYZE heedful.event")


# ---------------------------------------------------------------------------- the server


class Server:
    """A running server, its process, and what that has taken."""

    def __init__(self, process: subprocess.Popen[bytes], port: int, seconds: float, read: int) -> None:
        self.process, self.port, self.seconds, self.read = process, port, seconds, read
        self._connection = HTTPConnection("127.0.0.1", port, timeout=60)

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        headers = {} if body is None else {"content-type": "application/json"}
        given = None if body is None else json.dumps(body)
        while True:
            self._connection.request(method, path, given, headers)
            answer = self._connection.getresponse()
            told = answer.read()
            if answer.status == 503:
                time.sleep(0.05)
                continue
            if answer.status >= 300:
                raise SystemExit(f"{method} {path}: {answer.status}: {told[:500]!r}")
            return json.loads(told) if told[:1] in b"{[" else told.decode()

    def memory(self) -> int:
        """Bytes that are resident."""
        return 4096 * int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1])

    def open_loops(self) -> int:
        time.sleep(1.1)  # the text is a second old at most
        [line] = [line for line in self.ask("GET", "/metrics").splitlines() if line.startswith("heedful_open_loops ")]
        return int(float(line.split()[1]))

    def files(self) -> int:
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))


def read_so_far(pid: int) -> int:
    """Bytes that a process has read, from the cache of the system or the disk."""
    lines = Path(f"/proc/{pid}/io").read_text().splitlines()
    return int(next(line.split()[1] for line in lines if line.startswith("rchar:")))


@contextmanager
def serving(place: str | Path, most_open: int) -> Iterator[Server]:
    """A server of these loops, once it answers."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    options = ["--port", str(port), "--idle", str(IDLE), "--most-open", str(most_open)]
    heedful = str(Path(sys.executable).with_name("heedful"))
    where = [heedful, "serve", str(place)] if isinstance(place, Path) else [heedful, "--database", place, "serve"]
    start = time.perf_counter()
    process = subprocess.Popen([*where, *options], stderr=subprocess.DEVNULL)
    try:
        while True:
            try:
                connection = HTTPConnection("127.0.0.1", port, timeout=5)
                connection.request("GET", "/healthz")
                if connection.getresponse().status == 200:
                    break
            except OSError:
                if process.poll() is not None:
                    raise SystemExit("the server did not start") from None
                time.sleep(0.01)
        yield Server(process, port, time.perf_counter() - start, read_so_far(process.pid))
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait()


def started(place: str | Path) -> dict[str, float]:
    """Seconds, memory and bytes read until the first answer, of the fastest of three starts."""
    found = []
    for _ in range(3):
        with serving(place, 200) as server:
            found.append({"seconds": server.seconds, "memory": server.memory(), "bytes_read": server.read})
    return min(found, key=lambda each: each["seconds"])


def use(server: Server, names: list[str], times: int) -> None:
    for k in range(times):
        for name in names:
            at = f"/v1/loops/{name}"
            decision = server.ask("POST", f"{at}/decisions", {"person": f"p{k % 5}"})
            server.ask("POST", f"{at}/feedback", {"decision": decision["id"], "clicks": [decision["shown"][1]]})


def connections(url: str) -> int:
    """How many connections heedful has to the database."""
    import psycopg

    with psycopg.connect(url) as connection:
        [[n]] = connection.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'heedful'"
        ).fetchall()
        return int(n)


def size_of(url: str) -> int:
    """Bytes of all of heedful's tables with their indices."""
    import psycopg

    query = "SELECT sum(pg_total_relation_size(c.oid)) FROM pg_class c WHERE relnamespace = 'heedful'::regnamespace"
    with psycopg.connect(url) as connection:
        [[size]] = connection.execute(f"{query} AND relkind IN ('r', 'm')").fetchall()
        return int(size)


def used(place: str | Path, n: int, busy: int) -> dict[str, Any]:
    """Memory while `busy` of the first `n` loops are busy, after all were used once, and after all were left alone."""
    names = [f"loop-{i:05d}" for i in range(n)]
    found: dict[str, Any] = {}
    with serving(place, 2 * busy) as server:
        use(server, names[:1], 1)  # what the first request imports

        def look(what: str) -> None:
            found[what] = {"memory": server.memory(), "open": server.open_loops(), "files": server.files()}
            if isinstance(place, str):
                found[what]["connections"] = connections(place)
            print(what, found[what], flush=True)

        look("one used")
        start = time.perf_counter()
        listed = server.ask("GET", "/v1/loops")["loops"]
        found["list_seconds"] = time.perf_counter() - start
        found["listed"] = len(listed)
        start = time.perf_counter()
        server.ask("GET", "/")
        found["page_seconds"] = time.perf_counter() - start
        use(server, names[:busy], 10)
        look("busy used")
        start = time.perf_counter()
        for i in range(busy, n, 50):
            use(server, names[i : i + 50], 1)
            use(server, names[:busy][i // 50 % busy :: busy], 1)
        found["seconds_per_first_use"] = (time.perf_counter() - start) / max(n - busy, 1)
        look("all used once")
        until = time.monotonic() + 2 * IDLE + 10.0  # what was closed is given back after ten seconds
        while time.monotonic() < until:
            use(server, names[:busy], 1)
        look("busy used, others left alone")
        time.sleep(2 * IDLE + 10.0)
        look("all left alone")
        left = found["all left alone"]["memory"] - found["one used"]["memory"]
        found["bytes_per_idle_loop"] = left / n
        opened = found["busy used"]["memory"] - found["one used"]["memory"]
        found["bytes_per_open_loop"] = opened / max(busy - 1, 1)
    return found


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--loops", type=int, default=10_000)
    parser.add_argument("--busy", type=int, default=100)
    parser.add_argument("--folder", help="where the logs are written")
    parser.add_argument("--database", help="a PostgreSQL database for the same, postgresql://...")
    parser.add_argument("--quick", action="store_true", help="300 loops, 20 busy ones, and nothing is recorded")
    given = parser.parse_args()
    n, busy = (300, 20) if given.quick else (given.loops, given.busy)
    figures: dict[str, Any] = {"loops": n, "busy": busy, "idle_seconds": IDLE}
    home = Path(tempfile.mkdtemp(dir=given.folder, prefix="loops-"))
    try:
        (home / "one").mkdir()
        folder_of(home / "one", 1)
        (home / "many").mkdir()
        start = time.perf_counter()
        folder_of(home / "many", n)
        print(f"{n} loops made in {time.perf_counter() - start:.1f} s", flush=True)
        figures["bytes_on_disk_per_loop"] = sum(
            f.stat().st_size for f in (home / "many" / "loop-00000.heedful").iterdir()
        )
        figures["start_with_one"], figures["start_with_many"] = started(home / "one"), started(home / "many")
        print(figures, flush=True)
        figures["load_average"] = os.getloadavg()[0]  # of this machine, which others may use
        figures["folder"] = used(home / "many", n, busy)
        if given.database:
            database_of(given.database, n)
            figures["start_with_many_in_database"] = started(given.database)
            figures["bytes_in_database_per_loop"] = size_of(given.database) / n
            some = min(n, 1000)
            figures["database"] = used(given.database, some, min(busy, 25)) | {"loops": some, "busy": min(busy, 25)}
        print(json.dumps(figures, indent=1))
        if not given.quick:
            record("many_loops", figures)
    finally:
        shutil.rmtree(home)


if __name__ == "__main__":
    main()
