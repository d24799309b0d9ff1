"""What nobody should send: every one of it is told what is wrong, or hung up on, and leaves nothing behind."""

from __future__ import annotations

import datetime
import gc
import gzip
import itertools
import json
import logging
import random
import struct
import threading
import time
import tracemalloc
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from asking import FLOAT32, MSGPACK, Caller, Said, Wire, events, held_up, is_problem, raw_numbers, request, shared
from hypothesis import given
from hypothesis import strategies as st

from budget import FACTOR, examples
from heedful import TEXTS, Loop
from heedful.server import schema
from heedful.server.codecs import LARGE, Limits
from heedful.server.context import Options
from heedful.server.main import served
from loops import bits, bits_from_scratch, small_loop
from processes import until

SECONDS = 0.8
"""How long a hasty server waits for a request."""
CARS = "/v1/loops/cars"
DECIDE = f"{CARS}/decisions"
FEEDBACK = f"{CARS}/feedback"
MOST, MOST_JSON = 8 * 2**20, 2**20


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("served")
    small_loop(folder / "cars.heedful", control=0.0, exploration=0.0).close()
    Loop.create(folder / "letters.heedful", encoding=TEXTS).close()
    return folder


@pytest.fixture(scope="module")
def url(folder: Path) -> Iterator[str]:
    with served(folder) as found, closing(Caller(found)) as caller:
        assert caller.post(DECIDE, {"id": "D"}).status == 200
        assert caller.post(FEEDBACK, {"decision": "D", "id": "E", "better": "i1"}).status == 200
        yield found


@pytest.fixture
def hasty(tmp_path: Path) -> Iterator[str]:
    """A server that waits for nobody long: only for who is slow on purpose, as anybody may be on a busy machine."""
    small_loop(tmp_path / "cars.heedful").close()
    with served(tmp_path, Options(limits=Limits(seconds=SECONDS))) as found:
        yield found


