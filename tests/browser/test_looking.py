"""Seeing what a loop learned, and all loops there are, as it happens."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from accessible import findings
from cars import copied, loop_of_cars, told
from heedful import Loop
from processes import Process
from served import Opened, Served
from teaching import Teaching
from watching import Watch, come


def teach(path: Path, lists: int, start: int = 0, **asked: Any) -> None:
    """Answer so many lists with a click on what is lightest of it."""
    with Loop.open(path) as loop:
        for n in range(start, start + lists):
            decision = loop.decide(show=5, id=f"d{n}", **asked)
            loop.feedback(decision.id, id=f"e{n}", clicks=[decision.shown[n % 5]])


def test_what_it_learned_follows_what_happens(opened: Opened, loop: Served) -> None:
    teach(loop.path, 2)
    page = opened(f"{loop.url}/learned")
    lessons = page.locator("#lessons [data-event]")
    expect(lessons).to_have_count(2)
    weights = page.locator("#weights").inner_text()
    teaching = Teaching(opened(loop.url))
    picked = teaching.hand()[-1]
    teaching.pick(picked).click()
    expect(lessons).to_have_count(3)
    expect(lessons.first).to_contain_text(picked)
    come(page, "before => document.querySelector('#weights').innerText !== before", weights)
    expect(page.locator("#events li").first).to_contain_text(picked)
    lessons.first.get_by_role("button", name="Undo").click()
    expect(lessons.first.get_by_role("button")).to_have_count(0)
    expect(teaching.page.locator("#side .lessons [data-key] button")).to_have_count(2)
    assert [kind for kind, _ in told(loop.path, "undo")] == ["undo"]


def test_learned_against_left_alone_with_a_picture(opened: Opened, server: Any) -> None:
    path = loop_of_cars(server.folder / "much.heedful", 30, control=0.5)
    teach(path, 200)
    page = opened(f"{server.url}/loops/much/learned", viewport={"width": 800, "height": 900})
    expect(page.get_by_text("your order (control)").first).to_be_visible()
    expect(page.locator("canvas").first).to_be_visible()
    assert findings(page) == []
    page.emulate_media(color_scheme="dark")
    expect(page.locator("canvas").first).to_be_visible()
    page.set_viewport_size({"width": 320, "height": 568})
    come(page, "() => document.documentElement.scrollWidth <= 320")


@pytest.fixture(scope="module")
def thousand(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A server of a thousand loops, one of them damaged."""
    folder = tmp_path_factory.mktemp("thousand") / "loops"
    folder.mkdir()
    first = loop_of_cars(folder / "loop-0000.heedful", 6)
    for n in range(1, 1000):
        copied(first, folder / f"loop-{n:04}.heedful")
    (folder / "loop-0003.heedful" / "log.db").write_bytes(b"no log at all")
    with Process(folder) as server:
        yield server.wait()
    shutil.rmtree(folder)


def test_a_thousand_loops_are_a_list_of_which_only_what_is_seen_is_opened(
    opened: Opened, thousand: Process, watch: Watch
) -> None:
    asked: list[str] = []
    page = opened(f"{thousand.url}/sign-in", viewport={"width": 800, "height": 600})
    page.on("request", lambda request: asked.append(request.url) if request.url.endswith("/row") else None)
    page.goto(thousand.url)
    expect(page.locator('tr[data-loop="loop-0000"]')).to_contain_text("6")
    expect(page.locator('tr[data-loop="loop-0003"]')).to_contain_text("Broken")
    expect(page.locator("tr[data-loop]")).to_have_count(50)
    page.wait_for_load_state("networkidle")
    assert 4 <= len(asked) < 40
    assert thousand.files() < 200
    last = page.locator('tr[data-loop="loop-0049"]')
    last.get_by_role("link").focus()
    expect(last).to_contain_text("6")
    expect(last.get_by_role("link")).to_be_focused()
    assert findings(page) == []
    page.get_by_role("link", name="Later").click()
    expect(page.locator("tr[data-loop]").first).to_have_attribute("data-loop", "loop-0050")
    expect(page.locator("tr[data-loop]").first).to_contain_text("6")


@pytest.mark.parametrize("place", ["", "/learned"])
def test_windows_in_the_background_hold_up_nobody(opened: Opened, loop: Served, place: str) -> None:
    """A browser has six connections to a server, for all of its windows: who is not looked at gives its own back, and
    is up to date when somebody looks again."""
    hide = """hidden => {
        Object.defineProperty(document, "hidden", { configurable: true, get: () => hidden });
        document.dispatchEvent(new Event("visibilitychange"));
    }"""
    first = opened(loop.url + place)
    pages = [first, *(first.context.new_page() for _ in range(6))]
    for page in pages[:-1]:
        page.goto(loop.url + place)
        page.evaluate(hide, True)
    pages[-1].goto(loop.url)
    teaching = Teaching(pages[-1])
    teaching.pick(teaching.hand()[-1]).click()
    teaching.learned(1)
    first.evaluate(hide, False)
    expect(first.locator("#lessons [data-event], #side .lessons [data-key]")).to_have_count(1)
