"""A lock between the workers of a run, and between runs of one environment: for what has to be alone on the machine."""

from __future__ import annotations

import fcntl
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def alone(name: str) -> Iterator[None]:
    """Wait until nobody else holds the lock `name`, and hold it. It ends with its process, too."""
    with Path(sys.prefix, f"heedful-{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
