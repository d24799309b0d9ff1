"""`heedful seal`: write closed stretches of a loop's log to files."""

from __future__ import annotations

from typing import Annotated

import typer

from heedful.cli.common import Json, Name, Own, asking, open_loop
from heedful.cli.console import BadInput, console, print_json
from heedful.core.wording import count

EVENTS = 1_000_000


def seal(
    name: Name,
    events: Annotated[int, typer.Option(min=1, metavar="N", help="How many events go into a file.")] = EVENTS,
    own: Own = None,
    json: Json = False,
) -> None:
    """Write closed stretches of a loop's log to files, from which its model is made again faster.

    Each stretch of --events events becomes a Parquet file in the loop's folder. The events stay in the log, too. Files
    that are missing, damaged or of another learner are written again. It needs pyarrow
    (`pip install 'heedful[parquet]'`), and the server may go on meanwhile.

    Exit codes: 0 sealed, or there was nothing to seal; 1 the loop cannot be read or written; 2 bad input, or a loop in
    a database.
    """
    with open_loop(name, own) as loop, asking():
        try:
            made = loop.seal(events)
        except ModuleNotFoundError as error:
            raise BadInput(str(error)) from error
        if json:
            print_json({"segments": [each._asdict() for each in made.segments], "left": made.left})
            return
        screen = console()
        for each in made.segments:
            told = (
                f"sealed events {each.first:,} to {each.last:,}: {each.events:,} of them, {each.lessons:,} in columns"
            )
            screen.print(told, markup=False, soft_wrap=True)
        if made.segments and not any(each.lessons for each in made.segments):
            told = "What this loop learns is not in columns: to make its model again takes as long as before."
            screen.print(told, markup=False, soft_wrap=True)
        left = f"{count(made.left, 'event')} at the end {'is' if made.left == 1 else 'are'} in no file"
        told = f"{left}: a file has {events:,}"
        screen.print(told, markup=False, soft_wrap=True)
