"""The files that `heedful rank` writes: the ranking and all pairs as CSV, and a plot."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from heedful.cli.ranked import what
from heedful.core.wording import BAR, one_line, share
from heedful.data.spreadsheet import as_cells, write_table

if TYPE_CHECKING:
    from heedful.boards.ranking import PreferenceRanking

PAIRS = ("first", "second", "first_won", "second_won", "ties", "p_first_beats", "p_first_better")


def write_ranking(path: Path, found: PreferenceRanking) -> None:
    """Write the ranking `found` to the CSV file `path`: a row for each item, the best first, with the columns of
    `PreferenceRanking.rows`."""
    rows = found.rows()
    write_table(path, list(rows[0]), [as_cells(row.values()) for row in rows])


def write_pairs(path: Path, found: PreferenceRanking) -> None:
    """Write all pairs of items of the ranking `found` to the CSV file `path`, the item that is ranked higher first.

    The columns are `PAIRS`: wins of each, ties, the probability that the first wins the next comparison, and the
    probability that its utility is greater.
    """
    write_table(path, PAIRS, _pairs(found))


def _pairs(found: PreferenceRanking) -> Iterator[list[object]]:
    order = found.standing.order
    names = [found.names[i] for i in order.tolist()]
    for place, i in enumerate(order[:-1].tolist()):
        others = order[place + 1 :]
        columns = [found.wins[i, others], found.wins[others, i], found.ties[i, others]]
        told = [column.astype(int).tolist() for column in columns]
        beats, better = found.chooser.beats(i, others).tolist(), found.posterior.better(i, others).tolist()
        yield from ([names[place], *row] for row in zip(names[place + 1 :], *told, beats, better))


def draw(path: Path, found: PreferenceRanking, top: int) -> None:
    """Draw the first `top` items of the ranking `found` into the file `path`: utilities with 90 % intervals, best on
    top.

    A grey line on the right joins items that cannot be told apart.
    """
    from matplotlib.figure import Figure

    standing = found.standing
    shown = standing.order.tolist()[:top]
    n = len(shown)
    figure = Figure(figsize=(7.2, min(1.3 + 0.27 * n, 60.0)), dpi=160, layout="constrained")
    axes = figure.subplots()
    mean, error = [float(standing.mean[i]) for i in shown], [BAR * float(standing.sd[i]) for i in shown]
    axes.errorbar(mean, range(n), xerr=error, fmt="o", color="C0", markersize=4.5, elinewidth=1.6, capsize=0)
    edge = max(m + e for m, e in zip(mean, error))
    reach = edge - min(m - e for m, e in zip(mean, error))
    for k, (a, b) in enumerate(standing.alike):
        if a < n:
            at = edge + (0.04 + 0.02 * (k % 3)) * max(reach, 1e-9)  # groups that overlap stand side by side
            axes.plot([at, at], [a - 0.25, min(b, n - 1) + 0.25], color="0.45", linewidth=2.2, solid_capstyle="butt")
    axes.set_yticks(range(n), [_math(one_line(found.names[i])) for i in shown], fontsize=8)
    for i, y in zip(shown, range(n)):
        axes.annotate(
            share(standing.best[i]),
            (1.01, y),
            xycoords=("axes fraction", "data"),
            va="center",
            fontsize=7,
            color="0.3",
        )
    axes.annotate("P(best)", (1.01, -0.9), xycoords=("axes fraction", "data"), va="center", fontsize=7, color="0.3")
    axes.set_ylim(n - 0.5, -0.7 - 0.4)
    told = "utility, in units of the noise of one choice; bars hold 90 %"
    told += "\ngrey: no two of these can be told apart" if found.alike() else ""
    axes.set_xlabel(told, fontsize=8)
    axes.set_title(_math(f"{Path(found.file).name}: {what(found)}"), fontsize=10, loc="left")
    axes.tick_params(axis="x", labelsize=8)
    axes.grid(axis="x", alpha=0.25)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.tick_params(axis="y", length=0)
    figure.savefig(path)


def _math(text: str) -> str:
    """Return a text for matplotlib with its dollar signs escaped, so that none of it is taken for a formula."""
    return text.replace("$", r"\$")
