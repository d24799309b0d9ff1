"""One loop waits for another process: other loops do not, nor who asks for health; and what both write is there."""

from __future__ import annotations

import asyncio
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx
import pytest

from heedful import Loop
from heedful.server import loops as serving
from heedful.server.app import App
from heedful.server.context import Options
from loops import bits
from processes import Asker, Process, check, here, made, problem, taught, until


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Another process is writing."""
    with closing(sqlite3.connect(path / "log.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        try:
            yield
        finally:
            other.execute("ROLLBACK")


def patience(app: App, name: str, wait: float) -> None:
    """Let a loop wait for so many seconds for other processes."""
    log = app.service.loops.workers["main", name].projection.log.store
    log._database.wait = wait
    for connection in (log._writer, log._reader):
        connection.execute(f"PRAGMA busy_timeout = {int(1000 * wait)}")


def answered(client: httpx.Client, waiting: Sequence[Future[Any]], *paths: str, rounds: int = 20) -> int:
    """How many rounds of these requests are answered, one after the other, before the first that waits is."""
    n = 0
    while n < rounds:
        for path in paths:
            assert client.get(path).status_code == 200
        if any(each.done() for each in waiting):
            break
        n += 1
    return n


# ---------------------------------------------------------------------------- locks


def test_a_lock_of_another_process_is_waited_for(tmp_path: Path) -> None:
    folder = made(tmp_path / "served", "a", "b")
    with here(folder) as (app, client), ThreadPoolExecutor(8) as pool, httpx.Client(base_url=client.base_url) as other:
        taught(client, "a", range(3))
        taught(client, "b", range(3))
        patience(app, "a", 60.0)
        paths = "/healthz", "/v1/loops", "/v1/loops/b", "/v1/loops/a/weights"
        with locked(folder / "a.heedful"):
            waiting = [pool.submit(taught, client, "a", range(n, n + 1)) for n in range(10, 16)]
            assert answered(other, waiting, *paths) == 20
            told = taught(other, "b", range(3, 8))
            assert not any(each.done() for each in waiting)
        acknowledged = [pair for each in waiting for pair in each.result(60)]
        assert app.service.loops.workers["main", "a"].users == 0
    check(folder / "a.heedful", acknowledged, 3 + 6)
    check(folder / "b.heedful", told, 8)


def test_a_lock_of_another_process_that_stays(tmp_path: Path) -> None:
    folder = made(tmp_path / "served", "a", "b")
    with here(folder) as (app, client), httpx.Client(base_url=client.base_url, timeout=30.0) as other:
        told = taught(client, "a", range(3))
        taught(client, "b", range(1))
        patience(app, "a", 0.3)
        lesson = {"decision": "d1", "id": "new", "clicks": ["i3"]}
        asked: dict[str, Callable[[], httpx.Response]] = {
            "decide": lambda: client.post("/v1/loops/a/decisions", json={"id": "dn"}),
            "feedback": lambda: client.post("/v1/loops/a/feedback", json=lesson),
            "batch": lambda: client.post("/v1/loops/a/feedback", json=[lesson, lesson | {"id": "new2"}]),
            "undo": lambda: client.post("/v1/loops/a/undo", json={"event": "e1"}),
            "record": lambda: client.post(
                "/v1/loops/a/records", json={"candidates": ["i1", "i2"], "shown": ["i1"], "id": "r"}
            ),
            "items": lambda: client.put("/v1/loops/a/items", json=[{"id": "new", "f0": 1.0}]),
            "withdraw": lambda: client.delete("/v1/loops/a/items/i1"),
            "forget": lambda: client.post("/v1/loops/a/forget", json={"person": "p1"}),
        }
        with Loop.open(folder / "a.heedful") as before:
            was = bits(before), list(before.projection.log.events())
        with locked(folder / "a.heedful"):
            for name, ask in asked.items():
                reply = ask()
                assert problem(reply, 503, "unavailable")["detail"], name
                assert int(reply.headers["retry-after"]) >= 1
                assert other.get("/healthz").status_code == 200
        with Loop.open(folder / "a.heedful") as after:
            assert (bits(after), list(after.projection.log.events())) == was
        for name, ask in asked.items():
            assert ask().status_code == 200, name
    check(folder / "a.heedful", [(id, seq) for id, seq in told if id != "e1"])


@pytest.mark.long
def test_a_lock_of_five_seconds(tmp_path: Path) -> None:
    """The same with the patience that a server really has."""
    folder = made(tmp_path / "served", "a", "b")
    with here(folder) as (_, client), httpx.Client(base_url=client.base_url, timeout=30.0) as other:
        told = taught(client, "a", range(3))
        taught(client, "b", range(1))
        with locked(folder / "a.heedful"), ThreadPoolExecutor(16) as pool:
            waiting = [pool.submit(client.post, "/v1/loops/a/decisions", json={"id": f"new{n}"}) for n in range(16)]
            assert answered(other, waiting, "/healthz", "/v1/loops/b") > 2
            for each in waiting:
                problem(each.result(), 503, "unavailable")
        assert client.post("/v1/loops/a/decisions", json={"id": "new0"}).json()["seq"] == 12 + 1 + 6 + 1
    check(folder / "a.heedful", told, 3)


def test_a_locked_loop_does_not_take_all_threads(tmp_path: Path) -> None:
    folder = made(tmp_path / "served", "a", "b", "c")
    with here(folder) as (app, client), ThreadPoolExecutor(20) as pool:
        taught(client, "a", range(20))
        taught(client, "b", range(2))
        patience(app, "a", 20.0)
        with httpx.Client(base_url=client.base_url, timeout=60.0) as other:
            with locked(folder / "a.heedful"):
                waiting = [pool.submit(other.post, "/v1/loops/a/undo", json={"event": f"e{n}"}) for n in range(20)]
                time.sleep(0.3)
                assert client.get("/v1/loops/b").status_code == 200
                assert client.post("/v1/loops/c/decisions", json={}).status_code == 200
                assert not any(each.done() for each in waiting)  # none made room for these
            assert {each.result().status_code for each in waiting} == {200}


# ---------------------------------------------------------------------------- what another process writes and reads


OTHER = """
import sys
from heedful import Loop
with Loop.open(sys.argv[1]) as loop:
    for n in range(25):
        if n % 5 == 0:
            loop.put_items([{"id": f"new{n}", "f0": 1.0, "f1": float(n), "f2": 0.0, "f3": -1.0}])
        d = loop.decide(id=f"o{n}", person="other" if n % 2 else "p1")
        a = loop.feedback(d.id, id=f"of{n}", clicks=[d.shown[2]])
        assert a.status == "applied", a
        if n % 3 == 0:
            assert loop.undo(f"of{n}").status == "applied"
        if n == 15:
            loop.forget("other")
    loop.withdraw("new0")
