"""The JSON door: whatever comes is let in or refused by name, and what is refused changes nothing."""

import json
import math
import re
import shutil
import tempfile
import unicodedata
from collections.abc import Callable, Iterator
from datetime import timedelta
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from budget import examples
from heedful import TEXTS, Loop, Settings
from heedful.core.wording import UNPRINTABLE
from heedful.loop.interactions.forms import CHOICES, FORMS, parse_feedback
from heedful.loop.records import LONGEST_ID, check_id, check_time
from heedful.results.answers import Answer, Decision, plain
from heedful.server.schema import PRINTABLE
from loops import bits, small_loop

LONG = "x" * (LONGEST_ID + 1)
HUGE = "y" * 1_000_001
BAD_TEXTS = ["", LONG, "a\nb", "a\0", "\x7f", "\ud800", "half \udfff", "\x1b[2J"]
NOT_TEXTS = [True, False, 1.5, float("nan"), math.inf, b"i0", bytearray(b"i0"), [], {}, set(), ["i0"], {"i0": 1}]
NOT_TEXTS += [np.int64(1), np.float64(1.0), np.array(["i0"]), object(), len, iter(["i0"]), Decimal(1), timedelta(1), 1j]
BAD_IDS = [*BAD_TEXTS, *NOT_TEXTS]
NOT_LISTS = [
    1,
    1.5,
    True,
    "i0",
    b"i0",
    {"i0": 1},
    {"i0"},
    frozenset(["i0"]),
    iter(["i0"]),
    (n for n in ["i0"]),
    object(),
]
NOT_NUMBERS = [
    None,
    True,
    np.bool_(True),
    "1",
    b"1",
    [1],
    {},
    float("nan"),
    math.inf,
    -math.inf,
    1e101,
    -1e400,
    10**101,
]
NOT_NUMBERS += [Decimal(1), timedelta(1), 1j, np.array(1.0), np.timedelta64(1), object()]


@pytest.fixture(scope="module")
def loop() -> Iterator[Loop]:
    """A loop with decisions of several kinds, that has learned something."""
    memory = Path("/dev/shm")
    folder = Path(tempfile.mkdtemp(dir=memory if memory.is_dir() else None))
    with small_loop(folder / "l", "posterior:swap=0", control=0.0, n_items=6, shrink=1.0) as made:
        made.decide(["i0", "i1", "i2", "i3"], id="d", person="p", show=3)
        made.decide(["i0", "i1"], id="deferred", deferred=True)
        made.feedback("d", clicks=["i2"], id="e")
        made.feedback("d", clicks=["i1"], id="undone")
        made.undo("undone")
        yield made
    shutil.rmtree(folder)


def standing(loop: Loop) -> Any:
    """All that must not change: events, model, what is on offer, the bytes of the files."""
    files = {f.name: f.read_bytes() for f in sorted(loop.path.iterdir()) if not f.name.endswith("-shm")}
    return loop.projection.log.last(), loop.projection.log.counts(), bits(loop), loop.items, loop.version, files


def refused(loop: Loop, call: Callable[[], Any], field: str = "") -> str:
    """The message of a refusal, which names the field, what was expected, what came, and changed nothing."""
    before = standing(loop)
    with pytest.raises((ValueError, LookupError)) as caught:
        call()
    message = str(caught.value.args[0])
    assert message.startswith(field), message
    assert ": expected " in message, message
    assert ", got " in message, message
    assert len(message) < 600, message
    assert standing(loop) == before
    return message


def rejected(loop: Loop, answer: Any) -> None:
    assert (answer.status, answer.seq, answer.learned) == ("rejected", None, False)
    assert answer.reason


# ---------------------------------------------------------------------------- values that are refused everywhere

