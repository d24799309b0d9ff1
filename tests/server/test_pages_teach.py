"""The page to teach on, as it is served: what it shows, what a correction does, what it refuses."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from asking import Caller, events
from browsing import Seen, Visitor, words

from heedful import TEXTS, Loop, Settings, infer
from heedful.features import FeatureCross
from heedful.features.declaring import declare
from heedful.loop.interactions.protocol import feature_names
from heedful.loop.interactions.registry import interaction_type
from heedful.loop.settings import Manifest
from heedful.server.context import Options
from heedful.server.main import served
from heedful.server.pages.card_order import Placement, ordinal
from heedful.server.pages.card_selection import HAND
from heedful.server.pages.feature_phrases import STRONG, Phrases, level
from heedful.server.pages.forms import MOST
from heedful.studies.things import value
from loops import rows

CARS = [
    {"id": "mini", "hp": 50, "weight": 1500, "Model_Year": 1970, "origin": "UK", "note": "small & <b>fun</b>"},
    {"id": "beetle", "hp": 50, "weight": 1900, "Model_Year": 1971, "origin": "Germany", "note": ""},
    {"id": "mustang", "hp": 150, "weight": 3500, "Model_Year": 1972, "origin": "USA", "note": "loud"},
    {"id": "hybrid <&\"'>", "hp": 150, "weight": 3000, "Model_Year": 2001, "origin": "Japan", "note": "quiet"},
]
NAMES = [str(row["id"]) for row in CARS]
KINDS = {"hp": "number", "weight": "number", "Model_Year": "number", "origin": "category", "note": "ignored"}
CALM: dict[str, Any] = {"control": 0.0, "exploration": 0.0}


class Page(Visitor):
    """One visitor of a loop's page."""

    def __init__(self, url: str, name: str) -> None:
        super().__init__(url)
        self.http.headers["origin"] = url
        self.base = f"/loops/{name}"
        self.asked = 0

    def look(self, path: str = "", part: bool = False, **query: str) -> Seen:
        return Seen(self.http.get(self.base + path, params=query, headers={"hx-request": "true"} if part else {}))

    def send(self, path: str, part: bool = True, **form: Any) -> Seen:
        sent = {name: text if isinstance(text, str) else json.dumps(text) for name, text in form.items()}
        return Seen(self.http.post(self.base + path, data=sent, headers={"hx-request": "true"} if part else {}))

    def teach(self, seen: Seen, **form: Any) -> Seen:
        """Correct what was seen."""
        self.asked += 1
        told = {"hand": seen.names, "decision": seen.kept["decision"], "event": f"e{self.asked}", **form}
        return self.send("/teach", **told)


def bars(seen: Seen) -> list[str]:
    """What the bars of a page say that it learned."""
    return [words(bar) for bar in seen.all("span[@class='bar-words']")]


@pytest.fixture
def url(tmp_path: Path) -> Iterator[str]:
    with served(tmp_path, Options(words={"weight": ("heavier", "lighter")})) as found:
        yield found


def made(tmp_path: Path, items: Any = CARS, name: str = "cars", learner: str | None = None, **settings: Any) -> None:
    encoding, settings = infer(CARS, kinds=KINDS) if items is CARS else infer(items), CALM | settings
    Loop.create(
        tmp_path / f"{name}.heedful", encoding=encoding, items=items, learner=learner, settings=Settings(**settings)
    ).close()


@pytest.fixture
def page(tmp_path: Path, url: str) -> Iterator[Page]:
    made(tmp_path)
    found = Page(url, "cars")
    with found.http:
        yield found


def decisions(tmp_path: Path, name: str = "cars") -> dict[str, Any]:
    """The lists that a loop noted, by id: who saw what, and how it came about."""
    from heedful.io import export_lines

    with Loop.open(tmp_path / f"{name}.heedful") as loop:
        lines = list(export_lines(loop))
    return {line["id"]: line for line in lines if line["kind"] == "decision"}


# ---------------------------------------------------------------------------- what is shown


