"""Rating on the page: who one is, clicked, typed, acted on; without scripts, without a server, on a phone."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from accessible import contrast
from heedful import Loop, Settings
from processes import Process, check
from served import Opened, Served
from teaching import Teaching
from test_reach import SMALL, check_fits
from watching import Watch, until

WORDS = ("River", "Harbour", "Winter", "Lantern", "Orchard", "Signal", "Meadow", "Granite", "Ember", "Thicket")


def loop_of_films(path: Path, n: int = 30, **settings: Any) -> Path:
    """A loop of ratings over films that nobody has rated yet, three at a time."""
    items = [{"id": f"f{j}", "title": f"The {WORDS[j % 10]} {1 + j // 10}", "year": 1970 + j} for j in range(n)]
    chosen: dict[str, Any] = {"ratings": (1, 5), "k": 3, "control": 0.0, **settings}
    Loop.create(path, items=items, settings=Settings(**chosen)).close()
    return path


@pytest.fixture(scope="session")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A loop of ratings that nobody has taught yet."""
    return loop_of_films(tmp_path_factory.mktemp("rated") / "films.heedful")


@pytest.fixture
def page(opened: Opened, loop: Served) -> Page:
    """The first slate of this test's loop, for ann."""
    return opened(f"{loop.url}?person=ann")


def button(teaching: Teaching, name: str, rating: int) -> Locator:
    """The button that gives a card a rating."""
    return teaching.card(name).locator(f'button.grade[name="rating"][value="{rating}"]')


def action(teaching: Teaching, name: str, what: str) -> Locator:
    """The button that says what was done with a card."""
    return teaching.card(name).get_by_role("button", name=what, exact=True)


def given(path: Path) -> list[tuple[str | None, dict[str, float | str]]]:
    """(who, what was said of each item) in the log of a loop that counts, in order."""
    with Loop.open(path) as loop:
        lessons = [each for each in loop.lessons(100)[::-1] if not each.undone]
        return [(each.person, dict(zip(each.chosen, each.values or [each.text or ""]))) for each in lessons]


def other_slate(teaching: Teaching, before: list[str]) -> list[str]:
    """The slate that comes after that one."""
    hand: list[str] = until(teaching.page, lambda: (now := teaching.hand()) and not set(now) & set(before) and now)
    return hand


def test_who_one_is_and_then_slate_after_slate(opened: Opened, loop: Served) -> None:
    page = opened(loop.url)
    teaching = Teaching(page)
    assert teaching.hand() == []
    page.get_by_label("Who are you?").fill("Zoë & co")
    page.keyboard.press("Enter")
    expect(page.locator(".lead")).to_contain_text("You are Zoë & co")
    first = teaching.hand()
    assert len(first) == 3
    for n, name in enumerate((first[0], first[2])):
        button(teaching, name, 4 - n).click()
        teaching.learned(n + 1)
        expect(button(teaching, name, 4 - n)).to_have_attribute("aria-pressed", "true")
        expect(teaching.mark(name)).to_have_text(re.compile(rf"You said {4 - n} · predicted now: [1-5]\.\d ±"))
        assert teaching.hand() == first
    button(teaching, first[1], 1).click()
    second = other_slate(teaching, first)
    expect(teaching.said).to_contain_text("here are the next")
    expect(page.locator("#side")).to_contain_text("3 of 30 items rated")
    expect(page.locator("#cards > li").first.locator('.grade[tabindex="0"]')).to_be_focused()
    assert given(loop.path) == [("Zoë & co", {first[0]: 4}), ("Zoë & co", {first[2]: 3}), ("Zoë & co", {first[1]: 1})]
    page.locator("#undo").click()  # of the last, whose card has gone
    expect(page.locator("#side .lessons .undone")).to_have_count(1)
    expect(page.locator("#side")).to_contain_text("2 of 30 items rated")
    assert teaching.hand() == second
    page.locator("#deal").click()
    other_slate(teaching, second)


@pytest.fixture
def alone(tmp_path: Path) -> Iterator[Process]:
    """A server with one loop of ratings, films, to be killed."""
    (tmp_path / "loops").mkdir()
    loop_of_films(tmp_path / "loops" / "films.heedful", ratings=(-10, 10))
    with Process(tmp_path / "loops") as server:
        yield server.wait()


