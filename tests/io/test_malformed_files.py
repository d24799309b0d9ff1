"""Malformed files of each format that is imported: each named by its place, the field, what was expected and what came,
and nothing is written.

A file of a format of others is refused as a whole. Of heedful's own lines and of UBI each malformed line is rejected,
or counted; more lines of theirs are in test_exchange.py and data/test_ubi.py, what a line of JSON may be in
data/test_jsonl.py, and what a table may be in data/test_table.py.
"""

from __future__ import annotations

import datetime
import gzip
import json
import re
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from heedful import TEXTS, Loop, Settings
from heedful.data.jsonl import Line, read_lines
from heedful.data.row_report import Report
from heedful.data.table import read_records
from heedful.data.ubi import read_ubi
from heedful.io import import_lines
from heedful.io.formats import FORMATS

PAIR: dict[str, Any] = {"prompt": "?", "chosen": "a", "rejected": "b"}
LABELLED: dict[str, Any] = {"prompt": "?", "completion": "a", "label": True}
SCORE: dict[str, Any] = {
    "id": "s1", "name": "helpful", "value": True, "dataType": "BOOLEAN", "source": "ANNOTATION",
    "timestamp": "2026-06-15T11:00:00Z", "subject": {"kind": "trace", "id": "d"},
}  # fmt: skip
OUTPUT: dict[str, Any] = {"id": "d", "input": "?", "output": "a"}
DECISION: dict[str, Any] = {"kind": "decision", "id": "d", "candidates": [{"id": "a", "text": "a"}], "shown": ["a"]}
QUERY: dict[str, Any] = {"query_id": "q", "timestamp": "2026-06-15T11:00:00Z", "query_response_hit_ids": ["a"]}
GOOD = {"preference-data": PAIR, "unpaired": LABELLED, "langfuse": SCORE, "traces": OUTPUT}
"""A row of each format of others, and of the outputs that scores of Langfuse are about."""
NAMED = re.compile(r"^bad(:\d+| ?: (data )?record \d+|: row \d+)?: [^:]+(\.\w+|\[\d+\])*: expected .+, got .+")
"""How a message names what is malformed."""

