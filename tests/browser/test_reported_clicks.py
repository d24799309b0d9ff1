"""Clicks that a browser reports from a page of another origin, with the script and a token for what the page shows."""

from __future__ import annotations

import html
import json
import os
import re
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import NamedTuple

import pytest
from playwright.sync_api import Page, expect

from heedful import Loop
from heedful.client import Client
from heedful.server.app import App
from heedful.server.context import Options
from heedful.server.keys import Keys
from loops import small_loop
from processes import HEEDFUL, free_port, here
from served import Opened
from watching import Watch, until

ROOT = Path(__file__).resolve().parents[2]


class Site(NamedTuple):
    """A heedful server, and pages of another origin that show lists of its decisions."""

    app: App
    url: str
    key: str
    origin: str
    pages: dict[str, str]
    """by path, the body of a page"""
    client: Client

    def show(self, path: str, token: str | None = None, decision: str = "d1", loop: str = "cars") -> str:
        """Put a page there that shows a decision, with a token for it unless another is given; return its URL."""
        d = self.client.loop(loop).decide(id=decision, show=6)
        token = self.client.loop(loop).page_token(d) if token is None else token
        items = "".join(f'<li data-heedful-item="{i}"><a id="{i}" href="/next"><b>{i}</b></a></li>' for i in d.shown)
        script = f'<script src="{self.url}/heedful.js" data-loop="{loop}" defer></script>'
        listed = f'<ol data-heedful="{html.escape(decision)}" data-heedful-token="{token}">{items}</ol>'
        self.pages[path] = f"{script}{listed}<p id=beside>beside"
        return f"{self.origin}{path}"

    def answers(self) -> dict[int, int]:
        """How many clicks that were reported had an answer of each status. (What a page reports while it is left,
        Playwright does not see.)"""
        requests = dict(self.app.service.metrics.requests)
        return {status: n for (_, route, status), n in requests.items() if route.endswith("/clicks")}

    def come(self, page: Page, **expected: int) -> None:
        """Wait for so many answers of these statuses (s200=1), and see that no more come."""
        wanted = {int(name[1:]): n for name, n in expected.items()}
        until(page, lambda: sum(self.answers().values()) >= sum(wanted.values()))
        page.wait_for_timeout(150)
        assert self.answers() == wanted

    def clicks(self, loop: str = "cars") -> list[tuple[str, list[str]]]:
        """(decision, items) of the feedback in the log, in order."""
        with Client(self.url, self.admin, timeout=20.0) as admin:
            found = admin.loop(loop).events(kinds=["feedback"], follow=False)
            return [(each["decision"], each["clicks"]) for each in found]

    @property
    def admin(self) -> str:
        """Another key, that may do everything."""
        return self.app.service.keys.create("admin")[1]


