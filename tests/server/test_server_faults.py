"""What goes wrong around a server: locks, full disks, damage, other processes, who never reads. Nothing that was
answered is lost, nothing that failed is half there, and the other loops go on."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import sqlite3
import textwrap
import time
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest

from heedful import Loop
from heedful.loop.log import Event, Log
from heedful.server import loop_worker as workers
from heedful.server.context import Options
from heedful.server.keys import Keys
from heedful.storage import Damaged, Unreachable
from loops import bits, bits_from_scratch, choice_loop, rating_loop, small_loop, whole_log
from processes import Asker, Process, check, here, made, problem, taught, until

# ---------------------------------------------------------------------------- the disk


@pytest.mark.slow
def test_the_disk_is_full(tmp_path: Path) -> None:
    folder = made(tmp_path / "served", "a", "b")
    with here(folder) as (app, client):
        told = taught(client, "a", range(4))
        taught(client, "b", range(1))
        worker = app.service.loops.workers["main", "a"]
        writer = worker.projection.log.store._writer
        [size] = writer.execute("PRAGMA page_count").fetchone()
        writer.execute(f"PRAGMA max_page_count = {size}")
        before = bits(worker.loop), list(worker.projection.log.events())
        many = [{"decision": "d0", "id": f"m{n}", "clicks": ["i3"]} for n in range(1000)]
        rows = [{"id": f"n{n}", "f0": 1.0} for n in range(1000)]
        for ask in (
            lambda: client.post("/v1/loops/a/feedback", json=many),
            lambda: client.post("/v1/loops/a/decisions", json={"id": "big", "candidates": [{"f0": 1.0}] * 1500}),
            lambda: client.put("/v1/loops/a/items", json=rows),
        ):
            reply = ask()
            assert "full" in problem(reply, 503, "unavailable")["detail"]
            assert int(reply.headers["retry-after"]) >= 1
            assert (bits(worker.loop), list(worker.projection.log.events())) == before
        assert client.get("/v1/loops/a/weights").status_code == 200
        told_b = taught(client, "b", range(1, 5))  # as if it were elsewhere
        writer.execute("PRAGMA max_page_count = 1073741823")
        answers = client.post("/v1/loops/a/feedback", json=many).json()
        assert {each["status"] for each in answers} == {"applied"}
        assert client.put("/v1/loops/a/items", json=rows).json()["put"] == 1000
    check(folder / "a.heedful", told, 1004)
    check(folder / "b.heedful", told_b, 5)


@pytest.mark.slow
def test_files_that_may_not_grow(tmp_path: Path) -> None:
    """A real process that finds no room, at whatever it was writing: the log, a snapshot, the write-ahead file."""
    import resource

    folder = made(tmp_path / "served", "a", snapshot_every=20)
    told: list[tuple[str, int]] = []
    with Process(folder).wait() as server, httpx.Client(base_url=server.url, timeout=30.0) as client:
        told += taught(client, "a", range(2))
        refused = 0
        for room in (0, 40_000, 80_000):
            most = max(file.stat().st_size for file in (folder / "a.heedful").iterdir()) + room
            resource.prlimit(server.child.pid, resource.RLIMIT_FSIZE, (most, resource.RLIM_INFINITY))
            for n in range(300):
                event = {"decision": "d0", "id": f"x{room}-{n}", "better": ["i3", "i4"]}
                reply = client.post("/v1/loops/a/feedback", json=event)
                if reply.status_code != 200:
                    refused += 1
                    problem(reply, 503, "unavailable")
                    break
                told.append((event["id"], reply.json()["seq"]))
            assert client.get("/healthz").status_code == 200
            resource.prlimit(server.child.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
            again = client.post("/v1/loops/a/feedback", json=event).json()  # the very event that was refused
            assert again["status"] == "applied"
            told.append((event["id"], again["seq"]))
        assert refused == 3
        server.kill()
    check(folder / "a.heedful", told, len(told))


# ---------------------------------------------------------------------------- damage


def with_version(path: Path) -> None:
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA user_version = 99")


def without_founding(path: Path) -> None:
    path.unlink()
    Log(path, create=True).close()


def with_founding(payload: str) -> Callable[[Path], None]:
    """A log that begins with something that makes no sense, though it is as it was written."""

    def spoil(path: Path) -> None:
        path.unlink()
        with closing(Log(path, create=True)) as log, log.writing():
            log.append([Event(1, "loop", "loop", 0, None, None, 0, payload)])

    return spoil


SPOILT: dict[str, Callable[[Path], None]] = {
    "empty": lambda path: path.write_bytes(b""),
    "short": lambda path: path.write_bytes(path.read_bytes()[:5000]),
    "text": lambda path: path.write_text("this is no log" * 100),
    "zeros after the header": lambda path: path.write_bytes(path.read_bytes()[:100] + bytes(40_000)),
    "changed rows": lambda path: path.write_bytes(path.read_bytes().replace(b'"shown":[', b'"shown":}')),
    "no manifest": without_founding,
    "a manifest that is none": with_founding("{}"),
    "a manifest that is no JSON": with_founding("/secret/path: {"),
}


@pytest.mark.parametrize("spoil", SPOILT.values(), ids=SPOILT)
def test_a_damaged_log_is_its_own_loops_affair(
    tmp_path: Path, spoil: Callable[[Path], None], caplog: pytest.LogCaptureFixture
) -> None:
    folder = made(tmp_path / "served", "a", "b")
    with Loop.open(folder / "a.heedful") as loop:
        d = loop.decide(id="d1")
        loop.feedback("d1", id="e1", clicks=[d.shown[3]])
    whole = whole_log(folder / "a.heedful")
    spoil(folder / "a.heedful" / "log.db")
    with here(folder) as (_, client):
        taught(client, "b", range(2))
        lesson = {"decision": "d1", "id": "new", "clicks": ["i3"]}
        for reply in (
            client.post("/v1/loops/a/decisions", json={}),
            client.post("/v1/loops/a/feedback", json=lesson),
            client.post("/v1/loops/a/feedback", json=[lesson]),
            client.get("/v1/loops/a"),
            client.get("/v1/loops/a/events"),
        ):
            problem(reply, 500, "damaged")
            assert str(folder) not in reply.text
        [line] = [record.getMessage() for record in caplog.records]  # of five requests
        assert "a.heedful" in line
        assert client.get("/v1/loops").json()["loops"] == ["a", "b"]
        told = taught(client, "b", range(2, 5))
        for suffix in ("", "-wal", "-shm"):
            (folder / "a.heedful" / f"log.db{suffix}").unlink(missing_ok=True)
        (folder / "a.heedful" / "log.db").write_bytes(whole)  # a back-up
        assert client.post("/v1/loops/a/feedback", json=lesson).json()["status"] == "applied"
    check(folder / "b.heedful", told, 5)
    check(folder / "a.heedful", [], 2)


def test_a_newer_log_is_not_damaged(tmp_path: Path) -> None:
    """As in an upgrade, server by server: who is not there yet says so, and the log stays as it is."""
    folder = made(tmp_path / "served", "a", "b")
    with_version(folder / "a.heedful" / "log.db")
    with here(folder) as (_, client):
        for reply in (
            client.post("/v1/loops/a/decisions", json={}),
            client.post("/v1/loops/a/feedback", json={"decision": "d", "clicks": ["i3"]}),
            client.get("/v1/loops/a"),
            client.get("/v1/loops/a/events"),
        ):
            assert "newer heedful" in problem(reply, 503, "unavailable")["detail"]
            assert str(folder) not in reply.text
        assert client.get("/loops/a/learned").status_code == 503
        taught(client, "b", range(2))


def test_a_decision_that_was_damaged_meanwhile(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Found when feedback on it is to be read: on its own, and in a batch, of which the rest is not half there."""
    folder = made(tmp_path / "served", "a", "b")
    with Loop.open(folder / "a.heedful") as loop:
        for n in range(3):
            loop.decide(id=f"d{n}")
    whole_log(folder / "a.heedful")
    with here(folder) as (app, client):
        told = taught(client, "a", range(5, 7))
        writer = app.service.loops.workers["main", "a"].projection.log.store._writer
        writer.execute("DROP TRIGGER event_keeps")
        writer.execute("UPDATE event SET payload = replace(payload, 'shown', 'Shown') WHERE id = 'd1'")
        lesson = {"decision": "d1", "id": "bad", "clicks": ["i3"]}
        good = {"decision": "d2", "id": "good", "clicks": ["i3"]}
        for events in (lesson, [good | {"id": "other"}, lesson], [lesson]):
            problem(client.post("/v1/loops/a/feedback", json=events), 500, "damaged")
        assert client.post("/v1/loops/a/feedback", json=good).json()["status"] == "applied"
        problem(client.get("/v1/loops/a/decisions/d1/why"), 500, "damaged")
        assert caplog.text.count("restore a back-up") == 1  # of four requests
    assert [id for id, _ in told] == ["e5", "e6"]


