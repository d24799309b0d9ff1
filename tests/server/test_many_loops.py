"""A thousand loops in a folder: what nobody asks for costs next to nothing, and so does what was closed again."""

from __future__ import annotations

import gc
import itertools
import re
import shutil
import time
import weakref
from pathlib import Path
from typing import Any

import httpx
import pytest

from budget import FACTOR
from heedful import Loop
from heedful.loop.log import Log
from heedful.server.context import Options
from heedful.storage import place_of
from heedful.storage.postgres import Connection
from loops import small_loop
from processes import Process, here, until

LOOPS = 1000
TOUCHED = LOOPS if FACTOR > 1 else 150
"""How many of them are used."""
IDLE = 100_000
"""Bytes that a loop may cost that is not open."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A thousand loops, each with a few lessons and a snapshot."""
    folder = tmp_path_factory.mktemp("many") / "served"
    folder.mkdir()
    first = folder / "loop0.heedful"
    with small_loop(first, control=0.0) as loop:
        for n in range(5):
            d = loop.decide(id=f"d{n}", person="p")
            loop.feedback(d.id, id=f"e{n}", clicks=[d.shown[3]])
        loop.snapshot()
    for n in range(1, LOOPS):
        shutil.copytree(first, folder / f"loop{n}.heedful")
    return folder


def touch(client: httpx.Client, n: int) -> None:
    """A decision and an answer to it: the loop is open, decides and learns."""
    path = f"/v1/loops/loop{n}"
    decision = client.post(f"{path}/decisions", json={"person": "p"}).json()
    answer = client.post(f"{path}/feedback", json={"decision": decision["id"], "clicks": [decision["shown"][3]]})
    assert answer.json()["status"] == "applied", answer.text


def opened(client: httpx.Client) -> int:
    """How many loops are open, by what the server says of itself."""
    [number] = re.findall(r"^heedful_open_loops (\S+)$", client.get("/metrics").text, re.MULTILINE)
    return int(float(number))


def settled(server: Process) -> int:
    """Its memory, once that no longer changes."""
    before, now = -1, server.memory()
    while abs(now - before) > 200_000:
        time.sleep(0.3)
        before, now = now, server.memory()
    return now


