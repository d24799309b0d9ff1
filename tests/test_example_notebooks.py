"""The notebooks of docs/notebooks run, and give what they keep."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest

DOCS = Path(__file__).resolve().parents[1] / "docs"
sys.path.append(str(DOCS))

from run_notebooks import FOLDER, run  # noqa: E402


def comparable(outputs: list[dict[str, Any]]) -> str:
    """Outputs without pictures and styles, and numbers to two digits: versions of packages differ in the rest."""
    text = json.dumps(outputs)
    text = re.sub(r'src=\\"[^"]*\\"|<style.*?</style>', "", text)
    return re.sub(r"\d+\.\d+", lambda match: f"{float(match[0]):.2g}", text)


@pytest.mark.slow
@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.ipynb")), ids=lambda path: path.stem)
def test_a_notebook_gives_what_it_keeps(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MPLBACKEND", "agg")
    kept = [cell["outputs"] for cell in json.loads(path.read_text())["cells"] if cell["cell_type"] == "code"]
    assert any(kept)
    assert [comparable(each) for each in run(path)] == [comparable(each) for each in kept]
