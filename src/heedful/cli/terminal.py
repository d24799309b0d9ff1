"""What the commands share: one sentence for every failure, results on stdout, everything else on stderr."""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import sys
import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import typer
from typer.core import TyperGroup

if TYPE_CHECKING:
    from rich.console import Console


class Failure(Exception):
    """Something that one sentence explains. Exit code 1; 2 where the input is to blame."""

    code = 1


class BadInput(Failure):
    """What was asked for makes no sense."""

    code = 2


class Commands(TyperGroup):
    """The commands, and how each of them ends: 0, or a sentence on stderr and 2 for bad input, 1 for the rest.

    A traceback is shown only with --debug, wherever on the line that stands.
    """

    def main(self, args: Any = None, *more: Any, standalone_mode: bool = True, **extra: Any) -> Any:
        given = sys.argv[1:] if args is None else list(args)
        debug = "--debug" in given
        if debug:
            args = [arg for arg in given if arg != "--debug"]
        with warnings.catch_warnings():
            warnings.showwarning = lambda message, *_: note(str(message))
            try:
                code = super().main(args, *more, standalone_mode=False, **extra)
            except (typer.Abort, KeyboardInterrupt):
                code = 130
            except Exception as error:
                if debug:
                    traceback.print_exc()
                sentence, code = in_words(error)
                note(sentence)
            if code == 130:
                note("stopped")
        sys.exit(code if isinstance(code, int) else 0)


def in_words(error: Exception) -> tuple[str, int]:
    """(a sentence about an error, the exit code)."""
    if isinstance(error, Failure):
        return str(error), error.code
    if hasattr(error, "format_message"):  # a mistake in the command line itself
        context = getattr(error, "ctx", None)
        hint = f" Try: {context.command_path} --help" if context else ""
        return f"{error.format_message()}{hint}", getattr(error, "exit_code", 2)
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}", 1
    told = str(error).splitlines()[0] if str(error) else "nothing more"
    return f"{type(error).__name__}: {told} (with --debug, where)", 1


@contextmanager
def reading_input() -> Iterator[None]:
    """Whatever is refused inside is bad input."""
    try:
        yield
    except OSError as error:
        told = f"{error.filename}: {error.strerror}" if error.strerror else str(error)
        raise BadInput(told) from error
    except ValueError as error:
        raise BadInput(str(error)) from error


def note(text: str) -> None:
    """A line on stderr."""
    print(f"heedful: {text}", file=sys.stderr, flush=True)


def console() -> Console:
    """Where results go: stdout."""
    from rich.console import Console

    return Console(highlight=False)


def notes() -> Console:
    """Where progress goes: stderr."""
    from rich.console import Console

    return Console(stderr=True, highlight=False)


def print_json(value: Any) -> None:
    """A value as JSON on stdout; what is not finite must be null by now."""
    sys.stdout.write(json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n")


def number(value: float) -> float | None:
    """A number for JSON: null where it is not finite."""
    return float(value) if abs(value) < float("inf") else None


def wanted_extra(package: str, extra: str, why: str) -> None:
    """Failure, with the command that installs it, where an optional package is not installed."""
    if importlib.util.find_spec(package) is None:
        raise Failure(f"{why} needs {package}, which is not installed: pip install 'heedful[{extra}]'")


def cores() -> int:
    """How many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
