"""What a notebook shows of loops, decisions, reports, explanations, rankings and figures; the same as data frames."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import heedful
from heedful import Loop, Settings, infer, rank
from heedful.core.notebooks import ROWS, table
from heedful.papers import find_figure
from heedful.papers.figure import verdicts
from heedful.papers.page import Drawing
from loops import choice_loop, small_loop

HOSTILE = '<script>alert("x")</script><img src=x onerror=alert(1)>&amp;'
TEAS = Path(__file__).resolve().parents[1] / "examples" / "teas.csv"


class Tags(HTMLParser):
    """The tags of a document, those that are not closed, and its text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.text = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag != "img":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def shown(result: Any) -> Tags:
    """What a notebook shows of a result: well formed, without scripts, addresses, colours that vanish in the dark."""
    text = result._repr_html_()
    read = Tags(text)
    assert read.open == []
    assert {tag for tag, _ in read.tags} <= {
        "div", "table", "caption", "thead", "tbody", "tr", "th", "td", "img",
    }  # fmt: skip
    for tag, attributes in read.tags:
        assert not [name for name in attributes if name.startswith("on")]
        assert tag != "img" or (attributes["src"] or "").startswith("data:image/")
        style = attributes.get("style") or ""
        assert tag == "img" or not re.search(r"#[0-9a-f]{3}|background:(?!transparent)|color:(?!inherit)", style), style
    return read


@pytest.fixture
def taught(tmp_path: Path) -> Iterator[Loop]:
    """A loop whose items and columns are called as somebody who means harm would call them."""
    rows = [{"id": f"{HOSTILE}{j}", f"size {HOSTILE}": float(j), "price": float(j * j % 7)} for j in range(5)]
    encoding = infer(rows, identifier="id")
    with Loop.create(tmp_path / "a.heedful", encoding=encoding, items=rows, settings=Settings(control=0.0)) as loop:
        for i in range(4):
            decision = loop.decide(person=f"p{i}", show=3)
            loop.feedback(decision.id, clicks=[decision.shown[-1]])
        yield loop


def test_every_result_of_a_loop_is_a_table_whatever_things_are_called(taught: Loop) -> None:
    decision = taught.decide(person="p0")
    for result in (taught, decision, taught.why(decision.id), taught.report()):
        read = shown(result)
        assert "script" not in {tag for tag, _ in read.tags}
    assert f"size {HOSTILE}" in shown(taught).text
    assert f"{HOSTILE}0" in shown(decision).text
    assert decision.shown[0] in shown(taught.why(decision.id)).text
    assert "No list is left in its own order, as control is 0" in shown(taught.report()).text


def test_standings_and_reports_of_every_kind_of_loop(tmp_path: Path) -> None:
    with choice_loop(tmp_path / "c.heedful") as loop:
        decision = loop.decide(person=HOSTILE)
        loop.feedback(decision.id, choice="first")
        assert HOSTILE in shown(loop.standing(HOSTILE)).text
        assert decision.shown[0] in shown(loop.standing()).text
        shown(loop.report())
        shown(loop.why(loop.decide(person=HOSTILE).id))
        frame = loop.standing().to_frame()
        assert frame["item"].tolist() == list(loop.standing().items)
        assert list(frame.columns) == [
            *("place", "item", "best", "place_low", "place_high", "better_than_next", "told_apart"),
            *("utility", "utility_low", "utility_high", "comparisons"),
        ]
    with small_loop(tmp_path / "g.heedful", learner="ordinal-logistic:n_ranks=5") as loop:
        decision = loop.decide(["i0", "i1"])
        loop.feedback(decision.id, grade={"i0": 4})
        assert "Mean |predicted − given|, over 1 answer: predictions 1.00" in shown(loop.report()).text
        assert loop.report().prediction.to_frame()["answers"].sum() == 1


def test_results_become_data_frames(taught: Loop) -> None:
    decision = taught.decide(person="p0")
    frame = decision.to_frame()
    assert isinstance(frame, pd.DataFrame)
    assert frame["item"].tolist() == list(decision.shown)
    told = taught.why(decision.id)
    assert told.to_frame().to_dict("list") == {
        name: [getattr(part, name) for part in told.features] for name in ("name", "value", "weight", "counts", "lead")
    }
    report = taught.report()
    frame = report.to_frame()
    assert frame["learned_shown"].sum() == report.learned.shown
    assert list(frame.columns)[:2] == ["seq", "time"]
    assert report.to_frame("pyarrow").column_names == list(frame.columns)


# ---------------------------------------------------------------------------- rankings


def test_a_ranking_of_a_frame_is_that_of_the_file() -> None:
    """`rank` of what pandas read is what `heedful rank` says of the file."""
    told = rank(TEAS)
    frame = rank(pd.read_csv(TEAS))
    assert frame.items == told.items
    assert frame.to_dict() | {"file": ""} == told.to_dict() | {"file": ""}
    assert heedful.rank is rank
    rows = told.to_frame()
    assert rows["item"].tolist() == list(told.items)
    assert rows["best"].sum() == pytest.approx(1.0, abs=0.02)
    assert (rows["place_low"] <= rows["place_high"]).all()
    read = shown(told)
    assert "assam" in read.text
    assert "Ask" not in read.text


