"""The client and HTTP with items of which each request says something: the same decisions as here."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from heedful import Loop, declare, infer
from heedful.loop.settings import Settings
from loops import rows

httpx = pytest.importorskip("httpx")
running = pytest.importorskip("heedful.server.main")

QUERY = {"bm25": [0, 40], "source": ["web", "app"]}
ITEMS = rows(12, 4)
SAID = [{"id": f"i{j}", "bm25": float((7 * j) % 40), "source": ("web", "app")[j % 2]} for j in range(6)]


@pytest.fixture
def url(tmp_path: Path) -> Iterator[str]:
    with running.served(tmp_path) as found:
        yield found


def test_over_http_and_in_the_client_it_is_the_loop_here(url: str, tmp_path: Path) -> None:
    from heedful.client import Client

    settings = {"control": 0.2, "seed": 3}
    with Client(url, timeout=60.0) as client:
        there = client.create("shop", ITEMS, settings=settings, query_features=QUERY)
        about = httpx.get(f"{url}/v1/loops/shop").json()
        assert about["query_features"] == ["bm25", "source"]
        assert about["names"][-4:] == ["bm25", "source=web", "source=app", "the caller's score"]
        with Loop.create(
            tmp_path / "here",
            encoding=infer(ITEMS),
            items=ITEMS,
            query_features=declare(QUERY),
            settings=Settings(**settings),
        ) as here:
            for t in range(8):
                d, e = there.decide(SAID, id=f"d{t}"), here.decide(SAID, id=f"d{t}")
                assert d.shown == e.shown
                for loop in (there, here):
                    loop.feedback(f"d{t}", id=f"e{t}", better=["i4"])
            assert here.rank(SAID) == there.rank(SAID)
            assert there.weights() == pytest.approx(here.weights)
            assert there.decide(SAID, id="d3") == there.decide(SAID, id="d3")
            told = there.record(SAID, ["i3", "i1"], id="own")
            assert told.shown == ("i3", "i1")
            assert there.feedback("own", clicks=["i1"]).learned
        with pytest.raises(ValueError, match=r"candidates\[0\]: bm25: expected a value, got nothing"):
            there.decide([{"id": "i1", "source": "web"}])
        with pytest.raises(ValueError, match="query_features: a: range: expected two numbers"):
            client.create("other", ITEMS, query_features={"a": [1, 0]})
        for body in ({}, {"candidates": ["i1"]}):
            answer = httpx.post(f"{url}/v1/loops/shop/decisions", json=body)
            assert (answer.status_code, answer.json()["type"]) == (422, "urn:heedful:problem:bad-input")
            assert "bm25: expected a value, got nothing" in answer.json()["detail"]
        answer = httpx.post(
            f"{url}/v1/loops/shop/decisions",
            content=bytes(4 * 7),
            headers={"content-type": "application/x-float32"},
        )
        assert answer.status_code in (415, 422)
