"""Tables on a narrow screen: headings and numbers stay whole, and columns without room follow below."""

from __future__ import annotations

from pathlib import Path

import pytest
from command import heedful

from kinds import Kind, each_kind, teach

HEADINGS = ("from", "decisions", "unanswered", "late", "empty", "contradictory", "error")


@each_kind
@pytest.mark.parametrize("width", [60, 80, 200])
def test_no_heading_of_health_is_broken(
    kind: Kind, width: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with kind.make(tmp_path / "l.heedful") as loop:
        teach(kind, loop, range(12))
        found = loop.health()
    own = f" --own {kind.own}" if kind.own else ""
    lines = heedful(f"health l{own}", width=width).out.splitlines()
    over = lines[next(i for i, line in enumerate(lines) if line.startswith("Over time")) :]
    headings = [name for line in over for name in line.split() if name in (*HEADINGS, "alpha", "slack")]
    corrects = ("alpha", "slack") if found.corrections is not None else ()
    assert [name for name in headings if name != "from"][:6] == list(HEADINGS[1:])
    assert set(corrects) <= set(headings)
    tables = [line for line in over if line.strip().startswith("from ")]
    assert (len(tables) == 1) == (width == 200) or width == 80
    assert all(len(line) <= width for line in over if line.strip().startswith(("from ", "20")))
