"""What one caller leaves to the others: no work for the collector, no memory, no turn of the event loop."""

from __future__ import annotations

import asyncio
import gc
import sys
import threading
import tracemalloc
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import numpy as np
import pytest
from asking import FLOAT32, Caller, Event, Wire, events, is_problem, request
from hypothesis import given
from hypothesis import strategies as st

from heedful import Loop
from heedful.features.encoding import Encoding
from heedful.loop.decide import Decider
from heedful.loop.log import Log
from heedful.server import codecs, context, main, metrics
from heedful.server import events as events_module
from heedful.server.codecs import Limits
from heedful.server.context import Options
from heedful.server.events import Round
from heedful.server.keys import Keys
from heedful.server.main import served
from heedful.server.problems import Problem
from heedful.server.protocol import Protocol
from loops import small_loop
from processes import until

CARS = "/v1/loops/cars"
DECIDE = f"{CARS}/decisions"
FEEDBACK = f"{CARS}/feedback"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    small_loop(tmp_path / "cars.heedful", control=0.0).close()
    return tmp_path


@pytest.fixture
def url(folder: Path) -> Iterator[str]:
    with served(folder) as found:
        yield found


# ---------------------------------------------------------------------------- what is refused leaves nothing behind


def left_behind() -> list[str]:
    """Refusals that are over and still there: parts of cycles, which only the collector finds."""
    return sorted(each.kind for each in gc.get_objects() if issubclass(type(each), Problem))


REFUSED = [
    ("no-key", request("POST", DECIDE, b"{}", "Authorization: Bearer none")),
    ("no-key", request("GET", "/v1/loops")),
    ("no-key", request("GET", "/nowhere")),
    ("malformed", request("POST", DECIDE, b'{"candidates":', "Authorization: KEY")),
    ("bad-input", request("POST", DECIDE, b'{"colour":1}', "Authorization: KEY")),
    ("bad-input", request("POST", DECIDE, b'{"candidates":["i1","nobody"],"strict":true}', "Authorization: KEY")),
    ("unsupported", request("POST", FEEDBACK, b"1234", "Content-Type: application/octet-stream", "Authorization: KEY")),
    ("rejected", request("POST", FEEDBACK, b'{"decision":"nobody","clicks":[]}', "Authorization: KEY")),
    ("too-large", request("POST", FEEDBACK, b"[" + b"{}," * 1000 + b"{}]", "Authorization: KEY")),
    ("not-found", request("POST", "/v1/loops/nobody/decisions", b"{}", "Authorization: KEY")),
    ("not-found", request("GET", "/v1/loops/nobody", None, "Authorization: KEY")),
    ("not-found", request("GET", "/nowhere", None, "Authorization: KEY")),
    ("malformed", request("PUT", f"{CARS}/items", b"[", "Authorization: KEY")),
    ("bad-input", request("PUT", f"{CARS}/items", b'[{"id":""}]', "Authorization: KEY")),
    ("rejected", request("POST", f"{CARS}/undo", b'{"event":"nobody"}', "Authorization: KEY")),
]


@pytest.mark.slow
def test_a_refusal_is_gone_when_it_was_answered(folder: Path) -> None:
    """A caller without a key makes as many as they like; a pause of the collector is everybody's."""
    keys = Keys(folder)
    key = b"Bearer " + keys.create("all")[1].encode()
    keys.close()
    refused = [(kind, content.replace(b"KEY", key)) for kind, content in REFUSED]
    with served(folder) as url:
        for _, content in refused:  # what is made once, at the first request, is made
            with Wire(url) as wire:
                wire.send(content)
                wire.must()
        gc.collect()
        gc.disable()
        try:
            before = left_behind()
            for kind, content in refused:
                with Wire(url) as wire:  # with a head that is new, and that came before
                    for _ in range(4):
                        wire.send(content)
                        assert wire.must().value["type"].endswith(kind)
            with closing(Caller(url)) as caller:  # the last one is over once another was answered
                assert caller.get("/healthz").status == 200
            after = left_behind()
        finally:
            gc.enable()
    assert after == before


# ---------------------------------------------------------------------------- what is measured


