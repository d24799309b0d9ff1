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
import sys
import sysconfig
import tempfile
import types as pytypes
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, ClassVar

import numba
import numpy as np
from numba import types
from numba.core import cgutils
from numba.core.cpu_options import InlineOptions
from numba.core.typing.templates import AbstractTemplate, _OverloadMethodTemplate, infer_getattr, signature
from numba.extending import intrinsic, overload

from heedful import kernel

_AHEAD = 4096  # bytes between what is summed and what is fetched from memory
_OPTIONS: dict[str, Any] = {"error_model": "numpy", "nogil": True, "forceinline": True}
_seen: set[Any] = set()  # kernels and method names that numba knows by now
_loops: dict[Any, Callable[..., Any]] = {}  # argument types -> compiled loop


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


def reachable(args: tuple[Any, ...]) -> list[pytypes.ModuleType]:
    """The modules whose code a compiled loop over `args` may contain, sorted by name."""
    start = {type(p).__module__ for a in args for p in _parts(a)} | {
        "heedful.fold",
        "heedful.kernel",
        __name__,
    }
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


def _code(value: Any) -> Iterator[bytes]:
    """The bytes that decide what a global means: code, constants, defaults; nothing that changes from run to run."""
    if isinstance(value, pytypes.CodeType):
        yield value.co_code
        yield repr((value.co_names, value.co_varnames, value.co_argcount)).encode()
        for const in value.co_consts:
            yield from _code(const)
    elif inspect.isfunction(value):
        yield from _code(value.__code__)
        yield from _code(value.__defaults__)
    elif isinstance(value, type):
        for name, member in sorted(vars(value).items(), key=lambda item: item[0]):
            if inspect.isfunction(member) or isinstance(member, staticmethod | classmethod | property):
                yield f"{name} {type(member).__name__}".encode()
                yield from _code(getattr(member, "__func__", getattr(member, "fget", member)))
        yield repr(getattr(value, "_fields", ())).encode()
    elif isinstance(value, int | float | str | bytes | bool | type(None)):
        yield repr(value).encode()
    elif isinstance(value, tuple | frozenset):
        for part in sorted(value, key=repr) if isinstance(value, frozenset) else value:
            yield from _code(part)
    elif isinstance(value, np.ndarray) and value.dtype != object:
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


# ---------------------------------------------------------------------------- what numba is told


