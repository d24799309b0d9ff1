"""Whoever it is can teach a loop: with the keyboard alone, a screen reader, a small phone, no animations, no script."""

from __future__ import annotations

import re
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from accessible import contrast, findings, stops, tab_to
from cars import loop_of_cars, told
from heedful import Loop, Settings, infer
from served import Opened, Served
from teaching import Teaching
from watching import Watch, come, still, until

SMALL = {"viewport": {"width": 320, "height": 568}, "has_touch": True, "is_mobile": True}
SIDEWAYS = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
SMALL_TARGETS = """() => Array.from(document.querySelectorAll(
    "button, summary, select, input:not([type=hidden]), nav a"))
    .map(it => [it, (it.closest("label") || it).getBoundingClientRect()])
    .filter(([it, box]) => box.width > 0 && box.height > 0 && (box.width < 43.5 || box.height < 43.5))
    .map(([it, box]) => `${it.outerHTML.slice(0, 80)}: ${box.width} x ${box.height}`)"""


def check_fits(page: Page) -> None:
    """A page is readable by all, has nothing to scroll sideways to, and nothing too small to hit."""
    assert page.evaluate(SIDEWAYS) == 0
    assert page.evaluate(SMALL_TARGETS) == []
    assert findings(page) == []


@pytest.fixture
def taught(loop: Served) -> Served:
    """A loop with a few lessons, one of them undone, one late and one empty."""
    with Loop.open(loop.path) as opened:
        for n in range(6):
            decision = opened.decide(show=5, id=f"d{n}", person=f"p{n % 2}")
            opened.feedback(decision.id, id=f"e{n}", clicks=[decision.shown[n % 5]])
        opened.undo("e4")
    return loop


def bare(server: Any) -> str:
    """The name of a loop without items, whose texts come with each request."""
    path = server.folder / "bare.heedful"
    if not path.exists():
        rows = [{"id": "a", "text": "some words"}, {"id": "b", "text": "other words"}]
        Loop.create(path, encoding=infer(rows, identifier="id"), settings=Settings()).close()
    return "bare"


PLACES = {
    "loops": "/",
    "teach": "/loops/NAME",
    "learned": "/loops/NAME/learned",
    "proof": "/loops/NAME/proof",
    "health": "/loops/NAME/health",
    "keys": "/keys",
    "sign in": "/sign-in",
    "no items": "/loops/bare",
    "nothing learned": "/loops/bare/learned",
    "not found": "/loops/nobody",
}


@pytest.mark.parametrize("place", PLACES)
def test_every_page_is_readable_by_all_and_fits_a_small_phone(
    opened: Opened, taught: Served, place: str, watch: Watch
) -> None:
    """No serious finding of axe-core, in light and dark; nothing to scroll sideways to, nothing too small to hit."""
    bare(taught.server)
    if place == "not found":
        watch.expect("404")
    page = opened(taught.server.url + PLACES[place].replace("NAME", taught.name), **SMALL)
    page.wait_for_load_state("networkidle") if place == "loops" else None
    expect(page.get_by_role("heading", level=1)).to_have_count(1)
    expect(page.get_by_role("main")).to_have_count(1)
    check_fits(page)
    page.set_viewport_size({"width": 1280, "height": 800})
    assert page.evaluate(SIDEWAYS) == 0


def test_the_states_of_the_page_that_teaches_are_readable_too(opened: Opened, server: Any) -> None:
    """After a lesson, with the list of keys open, and where a list was left alone; on a phone, too."""
    loop_of_cars(server.folder / "states.heedful", 20, control=1.0)
    page = opened(f"{server.url}/loops/states")
    teaching = Teaching(page)
    assert findings(page) == []
    teaching.pick(teaching.hand()[-1]).click()
    teaching.learned(1)
    assert findings(page) == []
    page.set_viewport_size({"width": 320, "height": 568})
    check_fits(page)
    page.set_viewport_size({"width": 1280, "height": 800})
    page.keyboard.press("n")
    expect(page.get_by_text("This list ignores what was learned")).to_be_visible()
    assert findings(page) == []
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_be_visible()
    assert findings(page) == []


def test_in_colours_that_somebody_forces(opened: Opened, loop: Served) -> None:
    page = opened(loop.url, forced_colors="active")
    teaching = Teaching(page)
    for lesson in (1, 2, 3):  # after the first, all that it may be is alike
        teaching.pick(teaching.hand()[-1]).click()
        teaching.learned(lesson)
    teaching.still()
    for seen in ("#said-text", "#cards .title", "#cards .facts dd", "#side .bars .bar", "#side .lessons li"):
        assert contrast(page.locator(seen).first) > 4.5, seen


