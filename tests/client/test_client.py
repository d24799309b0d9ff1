"""The client: both kinds, by the same tests. What it sends, what it makes of answers, and what of their absence."""

from __future__ import annotations

import gzip
import itertools
import json
import logging
import pickle
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import parse_qsl

import msgspec
import numpy as np
import pytest

import faulty
from faulty import Clock, Connected, Faulty, Request, Response, hurried, problem, say
from heedful.client import Answer, Client, Decision
from heedful.client.operations import LEAST

KEY = "hk_abcdefgh_" + "s3cr3t" * 7 + "x"
NAMES = ["a", "b", "c"]


def plain(request: Request) -> Response:
    """A server of no mind: decides the order backwards, applies everything."""
    value = request.value if request.body and "octet" not in request.headers["content-type"] else {}
    what = request.path.rpartition("/")[2]
    if what in ("decisions", "records"):
        id = value.get("id") or dict(parse_qsl(request.query))["id"]
        shown = value.get("shown") or list(reversed(value.get("candidates") or ["x"]))
        arm = "learned" if what == "decisions" else "imported"
        return say({"id": id, "shown": shown, "probability": 0.5, "version": 3, "arm": arm, "seq": 9})
    if what == "feedback" and isinstance(value, list):
        return say([answer(each["id"]) for each in value])
    if what in ("feedback", "undo", "activate"):
        return say(answer(value.get("id", "u")))
    return say({})


def answer(event: str, **others: Any) -> dict[str, Any]:
    found = {"status": "applied", "event": event, "seq": 5, "version": 5, "late": False, "learned": True}
    return {**found, "reason": None, **others}


@pytest.fixture
def server() -> Iterator[Faulty]:
    made = Faulty(plain)
    yield made
    made.close()


# ---------------------------------------------------------------------------- what is sent, what comes back


def test_a_decision_and_feedback_on_it(connect: Connected, server: Faulty) -> None:
    cars = connect(server.url).loop("cars")
    d = cars.decide(NAMES, prior={"a": 3.0, "b": 2}, person="p1", context={"device": "phone"}, show=2, id="d1")
    assert (d.id, d.shown, d.probability, d.version, d.arm, d.seq) == ("d1", ("c", "b", "a"), 0.5, 3, "learned", 9)
    assert not d.fallback
    assert d.reason is None
    assert cars.feedback(d, clicks=["b"], id="e1") == Answer("applied", "e1", 5, 5, False, True, None)
    asked, told = server.seen
    assert (asked.method, asked.path) == ("POST", "/v1/loops/cars/decisions")
    assert asked.value == {
        "candidates": NAMES,
        "prior": {"a": 3.0, "b": 2},
        "person": "p1",
        "context": {"device": "phone"},
        "show": 2,
        "id": "d1",
    }
    assert (told.path, told.value) == ("/v1/loops/cars/feedback", {"decision": "d1", "id": "e1", "clicks": ["b"]})


def test_ids_are_made_where_none_is_given(connect: Connected, server: Faulty) -> None:
    cars = connect(server.url).loop("cars")
    d, other = cars.decide(NAMES), cars.decide(NAMES)
    assert len(d.id) >= 32
    assert d.id != other.id
    events = [cars.feedback(d, clicks=["a"]).event for _ in range(2)]
    assert events[0] != events[1]
    assert server.seen[0].value["id"] == d.id


def test_numpy_is_as_good_as_python(connect: Connected, server: Faulty) -> None:
    cars = connect(server.url).loop("cars")
    names = np.array(NAMES)
    d = cars.decide(names, prior=np.array([1, 2, 3], np.float32), context={"n": np.float64(2.5)}, person=names[0])
    assert d.shown == ("c", "b", "a")
    assert server.seen[0].value["prior"] == [1.0, 2.0, 3.0]
    cars.feedback(d, rating={names[0]: np.int64(4)})
    assert server.seen[1].value["rating"] == {"a": 4}
    cars.record([{"id": "a", "v": np.float32(0.5)}], names[:1])
    assert server.seen[2].value["candidates"] == [{"id": "a", "v": 0.5}]


def test_features_are_sent_as_they_are(connect: Connected, server: Faulty) -> None:
    cars = connect(server.url).loop("cars")
    X = np.arange(6.0).reshape(3, 2)
    assert cars.decide(features=X, person="å b", context={"q": 1}, show=2, deferred=True, id="d&1").id == "d&1"
    request = server.seen[0]
    assert request.headers["content-type"] == "application/octet-stream"
    assert request.body == X.astype("<f4").tobytes()
    assert request.query == "person=%C3%A5%20b&context=%7B%22q%22%3A1%7D&show=2&deferred=true&id=d%261"
    cars.decide(features=X, prior=[9, 8, 7])
    assert server.seen[1].body == np.column_stack([X, [9, 8, 7]]).astype("<f4").tobytes()
    assert "prior=true" in server.seen[1].query


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({"features": [1.0, 2.0]}, "features: expected rows of numbers"),
        ({"features": [[1.0]], "candidates": ["a"]}, "features: expected no candidates with them"),
        ({"features": [[1.0]], "prior": [1.0, 2.0]}, "prior: expected 1 scores"),
        ({"features": [[1.0]], "prior": {"0": 1.0}}, "prior: expected 1 scores"),
        ({"candidates": "abc"}, "candidates: expected a list"),
        ({"candidates": ["a"], "show": 0}, "show: expected a whole number"),
        ({"candidates": ["a"], "context": {"a": object()}}, "context: expected what JSON can say"),
        ({"features": [[1.0]], "context": {"a": object()}}, "context: expected what JSON can say"),
        ({"features": [[1.0]], "context": {"a": "x" * 70_000}}, "context: expected less: 60,000 characters go in the"),
        ({"features": [[1.0]], "person": "\ud800"}, "person: expected text that UTF-8 can say"),
        ({"candidates": ["a"], "person": "\ud800"}, "person: expected what JSON can say"),
        ({"features": {"a": 1}}, "features: expected rows of numbers"),
        ({"features": [[1.0], [1.0, 2.0]]}, "features: expected rows of numbers"),
        ({"features": [["a"]]}, "features: expected rows of numbers"),
        ({"features": [[1e300]]}, "features: expected finite numbers that fit into float32"),
        ({"features": [[1.0]], "prior": ["x"]}, "prior: expected 1 scores"),
        ({"features": [[1.0]], "prior": [{}]}, "prior: expected 1 scores"),
        ({"candidates": ["a", "b"], "prior": 5}, "prior: expected a list of scores"),
        ({"candidates": ["a", "b"], "prior": np.array(5.0)}, "prior: expected a list of scores"),
    ],
)
def test_nonsense_is_refused_whether_the_server_is_there_or_not(arguments: dict[str, Any], told: str) -> None:
    with Client(faulty.unused()) as client, pytest.raises(ValueError, match=f"^{told}"):
        client.loop("cars").decide(**arguments)


