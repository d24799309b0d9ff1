"""`heedful data`: what is known, and a folder checked against the sums on record."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
from command import heedful

from heedful.data import datasets
from heedful.data.datasets import KNOWN, DatasetInfo

TEXT = b"0 qid:1 1:0.5\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a set of two files that is known, whole."""
    files = {name: hashlib.sha256(TEXT).hexdigest() for name in ("one.txt", "two.txt")}
    tiny = DatasetInfo("tiny", "A tiny set", "letor", "none", "https://example.org/tiny", "nobody", files)
    monkeypatch.setattr(datasets, "KNOWN", (tiny,))
    (tmp_path / "sets").mkdir()
    for name in files:
        (tmp_path / "sets" / name).write_bytes(TEXT)
    return tmp_path / "sets"


def test_what_is_known() -> None:
    got = heedful("data --json")
    assert (got.code, got.err) == (0, "")
    assert [row["key"] for row in got.json] == [entry.key for entry in KNOWN]
    for row, entry in zip(got.json, KNOWN):
        assert row == entry._asdict()
    table = " ".join(heedful("data").out.split())
    for entry in KNOWN:
        for told in (entry.key, entry.format, entry.home, *entry.files.values()):
            assert told in table
    assert "5 files" in table


def test_a_whole_folder(folder: Path) -> None:
    got = heedful("data {}", folder)
    assert (got.code, got.err) == (0, "")
    assert got.out.count("✓ ok") == 2
    assert [row["status"] for row in heedful("data {} --json", folder).json] == ["ok", "ok"]


def test_a_damaged_or_missing_file_ends_with_1(folder: Path) -> None:
    (folder / "one.txt").write_bytes(TEXT + b"#")
    got = heedful("data {}", folder)
    assert got.code == 1
    assert "✗ damaged" in got.out
    assert "✓ ok" in got.out
    (folder / "one.txt").unlink()
    got = heedful("data {} --json", folder)
    assert got.code == 1
    assert [(row["file"], row["status"]) for row in got.json] == [("one.txt", "missing"), ("two.txt", "ok")]
    assert "https://example.org/tiny" in got.json[0]["detail"]
    assert "✗ missing" in heedful("data {}", folder).out


def test_a_folder_with_nothing_known_in_it(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    got = heedful("data {}", tmp_path / "empty")
    told = f"{tmp_path / 'empty'}: no known data set in it; `heedful data` lists them"
    assert (got.code, got.out, got.err) == (2, "", f"heedful: {told}\n")
    got = heedful("data {}", tmp_path / "none")
    assert got.code == 2
    assert got.err.startswith(f"heedful: {tmp_path / 'none'}: no such folder")


def test_mq2008_is_whole(mq2008: Path) -> None:
    got = heedful("data {} --json", mq2008)
    assert got.code == 0
    assert [row["status"] for row in got.json] == ["ok"] * 5