def test_a_ranking_takes_what_the_command_takes() -> None:
    frame = pd.DataFrame({"Gewinner": [HOSTILE, "b", HOSTILE], "Verlierer": ["b", "c", "c"], "wer": ["x", "x", "y"]})
    columns = {"winner": "Gewinner", "loser": ["Verlierer"], "person": "wer"}
    everybody = rank(frame, columns=columns, goal="ranking")
    assert everybody.estimate.choices.people == ("x", "y")
    assert everybody.board.verdict is not None
    assert everybody.board.verdict.goal == "ranking"
    one = rank(frame, columns=columns, person="y")
    assert one.board.person == "y"
    assert HOSTILE in shown(one).text
    assert rank(frame, columns=columns, pool=True).estimate.choices.people == ("",)
    assert rank(frame, columns=columns, without=["y"]).estimate.choices.people == ("x",)
    items = pd.DataFrame({"id": [HOSTILE, "b", "c", "d"], "size": [4.0, 2.0, 1.0, 3.0]})
    assert set(rank(frame, columns=columns, items=items, pool=True).items) == {HOSTILE, "b", "c", "d"}
    rows: Any = frame.to_dict("records")
    assert rank(rows, columns=columns).items == everybody.items


def test_a_ranking_is_anchored_as_the_command_anchors() -> None:
    """Who is anchored has the score that was told; differences are as without. By default the average has 1,000."""
    free, fixed = rank(TEAS).to_frame(), rank(TEAS, anchor=("matcha", 1500)).to_frame()
    assert free["score"].mean() == pytest.approx(1000.0)
    at = fixed["item"].tolist().index("matcha")
    assert fixed["score"][at] == fixed["score_low"][at] == fixed["score_high"][at] == 1500.0
    assert np.ptp(fixed["score"] - free["score"]) == pytest.approx(0.0, abs=1e-6)
    assert (free["score_low"] < free["score"]).all()


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"sure": 0.2}, "sure: expected a number from 0.5 to 0.999, got 0.2"),
        ({"goal": "worst"}, "goal: expected best or ranking, got 'worst'"),
        ({"person": "nobody"}, "person: expected one of 'ada', 'ben', "),
        ({"without": ["nobody"]}, "without: expected one of 'ada', 'ben', "),
        ({"identifier": "name"}, "identifier: expected items, whose column it is, got none"),
        ({"anchor": "assam"}, "anchor: expected an item and its score, such as ('name', 1000), got 'assam'"),
        ({"anchor": ("coffee", 1000)}, "anchor: expected one of 'assam', 'camomile', "),
        ({"anchor": ("assam", "high")}, "anchor: expected a score from -1,000,000 to 1,000,000, got 'high'"),
        ({"anchor": ("assam", float("nan"))}, "anchor: expected a score from -1,000,000 to 1,000,000, got nan"),
        ({"choices": 3}, "choices: expected a data frame, rows as objects, or a file, got 3"),
        ({"choices": []}, "choices: rows: expected at least one, got none"),
        ({"choices": [3]}, "choices: row 1: expected an object, values by column, got 3"),
        ({"choices": [{"winner": "a", "loser": "a"}]}, "choices: row 1: loser: expected another item than in winner"),
    ],
)
def test_what_a_ranking_refuses(given: dict[str, Any], told: str) -> None:
    given = {"choices": TEAS} | given
    with pytest.raises(ValueError, match=f"^{re.escape(told)}"):
        rank(given.pop("choices"), **given)


# ---------------------------------------------------------------------------- figures, tables


def test_a_figure_shows_its_claims_and_a_picture_that_stands_alone(tmp_path: Path) -> None:
    figure = find_figure("jair2015/fig7")
    assert figure.claims[0].says in shown(figure).text
    picture = tmp_path / "f.svg"
    picture.write_text("<svg xmlns='http://www.w3.org/2000/svg'/>")
    drawn = Drawing(figure, verdicts(figure, {}), picture, 1.0, "")
    read = shown(drawn)
    assert "not run" in read.text
    assert [tag for tag, _ in read.tags].count("img") == 1


def test_a_long_table_says_how_much_there_is() -> None:
    text = table("t", ["a", "b"], [(i, None) for i in range(ROWS + 1234)], ["", "a note"])
    read = Tags(text)
    assert [tag for tag, _ in read.tags].count("tr") == ROWS + 1
    assert "and 1,234 more" in read.text
    assert read.text.endswith("a note")


def test_a_ranking_prints_in_one_line() -> None:
    ranking = rank(TEAS)
    assert ranking.board.verdict is not None
    assert repr(ranking) == (
        f"<PreferenceRanking of {len(ranking.items)} items from {ranking.file}: "
        f"1 {ranking.items[0]!r}, 2 {ranking.items[1]!r}, 3 {ranking.items[2]!r}, ...; "
        f"{'sure enough' if ranking.board.verdict.stop else 'not sure enough yet'} (0.9)>"
    )
