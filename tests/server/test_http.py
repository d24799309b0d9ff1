"""Every route, through a real server: what it does, what it says when something is wrong, what others see of it."""

from __future__ import annotations

import itertools
import json
import re
import shutil
import threading
import time
from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from asking import (
    FLOAT32,
    MSGPACK,
    Caller,
    Said,
    Wire,
    at_once,
    events,
    held_up,
    is_problem,
    metrics,
    ok,
    raw_numbers,
    request,
    shared,
)
from hypothesis import given
from hypothesis import strategies as st

from budget import FACTOR, examples
from heedful import Loop
from heedful.server import codecs
from heedful.server import events as server_events
from heedful.server import metrics as server_metrics
from heedful.server.auth import Authenticator
from heedful.server.codecs import Limits
from heedful.server.context import Options
from heedful.server.keys import Keys
from heedful.server.main import served
from heedful.server.routes import description
from loops import choice_loop, rows, small_loop
from processes import here, until

ITEMS = rows(12, 4)
NAMES = [row["id"] for row in ITEMS]


COUNT = itertools.count()


def made(folder: Path, **settings: Any) -> str:
    """The name of a new loop."""
    name = f"loop{next(COUNT)}"
    small_loop(folder / f"{name}.heedful", **{"control": 0.0, "exploration": 0.0, **settings}).close()
    return name


@pytest.fixture
def name(folder: Path) -> str:
    return made(folder)


@pytest.fixture
def cars(name: str) -> str:
    return f"/v1/loops/{name}"


def opened(folder: Path, path: str) -> Loop:
    """The loop of a path, in this process."""
    return Loop.open(folder / f"{path.rpartition('/')[2]}.heedful")


# ---------------------------------------------------------------------------- loops


@pytest.mark.slow
def test_a_loop_is_made(ask: Caller, folder: Path) -> None:
    name = f"made.{ask.form}_1-"
    given = {
        "name": name,
        "items": [{"sku": "a", "price": 10, "kind": "x"}, {"sku": "b", "price": 20, "kind": "y"}],
        "learner": "second-order:epsilon=0.5",
        "settings": {"k": 3, "control": 0.0, "actions": {"buy": 2, "hide": -1}},
        "identifier": "sku",
        "kinds": {"price": "number"},
        "context": [{"hour": 1.0}, {"hour": 23.0}],
        "crosses": [["hour", "price"]],
    }
    answer = ask.post("/v1/loops", given)
    loop = ok(answer, 201)
    assert answer.headers["content-type"] == (MSGPACK if ask.form == "msgpack" else "application/json")
    assert loop == ok(ask.get(f"/v1/loops/{name}"))
    assert (loop["name"], loop["learner"], loop["version"], loop["items"]) == (name, "second-order:epsilon=0.5", 0, 2)
    assert (loop["events"], loop["unknown"], loop["settings"]["k"]) == ({"loop": 1, "item": 2}, {}, 3)
    assert loop["settings"]["actions"] == {"buy": 2.0, "hide": -1.0}
    assert len(loop["names"]) > loop["features"]
    assert loop["names"][-1] == "the caller's score"
    with Loop.open(folder / f"{name}.heedful") as held:
        assert held.feature_names == loop["names"]
        assert (held.items, held.manifest.encoding.size) == (["a", "b"], loop["features"])
    assert name in ok(ask.get("/v1/loops"))["loops"]
    is_problem(ask.post("/v1/loops", given), "exists")


def test_a_loop_of_texts_is_made_of_its_name(ask: Caller) -> None:
    loop = ok(ask.post("/v1/loops", {"name": f"texts-{ask.form}", "learner": None, "items": None}), 201)
    assert (loop["learner"], loop["items"]) == ("posterior", 0)
    drafts = [{"id": "x", "text": "Dear customer, perhaps."}, {"id": "y", "text": "Here!"}]
    first = ok(ask.post(f"/v1/loops/texts-{ask.form}/decisions", {"candidates": drafts}))
    edit = {"decision": first["id"], "edit": "Here it is."}
    assert ok(ask.post(f"/v1/loops/texts-{ask.form}/feedback", edit))["learned"] is True


BAD_LOOPS: list[tuple[dict[str, Any], str]] = [
    ({"name": "../x"}, "name"),
    ({"name": ".hidden"}, "name"),
    ({"name": ".."}, "name"),
    ({"name": "a/b"}, "name"),
    ({"name": "a\\b"}, "name"),
    ({"name": "C:cars"}, "name"),
    ({"name": "a\0b"}, "name"),
    ({"name": "a\n"}, "name"),
    ({"name": "ä"}, "name"),
    ({"name": "a" * 101}, "name"),
    ({"name": "x.heedful"}, "name"),
    ({"name": ""}, "name"),
    ({"name": 5}, "name"),
    ({}, "name"),
    ({"name": "bad", "learner": "nobody"}, "learner"),
    ({"name": "bad", "learner": "os:system"}, "learner"),
    ({"name": "bad", "learner": "evil.py:Class"}, "learner"),
    ({"name": "bad", "learner": "/tmp/evil.py:Class"}, "learner"),
    ({"name": "bad", "learner": 5}, "learner"),
    ({"name": "bad", "settings": {"speed": 1}}, "settings"),
    ({"name": "bad", "settings": []}, "settings"),
    ({"name": "bad", "settings": ""}, "settings"),
    ({"name": "bad", "settings": False}, "settings"),
    ({"name": "bad", "settings": {"k": 0}}, "k"),
    ({"name": "bad", "settings": {"control": 2}}, "control"),
    ({"name": "bad", "items": {"a": 1}}, "items"),
    ({"name": "bad", "items": ["a"]}, "items"),
    ({"name": "bad", "items": ITEMS, "kinds": {"f0": "colour"}}, "kinds"),
    ({"name": "bad", "items": ITEMS, "kinds": []}, "kinds"),
    ({"name": "bad", "items": ITEMS, "kinds": {"f0": []}}, "kinds"),
    ({"name": "bad", "items": ITEMS, "identifier": []}, "identifier"),
    ({"name": "bad", "items": ITEMS, "identifier": {}}, "identifier"),
    ({"name": "bad", "items": ITEMS, "identifier": ""}, "identifier"),
    ({"name": "bad", "items": ITEMS, "crosses": 0}, "crosses"),
    ({"name": "bad", "items": ITEMS, "crosses": [["a", "f0"]]}, "crosses"),
    ({"name": "bad", "context": "x"}, "context"),
    ({"name": "bad", "speed": 1}, "body"),
]


@pytest.mark.parametrize(("given", "field"), BAD_LOOPS, ids=lambda each: json.dumps(each)[:40])
def test_a_loop_that_makes_no_sense_is_not_made(plain: Caller, folder: Path, given: dict[str, Any], field: str) -> None:
    before = set(folder.iterdir())
    if given.get("name") == "bad":
        given = given | {"name": f"bad{next(COUNT)}"}
    is_problem(plain.post("/v1/loops", given), "bad-input", field)
    assert set(folder.iterdir()) == before


@pytest.mark.slow
def test_two_make_the_same_loop_and_one_has_made_it(url: str) -> None:
    for i in range(4):
        make = partial(httpx.post, f"{url}/v1/loops", json={"name": f"twice{i}", "items": ITEMS})
        assert sorted(answer.status_code for answer in at_once(*[make] * 4)) == [201, 409, 409, 409]


def test_what_is_no_loop_is_not_listed(tmp_path: Path) -> None:
    for each in ("cars", "b", "B"):
        small_loop(tmp_path / f"{each}.heedful").close()
    (tmp_path / "empty.heedful").mkdir()
    (tmp_path / "file.heedful").write_text("x")
    (tmp_path / "acme").mkdir()
    small_loop(tmp_path / "acme" / "theirs.heedful").close()
    small_loop(tmp_path / ".hidden.heedful").close()
    small_loop(tmp_path / "with space.heedful").close()
    with served(tmp_path) as url, closing(Caller(url)) as caller:
        assert ok(caller.get("/v1/loops")) == {"loops": ["B", "b", "cars"]}
        for each in ("empty", "file", "theirs", ".hidden", "with%20space", "acme%2Ftheirs"):
            answer = caller.get(f"/v1/loops/{each}")
            assert (answer.status, answer.kind) == (404, "not-found")