@pytest.mark.parametrize(
    ("response", "error"),
    [
        (problem("bad-input", 422, "show: expected more"), ValueError),
        (problem("malformed", 400), ValueError),
        (problem("too-large", 413), ValueError),
        (problem("unsupported", 415), ValueError),
        (problem("not-found", 404), LookupError),
        (problem("no-key", 401), PermissionError),
        (problem("no-scope", 403), PermissionError),
        (problem("wrong-host", 421), PermissionError),
        (problem("exists", 409), FileExistsError),
        (problem("used", 409), LookupError),
        (Response(404, b"<html>"), LookupError),
    ],
)
def test_what_the_request_is_to_blame_for_raises(
    connect: Connected, server: Faulty, response: Response, error: type[Exception]
) -> None:
    server.otherwise = faulty.with_(response)
    cars = connect(server.url, patience=20.0).loop("cars")
    for call in (lambda: cars.decide(NAMES), lambda: cars.feedback("d1", clicks=[]), cars.items):
        with pytest.raises(error) as caught:
            call()
        said = msgspec.json.decode(response.body)["detail"] if response.body[:1] == b"{" else "404"
        assert said in str(caught.value)
    assert len(server.seen) == 3  # asked once each


@pytest.mark.parametrize(
    ("fault", "error"),
    [
        (faulty.with_(problem("unavailable", 503, "busy")), TimeoutError),
        (faulty.with_(problem("too-many", 429, "slow down", Retry_After="1")), TimeoutError),
        (faulty.with_(problem("damaged", 500, "broken")), RuntimeError),
        (faulty.with_(Response(502, b"<html>")), ConnectionError),
        (faulty.with_(Response(302, b"", {"Location": "http://127.0.0.1:9"})), ConnectionError),
        (faulty.with_(Response(200, b"<html>")), ConnectionError),
        (faulty.with_(say([])), ConnectionError),
        (faulty.raw(b"\x00\x01nonsense\r\n\r\n"), ConnectionError),
        (faulty.hang, TimeoutError),
        (faulty.cut, ConnectionError),
    ],
)
def test_what_the_server_is_to_blame_for_raises_elsewhere_than_in_decide(
    connect: Connected, server: Faulty, fault: Any, error: type[Exception]
) -> None:
    server.otherwise = fault
    hangs = fault is faulty.hang
    client = connect(server.url, patience=0.15 if hangs else 30.0, timeout=0.05 if hangs else 10.0)
    if not hangs:
        Clock(client)
    with pytest.raises(error):
        client.loop("cars").weights()


def test_a_newer_server_may_say_more() -> None:
    from heedful.client import messages
    from heedful.results.answers import plain
    from heedful.results.board import Board, BoardRow, QuestionsLeft, Verdict
    from heedful.results.explanation import Contribution, Influence, Why
    from heedful.results.report import Arm, At, Counts, Difference, MeasuredRegret, Report, Window

    def more(said: Any) -> Any:
        if isinstance(said, list):
            return [more(each) for each in said]
        if not isinstance(said, dict):
            return said
        kept = {"prediction"}  # an object of any fields: the interaction's own
        return {**{name: each if name in kept else more(each) for name, each in said.items()}, "new": 1}

    arm, apart = Arm(3, 2, None), Difference(0.1, 0.0, 0.2, 5)
    measured = MeasuredRegret(3, 0.5, None, "none", (At(1, 0.5, None),))
    window = Window(9, 8, arm, arm)
    report = Report(4, 3, True, None, 0, 0, arm, arm, apart, "", (window,), Counts(1, 0, 0, 0, 0), measured)
    parts, moved = (Contribution("mpg", 1.0, 2.0, 2.0, -1.0),), (Influence("e1", 2, "clicks", "d0", 0.5, None),)
    predicted = {"grade": 2, "score_from": None}
    why = Why(
        *("d1", "a", "learned", 1, 2, 0.5, "score", None, None, None, predicted),
        *("exact", "", parts, "leave-one-out", "", moved, 1, 0),
    )
    ranking = (BoardRow(1, "a", 0.9, 1, 2, 0.7, False, 0.5, 0.4, 0.6, comparisons=3),)
    verdict = Verdict("best", False, 0.5, "a", QuestionsLeft(1, 9, 99, "a few"))
    standing = Board(None, 2, 7, 0.9, ranking, (("a", "b"), ("b", "c")), verdict, 3)
    for said in (report, why, standing):
        reply = messages.Reply(200, {}, msgspec.json.encode(more(plain(said))))
        assert messages.read_as(reply, type(said)) == said
    for wrong in ({**plain(report), "learned": [3]}, {**plain(report), "series": 5}, {"version": 1}):
        with pytest.raises(ConnectionError, match="expected an answer of heedful's, got one with other fields"):
            messages.read_as(messages.Reply(200, {}, msgspec.json.encode(wrong)), Report)


