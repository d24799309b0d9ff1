"""The pages of loops whose cards are given numbers, grades and ratings by the same tests: what they predict and show,
what a number does, what is refused."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from browsing import Visitor, words
from scales import BASE, CALM, GRADES, RATINGS, Numbers

from heedful import Loop
from heedful.server.keys import Keys
from heedful.server.pages import scale_widget
from loops import bits, small_loop

each = pytest.mark.parametrize("kind", [GRADES, RATINGS], ids=lambda kind: kind.form)


@each
def test_every_card_has_what_is_predicted_and_a_button_for_each_number(
    visitor: Visitor, kind: Numbers, tmp_path: Path
) -> None:
    path = kind.made(tmp_path)
    nothing = {"grade": "Predicted: 3", "rating": "No prediction yet"}[kind.form]
    assert set(kind.get(visitor).marks.values()) == {nothing}
    with Loop.open(path) as loop:
        for n, given in enumerate([1, 5, 2, 4, 3, 1]):
            loop.decide([f"i{n}"], id=f"d{n}", person="bob")
            loop.feedback(f"d{n}", id=f"e{n}", **{kind.form: {f"i{n}": given}})
        loop.withdraw("i11")
    seen = kind.get(visitor)
    assert len(seen.names) == kind.shown
    with Loop.open(path) as loop:
        predicted = loop.predict(seen.names, person=kind.person or None)
        known = loop.projection.find_decision(seen.kept["decision"])
        assert known is not None
        assert (known.person, [known.names[j] for j in known.record.shown]) == (kind.person or None, seen.names)
        assert known.record.of == (11 if kind is RATINGS else 0)  # ratings choose the cards out of all
        assert known.record.predicted == pytest.approx([predicted[name].value for name in seen.names], abs=1e-5)
    assert list(predicted) == seen.names  # the highest first
    assert seen.marks == {name: f"Predicted: {kind.told(each)}" for name, each in predicted.items()}
    for card in seen.all("ol[@id='cards']/li"):
        buttons = card.findall(f".//button[@name='{kind.form}']")
        assert [button.attrib["value"] for button in buttons] == ["1", "2", "3", "4", "5"]
        [marked] = [button for button in buttons if "data-predicted" in button.attrib]
        assert abs(int(marked.attrib["value"]) - predicted[card.attrib["data-key"]].value) <= 0.5
        assert words(marked) == f"{marked.attrib['value']} of 1 to 5, nearest to the prediction"
        assert {button.attrib["aria-pressed"] for button in buttons} == {"false"}
        assert card.find(".//*[@role='group']").attrib["aria-labelledby"]  # type: ignore[union-attr]
        assert words(card.find(".//h2")) == kind.title(card.attrib["data-key"])
    for coactive in ("None of these", "rather have", "drag"):
        assert coactive not in seen.html


@pytest.mark.parametrize(
    ("kind", "how", "buttons", "bounds"),
    [
        (GRADES, {"learner": f"prank:n_ranks={scale_widget.BUTTONS}"}, range(1, scale_widget.BUTTONS + 1), ()),
        (GRADES, {"learner": "prank:n_ranks=100"}, (), ("1", "100", "1")),
        (RATINGS, {"ratings": (1, 5)}, range(1, 6), ()),
        (RATINGS, {"ratings": (0, 10)}, range(11), ()),
        (RATINGS, {"ratings": (-2, 2)}, range(-2, 3), ()),
        (RATINGS, {"ratings": (1, 12)}, (), ("1", "12", "any")),
        (RATINGS, {"ratings": (0.5, 5)}, (), ("0.5", "5", "any")),
        (RATINGS, {"ratings": (-10, 10)}, (), ("-10", "10", "any")),
    ],
)
def test_few_whole_numbers_have_buttons_and_others_are_typed_in(
    visitor: Visitor, tmp_path: Path, kind: Numbers, how: dict[str, Any], buttons: Any, bounds: tuple[str, ...]
) -> None:
    path = kind.made(tmp_path, **how)
    seen = kind.get(visitor)
    found = seen.all(f"ol[@id='cards']/li[1]//button[@name='{kind.form}']")
    assert [each.attrib["value"] for each in found] == [str(number) for number in buttons]
    fields = seen.all(f"input[@name='{kind.form}']")
    assert len(fields) == (0 if buttons else kind.shown)
    for field in fields:
        assert tuple(field.attrib[name] for name in ("min", "max", "step")) == bounds
        assert field.attrib["type"] == "number"
    value = str(buttons[0]) if buttons else "3" if kind is GRADES else "3.25"
    kind.give(visitor, seen, seen.names[0], value, "e1")
    with Loop.open(path) as loop:
        [told] = loop.lessons()
        assert told.values == (float(value),)


@each
def test_a_number_is_one_lesson_and_the_card_says_what_came_of_it(
    visitor: Visitor, kind: Numbers, tmp_path: Path
) -> None:
    path = kind.made(tmp_path)
    seen = kind.get(visitor)
    item, other = seen.names[2], seen.names[1]
    then = kind.give(visitor, seen, item, 2, "e1")
    assert then.status == 200
    with Loop.open(path) as loop:
        [told] = loop.lessons()
        found = told.form, told.chosen, told.values, told.person, told.decision
        assert found == (kind.form, (item,), (2.0,), kind.person or None, seen.kept["decision"])
        now = {name: kind.told(each) for name, each in loop.predict(seen.names, person=kind.person or None).items()}
    assert then.names == seen.names  # nothing moves from under the hand
    expected = {name: f"Predicted: {told}" for name, told in now.items()}
    assert then.marks == expected | {item: f"You said 2 · predicted now: {now[item]}"}
    before = "Predicted before: 3, now: " if kind is GRADES else "Predicted now: "
    assert then.said.startswith(f"{kind.title(item)}: 2. {before}")
    assert then.one("section[@id='hand']").attrib["data-lesson"] == "e1"
    assert f"{kind.said} {kind.title(item)}: 2" in words(then.tree)
    [pressed] = then.all("button[@aria-pressed='true']")
    assert (pressed.attrib["value"], pressed.attrib["data-focus"]) == ("2", f"{kind.form} 2 {item}")
    again = kind.give(visitor, then, other, 4, "e2")
    assert again.kept["decision"] == seen.kept["decision"]  # both answer the one list
    with Loop.open(path) as loop:
        counts, report = loop.projection.log.counts(), loop.report().prediction
        assert (counts["decision"], counts["feedback"]) == (1, 2)
        assert report is not None
        assert report.answers == 2
    back = visitor.post(f"{BASE}/undo", {"event": "e1", "person": kind.person, **again.kept}, hx_request="true")
    assert back.said == f"Taken back: “{kind.said} {kind.title(item)}: 2”."


@each
def test_a_second_number_of_a_card_stands_in_place_of_the_first(
    visitor: Visitor, kind: Numbers, tmp_path: Path
) -> None:
    """Also where the first is sent again; what was said of other cards is left alone."""
    path = kind.made(tmp_path)
    seen = kind.get(visitor)
    one, other = seen.names[:2]
    kind.give(visitor, seen, one, 1, "e1")
    kind.give(visitor, seen, other, 4, "e2")
    then = kind.give(visitor, seen, one, 3, "e3")
    assert then.lessons == {"e3": True, "e2": True, "e1": False}
    assert then.marks[one].startswith("You said 3 ")
    again = kind.give(visitor, seen, one, 1, "e1")
    assert (again.status, again.lessons, again.marks) == (200, then.lessons, then.marks)
    assert kind.give(visitor, seen, one, 2, "e1").status == 409
    kind.give(visitor, seen, one, 3, "e3")
    with Loop.open(path) as loop:
        left = bits(loop)
        assert loop.projection.log.counts()["undo"] == 1
        assert loop.verify() == []
    with Loop.open(kind.made(tmp_path, "plain")) as loop:
        decision = loop.decide(json.loads(seen.kept["hand"]), person=kind.person or None)
        loop.feedback(decision.id, **{kind.form: {other: 4}})
        loop.feedback(decision.id, **{kind.form: {one: 3}})
        assert bits(loop) == left


@each
def test_an_answer_that_is_about_several_is_not_taken_back_for_one(
    visitor: Visitor, kind: Numbers, tmp_path: Path
) -> None:
    path = kind.made(tmp_path)
    seen = kind.get(visitor)
    one, other = seen.names[:2]
    both = {"decision": seen.kept["decision"], "id": "both", kind.form: {one: 2, other: 4}}
    visitor.http.post("/v1/loops/films/feedback", json=both).raise_for_status()
    then = kind.give(visitor, seen, one, 3, "e1")
    assert then.lessons == {"e1": True, "both": True}
    assert [then.marks[name][:10] for name in (one, other)] == ["You said 3", "You said 4"]
    with Loop.open(path) as loop:
        assert "undo" not in loop.projection.log.counts()


@each
def test_without_a_script_each_card_has_its_own_event(visitor: Visitor, kind: Numbers, tmp_path: Path) -> None:
    """So that none takes another's for a repetition."""
    kind.made(tmp_path)
    seen = kind.get(visitor)
    cards = seen.all("form[@class='to-grade']")
    assert len({card.find("input[@name='event']").attrib["value"] for card in cards}) == kind.shown  # type: ignore[union-attr]
    forms = [{field.attrib["name"]: field.get("value", "") for field in card.iter("input")} for card in cards]
    assert [form["item"] for form in forms] == seen.names
    for form, value in zip(forms[:2], "52"):
        then = visitor.post(f"{BASE}/teach", form | {kind.form: value})
        assert then.status == 303
        page = visitor.get(then.headers["location"])
        assert page.names == seen.names
        assert page.marks[form["item"]].startswith(f"You said {value} ")
    assert page.marks[seen.names[0]].startswith("You said 5 ")
    back = visitor.post(f"{BASE}/undo", page.fields(f"{BASE}/undo"))
    query = parse_qs(urlsplit(back.headers["location"]).query)
    assert (query["decision"], query.get("person", [""])) == ([seen.kept["decision"]], [kind.person])
    left = visitor.get(back.headers["location"])
    assert left.marks[seen.names[1]].startswith("Predicted: ")
    assert left.marks[seen.names[0]].startswith("You said 5 ")


