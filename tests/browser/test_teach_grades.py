"""Teaching a loop of grades on its page: clicked, typed, taken back; without scripts, without a server, on a phone."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

from accessible import stops, tab_to
from cars import loop_of_cars, told
from heedful import Loop
from processes import Process, check
from served import Opened, Served
from teaching import Teaching, middle
from test_reach import SMALL, check_fits
from watching import Watch, open_again

FIVE = "ordinal-logistic:n_ranks=5"


@pytest.fixture(scope="session")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A loop of grades over 60 cars that nobody has taught yet."""
    return loop_of_cars(tmp_path_factory.mktemp("graded") / "cars.heedful", learner=FIVE, control=0.0)


def button(teaching: Teaching, name: str, grade: int) -> Locator:
    """The button that gives a card a grade."""
    return teaching.card(name).locator(f'button.grade[value="{grade}"]')


def given(path: Path) -> list[dict[str, int]]:
    """The grades in the log of a loop that count, in order."""
    with Loop.open(path) as loop:
        lessons = [each for each in loop.lessons(100)[::-1] if not each.undone]
        return [dict(zip(each.chosen, map(int, each.values))) for each in lessons]


def focused(page: Page) -> tuple[str, str]:
    """(the card, the grade) that has the focus."""
    script = "(() => { const it = document.activeElement; return [it.closest('[data-key]')?.dataset.key, it.value] })()"
    name, grade = page.evaluate(script)
    return name, grade


def test_a_click_is_a_grade_and_the_card_says_so(page: Page, loop: Served) -> None:
    teaching = Teaching(page)
    hand = teaching.hand()
    assert len(hand) == 8
    expect(teaching.mark(hand[3])).to_have_text("Predicted: 3")
    button(teaching, hand[3], 2).click()
    teaching.learned(1)
    expect(teaching.mark(hand[3])).to_have_text(re.compile(r"You said 2 · predicted now: [1-5]"))
    expect(button(teaching, hand[3], 2)).to_have_attribute("aria-pressed", "true")
    expect(button(teaching, hand[3], 2)).to_be_focused()
    expect(teaching.said).to_contain_text(f"{hand[3]}: 2. Predicted before: 3, now: ")
    assert teaching.hand() == hand
    button(teaching, hand[5], 4).click()
    teaching.learned(2)
    assert teaching.weights()  # one grade alone tells how much is given, and nothing of features
    assert given(loop.path) == [{hand[3]: 2}, {hand[5]: 4}]
    assert [kind for kind, _ in told(loop.path, "decision")] == ["decision"]  # both answer the list that was dealt
    with Loop.open(loop.path) as opened:
        now = opened.predict(hand)
    for name in hand:
        shown = teaching.card(name).locator("[data-predicted]")
        expect(shown).to_have_attribute("value", str(int(now[name].value)))
    assert page.locator(".pick, .grip, .move, #none").count() == 0


def test_a_card_that_is_graded_again_counts_as_it_was_graded_last(page: Page, loop: Served) -> None:
    """Also where that is faster than the server answers."""
    teaching = Teaching(page)
    [first, second, *_] = teaching.hand()
    for name, grade in ((first, 1), (second, 2), (first, 4)):
        button(teaching, name, grade).dispatch_event("click")
    teaching.learned(3)
    expect(teaching.mark(first)).to_contain_text("You said 4")
    assert given(loop.path) == [{second: 2}, {first: 4}]
    assert len(told(loop.path, "undo")) == 1
    for left in ([{second: 2}], []):  # what was taken back already is no step back
        page.keyboard.press("Control+z")
        expect(page.locator("#side .lessons .undone")).to_have_count(3 - len(left))
        assert given(loop.path) == left


def test_with_the_keyboard_alone(page: Page, loop: Served) -> None:
    teaching = Teaching(page)
    keys = page.keyboard
    hand = teaching.hand()
    tab_to(page, "button.grade")
    assert focused(page) == (hand[0], "3")  # one stop for a card, at what is predicted
    keys.press("2")
    teaching.learned(1)
    assert focused(page) == (hand[0], "2")
    keys.press("ArrowDown")
    assert focused(page)[0] == hand[1]
    for _ in range(5):
        keys.press("ArrowLeft")
    assert focused(page) == (hand[1], "1")
    keys.press("ArrowRight")
    keys.press("ArrowRight")
    keys.press("Enter")
    teaching.learned(2)
    assert focused(page) == (hand[1], "3")
    keys.press("9")  # no grade of this loop
    keys.press("0")
    keys.press("Alt+ArrowUp")  # nothing is moved here
    keys.press("Tab")
    assert focused(page)[0] == hand[2]
    keys.press("Space")
    teaching.learned(3)
    assert teaching.hand() == hand
    keys.press("Control+z")
    expect(teaching.said).to_contain_text(f"Taken back: “Graded {hand[2]}: ")
    keys.press("?")
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("give the card that you are on this grade")
    expect(dialog).not_to_contain_text("rather")
    keys.press("Escape")
    keys.press("n")
    expect(teaching.said).to_contain_text("Other cards")
    assert given(loop.path) == [{hand[0]: 2}, {hand[1]: 3}]
    teaching.still()
    page.mouse.click(*middle(teaching.card(teaching.hand()[4]).locator(".title")))
    keys.press("4")  # of the card that was touched
    teaching.learned(4)
    assert given(loop.path)[-1] == {teaching.hand()[4]: 4}
    assert len(stops(page)) < 40


