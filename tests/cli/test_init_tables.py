"""`heedful init` on tables with lists of words, with thousands of columns, and with a row that is their sum."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from command import heedful

from heedful import Loop
from heedful.features import infer

WORDS = ["wifi", "sauna", "bath", "lift", "cat"]
FLATS: list[dict[str, Any]] = [
    {"id": f"f{i}", "price": 300 + i, "amenities": [WORDS[i % 5], WORDS[(2 * i + 1) % 5]]} for i in range(30)
]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_each_word_of_a_column_of_lists_is_a_feature(folder: Path) -> None:
    encoding = infer(FLATS)
    assert [name for name in encoding.names if "=" in name] == [f"amenities={word}" for word in sorted(WORDS)]
    at = encoding.places["amenities"].start
    flat = {"id": "x", "price": 300, "amenities": ["wifi", "bath", "wifi", "pool"]}
    want = [float(word in ("wifi", "bath")) for word in sorted(WORDS)]
    assert encoding.encode(flat)[at : at + 5].tolist() == want
    assert encoding.encode(flat | {"amenities": []})[at : at + 5].tolist() == [0.0] * 5
    assert encoding.encode(flat | {"amenities": "lift"})[at + 2] == 1.0
    with pytest.raises(ValueError, match=r"^amenities: expected a text, got \[\{\}\]$"):
        encoding.encode(flat | {"amenities": [{}]})
    [told] = [each for each in encoding.describe() if each.column == "amenities"]
    assert (told.kind, told.why) == ("category", "lists of 5 different words")
    (folder / "flats.jsonl").write_text("\n".join(map(json.dumps, FLATS)))
    assert heedful("init flats flats.jsonl").code == 0
    with Loop.open("flats.heedful") as loop:
        assert loop.decide([flat, {"id": "y", "price": 1, "amenities": ["cat"]}]).shown
    rare = [{"id": f"f{i}", "n": i, "tags": [f"t{i}", f"u{i}"]} for i in range(9)]
    [told] = [each for each in infer(rare).describe() if each.column == "tags"]
    assert (told.kind, told.why) == ("ignored", "lists of 18 different words, and too few repeat")


def test_thousands_of_columns_are_summed_up(folder: Path) -> None:
    names = [f"c{k}" for k in range(200)]
    rows = [",".join(["id", *names])] + [",".join([f"i{i}", *(str((i * k) % 7) for k in range(200))]) for i in range(5)]
    (folder / "wide.csv").write_text("\n".join(rows))
    got = heedful("init wide wide.csv")
    assert got.code == 0
    assert len(got.out.splitlines()) < 60
    assert "and 161 more columns: 138 number, 23 ignored" in got.out


def test_a_last_row_that_is_the_sum_is_asked_about(folder: Path) -> None:
    (folder / "total.csv").write_text("name,price,rooms\nada,10,2\nbob,12,3\ncid,9,1\nTotal,31,6\n")
    got = heedful("init flats total.csv")
    assert (got.code, got.out) == (2, "")
    assert (
        "total.csv:5: expected an item, got Total, the sum of the rows above it: leave it out, such as by " in got.err
    )
    assert "head -n -1 total.csv > total-items.csv" in got.err
    (folder / "no-total.csv").write_text("name,price,rooms\nada,10,2\nbob,12,3\ncid,22,5\n")
    got = heedful("init flats no-total.csv")
    assert (
        got.code,
        "no-total.csv: the last row, cid, has the sum of the rows above it in each column" in got.err,
    ) == (0, True)
    (folder / "new.csv").write_text("name,price,rooms\neve,1,2\nfay,2,3\nSum,3,5\n")
    got = heedful("import flats new.csv")
    assert (got.code, "new.csv:4: expected an item, got Sum" in got.err) == (2, True)
