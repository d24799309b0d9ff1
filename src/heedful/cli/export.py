"""`heedful export`: write a loop's events to a file of JSON lines."""

from __future__ import annotations

import gzip
import os
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated

import typer

from heedful.cli.common import Json, Name, Own, asking, open_loop
from heedful.cli.console import BadInput, Failure, console, note, print_json

if TYPE_CHECKING:
    from heedful.loop import Loop


def export(
    name: Name,
    file: Annotated[str, typer.Argument(metavar="FILE", help="To write, with .gz compressed; - for stdout.")],
    own: Own = None,
    json: Json = False,
) -> None:
    """Write every item, decision and feedback as JSON lines, people included.

    Imported into a new loop with the same learner and encoding, the lines give the same model, bit for bit. The log
    keeps a note of every file that was written: `heedful forget` names them, as it cannot erase anybody from them.

    Exit codes: 0 written; 1 it could not be; 2 bad input.
    """
    if file == "-" and json:
        raise BadInput("--json: expected a FILE, as with - the lines themselves go to stdout")
    path = Path(os.path.abspath(file))
    target = Path(os.path.realpath(file))  # what a link points to is written, not the link
    if file != "-":
        _check_target(file, target)
    with open_loop(name, own) as loop, asking():
        counts = Counter[str]()
        with _write_whole(target, zipped=path.suffix.lower() == ".gz") if file != "-" else _stdout() as out:
            loop.note_export(file)  # before: nothing goes out that nobody knows of
            for kind, line in _encode(loop):
                out.write(line)
                counts[kind] += 1
        told = ", ".join(f"{count:,} {kind}" for kind, count in counts.items()) or "nothing"
        if json:
            print_json({"path": str(path), "lines": counts.total(), "counts": dict(counts)})
        elif file == "-":
            note(f"{counts.total():,} lines: {told}")
        else:
            console().print(f"{file}: {counts.total():,} lines: {told}", markup=False, soft_wrap=True)


def _check_target(file: str, target: Path) -> None:
    """Raise BadInput if no file can be created at `target`, or if something is there that a file must not replace.

    `file` is the path as the user wrote it, `target` what it leads to if it is a link.
    """
    if os.path.isdir(file):
        raise BadInput(f"{file}: expected a file, got a folder")
    if os.path.exists(file) and not os.path.isfile(file):
        raise BadInput(f"{file}: expected a file, got a pipe, a socket or a device; - writes to stdout")
    if not target.parent.is_dir():
        raise BadInput(f"{file}: expected a file in a folder that is there, got none at {target.parent}")
    if target.is_symlink():
        raise BadInput(f"{file}: expected a file, got links that go round in a circle")


def _encode(loop: Loop) -> Iterator[tuple[str, bytes]]:
    import msgspec

    from heedful.io import export_lines

    for line in export_lines(loop):
        yield line["kind"], msgspec.json.encode(line) + b"\n"


@contextmanager
def _write_whole(path: Path, *, zipped: bool) -> Iterator[IO[bytes]]:
    """Yield a file to write, readable by its owner only, which replaces `path` when the block ends, and not if it
    raises.

    If `zipped`, what is written is compressed with gzip.
    """
    handle, aside = tempfile.mkstemp(dir=path.parent, prefix=path.name, suffix=".tmp")
    try:
        with os.fdopen(handle, "wb") as file:
            if zipped:
                with gzip.GzipFile(fileobj=file, mode="wb", filename="") as lines:
                    yield lines  # type: ignore[misc]
            else:
                yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(aside, path)
    except BaseException:
        Path(aside).unlink(missing_ok=True)
        raise


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