def test_nobody_there(connect: Connected) -> None:
    client = connect(faulty.unused(), patience=0.1)
    assert not client.healthy()
    with pytest.raises(ConnectionError, match=r"no connection to http://127\.0\.0\.1"):
        client.loops()


def test_a_rejection_is_an_answer(connect: Connected, server: Faulty) -> None:
    cars = connect(server.url).loop("cars")
    told = json.loads(problem("rejected", 409, "clicks: 'z' was not shown").body) | {"event": "e1", "version": 7}
    for more in ({}, {"status": "rejected", "late": False, "learned": False}):
        server.otherwise = faulty.with_(say(told | more, 409))
        expected = Answer("rejected", "e1", None, 7, reason="clicks: 'z' was not shown")
        assert cars.feedback("d1", clicks=["z"], id="e1") == expected
        assert cars.undo("e9", id="e1") == expected
        assert cars.activate("e1") == expected


def test_the_paths_of_names_of_all_kinds(connect: Connected, server: Faulty) -> None:
    cars = connect(server.url + "/prefix/").loop("cars")
    for name in ("a/b", "..", ".", "ü ?&#%", "a.b"):
        server.faults.append(faulty.with_(say({"withdrawn": True})))
        assert cars.withdraw(name) is True
    names = ["a%2Fb", "%2E%2E", "%2E", "%C3%BC%20%3F%26%23%25", "a.b"]
    assert [request.path for request in server.seen] == [f"/prefix/v1/loops/cars/items/{name}" for name in names]


def test_many_items_and_events_go_in_several_requests(connect: Connected, server: Faulty) -> None:
    cars = connect(server.url).loop("cars")
    server.faults.extend(faulty.with_(say({"put": n})) for n in (1000, 1000, 345))
    assert cars.put_items({"id": j} for j in range(2345)).put == 2345
    assert [each["id"] for request in server.seen for each in request.value] == list(range(2345))
    server.seen.clear()
    server.faults.extend(faulty.with_(say({"put": 1})) for _ in range(3))
    assert cars.put_items([{"id": j, "text": "x" * 3_000_000} for j in range(3)]).put == 3  # a body may be 8 MiB
    server.seen.clear()
    answers = cars.feedback_many({"decision": "d", "id": f"e{j}", "clicks": []} for j in range(1500))
    assert [each.event for each in answers] == [f"e{j}" for j in range(1500)]
    assert [len(request.value) for request in server.seen] == [1000, 500]
    assert cars.feedback_many([]) == []


def test_what_is_too_long_for_json_goes_as_msgpack(connect: Connected, server: Faulty) -> None:
    """A server takes 1 MiB of JSON, unless it was told otherwise."""
    cars = connect(server.url).loop("cars")
    for names in ([f"item-{j:05}" for j in range(100)], [f"item-{j:05}" for j in range(100_000)]):
        cars.decide(names)
        text = "ü" * len(names) * 10
        cars.feedback("d", id="e", edit=text)
        asked, told = server.seen[-2:]
        assert asked.value["candidates"] == names
        assert told.value["edit"] == text
        kind = "application/json" if len(names) == 100 else "application/msgpack"
        assert {each.headers["content-type"] for each in (asked, told)} == {kind}
    server.seen.clear()
    cars.feedback_many({"decision": "d", "id": f"e{j}", "edit": "x" * 10_000} for j in range(300))
    assert len(server.seen) == 3
    assert max(len(msgspec.msgpack.encode(each.value)) for each in server.seen) <= 2**20 + 100


def test_a_listing_of_many_items_comes_in_pages(connect: Connected, server: Faulty) -> None:
    names = [f"i{j}" for j in range(2500)]

    def page(request: Request) -> Response:
        start = faulty.number(request.query)
        return say({"items": names[start : start + 1000], "total": 2500})

    server.answer = page
    assert connect(server.url).loop("cars").items() == names
    assert [request.query for request in server.seen] == [f"start={n}&limit=1000" for n in (0, 1000, 2000)]


# ---------------------------------------------------------------------------- falling back

