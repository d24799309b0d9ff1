"""Compile the fold, the loop that runs a learner in a simulated world, and keep the machine code on disk.

Learners and worlds are compiled as they are, as methods of NamedTuples. The compiler first walks over all modules that
a loop may use: those of the classes of its arguments, and those that appear in the globals of these modules. In them,
functions marked `@kernel` become callable from compiled code, methods of NamedTuples resolve by the type of the tuple,
and all code enters the cache key. For each key one module is generated, with one njit(cache=True) loop. numba's own
cache alone would not notice a change in another file, nor two processes that write different signatures under one name.

The cache holds compiled code, in numba's own format, in a directory that only its owner may write: $HEEDFUL_CACHE_DIR,
else $XDG_CACHE_HOME/heedful, else ~/.cache/heedful. Deleting it is always safe.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.util
import inspect
import os
import shutil
import sys
import sysconfig
import tempfile
import threading
import types as pytypes
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numba
import numpy as np
from numba.core.errors import NumbaError

from heedful.jit.overloads import OPTIONS, register
from heedful.jit.whole import compiled_once

_loops: dict[Any, Callable[..., Any]] = {}  # compiled loops by the types of their arguments
_one_at_a_time = threading.Lock()


# ---------------------------------------------------------------------------- the modules that a loop may use


def _parts(value: Any) -> Iterator[Any]:
    """Iterate over `value` and the tuples nested in its fields, depth first; nothing if it is not a tuple."""
    if isinstance(value, tuple):
        yield value
        for field in value:
            yield from _parts(field)


@functools.cache
def _installation() -> tuple[str, ...]:
    """Return the folders of Python's own modules and of the packages of this environment.

    They are no globals: `fingerprint` digests the globals of this module as well, and a cache key with paths in it
    would be good for one environment only."""
    paths = sysconfig.get_paths()
    return paths["stdlib"], paths["purelib"], paths["platlib"]


_INSTALLED = {"site-packages", "dist-packages"}
"""Names of folders of installed packages: an environment may see those of the system as well."""


def _is_own_code(module: pytypes.ModuleType, roots: set[str]) -> bool:
    """Return True if `module` is the caller's own code: in one of the top-level packages `roots`, or neither Python's
    nor an installed package's."""
    file = getattr(module, "__file__", None)
    name = module.__name__
    if file is None or not file.endswith(".py"):
        return name == "__main__"
    if name.split(".")[0] in roots:
        return True
    return not file.startswith(_installation()) and _INSTALLED.isdisjoint(Path(file).parts)


def reachable(args: tuple[Any, ...], *names: str) -> list[pytypes.ModuleType]:
    """Return the imported modules whose code a compiled loop may contain, sorted by name.

    These are the caller's own modules that can be reached, through the globals of modules, from the classes of `args`
    (the arguments of the loop) and from the modules `names`.
    """
    start = {type(p).__module__ for a in args for p in _parts(a)}
    start |= {*names, "heedful.core.fold", "heedful.jit.kernel", "heedful.jit.overloads", __name__}
    roots = {name.split(".")[0] for name in start} - {"builtins", "numpy"}
    modules: dict[str, pytypes.ModuleType] = {}
    waiting = sorted(start)
    while waiting:
        module = sys.modules.get(waiting.pop())
        if module is None or module.__name__ in modules or not _is_own_code(module, roots):
            continue
        modules[module.__name__] = module
        for value in list(vars(module).values()):
            name = value.__name__ if inspect.ismodule(value) else getattr(value, "__module__", None)
            if isinstance(name, str) and name not in modules:
                waiting.append(name)
    return [modules[name] for name in sorted(modules)]


def _code(value: Any, within: tuple[Any, ...] = ()) -> Iterator[bytes]:
    """Yield the bytes that determine what a function, class or constant in a module computes: code, constants,
    defaults. They are the same in each run.

    `within` are the functions and classes that contain `value`, which are not entered again: a closure may contain its
    own class.
    """
    if any(value is holder for holder in within):
        return
    value = getattr(value, "py_func", value)  # of a function that somebody made with `njit`
    if isinstance(value, pytypes.CodeType):
        yield value.co_code
        yield repr((value.co_names, value.co_varnames, value.co_argcount)).encode()
        for const in value.co_consts:
            yield from _code(const)
    elif inspect.isfunction(value):
        yield from _code(value.__code__)
        cells = [cell.cell_contents for cell in value.__closure__ or ()]
        for part in (value.__defaults__, tuple(sorted((value.__kwdefaults__ or {}).items())), *cells):
            yield from _code(part, (*within, value))
    elif isinstance(value, type):
        for name, member in sorted(vars(value).items(), key=lambda item: item[0]):
            if inspect.isfunction(member) or isinstance(member, staticmethod | classmethod | property):
                yield f"{name} {type(member).__name__}".encode()
                yield from _code(getattr(member, "__func__", getattr(member, "fget", member)), (*within, value))
        yield repr(getattr(value, "_fields", ())).encode()
    elif isinstance(value, int | float | str | bytes | bool | type(None)):
        yield repr(value).encode()
    elif isinstance(value, tuple | frozenset):
        for part in sorted(value, key=repr) if isinstance(value, frozenset) else value:
            yield from _code(part, within)
    elif isinstance(value, np.ndarray | np.generic) and value.dtype != object:
        yield f"{value.dtype} {value.shape}".encode()
        yield value.tobytes()


