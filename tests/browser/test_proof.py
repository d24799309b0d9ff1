"""Proving a learner on its page: by mouse, by keyboard alone, and readable by all."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from accessible import stops, tab_to
from cars import loop_of_cars, told
from heedful import Loop
from served import Opened, Served
from test_reach import SIDEWAYS, SMALL, check_fits
from watching import Watch


@pytest.fixture(scope="session")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A loop over 30 cars that swaps neighbours, with the answers of ten people."""
    path = loop_of_cars(
        tmp_path_factory.mktemp("proof") / "cars.heedful", 30, "posterior", exploration=0.5, control=0.0
    )
    answer(path, 60)
    return path


def answer(path: Path, lists: int, start: int = 0) -> None:
    """Let ten people click the car whose name comes first, in so many lists."""
    with Loop.open(path) as loop:
        for n in range(start, start + lists):
            shown = loop.decide(show=5, id=f"d{n}", person=f"p{n % 10}").shown
            loop.feedback(f"d{n}", id=f"e{n}", clicks=[min(shown)])


@pytest.fixture
def proof(page: Page, loop: Served) -> Page:
    """The page of this test's loop."""
    page.get_by_role("link", name="Proof").click()
    page.wait_for_url("**/proof")
    return page


def test_by_mouse_from_the_log_to_a_promotion(proof: Page, loop: Served, watch: Watch) -> None:
    page = proof
    page.get_by_label("Learner").first.fill("perceptron")
    page.get_by_role("button", name="Evaluate").click()
    expect(page.locator("#told tr[data-learner=perceptron] .interval-bar")).to_have_count(2)
    expect(page.locator("#told .verdict")).to_contain_text("perceptron is better than posterior")
    page.wait_for_url("**/proof?learner=perceptron&alpha=0.05")
    page.reload()
    expect(page.locator("#told tr[data-learner=perceptron]").first).to_be_visible()
    page.get_by_label("People, in percent").fill("100")
    page.get_by_role("button", name="How long would it take?").click()
    expect(page.locator("#plan")).to_contain_text("With 100 % of the people")
    page.get_by_label("Candidate").fill("second-order")
    page.get_by_label("Frozen").check()
    page.get_by_role("button", name="Start the experiment").click()
    expect(page.get_by_text("The experiment runs.")).to_be_visible()
    answer(loop.path, 20, 60)
    page.reload()
    expect(page.locator("#experiment")).to_contain_text("second-order against posterior")
    expect(page.locator("#experiment .facts")).to_contain_text("20 of 20 (100 %)")
    expect(page.locator("#against")).not_to_be_empty()
    watch.expect("status of 422")
    page.get_by_role("button", name="Promote", exact=True).click()
    anyway = page.get_by_role("button", name="Promote second-order anyway")
    anyway.click()  # the box is not ticked: the browser sends nothing
    expect(anyway).to_be_visible()
    assert told(loop.path, "promote") == []
    page.get_by_label("These reasons do not count").check()
    anyway.click()
    expect(page.locator("#promotions")).to_contain_text("forced")
    expect(page.locator("h1 + .lead")).to_contain_text("second-order serves now")
    assert len(told(loop.path, "promote")) == 1


def test_with_the_keyboard_alone(proof: Page, loop: Served) -> None:
    page = proof
    tab_to(page, "#learner")
    page.keyboard.type("perceptron")
    page.keyboard.press("Enter")
    expect(page.locator("#told tr[data-learner=perceptron]").first).to_be_visible()
    expect(page.locator("#told")).to_be_focused()
    tab_to(page, "#candidate")
    page.keyboard.press("Control+a")
    page.keyboard.type("perceptron")
    page.keyboard.press("Enter")
    stop = page.get_by_role("button", name="Stop the experiment")
    expect(stop).to_be_visible()
    tab_to(page, "form[action$='/stop'] button")
    page.keyboard.press("Space")
    expect(page.get_by_text("The experiment is over")).to_be_visible()
    assert [len(told(loop.path, kind)) for kind in ("experiment", "stop")] == [1, 1]
    page.goto(f"{loop.url}/proof")  # without the fragment, from which the focus would go on
    assert stops(page)[0].startswith("Skip")


def test_a_learner_that_does_not_fit_is_refused_in_place(proof: Page) -> None:
    proof.get_by_label("Learner").first.fill("prank")
    proof.get_by_role("button", name="Evaluate").click()
    expect(proof.locator("#told").get_by_role("alert")).to_contain_text("expected one that is taught what is better")
    expect(proof.get_by_label("Learner").first).to_have_value("prank")


def test_readable_by_all_and_fits_a_small_phone(opened: Opened, loop: Served) -> None:
    with Loop.open(loop.path) as tried:
        tried.promote("perceptron", force=True, by="ann")
        tried.start_experiment("second-order", share=0.5)
    answer(loop.path, 30, 60)
    page = opened(f"{loop.url}/proof?learner=second-order+posterior:swap=0", **SMALL)
    for summary in page.locator("summary").all():
        summary.click()
    check_fits(page)
    page.set_viewport_size({"width": 1280, "height": 800})
    assert page.evaluate(SIDEWAYS) == 0
