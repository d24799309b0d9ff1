"""Runs begin interpreted and change over to compiled code: when, to what, and that nobody can tell by the numbers."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from heedful.core.conformance import identical
from heedful.core.fold import copy_arrays, generators, run, trace, trace_in_chunks
from heedful.experiments import beside
from heedful.experiments.beside import Beside, Player
from heedful.jit import cache
from heedful.learners.ordinal.perceptrons import PRank
from heedful.worlds.instances import synthetic_ordinal

LEARNER, WORLD = PRank(3, 4), synthetic_ordinal(30, 3, 4)[0]


def arguments() -> tuple[Any, ...]:
    """What a loop of ten rounds is called with."""
    draws = generators(5)
    return LEARNER, WORLD, LEARNER.init(draws[2]), WORLD.init(draws[0]), np.empty(10), 0, *draws


def refuse(error: Exception) -> None:
    raise error


def nothing() -> None:
    return None


class Compiler:
    """Stands for the process that compiles, and for what is on the disk."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *, on_disk: bool, can: bool = True) -> None:
        self.on_disk, self.can, self.begun = on_disk, can, 0
        self.exitcode: int | None = None
        monkeypatch.setattr(cache, "is_cached", lambda *args: self.on_disk)
        monkeypatch.setattr(cache, "loop_for", self.loop_for)
        monkeypatch.setattr(beside.multiprocessing, "get_context", lambda how: self)  # type: ignore[attr-defined]

    def Process(self, **how: Any) -> Compiler:
        return self

    def start(self) -> None:
        self.begun += 1

    def loop_for(self, *args: Any) -> Callable[..., Any]:
        if not self.can:
            raise TypeError("no type for it")
        return compiled


def compiled(*args: Any) -> Any:
    return run(*args)


def test_short_runs_load_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    Compiler(monkeypatch, on_disk=True)
    code = Beside()
    for code.seconds in (0.0, beside.LOADING - 0.01):
        assert code.loop(arguments(), nothing, refuse) is run
    code.seconds = beside.LOADING
    assert code.loop(arguments(), nothing, refuse) is compiled


def test_what_is_not_on_the_disk_is_compiled_once_and_beside(monkeypatch: pytest.MonkeyPatch) -> None:
    compiler, told = Compiler(monkeypatch, on_disk=False), list[str]()
    code = Beside()
    for code.seconds, begun in ((beside.LOADING, 0), (beside.COMPILING - 0.01, 0), (beside.COMPILING, 1), (99.0, 1)):
        assert code.loop(arguments(), lambda: told.append("begun"), refuse) is run
        assert compiler.begun == len(told) == begun
    compiler.exitcode = 0
    assert code.loop(arguments(), nothing, refuse) is compiled
    assert compiler.begun == 1


def test_what_cannot_be_compiled_stays_interpreted_and_is_told_once(monkeypatch: pytest.MonkeyPatch) -> None:
    compiler, told = Compiler(monkeypatch, on_disk=False, can=False), list[str]()
    code = Beside()
    code.seconds = beside.COMPILING
    assert code.loop(arguments(), nothing, refuse) is run
    compiler.exitcode = 1
    for _ in range(3):
        assert code.loop(arguments(), nothing, lambda error: told.append(str(error))) is run
    assert told == ["no type for it"]


def test_only_so_many_compile_at_a_time_as_there_are_processors_left(monkeypatch: pytest.MonkeyPatch) -> None:
    compiler, code = Compiler(monkeypatch, on_disk=False), Beside()
    monkeypatch.setattr(beside, "cores", lambda: 2)
    others = [type("Child", (), {"name": "_compile"})]
    monkeypatch.setattr(beside.multiprocessing, "active_children", lambda: others)  # type: ignore[attr-defined]
    code.seconds = beside.COMPILING
    assert code.loop(arguments(), nothing, refuse) is run
    assert compiler.begun == 0
    others.clear()
    assert code.loop(arguments(), nothing, refuse) is run
    assert compiler.begun == 1


def test_the_time_of_interpreted_rounds_counts_for_their_kind_of_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(beside, "_kinds", {})
    ticks = iter(range(100))
    monkeypatch.setattr(beside, "clock", lambda: next(ticks) / 10.0)
    for _ in range(2):  # seeds, one after the other
        player = Player(None, nothing, refuse)
        list(trace_in_chunks(LEARNER, WORLD, 20, 3, chunk=10, loop=player))
        assert player.seconds == pytest.approx(0.2)
    assert beside.beside(arguments()).seconds == pytest.approx(0.4)
    other = (LEARNER, WORLD._replace(X=WORLD.X.astype(np.float32)), *arguments()[2:])
    assert beside.beside(other).seconds == 0.0


@pytest.mark.slow
def test_it_changes_over_after_each_round_with_the_same_bits() -> None:
    *args, context, feedback, learner = arguments()
    first = copy_arrays((args[2], args[3]))
    loop = cache.loop_for(*args, context, feedback, learner)

    def play(change: int) -> Any:
        """The states after 25 rounds, of which the first `change` are interpreted; their regrets."""
        (state, truth), draws, regrets = copy_arrays(first), generators(5), np.empty(25)
        for f, a, b in ((run, 0, change), (loop, change, 25)):
            out = f(LEARNER, WORLD, state, truth, regrets[a:b], a, *draws)
            state, truth = copy_arrays(tuple(out[:2]))
        return state, truth, regrets

    whole = play(25)
    for change in range(25):
        assert identical(play(change), whole), change


@pytest.mark.slow
def test_another_process_compiles_what_is_played_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEEDFUL_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(cache, "_loops", {})
    monkeypatch.setattr(beside, "_kinds", {})
    monkeypatch.setattr(beside, "LOADING", 0.0)
    monkeypatch.setattr(beside, "COMPILING", 0.0)
    interpreted = trace(LEARNER, WORLD, 60, 3, interpreted=True)
    begun, player = list[str](), Player(None, lambda: begun.append("begun"), refuse)
    chunks = trace_in_chunks(LEARNER, WORLD, 60, 3, chunk=5, loop=player)
    next(chunks)
    assert begun == ["begun"]
    for child in multiprocessing.active_children():
        child.join()
    kept = list(tmp_path.glob("**/*.nbc"))
    assert kept, "it is on the disk before this process asks for it"
    assert identical(list(chunks)[-1], interpreted)
    assert list(tmp_path.glob("**/*.nbc")) == kept, "nothing was compiled here"
    assert len(cache._loops) == 1
