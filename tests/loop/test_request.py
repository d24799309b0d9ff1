"""From what a caller says to what a learner takes, and back out of the log."""

import math
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from budget import examples
from heedful import TEXTS, Encoding, Loop, Settings, infer
from heedful.loop.interactions.forms import parse_feedback
from heedful.loop.records import DecisionRecord, FeedbackRecord
from heedful.loop.request import Requests
from loops import rows, small_loop

ITEMS = [{**row, "colour": ["red", "blue", "green"][j % 3]} for j, row in enumerate(rows(9, 2))]
ITEMS[4]["f1"] = None  # so that there is a feature for what is missing
CONTEXTS = [{"hour": float(h), "device": d} for h in range(4) for d in ("phone", "desk")]
X = np.array([infer(ITEMS, identifier="id").encode(row) for row in ITEMS])


@pytest.fixture(scope="module")
def loop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Loop]:
    with Loop.create(
        tmp_path_factory.mktemp("request") / "l",
        encoding=infer(ITEMS, identifier="id"),
        items=ITEMS,
        context=infer(CONTEXTS, identifier="", kinds={"hour": "number", "device": "category"}),
        crosses=[("device", "f0"), ("hour", "colour")],
        learner="perceptron",
        settings=Settings(control=0.0),
    ) as made:
        yield made


def requests(loop: Loop) -> Requests:
    return loop.projection.requests


def resolved(loop: Loop, decision: DecisionRecord, names: Any, later: Any = None, **form: Any) -> Any:
    """(the record, the features that came along) of feedback on a decision; `later` the decisions of a chain."""
    found = later or {}
    items = [int(name[1:]) for name in names]
    return requests(loop).resolve(parse_feedback(form), decision, names, lambda: X[items], lambda id: found[id])


SHOWN = DecisionRecord(shown=[2, 0])
NAMES = ["i3", "i5", "i1"]
SHOWED = r"expected items that were shown \('i1', 'i3'\), got"


# ---------------------------------------------------------------------------- the caller's score

SCORES = st.lists(
    st.one_of(st.just(0.0), st.integers(-3, 3), st.floats(1e-100, 1e100), st.floats(-1e100, -1e-100)),
    min_size=1,
    max_size=8,
)


@examples(200)
@given(SCORES)
def test_scores_become_mean_0_variance_1(loop: Loop, scores: list[float]) -> None:
    """In the order they had; all alike are as none."""
    names = [f"i{j}" for j in range(len(scores))]
    prior = requests(loop).parse(names, None, scores, None).prior
    if not prior:
        assert max(scores) - min(scores) <= 1e-11 * max(map(abs, scores))
        return
    assert np.mean(prior) == pytest.approx(0.0, abs=1e-6)
    assert np.std(prior) == pytest.approx(1.0, abs=1e-6)
    assert all((a <= b) or (p >= q) for a, p in zip(scores, prior) for b, q in zip(scores, prior))
    assert requests(loop).parse(names, None, dict(zip(names, scores)), None).prior == prior
    assert requests(loop).parse(names, None, np.array(scores), None).prior == prior


def test_scores_by_hand(loop: Loop) -> None:
    """(1, 3, 5): mean 2 less and more, over sqrt(8 / 3)."""
    prior = requests(loop).parse(["i0", "i1", "i2"], None, [1, 3, 5], None).prior
    assert prior == pytest.approx([-math.sqrt(1.5), 0.0, math.sqrt(1.5)])
    prior = requests(loop).parse(["i0", "i1", "i2"], None, {"i2": 4, "i0": 2}, None).prior
    assert prior == (-1.0, 0.0, 1.0)  # nothing said is the average of what was said
    assert requests(loop).parse(["i0", "i1"], None, [2, 2], None).prior == ()
    assert requests(loop).parse(["i0"], None, [7], None).prior == ()
    assert requests(loop).parse(["i0", "i1"], None, {}, None).prior == ()
    assert requests(loop).parse(["i0"], None, None, None).x[0, -1] == 0.0


# ---------------------------------------------------------------------------- features, now and out of the log


@examples(60)
@given(
    order=st.permutations(range(9)),
    size=st.integers(1, 9),
    inline=st.booleans(),
    context=st.one_of(st.none(), st.sampled_from(CONTEXTS), st.just({"device": "phone"})),
    prior=st.booleans(),
)
def test_what_the_log_gives_back_is_what_was_asked(
    loop: Loop, order: Any, size: int, inline: bool, context: Any, prior: bool
) -> None:
    """Bit for bit: by name or inline, with or without a context."""
    some = [ITEMS[j] for j in order[:size]]
    names = [row["id"] for row in some]
    given = some if inline else names
    request = requests(loop).parse(given, context, [float(j % 3) for j in order[:size]] if prior else None, None)
    assert request.called == tuple(names)
    assert request.x.shape == (size, len(loop.feature_names))
    assert request.x[:, : X.shape[1]].tolist() == X[list(order[:size])].tolist()
    d = loop.decide(given, context=context, prior=request.prior or None)
    known = loop.projection.find_decision(d.id)
    out = requests(loop).context(known)
    assert out.x[:, :-1].tobytes() == request.x[:, :-1].tobytes()
    assert out.x[:, -1] == pytest.approx(request.x[:, -1])
    assert requests(loop).items(known.record, known.arrays).tolist() == X[list(order[:size])].tolist()