# ---------------------------------------------------------------------------- items


def test_items_are_put_paged_and_withdrawn(ask: Caller, cars: str) -> None:
    assert ok(ask.get(f"{cars}/items")) == {"items": NAMES, "total": 12}
    assert ok(ask.get(f"{cars}/items?start=10&limit=1")) == {"items": ["i10"], "total": 12}
    assert ok(ask.get(f"{cars}/items?start=500")) == {"items": [], "total": 12}
    assert ok(ask("PUT", f"{cars}/items", ITEMS)) == {"put": 0, "changed": []}
    assert ok(ask("PUT", f"{cars}/items", [{"id": "new", "f0": 1.5}, {"id": "i0", "f0": 2}])) == {
        "put": 2,
        "changed": ["i0"],
    }
    assert ok(ask("PUT", f"{cars}/items", [])) == {"put": 0, "changed": []}
    assert ok(ask.get(f"{cars}/items"))["total"] == 13
    assert ok(ask("DELETE", f"{cars}/items/new")) == {"withdrawn": True}
    assert ok(ask("DELETE", f"{cars}/items/new")) == {"withdrawn": False}
    assert ok(ask.get(f"{cars}/items"))["total"] == 12
    assert ok(ask.get(cars))["events"]["item"] == 15


ODD = [
    "a/b",
    "a/b/c",
    "..",
    "../../etc",
    "ü",
    "日本",
    "a b",
    "100%",
    "a%2Fb",
    "?q=1",
    "#x",
    "a\\b",
    "/",
    "//",
    ".",
    "😀",
]


@pytest.mark.parametrize("odd", ODD)
def test_odd_names_go_through_the_path(plain: Caller, cars: str, odd: str, folder: Path) -> None:
    quoted = httpx.URL("http://x/", params={"p": odd}).query.decode().removeprefix("p=").replace("+", "%20")
    quoted = quoted.replace("/", "%2F").replace(".", "%2E")
    assert ok(plain("PUT", f"{cars}/items", [{"id": odd, "f0": 9}]))["put"] == 1
    d = ok(plain.post(f"{cars}/decisions", {"id": odd, "person": odd}))
    assert d["id"] == odd
    with Wire(plain.url) as wire:
        wire.send(request("GET", f"{cars}/decisions/{quoted}/why"))
        found = wire.must()
        assert (found.status, found.value["decision"]) == (200, odd)
        wire.send(request("DELETE", f"{cars}/items/{quoted}"))
        found = wire.must()
        assert (found.status, found.value) == (200, {"withdrawn": True})
    assert ok(plain.post(f"{cars}/forget", {"person": odd}))["events"] == 1
    with opened(folder, cars) as loop:
        assert odd not in loop.items
        assert loop.projection.find_decision(odd) is None


# ---------------------------------------------------------------------------- deciding, learning


def test_what_was_learned_is_there_for_the_very_next_request(ask: Caller, cars: str) -> None:
    before = ok(ask.get(f"{cars}/weights"))
    for i in range(20):
        d = ok(ask.post(f"{cars}/decisions", {"id": f"d{i}", "candidates": NAMES}))
        assert d["version"] == before["version"]
        answer = ok(ask.post(f"{cars}/feedback", {"decision": d["id"], "id": f"e{i}", "better": d["shown"][::-1]}))
        assert (answer["status"], answer["learned"], answer["late"]) == ("applied", True, False)
        after = ok(ask.get(f"{cars}/weights"))
        assert after["version"] == answer["version"] == answer["seq"] == d["seq"] + 1
        assert after["weights"] != before["weights"]
        assert ok(ask.post(f"{cars}/decisions", {"id": f"d{i}-after"}))["version"] == answer["seq"]
        before = after


def test_candidates_are_ranked_and_nothing_is_logged(ask: Caller, folder: Path) -> None:
    name = made(folder, learner="posterior", shrink=2.0, exploration=0.5, control=0.5)
    cars = f"/v1/loops/{name}"
    for i in range(4):
        ok(ask.post(f"{cars}/decisions", {"candidates": NAMES, "id": f"d{i}", "person": f"p{i % 2}"}))
        ok(ask.post(f"{cars}/feedback", {"decision": f"d{i}", "id": f"e{i}", "better": NAMES[5 + i]}))
    before = ok(ask.get(cars))["events"], ok(ask.get(f"{cars}/report"))
    with opened(folder, cars) as loop:
        prior = {n: float(j % 3) for j, n in enumerate(NAMES)}
        for given in ({}, {"person": "p1"}, {"candidates": NAMES[:5], "prior": prior | {}}, {"candidates": NAMES[3:]}):
            given = given | ({"prior": {n: prior[n] for n in NAMES[:5]}} if "prior" in given else {})
            told = ok(ask.post(f"{cars}/rank", given))
            ranking = loop.rank(**given)
            assert told == {"ranking": list(ranking), "version": loop.version, "sure": told["sure"]}
            assert len(told["sure"]) == min(len(ranking) - 1, 10)
        assert ok(ask.post(f"{cars}/rank", {"person": "p1"})) != ok(ask.post(f"{cars}/rank", {"person": "p0"}))
        assert loop.feedback("d0", better=["i11"]).learned  # another process teaches it
        assert ok(ask.post(f"{cars}/rank", {}))["version"] == loop.version
        assert loop.undo(loop.lessons(1)[0].event).status == "applied"
    after = ok(ask.get(cars))["events"], ok(ask.get(f"{cars}/report"))
    assert after[0] == before[0] | {"feedback": 5, "undo": 1}
    assert (after[1]["learned"], after[1]["control"]) == (before[1]["learned"], before[1]["control"])
    is_problem(ask.post(f"{cars}/rank", {"show": 3}), "bad-input", "body")
    is_problem(ask.post(f"{cars}/rank", {"person": ""}), "bad-input", "person")


def test_one_unknown_candidate_does_not_break_a_page(ask: Caller, folder: Path) -> None:
    name = made(folder, learner="perceptron", control=0.0)
    cars = f"/v1/loops/{name}"
    d = ok(ask.post(f"{cars}/decisions", {"candidates": ["i0", "999", "i1"], "prior": [3, 2, 1], "id": "d"}))
    assert (d["shown"][1], d["unknown"], d["probability"]) == ("999", ["999"], 1.0)
    assert "unknown" not in ok(ask.post(f"{cars}/decisions", {"candidates": ["i0", "i1"]}))
    hits = [{"_index": "p", "_id": "i0", "_score": 3.5, "_source": {}}, {"_id": "999", "_score": 2}, {"_id": "i1"}]
    assert ok(ask.post(f"{cars}/rank", {"candidates": hits}))["unknown"] == ["999"]
    assert ok(ask.post(f"{cars}/decisions", {"candidates": hits}))["unknown"] == ["999"]
    told = ok(ask.post(f"{cars}/records", {"candidates": ["i0", "999"], "shown": ["999"], "id": "r"}))
    assert (told["shown"], told["unknown"]) == (["999"], ["999"])
    for route in ("decisions", "rank"):
        asked = {"candidates": ["i0", "999"], "strict": True}
        is_problem(ask.post(f"{cars}/{route}", asked), "bad-input", "candidates")
    is_problem(ask.post(f"{cars}/decisions", {"candidates": ["i0"], "strict": 1}), "bad-input", "strict")
    assert ok(ask.get(f"{cars}/report"))["unknown"] == 3

    def counted() -> list[str]:
        text = ask.get("/metrics").value.decode()
        lines = [line for line in text.splitlines() if f'loop="{name}"' in line and 'kind="candidate"' in line]
        return [line.split()[-1] for line in lines if 'outcome="unknown"' in line]

    until(lambda: counted() == ["3.0"])  # the text is that of up to a second ago


def test_a_request_without_a_body_asks_for_all(plain: Caller, cars: str) -> None:
    assert ok(plain.send("POST", f"{cars}/decisions"))["shown"][:3] == NAMES[:3]
    assert ok(plain.send("POST", f"{cars}/decisions", b"{}", content_type="application/json; charset=UTF-8"))


