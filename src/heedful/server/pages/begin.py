"""The form of the first page that makes a loop or a study of uploaded files or a pasted table."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from starlette.responses import Response

from heedful.core.extras import EXAMPLES
from heedful.core.validation import describe, read_range
from heedful.loop import Loop
from heedful.server import codecs
from heedful.server.keys import mask_prefix
from heedful.server.loops import loop_name
from heedful.server.manifest import encode_loop
from heedful.server.pages import loops
from heedful.server.pages.page import Page, Visit, back, in_thread
from heedful.server.problems import Problem
from heedful.storage import Closed, Damaged, Place
from heedful.studies.pictures import SUFFIXES as PICTURES
from heedful.studies.reading import TEXTS
from heedful.studies.study import ASK

USES = {
    "rank": ("Rank a list", "People see a list, best first, and click or reorder. For a search, a shop, a feed."),
    "one": ("See one of a few", "People see one thing, and like it or not. For a banner, a price, a draft."),
    "rate": ("Give ratings", "People rate things, and see what they may like. For recommendations."),
    "compare": (
        "Compare two",
        "People say which of two is better, and a ranking forms. For logos, names, texts.",
    ),
}
"""what people will do -> its name and what it is good for, in words"""
FIELDS = {"name": "", "use": "rank", "table": "", "range": "1..5", "ask": ASK}
"""The fields of the form but the files, as they are at first."""
PARTS = 1000
"""The most files and fields of a form."""
_BOUNDARY = re.compile(rb'multipart/form-data; *boundary="?([0-9A-Za-z\'()+_,./:=? -]{1,70}?)"?', re.IGNORECASE)
_DISPOSITION = re.compile(rb'^content-disposition: *form-data; *name="([^"]*)"(?:; *filename="([^"]*)")?', re.I | re.M)


class Upload(NamedTuple):
    """What the form has: its text fields by name, and the content of each file by the file's name."""

    fields: Mapping[str, str]
    files: Mapping[str, bytes]


async def begin(visit: Visit) -> Response:
    """Handle the form: make a loop or a study, and redirect to its page.

    If a field is invalid, render the form again (422, or 409 if the name is taken) with the reason and what was
    typed."""
    upload = await _read(visit)
    fields = {name: upload.fields.get(name, value) for name, value in FIELDS.items()}
    try:
        name = loop_name("name", fields["name"].strip())
        make = partial(_make, upload.files, fields)
        with await visit.service.loops.create(visit.caller.tenant, name, make):
            await visit.service.note_act(visit.caller, "make loop", name)
    except (Closed, Damaged):
        raise
    except FileExistsError:
        return await _render(visit, 409, fields, "name: expected one that is free, got that of another loop")
    except (ValueError, ModuleNotFoundError) as error:
        return await _render(visit, 422, fields, str(error))
    return back(f"/loops/{name}/compare" if fields["use"] == "compare" else f"/loops/{name}")


async def show(visit: Visit) -> Response:
    """Render the first page; with "example" in the query its form has the table of cars of the examples."""
    cars = {"name": "cars", "table": (EXAMPLES / "cars.csv").read_text()} if "example" in visit.query else {}
    return await _render(visit, 200, FIELDS | cars)


async def _render(visit: Visit, status: int, fields: Mapping[str, str], wrong: str = "") -> Response:
    typed = {name: mask_prefix(value) for name, value in fields.items()}  # a key that was typed into the wrong field
    return await loops.render_list(visit, status, fields=typed, wrong=mask_prefix(wrong), uses=USES)


# ---------------------------------------------------------------------------- what is made


def _make(files: Mapping[str, bytes], fields: Mapping[str, str], place: Place) -> Loop:
    """Return the new loop, or study, at `place`; raise ValueError, naming the field or the row, for invalid ones."""
    if fields["use"] not in USES:
        raise ValueError(f"use: expected one of {', '.join(USES)}, got {describe(fields['use'])}")
    if bool(files) == bool(fields["table"].strip()):
        raise ValueError(f"files: expected files or a pasted table, got {'both' if files else 'neither'}")
    with TemporaryDirectory(prefix="heedful-") as home:
        folder = Path(home) / "files"
        folder.mkdir()
        for name, content in (files or {"table": fields["table"].encode()}).items():
            (folder / name).write_bytes(content)
        try:
            return _make_of(folder, fields, place)
        except ValueError as error:
            error.args = tuple(str(each).replace(f"{folder}/", "") for each in error.args)
            raise


