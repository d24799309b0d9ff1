"""`heedful check`: what every learner promises, tried on one's own."""

from __future__ import annotations

from typing import Annotated

import typer

from heedful.cli.console import console, print_json, reading_input

MARKS = {True: "[green]✓[/]", False: "[red]✗[/]", None: "[yellow]?[/]"}


def check(
    learner: Annotated[str, typer.Argument(help="FILE.py:Class[:A=1,...], module:Class, or the name of a built-in.")],
    json: Annotated[bool, typer.Option("--json", help="Print JSON, and nothing else, on stdout.")] = False,
) -> None:
    """Try on your learner what every learner promises.

    Same seed, same rounds; proposing changes nothing; compiled equals interpreted; and so on. It meets simulated people
    who answer as its interaction has it, `Interaction: NAME.` in the first paragraph of its docstring: where it names
    none, they correct rankings of 8 candidates with 6 features. An interaction of your own brings its people with it.
    Ends with 1 where a promise is broken, and says where it breaks. One cause is one broken promise: what fails because
    of it is marked, and tried again once that is mended.
    """
    from rich.markup import escape
    from rich.table import Table

    with reading_input():
        from heedful.experiments.trials import make_trial

        mine, world = make_trial(learner)
    from heedful.core import conformance

    screen, findings = console(), []
    for found in conformance.check_learner(mine, world):  # each is shown as soon as it is known
        findings.append(found)
        if not json:
            told = found.evidence if found.kept else found.where
            line = Table.grid(padding=(0, 1))
            style = "red" if found.kept is False else "dim"
            line.add_row(MARKS[found.kept], f"{escape(found.promise)}\n[{style}]{escape(told)}[/]")
            screen.print(line)
    broken, open_ = (sum(found.kept is each for found in findings) for each in (False, None))
    if json:
        print_json([found._asdict() for found in findings])
    else:
        left = f", {open_} cannot be told before that is mended" if open_ else ""
        all_told = f"{broken} of {len(findings)} promises broken{left}." if broken else f"All {len(findings)} kept."
        screen.print(f"\n{all_told}")
    if broken:
        raise typer.Exit(1)
