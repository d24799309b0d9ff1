"""OpenSearch UBI logs: what becomes of each row, and that every row is accounted for."""

from __future__ import annotations

import csv
import gzip
import hashlib
import json
import re
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heedful.data import ubi
from heedful.data.row_report import Report
from heedful.data.ubi import ACTIONS, read_ubi
from written import write_lines as dump

Row = dict[str, Any]


def read(folder: Path, queries: list[Any], events: list[Any], **options: Any) -> tuple[list[Row], Report]:
    report = Report()
    q, e = dump(folder / "q.jsonl", queries), dump(folder / "e.jsonl", events)
    lines = list(read_ubi(q, e, report, **options))
    assert sum(report.rows.values()) == sum(report.used.values()) + sum(report.dropped.values())
    assert report.examples.keys() == report.dropped.keys()
    return lines, report


def query(n: int = 1, hits: Any = ("a", "b", "c"), at: Any = "2024-06-01T10:00:00Z", **more: Any) -> Row:
    row = {"query_id": f"q{n}", "client_id": "p1", "user_query": "red shoes", "timestamp": at}
    return {name: value for name, value in (row | {"query_response_hit_ids": hits} | more).items() if value is not None}


def event(item: Any, action: str = "click", second: int = 1, n: int = 1, **more: Any) -> Row:
    row = {"action_name": action, "query_id": f"q{n}", "timestamp": f"2024-06-01T10:00:{second:02}Z", "client_id": "p1"}
    row["event_attributes"] = {"object": {"object_id": item, "object_id_field": "sku"}, "position": {"ordinal": 1}}
    return row | more


def clicks_of(lines: list[Row]) -> dict[str, list[str]]:
    return {line["decision"]: line["clicks"] for line in lines if "clicks" in line}


def test_a_query_becomes_a_decision_and_its_events_feedback(tmp_path: Path) -> None:
    lines, report = read(
        tmp_path,
        [
            query(
                query_attributes={"lang": "en", "page": 2, "beta": True, "facets": ["x"], "gone": None}, application="x"
            )
        ],
        [event("c", second=9), event("c", "purchase", 30), event("a", "click_through", 3), event("a", "watch", 5)],
    )
    ids = [line["id"] for line in lines if line["kind"] == "feedback"]
    assert lines == [
        {
            "kind": "decision",
            "id": "q1",
            "person": "p1",
            "time": "2024-06-01T10:00:00Z",
            "candidates": ["a", "b", "c"],
            "shown": ["a", "b", "c"],
            "context": {"beta": True, "lang": "en", "page": 2, "query": "red shoes"},
            "probability": None,
        },
        {"kind": "feedback", "id": ids[0], "decision": "q1", "time": "2024-06-01T10:00:09Z", "clicks": ["a", "c"]},
        {"kind": "feedback", "id": ids[1], "decision": "q1", "time": "2024-06-01T10:00:05Z"}
        | {"action": "view", "item": "a"},
        {"kind": "feedback", "id": ids[2], "decision": "q1", "time": "2024-06-01T10:00:30Z"}
        | {"action": "buy", "item": "c"},
    ]
    assert len(set(ids)) == 3
    assert all(re.fullmatch("ubi-[0-9a-f]{32}", each) for each in ids)
    assert report.rows == {"queries": 1, "events": 4}
    assert report.used == {"queries": 1, "events": 4}
    assert report.left_out == {"attribute that is no text or number": 2}


def test_ids_are_what_they_were(tmp_path: Path) -> None:
    """Another version of this code must not import old logs again: the ids are written down here."""
    lines, _ = read(tmp_path, [query()], [event("a"), event("a", "purchase")])
    assert [line["id"] for line in lines] == [
        "q1",
        "ubi-" + hashlib.blake2b(b'["clicks","q1"]', digest_size=16).hexdigest(),
        "ubi-" + hashlib.blake2b(b'["action","q1","buy","a","2024-06-01T10:00:01Z"]', digest_size=16).hexdigest(),
    ]


def test_queries_come_by_time_whatever_their_place(tmp_path: Path) -> None:
    times = ["2024-06-01T10:00:00Z", "2024-06-01T13:30:00+04:00", "2024-06-01T09:45:00", 1717235100000]
    lines, _ = read(tmp_path, [query(n, at=at) for n, at in enumerate(times)], [])
    assert [line["id"] for line in lines] == ["q1", "q2", "q3", "q0"]