@contextmanager
def serving(pages: dict[str, str], url: list[str]) -> Iterator[int]:
    """A server of pages, under a content security policy that allows nothing but the script from `url`; its port."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            policy = f"default-src 'none'; img-src data:; script-src {url[0]}; connect-src {url[0]}"
            for name, text in {"content-type": "text/html", "content-security-policy": policy}.items():
                self.send_header(name, text)
            self.end_headers()
            body = pages.get(self.path, "nothing")
            self.wfile.write(f"<!doctype html><title>A page</title><link rel=icon href=data:,>{body}".encode())

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as made:
        threading.Thread(target=made.serve_forever, daemon=True).start()
        yield made.server_port
        made.shutdown()


@pytest.fixture
def site(tmp_path: Path, watch: Watch) -> Iterator[Site]:
    for name in ("cars", "films"):
        small_loop(tmp_path / f"{name}.heedful", control=0.0, exploration=0.0).close()
    with closing(Keys(tmp_path)) as keys:
        key = keys.create("shop", scopes=["decide", "feedback"])[1]
    pages, where = {"/next": "the next page"}, [""]
    with serving(pages, where) as port:
        origin = f"http://localhost:{port}"  # another site than that of the server, by its name
        with here(tmp_path, Options(origins=(origin,))) as (app, http):
            where[0] = url = str(http.base_url).rstrip("/")
            watch.expect(rf"a request to {url}/(heedful\.js|v1/loops/\w+/clicks)$")
            with Client(url, key, timeout=20.0) as client:
                yield Site(app, url, key, origin, pages, client)


STAYS = "it => it.addEventListener('click', event => event.preventDefault())"
"""On a list: its links lead nowhere."""


# ---------------------------------------------------------------------------- what arrives


def test_a_click_arrives_once_although_the_page_is_left(site: Site, opened: Opened) -> None:
    page = opened(site.show("/"))
    clicked = site.client.loop("cars").decide(id="before").shown[4]
    page.locator(f"#{clicked} b").click()  # of a link: the page is left
    expect(page.get_by_text("the next page")).to_be_visible()
    site.come(page, s200=1)
    assert site.clicks() == [("d1", [clicked])]
    for _ in range(2):  # again on a page that was loaded again
        page.goto(f"{site.origin}/")
        page.locator(f"#{clicked}").click()
        expect(page.get_by_text("the next page")).to_be_visible()
    site.come(page, s200=3)
    assert site.clicks() == [("d1", [clicked])]
    assert site.client.loop("cars").decide(id="after").shown.index(clicked) < 4  # it was learned
    assert page.context.cookies() == []


def test_what_is_sent_needs_no_permission_beforehand(site: Site, opened: Opened) -> None:
    page = opened(site.show("/"))
    page.locator("ol").evaluate(STAYS)
    with page.expect_response("**/clicks") as found:
        page.locator("[data-heedful-item] a").first.click()
    request = found.value.request
    assert (request.method, found.value.status) == ("POST", 200)
    headers = request.all_headers()
    assert headers["content-type"] == "text/plain;charset=UTF-8"
    assert "authorization" not in headers
    assert "?" not in request.url
    site.come(page, s200=1)  # no OPTIONS came, which would be refused
    assert {method for _, method, _ in site.app.service.metrics.requests if "OPTIONS" in method} == set()


def test_what_counts_as_a_click(site: Site, opened: Opened) -> None:
    page = opened(site.show("/"))
    shown = page.locator("[data-heedful-item]").evaluate_all("all => all.map(it => it.dataset.heedfulItem)")
    page.locator("#beside").click()
    page.locator("[data-heedful]").click(position={"x": 2, "y": 2})  # between the items
    page.locator("ol").evaluate(STAYS)
    page.locator(f"#{shown[0]}").click(button="right")
    page.locator("ol").evaluate("it => it.addEventListener('click', event => event.stopImmediatePropagation())")
    page.locator(f"#{shown[1]}").dblclick()  # twice, and the page's own handler stops it
    page.locator(f"#{shown[2]}").focus()
    page.keyboard.press("Enter")
    with page.context.expect_page() as tab:
        page.locator(f"#{shown[3]}").click(button="middle")
    tab.value.close()
    page.evaluate("""async () => {
        const added = document.querySelector("li").cloneNode(true);
        document.querySelector("ol").append(added);  // later
        added.querySelector("b").click();
    }""")
    site.come(page, s200=4)
    assert sorted(site.clicks()) == sorted(("d1", [each]) for each in (shown[1], shown[2], shown[3], shown[0]))


def test_what_the_browser_does_not_take_is_sent_when_the_page_is_left(site: Site, opened: Opened) -> None:
    url = site.show("/")
    page = opened(f"{site.origin}/next")
    page.add_init_script("""
        const send = navigator.sendBeacon.bind(navigator);
        navigator.sendBeacon = (...given) => document.visibilityState === "hidden" && send(...given);
    """)
    page.goto(url)
    page.locator("ol").evaluate(STAYS)
    page.locator("[data-heedful-item] a").first.click()
    page.wait_for_timeout(200)
    assert site.answers() == {}
    page.goto(f"{site.origin}/next")
    site.come(page, s200=1)
    assert len(site.clicks()) == 1


# ---------------------------------------------------------------------------- what is refused


def test_a_page_of_an_origin_that_was_not_named_is_refused(site: Site, opened: Opened, watch: Watch) -> None:
    watch.expect("status of 403|CORS policy|Failed to load|net::ERR_FAILED")
    elsewhere = site.origin.replace("localhost", "127.0.0.1")
    page = opened(site.show("/").replace(site.origin, elsewhere))
    page.locator("ol").evaluate(STAYS)
    page.locator("[data-heedful-item] a").first.click()
    site.come(page, s403=1)
    body = json.dumps({"token": site.client.loop("cars").page_token("d1"), "decision": "d1", "item": "i1"})
    asked = "([url, body]) => fetch(url, {method: 'POST', body}).then(() => 'read', error => error.name)"
    assert page.evaluate(asked, [f"{site.url}/v1/loops/cars/clicks", body]) == "TypeError"
    assert site.clicks() == []


# ---------------------------------------------------------------------------- the page of the docs


def test_from_nothing_to_the_first_insight(tmp_path: Path, opened: Opened, watch: Watch) -> None:
    """The five lines of docs/browsers.md, with a person who clicks before the last."""
    text = (ROOT / "docs" / "browsers.md").read_text()
    found = re.search(r"```sh\n(.*?)```", text, re.DOTALL)
    assert found is not None
    *before, last = found[1].splitlines()
    assert len(before) == 4
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    shop, heedful = free_port(), free_port()
    script = "\n".join(before).replace("8000", str(shop)).replace("heedful serve", f"heedful serve --port {heedful}")
    script = script.replace("shop.py", f"shop.py {shop}")
    path = f"{Path(HEEDFUL).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "HEEDFUL_URL": f"http://127.0.0.1:{heedful}"}
    with (tmp_path / "told").open("wb") as told:
        command = ["bash", "-euc", f"{script}\nwait"]
        child = subprocess.Popen(
            command, cwd=tmp_path, env=environment, stdout=told, stderr=told, start_new_session=True
        )
    try:
        until_listening(shop, child, tmp_path / "told")
        until_listening(heedful, child, tmp_path / "told")
        watch.expect(rf"a request to http://127.0.0.1:{heedful}/|favicon|img-src")
        page = opened(f"http://127.0.0.1:{shop}/")
        while page.locator(
            "[data-heedful*=-fallback-]"
        ).count():  # heedful is slow at first, on a machine with much to do
            page.reload()
        clicked = page.locator("[data-heedful-item]").nth(5).get_attribute("data-heedful-item")
        page.get_by_role("link", name=str(clicked), exact=True).click()
        page.get_by_role("link", name="All cars").click()
        events = ["heedful", "report", "cars", "--json"]
        ask = partial(subprocess.run, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True)
        until(page, lambda: json.loads(ask(events).stdout)["feedback"]["given"] == 1)

        def place() -> int:
            page.reload()
            now = page.locator("[data-heedful-item]").evaluate_all("all => all.map(it => it.dataset.heedfulItem)")
            return int(now.index(clicked))

        until(page, lambda: place() < 5)  # one list in twenty is left as it was
        assert re.search(r"\b1\b", ask(last.split()).stdout)
    finally:
        os.killpg(child.pid, 15)
        child.wait(60)
    with Loop.open(tmp_path / "cars.heedful") as loop:
        assert loop.projection.log.counts()["feedback"] == 1


def until_listening(port: int, child: subprocess.Popen[bytes], told: Path) -> None:
    end = time.monotonic() + 60
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), 1.0).close()
            return
        except OSError:
            assert child.poll() is None, told.read_text()
            assert time.monotonic() < end, told.read_text()
            time.sleep(0.05)
