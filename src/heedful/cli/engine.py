"""The options that say where a command's work runs, and the errors of that."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

import typer

from heedful.cli.console import Failure, check_extra
from heedful.core.engine import Engine, WorkerLost

EngineOption = Annotated[
    Engine,
    typer.Option(
        help="Where the work is done: serial (here), processes or ray (extra ray); the last two where that pays.",
        show_default="processes where that pays",
    ),
]
Jobs = Annotated[
    int | None,
    typer.Option("--jobs", min=1, help="How many runs are done at a time.", show_default="all cores"),
]
Interpreted = Annotated[
    bool | None,
    typer.Option("--interpreted/--compiled", help="Compile nothing, or everything first; default: what that pays for."),
]


def check_option(engine: Engine) -> None:
    """Raise Failure, with the command that installs it, if the package that `engine` needs (Ray) is not installed."""
    if engine == "ray":
        check_extra("ray", "ray", "--engine ray")


@contextmanager
def distributing() -> Iterator[None]:
    """Context manager around work on an engine: if a worker is killed, or a cluster does not answer, raise Failure with
    the error's text."""
    try:
        yield
    except (WorkerLost, ConnectionError) as error:
        raise Failure(str(error)) from error
