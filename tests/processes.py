"""A server for tests: as a process that can be killed, or in this one with its inside to look at; and who asks it."""

from __future__ import annotations

import asyncio
import itertools
import os
import random
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import msgspec

from heedful import Loop
from heedful.server.app import App
from heedful.server.context import Options
from heedful.server.main import Server, config, listening
from loops import bits, bits_from_scratch, small_loop

ENDED = 0, -signal.SIGTERM, 128 + signal.SIGTERM
"""The exit statuses of a server that was told to end."""
HEEDFUL = str(Path(sys.executable).with_name("heedful"))


@cache
def _own_ports() -> tuple[socket.socket, Iterator[int]]:
    """(what says that they are taken, ports that no other process of these tests uses), below those that the system
    gives to who connects: so one stays free while a server is killed and started again. Browsers open none of some
    ports, the highest of which is 10,080."""
    for first in range(10_100, 32_000, 100):
        with suppress(OSError):
            return socket.create_server(("127.0.0.1", first)), itertools.cycle(range(first + 1, first + 100))
    raise OSError("expected a port from 10,100 to 32,000 that is free, got none")


def free_port() -> int:
    """A port that nobody listens on, for a server that this process starts."""
    _, ports = _own_ports()
    while True:
        port = next(ports)
        with suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port


