"""What the commands about loops share: where a loop is, how it is opened, how its refusals end."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from heedful.cli.console import BadInput, Failure, note

if TYPE_CHECKING:
    from heedful.loop import Loop

Name = Annotated[
    str,
    typer.Argument(
        metavar="NAME", help="The loop: cars is the folder ./cars.heedful; with a / or .heedful, that folder."
    ),
]
Own = Annotated[
    str | None,
    typer.Option("--own", metavar="SPEC", help="The loop's learner named again, where it is your own FILE.py:Class."),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON, and nothing else, on stdout.")]


def place(name: str) -> Path:
    """The folder of a loop: NAME.heedful, or NAME itself where it ends so or says where it is."""
    separators = [mark for mark in (os.sep, os.altsep, "/") if mark]
    if not name.strip():
        raise BadInput(f"NAME: expected the name of a loop, got {name!r}")
    as_it_is = name.endswith(".heedful") or any(mark in name for mark in separators)
    return Path(name if as_it_is else f"{name}.heedful")


def find_loop(name: str) -> Path:
    """The folder of a loop that is there. BadInput, with how to make one, where it is not."""
    folder = place(name)
    if not (folder / "log.db").is_file():
        wrong = "this folder holds no loop" if folder.is_dir() else "no such loop"
        raise BadInput(f"{folder}: {wrong}; make one: {shell_quote(['heedful', 'init', name, 'ITEMS.csv'])}")
    return folder


@contextmanager
def asking() -> Iterator[None]:
    """Turn what a loop refuses into BadInput, and errors of its files into Failure."""
    try:
        yield
    except (KeyError, IndexError):
        raise
    except (ValueError, LookupError) as error:
        raise BadInput(str(error)) from error
    except TimeoutError as error:
        raise Failure(str(error)) from error


@contextmanager
def open_loop(name: str, own: str | None, *, rehearse_only: bool = False) -> Iterator[Loop]:
    """The loop of that name, closed afterwards; what it has to say goes to stderr."""
    folder = find_loop(name)
    from heedful.loop import Loop

    try:
        if rehearse_only:
            from heedful.io import rehearse

            loop = rehearse(folder, learner=own)
        else:
            loop = Loop.open(folder, learner=own)
    except (KeyError, IndexError):
        raise
    except LookupError as error:
        raise BadInput(f"{error} (here: --own SPEC)") from error
    except (ValueError, TimeoutError) as error:
        raise (BadInput if own else Failure)(str(error)) from error
    told = 0
    try:
        with loop:
            told = _tell(loop, told)
            yield loop
    finally:
        _tell(loop, told)


def _tell(loop: Loop, told: int) -> int:
    for each in loop.notes[told:]:
        note(each)
    return len(loop.notes)


def read_json(option: str, given: str | None) -> Any:
    """The value that a JSON text is. BadInput where it is none."""
    if given is None:
        return None
    try:
        return json.loads(given, parse_constant=_not_json)
    except (ValueError, RecursionError) as error:
        raise BadInput(f"{option}: expected JSON, got {shorten(given)}: {error}") from None


def _not_json(constant: str) -> Any:
    raise ValueError(f"{constant} is not JSON")


def read_text(option: str, given: str) -> str:
    """Return the content of a file, or of stdin for "-". Raise BadInput if it cannot be read."""
    try:
        return sys.stdin.read() if given == "-" else Path(given).read_text(encoding="utf-8")
    except OSError as error:
        raise BadInput(f"{option}: {given}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise BadInput(f"{option}: {given}: expected UTF-8, got other bytes") from None


def pairs(option: str, meaning: str, given: Sequence[str]) -> dict[str, str]:
    """LEFT=RIGHT, each left once; the last = is the one that parts them."""
    made: dict[str, str] = {}
    for each in given:
        left, mark, right = each.rpartition("=")
        if not (left and mark and right):
            raise BadInput(f"{option}: expected {meaning}, got {each!r}")
        if left in made:
            raise BadInput(f"{option}: expected each once, got {left!r} twice")
        made[left] = right
    return made


def numbers(option: str, meaning: str, given: Sequence[str]) -> dict[str, float]:
    """LEFT=NUMBER, each left once."""
    made: dict[str, float] = {}
    for left, right in pairs(option, meaning, given).items():
        try:
            made[left] = int(right) if right.lstrip("+-").isdecimal() and right.isascii() else float(right)
        except ValueError:
            raise BadInput(f"{option}: expected {meaning}, got {f'{left}={right}'!r}") from None
    return made


def shorten(given: object, most: int = 60) -> str:
    """A value in a line of at most `most` characters."""
    text = " ".join(str(given).split())
    return text if len(text) <= most else f"{text[: most - 3]}..."


def shell_quote(words: Sequence[str]) -> str:
    """Words as a line that a shell takes apart again."""
    import shlex

    return shlex.join(words)