def test_forms_of_an_export_give_the_same_lines(tmp_path: Path) -> None:
    queries = [query(1, client_id="é"), query(2, ["x"], user_query='say "a, b"\nc', query_attributes={"lang": "en"})]
    events = [event("a"), event("c", second=2), event("x", "purchase", n=2), event("x", "nonsense", n=2), event("x")]
    bare, told = read(tmp_path, queries, events)
    assert len(bare) == 4

    def lines(q: Path, e: Path) -> tuple[list[Row], Counter[str]]:
        report = Report()
        return list(read_ubi(str(q), str(e), report)), report.dropped

    hit = [
        [{"_index": "ubi", "_id": str(n), "_score": 1, "_source": row} for n, row in enumerate(rows)]
        for rows in (queries, events)
    ]
    assert lines(dump(tmp_path / "d.json", hit[0]), dump(tmp_path / "d2.json", hit[1])) == (
        bare,
        told.dropped,
    )
    assert lines(dump(tmp_path / "q.gz", queries[::-1]), dump(tmp_path / "e.gz", events[::-1])) == (
        bare,
        told.dropped,
    )

    bulk: list[Row | str] = []
    for rows, index in ((queries, "ubi_queries"), (events, "ubi_events")):
        for row in rows:
            bulk += [{"index": {"_index": index, "_id": "1"}}, row]
    one = dump(tmp_path / "bulk.ndjson", bulk)
    both = {"bulk action line": 14, "event among the queries": 5, "query among the events": 2}
    assert lines(one, one) == (bare, told.dropped + Counter(both))

    def table(path: Path, rows: list[Row]) -> Path:
        names = sorted({name for row in rows for name in row})
        with path.open("w", newline="", encoding="utf-8-sig") as file:
            writer = csv.DictWriter(file, names)
            writer.writeheader()
            writer.writerows(rows)
        if path.suffix == ".gz":
            path.write_bytes(gzip.compress(path.read_bytes()))
        return path

    as_json = [
        row | {name: json.dumps(row[name]) for name in ("query_response_hit_ids", "query_attributes") if name in row}
        for row in queries
    ]
    as_commas = [row | {"query_response_hit_ids": ", ".join(row["query_response_hit_ids"])} for row in queries]
    as_commas = [row | {"query_attributes": json.dumps(row.get("query_attributes"))} for row in as_commas]
    objects = [row["event_attributes"]["object"]["object_id"] for row in events]
    nested = [row | {"event_attributes": json.dumps(row["event_attributes"])} for row in events]
    dotted = [
        row | {"event_attributes": "", "event_attributes.object.object_id": thing}
        for row, thing in zip(events, objects)
    ]
    flat = [row | {"event_attributes": "", "object_id": thing} for row, thing in zip(events, objects)]
    for q in (table(tmp_path / "q.csv", as_json), table(tmp_path / "q.csv.gz", as_commas)):
        for e in (
            table(tmp_path / "1.csv", nested),
            table(tmp_path / "2.CSV", dotted),
            table(tmp_path / "3.csv", flat),
        ):
            assert lines(q, e) == (bare, told.dropped)


def test_the_context_is_what_can_be_compared(tmp_path: Path) -> None:
    attributes = {"query": "own", "n": 2**53 - 1, "big": 2**53, "less": -(2**53), "x": 0.5, "no": False, "none": None}
    kept = {"n": 2**53 - 1, "x": 0.5, "no": False}
    lines, report = read(tmp_path, [query(query_attributes=attributes)], [])
    assert lines[0]["context"] == kept | {"query": "red shoes"}
    assert report.left_out == {"attribute that is no text or number": 4}
    for words in ("", None, 3):
        lines, _ = read(tmp_path, [query(query_attributes=attributes, user_query=words)], [])
        assert lines[0]["context"] == kept | {"query": "own"}
    lines, _ = read(tmp_path, [query(query_attributes="en", user_query="")], [])
    assert lines[0]["context"] == {}


