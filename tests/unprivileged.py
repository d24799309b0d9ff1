"""Somebody whom permissions bind, as they do not bind the administrator."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def unprivileged() -> Iterator[Path]:
    """A folder of one's own, as somebody whom permissions bind. Modules that only the administrator may read have to be
    imported before."""
    folder = Path(tempfile.mkdtemp(prefix="heedful"))
    was = os.geteuid()
    if was == 0:
        os.chown(folder, 65534, 65534)
        os.seteuid(65534)
    try:
        yield folder
    finally:
        if was == 0:
            os.seteuid(0)
        for inside in (folder, *folder.rglob("*")):
            os.chmod(inside, 0o700)
        shutil.rmtree(folder)
