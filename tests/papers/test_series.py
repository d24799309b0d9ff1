"""What is drawn as numbers: every line of every kind of panel, by its definition, and as CSV."""

from __future__ import annotations

import csv
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cli.command import heedful
from heedful.experiments import run
from heedful.papers import FIGURES
from heedful.papers.figure import CUMULATIVE, Figure, Line, Panel, Size
from heedful.papers.series import COLUMNS, write_csv
from papers.invented import invented, letor_files, ran

REGRETS = np.array([[4.0, 2.0, 0.0, 2.0], [2.0, 0.0, 1.0, 0.0]])


def read(figure: Figure, outcome: Any, folder: Path) -> list[dict[str, str]]:
    path = folder / "a.csv"
    write_csv(figure, outcome, path)
    with path.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert rows
    assert list(rows[0]) == list(COLUMNS)
    return rows


def one(kind: str, *lines: Line, **how: Any) -> Figure:
    panel = Panel("p", "a panel", "web", lines, Size(4, 2), Size(4, 2), how.pop("measure", CUMULATIVE), kind, **how)
    return Figure("test/fig", "nobody's", "a test", (panel,), ())


A = Line("a", ("perceptron",), "strict")


def test_a_curve_by_its_definition(tmp_path: Path) -> None:
    """Cumulative regrets 4, 6, 6, 8 and 2, 2, 3, 3: means 3, 4, 4.5, 5.5; of two runs the error is half their
    distance."""
    bound = ran(REGRETS)._replace(marks=np.array([1.0, 4.0]), bound=np.array([9.0, 10.0]), learner="perceptron:batch=1")
    rows = read(one("curves", A), {"p": {"a": bound}}, tmp_path)
    assert [(row["across"], row["x"]) for row in rows] == [("round", str(t)) for t in (1, 2, 3, 4)]
    assert [float(row["value"]) for row in rows] == [3.0, 4.0, 4.5, 5.5]
    assert [float(row["stderr"]) for row in rows] == pytest.approx([1.0, 2.0, 1.5, 2.5])
    assert [row["bound"] for row in rows] == ["9.0", "", "", "10.0"]
    first = rows[0]
    assert (first["figure"], first["panel"], first["line"]) == ("test/fig", "p", "a")
    assert (first["learner"], first["person"], first["runs"]) == ("perceptron:batch=1", "strict", "2")


def test_of_a_sweep_the_rounds_that_are_drawn(tmp_path: Path) -> None:
    other = A._replace(label="b")
    figure = one("sweep", A, other, values=(0.1,), at_rounds=(2, 0))
    outcome = {"p": {"a": ran(REGRETS)._replace(once=3), "b": ran(2 * REGRETS)._replace(once=3)}}
    rows = read(figure, outcome, tmp_path)
    assert [(row["line"], row["x"]) for row in rows] == [(label, x) for label in "ab" for x in "234"]
    assert [float(row["value"]) for row in rows[:3]] == [4.0, 4.5, 5.5]
    assert [float(row["value"]) for row in rows[3:]] == [8.0, 9.0, 11.0]


def test_a_distribution_is_the_share_at_or_below(tmp_path: Path) -> None:
    figure = one("distribution", A)
    rows = read(figure, {"p": {"a": ran([[2.0], [-1.0], [0.0], [2.0]])}}, tmp_path)
    assert [(float(row["x"]), float(row["value"])) for row in rows] == [(-1.0, 0.25), (0.0, 0.5), (2.0, 1.0)]


def test_bars_and_cells_are_what_is_there_at_the_end(tmp_path: Path) -> None:
    for kind in ("bars", "cells"):
        [row] = read(one(kind, A), {"p": {"a": ran(REGRETS[:, :1])}}, tmp_path)
        assert (row["x"], float(row["value"]), float(row["stderr"])) == ("", 3.0, 1.0)
    [alone] = read(one("bars", A), {"p": {"a": ran([[7.0]])}}, tmp_path)
    assert alone["stderr"] == ""


def test_questions_scales_and_points(tmp_path: Path) -> None:
    rows = read(one("questions", A), {"p": {"a": ran(REGRETS)}}, tmp_path)
    assert [row["x"] for row in rows] == ["0", "1", "2", "3"]
    assert [float(row["value"]) for row in rows] == REGRETS.mean(axis=0).tolist()
    for kind in ("scales", "toy"):
        marked = ran(REGRETS)._replace(marks=np.array([0.25, 0.5, 1.0, 2.0]))
        rows = read(one(kind, A), {"p": {"a": marked}}, tmp_path)
        assert [row["x"] for row in rows] == ["0.25", "0.5", "1.0", "2.0"]
        assert [float(row["value"]) for row in rows] == REGRETS.mean(axis=0).tolist()
    lengths = ran([[2.0, 1.0]])._replace(marks=np.array([1.0, 4.0]), bound=np.array([2.0, 1.0]))
    rows = read(one("horizons", A), {"p": {"a": lengths}}, tmp_path)
    assert [(row["x"], row["value"], row["bound"]) for row in rows] == [("1", "2.0", "2.0"), ("4", "1.0", "1.0")]


@pytest.mark.parametrize("figure", FIGURES.values(), ids=lambda figure: figure.id)
def test_every_figure_is_a_table(figure: Figure, tmp_path: Path) -> None:
    if any(panel.kind == "cells" for panel in figure.panels):
        figure = figure._replace(panels=figure.panels[:2])
    rows = read(figure, invented(figure, np.random.default_rng(1)), tmp_path)
    wanted = {(panel.key, line.label) for panel in figure.panels for line in panel.lines}
    assert {(row["panel"], row["line"]) for row in rows} == wanted
    assert all(math.isfinite(float(row["value"])) for row in rows)


@pytest.mark.slow
def test_the_command_writes_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, unrendered: None) -> None:
    monkeypatch.setattr(run, "must_interpret", lambda _: True)
    letor_files(tmp_path / "letor4-mq2008")
    figure = FIGURES["coactive2012/fig2"]
    panels = tuple(panel._replace(quick=Size(30, 2)) for panel in figure.panels)
    monkeypatch.setitem(FIGURES, figure.id, figure._replace(panels=panels))
    line = "figure coactive2012/fig2 --quick --jobs 1 --data {} --out {}"
    got = heedful(f"{line} --csv --json", tmp_path, tmp_path / "out")
    assert got.code == 0, got.err
    path = tmp_path / "out" / "coactive2012-fig2.csv"
    assert got.json["csv"] == str(path)
    drawn = got.json["panels"]["web"]["alpha = 1"]
    with path.open(newline="", encoding="utf-8") as file:
        rows = {(row["line"], row["x"]): row for row in csv.DictReader(file)}
    for t, regret, stderr in zip(drawn["rounds"], drawn["regret"], drawn["stderr"]):
        assert float(rows["alpha = 1", str(t)]["value"]) == pytest.approx(regret)
        assert float(rows["alpha = 1", str(t)]["stderr"]) == pytest.approx(stderr)
    assert str(path) in heedful(f"{line} --csv", tmp_path, tmp_path / "out").out
    path.unlink()
    assert heedful(f"{line} --json", tmp_path, tmp_path / "out").json["csv"] is None
    assert not path.exists()