SCORES = [1.0, "ab", [1.0], [1.0, 2.0, 3.0], {"i9": 1.0}, {"i0", "i1"}, np.ones(3), np.ones((2, 1)), iter([1, 2]), True]
TIMES: list[Any] = ["", "now", "2026-01-31", "2026-01-31T12:00:00", "1969-12-31T23:59:59Z", 1.5, True, -1, 2**53]
TIMES += [[], {}, b"1", math.nan, 10**400, np.int64(1), timedelta(1), "2026-13-01T00:00:00Z", "\ud800", object()]
EDITS = [1, True, 1.5, [], {}, ["f0"], b"f0", {1: 2.0}, {"nothing": 1.0}, {"f0": "tall"}, {"f0": math.inf}]
TWICE = [["i0", "i0"], ["i0", "i1", "i0"], ["5", 5]]
NOT_EVENTS = [1, None, "event", ["decision", "d"], [], True, b"", 1.5, {"clicks"}, object()]
REFUSED: dict[str, tuple[list[Any], list[tuple[str, Callable[[Loop, Any], Any]]]]] = {
    "ids": (
        BAD_IDS,
        [
            ("id", lambda loop, value: loop.decide(["i0"], id=value)),
            ("person", lambda loop, value: loop.decide(["i0"], person=value)),
            ("candidates[1]", lambda loop, value: loop.decide(["i0", value])),
            ("candidates[1]: id", lambda loop, value: loop.decide([{"id": "a", "f0": 1.0}, {"id": value, "f0": 1.0}])),
            ("id", lambda loop, value: loop.record(["i0"], ["i0"], id=value)),
            ("person", lambda loop, value: loop.record(["i0"], ["i0"], id="r", person=value)),
            ("shown[1]", lambda loop, value: loop.record(["i0"], ["i0", value], id="r")),
            ("decision", lambda loop, value: loop.feedback(value, clicks=["i0"])),
            ("id", lambda loop, value: loop.feedback("d", id=value, clicks=["i0"])),
            ("clicks[1]", lambda loop, value: loop.feedback("d", clicks=["i0", value])),
            ("chain[0]", lambda loop, value: loop.feedback("d", clicks=["i0"], chain=[value])),
            ("better[1]", lambda loop, value: loop.feedback("d", better=["i0", value])),
            ("item", lambda loop, value: loop.feedback("d", thumb="up", item=value)),
            ("item", lambda loop, value: loop.feedback("d", action="buy", item=value)),
            ("action", lambda loop, value: loop.feedback("d", action=value, item="i0")),
            ("item", lambda loop, value: loop.feedback("d", edit={"f0": 1.0}, item=value)),
            ("decision", lambda loop, value: loop.activate(value)),
            ("event", lambda loop, value: loop.undo(value)),
            ("id", lambda loop, value: loop.undo("e", id=value)),
            ("person", lambda loop, value: loop.forget(value)),
        ],
    ),
    "no list": (
        NOT_LISTS,
        [
            ("candidates", lambda loop, value: loop.decide(value)),
            ("candidates", lambda loop, value: loop.record(value, ["i0"], id="r")),
            ("clicks", lambda loop, value: loop.feedback("d", clicks=value)),
            ("chain", lambda loop, value: loop.feedback("d", clicks=["i0"], chain=value)),
        ],
    ),
    "no list, or an empty one": (
        [*NOT_LISTS, [], ()],
        [
            ("candidates", lambda loop, value: loop.decide(value, strict=True)),
            ("candidates", lambda loop, value: loop.record(value, ["i0"], id="r", strict=True)),
            ("shown", lambda loop, value: loop.record(["i0"], value, id="r")),
        ],
    ),
    "twice": (
        TWICE,
        [
            ("candidates", lambda loop, value: loop.decide(value, strict=True)),
            ("candidates", lambda loop, value: loop.decide([{"id": n, "f0": 1.0} for n in value], strict=True)),
            ("shown", lambda loop, value: loop.record(["i0", "i1"], value, id="r")),
        ],
    ),
    "better": (
        [*[value for value in NOT_LISTS if value != "i0"], *TWICE],
        [("better", lambda loop, value: loop.feedback("d", better=value))],
    ),
    "show": (
        [0, -1, 1.5, True, "2", [], math.nan, 2**63],
        [("show", lambda loop, value: loop.decide(["i0", "i1"], show=value))],
    ),
    "context": (
        [1, "text", [], [("a", 1)], {"a"}, b"", 1.5],
        [("context", lambda loop, value: loop.decide(["i0", "i1"], context=value))],
    ),
    "numbers": (
        NOT_NUMBERS,
        [
            ("prior[1]", lambda loop, value: loop.decide(["i0", "i1"], prior=[0.0, value])),
            ("prior['i1']", lambda loop, value: loop.decide(["i0", "i1"], prior={"i0": 0.0, "i1": value})),
            ("rating['i1']", lambda loop, value: loop.feedback("d", rating={"i0": 1, "i1": value})),
            ("grade['i0']", lambda loop, value: loop.feedback("d", grade={"i0": value})),
        ],
    ),
    "probability": (
        [*[value for value in NOT_NUMBERS if value is not None], 0.0, -0.5, 1.0000001, 2],
        [("probability", lambda loop, value: loop.record(["i0"], ["i0"], id="r", probability=value))],
    ),
    "prior": (
        SCORES,
        [
            ("prior", lambda loop, value: loop.decide(["i0", "i1"], prior=value)),
            ("prior", lambda loop, value: loop.record(["i0", "i1"], ["i0"], id="r", prior=value)),
        ],
    ),
    "rating": ([1, [], "i0", ["i0", 4], True, None, {}], [("rating", lambda loop, v: loop.feedback("d", rating=v))]),
    "grade": ([1, [], "i0", ["i0", 4], True, None, {}], [("grade", lambda loop, v: loop.feedback("d", grade=v))]),
    "rated": (
        [{"i0": 1, "": 2}],
        [
            ("rating[1]", lambda loop, value: loop.feedback("d", rating=value)),
            ("grade[1]", lambda loop, value: loop.feedback("d", grade=value)),
        ],
    ),
    "time": (
        TIMES,
        [
            ("time", lambda loop, value: loop.feedback("d", clicks=["i0"], time=value)),
            ("time", lambda loop, value: loop.record(["i0"], ["i0"], id="r", time=value)),
            ("time", lambda loop, value: loop.activate("deferred", time=value)),
        ],
    ),
    "thumb": (
        ["UP", "", "sideways", 1, True, None, [], ["up"], {"up": 1}, b"up", 1.0, math.nan],
        [("thumb", lambda loop, value: loop.feedback("d", thumb=value))],
    ),
    "choice": (
        ["First", "", "third", 0, True, None, [], ["first"], {"first": 1}, b"first", math.nan],
        [("choice", lambda loop, value: loop.feedback("d", choice=value))],
    ),
    "none": (
        [False, 1, "true", "yes", [], {}, 1.0, np.bool_(True), None],
        [("none", lambda loop, value: loop.feedback("d", none=value))],
    ),
    "action": (
        ["steal", "Buy", "buy ", 5],
        [("action: expected view, cart, buy, hide", lambda loop, v: loop.feedback("d", action=v, item="i0"))],
    ),
    "edit": ([*EDITS, {"id": "new"}], [("edit", lambda loop, value: loop.feedback("d", edit=value))]),
}