@pytest.fixture(autouse=True)
def unharmed(url: str, caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """After each: nothing was learned, nothing is in the server's log that a person should look at, all is well."""
    with closing(Caller(url)) as caller:
        before = state(caller)
        yield
        assert state(caller) == before
        assert caller.post(FEEDBACK, {"decision": "D", "id": "E", "better": "i1"}).value["status"] == "duplicate"
    names = ("heedful", "uvicorn", "asyncio")
    told = [record for record in caplog.records if record.name.startswith(names) and record.levelno >= logging.ERROR]
    assert not told, [record.getMessage() for record in told]
    assert not [record for record in caplog.records if record.exc_info]


def state(caller: Caller) -> list[Any]:
    """What must stay as it is: decisions may be made, as they are no lessons."""
    found = [caller.get(CARS).value, caller.get(f"{CARS}/weights").value, caller.get("/v1/loops").value]
    counted = {kind: n for kind, n in found[0]["events"].items() if kind not in ("decision", "activate", "item")}
    return [counted, found[0]["version"], found[0]["items"], *found[1:]]


@pytest.fixture
def ask(url: str) -> Iterator[Caller]:
    with closing(Caller(url)) as caller:
        yield caller


def refused(answer: Said | None, *kinds: str, field: str | None = "body") -> dict[str, Any]:
    """The members of the problem, one of these."""
    assert answer is not None
    kind = answer.kind
    assert kind in kinds, answer
    return is_problem(answer, kind, field)


# ---------------------------------------------------------------------------- bodies that are none

NUMBERS = ["1e400", "-1e400", "NaN", "Infinity", "-Infinity", "1" + "0" * 400, "-1" + "0" * 400, "1" * 100_000, "0x10"]
NUMBERS += [
    "01",
    "+1",
    ".5",
    "1.",
    "1e",
    "--1",
    "1_000",
    "9" * 20,
    str(2**63),
    str(2**64),
    "1e308",
    "-0",
    "1E+2",
    "0." + "0" * 100_000,
]
PLACES = ['{"show":%s}', '{"prior":[%s]}', '{"candidates":[{"id":"a","f0":%s}]}', '{"id":%s}', '{"context":{"q":%s}}']
PLACES += ['{"candidates":["i0","i1"],"prior":{"i0":%s}}', '{"candidates":[{"features":[%s,0,0,0]}]}', "%s", "[%s]"]


@pytest.mark.parametrize("number", NUMBERS, ids=lambda n: n[:12])
def test_numbers(ask: Caller, number: str) -> None:
    for place in PLACES:
        for target, wrap in ((DECIDE, "%s"), (FEEDBACK, '{"decision":"D","rating":%s}'), (f"{CARS}/activate", "%s")):
            answer = ask.send("POST", target, (wrap % (place % number)).encode())
            if answer.status == 200:
                assert target == DECIDE, (place, number)  # a number that is one
                continue
            assert answer.kind in ("malformed", "bad-input", "rejected"), answer
            assert answer.kind == "rejected" or answer.value["field"], answer


DEEP = [30, 60, 64, 65, 100, 200, 300, 450, 500, 700, 900, 950, 980, 1000, 5000, 100_000]


@pytest.mark.parametrize("depth", DEEP)
def test_deep(ask: Caller, depth: int) -> None:
    """Nested so deep: refused, or taken where it does no harm."""
    values = [b"[" * depth + b"]" * depth, b'{"a":' * depth + b"1" + b"}" * depth]
    packed = [b"\x91" * depth + b"\xc0", b"\x81\xa1a" * depth + b"\x01"]
    for kind, each, some in (("application/json", values, _json_around), (MSGPACK, packed, _msgpack_around)):
        for value in each:
            for target, body in some(value):
                answer = ask.send("POST", target, body, content_type=kind)
                if kind == MSGPACK and len(body) > LARGE:  # seen before it is read
                    is_problem(answer, "too-large", "body")
                    continue
                assert answer.status in (200, 400, 422), (answer, kind, target, body[:50])
                if answer.status != 200:
                    assert answer.value["field"], answer
                elif target == FEEDBACK:
                    assert {each["status"] for each in answer.value} == {"rejected"}
                if depth >= 1000:
                    is_problem(answer, "malformed", "body")
                    assert "deep" in answer.value["detail"]


def _json_around(value: bytes) -> list[tuple[str, bytes]]:
    keys = (b"candidates", b"person", b"context", b"prior", b"show", b"id", b"deferred")
    bodies = [(DECIDE, b'{"%s":%s}' % (key, value)) for key in keys]
    bodies += [(DECIDE, b'{"candidates":[{"id":"a","q":%s}]}' % value), (DECIDE, value)]
    bodies += [(FEEDBACK, b"[%s]" % value), (FEEDBACK, b'{"decision":"D","edit":{"q":%s}}' % value)]
    return [*bodies, (FEEDBACK, b'{"decision":%s,"none":true}' % value), (f"{CARS}/undo", value)]


def _msgpack_around(value: bytes) -> list[tuple[str, bytes]]:
    keys = (b"candidates", b"person", b"context", b"prior", b"show", b"id", b"deferred")
    bodies = [(DECIDE, b"\x81" + msgspec.msgpack.encode(key.decode()) + value) for key in keys]
    bodies += [(DECIDE, b"\x81\xaacandidates\x91\x82\xa2id\xa1a\xa1q" + value), (DECIDE, value)]
    bodies += [(FEEDBACK, b"\x91" + value), (FEEDBACK, b"\x82\xa8decision\xa1D\xa4edit\x81\xa1q" + value)]
    return [*bodies, (FEEDBACK, b"\x82\xa8decision" + value + b"\xa4none\xc3"), (f"{CARS}/undo", value)]


BROKEN = [
    b"",
    b"{",
    b"}",
    b"[",
    b'"',
    b"{]",
    b"{}x",
    b"{}{}",
    b"\0",
    b"{\0}",
    b"'a'",
    b"nul",
    b"{a:1}",
    b"[1,]",
    b'{"a":1,}',
    b"//x\n{}",
]
BROKEN += [
    b"\xef\xbb\xbf{}",
    b"\xff\xfe{\0}\0",
    b"\xfe\xff\0{\0}",
    b"\0{\0}",
    "{}".encode("utf-16"),
    "{}".encode("utf-32"),
]
BROKEN += [
    b'{"person":"\xff"}',
    b'{"person":"\xc3"}',
    b'{"person":"\xc0\x80"}',
    b'{"person":"\xed\xa0\x80"}',
    b'{"person":"\xf5\x80\x80\x80"}',
]
BROKEN += [
    b'{"person":"\\ud800"}',
    b'{"person":"\\udc00\\ud800"}',
    b'{"\\ud800":1}',
    b'{"context":{"x":"\\udfff"}}',
    b'{"person":"a\nb"}',
]
BROKEN += [
    b'{"person":"\\x41"}',
    b'{"person":"\\u12"}',
    b'{"person":"\t"}',
    b"\x1f\x8b\x08",
    gzip.compress(b"{}", mtime=0),
    b"a=1&b=2",
    b"<a/>",
]


@pytest.mark.parametrize("body", BROKEN, ids=repr)
def test_no_json(ask: Caller, body: bytes) -> None:
    for target in (
        DECIDE,
        FEEDBACK,
        f"{CARS}/records",
        f"{CARS}/undo",
        f"{CARS}/rollback",
        f"{CARS}/experiments",
        f"{CARS}/experiments/stop",
        f"{CARS}/promotions",
        f"{CARS}/activate",
        f"{CARS}/evaluations",
        "/v1/loops",
    ):
        if body or target != DECIDE:  # without a body all are asked for
            refused(ask.send("POST", target, body), "malformed")
    refused(ask.send("PUT", f"{CARS}/items", body), "malformed")


@pytest.mark.parametrize(
    ("body", "told"),
    [
        (b"", "an empty body"),
        (b'{"items": [', "one that ends early"),
        (b"{bad", "a key without double quotes at byte 2"),
        (b'{"items" 1}', "something other than ':' at byte 10"),
        (b'{"items": NaN}', "invalid character at byte 11"),
    ],
)
def test_a_body_that_is_no_json_is_refused_with_what_came(ask: Caller, body: bytes, told: str) -> None:
    found = refused(ask.send("PUT", f"{CARS}/items", body), "malformed")
    assert found["detail"] == f"body: expected JSON, got {told}"


def test_a_loop_that_does_not_exist_is_named(ask: Caller) -> None:
    found = is_problem(ask.get("/v1/loops/vans"), "not-found")
    assert found["detail"] == "there is no loop 'vans'"


def test_a_name_twice_in_an_object_counts_once(ask: Caller) -> None:
    """As with every reader of JSON that keeps no list: the last one counts, and none is learned twice."""
    assert len(ask.send("POST", DECIDE, b'{"show":1,"show":3}').value["shown"]) == 3
    body = b'{"decision":"D","id":"E","better":"i5","better":"i1"}'
    assert ask.send("POST", FEEDBACK, body).value["status"] == "duplicate"


UTC = datetime.UTC
ODD: list[Any] = [
    b"",
    b"i0",
    {1: 2},
    {b"id": 1},
    {None: 1},
    {True: 1},
    {1.5: 2},
    {(1, 2): 3},
    float("nan"),
    float("inf"),
]
ODD += [
    datetime.datetime(2020, 1, 1, tzinfo=UTC),
    msgspec.msgpack.Ext(5, b"x"),
    msgspec.msgpack.Ext(-1, b"1234"),
    [b"i0"],
]
ODD += [[{b"id": 1}], [{"id": b"a"}], [{"id": "a", 5: 1}], [{"id": "a", "f0": float("inf")}], [{"id": "a", "f0": b"1"}]]
ODD += [
    [{"id": "a", "z": each}] for each in (b"x", msgspec.msgpack.Ext(5, b"x"), datetime.datetime(2020, 1, 1, tzinfo=UTC))
]
ODD += [
    None,
    True,
    -1,
    2**63,
    2**64 - 1,
    -(2**63),
    1e300,
    "",
    "\0",
    "\x7f",
    "a" * 201,
    "\u202e",
    "log is closed",
    [],
    [None],
]
ODD += [[[]], {}, {"": ""}, {"log is closed": 1}, [{}], ["i0", {}], [{"features": [1, 2]}], [{"features": "x"}]]


@pytest.mark.parametrize("odd", ODD, ids=lambda o: repr(o)[:30])
def test_odd_values_in_every_field(ask: Caller, odd: Any) -> None:
    """In msgpack, which has more kinds of them than JSON."""
    base: dict[str, tuple[dict[str, Any], Any]] = {
        "decisions": ({"show": 2}, schema.Decide.__struct_fields__),
        "records": ({"candidates": ["nobody"], "shown": ["nobody"], "id": "r"}, schema.Record.__struct_fields__),
        "feedback": ({"decision": "nobody"}, schema.Feedback.__struct_fields__),
        "activate": ({"decision": "nobody"}, schema.Activate.__struct_fields__),
        "undo": ({"event": "nobody"}, schema.Undo.__struct_fields__),
        "evaluations": ({"learners": ["nobody"]}, schema.Evaluate.__struct_fields__),
    }
    for route, (body, fields) in base.items():
        bodies = [odd, [odd] if route != "feedback" else {"decision": "D", "x": odd}, body | {"log is closed": odd}]
        bodies += [body | {field: odd} for field in fields]
        for each in bodies:
            answer = ask.send("POST", f"{CARS}/{route}", msgspec.msgpack.encode(each), content_type=MSGPACK)
            if answer.status == 200:
                assert route in ("decisions", "records", "feedback", "activate", "evaluations"), (route, each, answer)
                assert route != "feedback" or {each["status"] for each in answer.value} <= {"rejected"}, answer
                continue
            assert answer.kind in ("bad-input", "malformed", "rejected"), (route, each, answer)
            assert answer.kind == "rejected" or answer.value.get("field"), (route, each, answer)
    for bodies in ([odd], [{"id": odd, "f0": []}], odd):
        answer = ask.send("PUT", f"{CARS}/items", msgspec.msgpack.encode(bodies), content_type=MSGPACK)
        if answer.status != 200:
            assert answer.kind in ("bad-input", "malformed"), (odd, answer)
            assert answer.value.get("field"), (odd, answer)
        else:
            assert answer.value["put"] <= 1
            for name in {row["id"] for row in bodies if isinstance(row, dict) and "id" in row}:
                ask("DELETE", f"{CARS}/items/{name}")


@pytest.mark.slow
def test_odd_values_in_every_field_of_a_new_loop(tmp_path: Path) -> None:
    """What is refused leaves nothing; what is made is a loop."""
    rows = [{"id": "a", "x": 1}, {"id": "b", "x": 2}]
    names = set()
    with served(tmp_path) as url, closing(Caller(url, form="msgpack")) as ask:
        for i, (field, odd) in enumerate(itertools.product(sorted(schema.NewLoop.__struct_fields__), ODD)):
            body = {"name": f"odd{i}", "items": rows} | {field: odd}
            if field == "crosses":
                body["context"] = [{"q": 1}, {"q": 2}]
            answer = ask.post("/v1/loops", body)
            if answer.status == 201:
                names.add(answer.value["name"])
                assert ask.get(f"/v1/loops/{answer.value['name']}").status == 200
            else:
                assert answer.kind in ("bad-input", "malformed"), (field, odd, answer)
                assert answer.value.get("field"), (field, odd, answer)
            assert {each.name for each in tmp_path.iterdir()} == {f"{name}.heedful" for name in names}


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats()
    | st.text(max_size=8)
    | st.binary(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(max_size=6) | st.integers(0, 3) | st.binary(max_size=3), inner, max_size=4)
    ),
    max_leaves=12,
)
WORDS = st.sampled_from(["i0", "i1", "D", "E", "nobody", "id", "f0", "features", "up", "first", "text"])
_TAKEN = (schema.Decide, schema.Record, schema.Feedback, schema.Undo)
FIELDS = st.sampled_from(sorted({name for body in _TAKEN for name in body.__struct_fields__}))
BODIES = (
    st.dictionaries(FIELDS | st.text(max_size=5), VALUES | WORDS | st.lists(WORDS, max_size=4), max_size=6) | VALUES
)


