"""Drawing of figures with matplotlib (extra `plot`): panels side by side, standard errors as bands, bounds dashed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any

import numpy as np

from heedful.experiments.run import standard_error
from heedful.papers.choice_drawing import questions, scales, toy
from heedful.papers.figure import Figure, LineResult, Outcome, Panel
from heedful.papers.series import Series, over_rounds, rounds_to_draw, share_below, swept_rounds

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Styles = Mapping[str, Mapping[str, Any]]

COLORS: tuple[str, ...] = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#000000")
COLORS += ("#7f7f7f", "#882255", "#8c8c1a", "#332288")
"""The colours of Okabe and Ito, which people with a colour vision deficiency can distinguish, and four more. Lines also
differ in their dashes."""
DASHES = ("-", (0, (5, 1.2)), (0, (1.5, 1.2)), (0, (6, 1.5, 1.5, 1.5)))
MARKERS = ("", "o", "s")
"""The marks on lines of which the dashes are used up: with dash and mark any two lines differ in grey, too."""
BANDED = {
    "curves": "Bands are",
    "growth": "Bands are",
    "bars": "Bars are",
    "sweep": "Bars are",
    "questions": "Bars are",
}
"""What shows one standard error, by the kind of a panel."""
QUICK = "A quick run, of the small size (--quick): fewer rounds, orders, people or streams."


def draw(figure: Figure, outcome: Outcome, paths: list[Path], *, quick: bool = False) -> None:
    """Draw the panels of `figure` that `outcome` has results of, and save the drawing as each of `paths` (.png, .svg,
    .pdf).

    What bands are stands below it, and that the runs were `quick`, of the small size. Text stays text in .svg and .pdf.
    Raise ValueError if no panel was run."""
    import matplotlib
    from matplotlib.figure import Figure as Sheet

    panels = [panel for panel in figure.panels if panel.key in outcome]
    if not panels:
        raise ValueError(f"{figure.id}: expected a panel that was run, got none")
    styled = {"curves": _curves, "growth": _growth, "bars": _bars, "horizons": _horizons, "distribution": _distribution}
    plain = {"sweep": _sweep, "cells": _cells, "questions": questions, "scales": scales, "toy": toy}
    styles = _styles(dict.fromkeys(label for panel in panels for label in outcome[panel.key]))
    below = any(
        result.bound.size for panel in panels if panel.kind == "curves" for result in outcome[panel.key].values()
    )
    notes = [
        f"{band} one standard error." for band in dict.fromkeys(BANDED.get(panel.kind, "") for panel in panels) if band
    ]
    notes += [QUICK] if quick else []
    fonts: Any = {"svg.fonttype": "none", "pdf.fonttype": 42, "svg.hashsalt": figure.id}
    with matplotlib.rc_context(fonts):
        wide, high = 4.4 if any(panel.kind == "bars" for panel in panels) else 5.6, 4.3
        columns = len(panels) if below or len(panels) <= 4 else 3
        rows, step = -(-len(panels) // columns), 1 + below  # the bounds stand below their panels
        sheet = Sheet(figsize=(wide * columns, (1.77 if below else 1.0) * high * rows), dpi=150, layout="constrained")
        ratios = (4, 3)[:step] * rows
        grid = sheet.subplots(rows * step, columns, squeeze=False, height_ratios=ratios)
        for i, panel in enumerate(panels):
            axes = grid[i // columns * step, i % columns]
            if panel.kind in styled:
                styled[panel.kind](axes, panel, outcome[panel.key], styles)
            else:
                plain[panel.kind](axes, panel, outcome[panel.key])
            axes.set_title(panel.title, fontsize=10, loc="left")
            if below:
                _bounds(grid[i // columns * step + 1, i % columns], panel, outcome[panel.key], styles, 10)
        for i in range(len(panels), rows * columns):
            for axes in grid[i // columns * step : (i // columns + 1) * step, i % columns]:
                axes.set_axis_off()
        for axes in grid.ravel():
            axes.grid(visible=not axes.images, which="major", alpha=0.25)
            axes.spines[["top", "right"]].set_visible(False)
            if axes.get_legend_handles_labels()[0]:
                where: dict[str, Any] = {}
                if axes.get_yscale() == "log":  # lines are everywhere: below them
                    where = {"loc": "upper left", "bbox_to_anchor": (0.0, -0.2)}
                    where["ncols"] = 2 if axes.get_xlabel() == "gamma" else 1
                axes.legend(frameon=False, fontsize=8, **where)
        letters = 68 * columns
        sheet.suptitle(fill(figure.title, letters), fontsize=11, x=0.01, ha="left")
        sheet.supxlabel(fill(" ".join(notes), int(1.3 * letters)), fontsize=8, x=0.01, ha="left", color="0.3")
        for path in paths:
            # without the date, the same runs give the same file
            dates = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}
            sheet.savefig(path, metadata=dates.get(path.suffix))


def _curves(axes: Axes, panel: Panel, lines: Mapping[str, LineResult], styles: Styles) -> None:
    highest = 0.0
    for label, result in lines.items():
        series = over_rounds(panel, result, rounds_to_draw(result))
        highest = max(highest, _with_band(axes, series, _label(label, result), styles[label]))
    axes.set_ylim(0.0, 1.05 * highest)
    _against_rounds(axes, panel, lines)


def _growth(axes: Axes, panel: Panel, lines: Mapping[str, LineResult], styles: Styles) -> None:
    """Draw the measure of each curve by round, with a band of one standard error, on a linear axis and without the
    first fiftieth of the rounds.
    """
    for label, result in lines.items():
        T = result.regrets.shape[1]
        t = np.unique(np.linspace(min(T, max(1, T // 50)), T, 200).round().astype(int))
        _with_band(axes, over_rounds(panel, result, t), _label(label, result), styles[label])
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    axes.set_xlabel("round t")
    axes.set_ylabel(panel.measure.axis)


def _with_band(axes: Axes, series: Series, label: str, style: Mapping[str, Any]) -> float:
    """Draw a curve with a band of one standard error; return the highest point of the band."""
    t, mean, error = series.x, series.mean, np.nan_to_num(series.stderr)
    axes.plot(t, mean, label=label, linewidth=1.7, **style)
    axes.fill_between(t, mean - error, mean + error, color=style["color"], alpha=0.22, linewidth=0)
    return float((mean + error).max())


def _cells(axes: Axes, panel: Panel, lines: Mapping[str, LineResult]) -> None:
    """Draw the final values of a grid of two hyperparameters: darker squares are lower, and the lowest has a frame."""
    ends = {
        result.learner: float(panel.measure.of(result.regrets, result.M)[:, -1].mean()) for result in lines.values()
    }
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


def _bounds(axes: Axes, panel: Panel, lines: Mapping[str, LineResult], styles: Styles, size: int) -> None:
    """Draw the regret of curves with its theoretical bound, which is far above: both axes are logarithmic. The title
    has the `size` in points."""
    bounded = [(label, result) for label, result in lines.items() if result.bound.size]
    if not bounded:
        axes.set_axis_off()
        return
    for label, result in bounded:
        points = over_rounds(panel, result, result.marks.astype(int))
        axes.plot(result.marks, points.mean, linewidth=1.7, **styles[label])
        words = f"{label}: {result.theorem}"
        dotted = {**styles[label], "marker": ".", "markersize": 3, "markevery": None}
        axes.plot(result.marks, result.bound, linewidth=1.0, label=words, **dotted)
    axes.set_yscale("log")
    axes.set_title("with the bounds", fontsize=size, loc="left")
    _against_rounds(axes, panel, lines)


def _against_rounds(axes: Axes, panel: Panel, lines: Mapping[str, LineResult]) -> None:
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    axes.set_xlim(1, max(2, *(result.regrets.shape[1] for result in lines.values())))
    axes.set_xlabel("round t")
    axes.set_ylabel(panel.measure.axis)
    once = max(result.once for result in lines.values())
    if once:
        axes.axvline(once, color="0.4", linewidth=0.8, linestyle=(0, (2, 2)))
        words, above = f"{once:,}: the same queries again", axes.get_xaxis_transform()
        side = "left" if once**1.5 < axes.get_xlim()[1] else "right"
        axes.text(once, 1.005, words, transform=above, ha=side, va="bottom", fontsize=7, color="0.3")


def _styles(labels: Iterable[str]) -> Styles:
    """Return a colour and a dash for each of `labels`, the curves of a figure, the same in all its plots; and a mark
    where another curve has the dash."""
    styles: dict[str, dict[str, Any]] = {}
    for i, label in enumerate(labels):
        styles[label] = {"color": COLORS[i % len(COLORS)], "linestyle": DASHES[i % len(DASHES)]}
        if marker := MARKERS[i // len(DASHES) % len(MARKERS)]:
            styles[label] |= {"marker": marker, "markevery": 0.1, "markersize": 3.5}
    return styles


def _sweep(axes: Axes, panel: Panel, lines: Mapping[str, LineResult]) -> None:
    *swept, (label, other) = lines.items()
    for i, t in enumerate(swept_rounds(panel, other)):
        color, mark = COLORS[i % len(COLORS)], np.array([t])
        ends = [over_rounds(panel, result, mark) for _, result in swept]
        mean = [float(end.mean[0]) for end in ends]
        error = np.nan_to_num([float(end.stderr[0]) for end in ends])
        words = _round(t, other.once)
        symbol = "os^Dv"[i % 5]
        axes.errorbar(panel.values, mean, error, color=color, marker=symbol, markersize=3.5, label=words)
        axes.axhline(over_rounds(panel, other, mark).mean[0], color=color, linestyle=":", label=f"{label}, t = {t:,}")
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("gamma")
    axes.set_ylabel(panel.measure.axis)


def _round(t: int, once: int) -> str:
    """Return round `t` in words and, where contexts repeat after round `once`, in which pass through the queries it
    is."""
    passes = " (one pass)" if t == once else f" ({t / once:.3g} passes)" if 0 < once < t else ""
    return f"t = {t:,}{passes}"


def _horizons(axes: Axes, panel: Panel, lines: Mapping[str, LineResult], styles: Styles) -> None:
    for i, (label, result) in enumerate(lines.items()):
        mark: dict[str, Any] = {"marker": "osx"[i % 3], "markersize": 4 + 2 * i, "fillstyle": "none", "linestyle": ""}
        axes.plot(result.marks, result.regrets.mean(axis=0), color=styles[label]["color"], label=label, **mark)
    axes.plot(result.marks, result.bound, color="#000000", linewidth=1.0, label=result.theorem)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("rounds T of the run")
    axes.set_ylabel(panel.measure.axis)


def _distribution(axes: Axes, panel: Panel, lines: Mapping[str, LineResult], styles: Styles) -> None:
    for label, result in lines.items():
        series = share_below(result)
        words = f"{label} ({len(result.regrets)} chains)"
        axes.step(series.x, series.mean, where="post", label=words, **styles[label])
    axes.axvline(0.0, color="0.5", linewidth=0.8)
    axes.set_ylim(0.0, 1.0)
    axes.set_xlabel("DCG@10 of the clicked ranking less that of the one shown")
    axes.set_ylabel("share of the chains at or below")


def _bars(axes: Axes, panel: Panel, lines: Mapping[str, LineResult], styles: Styles) -> None:
    """Draw the mean and standard error of the final values of each curve as a bar, the first on top."""
    for i, (label, result) in enumerate(lines.items()):
        error = np.nan_to_num(standard_error(result.regrets))
        axes.errorbar(result.regrets.mean(), -i, xerr=error[0], color=styles[label]["color"], marker="o", capsize=3)
    axes.set_yticks([-i for i in range(len(lines))], [fill(label, 24) for label in lines], fontsize=8)
    axes.set_xlabel(panel.measure.axis)


def _label(label: str, result: LineResult) -> str:
    """Return the label of a curve with, if it was the best of several learners in hindsight, the learner's
    parameters.
    """
    return f"{label} ({result.learner.partition(':')[2]})" if len(result.line.learners) > 1 else label