@pytest.mark.parametrize("place", ["loops", "teach", "learned", "health", "keys"])
def test_the_keyboard_reaches_all_of_a_page_sees_where_it_is_and_leaves_again(
    opened: Opened, taught: Served, place: str
) -> None:
    page = opened(taught.server.url + PLACES[place].replace("NAME", taught.name))
    if place == "loops":  # rows load as they come into view
        until(page, lambda: page.mouse.wheel(0, 200) or page.get_by_text("Looking").count() == 0)
    found = stops(page)
    assert found[0].startswith("Skip")
    # (Cards move with Alt and the arrows; their buttons Up and Down are for fingers and screen readers.)
    controls = page.locator("a[href], button:not([tabindex]), input:not([type=hidden]), summary, select")
    assert len(found) >= controls.locator("visible=true").count()


def test_with_the_keyboard_alone(page: Page, loop: Served) -> None:
    """Teach, see what it learned, take a lesson back, look at the loops, and come back."""
    teaching = Teaching(page)
    keys = page.keyboard
    tab_to(page, "#cards > [data-key] button")
    hand = teaching.hand()
    assert teaching.focus() == hand[0]
    keys.press("Enter")
    teaching.learned(1)
    assert teaching.focus() == hand[0]
    second = teaching.hand()[1]
    tab_to(page, f'#cards > [data-key="{second}"] button')
    keys.press("Space")
    teaching.learned(2)
    assert teaching.focus() == second
    last = teaching.hand()[-1]
    tab_to(page, f'#cards > [data-key="{last}"] button')
    keys.press("Alt+ArrowUp")
    keys.press("Alt+ArrowUp")
    assert teaching.hand()[-3] == last
    assert teaching.focus() == last
    keys.press("Enter")
    teaching.learned(3)
    assert teaching.focus() == last
    assert teaching.hand()[-3] == last
    expect(teaching.said).to_contain_text("Moved towards")
    keys.press("Control+z")
    expect(teaching.said).to_contain_text("Taken back")
    keys.press("?")
    expect(page.get_by_role("dialog")).to_be_visible()
    keys.press("Escape")
    expect(page.get_by_role("dialog")).to_be_hidden()
    assert teaching.focus() == last
    tab_to(page, f'a[href="/loops/{loop.name}/learned"]')
    keys.press("Enter")
    page.wait_for_url("**/learned")
    tab_to(page, "#lessons [data-event] button")
    keys.press("Enter")
    expect(page.locator("#lessons [data-event] button")).to_have_count(1)
    tab_to(page, 'nav a[href="/"]')
    keys.press("Enter")
    page.wait_for_url(f"{loop.server.url}/")
    tab_to(page, f'tr[data-loop="{loop.name}"] a')
    keys.press("Enter")
    page.wait_for_url(loop.url)
    assert [kind for kind, _ in told(loop.path, "feedback", "undo")] == ["feedback"] * 3 + ["undo"] * 2


def test_the_keys_do_nothing_where_somebody_writes(opened: Opened, taught: Served) -> None:
    """Ctrl+Z in a field takes back what was typed there, not a lesson."""
    page = opened(f"{taught.url}/learned")
    field = page.get_by_role("textbox").first
    field.press_sequentially("p?n")
    field.press("Control+z")
    page.wait_for_timeout(200)
    assert [kind for kind, _ in told(taught.path, "undo")] == ["undo"]
    assert page.url == f"{taught.url}/learned"


def test_all_that_is_on_a_card_is_seen_on_a_phone(opened: Opened, loop: Served) -> None:
    """And what it thinks, without scrolling past all cards."""
    page = opened(loop.url, **SMALL)
    teaching = Teaching(page)
    card = teaching.card(teaching.hand()[0])
    for fact in ("horsepower", "weight", "miles per gallon", "seconds to 60", "year", "origin"):
        expect(card.get_by_text(fact, exact=True)).to_be_visible()
    box = card.bounding_box()
    assert box is not None
    assert box["height"] < 142
    teaching.pick(teaching.hand()[1]).tap()
    teaching.learned(1)
    thinks = page.locator(".thinks")
    expect(thinks).to_be_in_viewport()
    for words in list(teaching.weights().values())[:2]:
        expect(thinks).to_contain_text(words.rstrip("+ "))
    for lesson in (2, 3):  # until some count more than others
        teaching.pick(teaching.hand()[-1]).tap()
        teaching.learned(lesson)
    expect(thinks).to_contain_text("It thinks")
    assert " ," not in thinks.inner_text()
    page.set_viewport_size({"width": 1280, "height": 800})
    expect(thinks).to_be_hidden()


