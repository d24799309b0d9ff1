"""Small files for tests of readers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from heedful.data.table import Table, table_of


def write(path: Path, text: str | bytes) -> Path:
    """The file, with this in it."""
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def placed(rows: Sequence[dict[str, Any]]) -> Table:
    """The table "table" with these rows, in lines 1 and up."""
    return table_of([(f"table:{i}", row) for i, row in enumerate(rows, 1)], "table")