@pytest.mark.parametrize("kind", [MSGPACK, "application/x-msgpack", "Application/vnd.msgpack; x=y"])
def test_every_name_of_msgpack(plain: Caller, cars: str, kind: str) -> None:
    answer = plain.send("POST", f"{cars}/decisions", b"\x81\xa4show\x03", content_type=kind, accept=kind)
    assert (answer.headers["content-type"], len(ok(answer)["shown"])) == (MSGPACK, 3)
    first = plain.send("POST", f"{cars}/decisions", b"{}", accept=f"application/json, {MSGPACK}")
    assert first.headers["content-type"] == "application/json"


# ---------------------------------------------------------------------------- numbers alone


@pytest.mark.slow
@given(st.data())
@examples(15)
def test_rows_of_numbers_are_decided_like_the_same_features_as_objects(folder: Path, url: str, data: Any) -> None:
    """Bit for bit: what is shown, how probable it was, and what is learned of it."""
    name, other = _pair(folder)
    m = data.draw(st.integers(1, 30))
    X = np.array(data.draw(st.lists(st.floats(-1e6, 1e6, width=32), min_size=4 * m, max_size=4 * m)), "<f4")
    X = X.reshape(m, 4)
    prior = data.draw(st.none() | st.lists(st.floats(-100, 100, width=32), min_size=m, max_size=m))
    show, person = data.draw(st.none() | st.integers(1, 40)), data.draw(st.none() | st.sampled_from(["p1", "pä/1"]))
    id = f"d{next(COUNT)}"
    query: dict[str, str] = {"id": id, "context": '{"hour": 3}'}
    body: dict[str, Any] = {"id": id, "context": {"hour": 3}}
    body["candidates"] = [{"id": str(i), "features": row.tolist()} for i, row in enumerate(X)]
    if show is not None:
        query["show"], body["show"] = str(show), show
    if person is not None:
        query["person"] = body["person"] = person
    if prior is not None:
        query["prior"], body["prior"] = "true", prior
        X = np.column_stack([X, np.array(prior, "<f4")])
    ask = shared(url)
    path = f"/v1/loops/{name}/decisions?{httpx.QueryParams(query)}"
    raw = ok(ask.send("POST", path, raw_numbers(X), content_type=FLOAT32))
    assert raw == ok(ask.post(f"/v1/loops/{other}/decisions", body))
    event = {"decision": id, "id": id, "better": [raw["shown"][-1]]}
    first, second = (ok(ask.post(f"/v1/loops/{each}/feedback", event)) for each in (name, other))
    assert first == second
    first, second = (ok(ask.get(f"/v1/loops/{each}/weights")) for each in (name, other))
    assert first == second


_PAIRS: dict[Path, tuple[str, str]] = {}


def _pair(folder: Path) -> tuple[str, str]:
    if folder not in _PAIRS:
        _PAIRS[folder] = made(folder, seed=5, control=0.2), made(folder, seed=5, control=0.2)
    return _PAIRS[folder]


def test_rows_of_numbers_may_be_deferred(plain: Caller, cars: str, folder: Path) -> None:
    X = raw_numbers(np.eye(4))
    assert ok(plain.send("POST", f"{cars}/decisions?id=d&deferred=true", X, content_type=FLOAT32))["shown"] == list(
        "0123"
    )
    is_problem(plain.post(f"{cars}/feedback", {"decision": "d", "clicks": ["1"]}), "rejected")
    assert ok(plain.post(f"{cars}/activate", {"decision": "d"}))["status"] == "applied"
    assert ok(plain.post(f"{cars}/feedback", {"decision": "d", "clicks": ["1"]}))["learned"] is True
    with opened(folder, cars) as loop:
        assert loop.verify() == []


BAD_NUMBERS: list[tuple[str, bytes, str]] = [
    ("", b"", "body"),
    ("", b"x" * 15, "body"),
    ("", b"x" * 17, "body"),
    ("prior=true", b"x" * 16, "body"),
    ("", raw_numbers([[1, 2, 3, float("nan")]]), "candidates"),
    ("", raw_numbers([[1, 2, 3, float("inf")]]), "candidates"),
    ("prior=true", raw_numbers([[1, 2, 3, 4, float("nan")]]), "prior[0]"),
    ("prior=yes", bytes(16), "prior"),
    ("deferred=1", bytes(16), "deferred"),
    ("show=0", bytes(16), "show"),
    ("show=-1", bytes(16), "show"),
    ("show=1.5", bytes(16), "show"),
    ("show=%C2%B2", bytes(16), "show"),
    ("show=4611686018427387905", bytes(16), "show"),
    ("show=99999999999999999999", bytes(16), "show"),
    ("show=1&show=1", bytes(16), "show"),
    ("id=", bytes(16), "id"),
    ("id=%00", bytes(16), "id"),
    ("person=" + "x" * 201, bytes(16), "person"),
    ("context=x", bytes(16), "context"),
    ("context=" + "[" * 5000, bytes(16), "context"),
    ("context=[1]", bytes(16), "context"),
    ("speed=1", bytes(16), "query"),
    ("candidates=a", bytes(16), "query"),
]


@pytest.mark.parametrize("query", ["person=ann", "show=2", "colour=red", "id=", "show"])
def test_a_query_beside_fields_is_refused(ask: Caller, cars: str, query: str) -> None:
    """It is not dropped: who says there whom a decision is for would never have her forgotten."""
    name = query.partition("=")[0]
    for what, body in (("decisions", {}), ("feedback", {"decision": "d", "none": True}), ("feedback", [])):
        for _ in range(3):
            answer = ask.post(f"{cars}/{what}?{query}", body)
            assert f"got {name!r}" in is_problem(answer, "bad-input", "query")["detail"]
    is_problem(ask.send("POST", f"{cars}/decisions?{query}"), "bad-input", "query")
    assert ok(ask.get(cars))["events"] == {"item": 12, "loop": 1}


@pytest.mark.parametrize(("query", "body", "field"), BAD_NUMBERS, ids=[q[:20] or len(b) for q, b, _ in BAD_NUMBERS])
def test_rows_of_numbers_that_are_none(plain: Caller, cars: str, query: str, body: bytes, field: str) -> None:
    is_problem(plain.send("POST", f"{cars}/decisions?{query}", body, content_type=FLOAT32), "bad-input", field)
    assert "decision" not in ok(plain.get(cars))["events"]


@pytest.mark.parametrize("form", ["better", "clicks", "rating"])
def test_feedback_on_many_candidates_does_not_hold_up_the_others(plain: Caller, cars: str, form: str) -> None:
    n = 20_000
    raw = raw_numbers(np.random.default_rng(0).standard_normal((n, 4)))
    assert ok(plain.send("POST", f"{cars}/decisions?id=many", raw, content_type=FLOAT32))
    names = [str(i) for i in range(n)][::-1]
    event = {"decision": "many", form: {name: n - i for i, name in enumerate(names)} if form == "rating" else names}
    answers: list[Said] = []
    assert not held_up(plain.url, lambda: answers.append(plain.post(f"{cars}/feedback", event)))
    assert ok(answers[0])["learned"] is True


# ---------------------------------------------------------------------------- what is wrong with a field

