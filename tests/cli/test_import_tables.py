"""`heedful import` of a table of ratings into a loop that learns them, and of events that look like a table."""

from __future__ import annotations

from pathlib import Path

import pytest
from command import heedful

from heedful import Loop

RATINGS = "userId,movieId,rating\nann,tea,4\nann,milk,2.5\nbob,tea,5\nbob,soup,9\n"


pytestmark = pytest.mark.usefixtures("folder")


def test_a_table_of_ratings_is_learned(folder: Path) -> None:
    assert heedful("init films --ratings 1..5").code == 0
    (folder / "ratings.csv").write_text(RATINGS)
    got = heedful("import films ratings.csv --json")
    assert (got.code, got.json["counts"]["item"]["applied"]) == (1, 3)
    assert got.json["counts"]["feedback"] == {"applied": 3, "duplicate": 0, "rejected": 1}
    assert got.json["lessons"] == {"feedback": 3, "moved": 3}
    again = heedful("import films ratings.csv --json").json
    assert again["counts"]["feedback"] == {"applied": 0, "duplicate": 3, "rejected": 1}
    assert again["version"] == got.json["version"]
    with Loop.open("films.heedful") as loop:
        assert set(loop.items) == {"milk", "soup", "tea"}
        assert loop.decide(person="ann").shown == ("soup",)  # what she has rated is not shown again
    (folder / "odd.csv").write_text("a,b,c\nann,tea,0\nann,cake,3\nbob,milk,5\n")
    got = heedful("import films odd.csv --column person=a --column item=b --column rating=c")
    assert (got.code, "--missing 0 if it stands for none" in got.err) == (2, True)
    got = heedful("import films odd.csv --column person=a --column item=b --column rating=c --missing 0 --json")
    assert (got.code, got.json["counts"]["feedback"]["applied"]) == (0, 2)


def test_events_are_events_still(folder: Path) -> None:
    assert heedful("init films --ratings 1..5").code == 0
    (folder / "list.json").write_text('[{"kind": "item", "id": "NA"},\n{"kind": "withdraw", "id": "NA"}]')
    assert heedful("import films list.json --json").json["counts"]["withdraw"]["applied"] == 1
    (folder / "more.jsonl").write_text('{"kind": "item", "id": "a"}\n{"kind": "nothing"}\n')
    got = heedful("import films more.jsonl --json")
    assert (got.code, got.json["counts"]["item"]["applied"]) == (1, 1)