def test_a_hand_of_real_items_in_the_order_of_a_real_decision(page: Page, tmp_path: Path) -> None:
    seen = page.look()
    assert seen.status == 200
    assert sorted(seen.names) == sorted(NAMES)
    assert decisions(tmp_path)[seen.kept["decision"]]["shown"] == seen.names
    assert "Pick what you would rather have, or drag the cards" in seen.html
    assert (seen.marks, seen.kept["placed"]) == ({}, "")
    assert "Nothing yet: no correction so far." in seen.html
    for told in ("<dt>hp</dt><dd>150</dd>", "<dt>weight</dt><dd>3,500</dd>", "<dt>Model Year</dt><dd>1972</dd>"):
        assert told in seen.html
    assert "hybrid &lt;&amp;&#34;&#39;&gt;" in seen.html
    assert "small &amp; &lt;b&gt;fun&lt;/b&gt;" in seen.html


def test_not_all_of_a_large_catalogue(tmp_path: Path, url: str) -> None:
    made(tmp_path, rows(300, 3), "many")
    seen = [set(Page(url, "many").look().names) for _ in range(4)]
    assert {len(each) for each in seen} == {HAND}
    assert len(set.union(*seen)) > HAND


@pytest.mark.slow
def test_the_control_says_what_it_is_once_something_was_learned(tmp_path: Path, url: str) -> None:
    """Before, no list is in a learned order."""
    made(tmp_path, control=0.25, name="some")
    page = Page(url, "some")
    assert not any("This list ignores what was learned" in page.look().html for _ in range(30))
    page.teach(page.look(), item="mini")
    seen = [page.look() for _ in range(60)]
    found = {bool(re.search(r"one list in 4 does", each.html)): each.kept["decision"] for each in seen}
    arms = decisions(tmp_path, "some")
    assert {told: arms[id]["arm"] for told, id in found.items()} == {True: "control", False: "learned"}


def test_looking_without_seeing_notes_nothing(page: Page, tmp_path: Path) -> None:
    page.http.head(page.base)
    for site in ("cross-site", "same-site"):
        seen = Seen(page.http.get(page.base, headers={"sec-fetch-site": site, "sec-fetch-mode": "navigate"}))
        assert (len(seen.names), seen.kept["decision"]) == (4, "")
    again = page.look(hand=json.dumps(NAMES[::-1]))
    assert (again.names, again.kept["decision"]) == (NAMES[::-1], "")
    assert decisions(tmp_path) == {}


def test_a_loop_without_items_says_what_it_is(tmp_path: Path, url: str) -> None:
    Loop.create(tmp_path / "texts.heedful", encoding=TEXTS).close()
    page = Page(url, "texts")
    seen = page.look()
    assert (seen.status, seen.names) == (200, [])
    assert "Each request brings the items" in seen.html
    assert f'href="{page.base}/learned"' in seen.html
    assert "None of these" not in seen.html


def test_of_a_single_item_the_best_is_shown_and_others_beside_it(tmp_path: Path, url: str) -> None:
    made(tmp_path, name="one", k=1)
    page = Page(url, "one")
    seen = page.look()
    assert "rather one of the others?" in seen.html
    assert 'class="grip"' not in seen.html
    assert decisions(tmp_path, "one")[seen.kept["decision"]]["shown"] == seen.names[:1]
    wanted = seen.names[2]
    then = page.teach(seen, item=wanted)
    assert then.names[0] == wanted
    assert decisions(tmp_path, "one").keys() == {seen.kept["decision"]}
    page.teach(then, item=then.names[1])
    assert decisions(tmp_path, "one")["e2-seen"]["shown"] == then.names[:1]


# ---------------------------------------------------------------------------- what a correction does


def test_a_pick_is_learned_and_shown_at_once(page: Page) -> None:
    seen = page.look(hand=json.dumps(["mustang", "beetle", "hybrid <&\"'>", "mini"]))
    assert seen.names[3] == "mini"  # nothing is known yet
    then = page.teach(seen, item="mini")
    assert then.status == 200
    assert then.names[0] == "mini"
    assert set(bars(then)) >= {"lighter", "rather origin: UK"}
    assert re.fullmatch(r"Moved towards: .+, .+\. What it learned so far puts mini there, too\.", then.said)
    assert then.marks == {"mini": "Your pick · what it learned so far agrees"}
    assert then.lessons == {"e1": True}
    assert "Put mini before" in then.html
    assert then.kept["decision"] == ""  # the list is another one now


def test_the_answer_is_to_what_was_seen(page: Page, tmp_path: Path) -> None:
    first = page.look()
    second = page.teach(first, item=first.names[3])
    page.teach(second, item=second.names[2])
    noted = decisions(tmp_path)
    assert noted.keys() == {first.kept["decision"], "e2-seen"}
    assert (noted["e2-seen"]["arm"], noted["e2-seen"]["shown"]) == ("imported", second.names)


