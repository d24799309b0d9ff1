"""A server whose files cannot be written: what reads is answered, what writes is refused as what it is, for now."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import httpx
import pytest

from heedful.server.problems import as_problem
from heedful.storage import Address, OutOfConnections
from heedful.storage.postgres import Server
from locked import lock
from loops import small_loop
from processes import here, problem, taught
from unprivileged import unprivileged


def served(folder: Path) -> Path:
    """A folder with a loop, of which a server was asked for something."""
    small_loop(folder / "a.heedful", control=0.0).close()
    with here(folder) as (_, client):
        taught(client, "a", range(3))
        look(client)
    return folder / "a.heedful"


def look(client: httpx.Client) -> None:
    for route in ("", "/weights", "/report", "/decisions/d1/why"):
        assert client.get(f"/v1/loops/a{route}").status_code == 200, route
    for page in ("/", "/loops/a/learned", "/loops/a/proof", "/loops/a/health", "/loops/a/why?decision=d1"):
        assert client.get(page).status_code == 200, page
    assert client.get("/v1/loops/a/events?follow=false").text.count('"kind":"feedback"') == 3


@pytest.mark.slow
@pytest.mark.parametrize("what", ["the folder of the loop", "all folders"])
def test_a_folder_that_is_read_only_is_served_for_reading(tmp_path: Path, what: str) -> None:
    served(tmp_path)  # which imports modules that only the administrator may read
    with unprivileged() as folder:
        path = served(folder)
        for each in (path, *([folder] if what == "all folders" else [])):
            os.chmod(each, 0o500)
        with here(folder) as (_, client):
            look(client)
            for route, body in (
                ("decisions", {}),
                ("feedback", {"decision": "d0", "clicks": ["i3"]}),
                ("feedback", [{"decision": "d0", "clicks": ["i3"]}]),
            ):
                detail = problem(client.post(f"/v1/loops/a/{route}", json=body), 503, "unavailable")["detail"]
                assert "cannot be written" in detail
            page = client.get("/loops/a")  # to teach on, for which something is decided
            assert (page.status_code, "cannot be written" in page.text) == (503, True)
            assert client.get("/v1/loops/a/weights").status_code == 200
            os.chmod(folder, 0o700)
            os.chmod(path, 0o700)
            again = [client.post("/v1/loops/a/decisions", json={}).status_code for _ in range(2)]
            assert again == [503, 200]  # without a restart


def test_a_loop_that_may_not_be_read_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    for name in "ab":
        small_loop(tmp_path / f"{name}.heedful", control=0.0).close()
    lock(tmp_path / "a.heedful", monkeypatch)
    with here(tmp_path) as (_, client):
        assert client.get("/v1/loops").json()["loops"] == ["a", "b"]
        for _ in range(3):
            assert "cannot be read" in problem(client.get("/v1/loops/a"), 503, "unavailable")["detail"]
        assert client.get("/v1/loops/b").status_code == 200
    [line] = [record.getMessage() for record in caplog.records]
    assert "a.heedful" in line


@pytest.mark.parametrize("number", ["EACCES", "EDQUOT", "EFBIG", "EIO", "ENOSPC", "EPERM", "EROFS"])
def test_what_the_disk_refuses_is_not_damage(number: str) -> None:
    told = as_problem(OSError(getattr(errno, number), "something", "/srv/loops/a.heedful/log.db"))
    assert (told.status, told.kind) == (503, "unavailable")
    assert int(told.headers["Retry-After"]) >= 1
    assert "log.db" not in str(told)


def test_a_database_without_a_connection_left_is_called_that(monkeypatch: pytest.MonkeyPatch) -> None:
    import psycopg

    def refused(*_: object, **__: object) -> None:
        raise psycopg.OperationalError("connection failed: FATAL:  sorry, too many clients already")

    monkeypatch.setattr(psycopg, "connect", refused)
    with pytest.raises(
        OutOfConnections, match=r"no connection left.*max_connections above 19 for each server"
    ) as raised:
        Server(Address("postgresql://h/d")).connect()
    told = as_problem(raised.value)
    assert (told.status, told.kind) == (503, "unavailable")
    assert "no connection left" in str(told)
