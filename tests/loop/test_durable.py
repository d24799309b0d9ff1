"""Decisions that are answered before they are on the disk: what a power cut may take, and what it may not."""

from __future__ import annotations

import os
import shutil
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from budget import examples
from heedful import Loop, Settings
from heedful.loop.log import Log
from heedful.results.answers import LostDecision
from heedful.server.analysts import Analysts
from heedful.server.loop_worker import LoopWorker
from loops import bits, bits_from_scratch, small_loop
from processes import here, problem

FULL = 2
"""PRAGMA synchronous: a commit waits for the disk."""


def each_waiting_commit(patch: pytest.MonkeyPatch, seen: Callable[[Log], Any]) -> None:
    """Call `seen` after each commit that waits for the disk."""
    writing = Log.writing

    @contextmanager
    def traced(self: Log, *args: Any, **kwargs: Any) -> Iterator[Any]:
        connection = self.store._writer
        with writing(self, *args, **kwargs):
            before = connection.total_changes
            yield
        # a transaction that wrote nothing waits for nothing
        if connection.total_changes > before and connection.execute("PRAGMA synchronous").fetchone()[0] >= FULL:
            seen(self)

    patch.setattr(Log, "writing", traced)


@contextmanager
def disk(patch: pytest.MonkeyPatch) -> Iterator[dict[Path, int]]:
    """Log -> how many bytes of its write-ahead file are on the disk: those there were after a commit that waits for the
    disk, or when the file was synchronised."""
    synced: dict[Path, int] = {}
    sync = Log.sync

    def wal(log: Log) -> int:
        return os.path.getsize(f"{log.path}-wal")

    def traced_sync(self: Log) -> None:
        size = wal(self)
        sync(self)
        synced[self.path] = size

    each_waiting_commit(patch, lambda log: synced.update({log.path: wal(log)}))
    patch.setattr(Log, "sync", traced_sync)
    yield synced


def cut(path: Path, to: Path, size: int) -> Path:
    """A copy of an open loop as a power cut leaves it that takes all that is not on the disk."""
    to.mkdir(mode=0o700)
    for file in path.iterdir():
        if not file.name.endswith("-shm"):
            shutil.copy(file, to / file.name)
    os.truncate(to / "log.db-wal", size)
    return to


def seqs(path: Path) -> dict[tuple[str, str], int]:
    with closing(sqlite3.connect(path / "log.db")) as db:
        return {(kind, id): seq for seq, kind, id in db.execute("SELECT seq, kind, id FROM event")}


@pytest.mark.parametrize("durable", ["decision", "feedback"])
def test_what_a_power_cut_takes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, durable: str) -> None:
    path = tmp_path / "loop"
    with disk(monkeypatch) as synced, small_loop(path, control=0.0, durable=durable) as loop:
        loop.decide(id="answered")
        loop.feedback("answered", id="e", clicks=["i3"])
        loop.decide(id="unanswered")
        after = cut(path, tmp_path / "after", synced[path / "log.db"])
    with Loop.open(after) as loop:
        assert loop.settings.durable == durable
        assert loop.projection.find_decision("answered") is not None
        assert loop.projection.log.find("feedback", "e") is not None
        assert (loop.projection.find_decision("unanswered") is None) == (durable == "feedback")
        answer = loop.feedback("unanswered", id="late", clicks=["i4"])
        assert isinstance(answer, LostDecision) == (durable == "feedback")
        assert answer.status == ("rejected" if durable == "feedback" else "applied")


def test_only_what_has_to_be_on_the_disk_waits_for_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Decisions, asked once or again, do not, nor what is refused; feedback does, and its repetition."""
    waits = list[str]()
    sync = Log.sync
    with small_loop(tmp_path / "loop", control=0.0, durable="feedback") as loop, Loop.open(loop.path) as other:
        each_waiting_commit(monkeypatch, lambda log: waits.append("commit"))
        monkeypatch.setattr(Log, "sync", lambda self: waits.append("sync") or sync(self))
        for i in range(3):
            for each in (loop, other, loop):
                each.decide(id=f"d{i}", person="ann")
        loop.decide(id="deferred", deferred=True)
        assert waits == []
        for expected in ("commit", "sync"):
            other.feedback("d0", id="e", clicks=["i3"])
            assert waits == [expected]
            waits.clear()
            loop.decide()  # with what the other process wrote
            assert waits == []
        late = loop.feedback_reader.read("d1", "late", None, {"clicks": ["i3"]})
        other.forget("ann")
        waits.clear()
        [refused] = loop.projection.submit([late])
        assert (refused.status, refused.reason) == ("rejected", "what it is about was forgotten")
        assert waits == []


def test_a_repeat_of_what_another_process_still_waits_for_is_on_the_disk_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One process has committed feedback and waits for the disk; another is sent the same again, and says so."""
    path = tmp_path / "loop"
    with disk(monkeypatch) as synced, small_loop(path, durable="feedback") as loop, Loop.open(path) as other:
        loop.decide(id="d")
        pending = loop.feedback_reader.read("d", "e", None, {"clicks": ["i3"]})
        assert loop.projection.attempt([pending], durable=False) is not None
        assert other.feedback("d", id="e", clicks=["i3"]).status == "duplicate"
        after = cut(path, tmp_path / "after", synced[path / "log.db"])
    with Loop.open(after) as loop:
        assert loop.projection.log.find("feedback", "e") is not None


