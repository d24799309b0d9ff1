"""`heedful check`: test a learner of your own for the properties that every learner must have."""

from __future__ import annotations

from typing import Annotated

import typer

from heedful.cli.common import Json
from heedful.cli.console import console, print_json, reading_input, show_check

MARKS = {True: "[green]✓[/]", False: "[red]✗[/]", None: "[yellow]?[/]"}


def check(
    learner: Annotated[str, typer.Argument(help="FILE.py:Class[:A=1,...], module:Class, or the name of a built-in.")],
    json: Json = False,
) -> None:
    """The same seed gives the same rounds; proposing changes nothing; compiled code does what interpreted code does;
    and so on. The learner runs with simulated people, who give the kind of feedback that the first paragraph of its
    docstring names (`Interaction: NAME.`). If it names none, they correct rankings of 8 candidates with 6 features. A
    learner with an interaction of its own is tried with that interaction's people.

    Each property is printed as it is checked, with where it fails. If one fails because of another, it is marked with a
    question mark: correct the other one first, then check again. So is one of which nothing can be told, as there was
    nothing to compare.

    Exit codes: 0 all properties hold; 1 some fail; 2 bad input.
    """
    with reading_input():
        from heedful.experiments.trials import make_trial

        trial, world = make_trial(learner)
    from heedful.core import conformance

    findings = []
    for finding in conformance.check_learner(trial, world):  # each is shown as soon as it is known
        findings.append(finding)
        if not json:
            detail = finding.evidence if finding.kept else finding.where
            show_check(MARKS[finding.kept], finding.promise, detail, "red" if finding.kept is False else "dim")
    broken, open_ = (sum(finding.kept is state for finding in findings) for state in (False, None))
    if json:
        print_json(findings)
    else:
        left = f", {open_} cannot be told{' before that is mended' if broken else ''}" if open_ else ""
        kept_count = f"{len(findings) - open_} of {len(findings)} kept" if open_ else f"All {len(findings)} kept"
        all_told = f"{broken} of {len(findings)} promises broken{left}." if broken else f"{kept_count}{left}."
        console().print(f"\n{all_told}")
    if broken:
        raise typer.Exit(1)