@pytest.mark.slow
@given(st.sampled_from(["decisions", "records", "activate", "undo", "evaluations", "feedback"]), BODIES)
@examples(150)
def test_anything_at_all(url: str, route: str, body: Any) -> None:
    if route == "feedback" and isinstance(body, dict):
        body = body | {"decision": "nobody"}
    answer = shared(url).send("POST", f"{CARS}/{route}", msgspec.msgpack.encode(body), content_type=MSGPACK)
    assert answer.status in (200, 400, 409, 422), answer
    if answer.status in (400, 422):
        assert answer.value.get("field"), answer


@given(st.sampled_from([DECIDE, FEEDBACK, f"{CARS}/records", "/v1/loops"]), st.binary(max_size=60), st.data())
@examples(60)
def test_any_bytes_at_all(url: str, target: str, body: bytes, data: Any) -> None:
    kind = data.draw(st.sampled_from(["application/json", MSGPACK, FLOAT32, "text/plain"]))
    answer = shared(url).send("POST", target, body, content_type=kind)
    assert answer.status in (200, 400, 415, 422), answer


# ---------------------------------------------------------------------------- too much


def test_bodies_just_under_and_over_the_limit(ask: Caller) -> None:
    routes = (("POST", DECIDE), ("POST", FEEDBACK), ("POST", f"{CARS}/records"), ("PUT", f"{CARS}/items"))
    for method, target in routes:
        for form, most in (("application/json", MOST if method == "PUT" else MOST_JSON), (MSGPACK, MOST)):
            for size, kind in ((most, "malformed"), (most + 1, "too-large")):
                answer = ask.send(method, target, (b" " if "json" in form else b"\xc1") * size, content_type=form)
                refused(answer, kind)
    for n in (MOST, MOST + 16):
        chunks = (b"\0" * 2**16 for _ in range(0, n, 2**16))
        answer = ask.http.request("POST", DECIDE, content=chunks, headers={"content-type": FLOAT32})
        assert answer.status_code == (422 if n == MOST else 413), answer.text  # so many candidates are too many as well