@each
def test_cards_whose_list_is_not_known_are_noted_as_seen(visitor: Visitor, kind: Numbers, tmp_path: Path) -> None:
    """Such as a page that a browser kept, of another person's list, or of none."""
    path = kind.made(tmp_path, **{"shrink": 2.0} if kind is GRADES else {})
    ann = kind.get(visitor, "ann")
    kept = ann.kept
    for person, decision in (("ann", "nothing"), ("bob", kept["decision"])):
        other = visitor.get(f"{BASE}?person={person}&decision={decision}&hand={kept['hand'].replace(' ', '')}")
        assert (other.kept["decision"], sorted(other.names)) == ("", sorted(ann.names))
    then = kind.give(visitor, other, ann.names[0], 2, "e1", person="bob")
    assert then.kept["decision"] == "e1-seen"
    assert then.marks[ann.names[0]].startswith("You said 2 ")
    kind.give(visitor, then, ann.names[1], 3, "e2", person="bob")
    with Loop.open(path) as loop:
        assert [told.decision for told in loop.lessons(person="bob")] == ["e1-seen", "e1-seen"]
        report = loop.report()
        assert report.prediction is not None
        assert (report.imported, report.prediction.answers) == (1, 0)
    assert kind.other in visitor.get(f"{BASE}/learned").at("report")


