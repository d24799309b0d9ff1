"""Make functions of the package callable from numba-compiled code: kernels, methods of NamedTuples, and a few functions
written in LLVM instructions.

numba's types and LLVM's builders have no annotations, so their values are `Any` here.
"""

from __future__ import annotations

import inspect
import types as pytypes
from collections.abc import Callable
from typing import Any, ClassVar

from numba import types
from numba.core import cgutils
from numba.core.cpu_options import InlineOptions
from numba.core.errors import TypingError
from numba.core.typing.templates import AbstractTemplate, _OverloadMethodTemplate, infer_getattr, signature
from numba.extending import intrinsic, overload

from heedful.jit import kernel

OPTIONS: dict[str, Any] = {"error_model": "numpy", "nogil": True, "forceinline": True}
# Only compiled code calls these functions: wrappers for Python and C would take a quarter of the compile time.
_INNER: dict[str, Any] = OPTIONS | {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
_AHEAD = 4096  # the prefetch is this many bytes ahead of the sum
_registered: set[Any] = set()  # kernels and names of methods that numba knows already


def _prefetch(builder: Any, pointer: Any, offset: Any, nearness: int) -> None:
    """Emit an instruction that prefetches the cache line at `pointer` plus `offset` bytes, into the second-level cache
    (`nearness` 2) or the first-level one (3)."""
    from llvmlite import ir

    i8, i32 = ir.IntType(8).as_pointer(), ir.IntType(32)
    kind = ir.FunctionType(ir.VoidType(), [i8, i32, i32, i32])
    call = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
    builder.call(call, [builder.gep(builder.bitcast(pointer, i8), [offset]), i32(0), i32(nearness), i32(1)])


@intrinsic
def _fetch_row(typingctx: Any, X: Any, j: Any) -> Any:
    """Emit `kernel.fetch_row` (prefetch row `j` of the array `X`) as prefetch instructions, one for each cache line of
    the row. Raise TypingError if X is not C-contiguous."""
    from llvmlite import ir

    if X.layout != "C":
        raise TypingError(f"fetch_row: expected a C-contiguous array, got {X}")

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        x = context.make_array(sig.args[0])(context, builder, args[0])
        size, zero = builder.extract_value(x.strides, 0), context.get_constant(types.intp, 0)
        row = builder.gep(builder.bitcast(x.data, ir.IntType(8).as_pointer()), [builder.mul(args[1], size)])
        with cgutils.for_range_slice(builder, zero, size, context.get_constant(types.intp, 64)) as (index, _):
            _prefetch(builder, row, index, 3)
        last = builder.sub(size, context.get_constant(types.intp, 1))
        _prefetch(builder, row, last, 3)  # a row that begins inside a cache line may end in one more
        return context.get_dummy_value()

    return types.none(X, types.intp), codegen


@intrinsic
def _eight_lanes(typingctx: Any, X: Any, j: Any, w: Any, lo: Any, count: Any) -> Any:
    """Emit `kernel.eight_lanes` (the sum of X[j, i] w[i] over `count` columns i from `lo` on) as vector instructions:
    load, multiply and add eight lanes at a time.

    LLVM may not reorder a sum, so it would compile the plain loop to scalar code, six times slower. Where X is a single
    row (n,), j is ignored and nothing is prefetched. Raise TypingError for arrays that are not C-contiguous floats.
    """
    from llvmlite import ir

    for array in (X, w):
        if array.layout != "C" or array.dtype not in (types.float32, types.float64):
            raise TypingError(f"scores: expected C-contiguous arrays of float32 or float64, got {array}")

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        x_type, _, w_type, _, _ = sig.args
        i32, double = ir.IntType(32), ir.DoubleType()
        lanes = ir.VectorType(double, 8)
        x = context.make_array(x_type)(context, builder, args[0])
        w = context.make_array(w_type)(context, builder, args[2])
        row = x.data
        if x_type.ndim == 2:
            row = builder.gep(row, [builder.mul(args[1], builder.extract_value(x.shape, 1))])

        def load(data: Any, array: Any, index: Any) -> Any:
            element = ir.FloatType() if array.dtype == types.float32 else double
            vector = builder.load(builder.bitcast(builder.gep(data, [index]), ir.VectorType(element, 8).as_pointer()))
            vector.align = array.dtype.bitwidth // 8
            if x_type.ndim == 2 and data is row:  # rows follow each other; memory is slower than the sum
                _prefetch(builder, builder.gep(data, [index]), context.get_constant(types.intp, _AHEAD), 2)
            return vector if element is double else builder.fpext(vector, lanes)

        def product(index: Any) -> Any:
            return builder.fmul(load(row, x_type, index), load(w.data, w_type, index))

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
def borrow(typingctx: Any, value: Any) -> Any:
    """Return `value` with the reference counting of its arrays and generators switched off: a numba intrinsic, whose
    first argument, `typingctx`, numba passes itself.

    The owner of `value` must outlive the compiled loop that calls this. Copy what the loop returns while the owner is
    alive, as `fold.trace` does. Reference counting needs atomic operations at every call and slice, a quarter of the
    time of a round.
    """

    def uncounted(context: Any, builder: Any, kind: Any, v: Any) -> Any:
        if isinstance(kind, types.Array):
            array = context.make_array(kind)(context, builder, v)
            for field in ("meminfo", "parent"):
                setattr(array, field, cgutils.get_null_value(getattr(array, field).type))
            return array._getvalue()
        if isinstance(kind, types.NumPyRandomGeneratorType):
            generator = cgutils.create_struct_proxy(kind)(context, builder, v)
            generator.meminfo = cgutils.get_null_value(generator.meminfo.type)
            return generator._getvalue()
        if isinstance(kind, types.BaseTuple):
            for i, part in enumerate(kind.types):
                old = builder.extract_value(v, i)
                v = builder.insert_value(v, uncounted(context, builder, part, old), i)
        return v

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return uncounted(context, builder, sig.args[0], args[0])

    return value(value), codegen


def register(modules: list[pytypes.ModuleType]) -> None:
    """Make the functions marked as kernels in `modules`, and the methods of their NamedTuples, callable from compiled
    code."""
    for module in modules:
        if module.__name__ == "heedful.jit.blas" and "blas" not in _registered:
            _registered.add("blas")
            module.register()
        for value in list(vars(module).values()):
            loop = getattr(value, "__kernel__", None)
            if loop is not None and value not in _registered:
                _registered.add(value)
                _register_kernel(value, loop)
            if isinstance(value, type) and issubclass(value, tuple):
                for name, member in vars(value).items():
                    if inspect.isfunction(member) and not name.startswith("_") and name not in _registered:
                        _registered.add(name)
                        _register_method(name)


def _register_kernel(f: Callable[..., Any], loop: Callable[..., Any]) -> None:
    if f is kernel.visible:  # decided by type, not at run time

        def visible(y: Any) -> Any:
            return (lambda y: y[0]) if isinstance(y, types.BaseTuple) else (lambda y: y)

        overload(f, jit_options=_INNER, strict=False)(visible)
    elif f is kernel.eight_lanes:
        overload(f, strict=False)(
            lambda X, j, w, lo, count: lambda X, j, w, lo, count: _eight_lanes(X, j, w, lo, count)
        )
    elif f is kernel.fetch_row:
        overload(f, strict=False)(lambda X, j: lambda X, j: _fetch_row(X, j))
    else:
        options = _INNER | {"forceinline": not getattr(f, "__noinline__", False)}
        if getattr(f, "__no_refcount__", False):
            options["_nrt"] = False
        overload(f, jit_options=options, strict=False)(lambda *args: loop)


def _register_method(name: str) -> None:
    """Make `value.name(...)` in compiled code call the method `name` of the class of `value`, for named tuples of all
    classes.

    numba's own `overload_method` has one Python signature for all types; here each class has its own. Arguments are
    positional in compiled code.
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
    overload(resolve, jit_options=_INNER, strict=False)(resolve)