def test_the_longest_ids(tmp_path: Path) -> None:
    long = "é" * 200
    row = query(hits=[long]) | {"query_id": long, "client_id": long}
    lines, _ = read(tmp_path, [row], [event(long) | {"query_id": long}])
    assert (lines[0]["id"], lines[0]["person"], lines[1]["clicks"]) == (long, long, [long])
    lines, _ = read(tmp_path, [query(client_id=long + "x")], [])
    assert lines[0]["person"] is None


def test_a_table_of_both(tmp_path: Path) -> None:
    names = ["query_id", "timestamp", "query_response_hit_ids", "event_attributes.object.object_id", "action_name"]
    path = tmp_path / "both.csv"
    rows = ["q1,2024-06-01,a;b,,,", "q1,2024-06-01T10:00:00,,,click,a;b"]
    path.write_text("\n".join([",".join([*names, "object_id"]), *rows]))
    report = Report()
    lines = list(read_ubi(path, path, report))
    assert clicks_of(lines) == {"q1": ["a;b"]}
    assert report.dropped == {"event among the queries": 1, "query among the events": 1}


def test_a_time_without_a_zone_is_not_that_of_this_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "JST-9")
    time.tzset()
    try:
        lines, _ = read(tmp_path, [query(1, at="2024-06-01T10:00:00"), query(2, at=1717236000000)], [])
    finally:
        monkeypatch.undo()
        time.tzset()
    assert [line["time"] for line in lines] == ["2024-06-01T10:00:00Z"] * 2


@pytest.mark.parametrize("name", ["query_response_hit_ids", "query_response_object_ids", "query_response_objects_ids"])
def test_every_name_the_hits_had(tmp_path: Path, name: str) -> None:
    row = query(hits=None) | {name: ["b", 7, "b", None, "", "a"]}
    lines, report = read(tmp_path, [row], [event(7), event("7", second=2), event("b", second=3)])
    assert lines[0]["candidates"] == lines[0]["shown"] == ["b", "7", "a"]
    assert lines[1]["clicks"] == ["7", "b"]
    assert report.left_out == {"hit without an id": 2, "hit named twice": 1}


def test_one_hit_may_stand_alone(tmp_path: Path) -> None:
    lines, _ = read(tmp_path, [query(1, "a"), query(2, 5)], [])
    assert [line["shown"] for line in lines] == [["a"], ["5"]]


@pytest.mark.parametrize(
    ("at", "expected"),
    [
        ("2018-11-13T20:20:39+00:00", "2018-11-13T20:20:39Z"),
        ("2018-11-13T20:20:39", "2018-11-13T20:20:39Z"),
        ("2018-11-13T20:20:39-05:30", "2018-11-14T01:50:39Z"),
        ("2018-11-13T20:20:39.123456789Z", "2018-11-13T20:20:39.123456Z"),
        (1705596607509, "2024-01-18T16:50:07.509000Z"),
        ("1705596607509", "2024-01-18T16:50:07.509000Z"),
        ("2000-01-01T00:00:00Z", "2000-01-01T00:00:00Z"),
        ("1999-12-31T23:59:59Z", None),
        (1705596607, None),  # seconds
        (10**30, None),
        (-1, None),
        (True, None),
        (1.5, None),
        ("yesterday", None),
        ("0001-01-01T00:00:00+14:00", None),
        ("9" * 5000, None),
        ({"x": 1}, None),
        (None, None),
    ],
)
def test_times(tmp_path: Path, at: Any, expected: str | None) -> None:
    lines, report = read(tmp_path, [query(at=at)], [event("a")])
    assert [line["time"] for line in lines[:1]] == ([expected] if expected else [])
    assert report.dropped == ({} if expected else {"query without a time": 1, "event of a dropped query": 1})
    lines, report = read(tmp_path, [query()], [event("a", timestamp=at)])
    assert [line["time"] for line in lines[1:]] == ([expected] if expected else [])
    assert report.dropped == ({} if expected else {"event without a time": 1})


def without(row: Row, *names: str) -> Row:
    return {name: value for name, value in row.items() if name not in names}


