"""Helpers of the commands about loops: find and open a loop, read JSON and files, parse NAME=VALUE, report errors."""

from __future__ import annotations

import json
import os
import re
import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from heedful.cli.console import BadInput, Failure, note, reading_input
from heedful.core.paths import PathKind, path_kind
from heedful.storage.address import LOG, SUFFIX, Address, Place, is_address, place_of, shown_path

if TYPE_CHECKING:
    from heedful.loop import Loop

Name = Annotated[
    str,
    typer.Argument(
        metavar="NAME", help="The loop: cars is the folder ./cars.heedful; with a / or .heedful, that folder."
    ),
]
Names = Annotated[
    str,
    typer.Argument(
        metavar="NAME", help="The loop, as in other commands; or a folder with loops, a database's URL: all of them."
    ),
]
Own = Annotated[
    list[str] | None,
    typer.Option(
        "--own", metavar="SPEC", help="A learner of the loop that is your own FILE.py:Class; may be repeated."
    ),
]
DecisionId = Annotated[str, typer.Argument(metavar="DECISION", help="The id that `heedful decide` gave.")]
Without = Annotated[
    list[str] | None, typer.Option(metavar="NAME", help="Leave this person's answers out; may be repeated.")
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON, and nothing else, on stdout.")]


def format_options(verb: str) -> tuple[Any, Any]:
    """Return what typer needs for --as and --option of a command that writes or reads (`verb`) formats of others."""
    from heedful.io.formats import formats_for

    formats, own = formats_for(verb), dict[str, list[str]]()
    for name, format in formats.items():
        own.setdefault(", ".join(format.options), []).append(name)
    told = "; ".join(f"{name} ({format.about})" for name, format in formats.items())
    of = "; ".join(f"of {', '.join(names)} {options}" for options, names in own.items() if options)
    return (
        typer.Option("--as", metavar="FORMAT", help=f"A format of others: {told}.", show_default="our own"),
        typer.Option("--option", metavar="NAME=VALUE", help=f"An option of that format: {of}. May be repeated."),
    )


def use_database(url: str, typed: bool = False) -> None:
    """Set the environment so that this process looks for loops in the PostgreSQL database at `url`, not in folders.

    If it was `typed` on the command line, warn of a password in it. Raise BadInput if it is no such URL.
    """
    if not is_address(url):
        shown = shown_path(url) if shown_path(url) != url else "another text"  # there may be a password in it
        raise BadInput(f"--database: expected postgresql://USER@HOST/DATABASE, got {shown}")
    if "#" in url:
        problem = "got one with a #: in a password write %23, and name the loop in the command"
        raise BadInput(f"--database: expected postgresql://USER@HOST/DATABASE, {problem}")
    if typed and re.search(r"://[^/?]*:[^/?]*@|[?&]password=", url):
        problem = "others on this machine can read its password in the list of processes"
        note(f"--database: {problem}: leave it out, and set PGPASSWORD, or set HEEDFUL_DATABASE instead of --database")
    os.environ["HEEDFUL_DATABASE"] = url


def database() -> Address | None:
    """Return the database in which the loops of this command are; None if they are in folders."""
    url = os.environ.get("HEEDFUL_DATABASE")
    return Address(url) if url else None


def place(name: str) -> Place:
    """Return the folder of the loop `name`: NAME.heedful, or NAME itself if it ends in .heedful or contains a slash.

    With --database it is the address of the loop NAME, or TENANT/NAME, in the database; "postgresql://...#NAME" is one
    itself. The loop need not exist. Raise BadInput if the name is blank.
    """
    if is_address(name) or shown_path(name) != name:
        with asking():
            return place_of(name)
    address = database()
    if address is not None and name.strip():
        return address / name
    separators = [mark for mark in (os.sep, os.altsep, "/") if mark]
    if not name.strip():
        raise BadInput(f"NAME: expected the name of a loop, got {name!r}")
    as_it_is = name.endswith(".heedful") or any(mark in name for mark in separators)
    return Path(name if as_it_is else f"{name}.heedful")


def kind_of(path: str | Path) -> PathKind:
    """Return what is at `path`, as `path_kind` says it. Raise BadInput where the system does not tell."""
    with reading_input():
        return path_kind(path)


def holds_loop(folder: Path) -> bool:
    """Return whether `folder` is that of a loop. Raise BadInput where the system does not tell."""
    return kind_of(folder / LOG) == "file"


def find_loop(name: str) -> Place:
    """Return the folder of the existing loop `name` (see `place`). Raise BadInput, which says how to make one, if there
    is none. In a database, opening it tells whether it exists."""
    folder = place(name)
    if isinstance(folder, Address):
        return folder
    if not holds_loop(folder):
        wrong = "this folder holds no loop" if kind_of(folder) == "folder" else "no such loop"
        raise BadInput(f"{folder}: {wrong}; make one: {shlex.join(['heedful', 'init', name, 'ITEMS.csv'])}")
    return folder


def find_loops(name: str, tenants: bool = True) -> tuple[list[Place], bool]:
    """Return (the loops that `name` names, whether it names a folder, a tenant or a database with loops).

    Otherwise there is one, which `find_loop` finds. The name "." is the current folder, or the database of --database.
    If `tenants` is false, those of tenants are left out. Raise BadInput if there is no loop.
    """
    home = database() or Path() if name == "." else place(name)
    if isinstance(home, Path) and not holds_loop(home):
        home = Path(name)
    if isinstance(home, Address) or (kind_of(home) == "folder" and not holds_loop(home)):
        from heedful.loop.copying import loops_in

        with asking():
            there = loops_in(home)
        keys = [key for key in there if tenants or "/" not in key]
        if keys:
            return [home / f"{key}{SUFFIX}" for key in keys], True
        if there:
            raise BadInput(f"{name}: expected the loops of a tenant, as the same name may be somebody else there")
    return [find_loop(name)], False


@contextmanager
def asking() -> Iterator[None]:
    """Context manager for calls of a loop: raise the errors of the block as those of a command.

    ValueError and LookupError, by which a loop refuses something, become BadInput; TimeoutError, if another process is
    writing, becomes Failure. KeyError and IndexError are bugs, and are raised unchanged.
    """
    try:
        yield
    except (KeyError, IndexError):
        raise
    except (ValueError, LookupError) as error:
        raise BadInput(str(error)) from error
    except TimeoutError as error:
        raise Failure(str(error)) from error


@contextmanager
def open_loop(
    name: str | Place, own_learners: Sequence[str] | None, *, rehearse_only: bool = False, read_only: bool = False
) -> Iterator[Loop]:
    """Open the loop `name`, or the one at a place, for the block, which is run as by `asking`, and close it; print its
    warnings on stderr.

    `own_learners` names those of the loop's learners that are the user's own (FILE.py:Class), so that their code may
    run. With `rehearse_only` it is a copy, which goes with the block (`heedful.io.rehearse`); with `read_only` what
    would write is refused. Raise BadInput if there is no such loop or learner, and Failure if the loop cannot be
    opened.
    """
    folder, left = find_loop(name) if isinstance(name, str) else name, ExitStack()
    from heedful.loop import Loop

    try:
        if rehearse_only:
            from heedful.io import rehearse

            loop = left.enter_context(rehearse(folder, learner=own_learners))
        else:
            loop = left.enter_context(Loop.open(folder, learner=own_learners, read_only=read_only))
    except (KeyError, IndexError):
        raise
    except (FileNotFoundError, ModuleNotFoundError) as error:
        raise BadInput(f"{folder}: {error.strerror}" if isinstance(error, OSError) else str(error)) from error
    except LookupError as error:
        raise BadInput(f"{error} (here: --own SPEC)") from error
    except (ValueError, TimeoutError) as error:
        raise (BadInput if own_learners else Failure)(str(error)) from error
    notes_shown = 0
    try:
        with left, asking():
            notes_shown = _print_notes(loop, notes_shown)
            yield loop
    finally:
        _print_notes(loop, notes_shown)


def _print_notes(loop: Loop, first: int) -> int:
    for text in loop.notes[first:]:
        note(text)
    return len(loop.notes)


def read_json(option: str, text: str | None) -> Any:
    """Return the value of the JSON `text`, None for None. Raise BadInput, naming the `option`, if it is not
    JSON."""
    if text is None:
        return None
    try:
        return json.loads(text, parse_constant=_not_json)
    except json.JSONDecodeError as error:
        why = f"{error.msg.replace('Expecting', 'expected')} at character {error.pos + 1}"
        raise BadInput(f"{option}: expected JSON, got {shorten(text)}: {why}") from None
    except (ValueError, RecursionError) as error:
        raise BadInput(f"{option}: expected JSON, got {shorten(text)}: {error}") from None


def _not_json(constant: str) -> Any:
    raise ValueError(f"{constant} is not JSON")


def read_text(option: str, path: str) -> str:
    """Return the content of the UTF-8 file `path`, or of stdin if it is "-".

    Raise BadInput, naming the `option`, if it cannot be read.
    """
    try:
        return sys.stdin.read() if path == "-" else Path(path).read_text(encoding="utf-8")
    except FileNotFoundError:
        raise BadInput(f"{option}: {path}: no such file") from None
    except OSError as error:
        raise BadInput(f"{option}: {path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise BadInput(f"{option}: {path}: expected UTF-8, got other bytes") from None


def note_alike(person: str, alike: Sequence[str]) -> None:
    """Print on stderr which names in the log are spelt like that of a `person`, if any are."""
    if alike:
        verb = "is spelt like {0!r}, and may be" if len(alike) == 1 else "are spelt like {0!r}, and each may be"
        note(f"{', '.join(map(repr, alike))} {verb.format(person)} the same person")


def pairs(option: str, meaning: str, texts: Sequence[str], *, at_first: bool = False) -> dict[str, str]:
    """Return `texts`, LEFT=RIGHT each, as {left: right}.

    They are split at the last "=", as names of items may have one, or `at_first`, where the value may.

    Raise BadInput, naming the `option`, if one has another form (`meaning` says which is expected) or a LEFT comes
    twice.
    """
    parts: dict[str, str] = {}
    for left, rights in grouped(option, meaning, texts, at_first=at_first).items():
        if len(rights) > 1:
            raise BadInput(f"{option}: expected each once, got {left!r} twice")
        [parts[left]] = rights
    return parts


def grouped(option: str, meaning: str, texts: Sequence[str], *, at_first: bool = False) -> dict[str, list[str]]:
    """Return `texts` as `pairs` does, with all that stands to the right of each LEFT, which may come more than once."""
    parts: dict[str, list[str]] = {}
    for text in texts:
        left, mark, right = text.partition("=") if at_first else text.rpartition("=")
        if not (left and mark and right):
            raise BadInput(f"{option}: expected {meaning}, got {text!r}")
        parts.setdefault(left, []).append(right)
    return parts


def numbers(option: str, meaning: str, texts: Sequence[str]) -> dict[str, float]:
    """Return `texts`, LEFT=NUMBER each, as {left: number}; whole numbers are int.

    Raise BadInput, naming the `option`, as `pairs` does; `meaning` is the expected form, such as ITEM=NUMBER.
    """
    values: dict[str, float] = {}
    for left, right in pairs(option, meaning, texts).items():
        try:
            values[left] = int(right) if right.lstrip("+-").isdecimal() and right.isascii() else float(right)
        except ValueError:
            raise BadInput(f"{option}: expected {meaning}, got {f'{left}={right}'!r}") from None
    return values


def check_absent(options: Mapping[str, object], expected: str) -> None:
    """Raise BadInput, which says what is `expected` instead, for the first of these `options` that has a value."""
    for option, value in options.items():
        if value is not None and value is not False and value not in ("", ()):
            raise BadInput(f"{option}: {expected.format(repr(value))}")


def check_learners(texts: Sequence[str]) -> None:
    """Raise BadInput if one of the `texts` of several --learner comes twice."""
    for text in texts:
        if (n := texts.count(text)) > 1:
            raise BadInput(f"--learner: expected each once, got {text} {n} times")


def shorten(value: object, most: int = 60) -> str:
    """Return the `value` as one line of text of at most `most` characters, with "..." where it was cut."""
    text = " ".join(str(value).split())
    return text if len(text) <= most else f"{text[: most - 3]}..."