DOCUMENT = ": json: expected one JSON document, got "
EMPTY, CSV, GZIP = (
    ": content: expected records, got ",
    "text: expected CSV in UTF-8, got ",
    ": gzip: expected a whole stream, got ",
)
HALF = "json: expected a whole line of JSON, got one that ends early or has half a surrogate pair"
Content = str | bytes | Callable[[bytes], bytes]
BROKEN: list[tuple[str, Content, str]] = [
    # case, the file with @ for a good line (or a function of one), how the message goes on after the name of the file
    ("empty", "", f"{EMPTY}an empty file"),
    ("blank", " \n\n", f"{EMPTY}an empty file"),
    ("only a byte order mark", b"\xef\xbb\xbf", f"{EMPTY}an empty file"),
    ("gzip of nothing", gzip.compress(b"", mtime=0), f"{EMPTY}an empty file"),
    ("an empty list", "[]", f"{EMPTY}none"),
    ("an empty list inside", '{"data": []}', f"{EMPTY}none"),
    ("a list cut off", "[\n@,\n", f"{DOCUMENT}one that ends early, in line 3"),
    ("more after a list", "[@]\n\nx", f"{DOCUMENT}trailing characters in line 3"),
    ("two lists", "[@]\n[@]", f"{DOCUMENT}trailing characters in line 2"),
    ("a comma too many", "[@,\n]", f"{DOCUMENT}trailing comma in array in line 2"),
    ("NaN in a list", '[@,\n{"a": NaN}]', f"{DOCUMENT}invalid character in line 2"),
    ("a number too large in a list", '[{"a": 1e999}]', f"{DOCUMENT}Number out of range - at `$[0]"),
    ("a key twice in a list", '[{"a": 1, "a": 2}]', f"{DOCUMENT}a key twice: 'a'"),
    ("half a pair in a list", '[{"a": "\\ud800"}]', f"{DOCUMENT}half a surrogate pair in a text"),
    ("no UTF-8 in a list", b'[@,\n"\xff"]', ": text: expected UTF-8, got byte 0xff in line 2"),
    ("too deep a list", "[" * 100_000, ": json: expected at most some hundred levels, got more"),
    ("a number in a list", "[@, 1]", ": record 2: expected an object, got 1"),
    ("a list in a list", "[[]]", ": record 1: expected an object, got []"),
    ("null in a list", "[null]", ": record 1: expected an object, got None"),
    ("a number in a list inside", '{"data": [1]}', ":1: data record 1: expected an object, got 1"),
    (
        "another list inside",
        '{"rows": [],\n"a": 1}',
        ": data: expected a list of records in it, got the fields a, rows",
    ),
    ("a number inside", '{"data": 1,\n"a": 1}', ": data: expected a list of records in it, got data 1"),
    ("an object inside", '{"data": {"a": 1},\n"a": 1}', ": data: expected a list of records in it, got data {'a': 1}"),
    ("a text", '"a"', ": rows: expected at least one below the header, got none"),
    ("a number", "3", ":1: header: expected names of columns, got '3'"),
    ("null", "null", ":1: header: expected names of columns, got 'null'"),
    ("UTF-16", lambda good: good.decode().encode("utf-16"), f": {CSV}UTF-16"),
    ("UTF-16 without its mark", lambda good: good.decode().encode("utf-16-be"), f":1: {CSV}a zero byte"),
    ("a spreadsheet", b"PK\x03\x04" + bytes(50), f": {CSV}a spreadsheet or a zip"),
    ("an old spreadsheet", b"\xd0\xcf\x11\xe0" + bytes(50), f": {CSV}an old spreadsheet"),
    ("a picture", b"\x89PNG\r\n\x1a\n\0\0", ":1: text: expected UTF-8, got byte 0x89 at byte 1"),
    ("gzip cut off", lambda good: gzip.compress(good * 9)[:-9], f"{GZIP}Compressed file ended"),
    ("no gzip", b"\x1f\x8b" + bytes(20), f"{GZIP}Unknown compression"),
    ("gzip with another sum", lambda good: gzip.compress(good)[:-8] + bytes(8), f"{GZIP}CRC check failed"),
    ("more after gzip", lambda good: gzip.compress(good + b"\n") + b"x", f"{GZIP}Not a gzipped file"),
    ("a line cut off", lambda good: good + b"\n" + good[:20], f":2: {HALF}"),
    ("a number in a line", "@\n3", ":2: line: expected one JSON object, got 3"),
    ("NaN in a line", '@\n\n{"a": NaN}', ":3: json: expected JSON, got invalid character at byte 7: 'NaN}'"),
    ("lines that end in \\r", "@\r@", ":1: json: expected JSON, got trailing characters at byte"),
    ("no UTF-8 in a line", b'@\n{"a": "\xff"}', ":2: text: expected UTF-8, got byte 0xff at byte 8 of the line"),
]


def filled(content: Content, row: dict[str, Any]) -> bytes:
    """The bytes of a file, with the good line `row` in the places for it."""
    good = json.dumps(row).encode()
    if callable(content):
        return content(good)
    return (content.encode() if isinstance(content, str) else content).replace(b"@", good)


def long(name: str) -> str:
    return f"{name}: expected 1 to 200 printable characters, got "


ANSWER, NAME = "expected a text, or a list of messages, got ", "expected a text or a whole number, got "
PAIRS = "columns: expected prompt, chosen, rejected, or completions with scores, got "
MESSAGE, PARTS = 'expected a message, {"role", "content"}, got ', "expected a text, or a list of parts, got "
TYPES = "dataType: expected NUMERIC, BOOLEAN, CATEGORICAL, TEXT, CORRECTION, got "
SOURCES = "source: expected API, ANNOTATION or EVAL, got "
SUBJECT = "subject: expected an object of kind trace, observation, session, experiment, got "
TIME = "expected a time such as 2026-01-31T12:00:00Z, got "


def without(row: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name not in names}


def said(**more: Any) -> dict[str, Any]:
    """A message, changed."""
    return {"role": "user", "content": "a"} | more


