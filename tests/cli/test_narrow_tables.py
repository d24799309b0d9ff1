"""Tables on a narrow screen: headings and numbers stay whole, and columns without room follow below."""

from __future__ import annotations

import pytest

from heedful.cli.parts import print_parts
from heedful.results.table import Table


@pytest.mark.parametrize("width", [60, 72, 80])
def test_names_are_whole_and_what_has_no_room_follows(
    width: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    columns = ("learner", "value", "95 % interval", "difference", "verdict")
    name, apart = "posterior:swap=0,prior=0.3", "-1.04 (-6.94 to +5.59)"
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