HIT_IDS = "query_response_hit_ids: expected the ids of what was shown"
DROPPED_QUERIES = [
    ('{"query_id": "q1", ', "unreadable line", "json: expected a whole line of JSON, got one that ends early or"),
    ("[1]", "unreadable line", "line: expected one JSON object, got [1]"),
    (without(query(), "query_id"), "query without query_id", "query_id: expected an id, got none"),
    (query() | {"query_id": ""}, "query without query_id", "query_id: expected an id, got ''"),
    (query() | {"query_id": "x" * 201}, "query without query_id", "query_id: expected an id, got 'xxx"),
    (query() | {"query_id": "a\nb"}, "query without query_id", "query_id: expected an id, got 'a\\nb'"),
    (query() | {"query_id": True}, "query without query_id", "query_id: expected an id, got True"),
    (without(query(), "timestamp"), "query without a time", "timestamp: expected ISO 8601 or ms, got none"),
    (query(hits=None), "query without hits", f"{HIT_IDS}, got none, and no impressions"),
    (query(hits=[]), "query without hits", f"{HIT_IDS}, got none, and no impressions"),
    (query(hits=[None, True]), "query without hits", f"{HIT_IDS}, got none, and no impressions"),
    (query(hits={"a": 1}), "query without hits", f"{HIT_IDS}, got none, and no impressions"),
    (query(hits="['a', 'b']"), "query without hits", f"{HIT_IDS}, got none, and no impressions"),
    (query(0), "repeated row", "query_id: expected each query once, got 'q0' again"),
    (query(0, None), "query without hits", f"{HIT_IDS}, got none"),
    (query(0, ["z"]), "query_id of another query", "query_id: expected one query an id, got 'q0' again"),
    (query(0, at="2024-06-02"), "query_id of another query", "query_id: expected one query an id, got 'q0' again"),
    ({"index": 1, "x": 2}, "query without query_id", "query_id: expected an id, got none"),
    (event("a", n=0), "event among the queries", "action_name: expected none in a query, got one"),
    (without(event("a"), "query_id"), "event among the queries", "action_name: expected none in a query, got one"),
    ({"index": {"_id": "1"}}, "bulk action line", "expected a document, got {'index': {'_id': '1'}}"),
    ({"create": {}}, "bulk action line", "expected a document, got {'create': {}}"),
]


@pytest.mark.parametrize(("row", "reason", "example"), DROPPED_QUERIES)
def test_a_query_that_is_dropped(tmp_path: Path, row: Any, reason: str, example: str) -> None:
    for rows, number in (([query(0), row], 2), ([row, query(0)], 1)):
        lines, report = read(tmp_path, rows, [event("a", n=0)])
        assert [line["kind"] for line in lines] == ["decision", "feedback"]
        assert lines[0]["id"] == "q0"
        assert lines[0]["shown"] == ["a", "b", "c"]
        assert report.used == {"queries": 1, "events": 1}
        assert report.dropped == {reason: 1}
        number = 2 if reason == "repeated row" else number
        assert report.examples[reason].startswith(f"q.jsonl:{number}: {example}")


DROPPED_EVENTS = [
    ("{", "unreadable line", "json: expected a whole line of JSON, got one that ends early or"),
    (without(event("b"), "query_id"), "event without query_id", "query_id: expected an id, got none"),
    (event("b") | {"query_id": None}, "event without query_id", "query_id: expected an id, got none"),
    (event("b", n=7), "event of an unknown query", "query_id: expected one of the queries, got 'q7'"),
    (event("b", n=5), "event of a dropped query", "query_id: expected a query with hits, got 'q5'"),
    (event("b", n=6), "event of a dropped query", "query_id: expected one of the queries, got 'q6'"),
    (without(event("b"), "action_name"), "unknown action", "action_name: expected one that is known, got none"),
    (event("b", "type_filter"), "unknown action", "action_name: expected one that is known, got 'type_filter'"),
    (event("b", ["click"]), "unknown action", "action_name: expected one that is known, got ['click']"),
    (event("b", "view"), "not a choice", "action_name: expected a choice, got 'view'"),
    (event("b", "product_hover"), "not a choice", "action_name: expected a choice, got 'product_hover'"),
    (event("b", "impression"), "not a choice", "action_name: expected a choice, got 'impression'"),
    (without(event("b"), "timestamp"), "event without a time", "timestamp: expected ISO 8601 or ms, got none"),
    (event(None), "event without object_id", "object_id: expected an id, got none"),
    (event(""), "event without object_id", "object_id: expected an id, got ''"),
    (event("b", event_attributes=3), "event without object_id", "object_id: expected an id, got none"),
    (event("z"), "item not in the response", "object_id: expected one of the hits, got 'z'"),
    (event("z", "purchase"), "item not in the response", "object_id: expected one of the hits, got 'z'"),
    (event("a"), "repeated row", "event: expected each once, got one again"),
    (event("a", "click_through"), "repeated row", "event: expected each once, got one again"),
    (event("a", "purchase", 3), "repeated row", "event: expected each once, got one again"),
    (event("a", second=2), "same item again", "object_id: expected the first click on it, got another"),
    (query(1), "query among the events", "action_name: expected one, got none"),
    ({"user_query": "x"}, "query among the events", "action_name: expected one, got none"),
    ({"index": 1, "x": 2}, "event without query_id", "query_id: expected an id, got none"),
    ({"query_response_hit_ids": []}, "query among the events", "action_name: expected one, got none"),
    ({"index": {}}, "bulk action line", "expected a document, got {'index': {}}"),
]