@pytest.mark.parametrize(("values", "calls"), REFUSED.values(), ids=REFUSED)
def test_what_makes_no_sense_is_refused_at_every_place(
    loop: Loop, values: list[Any], calls: list[tuple[str, Callable[[Loop, Any], Any]]]
) -> None:
    for value in values:
        for field, call in calls:
            absent = value is None and field in FORMS  # a form that is None is not there
            refused(loop, partial(call, loop, value), "feedback" if absent else field)


def test_what_must_be_there(loop: Loop) -> None:
    """None is no id where one is needed."""
    refused(loop, lambda: loop.feedback(None, clicks=["i0"]), "decision")  # type: ignore[arg-type]
    refused(loop, lambda: loop.undo(None), "event")  # type: ignore[arg-type]
    refused(loop, lambda: loop.forget(None), "person")  # type: ignore[arg-type]
    refused(loop, lambda: loop.activate(None), "decision")  # type: ignore[arg-type]
    refused(loop, lambda: loop.record(["i0"], ["i0"], id=None), "id")  # type: ignore[arg-type]
    refused(loop, lambda: loop.feedback("d", action="buy"), "item")
    refused(loop, lambda: loop.feedback("d"), "feedback")
    refused(loop, lambda: loop.feedback("d", item="i0"), "feedback")


