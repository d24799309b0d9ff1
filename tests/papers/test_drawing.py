"""Pictures and the page: they are written, the same each time, and the page asks nobody for anything."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from heedful.papers import FIGURES
from heedful.papers.figure import verdicts
from heedful.papers.page import Drawing, page
from papers.invented import invented

ONE_OF_EACH = ("jair2015/fig1", "jair2015/fig2", "jair2015/fig16", "jair2015/lemma3", "jair2015/fig9", "jair2015/fig13")
ONE_OF_EACH += ("nips2012/fig1", "nips2012/fig2")


@pytest.fixture(autouse=True)
def _matplotlib() -> None:
    pytest.importorskip("matplotlib")


@pytest.mark.slow
@pytest.mark.parametrize("name", ONE_OF_EACH)
def test_every_kind_of_panel_is_drawn(name: str, tmp_path: Path) -> None:
    from heedful.papers.drawing import draw

    figure, vectors = FIGURES[name], tmp_path / "a.svg"
    outcome = invented(figure, np.random.default_rng(2))
    draw(figure, outcome, [vectors])
    assert vectors.read_text().startswith("<?xml")


@pytest.mark.slow
def test_a_figure_is_drawn_the_same_again(tmp_path: Path) -> None:
    from heedful.papers.drawing import draw

    figure, files = FIGURES["jair2015/fig1"], [tmp_path / "a.svg", tmp_path / "a.png"]
    outcome, written = invented(figure, np.random.default_rng(2)), []
    for _ in range(2):
        draw(figure, outcome, files)
        written.append([file.read_bytes() for file in files])
    assert written[0] == written[1]
    assert written[0][1][:4] == b"\x89PNG"


def drawn(
    name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, *, rendered: bool = False, once: int | None = None
) -> tuple[Any, Any]:
    """The sheet of a figure of noise, and what was drawn on it. It is laid out only where it is rendered, which takes
    a second. The queries of "web" come again after round `once`."""
    import matplotlib.figure

    from heedful.papers.drawing import draw

    sheets = []
    save = matplotlib.figure.Figure.savefig

    def kept(sheet: Any, *args: Any, **how: Any) -> None:
        sheets.append(sheet)
        if rendered:
            save(sheet, *args, **how)

    monkeypatch.setattr(matplotlib.figure.Figure, "savefig", kept)
    outcome = invented(FIGURES[name], np.random.default_rng(2))
    if once is not None:
        outcome["web"] = {label: ran._replace(once=once) for label, ran in outcome["web"].items()}
    draw(FIGURES[name], outcome, [tmp_path / "a.png"])
    return sheets[0], outcome


def texts(sheet: Any) -> str:
    """All that is written on a sheet."""
    from matplotlib.text import Text

    return "\n".join(text.get_text() for text in sheet.findobj(Text))


def colours(axes: Any) -> dict[str, str]:
    """Of every line in a legend, its colour."""
    return {text.partition(":")[0]: line.get_color() for line, text in zip(*axes.get_legend_handles_labels())}


@pytest.mark.slow
@pytest.mark.parametrize(
    "figure", [figure for figure in FIGURES.values() if figure.panels[0].kind in ("curves", "growth")]
)
def test_a_line_has_one_colour_in_a_figure_and_no_other_has_it(
    figure: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    sheet, _ = drawn(figure.id, monkeypatch, tmp_path)
    found: dict[str, set[str]] = {}
    for axes in sheet.axes:
        if axes.get_ylabel() != figure.panels[0].measure.axis and axes.get_xlabel() != "round t":
            continue  # bars of the same figure
        of = colours(axes)
        assert len(set(of.values())) == len(of)
        for label, colour in of.items():
            found.setdefault(label.partition(" (")[0], set()).add(colour)
    assert found
    assert all(len(colour) == 1 for colour in found.values()), found


def test_colours_can_be_told_apart() -> None:
    """By their distance in CIE L*a*b* (D65); 20 is plain to see."""
    from heedful.papers.drawing import COLORS

    def lab(code: str) -> np.ndarray:
        rgb = np.array([int(code[i : i + 2], 16) for i in (1, 3, 5)]) / 255.0
        linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
        xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]) @ linear
        f = np.cbrt(xyz / [0.9505, 1.0, 1.089])
        f = np.where(xyz / [0.9505, 1.0, 1.089] > 0.008856, f, 7.787 * xyz / [0.9505, 1.0, 1.089] + 16.0 / 116.0)
        return np.array([116.0 * f[1] - 16.0, 500.0 * (f[0] - f[1]), 200.0 * (f[1] - f[2])])

    places = [lab(code) for code in COLORS]
    nearest = min(np.linalg.norm(a - b) for i, a in enumerate(places) for b in places[:i])
    assert nearest > 20.0
    assert max(place[0] for place in places) < 80.0  # dark enough on white


@pytest.mark.slow
def test_no_legend_covers_a_bound(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The legends of the bounds stand below their axes."""
    sheet, _ = drawn("jair2015/fig5", monkeypatch, tmp_path, rendered=True)
    bounded = [axes for axes in sheet.axes if "with the bounds" in axes.get_title(loc="left")]
    assert len(bounded) == 2
    sheet.canvas.draw()
    for axes in bounded:
        legend, frame = axes.get_legend().get_window_extent(), axes.get_window_extent()
        assert legend.y1 <= frame.y0
        assert legend.y0 >= 0.0  # on the sheet


