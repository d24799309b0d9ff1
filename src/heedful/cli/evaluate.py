"""`heedful evaluate`: what a log says about learners, before anybody is shown anything else."""

from __future__ import annotations

from typing import Annotated

import typer

from heedful.cli.common import Json, Name, Own, asking, open_loop
from heedful.cli.console import BadInput, print_json
from heedful.cli.parts import print_parts


def evaluate(
    name: Name,
    learner: Annotated[
        list[str] | None,
        typer.Option(
            "--learner",
            "-l",
            metavar="NAME[:A=1,...][@VERSION]",
            help="May be repeated; `heedful learners` lists them. With @VERSION it learns up to that event alone.",
        ),
    ] = None,
    alpha: Annotated[
        float, typer.Option(min=1e-6, max=0.5, help="The probability with which an interval may miss.")
    ] = 0.05,
    own: Own = None,
    json: Json = False,
) -> None:
    """Say whether other learners would have been better, by the log, and how sure that is; nothing is changed.

    Each learner predicts every answer before it learns from it; what is compared depends on what the loop learns from,
    and is told below the table. The loop's own learner comes first. Where the log cannot tell, it says why, and what
    would make it tell.

    Exit codes: 0 evaluated; 1 the loop cannot be read; 2 bad input, such as a learner that does not fit the loop.
    """
    for spec in learner or ():
        if (learner or []).count(spec) > 1:
            raise BadInput(f"--learner: expected each once, got {spec} {(learner or []).count(spec)} times")
    with open_loop(name, own) as loop:
        with asking():
            found = loop.evaluate(*(learner or ()), alpha=alpha)
        if json:
            from heedful.loop.records import plain

            print_json(plain(found))
        else:
            print_parts(loop.projection.interaction.tell_evaluation(found))