@pytest.mark.slow
@pytest.mark.parametrize("content", [b"", b"SQLite format 3\0" + b"\xff" * 4000], ids=["empty", "noise"])
def test_damaged_keys(tmp_path: Path, content: bytes) -> None:
    """Nobody is let in, before as after the start, and no word of what is inside."""
    folder = made(tmp_path / "served", "a")
    with closing(Keys(folder)) as keys:
        _, key = keys.create("k")
    whole = (folder / "server.db").read_bytes()
    headers = {"Authorization": f"Bearer {key}"}
    with Process(folder).wait() as server, httpx.Client(base_url=server.url, headers=headers) as client:
        told = taught(client, "a", range(2))
        (folder / "server.db").write_bytes(content)
        time.sleep(1.2)
        reply = client.post("/v1/loops/a/decisions", json={})
        anonymous = httpx.get(server.url + "/v1/loops")
        assert anonymous.status_code in (401, 500, 503), anonymous.text
        assert reply.status_code in (200, 401, 500, 503)
        for each in (reply, anonymous):
            if each.status_code != 200:
                assert str(folder) not in each.text
                assert "sqlite" not in each.text.lower()
                assert "server.db" not in each.text
        assert client.get("/healthz").status_code == 200
        (folder / "server.db").write_bytes(whole)
        until(lambda: client.post("/v1/loops/a/decisions", json={}).status_code == 200)
        server.end()
        log = server.told.read_text()
        assert key not in log
        assert key[12:] not in log
        assert "Traceback" not in log, log
    (folder / "server.db").write_bytes(content)
    with Process(folder) as server:
        if content:  # an empty file is a database without a table: no key was ever made
            assert server.child.wait(60) == 1
            log = server.told.read_text().split("Ctrl-C ends it")[-1]
            assert "server.db" in log
            assert "Traceback" not in log
        server.child.poll()
    check(folder / "a.heedful", told, 2)


