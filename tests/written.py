"""Small files for tests of readers."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from heedful.data.table import Table, table_of


def write(path: Path, text: str | bytes) -> Path:
    """The file, with this in it, compressed if it is so called."""
    content = text if isinstance(text, bytes) else text.encode()
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" and content[:2] != b"\x1f\x8b" else content)
    return path


def write_lines(path: Path, rows: Iterable[object]) -> Path:
    """The file, with these rows as JSON lines; a row that is a text is one already."""
    return write(path, "".join(f"{row if isinstance(row, str) else json.dumps(row)}\n" for row in rows))


def placed(rows: Sequence[dict[str, Any]]) -> Table:
    """The table "table" with these rows, in lines 1 and up."""
    return table_of([(f"table:{i}", row) for i, row in enumerate(rows, 1)], "table")
