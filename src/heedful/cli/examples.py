"""`heedful examples`: write the small files that the first commands of the documentation use."""

from __future__ import annotations

from pathlib import Path

from heedful.cli.console import BadInput, note
from heedful.core.extras import EXAMPLES


def examples() -> None:
    """They are small made-up tables, logs and scripts, in a new folder `examples` here. A file that is there already
    and is different is not overwritten: then nothing is written. Files that are the same are left alone.

    Exit codes: 0; 1 a file cannot be written; 2 a file that is there is different.
    """
    found = [path for path in sorted(EXAMPLES.rglob("*")) if path.is_file() and path.suffix != ".pyc"]
    files = {Path("examples") / path.relative_to(EXAMPLES): path.read_bytes() for path in found}
    for path, content in files.items():
        if path.exists() and not (path.is_file() and path.read_bytes() == content):
            raise BadInput(f"{path}: expected none, or the one of this version, got another: move it, then try again")
    new = [path for path in files if not path.exists()]
    for path in new:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(files[path])
    note(f"wrote {len(new)} of {len(files)} files into examples, which examples/README.md explains")
    note("begin with: heedful init cars examples/cars.csv")
