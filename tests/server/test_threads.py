"""Threads for long work: no tenant takes those of all, who has too much waiting is told, and the end waits for none."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from asking import run, serving

from heedful import Loop
from heedful.server import context, threads
from heedful.server.context import ServerContext
from heedful.server.loop_worker import LoopWorker
from heedful.server.problems import Problem
from heedful.server.threads import AT_ONCE
from loops import small_loop

TENANT = "b"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Of one tenant one loop, of another three."""
    small_loop(tmp_path / "cars.heedful").close()
    (tmp_path / TENANT).mkdir()
    for n in range(3):
        small_loop(tmp_path / TENANT / f"l{n}.heedful").close()
    return tmp_path


@contextmanager
def held() -> Iterator[Callable[[], int]]:
    """Work that goes on until the block ends, but for no more than three seconds; it counts how much of it is done."""
    ended, done = threading.Event(), [0]

    def work() -> int:
        ended.wait(3)
        done[0] += 1
        return done[0]

    try:
        yield work
    finally:
        ended.set()


async def take_all(service: ServerContext, work: Callable[[], Any], n: int) -> list[asyncio.Task[Any]]:
    """Requests of one tenant, `n` to each of its loops, which take long."""
    workers = [await service.loops.open(TENANT, f"l{k}") for k in range(3)]
    tasks = [asyncio.create_task(worker.read(work)) for worker in workers for _ in range(n)]
    await asyncio.sleep(0)
    return tasks


def test_a_tenant_leaves_threads_to_the_others(folder: Path) -> None:
    async def work() -> None:
        async with serving(folder, threads=8) as service:
            with held() as long:
                tasks = await take_all(service, long, 4)
                other = await asyncio.wait_for(service.loops.open("main", "cars"), 1)
                assert await asyncio.wait_for(other.read(lambda: "answered"), 1) == "answered"
            assert sorted(await asyncio.gather(*tasks)) == list(range(1, 13))

    run(work())


def test_one_analysis_runs_at_a_time_for_a_tenant(folder: Path) -> None:
    """Whichever loops it reads: each would take the interpreter's lock from others in turn. All else goes on."""

    async def work() -> None:
        async with serving(folder, threads=8) as service:
            workers = [await service.loops.open(TENANT, f"l{k}") for k in range(3)]
            other, begun = await service.loops.open("main", "cars"), list[int]()
            with held() as long:

                def counted(_: Loop) -> int:
                    begun.append(1)
                    return long()

                tasks = [asyncio.create_task(worker.analyse(counted)) for worker in workers for _ in range(2)]
                for worker in (*workers, other):
                    assert await asyncio.wait_for(worker.read(lambda: "answered"), 1) == "answered"
                assert await asyncio.wait_for(other.analyse(lambda _: "answered"), 1) == "answered"
                while not begun:
                    await asyncio.sleep(0.001)
                assert len(begun) == 1
                more = [asyncio.create_task(workers[0].analyse(lambda _: long())) for _ in range(30)]
                while len([task for task in more if task.done()]) < 3:
                    await asyncio.sleep(0.001)
                refused = [task.exception() for task in more if task.done()]
                assert [isinstance(each, Problem) and each.status for each in refused] == [429] * 3
                waiting = [task for task in more if not task.done()]
            assert sorted(await asyncio.gather(*tasks)) == [1, 2, 3, 4, 5, 6]
            assert len(await asyncio.gather(*waiting)) == 27

    run(work())


TEXTS = [{"id": f"t{j}", "f0": "x" * 900} for j in range(99)]
COSTLY: dict[str, Callable[[LoopWorker], Any]] = {
    "texts": lambda worker: worker.decide({"candidates": TEXTS}),
    "values": lambda worker: worker.decide({"candidates": [{f"f{k}": 1.0 for k in range(10)}] * 99}),
    "context": lambda worker: worker.decide({"context": {"text": "x" * 90_000}}),
    "names": lambda worker: worker.decide({"candidates": ["i1"] * 2001}),
    "an edit": lambda worker: worker.feedback({"decision": "d", "edit": {"from": "x" * 4000, "to": "y"}}),
    "events": lambda worker: worker.feedback_many([{}] * 101),
}


@pytest.mark.parametrize("costly", COSTLY)
def test_what_keeps_a_processor_busy_is_done_one_at_a_time_for_a_tenant(
    folder: Path, monkeypatch: pytest.MonkeyPatch, costly: str
) -> None:
    """In a thread; what costs little goes on, and others have their own turn."""

    async def work() -> None:
        async with serving(folder, threads=8) as service:
            workers = [await service.loops.open(TENANT, f"l{k}") for k in range(3)]
            other, begun = await service.loops.open("main", "cars"), list[int]()
            with held() as long:

                def counted(*_: Any, **__: Any) -> Any:
                    begun.append(1)
                    return long()

                for name in ("decide", "feedback", "feedback_many"):
                    monkeypatch.setattr(Loop, name, counted)
                tasks = [asyncio.create_task(COSTLY[costly](worker)) for worker in workers]
                while not begun:
                    await asyncio.sleep(0.001)
                assert (await asyncio.wait_for(workers[0].decide({"candidates": [{"f0": 1.0}] * 10}), 1)).shown
                assert len(begun) == 1
                theirs = asyncio.create_task(COSTLY[costly](other))
                while len(begun) < 2:
                    await asyncio.sleep(0.001)
            await asyncio.gather(*tasks, theirs)
            assert len(begun) == 4

    run(work())