def test_ids_of_200_characters_and_whole_numbers(tmp_path: Path) -> None:
    with small_loop(tmp_path / "l", control=0.0) as loop:
        for id in ("z" * LONGEST_ID, 5, -3, "ü", "日本", "a b", "'; --", "\u200b"):
            d = loop.decide(["i0", "i1"], id=id, person=id)  # type: ignore[arg-type]
            assert d.id == str(id)
            assert loop.feedback(id, id=id, clicks=["i1"]).status == "applied"  # type: ignore[arg-type]
            assert loop.feedback(str(id), id=str(id), clicks=["i1"]).status == "duplicate"


def test_twins_of_unicode_stay_two(tmp_path: Path) -> None:
    """What looks alike and is written differently is not the same: nothing is normalised behind the caller's back."""
    one, two = unicodedata.normalize("NFC", "é"), unicodedata.normalize("NFD", "é")
    assert one != two
    with small_loop(tmp_path / "l", control=0.0) as loop:
        row = {"f0": 0.0, "f1": 0.0, "f2": 0.0, "f3": 0.0}
        loop.put_items([{"id": one, **row}, {"id": two, **row}])
        assert loop.decide([one, two], id=one).seq != loop.decide([one, two], id=two).seq
        assert loop.feedback(one, id=one, better=[two]).status == "applied"
        assert loop.feedback(one, id=two, better=[two]).status == "applied"
        loop.decide(["i0"], person=one)
        assert loop.forget(two).events == 0
        assert loop.forget(one).events == 1
    with Loop.open(tmp_path / "l") as loop:
        assert loop.items[-2:] == [one, two]


def test_mixed_and_strange_candidates(loop: Loop) -> None:
    refused(loop, lambda: loop.decide(["i0", {"id": "a"}]), "candidates[1]")
    refused(loop, lambda: loop.decide([{"id": "a"}, "i0"]), "candidates[1]")
    refused(loop, lambda: loop.decide([{"id": "a", "f0": "tall"}]), "candidates[0]: f0")
    refused(loop, lambda: loop.decide([{"id": "a", "f0": [1.0]}]), "candidates[0]: f0")
    refused(loop, lambda: loop.decide([{"id": "a", "f0": math.inf}]), "candidates[0]: f0")
    refused(loop, lambda: loop.decide([str(j) for j in range(100_001)]), "candidates")
    refused(loop, lambda: loop.record(["i0"], ["i1"], id="r"), "shown")
    before = standing(loop)
    with pytest.raises(LookupError, match=r"candidates: expected items on offer, .*, got 'nobody'"):
        loop.decide(["i0", "nobody"], strict=True)
    assert standing(loop) == before


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        (0, 0),
        (1_000_001, 1_000_001),
        ("1970-01-01T00:00:01.000002Z", 1_000_002),
        ("1970-01-02T01:00:00+01:00", 24 * 3600 * 10**6),
        ("2026-01-31T12:00:00Z", 1_769_860_800_000_000),
    ],
)
def test_times_by_hand(given: Any, wanted: int) -> None:
    assert check_time("time", given) == wanted


