"""A dry run of an import: what a loop would answer to events, without writing any of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from heedful.loop import Loop
from heedful.loop.copying import copy_loop
from heedful.storage import Address
from heedful.storage.address import place_of


@contextmanager
def rehearse(path: str | Path | Address, *, learner: str | Sequence[str] | None = None) -> Iterator[Loop]:
    """Open a copy of the loop at `path`, in a temporary folder, for the block: it answers and learns as the loop would,
    and goes with the block.

    `learner` is needed only if a learner of the loop is your own, as in `Loop.open`. The errors are those of
    `Loop.open`."""
    with TemporaryDirectory(prefix="heedful-") as folder:
        copy = Path(folder) / "copy.heedful"
        copy_loop(place_of(path), copy)
        with Loop.open(copy, learner=learner) as loop:
            yield loop
