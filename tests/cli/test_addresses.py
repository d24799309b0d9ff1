"""Addresses of databases in commands: what cannot be read of one is not printed, as it may be a part of a password."""

from __future__ import annotations

from pathlib import Path

import pytest
from command import heedful

WRONG = [
    "postgresql+psycopg://me:secret@127.0.0.1:1/db",
    "postgresql://me:p#secret@127.0.0.1:1/db",
    "postgresql://me:p/secret@127.0.0.1:1/db",
    "postgresql://me:p@secret@127.0.0.1:1/db",
    "postgresql://me:p%zzsecret@127.0.0.1:1/db",
    "postgresql://me:p secret@127.0.0.1:1/db",
    "host=127.0.0.1 port=1 password=secret",
]


@pytest.fixture(autouse=True)
def nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HEEDFUL_DATABASE", "")


LINES = ["--database {} doctor cars", "doctor cars", "doctor {}#cars"]
CASES = [(url, line) for url in WRONG for line in (LINES if "://" in url else LINES[:2])]


@pytest.mark.parametrize(("url", "line"), CASES)
def test_a_password_is_never_printed(monkeypatch: pytest.MonkeyPatch, url: str, line: str) -> None:
    pytest.importorskip("psycopg")
    if "{}" not in line:
        monkeypatch.setenv("HEEDFUL_DATABASE", url)
    ended = heedful(line, *([url] if "{}" in line else []))
    assert ended.code in (1, 2)
    assert "secret" not in ended.out + ended.err
    assert "zz" not in ended.out + ended.err


@pytest.mark.parametrize("line", ["serve {}", "keys list --folder {}", "init {} no.csv"])
def test_an_address_in_place_of_a_folder_is_not_printed(line: str) -> None:
    ended = heedful(line, WRONG[0])
    assert ended.code == 2
    assert "secret" not in ended.out + ended.err