"""


@pytest.mark.slow
def test_another_process_teaches_undoes_and_forgets_meanwhile(tmp_path: Path) -> None:
    folder = made(tmp_path / "served", "a", shrink=3.0, snapshot_every=20)

    async def asked(port: int, ended: Callable[[], bool]) -> list[tuple[str, int]]:
        told: list[tuple[str, int]] = []

        async def work(i: int) -> None:
            asker, n = Asker(port), 0
            while not ended():
                n += 1
                d = await asker.ask("POST", "/v1/loops/a/decisions", {"id": f"d{i}-{n}", "person": f"p{i % 3}"})
                assert d.status == 200, d
                event = {"decision": d.value["id"], "id": f"e{i}-{n}", "clicks": [d.value["shown"][3]]}
                a = await asker.ask("POST", "/v1/loops/a/feedback", [event, event] if n % 7 == 0 else event)
                assert a.status == 200, a
                answers = a.value if n % 7 == 0 else [a.value]
                assert [each["status"] for each in answers] == ["applied", "duplicate"][: len(answers)]
                told.append((f"e{i}-{n}", answers[0]["seq"]))
                await asyncio.sleep(0.005)
            asker.close()

        await asyncio.gather(*(work(i) for i in range(6)))
        return told

    with here(folder) as (_, client):
        command = [sys.executable, "-c", OTHER, str(folder / "a.heedful")]
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as other:
            port = client.base_url.port
            assert port is not None
            told = asyncio.run(asked(port, lambda: other.poll() is not None))
            assert other.stderr is not None
            assert other.returncode == 0, other.stderr.read()
        names = client.post("/v1/loops/a/decisions", json={"candidates": ["new5", "i1"]}).json()["shown"]
        assert set(names) == {"new5", "i1"}
        reply = client.post("/v1/loops/a/decisions", json={"candidates": ["new0", "i1"], "strict": True})
        assert problem(reply, 422, "bad-input")["field"] == "candidates"
        assert client.post("/v1/loops/a/feedback", json={"decision": "o1", "clicks": ["i1"]}).status_code == 409
        assert client.get("/v1/loops/a").json()["items"] == 12 + 4
    assert len(told) > 20  # enough to have met the other, also on a machine that is busy
    check(folder / "a.heedful", told)


@pytest.mark.slow
def test_two_servers_on_one_folder(tmp_path: Path) -> None:
    folder = made(tmp_path / "served", "a", "b", shrink=3.0, snapshot_every=50)

    async def load(ports: list[int]) -> dict[str, list[tuple[str, int]]]:
        told: dict[str, list[tuple[str, int]]] = {"a": [], "b": []}
        taken = {200: 0, 503: 0}

        async def work(i: int) -> None:
            name, person = "ab"[i % 2], f"p{i % 3}"
            askers = [Asker(port) for port in ports]
            for n in range(40):
                one, two = askers if n % 2 else reversed(askers)  # decided here, answered there
                d = await one.ask("POST", f"/v1/loops/{name}/decisions", {"id": f"d{i}-{n}", "person": person})
                assert d.status == 200, d
                event = {"decision": d.value["id"], "id": f"e{i}-{n}", "clicks": [d.value["shown"][3]]}
                for asker in (two, one, two) if n % 5 == 0 else (two,):
                    a = await asker.ask("POST", f"/v1/loops/{name}/feedback", event)
                    taken[a.status] += 1
                    told[name].append((event["id"], a.value["seq"]))
            for asker in askers:
                asker.close()

        await asyncio.gather(*(work(i) for i in range(8)))
        assert taken[503] == 0
        return told

    with Process(folder).wait() as one, Process(folder).wait() as two:
        told = asyncio.run(load([one.port, two.port]))
        for server in (one, two):
            server.end()
            assert "Traceback" not in server.told.read_text(), server.told.read_text()
    for name, pairs in told.items():
        check(folder / f"{name}.heedful", pairs, 4 * 40)


def test_erasing_while_another_process_reads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody else waits, the answer says that her bytes are still there, and they go as soon as they can."""
    monkeypatch.setattr(serving, "AGAIN_AFTER", 0.2)
    folder = made(tmp_path / "served", "a", "b")

    def traces() -> list[str]:
        found = []
        for file in (folder / "a.heedful").iterdir():
            with suppress(FileNotFoundError):  # the server renames and removes files meanwhile
                if b"marker-p" in file.read_bytes():
                    found.append(file.name)
        return found

    with here(folder, Options(idle=2.0)) as (app, client), ThreadPoolExecutor(20) as pool:
        told = taught(client, "a", range(20))
        patience(app, "a", 2.0)
        record = {"candidates": ["i1", "i2"], "shown": ["i1"], "id": "marker-p1", "person": "marker-p2"}
        assert client.post("/v1/loops/a/records", json=record).status_code == 200
        with closing(sqlite3.connect(folder / "a.heedful" / "log.db", isolation_level=None)) as reader:
            reader.execute("BEGIN")
            reader.execute("SELECT count(*) FROM event").fetchone()
            with httpx.Client(base_url=client.base_url, timeout=60.0) as other:
                gone = pool.submit(other.post, "/v1/loops/a/forget", json={"person": "marker-p2"})
                time.sleep(0.3)
                unheard = {"decision": "unheard of", "clicks": ["i1"]}
                asked = pool.submit(other.post, "/v1/loops/a/feedback", json=unheard)
                assert answered(client, [gone], "/healthz") > 2
                told_of = gone.result().json()
                assert (told_of["events"], told_of["erased"]) == (1, False)
                assert asked.result().status_code == 409
            assert traces()
        until(lambda: not traces(), 60)
        assert client.post("/v1/loops/a/forget", json={"person": "marker-p2"}).json()["erased"]
    check(folder / "a.heedful", told, 20)


@pytest.mark.slow
def test_catching_up_does_not_stop_the_server(tmp_path: Path) -> None:
    folder = made(tmp_path / "served", "a", shrink=3.0)
    with here(folder) as (_, client), ThreadPoolExecutor(80) as pool:
        taught(client, "a", range(20))
        with Loop.open(folder / "a.heedful") as loop:
            d = loop.decide(id="big", person="p1")
            for k in range(2):
                loop.feedback_many({"decision": "big", "id": f"m{k}-{n}", "clicks": [d.shown[3]]} for n in range(1000))
        with httpx.Client(base_url=client.base_url, timeout=60.0) as other:
            asked = [pool.submit(other.post, "/v1/loops/a/decisions", json={"person": "p1"}) for _ in range(30)]
            assert answered(client, asked, "/healthz") > 2
            assert {each.result().status_code for each in asked} == {200}
