"""What one tenant's load does to another: latencies of A while B does its worst. `python bench/neighbours.py`.

    .venv/bin/python bench/neighbours.py [--quick] [--only CASE ...] [--folder DIR]

One server, loopback. Tenant A decides and gives feedback at a steady modest rate, and its latencies are counted from
when a request was due to its whole answer. Tenant B has keys of its own, and a loop of its own, and does one load after
the other from another process. The machine's cores are shared by the server and both of them. Prints what it found, and
writes bench/results/neighbours.json; `--quick` takes three seconds each, and nothing is recorded.
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import argparse
import asyncio
import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from machine import record
from server import cpu, running

from heedful import Loop, infer
from heedful.server.keys import Keys

ITEMS, FEATURES, DECISIONS, RATE = 1000, 20, 2000, 100
MIB = 2**20
MANY = 300
"""loops that B has besides, and A has"""
LOGS, CLICKS = 12, 4000
"""loops of B that are analysed, and clicks in each"""
WAIT = 30.0
"""seconds after which an answer is given up"""
JSON, MSGPACK, FLOAT32 = "application/json", "application/msgpack", "application/octet-stream"


# ---------------------------------------------------------------------------- one connection


class Wire:
    """A connection to the server, opened again where it was closed."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._reader: Any = None
        self._writer: Any = None

    async def open(self) -> Wire:
        self._reader, self._writer = await asyncio.open_connection("127.0.0.1", self._port, limit=2**24)
        return self

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()
        self._reader = self._writer = None

    async def ask(self, request: bytes) -> tuple[int, bytes]:
        """(status, body) of what is answered; status 0 where the connection ends first."""
        try:
            if self._writer is None:
                await self.open()
            self._writer.write(request)
            return await self.answer()
        except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            self.close()
            return 0, b""

    async def answer(self) -> tuple[int, bytes]:
        """The next answer."""
        head = (await self._reader.readuntil(b"\r\n\r\n")).lower()
        length = int(head.split(b"content-length: ")[1].split(b"\r\n")[0])
        body = await self._reader.readexactly(length)
        if b"connection: close" in head:
            self.close()
        return int(head[9:12]), body


def post(path: str, key: str, body: bytes, kind: str = JSON, length: int | None = None) -> bytes:
    """A request; `length` is what it says of its body."""
    head = f"POST {path} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: {kind}\r\n"
    head += f"authorization: Bearer {key}\r\ncontent-length: {len(body) if length is None else length}\r\n\r\n"
    return head.encode() + body


def get(path: str, key: str) -> bytes:
    return f"GET {path} HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer {key}\r\n\r\n".encode()


# ---------------------------------------------------------------------------- A


async def neighbour(port: int, key: str, seconds: float, rate: int = RATE) -> dict[str, Any]:
    """A: every other request decides, the one after it says what was clicked; at another rate, each opens a loop."""
    names = [json.dumps({"candidates": [f"i{(k * 37 + j * 13) % ITEMS}" for j in range(20)]}) for k in range(100)]
    asks = [post("/v1/loops/bench/decisions", key, each.encode()) for each in names]
    free: asyncio.Queue[Wire] = asyncio.Queue()
    for _ in range(32 if rate == RATE else 8):
        free.put_nowait(await Wire(port).open())
    late: dict[int, float] = {}
    got: Counter[int] = Counter()
    decided: list[Any] = []

    async def one(k: int, due: float) -> None:
        wire = await free.get()
        if rate != RATE:
            request = get(f"/v1/loops/l{k % MANY}", key)
        elif k % 2 or not decided:
            request = asks[k % 100]
        else:
            d = decided.pop()
            said = {"decision": d["id"], "id": f"e-{d['id']}", "clicks": [d["shown"][2]]}
            request = post("/v1/loops/bench/feedback", key, json.dumps(said).encode())
        status, body = await wire.ask(request)
        late[k] = time.perf_counter() - due
        got[status] += 1
        if rate == RATE and k % 2 and status == 200:
            decided.append(json.loads(body))
        free.put_nowait(wire)

    start, tasks = time.perf_counter() + 0.1, []
    for k in range(int(rate * (1 + seconds))):
        due = start + k / rate
        if (wait := due - time.perf_counter()) > 0:
            await asyncio.sleep(wait)
        tasks.append(asyncio.create_task(one(k, due)))
    await asyncio.wait(tasks, timeout=WAIT)
    lost = sum(not task.done() for task in tasks)
    # Not of the first second, in which the loop is opened.
    took = sorted([1e3 * each for k, each in late.items() if k >= rate] + lost * [1e3 * WAIT])

    def at(q: float) -> float:
        return round(took[min(int(len(took) * q / 100), len(took) - 1)], 1)

    return {"p50_ms": at(50), "p99_ms": at(99), "max_ms": round(took[-1], 1), "answers": _counts(got, lost)}


