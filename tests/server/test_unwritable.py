"""A server whose files cannot be written: what reads is answered, what writes is refused as what it is, for now."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from heedful.server.context import as_problem
from loops import small_loop
from processes import here, problem, taught


@pytest.mark.slow
@pytest.mark.parametrize("what", ["the folder of the loop", "all folders"])
def test_a_folder_that_is_read_only_is_served_for_reading(nobody: Path, what: str) -> None:
    path = nobody / "a.heedful"
    small_loop(path, control=0.0).close()
    with here(nobody) as (_, client):
        taught(client, "a", range(3))
    for each in (path, *([nobody] if what == "all folders" else [])):
        os.chmod(each, 0o500)
    with here(nobody) as (_, client):
        for route in ("", "/weights", "/report", "/events?follow=false", "/decisions/d1/explanation"):
            assert client.get(f"/v1/loops/a{route}").status_code == 200, route
        for page in ("/", "/loops/a", "/loops/a/learned"):
            assert client.get(page).status_code == 200, page
        assert len(client.get("/v1/loops/a/events?follow=false").text.splitlines()) > 6
        for route, body in (
            ("decisions", {}),
            ("feedback", {"decision": "d0", "clicks": ["i3"]}),
            ("feedback", [{"decision": "d0", "clicks": ["i3"]}]),
        ):
            detail = problem(client.post(f"/v1/loops/a/{route}", json=body), 503, "unavailable")["detail"]
            assert "cannot be written" in detail
        assert client.get("/v1/loops/a/weights").status_code == 200
        os.chmod(path, 0o700)
        assert client.post("/v1/loops/a/decisions", json={}).status_code == 200  # without a restart


@pytest.mark.parametrize(
    "number", ["EACCES", "EDQUOT", "EFBIG", "EIO", "ENOSPC", "EPERM", "EROFS"]
)
def test_what_the_disk_refuses_is_not_damage(number: str) -> None:
    told = as_problem(OSError(getattr(errno, number), "something", "/srv/loops/a.heedful/log.db"))
    assert (told.status, told.kind) == (503, "unavailable")
    assert int(told.headers["Retry-After"]) >= 1
    assert "log.db" not in str(told)