BAD_FIELDS: list[tuple[str, Any, str]] = [
    ("decisions", [], "body"),
    ("decisions", {"speed": 1}, "body"),
    ("decisions", {"candidates": "i0"}, "candidates"),
    ("decisions", {"candidates": ["nobody"], "strict": True}, "candidates"),
    ("decisions", {"candidates": [{"f0": "x"}]}, "candidates[0]"),
    ("decisions", {"candidates": ["i0", "\u0001"]}, "candidates[1]"),
    ("decisions", {"person": ""}, "person"),
    ("decisions", {"context": []}, "context"),
    ("decisions", {"prior": [1]}, "prior"),
    ("decisions", {"candidates": ["i0", "i1"], "prior": [1, "x"]}, "prior[1]"),
    ("decisions", {"show": 0}, "show"),
    ("decisions", {"after": "nothing"}, "after"),
    ("decisions", {"after": ["d"]}, "after"),
    ("decisions", {"after": "a\nb"}, "after"),
    ("decisions", {"id": {}}, "id"),
    ("decisions", {"deferred": 1}, "deferred"),
    ("records", {"shown": ["i0"], "id": "r"}, "candidates"),
    ("records", {"candidates": NAMES, "id": "r"}, "shown"),
    ("records", {"candidates": NAMES, "shown": ["i0"]}, "id"),
    ("records", {"candidates": NAMES, "shown": ["x"], "id": "r"}, "shown"),
    ("records", {"candidates": NAMES, "shown": ["i0"], "id": "r", "probability": 0}, "probability"),
    ("records", {"candidates": NAMES, "shown": ["i0"], "id": "r", "time": "yesterday"}, "time"),
    ("records", {"candidates": NAMES, "shown": ["i0"], "id": "r", "show": 1}, "body"),
    ("feedback", "x", "body"),
    ("feedback", {}, "decision"),
    ("feedback", {"decision": "D"}, "feedback"),
    ("feedback", {"decision": "D", "clicks": ["i0"], "speed": 1}, "feedback"),
    ("feedback", {"decision": "D", "clicks": "i0"}, "clicks"),
    ("feedback", {"decision": "D", "clicks": [1.5]}, "clicks[0]"),
    ("feedback", {"decision": "D", "clicks": [], "id": []}, "id"),
    ("feedback", {"decision": "D", "clicks": ["i0"], "time": -1}, "time"),
    ("feedback", {"decision": "D", "action": "buy"}, "item"),
    ("feedback", {"decision": "D", "rating": {"i0": "x"}}, "rating['i0']"),
    ("feedback", {"decision": "D", "edit": {"f0": "x"}}, "edit"),
    ("activate", {}, "decision"),
    ("activate", {"decision": []}, "decision"),
    ("activate", {"decision": "D", "time": "x"}, "time"),
    ("activate", {"decision": "D", "id": "x"}, "body"),
    ("undo", {}, "event"),
    ("undo", {"event": "a\0"}, "event"),
    ("undo", {"event": "E", "time": 1}, "body"),
    ("evaluations", {"learners": "perceptron"}, "learners"),
    ("evaluations", {"learners": ["os:system"]}, "learner"),
    ("evaluations", {"learners": ["perceptron"] * 11}, "learners"),
    ("evaluations", {"alpha": 2}, "alpha"),
    ("evaluations", {"learners": ["perceptron"], "x": 1}, "body"),
]


@pytest.mark.parametrize(
    ("route", "body", "field"), BAD_FIELDS, ids=[f"{r}-{json.dumps(b)[:40]}" for r, b, _ in BAD_FIELDS]
)
def test_a_wrong_field_is_named(plain: Caller, folder: Path, route: str, body: Any, field: str) -> None:
    """One of each field: which values are wrong is tried at the loop (`loop/test_records.py`, `test_refusals.py`)."""
    cars = f"/v1/loops/{_bad(folder, plain)}"
    before = ok(plain.get(cars))["events"]
    is_problem(plain.post(f"{cars}/{route}", body), "bad-input", field)
    assert ok(plain.get(cars))["events"] == before


_BAD: dict[Path, str] = {}


def _bad(folder: Path, ask: Caller) -> str:
    if folder not in _BAD:
        _BAD[folder] = made(folder)
        ok(ask.post(f"/v1/loops/{_BAD[folder]}/decisions", {"id": "D"}))
        ok(ask.post(f"/v1/loops/{_BAD[folder]}/feedback", {"decision": "D", "id": "E", "better": "i1"}))
    return _BAD[folder]


BAD_QUERIES = [
    ("GET", "items?start=-1", "start"),
    ("GET", "items?start=x", "start"),
    ("GET", "items?limit=0", "limit"),
    ("GET", "items?limit=10001", "limit"),
    ("GET", "items?limit=1&limit=2", "limit"),
    ("GET", "items?" + "start=" + "9" * 5000, "start"),
    ("GET", "items?offset=1", "query"),
    ("GET", "?x=1", "query"),
    ("GET", "weights?person=", "person"),
    ("GET", "weights?person=%00", "person"),
    ("GET", "report?last=0", "last"),
    ("GET", "report?last=1000001", "last"),
    ("GET", "report?first=1", "query"),
    ("GET", "events?after=-1", "after"),
    ("GET", "events?after=1e3", "after"),
    ("GET", "events?kinds=", "kinds"),
    ("GET", "events?kinds=feedback,forget", "kinds"),
    ("GET", "events?follow=1", "follow"),
    ("POST", "undo?event=E", "query"),
    ("GET", "people/x%00y", "person"),
    ("GET", "people/x?last=1", "query"),
    ("GET", "people/" + "x" * 201, "person"),
    ("GET", "decisions/x%00y/why", "decision"),
    ("GET", "decisions/d/why?item=", "item"),
    ("GET", "decisions/d/why?item=i0&top=-1", "top"),
    ("GET", "decisions/d/why?item=i0&top=1001", "top"),
    ("GET", "decisions/d/why?item=i0&seconds=1", "query"),
]


@pytest.mark.parametrize(("method", "rest", "field"), BAD_QUERIES, ids=[r[:40] for _, r, _ in BAD_QUERIES])
def test_a_wrong_parameter_is_named(plain: Caller, cars: str, method: str, rest: str, field: str) -> None:
    body = ... if method != "POST" else {"event": "E"}
    path = f"{cars}{'' if rest.startswith('?') else '/'}{rest}"
    is_problem(plain(method, path, body), "bad-input", field)


def test_a_wrong_last_event_id_is_named(plain: Caller, cars: str) -> None:
    for wrong in ("x", "-1", "1.5", "9" * 19, ""):
        is_problem(plain.get(f"{cars}/events", last_event_id=wrong), "bad-input", "Last-Event-ID")


def test_what_fits_no_longer_what_happened_is_rejected(ask: Caller, cars: str) -> None:
    ok(ask.post(f"{cars}/decisions", {"id": "d", "show": 2, "deferred": True}))
    asked = [("feedback", {"decision": "nobody", "clicks": []}), ("feedback", {"decision": "d", "clicks": ["i1"]})]
    asked += [("activate", {"decision": "nobody"}), ("undo", {"event": "nobody"})]
    for route, body in asked:
        members = is_problem(ask.post(f"{cars}/{route}", body), "rejected")
        assert members["detail"] == members["answer"]["reason"]
        assert (members["answer"]["status"], members["answer"]["seq"]) == ("rejected", None)
    answers = ok(ask.post(f"{cars}/feedback", [body for route, body in asked if route == "feedback"] + [5, {}]))
    assert [answer["status"] for answer in answers] == ["rejected"] * 4
    assert "feedback" not in ok(ask.get(cars))["events"]


def test_an_explanation_of_nothing_is_not_found(ask: Caller, cars: str) -> None:
    for query in ("", "?item=i0"):
        is_problem(ask.get(f"{cars}/decisions/nobody/why{query}"), "not-found")


# ---------------------------------------------------------------------------- the same again


def test_everything_may_be_sent_again(ask: Caller, cars: str, folder: Path) -> None:
    decision = {"id": "d", "person": "p", "show": 3}
    record = {"candidates": NAMES[:3], "shown": ["i1"], "id": "r", "time": 10**15}
    calls: list[tuple[str, Any]] = [("decisions", decision), ("records", record)]
    calls += [("feedback", {"decision": "d", "id": "e", "better": "i9"}), ("undo", {"event": "e"})]
    for route, body in calls:
        first = ok(ask.post(f"{cars}/{route}", body))
        for _ in range(2):
            again = ok(ask.post(f"{cars}/{route}", body))
            kept = {name: value for name, value in again.items() if name not in ("status", "learned", "version")}
            assert kept.items() <= first.items()
            assert again.get("status", "duplicate") == "duplicate"
    with opened(folder, cars) as loop:
        assert loop.projection.log.counts() == {"loop": 1, "item": 12, "decision": 2, "feedback": 1, "undo": 1}
    is_problem(ask.post(f"{cars}/decisions", {**decision, "person": "q"}), "bad-input", "id")
    is_problem(ask.post(f"{cars}/decisions", {**decision, "candidates": ["i0"]}), "bad-input", "id")
    is_problem(ask.post(f"{cars}/records", {**record, "shown": ["i0"]}), "bad-input", "id")
    other = is_problem(ask.post(f"{cars}/feedback", {"decision": "d", "id": "e", "better": "i8"}), "rejected")
    assert "with other content" in other["detail"]