@pytest.mark.parametrize("how", ["button", "keys", "lesson"])
def test_a_grade_is_taken_back(page: Page, loop: Served, how: str) -> None:
    teaching = Teaching(page)
    hand = teaching.hand()
    button(teaching, hand[1], 1).click()
    teaching.learned(1)
    button(teaching, hand[2], 3).click()
    teaching.learned(2)
    taken, left = (hand[1], hand[2]) if how == "lesson" else (hand[2], hand[1])
    if how == "button":
        page.locator("#undo").click()
    elif how == "keys":
        page.keyboard.press("Control+z")
    else:
        teaching.lessons.last.get_by_role("button", name=re.compile("^Undo")).click()
    expect(page.locator("#side .lessons .undone")).to_have_count(1)
    expect(teaching.mark(taken)).to_contain_text("Predicted: ")
    expect(teaching.mark(left)).to_contain_text("You said ")
    assert teaching.hand() == hand
    assert [list(each) for each in given(loop.path)] == [[left]]


def test_two_windows_see_each_others_grades_and_no_card_moves(opened: Opened, loop: Served) -> None:
    one, other = Teaching(opened(loop.url)), Teaching(opened(loop.url))
    hands = one.hand(), other.hand()
    for n, name in enumerate(hands[0][:4]):
        button(one, name, n + 1).click()
        one.learned(n + 1)
    other.learned(4)
    expect(other.page.locator("#cards [data-predicted]")).to_have_count(8)
    assert (one.hand(), other.hand()) == hands
    assert other.weights() == one.weights()
    other.lessons.first.get_by_role("button", name=re.compile("^Undo")).click()
    expect(one.mark(hands[0][3])).to_contain_text("Predicted: ")


@pytest.fixture
def alone(tmp_path: Path) -> Iterator[Process]:
    """A server with one loop of grades, cars, to be killed."""
    (tmp_path / "loops").mkdir()
    loop_of_cars(tmp_path / "loops" / "cars.heedful", learner=FIVE)
    with Process(tmp_path / "loops") as server:
        yield server.wait()


def test_what_is_graded_while_the_server_is_away_is_kept_and_counts_once(
    alone: Process, opened: Opened, watch: Watch
) -> None:
    """Also over a reload; and a card that was graded before knows that it was."""
    path = alone.folder / "cars.heedful"
    teaching = Teaching(opened(f"{alone.url}/loops/cars"))
    hand = teaching.hand()
    button(teaching, hand[0], 2).click()
    teaching.learned(1)
    with watch.gone():
        alone.kill()
        button(teaching, hand[3], 1).click()
        expect(teaching.trouble).to_be_visible()
        expect(button(teaching, hand[3], 1)).to_have_attribute("aria-pressed", "true")
        button(teaching, hand[0], 4).click()
        alone.again()
        teaching.learned(3)
        expect(teaching.trouble).to_be_hidden()
    expect(teaching.mark(hand[0])).to_contain_text("You said 4")
    expect(teaching.mark(hand[3])).to_contain_text("You said 1")
    assert given(path) == [{hand[3]: 1}, {hand[0]: 4}]
    with watch.gone():
        alone.kill()
        button(teaching, hand[5], 3).click()
        expect(teaching.trouble).to_be_visible()
        alone.again()
        open_again(teaching.page, f"{alone.url}/loops/cars")
        teaching.learned(4)
    teaching.page.reload()
    teaching.learned(4)
    assert given(path) == [{hand[3]: 1}, {hand[0]: 4}, {hand[5]: 3}]
    check(path, [])


@pytest.mark.parametrize("grades", [5, 10, 100])
def test_readable_by_all_and_fits_a_small_phone(opened: Opened, server: Process, grades: int) -> None:
    """In light and dark, before and after grades, on both pages; nothing sideways, nothing too small to hit."""
    name = f"small-{grades}"
    path = loop_of_cars(server.folder / f"{name}.heedful", learner=f"ordinal-logistic:n_ranks={grades}")
    with Loop.open(path) as loop:
        for n in range(12):
            decision = loop.decide(id=f"d{n}", show=3, person=f"p{n % 3}")
            loop.feedback(
                decision.id, grade={car: 1 + (7 * n + 3 * j) % grades for j, car in enumerate(decision.shown)}
            )
    page = opened(f"{server.url}/loops/{name}", **SMALL)
    teaching = Teaching(page)

    check_fits(page)
    card = teaching.hand()[1]
    newest = teaching.newest()
    if grades <= 10:
        button(teaching, card, 2).tap()
    else:
        teaching.card(card).get_by_role("spinbutton").fill("42")
        teaching.card(card).get_by_role("button").tap()
    teaching.newer_than(newest)
    expect(teaching.mark(card)).to_contain_text("You said 2" if grades <= 10 else "You said 42")
    check_fits(page)
    page.goto(f"{server.url}/loops/{name}/learned")
    expect(page.locator("#weights svg.cut-line .threshold")).to_have_count(grades - 1)
    check_fits(page)
    page.set_viewport_size({"width": 1280, "height": 800})
    check_fits(page)


def test_what_was_learned_is_drawn(opened: Opened, loop: Served) -> None:
    with Loop.open(loop.path) as graded:
        for n in range(30):
            decision = graded.decide(id=f"d{n}", show=4, person=f"p{n % 5}")
            graded.feedback(decision.id, grade={name: 1 + len(name) % 5 for name in decision.shown})
    page = opened(f"{loop.url}/learned")
    expect(page.locator("#report canvas")).to_be_visible()
    expect(page.locator("#report")).to_contain_text("Mean |predicted − given|")
    page.goto(f"{loop.server.url}/")
    row = page.locator(f'tr[data-loop="{loop.name}"] th')
    # Rows load as they come into view; this one may be replaced by the loaded one while it is scrolled to.
    row.evaluate("it => it.scrollIntoView()")
    expect(row).to_contain_text("grades 1–5")
