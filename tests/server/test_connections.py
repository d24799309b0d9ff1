"""Connections: requests that come one after the other on one, in pieces, together, and those that end too early."""

from __future__ import annotations

import asyncio
import logging
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from asking import FLOAT32, Said, Wire, raw_numbers, request

from heedful.results.answers import Decision
from heedful.server import main, protocol
from heedful.server.app import App
from heedful.server.codecs import Limits
from heedful.server.context import Options
from heedful.server.loop_worker import LoopWorker
from heedful.server.main import Server, config, listening, listening_socket, served
from heedful.server.pages.page import static_url
from heedful.server.protocol import Protocol
from loops import small_loop
from processes import until

SECONDS = 0.8
"""How long a server waits for a request of whom it shall not wait for."""
CARS = "/v1/loops/cars"
DECIDE = f"{CARS}/decisions"
ROWS = np.random.default_rng(3).integers(-2, 3, (30, 4)).astype(np.float32)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    small_loop(tmp_path / "cars.heedful", control=0.0, keep_unshown=False).close()
    return tmp_path


@pytest.fixture
def url(folder: Path) -> Iterator[str]:
    with served(folder) as found:
        yield found


def asked(wire: Wire, content: bytes) -> Said:
    """The answer to one request."""
    assert wire.send(content)
    return wire.must()


NUMBERS = (f"Content-Type: {FLOAT32}",)


# ---------------------------------------------------------------------------- how it comes


@pytest.mark.parametrize("cut", [1, 14, 40, -1, -5, -400, -9_000])
def test_in_pieces(url: str, cut: int) -> None:
    content = request("POST", f"{DECIDE}?show=5", raw_numbers(np.tile(ROWS, (40, 1))), *NUMBERS)
    with Wire(url) as wire:
        for _ in range(2):
            wire.send(content[:cut])
            time.sleep(0.03)
            assert len(asked(wire, content[cut:]).value["shown"]) == 5