# ---------------------------------------------------------------------------- learners of one's own

OWN = """
    from typing import Any, NamedTuple
    from heedful.learners.coactive.perceptron import PreferencePerceptron

    class Touchy(NamedTuple):
        n_features: int
        space: Any

        def _as(self): return PreferencePerceptron(self.n_features, self.space)
        def init(self, rng): return self._as().init(rng)
        def propose(self, state, x, rng):
            if len(x) == 3:
                raise ValueError("no: /secret/place")
            if len(x) == 4:
                raise KeyError("/secret/place")
            if len(x) == 5:
                raise TimeoutError("/secret/place")
            if len(x) == 6:
                raise LookupError("/secret/place")
            return self._as().propose(state, x, rng)
        def weights(self, state): return state.w
        def update(self, state, x, y, feedback):
            state = self._as().update(state, x, y, feedback)
            if len(feedback) and feedback[0] in (3, 5):  # half-way: the state was changed already
                state.w[:] += 100.0
                raise ZeroDivisionError("cannot take it")
            return state
"""


def with_own(tmp_path: Path) -> tuple[Path, str]:
    (tmp_path / "own.py").write_text(textwrap.dedent(OWN))
    spec = f"{tmp_path / 'own.py'}:Touchy"
    folder = made(tmp_path / "served", "b")
    small_loop(folder / "a.heedful", spec, control=0.0).close()
    return folder, spec


