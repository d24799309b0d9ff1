"""`heedful evaluate`: what a log says about other learners, before anybody is shown what they would show."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from heedful.cli.common import Json, Own, asking, check_learners, kind_of, open_loop
from heedful.cli.console import BadInput, reading_input
from heedful.cli.parts import print_result
from heedful.core.validation import ALPHA

if TYPE_CHECKING:
    from heedful.results.evaluation import Evaluation

TABLES = (".csv", ".json", ".jsonl", ".dsjson", ".parquet", ".gz")


def evaluate(
    name: Annotated[
        str,
        typer.Argument(metavar="NAME|TABLE", help="The loop, or a table of single items: CSV, JSON lines or Parquet."),
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
        typer.Option(
            metavar="COLUMN", help="With a TABLE: the column with the probability of each action under another policy."
        ),
    ] = None,
    always: Annotated[
        list[str] | None,
        typer.Option(metavar="ACTION", help="With a TABLE: the value if this action were always shown."),
    ] = None,
    column: Annotated[
        list[str] | None,
        typer.Option(
            metavar="WHAT=COLUMN",
            help="With a TABLE: action, probability, reward or person.",
            show_default="by their names",
        ),
    ] = None,
    least_probability: Annotated[
        float | None,
        typer.Option(
            metavar="P", help="With a TABLE: the least probability with which any action is ever shown, if it is known."
        ),
    ] = None,
    least_reward: Annotated[
        float | None, typer.Option(metavar="R", help="With a TABLE: how low a reward may ever be.")
    ] = None,
    most_reward: Annotated[
        float | None, typer.Option(metavar="R", help="With a TABLE: how high a reward may ever be.")
    ] = None,
    alpha: Annotated[
        float, typer.Option(min=ALPHA[0], max=ALPHA[1], help="The probability with which an interval may miss.")
    ] = 0.05,
    own_learners: Own = None,
    json: Json = False,
) -> None:
    """Each learner reads the log from its beginning and predicts every answer before it learns from it. The measure
    depends on what the loop learns from; it is explained below the table. The loop's own learner comes first. If the
    log cannot tell, the output says why, and what would change that.

    A TABLE has one impression a row (one item shown once), with the columns action (the item), probability (with which
    it was shown), reward, and perhaps person, or others that --column names; all other columns are the context. A log
    of Vowpal Wabbit or Personalizer (dsjson) is one, too. Without options the output says what
    showing always the same action would have earned, for each action. Where rewards are not 0 or 1, an interval has the
    ends that --least-reward and --most-reward determine.

    Exit codes: 0 evaluated; 1 the loop cannot be evaluated; 2 bad input, such as a learner that does not fit the loop.
    """
    from heedful.loop.interactions import telling

    check_learners(learner or ())
    of_table = {
        "target": target or (), "always": always or (), "column": column or (),
        "least_probability": least_probability, "least_reward": least_reward, "most_reward": most_reward,
    }  # fmt: skip
    named = [f"--{field.replace('_', '-')}" for field, value in of_table.items() if value not in ((), None)]
    if kind_of(name) == "file":
        evaluation = _of_table(Path(name), learner or (), alpha, of_table)
    elif Path(name).suffix in TABLES:
        raise BadInput(f"{name}: there is no such file")
    elif named:
        raise BadInput(f"{named[0]}: expected a table, got the loop {name}")
    else:
        with open_loop(name, own_learners, read_only=True) as loop:
            evaluation = loop.evaluate(*learner or (), alpha=alpha)
    print_result(evaluation, json, telling.evaluation(evaluation))


def _of_table(path: Path, learners: Sequence[str], alpha: float, options: dict[str, Any]) -> Evaluation:
    """Evaluate learners and other policies on the table `path`."""
    from heedful.data.known_forms import unpack
    from heedful.data.roles import columns_of
    from heedful.data.table import open_table
    from heedful.io.bandit_log import evaluate_table

    with reading_input(), asking():
        table, targets, columns = unpack(open_table(path)), options.pop("target"), columns_of(options.pop("column"))
        return evaluate_table(table, targets=targets, columns=columns, learners=learners, alpha=alpha, **options)
