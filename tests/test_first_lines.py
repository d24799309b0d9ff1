"""The first lines of pages run as they stand, with the files of examples/, and show what was learned."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from heedful.cli import app

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(line: str) -> str:
    """Run a line of a page, which must go well; what it prints, without the breaks of lines."""
    heedful, *words = shlex.split(line, comments=True)
    assert heedful == "heedful"
    got = CliRunner().invoke(app, words, env={"COLUMNS": "160"})
    assert got.exit_code == 0, (line, got.output)
    return " ".join(got.stdout.split())


def first_lines(page: str, fence: str = "sh") -> list[str]:
    """The first block of a page in docs/, which has five lines at most."""
    block = (ROOT / "docs" / page).read_text().split(f"```{fence}\n")[1].split("```")[0].splitlines()
    assert len(block) <= 5
    return block


def test_a_click_log() -> None:
    init, read, health, decide, why = map(run, first_lines("ubi.md"))
    assert "8 items by id" in init
    assert "5 rows of queries, 5 used" in read
    assert "Nothing is wrong with" in health
    assert "arm learned" in decide  # a control list would show nothing that was learned
    assert "gel was shown in place 1" in why  # the pen that was clicked most
    assert "Which feedback moved it" in why


def test_pairs_of_answers() -> None:
    _, read, decide, why = map(run, first_lines("preference-data.md"))
    assert "12 pairs, 12 used" in read
    assert "arm learned" in decide
    assert "1 brief" in decide  # the short one, as in the pairs
    assert "Which feedback moved it" in why


def test_scores_and_corrections_of_langfuse() -> None:
    _, read, style, decide = map(run, first_lines("langfuse.md"))
    assert "13 scores, 13 used" in read
    assert "Write in the style that corrections of earlier drafts ask for: shorter" in style
    assert "1 brief" in decide  # the short one; a control list would show any


@pytest.mark.slow
def test_a_learner_of_ones_own() -> None:
    page = (ROOT / "CONTRIBUTING.md").read_text()
    check, make, simulate = page.split("```\n\n```\n")[1].split("```")[0].splitlines()
    subprocess.run(["sh", "-c", make.replace("python", shlex.quote(sys.executable), 1)], check=True)
    assert re.search(r"All \d+ kept", run(check))
    assert "keep=0.9" in run(simulate)
