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
    with small_loop(folder / "l", "perceptron", control=0.0, n_items=6, shrink=1.0) as made:
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


def each(values: list[Any]) -> Any:
    return pytest.mark.parametrize("value", values, ids=lambda v: f"{type(v).__name__}")


# ---------------------------------------------------------------------------- ids and names


@each(BAD_IDS)
def test_what_is_no_id_is_refused_everywhere(loop: Loop, value: Any) -> None:
    refused(loop, lambda: loop.decide(["i0"], id=value), "id")
    refused(loop, lambda: loop.decide(["i0"], person=value), "person")
    refused(loop, lambda: loop.decide(["i0", value]), "candidates[1]")
    refused(loop, lambda: loop.decide([{"id": "a", "f0": 1.0}, {"id": value, "f0": 1.0}]), "candidates[1]: id")
    refused(loop, lambda: loop.record(["i0"], ["i0"], id=value), "id")
    refused(loop, lambda: loop.record(["i0"], ["i0"], id="r", person=value), "person")
    refused(loop, lambda: loop.record(["i0"], ["i0", value], id="r"), "shown[1]")
    refused(loop, lambda: loop.feedback(value, clicks=["i0"]), "decision")
    refused(loop, lambda: loop.feedback("d", id=value, clicks=["i0"]), "id")
    refused(loop, lambda: loop.feedback("d", clicks=["i0", value]), "clicks[1]")
    refused(loop, lambda: loop.feedback("d", clicks=["i0"], chain=[value]), "chain[0]")
    refused(loop, lambda: loop.feedback("d", better=["i0", value]), "better[1]")
    refused(loop, lambda: loop.feedback("d", thumb="up", item=value), "item")
    refused(loop, lambda: loop.feedback("d", action="buy", item=value), "item")
    refused(loop, lambda: loop.feedback("d", action=value, item="i0"), "action")
    refused(loop, lambda: loop.feedback("d", edit={"f0": 1.0}, item=value), "item")
    refused(loop, lambda: loop.activate(value), "decision")
    refused(loop, lambda: loop.undo(value), "event")
    refused(loop, lambda: loop.undo("e", id=value), "id")
    refused(loop, lambda: loop.forget(value), "person")


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


# ---------------------------------------------------------------------------- lists


@each([*NOT_LISTS, [], ()])
def test_what_is_no_list_of_names_is_refused(loop: Loop, value: Any) -> None:
    refused(loop, lambda: loop.decide(value, strict=True), "candidates")
    refused(loop, lambda: loop.record(value, ["i0"], id="r", strict=True), "candidates")
    if value not in ([], ()):
        refused(loop, lambda: loop.decide(value), "candidates")
        refused(loop, lambda: loop.record(value, ["i0"], id="r"), "candidates")
    refused(loop, lambda: loop.record(["i0"], value, id="r"), "shown")
    if value not in ("i0", [], ()):
        refused(loop, lambda: loop.feedback("d", better=value), "better")
    if value not in ([], ()):
        refused(loop, lambda: loop.feedback("d", clicks=value), "clicks")
        refused(loop, lambda: loop.feedback("d", clicks=["i0"], chain=value), "chain")


@pytest.mark.parametrize("names", [["i0", "i0"], ["i0", "i1", "i0"], ["5", 5]])
def test_nobody_is_there_twice(loop: Loop, names: Any) -> None:
    refused(loop, lambda: loop.decide(names, strict=True), "candidates")
    refused(loop, lambda: loop.decide([{"id": name, "f0": 1.0} for name in names], strict=True), "candidates")
    refused(loop, lambda: loop.record(["i0", "i1"], names, id="r"), "shown")
    refused(loop, lambda: loop.feedback("d", better=names), "better")


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


@each([0, -1, 1.5, True, "2", [], math.nan, 2**63])
def test_show_is_a_count(loop: Loop, value: Any) -> None:
    refused(loop, lambda: loop.decide(["i0", "i1"], show=value), "show")


@each([1, "text", [], [("a", 1)], {"a"}, b"", 1.5])
def test_a_context_is_an_object(loop: Loop, value: Any) -> None:
    refused(loop, lambda: loop.decide(["i0", "i1"], context=value), "context")


# ---------------------------------------------------------------------------- numbers


@each(NOT_NUMBERS)
def test_what_is_no_number_is_refused(loop: Loop, value: Any) -> None:
    refused(loop, lambda: loop.decide(["i0", "i1"], prior=[0.0, value]), "prior[1]")
    refused(loop, lambda: loop.decide(["i0", "i1"], prior={"i0": 0.0, "i1": value}), "prior['i1']")
    refused(loop, lambda: loop.feedback("d", rating={"i0": 1, "i1": value}), "rating['i1']")
    refused(loop, lambda: loop.feedback("d", grade={"i0": value}), "grade['i0']")
    if value is not None:
        refused(loop, lambda: loop.record(["i0"], ["i0"], id="r", probability=value), "probability")