ROWS: dict[str, list[tuple[dict[str, Any], str]]] = {
    "preference-data": [
        ({}, f"{PAIRS}none"),
        (without(PAIR, "rejected"), f"{PAIRS}prompt, chosen"),
        (without(PAIR, "chosen"), f"{PAIRS}prompt, rejected"),
        (LABELLED, f"{PAIRS}prompt, completion, label"),
        ({"kind": "item", "id": "a"}, f"{PAIRS}kind, id"),
        (PAIR | {"chosen": 1}, f"chosen: {ANSWER}1"),
        (PAIR | {"chosen": True}, f"chosen: {ANSWER}True"),
        (PAIR | {"rejected": {"text": "b"}}, f"rejected: {ANSWER}{{'text': 'b'}}"),
        (PAIR | {"chosen": [3]}, f"chosen[0]: {MESSAGE}3"),
        (PAIR | {"chosen": [said(), {"content": "a"}]}, f"chosen[1]: {MESSAGE}{{'content': 'a'}}"),
        (PAIR | {"rejected": [{"role": "user"}]}, f"rejected[0]: {MESSAGE}{{'role': 'user'}}"),
        (PAIR | {"chosen": [said(role=1)]}, f"chosen[0]: {MESSAGE}{{'role': 1, "),
        (PAIR | {"chosen": [said(content=3)]}, f"chosen[0].content: {PARTS}3"),
        (PAIR | {"chosen": [said(content=["a"])]}, "chosen[0].content: expected parts that are objects, got 'a'"),
        (PAIR | {"prompt": 3}, f"prompt: {ANSWER}3"),
        (PAIR | {"prompt": ["a"]}, f"prompt[0]: {MESSAGE}'a'"),
        (PAIR | {"prompt": [said(content={})]}, f"prompt[0].content: {PARTS}{{}}"),
        (PAIR | {"id": 1.5}, f"id: {NAME}1.5"),
        (PAIR | {"id": True}, f"id: {NAME}True"),
        (PAIR | {"id": "x" * 201}, long("id")),
        (PAIR | {"id": "a\nb"}, long("id")),
        (PAIR | {"event": ["e"]}, f"event: {NAME}['e']"),
        (PAIR | {"decision": {}}, f"decision: {NAME}{{}}"),
        (PAIR | {"person": ["a"]}, f"person: {NAME}['a']"),
    ],
    "unpaired": [
        ({}, "columns: expected prompt, completion, label, got none"),
        (PAIR, "columns: expected prompt, completion, label, got prompt, chosen, rejected"),
        (without(LABELLED, "label"), "columns: expected prompt, completion, label, got prompt, completion"),
        (without(LABELLED, "completion"), "columns: expected prompt, completion, label, got prompt, label"),
        (LABELLED | {"completion": 3}, f"completion: {ANSWER}3"),
        (LABELLED | {"completion": [1]}, f"completion[0]: {MESSAGE}1"),
        (LABELLED | {"completion": [said(content=1)]}, f"completion[0].content: {PARTS}1"),
        (LABELLED | {"label": "good"}, "label: expected true or false, got 'good'"),
        (LABELLED | {"label": 2}, "label: expected true or false, got 2"),
        (LABELLED | {"label": -1}, "label: expected true or false, got -1"),
        (LABELLED | {"label": 0.5}, "label: expected true or false, got 0.5"),
        (LABELLED | {"label": [True]}, "label: expected true or false, got [True]"),
        (LABELLED | {"label": {}}, "label: expected true or false, got {}"),
        (LABELLED | {"label": ""}, "label: expected true or false, got ''"),
        (LABELLED | {"prompt": False}, f"prompt: {ANSWER}False"),
        (LABELLED | {"id": 1.5}, f"id: {NAME}1.5"),
        (LABELLED | {"person": "x" * 201}, long("person")),
    ],
    "langfuse": [
        ({}, "id: expected that of a score, got none"),
        (SCORE | {"id": ""}, "id: expected that of a score, got ''"),
        (SCORE | {"id": 3}, f"{long('id')}3"),
        (SCORE | {"id": "x" * 201}, long("id")),
        (SCORE | {"id": "a\nb"}, long("id")),
        (without(SCORE, "name"), "name: expected a text, got None"),
        (SCORE | {"name": 3}, "name: expected a text, got 3"),
        (without(SCORE, "dataType"), f"{TYPES}None"),
        (SCORE | {"dataType": "STARS"}, f"{TYPES}'STARS'"),
        (SCORE | {"dataType": 3}, f"{TYPES}3"),
        (without(SCORE, "source"), f"{SOURCES}None"),
        (SCORE | {"source": ""}, f"{SOURCES}''"),
        (SCORE | {"source": 1}, f"{SOURCES}1"),
        (without(SCORE, "subject"), "subject: expected what the score is attached to; ask for it with fields=subje"),
        (SCORE | {"subject": None}, f"{SUBJECT}None"),
        (SCORE | {"subject": "t1"}, f"{SUBJECT}'t1'"),
        (SCORE | {"subject": {"kind": "user", "id": "x"}}, f"{SUBJECT}{{'"),
        (SCORE | {"subject": {"id": "x"}}, f"{SUBJECT}{{'"),
        (SCORE | {"subject": {"kind": "trace"}}, "subject.id: expected an id, got None"),
        (SCORE | {"subject": {"kind": "trace", "id": 3}}, f"{long('id')}3"),
        (SCORE | {"subject": {"kind": "observation", "id": "o", "traceId": 3}}, f"{long('traceId')}3"),
        (without(SCORE, "subject") | {"traceId": None}, "traceId: expected what the score is attached to, got nothing"),
        (without(SCORE, "subject") | {"traceId": 3}, f"{long('traceId')}3"),
        (SCORE | {"value": "yes"}, "value: expected true or false with BOOLEAN, got 'yes'"),
        (SCORE | {"value": 2}, "value: expected true or false with BOOLEAN, got 2"),
        (SCORE | {"value": [True]}, "value: expected true or false with BOOLEAN, got [True]"),
        (SCORE | {"value": {}}, "value: expected true or false with BOOLEAN, got {}"),
        (SCORE | {"dataType": "NUMERIC", "value": "high"}, "value: expected a number with NUMERIC, got 'high'"),
        (SCORE | {"dataType": "NUMERIC", "value": True}, "value: expected a number with NUMERIC, got True"),
        (SCORE | {"dataType": "NUMERIC", "value": [1]}, "value: expected a number with NUMERIC, got [1]"),
        (SCORE | {"dataType": "CORRECTION", "value": 1}, "value: expected a text with CORRECTION, got 1"),
        (SCORE | {"dataType": "CORRECTION", "value": ["x"]}, "value: expected a text with CORRECTION, got ['x']"),
        (SCORE | {"dataType": "CATEGORICAL", "value": True}, "value: expected a text with CATEGORICAL, got True"),
        (SCORE | {"dataType": "TEXT", "value": {"a": 1}}, "value: expected a text with TEXT, got {'a': 1}"),
        (SCORE | {"timestamp": "yesterday"}, f"timestamp: {TIME}'yesterday'"),
        (SCORE | {"timestamp": 3}, f"timestamp: {TIME}3"),
        (PAIR, "id: expected that of a score, got none"),
    ],
    "traces": [
        ({"traceId": "t"}, "id: expected that of a trace or an observation, got None"),
        (without(OUTPUT, "input", "output"), "output: expected input and output (fields=core,basic,io), got neither"),
        (OUTPUT | {"id": 3}, f"{long('id')}3"),
        (OUTPUT | {"traceId": ["t"]}, f"{long('traceId')}['t']"),
        (OUTPUT | {"userId": 3}, f"{long('userId')}3"),
        (OUTPUT | {"startTime": "now"}, f"startTime: {TIME}'now'"),
    ],
}  # fmt: skip
"""Rows of each format that make a file malformed, and how the message goes on after the place."""


