"""The server goes, and comes again, while somebody teaches: nothing is lost, nothing counts twice."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import expect

from budget import FACTOR
from cars import copied, told
from heedful import Loop
from processes import Process, check
from served import Opened
from teaching import Teaching
from watching import Watch, open_again


@pytest.fixture
def alone(tmp_path: Path, template: Path) -> Iterator[Process]:
    """A server with one loop, cars, to be killed."""
    (tmp_path / "loops").mkdir()
    copied(template, tmp_path / "loops" / "cars.heedful")
    with Process(tmp_path / "loops") as server:
        yield server.wait()


def test_killed_and_started_again_while_somebody_goes_on(alone: Process, opened: Opened, watch: Watch) -> None:
    path = alone.folder / "cars.heedful"
    teaching = Teaching(opened(f"{alone.url}/loops/cars"))
    watching = Teaching(opened(f"{alone.url}/loops/cars"))
    hand = teaching.hand()
    teaching.pick(hand[5]).click()
    teaching.learned(1)
    with watch.gone():
        alone.kill()
        teaching.pick(hand[6]).click()
        expect(teaching.trouble).to_be_visible()
        teaching.pick(hand[7]).click()
        alone.again()
        teaching.learned(3)
        expect(teaching.trouble).to_be_hidden()
        watching.learned(3)
    teaching.pick(hand[2]).click()
    teaching.learned(4)
    watching.learned(4)
    with httpx.Client(base_url=alone.url) as api:
        decision = api.post("/v1/loops/cars/decisions", json={"candidates": hand, "id": "other"}).json()
        api.post("/v1/loops/cars/feedback", json={"decision": "other", "clicks": [decision["shown"][3]]})
    teaching.learned(5)
    events = told(path, "feedback")
    assert len(events) == len(set(events)) == 5
    teaching.page.keyboard.press("Control+z")
    expect(watching.page.locator("#side .lessons .undone")).to_have_count(1)
    assert len(told(path, "undo")) == 1
    check(path, [])


def test_an_undo_that_meets_no_server_waits_for_it(alone: Process, opened: Opened, watch: Watch) -> None:
    teaching = Teaching(opened(f"{alone.url}/loops/cars"))
    hand = teaching.hand()
    teaching.pick(hand[5]).click()
    teaching.learned(1)
    with watch.gone():
        alone.kill()
        teaching.page.keyboard.press("Control+z")
        expect(teaching.trouble).to_be_visible()
        alone.again()
        expect(teaching.trouble).to_be_hidden()
    assert [kind for kind, _ in told(alone.folder / "cars.heedful", "feedback", "undo")] == ["feedback", "undo"]
    assert teaching.hand() == hand


def test_what_was_said_while_nobody_listened_outlives_the_page(alone: Process, opened: Opened, watch: Watch) -> None:
    """Corrections that were never answered are kept over a reload, and told then; those that were count once."""
    teaching = Teaching(opened(f"{alone.url}/loops/cars"))
    hand = teaching.hand()
    with watch.gone():
        alone.kill()
        teaching.pick(hand[4]).click()
        expect(teaching.trouble).to_be_visible()
        teaching.pick(hand[6]).click()
        alone.again()
        open_again(teaching.page, f"{alone.url}/loops/cars")
        teaching.learned(2)
    teaching.page.reload()
    teaching.learned(2)
    assert len(told(alone.folder / "cars.heedful", "feedback")) == 2


@pytest.mark.long
def test_killed_again_and_again_in_the_middle_of_lessons(alone: Process, opened: Opened, watch: Watch) -> None:
    """Wherever the kill falls, each click is in the log once."""
    teaching = Teaching(opened(f"{alone.url}/loops/cars"))
    rounds = 2 * FACTOR
    for n in range(rounds):
        teaching.pick(teaching.hand()[n % 8]).dispatch_event("click")
        teaching.page.wait_for_timeout(n % 7)
        with watch.gone():
            alone.again()
            expect(teaching.trouble).to_be_hidden()
            expect(teaching.lessons).to_have_count(min(n + 1, 6))
    events = told(alone.folder / "cars.heedful", "feedback")
    assert len(events) == len(set(events)) == rounds
    with Loop.open(alone.folder / "cars.heedful") as loop:
        assert loop.verify() == []
