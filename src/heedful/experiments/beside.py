"""What plays the rounds of a learner: the interpreter at once, and compiled code as soon as that pays.

To compile a learner takes longer than many a run, and both give the same bits. So each kind of loop (the types of a
learner and of its world) begins interpreted; when this process has spent as long on it as compiled code takes to load,
it looks for that; when as long as a good part of compiling takes, another process begins to compile it, and the run
changes over between two of its rounds when that is done. Whatever the length of a run, that takes at most about twice
as long as the better of the two alone.
"""

from __future__ import annotations

import multiprocessing
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from heedful.core.engine import cores
from heedful.core.fold import copy_arrays, run
from heedful.learners.registry import Portable, unwrap

LOADING, COMPILING = 0.5, 1.5
"""Seconds of interpreted rounds after which compiled code is looked for (to load numba takes about as long), and after
which it is made."""

# Processor time of this thread; the clock on Windows advances in steps longer than a run.
clock = time.perf_counter if sys.platform == "win32" else time.thread_time

_turn = threading.Lock()
"""Held by who plays interpreted: threads that compete for Python's lock are slower together than in turn."""


class Beside:
    """The compiled code of one kind of loop in this process: how far it is."""

    def __init__(self) -> None:
        self.seconds = 0.0
        """how long rounds were played interpreted"""
        self.refused = False
        """whether it cannot be compiled"""
        self._looked = self._ready = False
        self._compiler: Any = None
        self._lock = threading.Lock()

    def loop(
        self, args: tuple[Any, ...], begin: Callable[[], None], refuse: Callable[[Exception], None]
    ) -> Callable[..., Any]:
        """Return what plays the next rounds: `heedful.core.fold.run` with the arguments `args`, or that compiled.

        `begin` is called if another process begins to compile it, and `refuse` with the reason if it cannot be
        compiled."""
        with self._lock:
            if self.refused or self.seconds < LOADING:
                return run
            try:
                if not self._ready:
                    self._look(args, begin)
                if self._ready:
                    from heedful.jit.cache import loop_for

                    return loop_for(*args)
            except Exception as error:  # numba's own kinds and, for types it does not know, Python's
                self.refused = True
                refuse(error)
            return run

    def _look(self, args: tuple[Any, ...], begin: Callable[[], None]) -> None:
        """See whether compiled code is there, or let it be made."""
        if self._compiler is not None:
            self._ready = self._compiler.exitcode is not None  # what it could not do is done here, or told
            return
        if not self._looked:
            from heedful.jit.cache import is_cached

            self._looked, self._ready = True, is_cached(*args)
        busy = sum(child.name == _compile.__name__ for child in multiprocessing.active_children())
        if self._ready or self.seconds < COMPILING or busy >= max(1, cores() - 1):
            return
        begin()
        types = Portable({str(i): _types(value) for i, value in enumerate(args)})
        context = multiprocessing.get_context("spawn")
        self._compiler = context.Process(target=_compile, args=(types,), name=_compile.__name__, daemon=True)
        try:
            self._compiler.start()
        except Exception:  # what cannot be sent to another process is compiled here
            self._ready = True


_kinds: dict[Any, Beside] = {}


def beside(args: tuple[Any, ...]) -> Beside:
    """Return the `Beside` of the loop with the arguments `args`."""
    return _kinds.setdefault(_kind(args), Beside())


def _kind(value: Any) -> Any:
    """Return a hashable key of the types in `value`."""
    if isinstance(value, tuple):
        return (type(value), *[_kind(part) for part in value])
    return (value.dtype, value.ndim) if isinstance(value, np.ndarray) else type(value)


class _Like(NamedTuple):
    """The type of an array: all that compiling needs of it."""

    dtype: Any
    ndim: int
    order: Any
    writeable: bool


def _types(value: Any) -> Any:
    """Return `value` with the type of each array in its place."""
    if isinstance(value, np.ndarray):
        order = "F" if value.flags.f_contiguous and not value.flags.c_contiguous else "C"
        return _Like(value.dtype, value.ndim, order, value.flags.writeable)
    return _map(_types, value)


def _arrays(value: Any) -> Any:
    """Return `value` with a small array in place of each type."""
    if isinstance(value, _Like):
        array = np.zeros((2,) * value.ndim, value.dtype, order=value.order)
        array.flags.writeable = value.writeable
        return array
    return _map(_arrays, value)


def _map(f: Callable[[Any], Any], value: Any) -> Any:
    if not isinstance(value, tuple):
        return value
    parts = [f(part) for part in value]
    return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)


def _compile(types: Any) -> None:
    """Compile the loop with arguments of these `types`, and store its code on disk; called in a process of its own."""
    from heedful.jit.cache import loop_for

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the process that waits for it handles Ctrl-C, and ends it
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        loop_for(*map(_arrays, unwrap(types).values()))


class Player:
    """Plays the rounds of one run: a loop as `trace_in_chunks` takes it, which counts the processor time."""

    def __init__(
        self, interpreted: bool | None, begin: Callable[[], None], refuse: Callable[[Exception], None]
    ) -> None:
        """Play interpreted, compiled (False), or change over when that pays (None): then `begin` is called where
        compiling begins, and `refuse` with the reason where it cannot be done."""
        self.seconds = 0.0
        """the processor time of all rounds so far"""
        self._interpreted, self._begin, self._refuse = interpreted, begin, refuse

    def __call__(self, *args: Any) -> Any:
        if self._interpreted is None:
            code = beside(args)
            loop = code.loop(args, self._begin, self._refuse)
        elif self._interpreted:
            loop = run
        else:
            from heedful.jit.cache import loop_for

            loop = loop_for(*args)
        if loop is not run:
            *states, played = self._play(loop, args)
            return (*copy_arrays(tuple(states)), played)  # they belong to the compiled loop
        with _turn:
            before = self.seconds
            played = self._play(loop, args)
            if self._interpreted is None:
                code.seconds += self.seconds - before
            return played

    def _play(self, loop: Callable[..., Any], args: tuple[Any, ...]) -> Any:
        started = clock()
        result = loop(*args)
        self.seconds += clock() - started
        return result
