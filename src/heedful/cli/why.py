"""`heedful why`: say why an item of a decision had its score."""

from __future__ import annotations

from typing import Annotated

import typer

from heedful.cli.common import DecisionId, Json, Name, Own, open_loop
from heedful.cli.parts import print_result


def why(
    name: Name,
    decision: DecisionId,
    item: Annotated[
        str | None,
        typer.Argument(metavar="ITEM", help="Any candidate of the decision, by its name; by default the first shown."),
    ] = None,
    top: Annotated[
        int, typer.Option("--top", metavar="N", help="How many pieces of feedback are listed.", show_default=True)
    ] = 10,
    budget: Annotated[
        float,
        typer.Option(
            "--budget", metavar="N", help="How much leaving feedback out may cost, in updates of a perceptron."
        ),
    ] = 100_000.0,
    own_learners: Own = None,
    json: Json = False,
) -> None:
    """To see what a piece of feedback did, the model is computed again without it, one piece after the other, if that
    costs no more than --budget. The cost is counted from the log and the learner, so the answer does not depend on the
    machine. Otherwise the answer is how much the score moved when the feedback was learned. The output says which
    method was used.

    Exit codes: 0 explained; 1 the loop cannot be read; 2 bad input, such as an item that was not a candidate.
    """
    with open_loop(name, own_learners, read_only=True) as loop:
        from heedful.loop.interactions import telling
        from heedful.studies.things import as_seen

        reasons = loop.why(decision, item, top, budget=budget)
        print_result(reasons, json, telling.why(as_seen(loop, reasons)), "which count less: --json has all")