@pytest.fixture(scope="module")
def loop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Loop]:
    """A loop of texts with one decision, into which nothing is ever written."""
    path = tmp_path_factory.mktemp("malformed") / "a.heedful"
    with Loop.create(path, encoding=TEXTS, settings=Settings(k=1, control=0.0)) as made:
        made.decide([{"id": "a", "text": "a"}], id="d")
        yield made


def refusal(loop: Loop, tmp_path: Path, name: str, content: bytes) -> str:
    """The message with which a file of the format `name` is refused, after a good one; nothing is written."""
    bad, good = tmp_path / "bad", tmp_path / "good"
    bad.write_bytes(content)
    good.write_text(json.dumps(GOOD[name]))
    files, options = [good, bad], {}
    if name == "traces":
        good.write_text(json.dumps(SCORE))
        name, files, options = "langfuse", [good], {"traces": str(bad)}
    read, head = FORMATS[name].read, loop.projection.log.last()
    assert read is not None
    lines = (Line(1, each, None) for each in read(loop, files, Report(), options))
    with pytest.raises(ValueError) as error:
        next(import_lines(loop, lines))
    assert loop.projection.log.last() == head
    assert NAMED.match(str(error.value)), error.value
    assert "\n" not in str(error.value)
    return str(error.value).removeprefix("bad")