def test_a_context_is_crossed_by_hand(loop: Loop) -> None:
    """Products of the columns named, and no others; without a context they are 0."""
    names = loop.feature_names
    context = loop.manifest.context
    encoded = dict(zip(context.names, context.encode(CONTEXTS[3])))
    row = requests(loop).parse(["i7"], CONTEXTS[3], None, None).x[0]
    plain = dict(zip(loop.manifest.encoding.names, X[7]))
    crossed = {name: value for name, value in zip(names, row) if " × " in name}
    assert set(crossed) == {
        f"{c} × {i}"
        for cs, i_s in ((("device=desk", "device=phone"), ("f0",)), (("hour",), [n for n in plain if "colour" in n]))
        for c in cs
        for i in i_s
    }
    for name, value in crossed.items():
        c, i = name.split(" × ")
        assert value == np.float32(encoded[c]) * np.float32(plain[i])
    nothing = requests(loop).parse(["i7"], {"hour": None}, None, None).x[0]
    assert [v for name, v in zip(names, nothing) if "device" in name] == [0.0, 0.0]


def test_inline_candidates_are_named_by_identifier_id_or_place(loop: Loop) -> None:
    def names(given: Any) -> list[str]:
        return requests(loop).parse(given, None, None, None).names

    assert names([{"id": "a", "f0": 1}, {"f0": 2}, {"id": 7}]) == ("a", "1", "7")
    with pytest.raises(ValueError, match="candidates: expected each once, got '1' 2 times"):
        names([{"id": "1"}, {"f0": 2}])


def test_the_identifier_may_have_another_name(tmp_path: Path) -> None:
    items = [{"sku": f"s{j}", "price": float(j)} for j in range(3)]
    with Loop.create(tmp_path / "l", encoding=infer(items, identifier="sku"), items=items) as loop:
        parsed = requests(loop).parse([{"sku": "x", "price": 1.0}, {"id": "y"}], None, None, None)
        assert parsed.names == ("x", "y")
        assert loop.items == ["s0", "s1", "s2"]


# ---------------------------------------------------------------------------- feedback as the log keeps it


def test_names_become_places(loop: Loop) -> None:
    """Candidates i3 i5 i1, shown i1 i3."""

    def record(**form: Any) -> Any:
        return resolved(loop, SHOWN, NAMES, **form)[0]

    assert record(clicks=["i3", "i1"]) == FeedbackRecord("clicks", [0, 2])
    assert record(clicks=[]) == FeedbackRecord("clicks")
    assert record(better=["i5"]) == FeedbackRecord("better", [1])
    assert record(thumb="up") == FeedbackRecord("thumb", [], [1.0])
    assert record(thumb="down", item="i3") == FeedbackRecord("thumb", [0], [-1.0])
    assert record(rating={"i5": 4, "i1": 2}) == FeedbackRecord("rating", [1, 2], [4.0, 2.0])
    assert record(grade={"i1": 0}) == FeedbackRecord("grade", [2], [0.0])
    assert record(none=True) == FeedbackRecord("none")
    chosen = record(choice="second")
    assert (chosen.form, chosen.values) == ("choice", [1.0])
    action = record(action="cart", item="i1")
    assert (action.form, action.chosen, action.values) == ("action", [2], [0.5])


def test_clicks_of_a_chain_become_places_in_their_decisions(loop: Loop) -> None:
    """What the first query showed is its own; the rest is looked for in the later ones, in their order."""
    later = {"d2": (20, {"i1": 0, "i7": 4}), "d3": (30, {"i7": 0, "i5": 1, "i8": 2})}  # what they showed, and its place
    record, extra = resolved(loop, SHOWN, NAMES, later, clicks=["i8", "i1", "i5", "i7"], chain=["d2", "d3"])
    assert extra is None
    assert record == FeedbackRecord("clicks", [-1, 2, -2, -3], chain=[(30, 2), (30, 1), (20, 4)])
    with pytest.raises(LookupError, match=rf"clicks: {SHOWED} 'i5'"):
        resolved(loop, SHOWN, NAMES, {"d2": (20, {"i7": 0})}, clicks=["i5"], chain=["d2"])


# ---------------------------------------------------------------------------- edits


def encoded(loop: Loop, **changed: Any) -> list[float]:
    """i1 or another item with changed columns."""
    base = changed.pop("base", 1)
    return [float(v) for v in loop.manifest.encoding.encode({**ITEMS[base], **changed})]


