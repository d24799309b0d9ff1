"""Helpers of all commands: errors as one sentence with an exit code, results on stdout, everything else on stderr."""

from __future__ import annotations

import importlib
import importlib.util
import io
import json
import os
import signal
import sys
import threading
import time
import traceback
import warnings
from collections.abc import Container, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal

import typer
from typer.core import TyperGroup

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table


class Failure(Exception):
    """An error that the user can understand from its one sentence, without a traceback. The command exits with 1."""

    code = 1


class BadInput(Failure):
    """An error in what the user gave: an option, a file or a name. The command exits with 2."""

    code = 2


class Commands(TyperGroup):
    """A group of commands that turns every error into one sentence on stderr and an exit code.

    The code is 2 for bad input, 130 if the command was interrupted, 1 for any other error, 0 for none. A traceback is
    printed only with --debug, which may stand anywhere on the line.
    """

    def main(self, *positional: Any, **extra: Any) -> Any:
        extra |= dict(zip(("args", "prog_name"), positional)) | {"standalone_mode": False}
        arguments = sys.argv[1:] if extra.get("args") is None else list(extra["args"])
        debug = "--debug" in arguments
        if debug:
            extra["args"] = [arg for arg in arguments if arg != "--debug"]
        _print_anyway()
        with warnings.catch_warnings():
            warnings.showwarning = lambda message, *_: note(str(message))
            try:
                code = super().main(**extra)
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


def interrupt_once(*signals: int) -> None:
    """Let each of `signals` raise KeyboardInterrupt, as Ctrl-C does, but not again within a second of the first: a hand
    that is impatient does not interrupt the end that it asked for."""
    if threading.current_thread() is not threading.main_thread():
        return  # no signal comes to it
    first: list[float] = []

    def interrupt(*_: object) -> None:
        first.append(time.monotonic())
        if len(first) == 1 or first[-1] - first[0] > 1.0:
            raise KeyboardInterrupt

    for number in signals:
        signal.signal(number, interrupt)


def _print_anyway() -> None:
    """Make stdout print "?" for characters that its encoding lacks (in names, or bars) instead of raising an error."""
    if isinstance(sys.stdout, io.TextIOWrapper) and sys.stdout.errors == "strict":
        sys.stdout.reconfigure(errors="replace")


def in_words(error: Exception) -> tuple[str, int]:
    """Return (a sentence that explains `error`, the exit code of the command)."""
    if isinstance(error, Failure):
        return str(error), error.code
    if hasattr(error, "format_message"):  # a mistake in the command line itself
        context = getattr(error, "ctx", None)
        message = _refused_option(error) or error.format_message()
        hint = f"{'' if message.endswith(('.', '?')) else '.'} Try: {context.command_path} --help" if context else ""
        return f"{message}{hint}", getattr(error, "exit_code", 2)
    if isinstance(error, ModuleNotFoundError):  # it says what to install, or is of a module that the user named
        return str(error), 1
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename or 'output'}: {error.strerror}", 1
    message = str(error).splitlines()[0] if str(error) else "nothing more"
    return f"{type(error).__name__}: {message}; --debug shows where", 1


def _refused_option(error: Any) -> str:
    """Return typer's `error` in the value of one option in the words of heedful; "" if it is of another kind."""
    problems: list[Any] = getattr(error.__cause__, "errors", list)()
    declared: Any = getattr(getattr(error, "param", None), "type_descriptor", None)
    of: Any = getattr(declared, "annotation", None)
    kind = "a whole number" if of is int else "a number" if of is float else None
    if not problems or kind is None:
        return ""
    limits = declared.parameter_info.min, declared.parameter_info.max
    least, most = ("" if limit is None else str(limit).removesuffix(".0") for limit in limits)
    if least and most:
        bounds = f" from {least} to {most}"
    else:
        bounds = f", {least} or more" if least else f", {most} or less" if most else ""
    param = error.param
    name = param.opts[0] if param.param_type_name == "option" else param.metavar or param.name.upper()
    return f"{name}: expected {kind}{bounds}, got {problems[0]['input']!r}"


