"""Read what most options are given, texts and whole numbers, without importing pydantic.

Recent versions of typer build a pydantic adapter for every parameter of a command, also for those that are not given;
importing pydantic for it takes .1 s of CPU, a quarter of a short command.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

from typer.core import TyperCommand

T = TypeVar("T")


class PlainCoercion:
    """The coercion of a parameter that returns missing values, texts and whole numbers in range itself, and hands all
    else, with the errors that come of it, to the one that typer builds."""

    def coerce(self, value: Any, param: Any, ctx: Any) -> Any:
        """Return the `value` that was given for `param`, of the type that it declares; raise typer's BadParameter if it
        is not of that type."""
        several, declared = param.multiple or param.nargs == -1, param.type_descriptor
        if value is None:
            return () if several else None
        if several and declared.annotation == list[str] and not isinstance(value, str):
            return [str(each) for each in value]
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
    """Return the parameters of a command, which have a PlainCoercion now unless they have a coercion already. Versions
    of typer that build no adapters ignore it."""
    for param in params:
        if getattr(param, "_runtime_param", None) is None:
            param._runtime_param = PlainCoercion()  # type: ignore[attr-defined]
    return list(params)


class PlainCommand(TyperCommand):
    """A command whose parameters, `--help` included, have a PlainCoercion."""

    def get_params(self, ctx: Any) -> list[Any]:
        return with_plain_coercion(super().get_params(ctx))