def _counts(got: Counter[int], lost: int = 0) -> dict[str, int]:
    told = {str(status) if status else "cut off": n for status, n in sorted(got.items())}
    return told | ({"none in time": lost} if lost else {})


# ---------------------------------------------------------------------------- B


async def again(port: int, until: float, connections: int, request: Callable[[int], bytes]) -> Counter[int]:
    """So many connections; each asks again as soon as it was answered."""
    got: Counter[int] = Counter()

    async def one(k: int) -> None:
        wire = Wire(port)
        while time.perf_counter() < until:
            with suppress(TimeoutError):
                status, _ = await asyncio.wait_for(wire.ask(request(k)), WAIT)
                got[status] += 1
                if not status:
                    await asyncio.sleep(0.05)
        wire.close()

    await asyncio.gather(*(one(k) for k in range(connections)))
    return got


def large(body: bytes, kind: str = JSON, path: str = "/v1/loops/bench/decisions") -> Any:
    """Four connections, each with a large body."""

    async def load(port: int, key: str, until: float) -> Counter[int]:
        request = post(path, key, body, kind)
        return await again(port, until, 4, lambda k: request)

    return load


def crowd(of: bytes, between: bytes, size: int) -> bytes:
    """A request for a decision among as many candidates as `size` bytes hold."""
    n = (size - 40) // (len(of) + len(between))
    return b'{"candidates":[' + between.join([of] * n) + b'],"show":1}'


def crowd_of_msgpack(size: int) -> bytes:
    n = size - 40
    return b"\x81\xaacandidates\xdd" + n.to_bytes(4, "big") + b"\x80" * n


def nested_msgpack(size: int) -> bytes:
    n = size - 60
    return b"\x81\xaacandidates\x91\x81\xa1a\xdd" + n.to_bytes(4, "big") + b"\x80" * n


