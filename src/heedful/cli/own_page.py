"""The page for the person at this machine, which `heedful demo` and `heedful compare` serve: its port and its
browser."""

from __future__ import annotations

import threading
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from heedful.cli.console import Failure

if TYPE_CHECKING:
    from heedful.server.app import App
    from heedful.server.context import Options

HOST, PORT = "127.0.0.1", 8710


def listen(stack: ExitStack, folder: Path, port: int | None, options: Options) -> tuple[App, Any]:
    """Return (the application for the loops in `folder`, the socket on which to serve it); `stack` closes both.

    It listens on `port`; if that is None, on the usual port, or another if that is taken. `options` are those of the
    server. Raise Failure if it cannot listen."""
    from heedful.server.main import listening
    from heedful.storage import Damaged

    try:
        try:
            return stack.enter_context(listening(folder, HOST, port or PORT, options))
        except OSError as error:
            if port is not None:
                raise Failure(f"{HOST}:{port}: {error.strerror or error}: choose another --port") from error
            return stack.enter_context(listening(folder, HOST, 0, options))
    except (Damaged, TimeoutError, ValueError) as error:  # of the keys that somebody made there
        raise Failure(str(error)) from error


def open_browser(address: str) -> None:
    """Open the page at `address` in the usual browser, without waiting for it."""
    import webbrowser

    threading.Thread(target=webbrowser.open, args=(address,), daemon=True).start()
