"""Items of the catalogue with what a request says of each: query-document features, declared, without a table.

The oracle puts the features together by hand: the item's as its encoding says, the request's as (value - middle) / half
of the range, the products with the context, the caller's score.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from heedful import Encoding, Loop, Settings, declare, infer
from heedful.io import export_lines
from heedful.testing import KindCase, check_kind
from kinds import checks
from loops import bits_of, rows

QUERY = {"bm25": (0, 40), "clicks_7d": (0, 100), "source": ["web", "app"]}
ITEMS = rows(12, 4)
ENCODING = infer(ITEMS, identifier="id", kinds={f"f{i}": "number" for i in range(4)})


def shop(path: Path, query: Any = QUERY, learner: str | None = None, n_items: int = 12, **settings: Any) -> Loop:
    how: dict[str, Any] = {"control": 0.0, "shrink": 1.0} | settings
    return Loop.create(
        path,
        encoding=ENCODING,
        items=ITEMS[:n_items],
        learner=learner,
        settings=Settings(**how),
        query_features=declare(query),
    )


def said(k: int, n: int = 8) -> list[dict[str, Any]]:
    """What a request says of n of the items, the k-th."""
    rng = np.random.default_rng(k)
    return [
        {
            "id": f"i{j}",
            "bm25": round(float(rng.uniform(0, 50)), 2),
            "clicks_7d": int(rng.integers(0, 90)),
            "source": ("web", "app", "post")[int(rng.integers(3))],
        }
        for j in rng.permutation(12)[:n].tolist()
    ]


def case(**settings: Any) -> KindCase:
    """Loops of requests that say something of items."""

    def make(path: Path, n_items: int = 12) -> Loop:
        return shop(path, n_items=n_items, **settings)

    return KindCase(
        make, lambda i: {"candidates": said(i), "show": 4}, lambda i, shown: {"clicks": [shown[1], shown[3]]}
    )


def by_hand(candidates: list[dict[str, Any]], items: dict[str, dict[str, Any]]) -> Any:
    """m x N, float32, by the definition."""
    found = []
    for each in candidates:
        own = ENCODING.encode(items[each["id"]]).tolist()
        numbers = [(each["bm25"] - 20.0) / 20.0, (each["clicks_7d"] - 50.0) / 50.0]
        found.append([*own, *numbers, float(each["source"] == "web"), float(each["source"] == "app")])
    return np.array(found, np.float32)


def test_an_item_and_what_the_request_says_of_it_are_one_candidate(tmp_path: Path) -> None:
    there = {row["id"]: row for row in ITEMS}
    with shop(tmp_path / "loop") as loop:
        names = [f"f{i}" for i in range(4)]
        assert loop.feature_names == [*names, "bm25", "clicks_7d", "source=web", "source=app", "the caller's score"]
        prior = [float(j % 3) for j in range(8)]
        d = loop.decide(said(0), person="p", prior=prior, id="d")
        assert set(d.shown) == {each["id"] for each in said(0)}
        known = loop.projection.find_decision("d")
        assert known is not None
        x = loop.projection.requests.context(known).x
        assert np.array_equal(x[:, :-1], by_hand(said(0), there))
        assert loop.unknown["source=post"] == sum(each["source"] == "post" for each in said(0))
        assert loop.feedback("d", better=[d.shown[4]]).learned
        there["i3"] = {"id": "i3", "f0": 8.0, "f1": 0.0, "f2": 1.0, "f3": 2.0}
        loop.put_items([there["i3"]])
        loop.withdraw("i4")
        with pytest.raises(LookupError, match=r"expected items on offer, .*, got 'i4'"):
            loop.decide([{**said(0)[0], "id": "i4"}], strict=True)
        assert np.array_equal(loop.projection.requests.context(known).x, x)  # as it was then


def test_what_decides_learns_and_explains_is_the_same_as_of_whole_objects(tmp_path: Path) -> None:
    """Against a loop whose candidates come with all of their features, put together by hand: the same lists, the same
    weights, the same explanation."""
    there = {row["id"]: row for row in ITEMS}
    whole = Encoding(columns=(*ENCODING.columns, *declare(QUERY).columns), identifier="id")
    other = Loop.create(tmp_path / "other", encoding=whole, settings=Settings(control=0.0, shrink=1.0))
    with shop(tmp_path / "loop") as loop, other:
        for t in range(30):
            inline = [{"id": e["id"], "features": x} for e, x in zip(said(t), by_hand(said(t), there).tolist())]
            prior = None if t % 3 else [float((5 * j) % 7) for j in range(8)]
            both = [each.decide(c, person=f"p{t % 2}", prior=prior, id=f"d{t}", show=5 if t % 2 else None)
                    for each, c in ((loop, said(t)), (other, inline))]  # fmt: skip
            assert both[0].shown == both[1].shown
            assert both[0].probability == both[1].probability
            for each in (loop, other):
                form: dict[str, Any] = {"clicks": [both[0].shown[2]]} if t % 4 else {"better": [both[0].shown[3]]}
                each.feedback(f"d{t}", id=f"e{t}", **form)
        assert bits_of(loop.projection.model) == bits_of(other.projection.model)
        assert loop.weights == other.weights
        ours, theirs = (each.why("d29", budget=0.0) for each in (loop, other))
        assert [moved._replace(seq=0) for moved in ours.events] == [moved._replace(seq=0) for moved in theirs.events]
        assert ours._replace(events=(), version=0) == theirs._replace(events=(), version=0)
        assert {part.name for part in ours.features} & {"bm25", "clicks_7d"}
        assert loop.evaluate("perceptron") == other.evaluate("perceptron")
        assert loop.rank(said(1), person="p1") == other.rank(
            [{"id": e["id"], "features": x} for e, x in zip(said(1), by_hand(said(1), there).tolist())], person="p1"
        )


@checks(case(), "undone_or_forgotten_is_as_if_it_had_never_been", "a_restart_at_any_point_changes_nothing")
def test_it_is_in_the_log_and_comes_out_of_it(check: Callable[[Path], None], folder: Path) -> None:
    check(folder)


@pytest.mark.parametrize("settings", [{}, {"store_text": False}, {"keep_unshown": False}])
def test_exported_and_imported_it_learns_the_same(folder: Path, settings: dict[str, Any]) -> None:
    [check] = [each for each in check_kind(case(**settings)) if each.__name__.startswith("exported")]
    check(folder)
    with Loop.open(folder / "a") as loop:
        line = next(line for line in export_lines(loop) if line["kind"] == "decision")
        assert set(line["candidates"][0]) == {"id", "query_features"}


def test_with_a_context_and_crosses(tmp_path: Path) -> None:
    context = infer([{"hour": 1.0}, {"hour": 9.0}], identifier="", kinds={"hour": "number"})
    loop = Loop.create(
        tmp_path / "loop",
        encoding=ENCODING,
        items=ITEMS,
        context=context,
        crosses=[("hour", "bm25"), ("hour", "f1")],
        query_features=declare(QUERY),
        settings=Settings(control=0.0),
    )
    with loop:
        d = loop.decide(said(0), context={"hour": 5.0}, id="d")
        x = loop.projection.requests.context(loop.projection.find_decision("d")).x  # type: ignore[arg-type]
        plain = by_hand(said(0), {row["id"]: row for row in ITEMS})
        hour = context.encode({"hour": 5.0})[0]
        crossed = np.column_stack([plain, hour * plain[:, 4], hour * plain[:, 1]])
        assert np.array_equal(x[:, :-1], crossed)
        assert loop.feedback(d.id, edit={"f1": 2.0, "bm25": 1.0}, item=d.shown[0]).learned
        assert loop.verify() == []


def test_items_of_which_nothing_is_known_but_what_requests_say(tmp_path: Path) -> None:
    with Loop.create(
        tmp_path / "loop", items=[{"id": "a"}, {"id": "b"}], query_features=declare({"s": (0, 1)})
    ) as loop:
        d = loop.decide([{"id": "a", "s": 0.1}, {"id": "b", "s": 0.9}])
        assert loop.feedback(d.id, better=[d.shown[1]]).learned
        assert loop.verify() == []


GOOD = {"id": "i1", "bm25": 12.7, "clicks_7d": 3, "source": "web"}
BAD: dict[str, tuple[Any, str]] = {
    "unknown": (
        {**GOOD, "bm24": 1},
        r"candidates\[1\]: expected id, bm25, clicks_7d, source, got another field: 'bm24'",
    ),
    "an attribute of items": ({**GOOD, "f0": 1.0}, r"candidates\[1\]: expected id, .*, got another field: 'f0'"),
    "missing": (
        {"id": "i1", "bm25": 1.0, "source": "web"},
        r"candidates\[1\]: clicks_7d: expected a value, got nothing",
    ),
    "none": ({**GOOD, "bm25": None}, r"candidates\[1\]: bm25: expected a value, got nothing"),
    "not a number": ({**GOOD, "bm25": float("nan")}, r"candidates\[1\]: bm25: expected a value, got nan"),
    "text": ({**GOOD, "bm25": "high"}, r"candidates\[1\]: bm25: expected a finite number, got 'high'"),
    "infinite": ({**GOOD, "bm25": float("inf")}, r"candidates\[1\]: bm25: expected a finite number, got inf"),
    "a list": ({**GOOD, "source": [["web"]]}, r"candidates\[1\]: source: expected a text"),
    "no id": ({"bm25": 1.0, "clicks_7d": 3, "source": "web"}, r"candidates\[1\]: id: expected the name of an item"),
    "no object": ("i1", r"candidates\[1\]: expected items on offer with bm25, clicks_7d, source"),
    "encoded wrongly": ({"id": "i1", "query_features": [1.0]}, r"candidates\[1\]: query_features: "),
    "encoded and more": ({"id": "i1", "query_features": [1.0] * 4, "bm25": 1}, r"candidates\[1\]: expected id, query_"),
}


@pytest.mark.parametrize(("candidate", "told"), BAD.values(), ids=BAD.keys())
def test_bad_candidates_are_said_by_name_and_change_nothing(tmp_path: Path, candidate: Any, told: str) -> None:
    with shop(tmp_path / "loop") as loop:
        before = loop.projection.log.counts()
        with pytest.raises(ValueError, match=f"^{told}"):
            loop.decide([{**GOOD, "id": "i0"}, candidate])
        with pytest.raises(ValueError, match=r"^candidates: 'i0': bm25: expected a value, got nothing"):
            loop.decide()
        with pytest.raises(ValueError, match=r"^candidates: 'i2': bm25: expected a value, got nothing"):
            loop.decide(["i2", "i1"])
        with pytest.raises(ValueError, match=r"^candidates: expected items on offer with bm25.*, got an array"):
            loop.decide(np.zeros((2, 8)))
        with pytest.raises(LookupError, match=r"expected items on offer, .*, got 'x'"):
            loop.decide([{**GOOD, "id": "x"}], strict=True)
        assert loop.projection.log.counts() == before


def test_an_item_that_is_not_on_offer_keeps_the_place_of_its_score(tmp_path: Path) -> None:
    with shop(tmp_path / "loop") as loop:
        candidates = [{**GOOD, "id": name} for name in ("i1", "x", "i2", "i1")]
        d = loop.decide(candidates, prior=[3.0, 2.0, 1.0, 0.0], id="d")  # an id decides which neighbours are swapped
        assert d.shown == ("i1", "x", "i2")
        assert loop.feedback(d.id, better=["i2"]).learned
        assert loop.decide([{**GOOD, "id": "y"}]).shown == ("y",)
        assert loop.verify() == []
    with Loop.open(tmp_path / "loop") as loop:
        assert loop.verify() == []


def test_what_is_optional_may_be_missing_and_a_feature_says_so(tmp_path: Path) -> None:
    query = {"bm25": {"kind": "number", "range": (0, 40), "optional": True}, "v": {"kind": "vector", "size": 2}}
    optional = {"bm25": query["bm25"]}
    with shop(tmp_path / "loop", optional) as loop:
        assert loop.feature_names[4:6] == ["bm25", "bm25 missing"]
        loop.decide(["i0", {"id": "i1"}][:1], id="d")
        known = loop.projection.find_decision("d")
        assert known is not None
        assert loop.projection.requests.context(known).x[0, 4:6].tolist() == [0.0, 1.0]
        assert set(loop.decide().shown) == set(loop.items)
    with shop(tmp_path / "both", query) as loop:
        loop.decide([{"id": "i0", "v": [1, 2]}], id="d")
        known = loop.projection.find_decision("d")
        assert known is not None
        assert loop.projection.requests.context(known).x[0, 4:8].tolist() == [0.0, 1.0, 1.0, 2.0]


DECLARATIONS: dict[str, tuple[Any, str]] = {
    "nothing": ({}, "query_features: expected what each is, by name"),
    "no object": ([1], "query_features: expected what each is, by name"),
    "no name": ({"": (0, 1)}, "query_features: expected printable texts as names"),
    "one number": ({"a": (0,)}, "query_features: a: range: expected two numbers"),
    "backwards": ({"a": (1, 0)}, "query_features: a: range: expected two numbers"),
    "infinite": ({"a": (0, float("inf"))}, "query_features: a: range: expected two numbers"),
    "true": ({"a": (False, True)}, "query_features: a: range: expected two numbers"),
    "a kind that is none": ({"a": {"kind": "text"}}, "query_features: a: expected .* an object with kind number"),
    "another field": ({"a": {"kind": "number", "levels": ["a"]}}, "query_features: a: expected range or optional"),
    "levels twice": ({"a": ["x", "x"]}, "query_features: a: levels: expected different texts"),
    "no levels": ({"a": {"kind": "category", "levels": []}}, "query_features: a: levels: expected a list of texts"),
    "optional": ({"a": {"kind": "vector", "size": 2, "optional": 1}}, "query_features: a: optional: expected true"),
    "size": ({"a": {"kind": "vector", "size": 0}}, "query_features: a: size: expected 1 to"),
    "no size": ({"a": {"kind": "vector"}}, "query_features: a: size: expected a whole number"),
}


@pytest.mark.parametrize(("given", "told"), DECLARATIONS.values(), ids=DECLARATIONS.keys())
def test_declarations_that_make_no_sense(given: Any, told: str) -> None:
    with pytest.raises(ValueError, match=f"^{told}"):
        declare(given)


@pytest.mark.parametrize(
    ("how", "told"),
    [
        (
            {"query_features": declare({"f1": (0, 1)})},
            "query_features: expected names that no attribute of an item has",
        ),
        (
            {"query_features": declare({"id": (0, 1)})},
            "query_features: expected names that no attribute of an item has",
        ),
        ({"query_features": {"a": (0, 1)}}, "query_features: expected an Encoding"),
        (
            {"settings": Settings(ratings=(1, 5)), "encoding": None},
            "query_features: expected none in a loop of ratings",
        ),
        ({"settings": Settings(choices="best")}, "query_features: expected none in a loop of choices"),
    ],
)
def test_loops_that_cannot_have_them(tmp_path: Path, how: dict[str, Any], told: str) -> None:
    given: dict[str, Any] = {"encoding": ENCODING, "items": ITEMS, "query_features": declare(QUERY)} | how
    with pytest.raises(ValueError, match=f"^{told}"):
        Loop.create(tmp_path / "loop", **given)
    assert not (tmp_path / "loop").exists()


def test_their_log_is_small(tmp_path: Path) -> None:
    """50 candidates, three features of a request each: 12 bytes a candidate of them, and nothing of the items."""
    items = [{"id": f"item-{j}", "title": f"a thing of number {j}", "price": float(j)} for j in range(500)]
    encoding = infer(items, identifier="id", kinds={"title": "text", "price": "number"})
    query = {"bm25": (0, 40), "clicks_7d": (0, 100), "age": (0, 1000)}
    with Loop.create(tmp_path / "loop", encoding=encoding, items=items, query_features=declare(query)) as loop:
        rng = np.random.default_rng(0)
        for t in range(10):
            candidates = [
                {"id": f"item-{j}", "bm25": float(rng.random()), "clicks_7d": t, "age": 3.5}
                for j in rng.choice(500, 50, replace=False).tolist()
            ]
            loop.decide(candidates, id=f"d{t}")
        events = list(loop.projection.log.events(kinds=["decision"]))
        assert max(len(event.payload) + len(event.arrays or b"") for event in events) < 1_400


def test_hits_of_a_search_engine_bring_what_is_declared(tmp_path: Path) -> None:
    """From `_source`, or from `fields`, where an engine puts what it has computed, each in a list."""
    with shop(tmp_path / "loop") as loop:
        plain = said(1)
        hits = [
            {
                "_id": each["id"],
                "_score": 1.0 + i,
                "_source": {"title": "A", "source": each["source"], "clicks_7d": each["clicks_7d"]},
                "fields": {"bm25": [each["bm25"]], "other": [1, 2]},
            }
            for i, each in enumerate(plain)
        ]
        assert loop.rank(hits) == loop.rank(plain, prior=[1.0 + i for i in range(len(plain))])
        assert set(loop.decide(hits, id="hits").shown) == {each["id"] for each in plain}
        unknown = [*hits, {"_id": "nobody", "_score": 0.5}]
        assert loop.decide(unknown, id="more").unknown == ("nobody",)
        with pytest.raises(ValueError, match=r"^candidates\[0\]: bm25: "):
            loop.decide([{**hits[0], "fields": {}}, *hits[1:]])
