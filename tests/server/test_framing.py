"""Where a request ends and the next begins: no bytes make another one of it, however they come."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from framing import Request, Wanted, cuts, outcome
from oddities import CASES, EVIL, FIELDS, JAVA, LENGTH, NEXT, SOCKET, UP, Case, ask, chunk, chunked, sized
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from heedful.server.protocol import Protocol

NAMES = [case.name for case in CASES]


def test_each_has_a_name() -> None:
    assert len(set(NAMES)) == len(CASES)


@pytest.mark.slow  # by its time
def test_the_same_bytes_elsewhere() -> None:
    """Where uvicorn's own parsers make more or fewer requests of it, the table says why it is as it is."""
    for case in CASES:
        seen = {len(outcome(each, [case.data]).requests) for each in (HttpToolsProtocol, H11Protocol)}
        assert seen == {case.told.count("2")} or case.why, (case, seen)


BEFORE = ask("POST", LENGTH, target=b"/v1/loops/cars/decisions", body=EVIL)


@pytest.mark.parametrize("case", CASES, ids=NAMES)
def test_an_oddity(case: Case) -> None:
    """What the table says, behind requests that are as they should be and before another one; at once, byte by byte
    and cut anywhere; nothing is read where nothing was asked."""
    alive = not case.told.endswith("!") and case.told != ""
    behind = BEFORE if alive else b""
    for pieces in cuts(case.data, len(case.data)):
        found = outcome(Protocol, [BEFORE, b"", BEFORE, BEFORE, *pieces, b"", behind])
        assert found.told == f"2 2 2 {case.told}{' 2' * alive}".strip(), (len(pieces), found.written[-300:])
        assert len(found.requests) == found.told.count("2")
        assert all(request.body == EVIL for request in found.requests[:3])
        assert all("evil" not in request.path or request.path == "//localhost/evil" for request in found.requests)


def of(data: bytes) -> list[Request]:
    """The requests that these bytes are, the same however they are cut."""
    several = [outcome(Protocol, pieces).requests for pieces in cuts(data, len(data))]
    assert all(requests == several[0] for requests in several)
    return several[0]


@pytest.mark.parametrize("lines", [(), UP, JAVA, SOCKET], ids=["none", "h2c", "java", "websocket"])
def test_an_offer_changes_nothing_of_a_request(lines: tuple[bytes, ...]) -> None:
    """Its body, however it comes, its target and its other headers are as they were sent."""
    for data in (sized(b"X: y", *lines), chunked(chunk() + b"\r\n", b"X: y", *lines, behind=NEXT)):
        first, second = of(data)
        assert (first.method, first.path, first.body, second.path) == ("POST", "/a", EVIL, "/next")
        assert (b"x", b"y") in first.headers
        assert not {b"upgrade", b"http2-settings"} & dict(first.headers).keys()


def test_a_trailer_is_no_header() -> None:
    head = chunked(b"", b"X: y")
    [request] = of(head + chunk() + b"\r\n".join(FIELDS) + b"\r\n\r\n")
    assert request.headers == [(b"host", b"localhost"), (b"x", b"y"), (b"transfer-encoding", b"chunked")]
    assert request.body == EVIL


TARGETS = {
    b"http://other/a?b": (b"other", "/a"),
    b"HTTP://Other:81": (b"Other:81", "/"),
    b"https://[::1]:80/a/b": (b"[::1]:80", "/a/b"),
    b"http://other?x": (b"other", "/"),
    b"/http://other/": (b"localhost", "/http://other/"),
    b"//other/a": (b"localhost", "//other/a"),
}


@pytest.mark.parametrize("target", TARGETS, ids=repr)
def test_the_authority_of_a_target_is_the_host(target: bytes) -> None:
    """RFC 9112, 3.2.2: what Host says beside it does not count."""
    [request] = of(ask("GET", b"X: y", target=target))
    assert (dict(request.headers)[b"host"], request.path) == TARGETS[target]
    assert (b"x", b"y") in request.headers
    if not target.startswith(b"/"):
        [request] = of(b"GET " + target + b" HTTP/1.0\r\n\r\n")
        assert (dict(request.headers)[b"host"], request.path) == TARGETS[target]


def test_what_was_asked_before_is_answered_first() -> None:
    """Also where what is refused comes while it is still worked on; and what comes after that is not looked at."""
    go = asyncio.Event()

    class Slow(Wanted):
        async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
            await go.wait()
            await super().__call__(scope, receive, send)

    app = Slow()

    def pieces() -> Iterator[bytes]:
        yield ask("GET") + NEXT
        yield b"no request\r\n\r\n"
        yield EVIL
        go.set()

    found = outcome(Protocol, pieces(), app)
    assert found.told == "2 2 4!"
    assert [request.path for request in found.requests] == ["/a", "/next"]