def test_a_learner_of_ones_own_is_named_by_who_starts_the_server(tmp_path: Path) -> None:
    folder, spec = with_own(tmp_path)
    with here(folder) as (_, client):
        assert "not started with" in problem(client.post("/v1/loops/a/decisions", json={}), 500, "damaged")["detail"]
        problem(client.get("/v1/loops/a"), 500, "damaged")
        told = taught(client, "b", range(2))
    with here(folder, Options(own=("/nowhere/other.py:Other", spec))) as (_, client):
        assert client.post("/v1/loops/a/decisions", json={}).status_code == 200
        assert taught(client, "b", range(2, 4))
        # No code but that of the server's own files is named over the network, and none for a new loop.
        for learner in (spec, "own.py:Touchy", "os:system"):
            new = {"name": "new", "items": [{"id": "a", "f": 1.0}, {"id": "b", "f": 2.0}], "learner": learner}
            problem_ = client.post("/v1/loops", json=new)
            assert problem_.status_code == 422, problem_.text
            evaluated = client.post("/v1/loops/a/evaluations", json={"learners": [learner]})
            assert evaluated.status_code == (200 if learner == spec else 422)
    check(folder / "b.heedful", told, 4)


def test_a_lesson_that_the_learner_raises_on(tmp_path: Path) -> None:
    folder, spec = with_own(tmp_path)
    with here(folder, Options(own=(spec,))) as (app, client):
        names = [f"i{n}" for n in range(12)]
        record = {"candidates": names, "shown": ["i0"], "id": "d", "person": "p"}
        assert client.post("/v1/loops/a/records", json=record).status_code == 200
        for n in (1, 2, 3, 4):
            reply = client.post("/v1/loops/a/feedback", json={"decision": "d", "id": f"e{n}", "better": [f"i{n}"]})
            assert (reply.status_code, reply.json()["status"]) == (200, "applied")
            assert reply.json()["learned"] == (n != 3)
        events = [{"decision": "d", "id": f"e{n}", "better": [f"i{n}"]} for n in (3, 5, 6, 7)]
        answers = client.post("/v1/loops/a/feedback", json=events).json()
        assert [each["status"] for each in answers] == ["duplicate", "applied", "applied", "applied"]
        assert [each["learned"] for each in answers] == [False, False, True, True]
        loop = app.service.loops.workers["main", "a"].loop
        assert bits(loop) == bits_from_scratch(loop)
        assert loop.projection.model.shared.t == 5
        assert client.get("/v1/loops/a").json()["events"]["feedback"] == 7
    with Loop.open(folder / "a.heedful", learner=spec) as loop:
        assert loop.verify() == []
        assert loop.projection.model.shared.t == 5


@pytest.mark.parametrize("n", [3, 4, 5, 6], ids=["ValueError", "KeyError", "TimeoutError", "LookupError"])
def test_a_learner_that_cannot_propose(tmp_path: Path, n: int) -> None:
    """It is not the caller's fault, and what the learner says is for the log."""
    folder, spec = with_own(tmp_path)
    with here(folder, Options(own=(spec,))) as (_, client):
        names = [f"i{j}" for j in range(n)]
        reply = client.post("/v1/loops/a/decisions", json={"candidates": names, "id": "d"})
        problem(reply, 500, "damaged")
        assert client.post("/v1/loops/a/decisions", json={"candidates": [*names, "i7", "i8", "i9", "i10"]}).is_success


# ---------------------------------------------------------------------------- keeping up


