"""The garbage collector, where it finds nothing and looks through everything."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def no_collection() -> Iterator[None]:
    """Run the block without the garbage collector, which would look through all that waits to be written, or that a
    compiler has made so far, again and again. What refers to itself is freed afterwards."""
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()
