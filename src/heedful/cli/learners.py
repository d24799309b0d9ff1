"""`heedful learners`: list the learners, and explain what one of them is and which parameters it takes."""

from __future__ import annotations

import inspect
import typing
from typing import Annotated, Any

import typer

from heedful.cli.common import Json
from heedful.cli.console import console, new_table, print_json, reading_input

_FROM_DATA = {
    "n_features": "how many features the data have",
    "space": "what is shown: a ranking, or one item",
    "n_ranks": "how many grades there are, 1 the lowest",
    "bound": "from the data: the largest |phi_i| of any ranking or item (S)",
    "radius": "100, as in the experiments of [J15] 6.4.1",
}


def learners(
    name: Annotated[
        str | None, typer.Argument(help="The learner: one of the package, FILE.py:Class or module:Class.")
    ] = None,
    json: Json = False,
) -> None:
    """Parameters follow the name: `second-order:gamma=0.1,epsilon=1`. A parameter that has no default and is not given
    comes from the data where it can: `bound` (exponentiated) is the largest entry of phi, `radius` (convex) is 100.
    Here phi are the features of what can be shown.
    """
    if name is None:
        return _list(json)
    return _explain(name, json)


def _list(json: bool) -> None:
    from rich.markup import escape

    from heedful.learners.registry import find_learners, summarise

    classes = find_learners()
    if json:
        return print_json([_summary(name, cls) for name, cls in classes.items()])
    table = new_table("Learners", ("name", "where it is from", "interaction"))
    for name, cls in classes.items():
        summary = summarise(cls)
        table.add_row(f"[bold]{name}[/]\n[dim]{cls.__name__}[/]", escape(summary.source), summary.interaction)
    screen = console()
    screen.print(table)
    screen.print("[J15] is Shivaswamy & Joachims, Coactive Learning, JAIR 2015;", markup=False)
    screen.print("[P01] is Crammer & Singer, Pranking with Ranking, NIPS 2001;", markup=False)
    screen.print("[A18] is Dadkhahi & Negahban, Alternating Linear Bandits, 2018.", markup=False)
    from heedful.loop.interactions.registry import interactions

    inputs = ", ".join(f"{kind.name} ones {kind.words.takes}" for kind in interactions().values())
    screen.print(f"Learners take what their interaction says: {inputs}.")
    return screen.print("`heedful learners NAME` explains one. Your own: FILE.py:Class or module:Class.")


def _summary(name: str, cls: type) -> dict[str, Any]:
    from heedful.learners.registry import class_name, summarise

    summary = summarise(cls)
    return {
        "name": name,
        "class": class_name(cls),
        "title": summary.title,
        "paper": summary.source,
        "interaction": summary.interaction,
    }


def _explain(name: str, json: bool) -> None:
    from rich.markup import escape

    from heedful.learners.registry import class_name, learner_class

    with reading_input():
        cls: Any = learner_class(name)
    parameters = [
        {"name": field, "type": getattr(kind, "__name__", str(kind))}
        | ({"default": cls._field_defaults[field]} if field in cls._field_defaults else {})
        for field, kind in typing.get_type_hints(cls).items()
    ]
    for parameter in parameters:
        if "default" not in parameter:
            parameter |= {"default": None, "given_by": _FROM_DATA.get(parameter["name"], "you: it has no default")}
    docstring, example = inspect.getdoc(cls) or "", _example(name, cls, parameters)
    if json:
        plain = [p | {"default": repr(p["default"])} if isinstance(p["default"], tuple) else p for p in parameters]
        details = {"docstring": docstring, "parameters": plain, "example": example}
        return print_json(_summary(name, cls) | details)
    screen = console()
    place = class_name(cls)
    screen.print(f"[bold]{escape(name)}[/]{f' [dim]{escape(place)}[/]' if place != name else ''}\n")
    screen.print(escape(_reflow(docstring)), width=min(screen.width, 100))
    table = new_table("", ("parameter", "type", "default"))
    for parameter in parameters:
        default = f"({parameter['given_by']})" if "given_by" in parameter else str(parameter["default"])
        table.add_row(parameter["name"], parameter["type"], escape(default))
    screen.print(table)
    return screen.print(f"Example: {escape(example)}", soft_wrap=True)


def _reflow(text: str) -> str:
    """Return `text` with each paragraph as one line, except paragraphs with indented lines, which stay as they are."""
    paragraphs = text.split("\n\n")
    return "\n\n".join(p if "\n " in p else " ".join(p.split()) for p in paragraphs)


def _example(name: str, cls: type, parameters: list[dict[str, Any]]) -> str:
    from heedful.loop.interactions.registry import interaction_class

    chosen = [p for p in parameters if p["name"] not in _FROM_DATA and isinstance(p["default"], int | float | str)]
    settings = [f"{p['name']}={p['default']}" for p in chosen]
    spec = name if ":" in name and "=" in name else f"{name}:{','.join(settings)}" if settings else name
    command = interaction_class(cls).words.command
    return f"{command} --learner {spec}"
