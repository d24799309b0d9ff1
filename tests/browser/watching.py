"""What must not happen while a page is looked at."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from playwright.sync_api import BrowserContext, Page

LOST = re.compile("net::ERR_|Failed to fetch")


class Watch:
    """What must not happen while a page is looked at: an error in the console (what the content security policy
    forbids is one), an exception, a request to another host."""

    def __init__(self) -> None:
        self.found: list[str] = []
        self._expected: list[re.Pattern[str]] = []
        self._contexts: list[BrowserContext] = []

    def expect(self, pattern: str) -> None:
        """Let errors like this one pass: the test brings them about."""
        self._expected.append(re.compile(pattern))

    @contextmanager
    def gone(self) -> Iterator[None]:
        """Let lost connections pass, whatever Chromium calls them: from when the server is killed until each page has
        an answer of the next one."""
        self._expected.append(LOST)
        yield
        for page in [page for context in self._contexts for page in context.pages]:
            page.evaluate("0")  # what went wrong before has been told before this is answered
        self._expected.remove(LOST)

    def over(self, context: BrowserContext, origin: str) -> BrowserContext:
        """Watch this one, that may talk to `origin` alone."""
        self._contexts.append(context)
        context.on("console", lambda message: message.type == "error" and self._say(f"console: {message.text}"))
        context.on("weberror", lambda error: self._say(f"exception: {error.error}"))
        context.on("request", lambda request: self._asked(request.url, origin))
        context.on("requestfailed", lambda request: self._failed(request.url, request.failure))
        return context

    def _asked(self, url: str, origin: str) -> None:
        if not url.startswith((f"{origin}/", "data:")):
            self._say(f"a request to {url}")

    def _failed(self, url: str, why: str | None) -> None:
        if why != "net::ERR_ABORTED":  # somebody went to another page
            self._say(f"failed: {url}: {why}")

    def _say(self, what: str) -> None:
        if not any(pattern.search(what) for pattern in self._expected):
            self.found.append(what)


def open_again(page: Page, url: str) -> None:
    """Open `url` after its server was killed and started, until its scripts came, too: a connection that Chromium kept
    may turn out to be lost between a page and its script."""
    lost: list[str] = []
    page.on("requestfailed", lambda request: lost.append(request.resource_type))
    page.goto(url)
    while "script" in lost:
        lost.clear()
        page.goto(url)


def until(page: Page, found: Callable[[], Any], seconds: float = 30.0) -> Any:
    """What `found` gives, as soon as it is true; meanwhile the page goes on."""
    end = time.monotonic() + seconds
    while not (it := found()):
        assert time.monotonic() < end, "it did not come"
        page.wait_for_timeout(15)
    return it


def come(page: Page, script: str, arg: Any = None) -> Any:
    """What a function of the page gives, as soon as it is true. (Playwright's own way of waiting for that is an `eval`
    in the page, which the content security policy forbids.)"""
    return until(page, lambda: page.evaluate(script, arg))


def still(page: Page) -> None:
    """Wait until nothing moves any more."""
    come(page, "() => document.getAnimations().every(it => it.playState !== 'running')")
