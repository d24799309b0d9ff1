"""`heedful undo`, `rollback` and `forget`: take back what a loop learned, in part or from one person."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from heedful.cli.answers import print_answers, say_way_back
from heedful.cli.common import Json, Name, Names, Own, find_loops, note_alike, open_loop
from heedful.cli.console import BadInput, Failure, note, print_json, say
from heedful.core.wording import count

if TYPE_CHECKING:
    from heedful.results.answers import Forgotten


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
    name: Names,
    person: Annotated[
        str | None, typer.Argument(metavar="[PERSON]", help="The name under which decisions were made.")
    ] = None,
    unseen: Annotated[
        float | None,
        typer.Option(
            metavar="DAYS",
            min=0.001,
            help="In place of PERSON: everybody of whom every decision and answer is older than that.",
        ),
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")] = False,
    own_learners: Own = None,
    json: Json = False,
) -> None:
    """The model becomes the one that never saw them, bit for bit: it keeps what others taught, of any age. Files that
    `heedful export` wrote, and back-ups, cannot be reached; the files are named. Of a folder or a database the loops of
    one tenant are gone through: the same name may be somebody else for another one.

    Exit codes: 0 erased, or nothing was there; 1 a loop cannot be read or written, and the others are done; 2 bad
    input; 130 not agreed to.
    """
    if (person is None) == (unseen is None):
        raise BadInput(f"PERSON: expected one, or --unseen DAYS, got {'neither' if person is None else 'both'}")
    loops, many = find_loops(name, tenants=False)
    whom = repr(person) if unseen is None else f"everybody who was not seen for {unseen:g} days"
    if not yes:
        if not sys.stdin.isatty():
            raise BadInput("--yes: expected, as there is nobody to ask")
        where = f" in {count(len(loops), 'loop')}" if many else ""
        typer.confirm(f"Erase all that was decided for and learned from {whom}{where}?", abort=True, err=True)
    done: dict[str, Forgotten] = {}
    for place in loops:
        try:
            with open_loop(place, own_learners) as loop:
                gone = loop.forget_unseen(unseen or 0.0) if person is None else loop.forget(person)
                done[str(place)] = gone
        except (Failure, OSError) as error:
            if not many:
                raise
            note(f"{place}: {error}")
    about = {"person": person} if unseen is None else {"unseen": unseen}
    if json and many:
        left = [str(place) for place in loops if str(place) not in done]
        print_json(
            about | {"loops": [{"loop": place} | gone._asdict() for place, gone in done.items()], "failed": left}
        )
    elif json:
        print_json(about | done[str(loops[0])]._asdict())
    else:
        _tell_forgotten(person, done, len(loops) if many else 0)
        if any(gone.events for gone in done.values()):
            if person is None:
                say("The models keep what people taught who were seen since, and answers to decisions for nobody.")
            home = "folder" if isinstance(loops[0], Path) else "database"
            say(f"Back-ups of the {home} are out of reach, and may still hold them.")
    if len(done) < len(loops):
        raise typer.Exit(1)


def _tell_forgotten(person: str | None, done: Mapping[str, Forgotten], of: int) -> None:
    """Print what was erased of a `person`, or of everybody who was not seen for long, in each loop; `of` is the number
    of loops of a folder, 0 for a single loop."""
    for place, gone in done.items():
        if person is not None:
            note_alike(person, gone.alike)
        if gone.events or not of:
            whom = person if person is not None else count(gone.people, "person", "people")
            text = f"{whom}: {count(gone.events, 'event')} erased, from the log, the model and the snapshots"
            text += f"; model version {gone.version}"
            if not gone.events:
                text = f"{person}: nothing in the log was about this person" if person else "everybody was seen since"
            say(f"{place}: {text}" if of else text)
    exports = [path for gone in done.values() for path in gone.exports]
    exports = ["what was printed by an export to stdout" if path == "-" else path for path in exports]
    for where in dict.fromkeys([*exports, *(where for gone in done.values() for where in gone.unreached)]):
        say(f"Out of reach, and may still hold them: {where}")
    if of:
        events = [gone.events for gone in done.values() if gone.events]
        say(f"{count(sum(events), 'event')} erased in {len(events):,} of {count(of, 'loop')}")
