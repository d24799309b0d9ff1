"""Two things side by side, as people see them: by keys, by touch, on a phone, through a restart; by a link."""

from __future__ import annotations

import re
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

import httpx
import pytest
from PIL import Image
from playwright.sync_api import Locator, Page, expect

from accessible import stops, tab_to
from compared import ASK, answers, link_to, logos, study_in, study_of_rows
from processes import Process, check
from served import Opened, Served
from test_reach import SIDEWAYS, SMALL, check_fits
from watching import Watch, open_again, until

PHONE = {"viewport": {"width": 390, "height": 700}, "has_touch": True, "is_mobile": True}


@pytest.fixture(scope="session")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A study of six pictures that nobody answered yet."""
    folder = tmp_path_factory.mktemp("compared")
    return study_in(folder / "logos.heedful", logos(folder / "logos"), questions=4)


@pytest.fixture
def link(loop: Served) -> str:
    """Where a participant comes to this test's study."""
    return loop.server.url + link_to(loop.path, "customers")


def at(page: Page, number: int) -> None:
    """Wait until it asks the question of that number, 1 the first."""
    page.wait_for_load_state()  # its script hears keys from then on
    expect(page.locator("#ask")).to_have_attribute("data-number", str(number - 1))
    expect(page.locator("#ask")).not_to_have_attribute("aria-busy", "true")


def tap(it: Locator) -> None:
    """Tap, as soon after the last tap as somebody who has looked."""
    it.page.wait_for_timeout(450)
    it.tap()


def seen(page: Page) -> list[str]:
    """What is compared, the left one first."""
    names: list[str] = page.eval_on_selector_all(".option img", "all => all.map(it => it.alt)")
    return names


def begun(page: Page) -> Page:
    """The same, after the line to agree to."""
    page.get_by_role("button", name="I agree").click()
    at(page, 1)
    return page


def test_by_the_keyboard_alone(opened: Opened, loop: Served) -> None:
    page = opened(f"{loop.url}/compare")
    at(page, 1)
    expected = []
    for number, (key, said) in enumerate([("1", "first"), ("2", "second"), ("3", "equal"), ("4", "cannot_judge")], 1):
        expected.append(("you", said, tuple(seen(page))))
        page.keyboard.press(key)
        at(page, number + 1)
    expected.append(("you", "first", tuple(seen(page))))
    tab_to(page, "#pick-first")
    page.keyboard.press("Enter")
    at(page, 6)
    assert answers(loop.path) == expected
    before = seen(page)
    page.keyboard.press("u")
    at(page, 5)
    assert tuple(seen(page)) == expected[4][2]
    assert answers(loop.path) == expected[:4]
    page.keyboard.press("ArrowRight")
    at(page, 6)
    assert seen(page) == before  # what was asked stays asked
    assert answers(loop.path) == [*expected[:4], ("you", "second", expected[4][2])]


def test_a_key_that_is_held_answers_once_and_a_double_click_too(opened: Opened, loop: Served) -> None:
    page = opened(f"{loop.url}/compare")
    at(page, 1)
    page.keyboard.down("1")
    page.keyboard.down("1")
    page.keyboard.down("1")
    page.keyboard.up("1")
    at(page, 2)
    page.locator("#pick-second").dblclick()
    at(page, 3)
    page.wait_for_timeout(200)
    assert [said for _, said, _ in answers(loop.path)] == ["first", "second"]


