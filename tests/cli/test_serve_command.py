"""What `heedful serve` finds out before it serves: settings of which requests would tell only later."""

from __future__ import annotations

import logging
import os
from pathlib import Path
from typing import Any

import pytest
from command import heedful

import heedful.cli.serve as command
from heedful.server.context import Options
from heedful.server.main import most_connections


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What was about to be served; nothing listens."""
    found: list[Any] = []
    monkeypatch.setattr(command, "_run", lambda home, *more: found.append(home))
    return found


def test_an_address_that_is_none_is_refused(tmp_path: Path, started: list[Any]) -> None:
    got = heedful("serve {} --address foo", tmp_path)
    assert (got.code, started) == (2, [])
    assert "--address: expected a URL that servers reach it at, http://HOST:PORT, got 'foo'" in got.err
    assert heedful("serve {} --address https://loops.example/behind", tmp_path).code == 0


def test_a_learner_of_ones_own_that_is_not_there_is_refused(tmp_path: Path, started: list[Any]) -> None:
    got = heedful("serve {} --own nofile.py:X", tmp_path)
    assert (got.code, started) == (2, [])
    assert "--own: nofile.py: no such file; expected FILE.py:Class" in got.err


def test_a_folder_that_cannot_be_written_is_served_for_reading_and_that_is_said(
    tmp_path: Path, started: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.access", lambda path, mode, **more: mode != os.W_OK)  # root may write anywhere
    got = heedful("serve {}", tmp_path)
    assert (got.code, started) == (0, [tmp_path])
    assert f"{tmp_path}: this user may not write to it: what is there is read" in got.err


def test_a_folder_goes_before_the_database_of_the_environment_and_that_is_said(
    tmp_path: Path, started: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HEEDFUL_DATABASE", "postgresql://someone:secret@there/loops")
    got = heedful("serve {}", tmp_path)
    assert (got.code, started) == (0, [tmp_path])
    assert f"the loops in {tmp_path} are served, and not those in postgresql://someone@there/loops" in got.err
    assert "secret" not in got.err


def test_a_password_in_the_command_is_warned_of(started: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEEDFUL_DATABASE", "")  # so that it is taken back
    got = heedful("--database postgresql://someone:secret@there/loops serve")
    assert got.code == 0
    assert "--database: others on this machine can read its password in the list of processes" in got.err
    assert "secret" not in got.err
    monkeypatch.setenv("HEEDFUL_DATABASE", "postgresql://someone:secret@there/loops")
    assert "password" not in heedful("serve").err
    assert "password" not in heedful("--database postgresql://someone@there/loops serve").err


def test_too_few_files_are_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        most_connections(256, Options(most_open=200))
    assert "256 files may be open, and 200 open loops need about 1,200" in caplog.text
    caplog.clear()
    most_connections(256, Options(most_open=20))
    most_connections(None, Options(most_open=200))
    assert not caplog.records
