"""`heedful evaluate`: what a log says about other learners, before anybody is shown what they would show."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from heedful.cli.common import Json, Own, asking, open_loop
from heedful.cli.console import BadInput, print_json, reading_input
from heedful.cli.parts import print_parts

if TYPE_CHECKING:
    from heedful.loop.evaluate import Evaluation
    from heedful.loop.interactions.telling import Part

TABLES = (".csv", ".json", ".jsonl", ".parquet", ".gz")


def evaluate(
    name: Annotated[
        str,
        typer.Argument(metavar="NAME|TABLE", help="A loop, or a table of single items: CSV, JSON lines or Parquet."),
    ],
    learner: Annotated[
        list[str] | None,
        typer.Option(
            "--learner",
            "-l",
            metavar="NAME[:A=1,...][@VERSION[..]]",
            help="May be repeated; `heedful learners` lists them. With @VERSION it learns up to that event alone, "
            "with @VERSION.. or @2026-01-31T12:00:00Z.. only from there on.",
        ),
    ] = None,
    target: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMN", help="Of a table: the probability of each action in another way to choose."),
    ] = None,
    always: Annotated[
        list[str] | None, typer.Option(metavar="ACTION", help="Of a table: what if this action were always shown?")
    ] = None,
    alpha: Annotated[
        float, typer.Option(min=1e-6, max=0.5, help="The probability with which an interval may miss.")
    ] = 0.05,
    own: Own = None,
    json: Json = False,
) -> None:
    """Say whether other learners would have been better, by the log, and how sure that is; nothing is changed.

    Each learner reads the log from its beginning and predicts every answer before it learns from it. The measure
    depends on what the loop learns from; it is explained below the table. The loop's own learner comes first. If the
    log cannot tell, the output says why, and what would change that.

    A TABLE has one impression a row (one item shown once), with the columns action (the item), probability (with which
    it was shown), reward, and perhaps person; all other columns are the context. Without options the output says what
    showing always the same action would have earned, for each action.

    Exit codes: 0 evaluated; 1 the loop cannot be read; 2 bad input, such as a learner that does not fit the loop.
    """
    for spec in learner or ():
        if (learner or []).count(spec) > 1:
            raise BadInput(f"--learner: expected each once, got {spec} {(learner or []).count(spec)} times")
    if Path(name).is_file():
        told = _of_table(Path(name), learner or (), target or (), always or (), alpha, json)
    elif Path(name).suffix in TABLES:
        raise BadInput(f"{name}: there is no such file")
    elif target or always:
        raise BadInput(f"{'--target' if target else '--always'}: expected a table, got the loop {name}")
    else:
        told = _of_loop(name, own, learner or (), alpha, json)
    print_parts(told)


def _of_loop(name: str, own: Own, learners: Sequence[str], alpha: float, json: bool) -> list[Part]:
    """Evaluate `learners` on the log of the loop `name`; return lines and tables to print, or print JSON and return [].

    `own` names the loop's learner again if it is one of the user's own; an interval misses with probability `alpha`.
    """
    with open_loop(name, own) as loop:
        with asking():
            found = loop.evaluate(*learners, alpha=alpha)
        return _printed(found) if json else loop.projection.interaction.tell_evaluation(found)


def _of_table(
    path: Path, learners: Sequence[str], targets: Sequence[str], always: Sequence[str], alpha: float, json: bool
) -> list[Part]:
    """Evaluate learners and other policies on the table `path`; return lines and tables to print, or print JSON, return
    [].

    The other arguments are those of `evaluate_table`.
    """
    from heedful.data.table import read_table
    from heedful.io.bandit_log import evaluate_table
    from heedful.loop.interactions import telling

    with reading_input(), asking():
        found = evaluate_table(read_table(path), learners=learners, targets=targets, always=always, alpha=alpha)
    return _printed(found) if json else telling.evaluation(found)


def _printed(found: Evaluation) -> list[Part]:
    """Print the evaluation `found` as JSON, and return [], as nothing is left to print."""
    from heedful.loop.records import plain

    print_json(plain(found))
    return []
