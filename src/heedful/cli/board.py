"""Rankings as `heedful rank` and `heedful standing` print them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from heedful.boards.sentences import WITHOUT, effects, how, how_ranked, influence, odd_people
from heedful.cli.console import console, new_table, say, width
from heedful.core.wording import count, one_line, percent

if TYPE_CHECKING:
    from rich.table import Table

    from heedful.boards.data_quality import Remark
    from heedful.boards.leaderboard import Leaderboard
    from heedful.boards.random_voters import RandomVoters
    from heedful.boards.ranking import PreferenceRanking
    from heedful.results.board import Board, BoardRow

MOST = 40
"""The most characters of a bar."""
LEAST = 13
"""The fewest characters of a bar, the width of its heading; with less room there is none."""
SPARE = (
    *("utility_low", "utility", "score_low", "votes", "comparisons"),
    *("score", "better_than_next", "best_if_new", "best"),
)
"""Columns that a narrow terminal does without, in this order, so that names and bars have room; but not without scores
where there are no utilities."""
MATRIX = 10
"""The greatest number of models for which the matrix of wins is printed."""


def show_board(board: Board, title: str, top: int) -> None:
    """Print the first `top` items of `board` as a table, with as many columns as the terminal has room for."""
    screen, without, shown = console(), 0, board.ranking[:top]
    spare = [name for name in SPARE if name != "score" or shown[0].utility is not None]
    while without < len(spare) and _room(board, shown, spare[:without]) < LEAST:
        without += 1
    room = min(MOST, _room(board, shown, spare[:without]))
    screen.print(_table(board, shown, spare[:without], title, room if room >= LEAST else 0))
    if len(board.ranking) > top:
        screen.print(f"... and {len(board.ranking) - top:,} more (--top, --json)\n")


def _room(board: Board, shown: Sequence[BoardRow], without: list[str]) -> int:
    """Return how many columns of the terminal are left for bars next to a table without the columns `without`."""
    return console().width - width(_table(board, shown, without)) - 3


def _table(board: Board, shown: Sequence[BoardRow], without: list[str], title: str = "", room: int = 0) -> Table:
    """Return a table of the rows `shown`, with bars `room` characters wide, without the columns `without`."""
    from rich.markup import escape

    out = new_table(title)
    columns = [column for column in board.columns() if column.name not in without]
    for column in columns:
        if column.name == "item":
            out.add_column(column.heading, overflow="fold", max_width=40)
        else:
            out.add_column(column.heading, justify="right", no_wrap=True)
    if room:
        out.add_column(f"{'score' if shown[0].utility is None else 'utility'}, 90 %", no_wrap=True)
    low, high = min(row.bar[0] for row in shown), max(row.bar[2] for row in shown)
    for row in shown:
        cells = [escape(column.cell(row)) for column in columns]
        cells = [f"[yellow]{cell}[/]" if cell.startswith("≈") else cell for cell in cells]
        out.add_row(*cells, *([f"[cyan]{_bar(row, low, high, room)}[/]"] if room else []))
    return out


def _bar(row: BoardRow, low: float, high: float, room: int) -> str:
    """Return the bar of a row in `room` characters, on an axis from `low` to `high`."""
    step = max(high - low, 1e-12) / (room - 1)
    left, middle, right = (min(max(round((value - low) / step), 0), room - 1) for value in row.bar)
    return (" " * left + "─" * (middle - left) + "●" + "─" * (right - middle)).ljust(room)


def show_remarks(remarks: Sequence[Remark], what: str, random: RandomVoters | None = None) -> None:
    """Print remarks and who votes at random; where they name people whose answers look odd, how to leave these out,
    unless `what` they gave is ""."""
    odd = odd_people(remarks, random)
    for line in dict.fromkeys([*(each.message for each in remarks), *(message for message, _ in odd)]):
        say(f"Note: {line}")
    if odd and what:
        say(WITHOUT.format(what))


# ---------------------------------------------------------------------------- a leaderboard


def show_leaderboard(found: Leaderboard, top: int) -> None:
    """Print a leaderboard: its table, the matrix of wins if it is small, and sentences on what follows from it; then
    the boards of categories."""
    screen = console()
    show_board(found.board, f"{found.file}: {found.title}", top)
    if len(found.models) <= MATRIX:
        matrix = _matrix(found)
        if width(matrix) <= screen.width:
            screen.print(matrix)
    for line in [found.board.apart(), *influence(found), *effects(found), *how(found)]:
        say(line)
    show_remarks(found.remarks, "votes", found.random)
    for name, part in found.categories:
        screen.print()
        show_board(part.board, f"{one_line(name)}: {count(part.board.answers, 'vote')}", top)


def _matrix(found: Leaderboard) -> Table:
    from rich.markup import escape

    out = new_table("wins of the row against the column, as a share of all votes; a tie is half a win")
    out.add_column("item", overflow="fold", max_width=24)
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


# ---------------------------------------------------------------------------- a ranking of choices


def show_ranking(found: PreferenceRanking, top: int) -> None:
    """Print the ranking of a table of choices, then sentences on what follows from it."""
    board = found.board
    show_board(board, f"{found.file}: {found.title}", top)
    verdict = "" if board.verdict is None else board.verdict.sentence(board.sure)
    for line in [board.apart(), f"{verdict} {found.ask}".rstrip(), "", *how_ranked(found)]:
        say(line)
    show_remarks(found.remarks, "answers" if len(found.estimate.choices.people) > 1 else "")