@contextmanager
def reading_input() -> Iterator[None]:
    """Run the block, which reads what the user gave, and raise its OSError and ValueError as BadInput."""
    try:
        yield
    except OSError as error:
        message = f"{error.filename}: {error.strerror}" if error.strerror else str(error)
        raise BadInput(message) from error
    except ValueError as error:
        raise BadInput(str(error)) from error


def note(text: str) -> None:
    """Print `text` as a line on stderr, with "heedful: " before it."""
    print(f"heedful: {text}", file=sys.stderr, flush=True)


def console() -> Console:
    """Return the rich console that prints results, on stdout."""
    from rich.console import Console

    return Console(highlight=False, emoji=False)


def say(text: str) -> None:
    """Print `text` on stdout as it is: without markup, and its lines are not wrapped."""
    console().print(text, markup=False, soft_wrap=True)


def notes() -> Console:
    """Return the rich console that prints progress, on stderr."""
    from rich.console import Console

    return Console(stderr=True, highlight=False, emoji=False)


def new_table(title: str, columns: Sequence[str] = (), right: Container[str] = (), whole: str = "") -> Table:
    """Return an empty table with this title, in the style that all commands share, and with these `columns`.

    Those in `right` hold numbers; the cells of the column `whole` are not folded."""
    from rich import box
    from rich.markup import escape
    from rich.table import Table

    title = escape(title)
    table = Table(
        title=title,
        title_style="bold",
        title_justify="left",
        box=box.SIMPLE_HEAD,
        min_width=min(len(title), console().width),  # so that a title stays a line
    )
    for name in columns:
        justify: Literal["left", "right"] = "right" if name in right else "left"
        table.add_column(name, overflow="fold", justify=justify, no_wrap=bool(name) and name == whole)
    return table


def show_check(mark: str, text: str, detail: str, style: str = "dim") -> None:
    """Print the result of one check: a `mark` with markup, a `text`, and below it the `detail` in a style; "" if
    none."""
    from rich.markup import escape
    from rich.table import Table

    line = Table.grid(padding=(0, 1))
    line.add_row(mark, escape(text) + (f"\n[{style}]{escape(detail)}[/]" if detail else ""))
    console().print(line)


def width(table: Table) -> int:
    """Return how many columns of a terminal a table would fill if it had room."""
    screen = console()
    return table.__rich_measure__(screen, screen.options.update(max_width=10_000)).maximum


def print_json(value: object) -> None:
    """Print `value`, such as a result, as JSON on stdout, with escapes for characters that stdout's encoding lacks."""
    from heedful.results.answers import plain

    value = plain(value)
    text = json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False)
    try:
        text.encode(getattr(sys.stdout, "encoding", None) or "utf-8")
    except UnicodeEncodeError:
        text = json.dumps(value, indent=2, allow_nan=False)
    sys.stdout.write(f"{text}\n")


def number(value: float) -> float | None:
    """Return `value` as JSON can hold it: None if it is NaN or infinite."""
    return float(value) if abs(value) < float("inf") else None


def check_extra(package: str, extra: str, why: str) -> None:
    """Raise Failure, with the command that installs it, if the optional `package` is not installed.

    `extra` is heedful's extra that brings it, and `why` what needs it, such as "--plot".
    """
    if importlib.util.find_spec(package) is None:
        from heedful.core.extras import lacking

        raise Failure(lacking(why, package, extra))


def check_server(extra: str, why: str) -> None:
    """Raise Failure if a package that the server needs is not installed; `extra` and `why` are as in `check_extra`."""
    for package in ("starlette", "uvicorn", "httptools", "prometheus_client", "jinja2", "PIL"):
        check_extra(package, extra, why)


def has_display() -> bool:
    """Return whether there is a screen to open a browser on; without one it could open in the terminal itself."""
    display = any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER"))
    return display or sys.platform in ("win32", "darwin")