def test_a_participant_on_a_phone_from_the_link_to_the_thanks(opened: Opened, loop: Served, link: str) -> None:
    page = opened(link, **PHONE)
    expect(page.get_by_role("heading", level=1)).to_have_text(ASK)
    expect(page.locator(".consent")).to_contain_text("Your answers are kept under a random name")
    begun(page)
    expect(page.locator("#ask")).to_contain_text("1 of 4")
    assert page.locator(".option img").first.evaluate("it => it.decode().then(() => it.naturalWidth)") == 24
    for number in range(1, 4):
        tap(page.locator("#pick-first"))
        at(page, number + 1)
    tap(page.get_by_role("button", name="Equally good"))
    expect(page.get_by_role("heading", level=1)).to_have_text("Thank you")
    told = answers(loop.path)
    assert [said for _, said, _ in told] == ["first", "first", "first", "equal"]
    [who] = {who for who, _, _ in told}
    assert re.fullmatch(r"customers/[0-9a-f]{12}", who)
    tap(page.get_by_role("button", name="Undo the last answer"))
    at(page, 4)
    assert len(answers(loop.path)) == 3
    tap(page.get_by_role("button", name="Cannot judge"))
    expect(page.get_by_role("heading", level=1)).to_have_text("Thank you")
    tap(page.get_by_role("link", name="Answer more questions"))
    at(page, 5)
    tap(page.locator("#pick-second"))
    at(page, 6)
    assert [said for _, said, _ in answers(loop.path)] == ["first", "first", "first", "cannot_judge", "second"]


def test_reload_back_and_another_window_lose_nothing(opened: Opened, loop: Served, link: str) -> None:
    page = begun(opened(link))
    page.keyboard.press("2")
    at(page, 2)
    asked = seen(page)
    page.reload()
    at(page, 2)
    assert seen(page) == asked
    page.keyboard.press("1")
    at(page, 3)
    other = page.context.new_page()
    other.goto(link)
    at(other, 3)
    other.keyboard.press("1")
    at(other, 4)
    page.keyboard.press("2")  # to a question that was answered there
    at(page, 4)
    expect(page.locator("#live")).to_contain_text("answered before")
    page.goto(f"{loop.url}/results")
    page.go_back()
    at(page, 4)
    assert [said for _, said, _ in answers(loop.path)] == ["second", "first", "first"]


@pytest.fixture
def alone(tmp_path: Path) -> Iterator[Process]:
    """A server with one study, to be killed."""
    (tmp_path / "loops").mkdir()
    study_in(tmp_path / "loops" / "logos.heedful", logos(tmp_path / "logos"))
    with Process(tmp_path / "loops") as server:
        yield server.wait()


def test_killed_and_started_again_in_the_middle(alone: Process, opened: Opened, watch: Watch) -> None:
    path = alone.folder / "logos.heedful"
    page = begun(opened(alone.url + link_to(path)))
    page.keyboard.press("1")
    at(page, 2)
    with watch.gone():
        alone.kill()
        page.keyboard.press("2")
        expect(page.locator("#again")).to_be_visible()
        page.keyboard.press("1")  # the one that waits comes first
        alone.again()
        at(page, 3)
        expect(page.locator("#again")).to_be_hidden()
    page.keyboard.press("u")
    at(page, 2)
    page.keyboard.press("4")
    at(page, 3)
    assert [said for _, said, _ in answers(path)] == ["first", "cannot_judge"]
    check(path, [])


def test_an_answer_that_waits_survives_a_reload(alone: Process, opened: Opened, watch: Watch) -> None:
    path = alone.folder / "logos.heedful"
    page = begun(opened(alone.url + link_to(path)))
    with watch.gone():
        alone.kill()
        page.keyboard.press("2")
        expect(page.locator("#again")).to_be_visible()
        alone.again()
        open_again(page, page.url)
        at(page, 2)
    assert [said for _, said, _ in answers(path)] == ["second"]


def test_the_ranking_forms_and_says_who_cannot_be_told_apart(opened: Opened, loop: Served) -> None:
    page = opened(f"{loop.url}/compare")
    expect(page.locator("#so-far")).to_contain_text("Nothing is known yet")
    for number in range(1, 6):
        at(page, number)
        page.keyboard.press("1" if seen(page)[0] < seen(page)[1] else "2")  # by name
    expect(page.locator("#so-far")).to_contain_text(re.compile(r"questions? left|Enough"))
    expect(page.locator("#so-far")).to_contain_text(re.compile("From [1-5] answer"))
    expect(page.locator("#so-far")).not_to_contain_text("logo")
    page.get_by_role("link", name="Results", exact=True).click()
    expect(page.locator("#verdict")).to_contain_text("logo 0")
    expect(page.locator(".level").first).to_contain_text("cannot be told apart")
    until(page, lambda: page.locator(".ranking tbody tr").count() == 6)


