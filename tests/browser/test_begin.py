"""A first visitor makes a loop and a study on the first page: with the keyboard, files, and without scripts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import expect

from accessible import findings, stops, tab_to
from compared import logos
from processes import Process
from served import Opened
from watching import Watch


@pytest.fixture
def empty(tmp_path: Path) -> Iterator[Process]:
    """A server without a loop."""
    (tmp_path / "loops").mkdir()
    with Process(tmp_path / "loops") as server:
        yield server.wait()


def test_the_keyboard_makes_a_loop_of_the_example(empty: Process, opened: Opened) -> None:
    page = opened(empty.url)
    expect(page.get_by_role("heading", level=1)).to_have_text("Show people something, and learn what they like")
    assert findings(page) == []
    assert len(stops(page)) == 10  # skip, logo, two of the menu, uses (one), files, table, example, name, button
    tab_to(page, "a[href='/?example=1']")
    page.keyboard.press("Enter")
    page.wait_for_url("**/?example=1")
    tab_to(page, "[name=use]")
    page.keyboard.press("ArrowRight")
    expect(page.get_by_label("See one of a few")).to_be_checked()
    expect(page.get_by_label("The question")).to_be_hidden()
    tab_to(page, "#begin-name")
    page.keyboard.press("Enter")
    page.wait_for_url("**/loops/cars")
    page.goto(empty.url)
    page.get_by_text("Make another").click()
    assert findings(page) == []


@pytest.mark.parametrize("scripts", [True, False])
def test_uploaded_pictures_are_compared(
    empty: Process, opened: Opened, watch: Watch, tmp_path: Path, scripts: bool
) -> None:
    watch.expect("status of 422")
    page = opened(empty.url, java_script_enabled=scripts)
    page.get_by_label("Compare two").check()
    page.get_by_label("The question").fill("Which is calmer?")
    page.get_by_label("A name for it").fill("logos")
    page.get_by_role("button", name="Make it").click()
    expect(page.get_by_role("alert")).to_contain_text("files: expected files or a pasted table, got neither")
    if scripts:
        assert findings(page) == []
    page.get_by_label("Files", exact=True).set_input_files(sorted(logos(tmp_path / "logos").iterdir()))
    page.get_by_role("button", name="Make it").click()
    page.wait_for_url("**/loops/logos/compare")
    expect(page.get_by_role("heading", level=1)).to_have_text("Which is calmer?")
