"""Ranking files: what is malformed is refused, with its file, line and field."""

import gzip
import math
import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heedful.data.letor import load_letor
from heedful.data.svmlight import MAX_FEATURES
from written import write

GOOD = "2 qid:1 1:0.5 3:1e-3 # good\n"
ABOUT_VALUE = "feature value: expected a finite number"
ABOUT_INDEX = "feature index: expected an integer 1 to 100000"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("5 qid:1 1:1", "grade: expected an integer 0 to 4, got '5'"),
        ("1.5 qid:1 1:1", "grade: expected an integer 0 to 4, got '1.5'"),
        ("qid:1 1:1", "grade: expected an integer 0 to 4, got 'qid:1'"),
        ("1\x0bqid:1 1:1", "grade: expected an integer 0 to 4, got '1\\x0bqid:1'"),
        ("٣ qid:1 1:1", "grade: expected an integer 0 to 4, got '٣'"),
        ("1 qid: 1:1", "qid: expected qid:ID, got 'qid:'"),
        ("1 qid:a\0 1:1", "qid: expected qid:ID, got 'qid:a\\x00'"),
        ("1 1:1", "qid: expected qid:ID as on the lines before, got none"),
        ("1 qid:1 1:abc", f"{ABOUT_VALUE}, got 'abc'"),
        ("1 qid:1 1:", f"{ABOUT_VALUE}, got ''"),
        ("1 qid:1 1:2:3", f"{ABOUT_VALUE}, got '2:3'"),
        ("1 qid:1 1:nan", f"{ABOUT_VALUE}, got 'nan'"),
        ("1 qid:1 1:inf", f"{ABOUT_VALUE}, got 'inf'"),
        ("1 qid:1 1:1 2:1e400 3:1", f"{ABOUT_VALUE}, got '1e400'"),
        ("1 qid:1 1:1\x0b", f"{ABOUT_VALUE}, got '1\\x0b'"),
        ("1 qid:1 1:0x1F", f"{ABOUT_VALUE}, got '0x1F'"),
        ("1 qid:1 1:1_0", f"{ABOUT_VALUE}, got '1_0'"),
        ("1 qid:1 1:.", f"{ABOUT_VALUE}, got '.'"),
        ("1 qid:1 1:1e", f"{ABOUT_VALUE}, got '1e'"),
        ("1 qid:1 1:٣", f"{ABOUT_VALUE}, got '٣'"),
        ("1 qid:1 1:" + "x" * 500, f"{ABOUT_VALUE}, got '" + "x" * 56 + "..."),
        ("1 qid:1 1 2", "feature: expected INDEX:VALUE, got '1'"),
        ("1 qid:1 0:1", f"{ABOUT_INDEX}, got '0'"),
        ("1 qid:1 +1:1", f"{ABOUT_INDEX}, got '+1'"),
        ("1 qid:1 1.0:1", f"{ABOUT_INDEX}, got '1.0'"),
        ("1 qid:1 1e0:1", f"{ABOUT_INDEX}, got '1e0'"),
        ("1 qid:1 sid:1", f"{ABOUT_INDEX}, got 'sid'"),
        (f"1 qid:1 {MAX_FEATURES + 1}:1", f"{ABOUT_INDEX}, got '100001'"),
        ("1 qid:1 2:1 2:1", "feature index: expected more than the 2 before it, got '2'"),
        ("1 qid:1 1:1 7:1 3:1", "feature index: expected more than the 7 before it, got '3'"),
    ],
)
def test_a_malformed_line_is_named(tmp_path: Path, line: str, message: str) -> None:
    path = write(tmp_path / "S1.txt.gz", gzip.compress(f"# heading\n\n{GOOD}{line}\n{GOOD}".encode()))
    with pytest.raises(ValueError) as error:
        load_letor(path)
    assert str(error.value) == f"S1.txt.gz:4: {message}"


ZIPPED = gzip.compress("".join(f"1 qid:1 1:{i}.{i * i}\n" for i in range(999)).encode(), mtime=0)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", r"a\.txt: documents: expected a line GRADE qid:ID INDEX:VALUE \.\.\., got none"),
        (b"\n \t\r\n# only words\n", r"a\.txt: documents: expected a line .*, got none"),
        (b"0 qid:1\n1 qid:1\n", r"a\.txt: features: expected at least one INDEX:VALUE, got none"),
        (
            b"1 qid:1 1:1\n1 qid:2 1:1\n0 qid:1 1:1\n",
            r"a\.txt:3: qid: expected a query's lines together, got '1' .*",
        ),
        (b"1 1:1\n1 qid:2 1:1\n", r"a\.txt:2: qid: expected none as on the lines before, got 'qid:2'"),
        (b"1 1:1\n", r"a\.txt: qid: expected .* counts in a\.txt\.query or a\.txt\.group, got neither"),
        (
            b"1 qid:1 1:1\n1 qid:1 1:1 # caf\xe9\n",
            r"a\.txt:2: text: expected UTF-8, got byte 0xe9 at byte 18 .*",
        ),
        ("1 qid:1 1:1\n".encode("utf-16"), r"a\.txt:1: text: expected UTF-8, got byte 0xff at byte 1 .*"),
        (b"\0\1\2\3", r"a\.txt:1: grade: expected an integer 0 to 4, got '\\x00\\x01\\x02\\x03'"),
        (ZIPPED[: len(ZIPPED) // 2], r"a\.txt: gzip: expected a whole stream, got Compressed file ended.*"),
        (ZIPPED[:-8] + b"12345678", r"a\.txt: gzip: expected a whole stream, got CRC check failed.*"),
        (ZIPPED + b"rubbish", r"a\.txt: gzip: expected a whole stream, got Not a gzipped file.*"),
    ],
)
def test_a_malformed_file_is_named(tmp_path: Path, content: bytes, message: str) -> None:
    with pytest.raises(ValueError) as error:
        load_letor(write(tmp_path / "a.txt", content))
    assert re.fullmatch(message, str(error.value))


