"""Tables on a narrow screen: headings and numbers stay whole, and columns without room follow below."""

from __future__ import annotations

from pathlib import Path

import pytest
from command import heedful

from heedful.cli.parts import print_parts
from heedful.loop.interactions.telling import Table
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


@each_kind
@pytest.mark.parametrize("width", [60, 80])
def test_no_name_of_an_evaluation_or_of_why_is_broken(
    kind: Kind, width: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Unless it would fill more than half of the screen; lines are no wider than that."""
    monkeypatch.chdir(tmp_path)
    with kind.make(tmp_path / "l.heedful") as loop:
        teach(kind, loop, range(12))
        names = [each.learner for each in loop.evaluate(kind.other).learners]
        item = loop.decide(id="last", person="p0").shown[0]
        why = loop.why("last", item)
    names = [name for name in names if len(name) <= width // 2]
    own = f" --own {kind.own}" if kind.own else ""
    told = heedful(f"evaluate l --learner {kind.other}{own}", width=width).out
    rows = tables(told)
    assert {row[0] for row in rows if row} >= set(names)
    told = heedful(f"why l last {item}{own}", width=width).out
    words = {word for row in tables(told) for word in row}
    assert words >= {word for each in why.events for word in (each.event, each.form, each.decision)}
    assert all(len(line) <= width for line in told.splitlines() if line.startswith("  "))


@pytest.mark.parametrize("width", [60, 72, 80])
def test_names_are_whole_and_what_has_no_room_follows(
    width: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    columns = ("learner", "value", "95 % interval", "difference", "verdict")
    name, apart = "pairwise-logistic:rate=0.3", "-1.04 (-6.94 to +5.59)"
    rows = ((name, "1.54", "0.00 to 7.27", "", ""), ("cheapest", "0.500", "0.00 to 6.58", apart, "cannot be told"))
    monkeypatch.setenv("COLUMNS", str(width))
    print_parts([Table("Cost", columns, rows, (0, 2, 3, 4))])
    told = capsys.readouterr().out
    assert all(len(line) <= width for line in told.splitlines())
    words = [word for row in tables(told) for word in row]
    assert set(" ".join((*columns, *rows[0], *rows[1])).split()) <= set(words)
    pieces = words.count("learner")
    assert (words.count(name), pieces) == (pieces, {60: 3, 72: 2, 80: 1}[width])


def tables(out: str) -> list[list[str]]:
    """The words of each line of the tables."""
    return [line.split() for line in out.splitlines() if line.startswith("  ")]
