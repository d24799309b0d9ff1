"""Whether a server should be sent requests, and what its metrics say while the database stands still."""

from __future__ import annotations

import asyncio
import os
import shutil
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import httpx
import pytest
from asking import metrics

from heedful.server import context
from heedful.server.app import App
from heedful.server.context import ServerContext
from heedful.server.loops import Loops
from heedful.server.main import served
from heedful.server.problems import Problem
from loops import small_loop
from processes import until
from takeover import LONGEST, Node, new_name

NOTHING: frozenset[tuple[str, str]] = frozenset()


def refused(url: str) -> str | None:
    """Return why a server is not ready; None if it is."""
    answer = httpx.get(f"{url}/readyz", timeout=LONGEST)
    if answer.status_code == 200:
        assert answer.json() == {"status": "ready"}
        return None
    assert (answer.status_code, answer.headers["content-type"]) == (503, "application/problem+json")
    return str(answer.json()["detail"])


def test_a_server_of_a_folder_is_ready_while_it_can_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with served(tmp_path) as url:
        assert refused(url) is None
        monkeypatch.setattr(os, "access", lambda path, mode, **more: path != tmp_path)  # root may write anywhere
        assert refused(url) == "the folder of the loops cannot be written"
        assert httpx.get(f"{url}/healthz").status_code == 200


def test_a_server_whose_disk_is_full_is_not_ready(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with served(tmp_path) as url:
        monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=4096))
        assert refused(url) == "the disk is full"
        monkeypatch.undo()
        assert refused(url) is None


def test_a_server_whose_keys_cannot_be_read_is_not_ready(tmp_path: Path) -> None:
    with served(tmp_path) as url:
        (tmp_path / "server.db").write_bytes(b"no database" * 100)
        until(lambda: refused(url) == "the keys cannot be read")
        (tmp_path / "server.db").unlink()
        until(lambda: refused(url) is None)


def test_a_server_that_ends_or_whose_disk_stands_still_is_not_ready(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(context, "DISK", 0.01)
    goes_on = threading.Event()
    monkeypatch.setattr(os, "access", lambda path, mode, **more: path != tmp_path or goes_on.wait())

    async def ask() -> None:
        service = ServerContext(tmp_path)
        await service.start()
        assert await service.why_unready() == "the disk does not answer"
        goes_on.set()
        await service.stop()
        assert await service.why_unready() == "the server ends"

    asyncio.run(ask())


def test_one_tenant_whose_loops_cannot_be_listed_holds_up_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small_loop(tmp_path / "cars.heedful").close()
    goes_on, was = threading.Event(), Loops.names

    def names(loops: Loops, tenant: str) -> list[str]:
        assert tenant == "main" or goes_on.wait(60)
        return was(loops, tenant)

    monkeypatch.setattr(Loops, "names", names)
    monkeypatch.setattr("heedful.server.loops.PATIENCE", 0.01)

    async def ask() -> None:
        service = ServerContext(tmp_path)
        for _ in range(2):
            with pytest.raises(Problem, match="could not be listed"):
                await service.loops.list_names("b")
        monkeypatch.setattr("heedful.server.loops.PATIENCE", 60.0)
        assert await service.loops.list_names("main") == ["cars"]
        goes_on.set()
        await service.loops._listing["b"]
        assert await service.loops.list_names("b") == []
        await service.stop()

    asyncio.run(ask())


def test_a_database_that_stands_still_is_told_and_holds_up_nobody_who_looks(postgres: str, tmp_path: Path) -> None:
    name = new_name()
    small_loop(f"{postgres}#{name}", control=0.0).close()
    node, pool = Node(postgres, tmp_path), ThreadPoolExecutor(1)
    try:
        node.wait()

        def of(series: str) -> float:
            found: float = metrics(httpx.get(f"{node.url}/metrics", timeout=LONGEST).content)[series, NOTHING]
            return found

        assert httpx.post(f"{node.url}/v1/loops/{name}/decisions", json={}, timeout=LONGEST).status_code == 200
        until(lambda: of("heedful_leases_held") == 1, LONGEST)
        assert (of("heedful_database_reachable"), refused(node.url)) == (1, None)
        assert of("heedful_database_connections") > 0
        node.proxy.still = True
        path = f"{node.url}/v1/loops/{name}/decisions"
        waiting = pool.submit(httpx.post, path, json={"id": "d1"}, timeout=LONGEST)
        until(lambda: refused(node.url) is not None, LONGEST)
        assert "the database has not answered for" in str(refused(node.url))
        until(lambda: of("heedful_database_reachable") == 0, LONGEST)
        listed = httpx.get(f"{node.url}/v1/loops", timeout=LONGEST)
        assert (listed.status_code, "could not be listed" in listed.text) == (503, True)
        assert httpx.get(f"{node.url}/healthz", timeout=LONGEST).status_code == 200
        assert not waiting.done(), "nobody was answered while it was decided"
        node.proxy.still = False
        until(lambda: refused(node.url) is None, LONGEST)
        until(lambda: httpx.get(f"{node.url}/v1/loops", timeout=LONGEST).json() == {"loops": [name]}, LONGEST)
        assert waiting.result(LONGEST).status_code in (200, 503)
    finally:
        node.close()
        pool.shutdown()
    assert f"loop {name} of tenant main is owned by this server from now on" in node.told.read_text()


@pytest.mark.parametrize("ending", [True, False])
def test_a_request_that_is_cut_off_is_an_error_unless_the_server_ends(tmp_path: Path, ending: bool) -> None:
    class Slow(App):
        async def _answer(self, *_: object) -> None:
            await asyncio.sleep(3600.0)

    async def cut_off() -> bool:
        app = Slow(ServerContext(tmp_path))
        if ending:
            app.service.stopping.set()
        task = asyncio.ensure_future(app({"type": "http", "headers": []}, asyncio.Queue().get, asyncio.Queue().put))
        await asyncio.sleep(0.0)
        assert not task.done()
        task.cancel()
        await asyncio.wait([task])
        return task.cancelled()

    assert asyncio.run(cut_off()) == (not ending)
