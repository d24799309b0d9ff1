"""Compile a loop as one whole: by itself numba optimises, and makes machine code of, each function that it calls, too.

What is replaced here is numba's own, and only while a loop is compiled.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from numba import _dynfunc
from numba.core import event
from numba.core.codegen import CPUCodeLibrary
from numba.core.cpu import CPUContext
from numba.extending import overload
from numba.np import arrayobj


class _Depth(event.Listener):
    """Counts how many functions numba is compiling, each for the one before."""

    now = 0

    def on_start(self, event: Any) -> None:
        self.now += 1

    def on_end(self, event: Any) -> None:
        self.now -= 1


def _shapes_differ(source: Any, target: Any) -> None:
    """Raise an error; numba's own names both shapes, and the text takes a second to compile."""


@overload(_shapes_differ)
def _raise_shapes_differ(source: Any, target: Any) -> Callable[..., None]:
    def differ(source: Any, target: Any) -> None:
        raise ValueError("expected as many elements as there are to be assigned")

    return differ


def _has(library: Any, name: str) -> bool:
    """Return whether there is a function with this name in the `library`."""
    try:
        library._final_module.get_function(name)
    except NameError:
        return False
    return True


@contextmanager
def compiled_once() -> Iterator[None]:
    """Let numba optimise a loop, and make machine code of it, when it is whole: by itself it does both to each function
    with all that it calls, and again to what calls it, which takes three times as long and comes to the same code."""
    depth, called = _Depth(), set[Any]()
    optimize, finalize = CPUCodeLibrary._optimize_final_module, CPUCodeLibrary._finalize_final_module
    executable = CPUContext.get_executable

    def optimize_whole(library: Any) -> None:
        if depth.now <= 1 or library in called:
            optimize(library)

    def finalize_whole(library: Any) -> None:
        if depth.now <= 1 or library in called:
            finalize(library)
        else:
            library._finalized = True  # it is there to be linked

    def executable_whole(context: Any, library: Any, about: Any, env: Any) -> Any:
        if depth.now <= 1:
            return executable(context, library, about, env)
        if not about.modname.startswith("numba.") and _has(library, about.llvm_cpython_wrapper_name):
            called.add(library)  # a function that somebody made with `njit`, and may call from Python, too
            return executable(context, library, about, env)
        library._ensure_finalized()
        return _dynfunc.make_function(about.lookup_module(), about.qualname, "", 0, env, (library,))

    explain = arrayobj.raise_with_shape_context
    with event.install_listener("numba:compile", depth):
        arrayobj.raise_with_shape_context = _shapes_differ
        CPUCodeLibrary._optimize_final_module = optimize_whole
        CPUCodeLibrary._finalize_final_module = finalize_whole
        CPUContext.get_executable = executable_whole
        try:
            yield
        finally:
            arrayobj.raise_with_shape_context = explain
            CPUCodeLibrary._optimize_final_module = optimize
            CPUCodeLibrary._finalize_final_module = finalize
            CPUContext.get_executable = executable
