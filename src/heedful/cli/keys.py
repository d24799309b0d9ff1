"""`heedful keys`: make, list and revoke the keys that say who may ask a server what."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from heedful.cli.common import Json, asking, database, kind_of
from heedful.cli.console import BadInput, Failure, console, new_table, note, print_json, say
from heedful.core.times import day
from heedful.storage.address import shown_path

if TYPE_CHECKING:
    from heedful.server.keys import Key, Keys

SCOPES_TOLD = "decide, feedback, read, admin or metrics"
Folder = Annotated[Path, typer.Option("--folder", metavar="DIR", help="The folder that is served.", show_default=True)]
Prefix = Annotated[str, typer.Argument(metavar="PREFIX", help="The first 11 characters of the key: hk_ab12cd34.")]


@contextmanager
def open_keys(folder: Path) -> Iterator[Keys]:
    """Open the keys of the server of `folder` for the block, and close them afterwards.

    Raise BadInput if there is no such folder or if something is refused, and Failure if the database cannot be read.
    """
    home = database() or folder
    if isinstance(home, Path) and kind_of(home) != "folder":
        raise BadInput(f"--folder: expected a folder that is there, got {shown_path(folder)!r}")
    from heedful.server.keys import Keys
    from heedful.storage import Damaged

    with asking():
        try:
            with closing(Keys(home)) as keys:
                yield keys
        except Damaged as error:
            raise Failure(str(error)) from error


def create(
    name: Annotated[str, typer.Argument(metavar="NAME", help="A name of your choice that says what the key is for.")],
    folder: Folder = Path("."),
    tenant: Annotated[
        str, typer.Option(metavar="T", help="The tenant: main has the loops in DIR itself, T those in DIR/T.")
    ] = "main",
    scope: Annotated[
        list[str] | None,
        typer.Option(metavar="SCOPE", help=f"{SCOPES_TOLD}; may be repeated.", show_default="all of them"),
    ] = None,
    rate: Annotated[
        float | None,
        typer.Option(metavar="N", help="How many requests per second it may make.", show_default="the server's own"),
    ] = None,
    expires: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="After how many days or hours it ends: 90d, 12h.", show_default="never"),
    ] = None,
    json: Json = False,
) -> None:
    """The key is shown this one time, as only a digest of it is stored.

    Exit codes: 0 made; 1 the database cannot be read or written; 2 bad input.
    """
    with open_keys(folder) as keys:
        from heedful.server.keys import SCOPES

        first, ends = not keys.exist(), None if expires is None else _end_of(expires)
        in_folder = database() is None
        bare = in_folder and not any(folder.glob("*.heedful/log.db")) and not any(folder.glob("*/*.heedful/log.db"))
        key, text = keys.create(name, tenant=tenant, scopes=SCOPES if scope is None else scope, rate=rate, expires=ends)
    if json:
        print_json({"key": text} | _as_json(key))
    else:
        typer.echo(text)
    note(f"{key.prefix} may {_words(key)}, for tenant {key.tenant}; the key is shown this once: keep it now")
    if ends is not None:
        note(f"it expires on {day(ends)}")
    if first:
        of = "folder" if in_folder else "database"
        note(f"the first key: from now on a server of this {of} wants one with every request")
    if bare:
        note(f"there is no loop in {folder.resolve()}: is that the folder that is served? --folder names another")
    note('use it: curl -H "Authorization: Bearer $KEY" http://127.0.0.1:8710/v1/loops')


def list_(folder: Folder = Path("."), json: Json = False) -> None:
    """The list has a key's first characters (the prefix), its name, what it may do, when it was made and last used
    (to the minute; what a running server has not written yet is not in it), and when it ends or was revoked.

    Exit codes: 0 listed; 1 the database cannot be read; 2 bad input.
    """
    with open_keys(folder) as keys:
        listed = keys.all()
    if json:
        print_json([_as_json(key) for key in listed])
        return
    if not listed:
        note("no key was ever made here; make one: heedful keys create NAME")
        return
    from rich.markup import escape

    columns = ("prefix", "name", "tenant", "scopes", "rate", "made", "last used", "ends")
    table = new_table(f"{folder}: keys", columns, right=("rate",), whole="prefix")
    for key in listed:
        cells = [key.prefix, escape(key.name), key.tenant, _words(key), "" if key.rate is None else f"{key.rate:g}"]
        ends = _when(key.expires) if key.revoked is None else f"revoked {_when(key.revoked)}"
        gone = key.revoked is not None or (key.expires is not None and key.expires <= 1e6 * time.time())
        table.add_row(*cells, _when(key.created), _when(key.used), ends, style="dim" if gone else "")
    console().print(table)


def audit(
    folder: Folder = Path("."),
    limit: Annotated[int, typer.Option(metavar="N", min=1, help="How many, at most.")] = 100,
    json: Json = False,
) -> None:
    """The list has when it was done, the key's prefix ("" for a command here), tenant, what was done, the loop or the
    key that it was done to, and the id of the request.

    Exit codes: 0 listed; 1 the database cannot be read; 2 bad input.
    """
    with open_keys(folder):  # which says what is wrong with it
        from heedful.server.audit import Audit

        acts = Audit(database() or folder).newest(None, 2**62, limit)
    if json:
        print_json([act._asdict() for act in acts])
        return
    if not acts:
        note("nothing was done with a key yet")
        return
    table = new_table(f"{folder}: audit log", ("time", "key", "tenant", "action", "on", "request"), whole="key")
    for act in acts:
        table.add_row(_when(act.time), act.key, act.tenant, act.action, act.loop or act.about, act.request)
    console().print(table)


def revoke(prefix: Prefix, folder: Folder = Path("."), json: Json = False) -> None:
    """The key is named by its prefix, which `heedful keys list` shows.

    Exit codes: 0 revoked, or revoked before; 1 the database cannot be read or written; 2 bad input: no such key.
    """
    with open_keys(folder) as keys:
        before = {key.prefix for key in keys.all() if key.revoked is not None}
        revoked = keys.revoke(prefix)
        left = [key for key in keys.all() if key.tenant == revoked.tenant and key.revoked is None]
    what = "was revoked before" if prefix in before else "is revoked"
    _end(revoked, f"{revoked.prefix} ({revoked.name}) {what}: {_when(revoked.revoked)}", json)
    if not left:
        note(f"tenant {revoked.tenant} has no key any more: nobody gets in until heedful keys create makes one")
    elif "admin" in revoked.scopes and not any("admin" in key.scopes for key in left):
        note(f"no key of tenant {revoked.tenant} may admin any more: only heedful keys create makes others")


def scopes(
    prefix: Prefix,
    scope: Annotated[list[str] | None, typer.Option(metavar="SCOPE", help=f"{SCOPES_TOLD}; may be repeated.")] = None,
    folder: Folder = Path("."),
    json: Json = False,
) -> None:
    """Exit codes: 0 set; 1 the database cannot be read or written; 2 bad input: no such key, or a revoked one."""
    with open_keys(folder) as keys:
        if not scope:
            raise BadInput("--scope: expected at least one of decide, feedback, read, admin, metrics, got none of them")
        changed = keys.set_scopes(prefix, scope)
    _end(changed, f"{changed.prefix} ({changed.name}) may now {_words(changed)}", json)


def _end(key: Key, text: str, json: bool) -> None:
    if json:
        print_json(_as_json(key))
    else:
        say(text)


def _words(key: Key) -> str:
    from heedful.server.keys import in_order

    return ", ".join(in_order(key.scopes))


def _end_of(expires: str) -> int:
    """Return the time, in microseconds since 1970, that is so many days or hours from now as `expires` says."""
    match = re.fullmatch(r"([1-9][0-9]{0,4})([dh])", expires)
    if match is None:
        raise BadInput(f"--expires: expected a number of days or hours, such as 90d or 12h, got {expires!r:.100}")
    return int(1e6 * (time.time() + int(match[1]) * (86_400 if match[2] == "d" else 3_600)))


def _when(micros: int | None) -> str:
    return "" if micros is None else day(micros)


def _as_json(key: Key) -> dict[str, object]:
    """Return the fields of a key that may be printed, which its digest is not, as values for JSON."""
    from heedful.server.keys import in_order

    return {field: value for field, value in key._asdict().items() if field != "digest"} | {
        "scopes": in_order(key.scopes)
    }
