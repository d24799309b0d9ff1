"""Print what an interaction (kind of feedback) says of a loop: lines, and tables with small charts over time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from heedful.cli.console import console, new_table, width

if TYPE_CHECKING:
    import rich.table

    from heedful.loop.interactions.telling import Part, Table

BARS = "▁▂▃▄▅▆▇█"
COLUMNS, FEWEST = 40, 10
"""The most and the fewest bars of the chart over time."""
ROWS = 10
"""The most rows of a printed table; --json has all."""
NARROWEST, NARROW = 12, 20
"""The widths in characters to which a column of texts may be folded: so that all columns have room, and where a table
is printed in pieces."""
EDGE = 3
"""How many characters a column takes in addition to its text."""


def print_parts(parts: Sequence[Part], title: str = "", beyond: str = "--json has all", apart: bool = False) -> None:
    """Print the lines and tables in `parts`.

    `title` is put before the title of every table. Of a long table `ROWS` rows are printed, and `beyond` says where the
    others are. With `apart`, an empty line follows each line, as after a paragraph.
    """
    from heedful.loop.interactions.telling import Table

    screen = console()
    for part in parts:
        if isinstance(part, Table):
            _print_table(part, title)
            if len(part.rows) > ROWS:
                screen.print(f"and {len(part.rows) - ROWS:,} more, {beyond}")
        else:
            screen.print(f"{part.text}\n" if apart else part.text, markup=False, soft_wrap=True)


def _print_table(told: Table, title: str) -> None:
    """Print the table `told`; `title`, unless it is "", stands before its own.

    A table with values over time has a last column with a small chart for each row, as wide as the numbers leave room
    for. Neither numbers nor the words of headings are cut: where there is no room for all columns, there is no chart,
    and columns without room follow below, each time with the first column.
    """
    from rich.markup import escape

    def filled(heading: str, columns: Mapping[int, int], bars: int) -> rich.table.Table:
        table = new_table(escape(heading))
        for i, least in columns.items():
            text = i in told.texts
            table.add_column(
                told.columns[i],
                overflow="fold",
                justify="left" if text else "right",
                width=least or None,
                no_wrap=bool(told.trends) and not text,
            )
        if bars:
            table.add_column("over time", no_wrap=True)
        for i, row in enumerate(told.rows[:ROWS]):
            line = [f"[cyan]{_line(told.trends[i], bars)}[/]"] if bars else []
            table.add_row(*(escape(row[j]) for j in columns), *line)
        return table

    room, bars = console().width, 0
    pieces = _pieces(told, room)
    if told.trends and len(pieces) == 1:
        bars = next((n for n in range(COLUMNS, FEWEST - 1, -1) if width(filled("", pieces[0], n)) <= room), 0)
    for i, columns in enumerate(pieces):
        heading = f"{title}: {told.title}" if title else told.title
        console().print(filled(heading if i == 0 else "", columns, bars))


def _pieces(told: Table, room: int) -> list[dict[int, int]]:
    """Return the columns of the table `told`, by index, with their widths (0: as wide as needed), in pieces that fit
    side by side into `room` characters.

    It is one piece if there is room for all once headings are folded between words, and texts; otherwise each piece has
    the first column."""
    n = len(told.columns)
    cells = [max((len(row[i]) for row in told.rows[:ROWS]), default=0) for i in range(n)]
    whole = [max(cell, len(name)) for cell, name in zip(cells, told.columns)]
    if 1 + sum(whole) + EDGE * n <= room:
        return [dict.fromkeys(range(n), 0)]
    folded = [min(cell, NARROWEST) if i in told.texts else cell for i, cell in enumerate(cells)]
    folded = [max(cell, *map(len, name.split()), 0) for cell, name in zip(folded, told.columns)]
    left = room - 1 - sum(folded) - EDGE * n
    if left >= 0:
        for i in sorted(range(n), key=lambda i: whole[i]):  # what is left goes to the columns that need least of it
            more = min(whole[i] - folded[i], left)
            folded[i], left = folded[i] + more, left - more
        return [dict(enumerate(folded))]
    widths = [EDGE + (min(each, max(NARROW, len(told.columns[i]))) if i in told.texts else each)
              for i, each in enumerate(whole)]  # fmt: skip
    pieces, used = [{0: 0}], 1 + widths[0]
    for i in range(1, n):
        if len(pieces[-1]) > 1 and used + widths[i] > room:
            pieces.append({0: 0})
            used = 1 + widths[0]
        pieces[-1][i] = 0
        used += widths[i]
    return pieces


def _line(means: Sequence[float | None], columns: int) -> str:
    """Return a small chart of `means`, from 0 to 1, as at most `columns` bars; a mean that is None leaves a gap."""
    step = max(-(-len(means) // columns), 1)
    line = ""
    for start in range(0, len(means), step):
        there = [mean for mean in means[start : start + step] if mean is not None]
        line += BARS[min(int(8 * sum(there) / len(there)), 7)] if there else " "
    return line
