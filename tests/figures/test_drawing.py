"""Pictures and the page: they are written, the same each time, and the page asks nobody for anything."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

from figures.invented import invented
from heedful.figures import FIGURES
from heedful.figures.figure import verdicts
from heedful.figures.page import Drawn, page

ONE_OF_EACH = ("jair2015/fig1", "jair2015/fig2", "jair2015/fig16", "jair2015/lemma3", "jair2015/fig9", "jair2015/fig13")
ONE_OF_EACH += ("nips2012/fig1", "nips2012/fig2")


@pytest.fixture(autouse=True)
def _matplotlib() -> None:
    pytest.importorskip("matplotlib")


@pytest.mark.parametrize("name", ONE_OF_EACH)
def test_every_kind_of_panel_is_drawn(name: str, tmp_path: Path) -> None:
    from heedful.figures.drawing import draw

    figure = FIGURES[name]
    outcome = invented(figure, np.random.default_rng(2))
    first, second, picture = tmp_path / "a.svg", tmp_path / "b.svg", tmp_path / "a.png"
    draw(figure, outcome, [first, picture])
    draw(figure, outcome, [second])
    assert first.read_bytes() == second.read_bytes()
    assert first.read_text().startswith("<?xml")
    assert picture.read_bytes()[:4] == b"\x89PNG"


@pytest.mark.parametrize("name", ["jair2015/fig2", "jair2015/fig15"])
def test_where_the_queries_come_again_is_marked(name: str, tmp_path: Path) -> None:
    from heedful.figures.drawing import draw

    figure, written = FIGURES[name], []
    for once in (0, 120):
        outcome = invented(figure, np.random.default_rng(2))
        outcome["web"] = {label: ran._replace(once=once) for label, ran in outcome["web"].items()}
        draw(figure, outcome, [tmp_path / "a.svg"])
        written.append((tmp_path / "a.svg").read_text())
    words = "t = 120 (one pass)" if name.endswith("15") else "120: the same queries again"
    assert words not in written[0]
    assert words in written[1]


def test_what_was_not_run_is_not_drawn(tmp_path: Path) -> None:
    from heedful.figures.drawing import draw

    figure = FIGURES["jair2015/fig2"]
    with pytest.raises(ValueError, match="jair2015/fig2"):
        draw(figure, {}, [tmp_path / "a.png"])
    outcome = invented(figure, np.random.default_rng(2))
    del outcome["movies"]
    draw(figure, outcome, [tmp_path / "a.png"])
    assert (tmp_path / "a.png").exists()


class Tags(HTMLParser):
    """Opens and closes; what is fetched."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.fetched: list[str] = []
        self.images: list[dict[str, str | None]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in ("meta", "img", "br"):
            self.open.append(tag)
        if tag == "img":
            self.images.append(dict(attrs))
        self.fetched += [value or "" for name, value in attrs if name in ("src", "href")]

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_the_page_has_every_figure_beside_its_sentences(tmp_path: Path) -> None:
    picture = tmp_path / "a.svg"
    picture.write_text("<svg/>")
    drawn = []
    for figure in FIGURES.values():
        without = figure.id == "jair2015/fig1"
        outcome = {} if without else invented(figure, np.random.default_rng(4))
        drawn.append(Drawn(figure, verdicts(figure, outcome), None if without else picture, 1.0, ""))
    text = page(drawn, "Tried <out>.")
    tags = Tags()
    tags.feed(text)
    assert tags.open == []
    assert all(link.startswith(("data:image/svg+xml;base64,", "#")) for link in tags.fetched)
    assert len(tags.images) == len(FIGURES) - 1
    assert all(image["alt"] for image in tags.images)
    assert "Tried &lt;out&gt;." in text
    for figure in FIGURES.values():
        assert f'id="{figure.id.replace("/", "-")}"' in text
        for claim in figure.claims:
            assert claim.says.replace("'", "&#x27;") in text
    assert "not run" in text
    assert set(re.findall(r'href="#([^"]+)"', text)) == set(re.findall(r'<section id="([^"]+)"', text))
