"""The page of a loop of routes: one model, whose answer gets a thumb."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from browsing import Seen, Visitor, words

from heedful import Loop
from heedful.server.pages.fields_widget import PREFIX
from kinds import KINDS
from loops import bits

BASE = "/loops/l"
[ROUTING] = [kind for kind in KINDS if kind.name == "routing"]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    ROUTING.make(tmp_path / "l.heedful", control=0.0).close()
    return tmp_path / "l.heedful"


def thumb(seen: Seen, event: str, said: str = "up") -> dict[str, str]:
    """A thumb for the model on the page, as the page sends it."""
    [name] = seen.names
    return seen.kept | {"person": "", "event": event, "kind": "thumb", f"{PREFIX}thumb": said, f"{PREFIX}item": name}


def test_a_thumb_counts_once_and_another_card_comes(visitor: Visitor, path: Path) -> None:
    seen = visitor.get(BASE)
    assert "Was the answer of this model good?" in words(seen.tree)
    once, twice = (visitor.post(f"{BASE}/teach", thumb(seen, "e1"), hx_request="true") for _ in range(2))
    assert (once.status, twice.status, twice.lessons) == (200, 200, {"e1": True})
    assert "Thumb up for the answer" in words(once.tree)
    other = visitor.post(f"{BASE}/teach", thumb(seen, "e1", "down"), hx_request="true")
    assert (other.status, "with other content" in words(other.tree)) == (409, True)
    with Loop.open(path) as loop:
        [told] = loop.lessons()
        assert (told.form, told.values, told.chosen, told.learned) == ("thumb", (1.0,), tuple(seen.names), True)


def test_an_edit_is_told_as_the_share_that_it_changed(visitor: Visitor, path: Path) -> None:
    with Loop.open(path) as loop:
        loop.decide(id="d", candidates=["i3"], context={"embedding": [1.0, 0.0, 0.0]})
        assert loop.feedback("d", id="e", edit={"from": "a b c d", "to": "a b x d"}).learned
    assert "Changed 25 % of the answer" in words(visitor.get(BASE).tree)
    learned = visitor.get(f"{BASE}/learned")
    assert learned.status == 200
    assert "Mean thumb less cost" in words(learned.tree)
    assert "depending on embedding" in words(learned.tree)


@pytest.mark.parametrize(("field", "value"), [("thumb", "sideways"), ("thumb", ""), ("item", "nobody")])
def test_what_is_no_thumb_teaches_nothing(visitor: Visitor, path: Path, field: str, value: str) -> None:
    form = thumb(visitor.get(BASE), "e1") | {f"{PREFIX}{field}": value}
    with Loop.open(path) as loop:
        before = loop.projection.log.counts(), bits(loop)
    answer = visitor.post(f"{BASE}/teach", form, hx_request="true")
    assert answer.status in (409, 422)
    with Loop.open(path) as loop:
        assert (loop.projection.log.counts(), bits(loop)) == before


@pytest.mark.slow
def test_a_loop_of_routes_speaks_of_routes(visitor: Visitor, tmp_path: Path) -> None:
    """On its pages as in its report and its evaluation: a decision shows one model, and no list."""
    told = []
    with ROUTING.make(tmp_path / "l.heedful", control=0.5) as loop:
        for i in range(60):
            d = loop.decide(context={"embedding": [1.0, 0.0, float(i % 3)]}, id=f"d{i}", person=f"p{i % 7}")
            loop.feedback(d.id, thumb="up" if i % 4 else "down")
        loop.decide(context={"embedding": [1.0, 0.0, 0.0]}, id="later", deferred=True)
        told += [str(loop.projection.interaction.findings(loop.report())), str(loop.evaluate())]
    told += [
        words(visitor.get(f"{BASE}/{page}").tree) for page in ("learned?person=p1", "learned", "proof?learner=cheapest")
    ]
    teach = next(
        seen for seen in (visitor.get(BASE) for _ in range(50)) if "ignores what was learned" in words(seen.tree)
    )
    told += [
        words(teach.one("p[@class='note']")),
        *[each.attrib["title"] for each in teach.all("abbr[@class='badge']")],
    ]
    for text in told:
        assert re.search(r"\b[Ll]ists?\b", text) is None, text
    assert "routes shown" in told[0]
    assert "This route ignores what was learned, as one route in 2 does" in told[5]
