"""`heedful import` of tables: ratings into a loop that learns them, and items, which are put on offer."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command import heedful

from heedful import Loop

RATINGS = "userId,movieId,rating\nann,tea,4\nann,milk,2.5\nbob,tea,5\nbob,soup,9\n"
NEWS = "news_id,car_model,year\n" + "".join(f"{i},{'ABC'[i % 3]},{2000 + i}\n" for i in range(6))


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


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


def test_ratings_without_people_are_refused_as_ratings(folder: Path) -> None:
    assert heedful("init films --ratings 1..5").code == 0
    (folder / "library.csv").write_text("Book Id,Title,My Rating\n1,A,3\n2,B,0\n3,C,5\n")
    got = heedful("import films library.csv")
    assert (got.code, "library.csv: person: expected a column of person" in got.err) == (2, True)
    assert "--missing 0 if it stands for none" in got.err


def test_what_was_done_is_worth_ratings(folder: Path) -> None:
    assert heedful("init films --ratings 1..5").code == 0
    (folder / "did.csv").write_text("feedback_type,user_id,item_id\nstar,u0,i0\nread,u1,i0\n")
    got = heedful("import films did.csv")
    assert (got.code, "such as --worth star=1 --worth read=2" in got.err) == (2, True)
    got = heedful("import films did.csv --worth star=5 --worth read=2 --json")
    assert (got.code, got.json["counts"]["feedback"]["applied"]) == (0, 2)


def test_new_items_come_as_a_table(folder: Path) -> None:
    (folder / "news.csv").write_text(NEWS)
    assert heedful("init cars news.csv").code == 0
    (folder / "new.csv").write_text("news_id,car_model,year\n7,D,2020\n8,A,2021\n")
    got = heedful("import cars new.csv")
    assert (got.code, got.err) == (0, "")
    assert "2 items were new or changed" in got.out
    assert heedful("import cars new.csv --json").json["items_put"] == 0
    (folder / "new-column.json").write_text(json.dumps([{"news_id": 9, "car_model": "B", "year": 2022, "fuel": "gas"}]))
    got = heedful("import cars new-column.json")
    assert (got.code, "1 item was new or changed" in got.out) == (0, True)
    assert "new-column.json: new columns, of which this loop learns nothing: fuel" in got.err
    (folder / "renamed.csv").write_text("news_id,model,year\n10,B,2016\n")
    got = heedful("import cars renamed.csv")
    assert got.code == 0
    assert "renamed.csv: columns of the loop that are missing, and so without a value: car_model; was model" in got.err
    (folder / "other.csv").write_text("name,year\nx,2016\n")
    got = heedful("import cars new.csv other.csv")
    assert (got.code, "other.csv: expected the column news_id, which names items" in got.err) == (2, True)
    with Loop.open("cars.heedful") as loop:
        assert {"7", "8", "9", "10"} <= set(loop.items)


def test_events_are_events_still(folder: Path) -> None:
    assert heedful("init films --ratings 1..5").code == 0
    (folder / "list.json").write_text('[{"kind": "item", "id": "NA"},\n{"kind": "withdraw", "id": "NA"}]')
    assert heedful("import films list.json --json").json["counts"]["withdraw"]["applied"] == 1
    (folder / "more.jsonl").write_text('{"kind": "item", "id": "a"}\n{"kind": "nothing"}\n')
    got = heedful("import films more.jsonl --json")
    assert (got.code, got.json["counts"]["item"]["applied"]) == (1, 1)
