"""What one caller leaves to the others: no work for the collector, no memory, no turn of the event loop."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from asking import Caller, Wire, request

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