@pytest.mark.slow
def test_keeping_up_under_load_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "WRITE_AHEAD", 20_000)
    kept: list[str] = []
    was = workers.LoopWorker._move_and_snapshot

    def counted(self: workers.LoopWorker) -> None:
        kept.append("due" if self.projection.due else "moved")
        was(self)

    monkeypatch.setattr(workers.LoopWorker, "_move_and_snapshot", counted)
    folder = made(tmp_path / "served", "a", shrink=2.0, snapshot_every=25)

    async def load(port: int) -> list[tuple[str, int]]:
        told: list[tuple[str, int]] = []

        async def work(i: int) -> None:
            asker = Asker(port)
            for n in range(60):
                d = (await asker.ask("POST", "/v1/loops/a/decisions", {"id": f"d{i}-{n}", "person": f"p{i}"})).value
                event = {"decision": d["id"], "id": f"e{i}-{n}", "clicks": [d["shown"][3]]}
                a = await asker.ask("POST", "/v1/loops/a/feedback", event)
                assert a.status == 200, a
                told.append((event["id"], a.value["seq"]))
            asker.close()

        await asyncio.gather(*(work(i) for i in range(12)))
        return told

    with here(folder) as (app, client):
        port = client.base_url.port
        assert port is not None
        told = asyncio.run(load(port))
        assert app.service.loops.workers["main", "a"].loop.notes == []
    assert kept.count("due") > 5
    assert kept.count("moved") > 5
    check(folder / "a.heedful", told, 12 * 60)
    with Loop.open(folder / "a.heedful") as loop:
        assert loop.notes == []
        assert loop.projection.keeper.since_snapshot == 0


def test_a_snapshot_that_cannot_be_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = made(tmp_path / "served", "a", snapshot_every=2)
    with here(folder) as (_, client):
        with monkeypatch.context() as patched:

            def full(_: int) -> None:
                raise OSError(28, "No space left on device")

            patched.setattr("heedful.core.serialization.os.fsync", full)
            told = taught(client, "a", range(7))
            notes = client.get("/v1/loops/a").json()["notes"]
            assert any("no snapshot was kept" in note for note in notes)
        told += taught(client, "a", range(7, 11))
        until(lambda: list((folder / "a.heedful").glob("snapshot-*")))
    check(folder / "a.heedful", told, 11)


# ---------------------------------------------------------------------------- folders that go


def test_a_loop_that_is_removed(tmp_path: Path) -> None:
    """Closed, it is simply not there."""
    folder = made(tmp_path / "served", "a", "b")
    with here(folder) as (_, client):
        shutil.rmtree(folder / "a.heedful")
        problem(client.post("/v1/loops/a/decisions", json={}), 404, "not-found")
        assert client.get("/v1/loops").json() == {"loops": ["b"]}
        told = taught(client, "b", range(3))
    check(folder / "b.heedful", told, 3)


@pytest.mark.parametrize("back", [False, True], ids=["gone", "another is in its place"])
def test_an_open_loop_that_is_removed(tmp_path: Path, back: bool) -> None:
    """What goes into a file that nobody can find again is not acknowledged."""
    folder = made(tmp_path / "served", "a", "b")
    shutil.copytree(folder / "a.heedful", tmp_path / "back-up")
    with here(folder) as (_, client):
        taught(client, "a", range(2))
        shutil.rmtree(folder / "a.heedful")
        if back:
            shutil.copytree(tmp_path / "back-up", folder / "a.heedful")
        decided = client.post("/v1/loops/a/decisions", json={"id": "d9"})
        event = {"decision": "d1", "id": "e9", "clicks": ["i3"]}
        answered = client.post("/v1/loops/a/feedback", json=event)
        taught(client, "b", range(2))
    if back:
        with Loop.open(folder / "a.heedful") as loop:
            assert decided.status_code != 200 or loop.projection.find_decision("d9") is not None
            assert answered.status_code != 200 or loop.projection.log.find("feedback", "e9") is not None
    else:
        assert (decided.status_code, answered.status_code) != (200, 200)
        assert decided.status_code in (404, 500, 503)