def test_what_was_shown_is_recorded_again(tmp_path: Path) -> None:
    with small_loop(tmp_path / "loop", durable="feedback") as loop:
        before = bits(loop)
        answer = loop.feedback("lost", id="e", clicks=["i3"])
        assert isinstance(answer, LostDecision)
        assert answer.reason is not None
        assert "decision lost is not in the log" in answer.reason
        assert "record what was shown under this id" in answer.reason
        assert bits(loop) == before
        assert loop.feedback_many([{"decision": "lost", "id": "e", "clicks": ["i3"]}]) == [answer]
        loop.record(["i1", "i2", "i3"], ["i1", "i3"], id="lost")
        assert loop.feedback("lost", id="e", clicks=["i3"]).status == "applied"
    with small_loop(tmp_path / "waits") as loop:
        assert loop.feedback("never", id="e", clicks=["i3"]).reason == "decision never is not in the log"


def test_one_that_was_forgotten_was_not_lost(tmp_path: Path) -> None:
    with small_loop(tmp_path / "loop", durable="feedback") as loop:
        loop.decide(id="d", person="ann")
        loop.forget("ann")
        answer = loop.feedback("d", clicks=["i3"])
        assert not isinstance(answer, LostDecision)
        assert answer.reason == "decision d was forgotten"


@pytest.mark.slow
@examples(40)
@given(st.lists(st.sampled_from(["decide", "feedback", "undo", "record", "activate", "snapshot", "cut"]), max_size=25))
def test_what_was_acknowledged_is_kept(acts: list[str]) -> None:
    """Whenever the power is cut: every event but decisions is where it was acknowledged, with each decision before the
    last of them; what is left is the beginning of what there was, and the model is its fold."""
    with pytest.MonkeyPatch.context() as patch, TemporaryDirectory() as made, disk(patch) as synced:
        path = Path(made) / "0"
        loop = small_loop(path, n_items=6, shrink=2.0, durable="feedback")
        told: dict[tuple[str, str], int] = {}
        kept = decided = 0
        for n, act in enumerate([*acts, "cut"]):
            if act == "decide":
                told["decision", f"d{n}"] = loop.decide(id=f"d{n}", person=f"p{n % 2}", deferred=n % 3 == 0).seq
                decided += 1
            elif act == "record":
                kept = loop.record(["i1", "i2", "i3"], ["i2", "i3"], id=f"d{n}").seq
                told["decision", f"d{n}"] = kept
            elif act in ("feedback", "activate") and any(kind == "decision" for kind, _ in told):
                id = max((seq, id) for (kind, id), seq in told.items() if kind == "decision")[1]
                shown = loop.projection.find_decision(id)
                answer = (
                    loop.activate(id) if act == "activate" else
                    loop.feedback(id, id=f"e{n}", clicks=[shown.names[shown.record.shown[1]]])
                )  # fmt: skip
                if answer.status == "applied" and answer.seq is not None:
                    kept = told[act, answer.event] = answer.seq
            elif act == "undo" and any(kind == "feedback" for kind, _ in told):
                id = max((seq, id) for (kind, id), seq in told.items() if kind == "feedback")[1]
                answer = loop.undo(id)
                if answer.status == "applied" and answer.seq is not None:
                    kept = told["undo", answer.event] = answer.seq
            elif act == "snapshot":
                loop.snapshot()
            elif act == "cut":
                path = cut(path, Path(made) / str(n + 1), synced.get(path / "log.db", 0))  # a new loop is whole
                loop.close()
                loop = Loop.open(path)
                there = seqs(path)
                assert all(there[key] == seq for key, seq in told.items() if seq <= kept)
                assert there.items() >= {(key, seq) for key, seq in told.items() if key in there}
                assert bits(loop) == bits_from_scratch(loop)
                assert loop.verify() == []
                for kind, id in set(told) - set(there):
                    assert kind == "decision"
                    assert isinstance(loop.feedback(id, clicks=["i1"]), LostDecision)
                    del told[kind, id]
                if synced.get(path / "log.db") is None:  # opening wrote nothing: all that is there is on the disk
                    synced[path / "log.db"] = os.path.getsize(path / "log.db-wal")
        loop.close()


