"""Add options to a command that are declared elsewhere: by an experiment or by an interaction (kind of feedback)."""

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
    """Return the function parameter `name` that typer turns into an option --NAME of the type `of`.

    `metavar` stands for the value in the help, `least` and `most` limit it, `show_default` is the default in words. A
    flag has also --no-NAME if it is `negatable`.
    """
    names = [f"--{name.replace('_', '-')}"] if of is bool and not negatable else []
    shown = True if show_default is None else show_default
    told = typer.Option(*names, help=help, metavar=metavar, min=least, max=most, show_default=shown)
    return Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[of, told])


def add_parameters(
    run: Callable[..., None], more: Sequence[Parameter], *, before: str, names: Mapping[str, object]
) -> None:
    """Give the function `run`, which takes any keywords, the parameters `more`, in place of its **keywords.

    They are inserted `before` the parameter of that name. `names` are the local names that its annotations use.
    """
    own = inspect.signature(run, eval_str=True, locals=names).parameters.values()
    known = [each for each in own if each.kind is not Parameter.VAR_KEYWORD]
    at = next(i for i, each in enumerate(known) if each.name == before)
    parameters = [each.replace(kind=Parameter.KEYWORD_ONLY) for each in (*known[:at], *more, *known[at:])]
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {each.name: each.annotation for each in parameters}
