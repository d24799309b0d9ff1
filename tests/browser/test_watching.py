"""What watches over the pages sees what it is there to see."""

from __future__ import annotations

import pytest
from playwright.sync_api import Browser, Route

from watching import Watch

ORIGIN = "http://pages.test"
POLICY = "default-src 'none'; script-src 'self'; style-src 'self'; img-src data:"


@pytest.mark.parametrize(
    ("html", "script", "seen"),
    [
        ("<p>well", "document.title = 'well'", []),
        ("<p>inline<script>1</script>", "", ["console: "]),
        ("<p style='color: red'>inline", "", ["console: "]),
        ("<p>words", "console.error('wrong')", ["console: wrong"]),
        ("<p>words", "nobody.there()", ["exception: "]),
        ("<p>words", "Promise.reject(Error('left alone'))", ["exception: "]),
        ("<link rel=stylesheet href=http://elsewhere.test/a.css>", "", ["console: "]),
        ("<p>words", "location.href = 'http://elsewhere.test/'", ["a request to http://elsewhere.test/"]),
        ("<link rel=stylesheet href=/missing.css>", "", ["console: "]),
    ],
)
def test_what_a_page_must_not_do_is_seen(browser: Browser, html: str, script: str, seen: list[str]) -> None:
    watch = Watch()

    def answer(route: Route) -> None:
        if route.request.url == f"{ORIGIN}/":
            page = f"<!doctype html><link rel=icon href=data:,><script src=/page.js defer></script>{html}"
            route.fulfill(body=page, content_type="text/html", headers={"Content-Security-Policy": POLICY})
        elif route.request.url == f"{ORIGIN}/page.js":
            route.fulfill(body=script, content_type="text/javascript")
        else:
            route.fulfill(status=404)

    context = watch.over(browser.new_context(), ORIGIN)
    context.route("**/*", answer)
    page = context.new_page()
    page.goto(ORIGIN)
    page.wait_for_timeout(100)
    context.close()
    assert [found[: len(wanted)] for found, wanted in zip(watch.found, seen)] == seen, watch.found
    assert bool(watch.found) == bool(seen), watch.found


def test_what_a_test_brings_about_itself_passes() -> None:
    watch = Watch()
    watch.expect("REFUSED")
    watch._failed("http://a/b", "net::ERR_CONNECTION_REFUSED")
    watch._failed("http://a/b", "net::ERR_ABORTED")
    assert watch.found == []
    watch._failed("http://a/b", "net::ERR_CONNECTION_RESET")
    assert watch.found == ["failed: http://a/b: net::ERR_CONNECTION_RESET"]


def test_lost_connections_pass_while_the_server_is_gone_and_no_longer() -> None:
    watch = Watch()
    with watch.gone():
        watch._failed("http://a/b", "net::ERR_SOCKET_NOT_CONNECTED")
        watch._say("console: Failed to load resource: net::ERR_CONNECTION_REFUSED")
        watch._say("console: wrong")
    watch._failed("http://a/b", "net::ERR_CONNECTION_REFUSED")
    assert watch.found == ["console: wrong", "failed: http://a/b: net::ERR_CONNECTION_REFUSED"]