def test_many_bodies_on_one_connection_are_no_large_one(tmp_path: Path) -> None:
    small_loop(tmp_path / "cars.heedful").close()
    with served(tmp_path, Options(limits=Limits(body=1000))) as url, Wire(url) as wire:
        for _ in range(100):  # more than may come for one
            wire.send(request("POST", DECIDE, b" " * 998 + b"{}", "Content-Type: application/json"))
            assert wire.must().status == 200


@pytest.mark.slow
def test_batches_over_the_limit(ask: Caller) -> None:
    refused(ask.post(FEEDBACK, [{"decision": "D", "none": True}] * 1001), "too-large")
    refused(ask.post(FEEDBACK, [[]] * 300_000), "too-large")
    refused(ask("PUT", f"{CARS}/items", [{"id": "a"}] * 10_001), "too-large")
    answers = ask.post(FEEDBACK, [{}] * 1000)
    assert {answer["status"] for answer in answers.value} == {"rejected"}
    assert len(answers.value) == 1000


def test_as_many_candidates_as_may_be_and_one_more(ask: Caller) -> None:
    X = np.random.default_rng(0).standard_normal((100_001, 4)).astype("<f4")
    answer = ask.send("POST", f"{DECIDE}?show=3", raw_numbers(X[:-1]), content_type=FLOAT32)
    assert (answer.status, len(answer.value["shown"])) == (200, 3)
    answer = ask.send("POST", f"{DECIDE}?show=3", raw_numbers(X), content_type=FLOAT32)
    refused(answer, "bad-input", field="candidates")
    refused(ask.post(DECIDE, {"candidates": [f"n{i}" for i in range(100_001)]}), "bad-input", field="candidates")
    crowd = {"candidates": [f"n{i}" for i in range(100_000)], "strict": True}
    refused(ask.post(DECIDE, crowd), "bad-input", field="candidates")


