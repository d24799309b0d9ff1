"""The page where a loop is taught, as a person sees it and handles it."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
from playwright.sync_api import Locator, Page, expect

from cars import cars
from heedful import Loop
from served import Served
from watching import come, still

WEIGHT = {car["name"]: car["weight"] for car in cars()}
Point = tuple[float, float]


class Teaching:
    """What is on the page, and what hands can do with it."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.cards = page.locator("#cards > [data-key]")
        self.lessons = page.locator("#side .lessons [data-key]")
        self.said = page.locator("#live")
        self.trouble = page.locator("#again")

    # ------------------------------------------------------------------------ what is seen

    def hand(self) -> list[str]:
        """The names on the cards, from the top."""
        names: list[str] = self.page.eval_on_selector_all("#cards > [data-key]", "all => all.map(it => it.dataset.key)")
        return names

    def weights(self) -> dict[str, str]:
        """What it thinks the person likes: feature to what is said of it, in the page's order."""
        script = "all => all.map(each => [each.dataset.key, each.textContent])"
        pairs = self.page.eval_on_selector_all("#side .bars [data-key]", script)
        return {name: " ".join(told.split()) for name, told in pairs}

    def marks(self) -> dict[str, str]:
        """Card to the mark on it: whose order it lies in, and where the model would put it."""
        script = "all => all.map(each => [each.closest('[data-key]').dataset.key, each.textContent])"
        return dict(self.page.eval_on_selector_all("#cards .mark", script))

    def focus(self) -> str:
        """What has the focus: the card's name, else the element in a few words."""
        told: str = self.page.evaluate(
            "(() => { const it = document.activeElement, card = it.closest('#cards > [data-key]');"
            "return card ? card.dataset.key : it.id || it.textContent.trim() || it.tagName })()"
        )
        return told

    # ------------------------------------------------------------------------ what is done

    def card(self, name: str) -> Locator:
        """The card of that name."""
        return self.page.locator(f'#cards > [data-key="{name}"]')

    def pick(self, name: str) -> Locator:
        """The button that says "I'd rather have this"."""
        return self.card(name).get_by_role("button").first

    def mark(self, name: str) -> Locator:
        """What stands on a card of its number."""
        return self.card(name).locator(".mark")

    def button(self, name: str) -> Locator:
        """The button of that name outside the cards."""
        return self.page.get_by_role("button", name=name, exact=True)

    def learned(self, lessons: int) -> None:
        """Wait until so many lessons are listed; the page lists the last six."""
        expect(self.lessons).to_have_count(lessons, timeout=20_000)  # a machine may be busy

    def newest(self) -> str | None:
        """The last lesson, if there is one."""
        return self.lessons.first.get_attribute("data-key") if self.lessons.count() else None

    def newer_than(self, lesson: str | None) -> None:
        """Wait until another one is the last."""
        script = "before => document.querySelector('#side .lessons [data-key]')?.dataset.key !== (before ?? undefined)"
        come(self.page, script, lesson)

    def still(self) -> None:
        """Wait until nothing moves any more."""
        still(self.page)

    def drag(self, name: str, onto: str) -> None:
        """Take a card with the mouse and put it where another is."""
        self.still()
        (x, y), (to_x, to_y) = middle(self.card(name)), middle(self.card(onto))
        mouse = self.page.mouse
        mouse.move(x, y)
        mouse.down()
        self._glide(mouse.move, (x, y), (to_x, to_y + (-9 if to_y < y else 9)))
        mouse.up()

    def finger(self, start: Locator, by: Callable[[], Point]) -> None:
        """Put a finger on the middle of `start`, and move it to `by()`."""
        self.still()
        cdp = self.page.context.new_cdp_session(self.page)

        def touch(kind: str, *at: float) -> None:
            points = [{"x": at[0], "y": at[1]}] if at else []
            cdp.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})

        x, y = middle(start)
        touch("touchStart", x, y)
        self._glide(lambda x, y: touch("touchMove", x, y), (x, y), by())
        touch("touchEnd")
        cdp.detach()

    def _glide(self, move: Callable[[float, float], None], start: Point, end: Point) -> None:
        steps = 12
        for step in range(1, steps + 1):
            part = step / steps
            move(start[0] + part * (end[0] - start[0]), start[1] + part * (end[1] - start[1]))
            self.page.wait_for_timeout(16)  # a frame: hands are not faster
        self.page.wait_for_timeout(100)


def middle(it: Locator) -> Point:
    """Where the middle of something is, scrolled into view."""
    it.scroll_into_view_if_needed()
    box = it.bounding_box()
    assert box is not None
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def last_heavy(hand: list[str]) -> str:
    """The heaviest of the lower half: one that a lesson surely moves."""
    return max(hand[len(hand) // 2 :], key=WEIGHT.__getitem__)


def lessons(loop: Served) -> list[tuple[list[str], ...]]:
    """(what was shown, what was put first or in order) of every correction in the log, in order."""
    found = []
    with Loop.open(loop.path) as opened:
        log = opened.projection.log
        for event in log.events(kinds=["feedback"]):
            assert event.target is not None
            decision = log.at(event.target)
            assert decision is not None
            shown, said = msgspec.json.decode(decision.payload), msgspec.json.decode(event.payload)
            items = {item.seq: str(item.subject) for item in log.many(shown["items"])}
            names = [items[seq] for seq in shown["items"]]
            found.append(tuple([names[j] for j in each] for each in (shown["shown"], said.get("chosen", []))))
    return found
