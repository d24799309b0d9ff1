"""The files that `heedful rank` writes about an arena: the leaderboard and all pairs as CSV, and a plot."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from heedful.core.wording import count, one_line
from heedful.data.spreadsheet import write_table
from heedful.studies.board_page import BOARD, board_rows

if TYPE_CHECKING:
    from heedful.boards.leaderboard import Leaderboard

PAIRS = ("first", "second", "first_won", "second_won", "ties", "p_first_beats")


def write_board(path: Path, found: Leaderboard) -> None:
    """Write the leaderboard `found` to the CSV file `path`, a row for each model, the best first; then, if it has
    categories, the board of each, with its name in the last column.
    """
    write_table(path, BOARD, board_rows(found))


def write_board_pairs(path: Path, found: Leaderboard) -> None:
    """Write the pairs of models that met to the CSV file `path`, the higher one first.

    The columns are `PAIRS`: wins of each, ties, and the probability that the first wins a vote that is no tie.
    """
    write_table(path, PAIRS, _pairs(found))


def _pairs(found: Leaderboard) -> Iterator[list[object]]:
    a, b, won, lost, ties = (column.copy() for column in found.pairs)
    turned = found.place[a] > found.place[b]
    a[turned], b[turned] = b[turned], a[turned].copy()
    won[turned], lost[turned] = lost[turned], won[turned].copy()
    at = (found.place[a] * (len(found.models) + 1) + found.place[b]).argsort(kind="stable")
    columns = [column[at].tolist() for column in (a, b, won, lost, ties, found.beats(a, b))]
    for first, second, *rest in zip(*columns):
        yield [found.models[first], found.models[second], *rest]


def draw_board(path: Path, found: Leaderboard, top: int) -> None:
    """Draw the first `top` models of a leaderboard into the file `path`: scores with 90 % intervals, best on top."""
    from matplotlib.figure import Figure

    shown = found.order.tolist()[:top]
    n = len(shown)
    figure = Figure(figsize=(7.2, min(1.3 + 0.27 * n, 60.0)), dpi=160, layout="constrained")
    axes = figure.subplots()
    score = [float(found.score[i]) for i in shown]
    error = [float(found.high[i] - found.score[i]) for i in shown]
    axes.errorbar(score, range(n), xerr=error, fmt="o", color="C0", markersize=4.5, elinewidth=1.6, capsize=0)
    axes.set_yticks(range(n), [one_line(found.models[i]).replace("$", r"\$") for i in shown], fontsize=8)
    for i, y in zip(shown, range(n)):
        low, high = int(found.place_low[i]), int(found.place_high[i])
        axes.annotate(
            str(low) if low == high else f"{low}-{high}",
            (1.01, y),
            xycoords=("axes fraction", "data"),
            va="center",
            fontsize=7,
            color="0.3",
        )
    axes.annotate("place", (1.01, -0.9), xycoords=("axes fraction", "data"), va="center", fontsize=7, color="0.3")
    axes.set_ylim(n - 0.5, -0.7 - 0.4)
    axes.set_xlabel("score on the Elo scale; bars hold 90 %", fontsize=8)
    title = f"{Path(found.file).name}: {count(found.total, 'vote')}".replace("$", r"\$")
    axes.set_title(title, fontsize=10, loc="left")
    axes.tick_params(axis="x", labelsize=8)
    axes.grid(axis="x", alpha=0.25)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.tick_params(axis="y", length=0)
    figure.savefig(path)
