"""What only the pages of a loop of ratings have: who rates, slate after slate, actions, what is liked best and why."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import pytest
from browsing import Visitor, words
from scales import ANN, BASE, RATINGS

from heedful import Loop
from heedful.server.pages.charts import Axis
from loops import rating_loop


def counts(path: Path) -> dict[str, int]:
    with Loop.open(path) as loop:
        return loop.projection.log.counts()


def test_first_somebody_says_who_they_are(visitor: Visitor, tmp_path: Path) -> None:
    path = RATINGS.made(tmp_path)
    seen = visitor.get(BASE)
    assert seen.names == []
    assert seen.all("form[@class='to-grade']") == []
    [field] = seen.all("input[@id='who']")
    assert (field.attrib["name"], "required" in field.attrib) == ("person", True)
    assert "decision" not in counts(path)
    assert len(visitor.get(ANN).names) == 3


@pytest.mark.slow
def test_why_predictions_do_not_fall_from_top_to_bottom_is_said(visitor: Visitor, tmp_path: Path) -> None:
    with rating_loop(tmp_path / "films.heedful", n_items=6, control=0.0, k=6) as loop:
        for t in range(40):
            loop.decide(["i4", "i5"], id=f"d{t}", person=f"p{t}", show=2)
            loop.feedback(f"d{t}", rating={"i4": 1 + 4 * (t % 2), "i5": 3 + t % 2})
    seen = visitor.get(ANN)
    assert seen.at("unordered").startswith("Predictions do not fall from top to bottom: the learner ranks by how good")
    then = RATINGS.give(visitor, seen, seen.names[0], 2, "e")
    assert then.at("unordered").startswith("Cards stay where they are")


def test_the_last_rating_brings_the_next_slate(visitor: Visitor, tmp_path: Path) -> None:
    path = RATINGS.made(tmp_path)
    seen = visitor.get(ANN)
    first = seen.names
    then = RATINGS.give(visitor, seen, first[1], 2, "e1")
    assert "1 of 12 items rated." in words(then.tree)
    for n, name in enumerate((first[0], first[2]), 2):
        then = RATINGS.give(visitor, then, name, 4, f"e{n}")
    assert len(then.names) == 3
    assert not set(then.names) & set(first)
    assert then.kept["decision"] != seen.kept["decision"]
    assert then.said.endswith("That was the last of these; here are the next.")
    assert then.one("section[@id='hand']").attrib["data-lesson"] == "e3"
    assert (counts(path)["decision"], counts(path)["feedback"]) == (2, 3)
    page = visitor.get(ANN)
    second = page.names
    assert set(second) <= {f"i{j}" for j in range(12)} - set(first)
    for n, name in enumerate(second, 4):  # without a script
        answer = visitor.post(f"{BASE}/teach", RATINGS.body(page, name, 3, f"e{n}"))
        page = visitor.get(answer.headers["location"])
        assert (page.names == second) == (n < 6)
    assert not set(page.names) & {*first, *second}
    assert "0 of 12 items rated." in words(visitor.get(f"{BASE}?person=bob").tree)  # who is somebody else


def test_other_cards_are_others_as_long_as_there_are_some(visitor: Visitor, tmp_path: Path) -> None:
    RATINGS.made(tmp_path, n_items=5)
    seen = visitor.get(ANN)
    query = seen.one("a[@id='deal']").attrib["href"].partition("?")[2]
    assert json.loads(parse_qs(query)["past"][0]) == seen.names
    others = visitor.get(f"{BASE}/hand?deal=new&{query}", hx_request="true")
    assert len(others.names) == 2
    assert not set(others.names) & set(seen.names)
    everything = json.dumps([f"i{j}" for j in range(5)])
    assert len(visitor.get(f"{BASE}/hand?deal=new&person=ann&past={everything}").names) == 3


def test_when_all_is_rated_nothing_is_left_until_something_is_taken_back(visitor: Visitor, tmp_path: Path) -> None:
    path = RATINGS.made(tmp_path, n_items=2)
    seen = visitor.get(ANN)
    one, other = seen.names
    RATINGS.give(visitor, seen, one, 5, "e1")
    then = RATINGS.give(visitor, seen, other, 3, "e2")
    assert (then.status, then.names, then.said[-26:]) == (200, [], " That was the last of all.")
    page = visitor.get(ANN)
    assert "ann has rated all 2 items on offer" in words(page.tree)
    assert counts(path)["decision"] == 1
    back = visitor.post(f"{BASE}/undo", page.fields(f"{BASE}/undo"), hx_request="true")
    assert back.names == [other]
    assert back.lessons == {"e2": False, "e1": True}


def test_with_repeats_it_comes_again(visitor: Visitor, tmp_path: Path) -> None:
    RATINGS.made(tmp_path, n_items=2, repeats=True)
    seen = visitor.get(ANN)
    then = RATINGS.give(visitor, RATINGS.give(visitor, seen, "i0", 5, "e1"), "i1", 3, "e2")
    assert sorted(then.names) == ["i0", "i1"]
    assert not any(mark.startswith("You said") for mark in then.marks.values())


# ---------------------------------------------------------------------------- actions


def test_actions_stand_beside_each_other_and_each_is_taken_back_by_its_button(visitor: Visitor, tmp_path: Path) -> None:
    path = RATINGS.made(tmp_path)
    assert visitor.get(ANN).all("button[@name='action']") == []  # the usual ones are asked for
    seen = visitor.get(f"{ANN}&actions=1")
    one = seen.names[0]
    found = [each.attrib["value"] for each in seen.all("ol[@id='cards']/li[1]//button[@name='action']")]
    assert found == ["view", "cart", "buy", "hide"]
    act = {"kind": "action", "actions": "1"}
    RATINGS.give(visitor, seen, one, 0, "e1", action="view", **act)
    then = RATINGS.give(visitor, seen, one, 0, "e2", action="cart", **act)
    assert then.marks[one].startswith("You said cart, view ")
    assert then.lessons == {"e2": True, "e1": True}
    pressed = then.all("button[@aria-pressed='true']")
    assert [(each.attrib["name"], each.attrib["value"]) for each in pressed] == [("back", "e1"), ("back", "e2")]
    assert {each.attrib["formaction"] for each in pressed} == {f"{BASE}/undo"}
    with Loop.open(path) as loop:
        assert [(told.form, told.chosen, told.text) for told in loop.lessons()] == [
            ("actions", (one,), "cart"),
            ("actions", (one,), "view"),
        ]
    form = {"event": "other", "back": "e2", "person": "ann", "hand": seen.kept["hand"], "actions": "1"}
    back = visitor.post(f"{BASE}/undo", form | {"decision": seen.kept["decision"]})
    then = visitor.get(back.headers["location"])
    assert then.marks[one].startswith("You said view ")
    assert len(then.all("ol[@id='cards']/li[1]//button[@name='action']")) == 3  # they stay asked for
    gone = visitor.post(f"{BASE}/undo", {"event": "e1", "person": "ann"}, hx_request="true")
    assert gone.said == f"Taken back: “View: film {one[1:]}”."


def test_actions_as_loud_as_a_rating_finish_a_card_and_a_look_does_not(visitor: Visitor, tmp_path: Path) -> None:
    RATINGS.made(tmp_path, n_items=2, k=1)
    seen = visitor.get(ANN)
    looked = RATINGS.give(visitor, seen, "i0", "", "e1", kind="action", action="view")
    assert looked.names == seen.names == ["i0"]
    bought = RATINGS.give(visitor, seen, "i0", "", "e2", kind="action", action="buy")
    assert bought.names == ["i1"]


def test_actions_of_ones_own_are_always_there(visitor: Visitor, tmp_path: Path) -> None:
    RATINGS.made(tmp_path, actions={"share": (5, 1), "skip <b>": (2, 0.25)})
    seen = visitor.get(ANN)
    assert [words(each) for each in seen.all("ol[@id='cards']/li[1]//button[@name='action']")] == ["share", "skip <b>"]
    assert seen.all("a[@id='acting']") == []
    then = RATINGS.give(visitor, seen, "i0", "", "e1", kind="action", action="share")
    assert "Share: film 0" in words(then.tree)


# ---------------------------------------------------------------------------- what was learned


def taught(path: Path, learner: str | None = None, lists: int = 60, **settings: Any) -> Loop:
    """A loop in which the later items are liked by all; six people, one list in two left to chance."""
    loop = rating_loop(path, learner, 20, **{"control": 0.5, "repeats": True} | settings)
    for n in range(lists):
        decision = loop.decide(id=f"d{n}", person=f"p{n % 6}")
        rating = {name: min(max(1 + int(name[1:]) // 4 - (n % 6 == 5), 1), 5) for name in decision.shown}
        loop.feedback(decision.id, id=f"e{n}", rating=rating)
    return loop


def test_what_is_liked_best_is_what_the_loop_expects(visitor: Visitor, tmp_path: Path) -> None:
    with taught(tmp_path / "films.heedful", repeats=False, lists=12) as loop:
        expected = {who: list(loop.predict(person=who).items())[:10] for who in (None, "p1")}
        rated = {name: value for each in loop.lessons(person="p1") for name, value in zip(each.chosen, each.values)}
    assert set(rated) & {name for name, _ in expected["p1"]}
    for who, best in expected.items():
        page = visitor.get(f"{BASE}/learned{f'?person={who}' if who else ''}")
        rows = page.all("table[@class='weights beliefs']/tbody/tr")
        own = {name: f" said {rated[name]:g}" if who and name in rated else "" for name, _ in best}
        assert [words(row.find("th")) for row in rows] == [f"film {name[1:]}{own[name]}" for name, _ in best]
        told = [words(row.find("td[@class='number']")) for row in rows]
        assert told == [f"{each.value:.1f} ±give or take {each.spread:.1f}" for _, each in best]
        for row, (_, each) in zip(rows, best):
            [rect] = row.findall(".//rect[@class='range']")
            assert each.spread is not None
            low, high = max(each.value - each.spread, 1.0), min(each.value + each.spread, 5.0)
            assert float(rect.attrib["x"].rstrip("%")) == pytest.approx(25 * (low - 1), abs=0.01)
            assert float(rect.attrib["width"].rstrip("%")) == pytest.approx(25 * (high - low), abs=0.02)
        assert f"The highest predictions for {who or 'somebody new'}, on a scale from 1 to 5" in page.at("weights")


def test_a_learner_without_an_opinion(visitor: Visitor, tmp_path: Path) -> None:
    taught(tmp_path / "films.heedful", "random-item", 4, control=0.0).close()
    assert set(visitor.get(ANN).marks.values()) == {"No prediction yet"}
    page = visitor.get(f"{BASE}/learned?person=p1")
    assert "Its learner, random-item, predicts no ratings." in page.at("weights")
    assert "The learner does not say what it expects." in page.at("report")
    [link] = [each.attrib["href"] for each in page.all("a") if words(each) == "See why"]
    assert link.startswith("/loops/films/why?decision=")
    assert "RandomItem gives items no score." in visitor.get(link).at("explanation")


@pytest.mark.parametrize(
    ("value", "span", "text"),
    [
        (3.14159, 4, "3.1"),
        (-0.04, 4, "0.0"),
        (-2.26, 20, "−2.3"),
        (51.6, 100, "52"),
        (0.123, 1, "0.12"),
        (-2e60, 1e61, "−2e+60"),
    ],
)
def test_numbers_are_told_to_as_many_places_as_mean_something(value: float, span: float, text: str) -> None:
    assert Axis(0.0, span).number(value) == text
