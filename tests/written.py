"""Small files for tests of readers."""

from __future__ import annotations

from pathlib import Path


def write(path: Path, text: str | bytes) -> Path:
    """The file, with this in it."""
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path