@pytest.mark.parametrize("control", ["\0", "\n", "\r", "\t", "\x1b[2J", "\x7f", "\ud7ff\x00"], ids=repr)
def test_control_characters_in_ids(ask: Caller, control: str) -> None:
    for bad in (control, f"a{control}", f"{control}a"):
        for field in ("id", "person"):
            answer = ask.post(DECIDE, {field: bad})
            refused(answer, "bad-input", field=field)
            assert not any(ord(each) < 32 or ord(each) == 127 for each in answer.value["detail"])
        refused(ask.post(FEEDBACK, {"decision": bad, "none": True}), "bad-input", field="decision")
        refused(ask.post(FEEDBACK, {"decision": "D", "id": bad, "none": True}), "bad-input", field="id")
        refused(ask.post(f"{CARS}/undo", {"event": bad}), "bad-input", field="event")
        refused(ask.post(f"{CARS}/rollback", {"to": 1, "id": bad}), "bad-input", field="id")
        refused(ask.post(f"{CARS}/rollback", {"to": bad}), "bad-input", field="to")
        refused(ask.post(f"{CARS}/experiments", {"learner": "perceptron", "id": bad}), "bad-input", field="id")
        refused(ask.post(f"{CARS}/promotions", {"learner": "perceptron", "id": bad}), "bad-input", field="id")


def test_unknown_fields_by_the_thousand(ask: Caller) -> None:
    many = {f"field{i}": i for i in range(50_000)}
    own = ("records", "undo", "rollback", "evaluations", "experiments", "promotions")
    for target in (DECIDE, *(f"{CARS}/{each}" for each in own), "/v1/loops"):
        found = refused(ask.post(target, many), "bad-input")
        assert len(found["detail"]) < 500
    found = refused(ask.post(FEEDBACK, {"decision": "D", **many}), "bad-input", field="feedback")
    assert len(found["detail"]) < 500
    refused(
        ask.send("POST", f"{DECIDE}?" + "&".join(f"a{i}=1" for i in range(5000)), bytes(16), content_type=FLOAT32),
        "bad-input",
        field="query",
    )
    refused(ask.get(f"{CARS}/items?" + "&".join(f"a{i}=1" for i in range(5000))), "bad-input", field="query")


def test_long_words_are_told_briefly(ask: Caller) -> None:
    for body in ({"person": "x" * 10**6}, {"candidates": ["x" * 10**6]}, {"x" * 10**6: 1}, {"id": [[1] * 10**4] * 10}):
        answer = ask.post(DECIDE, body)
        assert len(refused(answer, "bad-input", field=answer.value["field"])["detail"]) < 500


# ---------------------------------------------------------------------------- one request and all the others


@pytest.mark.parametrize("form", ["better", "clicks", "rating"])
def test_many_names_do_not_hold_up_the_others(url: str, ask: Caller, form: str) -> None:
    names = [f"n{i}" for i in range(60_000)]
    given = {"rating": dict.fromkeys(names, 1)} if form == "rating" else {form: [*names, names[-1]]}
    assert not held_up(url, lambda: ask.post(FEEDBACK, {"decision": "nobody", **given}))


def test_long_texts_do_not_hold_up_the_others(url: str, ask: Caller) -> None:
    drafts = [{"id": "a", "text": "ab c. " * 1_200_000}, {"id": "b", "text": "x"}]
    letters = "/v1/loops/letters"
    body = msgspec.msgpack.encode({"candidates": drafts})
    assert not held_up(url, lambda: ask.send("POST", f"{letters}/decisions", body, content_type=MSGPACK))


def test_names_of_the_worst_kind_for_a_dictionary(url: str, ask: Caller) -> None:
    body = {"candidates": ["i0"], "prior": {str(i * (2**61 - 1)): 1 for i in range(20_000)}}
    assert not held_up(url, lambda: ask.post(DECIDE, body))


# ---------------------------------------------------------------------------- HTTP that is none


SMUGGLED = [("Transfer-Encoding: chunked", "Content-Length: 5"), ("Transfer-Encoding: gzip, chunked",)]
"""One that the parser refuses, and one that it takes; `oddities.py` has all the others."""