KEYED: list[tuple[str, dict[str, Any]]] = [
    ("decisions", {"show": 2}),
    ("records", {"candidates": NAMES[:2], "shown": ["i0"]}),
    ("feedback", {"decision": "D", "better": "i3"}),
    ("undo", {"event": "E"}),
]


@pytest.mark.parametrize(("route", "body"), KEYED, ids=[route for route, _ in KEYED])
def test_an_idempotency_key_is_the_id(ask: Caller, cars: str, folder: Path, route: str, body: dict[str, Any]) -> None:
    ok(ask.post(f"{cars}/decisions", {"id": "D"}))
    ok(ask.post(f"{cars}/feedback", {"decision": "D", "id": "E", "better": "i2"}))
    longest = "x" * 180
    for key in ("key-1", "a b", longest):
        first = ok(ask.post(f"{cars}/{route}", body, idempotency_key=key))
        for same in (key, f'"{key}"'):
            again = ok(ask.post(f"{cars}/{route}", body, idempotency_key=same))
            assert again["seq"] == first["seq"]
        assert again.get("id", again.get("event")) == key
        assert ok(ask.post(f"{cars}/{route}", body | {"id": key}, idempotency_key=key))["seq"] == first["seq"]
        told = ask.post(f"{cars}/{route}", body | {"id": "other"}, idempotency_key=key)
        is_problem(told, "bad-input", "Idempotency-Key")
    for wrong in ("", '""', "x" * 181, '"' + "x" * 181 + '"', "a\tb"):
        answer = ask.post(f"{cars}/{route}", body, idempotency_key=wrong)
        is_problem(answer, "malformed", "Idempotency-Key")
    with opened(folder, cars) as loop:
        counts = loop.projection.log.counts()
        found = {"decisions": "decision", "records": "decision"}.get(route, route)
        assert counts[found] == 3 + (found in ("decision", "feedback"))


def test_of_a_batch_each_event_has_the_key_and_its_number(ask: Caller, cars: str) -> None:
    ok(ask.post(f"{cars}/decisions", {"id": "D"}))
    batch = [{"decision": "D", "better": "i3"}, {"decision": "D", "id": "mine", "thumb": "up"}, 5]
    batch += [{"decision": "D", "id": None, "better": "i4"}]
    first = ok(ask.post(f"{cars}/feedback", batch, idempotency_key="k"))
    assert [each["event"] for each in first] == ["k-0", "mine", "", "k-3"]
    assert [each["status"] for each in first] == ["applied", "applied", "rejected", "applied"]
    again = ok(ask.post(f"{cars}/feedback", batch, idempotency_key='"k"'))
    assert [each["status"] for each in again] == ["duplicate", "duplicate", "rejected", "duplicate"]
    assert [each["seq"] for each in again] == [each["seq"] for each in first]
    assert ok(ask.get(cars))["events"]["feedback"] == 3


def test_without_ids_and_keys_each_is_an_event_of_its_own(ask: Caller, cars: str) -> None:
    ok(ask.post(f"{cars}/decisions", {"id": "D"}))
    answers = [ok(ask.post(f"{cars}/feedback", {"decision": "D", "better": "i3"})) for _ in range(3)]
    assert len({answer["event"] for answer in answers}) == 3


# ---------------------------------------------------------------------------- methods, paths

NAMED = {"item": "x", "person": "x", "id": "D"}
PATHS = {
    re.sub(r"{(item|person|id)}", lambda part: NAMED[part[1]], path): {
        *map(str.upper, methods),
        *(["HEAD"] if "get" in methods else []),
    }
    for path, methods in json.loads(description())["paths"].items()
}
"""The methods of each path; that these are all of them is tried in `test_apart.py`."""


@pytest.mark.parametrize("path", PATHS)
def test_other_methods_are_told_which_there_are(plain: Caller, cars: str, path: str) -> None:
    allowed = PATHS[path]
    for method in {"GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"} - allowed:
        answer = plain.send(method, path.format(loop=cars.rpartition("/")[2]))
        if method == "HEAD":
            assert (answer.status, answer.value) == (405, b"")
        else:
            is_problem(answer, "not-allowed")
        assert set(answer.headers["allow"].split(", ")) == allowed


@pytest.mark.parametrize("path", [path for path in PATHS if "HEAD" in PATHS[path] and not path.endswith("events")])
def test_head_is_get_without_the_body(plain: Caller, cars: str, path: str) -> None:
    ok(plain.post(f"{cars}/decisions", {"id": "D"}))
    path = path.format(loop=cars.rpartition("/")[2])
    full = plain.send("GET", path)
    with Wire(plain.url) as wire:
        for _ in range(2):
            wire.send(request("HEAD", path))
            bare = wire.must(head=True)
            # How choices stand cannot be asked of a loop of rankings, and there was no experiment; refused, HEAD tells
            # as much as GET.
            refusals = {"standing": 422, "latest": 404}
            assert bare.status == full.status == refusals.get(path.rpartition("/")[2], 200)
            if path != "/metrics":
                assert bare.headers["content-length"] == full.headers["content-length"]
        wire.send(request("HEAD", f"{cars}/nothing"))
        bare = wire.must(head=True)
        assert bare.status == 404
        wire.send(request("GET", "/healthz"))
        assert wire.must().status == 200


@pytest.mark.parametrize("path", [path for path in PATHS if not path.endswith("/x")])
def test_a_slash_more_is_another_path(plain: Caller, cars: str, path: str) -> None:
    path = path.format(loop=cars.rpartition("/")[2])
    for other in (f"{path}/", f"/{path}", f"{path}//", path.replace("/v1/", "/v1//")):
        for method in ("GET", "POST"):
            if other != path:
                answer = plain.send(method, f"{plain.url}{other}")
                assert answer.status in (404, 405, 422), (method, other, answer)


@pytest.mark.parametrize("path", ["/v1", "/v2/loops", "/docs", "/redoc", "/v1/loops/x/y/z", "/favicon.ico", "/%00"])
def test_where_nothing_is(plain: Caller, path: str) -> None:
    is_problem(plain.send("GET", path), "not-found")
    is_problem(plain.send("POST", path, b"{}"), "not-found")


WAYS = r"""
../out ..%2fout ..%2Fout %2e%2e%2fout %2E%2E/out ..%252fout ..%5cout .%2e/out acme%2fcars acme/cars ./cars %2e/cars
.%2fcars cars%00 cars%00.x %00cars cars%0a cars%20 %20cars cars.heedful cars.heedful%2f %2e%2e .. . %252e%252e
c%C3%A0rs %FF %ff%fe % %zz cars% ~ cars;x cars:x acme:cars file:%2f%2f C:%5ccars \out %F0%9F%98%80 cars%E2%80%AE
%EF%BB%BFcars acme%2Fcars.heedful acme%5Ccars acme%252Fcars ACME%2fcars
"""
"""Names in a path that lead to another folder where nobody checks them."""


