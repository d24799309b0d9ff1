"""The page for the person at this machine, which `heedful demo` and `heedful compare` serve: its port and its
browser."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from heedful.cli.console import Failure

if TYPE_CHECKING:
    from heedful.server.app import App
    from heedful.server.context import Options

HOST, PORT = "127.0.0.1", 8710
Port = Annotated[
    int | None, typer.Option(metavar="PORT", min=1, max=65535, help=f"{PORT}, or another that is free, unless said.")
]
Browser = Annotated[bool, typer.Option("--browser/--no-browser", help="Open the page.")]
T = TypeVar("T")


def listen(stack: ExitStack, folder: Path, port: int | None, options: Options) -> tuple[App, Any]:
    """Return (the application for the loops in `folder`, the socket on which to serve it); `stack` closes both.

    It listens on `port`; if that is None, on the usual port, or another if that is taken. `options` are those of the
    server. Raise Failure if it cannot listen."""
    from heedful.server.main import listening
    from heedful.storage import Damaged

    def at(port: int) -> tuple[App, Any]:
        app, listener = stack.enter_context(listening(folder, HOST, port, options))
        return app, listener

    try:
        return at_port(at, port, PORT, f"{HOST}:{port or PORT}", "--port")
    except (Damaged, TimeoutError, ValueError) as error:  # of the keys that somebody made there
        raise Failure(str(error)) from error


def at_port(listen: Callable[[int], T], port: int | None, usual: int, address: str, option: str) -> T:
    """Return what `listen` returns for a port: `port`, and if that is None the `usual` one, or another if that is
    taken.

    Raise Failure, which names the `address` and the `option` for the port, if it cannot listen."""
    try:
        try:
            return listen(port or usual)
        except OSError:
            if port is not None:
                raise
            return listen(0)
    except OSError as error:
        raise Failure(f"{address}: {error.strerror or error}: choose another {option}") from error


def open_browser(address: str) -> None:
    """Open the page at `address` in the usual browser, without waiting for it."""
    import webbrowser

    threading.Thread(target=webbrowser.open, args=(address,), daemon=True).start()