def test_a_new_order_is_one_correction(page: Page, tmp_path: Path) -> None:
    order = ["mini", "beetle", "hybrid <&\"'>", "mustang"]
    then = page.teach(page.look(hand=json.dumps(order[::-1])), kind="order", order=order)
    assert (then.status, then.names, then.marks) == (200, order, {})
    with Loop.open(tmp_path / "cars.heedful") as loop:
        [told] = loop.lessons()
        assert told.form == "better"


def test_where_a_card_was_put_it_stays_and_what_was_learned_of_it_is_told(page: Page) -> None:
    """One who was taught what is light is told to put the heaviest first: the card lies there, the model says where it
    would put it."""
    seen = page.look(hand=json.dumps(NAMES))
    for _ in range(4):
        seen = page.teach(seen, item="mini", dealt=NAMES)
    ranked = page.look(hand=json.dumps(NAMES)).names
    last = ranked[-1]
    picked = page.teach(seen, item=last, dealt=NAMES)
    now = page.look(hand=json.dumps(NAMES)).names
    assert now.index(last) > 0
    assert picked.names == [last, *[name for name in now if name != last]]
    place = now.index(last) + 1
    assert picked.marks == {last: f"Your pick · by what it learned so far: place {place}"}
    assert picked.said.endswith(
        f" By what it learned so far {last} would stand {place}{('nd', 'rd', 'th')[place - 2]}."
    )
    order = [ranked[0], last, *ranked[1:-1]]
    put = page.teach(picked, kind="order", order=order, moved=[ranked[1], last], dealt=NAMES)
    assert (put.names, list(put.marks)) == (order, [name for name in order if name in (last, ranked[1])])
    assert {told.partition(" · ")[0] for told in put.marks.values()} == {"Your order"}
    assert last in put.said


def test_a_lesson_from_elsewhere_moves_the_others_around_what_was_put(page: Page, url: str) -> None:
    seen = page.look(hand=json.dumps(NAMES))
    order = [NAMES[1], NAMES[3], NAMES[2], NAMES[0]]
    put = page.teach(seen, kind="order", order=order, moved=[order[2]], dealt=NAMES)
    lie = {"hand": json.dumps(NAMES), "placed": put.kept["placed"]}
    assert page.look("/hand", part=True, **lie).names == order  # nothing was learned since
    other = Page(url, "cars")
    other.asked = 10
    for _ in range(6):
        other.teach(other.look(), item="mini")
    ranked = page.look("/hand", part=True, hand=json.dumps(NAMES)).names
    now = page.look("/hand", part=True, **lie)
    others = [name for name in ranked if name != order[2]]
    assert now.names == [*others[:2], order[2], others[2]]
    assert now.names != order
    assert list(now.marks) == [order[2]]
    other.send("/undo", event="e1", hand=NAMES)
    gone = page.look("/hand", part=True, **lie)
    assert (gone.marks, gone.kept["placed"]) == ({}, "")
    assert gone.names == page.look("/hand", part=True, hand=json.dumps(NAMES)).names


@pytest.mark.parametrize("text", ["x", "[]", '{"order": ["a"]}', "TWICE", "MANY", "[" * 5000])
def test_what_was_put_is_what_the_page_was_given(page: Page, text: str) -> None:
    good = {"order": NAMES, "cards": [], "kind": "pick", "event": "e1", "version": 1}
    wrong = {"TWICE": good | {"order": ["a", "a"]}, "MANY": good | {"cards": [f"i{j}" for j in range(MOST + 1)]}}
    seen = page.look(hand=json.dumps(NAMES), placed=json.dumps(wrong[text]) if text in wrong else text)
    assert (seen.status, "placed: expected what the page was given" in seen.html) == (422, True)
    assert page.look(hand=json.dumps(NAMES), placed=json.dumps(good)).names == NAMES


