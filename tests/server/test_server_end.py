"""A server ends in order, and neither who watches nor who never reads holds it up."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
import time
from pathlib import Path
from typing import Any

import httpx
import pytest
from asking import NO_TLS

from heedful import Loop
from heedful.server.context import Options
from heedful.server.main import config, served
from processes import Asker, Process, check, here, made, taught, until


class Watcher:
    """Somebody who waits for the events of a loop; `reads` says whether he looks at them."""

    def __init__(self, port: int, name: str, reads: bool = True, key: str | None = None) -> None:
        self.connection = socket.socket()
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        self.connection.connect(("127.0.0.1", port))
        head = f"GET /v1/loops/{name}/events HTTP/1.1\r\nhost: localhost\r\n"
        self.connection.sendall((head + "\r\n").encode())
        self.got = b""
        self.ended = threading.Event()
        if reads:
            threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        while True:
            try:
                part = self.connection.recv(65536)
            except OSError:
                break
            if not part:
                break
            self.got += part
        self.ended.set()

    @property
    def told(self) -> list[dict[str, Any]]:
        return [json.loads(line[6:]) for line in self.got.split(b"\n") if line.startswith(b"data: ")]

    def close(self) -> None:
        self.connection.close()


class Sleepless:
    """asyncio, in which nobody sleeps."""

    def __getattr__(self, name: str) -> Any:
        assert name != "sleep", "the server looks again and again whether it was told to end"
        return getattr(asyncio, name)


def test_told_to_end_it_ends_without_a_pause(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It waits to be told, however seldom it looks at the clock, and does not sleep before it ends."""
    monkeypatch.setattr("uvicorn.server.asyncio", Sleepless())
    monkeypatch.setattr("heedful.server.main.TICK", 3600.0, raising=False)
    folder = made(tmp_path / "served", "a")
    with served(folder) as url, httpx.Client(base_url=url, verify=NO_TLS) as client:
        assert client.get("/v1/loops/a").status_code == 200


@pytest.mark.slow
def test_told_to_end_it_ends_in_order(tmp_path: Path) -> None:
    folder = made(tmp_path / "served", "a", "b")

    async def load(server: Process, told: list[tuple[str, int]]) -> None:
        refused = 0

        async def work(i: int) -> None:
            nonlocal refused
            asker = Asker(server.port)
            for n in range(10_000):
                try:
                    d = (await asker.ask("POST", "/v1/loops/a/decisions", {"id": f"d{i}-{n}"})).value
                    event = {"decision": d["id"], "id": f"e{i}-{n}", "clicks": [d["shown"][3]]}
                    reply = await asker.ask("POST", "/v1/loops/a/feedback", event)
                except OSError:
                    refused += 1
                    return
                assert reply.status == 200, reply
                told.append((f"e{i}-{n}", reply.value["seq"]))

        at_work = [asyncio.create_task(work(i)) for i in range(8)]
        while len(told) <= 50:  # it ends in the middle
            assert not any(task.done() for task in at_work), told
            await asyncio.sleep(0.005)
        await asyncio.to_thread(server.end)
        await asyncio.gather(*at_work)
        assert refused == 8

    told: list[tuple[str, int]] = []
    with Process(folder).wait() as server:
        watchers = [Watcher(server.port, "a"), Watcher(server.port, "b")]
        until(lambda: all(len(each.told) == 12 for each in watchers))
        asyncio.run(load(server, told))
        assert "Traceback" not in server.told.read_text()
        for each in watchers:
            assert each.ended.wait(60)
            assert each.got.endswith(b"0\r\n\r\n"), "the stream was cut off"
    assert len(list((folder / "a.heedful").glob("snapshot-*"))) == 1  # and the next start folds nothing
    assert not list((folder / "b.heedful").glob("snapshot-*"))
    assert not list(folder.glob("*/log.db-wal"))
    with Loop.open(folder / "a.heedful") as loop:
        assert loop.projection.keeper.since_snapshot == 0
    check(folder / "a.heedful", told)
    followed = [each["seq"] for each in watchers[0].told]
    assert followed == list(range(followed[0], followed[0] + len(followed)))


@pytest.mark.slow
def test_who_never_reads_does_not_hold_the_end_up_for_ever(tmp_path: Path) -> None:
    folder = made(tmp_path / "served", "a", learner="perceptron")
    with Loop.open(folder / "a.heedful") as loop:
        d = loop.decide(id="d")
        for start in range(0, 10_000, 5000):
            loop.feedback_many({"decision": "d", "id": f"m{start + n}", "clicks": [d.shown[3]]} for n in range(5000))
    with Process(folder).wait() as server, httpx.Client(base_url=server.url) as client:
        taught(client, "a", range(1, 3))
        before = server.memory()
        stuck = [Watcher(server.port, "a", reads=False) for _ in range(20)]
        time.sleep(1.0)
        told = taught(client, "a", range(3, 20))  # everybody else is served meanwhile
        grown = (server.memory() - before) / len(stuck)
        assert grown < 1_500_000  # of 10,000 events, 2 MB of text, each
        stuck.pop().close()
        seconds = server.end()
        print(f"\neach who never reads: {grown / 1000:.0f} kB; ended within {seconds:.1f} s")
        assert "Traceback" not in server.told.read_text(), server.told.read_text()
        for each in stuck:
            each.close()
    check(folder / "a.heedful", told, 10_000 + 19)


@pytest.mark.slow
def test_who_never_read_and_went_away_is_forgotten(tmp_path: Path) -> None:
    folder = made(tmp_path / "served", "a", learner="perceptron")
    with Loop.open(folder / "a.heedful") as loop:
        d = loop.decide(id="d")
        loop.feedback_many({"decision": "d", "id": f"e{n}", "clicks": [d.shown[3]]} for n in range(5000))
    with here(folder, Options(idle=0.2)) as (app, client):
        port = client.base_url.port
        assert port is not None
        stuck = [Watcher(port, "a", reads=False) for _ in range(5)]
        until(lambda: app.service.loops.workers and app.service.loops.workers["main", "a"].users == 5)
        time.sleep(0.5)
        for each in stuck:
            each.close()
        until(lambda: not app.service.loops.workers)  # nobody uses it any more: it is closed
        assert client.get("/v1/loops/a").status_code == 200


def test_what_was_half_sent_when_it_was_told_to_end_is_no_error_of_the_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("processes.config", lambda app: config(app, 0))
    folder = made(tmp_path / "served", "a")
    with here(folder) as (_, client):
        half = socket.create_connection((client.base_url.host, client.base_url.port or 0))
        head = b"POST /v1/loops/a/feedback HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
        half.sendall(head + b"content-length: 100\r\n\r\n{")
        assert client.get("/v1/loops/a").status_code == 200
    with half:
        answer = half.makefile("rb").read()
    assert answer.startswith(b"HTTP/1.1 503 ") or not answer, answer
