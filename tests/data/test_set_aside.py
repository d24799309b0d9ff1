"""Rows that say of themselves that they do not count are left out and counted, in every door that reads answers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from heedful.data.choices import open_choices
from heedful.data.comparisons import by_name
from heedful.data.ordinal import load_ordinal
from heedful.data.preference_data import read_labelled, read_pairs
from heedful.data.rating_files import open_ratings
from heedful.data.row_report import Report
from heedful.io.bandit_log import read_bandit_log
from written import placed, write


def winners(path: Path, **options: Any) -> list[str]:
    return sorted(c.tiers[0][0] for c in by_name(open_choices(path, **options).choices) for _ in range(c.times))


@pytest.mark.parametrize(
    ("column", "counts", "does_not"),
    [
        ("was_cancelled", "false", "true"),
        ("Skipped", "", "1"),
        ("is_draft", "False", "TRUE"),
        ("attention_check", "no", "yes"),
        ("anony", "true", "false"),
        ("Finished", "1", "0"),
        ("status", "ok", "discarded"),
        ("Response Status", "done", "In Progress"),
    ],
)
def test_a_choice_that_does_not_count(tmp_path: Path, column: str, counts: str, does_not: str) -> None:
    path = write(tmp_path / "a.csv", f"winner,loser,{column}\na,b,{counts}\nb,a,{does_not}\na,c,{counts}\n")
    with pytest.warns(
        UserWarning, match=f"1 row left out, as {column} is {does_not.lower()} in 1; --column aside=none "
    ):
        assert winners(path) == ["a", "a"]
    assert winners(path, columns={"aside": ["none"]}) == ["a", "a", "b"]


def test_a_column_that_the_caller_names_and_one_that_is_no_flag(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", "winner,loser,draft,odd\na,b,A first text.,\nb,a,true story,x\nb,c,none,no\n")
    assert winners(path) == ["a", "b", "b"]
    with pytest.warns(UserWarning, match="1 row left out, as odd is x in 1"):
        assert winners(path, columns={"aside": ["odd"]}) == ["a", "b"]
    with pytest.raises(ValueError, match=r"^a\.csv: aside: expected one of its columns, or none, got 'nope'"):
        winners(path, columns={"aside": ["nope"]})
    with pytest.raises(ValueError, match=r"^b\.csv: rows: expected at least one that counts, got none: 1 row left out"):
        winners(write(tmp_path / "b.csv", "winner,loser,deleted\na,b,1\n"))


def test_ratings_impressions_and_grades(tmp_path: Path) -> None:
    path = write(tmp_path / "r.csv", "user,item,rating,is_deleted\na,x,1,0\na,y,5,1\nb,x,3,0\n")
    with pytest.warns(UserWarning, match="1 row left out, as is_deleted is 1 in 1"):
        assert open_ratings(path).table.values.tolist() == [1.0, 3.0]
    rows = [{"action": "a", "probability": 0.5, "reward": i, "skipped": i == 1} for i in range(3)]
    with pytest.warns(UserWarning, match="table: 1 row left out, as skipped is true in 1"):
        assert read_bandit_log(placed(rows)).reward.tolist() == [0.0, 2.0]
    path = write(tmp_path / "g.csv", "n,grade,status\n1,1,ok\n2,2,ok\n9,9,void\n")
    with pytest.warns(UserWarning, match="1 row left out, as status is void in 1"):
        assert load_ordinal(path, "grade").grades == ("1", "2")
    assert load_ordinal(path, "grade", columns={"aside": ["none"]}).grades == ("1", "2", "9")


def test_preference_data(tmp_path: Path) -> None:
    pair = {"prompt": "Name a bird.", "chosen": "A wren.", "rejected": "Perhaps a bird."}
    rows = [pair | {"was_cancelled": False}, pair | {"was_cancelled": True}, pair | {"status": "discarded"}]
    path, report = write(tmp_path / "a.jsonl", "\n".join(map(json.dumps, rows))), Report()
    assert len(list(read_pairs(path, report))) == 1
    assert dict(report.dropped) == {
        "the row says that it does not count, was_cancelled: true; --column aside=none counts it": 1,
        "the row says that it does not count, status: discarded; --column aside=none counts it": 1,
    }
    assert len(list(read_pairs(path, Report(), ["none"]))) == 3
    assert len(list(read_pairs(path, Report(), ["was_cancelled"]))) == 2
    label = {"prompt": "?", "completion": "Yes.", "label": True, "skipped": True}
    report = Report()
    assert list(read_labelled(write(path, json.dumps(label)), report)) == []
    assert report.dropped.total() == 1
    assert len(list(read_labelled(path, Report(), ["none"]))) == 1