@pytest.mark.parametrize(("content", "message"), [case[1:] for case in BROKEN], ids=[case for case, _, _ in BROKEN])
def test_a_file_that_cannot_be_read_is_refused(tmp_path: Path, content: Content, message: str) -> None:
    bad = tmp_path / "bad"
    bad.write_bytes(filled(content, PAIR))
    with pytest.raises(ValueError) as error:
        list(read_records(bad))
    assert str(error.value).startswith(f"bad{message}")
    assert NAMED.match(str(error.value)), error.value
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("name", GOOD)
def test_each_format_refuses_what_cannot_be_read(loop: Loop, tmp_path: Path, name: str) -> None:
    assert refusal(loop, tmp_path, name, b"[]") == f"{EMPTY}none"


@pytest.mark.parametrize(("name", "row", "told"), [(name, *each) for name, rows in ROWS.items() for each in rows])
def test_a_row_of_another_form_makes_a_file_malformed(
    loop: Loop, tmp_path: Path, name: str, row: dict[str, Any], told: str
) -> None:
    content = f"@\n\n{json.dumps(row)}\n"
    assert refusal(loop, tmp_path, name, filled(content, GOOD[name])).startswith(f":3: {told}")


def test_a_table_of_other_columns_is_refused(loop: Loop, tmp_path: Path) -> None:
    for name, told in (
        (
            "preference-data",
            f"{PAIRS}question, answer",
        ),
        ("unpaired", "columns: expected prompt, completion, label, got question, answer"),
        ("langfuse", "id: expected that of a score, got none"),
        ("traces", "id: expected that of a trace or an observation, got None"),
    ):
        assert refusal(loop, tmp_path, name, b"question,answer\na,b\n").startswith(f":2: {told}")


# ---------------------------------------------------------------------------- Parquet


def parquet(path: Path, columns: dict[str, Any], **how: Any) -> bytes:
    pyarrow, writer = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    writer.write_table(pyarrow.table(columns), path, **how)
    return path.read_bytes()


def damaged(good: bytes) -> list[tuple[str, bytes, str]]:
    """Parquet files made of a good one that are none: (case, file, message)."""
    whole = ": content: expected a whole Parquet file, got "
    half = len(good) // 2
    return [
        ("four bytes", good[:4], f"{whole}Parquet file size is 4 bytes"),
        ("cut off at the beginning", good[:20], f"{whole}Parquet magic bytes not found in footer"),
        ("cut off in the middle", good[:half], f"{whole}Parquet magic bytes not found in footer"),
        ("a byte is missing", good[:-1], f"{whole}Parquet magic bytes not found in footer"),
        ("without its footer's length", good[:-8], f"{whole}Parquet magic bytes not found in footer"),
        ("another beginning", b"XXXX" + good[4:], ":"),
        ("a footer as large as nothing", good[:-8] + bytes(4) + good[-4:], f"{whole}Couldn't deserialize thrift"),
        ("too large a footer", good[:-8] + b"\xff\xff\xff\x7f" + good[-4:], f"{whole}Parquet file size is"),
        ("a footer of zeros", good[:half] + bytes(len(good) - half - 8) + good[-8:], f"{whole}Couldn't deserialize"),
        ("an encrypted footer", good[:-4] + b"PARE", f"{whole}"),
        ("more behind it", good + b"x", f"{whole}Parquet magic bytes not found in footer"),
        ("pages of other bytes", good[:4] + b"\xff" * 60 + good[64:], f"{whole}"),
        ("compressed as a whole, and cut off", gzip.compress(good)[:-20], ": gzip: expected a whole stream, got"),
    ]


