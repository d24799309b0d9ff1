"""`heedful evaluate`: what a log says about other learners, before anybody is shown what they would show."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from heedful.cli.common import Json, Own, asking, check_learners, kind_of, open_loop
from heedful.cli.console import BadInput, note, reading_input
from heedful.cli.output import check_plot
from heedful.cli.parts import print_result
from heedful.core.validation import ALPHA
from heedful.core.wording import percent

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
    plot: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Draw the values with their intervals (.png, .pdf, .svg).")
    ] = None,
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
    check_plot(plot)
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
    if plot is not None:
        _plot(plot, evaluation, name)


def _of_table(path: Path, learners: Sequence[str], alpha: float, options: dict[str, Any]) -> Evaluation:
    """Evaluate learners and other policies on the table `path`."""
    from heedful.data.known_forms import unpack
    from heedful.data.roles import columns_of
    from heedful.data.table import open_table
    from heedful.io.bandit_log import evaluate_table

    with reading_input(), asking():
        table, targets, columns = unpack(open_table(path)), options.pop("target"), columns_of(options.pop("column"))
        return evaluate_table(table, targets=targets, columns=columns, learners=learners, alpha=alpha, **options)


def _plot(path: Path, evaluation: Evaluation, title: str) -> None:
    """Draw values, and differences to the first learner, with intervals into `path`; a note if there are none."""
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator

    panels = [
        (
            measure,
            [
                (learner.learner, learner.values[j])
                for learner in evaluation.learners
                if learner.values[j].value is not None
            ],
        )
        for j, measure in enumerate(evaluation.measures)
    ]
    panels = [(measure, rows) for measure, rows in panels if rows]
    if not panels:
        note(f"--plot: the log determines none of the values, so there is nothing to draw in {path}")
        return
    heights = [0.9 + 0.32 * len(rows) for _, rows in panels]
    figure = Figure(figsize=(8.4, 0.4 + sum(heights)), dpi=160, layout="constrained")
    grid = figure.subplots(len(panels), 2, squeeze=False, height_ratios=heights)
    for (left, right), (measure, rows) in zip(grid, panels):
        better = "higher" if measure.more_is_better else "lower"
        values = [(name, v.value, v.low, v.high) for name, v in rows]
        apart = [(name, v.difference, v.difference_low, v.difference_high) for name, v in rows]
        for axes, intervals, label in (
            (left, values, f"{measure.name} ({better} is better)"),
            (right, apart, f"difference to {evaluation.learners[0].learner}"),
        ):
            for y, (_, value, low, high) in enumerate(intervals):
                if value is None or low is None or high is None or not math.isfinite(high - low):
                    continue
                axes.plot((low, high), (y, y), color="C0", linewidth=4, alpha=0.4, solid_capstyle="butt")
                axes.plot((value,), (y,), "|", color="C0", markersize=11, markeredgewidth=2.5)
            axes.set_ylim(len(intervals) - 0.5, -0.5)
            axes.set_yticks(
                range(len(intervals)), [name for name, *_ in intervals] if axes is left else [""] * len(intervals)
            )
            axes.set_xlabel(label)
            axes.xaxis.set_major_locator(MaxNLocator(5))
            axes.grid(axis="x", alpha=0.25)
            axes.spines[["top", "right"]].set_visible(False)
        right.axvline(0.0, color="0.4", linestyle="--", linewidth=1.0)
        right.set_visible(any(value.difference is not None for _, value in rows))
    sure = percent(1.0 - evaluation.alpha, 6)
    figure.suptitle(f"{title}: what the log says, with {sure} intervals", fontsize=10)
    figure.savefig(path)