@each
def test_what_went_off_offer_goes_off_the_page(visitor: Visitor, kind: Numbers, tmp_path: Path) -> None:
    path = kind.made(tmp_path)
    seen = kind.get(visitor)
    gone, other = seen.names[:2]
    with Loop.open(path) as loop:
        loop.withdraw(gone)
    then = kind.give(visitor, seen, gone, 2, "e1")  # it was shown, so the answer counts
    assert then.said == f"{gone}: 2. It is no longer on offer."
    assert then.names == seen.names[1:]
    assert kind.give(visitor, then, other, 2, "e2").lessons == {"e2": True, "e1": True}


@each
def test_who_may_only_look_on_sees_the_predictions(visitor: Visitor, kind: Numbers, tmp_path: Path) -> None:
    """Of somebody, or of nobody in particular."""
    with Loop.open(kind.made(tmp_path)) as loop:
        loop.feedback(loop.decide(["i3"], person="bob").id, **{kind.form: {"i3": 5}})
    with closing(Keys(tmp_path)) as keys:
        _, secret = keys.create("looks on", scopes=["read"])
    visitor.sign_in(secret)
    for person in ("", "ann"):
        seen = kind.get(visitor, person)
        assert len(seen.marks) == kind.shown
        assert all(mark.startswith("Predicted: ") for mark in seen.marks.values())
        assert seen.all("form[@class='to-grade']") == seen.all(f"button[@name='{kind.form}']") == []
        assert len(seen.all("span[@class='grade']")) == 5 * kind.shown
        assert seen.kept["decision"] == ""


