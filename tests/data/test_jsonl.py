"""JSON lines: every line is its object or a sentence about it, whatever the bytes are."""

from __future__ import annotations

import gzip
import json
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heedful.data import jsonl
from heedful.data.jsonl import Line, read_lines


def write(folder: Path, content: bytes, zipped: bool = False) -> Path:
    path = folder / "log.jsonl"
    path.write_bytes(gzip.compress(content) if zipped else content)
    return path


GOOD = b'{"kind": "undo", "id": "u1", "event": "e1"}'
WHOLE = "json: expected a whole line of JSON, got one that ends early or has half a surrogate pair"

BAD = [
    (b'{"a":"\xff"}', "text: expected UTF-8, got byte 0xff at byte 7 of the line"),
    (b'\xff{"a":1}', "text: expected UTF-8, got byte 0xff at byte 1 of the line"),
    (b'{"\xed\xa0\x80":1}', "text: expected UTF-8, got byte 0xed at byte 3 of the line"),
    (b'{"a":1', WHOLE),
    (b'{"a":"\\ud800"}', WHOLE),
    (b'{"a":1} {"b":2}', "json: expected JSON, got trailing characters at byte 10: '\"b\":2}'"),
    (b'{"a":1,}', "json: expected JSON, got trailing comma in object at byte 8: '}'"),
    (b"{'a':1}", "json: expected JSON, got a key without double quotes at byte 2: \"'a':1}\""),
    (b"{a:1}", "json: expected JSON, got a key without double quotes at byte 2: 'a:1}'"),
    (b"\0", "json: expected JSON, got invalid character at byte 1: '\\x00'"),
    (b'{"a":"\x01"}', "json: expected JSON, got invalid character at byte 7: '\\x01\"}'"),
    (b'{"a":"\\x41"}', "json: expected JSON, got invalid escape character in string at byte 9: '41\"}'"),
    (b'{"a":01}', "json: expected JSON, got invalid number at byte 7: '1}'"),
    (b'{"a":NaN}', "json: expected JSON, got invalid character at byte 6: 'NaN}'"),
    (b'{"a":Infinity}', "json: expected JSON, got invalid character at byte 6: 'Infinity}'"),
    (b'{"a":1e999}', "number: expected one that a double can hold, got a larger one"),
    (b'{"a":-1e999}', "number: expected one that a double can hold, got a larger one"),
    (b"[1, 2]", "line: expected one JSON object, got [1, 2]"),
    (b"null", "line: expected one JSON object, got None"),
    (b'"text"', "line: expected one JSON object, got 'text'"),
    (b'{"a":1,"a":2}', "key: expected each once, got 'a' twice"),
    (b'{"a":1,"a":1}', "key: expected each once, got 'a' twice"),
    (b'{"a":1,"a" :2}', "key: expected each once, got 'a' twice"),
    (b'{"a":1,"a"\t:2}', "key: expected each once, got 'a' twice"),
    (b'{"a":1,"a"\r:2}', "key: expected each once, got 'a' twice"),
    (b'{"a":1,"\\u0061":2}', "key: expected each once, got 'a' twice"),
    (b'{"x":[{"a":1,"b":{"c":1,"c":2}}]}', "key: expected each once, got 'c' twice"),
    (b'{"a" :1,"b":2,"b":3,"c":"\\":"}', "key: expected each once, got 'b' twice"),
    (b'{"a":' + b"[" * 64 + b"]" * 64 + b"}", "json: expected at most 64 levels, got more"),
    (b'{"a":' * 65 + b"1" + b"}" * 65, "json: expected at most 64 levels, got more"),
    (b'{"a":' * 100_000, "json: expected at most 64 levels, got more"),
]


@pytest.mark.parametrize(("text", "message"), BAD, ids=range(len(BAD)))
@pytest.mark.parametrize("zipped", [False, True])
def test_a_bad_line_is_told_and_the_others_are_read(tmp_path: Path, text: bytes, message: str, zipped: bool) -> None:
    path = write(tmp_path, GOOD + b"\n" + text + b"\n\n" + GOOD, zipped)
    first, bad, last = read_lines(path)
    assert first[:3] == (1, json.loads(GOOD), None)
    assert bad[:3] == (2, None, f"log.jsonl:2: {message}")
    assert last[:3] == (4, json.loads(GOOD), None)
    assert [first.size, last.size] == [len(GOOD)] * 2


@pytest.mark.parametrize(
    "text",
    [
        b'{"a":' + b"[" * 63 + b"]" * 63 + b"}",
        b'{"a":' * 64 + b"1" + b"}" * 64,
        b'{"a":"' + b"[{" * 200 + b'"}',
        b'{"a":":","b":"\\":","c":{"a":1},"d":[{"a":1},{"a":1}]}',
        b' \t{ "a" : "x:y" , "b":": :" } ',
        b'{"a":123456789012345678901234567890,"":0.5,"e":1e-999}',
        '{"ключ":"😀","b":"\\ud83d\\ude00"}'.encode(),
        b"{}",
    ],
)
def test_what_is_an_object_is_read(tmp_path: Path, text: bytes) -> None:
    for content in (text, text + b"\r\n", b"\xef\xbb\xbf" + text):
        assert list(read_lines(write(tmp_path, content))) == [Line(1, json.loads(text), None, len(text.rstrip()))]


def test_a_byte_order_mark_belongs_at_the_beginning_only(tmp_path: Path) -> None:
    [line] = read_lines(write(tmp_path, b"\n\xef\xbb\xbf{}"))
    assert (line.number, line.record) == (2, None)