class Process:
    """`heedful serve` of a folder, in a process group of its own. What it says is in `FOLDER.log`."""

    def __init__(self, folder: Path, *options: str, port: int | None = None) -> None:
        self.folder, self.port = folder, port or free_port()
        self.told = folder.with_name(f"{folder.name}-{self.port}.log")
        self._command = [HEEDFUL, "serve", str(folder), "--port", str(self.port), *options]
        self.child = self._start()

    def _start(self) -> subprocess.Popen[bytes]:
        with self.told.open("ab") as log:
            return subprocess.Popen(self._command, stdout=log, stderr=log, start_new_session=True)

    @property
    def url(self) -> str:
        """Where it is."""
        return f"http://127.0.0.1:{self.port}"

    def wait(self, seconds: float = 60.0) -> Process:
        """Until it answers."""
        end = time.monotonic() + seconds
        while True:
            assert self.child.poll() is None, self.told.read_text()
            assert time.monotonic() < end, self.told.read_text()
            with suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 1.0) as connection:
                connection.sendall(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")
                if connection.recv(12) == b"HTTP/1.1 200":
                    return self
            time.sleep(0.01)

    def kill(self) -> None:
        """At once, with all that belongs to it (one that was told to end may be faster)."""
        with suppress(ProcessLookupError):
            os.killpg(self.child.pid, signal.SIGKILL)
        assert self.child.wait(30) in (-signal.SIGKILL, *ENDED), self.told.read_text()

    def again(self) -> Process:
        """It, killed unless it was, started again at the same port: as soon as it answers."""
        if self.child.poll() is None:
            self.kill()
        self.child = self._start()
        return self.wait()

    def end(self, seconds: float = 60.0) -> float:
        """In order; after how many seconds it was gone."""
        start = time.monotonic()
        self.child.send_signal(signal.SIGTERM)
        assert self.child.wait(seconds) in ENDED, self.told.read_text()
        return time.monotonic() - start

    def memory(self) -> int:
        """Bytes of it that are in memory."""
        [line] = [each for each in self._proc("status").splitlines() if each.startswith("VmRSS:")]
        return 1024 * int(line.split()[1])

    def files(self) -> int:
        """How many it has open."""
        return len(os.listdir(f"/proc/{self.child.pid}/fd"))

    def _proc(self, name: str) -> str:
        return Path(f"/proc/{self.child.pid}/{name}").read_text()

    def __enter__(self) -> Process:
        return self

    def __exit__(self, *_: object) -> None:
        if self.child.poll() is None:
            with suppress(ProcessLookupError):
                os.killpg(self.child.pid, signal.SIGKILL)
            self.child.wait(30)


@contextmanager
def here(folder: Path, options: Options | None = None) -> Iterator[tuple[App, httpx.Client]]:
    """A server in a thread of this process, and somebody to ask it."""
    with listening(folder, "127.0.0.1", 0, Options() if options is None else options) as (app, listener):
        server = Server(config(app), app)
        thread = threading.Thread(target=server.run, args=([listener],), daemon=True)
        thread.start()
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        with httpx.Client(base_url=url, timeout=30.0) as client:
            try:
                until(lambda: server.started)
                yield app, client
            finally:
                server.stop()
                thread.join(30)
                assert not thread.is_alive()


def until(found: Callable[[], Any], seconds: float = 30.0) -> Any:
    """What `found` finds, as soon as it does."""
    end = time.monotonic() + seconds
    while not (result := found()):
        assert time.monotonic() < end, "it did not come"
        time.sleep(0.01)
    return result


# ---------------------------------------------------------------------------- what is served, and what came of it


def made(folder: Path, *names: str, **settings: Any) -> Path:
    """A folder with these loops in it."""
    folder.mkdir(exist_ok=True)
    for name in names:
        small_loop(folder / f"{name}.heedful", **{"control": 0.0, **settings}).close()
    return folder


def taught(client: httpx.Client, name: str, ids: Iterator[int] | range) -> list[tuple[str, int]]:
    """(event, its place) of a lesson for each of ids."""
    found = []
    for n in ids:
        decision = client.post(f"/v1/loops/{name}/decisions", json={"id": f"d{n}", "person": f"p{n % 2}"}).json()
        event = {"decision": f"d{n}", "id": f"e{n}", "clicks": [decision["shown"][3]]}
        answer = client.post(f"/v1/loops/{name}/feedback", json=event)
        assert answer.status_code == 200, answer.text
        found.append((f"e{n}", answer.json()["seq"]))
    return found


def check(path: Path, acknowledged: list[tuple[str, int]], lessons: int | None = None) -> None:
    """The log has what was acknowledged, once, where it was told; the model is its fold."""
    with Loop.open(path) as loop:
        for id, seq in acknowledged:
            event = loop.projection.log.find("feedback", id)
            assert event is not None, id
            assert event.seq == seq
        if lessons is not None:
            assert loop.projection.model.shared.t == lessons
        assert bits(loop) == bits_from_scratch(loop)
        assert loop.verify() == []


def check_log(
    path: Path, acknowledged: Mapping[tuple[str, str], int], undone: Iterable[str]
) -> tuple[set[str], list[tuple[str, str]]]:
    """(the ids of the feedback that counts, the kind and id of every event in order). The log is whole, each event
    stands in it once, and what was acknowledged where it was told, (kind, id) -> place; what was undone is undone."""
    with closing(sqlite3.connect(path / "log.db")) as db:
        assert db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        rows = db.execute("SELECT seq, kind, id, target FROM event ORDER BY seq").fetchall()
    assert [row[0] for row in rows] == list(range(1, len(rows) + 1)), "a place twice, or a gap"
    places = {(kind, id): seq for seq, kind, id, _ in rows}
    assert len(places) == len(rows), "an event twice"
    for key, seq in acknowledged.items():
        assert places.get(key) == seq, f"{key} was acknowledged as {seq}, and is at {places.get(key)}"
    gone = {target for _, kind, _, target in rows if kind == "undo"}
    assert {places["feedback", id] for id in undone} <= gone
    return {id for seq, kind, id, _ in rows if kind == "feedback" and seq not in gone}, list(places)


def problem(reply: httpx.Response, status: int, kind: str) -> dict[str, Any]:
    """The problem that an answer is: of that kind, without a word of the inside."""
    assert (reply.status_code, reply.headers["content-type"]) == (status, "application/problem+json"), reply.text
    found: dict[str, Any] = reply.json()
    assert found["type"] == f"urn:heedful:problem:{kind}"
    assert found["status"] == status
    for inside in ("/", "\\", "log.db", ".heedful", "Traceback", "sqlite", "SQL", "Error"):
        assert inside not in found["detail"], found
    return found


# ---------------------------------------------------------------------------- who asks, many at a time


class Reply(NamedTuple):
    """What a server answered."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def value(self) -> Any:
        """The body, decoded."""
        packed = "msgpack" in self.headers.get("content-type", "")
        return msgspec.msgpack.decode(self.body) if packed else msgspec.json.decode(self.body)


class Gone(OSError):
    """There is no answer: the server is not there, or went away."""


class Asker:
    """One connection to a server, made again where it was lost."""

    def __init__(self, port: int, key: str | None = None) -> None:
        self.port, self.key = port, key
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def ask(
        self, method: str, path: str, value: Any = None, *, packed: bool = False, raw: bytes | None = None, **more: str
    ) -> Reply:
        """The answer to one request; Gone where there is none. `more` are headers."""
        body = b"" if value is None else (msgspec.msgpack if packed else msgspec.json).encode(value)
        kind = "application/msgpack" if packed else "application/json"
        if raw is not None:
            body, kind = raw, "application/octet-stream"
        headers = {"host": "localhost", "content-length": str(len(body)), "content-type": kind}
        headers |= {"accept": kind} if packed else {}
        headers |= {"authorization": f"Bearer {self.key}"} if self.key else {}
        headers |= {name.replace("_", "-"): text for name, text in more.items()}
        head = "".join(f"{name}: {text}\r\n" for name, text in headers.items())
        try:
            if self._streams is None:
                self._streams = await asyncio.open_connection("127.0.0.1", self.port)
            reader, writer = self._streams
            writer.write(f"{method} {path} HTTP/1.1\r\n{head}\r\n".encode() + body)
            status, *lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
            told = dict(line.lower().split(": ", 1) for line in lines if line)
            return Reply(int(status.split()[1]), told, await reader.readexactly(int(told["content-length"])))
        except (OSError, asyncio.IncompleteReadError) as error:
            self.close()
            raise Gone(str(error)) from error

    async def surely(self, *request: Any, **more: Any) -> Reply:
        """The answer to one request, sent again until there is one."""
        while True:
            try:
                return await self.ask(*request, **more)
            except Gone:
                await asyncio.sleep(random.uniform(0.0, 0.02))

    def close(self) -> None:
        """Hang up."""
        if self._streams is not None:
            self._streams[1].close()
            self._streams = None