@pytest.mark.parametrize(("row", "reason", "example"), DROPPED_EVENTS)
def test_an_event_that_is_dropped(tmp_path: Path, row: Any, reason: str, example: str) -> None:
    queries = [query(), query(5, []), without(query(6), "timestamp")]
    lines, report = read(tmp_path, queries, [event("a"), event("a", "purchase", 3), row])
    assert [line["kind"] for line in lines] == ["decision", "feedback", "feedback"]
    assert lines[1]["clicks"] == ["a"]
    assert report.dropped - Counter({"query without hits": 1, "query without a time": 1}) == {reason: 1}
    assert report.examples[reason].startswith(f"e.jsonl:3: {example}")


def test_only_the_first_example_is_kept_and_all_are_counted(tmp_path: Path) -> None:
    _, report = read(tmp_path, [query()], [event("y"), event("z", second=2), event("a", "scroll"), event("a", "drag")])
    assert report.dropped == {"item not in the response": 2, "unknown action": 2}
    assert report.examples["unknown action"] == "e.jsonl:3: action_name: expected one that is known, got 'scroll'"


def test_the_same_action_at_another_time_counts_again(tmp_path: Path) -> None:
    lines, _ = read(tmp_path, [query()], [event("a", "add_to_cart", 1), event("a", "add_to_cart", 2)])
    assert [(line["action"], line["item"]) for line in lines[1:]] == [("cart", "a"), ("cart", "a")]
    assert lines[1]["id"] != lines[2]["id"]


def test_actions_can_be_mapped_by_the_caller(tmp_path: Path) -> None:
    actions = {"open": "click", "purchase": "paid", "click": ""}
    lines, report = read(tmp_path, [query()], [event("a", "open"), event("b", "purchase"), event("c")], actions=actions)
    assert lines[1]["clicks"] == ["a"]
    assert (lines[2]["action"], lines[2]["item"]) == ("paid", "b")
    assert report.dropped == {"not a choice": 1}
    assert set(ACTIONS) >= {"click_through", "add_to_cart", "click", "watch", "view", "purchase", "impression"}


def impression(item: str, position: Any, second: int = 1, **more: Any) -> Row:
    attributes = {"object": {"object_id": item}} | position
    return event(item, "impression", second, **more) | {"event_attributes": attributes}


def test_impressions_tell_what_a_query_without_hits_showed(tmp_path: Path) -> None:
    events = [
        impression("b", {}, 1),
        impression("a", {"rank": "nan"}, 2),
        impression("c", {"rank": 3}, 2),
        impression("e", {"position": {"ordinal": {"index": 1}}}, 4),  # UBI 1.2
        impression("d", {"position": {"ordinal": 2}}, 3),  # UBI 1.3
        impression("f", {"rank": 0}, 5),
        impression("f", {"rank": 0}, 6),
        event("c", second=7),
        event("z", second=8),
    ]
    for q in (query(hits=None), query(hits=[]), query(hits=[None])):
        lines, report = read(tmp_path, [q], events)
        assert lines[0]["shown"] == lines[0]["candidates"] == ["f", "e", "d", "c", "b", "a"]
        assert clicks_of(lines) == {"q1": ["c"]}
        assert report.used == {"queries": 1, "events": 7}
        assert report.dropped == {"same item again": 1, "item not in the response": 1}
        assert not report.left_out
    # Where the hits are known, they are what was shown.
    lines, report = read(tmp_path, [query(hits=["z", "c"])], events)
    assert lines[0]["shown"] == ["z", "c"]
    assert clicks_of(lines) == {"q1": ["c", "z"]}
    assert report.dropped == {"not a choice": 7}


