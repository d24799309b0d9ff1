"""The pages of a loop of ratings: who rates, what is shown, what a rating and an action do, what is refused, what was
learned."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from browsing import Seen, Visitor, words

from heedful import Loop, Settings
from heedful.loop.interactions.rating.explanation import RatingPrediction
from heedful.server.main import served
from heedful.server.pages.prediction_summary import format_number
from loops import bits, rating_loop

BASE = "/loops/films"
ANN = f"{BASE}?person=ann"
Form = dict[str, str]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path


@pytest.fixture
def visitor(folder: Path) -> Iterator[Visitor]:
    with served(folder) as url, closing(Visitor(url)) as found:
        yield found


def made(folder: Path, learner: str | None = None, n_items: int = 12, name: str = "films", **settings: Any) -> Path:
    path = folder / f"{name}.heedful"
    rating_loop(path, learner, n_items, **{"control": 0.0} | settings).close()
    return path


def names(seen: Seen) -> list[str]:
    """The cards, from the top."""
    return [each.attrib["data-key"] for each in seen.all("ol[@id='cards']/li")]


def marks(seen: Seen) -> dict[str, str]:
    """What stands on each card."""
    return {each.attrib["data-key"]: words(each.find(".//p[@class='mark']")) for each in seen.all("ol[@id='cards']/li")}


def state(seen: Seen) -> Form:
    """What the page keeps of its cards."""
    return {field.attrib["name"]: field.attrib["value"] for field in seen.one("form[@id='corrections']").iter("input")}


def rates(visitor: Visitor, seen: Seen, item: str, value: float | str, event: str, **more: str) -> Seen:
    """Rate as the script does."""
    kept = state(seen)
    form = {"kind": "rating", "item": item, "rating": str(value), "event": event, "person": "ann"}
    form |= {"hand": kept["hand"], "decision": kept["decision"]} | more
    return visitor.post(f"{BASE}/teach", form, hx_request="true")


def lessons(seen: Seen) -> dict[str, bool]:
    """The last lessons, newest first, and whether each still counts."""
    return {each.attrib["data-key"]: "class" not in each.attrib for each in seen.all("ul[@class='lessons']/li")}


def said(seen: Seen) -> str:
    return seen.one("section[@id='hand']").attrib["data-said"]


def counts(path: Path) -> dict[str, int]:
    with Loop.open(path) as loop:
        return loop.projection.log.counts()


# ---------------------------------------------------------------------------- who rates, and what is shown


def test_first_somebody_says_who_they_are(visitor: Visitor, folder: Path) -> None:
    path = made(folder)
    seen = visitor.get(BASE)
    assert names(seen) == []
    assert seen.all("form[@class='to-grade']") == []
    [field] = seen.all("input[@id='who']")
    assert (field.attrib["name"], "required" in field.attrib) == ("person", True)
    assert "decision" not in counts(path)
    assert len(names(visitor.get(ANN))) == 3


def test_the_cards_are_what_the_loop_would_show_now(visitor: Visitor, folder: Path) -> None:
    """With what it expects of each, once anything was learned; whoever has no name gets nothing logged."""
    path = made(folder)
    assert set(marks(visitor.get(ANN)).values()) == {"No prediction yet"}
    with Loop.open(path) as loop:
        for n, given in enumerate([5, 1, 4]):
            decision = loop.decide(id=f"d{n}", person="bob", show=1)
            loop.feedback(decision.id, id=f"e{n}", rating={decision.shown[0]: given})
        loop.withdraw("i11")
        expected = loop.predict(person="ann")
    seen = visitor.get(ANN)
    with Loop.open(path) as loop:
        known = loop.projection.find_decision(state(seen)["decision"])
        assert known is not None
        assert (known.person, list(known.names), known.record.of) == ("ann", names(seen), 11)
        assert known.record.predicted == pytest.approx([expected[name].value for name in names(seen)], abs=1e-5)
    told = {name: f"{expected[name].value:.1f} ±give or take {expected[name].spread:.1f}" for name in names(seen)}
    assert marks(seen) == {name: f"Predicted: {each}" for name, each in told.items()}
    for card in seen.all("ol[@id='cards']/li"):
        buttons = card.findall(".//button[@name='rating']")
        assert [button.attrib["value"] for button in buttons] == ["1", "2", "3", "4", "5"]
        [marked] = [button for button in buttons if "data-predicted" in button.attrib]
        assert abs(int(marked.attrib["value"]) - expected[card.attrib["data-key"]].value) <= 0.5
    assert words(seen.one("h2[@id='title-1']")).startswith("film ")


@pytest.mark.parametrize(
    ("scale", "buttons"),
    [
        ((1, 5), ["1", "2", "3", "4", "5"]),
        ((0, 10), [str(n) for n in range(11)]),
        ((-2, 2), ["-2", "-1", "0", "1", "2"]),
        ((1, 12), []),
        ((0.5, 5), []),
        ((-10, 10), []),
    ],
)
def test_few_whole_ratings_have_buttons_and_others_are_typed_in(
    visitor: Visitor, folder: Path, scale: tuple[float, float], buttons: list[str]
) -> None:
    path = made(folder, ratings=scale)
    seen = visitor.get(ANN)
    first = "ol[@id='cards']/li[1]//"
    assert [each.attrib["value"] for each in seen.all(f"{first}button[@name='rating']")] == buttons
    fields = seen.all("input[@name='rating']")
    assert len(fields) == (0 if buttons else 3)
    for field in fields:
        given = [field.attrib[name] for name in ("type", "min", "max", "step")]
        assert given == ["number", f"{scale[0]:g}", f"{scale[1]:g}", "any"]
    value = buttons[0] if buttons else "3.25"
    rates(visitor, seen, names(seen)[0], value, "e1")
    with Loop.open(path) as loop:
        [told] = loop.lessons()
        assert told.values == (float(value),)


def test_a_rating_is_one_lesson_and_the_last_brings_the_next_slate(visitor: Visitor, folder: Path) -> None:
    path = made(folder)
    seen = visitor.get(ANN)
    first = names(seen)
    then = rates(visitor, seen, first[1], 2, "e1")
    assert (then.status, names(then), state(then)["decision"]) == (200, first, state(seen)["decision"])
    with Loop.open(path) as loop:
        [told] = loop.lessons()
        assert (told.form, told.chosen, told.values, told.person) == ("rating", (first[1],), (2.0,), "ann")
        now = loop.predict(first, person="ann")
    assert marks(then)[first[1]].startswith(f"You said 2 · predicted now: {now[first[1]].value:.1f} ")
    assert said(then).startswith(f"film {first[1][1:]}: 2. Predicted now: ")
    [pressed] = then.all("button[@aria-pressed='true']")
    assert (pressed.attrib["value"], pressed.attrib["data-focus"]) == ("2", f"rating 2 {first[1]}")
    assert "1 of 12 items rated." in words(then.tree)
    for n, name in enumerate((first[0], first[2]), 2):
        then = rates(visitor, then, name, 4, f"e{n}")
    assert len(names(then)) == 3
    assert not set(names(then)) & set(first)
    assert state(then)["decision"] != state(seen)["decision"]
    assert said(then).endswith("That was the last of these; here are the next.")
    assert then.one("section[@id='hand']").attrib["data-lesson"] == "e3"
    assert (counts(path)["decision"], counts(path)["feedback"]) == (2, 3)
    again = visitor.get(ANN)
    assert set(names(again)) <= {f"i{j}" for j in range(12)} - set(first)
    assert "0 of 12 items rated." in words(visitor.get(f"{BASE}?person=bob").tree)  # who is somebody else


def test_other_cards_are_others_as_long_as_there_are_some(visitor: Visitor, folder: Path) -> None:
    made(folder, n_items=5)
    seen = visitor.get(ANN)
    query = seen.one("a[@id='deal']").attrib["href"].partition("?")[2]
    assert json.loads(parse_qs(query)["past"][0]) == names(seen)
    others = visitor.get(f"{BASE}/hand?deal=new&{query}", hx_request="true")
    assert len(names(others)) == 2
    assert not set(names(others)) & set(names(seen))
    everything = json.dumps([f"i{j}" for j in range(5)])
    assert len(names(visitor.get(f"{BASE}/hand?deal=new&person=ann&past={everything}"))) == 3


def test_when_all_is_rated_there_is_nothing_left_until_something_is_taken_back(visitor: Visitor, folder: Path) -> None:
    path = made(folder, n_items=2)
    seen = visitor.get(ANN)
    one, other = names(seen)
    rates(visitor, seen, one, 5, "e1")
    then = rates(visitor, seen, other, 3, "e2")
    assert (then.status, names(then), said(then)[-26:]) == (200, [], " That was the last of all.")
    page = visitor.get(ANN)
    assert "ann has rated all 2 items on offer" in words(page.tree)
    assert counts(path)["decision"] == 1
    back = visitor.post(f"{BASE}/undo", page.fields(f"{BASE}/undo"), hx_request="true")
    assert names(back) == [other]
    assert lessons(back) == {"e2": False, "e1": True}


def test_with_repeats_it_comes_again(visitor: Visitor, folder: Path) -> None:
    made(folder, n_items=2, repeats=True)
    seen = visitor.get(ANN)
    then = rates(visitor, rates(visitor, seen, "i0", 5, "e1"), "i1", 3, "e2")
    assert sorted(names(then)) == ["i0", "i1"]
    assert not any(mark.startswith("You said") for mark in marks(then).values())


def test_sent_again_it_counts_once_and_a_second_rating_stands_in_place_of_the_first(
    visitor: Visitor, folder: Path
) -> None:
    path = made(folder)
    seen = visitor.get(ANN)
    one, other = names(seen)[:2]
    rates(visitor, seen, one, 1, "e1")
    rates(visitor, seen, other, 4, "e2")
    then = rates(visitor, seen, one, 3, "e3")
    assert lessons(then) == {"e3": True, "e2": True, "e1": False}
    again = rates(visitor, seen, one, 1, "e1")
    assert (again.status, lessons(again), marks(again)) == (200, lessons(then), marks(then))
    assert rates(visitor, seen, one, 2, "e1").status == 409
    with Loop.open(path) as loop:
        left = bits(loop)
        assert loop.verify() == []
    with Loop.open(made(folder, name="plain")) as loop:
        decision = loop.decide(json.loads(state(seen)["hand"]), person="ann")
        loop.feedback(decision.id, rating={other: 4})
        loop.feedback(decision.id, rating={one: 3})
        assert bits(loop) == left


def test_undo_is_as_if_it_had_never_been(visitor: Visitor, folder: Path) -> None:
    path = made(folder)
    with Loop.open(path) as loop:
        empty = bits(loop)
    seen = visitor.get(ANN)
    item = names(seen)[2]
    kept = {name: state(seen)[name] for name in ("hand", "decision")}
    rates(visitor, seen, item, 1, "e1")
    back = visitor.post(f"{BASE}/undo", {"event": "e1", "person": "ann", **kept}, hx_request="true")
    assert (names(back), marks(back)) == (names(seen), marks(seen))
    assert (said(back), lessons(back)) == (f"Taken back: “Rated film {item[1:]}: 1”.", {"e1": False})
    with Loop.open(path) as loop:
        assert bits(loop) == empty


def test_another_persons_list_is_not_answered_but_noted_as_seen(visitor: Visitor, folder: Path) -> None:
    """Such as a page that a browser kept."""
    path = made(folder)
    kept = state(visitor.get(ANN))
    other = visitor.get(f"{BASE}?person=bob&decision={kept['decision']}&hand={kept['hand'].replace(' ', '')}")
    assert (state(other)["decision"], sorted(names(other))) == ("", sorted(json.loads(kept["hand"])))
    then = rates(visitor, other, names(other)[0], 2, "e1", person="bob")
    assert state(then)["decision"] == "e1-seen"
    assert marks(then)[names(other)[0]].startswith("You said 2 ")
    with Loop.open(path) as loop:
        [told] = loop.lessons()
        assert (told.person, told.decision, loop.report().imported) == ("bob", "e1-seen", 1)
    assert "1 list noted as shown by somebody else" in visitor.get(f"{BASE}/learned").at("report")


def test_it_works_without_a_script(visitor: Visitor, folder: Path) -> None:
    made(folder)
    seen = visitor.get(ANN)
    shown = names(seen)
    page = seen
    for n, value in enumerate("524"):
        form = next(
            {field.attrib["name"]: field.attrib["value"] for field in each.iter("input")}
            for each in page.all("form[@class='to-grade']")
            if each.find("input[@name='item']").attrib["value"] == shown[n]  # type: ignore[union-attr]
        )
        then = visitor.post(f"{BASE}/teach", form | {"rating": value})
        assert then.status == 303
        page = visitor.get(then.headers["location"])
        if n < 2:
            assert (names(page), marks(page)[shown[n]][:10]) == (shown, f"You said {value}")
    assert not set(names(page)) & set(shown)
    back = visitor.post(f"{BASE}/undo", page.fields(f"{BASE}/undo"))
    assert parse_qs(urlsplit(back.headers["location"]).query)["person"] == ["ann"]
    assert visitor.get(back.headers["location"]).status == 200


# ---------------------------------------------------------------------------- actions


def test_actions_stand_beside_each_other_and_each_is_taken_back_by_its_button(visitor: Visitor, folder: Path) -> None:
    path = made(folder)
    assert visitor.get(ANN).all("button[@name='action']") == []  # the usual ones are asked for
    seen = visitor.get(f"{ANN}&actions=1")
    one = names(seen)[0]
    found = [each.attrib["value"] for each in seen.all("ol[@id='cards']/li[1]//button[@name='action']")]
    assert found == ["view", "cart", "buy", "hide"]
    act = {"kind": "action", "actions": "1"}
    rates(visitor, seen, one, 0, "e1", action="view", **act)
    then = rates(visitor, seen, one, 0, "e2", action="cart", **act)
    assert marks(then)[one].startswith("You said cart, view ")
    assert lessons(then) == {"e2": True, "e1": True}
    pressed = then.all("button[@aria-pressed='true']")
    assert [(each.attrib["name"], each.attrib["value"]) for each in pressed] == [("back", "e1"), ("back", "e2")]
    assert {each.attrib["formaction"] for each in pressed} == {f"{BASE}/undo"}
    with Loop.open(path) as loop:
        assert [(told.form, told.chosen, told.text) for told in loop.lessons()] == [
            ("actions", (one,), "cart"),
            ("actions", (one,), "view"),
        ]
    form = {"event": "other", "back": "e2", "person": "ann", "hand": state(seen)["hand"], "actions": "1"}
    back = visitor.post(f"{BASE}/undo", form | {"decision": state(seen)["decision"]})
    then = visitor.get(back.headers["location"])
    assert marks(then)[one].startswith("You said view ")
    assert len(then.all("ol[@id='cards']/li[1]//button[@name='action']")) == 3  # they stay asked for
    assert said(visitor.post(f"{BASE}/undo", {"event": "e1", "person": "ann"}, hx_request="true")) == (
        f"Taken back: “View: film {one[1:]}”."
    )


def test_actions_as_loud_as_a_rating_finish_a_card_and_a_look_does_not(visitor: Visitor, folder: Path) -> None:
    made(folder, n_items=2, k=1)
    seen = visitor.get(ANN)
    looked = rates(visitor, seen, "i0", "", "e1", kind="action", action="view")
    assert names(looked) == names(seen) == ["i0"]
    bought = rates(visitor, seen, "i0", "", "e2", kind="action", action="buy")
    assert names(bought) == ["i1"]


def test_actions_of_ones_own_are_always_there(visitor: Visitor, folder: Path) -> None:
    made(folder, actions={"share": (5, 1), "skip <b>": (2, 0.25)})
    seen = visitor.get(ANN)
    assert [words(each) for each in seen.all("ol[@id='cards']/li[1]//button[@name='action']")] == ["share", "skip <b>"]
    assert seen.all("a[@id='acting']") == []
    then = rates(visitor, seen, "i0", "", "e1", kind="action", action="share")
    assert "Share: film 0" in words(then.tree)


# ---------------------------------------------------------------------------- what is refused


@pytest.mark.parametrize(
    ("form", "told"),
    [
        ({"rating": "6"}, "rating['{item}']: expected a number from 1 to 5, got '6'"),
        ({"rating": "0.99"}, "expected a number from 1 to 5, got '0.99'"),
        ({"rating": "nan"}, "expected a number from 1 to 5, got 'nan'"),
        ({"rating": "inf"}, "expected a number from 1 to 5, got 'inf'"),
        ({"rating": "1e999"}, "expected a number from 1 to 5, got '1e999'"),
        ({"rating": ""}, "expected a number from 1 to 5, got ''"),
        ({"rating": "٣"}, "expected a number from 1 to 5, got '٣'"),
        ({"rating": "9" * 5000}, "expected a number from 1 to 5"),
        ({"item": ""}, "item: expected a text"),
        ({"item": "tank"}, "tank"),
        ({"item": "tank", "decision": ""}, "'tank' is not among the cards"),
        ({"decision": "elsewhere"}, "decision elsewhere is not in the log"),
        ({"hand": "no"}, "hand: expected a list of names as JSON"),
        ({"event": ""}, "event: expected a text"),
        ({"event": "a" * 181}, "event: expected a text"),
        ({"kind": "pick"}, "kind: expected rating or action, as this loop learns ratings from 1 to 5, got 'pick'"),
        ({"kind": "action", "action": "steal"}, "action: expected view, cart, buy, hide, got 'steal'"),
        ({"kind": "action"}, "action: expected view, cart, buy, hide, got ''"),
        ({"person": "a\x00b"}, "person: expected a text"),
    ],
)
def test_bad_input_teaches_nothing(visitor: Visitor, folder: Path, form: Form, told: str) -> None:
    """Neither in the log nor in the model: `elsewhere` is a list of another loop."""
    path, other = made(folder), made(folder, name="other")
    with Loop.open(other) as loop:
        loop.decide(["i0", "i1"], id="elsewhere")
    seen = visitor.get(ANN)
    item = names(seen)[0]
    good = {"kind": "rating", "item": item, "rating": "3", "event": "e1", "person": "ann", **state(seen)}
    with Loop.open(path) as loop:
        before = loop.projection.log.counts(), bits(loop)
    for headers in ({"hx_request": "true"}, {}):
        answer = visitor.post(f"{BASE}/teach", good | form, **headers)
        assert answer.status in (409, 422), answer.html
        assert told.format(item=item) in words(answer.tree)
    with Loop.open(path) as loop:
        assert (loop.projection.log.counts(), bits(loop)) == before


def test_names_are_only_ever_text(visitor: Visitor, folder: Path) -> None:
    evil = "<img src=x onerror=alert(1)>\"'&"
    path = folder / "films.heedful"
    items = [{"id": evil}, {"id": "plain", "title": evil}]
    Loop.create(path, items=items, settings=Settings(ratings=(1, 5), actions={evil: (5, 0.5)}, control=0.0)).close()
    seen = visitor.get(f"{BASE}?person={evil.replace('&', '%26')}")
    then = rates(visitor, seen, evil, 2, "e1", person=evil)
    acted = rates(visitor, seen, "plain", "", "e2", person=evil, kind="action", action=evil)
    learned = visitor.get(f"{BASE}/learned?person={evil.replace('&', '%26')}&why=1")
    for each in (seen, then, acted, learned):
        assert each.status == 200
        assert evil not in each.html
        assert evil in words(each.tree) or evil.strip() in words(each.tree)
    assert said(then).startswith(f"{evil}: 2.")


def test_who_may_only_look_on_sees_what_is_expected(visitor: Visitor, folder: Path) -> None:
    from heedful.server.keys import Keys

    path = made(folder)
    with Loop.open(path) as loop:
        loop.feedback(loop.decide(["i3"], person="bob").id, rating={"i3": 5})
    with closing(Keys(folder)) as keys:
        _, secret = keys.create("looks on", scopes=["read"])
    visitor.sign_in(secret)
    for address in (BASE, ANN):
        seen = visitor.get(address)
        assert len(marks(seen)) == 3
        assert all(mark.startswith("Predicted: ") for mark in marks(seen).values())
        assert seen.all("form[@class='to-grade']") == []
        assert state(seen)["decision"] == ""
    assert counts(path)["decision"] == 1


def test_a_loop_without_items_says_so(visitor: Visitor, folder: Path) -> None:
    made(folder, n_items=0)
    assert "Nothing is on offer yet" in words(visitor.get(ANN).tree)
    assert visitor.get(f"{BASE}/learned").status == 200


# ---------------------------------------------------------------------------- what it learned


def taught(path: Path, learner: str | None = None, lists: int = 60, **settings: Any) -> Loop:
    """A loop in which the later items are liked by all; six people, one list in two left to chance."""
    loop = rating_loop(path, learner, 20, **{"control": 0.5, "repeats": True} | settings)
    for n in range(lists):
        decision = loop.decide(id=f"d{n}", person=f"p{n % 6}")
        rating = {name: min(max(1 + int(name[1:]) // 4 - (n % 6 == 5), 1), 5) for name in decision.shown}
        loop.feedback(decision.id, id=f"e{n}", rating=rating)
    return loop


def test_the_numbers_of_the_page_are_those_of_the_report(visitor: Visitor, folder: Path) -> None:
    with taught(folder / "films.heedful") as loop:
        found = loop.report()
        rated = len({name for each in loop.lessons(100) for name in each.chosen})
    predicted, apart = found.prediction, found.difference
    assert apart is not None
    assert predicted is not None
    page = visitor.get(f"{BASE}/learned")
    assert page.at("so-far").startswith(f"180 ratings by 6 people, of {rated} of 20 items on offer. From 60 answers")
    told = page.at("report")
    assert "Yes: what was learned does better than the control." in told
    means = f"learned choice {found.learned.mean:.2f}, control (your score, or chance) {found.control.mean:.2f}"
    assert f"Mean rating: {means}." in told
    bounds = [f"{value:+.2f}".replace("-", "−") for value in apart[:3]]
    assert f"Difference: {bounds[0]} (95 % confidence interval: {bounds[1]} to {bounds[2]})." in told
    assert f"predictions {predicted.score:.2f}, " in told
    assert f"the item's mean so far {predicted.baseline:.2f}." in told
    shown, off = (json.loads(each.attrib["data-plot"]) for each in page.all("div[@data-plot]"))
    assert (shown["y"], shown["x"][-1]) == ([1, 5], 60)
    assert [line["label"] for line in shown["lines"]] == ["learned choice", "control (your score, or chance)"]
    assert (off["y"], off["x"][-1]) == ("error", 180)
    steps = [b - a for a, b in zip([0, *off["x"]], off["x"])]
    for line, mean in zip(off["lines"], (predicted.score, predicted.baseline)):
        assert sum(n * value for n, value in zip(steps, line["values"])) / 180 == pytest.approx(mean, abs=1e-4)
    assert "style=" not in page.html


def test_what_is_liked_best_is_what_the_loop_expects(visitor: Visitor, folder: Path) -> None:
    with taught(folder / "films.heedful", repeats=False, lists=12) as loop:
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


def test_why_is_told_of_a_persons_last_list(visitor: Visitor, folder: Path) -> None:
    with taught(folder / "films.heedful", control=0.0, repeats=False, lists=18) as loop:
        decision = loop.decide(person="p1", id="last")
        found = loop.explain("last")
    assert found.prediction is not None
    rating = RatingPrediction(**found.prediction)
    asks = visitor.get(f"{BASE}/learned?person=p1")  # it folds the log again, so it is told where somebody asks
    first = f"Why film {decision.shown[0][1:]}? It came first in the last list for p1"
    assert asks.at("why") == f"{first}. See why"
    page = visitor.get(asks.one("div[@id='why']//a").attrib["href"].partition("#")[0])
    why = page.at("why")
    assert why.startswith(first)
    assert f"a rating of {rating.expected:.2f} was expected, give or take {rating.spread:.2f}" in why
    tables = {
        words(each.find("caption")): words(each.find("tbody")) for each in page.all("table[@class='weights reasons']")
    }
    assert f"of this item, by all{rating.by_all:#.3g}{rating.mean_of_all:.2f}" in tables["What was known"]
    assert f"by this person, of all items{rating.by_person:#.3g}" in tables["What was known"]
    largest = found.features[0]
    assert tables["What it is the sum of"].startswith(f"{largest.name}{largest.counts:+#.3g}")
    assert "Rated film " in why
    for address in (f"{BASE}/learned", f"{BASE}/learned?person=nobody&why=1"):
        assert visitor.get(address).at("why") == ""


def test_before_anything_was_rated(visitor: Visitor, folder: Path) -> None:
    made(folder)
    page = visitor.get(f"{BASE}/learned")
    assert page.at("so-far").startswith("No ratings so far, of 12 items on offer.")
    assert "The first rating changes that." in page.at("weights")
    assert "That cannot be known here." in page.at("report")
    assert "No rating yet." in page.at("lessons")
    assert page.all("div[@data-plot]") == []
    made(folder, name="compared", control=0.1)
    assert "Too early to say." in visitor.get("/loops/compared/learned").at("report")


def test_a_learner_without_an_opinion(visitor: Visitor, folder: Path) -> None:
    taught(folder / "films.heedful", "random-item", 4, control=0.0).close()
    assert set(marks(visitor.get(ANN)).values()) == {"No prediction yet"}
    page = visitor.get(f"{BASE}/learned?person=p1&why=1")
    assert "Its learner, random-item, predicts no ratings." in page.at("weights")
    assert "RandomItem showed this, and does not say what it expects." in page.at("why")
    assert "The learner does not say what it expects." in page.at("report")


def test_actions_count_by_their_weight_and_are_told(visitor: Visitor, folder: Path) -> None:
    path = made(folder, n_items=5)
    with Loop.open(path) as loop:
        decision = loop.decide(person="ann", id="d")
        one, other, _ = decision.shown
        loop.feedback("d", id="e", actions={one: "view", other: ["cart", "buy"]})
    page = visitor.get(f"{BASE}/learned?person=ann")
    assert page.at("so-far").startswith("1.6 ratings by 1 person, of 2 of 5 items on offer, where actions count by")
    assert f"View: film {one[1:]} and Cart, buy: film {other[1:]}" in page.at("lessons")
    assert f"view: {one} and cart, buy: {other}" in page.at("events")
    assert "looked at" in page.at("weights")


def test_the_list_of_loops_tells_the_scale(visitor: Visitor, folder: Path) -> None:
    made(folder, ratings=(-10, 10))
    assert "ratings −10 to 10" in words(visitor.get("/loops/films/row").tree)


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
    assert format_number(value, span) == text
