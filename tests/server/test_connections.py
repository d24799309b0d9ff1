"""Connections: requests that come one after the other on one, in pieces, together, and those that end too early."""

from __future__ import annotations

import asyncio
import errno
import json
import logging
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from asking import FLOAT32, MSGPACK, Caller, Said, Wire, is_problem, raw_numbers, request

from heedful import Loop
from heedful.loop.log import Log
from heedful.results.answers import Decision
from heedful.server import main, protocol
from heedful.server.app import App
from heedful.server.codecs import Limits
from heedful.server.context import Options
from heedful.server.keys import Keys
from heedful.server.loop_worker import LoopWorker
from heedful.server.main import Server, config, listening, listening_socket, served
from heedful.server.pages.page import static_url
from heedful.server.protocol import Protocol
from loops import bits, bits_from_scratch, small_loop
from processes import until

SECONDS = 0.8
"""How long a server waits for a request of whom it shall not wait for."""
CARS = "/v1/loops/cars"
DECIDE = f"{CARS}/decisions"
FEEDBACK = f"{CARS}/feedback"
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


def warm(wire: Wire, content: bytes) -> None:
    """Let the head of a request be known."""
    for _ in range(2):
        asked(wire, content)


def same(one: Said, other: Said) -> None:
    """The same answer, but for what is its own: where it stands in the log, when it came."""

    def rest(answer: Said) -> Any:
        value = answer.value
        if answer.headers["content-type"] == MSGPACK:
            value = msgspec.msgpack.decode(value)
        if isinstance(value, dict):
            value = value | value.get("answer", {})
            value = {name: each for name, each in value.items() if name not in ("id", "event", "seq", "answer")}
        kept = {name: each for name, each in answer.headers.items() if name not in ("date", "content-length")}
        return answer.status, kept, value

    assert rest(one) == rest(other)
    assert "date" in one.headers


NUMBERS = (f"Content-Type: {FLOAT32}",)
BODIES: list[tuple[str, bytes, tuple[str, ...]]] = [
    (DECIDE, b'{"candidates":["i1","i2","i3"],"show":2,"person":"anna"}', ()),
    (DECIDE, b'{"candidates":[{"f0":1,"f1":0,"f2":2,"f3":0},{"f0":2,"f1":0,"f2":0,"f3":1}]}', ()),
    (
        DECIDE,
        msgspec.msgpack.encode({"candidates": ["i4", "i5"]}),
        ("Content-Type: application/msgpack", "Accept: application/msgpack"),
    ),
    (f"{DECIDE}?show=5", raw_numbers(ROWS), NUMBERS),
    (f"{DECIDE}?show=5", raw_numbers(np.tile(ROWS, (100, 1))), NUMBERS),
    (DECIDE, b"{}", ()),
    # what is refused
    (DECIDE, b'{"candidates":["nobody"],"strict":true}', ()),
    (DECIDE, b'{"candidates":', ()),
    (DECIDE, b'{"colour":1}', ()),
    (DECIDE, b"[]", ()),
    (DECIDE, raw_numbers(ROWS[:, :3]) + b"\0", NUMBERS),
    (DECIDE, raw_numbers([[0.0, 1.0, np.nan, 0.0]]), NUMBERS),
    (DECIDE, raw_numbers([[3e38, -3e38, 3e38, 0.0]] * 2), NUMBERS),
    (FEEDBACK, b'{"decision":"nobody","clicks":[]}', ()),
    (FEEDBACK, b'{"decision":"D","clicks":["nobody"]}', ()),
    (FEEDBACK, b'{"decision":"D","id":"E","better":"i2"}', ()),
    (FEEDBACK, b'{"decision":"D","id":"E","better":"i1"}', ()),
    (FEEDBACK, b'{"decision":"D"}', ()),
    (FEEDBACK, b'[{"decision":"D","id":"E","better":"i1"},{}]', ()),
    (FEEDBACK, b"7", ()),
    (FEEDBACK, raw_numbers(ROWS), NUMBERS),
    ("/v1/loops/nobody/decisions", b"{}", ()),
]