@pytest.mark.parametrize("content", [b"", b"\n", b" \t\r\n\n  ", b"\xef\xbb\xbf", b"\xef\xbb\xbf\n"])
def test_blank_lines_are_skipped(tmp_path: Path, content: bytes) -> None:
    assert list(read_lines(write(tmp_path, content))) == []


@pytest.mark.parametrize("end", [b"\n", b""])
def test_the_longest_line(tmp_path: Path, end: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jsonl, "MAX_BYTES", 100)
    fits = b'{"a":"%s"}' % (b"x" * (92 - len(end))) + end
    assert len(fits) == 100
    too_long = b'{"a":"%s"}' % (b"x" * 93) + end
    assert [line.error for line in read_lines(write(tmp_path, fits))] == [None]
    [line] = read_lines(write(tmp_path, too_long))
    assert line[:3] == (1, None, "log.jsonl:1: line: expected at most 100 bytes, got more")
    huge = b"x" * 300_000 + b"\n" + fits
    assert [(line.number, line.error is None) for line in read_lines(write(tmp_path, huge))] == [(1, False), (2, True)]
    # Ends exactly where the reading was cut: the line after it is not swallowed.
    cut = b"y" * 100 + b"\n" + fits
    assert [(line.number, line.error is None) for line in read_lines(write(tmp_path, cut))] == [(1, False), (2, True)]


@pytest.mark.slow
def test_a_line_over_sixteen_megabytes_is_refused_in_memory_for_one(tmp_path: Path) -> None:
    path = write(tmp_path, b'{"a":"' + b"x" * (64 * 2**20) + b'"}\n' + GOOD + b"\n")
    tracemalloc.start()
    try:
        long, good = read_lines(path)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert long.error == "log.jsonl:1: line: expected at most 16777216 bytes, got more"
    assert good.record == json.loads(GOOD)
    assert peak < 50 * 2**20


@pytest.mark.slow
def test_memory_does_not_grow_with_the_file(tmp_path: Path) -> None:
    path = write(tmp_path, (GOOD + b"\n") * 50_000)
    tracemalloc.start()
    try:
        assert sum(line.error is None for line in read_lines(path)) == 50_000
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 2**20


def test_a_file_that_cannot_be_read_raises(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="no such file"):
        list(read_lines(tmp_path / "none.jsonl"))
    with pytest.raises(IsADirectoryError, match="expected a file, got a folder"):
        list(read_lines(tmp_path))
    path = write(tmp_path, b"")
    path.write_bytes(gzip.compress(GOOD * 10_000, mtime=0)[:-12])
    with pytest.raises(ValueError, match="gzip: expected a whole stream"):
        list(read_lines(str(path)))


def oracle(text: str) -> Any:
    """What the standard library makes of a line, strictly; None where it is no object of ours."""

    def pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
        if len({key for key, _ in items}) < len(items):
            raise ValueError
        return dict(items)

    def refuse(constant: str) -> None:
        raise ValueError(constant)

    try:
        found = json.loads(text, object_pairs_hook=pairs, parse_constant=refuse)
        found_again = json.dumps(found, allow_nan=False, ensure_ascii=False).encode()  # no infinities, no surrogates
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) and found_again else None


PIECES = st.sampled_from(
    [
        *'{}[]:,"\\ \t\r\x00é',
        '"a"',
        '"b"',
        '"\\":"',
        '":"',
        '"\\u0061"',
        '"\\ud800"',
        "1",
        "-0",
        "1e400",
        "01",
        "NaN",
        "-Infinity",
        "null",
        "true",
    ]
)
KEYS = st.sampled_from(["a", "b", ":", '":', "é"])
VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), KEYS),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.lists(st.tuples(KEYS, inner), max_size=3).map(tuple)),
    max_leaves=8,
)


def written(value: Any, draw: Any) -> str:
    """A value as JSON; a tuple of pairs is an object that may name a key twice. Space is put in at random."""
    space = draw(st.sampled_from(["", "", " ", "\t", "\r"]))
    if isinstance(value, tuple):
        pairs = [f"{json.dumps(k, ensure_ascii=draw(st.booleans()))}{space}:{written(v, draw)}" for k, v in value]
        return "{" + ",".join(pairs) + "}"
    if isinstance(value, list):
        return "[" + ",".join(written(v, draw) for v in value) + "]"
    return json.dumps(value)


@st.composite
def texts(draw: Any) -> str:
    if draw(st.booleans()):
        return "".join(draw(st.lists(PIECES, max_size=14)))
    return written(draw(st.lists(st.tuples(KEYS, VALUES), max_size=4).map(tuple)), draw)


@pytest.mark.slow
@given(st.lists(texts(), max_size=4))
def test_a_line_is_an_object_exactly_when_the_standard_library_says_so(
    tmp_path_factory: pytest.TempPathFactory, several: list[str]
) -> None:
    path = write(tmp_path_factory.getbasetemp(), "\n".join(several).encode())
    expected = [(n, oracle(text)) for n, text in enumerate(several, 1) if not text.encode().isspace() and text]
    assert [(line.number, line.record) for line in read_lines(path)] == expected


@given(st.binary(max_size=200))
def test_no_bytes_raise(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    path = write(tmp_path_factory.getbasetemp(), b"\n" + content)
    for line in read_lines(path):
        assert (line.record is None) != (line.error is None)
        assert line.error is None or line.error.startswith(f"log.jsonl:{line.number}: ")
