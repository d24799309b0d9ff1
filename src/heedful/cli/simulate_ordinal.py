"""`heedful simulate ordinal`: learners that predict grades, on a table or an SVMlight file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from heedful.cli.console import note, reading_input
from heedful.cli.simulate_common import (
    FirstSeed,
    Float32,
    Interpreted,
    Jobs,
    Json,
    Learners,
    Seeds,
    SimulateRequest,
    check_request,
    run_and_tell,
)

if TYPE_CHECKING:
    from heedful.data.graded import Graded

CONSTANT = "constant-rank"


def ordinal(
    file: Annotated[Path, typer.Argument(help="CSV, JSON lines, Parquet or SVMlight; plain or gzip.")],
    target: Annotated[
        str, typer.Option(metavar="COLUMN", help="Where a table has the grades; in SVMlight they begin the lines.")
    ] = "",
    order: Annotated[
        str, typer.Option(metavar="LOW,...,HIGH", help="The grades in their order, where they are no whole numbers.")
    ] = "",
    learner: Learners = ["prank", "averaged-prank"],  # noqa: B006
    rounds: Annotated[
        int | None, typer.Option(min=1, show_default="one pass over the rows", help="How many rounds each run has.")
    ] = None,
    seeds: Seeds = 1,
    first_seed: FirstSeed = 0,
    scale: Annotated[str, typer.Option(help="How features are scaled: standard, unit or none.")] = "standard",
    map_: Annotated[
        str,
        typer.Option(
            "--map",
            metavar="intercept|polynomial:2",
            help="Add a feature that is always 1, or that and the products of two.",
        ),
    ] = "",
    without: Annotated[list[str], typer.Option(metavar="COLUMN", help="Leave a column out. May be repeated.")] = [],  # noqa: B006
    missing: Annotated[str, typer.Option(help="A feature that is missing: refuse it, or take the mean.")] = "refuse",
    most_grades: Annotated[int, typer.Option(min=2, max=1000, help="How many different grades there may be.")] = 100,
    jobs: Jobs = None,
    float32: Float32 = False,
    interpreted: Interpreted = False,
    plot: Annotated[Path | None, typer.Option(help="Draw average rank loss against rounds into this file.")] = None,
    out: Annotated[Path | None, typer.Option(help="Write the rank loss of every round: .csv or .npz.")] = None,
    json: Json = False,
) -> None:
    """Predict the grade of one row after the other; after each prediction the true grade is told.

    The loss of a round is the number of ranks between the two. The rows come in random order, once, and again where
    there are more rounds than rows. A constant predictor, the median of the grades so far, is always run beside.

    PRank and its like depend on the scale of the features. "standard" takes the mean and the deviation of the whole
    file, so it looks ahead; "unit" divides each row by its length; "none" takes the rows as they are. Widrow-Hoff and
    the multiclass perceptron have no threshold of their own: for them, --map intercept makes a difference.
    """
    beside = () if CONSTANT in learner else (CONSTANT,)
    conditions = {"target": target or "grade", "scale": scale, "map": map_ or None}
    request = SimulateRequest(learner, conditions, rounds, jobs, interpreted, plot, out, json, beside)
    with reading_input():
        check_request(request)
        from heedful.data.graded import load_graded
        from heedful.experiments.ordinal import SCALES, ordinal_setting, unstable

        listed = tuple(label.strip() for label in order.split(",")) if order else ()
        if scale not in SCALES:
            raise ValueError(f"--scale: expected {', '.join(SCALES)}, got {scale!r}")
        if missing not in ("refuse", "mean"):
            raise ValueError(f"--missing: expected refuse or mean, got {missing!r}")
        data = load_graded(
            file,
            target,
            order=listed,
            most=most_grades,
            without=without,
            missing="mean" if missing == "mean" else "refuse",
        )
        _tell(file, data, target)
        setting = ordinal_setting(
            data.X,
            data.ranks,
            len(data.grades),
            scale=scale,
            features=map_ or "as they are",
            seeds=range(first_seed, first_seed + seeds),
            dtype="float32" if float32 else "float64",
        )
        for spec in learner:
            if why := unstable(setting.learner(spec), setting):
                note(f"{spec}: {why}")
    remark = f"Features: {setting.n_features:,}{f', {map_}' if map_ else ''}; scaled ({scale}): {SCALES[scale]}."
    T, k = data.ranks.size, len(data.grades)
    title = f"{target or 'grade'} of {T:,} rows, {k} ranks, scale {scale}{f', {map_}' if map_ else ''}"
    run_and_tell(request._replace(remark=remark), setting, title)


def _tell(file: Path, data: Graded, target: str) -> None:
    """Notes on what became of the columns and of the grades."""
    from heedful.data.graded import MOST_GRADES

    grades, k = data.grades, len(data.grades)
    listed = ", ".join(grades) if k <= 10 else f"{', '.join(grades[:4])}, ..., {grades[-1]}"
    counts = [int((data.ranks == r).sum()) for r in range(1, k + 1)]
    note(f"{file}: {target or 'grade'}: {listed} are the ranks 1 to {k}; {min(counts):,} to {max(counts):,} rows each")
    try:
        values = [int(grade) for grade in grades]
    except ValueError:
        values = []
    if values == sorted(values) and values and k < values[-1] - values[0] + 1 <= MOST_GRADES:
        note(
            f"grades that no row has are no ranks: --order {values[0]},...,{values[-1]}, all of them, would count them"
        )
    if data.left_out:
        note(f"left out, as they are not numbers: {', '.join(data.left_out)}")
    if data.filled:
        note(f"missing values are the mean of the others: {', '.join(data.filled)}")
