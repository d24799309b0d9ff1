"""What tests of loops share."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A new folder in memory where there is such a thing: a commit waits for the disk otherwise."""
    memory = Path("/dev/shm")
    made = Path(tempfile.mkdtemp(dir=memory)) if memory.is_dir() else tmp_path
    yield made
    if made != tmp_path:
        shutil.rmtree(made)