def numbers(size: int) -> bytes:
    return np.random.default_rng(2).standard_normal(size // (4 * FEATURES) * FEATURES).astype("<f4").tobytes()


async def refused(port: int, key: str, until: float) -> Counter[int]:
    """32 connections without a key."""
    request = post("/v1/loops/bench/decisions", "none", b'{"candidates":["i1","i2"]}')
    return await again(port, until, 32, lambda k: request)


async def wrong(port: int, key: str, until: float) -> Counter[int]:
    """32 connections with a key, and a field that there is not."""
    request = post("/v1/loops/bench/decisions", key, b'{"candidates":["i1","i2"],"shw":1}')
    return await again(port, until, 32, lambda k: request)


async def metrics(port: int, key: str, until: float) -> Counter[int]:
    """32 connections that read the metrics."""
    request = get("/metrics", key)
    return await again(port, until, 32, lambda k: request)


async def batches(port: int, key: str, until: float) -> Counter[int]:
    """Eight connections, each with lists of 1000 clicks."""
    run, n = os.urandom(4).hex(), 0

    def request(k: int) -> bytes:
        nonlocal n
        n += 1
        events = [{"decision": f"d{i}", "id": f"{run}-{n}-{i}", "clicks": [f"i{i % ITEMS}"]} for i in range(1000)]
        return post("/v1/loops/bench/feedback", key, msgspec.json.encode(events))

    return await again(port, until, 8, request)


async def half_sent(port: int, key: str, until: float) -> Counter[int]:
    """1000 connections, each with the beginning of a body of 8 MB; another where one ended."""
    got: Counter[int] = Counter()
    part = post("/v1/loops/bench/decisions?show=1", key, bytes(16_384), FLOAT32, 8_000_000)

    async def one(k: int) -> None:
        await asyncio.sleep(k / 500)
        while (left := until - time.perf_counter()) > 0:
            wire = Wire(port)
            with suppress(TimeoutError):
                status, _ = await asyncio.wait_for(wire.ask(part), left)
                got[status] += 1
            wire.close()

    await asyncio.gather(*(one(k) for k in range(1000)))
    return got


async def streams(port: int, key: str, until: float) -> Counter[int]:
    """1000 streams of events of a loop in which 20 things a second happen."""
    got: Counter[int] = Counter()
    request = get("/v1/loops/bench/events?after=3000", key)

    async def one(k: int) -> None:
        await asyncio.sleep(k / 1000)
        with suppress(OSError, asyncio.IncompleteReadError):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(request)
            head = await reader.readuntil(b"\r\n\r\n")
            got[int(head[9:12])] += 1
            with suppress(TimeoutError):
                async with asyncio.timeout(max(until - time.perf_counter(), 0.01)):
                    while some := await reader.read(65_536):
                        got[-1] += some.count(b"event: ")
            writer.close()

    async def lively() -> None:
        wire, run, n = Wire(port), os.urandom(4).hex(), 0
        while time.perf_counter() < until:
            n += 1
            said = {"decision": f"d{n % DECISIONS}", "id": f"{run}-{n}", "clicks": [f"i{n % DECISIONS % ITEMS}"]}
            await wire.ask(post("/v1/loops/bench/feedback", key, json.dumps(said).encode()))
            await asyncio.sleep(0.05)
        wire.close()

    await asyncio.gather(lively(), *(one(k) for k in range(1000)))
    return got


def analyses(path: str, body: bytes | None = None, loops: int = LOGS, connections: int = 48) -> Any:
    """So many connections that ask for an analysis of loops of 4,000 clicks, in turn."""

    async def load(port: int, key: str, until: float) -> Counter[int]:
        def request(k: int) -> bytes:
            target = f"/v1/loops/c{k % loops}/{path}"
            return get(target, key) if body is None else post(target, key, body)

        return await again(port, until, connections, request)

    return load


LEARNERS = msgspec.json.encode({"learners": ["perceptron", "second-order", "posterior"]})
WORDS = "a few words of a text that is never the same as "


def texts(n: int, size: int, connections: int) -> Any:
    """So many connections, each with n candidates that have texts of so many characters."""
    rows = [{"id": f"t{j}", "text": (f"{j} " + WORDS * (size // 40))[:size]} for j in range(n)]

    async def load(port: int, key: str, until: float) -> Counter[int]:
        request = post("/v1/loops/texts/decisions", key, msgspec.json.encode({"candidates": rows, "show": 5}))
        return await again(port, until, connections, lambda k: request)

    return load


async def edits(port: int, key: str, until: float) -> Counter[int]:
    """16 connections that edit a draft of 40 kB."""
    n = 0

    def request(k: int) -> bytes:
        nonlocal n
        n += 1
        told = {"decision": "d", "id": f"e{until}-{n}", "edit": f"{n} " + (WORDS * 900)[n % 100 : 40_000]}
        return post("/v1/loops/texts/feedback", key, msgspec.json.encode(told))

    return await again(port, until, 16, request)


async def through_loops(port: int, key: str, until: float) -> Counter[int]:
    """Eight connections that go through 300 loops."""
    n = 0

    def request(k: int) -> bytes:
        nonlocal n
        n += 1
        return get(f"/v1/loops/l{n % MANY}", key)

    return await again(port, until, 8, request)


async def new_loops(port: int, key: str, until: float) -> Counter[int]:
    """Four connections that make loops."""
    run, n = os.urandom(4).hex(), 0
    items = [{"id": f"i{j}", "f": float(j)} for j in range(100)]

    def request(k: int) -> bytes:
        nonlocal n
        n += 1
        return post("/v1/loops", key, msgspec.json.encode({"name": f"new-{run}-{n}", "items": items}))

    return await again(port, until, 4, request)


async def nothing(port: int, key: str, until: float) -> Counter[int]:
    """Nothing at all."""
    return Counter()


LOADS: dict[str, Callable[[int, str, float], Awaitable[Counter[int]]]] = {
    "nothing": nothing,
    "JSON, 8 MiB of {}": large(crowd(b"{}", b",", 8 * MIB)),
    "JSON, 1 MiB of {}": large(crowd(b"{}", b",", MIB)),
    "msgpack, 8 MiB of {}": large(crowd_of_msgpack(8 * MIB), MSGPACK),
    "msgpack, 8 MiB of {} in one candidate": large(nested_msgpack(8 * MIB), MSGPACK),
    "raw numbers, 8 MiB": large(numbers(8 * MIB), FLOAT32, "/v1/loops/bench/decisions?show=1"),
    "refused, no key": refused,
    "refused, a wrong field": wrong,
    "metrics": metrics,
    "lists of 1000 clicks": batches,
    "1000 bodies half sent": half_sent,
    "1000 streams": streams,
    "evaluations of 12 loops": analyses("evaluations", LEARNERS),
    "health of 12 loops": analyses("health"),
    "health of 2 loops": analyses("health", loops=2, connections=8),
    "reports of 12 loops": analyses("report"),
    "why, of 12 loops": analyses("decisions/d3999/why?item=i999"),
    "99 texts of 900 characters": texts(99, 900, 32),
    "99 texts of 900 characters, four at once": texts(99, 900, 4),
    "a text of 90 kB": texts(1, 90_000, 32),
    "edits of 40 kB": edits,
    "300 loops in turn": through_loops,
    "new loops": new_loops,
    "health of 12 loops, and A opens loops": analyses("health"),
}
CLOSED = "health of 12 loops, and A opens loops"
"""The load under which A asks for a loop that is not open yet, ten times a second."""


# ---------------------------------------------------------------------------- all of it


def new_loop(path: Path, decisions: int = DECISIONS) -> None:
    """A loop with decisions named d0, d1, ...; the first candidate of d7 is i7."""
    path.parent.mkdir(exist_ok=True)
    X = np.random.default_rng(0).standard_normal((ITEMS, FEATURES)).round(4)
    rows = [{"id": f"i{j}", **{f"f{k}": float(v) for k, v in enumerate(row)}} for j, row in enumerate(X)]
    encoding = infer(rows, identifier="id", kinds={f"f{k}": "number" for k in range(FEATURES)})
    with Loop.create(path, encoding=encoding, items=rows) as loop:
        for i in range(decisions):
            loop.decide([f"i{(i + 37 * j) % ITEMS}" for j in range(20)], id=f"d{i}")


def more_loops(folder: Path) -> None:
    """Of B copies of the loop `bench`, l0, l1, ..., loops of clicks, c0, c1, ..., and one in which the words of items
    count; of A copies of a small loop."""
    for n in range(MANY):
        shutil.copytree(folder / "b" / "bench.heedful", folder / "b" / f"l{n}.heedful")
    new_loop(folder / "b" / "c0.heedful", CLICKS)
    with Loop.open(folder / "b" / "c0.heedful") as loop:
        given = [{"decision": f"d{i}", "clicks": [f"i{(i + 37 * 3) % ITEMS}"]} for i in range(CLICKS)]
        for first in range(0, CLICKS, 1000):
            loop.feedback_many(given[first : first + 1000])
    for n in range(1, LOGS):
        shutil.copytree(folder / "b" / "c0.heedful", folder / "b" / f"c{n}.heedful")
    items = [{"id": f"t{j}", "text": f"words of text {j} and {j % 7}"} for j in range(50)]
    encoding = infer(items, identifier="id", kinds={"text": "text"})
    with Loop.create(folder / "b" / "texts.heedful", encoding=encoding, items=items) as loop:
        loop.decide([{"id": "draft", "text": (WORDS * 900)[:40_000]}, {"id": "other", "text": "words"}], id="d")
    Loop.create(folder / "a" / "l0.heedful", encoding=encoding, items=items).close()
    for n in range(1, MANY):
        shutil.copytree(folder / "a" / "l0.heedful", folder / "a" / f"l{n}.heedful")


def child(role: str, port: int, key: str, seconds: float) -> subprocess.Popen[str]:
    """This file in a process of its own."""
    command = [sys.executable, __file__, "--as", role, "--port", str(port), "--key", key, "--seconds", str(seconds)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def run(role: str, port: int, key: str, seconds: float) -> None:
    """What a child does."""

    async def work() -> dict[str, Any]:
        if role in ("neighbour", "opens"):
            return await neighbour(port, key, seconds, RATE if role == "neighbour" else 10)
        got = await LOADS[role](port, key, time.perf_counter() + seconds)
        events = got.pop(-1, 0)
        return _counts(got) | ({"events": events} if events else {})

    try:
        from uvloop import run as run_in
    except ModuleNotFoundError:
        from asyncio import run as run_in
    print(json.dumps(run_in(work())))


def resident(pid: int) -> int:
    """MB of memory that a process had at most since it was last asked."""
    told = Path(f"/proc/{pid}/status").read_text()
    Path(f"/proc/{pid}/clear_refs").write_text("5")
    return int(told.split("VmHWM:")[1].split()[0]) // 1024


def measured(name: str, pid: int, port: int, keys: tuple[str, str], seconds: float) -> dict[str, Any]:
    """One load, and what A finds meanwhile."""
    resident(pid)
    other = child(name, port, keys[1], seconds + 4)
    time.sleep(2)  # until it has begun
    before = cpu(pid)
    victim = child("opens" if name == CLOSED else "neighbour", port, keys[0], seconds)
    told, _ = victim.communicate(timeout=seconds + 2 * WAIT)
    spent = cpu(pid) - before
    given, _ = other.communicate(timeout=seconds + 3 * WAIT)
    found = json.loads(told)
    return {**found, "other_got": json.loads(given), "server_cpu_s": round(spent, 1), "server_mb": resident(pid)}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true", help="three seconds each, and nothing is recorded")
    parser.add_argument("--only", nargs="+", choices=LOADS, help="these loads; nothing is recorded")
    parser.add_argument("--folder", help="where the logs are written")
    parser.add_argument("--port", type=int, default=8729)
    parser.add_argument("--as", dest="role", help=argparse.SUPPRESS)
    parser.add_argument("--key", help=argparse.SUPPRESS)
    parser.add_argument("--seconds", type=float, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.role:
        run(given.role, given.port, given.key, given.seconds)
        return
    folder = Path(tempfile.mkdtemp(dir=given.folder or Path(__file__).parent, prefix="neighbours-"))
    try:
        for tenant in ("a", "b"):
            new_loop(folder / tenant / "bench.heedful")
        if set(list(LOADS)[list(LOADS).index("1000 streams") + 1 :]) & set(given.only or LOADS):
            more_loops(folder)
        made = Keys(folder)
        keys = made.create("a", tenant="a")[1], made.create("b", tenant="b")[1]
        made.close()
        command = [str(Path(sys.executable).with_name("heedful")), "serve", str(folder), "--port", str(given.port)]
        kind = subprocess.run(["stat", "-f", "-c", "%T", folder], capture_output=True, text=True).stdout.strip()
        busy = round(os.getloadavg()[0], 1)  # what else there is to do on the machine
        figures: dict[str, Any] = {"file_system": kind, "load_average_before": busy, "loads": {}}
        if given.quick:
            command += ["--timeout", "2"]
        for name in given.only or LOADS:
            with running(command, given.port) as pid:
                seconds = 3 if given.quick else 15  # longer than the patience of the server
                found = figures["loads"][name] = measured(name, pid, given.port, keys, seconds)
            print(f"{name}: {json.dumps(found)}", flush=True)
        if not given.quick and not given.only:
            record("neighbours", figures)
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