@pytest.mark.parametrize("lines", SMUGGLED, ids=str)
def test_two_ways_to_say_how_long_it_is(url: str, lines: tuple[str, ...]) -> None:
    """Whatever stands in front of the server must not read another request out of it."""
    inner = request("POST", FEEDBACK, json.dumps({"decision": "D", "id": "smuggled", "better": "i7"}).encode())
    with Wire(url) as wire:
        wire.send(request("POST", DECIDE, None, *lines) + b"0\r\n\r\n" + inner)
        answer = wire.must()
        refused(answer, "malformed", field=answer.value["field"])
        assert answer.value["field"] in ("request", "Transfer-Encoding")
        assert wire.closed()


def test_a_length_that_comes_late(url: str) -> None:
    """With the offer of another protocol, behind more headers than are kept: the body is no request."""
    inner = request("GET", "/v1/loops")
    lines = ("Connection: Upgrade", "Upgrade: x", "X-Long: " + "y" * 65_500, f"Content-Length: {len(inner)}")
    for target in ("/healthz", DECIDE):
        with Wire(url) as wire:
            wire.send(request("POST", target, None, *lines) + inner)
            refused(wire.must(), "too-large", field="headers")
            assert wire.closed()


def test_random_garbage(url: str) -> None:
    draw = random.Random(5)
    good = request("POST", DECIDE, b'{"show": 2}', "Content-Type: application/json")
    for _ in range(150 * FACTOR):
        bad = bytearray(good)
        for _ in range(draw.randint(1, 4)):
            at = draw.randrange(len(bad))
            bad[at : at + draw.randint(0, 3)] = draw.randbytes(draw.randint(0, 3))
        with Wire(url) as wire:
            wire.send(bytes(bad))
            wire.socket.settimeout(0.02)
            try:
                answer = wire.answer()
            except TimeoutError:
                continue  # the rest is waited for
            assert answer is None or answer.status < 500, (bytes(bad), answer)


def test_many_requests_at_once_are_answered_in_order(url: str) -> None:
    with Wire(url) as wire:
        several = [request("POST", DECIDE, json.dumps({"id": f"p{i}"}).encode()) for i in range(30)]
        several[5] = request("POST", DECIDE, b"{")
        several[10] = request("GET", "/nothing")
        several[20] = request("GET", CARS, None, host="evil.com")
        wire.send(b"".join(several))
        for i in range(30):
            answer = wire.must()
            if i in (5, 10, 20):
                assert answer.kind == {5: "malformed", 10: "not-found", 20: "wrong-host"}[i]
            else:
                assert answer.value["id"] == f"p{i}"


def test_who_waits_to_be_told_to_go_on(url: str) -> None:
    with Wire(url) as wire:
        wire.send(request("POST", DECIDE, None, "Content-Length: 11", "Expect: 100-continue"))
        until(lambda: wire._more() and b"100 Continue" in wire.data)
        wire.send(b'{"show": 2}')
        assert wire.must().status == 200
    for line, kind in (("Content-Length: 99999999", "too-large"), ("Content-Encoding: gzip", "unsupported")):
        with Wire(url) as wire:
            wire.send(request("POST", DECIDE, None, line, "Expect: 100-continue"))
            refused(wire.answer(), kind, "malformed", field="body" if kind == "too-large" else "Content-Encoding")


# ---------------------------------------------------------------------------- cut off, slow, without end


def test_a_body_that_is_cut_off(url: str) -> None:
    body = json.dumps({"decision": "D", "id": "cut", "better": "i9"}).encode()
    for length in (len(body) + 1, len(body) + 1000, 10**6):
        for half_closed in (False, True):
            with Wire(url) as wire:
                wire.send(request("POST", FEEDBACK, None, f"Content-Length: {length}") + body)
                if half_closed:
                    import socket

                    wire.socket.shutdown(socket.SHUT_WR)
                    assert wire.closed()
                else:
                    wire.socket.setsockopt(socket_level(), linger(), struct.pack("ii", 1, 0))  # cut, not closed
    for part in range(0, 60, 7):
        with Wire(url) as wire:
            chunks = b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body)
            wire.send(request("POST", FEEDBACK, None, "Transfer-Encoding: chunked") + chunks[:part])


def socket_level() -> int:
    import socket

    return socket.SOL_SOCKET


def linger() -> int:
    import socket

    return socket.SO_LINGER


SLOW = {
    "nothing": (b"", b"", None),
    "half a line": (b"POST /v1", b"", "headers"),
    "headers": (request("POST", DECIDE)[:-2], b"", "headers"),
    "headers, drop by drop": (request("POST", DECIDE)[:-2], b"X: y\r\n", "headers"),
    "empty lines": (b"", b"\r\n", "headers"),
    "a body": (request("POST", DECIDE, None, "Content-Length: 100") + b"{", b"", "body"),
    "a body, drop by drop": (request("POST", DECIDE, None, "Content-Length: 100") + b"{", b" ", "body"),
    "chunks, drop by drop": (request("POST", DECIDE, None, "Transfer-Encoding: chunked"), b"1\r\n \r\n", "body"),
    "trailers": (
        request("POST", DECIDE, None, "Transfer-Encoding: chunked") + b"2\r\n{}\r\n0\r\n",
        b"X: y\r\n",
        "body",
    ),
    "items": (request("PUT", f"{CARS}/items", None, "Content-Length: 100") + b"[", b" ", "body"),
}


