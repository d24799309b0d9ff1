"""An arena of models in a browser: blind answers by keys and on a phone, and its leaderboard as a page, also alone."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from accessible import findings, stops
from compared import answers, link_to
from heedful import Loop, leaderboard
from heedful.studies.answers import decision_id, event_id
from heedful.studies.arena import create_arena, outputs_of, request_of
from heedful.studies.board_page import board_page
from heedful.studies.outputs import Outputs
from heedful.studies.study import Study
from served import Opened, Served
from test_compare import at, begun, tap
from test_reach import SIDEWAYS, SMALL

MODELS = ("quartz-9b", "heron-large", "willow_mini")
LONG = "This one goes on and on. " * 60


@pytest.fixture(scope="session")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An arena of three models that nobody answered yet; one answer is long."""
    path = tmp_path_factory.mktemp("arena") / "models.heedful"
    ids = [f"q{k}" for k in range(4)]
    texts = {m: {id: f"Text {3 * k + i}" for i, id in enumerate(ids)} for k, m in enumerate(MODELS)}
    texts["heron-large"]["q1"] = LONG
    outputs = Outputs({id: f"What is {id}?" for id in ids}, texts)
    create_arena(path, outputs, Study(kind="answers", ask="Which answer is better?", questions=5), "ranking").close()
    return path


def blind(page: Page) -> None:
    """No model is named in the page, its address, or what it keeps."""
    kept = page.evaluate("JSON.stringify([sessionStorage, localStorage, document.cookie, location.href])")
    assert not any(model in page.content() + kept for model in MODELS)


def test_five_answers_by_the_keyboard(opened: Opened, loop: Served) -> None:
    page = opened(f"{loop.url}/compare")
    at(page, 1)
    assert findings(page) == []
    told = []
    for number, (key, said) in enumerate(
        [("1", "first"), ("2", "second"), ("3", "equal"), ("4", "both_bad"), ("5", "cannot_judge"), ("b", "both_bad")],
        1,
    ):
        blind(page)
        expect(page.locator(".prompt")).to_contain_text("What is q")
        assert page.locator(".option").count() == 2
        told.append(said)
        page.keyboard.press(key)
        at(page, number + 1)
    assert [said for _, said, _ in answers(loop.path)] == told
    page.keyboard.press("u")
    at(page, len(told))
    assert [said for _, said, _ in answers(loop.path)] == told[:-1]


def test_a_participant_on_a_small_phone(opened: Opened, loop: Served) -> None:
    page = opened(loop.server.url + link_to(loop.path), **SMALL)
    blind(page)
    begun(page)
    for number in range(1, 5):
        blind(page)
        assert page.evaluate(SIDEWAYS) == 0
        tap(page.get_by_role("button", name=("Both bad", "Equally good")[number % 2]))
        at(page, number + 1)
    tap(page.get_by_role("button", name="Both bad"))
    expect(page.get_by_role("heading", level=1)).to_have_text("Thank you")
    blind(page)
    assert len(answers(loop.path)) == 5


def answered(loop: Served, people: int = 3) -> None:
    """Votes in which the first model wins always."""
    with Loop.open(loop.path) as study:
        outputs = outputs_of(study.path)
        assert outputs is not None
        for who in range(people):
            for number in range(8):
                decision = study.decide(**request_of(study, outputs, f"p{who}", number))
                best = min(decision.shown, key=MODELS.index)
                said = "first" if decision.shown[0] == best else "second"
                study.feedback(decision_id(f"p{who}", number), id=event_id(f"p{who}", number, 0), choice=said)


def test_the_results_are_a_leaderboard(opened: Opened, loop: Served) -> None:
    answered(loop)
    page = opened(f"{loop.url}/results")
    rows = page.locator("table.ranking tbody tr th")
    assert rows.all_inner_texts() == list(MODELS)
    expect(page.locator("table.ranking svg.interval")).to_have_count(3)
    box = page.locator("table.ranking svg.interval").first.bounding_box()
    assert box is not None
    assert box["width"] > 100
    expect(page.get_by_role("main")).to_contain_text("would be first, or level with quartz-9b")
    assert findings(page) == []
    link = link_to(loop.path, shows=True)
    shown = opened(loop.server.url + link, **SMALL)
    expect(shown.locator("table.ranking tbody tr th").first).to_have_text("quartz-9b")
    assert shown.evaluate(SIDEWAYS) == 0
    written = shown.content().replace(link, "")  # its token is drawn, and may hold any two letters
    for person in ("p0", "p1", "p2"):
        assert person not in written


def test_the_leaderboard_as_a_page_alone(browser: Browser, tmp_path: Path) -> None:
    """From a file, without a network and without scripts: readable, by keyboard, in light and dark, on a phone."""
    rows = []
    for k in range(120):
        a, b = k % 6, (k * 5 + 1 + k // 6) % 6
        if a != b:
            said = ("model_a", "model_b", "tie")[(k * 7) % 3 if k % 4 else int(a > b)]
            row = {"model_a": f"model {a}", "model_b": f"model {b}", "winner": said, "judge": f"p{k % 30}"}
            rows.append(row | {"tag": ("code", "prose")[k % 2], "length_a": 10 * k % 70, "length_b": k})
    board = leaderboard(rows, by="tag", adjust=["length"], side=True)
    path = tmp_path / "board.html"
    path.write_text(board_page(board, "A board"), encoding="utf-8")
    asked: list[str] = []
    for script in (True, False):
        context = browser.new_context(java_script_enabled=script, offline=True)
        context.on("request", lambda request: asked.append(request.url))
        page = context.new_page()
        page.goto(path.as_uri())
        expect(page.get_by_role("heading", level=1)).to_have_text("A board")
        expect(page.get_by_role("row")).to_have_count(1 + 6 + 1 + 6 + 1 + 2 + 1 + 6 + 2 * (1 + 6))
        if script:
            assert findings(page) == []
            reached = stops(page)
            assert {"code", "prose", "Leaderboard", "Who beats whom", "By category"} <= set(reached)
            grounds = []
            for scheme in ("light", "dark"):
                page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
                grounds.append(page.evaluate("getComputedStyle(document.body).backgroundColor"))
            assert grounds[0] != grounds[1]
            page.set_viewport_size({"width": 900, "height": 600})
            whole = "[...document.querySelectorAll('.scroll')].every(each => each.scrollWidth <= each.clientWidth)"
            assert page.evaluate(whole)
            page.set_viewport_size({"width": 320, "height": 600})
            assert page.evaluate(SIDEWAYS) == 0
        context.close()
    assert set(asked) == {path.as_uri()}
