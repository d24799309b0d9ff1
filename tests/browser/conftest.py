"""A real `heedful serve`, and a real Chromium that looks at it and lets nothing pass."""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright

import chromium
from cars import copied, loop_of_cars
from processes import Process
from served import Opened, Served
from watching import Watch

expect.set_options(timeout=20_000)  # a machine may be busy
SWITCHES = [
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",  # containers have little of it
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


# ---------------------------------------------------------------------------- what is looked at


@pytest.fixture(scope="session")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A loop over 60 cars that nobody has taught yet; tests take copies."""
    return loop_of_cars(tmp_path_factory.mktemp("templates") / "cars.heedful")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, template: Path) -> Iterator[Process]:
    """A server whose folder the tests of a module put their loops in."""
    folder = tmp_path_factory.mktemp("served") / "loops"
    folder.mkdir()
    with Process(folder) as process:
        yield process.wait()


@pytest.fixture
def loop(server: Process, template: Path, request: pytest.FixtureRequest) -> Served:
    """A loop nobody has taught yet, named after the test."""
    stem = re.sub(r"[^a-z0-9]+", "-", request.node.originalname.removeprefix("test_").lower())[:60].strip("-")
    taken = (server.folder / f"{stem}-{n}.heedful" for n in itertools.count(1))
    path = next(path for path in taken if not path.exists())
    return Served(path.stem, copied(template, path), server)


# ---------------------------------------------------------------------------- who looks


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """A Chromium. It ends with the module, as Playwright keeps an event loop running in this thread till then."""
    path = chromium.find()
    assert path is not None, chromium.WANTED
    switches = [*SWITCHES, "--no-sandbox"] if os.geteuid() == 0 else SWITCHES
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=switches)
        try:
            yield browser
        finally:
            browser.close()


@pytest.fixture
def watch() -> Iterator[Watch]:
    """What the pages of this test did that they must not do: nothing."""
    watch = Watch()
    yield watch
    assert watch.found == []


@pytest.fixture
def opened(browser: Browser, watch: Watch) -> Iterator[Opened]:
    """`opened(url, **options)`: a page in a window of its own, of a person of its own; options are of new_context."""
    contexts: list[BrowserContext] = []

    def open(url: str, **options: Any) -> Page:
        context = watch.over(browser.new_context(**options), "/".join(url.split("/")[:3]))
        contexts.append(context)
        context.set_default_timeout(20_000)  # a machine may be busy
        page = context.new_page()
        page.goto(url)
        return page

    yield open
    for context in contexts:
        context.close()


@pytest.fixture
def page(opened: Opened, loop: Served) -> Page:
    """The first page of this test's loop."""
    return opened(loop.url)