@pytest.mark.slow
def test_a_start_reads_no_loop(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    was = Log.__init__

    def counted(self: Log, path: Path, **more: bool) -> None:
        asked.append(Path(path).parent.stem)
        was(self, path, **more)

    monkeypatch.setattr(Log, "__init__", counted)
    before = {path: (path.stat().st_mtime_ns, path.stat().st_ctime_ns) for path in folder.glob("*/*")}
    with here(folder) as (app, client):
        start = time.perf_counter()
        names = client.get("/v1/loops").json()["loops"]
        seconds = time.perf_counter() - start
        assert len(names) == LOOPS
        assert names == sorted(names)
        assert client.get("/metrics").status_code == 200
        assert asked == []
        assert not app.service.loops.workers
        assert client.get("/v1/loops/loop7/weights").status_code == 200
        assert asked == ["loop7"]
    after = {path: (path.stat().st_mtime_ns, path.stat().st_ctime_ns) for path in folder.glob("*/*")}
    changed = {path.parent.stem for path in before.keys() | after.keys() if before.get(path) != after.get(path)}
    assert changed <= {"loop7"}
    print(f"\nlisting {LOOPS} loops: {1000 * seconds:.1f} ms")


@pytest.mark.slow
def test_loops_that_nobody_uses_are_closed(folder: Path) -> None:
    with Process(folder, "--most-open", "50", "--idle", "2").wait() as server:
        with httpx.Client(base_url=server.url, timeout=30.0) as client:
            touch(client, 0)
            start, files = settled(server), server.files()
            for _ in range(20):
                client.get("/v1/loops")
            listed = settled(server)
            began, most, descriptors = time.perf_counter(), 0, 0
            for n in range(1, TOUCHED):
                touch(client, n)
                if n % 50 == 0:
                    most, descriptors = max(most, opened(client)), max(descriptors, server.files())
            seconds = (time.perf_counter() - began) / TOUCHED
            until(lambda: opened(client) == 0, 20)
            touched = settled(server)
            left = server.files()
            passes = [touched]
            for _ in range(2):  # what the allocator keeps goes up and down; what is never freed is more in every pass
                for n in range(TOUCHED):
                    touch(client, n)
                until(lambda: opened(client) == 0, 20)
                passes.append(settled(server))
            more = [b - a for a, b in itertools.pairwise(passes)]
        server.end()
    print(
        f"\nat first {start / 1e6:.1f} MB, {files} files; {LOOPS} listed: {(listed - start) / 1e6:.1f} MB more\n"
        f"{TOUCHED} opened, used and closed: {(touched - start) / 1e6:.1f} MB more, {1000 * seconds:.1f} ms each; "
        f"again and again {', '.join(f'{each / 1e6:.1f}' for each in more)} MB more\n"
        f"at most {most} open at a time, {descriptors} files; {left} files afterwards"
    )
    assert (listed - start) / LOOPS < IDLE / 10
    assert (touched - start) / LOOPS < IDLE  # mostly what 50 open at a time took: it does not grow with their number
    assert min(more) / TOUCHED < IDLE / 4
    assert 20 <= most <= 52
    assert descriptors < files + 52 * 10
    assert left <= files
    for n in (1, TOUCHED // 2, TOUCHED - 1):
        with Loop.open(folder / f"loop{n}.heedful") as loop:
            assert loop.verify() == []
            assert loop.projection.model.shared.t >= 6


@pytest.mark.slow
def test_what_an_open_loop_costs(folder: Path) -> None:
    """It has no bound; docs/scale.md says what it is."""
    n_open = 100
    with Process(folder, "--most-open", "1000").wait() as server:
        with httpx.Client(base_url=server.url, timeout=30.0) as client:
            touch(client, 0)
            start, files = settled(server), server.files()
            for n in range(1, n_open + 1):
                touch(client, n)
            assert opened(client) == n_open + 1
            each = (settled(server) - start) / n_open
            each_files = (server.files() - files) / n_open
            for _ in range(20 * FACTOR):
                for n in range(1, n_open + 1, 20):
                    touch(client, n)
            used = (settled(server) - start) / n_open
        seconds = server.end()
    print(
        f"\nan open loop: {each / 1000:.0f} kB, used more {used / 1000:.0f} kB, {each_files:.1f} files; "
        f"{n_open} closed at the end in {seconds:.1f} s"
    )
    assert each < 5_000_000
    assert each_files < 10


@pytest.mark.slow
def test_an_idle_loop_is_closed_freed_and_opened_by_the_next_request(folder: Path) -> None:
    """Freed without the garbage collector, which a server runs rarely: what is left is returned to the system."""
    with here(folder, Options(idle=0.3)) as (app, client):
        gc.collect()
        gc.disable()
        try:
            touch(client, 5)
            [worker] = app.service.loops.workers.values()
            held = [weakref.ref(worker), weakref.ref(worker.projection)]
            del worker
            until(lambda: not app.service.loops.workers and not app.service.loops._moving)
            until(lambda: [each() for each in held] == [None, None])
        finally:
            gc.enable()
        touch(client, 5)
        assert list(app.service.loops.workers) == [("main", "loop5")]


@pytest.mark.parametrize("loops", [3, 300])
def test_a_start_asks_a_database_as_often_whatever_is_in_it(
    postgres: str, monkeypatch: pytest.MonkeyPatch, loops: int
) -> None:
    import psycopg

    from takeover import new_name

    name = new_name()
    small_loop(f"{postgres}#{name}").close()
    with psycopg.connect(postgres) as connection:
        many = "SELECT %s || i::text, secret FROM heedful.loop, generate_series(1, %s) AS i WHERE name = %s"
        made = f"INSERT INTO heedful.loop (name, secret) {many} RETURNING number"
        for [number] in connection.execute(made, [f"{name}-", loops, name]).fetchall():
            connection.execute("INSERT INTO heedful.lease VALUES (%s, '', '', 0, '-infinity')", [number])
    asked: list[str] = []
    for way in ("execute", "script"):
        was = getattr(Connection, way)

        def counted(self: Connection, query: str, *more: Any, _was: Any = was) -> Any:
            asked.append(query)
            return _was(self, query, *more)

        monkeypatch.setattr(Connection, way, counted)
    with here(place_of(postgres), Options(idle=0.3, lease=600.0)) as (app, client):
        assert client.get("/healthz").status_code == 200
        started = len(asked)
        assert started < 13, asked
        names = client.get("/v1/loops").json()["loops"]
        assert {f"{name}-{i}" for i in range(1, loops + 1)} <= set(names)
        assert len(asked) - started < 10, asked[started:]
        assert not app.service.loops.workers
        first = client.post(f"/v1/loops/{name}/decisions", json={"person": "p"})
        assert first.status_code == 200, first.text
        until(lambda: not app.service.loops.workers and not app.service.loops._moving)
        with psycopg.connect(postgres) as connection:  # closed, it is free for another server at once
            free = "SELECT expires <= clock_timestamp() FROM heedful.lease JOIN heedful.loop ON number = loop"
            assert connection.execute(f"{free} WHERE name = %s", [name]).fetchall() == [(True,)]
        assert client.post(f"/v1/loops/{name}/decisions", json={"person": "p"}).status_code == 200