def test_the_tables_of_the_data_generator(tmp_path: Path) -> None:
    """ubi-data-generator --generate-csv writes neither hits nor anything nested."""
    q, e = tmp_path / "ubi_queries.csv", tmp_path / "ubi_events.csv"
    at = "2024-06-01T10:00:00.000Z"
    q.write_text(f"application,query_id,client_id,user_query,timestamp\nesci,q1,p1,toner,{at}\n")
    e.write_text(
        "object_id,rank,object_id_field,application,action_name,query_id,session_id,client_id,timestamp\n"
        + "".join(f"{item},{rank},product_id,esci,impression,q1,s1,p1,{at}\n" for rank, item in [(1, "B1"), (0, "B2")])
        + "B1,1,product_id,esci,click,q1,s1,p1,2024-06-01T10:00:01.234Z\n"
    )
    report = Report()
    lines = list(read_ubi(q, e, report))
    assert [line.get("shown") or line.get("clicks") for line in lines] == [["B2", "B1"], ["B1"]]
    assert lines[1]["time"] == "2024-06-01T10:00:01.234000Z"
    assert (report.used, report.dropped) == ({"queries": 1, "events": 3}, {})


def test_bad_rows_of_a_table(tmp_path: Path) -> None:
    q, e = dump(tmp_path / "q.jsonl", [query()]), tmp_path / "e.csv"
    good = b"a,click,q1,2024-06-01T10:00:01Z\n"
    long = b'"' + b"x" * 200_000 + b'",click,q1,2024-06-01T10:00:01Z\n'
    rows = [
        b"object_id,action_name,query_id,timestamp\n",
        b"\n",
        b"b,click\n",
        b"b,click,q1,2024-06-01,x\n",
        b"\xff,click,q1,x\n",
        long,
        good,
    ]
    e.write_bytes(b"".join(rows))
    report = Report()
    lines = list(read_ubi(q, e, report))
    assert clicks_of(lines) == {"q1": ["a"]}
    assert report.rows == {"queries": 1, "events": 5}
    assert report.dropped == {"unreadable line": 4}
    assert report.examples == {"unreadable line": "e.csv:3: row: expected 4 cells as in the first row, got 2"}
    for first, message in [
        (b"\xff,b\n", "e.csv:1: text: expected UTF-8"),
        (b"a,a\n", "first row: expected each name once"),
    ]:
        e.write_bytes(first + b"1,2\n")
        with pytest.raises(ValueError, match=message):
            list(read_ubi(q, e, Report()))


@pytest.mark.parametrize("name", ["gone.jsonl", "gone.csv"])
def test_a_file_that_is_not_there_raises(tmp_path: Path, name: str) -> None:
    here = dump(tmp_path / "q.jsonl", [query()])
    for q, e in ((tmp_path / name, here), (here, tmp_path / name)):
        with pytest.raises(FileNotFoundError, match="no such file"):
            list(read_ubi(q, e, Report()))


def at(minute: int, second: int = 0) -> str:
    return f"2024-06-01T{10 + minute // 60}:{minute % 60:02}:{second:02}Z"


def chains_of(lines: list[Row]) -> dict[str, tuple[list[str], list[str] | None]]:
    return {line["decision"]: (line["clicks"], line.get("chain")) for line in lines if "clicks" in line}


def test_queries_of_one_need_are_a_chain_where_asked(tmp_path: Path) -> None:
    queries = [
        query(1, ["a", "b"]),
        query(2, ["b", "c"], at(30)),
        query(3, ["c", "d"], at(60)),
        query(4, ["e"], at(90, 1)),
    ]
    events = [
        event("d", n=3, timestamp=at(61)),
        event("c", n=2, timestamp=at(31)),
        event("b", n=1, timestamp=at(31, 1)),
        event("c", n=3, timestamp=at(62)),
        event("d", "purchase", n=3, timestamp=at(63)),
        event("e", n=4, timestamp=at(91)),
    ]
    lines, report = read(tmp_path, queries, events, chains=True)
    assert [line["id"] for line in lines if line["kind"] == "decision"] == ["q1", "q2", "q3", "q4"]
    assert [line["kind"] for line in lines] == [*["decision"] * 3, *["feedback"] * 2, "decision", "feedback"]
    assert chains_of(lines) == {"q1": (["c", "b", "d"], ["q2", "q3"]), "q4": (["e"], None)}
    assert lines[3]["time"] == at(61)
    assert lines[4]["decision"] == "q3"
    assert report.dropped == {"same item again": 1}
    lines, report = read(tmp_path, queries, events)
    assert chains_of(lines) == {"q1": (["b"], None), "q2": (["c"], None), "q3": (["d", "c"], None), "q4": (["e"], None)}
    assert not report.dropped


