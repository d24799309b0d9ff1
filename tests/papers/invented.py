"""Outcomes that were never run, and LETOR files that nobody made: for the tests of figures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from heedful.papers.figure import Figure, Line, LineResult


def silent(what: str, share: float) -> None:
    """Progress that nobody is told of."""


def ran(regrets: Any, *, label: str = "a", seconds: float = 1.0, bound: Any = None) -> LineResult:
    """A line with these regrets (runs x T), M = 1, bounded at every round by `bound` (T,)."""
    regrets = np.atleast_2d(np.asarray(regrets, np.float64))
    nothing = np.empty(0)
    marks = nothing if bound is None else np.arange(1.0, regrets.shape[1] + 1)
    limit = nothing if bound is None else np.asarray(bound, np.float64)
    theorem = "" if bound is None else "Theorem 1"
    took = np.full(len(regrets), seconds)
    return LineResult(
        Line(label, (label,), "strict"), label, regrets, np.ones(len(regrets)), took, marks, limit, theorem
    )


def invented(
    figure: Figure, rng: np.random.Generator, runs: int = 4, rounds: int = 300
) -> dict[str, dict[str, LineResult]]:
    """Every line of every panel of a figure, with noise about 1 / sqrt t for regrets and 10 / sqrt t for a bound."""
    t = np.arange(1.0, rounds + 1)
    outcome: dict[str, dict[str, LineResult]] = {}
    for panel in figure.panels:
        outcome[panel.key] = {
            line.label: _ran(panel.kind, rng, runs, t, line.label)._replace(line=line, learner=line.learners[0])
            for line in panel.lines
        }
    return outcome


def _ran(kind: str, rng: np.random.Generator, runs: int, t: Any, label: str) -> LineResult:
    """A curve; of a distribution, differences of which every second is none."""
    if kind == "distribution":
        return ran(np.where(np.arange(runs) % 2, 0.0, rng.standard_normal(runs))[:, None], label=label)
    return ran((0.5 + rng.random((runs, t.size))) / np.sqrt(t), label=label, bound=10.0 * np.sqrt(t))


def letor_files(folder: Path, queries: int = 15) -> list[Path]:
    """S1.txt to S5.txt with linear queries of 6 documents of 3 features and grades 0 to 2."""
    folder.mkdir(parents=True)
    rng = np.random.default_rng(3)
    paths = [folder / f"S{part}.txt" for part in range(1, 6)]
    for part, path in enumerate(paths):
        lines = []
        for q in range(queries // 5):
            for x in rng.integers(-3, 4, (6, 3)):
                grade = int(np.clip(x[0] - x[1] + rng.integers(-1, 2), 0, 2))
                features = " ".join(f"{i}:{v}" for i, v in enumerate(x, 1))
                lines.append(f"{grade} qid:{part * 100 + q} {features}\n")
        path.write_text("".join(lines))
    return paths
