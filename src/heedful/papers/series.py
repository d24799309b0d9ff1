"""The points that a figure draws, also as a CSV file with one row for each point of each curve."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from heedful.data.spreadsheet import write_table
from heedful.experiments.run import standard_error
from heedful.papers.figure import Figure, LineResult, Outcome, Panel

Array = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

COLUMNS = ("figure", "panel", "line", "learner", "person", "runs", "across", "x", "value", "stderr", "bound")
"""The columns of a point of a line. `across` names the axis of `x` (round, questions, ...); `value` is the mean over
runs, with its standard error; `bound` is the theoretical bound there. A cell without a value is empty."""
POINTS = 300
"""the greatest number of rounds of a run that are drawn, evenly on a logarithmic scale"""


class Series(NamedTuple):
    """The points of a curve."""

    x: Array | Ints
    """(n,) the positions on the horizontal axis"""
    mean: Array
    """(n,) the mean over runs"""
    stderr: Array
    """(n,) its standard error; NaN with one run"""


def over_rounds(panel: Panel, result: LineResult, t: Ints) -> Series:
    """Return the points of a curve with the results `result` at the rounds `t` (n,), from 1 on: the quantity that the
    plot `panel` draws."""
    samples = panel.measure.of(result.regrets, result.M)[:, t - 1]
    return Series(t, samples.mean(axis=0), standard_error(samples))


def rounds_to_draw(result: LineResult) -> Ints:
    """Return the rounds at which the curve of the results `result` is drawn, in order: at most 300 on a logarithmic
    scale, those that have a theoretical bound, and the last round on which claims are judged."""
    T = result.regrets.shape[1]
    marks = np.concatenate((np.geomspace(1, T, POINTS).round(), result.marks, [result.once or T]))
    return np.unique(marks.astype(np.int64))


def swept_rounds(panel: Panel, result: LineResult) -> Ints:
    """Return the rounds after which the plot `panel` draws regret by hyperparameter, for results like `result`: those
    that the plot names, and the last one on which claims are judged."""
    T = result.regrets.shape[1]
    return np.unique([min(round_ or T, T) for round_ in panel.at_rounds] + [result.once or T])


def share_below(result: LineResult) -> Series:
    """Return the empirical distribution function of all values in the results `result` of a curve: at each distinct
    value the share of values at or below it."""
    values, counts = np.unique(result.regrets, return_counts=True)
    return Series(values, np.cumsum(counts) / result.regrets.size, np.full(values.size, np.nan))


def _series(panel: Panel, result: LineResult) -> tuple[str, Series]:
    """Return the name of the x axis and the points of a curve with the results `result`."""
    kind = panel.kind
    if kind in ("curves", "growth"):
        return "round", over_rounds(panel, result, rounds_to_draw(result))
    if kind == "sweep":
        return "round", over_rounds(panel, result, swept_rounds(panel, result))
    if kind == "distribution":
        return "difference", share_below(result)
    if kind in ("bars", "cells"):
        held = panel.measure.of(result.regrets, result.M)[:, -1:]
        return "", Series(np.array([np.nan]), held.mean(axis=0), standard_error(held))
    mean, stderr = result.regrets.mean(axis=0), standard_error(result.regrets)
    if kind == "questions":
        return "questions", Series(np.arange(mean.size), mean, stderr)
    places = result.marks if result.marks.size else np.full(mean.size, np.nan)
    if kind == "horizons":
        return "rounds of the run", Series(places.astype(np.int64), mean, stderr)
    return {"scales": "length-scale", "toy": "input"}[kind], Series(places, mean, stderr)


def rows(figure: Figure, outcome: Outcome) -> Iterator[tuple[object, ...]]:
    """Yield the points of a figure's curves that have results in `outcome`, as rows with the columns COLUMNS (figure,
    panel, line, ..., x, value, stderr, bound).
    """
    for panel in figure.panels:
        for label, result in outcome.get(panel.key, {}).items():
            across, series = _series(panel, result)
            bounds = dict(zip(result.marks.tolist(), result.bound.tolist()))
            labels = figure.id, panel.key, label, result.learner, result.line.user, len(result.regrets), across
            for x, mean, stderr in zip(*(column.tolist() for column in series)):
                yield *labels, _cell(x), mean, _cell(stderr), bounds.get(x, "")


def _cell(number: float) -> float | str:
    return "" if np.isnan(number) else number


def write_csv(figure: Figure, outcome: Outcome, path: Path) -> None:
    """Write the points of a figure's curves that have results in `outcome` to the CSV file `path`, a row for each
    point. Raise OSError if it cannot be written.
    """
    write_table(path, COLUMNS, rows(figure, outcome))