def fingerprint(modules: list[pytypes.ModuleType]) -> str:
    """Return a digest (hex) of the source files of `modules` and of their code and constants in memory.

    It needs both. Where a file was edited after its import, the code in memory is compiled; a later process that
    imports the new file must not use this compiled code.
    """
    digest = hashlib.sha256()
    for module in modules:
        digest.update(module.__name__.encode() + b"\0")
        file = getattr(module, "__file__", None)
        if file is not None and os.path.exists(file):
            digest.update(Path(file).read_bytes())
        for name, value in sorted(vars(module).items()):
            defined_here = not inspect.isroutine(value) and not isinstance(value, type)
            if not name.startswith("__") and (defined_here or value.__module__ == module.__name__):
                digest.update(name.encode() + b"\0")
                for piece in _code(value):
                    digest.update(piece + b"\0")
    return digest.hexdigest()


# ---------------------------------------------------------------------------- the cache


def cache_directory() -> Path:
    """Return the folder of compiled loops, and make it, writable by its owner only, if it does not exist yet.

    Raise PermissionError if it belongs to another user or others may write to it; raise OSError if it cannot be made.
    """
    chosen = os.environ.get("HEEDFUL_CACHE_DIR")
    home = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    folder = Path(chosen) if chosen else Path(home) / "heedful"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    status = folder.stat()
    if hasattr(os, "getuid") and (status.st_uid != os.getuid() or status.st_mode & 0o022):
        raise PermissionError(f"{folder} must belong to you and be writable by you alone: it holds compiled code")
    return folder


_TEMPLATE = '''"""Generated by heedful, safe to delete. numba keeps the compiled code next to this file."""

from numba import njit

from heedful.jit.overloads import borrow
from heedful.core.fold import run


@njit(cache=True, **{options!r})
def loop(learner, world, state, truth, regrets, start, context_rng, feedback_rng, learner_rng):
    draws = borrow(context_rng), borrow(feedback_rng), borrow(learner_rng)
    return run(borrow(learner), borrow(world), borrow(state), borrow(truth), regrets, start, *draws)
'''


_OF_KERNEL = '''"""Generated by heedful, safe to delete. numba keeps the compiled code next to this file."""

from numba import njit

from heedful.jit.overloads import borrow
from {module} import {name}


@njit(cache=True, **{options!r})
def loop({args}):
    return {name}({borrowed})
'''


def _source(f: Callable[..., Any] | None, count: int) -> str:
    """Return the text of the generated module for `fold.run` (None), or for the kernel `f` of `count` arguments."""
    if f is None:
        return _TEMPLATE.format(options=OPTIONS)
    names = [f"a{i}" for i in range(count)]
    return _OF_KERNEL.format(
        options=OPTIONS,
        module=f.__module__,
        name=f.__name__,
        args=", ".join(names),
        borrowed=", ".join(f"borrow({name})" for name in names),
    )


def _import_generated(folder: Path, source: str) -> Callable[..., Any]:
    """Return the loop of the generated module in `folder`, not yet compiled; the module is written first, with the text
    `source`, if it does not exist."""
    name = folder.name
    folder.mkdir(mode=0o700, exist_ok=True)
    file = folder / f"{name}.py"
    if not file.exists():  # written to a temporary file, then moved: another process may be doing the same
        handle, aside = tempfile.mkstemp(dir=folder, suffix=".tmp")
        with os.fdopen(handle, "w") as out:
            out.write(source)
        os.utime(aside, (0, 0))  # numba's index has this time in its key, so it must not depend on the process
        os.replace(aside, file)
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise ImportError(f"cannot load {file}")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    loop: Callable[..., Any] = module.loop
    return loop


def _folder(key: str) -> str:
    return f"heedful_loop_{key[:32]}"


