"""The plot that `heedful rank` writes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from heedful.core.wording import one_line

if TYPE_CHECKING:
    from heedful.results.board import Board


def draw(path: Path, board: Board, title: str, top: int) -> None:
    """Draw the first `top` items of a ranking into the file `path`: utilities or scores with 90 % intervals, best on
    top, and the places of each.

    A grey line on the right joins items that cannot be told apart.
    """
    from matplotlib.figure import Figure

    rows = board.ranking[:top]
    n = len(rows)
    figure = Figure(figsize=(7.2, min(1.3 + 0.27 * n, 60.0)), dpi=160, layout="constrained")
    axes = figure.subplots()
    low, mid, high = zip(*(row.bar for row in rows))
    error = [[m - a for a, m in zip(low, mid)], [b - m for m, b in zip(mid, high)]]
    axes.errorbar(mid, range(n), xerr=error, fmt="o", color="C0", markersize=4.5, elinewidth=1.6, capsize=0)
    reach = max(max(high) - min(low), 1e-9)
    place = {row.item: y for y, row in enumerate(rows)}
    for k, group in enumerate(board.alike):
        if group[0] in place:
            at = max(high) + (0.04 + 0.02 * (k % 3)) * reach  # groups that overlap stand side by side
            ends = [place[group[0]] - 0.25, place.get(group[-1], n - 1) + 0.25]
            axes.plot([at, at], ends, color="0.45", linewidth=2.2, solid_capstyle="butt")
    axes.set_yticks(range(n), [_math(one_line(row.item)) for row in rows], fontsize=8)
    [places] = [column for column in board.columns() if column.name == "place_low"]
    for text, y in [(places.heading, -0.9), *((places.cell(row), float(y)) for y, row in enumerate(rows))]:
        axes.annotate(text, (1.01, y), xycoords=("axes fraction", "data"), va="center", fontsize=7, color="0.3")
    axes.set_ylim(n - 0.5, -0.7 - 0.4)
    what = "score on the Elo scale" if rows[0].utility is None else "utility, in units of the noise of one choice"
    alike = "\ngrey: no two of these can be told apart" if board.alike else ""
    axes.set_xlabel(f"{what}; bars hold 90 %{alike}", fontsize=8)
    axes.set_title(_math(title), fontsize=10, loc="left")
    axes.tick_params(axis="x", labelsize=8)
    axes.grid(axis="x", alpha=0.25)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.tick_params(axis="y", length=0)
    figure.savefig(path)


def _math(text: str) -> str:
    """Return a text for matplotlib with its dollar signs escaped, so that none of it is taken for a formula."""
    return text.replace("$", r"\$")
