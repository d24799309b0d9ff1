"""The page to teach on, of every kind of feedback that is given on cards: what an answer does, who may give one, and
what is refused."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import pytest
from browsing import Seen, Visitor, words

from heedful import Loop
from heedful.io import export_lines
from heedful.server.keys import Keys
from heedful.server.pages.fields_widget import PREFIX
from kinds import KINDS, Kind
from loops import bits

BASE = "/loops/l"
Form = dict[str, str]


class Cards(NamedTuple):
    """A kind of feedback that is given on cards."""

    kind: Kind
    answer: Callable[[Seen, str], Form]
    """the fields that say something of an item"""
    person: str = ""
    stay: bool = True
    """whether the same cards are shown after an answer"""

    def make(self, path: Path, n_items: int = 12) -> Path:
        self.kind.make(path, control=0.0, n_items=n_items).close()
        return path

    def open(self, path: Path) -> Loop:
        return Loop.open(path, learner=self.kind.own)

    def get(self, visitor: Visitor) -> Seen:
        return visitor.get(f"{BASE}?person={self.person}" if self.person else BASE)

    def form(self, seen: Seen, item: str, event: str, **more: str) -> Form:
        """An answer as the page sends it."""
        return seen.kept | {"person": self.person, "event": event} | self.answer(seen, item) | more


def extremes(seen: Seen, item: str) -> Form:
    other = next(name for name in reversed(seen.names) if name != item)
    return {"kind": "best", f"{PREFIX}best": item, f"{PREFIX}worst": other}


BY_NAME = {kind.name: kind for kind in KINDS}
CARDS = (
    Cards(BY_NAME["coactive"], lambda seen, item: {"kind": "pick", "item": item}),
    Cards(BY_NAME["ordinal"], lambda seen, item: {"kind": "grade", "item": item, "grade": "2"}),
    Cards(BY_NAME["rating"], lambda seen, item: {"kind": "rating", "item": item, "rating": "2"}, "ann"),
    Cards(BY_NAME["best-worst"], extremes, stay=False),
)
each = pytest.mark.parametrize("cards", CARDS, ids=lambda cards: cards.kind.name)


def test_kinds_that_do_not_show_several_cards_have_tests_of_their_own() -> None:
    assert BY_NAME.keys() - {cards.kind.name for cards in CARDS} == {"comparison", "one", "routing"}


@each
def test_an_answer_sent_again_counts_once(visitor: Visitor, cards: Cards, tmp_path: Path) -> None:
    path = cards.make(tmp_path / "l.heedful")
    seen = cards.get(visitor)
    form = cards.form(seen, seen.names[1], "same")
    once, twice = (visitor.post(f"{BASE}/teach", form, hx_request="true") for _ in range(2))
    assert (once.status, twice.status, twice.marks) == (200, 200, once.marks)
    if cards.stay:
        assert sorted(once.names) == sorted(seen.names)
        assert once.names == twice.names
    else:
        assert once.kept["decision"] != seen.kept["decision"]
    other = visitor.post(f"{BASE}/teach", cards.form(seen, seen.names[0], "same"), hx_request="true")
    assert (other.status, "with other content" in words(other.tree)) == (409, True)
    assert twice.lessons == {"same": True}
    with cards.open(path) as loop:
        assert loop.projection.log.counts()["feedback"] == 1
        [told] = loop.lessons()
        assert (told.decision, told.person, told.learned) == (seen.kept["decision"], cards.person or None, True)
    again = cards.form(seen, seen.names[2], "again", decision="")  # to a list that the page itself made
    assert [visitor.post(f"{BASE}/teach", again).status for _ in range(2)] == [303, 303]
    with cards.open(path) as loop:
        assert loop.projection.log.counts()["feedback"] == 2
        assert (loop.lessons()[0].decision, loop.report().imported) == ("again-seen", 1)


@each
def test_undo_is_as_if_it_had_never_been(visitor: Visitor, cards: Cards, tmp_path: Path) -> None:
    path = cards.make(tmp_path / "l.heedful")
    with cards.open(path) as loop:
        empty = bits(loop)
    seen = cards.get(visitor)
    then = visitor.post(f"{BASE}/teach", cards.form(seen, seen.names[2], "e1"), hx_request="true")
    assert then.one("section[@id='hand']").attrib["data-lesson"] == "e1"
    kept = {name: seen.kept[name] for name in ("hand", "decision")}
    form = {"event": "e1", "person": cards.person, **kept}
    back, again, unknown = (
        visitor.post(f"{BASE}/undo", form | more, hx_request="true") for more in ({}, {}, {"event": "none"})
    )
    assert back.said.startswith("Taken back: “")
    assert back.one("section[@id='hand']").attrib["data-lesson"] == ""
    assert (again.status, again.lessons) == (200, back.lessons)
    assert (unknown.status, "feedback none is not in the log" in words(unknown.tree)) == (409, True)
    assert back.lessons == {"e1": False}
    if cards.stay:
        assert (back.names, back.marks) == (seen.names, seen.marks)
    with cards.open(path) as loop:
        assert bits(loop) == empty
        assert loop.verify() == []


@each
def test_it_works_without_a_script(visitor: Visitor, cards: Cards, tmp_path: Path) -> None:
    path = cards.make(tmp_path / "l.heedful")
    seen = cards.get(visitor)
    form = seen.fields(f"{BASE}/teach") | cards.answer(seen, seen.names[0])
    then = visitor.post(f"{BASE}/teach", form)
    assert then.status == 303
    page = visitor.get(then.headers["location"])
    assert page.lessons == {form["event"]: True}
    assert sorted(page.names) == sorted(seen.names) or not cards.stay
    back = visitor.post(f"{BASE}/undo", page.fields(f"{BASE}/undo"))
    assert back.status == 303
    assert visitor.get(back.headers["location"]).lessons == {form["event"]: False}
    with cards.open(path) as loop:
        assert loop.projection.log.counts()["undo"] == 1


@each
def test_who_may_only_look_on_gives_no_answer(visitor: Visitor, cards: Cards, tmp_path: Path) -> None:
    """And nothing is noted as shown."""
    path = cards.make(tmp_path / "l.heedful")
    with closing(Keys(tmp_path)) as keys:
        _, secret = keys.create("looks on", scopes=["read"])
    visitor.sign_in(secret)
    seen = cards.get(visitor)
    assert seen.status == 200
    assert len(seen.names) > 2
    forms = [form for form in seen.all("form") if form.get("action") == f"{BASE}/teach"]
    assert [form for form in forms if form.find(".//button") is not None] == []
    assert seen.kept["decision"] == ""
    answer = visitor.post(f"{BASE}/teach", cards.form(seen, seen.names[0], "e1"))
    assert answer.status == 403
    with cards.open(path) as loop:
        assert loop.projection.log.counts().keys() == {"loop", "item"}


BAD: list[tuple[Form, str]] = [
    ({"event": ""}, "event: expected a text"),
    ({"event": "a" * 181}, "event: expected a text"),
    ({"hand": "no"}, "hand: expected a list of names as JSON"),
    ({"hand": '{"a": 1}'}, "hand: expected a list"),
    ({"hand": '["i0", "i0"]'}, "hand: expected each once"),
    ({"hand": "[]"}, "hand: expected a list"),
    ({"decision": "elsewhere"}, "decision elsewhere is not in the log"),
    ({"person": "a\x00b"}, "person: expected a text"),
    ({"kind": "shuffle"}, "kind: expected "),
]


@each
def test_bad_input_teaches_nothing(visitor: Visitor, cards: Cards, tmp_path: Path) -> None:
    """Neither in the log nor in the model: `elsewhere` is a list of another loop."""
    path = cards.make(tmp_path / "l.heedful")
    with cards.kind.make(tmp_path / "other.heedful") as other:
        other.decide(["i0", "i1"], id="elsewhere")
    seen = cards.get(visitor)
    good = cards.form(seen, seen.names[0], "e1")
    with cards.open(path) as loop:
        before = loop.projection.log.counts(), bits(loop)
    unknown = {name: "tank" for name, value in cards.answer(seen, seen.names[0]).items() if value == seen.names[0]}
    none = dict.fromkeys(unknown, "")
    for form, told in [*BAD, (unknown, "tank"), (unknown | {"decision": ""}, "tank"), (none, ": expected ")]:
        for headers in ({"hx_request": "true"}, {}):
            answer = visitor.post(f"{BASE}/teach", good | form, **headers)
            assert answer.status in (409, 422), (form, answer.html)
            assert told in words(answer.tree)
            assert ("<html" in answer.html) is not bool(headers)
            assert answer.all("*[@role='alert']") or not headers
    with cards.open(path) as loop:
        assert (loop.projection.log.counts(), bits(loop)) == before


@each
def test_names_are_only_ever_text(visitor: Visitor, cards: Cards, tmp_path: Path) -> None:
    evil = "<img src=x onerror=alert(1)>\"'&"
    path = cards.make(tmp_path / "l.heedful", n_items=2)
    with cards.open(path) as loop:
        row = next(line for line in export_lines(loop) if line["kind"] == "item")
        loop.put_items([{**{name: each for name, each in row.items() if name not in ("kind", "title")}, "id": evil}])
    seen = cards.get(visitor)
    then = visitor.post(f"{BASE}/teach", cards.form(seen, evil, "e1"), hx_request="true")
    assert then.lessons == {"e1": True}
    for page in (seen, then, visitor.get(f"{BASE}/learned")):
        assert page.status == 200
        assert evil not in page.html
        assert evil in words(page.tree)