# ---------------------------------------------------------------------------- over HTTP


def test_a_lost_decision_is_a_problem_of_its_own(tmp_path: Path) -> None:
    folder = tmp_path / "served"
    folder.mkdir()
    small_loop(folder / "a.heedful", durable="feedback").close()
    with here(folder) as (_, client):
        event = {"decision": "gone", "id": "e", "clicks": ["i3"]}
        told = problem(client.post("/v1/loops/a/feedback", json=event), 409, "lost-decision")
        assert told["answer"]["status"] == "rejected"
        assert "record what was shown under this id" in told["detail"]
        [one] = client.post("/v1/loops/a/feedback", json=[event]).json()
        assert one == told["answer"]
        records = {"candidates": ["i1", "i2", "i3"], "shown": ["i1", "i3"], "id": "gone"}
        assert client.post("/v1/loops/a/records", json=records).status_code == 200
        assert client.post("/v1/loops/a/feedback", json=event).json()["status"] == "applied"
        made = client.post("/v1/loops", json={"name": "b", "settings": {"durable": "never"}})
        assert problem(made, 422, "bad-input")["field"] == "durable"


def test_a_client_hears_of_a_lost_decision(tmp_path: Path) -> None:
    from heedful.client import Client

    folder = tmp_path / "served"
    folder.mkdir()
    small_loop(folder / "a.heedful", durable="feedback").close()
    with here(folder) as (_, client), Client(str(client.base_url)) as remote:
        assert isinstance(remote.loop("a").feedback("gone", id="e", clicks=["i3"]), LostDecision)


def test_feedback_waits_for_the_disk_and_decisions_do_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at_worker: Callable[..., Any]
) -> None:
    free, asked = threading.Event(), threading.Event()
    sync = Log.sync

    def stalled(self: Log) -> None:
        asked.set()
        assert free.wait(30)
        sync(self)

    monkeypatch.setattr(Log, "sync", stalled)
    with small_loop(tmp_path / "loop", durable="feedback", control=0.0) as loop:

        async def work(worker: LoopWorker) -> None:
            import asyncio

            decision = await worker.decide({})
            event = {"decision": decision.id, "id": "e", "clicks": [decision.shown[2]]}
            first = asyncio.create_task(worker.feedback(event))
            while not asked.is_set():
                await asyncio.sleep(0.001)
            for _ in range(5):
                await asyncio.wait_for(worker.decide({}), 60)
            second = asyncio.create_task(worker.feedback(event))  # again: that waits for the disk, too
            await asyncio.sleep(0.02)
            assert not first.done()
            assert not second.done()
            assert worker.busy
            free.set()
            assert [(await first).status, (await second).status] == ["applied", "duplicate"]

        at_worker(loop, work)


def test_a_disk_that_fails_acknowledges_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at_worker: Callable[..., Any]
) -> None:
    def failing(self: Log) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(Log, "sync", failing)
    with small_loop(tmp_path / "loop", durable="feedback", control=0.0) as loop:

        async def work(worker: LoopWorker) -> None:
            decision = await worker.decide({})
            with pytest.raises(OSError, match="Input/output"):
                await worker.feedback({"decision": decision.id, "clicks": [decision.shown[2]]})

        at_worker(loop, work)


@pytest.fixture
def at_worker() -> Callable[..., Any]:
    """What a coroutine gives with a worker for a loop."""
    import asyncio
    from concurrent.futures import ThreadPoolExecutor

    from heedful.server.threads import Turns

    def run(loop: Loop, work: Callable[[LoopWorker], Any]) -> Any:
        async def working() -> Any:
            with ThreadPoolExecutor(4) as pool:
                worker = LoopWorker(loop, pool, Analysts((), pool), Turns(), "main")
                try:
                    return await asyncio.wait_for(work(worker), 30)
                finally:
                    while worker.busy:
                        await asyncio.sleep(0.001)

        return asyncio.run(working())

    return run


@pytest.mark.parametrize("given", ["never", "", None, True, 1, ["decision"]])
def test_a_setting_that_is_neither(given: Any) -> None:
    with pytest.raises(ValueError, match=r'^durable: expected "decision" or "feedback", got '):
        Settings(durable=given)
