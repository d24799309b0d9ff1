"""`heedful export`: write a loop's events to a file of JSON lines, or in a format of others."""

from __future__ import annotations

import gzip
import os
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Any

import typer

from heedful.cli.common import Json, Name, Own, format_options, note_alike, open_loop, pairs
from heedful.cli.console import BadInput, Failure, check_extra, note, print_json, say
from heedful.cli.import_summary import show_report
from heedful.core.paths import path_kind, replacing
from heedful.core.wording import count
from heedful.data.files import TEMPORARY, find_unfinished

if TYPE_CHECKING:
    from heedful.data.row_report import Report
    from heedful.io.formats import Format
    from heedful.loop import Loop

AS, OPTION = format_options("write")


def export(
    name: Name,
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="The file to write; compressed if it ends in .gz; - for stdout.")
    ],
    format: Annotated[str | None, AS] = None,
    option: Annotated[list[str] | None, OPTION] = None,
    person: Annotated[
        str | None, typer.Option(metavar="NAME", help="Write what the loop has about this person, and nothing else.")
    ] = None,
    own_learners: Own = None,
    json: Json = False,
) -> None:
    """Imported into a new loop with the same learner and encoding, the lines give the same model, bit for bit. With
    --as, the file is in a format of others. What was undone, rolled back or forgotten is not in it, and what else is
    left out is counted with its reason. The log keeps a note of every file that was written: `heedful forget` names
    them, as it cannot erase anybody from them. With --person, it is what `heedful forget` would erase: decisions for
    them, their answers, corrections of their style.

    Exit codes: 0 written; 1 it could not be, or there is nothing about the person; 2 bad input.
    """
    if file == "-" and json:
        raise BadInput("--json: expected a FILE, as with - the lines themselves go to stdout")
    path = Path(os.path.abspath(file))
    target = Path(os.path.realpath(file))  # what a link points to is written, not the link
    if file != "-":
        _check_target(file, target)
    options = pairs("--option", "NAME=VALUE", option or (), at_first=True)
    if options and format is None:
        raise BadInput("--option: expected --as FORMAT too, got none")
    if person is not None and format is not None:
        raise BadInput(f"--person: expected none with --as, got {person!r}")
    from heedful.io import events_of_person, export_lines

    with open_loop(name, own_learners) as loop:
        if format is not None:
            _export_as(loop, format, options, file, target, json)
            return
        counts, alike = Counter[str](), tuple[str, ...]()
        lines = _encode(export_lines(loop))
        if person is not None:
            events = events_of_person(loop, person)
            lines, alike = _encode(events.events), events.alike
            if not events.events:
                spelt_alike = f"; spelt alike: {', '.join(map(repr, alike))}" if alike else ""
                raise Failure(f"{person}: nothing in the log is about this person{spelt_alike}")
            note_alike(person, alike)
        with _write_whole(target, zipped=path.suffix.lower() == ".gz") if file != "-" else _stdout() as out:
            loop.note_export(file)  # before: nothing goes out that nobody knows of
            for kind, line in lines:
                out.write(line)
                counts[kind] += 1
        _say(file, path, counts, json, None if person is None else {"alike": alike})


def _say(file: str, path: Path, counts: Counter[str], json: bool, more: Mapping[str, object] | None = None) -> None:
    """Print how many lines of which kind were written, as JSON with the fields `more`."""
    summary = (
        f"{count(counts.total(), 'line')}: {', '.join(f'{kind} {n:,}' for kind, n in counts.items()) or 'nothing'}"
    )
    if json:
        print_json({"path": str(path), "lines": counts.total(), "counts": dict(counts), **(more or {})})
    elif file == "-":
        note(summary)
    else:
        say(f"{file}: {summary}")


def _export_as(loop: Loop, name: str, options: Mapping[str, str], file: str, target: Path, json: bool) -> None:
    """Write the loop's events to `file`, at the path `target`, in the format `name`, and print what became of them."""
    from heedful.data.row_report import Report
    from heedful.io.formats import find_format

    format, report, counts = find_format(name, "write", options), Report(), Counter[str]()
    suffix = "" if file == "-" else Path(file).suffix.lower()
    parts = _encode_as(loop, format, report, options, counts, suffix)
    first = next(parts, b"")  # before anything is written or noted, as the loop may not fit the format
    with _write_whole(target, zipped=suffix == ".gz") if file != "-" else _stdout() as out:
        loop.note_export(file)
        out.write(first)
        for part in parts:
            out.write(part)
    _say(file, target, counts, json, {"report": vars(report)})
    if not json and file != "-":
        show_report(report)
    elif not json:
        _note_dropped(report)