@pytest.mark.parametrize(
    ("counts", "message"),
    [
        ("2\n\n2\n", "a.query: counts: expected a sum of 3, the rows of a, got 4 in 2 lines"),
        ("1\n1\n", "a.query: counts: expected a sum of 3, the rows of a, got 2 in 2 lines"),
        ("", "a.query: counts: expected a sum of 3, the rows of a, got 0 in 0 lines"),
        ("3\n0\n", "a.query:2: count: expected an integer from 1, got '0'"),
        ("1.5\n1.5\n", "a.query:1: count: expected an integer from 1, got '1.5'"),
        ("9" * 5000, "a.query:1: count: expected an integer from 1, got '" + "9" * 56 + "..."),
    ],
)
def test_counts_that_do_not_fit_are_named(tmp_path: Path, counts: str, message: str) -> None:
    write(tmp_path / "a.query", counts)
    with pytest.raises(ValueError) as error:
        load_letor(write(tmp_path / "a", "1 1:1\n0 1:2\n0 1:3\n"))
    assert str(error.value) == message


def test_an_index_above_n_features_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "a", GOOD)
    assert load_letor(path, n_features=3).X.tolist() == [[0.5, 0.0, 1e-3]]
    with pytest.raises(ValueError, match=r"^a:1: feature index: expected an integer 1 to 2, got '3'$"):
        load_letor(path, n_features=2)


def test_arguments_that_make_no_sense_are_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "a", GOOD)
    with pytest.raises(ValueError, match="paths: expected at least one file, got none"):
        load_letor()
    with pytest.raises(ValueError, match=r"n_features: expected 0 .* to 100000, got -1"):
        load_letor(path, n_features=-1)


def test_a_missing_file_is_named_with_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"none\.txt: no such file; nothing is fetched: put it there"):
        load_letor(tmp_path / "none.txt")


def naive_row(line: str) -> list[float] | None:
    """Return the two features of a line with a qid, [] for no document, None for a malformed one."""
    body = line.removesuffix("\n").removesuffix("\r").split("#")[0].strip(" \t")
    if body == "":
        return []
    fields = [field for field in body.replace("\t", " ").split(" ") if field]
    if fields[0] not in list("01234") or len(fields) < 2 or not fields[1].startswith("qid:"):
        return None
    if len(fields[1]) < 5 or any(letter.isspace() for letter in fields[1]):
        return None
    row, before = [0.0, 0.0], 0
    for field in fields[2:]:
        parts = field.split(":")
        if len(parts) != 2 or not set(parts[0]) <= set("0123456789") or not 0 < len(parts[0]) < 10:
            return None
        if not before < int(parts[0]) <= 2 or not set(parts[1]) <= set("0123456789.eE+-"):
            return None
        try:
            row[int(parts[0]) - 1] = float(parts[1])
        except ValueError:
            return None
        before = int(parts[0])
    return row if all(map(math.isfinite, row)) else None


EDITS = st.lists(
    st.tuples(st.integers(0, 40), st.integers(0, 2), st.sampled_from([*"0123:::.eE+-qid# _xna,\t\r\x0b\xa0", ""])),
    max_size=4,
)


@settings(deadline=None)
@given(line=st.sampled_from(["1 qid:8 1:0.5 2:-3e2 # c", "0 qid:8 1:.5\t2:7.\r", "3 qid:8 2:12"]), edits=EDITS)
def test_accepted_if_and_only_if_well_formed(
    tmp_path_factory: pytest.TempPathFactory, line: str, edits: list[tuple[int, int, str]]
) -> None:
    for at, dropped, letter in edits:
        line = line[:at] + letter + line[at + dropped :]
    path = tmp_path_factory.getbasetemp() / "edited.txt"
    write(path, f"0 qid:before 1:1\n{line}\n")
    row = naive_row(line)
    if row is not None:
        assert load_letor(path, n_features=2).X.tolist() == [[1.0, 0.0], *([row] if row else [])]
        return
    with pytest.raises(ValueError) as error:
        load_letor(path, n_features=2)
    told = re.fullmatch(r"edited\.txt:2: ([a-z ]+): expected .+, got (.+)", str(error.value))
    assert told
    if told[1] == "feature value":  # it must not be the field that is named for want of another
        value = told[2][1:-1]
        assert naive_row(f"0 qid:1 1:{value}") is None