def test_cards_around_what_was_put() -> None:
    def put(*cards: str) -> Placement:
        return Placement(("a", "b", "c", "d"), cards, "order", "e", 7)

    assert put("b").around("dcba", 7) == ("a", "b", "c", "d")
    assert put("b").around("dcba", 8) == ("d", "b", "c", "a")
    assert put("d", "a").around("dcba", 8) == ("a", "c", "b", "d")
    assert put().around("dcba", 8) == ("d", "c", "b", "a")
    assert put("d").around("dba", 7) == ("a", "b", "d")  # c went off offer
    assert put("c", "d").around("dba", 8) == ("b", "a", "d")
    assert put("b", "x").around("edcba", 8) == ("e", "b", "d", "c", "a")
    places = [ordinal(n) for n in (1, 2, 3, 4, 11, 12, 13, 21, 102, 111)]
    assert places == ["1st", "2nd", "3rd", "4th", "11th", "12th", "13th", "21st", "102nd", "111th"]


def test_lessons_tell_the_titles_that_are_on_the_cards(tmp_path: Path, url: str) -> None:
    items = [{"id": f"B{n}", "title": f"toner {n}", "price": n} for n in range(3)]
    made(tmp_path, items, "shop")
    page = Page(url, "shop")
    seen = page.look(hand=json.dumps(["B0", "B1", "B2"]))
    then = page.teach(seen, item="B2")
    side = re.sub("<.*?>", "", then.html.partition('class="lessons"')[2])
    assert ("Put toner 2 before toner 0 and toner 1" in side, "B2" in side) == (True, False)
    assert "toner 2" in then.said
    assert (
        page.send("/undo", event="e1", hand=seen.names).said == "Taken back: “Put toner 2 before toner 0 and toner 1”."
    )


def test_none_of_these_is_noted_and_others_are_dealt(page: Page) -> None:
    seen = page.look()
    then = page.teach(seen, kind="none")
    assert (then.status, then.said) == (200, "None of these: noted, but there is no lesson in it. Here are others.")
    assert then.kept["decision"] not in ("", seen.kept["decision"])
    assert bars(then) == []


def test_what_went_off_offer_goes_off_the_page(page: Page, url: str) -> None:
    seen = page.look()
    caller = Caller(url)
    assert caller("DELETE", "/v1/loops/cars/items/beetle").value == {"withdrawn": True}
    then = page.teach(page.look(hand=json.dumps(seen.names)), item="mini")
    assert sorted(then.names) == sorted(set(NAMES) - {"beetle"})
    gone = page.send("/teach", hand=seen.names, decision="", event="x", item="beetle")
    assert gone.status in (409, 422)
    assert "beetle" in gone.html
    nothing = page.look(hand='["beetle"]')  # none of it is left: others are dealt
    assert len(nothing.names) == 3
    caller.close()


def test_each_person_has_her_own_where_the_loop_learns_that(tmp_path: Path, url: str) -> None:
    made(tmp_path, name="each", shrink=1.0)
    page = Page(url, "each")
    ann = page.look(person="ann", hand=json.dumps(NAMES))
    assert "What it thinks ann likes" in ann.html
    bob = page.look(person="bob", hand=json.dumps(NAMES))
    for _ in range(3):
        ann = page.teach(ann, item="mini", person="ann")
        bob = page.teach(bob, item="mustang", person="bob")
    shown = page.look(person="ann").kept["decision"]
    assert decisions(tmp_path, "each")[shown]["person"] == "ann"
    assert (ann.lessons.keys(), bob.lessons.keys()) == ({"e1", "e3", "e5"}, {"e2", "e4", "e6"})
    assert page.look().lessons.keys() == {f"e{i + 1}" for i in range(6)}
    values = [re.findall(r'data-value="([^"]*)"', page.look(person=who).html) for who in ("ann", "bob", "")]
    assert values[0] != values[1] != values[2] != values[0]


# ---------------------------------------------------------------------------- without a script, and live


def test_what_others_teach_comes_as_events(page: Page, url: str) -> None:
    seen = page.look()
    at = "".join(re.findall(r'data-seq="(\d+)"', seen.html))
    caller = Caller(url)
    with events(caller, f"{page.base}/live?kinds=feedback,undo,item&after={at}") as stream:
        page.teach(seen, item="mini")
        page.send("/undo", event="e1", hand=seen.names)
        told = [next(stream), next(stream)]
    assert [(each.kind, each.data["id"]) for each in told] == [("feedback", "e1"), ("undo", "undo-e1")]
    assert told[0].id > int(at)
    caller.close()


# ---------------------------------------------------------------------------- what is refused


