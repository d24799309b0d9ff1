"""`heedful init --query-features`: what each request says of each item is declared in a file, not found in a table."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command import done, heedful

from heedful import Loop
from loops import rows

QUERY = {"bm25": [0, 40], "source": ["web", "app"]}
SAID = [{"id": f"i{j}", "bm25": float((7 * j) % 40), "source": ("web", "app")[j % 2]} for j in range(6)]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "items.jsonl").write_text("\n".join(json.dumps(row) for row in rows(12, 4)))
    (tmp_path / "query.json").write_text(json.dumps(QUERY))
    (tmp_path / "said.json").write_text(json.dumps(SAID))
    (tmp_path / "requests.jsonl").write_text('{"hour": 1}\n{"hour": 9}\n')
    return tmp_path


def test_a_loop_is_made_and_decides_among_what_requests_say() -> None:
    made = done("init shop items.jsonl --query-features query.json")
    assert "What a request says of each" in made.out
    assert "heedful decide shop --candidates CANDIDATES.json" in made.out
    decided = heedful("decide shop --candidates said.json --json")
    assert set(decided.json["shown"]) == {each["id"] for each in SAID}
    assert heedful("decide shop --candidates said.json").code == 0
    bare = heedful("decide shop")
    assert (bare.code, "bm25: expected a value, got nothing" in bare.err) == (2, True)
    with Loop.open("shop.heedful") as loop:
        assert loop.verify() == []


def test_they_can_be_crossed_with_the_context() -> None:
    made = heedful(
        "init shop items.jsonl --query-features query.json --context requests.jsonl --cross hour:bm25 --json"
    )
    assert [each["column"] for each in made.json["query_features"]] == ["bm25", "source"]
    assert made.json["crosses"] == [["hour", "bm25"]]
    with Loop.open("shop.heedful") as loop:
        assert "hour × bm25" in loop.feature_names


@pytest.mark.parametrize(
    ("written", "options", "told"),
    [
        ('{"bm25": 3}', "", "query_features: bm25: expected (low, high)"),
        ("{", "", "--query-features: expected JSON"),
        ('{"bm25": [0, 1]}', "--ratings 1..5", "--query-features: expected none"),
        ('{"bm25": [0, 1]}', "--choices", "--query-features: expected none"),
    ],
)
def test_what_makes_no_sense_is_said(folder: Path, written: str, options: str, told: str) -> None:
    (folder / "query.json").write_text(written)
    wrong = heedful(f"init shop items.jsonl --query-features query.json {options}")
    assert (wrong.code, told in wrong.err) == (2, True), wrong.err
    assert not (folder / "shop.heedful").exists()