def _load_or_compile(key: str, signature: Any, source: str) -> Callable[..., Any]:
    """Return the loop with the cache key `key`, loaded from disk or made of `source` again if damaged or missing."""
    folder = cache_directory() / _folder(key)
    with compiled_once():
        try:
            loop: Any = _import_generated(folder, source)
            loop.compile(signature)
        except NumbaError:
            raise
        except Exception:  # of a truncated file numba may raise anything
            if not folder.is_dir():
                raise
            shutil.rmtree(folder)
            loop = _import_generated(folder, source)
            loop.compile(signature)
    return loop  # type: ignore[no-any-return]


def loop_for(*args: Any) -> Callable[..., Any]:
    """Return `heedful.core.fold.run` compiled for the types of its arguments `args`: from memory or disk, unless the
    source code has changed.

    The arrays that the loop returns may be those of `args`: copy them before `args` are deleted. Raise numba's
    NumbaError if the code cannot be compiled; warn if the compiled code cannot be kept on disk.
    """
    kinds = _kind(args)
    with _one_at_a_time:
        if kinds not in _loops:
            _loops[kinds] = _loop(args, tuple(numba.typeof(a) for a in args))
        return _loops[kinds]


def kernel_for(f: Callable[..., Any], *args: Any) -> Callable[..., Any]:
    """Return the kernel `f`, a function of a module marked with `@kernel`, compiled for the types of its arguments
    `args`: from memory or disk, unless the source code has changed.

    It is for long loops, like `loop_for`: the arrays that it returns may be those of `args`, and have to be copied
    before `args` are deleted. Raise numba's NumbaError if the code cannot be compiled; warn if the compiled code cannot
    be kept on disk."""
    kinds = f, _kind(args)
    with _one_at_a_time:
        if kinds not in _loops:
            _loops[kinds] = _loop(args, tuple(numba.typeof(a) for a in args), f)
        return _loops[kinds]


def _kind(value: Any) -> Any:
    """Return a hashable key of the types in `value`, which differs wherever `numba.typeof` does, in a tenth of its time
    (which would be that of a thousand rounds)."""
    if isinstance(value, tuple):
        return (type(value), *[_kind(part) for part in value])
    if isinstance(value, np.ndarray):
        layout = "C" if value.flags.c_contiguous else "F" if value.flags.f_contiguous else "A"
        return value.dtype, value.ndim, layout, value.flags.writeable, value.flags.aligned
    if type(value) in (bool, float, np.random.Generator) or (type(value) is int and value.bit_length() < 64):
        return type(value)
    return numba.typeof(value)


def is_cached(*args: Any, kernel: Callable[..., Any] | None = None) -> bool:
    """Return True if `loop_for(*args)`, or `kernel_for(kernel, *args)`, has its loop in memory or on disk, so that it
    will not compile."""
    if (_kind(args) if kernel is None else (kernel, _kind(args))) in _loops:
        return True
    signature = tuple(numba.typeof(a) for a in args)
    modules = reachable(args, *([] if kernel is None else [kernel.__module__]))
    if _nameless(modules):
        return False
    folder = cache_directory() / _folder(_key(args, signature, modules, kernel))
    return any(folder.glob("**/*.nbc"))


def _nameless(modules: list[pytypes.ModuleType]) -> bool:
    """Return True if one of `modules` is `__main__`, whose classes a later process cannot import."""
    return any(module.__name__ == "__main__" for module in modules)


def _key(
    args: tuple[Any, ...], signature: Any, modules: list[pytypes.ModuleType], f: Callable[..., Any] | None = None
) -> str:
    """Return a digest (hex) of everything that the compiled code of `f` (None: `fold.run`) with `args` depends on."""
    named = [f"{type(p).__module__}.{type(p).__qualname__}" for a in args for p in _parts(a)]
    versions = (sys.version, numba.__version__, np.__version__, sorted(OPTIONS.items()))
    of = "" if f is None else f" {f.__module__}.{f.__qualname__}"
    return hashlib.sha256(f"{fingerprint(modules)} {signature} {named} {versions}{of}".encode()).hexdigest()


def _loop(args: tuple[Any, ...], signature: Any, f: Callable[..., Any] | None = None) -> Callable[..., Any]:
    from heedful.core import fold

    modules = reachable(args, *([] if f is None else [f.__module__]))
    register(modules)
    if not _nameless(modules):
        key = _key(args, signature, modules, f)
        try:
            return _load_or_compile(key, signature, _source(f, len(args)))
        except NumbaError:
            raise  # the learner or the world cannot be compiled; the cache is not the cause
        except Exception as error:
            warnings.warn(
                f"compiled code is not kept, so each start compiles again: {type(error).__name__}: {error}. "
                "Set HEEDFUL_CACHE_DIR to a folder of yours.",
                stacklevel=5,
            )
    loop: Callable[..., Any] = numba.njit(**OPTIONS)(fold.run if f is None else f)
    return loop