def test_no_path_leaves_the_folder_of_the_tenant(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    small_loop(tmp_path / "out.heedful").close()
    small_loop(home / "cars.heedful").close()
    (home / "acme").mkdir()
    small_loop(home / "acme" / "cars.heedful").close()
    shutil.copytree(tmp_path / "out.heedful", home / "%2e%2e.heedful")
    before = _tree(tmp_path)
    ways = WAYS.split()
    ways += [f"{tmp_path}/out".replace("/", "%2f"), f"{tmp_path}/out", "x" * 300]
    gets = ("", "/items", "/weights", "/people/x", "/events?follow=false")
    rest = [("GET", tail) for tail in gets] + [("PUT", "/items"), ("DELETE", "/items/x")]
    rest += [("POST", tail) for tail in ("/decisions", "/feedback", "/records", "/undo", "/forget")]
    with served(home) as url:
        for way in ways:
            with Wire(url) as wire:
                for method, tail in rest:
                    wire.send(request(method, f"/v1/loops/{way}{tail}", b"[]" if method == "PUT" else b"{}"))
                    answer = wire.must()
                    assert answer.status in (400, 404, 405), (method, way, tail, answer)
                    if answer.status == 400:
                        break  # and hung up
    assert _tree(tmp_path) == before


def _tree(folder: Path) -> set[str]:
    """All paths, without those that SQLite makes while it reads."""
    return {str(path) for path in folder.rglob("*") if not path.name.endswith(("-wal", "-shm"))}


# ---------------------------------------------------------------------------- who may ask


def test_without_keys_only_those_nearby(plain: Caller, cars: str) -> None:
    """Which hosts and origins are near is tried at the gate (`test_auth.py`)."""
    port = plain.url.rpartition(":")[2]
    with Wire(plain.url) as wire:
        for origin in ([], ["Origin: http://localhost:3000"]):
            wire.send(request("GET", cars, None, *origin, host=f"[::1]:{port}"))
            assert wire.must().status == 200
        paths = [("GET", cars), ("POST", f"{cars}/decisions"), ("POST", f"{cars}/feedback"), ("GET", "/metrics")]
        for method, path in paths:
            for host in ("evil.com", "localhost:", "", " "):
                wire.send(request(method, path, b"{}", host=host))
                is_problem(wire.must(), "wrong-host")
            for other in ("http://evil.com", ""):
                wire.send(request(method, path, b"{}", f"Origin: {other}"))
                is_problem(wire.must(), "wrong-origin")
        for path in ("/healthz", "/openapi.json"):
            wire.send(request("GET", path, None, "Origin: http://evil.com", host="evil.com"))
            assert wire.must().status == 200
    assert "decision" not in ok(plain.get(cars))["events"]


def test_with_a_key_from_anywhere(tmp_path: Path) -> None:
    small_loop(tmp_path / "cars.heedful").close()
    with served(tmp_path) as url, closing(Caller(url)) as before:
        assert ok(before.get("/v1/loops"))
        with closing(Keys(tmp_path)) as keys:
            key, text = keys.create("ci", scopes=["read", "decide"])
        with closing(Caller(url, text)) as caller:
            assert ok(caller.get("/v1/loops")) == {"loops": ["cars"]}
            told = is_problem(before.get("/v1/loops"), "no-key")
            assert "heedful keys create" in told["detail"]
            assert before.get("/v1/loops").headers["www-authenticate"] == "Bearer"
            assert ok(caller.post("/v1/loops/cars/decisions", {}, host="api.example.com", origin="https://a.b"))
            assert ok(caller.get("/v1/loops/cars", sec_fetch_site="cross-site", sec_fetch_mode="no-cors"))
            for scope, call in {"feedback": ("POST", "/v1/loops/x/feedback"), "admin": ("POST", "/v1/loops")}.items():
                assert repr(scope) in is_problem(caller(*call, {}), "no-scope")["detail"]
            assert before.get("/healthz").status == before.get("/openapi.json").status == 200
            with closing(Keys(tmp_path)) as keys:
                keys.revoke(key.prefix)
            until(lambda: caller.get("/v1/loops").status == 401)
            is_problem(caller.get("/v1/loops"), "no-key")
            is_problem(before.get("/v1/loops"), "no-key")


def test_a_rate_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten at once, and two a second by the clock of the server; a batch takes as many as it has answers."""
    now = [0.0]
    monkeypatch.setattr("heedful.server.context.Authenticator", partial(Authenticator, clock=lambda: now[0]))
    small_loop(tmp_path / "cars.heedful").close()
    with served(tmp_path, Options(rate=2.0)) as url, closing(Caller(url)) as caller:
        answers = [caller.get("/v1/loops/cars") for _ in range(12)]
        assert [answer.status for answer in answers] == [200] * 10 + [429] * 2
        is_problem(answers[-1], "too-many")
        assert answers[-1].headers["retry-after"] == "1"
        now[0] += 1.0
        ok(caller.post("/v1/loops/cars/decisions", {"id": "d"}))
        ok(caller.post("/v1/loops/cars/feedback", [{"decision": "d", "none": True}] * 9))
        refused = caller.get("/v1/loops/cars")
        is_problem(refused, "too-many")
        assert refused.headers["retry-after"] == "5"  # eight are owed, and one is needed
        now[0] += 4.0
        assert caller.get("/v1/loops/cars").status == 429
        now[0] += 1.0
        ok(caller.get("/v1/loops/cars"))


# ---------------------------------------------------------------------------- what is too much, what is not now


UNREADABLE = [
    ({"content-type": "text/plain"}, b"{}", "unsupported", "Content-Type"),
    ({"content-type": ""}, b"{}", "unsupported", "Content-Type"),
    ({"content-type": "application/json; charset=latin-1"}, b"{}", "unsupported", "Content-Type"),
    ({"content-type": "application/json; charset=utf-16"}, b"{}", "unsupported", "Content-Type"),
    ({"content-type": "application/jsonl"}, b"{}", "unsupported", "Content-Type"),
    ({"content-type": "multipart/form-data; boundary=x"}, b"--x--", "unsupported", "Content-Type"),
    ({"content-encoding": "gzip"}, b"\x1f\x8b\x08\x00", "unsupported", "Content-Encoding"),
    ({"content-encoding": "br"}, b"{}", "unsupported", "Content-Encoding"),
    ({}, b"{", "malformed", "body"),
    ({"content-type": MSGPACK}, b"\xc1", "malformed", "body"),
    ({"content-type": MSGPACK}, b"{}", "malformed", "body"),
]


def test_too_much_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(codecs, "BATCH", 20)
    small_loop(tmp_path / "cars.heedful").close()
    with served(tmp_path, Options(limits=Limits(body=10_000))) as url, closing(Caller(url)) as caller:
        ok(caller.post("/v1/loops/cars/decisions", {"id": "d"}))
        for method, path in (("POST", "decisions"), ("POST", "feedback"), ("POST", "records"), ("PUT", "items")):
            target = f"/v1/loops/cars/{path}"
            for n in (10_001, 200_000):
                is_problem(caller.send(method, target, b" " * n), "too-large", "body")
            assert is_problem(caller.send(method, target, b" " * 10_000), "malformed", "body")
        assert ok(caller.post("/v1/loops/cars/feedback", [{"decision": "d", "none": True}] * 20))
        is_problem(caller.post("/v1/loops/cars/feedback", [{"decision": "d", "none": True}] * 21), "too-large", "body")
        assert ok(caller("PUT", "/v1/loops/cars/items", [{"id": f"x{i}"} for i in range(200)]))
        is_problem(caller("PUT", "/v1/loops/cars/items", [{"id": f"x{i}"} for i in range(201)]), "too-large", "body")
        assert ok(caller.get("/v1/loops/cars"))["events"] == {"loop": 1, "item": 212, "decision": 1, "feedback": 20}


@pytest.mark.parametrize("route", ["decisions", "feedback", "records", "activate", "undo", "evaluations"])
@pytest.mark.parametrize(("headers", "body", "kind", "field"), UNREADABLE)
def test_what_cannot_be_read(
    plain: Caller, folder: Path, route: str, headers: dict[str, str], body: bytes, kind: str, field: str
) -> None:
    path = f"/v1/loops/{_bad(folder, plain)}/{route}"
    is_problem(plain.send("POST", path, body, **headers), kind, field)
    if route != "decisions":
        is_problem(plain.send("POST", path, bytes(16), content_type=FLOAT32), "unsupported", "Content-Type")
        is_problem(plain.send("POST", path, b""), "malformed", "body")


# ---------------------------------------------------------------------------- the stream of events


def story(ask: Caller, cars: str, n: int = 3) -> None:
    """A loop with n answered decisions, one of them taken back."""
    for i in range(n):
        ok(ask.post(f"{cars}/decisions", {"id": f"d{i}", "person": "pä"}))
        ok(ask.post(f"{cars}/feedback", {"decision": f"d{i}", "id": f"e{i}", "better": "i3"}))
    ok(ask.post(f"{cars}/undo", {"event": "e0"}))


def test_the_events_are_those_of_export(plain: Caller, cars: str, folder: Path) -> None:
    from heedful.io.exports import Exporter

    story(plain, cars)
    with events(plain, f"{cars}/events?follow=false") as stream:
        told = list(stream)
    assert [event.kind for event in told] == ["item"] * 12 + ["decision", "feedback"] * 3 + ["undo"]
    assert [event.id for event in told] == [event.data["seq"] for event in told] == list(range(2, 21))
    with opened(folder, cars) as loop:
        exporter = Exporter(loop, by_name=True)
        lines = [exporter.line(event) for event in loop.projection.log.events()]
        assert [{"seq": e.id, **json.loads(json.dumps(line))} for e, line in zip(told, [x for x in lines if x])] == [
            e.data for e in told
        ]
    for after in (0, 1, 2, 13, 19, 20, 10**17):
        with events(plain, f"{cars}/events?follow=false&after={after}") as stream:
            assert list(stream) == [event for event in told if event.id > after]
        with events(plain, f"{cars}/events?follow=false&after=3", last_event_id=str(after)) as stream:
            assert list(stream) == [event for event in told if event.id > after]
    for kinds in ("feedback", "undo,decision", "item,feedback,undo", "activate"):
        with events(plain, f"{cars}/events?follow=false&kinds={kinds}") as stream:
            assert list(stream) == [event for event in told if event.kind in kinds.split(",")]


def test_more_events_than_are_read_at_once(plain: Caller, cars: str) -> None:
    ok(plain.post(f"{cars}/decisions", {"id": "d"}))
    for start in range(0, 1200, 600):
        batch = [{"decision": "d", "id": f"e{start + i}", "none": True} for i in range(600)]
        ok(plain.post(f"{cars}/feedback", batch))
    with events(plain, f"{cars}/events?follow=false&kinds=feedback") as stream:
        assert [event.data["id"] for event in stream] == [f"e{i}" for i in range(1200)]


def test_an_event_comes_once_it_is_learned(plain: Caller, cars: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is told, not looked for: nobody looks for longer than a client waits."""
    monkeypatch.setattr(server_events, "LOOK", 600.0)
    with closing(Caller(plain.url)) as other, events(other, f"{cars}/events?kinds=decision,feedback") as stream:
        for i in range(5):
            ok(plain.post(f"{cars}/decisions", {"id": f"d{i}"}))
            assert next(stream).data["id"] == f"d{i}"
            answer = ok(plain.post(f"{cars}/feedback", {"decision": f"d{i}", "id": f"e{i}", "better": "i3"}))
            event = next(stream)
            assert (event.id, event.kind, event.data["id"]) == (answer["seq"], "feedback", f"e{i}")


def test_what_another_process_wrote_comes_too(plain: Caller, cars: str, folder: Path) -> None:
    path = f"{cars}/events?kinds=decision,feedback"
    with closing(Caller(plain.url)) as other, events(other, path) as stream, opened(folder, cars) as loop:
        loop.decide(NAMES, id="theirs")
        assert next(stream).data["id"] == "theirs"
        loop.feedback("theirs", id="e", better="i9")
        assert next(stream).data["id"] == "e"
    assert ok(plain.post(f"{cars}/decisions", {}))["version"] == 15


def test_streams_end_when_the_server_ends(tmp_path: Path) -> None:
    small_loop(tmp_path / "cars.heedful").close()
    with ExitStack() as stack:
        server = stack.enter_context(ExitStack())
        url = server.enter_context(served(tmp_path))
        callers = [stack.enter_context(closing(Caller(url))) for _ in range(3)]
        streams = [stack.enter_context(events(caller, "/v1/loops/cars/events")) for caller in callers]
        for stream in streams:
            assert [next(stream).id for _ in range(12)] == list(range(2, 14))
        server.close()
        for stream in streams:
            assert list(stream) == []  # ended in order: a stream that is cut off raises


def test_head_of_the_events_ends(plain: Caller, cars: str) -> None:
    """It has no body to wait for: the next request on the connection is answered."""
    with Wire(plain.url) as wire:
        for path in (f"{cars}/events", f"{cars}/events?follow=false", f"{cars}/events?kinds=undo"):
            wire.send(request("HEAD", path))
            assert wire.must(head=True).status == 200
            wire.send(request("GET", "/healthz"))
            assert wire.must().status == 200


@pytest.mark.slow
def test_a_follower_keeps_a_loop_open_and_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server_metrics, "EVERY", 0.0)
    small_loop(tmp_path / "cars.heedful").close()
    with served(tmp_path, Options(idle=0.1)) as url, closing(Caller(url)) as caller:
        with closing(Caller(url)) as other, events(other, "/v1/loops/cars/events") as stream:
            next(stream)
            time.sleep(0.5)
            assert open_loops(caller) == 1
            ok(caller.post("/v1/loops/cars/decisions", {"id": "last"}))
            while next(stream).data["id"] != "last":
                pass
        until(lambda: open_loops(caller) == 0)


