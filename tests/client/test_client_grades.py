"""The client and a loop of grades: every answer that has more to say there, from a real server."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from loops import rows, small_loop

pytest.importorskip("httpx")
running = pytest.importorskip("heedful.server.main")

NAMES = [row["id"] for row in rows(12, 4)]


@pytest.fixture
def films(tmp_path: Path) -> Iterator[Any]:
    from heedful.client import Client

    small_loop(tmp_path / "films.heedful", "averaged-prank:n_ranks=5", control=0.0, shrink=2.0).close()
    small_loop(tmp_path / "cars.heedful").close()
    with running.served(tmp_path) as url, Client(url, timeout=10.0) as client:
        yield client


def test_grades_come_back_with_decisions(films: Any) -> None:
    loop = films.loop("films")
    assert (loop.about().grades, films.loop("cars").about().grades) == (5, None)
    d = loop.decide(NAMES, person="p", id="d", show=3)
    assert (d.shown, d.predicted) == (("i0", "i1", "i2"), (5, 5, 5))
    assert loop.feedback(d, grade={"i0": 1, "i1": 3}).learned
    after = loop.decide(["i0"], person="p", id="d2")
    assert after.predicted == (1,)
    assert loop.decide(["i0"], person="p", id="d2") == after
    assert films.loop("cars").decide(NAMES).predicted is None
    with pytest.raises(ValueError, match="expected a whole number from 1 to 5, got 9"):
        loop.feedback(d, grade={"i0": 9})
    assert "send them as grade" in loop.feedback(d, rating={"i0": 4}).reason


def test_what_is_known_of_a_loop_of_grades(films: Any) -> None:
    loop = films.loop("films")
    for t in range(12):
        d = loop.decide(NAMES, person=f"p{t % 3}", id=f"d{t}", show=3)
        loop.feedback(d, grade={name: 1 + int(name[1:]) % 5 for name in d.shown})
    told = loop.explain("d11")
    assert told.prediction["grade"] == d.predicted[0]
    assert len(told.prediction["between"]) == 2
    assert sum(part.counts for part in told.features) == pytest.approx(told.margin)
    assert films.loop("cars").explain(films.loop("cars").decide(NAMES).id).prediction is None
    found = loop.report().prediction
    assert found is not None
    assert (found.answers, found.series[-1].answers) == (36, 12)
    assert films.loop("cars").report().prediction is None
    assert loop.evaluate("prank").learners[-1].values[0].comparisons == 36


def test_a_fallback_predicts_nothing(tmp_path: Path) -> None:
    from heedful.client import Client

    with Client("http://127.0.0.1:9", timeout=0.05) as away:
        assert away.loop("films").decide(NAMES).predicted is None