@pytest.mark.parametrize(
    ("first", "second", "sessions", "together"),
    [
        ({}, {}, ("", ""), True),
        ({}, {}, ("s", "s"), True),
        ({}, {}, ("s", ""), True),
        ({}, {}, ("", "s"), True),
        ({}, {}, ("s", "t"), False),
        ({"session_id": "s"}, {"query_attributes": {"session_id": "s"}}, ("", ""), True),
        ({"session_id": "s"}, {"query_attributes": {"session_id": "t"}}, ("", ""), False),
        ({"session_id": "s"}, {"session_id": "t"}, ("u", "u"), False),
        ({"client_id": "p2"}, {}, ("s", "s"), False),
        ({"client_id": None}, {"client_id": None}, ("s", "s"), False),
        ({"client_id": ""}, {"client_id": ""}, ("s", "s"), False),
    ],
)
def test_who_has_one_need(tmp_path: Path, first: Row, second: Row, sessions: tuple[str, str], together: bool) -> None:
    queries = [query(1, **first), query(2, at=at(1), **second)]
    events = [event("a", n=1, session_id=sessions[0]), event("b", n=2, timestamp=at(2), session_id=sessions[1])]
    lines, _ = read(tmp_path, queries, events, chains=True)
    assert (chains_of(lines) == {"q1": (["a", "b"], ["q2"])}) is together
    assert (chains_of(lines) == {"q1": (["a"], None), "q2": (["b"], None)}) is not together


def test_a_session_that_ended_is_not_taken_up_through_one_that_is_unknown(tmp_path: Path) -> None:
    queries = [query(1, session_id="s"), query(2, at=at(1)), query(3, at=at(2), session_id="t")]
    lines, _ = read(tmp_path, queries, [event("a", n=n) for n in (1, 2, 3)], chains=True)
    assert chains_of(lines) == {"q1": (["a"], ["q2"]), "q3": (["a"], None)}


def test_of_two_rows_of_a_query_the_same_one_is_kept_whichever_comes_first(tmp_path: Path) -> None:
    """They differ in one thing at a time; a chain or the context shows which was kept."""
    for one in ({"session_id": "t"}, {"at": at(2)}, {"hits": ["x"]}, {"client_id": "p2"}, {"user_query": "x"}):
        rows = [query(1, session_id="s"), query(2, **one), query(2)]
        forth, _ = read(tmp_path, rows, [event("a"), event("a", n=2)], chains=True)
        back, _ = read(tmp_path, rows[::-1], [event("a"), event("a", n=2)], chains=True)
        assert forth == back


# -------------------------------------------------------------------------- properties

IDS = st.sampled_from(["q1", "q2", "q3", "", None, 4])
ITEMS = st.sampled_from(["a", "b", "c", "", None, 5])
TIMES = st.sampled_from([at(0), at(1), at(2), at(40), 1717236000000, "never", None])
GARBAGE = st.one_of(
    st.sampled_from(["{", "[]", "null", "\x00", '{"a":NaN}', '{"query_id":"q1","query_id":"q2"}', '{"index":{}}']),
    st.text(max_size=8).filter(lambda text: "\n" not in text and text.strip(" \t\r") != ""),
)
HITS = st.one_of(st.none(), st.lists(ITEMS, max_size=4), ITEMS)
QUERIES = st.fixed_dictionaries(
    {"query_id": IDS, "timestamp": TIMES, "query_response_hit_ids": HITS},
    optional={
        "client_id": st.sampled_from(["p1", "p1", "p2", None, 3]),
        "session_id": st.sampled_from(["s", "t", None]),
        "user_query": ITEMS,
        "query_attributes": st.dictionaries(st.sampled_from(["x", "query"]), ITEMS),
    },
)
EVENTS = st.builds(
    lambda action, query_id, time, item, place, session: {
        "action_name": action,
        "session_id": session,
        "query_id": query_id,
        "timestamp": time,
        "event_attributes": {"object": {"object_id": item}, "position": {"ordinal": place}},
    },
    st.sampled_from(["click", "click", "purchase", "impression", "view", "shrug", None]),
    IDS,
    TIMES,
    ITEMS,
    st.sampled_from([1, 2, {"index": 1}, None, "x"]),
    st.sampled_from(["s", "t", None]),
)
ROWS = st.lists(st.one_of(QUERIES, EVENTS, QUERIES, EVENTS, GARBAGE), max_size=12)
SECONDS = {at(0): 0, at(1): 60, at(2): 120, at(40): 2400, 1717236000000: 0}


