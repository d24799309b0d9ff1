"""What one caller leaves to the others: no work for the collector, no memory, no turn of the event loop."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from asking import Caller, Wire, is_problem, request, until

from heedful.server import meters
from heedful.server.keys import Keys
from heedful.server.problems import Problem
from heedful.server.running import served
from loops import small_loop

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
    return sorted(each.kind for each in gc.get_objects() if isinstance(each, Problem))


REFUSED = [
    ("no-key", request("POST", DECIDE, b"{}", "Authorization: Bearer none")),
    ("no-key", request("GET", "/v1/loops")),
    ("no-key", request("GET", "/nowhere")),
    ("malformed", request("POST", DECIDE, b'{"candidates":', "Authorization: KEY")),
    ("bad-input", request("POST", DECIDE, b'{"colour":1}', "Authorization: KEY")),
    ("bad-input", request("POST", DECIDE, b'{"candidates":["i1","nobody"]}', "Authorization: KEY")),
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


@pytest.mark.parametrize(("kind", "content"), REFUSED, ids=lambda given: str(given)[:50])
def test_a_refusal_is_gone_when_it_was_answered(folder: Path, kind: str, content: bytes) -> None:
    """A caller without a key makes as many as they like; a pause of the collector is everybody's."""
    keys = Keys(folder)
    content = content.replace(b"KEY", b"Bearer " + keys.create("all")[1].encode())
    keys.close()
    with served(folder) as url:
        with Wire(url) as wire:  # what is made once, at the first request, is made
            wire.send(content)
            answers = [wire.must()]
        gc.collect()
        gc.disable()
        try:
            before = left_behind()
            with Wire(url) as wire:  # with a head that is new, and that came before
                for _ in range(4):
                    wire.send(content)
                    answers.append(wire.must())
            with closing(Caller(url)) as caller:  # the last one is over once another was answered
                assert caller.get("/healthz").status == 200
            after = left_behind()
        finally:
            gc.enable()
    for answer in answers:
        assert answer.value["type"].endswith(kind)
    assert after == before


# ---------------------------------------------------------------------------- what is measured


def test_metrics_are_written_beside_the_event_loop_and_once_a_second(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However often a tenant asks, and whoever waits for its text: others are answered meanwhile."""
    may, made, was = threading.Event(), list[str | None](), meters.exposition

    def slow(counts: meters.Meters, desks: Any, at: Path, tenant: str | None) -> bytes:
        made.append(tenant)
        assert may.wait(20), "nobody was answered meanwhile"
        return was(counts, desks, at, tenant)

    now = [100.0]
    monkeypatch.setattr(meters, "exposition", slow)
    monkeypatch.setattr(meters, "clock", lambda: now[0])
    with closing(Keys(folder)) as keys:
        acme, reader, everything = (
            keys.create("a", tenant="acme", scopes=["read"])[1],
            keys.create("r", scopes=["read"])[1],
            keys.create("e")[1],
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
            assert scrape(reader) != text  # each tenant has its own
            assert b"process_" in scrape(everything)
            assert made == ["acme", "main", None]
            now[0] += 0.9
            assert scrape(acme) == text
            now[0] += 0.2
            assert scrape(acme) != text
            assert made == ["acme", "main", None, "acme"]


def test_metrics_that_fail_are_tried_again(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: Any) -> bytes:
        raise RuntimeError("not now")

    with served(folder) as url, closing(Caller(url)) as caller:
        with monkeypatch.context() as broken:
            broken.setattr(meters, "exposition", fails)
            is_problem(caller.send("GET", "/metrics"), "damaged")
        assert caller.send("GET", "/metrics").status == 200
