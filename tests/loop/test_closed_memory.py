"""A loop that was closed and dropped frees what it held at once, without the garbage collector."""

from __future__ import annotations

import gc
import weakref
from pathlib import Path

import pytest

from heedful import Loop
from kinds import Kind, each_kind


@pytest.mark.slow
@each_kind
def test_what_a_closed_loop_held_is_freed_at_once(tmp_path: Path, kind: Kind) -> None:
    """A server runs the collector rarely, and one loop may hold 128 MB of decisions."""
    kind.make(tmp_path / "loop").close()
    gc.collect()
    gc.disable()
    try:
        loop = Loop.open(tmp_path / "loop", learner=kind.own)
        for n in range(3):
            decision = loop.decide(id=f"d{n}", **kind.ask(n))
            loop.feedback(decision.id, id=f"e{n}", **kind.answer(n, decision.shown))
        loop.undo(loop.projection.log.last()[0])
        held = [weakref.ref(loop), weakref.ref(loop.projection), weakref.ref(loop.projection.log)]
        loop.close()
        del loop
        assert [each() for each in held] == [None, None, None]
    finally:
        gc.enable()
