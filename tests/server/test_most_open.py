"""Loops that are opened and closed as requests need them: which ones, and what is kept of a log that lost a part."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import Any

import pytest
from asking import run, serving

from heedful import Loop
from heedful.server.problems import Problem
from heedful.storage import Damaged, Moved
from loops import small_loop

# ---------------------------------------------------------------------------- a part of a log is removed


@pytest.mark.parametrize("reads", [True, False])
def test_a_loop_that_lost_a_part_of_its_log_is_not_served_without_it(
    tmp_path: Path, reads: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """Whether the next request reads or writes, what was acknowledged is kept before anything else is opened."""
    path = tmp_path / "cars.heedful"
    small_loop(path).close()

    async def work() -> None:
        async with serving(tmp_path) as service:
            worker = await service.loops.open("main", "cars")
            for n in range(3):
                await worker.decide({"id": f"d{n}"})
            (path / "log.db-wal").unlink()
            with pytest.raises(Moved, match="removed or replaced"):
                await (worker.read(lambda: 7) if reads else worker.decide({"id": "late"}))
            assert worker.moved
            for _ in range(2):
                with pytest.raises(Problem, match="this loop cannot be opened") as refused:
                    await service.loops.open("main", "cars")
                assert refused.value.kind == "damaged"

    run(work())
    assert "put it in place: rm -f" in caplog.text
    with pytest.raises(Damaged, match=r"log\.db-kept"):
        Loop.open(path)
    for name in ("log.db-wal", "log.db-shm"):
        (path / name).unlink(missing_ok=True)
    (path / "log.db-kept").rename(path / "log.db")
    with Loop.open(path) as loop:
        assert [event.id for event in loop.projection.log.events() if event.kind == "decision"] == ["d0", "d1", "d2"]
        assert loop.verify() == []


# ---------------------------------------------------------------------------- how many stay open


def two_tenants(folder: Path) -> None:
    """One of them has one loop, the other five."""
    small_loop(folder / "cars.heedful").close()
    (folder / "b").mkdir()
    for n in range(5):
        small_loop(folder / "b" / f"l{n}.heedful").close()


def test_a_tenant_with_many_loops_closes_its_own(tmp_path: Path) -> None:
    """Whoever goes through more loops than may be open does not close those of others, which were used before."""
    two_tenants(tmp_path)

    async def work() -> None:
        async with serving(tmp_path, most_open=3) as service:
            first = await service.loops.open("main", "cars")
            for n in (0, 1, 2, 3, 4, 0, 1):
                await service.loops.open("b", f"l{n}")
                while service.loops._closing:
                    await asyncio.sleep(0)
                assert len(service.loops.workers) <= 3
            assert service.loops.workers["main", "cars"] is first
            assert {name for tenant, name in service.loops.workers if tenant == "b"} == {"l0", "l1"}

    run(work())


def test_a_tenant_whose_loops_are_all_in_use_closes_none_of_others(tmp_path: Path) -> None:
    """Then more are open than may be, until requests end; and then its own are closed."""
    two_tenants(tmp_path)

    async def work() -> None:
        async with serving(tmp_path, most_open=3) as service:
            first = await service.loops.open("main", "cars")
            for n in range(5):
                worker = await service.loops.open("b", f"l{n}")
                worker.users += 1
                await service.loops.close_idle()
                assert service.loops.workers["main", "cars"] is first
            assert len(service.loops.workers) == 6
            for worker in service.loops.workers.values():
                worker.users = 0
            await service.loops.close_idle()
            assert service.loops.workers["main", "cars"] is first
            assert len(service.loops.workers) == 3

    run(work())


def test_a_tenant_opens_a_few_loops_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Opening a loop folds its log: others are opened meanwhile."""
    small_loop(tmp_path / "cars.heedful").close()
    (tmp_path / "b").mkdir()
    for n in range(4):
        small_loop(tmp_path / "b" / f"l{n}.heedful").close()
    may, was = threading.Event(), Loop.open

    def slow(path: Path, **more: Any) -> Loop:
        if path.parent.name == "b":
            may.wait(3)
        return was(path, **more)

    monkeypatch.setattr(Loop, "open", slow)

    async def work() -> None:
        async with serving(tmp_path) as service:
            tasks = [asyncio.create_task(service.loops.open("b", f"l{n}")) for n in range(4)]
            await asyncio.sleep(0.01)
            try:
                assert await asyncio.wait_for(service.loops.open("main", "cars"), 1)
            finally:
                may.set()
            assert len({id(worker) for worker in await asyncio.gather(*tasks)}) == 4

    run(work())