def test_metrics_are_written_beside_the_event_loop_and_once_a_second(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However often a tenant asks, and whoever waits for its text: others are answered meanwhile."""
    may, made, was = threading.Event(), list[str | None](), metrics.exposition

    def slow(counts: metrics.Metrics, tenant: str | None) -> bytes:
        made.append(tenant)
        assert may.wait(20), "nobody was answered meanwhile"
        return was(counts, tenant)

    now = [100.0]
    monkeypatch.setattr(metrics, "PATIENCE", 60.0)
    monkeypatch.setattr(metrics, "exposition", slow)
    monkeypatch.setattr(metrics, "clock", lambda: now[0])
    with closing(Keys(folder)) as keys:
        acme, other, everything = (
            keys.create("a", tenant="acme", scopes=["read", "metrics"])[1],
            keys.create("o", tenant="other", scopes=["metrics"])[1],
            keys.create("e", scopes=["metrics"])[1],
        )
    with served(folder) as url, ThreadPoolExecutor(8) as pool:

        def scrape(key: str) -> bytes:
            with closing(Caller(url, key)) as caller:
                answer = caller.send("GET", "/metrics")
                assert answer.status == 200
                return bytes(answer.value)

        with closing(Caller(url, acme)) as caller:
            caller.get("/v1/loops")
            asked = [pool.submit(scrape, acme) for _ in range(6)]
            until(lambda: made)
            for _ in range(3):
                assert caller.get("/v1/loops").status == 200
            may.set()
            [text] = {each.result(20) for each in asked}
            assert made == ["acme"]
            assert scrape(other) != text  # each tenant has its own
            assert b"process_" in scrape(everything)
            assert made == ["acme", "other", None]
            now[0] += 0.9
            assert scrape(acme) == text
            now[0] += 0.2
            assert scrape(acme) != text
            assert made == ["acme", "other", None, "acme"]


def test_metrics_that_take_long_are_not_waited_for(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    may, was = threading.Event(), metrics.exposition
    monkeypatch.setattr(metrics, "PATIENCE", 0.01)
    monkeypatch.setattr(metrics, "exposition", lambda *given: was(*given) if may.wait(60) else b"")
    with served(folder) as url, closing(Caller(url)) as caller:
        for _ in range(2):
            is_problem(caller.send("GET", "/metrics"), "unavailable")
        may.set()
        until(lambda: caller.send("GET", "/metrics").status == 200)


def test_metrics_that_fail_are_tried_again(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: Any) -> bytes:
        raise RuntimeError("not now")

    with served(folder) as url, closing(Caller(url)) as caller:
        with monkeypatch.context() as broken:
            broken.setattr(metrics, "exposition", fails)
            is_problem(caller.send("GET", "/metrics"), "damaged")
        assert caller.send("GET", "/metrics").status == 200


# ---------------------------------------------------------------------------- large bodies

MIB = 2**20
WORDS = "x" * (MIB + 100)


def crowd(n: int) -> bytes:
    """A request for a decision among n candidates of which nothing is said."""
    return b'{"candidates":[' + b",".join([b"{}"] * n) + b'],"show":1}'


def test_json_may_have_a_mebibyte_and_all_else_more(url: str, folder: Path) -> None:
    """JSON is what takes most memory for its bytes; items and new loops, which take a key that may `admin`, may have
    more, and so may what costs less to read."""
    small = {"candidates": ["i1", "i2"]}
    with closing(Caller(url)) as ask, closing(Caller(url, form="msgpack")) as packed:
        spaces = msgspec.json.encode(small)
        assert ask.send("POST", DECIDE, spaces + b" " * (MIB - len(spaces))).status == 200
        for target in (DECIDE, FEEDBACK, f"{CARS}/records", f"{CARS}/undo", f"{CARS}/rank"):
            found = is_problem(ask.send("POST", target, b" " * (MIB + 1)), "too-large", "body")
            assert "1048576 bytes of JSON" in found["detail"]
        chunks = iter([b" " * MIB, b" "])
        answer = ask.http.request("POST", DECIDE, content=chunks)
        assert answer.status_code == 413
        given = {"candidates": [{"id": f"n{j}", "text": WORDS} for j in range(3)]}
        assert packed.post(DECIDE, given).status == 200
        numbers = np.ones((80_000, 4), "<f4")
        assert ask.send("POST", f"{DECIDE}?show=1", numbers.tobytes(), content_type=FLOAT32).status == 200
        items = [{"id": f"n{j}", "f0": 1, "text": WORDS} for j in range(3)]
        assert ask("PUT", f"{CARS}/items", items).value["put"] == 3
        new = msgspec.json.encode({"name": "new", "items": [{"id": f"n{j}", "f0": j} for j in range(3)]})
        assert ask.send("POST", "/v1/loops", new + b" " * MIB).status == 201
        is_problem(ask.send("PUT", f"{CARS}/items", b" " * (8 * MIB + 1)), "too-large", "body")
    with served(folder, Options(limits=Limits(body=1000))) as less, closing(Caller(less)) as ask:
        is_problem(ask.send("POST", DECIDE, b" " * 1001), "too-large", "body")


def test_too_many_candidates_are_counted_before_one_is_looked_at(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    encoded: list[Any] = []
    was = Encoding.encode

    def noted(self: Encoding, row: Any, *rest: Any) -> Any:
        encoded.append(row)
        return was(self, row, *rest)

    monkeypatch.setattr(Encoding, "encode", noted)
    with closing(Caller(url)) as ask:
        for path in ("decisions", "records", "rank"):
            given = {"candidates": [{}] * 100_001} | ({"shown": ["0"], "id": "r"} if path == "records" else {})
            found = is_problem(ask.post(f"{CARS}/{path}", given), "bad-input", "candidates")
            assert "100001 of them" in found["detail"]
        assert ask.post(DECIDE, {"id": "d", "candidates": [{"id": "a", "f0": 1}, {"id": "b"}]}).status == 200
        assert len(encoded) == 2
        again = ask.post(DECIDE, {"id": "d", "candidates": [{}] * 100_001})
        is_problem(again, "bad-input", "candidates")


def peak(work: Callable[[], object]) -> int:
    """Bytes that work takes at most."""
    tracemalloc.start()
    try:
        with pytest.raises(Problem) as refusal:
            work()
        assert refusal.value.kind == "too-large"
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def packed_list(n: int, of: bytes) -> bytes:
    """A list in msgpack."""
    return b"\xdd" + n.to_bytes(4, "big") + of * n


N = 8 * MIB - 100
CROWDS = {
    "objects": (crowd(2_790_000), codecs.JSON),
    "lists": (b'{"context":{"a":[' + b"[]," * 2_700_000 + b"[]]}}", codecs.JSON),
    "lists within lists": (b"[" * 800 + b"[[]," * 1_500_000, codecs.JSON),
    "numbers": (b"[" + b"1," * 4_000_000 + b"1]", codecs.JSON),
    "msgpack": (b"\x81\xaacandidates" + packed_list(N, b"\x80"), codecs.MSGPACK),
    "msgpack, in one candidate": (b"\x81\xaacandidates\x91\x81\xa1a" + packed_list(N, b"\x80"), codecs.MSGPACK),
    "msgpack, in objects": (b"\x81\xa7context" + b"\x81\xa1a" * 9 + packed_list(90_000, b"\x90" * 80), codecs.MSGPACK),
    "msgpack, a list": (packed_list(N, b"\x80"), codecs.MSGPACK),
}


@pytest.mark.parametrize("crowded", CROWDS)
def test_a_crowd_is_refused_by_its_bytes(crowded: str) -> None:
    """Before it takes memory, sixty bytes for one that was sent."""
    body, kind = CROWDS[crowded]
    assert peak(lambda: codecs.decode(body, kind)) < MIB


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False) | st.text(max_size=5),
        lambda inside: st.lists(inside, max_size=4) | st.dictionaries(st.text(max_size=3), inside, max_size=4),
    )
)
def test_no_more_values_are_there_than_are_counted(value: Any) -> None:
    def values(of: Any) -> int:
        inside = of.values() if isinstance(of, dict) else of if isinstance(of, list) else ()
        return 1 + sum(map(values, inside))

    assert codecs.count_values(msgspec.json.encode(value)) >= values(value)


ROW = {"id": "a", "n": 1.5, "flag": True, "none": None, "features": [0.5] * 9, "about": {"deep": {"tags": ["x"]}}}
LARGE = [
    {"candidates": [ROW | {"text": WORDS}, ROW], "prior": {"a": 1.0}, "context": ROW, "show": 1},
    {"candidates": [f"n{i}" for i in range(100_000)], "prior": [0.5] * 100_000},
    {"name": "n", "items": [ROW] * 9000, "context": [ROW], "crosses": [["a", "b"]], "settings": {"k": 1}},
    [ROW] * 9000,
    [{"decision": "d", "edit": {"a": WORDS}, "actions": {"a": ["b"]}, "rating": {"a": 1}}] * 2,
]


@pytest.mark.parametrize("value", LARGE, ids=range(len(LARGE)))
def test_what_is_large_and_plain_is_read(value: Any) -> None:
    assert codecs.decode(msgspec.msgpack.encode(value), codecs.MSGPACK) == value
    assert codecs.decode(msgspec.json.encode(value), codecs.JSON) == value


def test_large_bodies_are_read_one_at_a_time_beside_the_event_loop(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "acme").mkdir()
    small_loop(folder / "acme" / "cars.heedful").close()
    with closing(Keys(folder)) as keys:
        main, acme = keys.create("m")[1], keys.create("a", tenant="acme")[1]
    began, at_once, may, was = list[int](), list[int](), threading.Event(), codecs.decode
    reading = 0

    def slow(body: Any, kind: bytes) -> Any:
        nonlocal reading
        if len(body) < 100_000:
            return was(body, kind)
        began.append(threading.get_ident())
        reading += 1
        at_once.append(reading)
        try:
            assert may.wait(20), "nobody was answered meanwhile"
            return was(body, kind)
        finally:
            reading -= 1

    monkeypatch.setattr(codecs, "decode", slow)
    body = b'{"candidates":["i1","i2"]}' + b" " * 200_000
    with served(folder) as url, ThreadPoolExecutor(8) as pool, closing(Caller(url, acme)) as other:

        def send(key: str, method: str, path: str, content: bytes) -> int:
            with closing(Caller(url, key)) as caller:
                return caller.send(method, path, content).status

        asked = [pool.submit(send, main, "POST", DECIDE, body) for _ in range(3)]
        items = msgspec.json.encode([{"id": "new", "f0": 1}]) + b" " * 200_000
        asked += [pool.submit(send, main, "PUT", f"{CARS}/items", items) for _ in range(2)]
        asked += [pool.submit(send, acme, "POST", DECIDE, body)]
        until(lambda: began)
        for _ in range(3):
            assert other.post(DECIDE, {"candidates": ["i1", "i2"]}).status == 200
        may.set()
        assert [each.result(20) for each in asked] == [200] * 6
    assert len(began) == 6
    assert len(set(began)) == 1
    assert max(at_once) == 1


def test_many_objects_are_looked_at_beside_the_event_loop(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A few hundred candidates that come along take tens of milliseconds, where names take one."""
    threads: dict[int, str] = {}
    was = Decider.read

    def noted(self: Decider, candidates: Any = None, **rest: Any) -> Any:
        threads[len(candidates)] = threading.current_thread().name
        return was(self, candidates, **rest)

    monkeypatch.setattr(Decider, "read", noted)
    with closing(Caller(url)) as ask:
        for n in (20, 1000):
            assert ask.post(DECIDE, {"candidates": [{"f0": j % 7} for j in range(n)]}).status == 200
    assert not threads[20].startswith("heedful_")
    assert threads[1000].startswith("heedful_")


def test_large_bodies_leave_the_others_a_share(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Nobody else runs while one is read: after it, the next one waits twice as long as that took."""
    now, slept = [0.0], list[float]()

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        now[0] += seconds

    def work() -> int:
        now[0] += 0.03
        return 7

    clock = lambda: now[0]  # noqa: E731
    monkeypatch.setattr(context, "time", SimpleNamespace(perf_counter=clock, thread_time=clock, sleep=sleep))

    async def both() -> None:
        serving = context.ServerContext(tmp_path)
        try:
            assert [await serving.read(work) for _ in range(3)] == [7, 7, 7]
            now[0] += 1.0
            await serving.read(work)
        finally:
            await serving.stop()

    asyncio.run(both())
    assert slept == pytest.approx([0.0, 0.06, 0.06, 0.0])


def test_lists_are_learned_beside_the_event_loop(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A hundred events take ten milliseconds."""
    threads: dict[int, str] = {}
    was = Loop.feedback_many

    def noted(self: Loop, events: Any) -> Any:
        threads[len(events)] = threading.current_thread().name
        return was(self, events)

    monkeypatch.setattr(Loop, "feedback_many", noted)
    with closing(Caller(url)) as ask:
        assert ask.post(DECIDE, {"id": "d", "candidates": ["i1", "i2", "i3"]}).status == 200
        for n in (20, 1000):
            events = [{"decision": "d", "id": f"e{n}-{j}", "clicks": []} for j in range(n)]
            assert {each["status"] for each in ask.post(FEEDBACK, events).value} == {"applied"}
    assert {n: name[:8] for n, name in threads.items()} == {1000: "heedful_"}


@pytest.mark.slow
def test_threads_that_work_for_others_let_go_soon(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The thread of the server waits for the interpreter several times a request, each time for so long."""
    found: list[float] = []
    before, thresholds = sys.getswitchinterval(), gc.get_threshold()
    monkeypatch.setattr(main.Server, "run", lambda *_: found.append(sys.getswitchinterval()))
    try:
        with main.listening(folder, "127.0.0.1", 0, Options()) as (app, listener):
            main.serve(app, listener)
    finally:
        sys.setswitchinterval(before)
        gc.set_threshold(*thresholds)
        gc.unfreeze()
    assert found == pytest.approx([0.0005])


# ---------------------------------------------------------------------------- bodies that do not come


@pytest.mark.slow
def test_the_slow_are_hung_up_on_a_few_at_a_time(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A thousand at once are refused in the same second; others have a turn between them."""
    turns, refused = [0], list[int]()
    monkeypatch.setattr(Protocol, "too_slow", lambda self, seconds: refused.append(turns[0]))
    monkeypatch.setattr(Protocol, "hang_up_unread", lambda self: None)

    async def work() -> None:
        app = main.create_app(folder, Options(limits=Limits(seconds=0.1)))
        server = main.Server(main.config(app), app)
        for _ in range(1000):
            connection = Protocol.__new__(Protocol)
            connection.began = -1000.0
            server.server_state.connections.add(connection)
        watching = asyncio.create_task(server._hang_up())
        while len(refused) < 1000:
            turns[0] += 1
            await asyncio.sleep(0)
        watching.cancel()
        await app.service.stop()

    asyncio.run(work())
    assert max(Counter(refused).values()) <= 20


# ---------------------------------------------------------------------------- many who follow


@contextmanager
def following(url: str, n: int, query: str = "") -> Iterator[list[Iterator[Event]]]:
    """So many streams of the events of a loop."""
    with ExitStack() as stack:
        found = []
        for _ in range(n):
            caller = stack.enter_context(closing(Caller(url)))
            found.append(stack.enter_context(events(caller, f"{CARS}/events{query}")))
        yield found


def test_a_log_is_read_once_for_all_who_follow_it(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[int] = []
    was = Log.events

    def noted(self: Log, after: int = 0, *rest: Any, **named: Any) -> Any:
        read.append(after)
        return was(self, after, *rest, **named)

    monkeypatch.setattr(Log, "events", noted)
    monkeypatch.setattr("heedful.server.events.LOOK", 60.0)
    with closing(Caller(url)) as ask, following(url, 60, "?kinds=feedback,decision") as streams:
        assert ask.post(DECIDE, {"id": "d", "candidates": ["i1", "i2"]}).status == 200
        for stream in streams:
            assert next(stream).data["id"] == "d"
        read.clear()
        for n in range(5):
            told = ask.post(FEEDBACK, {"decision": "d", "id": f"e{n}", "clicks": []}).value
            assert {(next(stream).id, n) for stream in streams} == {(told["seq"], n)}
        assert len(read) <= 2 * 5


def test_who_follows_is_told_what_the_log_says(url: str) -> None:
    """Whatever kinds they want and wherever they began: live as from the log."""
    queries = ["?after=0", "?after=0&kinds=feedback", "?after=14&kinds=decision,undo", "?after=15", "?kinds=item"]
    with closing(Caller(url)) as ask, ExitStack() as stack:
        for n in range(3):
            assert ask.post(DECIDE, {"id": f"d{n}", "candidates": ["i1", "i2"]}).status == 200
        live = [stack.enter_context(following(url, 2, query)) for query in queries]
        for n in range(3):
            assert ask.post(FEEDBACK, {"decision": f"d{n}", "id": f"e{n}", "clicks": []}).status == 200
        assert ask.post(f"{CARS}/undo", {"event": "e1", "id": "u"}).status == 200
        assert ask("PUT", f"{CARS}/items", [{"id": "new", "f0": 1.0}]).status == 200
        for query, streams in zip(queries, live, strict=True):
            with closing(Caller(url)) as caller, events(caller, f"{CARS}/events{query}&follow=false") as log:
                wanted = list(log)
            assert wanted
            for stream in streams:
                assert [next(stream) for _ in wanted] == wanted


def test_those_who_follow_are_told_a_few_at_a_time(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a thousand are told takes a tenth of a second: others have a turn between them."""
    turns, told = [0], list[int]()
    was = Round.select

    def noted(self: Round, *rest: Any) -> Any:
        if self.events:
            told.append(turns[0])
        return was(self, *rest)

    async def pause(seconds: float) -> None:
        await asyncio.sleep(seconds)
        turns[0] += 1

    monkeypatch.setattr(events_module, "pause", pause)
    monkeypatch.setattr("heedful.server.events.LOOK", 60.0)
    with closing(Caller(url)) as ask, following(url, 60, "?kinds=decision") as streams:
        for n in range(2):
            monkeypatch.setattr(Round, "select", was if n == 0 else noted)
            assert ask.post(DECIDE, {"id": f"d{n}", "candidates": ["i1", "i2"]}).status == 200
            for stream in streams:
                assert next(stream).data["id"] == f"d{n}"
    assert len(told) >= 60
    assert max(Counter(told).values()) <= 25
