"""A leaderboard of an arena, as `heedful rank` prints it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from heedful.boards.sentences import apart, effects, how, influence, random_voters
from heedful.cli.console import console, new_table, width
from heedful.core.wording import count, one_line, percent, share

if TYPE_CHECKING:
    from rich.table import Table

    from heedful.boards.leaderboard import Leaderboard

COLUMNS = 40
"""The most characters of a bar."""
LEAST = 12
"""The fewest characters of a bar; with less room there is none."""
SPARE = ("over next", "best", "votes")
"""Columns that a narrow terminal does without, in this order."""
MATRIX = 10
"""The greatest number of models for which the matrix of wins is printed."""


def show_board(found: Leaderboard, top: int) -> None:
    """Print the first `top` models of a leaderboard as a table, the matrix of wins of a small board, and sentences on
    what follows from it; then the boards of categories."""
    screen = console()
    order = found.order.tolist()[:top]
    _print_table(found, order)
    if len(found.models) > top:
        screen.print(f"... and {len(found.models) - top:,} more (--top, --json)\n")
    if len(found.models) <= MATRIX:
        matrix = _matrix(found)
        if width(matrix) <= screen.width:
            screen.print(matrix)
    for line in [*apart(found), *influence(found), *effects(found), *how(found)]:
        screen.print(line, markup=False, soft_wrap=True)
    for each in found.remarks:
        screen.print(f"Note: {each.message}", markup=False, soft_wrap=True)
    for line in random_voters(found):
        screen.print(line, markup=False, soft_wrap=True)
    for name, board in found.categories:
        screen.print()
        _print_table(board, board.order.tolist()[:top], f"{one_line(name)}: {count(board.total, 'vote')}")


def _print_table(found: Leaderboard, shown: list[int], title: str = "") -> None:
    """Print the table of a leaderboard, with as many columns as the terminal has room for."""
    screen, without = console(), 0
    while without < len(SPARE) and _room(found, shown, without) < 0:
        without += 1
    room = min(COLUMNS, _room(found, shown, without) - 3)
    screen.print(_table(found, shown, room if room >= LEAST else 0, title, SPARE[:without]))


def _room(found: Leaderboard, shown: list[int], without: int) -> int:
    """Return how many columns of the terminal a table leaves free that lacks the first `without` columns of `SPARE`."""
    table = _table(found, shown, 0, "", SPARE[:without])
    table.min_width = None  # the title may be longer than the table
    return console().width - width(table)


def _table(found: Leaderboard, shown: list[int], room: int, title: str = "", without: tuple[str, ...] = ()) -> Table:
    """Return a table of a leaderboard, with a row for each model number in `shown` and bars `room` characters wide.

    `without` are names of columns that are left out.
    """
    from rich.markup import escape

    n = len(found.models)
    told = title or f"{found.file}: leaderboard of {count(n, 'model')} from {count(found.total, 'vote')}"
    out = new_table(escape(told))
    names = ("", "model", "score", "90 %", "place", "votes", "best", "over next")
    for name in names:
        if name in without:
            continue
        if name == "model":
            out.add_column(name, overflow="fold", max_width=40)
        else:
            out.add_column(name, justify="right", no_wrap=True)
    if room:
        out.add_column("score, 90 %", no_wrap=True)
    low, high = min(float(found.low[i]) for i in shown), max(float(found.high[i]) for i in shown)
    better = found.over_next
    for row, i in enumerate(shown):
        a, b = int(found.place_low[i]), int(found.place_high[i])
        sure = better[row]
        cells = [str(int(found.place[i])), escape(one_line(found.models[i], 80)), f"{found.score[i]:,.0f}"]
        cells += [f"{found.low[i]:,.0f} to {found.high[i]:,.0f}", str(a) if a == b else f"{a}-{b}"]
        cells += [f"{found.votes[i]:,}", share(found.best[i])]
        cells += ["" if sure is None else share(sure) if sure >= found.sure else f"[yellow]≈ {share(sure)}[/]"]
        cells = [cell for name, cell in zip(names, cells) if name not in without]
        cells += [f"[cyan]{_bar(found, i, low, high, room)}[/]"] if room else []
        out.add_row(*cells)
    return out


def _bar(found: Leaderboard, i: int, low: float, high: float, room: int) -> str:
    step = max(high - low, 1e-12) / (room - 1)
    ends = [round((float(value) - low) / step) for value in (found.low[i], found.score[i], found.high[i])]
    left, middle, right = (min(max(end, 0), room - 1) for end in ends)
    return (" " * left + "─" * (middle - left) + "●" + "─" * (right - middle)).ljust(room)


def _matrix(found: Leaderboard) -> Table:
    from rich.markup import escape

    out = new_table("wins of the row against the column, as a share of all votes; a tie is half a win")
    out.add_column("model", overflow="fold", max_width=24)
    order = found.order.tolist()
    for place in range(1, len(order) + 1):
        out.add_column(str(place), justify="right", no_wrap=True)
    wins, ties = found.wins, found.ties
    for place, i in enumerate(order, 1):
        cells = []
        for j in order:
            met = wins[i, j] + wins[j, i] + ties[i, j]
            cells.append("" if i == j or met == 0 else percent((wins[i, j] + 0.5 * ties[i, j]) / met, 2))
        out.add_row(escape(f"{place} {one_line(found.models[i])}"), *cells)
    return out