FAULTS = {
    "hangs": (faulty.hang, "no answer within"),
    "slow first byte": (faulty.late, "no answer within"),
    "half an answer": (faulty.half, "no answer within"),
    "dribbles": (faulty.dribble, "no answer within"),
    "503": (faulty.with_(problem("unavailable", 503, "busy")), "busy"),
    "500": (faulty.with_(problem("damaged", 500, "broken")), "broken"),
    "429": (faulty.with_(problem("too-many", 429, "too many")), "too many"),
    "408": (faulty.with_(problem("too-slow", 408, "too slow")), "too slow"),
    "502 of a proxy": (faulty.with_(Response(502, b"<html>")), "502"),
    "redirect": (faulty.with_(Response(307, b"", {"Location": "/x"})), "307"),
    "garbage": (faulty.with_(Response(200, b"<html>hello")), "expected an answer of heedful's"),
    "no HTTP": (faulty.raw(b"\x00\x01\x02\r\n\r\n"), "cut off"),
    "JSON, but not ours": (faulty.with_(say({"id": "d1", "shown": "abc"})), "expected an answer of heedful's"),
    "somebody else's answer": (
        faulty.with_(say({"id": "d2", "shown": ["c"], "probability": None, "version": 1, "arm": "learned", "seq": 2})),
        "expected decision 'd1', got 'd2'",
    ),
    "cut off": (faulty.cut, "cut off"),
    "compressed, though nobody asked for it": (
        faulty.with_(Response(200, gzip.compress(b"[" * 1_000_000), {"Content-Encoding": "gzip"})),
        "Content-Encoding: expected none, got 'gzip'",
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_decide_gives_the_callers_order_in_time(
    connect: Connected, server: Faulty, fault: str, caplog: pytest.LogCaptureFixture
) -> None:
    """As the reason says: who waits for the end of a slow answer sees another one."""
    server.otherwise, reason = FAULTS[fault]
    cars = connect(server.url, KEY, timeout=0.1 if reason == "no answer within" else 5.0).loop("cars")
    with caplog.at_level(logging.WARNING):
        d = cars.decide(NAMES, prior=[1.0, 3.0, 2.0], show=2, id="d1")
    assert d.fallback
    assert (d.shown, d.arm, d.version, d.seq, d.probability) == (("b", "c"), "fallback", None, None, None)
    assert d.id.startswith("d1-fallback-")
    assert reason in d.reason
    assert reason in caplog.text
    assert KEY[12:] not in caplog.text


def test_decide_does_without_a_server(connect: Connected) -> None:
    d = connect(faulty.unused(), timeout=5.0).loop("cars").decide(NAMES)
    assert (d.shown, d.fallback) == (("a", "b", "c"), True)
    assert "no connection" in d.reason


def test_a_connection_that_the_server_had_closed_is_no_reason_to_fall_back(connect: Connected, server: Faulty) -> None:
    cars = connect(server.url).loop("cars")
    assert not cars.decide(NAMES).fallback
    server.faults.append(faulty.deaf)
    d = cars.decide(NAMES)
    assert not d.fallback
    assert [request.value["id"] for request in server.seen[1:]] == [d.id, d.id]


@pytest.mark.parametrize(
    ("names", "prior", "order"),
    [
        ("abc", None, "abc"),
        ("abc", [1, 3, 2], "bca"),
        ("abcd", [1, 1, 2, 1], "cabd"),
        ("abc", {"c": 5, "a": 1}, "cba"),  # b counts as average
        ("abc", {"b": 5}, "abc"),  # one score is no order: the server sees none in it either
        ("abc", [1, float("nan"), 2], "cba"),
        ("abc", [None, "x", 2], "abc"),
        ("abc", [1, 2], "abc"),
        ("abc", [0, 0, 0], "abc"),
        ("abc", [1e300, 2.0, 1.0], "bac"),
        ("abc", [True, 1.0, 2.0], "cab"),
        ("abc", [-2, -1, -3], "bac"),
    ],
)
def test_the_callers_order_is_by_score(names: str, prior: Any, order: str) -> None:
    from heedful.client.fallback import caller_order

    assert "".join(caller_order(list(names), prior)) == order


def test_the_fallback_names_candidates_as_the_server_would(connect: Connected) -> None:
    client = connect(faulty.unused(), timeout=5.0, failures=1000)
    cars = client.loop("cars", identifier="sku")
    assert cars.decide([{"sku": "x"}, {"id": "y"}, {"n": 1}], prior=[1, 2, 3]).shown == ("2", "y", "x")
    assert cars.decide(features=np.eye(3), prior=[1, 2, 3]).shown == ("2", "1", "0")
    assert cars.decide(prior={"a": 1, "b": 2}).shown == ("b", "a")
    assert cars.decide([4, 5]).shown == ("4", "5")
    assert cars.decide().shown == ()  # all that are on offer, and nobody knows what that is


def test_a_loop_that_shows_one_shows_one(connect: Connected, server: Faulty) -> None:
    server.answer = lambda r: say(
        {"id": r.value["id"], "shown": ["c"], "probability": 1, "version": 0, "arm": "learned", "seq": 1}
    )
    client = connect(server.url)
    cars = client.loop("cars")
    cars.decide(NAMES)
    server.otherwise = faulty.deaf
    assert cars.decide(NAMES, prior=[1, 3, 2]).shown == ("b",)
    assert client.loop("other").decide(NAMES).shown == ("a", "b", "c")


# ---------------------------------------------------------------------------- feedback on a fallback

ENDS = [faulty.deaf, faulty.deaf]
"""No answer to a decision, whose request is sent once more on a new connection: however slow the machine is."""


def test_feedback_on_a_fallback_tells_first_what_was_shown(connect: Connected, server: Faulty) -> None:
    cars = connect(server.url, timeout=10.0).loop("cars")
    server.faults += ENDS
    before = time.time_ns() // 1000
    d = cars.decide(NAMES, prior=[1.0, 3.0, 2.0], person="p1", context={"q": 1}, show=2)
    assert cars.feedback(d, clicks=["b"]).status == "applied"
    assert cars.feedback(d, clicks=["c"]).status == "applied"
    asked, _, told, *answers = server.seen
    assert told.path == "/v1/loops/cars/records"
    record = told.value
    assert before <= record.pop("time") <= time.time_ns() // 1000
    assert record == {
        "candidates": NAMES,
        "prior": [1.0, 3.0, 2.0],
        "person": "p1",
        "context": {"q": 1},
        "shown": ["b", "c"],
        "id": d.id,
    }
    assert record["id"] != asked.value["id"]  # whatever the server decides of that one: nobody saw it
    assert [(each.path.rpartition("/")[2], each.value["decision"]) for each in answers] == [("feedback", d.id)] * 2


def test_a_fallback_may_be_named_by_its_id(connect: Connected, server: Faulty) -> None:
    client = connect(server.url, timeout=10.0)
    server.faults += ENDS
    d = client.loop("cars").decide(NAMES)
    client.loop("cars").feedback(d.id, clicks=["b"])
    client.loop("trams").feedback(d.id, clicks=["b"])
    assert [request.path[10:] for request in server.seen[2:]] == ["cars/records", "cars/feedback", "trams/feedback"]


def test_a_fallback_travels_to_another_process(connect: Connected, server: Faulty) -> None:
    server.faults += ENDS
    sent = pickle.dumps(connect(server.url, timeout=10.0).loop("cars").decide(NAMES))
    d = pickle.loads(sent)  # noqa: S301 -- our own
    other = connect(server.url).loop("cars")
    assert isinstance(d, Decision)
    assert other.feedback(d, clicks=["b"]).status == "applied"
    assert [request.path[15:] for request in server.seen] == ["decisions", "decisions", "records", "feedback"]


def test_the_same_fallback_again_is_the_same_and_another_order_another(connect: Connected) -> None:
    cars = connect(faulty.unused(), timeout=0.1, failures=1000).loop("cars")
    ids = [
        cars.decide(NAMES, id="d1", person=p, prior=prior).id for p in ("p", "q") for prior in ([1, 2, 3], [3, 2, 1])
    ]
    assert len(set(ids)) == 4
    assert cars.decide(NAMES, id="d1", person="p", prior=[1, 2, 3]).id == ids[0]
    assert len(cars.decide(NAMES, id="d" * 200).id) <= 200


def test_what_was_told_stays_told(connect: Connected, server: Faulty) -> None:
    cars = connect(server.url, timeout=10.0).loop("cars")
    server.faults += [*ENDS, faulty.well, *ENDS]
    assert cars.tell(cars.decide(NAMES, id="d1"))
    assert not cars.tell(cars.decide(NAMES, id="d1"))


def test_what_cannot_be_told_takes_feedback_where_it_was_told_before(connect: Connected, server: Faulty) -> None:
    cars = connect(server.url, timeout=10.0).loop("cars")
    gone = faulty.with_(problem("bad-input", 422, "candidates: 'a' is not on offer"))
    unknown = faulty.with_(problem("rejected", 409, "decision x is not in the log"))
    server.faults += [*ENDS, gone, unknown, gone, faulty.well]
    d = cars.decide(NAMES)
    refused = cars.feedback(d, clicks=["a"], id="e1")
    assert (refused.status, refused.event, refused.seq) == ("rejected", "e1", None)
    why = "it fell back, and what it showed cannot be told now: candidates: 'a' is not on offer"
    assert refused.reason == f"decision x is not in the log: {why}"
    assert cars.feedback(d, clicks=["a"]).status == "applied"  # another process had told it
    server.faults += [*ENDS, unknown]
    assert cars.feedback(cars.decide(), clicks=["a"]).reason.endswith(": it fell back, and showed nothing")


def test_a_fallback_that_was_told_elsewhere_takes_feedback(connect: Connected, server: Faulty) -> None:
    cars = connect(server.url, timeout=10.0).loop("cars")
    used = problem("bad-input", 422, "id: expected a new one, got 'x', which was used for another decision")
    server.faults += [*ENDS, faulty.with_(used)]
    d = cars.decide(NAMES)
    assert cars.tell(d)
    assert cars.feedback(d, clicks=["a"]).status == "applied"
    assert [request.path[15:] for request in server.seen] == ["decisions", "decisions", "records", "feedback"]


def test_what_nobody_answered_may_be_told(connect: Connected, server: Faulty) -> None:
    cars = connect(server.url).loop("cars")
    server.faults.append(faulty.hang)
    with hurried(cars):
        d = cars.decide(NAMES)
    assert [cars.tell(d), cars.tell(d), cars.tell(d.id), cars.tell(cars.decide(NAMES))] == [True, False, False, False]
    cars.feedback(d, clicks=["a"])
    assert [request.path[15:] for request in server.seen] == ["decisions", "records", "decisions", "feedback"]


def test_all_that_was_shown_meanwhile_may_be_told_at_once(connect: Connected, server: Faulty) -> None:
    client = connect(server.url, failures=100)
    cars, trams = client.loop("cars"), client.loop("trams")
    server.otherwise = faulty.hang
    with hurried(cars), hurried(trams):
        ds = [cars.decide(NAMES), trams.decide(NAMES)]
        cars.decide(NAMES, deferred=True)
        cars.decide()
    server.otherwise = faulty.well
    cars.decide(NAMES)
    server.seen.clear()
    server.faults.append(faulty.with_(problem("bad-input", 422, "candidates: gone")))
    assert client.tell_fallbacks() == 1
    assert [(request.path, request.value["id"]) for request in server.seen] == [
        ("/v1/loops/cars/records", ds[0].id),
        ("/v1/loops/trams/records", ds[1].id),
    ]
    assert client.tell_fallbacks() == 0


def test_a_deferred_fallback_is_told_when_it_is_activated(connect: Connected, server: Faulty) -> None:
    cars = connect(server.url).loop("cars")
    server.faults.append(faulty.hang)
    with hurried(cars):
        d = cars.decide(NAMES, deferred=True)
    cars.feedback(d, clicks=["a"])
    assert [request.path[15:] for request in server.seen] == ["decisions", "feedback"]  # which the server rejects
    assert cars.activate(d) == Answer("applied", d.id, 9, 3)
    assert server.seen[-1].path[15:] == "records"
    cars.activate(cars.decide(NAMES, deferred=True))
    assert server.seen[-1].path[15:] == "activate"


def test_batches_and_chains_tell_as_well(connect: Connected, server: Faulty) -> None:
    cars = connect(server.url, timeout=10.0).loop("cars")
    server.faults += [*ENDS, *ENDS]
    d, later = cars.decide(NAMES, id="d1"), cars.decide(NAMES, id="d2")
    server.faults += [faulty.well, faulty.with_(problem("bad-input", 422, "candidates: gone"))]
    server.faults += [
        faulty.with_(say([answer("e1"), answer("e2", status="rejected", reason="unknown"), answer("e3")]))
    ]
    events = [{"decision": d, "clicks": ["a"], "id": "e1"}, {"decision": later, "clicks": [], "id": "e2"}, {"id": "e3"}]
    applied, refused, other = cars.feedback_many(events)
    assert (applied.reason, other.reason) == (None, None)
    assert refused.reason == "unknown: it fell back, and what it showed cannot be told now: candidates: gone"
    assert server.seen[-1].value == [
        {**event, **ids} for event, ids in zip(events, ({"decision": d.id}, {"decision": later.id}, {}))
    ]
    assert cars.feedback(d, clicks=["b"], chain=[later]).status == "applied"
    assert server.seen[-1].value["chain"] == [later.id]
    assert [request.path[15:] for request in server.seen[4:]] == ["records"] * 2 + ["feedback", "records", "feedback"]


# ---------------------------------------------------------------------------- the breaker


def test_a_dead_server_is_not_waited_for_again_and_again(
    connect: Connected, server: Faulty, caplog: pytest.LogCaptureFixture
) -> None:
    client = connect(server.url, timeout=20.0, pause=1.0)
    clock, cars = Clock(client), client.loop("cars")
    server.otherwise = faulty.hang
    with caplog.at_level(logging.WARNING), hurried(cars):
        for _ in range(3):
            assert "no answer within" in cars.decide(NAMES).reason
        reasons = {cars.decide(NAMES).reason for _ in range(50)}
    assert reasons == {"the server did not answer lately"}
    assert len(server.seen) <= 3  # on a busy machine it may not have seen them all
    assert len(caplog.records) == 4  # not one for each
    clock.now += 1.01  # one tries again, the others go on without
    with hurried(cars):
        assert ["lately" in cars.decide(NAMES).reason for _ in range(3)] == [False, True, True]
    clock.now += 1.01
    server.otherwise = faulty.well
    assert [cars.decide(NAMES).fallback for _ in range(3)] == [False] * 3
    server.otherwise = faulty.hang
    with hurried(cars):
        assert "no answer within" in cars.decide(NAMES).reason  # counted anew
    server.otherwise = faulty.well
    assert not cars.decide(NAMES).fallback


def test_a_server_that_answers_is_asked_whatever_it_says(connect: Connected, server: Faulty) -> None:
    cars = connect(server.url).loop("cars")
    server.otherwise = faulty.with_(problem("too-many", 429))
    assert [cars.decide(NAMES).fallback for _ in range(6)] == [True] * 6
    assert len(server.seen) == 6


def test_only_one_of_many_threads_tries_again(server: Faulty) -> None:
    server.otherwise = faulty.hang
    with Client(server.url, timeout=0.1, failures=1, pause=0.3) as client, ThreadPoolExecutor(8) as pool:
        clock, cars = Clock(client), client.loop("cars")
        cars.decide(NAMES)
        clock.now += 0.31
        reasons = [each.reason for each in pool.map(lambda _: cars.decide(NAMES), range(8))]
    assert sorted("lately" in reason for reason in reasons) == [False] + [True] * 7
    assert len(server.seen) <= 2


# ---------------------------------------------------------------------------- asking again


def test_feedback_is_sent_again_under_the_same_id(connect: Connected, server: Faulty) -> None:
    client = connect(server.url, timeout=0.05, patience=3.0)
    server.faults += [faulty.cut, faulty.with_(problem("unavailable", 503)), faulty.raw(b"junk\r\n\r\n")]
    answer = client.loop("cars").feedback("d1", clicks=["a"])
    assert answer.status == "applied"
    assert {request.value["id"] for request in server.seen} == {answer.event}
    assert len(server.seen) == 4


def test_retry_after_is_honoured_and_patience_ends(connect: Connected, server: Faulty) -> None:
    client = connect(server.url, patience=10.0)
    clock, cars = Clock(client), client.loop("cars")
    server.faults += [faulty.with_(problem("too-many", 429, Retry_After="3"))] * 2
    assert cars.feedback("d1", clicks=["a"]).status == "applied"
    assert clock.slept == [3.0, 3.0]
    server.otherwise = faulty.with_(problem("too-many", 429, "slow down", Retry_After="4"))
    server.seen.clear()
    with pytest.raises(TimeoutError, match="slow down; it may have arrived: send it again with id='e1'"):
        cars.feedback("d1", clicks=["a"], id="e1")
    assert clock.slept[2:] == [4.0, 4.0]
    assert len(server.seen) == 3
    server.otherwise = faulty.with_(problem("unavailable", 503, Retry_After="60"))
    with pytest.raises(TimeoutError):
        cars.weights()
    assert clock.slept[4:] == []  # it would take too long: at once


def test_backoff_grows_and_ends(connect: Connected) -> None:
    client = connect(faulty.unused(), patience=10.0)
    clock = Clock(client)
    with pytest.raises(ConnectionError):
        client.loop("cars").feedback("d1", clicks=["a"])
    # It ends when the next pause, of at most 2 s, and the least that a request takes would pass the patience.
    assert 10.0 - 2.0 - LEAST < clock.now <= 10.0
    assert 6 <= len(clock.slept) <= 20
    assert max(clock.slept) <= 2.0
    assert clock.slept[0] <= 0.05


def test_connecting_takes_no_longer_than_patience_where_the_answer_may(connect: Connected) -> None:
    import httpx

    def away(request: httpx.Request) -> httpx.Response:
        seen.append(request.extensions["timeout"].get("connect"))
        clock.now += 1.0
        raise httpx.ConnectTimeout("", request=request)

    client = connect("http://127.0.0.1:9", patience=3.0, timeout=0.25, transport=httpx.MockTransport(away))
    seen: list[float] = []
    clock = Clock(client)
    with pytest.raises(TimeoutError, match=r"no connection within [34](\.\d+)? s$"):  # not: within 1 s, or 600
        client.loop("cars").put_items([{"id": "a"}])
    assert max(seen) <= 1.0
    assert len(seen) > 1


def test_what_may_not_be_done_twice_is_not_sent_twice(connect: Connected, server: Faulty) -> None:
    client = connect(server.url, patience=1.0)
    server.otherwise = faulty.cut
    for call in (lambda: client.create("new", [{"id": "a"}]), lambda: client.loop("cars").forget("p")):
        server.seen.clear()
        with pytest.raises(ConnectionError):
            call()
        assert len(server.seen) == 1
    server.faults += [faulty.with_(problem("unavailable", 503))]  # nothing was done
    server.otherwise = faulty.with_(say({"events": 2, "exports": ["x"], "version": 7}))
    gone = client.loop("cars").forget("p")
    assert (gone.events, gone.exports, gone.version, gone.erased) == (2, ("x",), 7, True)


# ---------------------------------------------------------------------------- events


def stream(first: int, last: int, cut_at: int | None = None, newline: bytes = b"\n") -> faulty.Fault:
    """Events first to last, chunked, a comment between them; the connection breaks within event `cut_at`."""

    def fault(to: Any, request: Request, answer: Any) -> bool:
        to.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
        for seq in range(first, last + 1):
            lines = [b": still here", b"", b"id: %d" % seq, b"event: feedback", b'data: {"seq": %d,' % seq]
            text = newline.join([*lines, b'data: "text": "\xc3\xbc\xe2\x80\xa8"}', b"", b""])
            for piece in (text[:25], text[25:-3], text[-3:]):
                if seq == cut_at:
                    to.sendall(b"%x\r\n%s\r\n" % (len(text) - 9, text[:-9]))
                    return False
                to.sendall(b"%x\r\n%s\r\n" % (len(piece), piece))
        to.sendall(b"0\r\n\r\n")
        return False

    return fault


@pytest.mark.parametrize("newline", [b"\n", b"\r\n"])
def test_events_go_on_where_the_connection_broke(connect: Connected, server: Faulty, newline: bytes) -> None:
    client = connect(server.url)
    clock = Clock(client)
    busy = faulty.with_(problem("unavailable", 503))
    server.faults += [stream(4, 6, cut_at=6, newline=newline), faulty.deaf, busy, stream(6, 7, newline=newline)]
    server.faults.append(stream(6, 9, newline=newline))  # one that does not know what was seen
    events = client.loop("cars").events(after=3, kinds=("feedback", "undo"))
    assert [event["seq"] for event in itertools.islice(events, 6)] == [4, 5, 6, 7, 8, 9]
    events.close()
    last = [request.headers["last-event-id"] for request in server.seen]
    assert last == ["3", "5", "5", "5", "7"]
    assert server.seen[0].query == "after=3&kinds=feedback%2Cundo&follow=true"
    assert clock.slept[0] <= 0.1


def test_events_up_to_now_end(connect: Connected, server: Faulty) -> None:
    client = connect(server.url)
    Clock(client)
    server.faults += [stream(1, 3, cut_at=3), stream(3, 4)]
    events = list(client.loop("cars").events(follow=False))
    assert [event["seq"] for event in events] == [1, 2, 3, 4]
    assert events[0]["text"] == "ü\u2028"
    assert [request.query for request in server.seen] == ["after=0&follow=false", "after=2&follow=false"]


def test_events_of_a_server_that_is_gone_or_refuses(connect: Connected, server: Faulty) -> None:
    client = connect(server.url, patience=5.0)
    clock, cars = Clock(client), client.loop("cars")
    server.faults += [faulty.with_(problem("no-scope", 403, "expected read"))]
    with pytest.raises(PermissionError, match="expected read"):
        next(cars.events())
    server.faults += [stream(1, 2)]
    server.otherwise = faulty.deaf
    events = cars.events()
    assert [next(events)["seq"] for _ in range(2)] == [1, 2]
    clock.now += 100.0  # it was there all the time
    with pytest.raises(ConnectionError, match="the last event was 2"):
        next(events)
    assert 101.0 < clock.now <= 110.0
    server.otherwise = faulty.with_(Response(200, b"id: 1\ndata: <html>\n\n", {"Content-Type": "text/event-stream"}))
    with pytest.raises(ConnectionError, match="events: expected JSON"):
        next(cars.events())


def test_a_compressed_stream_of_events_is_not_read(connect: Connected, server: Faulty) -> None:
    server.otherwise = faulty.with_(Response(200, gzip.compress(b"\n" * 1_000_000), {"Content-Encoding": "gzip"}))
    client = connect(server.url, patience=5.0)
    Clock(client)
    with pytest.raises(ConnectionError, match="Content-Encoding: expected none, got 'gzip'"):
        next(client.loop("cars").events(follow=False))


def test_a_page_is_no_stream_of_events(connect: Connected, server: Faulty) -> None:
    server.otherwise = faulty.with_(Response(200, b"<html>\n\n", {"Content-Type": "text/html"}))
    for follow in (True, False):
        with pytest.raises(ConnectionError, match="events: expected text/event-stream, got 'text/html'; is the url"):
            next(connect(server.url).loop("cars").events(follow=follow))
    assert len(server.seen) == 2


def test_a_silent_stream_is_dead(connect: Connected, server: Faulty, monkeypatch: pytest.MonkeyPatch) -> None:
    from heedful.client.stream import EventFollower

    monkeypatch.setattr(EventFollower, "SILENCE", 0.1)

    def one_then_nothing(to: Any, request: Request, answer: Any) -> bool:
        to.sendall(
            b"HTTP/1.1 200 OK\r\nContent-Type: Text/Event-Stream; charset=utf-8\r\nTransfer-Encoding: chunked\r\n\r\n"
            + b"14\r\nid: 1\ndata: {}\n: x\n\n\r\n"
        )
        return faulty.hang(to, request, answer)

    server.faults += [one_then_nothing, stream(2, 2)]
    events = connect(server.url).loop("cars").events()
    assert [len(next(events)) for _ in range(2)] == [0, 2]


# ---------------------------------------------------------------------------- the key


def test_the_key_is_sent_and_shown_nowhere(
    connect: Connected, server: Faulty, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG):
        client = connect(server.url, KEY + "\n", timeout=10.0, patience=5.0)
        Clock(client)
        cars = client.loop("cars")
        cars.decide(NAMES)
        assert server.seen[0].headers["authorization"] == f"Bearer {KEY}"
        server.otherwise = faulty.cut
        d = cars.decide(NAMES)
        told = [repr(client), repr(cars), repr(d), d.reason]
        for status in (401, 403, 500, 503):
            server.otherwise = faulty.with_(problem("x", status))
            with pytest.raises(OSError if status != 500 else RuntimeError) as caught:
                cars.weights()
            told.append(repr(caught.value))
            assert caught.value.__cause__ is None
        server.otherwise = faulty.cut
        with pytest.raises(ConnectionError) as cut_off:
            cars.weights()
        told.append(repr(cut_off.value))
        assert cut_off.value.__context__ is None
    assert all(KEY[12:] not in text for text in [*told, caplog.text, pickle.dumps(d).decode("latin-1")])
    assert repr(client) == f"{'Client' if connect.kind == 'sync' else 'AsyncClient'}('{server.url}')"


@pytest.mark.parametrize(
    "host", ["rank.example", "10.0.0.1", "192.168.1.2", "0.0.0.0", "[fe80::1]", "localhost.example"]
)
def test_a_key_is_not_sent_in_the_open(connect: Connected, host: str) -> None:
    with pytest.raises(ValueError, match="expected https") as caught:
        connect(f"http://{host}:8710", KEY)
    assert KEY[12:] not in str(caught.value)
    for fine in (f"https://{host}", "http://localhost", "http://127.0.0.2:1", "http://[::1]:8710/x"):
        connect(fine, KEY)
    connect(f"http://{host}:8710", KEY, insecure=True)
    connect(f"http://{host}:8710")


@pytest.mark.parametrize(
    "url",
    ["", "rank.example", "ftp://a", "http://", "http://a:b", "http://a?x=1", 5, "http://a#f", "http://\u2603.com"],
)
def test_an_address_that_is_none(url: Any) -> None:
    with pytest.raises(ValueError, match="url: expected one such as"):
        Client(url)


def test_a_key_that_is_none_is_not_repeated() -> None:
    for wrong in (KEY[:-1], KEY + "é", "Bearer " + KEY, KEY.replace("s", "\n", 1), 5):
        with pytest.raises(ValueError, match="key: expected hk_") as caught:
            Client(key=wrong)  # type: ignore[arg-type]
        assert "cr3t" not in str(caught.value)
    with pytest.raises(ValueError, match="url: expected no user and password"):
        Client("https://me:secret@rank.example")
    for name in ("timeout", "patience", "pause"):
        with pytest.raises(ValueError, match=f"{name}: expected seconds"):
            Client(**{name: 0})


# ---------------------------------------------------------------------------- around it


@pytest.mark.slow
def test_a_forked_process_has_connections_of_its_own(server: Faulty) -> None:
    import os

    with Client(server.url) as client:
        cars = client.loop("cars")
        cars.decide(NAMES)
        before = client._carrier.http
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            os.write(writing, b"y" if client._carrier.http is not before else b"n")
            os._exit(0)
        os.waitpid(child, 0)
        assert os.read(reading, 1) == b"y"
        assert client._carrier.http is before


@pytest.mark.slow
def test_importing_it_asks_for_no_httpx_and_using_it_says_what_to_install() -> None:
    program = (
        "import sys; sys.modules['httpx'] = None\n"
        "import heedful.client\n"
        "try: heedful.client.Client()\n"
        "except ModuleNotFoundError as error: print(error)\n"
        "print('numba' in sys.modules, 'starlette' in sys.modules)"
    )
    out = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert out.splitlines() == [
        "the client needs httpx, which is not installed: pip install '.[client]'",
        "False False",
    ]


def test_both_kinds_can_do_the_same() -> None:
    import inspect

    from heedful.client import AsyncClient, AsyncRemoteLoop, RemoteLoop

    def methods(cls: type) -> dict[str, Any]:
        found = inspect.getmembers(cls, callable)
        return {name: inspect.signature(each).parameters for name, each in found if not name.startswith("_")}

    def names(cls: type) -> dict[str, list[str]]:
        return {name: list(parameters) for name, parameters in methods(cls).items()}

    assert names(Client) == names(AsyncClient)
    assert names(RemoteLoop) == names(AsyncRemoteLoop)
    assert all(getattr(RemoteLoop, name).__doc__ for name in names(RemoteLoop))
    from heedful import Loop

    for name in ("decide", "feedback", "feedback_many", "record", "activate", "undo", "put_items", "withdraw"):
        theirs, ours = inspect.signature(getattr(Loop, name)).parameters, methods(RemoteLoop)[name]
        assert set(theirs) <= set(ours), name
