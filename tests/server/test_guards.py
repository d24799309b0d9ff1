"""What every answer says to browsers, what pages of elsewhere cannot ask, and what is said where too much is open."""

from __future__ import annotations

import csv
import resource
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import httpx
import pytest
from asking import MSGPACK, Caller, Wire, is_problem, request

import processes
from heedful import Loop
from heedful.loop.settings import Settings
from heedful.server import main
from heedful.server.app import create_app
from heedful.server.context import Options
from heedful.server.main import served
from heedful.server.pages.page import static_url
from loops import small_loop
from processes import Process, here, until

CARS = "/v1/loops/cars"
DECIDE, FEEDBACK = f"{CARS}/decisions", f"{CARS}/feedback"


@pytest.fixture
def url(tmp_path: Path) -> Iterator[str]:
    small_loop(tmp_path / "cars.heedful").close()
    with served(tmp_path) as found:
        yield found


# ---------------------------------------------------------------------------- what every answer says


def test_no_browser_guesses_what_an_answer_is(url: str) -> None:
    """Once in each: of the API, in both forms, of a problem, of pages and files, and of what is no HTTP."""
    paths = ("/v1/loops", CARS, "/metrics", "/healthz", "/openapi.json", "/heedful.js", "/v1/nothing", "/", "/loops")
    paths += ("/s/none",)
    with closing(Caller(url)) as ask:
        answers = [ask.get(path) for path in (*paths, static_url("vendor/htmx.min.js"), "/static/none")]
        answers += [ask.post(DECIDE, {}) for _ in range(3)]  # from the second on with a head that came before
        answers += [ask.post(DECIDE, {"none": 1}), ask.get("/v1/loops", accept=MSGPACK), ask("PATCH", "/v1/loops")]
        with ask.http.stream("GET", f"{CARS}/events") as stream:
            told = [answer.headers for answer in answers] + [stream.headers]
    for content in (b"no request\r\n\r\n", request("POST", DECIDE, None, "X: " + "y" * 70_000)):
        with Wire(url) as wire:
            wire.send(content)
            told.append(wire.must().headers)
    assert [headers.get_list("x-content-type-options") for headers in told] == [["nosniff"]] * len(told)


def test_nothing_that_is_told_is_kept(url: str) -> None:
    with closing(Caller(url)) as ask:
        for path in ("/v1/loops", CARS, "/metrics", "/v1/nothing", f"{CARS}/weights"):
            assert ask.get(path).headers["cache-control"] == "no-store", path
    with Wire(url) as wire:
        wire.send(b"no request\r\n\r\n")
        assert wire.must().headers["cache-control"] == "no-store"


# ---------------------------------------------------------------------------- pages of elsewhere

GETS = ("/v1/loops", CARS, f"{CARS}/items", "/metrics", f"{CARS}/events")


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
@pytest.mark.parametrize("mode", ["no-cors", "cors", None])
def test_a_page_of_elsewhere_cannot_make_a_browser_ask(url: str, site: str, mode: str | None) -> None:
    """As a picture of its own: such a request has no Origin, but the browser says where it is from. As on the pages, a
    visit is another thing."""
    modes = {} if mode is None else {"sec_fetch_mode": mode}
    with closing(Caller(url)) as ask:
        for path in GETS:
            is_problem(ask.get(path, sec_fetch_site=site, **modes), "wrong-origin")
        for target in (DECIDE, FEEDBACK, "/v1/loops"):
            is_problem(ask.post(target, {}, sec_fetch_site=site, **modes), "wrong-origin")
        for path in GETS[:-1]:
            assert ask.get(path, sec_fetch_site=site, sec_fetch_mode="navigate").status == 200
            for ours in ("same-origin", "none"):
                assert ask.get(path, sec_fetch_site=ours, **modes).status == 200
            # A page of this machine says who it is.
            origin = "http://localhost:3000"
            assert ask.get(path, sec_fetch_site=site, sec_fetch_mode="cors", origin=origin).status == 200


# ---------------------------------------------------------------------------- keys in the wrong place

SECRET = "Ab3_-" * 8 + "xyz"
MISTYPED = [f"hk_ab12cd34_{SECRET}", f"hk_ab12cd34_{SECRET[:-1]}", f"hk_ab12cd34_{SECRET}9", f"hk_ab12cd34{SECRET}"]
MISTYPED += [f"HK_AB12CD34_{SECRET}", f"hk_ab12cd3_{SECRET}", f"hk-ab12cd34-{SECRET}", f"Bearer hk_ab12cd34_{SECRET}"]


@pytest.mark.parametrize("key", MISTYPED)
def test_a_mistyped_key_is_not_told_again(url: str, key: str) -> None:
    """Where it was put in the wrong place: not in the reason of a rejection either, alone or in a list."""
    with closing(Caller(url)) as ask:
        d = ask.post(DECIDE, {"id": "d", "candidates": ["i1", "i2"]}).value["id"]
        given = [{"decision": key, "better": "i1"}, {"decision": d, "better": key}, {"decision": d, "clicks": [key]}]
        for event in given:
            answer = ask.post(FEEDBACK, event | {"id": "e"})
            is_problem(answer, "rejected", None)
            assert answer.value["answer"]["reason"]
            assert SECRET[8:-2] not in str(answer.value)
        answers = ask.post(FEEDBACK, [event | {"id": f"e{n}"} for n, event in enumerate(given)])
        assert [each["status"] for each in answers.value] == ["rejected"] * 3
        assert SECRET[8:-2] not in str(answers.value)
        for path, body in ((f"{CARS}/activate", {"decision": key}), (f"{CARS}/undo", {"event": key})):
            assert SECRET[8:-2] not in str(ask.post(path, body).value)


