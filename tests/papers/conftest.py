"""Figures of whole papers, drawn but for the pictures themselves."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from budget import FACTOR


@pytest.fixture
def unrendered(monkeypatch: pytest.MonkeyPatch) -> None:
    """Panels are drawn, and a file says so in place of each picture, which takes a second or two; test_drawing.py has
    a picture of every kind of panel, and `make test-long` all."""
    matplotlib = pytest.importorskip("matplotlib.figure")

    def saved(sheet: Any, path: Path, **how: Any) -> None:
        Path(path).write_text(f"{len(sheet.axes)} panels\n" * 100)

    if FACTOR == 1:
        monkeypatch.setattr(matplotlib.Figure, "savefig", saved)
