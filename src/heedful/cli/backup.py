"""`heedful backup`, `restore` and `copy`: loops are copied, one or all of a folder or a database."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from heedful.cli.common import Json, Name, asking, database, find_loop, holds_loop, kind_of, place
from heedful.cli.console import BadInput, Failure, note, notes, print_json, say
from heedful.core.wording import count
from heedful.storage.address import SUFFIX, Address, Place, is_address, place_of, shown_path

if TYPE_CHECKING:
    from heedful.server.backup import Part

Home = "a folder that is served, or postgresql://USER@HOST/DATABASE; . is the folder here, or the --database"


def backup(
    source: Annotated[str, typer.Argument(metavar="FROM", help=f"What is backed up: {Home}.")],
    target: Annotated[Path, typer.Argument(metavar="TO", help="The folder of the back-up; made if it is not there.")],
    json: Json = False,
) -> None:
    """Copies all loops with their events, studies with their questions and pictures, and the keys, while a server goes
    on. Each copy is the loop as it was at one moment, and is checked. Again into the same folder it copies what has
    changed since; an interrupted one goes on so. Loops that are not in FROM any more stay in TO.

    Exit codes: 0 all is copied; 1 something could not be copied, as stderr says, and the rest is; 2 bad input.
    """
    from heedful.server.backup import back_up

    _copy(_home("FROM", source), target, back_up, json)


def restore(
    source: Annotated[Path, typer.Argument(metavar="FROM", help="The folder of a back-up.")],
    target: Annotated[str, typer.Argument(metavar="TO", help=f"Where nothing is yet: {Home}.")],
    json: Json = False,
) -> None:
    """Copies all loops and keys of a back-up to where no loop and no key is; what an interrupted one left may be there.
    Keys and links that were revoked since the back-up are valid again, and people who were forgotten since are back:
    revoke them, and forget them, before you start a server.

    Exit codes: 0 all is restored; 1 something could not be, as stderr says, and the rest is; 2 bad input, such as a TO
    where other loops or keys are.
    """
    from heedful.server.backup import restore as restore_all

    with asking():
        to = database() or Path() if target == "." else place_of(target)
    _copy(_home("FROM", str(source)), to, restore_all, json)


def copy(
    name: Name,
    target: Annotated[
        str,
        typer.Argument(
            metavar="TO",
            help="The new loop, named as NAME is; a folder that is there, or postgresql://USER@HOST/DATABASE, gets one "
            "of the same name.",
        ),
    ],
    json: Json = False,
) -> None:
    """The copy has the same events under the same numbers, and so the same model, bit for bit; what was forgotten stays
    so. It is as NAME was at one moment, whoever writes meanwhile, and is there as a whole or not at all. From then on
    the two have nothing to do with each other.

    Exit codes: 0 copied, or an unchanged copy was there; 1 it cannot be read or written; 2 bad input, such as a TO
    where something else is.
    """
    from heedful.loop.copying import copy_loop
    from heedful.storage import Damaged

    source = find_loop(name)
    if not is_address(target) and kind_of(target) == "folder" and not holds_loop(Path(target)):
        to: Place = Path(target) / f"{source.name.removesuffix(SUFFIX)}{SUFFIX}"
    elif isinstance(to := place(target), Address) and not to.key:
        to = to / source.name
    if source == to:
        raise BadInput(f"TO: expected another place than the loop's own, got {shown_path(target)!r}")
    with asking():
        try:
            copied = copy_loop(source, to)
        except Damaged as error:
            raise Failure(str(error)) from error
        except (FileExistsError, FileNotFoundError) as error:
            raise BadInput(f"{error.filename}: {error.strerror}") from error
    if json:
        print_json({"from": str(source), "to": str(to)} | copied._asdict())
    else:
        say(f"{to}: {count(copied.events, 'event')}{'' if copied.new else ', which were there already'}")


def _home(argument: str, given: str) -> Place:
    """Return the folder or database `given`, in which loops are. Raise BadInput, naming the `argument`, if not."""
    with asking():
        home = database() or Path() if given == "." else place_of(given)
    if isinstance(home, Address):
        if home.key:
            raise BadInput(f"{argument}: expected a database, got a loop in one; heedful copy copies one loop")
    elif kind_of(home) != "folder":
        raise BadInput(f"{argument}: expected a folder that is there, got {shown_path(given)!r}")
    elif holds_loop(home):
        raise BadInput(
            f"{argument}: expected the folder that loops are in, got one of them; heedful copy copies one loop"
        )
    return home


def _copy(source: Place, target: Place, copy_all: Callable[[Any, Any], Iterator[Part]], json: bool) -> None:
    """Let `copy_all` copy what is in `source` to `target`, behind a progress bar, and print what became of it.

    Exit with 1 if a part failed."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    from heedful.server.backup import KEYS, parts_of

    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
    parts: list[Part] = []
    with asking():
        try:
            names = parts_of(source)
            if not names:
                raise BadInput(f"FROM: expected loops, or keys, got none in {source}")
            with Progress(*columns, console=notes(), transient=True, disable=not notes().is_terminal) as progress:
                bar = progress.add_task("", total=len(names))
                for part in copy_all(source, target):
                    parts.append(part)
                    progress.update(bar, description=part.name, advance=1)
        except FileExistsError as error:
            raise BadInput(f"TO: {error.filename}: {error.strerror}") from error
    for part in parts:
        if part.problem:
            note(f"{part.name}: {part.problem}")
    if json:
        print_json(parts)
    else:
        loops = Counter(part.status for part in parts if part.name != KEYS)
        told = ", ".join(f"{loops[status]:,} {status}" for status in ("copied", "unchanged", "failed") if loops[status])
        keys = "".join(f"; keys {part.status}" for part in parts if part.name == KEYS)
        say(f"{source} to {target}: {count(loops.total(), 'loop')}{f', {told}' if told else ''}{keys}")
    if any(part.problem for part in parts):
        raise typer.Exit(1)
