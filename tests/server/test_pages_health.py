"""The page of the health of feedback: what the loop says, of every kind; alarms with what to do next."""

from __future__ import annotations

from pathlib import Path

import pytest
from browsing import Visitor, words

from kinds import Kind, each_kind, teach
from loops import small_loop

T0, SECOND = 1_700_000_000_000_000, 1_000_000


@pytest.mark.slow
@each_kind
def test_the_page_is_the_loops_answer(visitor: Visitor, kind: Kind, tmp_path: Path) -> None:
    with kind.make(tmp_path / "l.heedful") as loop:
        teach(kind, loop, range(30))
        found = loop.health()
    page = visitor.get("/loops/l/health")
    assert page.status == 200
    assert "script" not in page.html
    assert "style=" not in page.html
    assert "No alarm" in page.at("alarms")
    assert "30 pieces of feedback on 30 decisions" in page.at("alarms")
    for each in found.signals:
        assert each.name in page.at("compared")
    assert len(page.all("section[@id='windows']//tbody/tr")) == len(found.windows) == 3
    assert len(page.all("section[@id='calibration']//tbody/tr")) == len(found.calibration)
    assert found.floods in page.at("windows")
    assert len(page.all("section[@id='windows']//tbody//td[@class='number']")) >= 6 * len(found.windows)
    place = "results" if kind.name == "comparison" else "learned"
    assert "/loops/l/health" in [link.get("href") for link in visitor.get(f"/loops/l/{place}").all("a")]


def test_an_alarm_says_what_to_do(visitor: Visitor, tmp_path: Path) -> None:
    with small_loop(tmp_path / "cars.heedful", "perceptron") as loop:
        for i in range(150):
            person, when = f"<b>{i % 7}", T0 + i * SECOND
            loop.record(["i0", "i1", "i2"], ["i0", "i1", "i2"], id=f"d{i}", person=person, time=when)
            loop.feedback(f"d{i}", id=f"e{i}", clicks=[] if i >= 90 else ["i1"], time=when + 1)
        [alarm] = loop.health().alarms
    page = visitor.get("/loops/cars/health")
    for told in (alarm.about, alarm.said, alarm.remedy):
        assert told in page.at("alarms")
    assert [words(each) for each in page.all("h3")] == ["Empty"]
    assert "<b>" not in page.html
    assert [words(each) for each in page.all("td[@data-label='alarm']")].count("alarm") == 1


def test_before_anything_happened_it_says_so(visitor: Visitor, tmp_path: Path) -> None:
    small_loop(tmp_path / "cars.heedful").close()
    page = visitor.get("/loops/cars/health")
    assert page.status == 200
    assert "Nothing can be said: there is no feedback" in page.at("compared")