def test_an_edit_of_a_text_needs_one(loop: Loop, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="edit: expected the attributes"):
        loop.feedback("d", edit="better words")  # these items are numbers
    with Loop.create(tmp_path / "t", encoding=TEXTS, settings=Settings(control=0.0)) as texts:
        texts.decide([{"id": "a", "text": "One."}, {"id": "b", "text": "Two."}], id="d")
        for value in (HUGE, "\ud800", "broken \udcff"):
            refused(texts, lambda value=value: texts.feedback("d", edit=value), "edit")
        refused(texts, lambda: texts.feedback("d", edit="x", nearest="yes"), "nearest")
        refused(texts, lambda: texts.feedback("d", edit="x", nearest=1), "nearest")
        assert texts.feedback("d", edit="").status == "applied"  # no text is a text
        assert texts.feedback("d", edit="Naïve – 日本\u2028 'quoted' \x00").status == "applied"
        assert texts.verify() == []


# ---------------------------------------------------------------------------- forms and fields


def test_one_form_and_what_belongs_to_it(loop: Loop) -> None:
    for form in (
        {"clicks": ["i0"], "thumb": "up"},
        {"clicks": [], "none": True},
        {"clicks": ["i0"], "item": "i0"},
        {"better": ["i0"], "chain": ["d"]},
        {"thumb": "up", "nearest": True},
        {"none": True, "note": "nothing fits"},
        {"likes": ["i0"]},
        {"Clicks": ["i0"]},
        {},
    ):
        refused(loop, lambda form=form: loop.feedback("d", **form), "feedback")  # type: ignore[misc]
        before = standing(loop)
        [answer] = loop.feedback_many([{"decision": "d", "id": "new", **form}])
        rejected(loop, answer)
        assert standing(loop) == before


@pytest.mark.parametrize("form", FORMS)
def test_what_is_none_is_not_there(form: str) -> None:
    """A client that sends every field, null where there is nothing, is understood."""
    fine: dict[str, Any] = {"clicks": ["a"], "better": "a", "edit": "x", "thumb": "up", "action": "buy", "none": True}
    fine["reward"] = 0.5
    fine |= {"actions": {"a": "buy"}, "rating": {"a": 1}, "grade": {"a": 1}, "choice": "equal"}
    item = {"item": "a"} if form == "action" else {}
    given = dict.fromkeys((*FORMS, "item", "chain")) | {form: fine[form]} | item
    assert parse_feedback(given) == parse_feedback({form: fine[form], **item})
    assert parse_feedback(given).form == form


def test_forms_by_hand() -> None:
    """What each form becomes."""
    assert parse_feedback({"clicks": ["b", "a", "b"]}).names == ("b", "a")  # the first click counts
    assert parse_feedback({"clicks": ("a",), "chain": ["d2", "d3"]}).chain == ("d2", "d3")
    assert parse_feedback({"better": "b"}).names == ("b",)
    assert parse_feedback({"rating": {"a": 2, 7: -1.5}})[:3] == ("rating", ("a", "7"), (2.0, -1.5))
    assert [parse_feedback({"choice": c}).values for c in CHOICES] == [(0.0,), (1.0,), (-1.0,), (-1.0,), (-1.0,)]
    assert [parse_feedback({"thumb": t, "item": "a"})[1:3] for t in ("up", "down")] == [
        (("a",), (1.0,)),
        (("a",), (-1.0,)),
    ]
    assert parse_feedback({"edit": {"f0": 1}, "nearest": True, "item": "a"})[:3] == ("edit", ("a",), (1.0,))
    assert parse_feedback({"action": "buy", "item": 3})[1:5:3] == (("3",), "buy")


def test_the_good_of_many_go_on(loop: Loop, tmp_path: Path) -> None:
    """Each bad one is refused alone, in its place."""
    good = {"decision": "d", "clicks": ["i1"]}
    bad: list[Any] = [{**good, "clicks": value} for value in NOT_LISTS] + [{**good, "decision": v} for v in BAD_IDS]
    bad += [{**good, "id": v} for v in BAD_IDS] + [{**good, "time": v} for v in TIMES] + NOT_EVENTS
    with small_loop(tmp_path / "l", control=0.0) as small:
        small.decide(["i0", "i1"], id="d")
        events = [event for pair in zip([{**good, "id": f"e{j}"} for j in range(len(bad))], bad) for event in pair]
        answers = small.feedback_many(events)
        assert [a.status for a in answers] == ["applied", "rejected"] * len(bad)
        assert all(
            "event: expected an object" in str(answer.reason) for answer in answers[-2 * len(NOT_EVENTS) + 1 :: 2]
        )
        assert small.projection.log.counts()["feedback"] == len(bad)
        assert small.verify() == []


