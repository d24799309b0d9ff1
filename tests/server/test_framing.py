"""Where a request ends and the next begins: no bytes make another one of it, however they come."""

from __future__ import annotations

import pytest
from framing import cuts, outcome
from oddities import CASES, Case
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from heedful.server.protocol import Protocol

NAMES = [case.name for case in CASES]


def test_there_are_enough_and_each_has_a_name() -> None:
    assert len(CASES) >= 200
    assert len(set(NAMES)) == len(CASES)


@pytest.mark.parametrize("case", CASES, ids=NAMES)
def test_an_oddity(case: Case) -> None:
    """What the table says, at once, byte by byte and cut anywhere; nothing is read where nothing was asked."""
    for pieces in cuts(case.data, len(case.data)):
        found = outcome(Protocol, pieces)
        assert found.told == case.told, (len(pieces), found.written[-300:])
        assert len(found.requests) == case.told.count("2")
        assert all("evil" not in request.path or request.path == "//localhost/evil" for request in found.requests)


@pytest.mark.parametrize("case", CASES, ids=NAMES)
def test_the_same_bytes_elsewhere(case: Case) -> None:
    """Where uvicorn's own parsers make more or fewer requests of it, the table says why it is as it is."""
    seen = {len(outcome(each, [case.data]).requests) for each in (HttpToolsProtocol, H11Protocol)}
    if seen != {case.told.count("2")}:
        assert case.why, seen
