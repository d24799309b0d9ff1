"""Candidates that come as objects: one that names an item on offer is that item, and fields that nobody declared are
named, as nothing is learned from them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from heedful import Loop, Settings, infer
from heedful.data.jsonl import as_lines
from heedful.io import export_lines, import_lines, rehearse
from loops import bits, choice_loop, rating_loop, rows, small_loop

FIVE = ["i0", "i1", "i2", "i3", "i4"]
SCORED = [{"id": name, "bm25": 6.4 - j} for j, name in enumerate(FIVE)]


@pytest.fixture
def loop(tmp_path: Path) -> Any:
    with small_loop(tmp_path / "l", "perceptron", control=0.0) as made:
        for i in range(6):
            made.record(FIVE, FIVE, id=f"t{i}")
            made.feedback(f"t{i}", better=["i3"])
        yield made


def seen(loop: Loop, id: str) -> Any:
    """What the learner sees of the candidates of a decision (m, N)."""
    known = loop.projection.find_decision(id)
    assert known is not None
    return loop.projection.requests.context(known).x


def test_an_object_that_names_an_item_on_offer_is_that_item(loop: Loop) -> None:
    """Its features come from the catalogue, and the field that the loop does not know is named."""
    named, d = loop.decide(FIVE, id="named"), loop.decide(SCORED, id="objects")
    assert (d.shown, d.undeclared) == (named.shown, ("candidates.bm25",))
    assert named.undeclared is None
    assert "undeclared" not in named.plain()
    assert np.array_equal(seen(loop, "objects"), seen(loop, "named"))
    assert loop.decide([{"name": "x", **each} for each in SCORED], id="more").undeclared == (
        "candidates.bm25",
        "candidates.name",
    )
    assert loop.decide(SCORED, id="objects") == d  # asked again
    assert loop.rank(SCORED) == named.shown
    assert loop.ranking(SCORED).undeclared == ("candidates.bm25",)
    assert loop.decide([{"id": name} for name in FIVE]).undeclared is None
    d = loop.decide([*SCORED[:3], {"id": "tram", "bm25": 2.0}], prior=[3.0, 2.0, 0.0, 1.0])
    assert (d.shown[2], d.unknown, d.undeclared) == ("tram", ("tram",), ("candidates.bm25",))
    assert loop.verify() == []


def test_what_an_object_does_not_say_of_an_item_on_offer_is_as_in_the_catalogue(tmp_path: Path) -> None:
    """Some columns came with the request; the others, and what the log keeps, are the item's. A line of JSON says it
    again, also to a loop in which the item is another one since."""
    there = {row["id"]: row for row in rows(12, 4)}
    with small_loop(tmp_path / "a", "perceptron", control=0.0) as loop:
        d = loop.decide([{"id": "i0", "f1": 7.5}, {"id": "i1"}, {"id": "new", "f0": 2.0}], id="d")
        assert (set(d.shown), d.unknown, d.undeclared) == ({"i0", "i1", "new"}, None, None)
        assert loop.feedback("d", better=[d.shown[-1]]).learned
        loop.put_items([{"id": "i0", "f0": 0.0, "f1": 0.0, "f2": 0.0, "f3": 0.0}])
        numbers = [
            loop.manifest.encoding.encode({**there["i0"], "f1": 7.5}),
            loop.manifest.encoding.encode(there["i1"]),
        ]
        numbers.append(loop.manifest.encoding.encode({"id": "new", "f0": 2.0}))
        assert np.array_equal(seen(loop, "d")[:, :-1], np.array(numbers))
        assert {loop.why("d").item, loop.why("d").next} <= set(d.shown)
        lines = list(export_lines(loop))
        [decision] = [line for line in lines if line["kind"] == "decision"]
        assert list(decision["candidates"][:2]) == [{**there["i0"], "f1": 7.5}, there["i1"]]
        with small_loop(tmp_path / "b", "perceptron", n_items=0, control=0.0) as other:
            written = [json.loads(json.dumps(line)) for line in lines]
            written.sort(key=lambda line: line["kind"] != "item")  # as it is now, before the decision
            assert {o.status for o in import_lines(other, as_lines(written))} == {"applied"}
            assert np.array_equal(seen(other, "d"), seen(loop, "d"))
            assert bits(other) == bits(loop)


def test_without_texts_the_log_keeps_the_features_of_such_a_candidate(tmp_path: Path) -> None:
    items = [{"id": f"i{j}", "title": word, "price": float(j)} for j, word in enumerate(("red", "green", "blue"))]
    encoding = infer(items, identifier="id", kinds={"title": "text", "price": "number"})
    with Loop.create(
        tmp_path / "l", encoding=encoding, items=items, settings=Settings(store_text=False, control=0.0)
    ) as loop:
        loop.decide([{"id": "i0", "price": 9.0}, {"id": "i1", "price": 1.0}], id="d")
        expected = [encoding.encode({**items[0], "price": 9.0}), encoding.encode(items[1])]
        assert np.array_equal(seen(loop, "d")[:, :-1], np.array(expected))
        [decision] = [line for line in export_lines(loop) if line["kind"] == "decision"]
        assert np.array_equal([each["features"] for each in decision["candidates"]], expected)


def test_items_known_by_number_may_be_named_by_objects_too(tmp_path: Path) -> None:
    with rating_loop(tmp_path / "l") as loop:
        d = loop.decide([{"id": name, "bm25": 1.0} for name in FIVE], person="p", id="d")
        assert (set(d.shown) <= set(FIVE), d.undeclared) == (True, ("candidates.bm25",))
        with pytest.raises(ValueError, match="got what came along"):
            loop.decide([{"id": "another", "title": "not on offer"}], person="p")
    with choice_loop(tmp_path / "c") as loop:
        assert loop.decide([{"id": name, "bm25": 1.0} for name in FIVE]).undeclared == ("candidates.bm25",)


def test_fields_of_a_context_that_the_loop_has_no_feature_for_are_named(tmp_path: Path) -> None:
    asked = [{"device": device} for device in ("phone", "desk") * 4]
    around = infer(asked, identifier="")
    with Loop.create(
        tmp_path / "l", encoding=infer(rows(5, 2), identifier="id"), items=rows(5, 2), context=around,
        crosses=[("device", "f0")], settings=Settings(control=0.0),
    ) as loop:  # fmt: skip
        d = loop.decide(context={"device": "phone", "country": "de"}, id="d")
        assert d.undeclared == ("context.country",)
        assert loop.decide(context={"device": "phone"}).undeclared is None
        assert loop.record(FIVE[:2], FIVE[:2], id="r", context={"hour": 3}).undeclared == ("context.hour",)
        assert loop.decide([{"id": "i0", "a": 1}], context={"b": 1}).undeclared == ("candidates.a", "context.b")


def lines_of(n: int, candidates: Any) -> list[dict[str, Any]]:
    """n decisions on the candidates, shown in their order, each with a better item; n times a number of its own."""
    told: list[dict[str, Any]] = []
    for i in range(n):
        told.append(
            {"kind": "decision", "id": f"d{i}", "candidates": candidates, "shown": [c["id"] for c in candidates]}
        )
        told.append({"kind": "feedback", "id": f"e{i}", "decision": f"d{i}", "better": [candidates[i % 3]["id"]]})
    return told


def test_an_import_learns_of_items_that_objects_name_and_says_which_fields_it_does_not_know(tmp_path: Path) -> None:
    written = list(as_lines(lines_of(12, SCORED)))
    by_name = [line | {"candidates": FIVE} if "candidates" in line else line for line in lines_of(12, SCORED)]
    with small_loop(tmp_path / "a", control=0.0) as loop, small_loop(tmp_path / "b", control=0.0) as other:
        with rehearse(loop.path) as dry:
            expected = list(import_lines(dry, written))
        outcomes = list(import_lines(loop, written))
        assert outcomes == expected
        for outcome in outcomes:
            assert outcome.status == "applied"
            if outcome.kind == "decision":
                assert outcome.reason is not None
                assert "candidates.bm25" in outcome.reason
                assert "query_features" in outcome.reason
        assert {each.status for each in import_lines(other, as_lines(by_name))} == {"applied"}
        assert bits(loop) == bits(other)
        assert {each.status for each in import_lines(loop, written)} == {"duplicate"}


def test_feedback_that_nothing_tells_candidates_apart_for_moves_nothing_and_that_is_said(tmp_path: Path) -> None:
    """The reason is that no two of them differ, not that the model says it already."""
    strangers = [{"id": f"x{j}", "bm25": 1.0 * j} for j in range(4)]
    with small_loop(tmp_path / "l", "perceptron", control=0.0) as loop:
        for i in range(24):
            loop.record(strangers, [each["id"] for each in strangers], id=f"d{i}")
            loop.feedback(f"d{i}", better=["x3"])
        assert loop.projection.moves == (24, 0)
        assert "the candidates of each decision have the same features" in loop.unmoved
        assert "what was said is what the model says already" not in loop.unmoved