# ---------------------------------------------------------------------------- items


@pytest.mark.parametrize(
    ("row", "field"),
    [
        ({"f0": 1.0}, "id"),
        ({"id": None}, "id"),
        ({"id": ""}, "id"),
        ({"id": "  "}, "id"),
        ({"id": True}, "id"),
        ({"id": 1.5}, "id"),
        ({"id": LONG}, "id"),
        ({"id": "a\nb"}, "id"),
        ({"id": "a", "f0": "tall"}, "f0"),
        ({"id": "a", "f0": {}}, "f0"),
        ({"id": "a", "f0": math.inf}, "f0"),
        ({"id": "a", "f0": 10**400}, "f0"),
        ({"id": "a", "f0": object()}, "f0"),
        ({"id": "a", "f0": 1.0, "photo": object()}, ""),
        ({"id": "a", "f0": 1.0, "note": "\ud800"}, ""),
    ],
)
def test_what_is_no_item_is_refused_and_none_is_put(loop: Loop, row: Any, field: str) -> None:
    message = refused(loop, lambda: loop.put_items([{"id": "fine", "f0": 1.0}, row]))
    assert field in message


# ---------------------------------------------------------------------------- anything at all

NAMES = st.sampled_from(["i0", "i1", "i2", "i3", "i5", "d", "e", "deferred", "p", "up", "first", "buy", "true", ""])
SCALARS = st.one_of(
    NAMES,
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(),
    st.text(st.characters(), max_size=4),
    st.just(LONG),
)
ANYTHING = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4), st.lists(NAMES, max_size=3), st.dictionaries(st.one_of(NAMES, st.text()), inner)
    ),
    max_leaves=6,
)
FIELDS = st.sampled_from([*FORMS, "item", "chain", "nearest", "id", "decision", "time", "note", "kind"])


def tried(loop: Loop, call: Callable[[], Any]) -> Any:
    """What came of it: the answer, or a refusal that changed nothing; never another exception."""
    before = loop.projection.log.last(), bits(loop), loop.items
    try:
        outcome = call()
    except (ValueError, LookupError):
        outcome = None
    answers = outcome if isinstance(outcome, list) else [outcome]
    if all(answer is None or getattr(answer, "status", "") == "rejected" for answer in answers):
        assert (loop.projection.log.last(), bits(loop), loop.items) == before
    return outcome


@pytest.mark.slow
@examples(150)
@given(st.dictionaries(FIELDS, ANYTHING, max_size=4))
def test_any_json_as_feedback(loop: Loop, event: dict[str, Any]) -> None:
    event = {"decision": "d", **event}
    tried(loop, lambda: loop.feedback_many([event]))
    form = {name: value for name, value in event.items() if name not in ("id", "decision")}  # with the time
    tried(loop, lambda: loop.feedback(event["decision"], id=event.get("id"), **form))
    assert loop.projection.failed == {}


@examples(150)
@given(st.sampled_from([*FORMS]), ANYTHING)
def test_any_json_as_any_form(loop: Loop, form: str, value: Any) -> None:
    tried(loop, lambda: loop.feedback("d", **{form: value}))
    tried(loop, lambda: loop.feedback("d", **{form: value, "item": "i0"}))
    assert loop.projection.failed == {}


