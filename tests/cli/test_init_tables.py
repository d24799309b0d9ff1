"""`heedful init` on a table with a column of lists of words: what becomes of each word."""

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


pytestmark = pytest.mark.usefixtures("folder")


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
