"""The files that `heedful simulate` writes: what was measured in every round, and a plot of its average."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from heedful.core.paths import path_kind
from heedful.data.spreadsheet import write_table

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from heedful.experiments.run import Curve, Run
    from heedful.experiments.setting import Setting


def check_path(option: str, path: Path | None, suffixes: Sequence[str]) -> None:
    """Raise ValueError, naming the `option`, if the file `path` cannot be written or ends in none of `suffixes`."""
    if path is None:
        return
    if path.suffix.lower() not in suffixes:
        raise ValueError(f"{option}: expected a name that ends in {' or '.join(suffixes)}, got {path.name!r}")
    if path_kind(path.parent) != "folder":
        raise ValueError(f"{option}: expected a file in a folder that exists, got {str(path)!r}")
    if path_kind(path) == "folder":
        raise ValueError(f"{option}: expected a file, got a folder, {str(path)!r}")
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise ValueError(f"{option}: expected a file that may be written, got {str(path)!r}")


def write_runs(path: Path, runs: Sequence[Run], *, people: bool, measure: str = "regret") -> None:
    """Write what was measured in every round of every run, with full precision.

    The file at `path` is CSV, with columns learner, seed, person (if `people` is true), round, from 1, and `measure`.
    """
    names = ["learner", "seed", "person", "round", measure] if people else ["learner", "seed", "round", measure]
    keys = [[run.learner, run.seed, run.person] if people else [run.learner, run.seed] for run in runs]
    rounds = ([*one, t, cost] for one, run in zip(keys, runs) for t, cost in enumerate(run.regrets.tolist(), 1))
    write_table(path, names, rounds)


def plot(path: Path, curves: dict[str, Curve], learners: dict[str, Any], setting: Setting, title: str) -> None:
    """Plot the average regret (or other measure) of rounds 1 to t against t into the file `path`, for each learner.

    `curves` and `learners` are by name. A band is one standard error to each side; a dashed line is the learner's
    regret bound, if it has one in this `setting`. The vertical axis is logarithmic if values differ by more than ten
    times. `title` stands above the plot.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.2, 4.6), dpi=160, layout="constrained")
    axes = figure.subplots()
    _plot(axes, curves, learners, setting)
    axes.set_title(title, fontsize=10, loc="left")
    axes.grid(which="major", alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, fontsize=9)
    figure.savefig(path)


def _plot(axes: Axes, curves: dict[str, Curve], learners: dict[str, Any], setting: Setting) -> None:
    import numpy as np

    from heedful.experiments.run import bound

    longest = max(curve.mean.size for curve in curves.values())
    t = np.unique(np.geomspace(1, longest, 300).astype(int))
    lowest, highest = np.inf, 0.0
    for color, (name, curve) in enumerate(curves.items()):
        rounds_shown = t[t <= curve.mean.size]
        mean, stderr = curve.mean[rounds_shown - 1], np.nan_to_num(curve.stderr[rounds_shown - 1])
        axes.plot(rounds_shown, mean, color=f"C{color}", label=name, linewidth=1.8)
        axes.fill_between(rounds_shown, mean - stderr, mean + stderr, color=f"C{color}", alpha=0.2, linewidth=0)
        lowest, highest = min(lowest, float(mean.min())), max(highest, float(mean.max()))
    logarithmic = lowest > 0.0 and highest > 10.0 * lowest
    limits = {name: bound(learners[name], setting, t) for name in curves}
    ends = [float(limit[-1]) for limit in limits.values() if limit[-1] < np.inf]
    # Bounds lie far above the curves: they are drawn only where they do not squeeze the curves, the lowest one always.
    ceiling = max(highest * (30.0 if logarithmic else 3.0), 2.0 * min(ends, default=0.0))
    for color, (name, limit) in enumerate(limits.items()):
        if (limit <= ceiling).any():
            axes.plot(t, limit, color=f"C{color}", label=f"{name}: bound", linestyle="--", linewidth=1.2)
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    if logarithmic:
        axes.set_yscale("log")
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
        axes.yaxis.set_minor_formatter(lambda value, _: f"{value:g}" if f"{value:e}"[0] in "25" else "")
        axes.tick_params(axis="y", which="minor", labelsize=7)
    bottom, top = axes.get_ylim()
    axes.set_ylim(bottom if logarithmic else 0.0, min(top, ceiling))
    axes.set_xlim(1, max(longest, 2))
    axes.set_xlabel("round t")
    axes.set_ylabel(f"average {setting.measure} of rounds 1 to t")
