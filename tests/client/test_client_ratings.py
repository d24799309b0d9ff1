"""The client and a loop of ratings: every answer that has more to say there, from a real server."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from loops import rating_loop, small_loop

pytest.importorskip("httpx")
running = pytest.importorskip("heedful.server.main")

NAMES = [f"i{j}" for j in range(12)]


@pytest.fixture
def served(tmp_path: Path) -> Iterator[str]:
    rating_loop(tmp_path / "films.heedful", control=0.0).close()
    small_loop(tmp_path / "cars.heedful").close()
    with running.served(tmp_path) as url:
        yield url


@pytest.fixture
def films(served: str) -> Iterator[Any]:
    from heedful.client import Client

    with Client(served, timeout=10.0) as client:
        yield client


def test_ratings_come_back_with_decisions(films: Any) -> None:
    loop = films.loop("films")
    assert (loop.about().ratings, films.loop("cars").about().ratings) == ((1.0, 5.0), None)
    d = loop.decide(NAMES, person="p", id="d", show=3)
    assert (len(d.shown), d.predicted) == (3, (3.0, 3.0, 3.0))
    assert loop.feedback(d, rating=dict.fromkeys(d.shown, 4.5)).learned
    assert set(loop.decide(NAMES, person="p", show=12).shown) == set(NAMES) - set(d.shown)
    again = loop.decide(d.shown, person="p", repeats=True)
    assert again.predicted is not None
    assert loop.feedback(again, actions={again.shown[0]: ["view", "hide"]}).learned
    assert films.loop("cars").decide(NAMES).predicted is None
    with pytest.raises(ValueError, match="expected a number from 1 to 5, got 9"):
        loop.feedback(d, rating={d.shown[0]: 9})
    assert "send grades as rating" in loop.feedback(d, grade={d.shown[0]: 4}).reason
    with pytest.raises(ValueError, match="repeats: expected none in a loop of rankings, got True"):
        films.loop("cars").decide(NAMES, repeats=True)


def test_a_fallback_shows_as_many_as_the_loop_showed_at_most(films: Any) -> None:
    """One item that is left for a person is not a loop that shows one; what is named twice is shown once."""
    loop = films.loop("films")
    assert len(loop.decide(["i0", "i1", "i1"], person="q").shown) == 2
    assert "films" not in films._few
    assert len(loop.decide(NAMES, person="p", id="d").shown) == 3
    loop.feedback("d", rating=dict.fromkeys(loop.decide(NAMES, person="p", id="d").shown[:2], 1))
    assert len(loop.decide(loop.decide(NAMES, person="p", id="d").shown, person="p").shown) == 1
    assert films._few["films"] == 3


def test_what_is_known_of_a_loop_of_ratings(films: Any) -> None:
    loop = films.loop("films")
    for t in range(12):
        d = loop.decide(NAMES, person=f"p{t % 3}", id=f"d{t}", show=3)
        loop.feedback(d, rating={name: 1 + int(name[1:]) % 5 for name in d.shown})
    told = loop.explain("d11")
    assert told.prediction["expected"] == told.margin == pytest.approx(d.predicted[0], rel=1e-5)
    assert told.prediction["by_person"] == 9.0
    assert films.loop("cars").explain(films.loop("cars").decide(NAMES).id).prediction is None
    found = loop.report().prediction
    assert found is not None
    assert (found.answers, found.series[-1].answers) == (36, 12)
    assert films.loop("cars").report().prediction is None
    assert loop.evaluate("item-mean").learners[-1].values[0].comparisons == 36
    assert loop.weights() == {}


def test_a_fallback_shows_the_callers_order_and_may_be_rated(tmp_path: Path) -> None:
    """Told with the first feedback once the server is there, as what somebody else decided."""
    from heedful.client import Client

    with Client("http://127.0.0.1:9", timeout=0.05) as away:
        d = away.loop("films").decide(NAMES, person="p", show=3)
        assert (d.shown, d.predicted, d.fallback) == (("i0", "i1", "i2"), None, True)
    rating_loop(tmp_path / "films.heedful").close()
    with running.served(tmp_path) as url, Client(url, timeout=10.0) as client:
        assert client.loop("films").feedback(d, rating={"i0": 5, "i2": 1}).learned
        assert client.loop("films").explain(d.id).arm == "imported"


def test_the_same_asynchronously(served: str) -> None:
    from heedful.client import AsyncClient

    async def life() -> Any:
        async with AsyncClient(served, timeout=10.0) as client:
            loop = client.loop("films")
            d = await loop.decide(NAMES, person="p", show=2)
            answer = await loop.feedback(d, rating={d.shown[0]: 5})
            return d, answer, await loop.decide(NAMES, person="p", repeats=True), (await loop.report()).prediction

    d, answer, after, found = asyncio.run(life())
    assert (len(d.predicted), answer.learned, len(after.shown), found.answers) == (2, True, 3, 1)
