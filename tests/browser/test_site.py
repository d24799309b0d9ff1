"""The site builds without a warning, loads nothing from another host, can be searched, and read by all."""

from __future__ import annotations

import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from functools import partial
from html.parser import HTMLParser
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from accessible import findings
from served import Opened

ROOT = Path(__file__).resolve().parents[2]


class Loads(HTMLParser):
    """What a page loads by itself: scripts, styles, pictures, frames; links that a person follows are none of it."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found = set[str]()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        names = ["src", "srcset", "data", "poster", "action"] + (["href"] if tag in ("link", "use", "image") else [])
        self.found |= {value for name in names if (value := given.get(name)) is not None}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("sphinx", reason="`make setup` installs Sphinx")
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "sphinx", "--fail-on-warning", "--keep-going", "--quiet", "--conf-dir", "docs"]
    command += ["--doctree-dir", str(folder / "doctrees"), ".", str(folder / "html")]
    built = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (built.returncode, built.stderr) == (0, ""), built.stderr[-5000:]
    return folder / "html"


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture(scope="module")
def address(site: Path) -> Iterator[str]:
    """Where the site is served: axe reads styles, which a browser lets it do over HTTP alone."""
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(site))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def test_every_page_is_there(site: Path) -> None:
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    assert [page for page in pages if not (site / page.relative_to(ROOT)).with_suffix(".html").exists()] == []
    assert (site / "index.html").read_bytes() == (site / "README.html").read_bytes()


def test_no_page_loads_anything_from_another_host(site: Path) -> None:
    pages = [*site.rglob("*.html")]
    assert len(pages) > 100
    for page in pages:
        loaded = Loads(page.read_text()).found
        assert [each for each in loaded if re.match(r"(\w+:)?//", each)] == [], page
    for style in site.rglob("*.css"):
        assert not re.search(r"@import|url\(\s*['\"]?(https?:)?//", style.read_text()), style


def test_what_is_written_from_the_code_is_there(site: Path) -> None:
    for page, found in {
        "commands": ("keys create", "--exploration", "heedful decide cars --person ann"),
        "http": ("POST /v1/loops/{loop}/decisions", "lost-decision", "where there are fewer, all of them"),
        "settings": ("snapshot_every", "20000"),
        "api": ("Posterior", "regret_bound", "AsyncClient", "CoactiveRanker"),
    }.items():
        text = re.sub(r"<[^>]+>", "", (site / "docs" / "reference" / f"{page}.html").read_text())
        assert [each for each in found if each not in text] == [], page


def test_the_search_has_an_index_that_needs_no_server(site: Path) -> None:
    index = (site / "searchindex.js").read_text()
    assert index.startswith("Search.setIndex(")
    for word in ("propens", "interleav", "docs/reference/http"):
        assert word in index
    assert "searchindex.js" in (site / "search.html").read_text()


@pytest.mark.parametrize(
    "page",
    [
        "index",
        "docs/start/search",
        "docs/operations",
        "docs/http",
        "docs/papers",
        "docs/notebooks/arena",
        "docs/reference/commands",
        "docs/reference/http",
        "docs/reference/api",
        "search",
    ],
)
def test_axe_finds_nothing_in_light_or_dark_wide_or_narrow(address: str, opened: Opened, page: str) -> None:
    shown = opened(f"{address}/{page}.html")
    for width in (1280, 390):
        shown.set_viewport_size({"width": width, "height": 800})
        assert findings(shown) == []
