"""Who may see and do what with the pages, once there are keys."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Error, Page, expect

from accessible import findings
from cars import copied, told
from heedful import Loop
from heedful.server.keys import Keys
from processes import Process
from served import Opened
from teaching import Teaching
from watching import Watch, until


@pytest.fixture
def guarded(tmp_path: Path, template: Path) -> Iterator[Process]:
    """A server with two loops, cars and vans, that nobody has a key of yet."""
    (tmp_path / "loops").mkdir()
    for name in ("cars", "vans"):
        copied(template, tmp_path / "loops" / f"{name}.heedful")
    with Process(tmp_path / "loops") as server:
        yield server.wait()


def key(server: Process, *scopes: str, tenant: str = "main") -> tuple[str, str]:
    """(prefix, text) of a new key."""
    keys = Keys(server.folder)
    made, text = keys.create(f"{'-'.join(scopes)}", tenant=tenant, scopes=scopes)
    keys.close()
    return made.prefix, text


def revoke(page: Page, server: Process, prefix: str, text: str) -> None:
    """Revoke a key, and wait until the server knows it."""
    keys = Keys(server.folder)
    keys.revoke(prefix)
    keys.close()
    bearer = {"authorization": f"Bearer {text}"}
    until(page, lambda: httpx.get(f"{server.url}/v1/loops", headers=bearer).status_code == 401)


def sign_in(page: Page, text: str) -> None:
    """Paste a key, and go on."""
    page.get_by_label("Key", exact=True).fill(text)
    page.get_by_role("button", name="Sign in").click()


def test_the_first_key_is_made_on_the_page_and_signs_in(guarded: Process, opened: Opened, watch: Watch) -> None:
    watch.expect("status of 40[13]")
    page = opened(f"{guarded.url}/keys")
    expect(page.get_by_text("The first key changes that for good")).to_be_visible()
    page.get_by_label("Name").fill("mine")
    page.get_by_role("button", name="Make a key").click()
    secret = page.locator("#secret").inner_text()
    assert secret.startswith("hk_")
    assert findings(page) == []
    page.get_by_role("button", name="Copy").click()
    expect(page.get_by_role("button", name=re.compile("Copied|Marked"))).to_be_visible()
    page.get_by_role("link", name="I have copied it").click()
    expect(page.get_by_role("button", name="Sign out")).to_be_visible()
    page.context.clear_cookies()
    page.goto(f"{guarded.url}/loops/cars/learned")
    page.wait_for_url("**/sign-in?**")
    sign_in(page, secret[:-1] + ("a" if secret[-1] != "a" else "b"))
    expect(page.get_by_role("alert")).to_be_visible()
    assert findings(page) == []
    sign_in(page, secret)
    page.wait_for_url("**/loops/cars/learned")
    page.goto(f"{guarded.url}/keys")
    expect(page.locator(f'tr[data-key="{secret[:11]}"]')).to_contain_text("mine")
    assert secret not in page.content()
    [cookie] = page.context.cookies()
    assert (cookie["httpOnly"], cookie["sameSite"], cookie["path"]) == (True, "Strict", "/")
    assert secret not in cookie["value"]
    for path in (guarded.told, *guarded.folder.glob("server.db*")):
        assert secret.encode() not in path.read_bytes()
        assert cookie["value"].encode() not in path.read_bytes()
    page.get_by_role("button", name="Sign out").click()
    page.wait_for_url("**/sign-in**")
    page.goto(f"{guarded.url}/loops/cars")
    page.wait_for_url("**/sign-in**")


def test_a_session_is_there_after_a_restart_and_teaches(guarded: Process, opened: Opened, watch: Watch) -> None:
    _, text = key(guarded, "read", "feedback", "decide")
    page = opened(f"{guarded.url}/loops/cars")
    sign_in(page, text)
    teaching = Teaching(page)
    teaching.pick(teaching.hand()[-1]).click()
    teaching.learned(1)
    with watch.gone():
        guarded.again()
        teaching.pick(teaching.hand()[-1]).click()
        teaching.learned(2)
    assert len(told(guarded.folder / "cars.heedful", "feedback")) == 2


def test_a_key_that_is_revoked_while_somebody_looks(guarded: Process, opened: Opened, watch: Watch) -> None:
    """The page says that the person has to sign in, and learns nothing more."""
    watch.expect("status of 40[13]")
    prefix, text = key(guarded, "read", "feedback", "decide")
    page = opened(f"{guarded.url}/loops/cars")
    sign_in(page, text)
    teaching = Teaching(page)
    teaching.pick(teaching.hand()[-1]).click()
    teaching.learned(1)
    revoke(page, guarded, prefix, text)
    with suppress(Error):  # the page looks for what is new, and may have left by itself
        page.evaluate("document.querySelector('#cards > :last-child button')?.click()")
    page.wait_for_url("**/sign-in**")
    assert len(told(guarded.folder / "cars.heedful", "feedback")) == 1
    sign_in(page, text)
    expect(page.get_by_role("alert")).to_be_visible()


def test_who_only_looks_when_the_key_is_revoked_sees_nothing_more(
    guarded: Process, opened: Opened, watch: Watch
) -> None:
    watch.expect("status of 40[13]")
    prefix, text = key(guarded, "read")
    looking: list[tuple[Page, list[str]]] = []
    for place in ("", "/learned"):
        page, refused = opened(f"{guarded.url}/loops/cars{place}"), list[str]()
        sign_in(page, text)
        page.wait_for_url(f"**/loops/cars{place}")
        expect(page.get_by_role("heading", level=1)).to_be_visible()
        page.on("response", lambda it, to=refused: to.append(it.url) if it.status in (401, 403) else None)
        looking.append((page, refused))
    revoke(page, guarded, prefix, text)
    with Loop.open(guarded.folder / "cars.heedful") as loop:
        decision = loop.decide()
        loop.feedback(decision.id, clicks=[decision.shown[5]])
    for page, refused in looking:
        until(page, lambda: refused)  # noqa: B023  # it asked for what is new
        told = page.locator("#side .lessons, #lessons, #events").filter(has_text=decision.shown[5])
        expect(told).to_have_count(0)
        if page.url.endswith("/learned"):
            page.reload()
        page.wait_for_url("**/sign-in**")


def test_another_tenants_loops_are_not_there(guarded: Process, opened: Opened, watch: Watch) -> None:
    watch.expect("status of 404")
    key(guarded, "read")
    _, text = key(guarded, "read", "feedback", "decide", "admin", tenant="others")
    page = opened(guarded.url)
    sign_in(page, text)
    expect(page.get_by_role("heading", name="learn what they like")).to_be_visible()
    expect(page.locator("tr[data-loop]")).to_have_count(0)
    for path in ("/loops/cars", "/loops/cars/learned", "/loops/cars/row"):
        answer = page.goto(guarded.url + path)
        assert answer is not None
        assert answer.status == 404
    page.goto(f"{guarded.url}/keys")
    expect(page.locator("tr[data-key]")).to_have_count(1)