def test_the_slow_are_hung_up_on(hasty: str) -> None:
    with ThreadPoolExecutor(len(SLOW)) as pool:
        list(pool.map(lambda what: _slow(hasty, *SLOW[what]), SLOW))


def _slow(url: str, first: bytes, drop: bytes, field: str | None) -> None:
    began = time.monotonic()
    with Wire(url) as wire:
        wire.send(first)
        while drop and time.monotonic() - began < 40 * SECONDS and wire.send(drop):
            time.sleep(0.05)
            wire.socket.settimeout(0.001)
            try:
                if not wire._more():
                    break
            except TimeoutError:
                pass
        wire.socket.settimeout(40 * SECONDS)
        answer = wire.answer()
        if field is None:
            assert answer is None
        elif answer is not None or not drop:  # who still sends when it is hung up may not hear it
            refused(answer, "too-slow", field=field)
            assert answer is not None
            assert answer.headers["connection"] == "close"
        assert wire.closed()
        assert time.monotonic() - began > 0.7 * SECONDS


def test_the_patient_are_not_hung_up_on(hasty: str) -> None:
    """The time is that of one request: who comes again later, or waits for events, has all the time there is."""

    def asked(wire: Wire) -> Said | None:
        wire.send(request("GET", "/healthz"))
        return wire.answer()

    with closing(Caller(hasty)) as caller, events(caller, f"{CARS}/events?kinds=undo") as stream, ExitStack() as stack:
        wire = stack.enter_context(Wire(hasty))
        while asked(wire) is None:  # it said nothing for too long, on a busy machine
            wire = stack.enter_context(Wire(hasty))
        for _ in range(2):
            time.sleep(0.8 * SECONDS)
            answer = asked(wire)
            assert answer is not None
            assert answer.status == 200
        del stream


@pytest.mark.slow
def test_headers_without_end(url: str) -> None:
    for some in (b"X: %s\r\n" % (b"y" * 1000), b"X: " + b"y" * 10_000, b"a" * 1000):
        with Wire(url) as wire, little_memory():
            wire.send(request("POST", DECIDE)[:-2])
            for _ in range(2000):
                if not wire.send(some):
                    break
            assert wire.closed() or b" 413 " in wire.data or b" 400 " in wire.data
    for line in ("X: " + "y" * 70_000, "\r\n".join(f"X{i}: y" for i in range(9000))):
        with Wire(url) as wire:
            wire.send(request("POST", DECIDE, b"{}", line))
            answer = wire.answer()
            refused(answer, "too-large", "malformed", field="headers")
    with Wire(url) as wire:
        wire.send(request("GET", "/v1/loops?" + "a" * 70_000))
        assert wire.must().kind in ("too-large", "malformed")
    with Wire(url) as wire:  # what may be
        wire.send(request("POST", DECIDE, b"{}", "X: " + "y" * 50_000))
        assert wire.must().status == 200


FLOODS = {
    "a long body": (("Content-Length: 1000000000000",), b"y" * 100_000),
    "chunks": (("Transfer-Encoding: chunked",), b"186a0\r\n" + b"y" * 100_000 + b"\r\n"),
    "small chunks": (("Transfer-Encoding: chunked",), b"1\r\ny\r\n" * 10_000),
    "a chunk": (("Transfer-Encoding: chunked",), b"fffffffffffff\r\n" + b"y" * 100_000),
    "the line of a chunk": (("Transfer-Encoding: chunked",), b"1;" + b"y" * 100_000),
    "zeros": (("Transfer-Encoding: chunked",), b"0" * 100_000),
}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("what", "target"), [*((what, DECIDE) for what in FLOODS), ("chunks", f"{CARS}/records"), ("chunks", CARS)]
)
def test_bodies_without_end(url: str, what: str, target: str) -> None:
    lines, some = FLOODS[what]
    with Wire(url) as wire, little_memory():
        wire.send(request("POST", target, None, *lines))
        for _ in range(2000):
            if not wire.send(some):
                break
        else:
            pytest.fail("all of it was taken")
        try:
            answer = wire.answer()
        except ConnectionError:
            answer = None
        if answer is not None:
            assert answer.kind in ("too-large", "malformed", "too-slow", "not-found", "not-allowed"), answer


@pytest.mark.slow
def test_trailers_without_end(url: str) -> None:
    for some in (b"".join(b"x%d: y\r\n" % i for i in range(5000)), b"x: " + b"y" * 50_000):
        with Wire(url) as wire, little_memory():
            wire.send(request("POST", FEEDBACK, None, "Transfer-Encoding: chunked"))
            body = b'{"decision":"D","id":"trailed","better":"i9"}'
            wire.send(b"%x\r\n%s\r\n0\r\n" % (len(body), body))
            for _ in range(2000):
                if not wire.send(some):
                    break
            else:
                pytest.fail("they were all taken")


