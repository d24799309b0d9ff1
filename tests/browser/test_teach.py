"""Teaching a loop on its page: clicked, dragged, touched, taken back; with another window open."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, Route, expect

from cars import told
from heedful import Loop
from processes import Process
from served import Opened, Served
from teaching import WEIGHT, Teaching, last_heavy, lessons, middle
from watching import Watch, until


def test_a_click_is_learned_and_reorders_the_list(page: Page, loop: Served) -> None:
    teaching = Teaching(page)
    hand = teaching.hand()
    assert len(hand) == 8
    assert set(hand) <= set(WEIGHT)
    picked = last_heavy(hand)
    teaching.pick(picked).click()
    teaching.learned(1)
    after = teaching.hand()
    assert sorted(after) == sorted(hand)
    assert after[0] == picked
    assert teaching.focus() == picked
    expect(teaching.said).to_contain_text("Moved towards: ")
    expect(teaching.said).to_contain_text(picked)
    [(marked, told)] = teaching.marks().items()
    assert marked == picked
    assert re.fullmatch(r"Your pick · (by what it learned so far: place [2-8]|what it learned so far agrees)", told)
    expect(teaching.lessons).to_contain_text(picked)
    assert teaching.weights()
    [(shown, chosen)] = lessons(loop)
    assert (shown, chosen[0]) == (hand, picked)
    page.reload()
    teaching.learned(1)


@pytest.mark.parametrize("part", [".title", ".rank", ".facts dd >> nth=2"])
def test_a_click_anywhere_on_a_card_picks_it(page: Page, loop: Served, part: str) -> None:
    teaching = Teaching(page)
    hand = teaching.hand()
    page.mouse.click(*middle(teaching.card(hand[5]).locator(part)))
    teaching.learned(1)
    [(shown, chosen)] = lessons(loop)
    assert (shown, chosen[0]) == (hand, hand[5])


@pytest.mark.parametrize("how", ["button", "keys", "lesson"])
def test_a_lesson_is_taken_back(page: Page, loop: Served, how: str) -> None:
    teaching = Teaching(page)
    hand = teaching.hand()
    before = teaching.weights()
    teaching.pick(last_heavy(hand)).click()
    teaching.learned(1)
    assert teaching.weights() != before
    if how == "button":
        page.locator("#undo").click()
    elif how == "keys":
        page.keyboard.press("Control+z")
    else:
        teaching.lessons.first.get_by_role("button", name=re.compile("^Undo")).click()
    expect(page.locator("#side .lessons .undone")).to_have_count(1)
    assert teaching.hand() == hand
    assert [kind for kind, _ in told(loop.path, "feedback", "undo")] == ["feedback", "undo"]
    assert teaching.weights() == before
    expect(teaching.said).to_contain_text(f"Taken back: “Put {last_heavy(hand)} before ")
    assert teaching.marks() == {}


def test_undo_stands_beside_the_text_of_a_lesson_alone(page: Page, loop: Served) -> None:
    """Nowhere else: there it would take back what nobody sees."""
    teaching = Teaching(page)
    undo = page.locator("#undo")
    teaching.pick(teaching.hand()[3]).click()
    teaching.learned(1)
    expect(undo).to_be_visible()
    page.keyboard.press("n")
    expect(teaching.said).to_contain_text("Other cards")
    expect(undo).to_be_hidden()
    picked = teaching.hand()[2]
    teaching.pick(picked).click()
    teaching.learned(2)
    undo.click()
    expect(teaching.said).to_contain_text(f"Taken back: “Put {picked} before ")
    expect(undo).to_be_hidden()
    assert len(told(loop.path, "undo")) == 1


def test_what_is_told_covers_no_card_and_goes_when_it_is_told_to(page: Page, loop: Served) -> None:
    teaching = Teaching(page)
    said = page.locator("#said")
    page.set_viewport_size({"width": 1280, "height": 860})
    teaching.pick(teaching.hand()[3]).click()
    teaching.learned(1)
    teaching.still()
    right = max(box["x"] + box["width"] for box in (each.bounding_box() for each in teaching.cards.all()) if box)
    told = said.bounding_box()
    assert told is not None
    assert told["x"] >= right
    assert told["y"] + told["height"] <= 860
    page.set_viewport_size({"width": 360, "height": 740})
    told, first = said.bounding_box(), teaching.cards.first.bounding_box()
    assert told is not None
    assert first is not None
    assert told["y"] + told["height"] <= first["y"]  # above the cards, where there is no room beside them
    teaching.button("Close this message").click()
    expect(said).to_be_hidden()
    page.set_viewport_size({"width": 1280, "height": 860})
    teaching.pick(teaching.hand()[3]).click()
    teaching.learned(2)
    expect(said).to_be_visible()


def test_what_is_on_its_way_is_taken_back_too_and_nothing_twice(page: Page, loop: Served) -> None:
    """Three times Ctrl+Z, faster than the server answers, is three lessons taken back."""
    teaching = Teaching(page)
    hand = teaching.hand()
    for n in range(1, 3):
        teaching.pick(last_heavy(teaching.hand())).click()
        teaching.learned(n)
    with page.expect_response("**/undo"):
        teaching.pick(last_heavy(teaching.hand())).click()
        for _ in range(3):
            page.keyboard.press("Control+z")
    expect(page.locator("#side .lessons .undone")).to_have_count(3)
    assert teaching.hand() == hand


def test_none_of_these_and_other_cards(page: Page, loop: Served) -> None:
    teaching = Teaching(page)
    hand = teaching.hand()
    teaching.button("None of these").click()
    teaching.learned(1)
    [(shown, chosen)] = lessons(loop)
    assert (shown, chosen) == (hand, [])
    now = teaching.hand()
    page.get_by_role("link", name="Other cards").click()
    expect(teaching.said).to_contain_text("Other cards")
    other = teaching.hand()
    assert len(other) == 8
    assert set(other) != set(now)
    teaching.pick(other[-1]).click()
    teaching.learned(2)
    assert lessons(loop)[1][0] == other


def test_several_lessons_one_after_the_other_all_count(page: Page, loop: Served) -> None:
    """Clicked faster than the server answers, each as often as it was clicked."""
    teaching = Teaching(page)
    hand = teaching.hand()
    for name in hand[4:7]:
        teaching.pick(name).dispatch_event("click")
    teaching.learned(3)
    page.wait_for_timeout(200)
    assert [chosen[0] for _, chosen in lessons(loop)] == hand[4:7]


def test_an_answer_that_is_lost_on_its_way_counts_once(page: Page, loop: Served, watch: Watch) -> None:
    """The server has learned it, the page does not know: it asks again, with the same event."""
    watch.expect("net::ERR_FAILED|Failed to fetch")
    teaching = Teaching(page)
    hand = teaching.hand()
    lost: list[str] = []

    def lose(route: Route) -> None:
        lost.append(route.request.post_data or "")
        if len(lost) < 3:
            route.fetch()
            route.abort("failed")
        else:
            route.fallback()

    page.route("**/teach", lose)
    teaching.pick(last_heavy(hand)).click()
    expect(teaching.trouble).to_be_visible()
    until(page, lambda: len(lost) == 3)
    expect(teaching.trouble).to_be_hidden()
    teaching.learned(1)
    assert len(set(lost)) == 1
    assert [chosen[0] for _, chosen in lessons(loop)] == [last_heavy(hand)]


def test_two_windows_see_each_others_lessons(opened: Opened, loop: Served) -> None:
    one, other = Teaching(opened(loop.url)), Teaching(opened(loop.url))
    hand = one.hand()
    theirs = other.hand()
    assert other.weights() == one.weights()
    one.pick(last_heavy(hand)).click()
    other.learned(1)
    expect(other.lessons).to_contain_text(last_heavy(hand))
    assert sorted(other.hand()) == sorted(theirs)
    other.pick(last_heavy(other.hand())).click()
    one.learned(2)
    other.learned(2)
    assert other.weights() == one.weights()
    other.page.keyboard.press("Control+z")
    expect(one.lessons.filter(has=one.page.get_by_role("button", name=re.compile("^Undo")))).to_have_count(1)


def test_what_others_teach_does_not_hide_that_the_server_does_not_answer(
    opened: Opened, loop: Served, watch: Watch
) -> None:
    watch.expect("net::ERR_FAILED|Failed to fetch")
    one, other = Teaching(opened(loop.url)), Teaching(opened(loop.url))
    one.page.route("**/teach", lambda route: route.abort("failed"))
    picked = one.hand()[4]
    one.pick(picked).click()
    expect(one.trouble).to_be_visible()
    other.pick(other.hand()[4]).click()
    one.learned(1)
    expect(one.trouble).to_be_visible()
    expect(one.page.locator("#said-text")).to_contain_text("The server does not answer")
    one.page.unroute("**/teach")
    one.trouble.dispatch_event("click")  # the page may have sent it again by itself in this very moment
    one.learned(2)
    expect(one.trouble).to_be_hidden()
    assert one.hand()[0] == picked


def test_names_are_only_ever_text(opened: Opened, server: Process) -> None:
    """Whatever things are called, the page shows it, and teaches it."""
    from heedful import infer

    names = [
        "<script>alert(1)</script>",
        '"><img src=x onerror=alert(1)>',
        "a'b\"c&amp;<b>d</b>",
        "{{ 7 * 7 }}{% raw %}",
        "../../etc/passwd?x=1#y",
        "語" * 40,
        "w" * 190,
        "two  spaces, commas; left to right",
    ]
    rows = [{"name": name, "size": n, "<i>size</i>": -n * n} for n, name in enumerate(names)]
    Loop.create(server.folder / "words.heedful", encoding=infer(rows, identifier="name"), items=rows).close()
    page = opened(f"{server.url}/loops/words", viewport={"width": 320, "height": 568}, reduced_motion="reduce")
    teaching = Teaching(page)
    assert sorted(teaching.hand()) == sorted(names)
    for name in names:
        newest = teaching.newest()
        teaching.cards.nth(teaching.hand().index(name)).get_by_role("button").first.click()
        teaching.newer_than(newest)
        teaching.still()
    assert page.evaluate("document.documentElement.scrollWidth") <= 320
    assert page.locator("main :is(script, img, b, i)").count() == 0
    page.goto(f"{server.url}/loops/words/learned")
    expect(page.locator("#lessons [data-event]").first).to_contain_text(names[-1])
    assert page.locator("main :is(script, img, b, i)").count() == 0
