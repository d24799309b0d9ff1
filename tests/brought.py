"""What becomes of rows that are imported into a loop."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from heedful import Loop
from heedful.data.jsonl import as_lines
from heedful.data.row_report import Report
from heedful.io import Outcome, import_lines
from heedful.io.formats import FORMATS


def taken(loop: Loop, records: Iterable[dict[str, Any]]) -> list[Outcome]:
    return list(import_lines(loop, as_lines(records)))


def brought(loop: Loop, name: str, *files: Path, **options: str) -> tuple[list[Outcome], Report]:
    """Import files of the format `name`; in the names of options, __ stands for a colon."""
    read, report = FORMATS[name].read, Report()
    assert read is not None
    records = read(loop, files, report, {key.replace("__", ":"): value for key, value in options.items()})
    return taken(loop, records), report