def test_what_is_said_while_the_server_is_away_is_kept_and_counts_once(
    alone: Process, opened: Opened, watch: Watch
) -> None:
    """Ratings that are typed, and actions; one that was pressed and pressed again is as if it had not been."""
    teaching = Teaching(opened(f"{alone.url}/loops/films?person=ann&actions=1"))
    hand = teaching.hand()
    with watch.gone():
        alone.kill()
        typed = teaching.card(hand[0]).get_by_role("spinbutton")
        typed.fill("-7.5")
        typed.press("Enter")
        expect(teaching.trouble).to_be_visible()
        expect(teaching.page.locator("#said-text")).to_contain_text("Your rating is kept")
        action(teaching, hand[1], "cart").click()
        expect(action(teaching, hand[1], "cart")).to_have_attribute("aria-pressed", "true")
        action(teaching, hand[1], "cart").click()
        action(teaching, hand[1], "view").click()
        alone.again()
        expect(teaching.mark(hand[1])).to_contain_text("You said view")
        expect(teaching.trouble).to_be_hidden()
    expect(teaching.mark(hand[0])).to_contain_text("You said −7.5")
    expect(action(teaching, hand[1], "cart")).to_have_attribute("aria-pressed", "false")
    assert given(alone.folder / "films.heedful") == [("ann", {hand[0]: -7.5}), ("ann", {hand[1]: "view"})]
    action(teaching, hand[1], "view").click()
    expect(teaching.mark(hand[1])).to_contain_text("Predicted: ")
    for name in hand[1:]:
        action(teaching, name, "buy").click()
    other_slate(teaching, hand)
    expect(action(teaching, teaching.hand()[0], "buy")).to_be_visible()
    check(alone.folder / "films.heedful", [])


@pytest.mark.parametrize("scale", [(1, 5), (0, 10), (-10, 10)])
def test_readable_by_all_and_fits_a_small_phone(opened: Opened, server: Process, scale: tuple[int, int]) -> None:
    """In light and dark, before and after ratings, on both pages; nothing sideways, nothing too small to hit."""
    low, high = scale
    name = f"small-{high - low}"
    path = loop_of_films(
        server.folder / f"{name}.heedful",
        ratings=scale,
        control=0.2,
        actions={"buy": (high, 1), "not this": (low, 0.5)},
    )
    with Loop.open(path) as loop:
        for n in range(40):
            decision = loop.decide(id=f"d{n}", person=f"p{n % 8}")
            loop.feedback(
                decision.id,
                rating={film: low + (7 * n + 3 * j) % (high - low + 1) for j, film in enumerate(decision.shown)},
            )
    page = opened(f"{server.url}/loops/{name}", **SMALL)
    teaching = Teaching(page)

    check_fits(page)
    page.goto(f"{server.url}/loops/{name}?person=p1")
    card = teaching.hand()[1]
    newest = teaching.newest()
    if scale == (-10, 10):
        teaching.card(card).get_by_role("spinbutton").fill("4")
        teaching.card(card).get_by_role("button", name="Send").tap()
    else:
        button(teaching, card, 4).tap()
    teaching.newer_than(newest)
    expect(teaching.mark(card)).to_contain_text("You said 4")
    check_fits(page)
    page.goto(f"{server.url}/loops/{name}/learned?person=p1")
    expect(page.locator("#report canvas")).to_have_count(2)
    check_fits(page)
    page.get_by_role("link", name="See why").tap()
    expect(page.locator("#explanation")).to_contain_text("ratings by person")
    check_fits(page)
    page.go_back()
    page.set_viewport_size({"width": 1280, "height": 800})
    check_fits(page)


def test_in_colours_that_somebody_forces(opened: Opened, loop: Served) -> None:
    page = opened(f"{loop.url}?person=ann&actions=1", forced_colors="active")
    teaching = Teaching(page)
    card = teaching.hand()[0]
    action(teaching, card, "view").click()
    teaching.learned(1)
    teaching.still()
    for seen in (".mark", '.act[aria-pressed="true"]', "[data-predicted]"):
        assert contrast(teaching.card(card).locator(seen).first) > 4.5, seen
