"""The page of the health of feedback: what the loop says, of every kind; alarms with what to do next."""

from __future__ import annotations

from pathlib import Path

import pytest
from browsing import Visitor, words

from loops import small_loop

T0, SECOND = 1_700_000_000_000_000, 1_000_000


@pytest.mark.slow
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
    assert [words(each) for each in page.all("td[@data-label='Alarm']")].count("alarm") == 1