MAKE: dict[str, Callable[[Path], Loop]] = {
    "rankings": small_loop,
    "grades": partial(small_loop, learner="ordinal-logistic:n_ranks=5"),
    "ratings": rating_loop,
    "choices": choice_loop,
}
FIRST: dict[str, tuple[str, str, Any]] = {
    "decide": ("POST", "/decisions", {"id": "d9"}),
    "look": ("GET", "", None),
    "items": ("GET", "/items", None),
    "put": ("PUT", "/items", [{"id": "new"}]),
    "record": ("POST", "/records", {"id": "r9", "candidates": ["i0", "i1"], "shown": ["i0", "i1"]}),
    "undo": ("POST", "/undo", {"event": "e9"}),
    "forget": ("POST", "/forget", {"person": "ann"}),
    "events": ("GET", "/events?follow=false", None),
}


@pytest.mark.parametrize("kind", MAKE)
def test_a_loop_whose_folder_went_is_let_go(tmp_path: Path, kind: str) -> None:
    """Whoever asks first, whatever for: from then on there is none, its name is free, and what comes back is opened."""
    folder = tmp_path / "served"
    folder.mkdir()
    MAKE[kind](tmp_path / "made.heedful").close()
    with here(folder) as (app, client):
        for name, (method, path, body) in FIRST.items():
            shutil.copytree(tmp_path / "made.heedful", folder / f"{name}.heedful")
            one = f"/v1/loops/{name}"
            assert client.get(one).status_code == 200
            (folder / f"{name}.heedful").rename(tmp_path / f"{name}.gone")
            reply = client.request(method, one + path, json=body)
            assert "moved" in problem(reply, 503, "unavailable")["detail"]
            problem(client.request(method, one + path, json=body), 404, "not-found")
            assert ("main", name) not in app.service.loops.workers
            (tmp_path / f"{name}.gone").rename(folder / f"{name}.heedful")
            assert client.get(one).status_code == 200
            assert client.post(f"{one}/decisions", json={"id": "d1"}).status_code == 200


def test_the_name_of_a_loop_whose_folder_went_is_free_at_once(tmp_path: Path) -> None:
    folder = made(tmp_path / "served", "a")
    new = {"name": "a", "items": [{"id": "x", "f": 1.0}, {"id": "y", "f": 2.0}]}
    with here(folder) as (_, client):
        taught(client, "a", range(2))
        problem(client.post("/v1/loops", json=new), 409, "exists")
        (folder / "a.heedful").rename(tmp_path / "gone")
        assert client.post("/v1/loops", json=new).status_code == 201
        assert client.get("/v1/loops/a/items").json()["items"] == ["x", "y"]
        assert client.post("/v1/loops/a/decisions", json={}).status_code == 200
    with Loop.open(tmp_path / "gone") as loop:
        assert loop.projection.model.shared.t == 2
        assert loop.verify() == []


