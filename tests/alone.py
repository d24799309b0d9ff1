"""A lock between the workers of a run, and between runs: for what has to be alone on the machine; and a folder in which
runs keep what the next one needs again."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import patch

_HELD = set[str]()
KEPT = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "heedful-tests"


@contextmanager
def alone_with_ray() -> Iterator[None]:
    """The only Ray cluster on the machine; it leaves nothing behind. Sockets need a folder with a short name."""
    with (
        alone("ray"),
        TemporaryDirectory(prefix="ray-", ignore_cleanup_errors=True) as folder,
        patch.dict(os.environ, RAY_TMPDIR=folder),
    ):
        yield


@contextmanager
def alone(name: str) -> Iterator[None]:
    """Wait until nobody else holds the lock `name`, and hold it. It ends with its process, too."""
    assert name not in _HELD, f"this process, perhaps a fixture of the module, holds {name} already"
    KEPT.mkdir(parents=True, exist_ok=True)
    with (KEPT / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        _HELD.add(name)
        try:
            yield
        finally:
            _HELD.discard(name)
