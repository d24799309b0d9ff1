"""Commands whose options are not all known where they are written: those that experiments and interactions declare."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from inspect import Parameter
from typing import Annotated

import typer


def option(
    name: str,
    of: object,
    default: object,
    help: str,  # as typer calls it
    *,
    metavar: str | None = None,
    least: float | None = None,
    most: float | None = None,
    show_default: str | None = None,
    negatable: bool = False,
) -> Parameter:
    """The parameter of an option --name. `show_default` stands for the default in words; a flag that is `negatable`
    has --no-name, too."""
    names = [f"--{name.replace('_', '-')}"] if of is bool and not negatable else []
    shown = True if show_default is None else show_default
    told = typer.Option(*names, help=help, metavar=metavar, min=least, max=most, show_default=shown)
    return Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[of, told])


def add_parameters(
    run: Callable[..., None], more: Sequence[Parameter], *, before: str, names: Mapping[str, object]
) -> None:
    """Give a function that takes any keywords these parameters, `before` the one of that name. `names` are those that
    its annotations use and its module has not."""
    own = inspect.signature(run, eval_str=True, locals=names).parameters.values()
    known = [each for each in own if each.kind is not Parameter.VAR_KEYWORD]
    at = next(i for i, each in enumerate(known) if each.name == before)
    parameters = [each.replace(kind=Parameter.KEYWORD_ONLY) for each in (*known[:at], *more, *known[at:])]
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {each.name: each.annotation for each in parameters}