def open_loops(caller: Caller) -> float:
    return metrics(caller.send("GET", "/metrics").value)["heedful_open_loops", frozenset()]


# ---------------------------------------------------------------------------- what is measured


def test_what_is_measured(tmp_path: Path) -> None:
    for tenant in (tmp_path, tmp_path / "acme", tmp_path / "globex"):
        tenant.mkdir(exist_ok=True)
        small_loop(tenant / "cars.heedful", control=0.0).close()
    with closing(Keys(tmp_path)) as keys:
        made_ = {
            "acme": keys.create("a", tenant="acme")[1],
            "globex": keys.create("g", tenant="globex")[1],
            "all": keys.create("m")[1],
            "main": keys.create("m2", scopes=["read", "decide", "feedback"])[1],
            "blind": keys.create("b", tenant="acme", scopes=["read", "admin", "decide", "feedback"])[1],
        }
    with served(tmp_path) as url, ExitStack() as stack:
        by = {name: stack.enter_context(closing(Caller(url, key))) for name, key in made_.items()}
        for who, n in (("acme", 3), ("globex", 2), ("main", 1)):
            story(by[who], "/v1/loops/cars", n)
            is_problem(by[who].post("/v1/loops/cars/feedback", {"decision": "no", "none": True}), "rejected")
            by[who].get("/v1/loops/nothing")
        is_problem(by["blind"].get("/metrics"), "no-scope")
        answer = by["acme"].send("GET", "/metrics")
        assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
        for who in ("acme", "globex"):
            found = metrics(by[who].send("GET", "/metrics").value)
            assert {dict(labels).get("tenant") for _, labels in found} == {who}
            n = {"acme": 3, "globex": 2}[who]
            loop = {"tenant": who, "loop": "cars"}.items()

            def value(name: str, found: Any = found, loop: Any = loop, **labels: str) -> float:
                return found[name, frozenset([*loop, *labels.items()])]

            assert value("heedful_events_total", kind="decision", outcome="learned") == n
            assert value("heedful_events_total", kind="feedback", outcome="applied") == n
            assert value("heedful_events_total", kind="feedback", outcome="rejected") == 1
            assert value("heedful_events_total", kind="undo", outcome="applied") == 1
            assert value("heedful_items") == 12
            assert value("heedful_model_version") == 13 + 2 * n + 1
            statuses = {dict(key)["status"] for name, key in found if name == "heedful_requests_total"}
            assert {"200", "404", "409"} <= statuses
            assert not any(name.startswith(("process_", "python_")) for name, _ in found)
        everything = metrics(by["all"].send("GET", "/metrics").value)
        tenants = {dict(labels).get("tenant") for _, labels in everything}
        assert {"acme", "globex", "main", None} <= tenants
        assert everything["heedful_open_loops", frozenset()] == 3
        assert everything["heedful_disk_free_bytes", frozenset()] > 0
        assert everything["process_resident_memory_bytes", frozenset()] > 0


def counted(caller: Caller) -> dict[tuple[str, str, str], float]:
    """How many requests the metrics count, by tenant, route and status."""
    samples = metrics(caller.send("GET", "/metrics").value).items()
    rows = [(dict(labels), n) for (name, labels), n in samples if name == "heedful_requests_total"]
    return {(row["tenant"], row["route"], row["status"]): n for row, n in rows}


