"""The client is tried both ways: blocking, and with async."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from faulty import Connected


@pytest.fixture(params=["sync", "async"])
def connect(request: pytest.FixtureRequest) -> Iterator[Connected]:
    connected = Connected(request.param)
    yield connected
    connected.close()
