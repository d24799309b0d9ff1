"""The client and a loop of choices: every answer that has more to say there, from a real server."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from loops import choice_loop, small_loop

pytest.importorskip("httpx")
running = pytest.importorskip("heedful.server.main")

NAMES = [f"i{j}" for j in range(8)]


@pytest.fixture
def served(tmp_path: Path) -> Iterator[str]:
    choice_loop(tmp_path / "covers.heedful", control=0.0).close()
    small_loop(tmp_path / "cars.heedful").close()
    with running.served(tmp_path) as url:
        yield url


@pytest.fixture
def client(served: str) -> Iterator[Any]:
    from heedful.client import Client

    with Client(served, timeout=10.0) as client:
        yield client


def test_choices_from_question_to_standing(client: Any) -> None:
    loop = client.loop("covers")
    assert (loop.about().choices, client.loop("cars").about().choices) == ("best", None)
    for t in range(30):
        d = loop.decide(person="p", id=f"d{t}")
        assert len(d.shown) == len(d.predicted) == 2
        assert loop.feedback(d, choice="first" if d.shown[0] > d.shown[1] else "second").learned
    found = loop.standing("p")
    assert (found.favourite, found.ranking[0].item, found.answers, found.person) == ("i7", "i7", 30, "p")
    assert found.left.told.endswith("left") or "or more" in found.left.told
    assert loop.standing().people == 1
    told = loop.explain("d29")
    assert told.prediction["chosen"] == pytest.approx(d.predicted[0], rel=1e-5)
    assert client.loop("cars").explain(client.loop("cars").decide(["i0", "i1"]).id).prediction is None
    report = loop.report().prediction
    assert (report.answers, report.baseline, report.series[-1].answers) == (30, 0.5, 10)
    assert client.loop("cars").report().prediction is None
    assert loop.evaluate("preference-gp").learners[1].values[0].comparisons == 30
    with pytest.raises(ValueError, match="standing: expected a loop of choices"):
        client.loop("cars").standing()
    assert "send choice" in loop.feedback(d, thumb="up").reason
    assert client.loop("cars").decide(["i0", "i1"]).predicted is None


def test_a_loop_is_made_with_features_or_none(client: Any) -> None:
    items = [{"id": f"i{j}", "price": float(j)} for j in range(4)]
    settings = {"choices": "ranking"}
    assert client.create("bare", items, settings=settings).about().features == 0
    assert client.create("seen", items, settings=settings, features=True).about().features == 1


def test_a_fallback_shows_two_once_it_is_known_and_may_be_answered(tmp_path: Path) -> None:
    """Told with the first feedback once the server is there, as what somebody else asked."""
    from heedful.client import Client

    choice_loop(tmp_path / "covers.heedful").close()
    with running.served(tmp_path) as url:
        client = Client(url, timeout=10.0)
        assert len(client.loop("covers").decide(NAMES, person="p").shown) == 2
    with client:
        client.timeout = 0.2
        d = client.loop("covers").decide(NAMES, person="p")
        assert (d.shown, d.predicted, d.fallback) == (("i0", "i1"), None, True)
        assert client.loop("covers").decide(NAMES, person="p", show=3).shown == ("i0", "i1", "i2")
    with running.served(tmp_path) as url, Client(url, timeout=10.0) as client:
        assert client.loop("covers").feedback(d, choice="second").learned
        assert client.loop("covers").explain(d.id).arm == "imported"


def test_the_same_asynchronously(served: str) -> None:
    from heedful.client import AsyncClient

    async def life() -> Any:
        async with AsyncClient(served, timeout=10.0) as client:
            loop = client.loop("covers")
            d = await loop.decide(NAMES, person="p", show=3)
            answer = await loop.feedback(d, better=list(d.shown))
            return d, answer, await loop.standing("p")

    d, answer, found = asyncio.run(life())
    assert (len(d.predicted), answer.learned, found.ranking[0].item) == (3, True, d.shown[0])