def test_what_comes_to_no_route_is_counted(tmp_path: Path) -> None:
    """Also what is no HTTP or too large; never by what somebody made up."""
    with closing(Keys(tmp_path)) as keys:
        key, acme = keys.create("m")[1], keys.create("a", tenant="acme")[1]
    with served(tmp_path) as url, ExitStack() as stack:
        by, other, nobody = (stack.enter_context(closing(Caller(url, each))) for each in (key, acme, None))
        for n in range(3):
            is_problem(by.get(f"/v1/nothing{n}"), "not-found")
        is_problem(other.get("/v1/nothing"), "not-found")
        is_problem(by("PATCH", "/v1/loops"), "not-allowed")
        is_problem(nobody.get("/v1/nothing"), "no-key")
        is_problem(nobody.get("/v1/loops"), "no-key")
        for sent, kind in (
            (b"no such thing\r\n\r\n", "malformed"),
            (request("GET", "/v1/loops", None, "X: " + "y" * 70_000), "too-large"),
        ):
            with Wire(url) as wire:
                wire.send(sent)
                assert wire.must().kind == kind
        assert counted(by) == {
            ("main", "elsewhere", "404"): 3.0,
            ("acme", "elsewhere", "404"): 1.0,
            ("main", "elsewhere", "405"): 1.0,
            ("", "elsewhere", "401"): 1.0,
            ("", "GET /v1/loops", "401"): 1.0,
            ("", "elsewhere", "400"): 1.0,
            ("", "elsewhere", "413"): 1.0,
        }


def test_what_is_too_slow_is_counted(tmp_path: Path) -> None:
    """By its route where that is known: as a body that did not all come, once the loop is open."""
    small_loop(tmp_path / "cars.heedful").close()
    with here(tmp_path, Options(limits=Limits(seconds=0.3))) as (app, client), ExitStack() as stack:
        for sent in (
            request("POST", "/v1/loops/cars/decisions")[:-2],
            request("PUT", "/v1/loops/cars/items", None, "Content-Length: 9"),
        ):
            answer = None
            while answer is None:  # again where a busy machine sends nothing in time, which is hung up on
                wire = stack.enter_context(Wire(str(client.base_url)))
                wire.send(sent)
                answer = wire.answer()
            assert answer.kind == "too-slow"
        slow = {("", "elsewhere", 408), ("main", "PUT /v1/loops/{loop}/items", 400)}
        until(lambda: dict(app.service.metrics.requests).keys() == slow)


@pytest.mark.parametrize("make", [small_loop, choice_loop], ids=["at once", "in a thread"])
def test_what_is_sent_again_is_counted_as_that(tmp_path: Path, make: Any) -> None:
    make(tmp_path / "cars.heedful", control=0.0).close()
    names = [f"i{j}" for j in range(8)]
    with served(tmp_path) as url, closing(Caller(url)) as caller:
        for _ in range(4):
            ok(caller.post("/v1/loops/cars/decisions", {"id": "d"}))
            ok(caller.post("/v1/loops/cars/records", {"id": "r", "candidates": names, "shown": names[:2]}))
            ok(caller.post("/v1/loops/cars/feedback", {"decision": "d", "id": "e", "none": True}))
        found = metrics(caller.send("GET", "/metrics").value)
    counted = {
        (each["kind"], each["outcome"]): value
        for (name, labels), value in found.items()
        if name == "heedful_events_total" and (each := dict(labels))
    }
    assert counted == {
        ("decision", "learned"): 1.0,
        ("decision", "imported"): 1.0,
        ("decision", "duplicate"): 6.0,
        ("feedback", "applied"): 1.0,
        ("feedback", "duplicate"): 3.0,
    }


@pytest.mark.slow
def test_the_series_do_not_grow_with_what_strangers_ask(plain: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_metrics, "EVERY", 0.0)

    def series() -> int:
        for i in range(30):
            asked = [("GET", f"/v1/loops/no{i}"), ("POST", f"/v1/loops/no{i}/decisions"), ("GET", f"/x{i}")]
            for method, path in [*asked, ("GET", f"/v1/loops/no/people/p{i}"), ("PUT", f"/v1/loops/{i}/items")]:
                plain.send(method, path)
        return len(metrics(plain.send("GET", "/metrics").value))

    series()  # the first question makes a series of its own
    assert series() == series()


# ---------------------------------------------------------------------------- many at once


@pytest.mark.slow
def test_people_are_forgotten_while_others_are_answered(url: str, cars: str, folder: Path) -> None:
    failures: list[Any] = []
    stop = threading.Event()

    def ask(who: int) -> None:
        with closing(Caller(url)) as caller:
            i = 0
            while not stop.is_set():
                i += 1
                d = caller.post(f"{cars}/decisions", {"id": f"d{who}-{i}", "person": f"p{who}", "show": 3})
                e = caller.post(f"{cars}/feedback", {"decision": f"d{who}-{i}", "better": [f"i{i % 12}"]})
                caller("PUT", f"{cars}/items", [{"id": f"i{i % 12}", "f0": i / 10}])
                caller.get(f"{cars}/weights?person=p{who}")
                if d.status not in (200, 422) or e.status not in (200, 409) or (who == 0 and e.status != 200):
                    failures.append((d, e))  # hers may have been forgotten in between

    threads = [threading.Thread(target=ask, args=(who,)) for who in range(3)]
    for thread in threads:
        thread.start()
    with closing(Caller(url)) as caller:
        for i in range(6 * FACTOR):
            time.sleep(0.1)
            ok(caller.post(f"{cars}/forget", {"person": f"p{1 + i % 2}"}))
        stop.set()
        for thread in threads:
            thread.join()
        for who in (1, 2):
            ok(caller.post(f"{cars}/forget", {"person": f"p{who}"}))
    assert failures == []
    with opened(folder, cars) as loop:
        assert loop.verify() == []
        assert {event.subject for event in loop.projection.log.events(kinds=["decision"])} == {"p0"}


# ---------------------------------------------------------------------------- open and closed


@pytest.mark.slow
@pytest.mark.parametrize("most", [1, 2])
def test_no_more_are_kept_open_than_may_be(tmp_path: Path, most: int) -> None:
    names = [f"l{i}" for i in range(5)]
    for name in names:
        small_loop(tmp_path / f"{name}.heedful").close()
    failures: list[Any] = []
    with served(tmp_path, Options(most_open=most, idle=2.0)) as url:

        def ask(who: int) -> None:
            with closing(Caller(url)) as caller:
                for i in range(25):
                    name = names[(i * (who + 1) + who) % 5]
                    d = caller.post(f"/v1/loops/{name}/decisions", {"id": f"d{who}-{i}"})
                    better = {"decision": f"d{who}-{i}", "id": f"e{who}-{i}", "better": "i3"}
                    e = caller.post(f"/v1/loops/{name}/feedback", better)
                    try:
                        with events(caller, f"/v1/loops/{name}/events?follow=false&kinds=feedback") as stream:
                            found = [event.data["id"] for event in stream]
                    except (AssertionError, httpx.HTTPError) as error:
                        found = [repr(error)]
                    if (d.status, e.status) != (200, 200) or f"e{who}-{i}" not in found:
                        failures.append((d, e, found))

        at_once(*[partial(ask, who) for who in range(4)])
        assert failures == []
        with closing(Caller(url)) as caller:
            for name in names:
                ok(caller.get(f"/v1/loops/{name}"))
                assert until(lambda: open_loops(caller) <= most)
    total = 0
    for name in names:
        with Loop.open(tmp_path / f"{name}.heedful") as loop:
            assert loop.verify() == []
            total += loop.projection.log.counts()["feedback"]
    assert total == 100


def test_what_another_process_taught_is_seen_by_who_only_looks(tmp_path: Path) -> None:
    small_loop(tmp_path / "cars.heedful", control=0.0, exploration=0.0).close()
    with served(tmp_path) as address, httpx.Client(base_url=address) as client:
        before = client.get("/v1/loops/cars/weights").json()
        with Loop.open(tmp_path / "cars.heedful") as other:
            d = other.decide(id="d", show=3)
            told = other.feedback(d.id, clicks=[d.shown[2]])
            other.withdraw("i0")
        after = client.get("/v1/loops/cars/weights").json()
        assert after["version"] == told.version == client.get("/v1/loops/cars").json()["version"]
        assert after["weights"] != before["weights"]
        assert "i0" not in client.get("/v1/loops/cars/items").json()["items"]