@pytest.mark.parametrize(("target", "body", "lines"), BODIES, ids=lambda given: str(given)[:60])
def test_the_same_is_said(url: str, target: str, body: bytes, lines: tuple[str, ...]) -> None:
    """On one connection as on new ones."""
    with closing(Caller(url)) as caller:
        assert caller.post(DECIDE, {"id": "D", "candidates": ["i1", "i2", "i3"]}).status == 200
        assert caller.post(FEEDBACK, {"decision": "D", "id": "E", "better": "i1"}).status == 200
    content = request("POST", target, body, *lines)
    before = []
    for _ in range(3):
        with Wire(url) as wire:
            before.append(asked(wire, content))
    with Wire(url) as wire:
        answers = [asked(wire, content) for _ in range(4)]
    for answer in answers:
        same(before[-1], answer)


def test_the_log_and_the_model_are_the_same(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Decisions and feedback on one connection, and each on its own."""

    def rounds(url: str, alone: bool) -> list[Any]:
        wire, told = Wire(url), []

        def ask(path: str, body: dict[str, Any]) -> Any:
            nonlocal wire
            if alone:
                wire.close()
                wire = Wire(url)
            answer = asked(wire, request("POST", path, json.dumps(body).encode()))
            assert answer.status == 200
            told.append(answer.value)
            return answer.value

        for n in range(30):
            names = [f"i{(n + j) % 12}" for j in range(6)]
            d = ask(DECIDE, {"id": f"d{n:02}", "candidates": names, "show": 4, "person": f"p{n % 3}"})
            ask(FEEDBACK, {"decision": d["id"], "id": f"f{n:02}", "clicks": d["shown"][1:3]})
        wire.close()
        return told

    other = tmp_path_factory.mktemp("other")
    small_loop(other / "cars.heedful", control=0.0, keep_unshown=False).close()
    found = []
    for home, alone in ((folder, False), (other, True)):
        with served(home) as url:
            told = rounds(url, alone)
        with Loop.open(home / "cars.heedful") as loop:
            log = [event._replace(time=0) for event in loop.projection.log.events()][1:]
            assert bits(loop) == bits_from_scratch(loop)
            found.append((told, log, bits(loop)))
    assert found[0] == found[1]


# ---------------------------------------------------------------------------- how it comes


@pytest.mark.parametrize("cut", [1, 14, 40, -1, -5, -400, -9_000])
def test_in_pieces(url: str, cut: int) -> None:
    content = request("POST", f"{DECIDE}?show=5", raw_numbers(np.tile(ROWS, (40, 1))), *NUMBERS)
    with Wire(url) as wire:
        warm(wire, content)
        whole = asked(wire, content)
        for _ in range(3):
            wire.send(content[:cut])
            time.sleep(0.03)
            same(whole, asked(wire, content[cut:]))
            same(whole, asked(wire, content))


def test_several_at_once(url: str) -> None:
    """In order, and none is lost: those that come together, and those that come while one is worked on."""
    names = [json.dumps({"id": f"a{n:02}", "candidates": ["i1", "i2"]}).encode() for n in range(40)]
    contents = [request("POST", DECIDE, name) for name in names]
    with Wire(url) as wire:
        warm(wire, contents[0])
        wire.send(b"".join(contents[:5]))
        assert [wire.must().value["id"] for _ in range(5)] == [f"a{n:02}" for n in range(5)]
        for content in contents[5:20]:
            wire.send(content)
        got = [wire.must().value["id"] for _ in range(15)]
        assert got == [f"a{n:02}" for n in range(5, 20)]
        assert asked(wire, contents[20]).value["id"] == "a20"
        other = request("GET", CARS, b"")
        wire.send(contents[21] + other + contents[22])
        assert [wire.must().value.get("id") for _ in range(3)] == ["a21", None, "a22"]


def test_several_large_ones_at_once(url: str) -> None:
    """What comes behind a large body, from its first byte on, is the next request."""
    numbers = raw_numbers(np.tile(ROWS, (40, 1)))
    contents = [request("POST", f"{DECIDE}?show={n + 2}", numbers, *NUMBERS) for n in range(6)]
    with Wire(url) as wire:
        for content in contents:
            warm(wire, content)
        whole = [asked(wire, content) for content in contents]
        assert [len(answer.value["shown"]) for answer in whole] == [2, 3, 4, 5, 6, 7]
        for last in (1, 300, len(contents[0])):
            wire.send(b"".join(contents[:5]) + contents[5][:last])
            time.sleep(0.05)
            wire.send(contents[5][last:])
            for answer in whole:
                same(answer, wire.must())


def test_what_comes_while_one_is_worked_on(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A request that is under way is not disturbed by the next ones, however much they are."""
    contents = [request("POST", DECIDE, b'{"id":"b%02d","candidates":["i1","i2"]}' % n) for n in range(30)]
    with Wire(url) as wire:
        warm(wire, contents[0])
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


def test_a_body_that_looks_like_a_request_is_none(url: str) -> None:
    """Not even where it begins with what was read: its request says how long it is."""
    content = request("POST", DECIDE, b'{"id":"inside","candidates":["i1","i2"]}')
    with Wire(url) as wire, closing(Caller(url)) as caller:
        warm(wire, request("POST", DECIDE, b'{"id":"beside","candidates":["i1","i2"]}'))
        before = caller.get(CARS).value["events"]
        for head in (request("POST", f"{CARS}/activate", content), request("POST", DECIDE, content)):
            head = head[: -len(content)]
            for cut in (0, 1):
                wire.send(head[: len(head) - cut])
                time.sleep(0.05)
                is_problem(asked(wire, head[len(head) - cut :] + content), "malformed", "body")
        wire.send(request("POST", DECIDE, content, "X: y")[: -len(content)])
        time.sleep(0.05)
        is_problem(asked(wire, content), "malformed", "body")
        wire.send(f"GET {CARS} HTTP/1.1\r\nX-Before: ".encode())  # nor is what follows a half of a head
        time.sleep(0.05)
        assert asked(wire, content).value["events"] == before
        assert asked(wire, content).value["id"] == "inside"


def test_one_that_is_slow_is_answered_first(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    content = request("POST", DECIDE, b'{"id":"second","candidates":["i1","i2"]}')
    go, was = threading.Event(), LoopWorker.decide_once
    with Wire(url) as wire:
        warm(wire, content)

        async def decide_once(self: LoopWorker, *given: Any) -> tuple[Decision, bool]:
            while not go.is_set():
                await asyncio.sleep(0.01)
            return await was(self, *given)

        monkeypatch.setattr(LoopWorker, "decide_once", decide_once)
        wire.send(request("POST", DECIDE, b'{"candidates":["i1","i2"]}', "Idempotency-Key: first"))
        time.sleep(0.1)
        wire.send(content)
        time.sleep(0.1)
        go.set()
        assert [wire.must().value["id"] for _ in range(2)] == ["first", "second"]
        assert asked(wire, content).value["id"] == "second"


STRANGE = [
    "Idempotency-Key: k",
    "Transfer-Encoding: chunked",
    "Connection: keep-alive",
    "Content-Encoding: identity",
    "Expect: 100-continue",
    "Content-Type: text/plain",
    "X-Two: 1\r\nX-Two: 2",
]


@pytest.mark.parametrize("line", STRANGE)
def test_unusual_heads(url: str, line: str) -> None:
    body = b"2\r\n{}\r\n0\r\n\r\n" if "chunked" in line else b"{}"
    with Wire(url) as wire:
        for _ in range(4):
            assert asked(wire, request("POST", DECIDE, body, line)).status == (415 if "text/plain" in line else 200)


# ---------------------------------------------------------------------------- who may


def test_a_key_that_is_revoked(folder: Path) -> None:
    keys = Keys(folder)
    made, key = keys.create("shop")
    with served(folder) as url, Wire(url) as wire:
        content = request("POST", DECIDE, b"{}", f"Authorization: Bearer {key}")
        warm(wire, content)
        assert asked(wire, content).status == 200
        keys.revoke(made.prefix)
        until(lambda: asked(wire, content).status == 401)
        assert is_problem(asked(wire, content), "no-key")
    keys.close()


def test_a_rate_counts_each_once(folder: Path) -> None:
    keys = Keys(folder)
    _, key = keys.create("shop", rate=0.01)
    keys.close()
    with served(folder) as url, Wire(url) as wire:
        content = request("POST", DECIDE, b"{}", f"Authorization: Bearer {key}")
        got = [asked(wire, content) for _ in range(12)]
        assert [answer.status for answer in got] == [200] * 10 + [429] * 2
        assert got[-1].headers["retry-after"] == "100"


def test_a_rate_counts_each_once_that_is_refused(folder: Path) -> None:
    keys = Keys(folder)
    _, key = keys.create("looker", rate=0.01, scopes=["read"])
    keys.close()
    with served(folder) as url, Wire(url) as wire:
        content = request("POST", DECIDE, b"{}", f"Authorization: Bearer {key}")
        assert [asked(wire, content).status for _ in range(12)] == [403] * 10 + [429] * 2


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


# ---------------------------------------------------------------------------- time, other processes, the end


def test_a_body_that_does_not_come(folder: Path) -> None:
    content = request("POST", f"{DECIDE}?show=5", raw_numbers(np.tile(ROWS, (40, 1))), *NUMBERS)
    with served(folder, Options(limits=Limits(seconds=2.0))) as url, ExitStack() as stack:
        wires = [stack.enter_context(Wire(url, timeout=60.0)) for _ in range(2)]
        for wire in wires:
            warm(wire, content)
        for wire, cut in zip(wires, (-1, -4000)):
            wire.send(content[:cut])
        for wire in wires:
            is_problem(wire.must(), "too-slow", "body")
            assert wire.closed()


def test_who_goes_away_is_not_waited_for(url: str) -> None:
    content = request("POST", DECIDE, b'{"candidates":["i1","i2"]}')
    with closing(Caller(url)) as caller:
        before = caller.get(CARS).value["events"].get("decision", 0)
        for part in (None, -3):
            with Wire(url) as wire:
                warm(wire, content)
                wire.send(content[:part])
        until(lambda: caller.get(CARS).value["events"]["decision"] >= before + 4)
        assert caller.post(DECIDE, {"candidates": ["i1", "i2"]}).status == 200


def test_another_process_changes_the_model_meanwhile(folder: Path) -> None:
    """Decided anew, by the model that has it."""
    with served(folder) as url, Wire(url) as wire, Loop.open(folder / "cars.heedful") as other:
        content = request("POST", f"{DECIDE}?show=5", raw_numbers(np.tile(ROWS, (20, 1))), *NUMBERS)
        warm(wire, content)
        for n in range(5):
            made = other.decide([f"i{n}", "i8", "i9"])
            answer = other.feedback({"decision": made.id, "better": made.shown[-1]})
            assert asked(wire, content).value["version"] == answer.version
            named = request("POST", DECIDE, b'{"candidates":["i1","i2","i3"]}')
            assert asked(wire, named).value["version"] == answer.version


def test_feedback_on_what_another_process_decided(folder: Path) -> None:
    with served(folder) as url, Wire(url) as wire, Loop.open(folder / "cars.heedful") as other:
        for n in range(4):
            made = other.decide(["i7", "i8", "i9"], id=f"d{n}")
            body = json.dumps({"decision": made.id, "id": f"f{n}", "better": "i9"}).encode()
            assert asked(wire, request("POST", FEEDBACK, body)).value["status"] == "applied"


def test_what_cannot_be_written_is_told(url: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    content = request("POST", DECIDE, b'{"candidates":["i1","i2"]}')
    with Wire(url) as wire:
        warm(wire, content)

        def full(*_: Any) -> None:
            raise OSError(errno.ENOSPC, "no room")

        monkeypatch.setattr(Log, "append", full)
        is_problem(asked(wire, content), "unavailable")
        monkeypatch.undo()
        assert asked(wire, content).status == 200


def test_the_end_waits_for_the_answer(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is under way when the server ends is answered, and that the connection ends is said."""
    content = request("POST", DECIDE, b'{"candidates":["i1","i2"]}')
    under_way, go = threading.Event(), threading.Event()
    with ThreadPoolExecutor(1) as pool, served(folder) as url:
        wire = Wire(url)
        warm(wire, content)
        idle = Wire(url)
        warm(idle, content)

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