def _note_dropped(report: Report) -> None:
    """Print on stderr why rows were dropped: a line for each reason in the `report`."""
    for reason, n in report.dropped.most_common():
        note(f"{n:,} left out: {reason}; such as {report.examples[reason]}")


def _encode_as(
    loop: Loop, format: Format, report: Report, options: Mapping[str, str], counts: Counter[str], suffix: str
) -> Iterator[bytes]:
    """Yield the bytes of a file in a format of others, as a table (.parquet) or script (.sh) if its name ends so."""
    import msgspec

    assert format.write is not None  # it was found as one that is
    parquet = suffix == ".parquet"
    if parquet and format.document:
        raise BadInput(f"FILE: expected a name that ends in .json with --as {format.name}, got one of Parquet")
    if parquet:
        check_extra("pyarrow", "parquet", "writing Parquet")
    rows = []
    for kind, line in format.write(loop, report, options):
        counts[kind] += 1
        for text in line.get("notes", ()) if format.document else ():
            note(text)
        if parquet:
            rows.append(line)
        elif suffix == ".sh" and format.script is not None:
            yield format.script(line).encode()
        else:
            encoded = msgspec.json.encode(line)
            yield (msgspec.json.format(encoded, indent=2) if format.document else encoded) + b"\n"
    if parquet:
        if not rows:
            _note_dropped(report)
            raise BadInput("FILE: expected rows to write, as a Parquet file has columns, got none")
        yield _parquet(rows)


def _parquet(rows: list[Mapping[str, Any]]) -> bytes:
    """Return `rows`, of which there are some, as a Parquet file. Raise BadInput if a column has values of two types."""
    import pyarrow
    import pyarrow.parquet

    names = list(dict.fromkeys(name for row in rows for name in row))  # a row may lack what another has
    try:
        table = pyarrow.Table.from_pylist([{name: row.get(name) for name in names} for row in rows])
    except (pyarrow.ArrowException, TypeError) as error:
        problem = str(error).splitlines()[0]
        raise BadInput(
            f"FILE: expected values of one type in a column of Parquet, got: {problem}; .jsonl takes any"
        ) from None
    sink = pyarrow.BufferOutputStream()
    pyarrow.parquet.write_table(table, sink)
    return bytes(sink.getvalue().to_pybytes())


def _check_target(file: str, target: Path) -> None:
    """Raise BadInput if no file can be created at `target`, or if something is there that must not be replaced."""
    if os.path.isdir(file):
        raise BadInput(f"{file}: expected a file, got a folder")
    if os.path.exists(file) and not os.path.isfile(file):
        raise BadInput(f"{file}: expected a file, got a pipe, a socket or a device; - writes to stdout")
    if path_kind(target.parent) != "folder":
        raise BadInput(f"{file}: expected a file in a folder that is there, got none at {target.parent}")
    if target.is_symlink():
        raise BadInput(f"{file}: expected a file, got links that go round in a circle")


def _encode(lines: Iterable[dict[str, Any]]) -> Iterator[tuple[str, bytes]]:
    import msgspec

    for line in lines:
        yield line["kind"], msgspec.json.encode(line) + b"\n"


@contextmanager
def _write_whole(path: Path, *, zipped: bool) -> Iterator[IO[bytes]]:
    """Yield a file, readable by its owner only, that replaces `path` when the block ends without an error."""
    for left in find_unfinished(path):
        if time.time() - left.stat().st_mtime > TEMPORARY:  # it has people's events, too
            left.unlink()
    with replacing(path) as file:
        if zipped:
            with gzip.GzipFile(fileobj=file, mode="wb", filename="") as lines:
                yield lines  # type: ignore[misc]
        else:
            yield file


@contextmanager
def _stdout() -> Iterator[IO[bytes]]:
    try:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # or Python complains once more at its end
        raise Failure("stdout was closed before everything was written") from None
    except OSError as error:
        if error.filename is not None:
            raise  # the loop's own files
        raise Failure(f"stdout: {error.strerror}") from None