# ---------------------------------------------------------------------------- too much is open


@pytest.mark.slow
def test_without_a_file_to_open_it_is_said_to_wait(tmp_path: Path) -> None:
    """A loop that is not open, and one that is to be made: not broken, not the caller's fault, and well again later."""
    folder = tmp_path / "served"
    folder.mkdir()
    for n in range(12):
        small_loop(folder / f"l{n}.heedful").close()
    with Process(folder).wait() as server, httpx.Client(base_url=server.url, timeout=30.0) as client:
        assert client.get("/v1/loops/l0").status_code == 200
        pid, (soft, hard) = server.child.pid, resource.prlimit(server.child.pid, resource.RLIMIT_NOFILE)
        held, refused = server.files(), 0
        for more in range(9):
            resource.prlimit(pid, resource.RLIMIT_NOFILE, (held + more, hard))
            rows = [{"id": "a", "x": 1}, {"id": "b", "x": 2}]
            for answer in (
                client.get(f"/v1/loops/l{more + 1}"),
                client.post("/v1/loops", json={"name": f"made{more}", "items": rows}),
                client.post(f"/v1/loops/l{more + 1}/decisions", json={}),
            ):
                assert answer.status_code in (200, 201, 503), answer.text
                if answer.status_code == 503:
                    refused += 1
                    assert answer.json()["type"] == "urn:heedful:problem:unavailable"
                    assert "files" in answer.json()["detail"]
                    assert answer.headers["retry-after"]
            assert client.post("/v1/loops/l0/decisions", json={}).status_code == 200
        assert refused > 5
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (soft, hard))
        for more in range(9):
            assert client.get(f"/v1/loops/l{more + 1}").status_code == 200
            answer = client.post("/v1/loops", json={"name": f"made{more}", "items": rows})
            assert answer.status_code in (201, 409), answer.text


def test_connections_leave_files_for_the_loops(tmp_path: Path) -> None:
    """So many at most: one more is told to come again, and room is made by those who go."""
    small_loop(tmp_path / "cars.heedful").close()
    with here(tmp_path) as (app, client), ExitStack() as stack:
        url, app.connections = str(client.base_url).rstrip("/"), 3
        wires = [stack.enter_context(Wire(url)) for _ in range(3)]
        for wire in wires:
            wire.send(request("GET", CARS))
            assert wire.must().status == 200
        with Wire(url) as fourth:
            answer = fourth.must()
            assert is_problem(answer, "unavailable")["detail"].startswith("expected at most 3 connections")
            assert (answer.headers["retry-after"], answer.headers["connection"]) == ("1", "close")
            assert fourth.closed()
        wires[0].send(request("GET", CARS))
        assert wires[0].must().status == 200
        wires[1].close()

        def again() -> bool:
            with Wire(url) as wire:
                wire.send(request("GET", CARS))
                answer = wire.answer()
                return answer is not None and answer.status == 200

        until(again)


@pytest.mark.slow
def test_a_process_with_few_files_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many come: those who are there are answered, by loops that are opened meanwhile too."""
    folder = tmp_path / "served"
    folder.mkdir()
    for name in "ab":
        small_loop(folder / f"{name}.heedful").close()
    few = tmp_path / "few"
    few.write_text(f'#!/bin/sh\nulimit -n 80\nexec {processes.HEEDFUL} "$@"\n')
    few.chmod(0o700)
    monkeypatch.setattr(processes, "HEEDFUL", str(few))
    with Process(folder).wait() as server, ExitStack() as stack:
        wires = [stack.enter_context(Wire(server.url)) for _ in range(90)]
        found = []
        for wire in wires:
            wire.send(request("GET", "/healthz"))
            try:
                answer = wire.answer()
            except ConnectionError:
                answer = None
            found.append(answer is not None and answer.status)
        assert 30 <= found.count(200) <= 40
        assert set(found) <= {200, 503, False}
        wire = wires[found.index(200)]
        for name in "ab":
            wire.send(request("GET", f"/v1/loops/{name}"))
            assert wire.must().status == 200


def test_how_many_connections_there_may_be(tmp_path: Path) -> None:
    """What the process may open, less six files a loop and some of its own; but at least half."""
    for files, most_open, most in ((100_000, 200, 98_700), (1024, 200, 512), (1024, 10, 864), (64, 200, 32)):
        assert main.most_connections(files, Options(most_open=most_open)) == most
    assert create_app(tmp_path).connections is None


# ---------------------------------------------------------------------------- files for a spreadsheet


def test_no_cell_of_a_file_is_a_formula(tmp_path: Path) -> None:
    """A name that a spreadsheet would work out is text in the answers of a study, and a name again in `heedful`."""
    names = ["=1+1", "+a", "-b", "@c", "d"]
    items = [{"id": name} for name in names]
    loop = Loop.create(tmp_path / "study.heedful", items=items, settings=Settings(choices="best"))
    for n, (one, other) in enumerate([("=1+1", "+a"), ("-b", "@c"), ("d", "=1+1")]):
        loop.record([one, other], [one, other], id=f"d{n}", person="=cmd|x")
        loop.feedback({"decision": f"d{n}", "id": f"e{n}", "better": one})
    loop.close()
    with served(tmp_path) as url, closing(Caller(url)) as ask:
        text = ask.get("/loops/study/results/answers.csv").value.decode()
    cells = [cell for row in csv.reader(text.splitlines()) for cell in row]
    assert {"'=1+1", "'+a", "'-b", "'@c", "d", "'=cmd|x"} <= set(cells)
    assert not [cell for cell in cells if cell[:1] in "=+-@" and cell]
