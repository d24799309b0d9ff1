"""The page that says why an item had its score: what the loop says, of every kind, and every refusal."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import quote

from browsing import Visitor, words

from loops import small_loop


def test_feedback_is_told_in_words_and_lessons_lead_here(visitor: Visitor, tmp_path: Path) -> None:
    with small_loop(tmp_path / "cars.heedful") as loop:
        for i in range(3):
            shown = loop.decide(id=f"d {i}&", person="ann").shown
            loop.feedback(f"d {i}&", id=f"e{i}", better=[shown[3]])
    learned = visitor.get("/loops/cars/learned")
    [*links] = [link.attrib["href"] for link in learned.all("a") if words(link) == "Why shown"]
    assert links == [f"/loops/cars/why?decision=d+{i}%26" for i in (2, 1, 0)]
    page = visitor.get(links[0])
    assert page.status == 200
    rows = [words(row.find("th")) for row in page.all("tbody/tr")]
    assert sum(row.startswith("ann: ") for row in rows) == 2
    assert page.fields("/loops/cars/why") == {"decision": "d 2&", "item": ""}


def test_what_is_not_there_is_said(visitor: Visitor, tmp_path: Path) -> None:
    with small_loop(tmp_path / "cars.heedful") as loop:
        loop.decide(["i0", "i1"], id="d", person="ann")
        loop.decide(["i0", "i1"], id="gone", person="bob")
        loop.decide([], id="empty")
        loop.forget("bob")
    asks = visitor.get("/loops/cars/why")
    assert (asks.status, asks.all("section")) == (200, [])
    for query, status, told in (
        ("decision=x", 404, "decision x is not in the log"),
        ("decision=gone", 404, "decision gone was forgotten"),
        ("decision=empty", 404, "decision empty showed nothing that was on offer"),
        ("decision=d&item=i7", 404, "item i7 is not among the candidates of decision d"),
        (f"decision={'x' * 201}", 422, "decision: expected"),
        (f"decision=d&item={quote(chr(1))}", 422, "item: expected"),
    ):
        page = visitor.get(f"/loops/cars/why?{query}")
        assert page.status == status
        assert told in words(page.tree).replace("Decision", "decision").replace("Item", "item")
    odd = visitor.get(f"/loops/cars/why?decision=d&item={quote('<b>x</b>')}")
    assert "<b>x" not in odd.html
