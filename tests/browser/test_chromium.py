"""The tests of the pages never go without a browser in silence."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import chromium


def program(folder: Path, name: str, text: str) -> Path:
    """An executable of that name that does what `text` says."""
    path = folder / name
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


@pytest.fixture
def bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine without a Chromium: the folder that is all of PATH, and an empty place for Playwright's."""
    bin = tmp_path / "bin"
    bin.mkdir()
    monkeypatch.setenv("PATH", str(bin))
    monkeypatch.setenv("PLAYWRIGHT_BROWSERS_PATH", str(tmp_path / "playwright"))
    monkeypatch.setenv("PLAYWRIGHT_DOWNLOAD_HOST", "http://127.0.0.1:1")  # nothing is fetched in this test
    monkeypatch.delenv("HEEDFUL_CHROMIUM", raising=False)
    return bin


def asked() -> subprocess.CompletedProcess[str]:
    """What the script does and says."""
    return subprocess.run([sys.executable, chromium.__file__], capture_output=True, text=True, timeout=120)


def test_the_one_on_the_path_is_taken_if_it_starts(bare: Path) -> None:
    program(bare, "chromium", "echo 'expected: the snap'; exit 1")
    named = program(bare, "google-chrome", "echo Google Chrome 130.0.1")
    told = asked()
    assert (told.returncode, told.stdout) == (0, f"heedful: the pages are tried in {named}\n")


def test_without_one_it_is_installed_with_a_word_about_it_and_else_it_fails_with_what_to_do(bare: Path) -> None:
    told = asked()
    assert told.returncode == 1
    assert "fetching Playwright's" in told.stdout
    assert "heedful: expected a Chromium" in told.stderr
    assert "HEEDFUL_CHROMIUM=" in told.stderr


def test_as_root_on_debian_it_is_debians_package(
    bare: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    program(bare, "made", "echo Chromium 1")
    program(bare, "apt-get", f"echo $@ >> '{bare}/asked'; [ $1 = update ] || /bin/mv '{bare}/made' '{bare}/chromium'")
    chromium.main()
    told = capfd.readouterr().out
    assert "installing Debian's package chromium" in told
    assert told.endswith(f"tried in {bare / 'chromium'}\n")
    update, install = (bare / "asked").read_text().splitlines()
    assert update.startswith("update")
    assert "install" in install
    assert " chromium" in install


def test_one_that_is_named_and_does_not_start_is_refused_by_name(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(bare, "chromium", "echo Chromium 1")
    monkeypatch.setenv("HEEDFUL_CHROMIUM", str(bare / "none"))
    told = asked()
    assert told.returncode == 1
    assert told.stderr.startswith("heedful: HEEDFUL_CHROMIUM: expected a Chromium that starts, got ")
