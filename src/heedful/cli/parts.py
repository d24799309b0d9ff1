"""Print what an interaction (kind of feedback) says of a loop: lines, and tables with small charts over time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from heedful.cli.console import console, new_table, print_json, say, width

if TYPE_CHECKING:
    import rich.table

    from heedful.loop.interactions.telling import Part
    from heedful.results.table import Table

BARS = "▁▂▃▄▅▆▇█"
COLUMNS, FEWEST = 40, 10
"""The most and the fewest bars of the chart over time."""
ROWS = 10
"""The most rows of a printed table; --json has all."""
NARROWEST, NARROW = 10, 20
"""The widths in characters to which a column of texts may be folded, if no word of it is longer: so that all columns
have room, and where a table is printed in pieces."""
EDGE = 3
"""How many characters a column takes in addition to its text."""


def print_parts(parts: Sequence[Part], title: str = "", beyond: str = "--json has all", apart: bool = False) -> None:
    """Print the lines and tables in `parts`.

    `title` is put before the title of every table. Of a long table `ROWS` rows are printed, and `beyond` says where the
    others are. With `apart`, an empty line follows each line, as after a paragraph.
    """
    from heedful.results.table import Table

    screen = console()
    for part in parts:
        if isinstance(part, Table):
            _print_table(part, title)
            if len(part.rows) > ROWS:
                screen.print(f"and {len(part.rows) - ROWS:,} more, {beyond}")
        else:
            say(f"{part.text}\n" if apart else part.text)


def print_result(result: object, json: bool, parts: Sequence[Part], beyond: str = "--json has all") -> None:
    """Print `result` as JSON, or the `parts` that tell it, where `beyond` is as in `print_parts`."""
    if json:
        print_json(result)
    else:
        print_parts(parts, beyond=beyond)


def _print_table(part: Table, title: str) -> None:
    """Print a table: columns without room follow below, each time with the first; a chart only if there is room."""
    from rich.markup import escape

    def filled(heading: str, columns: Mapping[int, int], bars: int) -> rich.table.Table:
        table = new_table(escape(heading))
        for i, least in columns.items():
            text = i in part.texts
            table.add_column(
                part.columns[i],
                overflow="fold",
                justify="left" if text else "right",
                width=least or None,
                no_wrap=bool(part.trends) and not text,
            )
        if bars:
            table.add_column("over time", no_wrap=True)
        for i, row in enumerate(part.rows[:ROWS]):
            line = [f"[cyan]{_line(part.trends[i], bars)}[/]"] if bars else []
            table.add_row(*(escape(row[j]) for j in columns), *line)
        return table

    room, bars = console().width, 0
    pieces = _pieces(part, room)
    if part.trends and len(pieces) == 1:
        bars = next((n for n in range(COLUMNS, FEWEST - 1, -1) if width(filled("", pieces[0], n)) <= room), 0)
    for i, columns in enumerate(pieces):
        heading = f"{title}: {part.title}" if title else part.title
        console().print(filled(heading if i == 0 else "", columns, bars))


def _pieces(table: Table, room: int) -> list[dict[int, int]]:
    """Return the columns of `table` with their widths (0: as wide as needed), in pieces that fit into `room`."""
    n = len(table.columns)
    one_piece = _fit(table, range(n), room, NARROWEST)
    if one_piece is not None:
        return [one_piece]
    pieces = [[0]]
    for i in range(1, n):
        if len(pieces[-1]) > 1 and _fit(table, [*pieces[-1], i], room, NARROW) is None:
            pieces.append([0])
        pieces[-1].append(i)
    return [_fit(table, piece, room, NARROW) or dict.fromkeys(piece, 0) for piece in pieces]


def _fit(table: Table, columns: Sequence[int], room: int, narrow: int) -> dict[int, int] | None:
    """Return the widths of `columns` that fit into `room` characters, texts folded to `narrow` at least; else None."""
    cells = {i: [row[i] for row in table.rows[:ROWS]] for i in columns}
    full = {i: max(map(len, [table.columns[i], *cells[i]])) for i in columns}
    left = room - 1 - EDGE * len(columns)
    if sum(full.values()) <= left:
        return dict.fromkeys(columns, 0)
    widths = {}
    for i in columns:
        folded = full[i] if i in table.texts else max(map(len, cells[i]), default=0)
        if i in table.texts:
            words = [len(word) for cell in cells[i] for word in cell.split()]
            folded = min(folded, max(narrow, min(max(words, default=0), room // 2)))
        widths[i] = max([folded, *map(len, table.columns[i].split())])
    left -= sum(widths.values())
    if left < 0:
        return None
    for i in sorted(columns, key=full.__getitem__):  # what is left goes to the columns that need least of it
        more = min(full[i] - widths[i], left)
        widths[i], left = widths[i] + more, left - more
    return widths


def _line(means: Sequence[float | None], columns: int) -> str:
    """Return a small chart of `means`, from 0 to 1, as at most `columns` bars; a mean that is None leaves a gap."""
    step = max(-(-len(means) // columns), 1)
    line = ""
    for start in range(0, len(means), step):
        present = [mean for mean in means[start : start + step] if mean is not None]
        line += BARS[min(int(8 * sum(present) / len(present)), 7)] if present else " "
    return line
