"""Convert the texts and whole numbers of a command line without importing pydantic.

Recent versions of typer build a pydantic adapter for every parameter of a command, also for those that are not given.
Importing pydantic for it takes 0.1 s of processor time, a quarter of a short command.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

from typer.core import TyperCommand

T = TypeVar("T")


class PlainCoercion:
    """Converts the value of a parameter itself if it is missing, a text, or a whole number in range.

    Everything else, and every error, is left to the coercion that typer builds.
    """

    def coerce(self, value: Any, param: Any, ctx: Any) -> Any:
        """Return the `value` given for the parameter `param` as the type that it declares; `ctx` is click's context.

        Raise typer's BadParameter if the value is not of that type.
        """
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
    """Give the parameters of a command a PlainCoercion, unless they have a coercion already, and return them.

    Versions of typer that build no adapters ignore it.
    """
    for param in params:
        if getattr(param, "_runtime_param", None) is None:
            param._runtime_param = PlainCoercion()  # type: ignore[attr-defined]
    return list(params)


class PlainCommand(TyperCommand):
    """A command whose parameters, --help included, are converted by `PlainCoercion`."""

    def get_params(self, ctx: Any) -> list[Any]:
        return with_plain_coercion(super().get_params(ctx))