def _make_of(folder: Path, fields: Mapping[str, str], place: Place) -> Loop:
    """Return the loop or study of the files in `folder`."""
    from heedful.data.set_aside import item_rows
    from heedful.data.table import open_table
    from heedful.loop.interactions.registry import interactions
    from heedful.loop.settings import Settings
    from heedful.studies.reading import read_material
    from heedful.studies.study import Study, create_study

    first, *more = sorted(folder.iterdir())
    is_table = not more and first.suffix.lower() not in PICTURES + (TEXTS if fields["use"] == "compare" else ())
    if is_table and first.read_bytes().startswith((b"\x1f\x8b", b"PAR1")):
        raise ValueError("files: expected CSV or JSON lines here, got gzip or Parquet: heedful init reads those")
    if fields["use"] == "compare":
        if not isinstance(place, Path):
            raise ValueError("use: expected another where loops are in a database, as studies are in folders")
        material = read_material(first if is_table else folder)
        return create_study(place, material, Study(kind=material.kind, ask=fields["ask"]), "best")
    if not is_table:
        raise ValueError("files: expected one table, got pictures or several files, which people can only compare")
    settings: dict[str, Any] = {"rank": {}, "one": {"k": 1}}.get(fields["use"], {})
    if fields["use"] == "rate":
        settings = {interactions()["rating"].setting: read_range("range", fields["range"])}
    return encode_loop(
        place, item_rows(open_table(first)), None, Settings(**settings),
        identifier=None, kinds={}, features=None, context=None, crosses=(), query_features=None,
    )  # fmt: skip


# ---------------------------------------------------------------------------- what was sent


async def _read(visit: Visit) -> Upload:
    """Return what the form in the body of a request has, which may be as large as any body.

    Raise Problem if it is too large or no such form, ValueError if a field or the name of a file comes twice."""
    headers: dict[bytes, bytes] = dict(visit.request.scope["headers"])
    kind = headers.get(b"content-type", b"").strip()
    boundary = _BOUNDARY.fullmatch(kind)
    if boundary is None:
        detail = f"Content-Type: expected multipart/form-data, got {describe(kind.decode('latin-1'))}"
        raise Problem("unsupported", detail, field="Content-Type")
    body = await codecs.read(headers, visit.request.receive, visit.service.limits)
    return await in_thread(visit.service.pool, _parse, body, boundary[1])


def _parse(body: bytes, boundary: bytes) -> Upload:
    """Return the fields and files in a `body` whose parts are separated by `boundary` (RFC 7578)."""
    start, *parts = (b"\r\n" + body).split(b"\r\n--" + boundary, PARTS + 2)
    if start or not parts or not parts.pop().startswith(b"--"):
        told = f"body: expected a form of at most {PARTS:,} fields and files, got another, or one that is cut off"
        raise Problem("malformed", told, field="body")
    pairs, files = list[tuple[str, str]](), dict[str, bytes]()
    for part in parts:
        head, _, content = part.partition(b"\r\n\r\n")
        found = _DISPOSITION.search(head)
        if found is None:
            raise Problem("malformed", "body: expected the name of each field, got none", field="body")
        if found[2] is None:
            pairs.append((found[1].decode(errors="replace"), content.decode(errors="replace").replace("\r\n", "\n")))
        elif found[2] or content:
            name = _file_name(found[2].decode(errors="replace"))
            if name in files:
                raise ValueError(f"files: expected different names, got {describe(name)} twice")
            files[name] = content
    return Upload(codecs.unique_fields(pairs), files)


def _file_name(sent: str) -> str:
    """Return the last part of the name of a file that a browser sent, as a file here can be called; its suffix is
    kept."""
    last = re.split(r"[/\\]", sent)[-1].lstrip(". ")
    printable = "".join(mark if mark.isprintable() else "?" for mark in last)
    return printable.encode()[-200:].decode(errors="ignore") or "file"


PAGES = (
    Page("GET", "/", ("read",), show),
    Page("POST", "/", ("admin", "read"), begin, uploads=True),
)
