"""Cards moved by hand: with a mouse, a finger, and buttons."""

from __future__ import annotations

from playwright.sync_api import Page, expect

from cars import told
from served import Opened, Served
from teaching import Teaching, last_heavy, lessons, middle
from watching import come

PHONE = {"viewport": {"width": 390, "height": 700}, "has_touch": True, "is_mobile": True}


def test_dragged_with_the_mouse(page: Page, loop: Served) -> None:
    teaching = Teaching(page)
    hand = teaching.hand()
    teaching.drag(hand[4], onto=hand[1])
    teaching.learned(1)
    [(shown, chosen)] = lessons(loop)
    wanted = [hand[0], hand[4], *hand[1:4], *hand[5:]]
    assert shown == hand
    assert chosen == wanted[: len(chosen)]
    assert len(chosen) >= 2
    assert teaching.hand() == wanted
    [(marked, told)] = teaching.marks().items()
    assert (marked, told.split(" · ")[0]) == (hand[4], "Your order")
    teaching.drag(wanted[4], onto=wanted[1])
    teaching.learned(2)
    then = [wanted[0], wanted[4], *wanted[1:4], *wanted[5:]]
    assert teaching.hand() == then
    assert list(teaching.marks()) == [wanted[4]]
    assert lessons(loop)[1][0] == wanted  # the answer is to what lay there


def test_a_drag_that_changes_nothing_says_nothing(page: Page, loop: Served) -> None:
    teaching = Teaching(page)
    hand = teaching.hand()
    teaching.drag(hand[2], onto=hand[2])
    page.wait_for_timeout(300)
    assert teaching.hand() == hand
    assert told(loop.path, "feedback") == []


def test_tapped_on_a_phone(opened: Opened, loop: Served) -> None:
    page = opened(loop.url, **PHONE)
    teaching = Teaching(page)
    hand = teaching.hand()
    picked = last_heavy(hand)
    teaching.pick(picked).tap()
    teaching.learned(1)
    [(shown, chosen)] = lessons(loop)
    assert (shown, chosen[0]) == (hand, picked)


def test_dragged_with_a_finger_by_the_grip(opened: Opened, loop: Served) -> None:
    page = opened(loop.url, **PHONE)
    teaching = Teaching(page)
    hand = teaching.hand()
    x, y = middle(teaching.card(hand[0]).locator(".grip"))
    start = teaching.card(hand[1]).locator(".grip")
    teaching.finger(start, by=lambda: (x, y - 20))
    teaching.learned(1)
    [(shown, chosen)] = lessons(loop)
    assert shown == hand
    assert chosen[:2] == [hand[1], hand[0]]
    assert teaching.hand() == [hand[1], hand[0], *hand[2:]]
    assert list(teaching.marks()) == [hand[1]]


def test_a_finger_on_a_card_scrolls_the_page(opened: Opened, loop: Served) -> None:
    page = opened(loop.url, **PHONE)
    teaching = Teaching(page)
    hand = teaching.hand()
    x, y = middle(teaching.card(hand[1]))
    before = page.evaluate("scrollY")
    teaching.finger(teaching.card(hand[1]), by=lambda: (x, y - 250))
    come(page, "before => scrollY > before + 100", before)
    assert teaching.hand() == hand
    assert told(loop.path, "feedback") == []


def test_nothing_moves_under_a_hand_that_drags(opened: Opened, loop: Served) -> None:
    """What others teach meanwhile is shown when the card is let go; the order is the one that was seen."""
    one, other = Teaching(opened(loop.url)), Teaching(opened(loop.url))
    hand = one.hand()
    mouse = one.page.mouse
    mouse.move(*middle(one.card(hand[5])))
    mouse.down()
    x, y = middle(one.card(hand[4]))
    for step in range(10):
        mouse.move(x, y + 40 - 5 * step)
    one.still()
    held = one.hand()
    other.pick(last_heavy(other.hand())).click()
    other.learned(1)
    one.page.wait_for_timeout(400)
    assert one.hand() == held
    mouse.up()
    one.learned(2)
    other.learned(2)
    assert one.weights() == other.weights()
    shown, chosen = lessons(loop)[1]
    assert shown == hand
    assert chosen[:6] == [*hand[:4], hand[5], hand[4]]
    assert one.hand() == chosen


def test_what_was_put_stays_where_others_teach_meanwhile(opened: Opened, loop: Served) -> None:
    """They lie around it as they are ranked; other cards are dealt without it."""
    one, other = Teaching(opened(loop.url)), Teaching(opened(loop.url))
    hand = one.hand()
    one.drag(hand[6], onto=hand[2])
    one.learned(1)
    put = one.hand()
    for n in range(2, 5):
        other.learned(n - 1)
        other.pick(last_heavy(other.hand())).click()
        one.learned(n)
    assert one.hand().index(hand[6]) == put.index(hand[6]) == 2
    assert sorted(one.hand()) == sorted(hand)
    assert list(one.marks()) == [hand[6]]
    one.page.keyboard.press("n")
    expect(one.said).to_contain_text("Other cards")
    assert one.marks() == {}


def test_a_window_that_is_looked_at_again_shows_the_cards_as_they_were_put(page: Page, loop: Served) -> None:
    teaching = Teaching(page)
    hand = teaching.hand()
    teaching.drag(hand[4], onto=hand[1])
    teaching.learned(1)
    page.evaluate("window.was = document.getElementById('hand'); document.dispatchEvent(new Event('visibilitychange'))")
    come(page, "() => document.getElementById('hand') !== window.was")
    assert teaching.hand() == [hand[0], hand[4], *hand[1:4], *hand[5:]]


def test_the_buttons_up_and_down_make_an_order_that_is_sent_or_put_back(page: Page, loop: Served) -> None:
    teaching = Teaching(page)
    hand = teaching.hand()
    down = teaching.card(hand[0]).get_by_role("button", name="Down")
    down.click()
    teaching.still()
    assert teaching.hand()[:2] == [hand[1], hand[0]]
    teaching.button("Put it back").click()
    assert teaching.hand() == hand
    assert told(loop.path, "feedback") == []
    down.click()
    teaching.button("Send this order").click()
    teaching.learned(1)
    [(shown, chosen)] = lessons(loop)
    assert shown == hand
    assert chosen[:2] == [hand[1], hand[0]]
    assert teaching.hand() == [hand[1], hand[0], *hand[2:]]
    assert list(teaching.marks()) == [hand[0]]
