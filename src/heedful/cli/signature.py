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
) -> Parameter:
    """Return a parameter of a function from which typer makes a command-line option.

    - `name`: the name of the parameter; the option is --NAME, with - for _
    - `of`: the type of its value; `default`: its default
    - `help`: the text in the help; `metavar`: what stands for the value there; `show_default`: the default in words
    - `least`, `most`: the limits of a number
    """
    names = [f"--{name.replace('_', '-')}"] if of is bool else []  # without --no-NAME
    shown = True if show_default is None else show_default
    declaration = typer.Option(*names, help=help, metavar=metavar, min=least, max=most, show_default=shown)
    return Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[of, declaration])


def add_parameters(
    run: Callable[..., None], more: Sequence[Parameter], *, before: str, names: Mapping[str, object]
) -> None:
    """Change the signature of `run`, in place: its **keywords become the parameters `more`, which typer then reads.

    - `before`: the name of the parameter of `run` before which they are inserted
    - `names`: the local names that the annotations of `run` use, with their values
    """
    declared = inspect.signature(run, eval_str=True, locals=names).parameters.values()
    named = [parameter for parameter in declared if parameter.kind is not Parameter.VAR_KEYWORD]
    index = next(i for i, parameter in enumerate(named) if parameter.name == before)
    parameters = [
        parameter.replace(kind=Parameter.KEYWORD_ONLY) for parameter in (*named[:index], *more, *named[index:])
    ]
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
