"""`heedful health`: whether feedback is sound, and whether the model still predicts it."""

from __future__ import annotations

from typing import Annotated

import typer

from heedful.cli.common import Json, Name, Own, open_loop
from heedful.cli.parts import print_result
from heedful.core.validation import ALPHA


def health(
    name: Name,
    alpha: Annotated[
        float,
        typer.Option(
            min=ALPHA[0], max=ALPHA[1], help="The probability with which sound feedback may ever raise an alarm."
        ),
    ] = 0.05,
    own_learners: Own = None,
    json: Json = False,
) -> None:
    """The output shows over time how much feedback is missing, late, empty or contradictory, the error of predictions,
    and what corrections gain. It shows for all feedback together how predictions came out, and which people count the
    most.

    An alarm says what was compared and how strong the evidence is. You may look at it as often as you like: the
    probability that sound feedback ever raises an alarm is --alpha at most. The whole log is read again; nothing is
    changed.

    Exit codes: 0 no alarm; 1 an alarm, or the loop cannot be read; 2 bad input.
    """
    with open_loop(name, own_learners, read_only=True) as loop:
        from heedful.loop.interactions import telling

        report = loop.health(alpha)
        print_result(report, json, telling.health(report))
    if report.alarms:
        raise typer.Exit(1)
