"""A kind of feedback that no page knows, taught on its page: `tests/fifth.py`, by the fields that its form declares."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

from accessible import tab_to
from cars import loop_of_cars
from heedful import Loop
from kinds import FIFTH
from processes import Process
from served import Opened, Served
from teaching import Teaching
from test_reach import SMALL, check_fits
from watching import Watch


@pytest.fixture(scope="session")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A loop of best and worst over 60 cars that nobody has taught yet."""
    return loop_of_cars(tmp_path_factory.mktemp("extremes") / "cars.heedful", learner=FIFTH, control=0.0)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Process]:
    folder = tmp_path_factory.mktemp("served") / "loops"
    folder.mkdir()
    with Process(folder, "--own", FIFTH) as process:
        yield process.wait()


def choice(teaching: Teaching, name: str, field: str) -> Locator:
    """The radio button that calls a card the best, or the worst."""
    return teaching.card(name).get_by_role("radio", name=field)


def answers(path: Path) -> list[tuple[str, ...]]:
    """The best of each answer in the log that counts, before what it was better than."""
    with Loop.open(path, learner=FIFTH) as loop:
        return [(*each.chosen, *each.over) for each in loop.lessons(100)[::-1] if not each.undone]


def test_the_best_and_the_worst_are_clicked_and_taken_back(page: Page, loop: Served) -> None:
    teaching = Teaching(page)
    hand = teaching.hand()
    assert len(hand) == 4  # what its interaction shows, and no more
    choice(teaching, hand[2], "Best").check()
    choice(teaching, hand[0], "Worst").check()
    teaching.button("Send").click()
    teaching.learned(1)
    assert answers(loop.path) == [(hand[2], hand[0], hand[1], hand[3])]
    expect(teaching.lessons.first).to_contain_text(f"Best: {hand[2]}, not ")
    assert teaching.hand() != hand  # others are asked about
    page.keyboard.press("Control+z")
    expect(teaching.said).to_contain_text("Taken back")
    assert answers(loop.path) == []


def test_what_is_not_said_is_asked_for_and_teaches_nothing(page: Page, loop: Served, watch: Watch) -> None:
    teaching = Teaching(page)
    hand = teaching.hand()
    choice(teaching, hand[1], "Best").check()
    teaching.button("Send").click()
    assert choice(teaching, hand[0], "Worst").evaluate("it => it.validity.valueMissing")
    choice(teaching, hand[1], "Worst").check()  # the same one twice
    watch.expect("status of 422")
    teaching.button("Send").click()
    expect(page.locator("body")).to_contain_text("expected")
    assert answers(loop.path) == []


def test_with_the_keyboard_alone(page: Page, loop: Served) -> None:
    teaching = Teaching(page)
    hand = teaching.hand()
    tab_to(page, 'input[type="radio"]')
    page.keyboard.press("Space")
    best = page.evaluate("document.querySelector('input[type=radio]:checked').value")
    assert best in hand
    worst = next(name for name in hand if name != best)
    choice(teaching, worst, "Worst").focus()
    page.keyboard.press("Space")
    page.keyboard.press("Enter")
    teaching.learned(1)
    assert answers(loop.path)[0][0] == best


def test_readable_by_all_and_fits_a_small_phone(opened: Opened, loop: Served) -> None:
    page = opened(loop.url, **SMALL)
    for url in (loop.url, f"{loop.url}/learned"):
        page.goto(url)
        check_fits(page)