def naive_clicks(queries: list[Any], events: list[Any], lines: list[Row]) -> dict[str, list[str]]:
    """The clicks of each query that was used, read off the rows with nothing of ours."""
    shown = {line["id"]: line["shown"] for line in lines if line["kind"] == "decision"}
    found: dict[str, list[str]] = {}
    rows = [row for row in events if isinstance(row, dict) and row.get("action_name") == "click"]
    rows = [row for row in rows if row["timestamp"] in SECONDS]
    pairs = [(SECONDS[row["timestamp"]], str(row["event_attributes"]["object"]["object_id"]), row) for row in rows]
    for _, item, row in sorted(pairs, key=lambda pair: pair[:2]):
        if item in shown.get(str(row["query_id"]), []) and item not in found.setdefault(str(row["query_id"]), []):
            found[str(row["query_id"])].append(item)
    return {query_id: items for query_id, items in found.items() if items}


@pytest.mark.slow
@given(ROWS, ROWS, st.booleans(), st.randoms(use_true_random=False))
def test_every_row_is_used_or_dropped(
    tmp_path_factory: pytest.TempPathFactory, queries: list[Any], events: list[Any], chains: bool, random: Any
) -> None:
    folder = tmp_path_factory.getbasetemp()
    lines, report = read(folder, queries, events, chains=chains)  # asserts rows = used + dropped
    assert report.rows["queries"] == len(queries)
    assert report.rows["events"] == len(events)
    decisions = {line["id"]: line for line in lines if line["kind"] == "decision"}
    feedback = [line for line in lines if line["kind"] == "feedback"]
    assert report.used["queries"] == len(decisions)
    assert len({line["id"] for line in lines}) == len(lines)
    told = sum(len(line["clicks"]) if "clicks" in line else 1 for line in feedback)
    assert told <= report.used["events"] <= told + sum(len(line["shown"]) for line in decisions.values())
    seen: set[str] = set()
    for line in lines:
        json.dumps(line, allow_nan=False)
        if line["kind"] == "decision":
            seen.add(line["id"])
            assert line["shown"]
            assert len(set(line["shown"])) == len(line["shown"])
        else:
            assert {line["decision"], *line.get("chain", [])} <= seen
            candidates = {item for d in (line["decision"], *line.get("chain", [])) for item in decisions[d]["shown"]}
            assert {*line.get("clicks", []), line.get("item")} - {None} <= candidates
    if not chains:
        assert clicks_of(lines) == naive_clicks(queries, events, lines)
    assert [line["time"] for line in decisions.values()] == sorted(
        line["time"] for line in decisions.values()
    ) or chains

    # The order of the rows says nothing, and a second copy of each changes nothing.
    random.shuffle(queries)
    random.shuffle(events)
    again, _ = read(folder, queries * 2, events * 2, chains=chains)
    assert again == lines


def test_every_reason_and_every_action_is_explained() -> None:
    page = (Path(__file__).resolve().parents[2] / "docs" / "ubi.md").read_text()
    source = Path(ubi.__file__).read_text()
    reasons = set(re.findall(r'(?:drop\(\s*|_leave_out\(|reason = |else )"([a-z_ ]+)"', source))
    assert len(reasons) == 18 + 3  # of rows, and of what rows had too much
    assert {reason for reason in reasons if f"`{reason}`" not in page} == set()
    assert {action for action in ACTIONS if f"`{action}`" not in page} == set()