@each([1.0, "ab", [1.0], [1.0, 2.0, 3.0], {"i9": 1.0}, {"i0", "i1"}, np.ones(3), np.ones((2, 1)), iter([1, 2]), True])
def test_a_prior_has_a_score_for_each(loop: Loop, value: Any) -> None:
    refused(loop, lambda: loop.decide(["i0", "i1"], prior=value), "prior")
    refused(loop, lambda: loop.record(["i0", "i1"], ["i0"], id="r", prior=value), "prior")


@each([0.0, -0.5, 1.0000001, 2])
def test_a_probability_is_one(loop: Loop, value: Any) -> None:
    refused(loop, lambda: loop.record(["i0"], ["i0"], id="r", probability=value), "probability")


@each([1, [], "i0", ["i0", 4], True, None, {}])
def test_ratings_are_by_name(loop: Loop, value: Any) -> None:
    for form in ("rating", "grade"):
        refused(loop, lambda form=form: loop.feedback("d", **{form: value}), form if value is not None else "feedback")
        refused(loop, lambda form=form: loop.feedback("d", **{form: {"i0": 1, "": 2}}), f"{form}[1]")


BAD_TIMES: list[Any] = ["", "now", "2026-01-31", "2026-01-31T12:00:00", "1969-12-31T23:59:59Z", 1.5, True, -1, 2**53]
BAD_TIMES += [[], {}, b"1", math.nan, 10**400, np.int64(1), timedelta(1), "2026-13-01T00:00:00Z", "\ud800", object()]


@each(BAD_TIMES)
def test_a_time_has_a_zone_or_is_microseconds(loop: Loop, value: Any) -> None:
    refused(loop, lambda: loop.feedback("d", clicks=["i0"], time=value), "time")
    refused(loop, lambda: loop.record(["i0"], ["i0"], id="r", time=value), "time")
    refused(loop, lambda: loop.activate("deferred", time=value), "time")
    before = standing(loop)
    [answer] = loop.feedback_many([{"decision": "d", "clicks": ["i0"], "time": value}])
    rejected(loop, answer)
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


# ---------------------------------------------------------------------------- words, edits


@each(["UP", "", "sideways", 1, True, None, [], ["up"], {"up": 1}, b"up", 1.0, math.nan])
def test_a_thumb_is_up_or_down(loop: Loop, value: Any) -> None:
    refused(loop, lambda: loop.feedback("d", thumb=value), "thumb" if value is not None else "feedback")


@each(["First", "", "third", 0, True, None, [], ["first"], {"first": 1}, b"first", math.nan])
def test_a_choice_is_one_of_four(loop: Loop, value: Any) -> None:
    refused(loop, lambda: loop.feedback("d", choice=value), "choice" if value is not None else "feedback")


@each([False, 1, "true", "yes", [], {}, 1.0, np.bool_(True), None])
def test_none_is_true(loop: Loop, value: Any) -> None:
    refused(loop, lambda: loop.feedback("d", none=value), "none" if value is not None else "feedback")


@each(["steal", "Buy", "buy ", 5])
def test_an_action_is_one_the_loop_knows(loop: Loop, value: Any) -> None:
    message = refused(loop, lambda: loop.feedback("d", action=value, item="i0"), "action")
    assert "view, cart, buy, hide" in message


@each(
    [1, True, 1.5, [], {}, ["f0"], b"f0", {1: 2.0}, {"nothing": 1.0}, {"f0": "tall"}, {"f0": math.inf}, {"id": "new"}]
)
def test_an_edit_is_text_or_columns(loop: Loop, value: Any) -> None:
    refused(loop, lambda: loop.feedback("d", edit=value), "edit")


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


@each([1, None, "event", ["decision", "d"], [], True, b"", 1.5, {"clicks"}, object()])
def test_an_event_is_an_object(loop: Loop, value: Any) -> None:
    before = standing(loop)
    [answer] = loop.feedback_many([value])
    rejected(loop, answer)
    assert "event: expected an object" in answer.reason
    assert standing(loop) == before


def test_the_good_of_many_go_on(loop: Loop, tmp_path: Path) -> None:
    """Each bad one is refused alone, in its place."""
    good = {"decision": "d", "clicks": ["i1"]}
    bad: list[Any] = [{**good, "clicks": value} for value in NOT_LISTS] + [{**good, "decision": v} for v in BAD_IDS]
    bad += [{**good, "id": v} for v in BAD_IDS]
    with small_loop(tmp_path / "l", control=0.0) as small:
        small.decide(["i0", "i1"], id="d")
        events = [event for pair in zip([{**good, "id": f"e{j}"} for j in range(len(bad))], bad) for event in pair]
        answers = small.feedback_many(events)
        assert [a.status for a in answers] == ["applied", "rejected"] * len(bad)
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
@examples(300)
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


@each([np.int64(3), np.float32(3.0), np.int8(3)])
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
