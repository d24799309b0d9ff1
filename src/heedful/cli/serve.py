"""`heedful serve`: serve the loops of a folder over HTTP."""

from __future__ import annotations

import logging
import os
import re
import signal
from collections.abc import Sequence
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated

import typer

from heedful.cli.common import asking, database, holds_loop, kind_of
from heedful.cli.console import BadInput, Failure, check_server, interrupt_once, note
from heedful.cli.sharing import host_and_port
from heedful.core.wording import count
from heedful.storage.address import shown_path

if TYPE_CHECKING:
    from heedful.server.context import Options
    from heedful.server.keys import Key
    from heedful.storage import Place

MIB = 2**20
_URL = re.compile(r"https?://[^\s/?#@]+(/[^\s?#]*)?")


def serve(
    context: typer.Context,
    folder: Annotated[
        Path | None,
        typer.Argument(
            metavar="[DIR]", help="The folder whose loops, DIR/NAME.heedful, are served.", show_default="here"
        ),
    ] = None,
    host: Annotated[
        str, typer.Option(metavar="HOST", help="The address to listen on; one beyond loopback needs a key.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(metavar="PORT", min=1, max=65535)] = 8710,
    rate: Annotated[
        float | None,
        typer.Option(metavar="N", help="Requests per second of a key without a rate of its own.", show_default="any"),
    ] = None,
    max_body: Annotated[
        float, typer.Option(metavar="MIB", help="The size of the largest request.", min=0.001, max=1024)
    ] = 8.0,
    timeout: Annotated[
        float, typer.Option(metavar="S", help="Seconds within which a whole request has to arrive.", min=0.1, max=3600)
    ] = 10.0,
    most_open: Annotated[int, typer.Option(metavar="N", help="How many loops are kept open at a time.", min=1)] = 200,
    idle: Annotated[
        float, typer.Option(metavar="S", help="Seconds after which a loop without requests is closed.", min=1.0)
    ] = 300.0,
    address: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="Where other servers of the same --database pass requests on for loops that this one owns.",
            show_default="http://HOST:PORT",
        ),
    ] = None,
    lease: Annotated[
        float,
        typer.Option(
            metavar="S", help="Seconds after which another server of the --database takes over.", min=0.5, max=600
        ),
    ] = 2.0,
    forget_unseen: Annotated[
        float | None,
        typer.Option(
            metavar="DAYS",
            min=0.001,
            help="Forget, once a day, everybody of whom every decision and answer is older than that.",
            show_default="never",
        ),
    ] = None,
    own: Annotated[
        list[str] | None,
        typer.Option(
            "--own", metavar="SPEC", help="A learner of your own, FILE.py:Class, that loops may have; may be repeated."
        ),
    ] = None,
    origin: Annotated[
        list[str] | None,
        typer.Option(
            "--origin",
            metavar="URL",
            help="Whose pages may report clicks (https://shop.example); may be repeated.",
            show_default="the server's own",
        ),
    ] = None,
    log: Annotated[
        str, typer.Option("--log", metavar="FORM", help="How the log on stderr is written: as text or json lines.")
    ] = "text",
) -> None:
    """Before the first key is made (`heedful keys create`) it listens only on addresses of this machine itself
    (loopback), and anyone on this machine may do everything. /openapi.json on the server describes all requests.

    Exit codes: 1 it cannot listen, or the keys cannot be read; 2 bad input; otherwise that of the signal that ended it.
    """
    check_server("serve", "heedful serve")
    options = {f"HEEDFUL_SERVE_{parameter.name}".upper() for parameter in context.command.params}
    for name in sorted(os.environ):
        if name.startswith("HEEDFUL_SERVE_") and name not in options:
            note(f"{name}: no option of heedful serve is called so: it is not read (heedful serve --help has all)")
    from heedful.learners.registry import learner_class

    elsewhere = database()
    home: Place = folder or elsewhere or Path.cwd()
    if isinstance(home, Path):
        if kind_of(home) != "folder":
            raise BadInput(f"DIR: expected a folder that is there, got {shown_path(folder)!r}")
        if holds_loop(home):
            raise BadInput(f"DIR: expected the folder that loops are in, got one of them: {str(folder)!r}")
        if not os.access(home, os.W_OK):
            problem = "what is there is read, decisions, answers, keys and logins are refused (503)"
            note(f"{shown_path(home)}: this user may not write to it: {problem}")
    if folder is not None and elsewhere is not None:
        problem = f"the loops in {shown_path(folder)} are served, and not those in {elsewhere}"
        note(f"{problem}, which HEEDFUL_DATABASE or --database names: leave out {shown_path(folder)} to serve these")
    if address is not None and not _URL.fullmatch(address):
        raise BadInput(f"--address: expected a URL that servers reach it at, http://HOST:PORT, got {address!r}")
    for spec in own or ():
        try:
            learner_class(spec)
        except (ValueError, OSError) as error:
            raise BadInput(f"--own: {error}") from error
    if log not in ("text", "json"):
        raise BadInput(f"--log: expected text or json, got {log!r}")
    from heedful.server.codecs import Limits
    from heedful.server.context import Options
    from heedful.server.main import own_address
    from heedful.server.page_clicks import check_origin

    with asking():
        origins = tuple(check_origin(url) for url in origin or ())
    limits = Limits(int(max_body * MIB), timeout)
    reached = own_address() if host in ("0.0.0.0", "::") else host
    address = address or f"http://{host_and_port(reached, port)}"
    about = Options(
        limits,
        rate,
        tuple(own or ()),
        most_open,
        idle,
        address=address,
        lease=lease,
        origins=origins,
        forget_unseen=forget_unseen,
    )
    _run(home, host, port, about, log == "json")


def _creates(home: Place) -> str:
    """Return the command that makes a key for the loops in `home`."""
    if isinstance(home, Path):
        return f"heedful keys create NAME --folder {quote(str(home))}"
    return f"heedful --database {quote(str(home))} keys create NAME"


def _keys_note(keys: Sequence[Key], create: str) -> str:
    """Return a sentence on who may use the server, given all its `keys`; `create` is the command that makes one."""
    left = sum(key.revoked is None for key in keys)
    if left:
        return f"every request needs a key ({count(left, 'key')})"
    if keys:
        return f"every request needs a key, and all keys were revoked; {create}"
    return f"there is no key yet: everybody on this machine may do everything; {create}"


def _run(folder: Place, host: str, port: int, options: Options, json: bool) -> None:
    from heedful.server.main import listening, serve
    from heedful.server.server_log import write_log
    from heedful.storage import Damaged

    write_log(json)
    logging.getLogger("uvicorn.error").setLevel(logging.WARNING)
    try:
        with listening(folder, host, port, options) as (app, listener):
            url = f"http://{host_and_port(host, listener.getsockname()[1])}"
            note(f"serving {folder} ({count(len(app.service.loops.names('main')), 'loop')}) at {url}; Ctrl-C ends it")
            note(_keys_note(app.service.keys.all(), _creates(folder)))
            if options.forget_unseen is not None:
                note(
                    f"people of whom nothing came for {options.forget_unseen:g} days are forgotten, now and once a day"
                )
            interrupt_once(signal.SIGINT)
            serve(app, listener)
    except PermissionError as error:
        if error.errno is None:
            raise BadInput(str(error)) from error
        raise Failure(f"{host}:{port}: {error.strerror}") from error
    except (Damaged, TimeoutError) as error:
        raise Failure(str(error)) from error
    except ValueError as error:
        raise BadInput(str(error)) from error
    except OSError as error:
        raise Failure(f"{host}:{port}: {error.strerror or error}: choose another --port or --host") from error
