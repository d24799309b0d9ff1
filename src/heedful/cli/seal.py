"""`heedful seal`: write closed stretches of a loop's log to files."""

from __future__ import annotations

from typing import Annotated

import typer

from heedful.cli.common import Json, Name, Own, open_loop
from heedful.cli.console import BadInput, print_json, say
from heedful.core.wording import count

EVENTS = 1_000_000


def seal(
    name: Name,
    events: Annotated[int, typer.Option(min=1, metavar="N", help="How many events go into a file.")] = EVENTS,
    own_learners: Own = None,
    json: Json = False,
) -> None:
    """Each stretch of --events events becomes a Parquet file in the loop's folder. The events stay in the log, too.
    Files that are missing, damaged or of another learner are written again. It needs pyarrow (`pip install
    'heedful[parquet]'`), and the server may go on meanwhile.

    Exit codes: 0 sealed, or there was nothing to seal; 1 the loop cannot be read or written; 2 bad input, or a loop in
    a database.
    """
    with open_loop(name, own_learners) as loop:
        try:
            sealed = loop.seal(events)
        except ModuleNotFoundError as error:
            raise BadInput(str(error)) from error
        if json:
            print_json(sealed)
            return
        for segment in sealed.segments:
            text = f"sealed events {segment.first:,} to {segment.last:,}: {segment.events:,} of them"
            text += f", {segment.lessons:,} in columns"
            say(text)
        if sealed.segments and not any(segment.lessons for segment in sealed.segments):
            say("What this loop learns is not in columns: to make its model again takes as long as before.")
        left = f"{count(sealed.left, 'event')} at the end {'is' if sealed.left == 1 else 'are'} in no file"
        say(f"{left}: a file has {events:,}")