def test_an_edit_changes_the_columns_it_names(loop: Loop) -> None:
    """Of the first shown, or of the item named; all features of a column, also that of a missing value."""
    record, row = resolved(loop, SHOWN, NAMES, edit={"f0": 2.5, "colour": "green"})
    assert row.tolist() == encoded(loop, f0=2.5, colour="green")
    assert (record.form, record.chosen, record.base) == ("edit", [-1], 2)
    assert record.given == {"f0": 2.5, "colour": "green"}
    record, row = resolved(loop, SHOWN, NAMES, edit={"f1": None}, item="i5")
    assert row.tolist() == encoded(loop, base=5, f1=None)
    assert record.base == 1
    record, row = resolved(loop, DecisionRecord(shown=[0]), ["i4"], edit={"f1": 1.0})
    assert row.tolist() == encoded(loop, base=4, f1=1.0)


def test_an_edit_keeps_the_callers_score_of_what_it_was_made_of(loop: Loop) -> None:
    d = loop.decide(["i0", "i1"], prior=[1.0, 3.0], id="edited", context=CONTEXTS[1])
    loop.feedback(d.id, edit={"f0": 0.5}, item="i0", id="the edit")
    [(event, known, record)] = [each for each in loop.projection.lessons() if each[0].id == "the edit"]
    context = requests(loop).context(known)
    extra = requests(loop).extra(record, event.arrays, context, lambda *_: pytest.fail("no chain"), known.arrays)
    wanted = requests(loop).parse([{**ITEMS[0], "f0": 0.5}], CONTEXTS[1], None, None).x
    assert extra[:, :-1].tolist() == wanted[:, :-1].tolist()
    assert extra[0, -1] == pytest.approx(-1.0)


def test_the_nearest_candidate_is_by_features_and_shown_ones_first(loop: Loop) -> None:
    record, row = resolved(loop, SHOWN, NAMES, edit={k: ITEMS[5][k] for k in ("f0", "f1", "colour")}, nearest=True)
    assert row is None
    assert record.chosen == [1]
    twins = DecisionRecord(shown=[2, 1])
    record, _ = requests(loop).resolve(
        parse_feedback({"edit": {"f0": 0.0}, "nearest": True}), twins, ["a", "b", "c"], lambda: X[[3, 3, 3]], {}.get
    )
    assert record.chosen == [2]  # alike all three: the one that stood first


def test_a_text_is_an_edit_of_the_only_text(tmp_path: Path) -> None:
    two = [{"id": f"x{j}", "a": f"word{j} and more", "b": f"other{j} and less"} for j in range(9)]
    encoding: Encoding = infer(two, identifier="id", kinds={"a": "text", "b": "prose"})
    with Loop.create(tmp_path / "two", encoding=encoding, items=two, settings=Settings(control=0.0)) as loop:
        loop.decide(["x0", "x1"], id="d")
        with pytest.raises(ValueError, match="edit: expected the attributes that were changed"):
            loop.feedback("d", edit="some text")
        assert loop.feedback("d", edit={"b": "some text"}).learned
    with Loop.create(tmp_path / "one", encoding=TEXTS, settings=Settings(control=0.0)) as loop:
        loop.decide([{"id": "a", "text": "One."}, {"id": "b", "text": "Two, perhaps."}], id="d")
        loop.feedback("d", edit="One, or two.", id="e")
        [(event, _, record)] = list(loop.projection.lessons())
        assert record.text == "One, or two."
        assert np.frombuffer(event.arrays or b"", "<f4").tolist() == TEXTS.encode({"text": "One, or two."}).tolist()


def test_candidates_that_are_nothing_but_features(loop: Loop) -> None:
    """As if each had come as {"features": [...]}."""
    features = np.ascontiguousarray(X[[3, 5]])
    objects = [{"id": str(j), "features": row.tolist()} for j, row in enumerate(features)]
    request, same = (requests(loop).parse(each, None, [2.0, 1.0], None) for each in (features, objects))
    assert request.called == request.names == same.called == ("0", "1")
    assert request.x.tobytes() == same.x.tobytes()
    assert request.numbers() == same.numbers()
    d = loop.decide(features, id="raw", show=1)
    assert loop.decide(features.astype(np.float64), id="raw", show=1) == d
    assert loop.feedback(d.id, better=["1", "0"]).learned == (d.shown == ("0",))


N = X.shape[1]


@pytest.mark.parametrize(
    "wrong",
    [
        np.zeros(3),
        np.zeros((0, N)),
        np.zeros((2, N + 1)),
        np.full((1, N), np.nan),
        np.full((1, N), 1e39),
        np.array([["a"] * N]),
    ],
)
def test_features_that_are_none(loop: Loop, wrong: Any) -> None:
    with pytest.raises(ValueError, match=r"^candidates: expected f"):
        loop.decide(wrong)


def test_numbers_whose_squares_are_beyond_float32_are_numbers_all_the_same(tmp_path: Path) -> None:
    """Warnings are errors here: 1e30 squared is one that nobody is to hear of."""
    with small_loop(tmp_path / "loop") as loop, warnings.catch_warnings():
        warnings.simplefilter("error")
        size = loop.manifest.candidates.size
        for value in (1e30, -3e38):
            features = np.full((3, size), value, np.float32)
            assert loop.decide(features).shown == ("0", "1", "2")
        features[1, 0] = np.inf
        with pytest.raises(ValueError, match="candidates: expected finite numbers"):
            loop.decide(features)