@pytest.mark.parametrize(
    ("form", "told"),
    [
        ({"hand": json.dumps([f"i{j}" for j in range(MOST + 1)])}, f"hand: expected at most {MOST}"),
        ({"kind": "order"}, "order: expected a list of names as JSON"),
        ({"kind": "order", "order": '["mini", "tank"]'}, "tank"),
        ({"kind": "order", "order": json.dumps(NAMES), "moved": "mini"}, "moved: expected a list of names as JSON"),
    ],
)
def test_bad_input_teaches_nothing(page: Page, tmp_path: Path, form: dict[str, str], told: str) -> None:
    seen = page.look()
    good = {"hand": seen.names, "decision": seen.kept["decision"], "event": "e1", "item": "mini"}
    for part in (True, False):
        answer = page.send("/teach", part=part, **good | form)
        assert answer.status in (409, 422), answer.html
        assert told in answer.html
        assert ("<html" in answer.html) is not part
        assert 'class="problem" role="alert"' in answer.html or not part
    with Loop.open(tmp_path / "cars.heedful") as loop:
        assert "feedback" not in loop.projection.log.counts()


def test_what_is_no_form_is_refused(page: Page) -> None:
    kind = "application/x-www-form-urlencoded"
    for content, sent, status in (
        (b"{}", "application/json", 415),
        (b"item=%ff", kind, 400),
        (b"&".join(b"f%d=1" % i for i in range(201)), kind, 400),
        (b"event=a&event=b", kind, 422),
        (b"event=" + b"a" * (8 * 2**20 + 1), kind, 413),
    ):
        answer = page.http.post(f"{page.base}/teach", content=content, headers={"content-type": sent})
        assert answer.status_code == status, (content[:20], answer.text)


def test_a_strange_query_is_refused_by_name(page: Page) -> None:
    twice = page.http.get(f"{page.base}?person=a&person=b")
    assert (twice.status_code, "person: expected it once" in twice.text) == (422, True)
    assert "hand: expected a list of names as JSON" in page.look(hand="x").html
    assert "after: expected a whole number from 0" in page.look("/live", after="x").html


# ---------------------------------------------------------------------------- words


def phrases(encoding: Any, **manifest: Any) -> Phrases:
    made = Manifest.of("posterior", encoding, manifest.get("context"), manifest.get("crosses", ()), Settings())
    names = feature_names(interaction_type(made.learner, made.settings), made)
    return Phrases(made, names, manifest.get("words", {}))


def test_weights_in_words() -> None:
    items = [
        {
            "id": "a",
            "weight": 1.0,
            "MPG": 3,
            "Price_in_EUR": None,
            "color": "red",
            "about": "fast red car",
            "v": [1.0, 2.0],
        },
        {"id": "b", "weight": 2.0, "MPG": 9, "Price_in_EUR": 5, "color": "blue", "about": "slow", "v": [0.5, 0.0]},
        {"id": "c", "weight": 4.0, "MPG": 8, "Price_in_EUR": 9, "color": "red", "about": "car", "v": [0.0, 1.0]},
    ]
    kinds = {"weight": "number", "MPG": "number", "Price_in_EUR": "number", "color": "category", "v": "vector"}
    encoding = infer(items, kinds=kinds | {"about": "text"}, identifier="id")
    told = phrases(encoding, words={"weight": ("heavier", "lighter"), "color=red": ("red ones", "no red ones")})
    for feature, more, less in (
        ("weight", "heavier", "lighter"),
        ("MPG", "more MPG", "less MPG"),
        ("Price_in_EUR", "more price in EUR", "less price in EUR"),
        ("Price_in_EUR missing", "unknown price in EUR", "known price in EUR"),
        ("color=red", "red ones", "no red ones"),
        ("color=blue", "rather color: blue", "not color: blue"),
        ("about~car", "“car” in about", "no “car” in about"),
        ("v[1]", "alike in v", "alike in v"),
        ("the caller's score", "your own score", "against your own score"),
    ):
        assert feature in [*encoding.names, "the caller's score"]
        assert (told.of(feature, 0.5), told.of(feature, -0.5)) == (more, less)