SHAPES = {"wide": (400, 100), "photo": (300, 200), "tall": (100, 300), "square": (200, 200)}


def shaped(folder: Path, *names: str) -> Path:
    """A folder of pictures of these shapes."""
    folder.mkdir()
    for name in names:
        Image.new("RGB", SHAPES[name], "navy").save(folder / f"{name}.png")
    return folder


def boxes(page: Page, selector: str) -> list[dict[str, float]]:
    """Where everything of that kind is."""
    box = "it => (({ x, y, width, height }) => ({ x, y, w: width, h: height }))(it.getBoundingClientRect())"
    return list(page.eval_on_selector_all(selector, f"all => all.map({box})"))


@pytest.mark.parametrize("names", [("wide", "square"), ("tall", "wide"), ("photo", "wide"), ("tall", "square")])
def test_pictures_of_any_shape_are_shown_in_one_size(
    opened: Opened, server: Process, tmp_path: Path, names: tuple[str, str]
) -> None:
    """None is liked better for being shown larger."""
    name = "-".join(names)
    study = study_in(server.folder / f"{name}.heedful", shaped(tmp_path / "shaped", *names))
    page = begun(opened(server.url + link_to(study)))
    for width, height in ((1280, 800), (390, 700), (320, 568)):
        page.set_viewport_size({"width": width, "height": height})
        plates, drawn = boxes(page, ".plate"), boxes(page, ".plate img")
        assert plates[0]["w"] == pytest.approx(plates[1]["w"], abs=1)
        assert plates[0]["h"] == pytest.approx(plates[1]["h"], abs=1)
        assert drawn[0]["w"] * drawn[0]["h"] == pytest.approx(drawn[1]["w"] * drawn[1]["h"], rel=0.03)
        for plate, it, shown in zip(plates, drawn, seen(page)):
            assert it["w"] / it["h"] == pytest.approx(SHAPES[shown][0] / SHAPES[shown][1], rel=0.03)
            for side, length in (("x", "w"), ("y", "h")):
                assert plate[side] <= it[side]
                assert it[side] + it[length] <= plate[side] + plate[length]
        assert max(it["w"] / plate["w"] for it, plate in zip(drawn, plates)) > 0.5
        for button in ("Equally good", "Cannot judge"):
            expect(page.get_by_role("button", name=button)).to_be_in_viewport(ratio=1)
        assert page.evaluate(SIDEWAYS) == 0


def test_landscapes_lie_one_above_the_other_on_a_phone(opened: Opened, server: Process, tmp_path: Path) -> None:
    study_in(server.folder / "land.heedful", shaped(tmp_path / "shaped", "photo", "wide"))
    page = opened(f"{server.url}/loops/land/compare", **PHONE)
    at(page, 1)
    first, second = boxes(page, ".plate")
    assert second["y"] >= first["y"] + first["h"]
    assert first["w"] > 0.8 * PHONE["viewport"]["width"]  # type: ignore[index]
    page.set_viewport_size({"width": 1280, "height": 800})
    first, second = boxes(page, ".plate")
    assert second["x"] >= first["x"] + first["w"]


