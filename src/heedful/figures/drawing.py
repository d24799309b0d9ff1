"""Draws a figure with matplotlib (extra `plot`): a panel beside the other, standard errors as bands, bounds dashed."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from textwrap import fill
from typing import Any

import numpy as np

from heedful.experiment import average_regret, standard_error
from heedful.figures.choice_drawing import questions, scales, toy
from heedful.figures.figure import Figure, Outcome, Panel, Ran

COLORS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#000000")
"""Okabe and Ito's, which can be told apart by those who see fewer colours; lines have different dashes besides."""
DASHES = ("-", (0, (5, 1.2)), (0, (1.5, 1.2)), (0, (6, 1.5, 1.5, 1.5)))


def draw(figure: Figure, outcome: Outcome, paths: list[Path]) -> None:
    """Draw the panels that were run into every one of the files (.png, .svg, .pdf). ValueError where none was."""
    import matplotlib
    from matplotlib.figure import Figure as Sheet

    panels = [panel for panel in figure.panels if panel.key in outcome]
    if not panels:
        raise ValueError(f"{figure.id}: wanted a panel that was run, got none")
    kinds = {"curves": _curves, "sweep": _sweep, "horizons": _horizons, "distribution": _distribution}
    kinds |= {"bars": _bars, "growth": _growth, "cells": _cells}
    kinds |= {"questions": questions, "scales": scales, "toy": toy}
    below = any(ran.bound.size for panel in panels if panel.kind == "curves" for ran in outcome[panel.key].values())
    with matplotlib.rc_context({"svg.hashsalt": figure.id, "svg.fonttype": "path"}):
        wide = 4.4 if any(panel.kind == "bars" for panel in panels) else 5.6
        rows, columns = (1, len(panels)) if below or len(panels) <= 4 else (-(-len(panels) // 3), 3)
        high = 7.6 if below else 4.3 * rows
        sheet = Sheet(figsize=(wide * columns, high), dpi=150, layout="constrained")
        grid = sheet.subplots(rows + below, columns, squeeze=False, height_ratios=(4, 3) if below else (1,) * rows)
        for i, panel in enumerate(panels):
            axes = grid[i // columns, i % columns]
            kinds[panel.kind](axes, panel, outcome[panel.key])
            axes.set_title(panel.title, fontsize=10, loc="left")
            if below:
                _bounds(grid[1, i], panel, outcome[panel.key])
        for axes in grid.ravel()[len(panels) : rows * columns]:
            axes.set_axis_off()
        for axes in grid.ravel():
            axes.grid(visible=not axes.images, which="major", alpha=0.25)
            axes.spines[["top", "right"]].set_visible(False)
            if axes.get_legend_handles_labels()[0]:
                axes.legend(frameon=False, fontsize=8)
        title = fill(f"{figure.id}: {figure.title}", 68 * columns)
        sheet.suptitle(title, fontsize=11, x=0.01, ha="left")
        for path in paths:
            # without the date, the same runs give the same file
            sheet.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)


def _curves(axes: Any, panel: Panel, lines: Mapping[str, Ran]) -> None:
    highest = 0.0
    for i, (label, ran) in enumerate(lines.items()):
        samples = panel.measure.of(ran.regrets, ran.M)
        t = np.unique(np.geomspace(1, samples.shape[1], 300).round().astype(int))
        mean = samples.mean(axis=0)[t - 1]
        error = np.nan_to_num(standard_error(samples))[t - 1]
        axes.plot(t, mean, label=_label(label, ran), linewidth=1.7, **_style(i))
        axes.fill_between(t, mean - error, mean + error, color=_style(i)["color"], alpha=0.22, linewidth=0)
        highest = max(highest, float((mean + error).max()))
    axes.set_ylim(0.0, 1.05 * highest)
    _against_rounds(axes, panel, lines)


def _growth(axes: Any, panel: Panel, lines: Mapping[str, Ran]) -> None:
    """As curves, evenly in time, without the first rounds, which are chance."""
    for i, (label, ran) in enumerate(lines.items()):
        samples = panel.measure.of(ran.regrets, ran.M)
        T = samples.shape[1]
        t = np.unique(np.linspace(min(T, max(1, T // 50)), T, 200).round().astype(int))
        mean, error = samples.mean(axis=0)[t - 1], np.nan_to_num(standard_error(samples))[t - 1]
        axes.plot(t, mean, label=_label(label, ran), linewidth=1.5, **_style(i))
        axes.fill_between(t, mean - error, mean + error, color=_style(i)["color"], alpha=0.22, linewidth=0)
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    axes.set_xlabel("round t")
    axes.set_ylabel(panel.measure.axis)


def _cells(axes: Any, panel: Panel, lines: Mapping[str, Ran]) -> None:
    """A square for each pair of hyperparameters, the darker the less; the least of all has a frame."""
    ends = {ran.learner: float(panel.measure.of(ran.regrets, ran.M)[:, -1].mean()) for ran in lines.values()}
    pairs = {learner: [part.split("=") for part in learner.partition(":")[2].split(",")[:2]] for learner in ends}
    names = [next(pair[i][0] for pair in pairs.values()) for i in (0, 1)]
    marks = [sorted({float(pair[i][1]) for pair in pairs.values()}) for i in (0, 1)]
    table = np.full((len(marks[0]), len(marks[1])), np.nan)
    for learner, pair in pairs.items():
        table[marks[0].index(float(pair[0][1])), marks[1].index(float(pair[1][1]))] = ends[learner]
    shade = np.log(table)
    axes.imshow(shade, cmap="viridis", aspect="auto", origin="lower")
    i, j = np.unravel_index(np.nanargmin(table), table.shape)
    axes.plot(j, i, marker="s", markersize=22, markerfacecolor="none", markeredgecolor="#d55e00", markeredgewidth=2)
    middle = (np.nanmin(shade) + np.nanmax(shade)) / 2.0
    for (i, j), value in np.ndenumerate(table):
        words = f"{value:.3g}" if value < 1e3 else f"{value / 1e3:.3g}k"
        color = "white" if shade[i, j] < middle else "black"
        axes.text(j, i, words, ha="center", va="center", fontsize=7, color=color)
    axes.set_xticks(range(len(marks[1])), [f"{mark:g}" for mark in marks[1]])
    axes.set_yticks(range(len(marks[0])), [f"{mark:g}" for mark in marks[0]])
    axes.set_xlabel(names[1])
    axes.set_ylabel(names[0])


def _bounds(axes: Any, panel: Panel, lines: Mapping[str, Ran]) -> None:
    """The same with what theory promises, far above: hence both axes are logarithmic."""
    bounded = [(i, label, ran) for i, (label, ran) in enumerate(lines.items()) if ran.bound.size]
    if not bounded:
        axes.set_axis_off()
        return
    for i, label, ran in bounded:
        mean = panel.measure.of(ran.regrets, ran.M).mean(axis=0)[ran.marks.astype(int) - 1]
        axes.plot(ran.marks, mean, linewidth=1.7, **_style(i))
        axes.plot(
            ran.marks, ran.bound, linewidth=1.0, marker=".", markersize=3, label=f"{label}: {ran.theorem}", **_style(i)
        )
    axes.set_yscale("log")
    axes.set_title("with the bounds", fontsize=9, loc="left")
    _against_rounds(axes, panel, lines)


def _against_rounds(axes: Any, panel: Panel, lines: Mapping[str, Ran]) -> None:
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    axes.set_xlim(1, max(2, *(ran.regrets.shape[1] for ran in lines.values())))
    axes.set_xlabel("round t")
    axes.set_ylabel(panel.measure.axis)


def _style(i: int) -> dict[str, Any]:
    return {"color": COLORS[i % len(COLORS)], "linestyle": DASHES[i % len(DASHES)]}


def _sweep(axes: Any, panel: Panel, lines: Mapping[str, Ran]) -> None:
    *swept, (label, other) = lines.items()
    T = other.regrets.shape[1]
    for i, t in enumerate(sorted({min(at or T, T) for at in panel.at})):
        color = COLORS[i % len(COLORS)]
        ends = np.array([average_regret(ran.regrets)[:, t - 1] for _, ran in swept])  # values x runs
        error = np.nan_to_num(standard_error(ends.T))
        axes.errorbar(
            panel.values, ends.mean(axis=1), error, color=color, marker="o", markersize=3.5, label=f"t = {t:,}"
        )
        axes.axhline(
            average_regret(other.regrets)[:, t - 1].mean(), color=color, linestyle=":", label=f"{label}, t = {t:,}"
        )
    axes.set_xscale("log")
    axes.set_ylim(bottom=0.0)
    axes.set_xlabel("gamma")
    axes.set_ylabel(panel.measure.axis)


def _horizons(axes: Any, panel: Panel, lines: Mapping[str, Ran]) -> None:
    for i, (label, ran) in enumerate(lines.items()):
        axes.plot(
            ran.marks,
            ran.regrets.mean(axis=0),
            color=COLORS[i],
            linestyle="",
            marker="osx"[i % 3],
            markersize=4 + 2 * i,
            fillstyle="none",
            label=label,
        )
    axes.plot(ran.marks, ran.bound, color=COLORS[-1], linewidth=1.0, label=ran.theorem)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("rounds T of the run")
    axes.set_ylabel(panel.measure.axis)


def _distribution(axes: Any, panel: Panel, lines: Mapping[str, Ran]) -> None:
    for i, (label, ran) in enumerate(lines.items()):
        differences = np.sort(ran.regrets.ravel())
        share = np.arange(1, differences.size + 1) / differences.size
        axes.step(differences, share, where="post", label=f"{label} ({len(ran.regrets)} chains)", **_style(i))
    axes.axvline(0.0, color="0.5", linewidth=0.8)
    axes.set_ylim(0.0, 1.0)
    axes.set_xlabel("DCG@10 of the clicked ranking less that of the one shown")
    axes.set_ylabel("share of the chains at or below")


def _bars(axes: Any, panel: Panel, lines: Mapping[str, Ran]) -> None:
    """A mean with its standard error for each line, the first on top."""
    for i, ran in enumerate(lines.values()):
        error = np.nan_to_num(standard_error(ran.regrets))
        axes.errorbar(ran.regrets.mean(), -i, xerr=error[0], color=_style(i)["color"], marker="o", capsize=3)
    axes.set_yticks([-i for i in range(len(lines))], [fill(label, 24) for label in lines], fontsize=8)
    axes.set_xlabel(panel.measure.axis)


def _label(label: str, ran: Ran) -> str:
    """The line's name, with the parameters that were best in hindsight."""
    return f"{label} ({ran.learner.partition(':')[2]})" if len(ran.line.learners) > 1 else label