def tables() -> list[tuple[str, dict[str, Any], str]]:
    """Parquet tables that are no preference data: (case, columns, message)."""
    pa = pytest.importorskip("pyarrow")
    two, message = ["a", "b"], pa.struct([("role", pa.string()), ("content", pa.string())])
    ends, letters = pa.py_buffer(struct.pack("<iii", 0, 1, 3)), pa.py_buffer(b"a\xffb")
    no_utf8 = pa.Array.from_buffers(pa.string(), 2, [None, ends, letters])

    def pair(**columns: Any) -> dict[str, Any]:
        return {"prompt": two, "chosen": two, "rejected": ["c", "d"]} | columns

    def answers(*values: Any, type: Any = None) -> dict[str, Any]:
        return pair(chosen=pa.array(values, type))

    missing = f": row 1: {PAIRS}"
    answer, in_answer = f": row 1: chosen: {ANSWER}", f": row 1: chosen[0]: {MESSAGE}"
    day = datetime.datetime(2026, 1, 31)
    return [
        ("no chosen", without(pair(), "chosen"), f"{missing}prompt, rejected"),
        ("days", answers(day.date(), day.date()), f"{answer}datetime.date(2026, 1, 31)"),
        ("bytes", answers(b"\xff", b"a"), f"{answer}b'\\xff'"),
        ("an object", answers({"text": "a"}, None), f"{answer}{{'text': 'a'}}"),
        ("pairs", answers([("role", "a")], None, type=pa.map_(pa.string(), pa.string())), f"{in_answer}('role', 'a')"),
        ("no message", answers([None], None, type=pa.list_(message)), f"{in_answer}None"),
        ("decisions that are times", pair(decision=pa.array([day, day])), f": row 1: decision: {NAME}datetime"),
        ("no UTF-8", pair(chosen=no_utf8), ": row 2: chosen: expected a text in UTF-8, got byte 0xff"),
    ]  # fmt: skip


def test_malformed_tables_of_parquet_are_refused(loop: Loop, tmp_path: Path) -> None:
    good = parquet(tmp_path / "p", {"prompt": ["?", "?"], "chosen": ["a", "b"], "rejected": ["c", "d"]})
    cases = damaged(good) + [(case, parquet(tmp_path / "p", columns), told) for case, columns, told in tables()]
    assert len({case for case, _, _ in cases}) == len(cases) >= 20
    for case, content, told in cases:
        assert refusal(loop, tmp_path, "preference-data", content).startswith(told), case


# ---------------------------------------------------------------------------- lines


def test_a_malformed_line_of_an_import_is_rejected(loop: Loop, tmp_path: Path) -> None:
    bad, head = tmp_path / "bad", loop.projection.log.last()
    bad.write_bytes(filled('@\n\n{"a": NaN}\n@', DECISION))
    outcomes = list(import_lines(loop, read_lines(bad)))
    assert loop.projection.log.last() == head  # the good line is in the loop already
    [rejected] = [outcome for outcome in outcomes if outcome.status != "duplicate"]
    assert (rejected.status, rejected.kind, rejected.line) == ("rejected", "line", 3)
    assert rejected.reason == "json: expected JSON, got invalid character at byte 7: 'NaN}'"


def test_a_malformed_line_of_ubi_is_counted(tmp_path: Path) -> None:
    bad, none, report = tmp_path / "bad", tmp_path / "none", Report()
    bad.write_bytes(filled('@\n\n{"a": NaN}\n@', QUERY))
    none.write_text("")
    lines = list(read_ubi(bad, none, report))
    assert dict(report.dropped) == {"unreadable line": 1, "repeated row": 1}
    assert report.examples["unreadable line"].startswith("bad:3: json: expected JSON, got invalid character at byte 7")
    assert len(lines) == report.used["queries"] == report.rows["queries"] - 2 == 1
