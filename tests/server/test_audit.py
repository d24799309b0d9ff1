"""The audit log: what was done with which key, on which loop, by which request; and nothing about people."""

from __future__ import annotations

import errno
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from asking import Caller, is_problem, ok
from browsing import Visitor

from heedful.server.audit import Actor, Audit
from heedful.server.keys import Keys
from heedful.server.main import served
from heedful.storage import Place
from loops import small_loop

ANN = "ann-marker"


class Site(NamedTuple):
    """A server with keys, and who asks it."""

    url: str
    folder: Path
    admin: Caller
    prefix: str


@pytest.fixture
def site(tmp_path: Path, keys: Keys) -> Iterator[Site]:
    small_loop(tmp_path / "cars.heedful", control=0.0).close()
    made, text = keys.create("ops")
    with served(tmp_path) as url, closing(Caller(url, text)) as admin:
        yield Site(url, tmp_path, admin, made.prefix)


def acts(caller: Caller, query: str = "") -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = ok(caller.get(f"/v1/audit{query}"))["acts"]
    return found


CARS = "/v1/loops/cars"


def test_what_is_done_is_kept_with_who_and_in_which_request(site: Site) -> None:
    ask, began = site.admin, 1e6 * time.time()
    decision = ok(ask.post(f"{CARS}/decisions", {"id": "d1", "person": ANN}))
    ok(ask.post(f"{CARS}/feedback", {"decision": "d1", "id": "e1", "clicks": [decision["shown"][2]]}))
    assert [act["action"] for act in acts(ask)] == ["make key"], "deciding and teaching are in the log of the loop"
    done = (
        ("undo", "POST", f"{CARS}/undo", {"event": "e1"}, 200),
        ("rollback", "POST", f"{CARS}/rollback", {"to": 14}, 200),
        ("promote", "POST", f"{CARS}/promotions", {"learner": "perceptron", "force": True}, 200),
        ("export", "GET", f"{CARS}/people/{ANN}", ..., 200),
        ("export", "GET", f"{CARS}/events?follow=false", ..., 200),
        ("forget", "POST", f"{CARS}/forget", {"person": ANN}, 200),
        ("make loop", "POST", "/v1/loops", {"name": "vans", "items": [{"id": "a", "x": 1}, {"id": "b", "x": 2}]}, 201),
        ("export", "GET", "/v1/loops/vans/events?follow=false", ..., 200),
    )
    for n, (_, method, path, body, status) in enumerate(done):
        assert ask(method, path, body, x_request_id=f"r{n}").status == status, path
    is_problem(ask.post(f"{CARS}/undo", {"event": "none"}), "rejected")  # nothing was done
    found = acts(ask)[::-1]
    loops = ["cars"] * 6 + ["vans"] * 2
    expected = [(action, loops[n], f"r{n}", site.prefix, "main", "") for n, (action, *_) in enumerate(done) if n != 4]
    names = "action", "loop", "request", "key", "tenant", "about"
    assert [tuple(act[name] for name in names) for act in found[1:]] == expected, "an hour's exports are one"
    assert found[0]["about"] == site.prefix
    assert all(began - 1e9 < act["time"] <= 1e6 * time.time() for act in found)
    with closing(sqlite3.connect(site.folder / "server.db")) as db:
        kept = str(db.execute("SELECT * FROM audit").fetchall())
    assert ANN not in kept


def test_pages_are_in_it_too(site: Site) -> None:
    with closing(Visitor(site.url)) as visitor:
        visitor.http.post("/sign-in", data={"key": key_of(site)}, headers={"origin": site.url})
        decision = ok(site.admin.post(f"{CARS}/decisions", {"id": "d1"}))
        told = {"decision": "d1", "id": "e1", "clicks": [decision["shown"][2]]}
        ok(site.admin.post(f"{CARS}/feedback", told))
        form = {"name": "other", "scope-read": "yes"}
        assert visitor.http.post("/keys", data=form, headers={"origin": site.url}).status_code == 200
        answer = visitor.http.post("/loops/cars/learned/undo", data={"event": "e1"}, headers={"origin": site.url})
        assert answer.status_code < 400
    newest, made, *_ = acts(site.admin)
    assert (newest["action"], newest["loop"], newest["key"]) == ("undo", "cars", site.prefix)
    assert (made["action"], made["key"], made["about"] not in ("", site.prefix)) == ("make key", site.prefix, True)
    assert made["request"]


def key_of(site: Site) -> str:
    return str(site.admin.http.headers["authorization"]).removeprefix("Bearer ")


def test_it_is_read_in_pages_by_admins_of_the_tenant(site: Site, keys: Keys) -> None:
    _, reader = keys.create("reader", scopes=["read", "decide", "feedback", "metrics"])
    _, theirs = keys.create("acme", tenant="acme")
    with closing(Caller(site.url, reader)) as caller:
        is_problem(caller.get("/v1/audit"), "no-scope")
    with closing(Caller(site.url, theirs)) as caller:
        assert [act["tenant"] for act in acts(caller)] == ["acme"]
    for n in range(5):
        keys.set_scopes(site.prefix, ["read", "admin"] if n % 2 else ["admin"])
    whole, seen, before = acts(site.admin), list[dict[str, Any]](), ""
    while page := acts(site.admin, f"?limit=2{before}"):
        seen += page
        before = f"&before={page[-1]['id']}"
    assert [act["action"] for act in whole] == ["set scopes"] * 5 + ["make key"] * 2
    assert seen == whole
    is_problem(site.admin.get("/v1/audit?limit=0"), "bad-input", "limit")


def test_keys_are_in_it_in_either_store(vault: Place, keys: Keys) -> None:
    made, _ = keys.create("ci", by=Actor("hk_ab12cd34", "r1"))
    keys.set_scopes(made.prefix, ["read"])
    keys.revoke(made.prefix)
    audit = Audit(vault)
    audit.add(Actor("hk_ab12cd34", "r2"), "main", "undo", "cars")
    found = audit.newest(None, 2**62, 10)
    assert [(act.action, act.key, act.request, act.loop, act.about) for act in found] == [
        ("undo", "hk_ab12cd34", "r2", "cars", ""),
        ("revoke key", "", "", "", made.prefix),
        ("set scopes", "", "", "", made.prefix),
        ("make key", "hk_ab12cd34", "r1", "", made.prefix),
    ]
    assert audit.newest("acme", 2**62, 10) == []


def test_what_was_done_is_answered_even_if_it_cannot_be_kept(
    site: Site, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def full(*given: object) -> None:
        raise OSError(errno.ENOSPC, "the disk is full")

    decision = ok(site.admin.post(f"{CARS}/decisions", {"id": "d1"}))
    ok(site.admin.post(f"{CARS}/feedback", {"decision": "d1", "id": "e1", "clicks": [decision["shown"][2]]}))
    monkeypatch.setattr(Audit, "add", full)
    assert ok(site.admin.post(f"{CARS}/undo", {"event": "e1"}))["status"] == "applied"
    assert f"audit: undo of cars by {site.prefix} could not be written" in caplog.text
