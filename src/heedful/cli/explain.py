"""`heedful explain` and `heedful replay`: looking back over a log."""

from __future__ import annotations

from typing import Annotated

import typer

from heedful.cli.common import Json, Name, Own, asking, open_loop
from heedful.cli.console import BadInput, print_json
from heedful.cli.parts import print_parts


def explain(
    name: Name,
    decision: Annotated[str, typer.Argument(metavar="DECISION", help="The id that `heedful decide` gave.")],
    own: Own = None,
    json: Json = False,
) -> None:
    """Say why the first stood first: what put it there, and which feedback moved it.

    Exit codes: 0 explained; 1 the loop cannot be read; 2 bad input, such as a decision that is not in the log.
    """
    with open_loop(name, own) as loop, asking():
        told = loop.explain(decision)
        if json:
            from heedful.loop.records import plain

            print_json(plain(told))
        else:
            print_parts(loop.projection.interaction.tell_explanation(told), beyond="which count less: --json has all")


def replay(
    name: Name,
    learner: Annotated[
        list[str] | None,
        typer.Option(
            "--learner", "-l", metavar="NAME[:A=1,...]", help="May be repeated; `heedful learners` lists them."
        ),
    ] = None,
    own: Own = None,
    json: Json = False,
) -> None:
    """Say what other learners would have made of the same log; nothing is changed.

    Each learner is compared with what people answered, before it learns from that: how, depends on what the loop learns
    from, and is told below the table. The loop's own learner comes first.

    Exit codes: 0 replayed; 1 the loop cannot be read; 2 bad input, such as a learner that does not fit the loop.
    """
    for spec in learner or ():
        if (learner or []).count(spec) > 1:
            raise BadInput(f"--learner: expected each once, got {spec} {(learner or []).count(spec)} times")
    with open_loop(name, own) as loop:
        with asking():
            mine = loop.manifest.learner
            folds = [loop.replay(spec) for spec in [mine, *(spec for spec in learner or () if spec != mine)]]
        if json:
            from heedful.loop.records import plain

            print_json([plain(fold) for fold in folds])
        else:
            print_parts(loop.projection.interaction.tell_replays(folds))