def test_the_numbers_of_a_vector_are_one_bar_together() -> None:
    """Its length is that of the vector of their weights: no single one means anything."""
    item = infer([{"id": "a", "v": [1.0, 2.0]}, {"id": "b", "v": [0.5, 1.0]}], identifier="", kinds={"id": "category"})
    context = infer([{"prompt": [1.0, 0.0]}, {"prompt": [0.0, 1.0]}], identifier="", kinds={"prompt": "vector"})
    told = phrases(item, context=context, crosses=[("prompt", "id"), ("prompt", "v")])
    weights = {"v[0]": 3.0, "v[1]": -4.0, "prompt[0] × id=a": -0.6, "prompt[1] × id=a": 0.8, "id=b": -2.0}
    assert [(bar.words, bar.weight, bar.share) for bar in told.bars(weights)] == [
        ("alike in v", 5.0, 1.0),
        ("not id: b", -2.0, 0.4),
        ("id: a, depending on prompt", 1.0, 0.2),
    ]
    assert told.describe_changes({}, weights) == ["alike in v", "not id: b"]
    assert told.of("prompt[1] × v[0]", 1.0) == "v, depending on prompt"


def test_crosses_and_how_texts_are_written_in_words() -> None:
    item = infer([{"id": "a", "hp": 1.0}, {"id": "b", "hp": 2.0}], identifier="id", kinds={"hp": "number"})
    context = infer([{"trip": "city"}, {"trip": "long"}], identifier="", kinds={"trip": "category"})
    told = phrases(item, context=context, crosses=[("trip", "hp")])
    assert "trip=city × hp" in FeatureCross(context, item, (("trip", "hp"),)).names
    assert (told.of("trip=city × hp", 1), told.of("trip=city × hp", -1)) == (
        "more hp for trip: city",
        "less hp for trip: city",
    )
    written = phrases(TEXTS)
    assert (written.of("text: length", 1), written.of("text: length", -1)) == ("longer", "shorter")
    assert (written.of("text: polite words", 1), written.of("text: emoji", -1)) == ("more polite words", "fewer emoji")


def test_products_in_words() -> None:
    rows = [{"id": i, "price": i % 3, "kind": ("tea", "ice")[i % 2], "sold": 10**i} for i in range(8)]
    manifest = Manifest(learner="posterior", encoding=infer(rows), settings=Settings(products=True))
    phrases = Phrases(manifest, [*manifest.candidate_names, "the caller's score"], {})
    assert phrases.of("price × price", 1.0) == "price far from average"
    assert phrases.of("price × price", -1.0) == "price near average"
    assert phrases.of("price × kind=tea", 1.0) == "rather kind: tea with more price"
    assert phrases.of("kind=ice × sold", -1.0) == "less sold with kind: ice"
    assert phrases.of("price × log sold", 1.0) == "more sold (logarithm) with more price"
    assert {phrases.of(name, 1.0) for name in manifest.candidate_names}


def test_bars_are_the_strongest_first_and_leave_out_what_was_not_learned() -> None:
    told = phrases(infer(rows(4, 3), identifier="id"))
    bars = told.bars({"f0": 0.5, "f1": -2.0, "f2": 0.0, "the caller's score": 1.0})
    assert [(bar.feature, bar.words, bar.share, bar.pluses) for bar in bars] == [
        ("f1", "less f1", 1.0, "+++"),
        ("f0", "more f0", 0.25, "+"),
    ]
    assert [bar.share for bar in told.bars({"f0": STRONG / 5, "f1": -STRONG / 2})] == [0.5, 0.2]  # a first lesson
    assert [bar.feature for bar in told.bars({"f0": 0.0, "the caller's score": 1.25})] == ["the caller's score"]
    assert told.bars({"f0": 0.0, "the caller's score": 1.0}) == []


def test_what_moved_most_is_told() -> None:
    told = phrases(infer(rows(4, 3), identifier="id"))
    before = {"f0": 1.0, "f1": 0.0, "f2": 0.0}
    assert told.describe_changes(before, before | {"f0": 0.0, "f1": 0.5}) == ["less f0", "more f1"]
    assert told.describe_changes(before, before | {"f0": 0.0, "f1": 0.1}) == ["less f0"]
    assert told.describe_changes(before, before) == []
    alike = {"f0": 1.1, "f1": -0.1, "f2": 0.1}  # a first lesson moves all that differs by as much
    assert told.describe_changes(before, alike) == ["more f0", "less f1", "1 other as much"]
    assert told.describe_changes(before, alike | {"f2": 0.05}) == ["more f0", "less f1"]