def test_sweeps_have_logarithmic_axes(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    sheet, _ = drawn("jair2015/fig15", monkeypatch, tmp_path)
    assert [(axes.get_xscale(), axes.get_yscale()) for axes in sheet.axes] == [("log", "log")]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["jair2015/fig2", "jair2015/fig15"])
def test_where_the_queries_come_again_is_marked(name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    written = []
    for once in (0, 120):
        sheet, _ = drawn(name, monkeypatch, tmp_path, once=once)
        written.append(texts(sheet))
    words = "t = 120 (one pass)" if name.endswith("15") else "120: the same queries again"
    assert words not in written[0]
    assert words in written[1]


@pytest.mark.slow
def test_what_was_not_run_is_not_drawn(tmp_path: Path) -> None:
    from heedful.papers.drawing import draw

    figure = FIGURES["jair2015/fig2"]
    with pytest.raises(ValueError, match="jair2015/fig2"):
        draw(figure, {}, [tmp_path / "a.png"])
    outcome = invented(figure, np.random.default_rng(2))
    del outcome["movies"]
    draw(figure, outcome, [tmp_path / "a.png"])
    assert (tmp_path / "a.png").exists()


def test_lines_can_be_told_apart_in_grey() -> None:
    """By a dash or a mark; a figure has at most eleven lines of a colour each."""
    from heedful.papers.drawing import COLORS, _styles

    styles = _styles([f"line {i}" for i in range(len(COLORS))])
    grey = [(style["linestyle"], style.get("marker")) for style in styles.values()]
    assert len(set(grey)) == len(grey)
    assert {*_styles(["one", "two"])["two"]} == {"color", "linestyle"}  # marks where dashes do not do


@pytest.mark.slow
def test_a_figure_for_print(tmp_path: Path) -> None:
    """Text is text; what bands are and that a run was quick stands below."""
    from heedful.papers.drawing import draw

    figure = FIGURES["jair2015/fig2"]
    picture, sheet = tmp_path / "a.svg", tmp_path / "a.pdf"
    draw(figure, invented(figure, np.random.default_rng(2)), [picture, sheet], quick=True)
    svg = picture.read_text()
    texts = " ".join(re.findall(r"<text[^>]*>([^<]*)</text>", svg))
    assert "Bands are one standard error." in texts
    assert "A quick run" in texts
    assert figure.title[:20] in texts
    assert figure.id not in texts
    assert b"/FontFile2" in sheet.read_bytes()  # TrueType, in which text can be selected and set again


@pytest.mark.slow
def test_only_a_quick_run_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    sheet, _ = drawn("jair2015/fig2", monkeypatch, tmp_path)
    assert FIGURES["jair2015/fig2"].title[:20] in texts(sheet)
    assert "quick" not in texts(sheet)


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


@pytest.mark.slow
def test_the_page_has_every_figure_beside_its_sentences(tmp_path: Path) -> None:
    picture = tmp_path / "a.svg"
    picture.write_text("<svg/>")
    drawn = []
    for figure in FIGURES.values():
        without = figure.id == "jair2015/fig1"
        outcome = {} if without else invented(figure, np.random.default_rng(4))
        drawn.append(Drawing(figure, verdicts(figure, outcome), None if without else picture, 1.0, ""))
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