def test_a_picture_is_the_same_in_light_and_in_dark(opened: Opened, server: Process, tmp_path: Path) -> None:
    """What it stands on, what shines through it, and a drawing that would turn itself dark."""
    folder = tmp_path / "drawn"
    folder.mkdir()
    Image.new("RGBA", (200, 200), (0, 0, 90, 120)).save(folder / "clear.png")
    style = "<style>rect { fill: navy } @media (prefers-color-scheme: dark) { rect { fill: yellow } }</style>"
    drawing = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 9 9">{style}<rect width="9" height="5"/></svg>'
    (folder / "turning.svg").write_text(drawing)
    study_in(server.folder / "schemes.heedful", folder)
    page = opened(f"{server.url}/loops/schemes/compare")
    at(page, 1)
    page.keyboard.press("1")
    at(page, 2)

    def drawn(selector: str, scheme: Any) -> list[bytes]:
        page.emulate_media(color_scheme=scheme)
        page.mouse.move(0, 0)
        page.wait_for_load_state("networkidle")
        # Its border, and the corners of that, belong to the page.
        crops = [Image.open(BytesIO(it.screenshot())).convert("RGB") for it in page.locator(selector).all()]
        return [it.crop((8, 8, it.width - 8, it.height - 8)).tobytes() for it in crops]

    for place, selector in (("compare", ".plate"), ("results", ".thumb")):
        page.goto(f"{server.url}/loops/schemes/{place}")
        page.wait_for_load_state("networkidle")
        assert len(drawn(selector, "light")) == 2
        assert drawn(selector, "light") == drawn(selector, "dark"), place


def test_pictures_in_the_results_are_large_enough_to_be_known(opened: Opened, loop: Served) -> None:
    page = opened(f"{loop.url}/compare")
    at(page, 1)
    page.keyboard.press("1")
    at(page, 2)
    page.goto(f"{loop.url}/results")
    assert all(it["w"] >= 96 and it["h"] >= 72 for it in boxes(page, ".thumb"))
    assert len(boxes(page, ".thumb")) == 6


def test_a_link_is_made_on_the_page_works_and_is_ended(opened: Opened, loop: Served, watch: Watch) -> None:
    owner = opened(f"{loop.url}/results")
    owner.get_by_label("Segment, if any").fill("employees")
    owner.get_by_role("button", name="Make a link").click()
    link = owner.locator("#link").inner_text()
    expect(owner.locator("img.code")).to_be_visible()
    page = begun(opened(link))
    page.keyboard.press("1")
    at(page, 2)
    owner.goto(f"{loop.url}/results")
    owner.get_by_role("button", name="End it").click()
    expect(owner.locator(".badge--bad")).to_have_text("revoked")
    watch.expect("404")
    until(page, lambda: httpx.get(link).status_code == 404)  # what was known of a link holds a while
    page.keyboard.press("1")
    expect(page.locator("#refused")).to_contain_text("This link has ended. The answers given with it are kept")
    assert len(answers(loop.path)) == 1


def test_a_page_to_show_is_made_and_follows_what_is_answered(opened: Opened, loop: Served) -> None:
    page = opened(f"{loop.url}/compare", viewport={"width": 1280, "height": 700})
    at(page, 1)
    page.keyboard.press("1")
    at(page, 2)
    owner = opened(f"{loop.url}/results", viewport={"width": 1280, "height": 700})
    owner.get_by_role("button", name="Make a page to show").click()
    expect(owner.locator("#link")).to_be_in_viewport()
    wall = opened(owner.locator("#link").inner_text())
    expect(wall.locator("#standing")).to_contain_text("From 1 answer by 1 person")
    page.keyboard.press("2")
    at(page, 3)
    expect(wall.locator("#standing")).to_contain_text("From 2 answers by 1 person")
    expect(wall.locator(".ranking tbody tr")).to_have_count(6)
    expect(wall.locator("button, a, input")).to_have_count(0)