def test_what_comes_while_one_is_worked_on(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A request that is under way is not disturbed by the next ones, however much they are."""
    contents = [request("POST", DECIDE, b'{"id":"b%02d","candidates":["i1","i2"]}' % n) for n in range(30)]
    with Wire(url) as wire:
        go, was = threading.Event(), LoopWorker.decide_once

        async def decide_once(self: LoopWorker, *given: Any) -> tuple[Decision, bool]:
            while not go.is_set():
                await asyncio.sleep(0.01)
            return await was(self, *given)

        monkeypatch.setattr(LoopWorker, "decide_once", decide_once)
        for content in contents[1:]:
            wire.send(content)
            time.sleep(0.002)
        go.set()
        assert [wire.must().value["id"] for _ in contents[1:]] == [f"b{n:02}" for n in range(1, 30)]


# ---------------------------------------------------------------------------- participants


@contextmanager
def shared(folder: Path, seconds: float = 10.0) -> Iterator[tuple[App, str, str]]:
    """A server with a port for participants: (it, where its owner comes, where they come)."""
    options = Options(limits=Limits(seconds=seconds))
    with listening(folder, "127.0.0.1", 0, options) as (app, listener), listening_socket("127.0.0.1", 0) as sharing:
        sharing.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 8192)  # so that who does not read is soon noticed
        app.sharing = sharing.getsockname()[1]
        server = Server(config(app), app)
        thread = threading.Thread(target=server.run, args=([listener, sharing],), daemon=True)
        thread.start()
        until(lambda: server.started)
        yield app, *[f"http://127.0.0.1:{each.getsockname()[1]}" for each in (listener, sharing)]
        server.stop()
        thread.join()


@pytest.fixture
def connections(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[Protocol]]:
    """What was "made", and "lost", as it comes."""
    found: dict[str, list[Protocol]] = {"made": [], "lost": []}
    made, lost = Protocol.connection_made, Protocol.connection_lost

    def is_made(self: Protocol, transport: asyncio.Transport) -> None:
        made(self, transport)
        found["made"].append(self)

    def is_lost(self: Protocol, exc: Exception | None) -> None:
        lost(self, exc)
        found["lost"].append(self)

    monkeypatch.setattr(Protocol, "connection_made", is_made)
    monkeypatch.setattr(Protocol, "connection_lost", is_lost)
    return found


def test_participants_have_no_loops(folder: Path) -> None:
    """Whoever comes by the port that is shared gets what a link opens, and nothing else."""
    content = request("POST", DECIDE, b"{}")
    with shared(folder) as (_, own, theirs), Wire(own) as wire, Wire(theirs) as other:
        for _ in range(4):
            assert asked(wire, content).status == 200
            assert asked(other, content).status == 404


def test_participants_do_not_take_all_connections(
    folder: Path, monkeypatch: pytest.MonkeyPatch, connections: dict[str, list[Protocol]]
) -> None:
    monkeypatch.setattr(protocol, "SHARED_MOST", 3)
    content = request("GET", "/s/x")
    with shared(folder) as (_, own, theirs), ExitStack() as stack:
        wires = [stack.enter_context(Wire(theirs)) for _ in range(3)]
        assert [asked(wire, content).status for wire in wires] == [404] * 3
        fourth = stack.enter_context(Wire(theirs))
        assert fourth.closed()
        assert asked(stack.enter_context(Wire(own)), request("GET", "/healthz")).status == 200
        for connection in connections["made"]:
            connection.timeout_keep_alive = 0
        assert [asked(wire, content).status for wire in wires] == [404] * 3
        assert all(wire.closed() for wire in wires)  # nothing comes on them
        assert asked(stack.enter_context(Wire(theirs)), content).status == 404


def test_participants_take_half_of_few_connections(folder: Path) -> None:
    """Where a process may have few, whoever has a link does not keep out whose server it is."""
    with shared(folder) as (app, own, theirs), ExitStack() as stack:
        app.connections = 4
        found = []
        for _ in range(4):
            wire = stack.enter_context(Wire(theirs))
            wire.send(request("GET", "/s/x"))
            found.append(wire.answer() is not None)
        assert found == [True, True, False, False]
        for _ in range(2):
            assert asked(stack.enter_context(Wire(own)), request("GET", "/healthz")).status == 200


def reads_nothing(url: str) -> Wire:
    """Somebody for whom the system takes little."""
    wire = Wire.__new__(Wire)
    wire.socket, wire.data = socket.socket(), b""
    wire.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    wire.socket.connect(("127.0.0.1", int(url.rpartition(":")[2])))
    wire.socket.settimeout(5)
    return wire


@pytest.mark.parametrize("times", [1, 8])  # all of it is written, and only what the system takes
def test_who_does_not_read_is_hung_up_on(
    folder: Path, monkeypatch: pytest.MonkeyPatch, connections: dict[str, list[Protocol]], times: int
) -> None:
    monkeypatch.setattr(protocol, "SHARED_KEEP_ALIVE", 0.2)
    with shared(folder, SECONDS) as (_, _, theirs), reads_nothing(theirs) as wire:
        wire.send(request("GET", static_url("vendor/htmx.min.js")) * times)
        [held] = until(lambda: connections["made"])
        until(lambda: held.transport.get_write_buffer_size() > 10_000)
        held._patience = 0.3
        until(lambda: connections["lost"] == [held])
        assert held.transport.get_write_buffer_size() == 0


class Taken:
    """A transport of answers of which so much was not taken."""

    def __init__(self) -> None:
        self.unread, self.said = 0, list[str]()

    def get_write_buffer_size(self) -> int:
        return self.unread

    def close(self) -> None:
        self.said.append("close")

    def abort(self) -> None:
        self.said.append("abort")


class Time:
    """The time of a loop, that is set."""

    def __init__(self) -> None:
        self.now = 100.0

    def time(self) -> float:
        return self.now


def test_who_reads_slowly_is_not_hung_up_on() -> None:
    connection: Any = Protocol.__new__(Protocol)
    connection.transport, connection.loop, connection._patience = Taken(), Time(), 30.0
    transport: Taken = connection.transport

    def after(seconds: float, unread: int) -> list[str]:
        connection.loop.now += seconds
        transport.unread = unread
        connection.hang_up_unread()
        return transport.said

    assert after(1000.0, 0) == []  # who is answered in full may wait
    assert after(1000.0, 5_000_000) == []
    for left in range(4, 0, -1):
        assert after(29.0, left * 1_000_000) == []
    assert after(29.0, 1_000_000) == []
    assert after(29.0, 0) == []
    assert after(29.0, 1_000_000) == []
    assert after(29.0, 1_000_000) == []
    assert after(2.0, 1_000_000) == ["abort"]


@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_who_hangs_up_in_the_middle_leaves_nothing_in_the_log(
    folder: Path, connections: dict[str, list[Protocol]], caplog: pytest.LogCaptureFixture, method: str
) -> None:
    big = request("GET", static_url("vendor/htmx.min.js"))
    with shared(folder) as (_, _, theirs):
        with reads_nothing(theirs) as wire:
            wire.send(big * 2 + request(method, static_url("vendor/htmx.min.js")) + big)
            until(lambda: connections["made"] and connections["made"][0].flow.write_paused)
        until(lambda: connections["lost"])
    assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []


def test_events_end_with_their_connection_whatever_was_asked_behind_them(
    folder: Path, connections: dict[str, list[Protocol]]
) -> None:
    with shared(folder) as (app, own, _):
        with Wire(own) as wire:
            wire.send(request("GET", f"{CARS}/events") + request("GET", "/healthz"))
            until(lambda: app.service.loops.workers and app.service.loops.workers["main", "cars"].users == 1)
        until(lambda: app.service.loops.workers["main", "cars"].users == 0)


# ---------------------------------------------------------------------------- time, the end


def test_the_end_waits_for_the_answer(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is under way when the server ends is answered, and that the connection ends is said."""
    content = request("POST", DECIDE, b'{"candidates":["i1","i2"]}')
    under_way, go = threading.Event(), threading.Event()
    with ThreadPoolExecutor(1) as pool, served(folder) as url:
        wire = Wire(url)
        idle = Wire(url)
        asked(idle, content)

        async def decide_once(self: LoopWorker, *given: Any) -> tuple[Decision, bool]:
            under_way.set()
            while not go.is_set():
                await asyncio.sleep(0.01)
            return await was(self, *given)

        was = LoopWorker.decide_once
        monkeypatch.setattr(LoopWorker, "decide_once", decide_once)
        wire.send(content)
        assert under_way.wait(60)
        closed = pool.submit(idle.closed)
        threading.Timer(0.5, go.set).start()
    answer = wire.must()
    assert (answer.status, answer.headers["connection"]) == (200, "close")
    assert wire.closed()
    assert closed.result()


def test_idle_connections_end(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those on which nothing came for so long, however long they have been there."""
    monkeypatch.setattr(main, "KEEP_ALIVE", 1)
    with served(folder) as url, ExitStack() as stack:
        began = time.monotonic()
        wire = stack.enter_context(Wire(url, timeout=60.0))
        while time.monotonic() - began < 1.6:  # not while something comes
            wire.send(request("POST", DECIDE, b"{}"))
            if wire.answer() is None:  # nothing came for a second, on a busy machine
                began = time.monotonic()
                wire = stack.enter_context(Wire(url, timeout=60.0))
            time.sleep(0.2)
        assert wire.closed()


def test_who_was_answered_before_the_body_came_is_idle_then(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(main, "KEEP_ALIVE", 1)
    with served(folder) as url, Wire(url) as wire:
        assert asked(wire, request("POST", "/nothing", None, "Content-Length: 3") + b"{").status == 404
        wire.send(b"} ")
        assert wire.closed()