@intrinsic
def _eight_lanes(typingctx: Any, X: Any, j: Any, w: Any, lo: Any, count: Any) -> Any:
    """kernel.eight_lanes as vector instructions: loads, a multiply and an add for eight lanes at a time.

    LLVM may not reorder a sum, so it leaves the plain loop scalar, at a sixth of the speed.
    """
    from llvmlite import ir

    def prefetch(builder: Any) -> Any:
        arguments = [ir.IntType(8).as_pointer(), *[ir.IntType(32)] * 3]
        kind = ir.FunctionType(ir.VoidType(), arguments)
        return cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        x_type, _, w_type, _, _ = sig.args
        i32, double = ir.IntType(32), ir.DoubleType()
        lanes = ir.VectorType(double, 8)
        x = context.make_array(x_type)(context, builder, args[0])
        w = context.make_array(w_type)(context, builder, args[2])
        row = builder.gep(x.data, [builder.mul(args[1], builder.extract_value(x.shape, 1))])

        def load(data: Any, array: Any, at: Any) -> Any:
            element = ir.FloatType() if array.dtype == types.float32 else double
            vector = builder.load(builder.bitcast(builder.gep(data, [at]), ir.VectorType(element, 8).as_pointer()))
            vector.align = array.dtype.bitwidth // 8
            if data is row:  # rows follow each other; memory is slower than the sum
                ahead = builder.gep(
                    builder.bitcast(builder.gep(data, [at]), ir.IntType(8).as_pointer()),
                    [context.get_constant(types.intp, _AHEAD)],
                )
                builder.call(prefetch(builder), [ahead, i32(0), i32(2), i32(1)])
            return vector if element is double else builder.fpext(vector, lanes)

        def product(at: Any) -> Any:
            return builder.fmul(load(row, x_type, at), load(w.data, w_type, at))

        def every_other(vector: Any, offset: int) -> Any:
            picks = [2 * i + offset for i in range(vector.type.count // 2)]
            mask = ir.Constant(ir.VectorType(i32, len(picks)), picks)
            return builder.shuffle_vector(vector, ir.Constant(vector.type, ir.Undefined), mask)

        total = cgutils.alloca_once(builder, lanes)
        builder.store(product(args[3]), total)
        eight = context.get_constant(types.intp, 8)
        with cgutils.for_range_slice(builder, eight, args[4], eight) as (i, _):
            builder.store(builder.fadd(builder.load(total), product(builder.add(args[3], i))), total)
        sums = builder.load(total)
        while sums.type.count > 1:
            sums = builder.fadd(every_other(sums, 0), every_other(sums, 1))
        return builder.extract_element(sums, i32(0))

    return types.float64(X, types.intp, w, types.intp, types.intp), codegen


@intrinsic
def borrowed(typingctx: Any, value: Any) -> Any:
    """`value` with every array in it, at any depth, uncounted: its owner outlives the loop.

    Counting references costs atomic operations at every call and slice, a quarter of a round. Whatever of it the
    loop returns must be copied while the owner is alive: `fold.trace` does.
    """

    def uncounted(context: Any, builder: Any, kind: Any, v: Any) -> Any:
        if isinstance(kind, types.Array):
            array = context.make_array(kind)(context, builder, v)
            for field in ("meminfo", "parent"):
                setattr(array, field, cgutils.get_null_value(getattr(array, field).type))
            return array._getvalue()
        if isinstance(kind, types.BaseTuple):
            for i, part in enumerate(kind.types):
                old = builder.extract_value(v, i)
                v = builder.insert_value(v, uncounted(context, builder, part, old), i)
        return v

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return uncounted(context, builder, sig.args[0], args[0])

    return value(value), codegen


def _teach(modules: list[pytypes.ModuleType]) -> None:
    """Let compiled code call the marked kernels of `modules` and the methods of their NamedTuples."""
    for module in modules:
        if module.__name__ == "heedful.blas" and "blas" not in _seen:
            _seen.add("blas")
            module.teach()
        for value in list(vars(module).values()):
            loop = getattr(value, "__kernel__", None)
            if loop is not None and value not in _seen:
                _seen.add(value)
                _teach_kernel(value, loop)
            if isinstance(value, type) and issubclass(value, tuple):
                for name, member in vars(value).items():
                    if inspect.isfunction(member) and not name.startswith("_") and name not in _seen:
                        _seen.add(name)
                        _teach_method(name)


def _teach_kernel(f: Callable[..., Any], loop: Callable[..., Any]) -> None:
    if f is kernel.shown:  # decided by type, not at run time

        def typed(y: Any) -> Any:
            return (lambda y: y[0]) if isinstance(y, types.BaseTuple) else (lambda y: y)

        overload(f, jit_options=_OPTIONS, strict=False)(typed)
    elif f is kernel.eight_lanes:
        overload(f, strict=False)(
            lambda X, j, w, lo, count: lambda X, j, w, lo, count: _eight_lanes(X, j, w, lo, count)
        )
    else:
        overload(f, jit_options=_OPTIONS, strict=False)(lambda *args: loop)


def _teach_method(name: str) -> None:
    """Resolve `value.name(...)` for every named tuple by its class; arguments are positional in compiled code.

    numba's own overload_method takes one Python signature for all types; here each class has its own.
    """

    def resolve(self: Any, *args: Any) -> Any:
        method = vars(self.instance_class).get(name)
        return method if inspect.isfunction(method) else None

    class Method(_OverloadMethodTemplate):
        key = types.BaseNamedTuple
        _attr = name
        _impl_cache: ClassVar[dict[Any, Any]] = {}
        _inline = staticmethod(InlineOptions("never"))
        _inline_overloads: ClassVar[dict[Any, Any]] = {}
        _overload_func = staticmethod(resolve)
        prefer_literal = False
        metadata: ClassVar[dict[str, Any]] = {}

        def _resolve(self, typ: Any, attr: str) -> Any:
            if attr != name or name in typ.fields or not inspect.isfunction(vars(typ.instance_class).get(name)):
                return None
            outer = self

            class Bound(AbstractTemplate):
                key = (outer.key, attr)
                prefer_literal = False

                def generic(self, args: Any, kws: Any) -> Any:
                    function = outer._get_function_type(self.context, typ)
                    sig = outer._get_signature(self.context, function, (typ, *args), kws)
                    return signature(sig.return_type, *sig.args[1:], recvr=sig.args[0])

            return types.BoundFunction(Bound, typ)

    infer_getattr(Method)
    overload(resolve, jit_options=_OPTIONS, strict=False)(resolve)


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

from heedful.compile import borrowed
from heedful.fold import run


@njit(cache=True, **{options!r})
def loop(learner, world, state, truth, regrets, start, asked, answered, drawn):
    return run(
        borrowed(learner), borrowed(world), borrowed(state), borrowed(truth), regrets, start, asked, answered, drawn
    )
'''


def _generated(key: str) -> Callable[..., Any]:
    """The loop in the generated module of this key, written first where it is not there yet."""
    from heedful import __version__

    name = f"heedful_loop_{key[:32]}"
    folder = cache_directory() / name
    folder.mkdir(mode=0o700, exist_ok=True)
    file = folder / f"{name}.py"
    if not file.exists():  # written aside, then moved: another process may be doing the same
        handle, aside = tempfile.mkstemp(dir=folder, suffix=".tmp")
        with os.fdopen(handle, "w") as out:
            out.write(_TEMPLATE.format(version=__version__, options=_OPTIONS))
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


def loop_for(*args: Any) -> Callable[..., Any]:
    """`fold.run` compiled for the types of `args`, from the cache where its sources are unchanged."""
    signature = tuple(numba.typeof(a) for a in args)
    if signature not in _loops:
        modules = reachable(args)
        _teach(modules)
        named = [f"{type(p).__module__}.{type(p).__qualname__}" for a in args for p in _parts(a)]
        versions = (sys.version, numba.__version__, np.__version__, sorted(_OPTIONS.items()))
        text = f"{fingerprint(modules)} {signature} {named} {versions}"
        key = hashlib.sha256(text.encode()).hexdigest()
        from heedful import fold

        if any(module.__name__ == "__main__" for module in modules):
            _loops[signature] = numba.njit(**_OPTIONS)(fold.run)  # a class nobody can import again
        else:
            try:
                _loops[signature] = _generated(key)
            except OSError as error:
                warnings.warn(
                    f"compiled code is not kept, so each start compiles again: {error}. "
                    "Set HEEDFUL_CACHE_DIR to a folder of yours.",
                    stacklevel=3,
                )
                _loops[signature] = numba.njit(**_OPTIONS)(fold.run)
    return _loops[signature]


def compiled(f: Callable[..., Any]) -> Callable[..., Any]:
    """numba on a marked function (its loop, where it has two bodies) and on whatever it calls; not kept on disk."""
    loop = getattr(f, "__kernel__", None)
    if loop is None:
        raise ValueError(f"f: wanted a function marked with @kernel, got {f!r}")
    module = sys.modules[f.__module__]
    _teach([*reachable(()), module])
    result: Callable[..., Any] = numba.njit(**_OPTIONS)(loop)
    return result
