"""Drawing of the plots of [H12]: error by number of questions, evidence by length-scale, a function on a line.

[H12]: Houlsby, Huszár, Ghahramani & Hernández-Lobato, *Collaborative Gaussian Processes for Preference Learning*, NIPS
2012.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from heedful.experiments.run import standard_error
from heedful.papers.figure import LineResult, Panel

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLORS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#000000")
DASHES = ("-", (0, (5, 1.2)), (0, (6, 1.5, 1.5, 1.5)))
"""The dashes by which lines differ in grey, too."""
FILLED: tuple[Literal["full", "none", "left", "bottom"], ...] = ("full", "none", "left", "bottom")
"""How the marks of each model are filled, so that models differ in grey, too."""
RULES = {"B": ("-", "o"), "E": ((0, (4, 1.5)), "s"), "R": ((0, (1, 1.2)), "^")}
"""the dash and the mark of each acquisition function, by the last letter of a line's label (B: BALD, E: MES, R:
random)"""


def questions(axes: Axes, panel: Panel, lines: Mapping[str, LineResult]) -> None:
    """Draw, on `axes`, the test error of `lines` (results by label of the curve) by the number of questions: one colour
    and filling for each model, one dash for each acquisition function.
    """
    models = list(dict.fromkeys(label.rpartition("-")[0] for label in lines))
    for label, result in lines.items():
        model, _, rule = label.rpartition("-")
        dash, mark = RULES.get(rule, RULES["B"])
        mean, error = result.regrets.mean(axis=0), np.nan_to_num(standard_error(result.regrets))
        place = models.index(model)
        color, filled = COLORS[place % len(COLORS)], FILLED[place % len(FILLED)]
        axes.errorbar(
            np.arange(mean.size), mean, error, label=label, color=color, linestyle=dash, marker=mark, markersize=3.5,
            linewidth=1.4, fillstyle=filled,
        )  # fmt: skip
    axes.set_xlabel("questions asked of everybody")
    axes.set_ylabel(panel.measure.axis)


def scales(axes: Axes, panel: Panel, lines: Mapping[str, LineResult]) -> None:
    """Draw the log evidence and log-likelihood (left axis, nats per answer) and the error (right axis) of `lines` by
    length-scale, with a ring at each optimum."""
    right = axes.twinx()
    right.spines["top"].set_visible(False)
    for i, (label, result) in enumerate(lines.items()):
        mean = result.regrets.mean(axis=0)
        wrong = label == "error"
        on = right if wrong else axes
        dash = (0, (1, 1.2)) if wrong else DASHES[i % len(DASHES)]
        best = int(mean.argmin() if wrong else mean.argmax())
        on.plot(result.marks, mean, color=COLORS[i], linestyle=dash, linewidth=1.5)
        on.plot(result.marks[best], mean[best], marker="o", markersize=9, fillstyle="none", color=COLORS[i])
        axes.plot([], [], color=COLORS[i], linestyle=dash, label=label)
    axes.set_xscale("log", base=2)
    axes.set_xlabel("length-scale, times that of the tables")
    axes.set_ylabel("nats an answer")
    right.set_ylabel("test error")


def toy(axes: Axes, panel: Panel, lines: Mapping[str, LineResult]) -> None:
    """Draw Figure 1 of [H12] on `axes`: a function with its standard deviation and the labels that it was fitted to,
    and below them the acquisition functions BALD and MES, all from `lines` (results by label of the curve).
    """
    curve = {label: (result.marks, result.regrets[0]) for label, result in lines.items()}
    grid, mean = curve.pop("mean")
    _, sd = curve.pop("standard deviation")
    x, y = curve.pop("labels")
    axes.plot(grid, mean, color="#000000", linewidth=1.5, label="mean")
    axes.fill_between(grid, mean - sd, mean + sd, color="#000000", alpha=0.15, linewidth=0, label="standard deviation")
    base = float((mean - sd).min()) - 2.5
    for i, (label, (_, bits)) in enumerate(curve.items()):
        style: dict[str, Any] = {"color": COLORS[i], "linestyle": DASHES[i % len(DASHES)], "linewidth": 1.5}
        axes.plot(grid, base + 2.0 * bits, label=f"{label}, bits (from the lower edge)", **style)
        axes.axvline(grid[bits.argmax()], color=COLORS[i], linestyle=":", linewidth=1.2)
    for sign, mark in ((1.0, "o"), (-1.0, "x")):
        labels = y == sign
        axes.plot(x[labels], sign * np.ones(int(labels.sum())), mark, color="0.35", fillstyle="none", markersize=5)
    axes.set_ylim(bottom=base)
    axes.set_xlabel("input")
    axes.set_ylabel("function, labels")