@pytest.mark.slow
@examples(150)
@given(ANYTHING, ANYTHING, st.one_of(st.none(), ANYTHING), st.one_of(st.none(), ANYTHING), SCALARS, SCALARS)
def test_any_json_as_a_request(
    loop: Loop, candidates: Any, context: Any, prior: Any, show: Any, id: Any, person: Any
) -> None:
    d = tried(loop, lambda: loop.decide(candidates, context=context, prior=prior, show=show, id=id, person=person))
    if d is not None:
        assert len(set(d.shown)) == len(d.shown)
        assert d.shown or candidates == []
    for only in ({"context": context}, {"prior": prior}, {"show": show}, {"person": person}):
        tried(loop, lambda only=only: loop.decide(["i0", "i1"], **only))  # type: ignore[misc]
    tried(loop, lambda: loop.record(candidates, candidates, id=id, person=person, prior=prior))
    tried(loop, lambda: loop.record(["i0", "i1"], ["i1"], id=id, probability=show))


@pytest.mark.slow
@examples(100)
@given(ANYTHING)
def test_any_json_elsewhere(loop: Loop, value: Any) -> None:
    tried(loop, lambda: loop.undo(value))
    tried(loop, lambda: loop.undo("e", id=value) if value != "e" else None)
    tried(loop, lambda: loop.activate(value))
    tried(loop, lambda: loop.decide([{"id": "a", "f0": value}, {"id": "b", "f1": value}]))
    tried(loop, lambda: loop.feedback("d", edit={"f0": value}))
    tried(loop, lambda: loop.feedback("d", edit=value, nearest=True))
    tried(loop, lambda: loop.feedback("d", rating={"i0": value, "i1": 1.0}))


def test_after_all_that_the_log_is_whole(loop: Loop) -> None:
    """Runs last in this file: whatever was let in is the fold of the log."""
    assert loop.verify() == []
    assert json.loads(json.dumps(loop.projection.log.counts()))["loop"] == 1


def test_what_only_some_loops_have_to_say_is_left_out_where_it_is_none() -> None:
    """By default None: `predicted`, `reason`. What may be None everywhere, `probability`, is said."""
    d = Decision("d", ("a", "b"), None, 3, "imported", 4)
    said = {"id": "d", "shown": ["a", "b"], "probability": None, "version": 3, "arm": "imported", "seq": 4}
    assert plain(d) == said
    assert d.plain() == said | {"shown": ("a", "b")}
    assert plain(d._replace(predicted=(2, 1))) == said | {"predicted": [2, 1]}
    assert d._replace(predicted=()).plain()["predicted"] == ()
    assert plain((d, [None, 1])) == [said, [None, 1]]
    assert plain(Answer("rejected", "e", None, 0))["seq"] is None


@pytest.mark.parametrize("value", [np.int64(3), np.float32(3.0), np.int8(3)])
def test_a_number_of_numpy_is_a_number(loop: Loop, value: Any) -> None:
    d = loop.decide(["i0", "i1"])
    assert loop.feedback(d.id, rating={"i0": value, "i1": 1.0}).status == "applied"
    *_, event = loop.projection.log.events(kinds=["feedback"])
    assert '"values":[3.0,1.0]' in event.payload


BAD = ["\x00", "\x1b[2J", "\x7f", "\x85", "\x9b2J", "\u2028", "\u2029", "\u202e", "\u2066", "\ud800"]
GOOD = ["é", "日本", "👩\u200d🚀", "می\u200cخواهم", "a\u00a0b"]


@pytest.mark.parametrize("mark", BAD, ids=ascii)
def test_a_name_has_no_character_that_a_terminal_obeys(mark: str) -> None:
    """Control characters of both kinds, ends of lines, and those that turn the direction of what follows."""
    for name in (mark, f"a{mark}", f"{mark}a"):
        with pytest.raises(ValueError, match="id: expected a text of 1 to 200 printable characters"):
            check_id("id", name)
        assert not re.fullmatch(PRINTABLE, name) or mark == "\ud800"
        assert UNPRINTABLE.search(name) or mark == "\ud800"


@pytest.mark.parametrize("name", GOOD, ids=ascii)
def test_a_name_may_be_in_any_language(name: str) -> None:
    assert check_id("id", name) == name
    assert re.fullmatch(PRINTABLE, name)
