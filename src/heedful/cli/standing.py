"""`heedful standing`: the ranking of a loop's items by what people chose, and how sure it is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from heedful.cli.board import show_board, show_remarks
from heedful.cli.common import Json, Name, Own, Without, open_loop
from heedful.cli.console import print_json, say
from heedful.core.wording import count

if TYPE_CHECKING:
    from heedful.results.board import Board

ROWS = 50
"""The most rows of the printed table; --json has all."""


def standing(
    name: Name,
    person: Annotated[
        str | None,
        typer.Option(help="The person whose ranking it is; by default everybody's together.", show_default="all"),
    ] = None,
    without: Without = None,
    own: Own = None,
    json: Json = False,
) -> None:
    """An item's place lies in the range shown with 90 % probability; "≈" marks an item that cannot be told from the
    next one. Without --person the ranking is that of the average of all people. For a person without answers, which is
    said, it is what is known of somebody new.

    Exit codes: 0 said; 1 the loop cannot be read; 2 bad input, such as a loop of another kind.
    """
    from heedful.boards.data_quality import left_out
    from heedful.studies.answers import habits
    from heedful.studies.arena import outputs_of
    from heedful.studies.things import labels

    with open_loop(name, own, read_only=True) as loop:
        found = loop.standing(person, without=without or ())
        before = loop.standing(person) if without else found
        title, arena = str(loop.path), outputs_of(loop.path) is not None
        called = labels(loop, found.items)
        answered = None if person is None else [person]
        odd = habits(loop, answered, without or ())
    changed = left_out(without, *(called[board.items[0]] for board in (before, found))).message if without else ""
    if json:
        from heedful.results.answers import plain

        print_json({**plain(found), "called": called, "left_out": changed})
    else:
        _show(found.called(called), title)
        show_remarks(odd, "answers" if found.people > 1 else "")
        if changed:
            say(changed)
        if arena:
            say(f"Questions are chosen by this model of people. The leaderboard of the votes: heedful rank {title}")


def _show(found: Board, title: str) -> None:
    """Print the ranking `found` under this `title`."""
    if found.person is not None and not found.answers:  # perhaps the name was mistyped
        say(f"{found.person}: no answers so far; this is what is believed of somebody new\n")
    whose = "all together prefer" if found.person is None else f"{found.person} prefers"
    show_board(found, f"{title}: what {whose}", ROWS)
    say(found.apart())
    if found.verdict is not None:
        say(f"\n{found.verdict.sentence(found.sure)}")
    people = "" if found.person is not None else f" of {count(found.people, 'person', 'people')}"
    say(f"From {count(found.answers, 'answer')}{people}; model version {found.version}")
