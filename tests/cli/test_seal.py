"""`heedful seal`: which files it writes, what it says, and what `heedful doctor` says of them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from command import done, heedful, refusal

from kinds import KINDS, teach
from loops import small_loop


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def make(kind: str = "coactive", **how: Any) -> int:
    """A loop "cars"; how many events it has."""
    made = next(each for each in KINDS if each.name == kind)
    with made.make(Path("cars.heedful"), **how) as loop:
        teach(made, loop, range(10))
        return loop.projection.log.last()[0]


def test_it_says_what_it_sealed_and_what_is_left() -> None:
    n = make(shrink=0.0)
    got = done("seal cars --events 12")
    assert "sealed events 1 to 12: 12 of them, 0 in columns" in got.out
    assert f"{n % 12} events at the end are in no file: a file has 12" in got.out
    assert len(list(Path("cars.heedful").glob("segment-*.parquet"))) == n // 12
    assert heedful("seal cars --events 12 --json").json == {"segments": [], "left": n % 12}


def test_json_has_every_segment() -> None:
    make(shrink=0.0)
    [first, second] = heedful("seal cars --events 16 --json").json["segments"]
    assert (first["first"], first["last"], first["events"], second["first"]) == (1, 16, 16, 17)
    assert first["lessons"] + second["lessons"] > 5
    assert len(first["hash"]) == 64


def test_it_says_that_what_is_learned_is_not_in_columns() -> None:
    make("comparison")
    assert "takes as long as before" in heedful("seal cars --events 12").out


def test_the_doctor_compares_segments_with_the_log() -> None:
    make(shrink=0.0)
    heedful("seal cars --events 16")
    found = {each["check"]: each for each in heedful("doctor cars --json").json}
    assert found["segments"]["told"] == "2, with 32 events, as in the log"
    path = Path("cars.heedful/segment-000000000017.parquet")
    path.write_bytes(path.read_bytes()[:-1])
    got = heedful("doctor cars --json")
    [wrong] = [each for each in got.json if each["check"] == "segment"]
    assert (got.code, wrong["status"]) == (0, "warning")
    assert wrong["told"] == f"{path.name}: its content was changed since it was sealed"
    assert [each["first"] for each in heedful("seal cars --events 16 --json").json["segments"]] == [17]
    assert "segment" not in {each["check"] for each in heedful("doctor cars --json").json}


def test_without_pyarrow_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    small_loop("cars.heedful").close()
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert "pip install 'heedful[parquet]'" in refusal("seal cars")
