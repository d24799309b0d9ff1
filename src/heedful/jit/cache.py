"""The same fold, compiled: numba on the functions as they stand, cached on disk under a key of all their sources.

Rules stay methods of NamedTuples. Everything reachable from the arguments (the modules of their classes, and the
modules those name in their globals) is walked once: marked kernels become callable in compiled code, methods of
NamedTuple classes resolve by the type of the tuple, and the code of all of it is part of the cache key. Then one
generated module a key holds one njit(cache=True) loop. numba's own cache would notice neither a change in another
file nor two processes that write different signatures under one name; a module a key avoids both.

The cache holds compiled code, in numba's own format, in a directory that only its owner may write:
$HEEDFUL_CACHE_DIR, else $XDG_CACHE_HOME/heedful, else ~/.cache/heedful. Deleting it is always safe.
"""

from __future__ import annotations

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

_loops: dict[Any, Callable[..., Any]] = {}  # kinds of arguments -> compiled loop
_one_at_a_time = threading.Lock()


# ---------------------------------------------------------------------------- what the arguments reach


def _parts(value: Any) -> Iterator[Any]:
    """A named tuple and, depth first, the named tuples in its fields."""
    if isinstance(value, tuple):
        yield value
        for field in value:
            yield from _parts(field)


_STDLIB = sysconfig.get_paths()["stdlib"]
_SITES = tuple({sysconfig.get_paths()["purelib"], sysconfig.get_paths()["platlib"]})


def _own(module: pytypes.ModuleType, roots: set[str]) -> bool:
    """Whether a module's code belongs to the rule: not Python's, and not of an installed package it merely uses."""
    file = getattr(module, "__file__", None)
    name = module.__name__
    if file is None or not file.endswith(".py"):
        return name == "__main__"
    if name.split(".")[0] in roots:
        return True
    return not file.startswith(_SITES) and not (file.startswith(_STDLIB) and "site-packages" not in file)


def reachable(args: tuple[Any, ...], *names: str) -> list[pytypes.ModuleType]:
    """The modules whose code a compiled loop over `args` (or the modules `names`) may contain, sorted by name."""
    start = {type(p).__module__ for a in args for p in _parts(a)}
    start |= {*names, "heedful.core.fold", "heedful.jit.kernel", "heedful.jit.overloads", __name__}
    roots = {name.split(".")[0] for name in start} - {"builtins", "numpy"}
    found: dict[str, pytypes.ModuleType] = {}
    waiting = sorted(start)
    while waiting:
        module = sys.modules.get(waiting.pop())
        if module is None or module.__name__ in found or not _own(module, roots):
            continue
        found[module.__name__] = module
        for value in list(vars(module).values()):
            name = value.__name__ if inspect.ismodule(value) else getattr(value, "__module__", None)
            if isinstance(name, str) and name not in found:
                waiting.append(name)
    return [found[name] for name in sorted(found)]