@contextmanager
def little_memory() -> Iterator[None]:
    """What is done meanwhile takes less than 60 MiB at any time: of what Python allocates, as what the system gives to
    the process says more of the tests before."""
    gc.collect()
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] < 60 * 2**20
    finally:
        tracemalloc.stop()


def test_a_request_is_answered_once(hasty: str) -> None:
    """Who was told that it is too much, and goes on sending, must not take what else is said for his next answer."""
    asked = [(DECIDE, "Content-Length: 1000000000"), ("/nothing", "Content-Length: 1000")]
    asked += [(CARS, "Content-Length: 1000"), (FEEDBACK, "Content-Encoding: gzip\r\nContent-Length: 1000")]
    with ExitStack() as stack:
        several = [stack.enter_context(Wire(hasty)) for _ in asked]
        for wire, (target, lines) in zip(several, asked):
            wire.send(request("POST", target, None, lines) + b"x" * 100)
        for wire in several:
            wire.must()
        assert all(wire.closed() for wire in several)


@pytest.mark.slow
@pytest.mark.parametrize("read", [True, False])
@pytest.mark.parametrize("path", ["/healthz", "/openapi.json"])
def test_requests_that_are_sent_ahead_do_not_pile_up(url: str, read: bool, path: str) -> None:
    ahead = request("GET", path) * 2000
    with Wire(url, timeout=0.5) as wire, little_memory():
        end = time.monotonic() + 0.5
        reading = threading.Thread(target=_read_all, args=(wire,))
        if read:
            reading.start()
        while time.monotonic() < end and wire.send(ahead):
            pass
        wire.close()
        if read:
            reading.join()


def _read_all(wire: Wire) -> None:
    try:
        while wire.socket.recv(1 << 16):
            pass
    except OSError:
        pass


def test_many_connections_that_say_nothing(hasty: str, ask: Caller) -> None:
    several = [Wire(hasty, timeout=60.0) for _ in range(200)]
    try:
        assert ask.get("/healthz").status == 200
        assert all(wire.closed() for wire in several)
    finally:
        for wire in several:
            wire.close()


# ---------------------------------------------------------------------------- who goes away in the middle


def test_who_goes_away_finds_it_learned_once_or_not_at_all(tmp_path: Path) -> None:
    """And a repetition tells which, and leaves it learned once."""
    small_loop(tmp_path / "cars.heedful", control=0.0).close()
    draw = random.Random(3)
    n = 60 * FACTOR
    with served(tmp_path) as url, closing(Caller(url)) as ask:
        assert ask.post(DECIDE, {"id": "D"}).status == 200
        for i in range(n):
            body = json.dumps({"decision": "D", "id": f"gone{i}", "better": [f"i{i % 12}"]}).encode()
            whole = request("POST", FEEDBACK, body)
            with Wire(url) as wire:
                wire.send(whole if i % 2 else whole[: draw.randrange(len(whole))])
                if i % 3 == 0:
                    wire.socket.setsockopt(socket_level(), linger(), struct.pack("ii", 1, 0))
                time.sleep(draw.choice([0, 0, 0.0005, 0.002]))
        found = {"applied": 0, "duplicate": 0}
        for i in range(n):
            body_ = {"decision": "D", "id": f"gone{i}", "better": [f"i{i % 12}"]}
            first, second = ask.post(FEEDBACK, body_).value, ask.post(FEEDBACK, body_).value
            found[first["status"]] += 1
            assert (second["status"], second["seq"]) == ("duplicate", first["seq"])
        assert found["applied"] >= n // 2 - 1  # what was not all there was not learned
        assert ask.get(CARS).value["events"]["feedback"] == n
    with Loop.open(tmp_path / "cars.heedful") as loop:
        assert loop.projection.log.counts()["feedback"] == n
        assert loop.verify() == []
        assert bits(loop) == bits_from_scratch(loop)


@pytest.mark.slow
def test_a_crowd_that_goes_away(url: str, ask: Caller, folder: Path) -> None:
    stop = threading.Event()

    def come_and_go(seed: int) -> None:
        draw = random.Random(seed)
        targets = [request("GET", f"{CARS}/events"), request("POST", DECIDE, b"{}"), request("GET", f"{CARS}/weights")]
        while not stop.is_set():
            with Wire(url) as wire:
                wire.send(draw.choice(targets))
                time.sleep(draw.choice([0, 0.001, 0.01]))

    threads = [threading.Thread(target=come_and_go, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(30 * FACTOR):
            assert ask.post(DECIDE, {"show": 2}).status == 200
            time.sleep(0.03)
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    until(lambda: ask.get(f"{CARS}/weights").status == 200)  # what the crowd asked for has the turn until it is done