def test_bars_that_are_all_alike_are_none() -> None:
    """One answer moves all that differs by as much: it says what it may be, and not how much."""
    bars = phrases(infer(rows(4, 5), identifier="id")).bars
    alike = {f"f{i}": (0.1, -0.1)[i % 2] for i in range(5)}
    assert level(bars(alike))
    assert level(bars(alike | {"f0": 0.12}))
    assert not level(bars(alike | {"f0": 0.2}))
    assert not level(bars({"f0": 0.1, "f1": 0.1}))  # two are not many
    assert not level([])


def test_where_all_weights_are_alike_the_page_says_what_it_may_be_and_draws_no_bars(tmp_path: Path, url: str) -> None:
    made(tmp_path, learner="online-convex")  # its first step is as long for each feature
    page = Page(url, "cars")
    before = page.look()
    seen = page.teach(before, item=before.names[-1])  # the last has something to move past, whatever was drawn
    assert "It may be any of these, or several: more corrections tell which." in " ".join(seen.html.split())
    side = seen.html[seen.html.index('id="likes"') :]
    assert side.count("data-value=") >= 3
    assert "<svg" not in side[: side.index("</section>")]
    assert "others as much" in html.unescape(seen.said)
    learned = " ".join(page.look("/learned").html.split())
    assert "It may be any of these, or several: more corrections tell which." in learned
    assert "The longer the bar" not in learned
    for item in (NAMES[0], NAMES[1], NAMES[-1]):
        seen = page.teach(page.look(), item=item)
    assert "It may be any of these" not in seen.html
    assert '<rect class="value"' in seen.html


def test_a_loop_that_shows_how_it_is_done_is_pointed_to(tmp_path: Path) -> None:
    for name in ("cars", "other"):
        settings = Settings(control=0.25, exploration=0.0)
        Loop.create(
            tmp_path / f"{name}.heedful", encoding=infer(CARS, kinds=KINDS), items=CARS, settings=settings
        ).close()
    with served(tmp_path, Options(example="other")) as url:
        for path in ("", "/learned"):
            assert 'href="/loops/other/learned"' in Page(url, "cars").look(path).html
            assert 'href="/loops/other/learned"' not in Page(url, "other").look(path).html.split("<main")[1]
        assert "one list in 4 comes shuffled" in " ".join(Page(url, "cars").look().html.split())
    with served(tmp_path, Options(example="gone")) as url:
        assert "/loops/gone" not in Page(url, "cars").look().html
    with served(tmp_path) as url:
        assert "/loops/other" not in Page(url, "cars").look().html


@pytest.mark.parametrize(
    ("column", "given", "told"),
    [
        ("weight", 3504, "3,504"),
        ("Year", 1970, "1970"),
        ("price", 1234567.891, "1,234,568"),
        ("share", 0.123456, "0.1235"),
        ("share", 12.0, "12"),
        ("sold", True, "yes"),
        ("name", None, "–"),
        ("text", "a" * 141, "a" * 140 + "…"),
        ("vector", [1.0, 2.0], None),
    ],
)
def test_attributes_as_they_are_read(column: str, given: Any, told: str | None) -> None:
    assert value(column, given) == told


@pytest.mark.slow
@pytest.mark.parametrize("query", [{"bm25": (0, 40)}, {"bm25": {"kind": "number", "range": (0, 40), "optional": True}}])
def test_a_loop_of_searches_says_that_only_searches_teach_it(
    visitor: Visitor, tmp_path: Path, query: dict[str, object]
) -> None:
    encoding = infer(rows(5, 1), identifier="id", kinds={"f0": "number"})
    items = rows(5, 1)
    with Loop.create(tmp_path / "l.heedful", encoding=encoding, items=items, query_features=declare(query)) as loop:
        decision = loop.decide([{"id": f"i{j}", "bm25": j} for j in range(3)])
        loop.feedback(decision.id, id="e1", clicks=[decision.shown[-1]])
    for path in ("/loops/l", "/loops/l/hand", "/loops/l?hand=%5B%22i1%22%5D"):
        page = visitor.get(path)
        assert (page.status, page.names, list(page.lessons)) == (200, [], ["e1"])
        assert "bm25" in words(page.one("section[@id='hand']"))
    assert visitor.post("/loops/l/undo", {"event": "e1", "hand": ""}, hx_request="true").lessons == {"e1": False}