def _code(value: Any, within: tuple[Any, ...] = ()) -> Iterator[bytes]:
    """The bytes that decide what a global means: code, constants, defaults; nothing that changes from run to run.

    `within` are the functions and classes that hold the value: a closure may hold its own class.
    """
    if any(value is holder for holder in within):
        return
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
    """A digest of those modules: their files as they are, and their code and constants as they are in memory.

    Both, because a file may have been edited after it was imported: what would be compiled now is the old code,
    and no later process may take it for the new.
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
    """Where compiled loops are kept; made if it is not there, writable by its owner alone."""
    chosen = os.environ.get("HEEDFUL_CACHE_DIR")
    home = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    folder = Path(chosen) if chosen else Path(home) / "heedful"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    status = folder.stat()
    if hasattr(os, "getuid") and (status.st_uid != os.getuid() or status.st_mode & 0o022):
        raise PermissionError(f"{folder} must belong to you and be writable by you alone: it holds compiled code")
    return folder


_TEMPLATE = '''"""Generated by heedful {version}, safe to delete. numba keeps the compiled code beside this file."""

from numba import njit

from heedful.jit.overloads import borrow
from heedful.core.fold import run


@njit(cache=True, **{options!r})
def loop(learner, world, state, truth, regrets, start, context_rng, feedback_rng, learner_rng):
    draws = borrow(context_rng), borrow(feedback_rng), borrow(learner_rng)
    return run(borrow(learner), borrow(world), borrow(state), borrow(truth), regrets, start, *draws)
'''


def _import_generated(folder: Path) -> Callable[..., Any]:
    """The loop in the generated module of this folder, written first where it is not there yet."""
    from heedful import __version__

    name = folder.name
    folder.mkdir(mode=0o700, exist_ok=True)
    file = folder / f"{name}.py"
    if not file.exists():  # written aside, then moved: another process may be doing the same
        handle, aside = tempfile.mkstemp(dir=folder, suffix=".tmp")
        with os.fdopen(handle, "w") as out:
            out.write(_TEMPLATE.format(version=__version__, options=OPTIONS))
        os.utime(aside, (0, 0))  # numba keys its index by this time: the same whoever wins
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


def _load_or_compile(key: str, signature: Any) -> Callable[..., Any]:
    """The loop of this key, ready to be called; what is damaged on disk is thrown away and made again."""
    folder = cache_directory() / _folder(key)
    try:
        loop: Any = _import_generated(folder)
        loop.compile(signature)
    except NumbaError:
        raise
    except Exception:  # a file cut short: numba may raise anything
        if not folder.is_dir():
            raise
        shutil.rmtree(folder)
        loop = _import_generated(folder)
        loop.compile(signature)
    return loop  # type: ignore[no-any-return]


def loop_for(*args: Any) -> Callable[..., Any]:
    """`fold.run` compiled for the types of `args`, from the cache where its sources are unchanged.

    Arrays in what it returns may be those of `args`: copy them while `args` live.
    """
    kinds = _kind(args)
    with _one_at_a_time:
        if kinds not in _loops:
            _loops[kinds] = _loop(args, tuple(numba.typeof(a) for a in args))
        return _loops[kinds]


def _kind(value: Any) -> Any:
    """What `numba.typeof` tells apart, in a tenth of its time, which is that of a thousand rounds."""
    if isinstance(value, tuple):
        return (type(value), *[_kind(part) for part in value])
    if isinstance(value, np.ndarray):
        layout = "C" if value.flags.c_contiguous else "F" if value.flags.f_contiguous else "A"
        return value.dtype, value.ndim, layout, value.flags.writeable, value.flags.aligned
    if type(value) in (bool, float, np.random.Generator) or (type(value) is int and value.bit_length() < 64):
        return type(value)
    return numba.typeof(value)


def is_cached(*args: Any) -> bool:
    """Whether `loop_for` would find the loop of these arguments, in memory or on disk, and not compile it."""
    if _kind(args) in _loops:
        return True
    signature = tuple(numba.typeof(a) for a in args)
    modules = reachable(args)
    if _nameless(modules):
        return False
    folder = cache_directory() / _folder(_key(args, signature, modules))
    return any(folder.glob("**/*.nbc"))


def _nameless(modules: list[pytypes.ModuleType]) -> bool:
    """Whether there are classes that nobody can import again."""
    return any(module.__name__ == "__main__" for module in modules)


def _key(args: tuple[Any, ...], signature: Any, modules: list[pytypes.ModuleType]) -> str:
    """A digest of all that decides what a loop is compiled to."""
    named = [f"{type(p).__module__}.{type(p).__qualname__}" for a in args for p in _parts(a)]
    versions = (sys.version, numba.__version__, np.__version__, sorted(OPTIONS.items()))
    return hashlib.sha256(f"{fingerprint(modules)} {signature} {named} {versions}".encode()).hexdigest()


def _loop(args: tuple[Any, ...], signature: Any) -> Callable[..., Any]:
    from heedful.core import fold

    modules = reachable(args)
    register(modules)
    if not _nameless(modules):
        key = _key(args, signature, modules)
        try:
            return _load_or_compile(key, signature)
        except NumbaError:
            raise  # about the rule, not about the cache
        except Exception as error:
            warnings.warn(
                f"compiled code is not kept, so each start compiles again: {type(error).__name__}: {error}. "
                "Set HEEDFUL_CACHE_DIR to a folder of yours.",
                stacklevel=5,
            )
    loop: Callable[..., Any] = numba.njit(**OPTIONS)(fold.run)
    return loop


def compile_kernel(f: Callable[..., Any]) -> Callable[..., Any]:
    """numba on a marked function (its loop, where it has two bodies) and on whatever it calls; not kept on disk."""
    loop = getattr(f, "__kernel__", None)
    if loop is None:
        raise ValueError(f"f: expected a function marked with @kernel, got {f!r}")
    register(reachable((), f.__module__))
    result: Callable[..., Any] = numba.njit(**OPTIONS)(loop)
    return result