@pytest.mark.parametrize("motion", ["no-preference", "reduce"])
def test_nothing_moves_for_who_wants_nothing_to_move(opened: Opened, loop: Served, motion: str) -> None:
    page = opened(loop.url, reduced_motion=motion)
    page.evaluate(
        """() => {
            window.moved = 0;
            const animate = Element.prototype.animate;
            Element.prototype.animate = function (...how) { window.moved++; return animate.apply(this, how); };
            const count = event => { if (event.propertyName === "transform") window.moved++; };
            addEventListener("transitionrun", count, true);
        }"""
    )
    teaching = Teaching(page)
    hand = teaching.hand()
    teaching.pick(hand[-1]).click()
    teaching.learned(1)
    until(page, lambda: teaching.hand() != hand)
    if motion == "no-preference":
        come(page, "() => window.moved > 0")
    still(page)
    assert (page.evaluate("window.moved") > 0) == (motion == "no-preference")


def test_without_a_script(opened: Opened, loop: Served) -> None:
    """The cards are a form: pick, take back, deal others, see what was learned."""
    page = opened(loop.url, java_script_enabled=False)
    cards = page.locator("#cards > [data-key]")
    picked = cards.last.get_attribute("data-key")
    assert picked is not None
    cards.last.get_by_role("button").first.click()
    lessons = page.locator("#side .lessons [data-key]")
    expect(lessons).to_have_count(1)
    expect(lessons).to_contain_text(picked)
    expect(cards).to_have_count(8)
    page.reload()
    expect(lessons).to_have_count(1)
    page.goto(f"{loop.url}/learned")
    expect(page.locator("#weights")).to_contain_text(re.compile("horsepower|weight|year"))
    page.goto(loop.url)
    lessons.first.get_by_role("button", name=re.compile("^Undo")).click()
    assert [kind for kind, _ in told(loop.path, "feedback", "undo")] == ["feedback", "undo"]
    page.goto(f"{loop.server.url}/")
    page.get_by_role("link", name=loop.name).click()
    expect(cards).to_have_count(8)


COVERED = """selector => {
    const it = document.querySelector(selector).getBoundingClientRect();
    const others = [...document.querySelectorAll("#cards .item, .teach-head, .thinks, #side > section")];
    return others.filter(other => {
        const box = other.getBoundingClientRect();
        const beside = box.left >= it.right || box.right <= it.left;
        return box.height && !beside && box.top < it.bottom - 1 && box.bottom > it.top + 1;
    }).map(other => other.className || other.tagName);
}"""


@pytest.mark.parametrize("size", [(390, 844), (320, 568), (800, 900)])
def test_what_is_told_on_a_phone_covers_nothing_and_is_seen(
    opened: Opened, loop: Served, size: tuple[int, int]
) -> None:
    """Wherever somebody has scrolled to when they pick."""
    page = opened(loop.url, viewport={"width": size[0], "height": size[1]}, has_touch=True, is_mobile=True)
    teaching = Teaching(page)
    for lesson, nth in enumerate((1, 6, 7), 1):
        picked = teaching.hand()[nth]
        teaching.pick(picked).tap()
        teaching.learned(lesson)
        teaching.still()
        expect(page.locator("#said")).to_be_in_viewport(ratio=1)
        expect(teaching.card(picked)).to_be_in_viewport()
        for down in (0, 300, 900):
            page.evaluate("down => scrollBy(0, down)", down)
            assert page.evaluate(COVERED, "#said") == []
    page.get_by_role("button", name="Undo", exact=True).first.tap()
    expect(page.locator("#said")).to_contain_text("Taken back")


def test_whether_it_helps_stands_first_on_a_phone(opened: Opened, taught: Served) -> None:
    """Without a way down to it; beside what it likes where there is room."""
    page = opened(f"{taught.url}/learned", viewport={"width": 390, "height": 700})
    expect(page.locator("#report .verdict")).to_be_in_viewport()
    form, card = page.locator("form.who").bounding_box(), page.locator("#report").bounding_box()
    assert form is not None
    assert card is not None
    assert card["y"] - form["y"] - form["height"] < 30  # what is not told takes no room
    place = "id => { const box = document.getElementById(id).getBoundingClientRect(); return [box.left, box.top]; }"
    weights, report = (page.evaluate(place, each) for each in ("weights", "report"))
    assert report[1] < weights[1]
    page.set_viewport_size({"width": 1280, "height": 800})
    weights, report = (page.evaluate(place, each) for each in ("weights", "report"))
    assert weights[0] < report[0]
    assert weights[1] == report[1]


def test_a_drawing_is_told_in_words_where_nothing_can_draw_it(opened: Opened, server: Any) -> None:
    path = loop_of_cars(server.folder / "undrawn.heedful", 30, control=0.5)
    with Loop.open(path) as loop:
        for n in range(60):
            decision = loop.decide(show=5, id=f"d{n}")
            loop.feedback(decision.id, id=f"e{n}", clicks=[decision.shown[n % 5]])
    page = opened(f"{server.url}/loops/undrawn/learned", java_script_enabled=False)
    plot = page.locator("#report .plot")
    expect(plot).to_contain_text("Mean reciprocal rank over 60 lists: learned order from")
    box = plot.bounding_box()
    assert box is not None
    assert box["height"] < 150  # and no room is left for a drawing