def test_a_tenant_that_commits_in_threads_leaves_some_to_the_others(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where somebody else is writing, or learning takes long, a commit takes a thread of its loop."""

    async def work() -> None:
        async with serving(folder, threads=3) as service:
            workers = [await service.loops.open(TENANT, f"l{k}") for k in range(3)]
            monkeypatch.setitem(AT_ONCE, "commits", (2, float("inf")))
            with held() as long:
                for worker in workers:
                    monkeypatch.setattr(worker.projection, "attempt", lambda *_: None)
                    monkeypatch.setattr(worker.projection, "submit", lambda drafts: [long() for _ in drafts])
                tasks = [asyncio.create_task(worker.submit([draft_of(worker)])) for worker in workers]
                await asyncio.sleep(0.01)
                other = await asyncio.wait_for(service.loops.open("main", "cars"), 1)
                assert await asyncio.wait_for(other.read(lambda: "answered"), 1) == "answered"
            assert sorted(await asyncio.gather(*tasks)) == [[1], [2], [3]]

    from heedful.server.threads import AT_ONCE

    run(work())


def draft_of(worker: LoopWorker) -> Any:
    return worker.decision_of({})


def test_whoever_has_too_much_waiting_is_told(folder: Path) -> None:
    async def work() -> None:
        async with serving(folder, threads=8) as service:
            with held() as long:
                tasks = await take_all(service, long, 270)
                while len([task for task in tasks if task.done()]) < 3 * (270 - 4 - 256):
                    await asyncio.sleep(0.001)
                refused = [task for task in tasks if task.done()]
                assert len(refused) == 3 * (270 - 4 - 256)
                for task in refused:
                    problem = task.exception()
                    assert isinstance(problem, Problem)
                    assert (problem.status, problem.headers) == (429, {"Retry-After": "1"})
                    assert "expected at most 4" in str(problem)
            answered = await asyncio.gather(*(task for task in tasks if task not in refused))
            assert sorted(answered) == list(range(1, 3 * 260 + 1))

    run(work())


def test_whoever_is_turned_away_waits_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Most clients ask again at once, and would take the interpreter from others."""
    monkeypatch.setattr(threads, "REFUSED_AFTER", 3600.0)

    async def work() -> None:
        turn = threads.Turn(1, 0)
        refused = asyncio.create_task(turn.acquire())
        while not turn.rejected:
            await asyncio.sleep(0)
        await asyncio.sleep(0.01)
        assert not refused.done()
        monkeypatch.setattr(threads, "REFUSED_AFTER", 0.0)
        with pytest.raises(Problem, match="expected at most 1"):
            await turn.acquire()
        refused.cancel()

    run(work())


def test_a_thread_counts_until_it_is_done(folder: Path) -> None:
    """Also where the request was given up: its thread works on."""

    async def work() -> None:
        async with serving(folder, threads=32) as service:
            with held() as long:
                begun: list[None] = []

                def counted() -> int:
                    begun.append(None)
                    return long()

                tasks = await take_all(service, counted, 3)
                while len(begun) < AT_ONCE["long"][0]:  # what has no thread yet is given up without one
                    await asyncio.sleep(0.001)
                for task in tasks:
                    task.cancel()
                await asyncio.sleep(0)
                worker = await service.loops.open(TENANT, "l0")
                with pytest.raises(TimeoutError):
                    await asyncio.wait_for(worker.read(lambda: "answered"), 0.05)
            assert await asyncio.wait_for(worker.read(lambda: "answered"), 1) == "answered"

    run(work())


def test_the_end_waits_for_no_thread(
    folder: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(context, "PATIENCE", 0.05, raising=False)
    done: list[int] = []

    async def work() -> None:
        with held() as long:
            async with serving(folder, threads=8) as service:
                tasks = await take_all(service, lambda: done.append(long()), 3)
            assert done == []
            for task in tasks:
                task.cancel()

    run(work())
    assert "nothing that was acknowledged is lost" in caplog.text


@pytest.mark.slow
def test_a_process_ends_while_a_thread_works() -> None:
    code = (
        "import time; from heedful.server.threads import Threads\n"
        "pool = Threads(2, 'name'); pool.submit(time.sleep, 60); pool.shutdown(wait=False)"
    )
    assert subprocess.run([sys.executable, "-c", code], timeout=30, check=False).returncode == 0
