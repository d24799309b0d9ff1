"""`heedful undo`, `rollback` and `forget`: take back what a loop learned, in part or from one person."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from heedful.cli.answers import print_answers, say_way_back
from heedful.cli.common import Json, Name, Own, note_alike, open_loop
from heedful.cli.console import BadInput, print_json, say
from heedful.core.wording import count


def undo(
    name: Name,
    event: Annotated[str, typer.Argument(metavar="EVENT", help="The id of the feedback.")],
    own_learners: Own = None,
    json: Json = False,
) -> None:
    """Exit codes: 0 undone, or undone before; 1 the loop cannot be read or written; 2 bad input; 3 rejected: there is
    no such feedback.
    """
    with open_loop(name, own_learners) as loop:
        answer = loop.undo(event)
        if json or answer.status != "applied":
            print_answers([answer], json)
        else:
            say(f"undone {event}: model version {answer.version}")


def rollback(
    name: Name,
    to: Annotated[
        int,
        typer.Argument(
            metavar="VERSION", help="The version of the model to go back to, as answers and reports state it."
        ),
    ],
    reason: Annotated[str, typer.Option("--reason", metavar="TEXT", help="Why you go back; kept in the log.")] = "",
    own_learners: Own = None,
    json: Json = False,
) -> None:
    """All feedback and undos after that version no longer count. They stay in the log, so you can go back on the
    rollback too. People who were forgotten since then stay forgotten, and the items on offer stay as they are now.

    Exit codes: 0 done, or done before; 1 the loop cannot be read or written; 2 there is no such version.
    """
    with open_loop(name, own_learners) as loop:
        back = loop.rollback(to, reason=reason)
        if json:
            print_json(back._asdict() | {"answer": back.answer._asdict()})
            return
        text = f"the model is that of version {to}: {back.left_out:,} of the feedback left out"
        text += f", {back.restored:,} count again" if back.restored else ""
        text += f"; model version {back.answer.version}"
        say(text)
        if back.forgotten:
            people = "somebody was" if back.forgotten == 1 else f"{back.forgotten:,} people were"
            say(f"Not bit for bit: {people} forgotten since, and stay so.")
        say_way_back(name, back.answer)


def forget(
    name: Name,
    person: Annotated[str, typer.Argument(metavar="PERSON", help="The name under which decisions were made.")],
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")] = False,
    own_learners: Own = None,
    json: Json = False,
) -> None:
    """The model becomes the one that never saw them, bit for bit. Files that `heedful export` wrote, and back-ups,
    cannot be reached; the files are named.

    Exit codes: 0 erased, or nothing was there; 1 the loop cannot be read or written; 2 bad input; 130 not agreed to.
    """
    with open_loop(name, own_learners) as loop:
        if not yes:
            if not sys.stdin.isatty():
                raise BadInput("--yes: expected, as there is nobody to ask")
            typer.confirm(f"Erase all that was decided for and learned from {person!r}?", abort=True, err=True)
        result = loop.forget(person)
        if json:
            print_json({"person": person} | result._asdict())
            return
        note_alike(person, result.alike)
        if not result.events:
            say(f"{person}: nothing in the log was about this person")
            return
        text = f"{person}: {count(result.events, 'event')} erased, from the log, the model and the snapshots"
        say(f"{text}; model version {result.version}")
        exports = ["what was printed by an export to stdout" if path == "-" else path for path in result.exports]
        for where in (*exports, *result.unreached):
            say(f"Out of reach, and may still hold them: {where}")
        place = "folder" if isinstance(loop.path, Path) else "database"
        say(f"Back-ups of the {place} are out of reach, and may still hold them.")