@pytest.mark.parametrize("place", ["compare", "results", "shown", "consent", "asked", "thanks", "ended"])
def test_every_page_is_readable_by_all_and_fits_a_small_phone(
    opened: Opened, loop: Served, link: str, watch: Watch, place: str
) -> None:
    if place in ("compare", "results", "shown"):
        page = opened(f"{loop.url}/compare", **SMALL)
        for number in range(1, 4):
            at(page, number)
            page.keyboard.press("1")
        at(page, 4)
        expect(page.locator("#so-far")).to_contain_text(re.compile("From [123] answer"))
        page.goto(loop.server.url + link_to(loop.path, shows=True) if place == "shown" else f"{loop.url}/{place}")
        expect(page.locator(".ranking tbody tr")).to_have_count(0 if place == "compare" else 6)
    elif place == "ended":
        watch.expect("404")
        page = opened(f"{loop.server.url}/s/{'x' * 43}", **SMALL)
    else:
        page = opened(link, **SMALL)
        if place != "consent":
            begun(page)
        for number in range(1, 5 if place == "thanks" else 1):
            at(page, number)
            page.keyboard.press("3")
        if place == "thanks":
            expect(page.get_by_role("heading", level=1)).to_have_text("Thank you")
    expect(page.get_by_role("heading", level=1)).to_have_count(1)
    expect(page.get_by_role("main")).to_have_count(1)
    check_fits(page)
    assert page.evaluate("document.querySelectorAll('main button, main a').length > 0") == (
        place not in ("ended", "shown")
    )
    if place == "asked":
        assert len(stops(page)) == 4
    page.set_viewport_size({"width": 1280, "height": 800})
    assert page.evaluate(SIDEWAYS) == 0


def test_markup_is_shown_as_text_and_never_run(opened: Opened, server: Process, tmp_path: Path) -> None:
    folder = tmp_path / "texts"
    folder.mkdir()
    evil = (
        "<script>document.title = 'run'</script><img src=x onerror=\"document.title = 'run'\"> & \"quotes\"\n  indented"
    )
    (folder / "a.txt").write_text(evil)
    (folder / "b.html").write_text("<h1>Größe</h1>")
    study_in(server.folder / "texts.heedful", folder)
    page = opened(f"{server.url}/loops/texts/compare")
    at(page, 1)
    told = page.locator(".text").all_inner_texts()
    assert sorted(told) == sorted([evil, "<h1>Größe</h1>"])
    assert ASK in page.title()
    page.keyboard.press("1")
    at(page, 2)
    page.goto(f"{server.url}/loops/texts/results")
    expect(page.locator(".ranking tbody tr")).to_have_count(2)
    evil_rows = [{"name": f"<b>{i}</b>", "what": '<i>x</i>, "y"; Käse', "empty": ""} for i in range(3)]
    study_of_rows(server.folder / "rows.heedful", evil_rows)
    page.goto(f"{server.url}/loops/rows/compare")
    at(page, 1)
    expect(page.locator(".option b, .option i")).to_have_count(0)
    expect(page.locator(".option").first).to_contain_text('<i>x</i>, "y"; Käse')


@pytest.mark.parametrize("how", [{}, PHONE], ids=["desk", "phone"])
def test_a_long_text_scrolls_in_its_card_and_is_picked_wherever_it_is_pressed(
    opened: Opened, loop: Served, tmp_path: Path, how: dict[str, Any]
) -> None:
    texts = tmp_path / "texts"
    texts.mkdir()
    (texts / "short.txt").write_text("In a word.")
    (texts / "long.txt").write_text("And so on, and so forth. " * 400)
    name = f"texts-{len(how)}"
    study_in(loop.path.parent / f"{name}.heedful", texts)
    page = opened(f"{loop.server.url}/loops/{name}/compare", **how)
    at(page, 1)
    expect(page.get_by_role("button", name="Equally good")).to_be_in_viewport()  # without a way down to it
    # What lies under a finger at the corners and in the middle of each card, before and after its text is scrolled.
    under = page.evaluate("""() => [...document.querySelectorAll(".option")].flatMap(card => [0, 1e6].flatMap(down => {
        card.scrollTop = down;
        const { left, top, width, height } = card.getBoundingClientRect();
        return [[.04, .06], [.96, .06], [.5, .5], [.04, .94], [.96, .94]].map(([x, y]) =>
            document.elementFromPoint(left + x * width, top + y * height).className);
    }))""")
    assert set(under) == {"pick"}
    assert page.eval_on_selector_all(".option", "all => all.filter(it => it.scrollTop > 100).length") == 1