def test_a_loop_whose_folder_went_is_closed_without_a_word(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Where nobody asks for it, it is let go in time; who was forgotten there is erased where it is opened next."""
    folder = made(tmp_path / "served", "a", "b")
    with here(folder, Options(idle=0.1)) as (app, client):
        taught(client, "a", range(2))
        taught(client, "b", range(2))
        app.service.loops.workers["main", "b"].unerased = 0.0
        for name in "ab":
            (folder / f"{name}.heedful").rename(tmp_path / name)
        until(lambda: not app.service.loops.workers)
    assert caplog.records == []


def test_a_stream_ends_where_the_folder_went(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("heedful.server.events.LOOK", 0.02)
    folder = made(tmp_path / "served", "a")
    with here(folder) as (_, client):
        taught(client, "a", range(1))
        with client.stream("GET", "/v1/loops/a/events?kinds=feedback") as reply:
            lines = reply.iter_lines()
            assert next(line for line in lines if line.startswith("id")) == "id: 15"
            (folder / "a.heedful").rename(tmp_path / "gone")
            got = []
            with pytest.raises(httpx.RemoteProtocolError):  # what is cut off does not end as a log that ends
                got.extend(lines)
            assert len(got) <= 3
    [record] = caplog.records
    assert record.levelname == "WARNING"
    assert record.exc_info is None
    assert record.getMessage().startswith(f"{folder / 'a.heedful'}: a stream of events ended: ")


@pytest.mark.parametrize("pages", [0, 1])
@pytest.mark.parametrize(
    "error", [Unreachable("the database cannot be reached"), OSError(5, "the disk is ill"), Damaged("a page of it")]
)
def test_who_copies_a_log_that_cannot_be_read_does_not_take_it_for_a_short_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pages: int, error: Exception
) -> None:
    monkeypatch.setattr("heedful.server.events.AT_ONCE", 5)
    folder, read = made(tmp_path / "served", "a"), []
    with here(folder) as (app, client):
        taught(client, "a", range(3))
        [worker] = app.service.loops.workers.values()
        events = worker.loop.projection.log.events

        def some(*args: Any, **more: Any) -> Any:
            read.append(args)
            if len(read) > pages:
                raise error
            return events(*args, **more)

        monkeypatch.setattr(worker.loop.projection.log, "events", some)
        if pages:
            with pytest.raises(httpx.RemoteProtocolError):
                client.get("/v1/loops/a/events?follow=false")
            return
        answer = client.get("/v1/loops/a/events?follow=false")
        assert answer.status_code == (500 if isinstance(error, Damaged) else 503)
        assert answer.headers["content-type"] == "application/problem+json"


@pytest.mark.parametrize("ended", ["the server stops", "the key is revoked"])
def test_who_copies_a_log_while_that_is_ended_does_not_take_it_for_a_short_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ended: str
) -> None:
    monkeypatch.setattr("heedful.server.events.AT_ONCE", 5)
    folder = made(tmp_path / "served", "a")
    with here(folder) as (app, client):
        taught(client, "a", range(3))
        [worker] = app.service.loops.workers.values()
        events = worker.loop.projection.log.events

        def some(*args: Any, **more: Any) -> Any:
            if ended == "the server stops":
                monkeypatch.setattr(app.service.stopping, "is_set", lambda: True)
            else:
                monkeypatch.setattr(app.service.authenticator, "holds", lambda *_: False)
            return events(*args, **more)

        monkeypatch.setattr(worker.loop.projection.log, "events", some)
        with pytest.raises(httpx.RemoteProtocolError):
            client.get("/v1/loops/a/events?follow=false")
        monkeypatch.undo()


def test_a_loop_is_not_made_where_the_folder_went(tmp_path: Path) -> None:
    folder = made(tmp_path / "served", "a")
    with here(folder) as (_, client):
        folder.rename(tmp_path / "elsewhere")
        new = {"name": "new", "items": [{"id": "x", "f": 1.0}, {"id": "y", "f": 2.0}]}
        reply = client.post("/v1/loops", json=new)
        assert reply.status_code in (404, 500, 503), reply.text
        assert str(tmp_path) not in reply.text
        assert not folder.exists()
        (tmp_path / "elsewhere").rename(folder)
        assert client.post("/v1/loops", json=new).status_code == 201


@pytest.mark.slow
def test_the_whole_folder_goes(tmp_path: Path) -> None:
    folder = made(tmp_path / "served", "a")
    with Process(folder).wait() as server, httpx.Client(base_url=server.url) as client:
        assert client.get("/v1/loops").json() == {"loops": ["a"]}
        folder.rename(tmp_path / "elsewhere")
        assert client.get("/healthz").status_code == 200
        assert client.get("/v1/loops").status_code in (200, 500, 503)
        problem(client.post("/v1/loops/a/decisions", json={}), 404, "not-found")
        (tmp_path / "elsewhere").rename(folder)
        told = taught(client, "a", range(2))
        server.child.send_signal(signal.SIGINT)
        assert server.child.wait(60) in (0, -signal.SIGINT, 128 + signal.SIGINT)
        assert os.path.isdir(folder)
    check(folder / "a.heedful", told, 2)
