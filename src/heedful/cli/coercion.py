"""Conversion of the values given on a command line to str, list[str] and int, without importing pydantic.

Recent versions of typer build a pydantic adapter for every parameter of a command, also for those that are not given.
Importing pydantic for this takes 0.1 s of processor time, a quarter of a short command.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

from typer.core import TyperCommand

T = TypeVar("T")


class PlainCoercion:
    """A replacement for typer's pydantic adapter of a parameter; typer calls `coerce` to convert the parameter's value.

    It converts a missing value, a str, a list of str and a whole number within its limits. For everything else, and for
    every error, typer's own adapter is built and used.
    """

    def coerce(self, value: Any, param: Any, ctx: Any) -> Any:
        """Return `value`, as given on the command line, as the type that the typer parameter `param` declares.

        `value` is None if the parameter was not given; then the result is None, or () for a parameter that takes
        several values. `ctx` is click's context of the command. Raise typer's BadParameter if the value is not of the
        declared type.
        """
        several, declared = param.multiple or param.nargs == -1, param.type_descriptor
        if value is None:
            return () if several else None
        if several and declared.annotation == list[str] and not isinstance(value, str):
            return [str(item) for item in value]
        if not several and isinstance(value, str):
            if declared.annotation is str and declared.parameter_info.parser is None:
                return value
            if declared.annotation is int and value.isascii() and value.isdigit():
                least, most = declared.parameter_info.min, declared.parameter_info.max
                if (least is None or int(value) >= least) and (most is None or int(value) <= most):
                    return int(value)
        param._runtime_param = None  # typer builds its own, and keeps it
        return param.get_runtime_param().coerce(value, param=param, ctx=ctx)


def with_plain_coercion(params: Sequence[T]) -> list[T]:
    """Return the parameters `params` of a command as a list, each set to convert its value by a `PlainCoercion`, in
    place.

    This keeps typer from importing pydantic for it. A parameter that already has an adapter keeps it. Versions of typer
    without pydantic adapters ignore the setting.
    """
    for param in params:
        if getattr(param, "_runtime_param", None) is None:
            param._runtime_param = PlainCoercion()  # type: ignore[attr-defined]
    return list(params)


class PlainCommand(TyperCommand):
    """A typer command whose parameters, --help included, are converted without pydantic where possible
    (`PlainCoercion`)."""

    def get_params(self, ctx: Any) -> list[Any]:
        return with_plain_coercion(super().get_params(ctx))