NO_NUMBERS = ["6", "0.99", "0", "x", "", "-1", "nan", "inf", "1e999", "٣", "9" * 5000]


@each
def test_what_is_no_number_of_the_scale_teaches_nothing(visitor: Visitor, kind: Numbers, tmp_path: Path) -> None:
    """Neither in the log nor in the model."""
    path = kind.made(tmp_path)
    seen = kind.get(visitor)
    item = seen.names[0]
    with Loop.open(path) as loop:
        before = loop.projection.log.counts(), bits(loop)
    told = f"{kind.form}['{item}']: expected {kind.number} from 1 to 5"
    wrong = [({kind.form: text}, f"{told}, got '{text}'" if len(text) < 9 else told) for text in NO_NUMBERS]
    wrong.append(({"item": "tank", "decision": ""}, "'tank' is not among the cards"))
    if kind is GRADES:
        wrong.append(({"grade": "2.5"}, f"{told}, got '2.5'"))
        learns = "kind: expected grade, as this loop learns grades from 1 to 5, got"
        wrong += [({"kind": other}, f"{learns} '{other}'") for other in ("pick", "none")]
    else:
        learns = "kind: expected rating or action, as this loop learns ratings from 1 to 5, got 'pick'"
        actions = "action: expected view, cart, buy, hide, got"
        wrong += [
            ({"kind": "pick"}, learns),
            ({"kind": "action", "action": "steal"}, f"{actions} 'steal'"),
            ({"kind": "action"}, f"{actions} ''"),
        ]
    for form, says in wrong:
        answer = visitor.post(f"{BASE}/teach", kind.body(seen, item, 3, "e1") | form)
        assert answer.status in (409, 422), (form, answer.html)
        assert says in words(answer.tree), form
    with Loop.open(path) as loop:
        assert (loop.projection.log.counts(), bits(loop)) == before


def test_a_loop_that_learns_no_numbers_takes_none(visitor: Visitor, tmp_path: Path) -> None:
    small_loop(tmp_path / "films.heedful", **CALM).close()
    seen = visitor.get(BASE)
    assert seen.all("form[@class='to-grade']") == []
    for kind in (GRADES, RATINGS):
        form = {"kind": kind.form, "item": "i1", kind.form: "3", "event": "e1", "hand": '["i0", "i1"]', "decision": ""}
        answer = visitor.post(f"{BASE}/teach", form)
        assert answer.status == 422
        assert f"kind: expected pick, order or none, got '{kind.form}'" in words(answer.tree)
