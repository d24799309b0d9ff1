"""The experiment `ordinal`: the rows of a table or SVMlight file, whose grades are predicted from their features."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from heedful.experiments.definitions.base import BadOption, Experiment, Option, PreparedExperiment

if TYPE_CHECKING:
    from heedful.data.ordinal import OrdinalData

CONSTANT = "constant-rank"


class Ordinal(Experiment):
    """The experiment `ordinal`: rows of features, each with a grade, for learners that predict grades."""

    name = "ordinal"
    learners = ("prank", "ordinal-logistic")
    rounds = "one pass over the rows"

    def prepare(
        self,
        file: Annotated[Path, Option("CSV, JSON lines, Parquet or SVMlight; plain or gzip.")],
        target: Annotated[
            str, Option("The column of a table with the grades; in SVMlight they begin the lines.", metavar="COLUMN")
        ] = "",
        order: Annotated[
            str, Option("The grades from lowest to highest, if they are not whole numbers.", metavar="LOW,...,HIGH")
        ] = "",
        scale: Annotated[str, Option("How features are scaled: standard, unit or none.")] = "standard",
        map: Annotated[
            str,
            Option("Add a feature that is always 1, or that and the products of two.", "intercept|polynomial:2"),
        ] = "",
        without: Annotated[list[str], Option("Leave a column out. May be repeated.", metavar="COLUMN")] = [],  # noqa: B006
        missing: Annotated[str, Option("What to do with a missing feature: refuse it, or take the mean.")] = "refuse",
        column: Annotated[
            list[str],
            Option("The column that says which rows do not count: aside; none: all do.", metavar="WHAT=COLUMN"),
        ] = [],  # noqa: B006
        most_grades: Annotated[int, Option("How many different grades there may be.", least=2, most=1000)] = 100,
        *,
        seeds: Sequence[int],
    ) -> PreparedExperiment:
        """The loss of a round is the distance between the predicted and the true grade, in ranks. The rows come in
        random order, once, and again if there are more rounds than rows. A constant predictor, the median of the grades
        so far, is always run too, for comparison.

        The results of PRank and most other learners depend on the scale of the features. "standard" uses the mean and
        the standard deviation of the whole file, so it knows rows that are yet to come; "unit" divides each row by its
        length; "none" takes the rows as they are. Widrow-Hoff and the multiclass perceptron have no threshold of their
        own: for them, --map intercept makes a difference.
        """
        from heedful.data.ordinal import load_ordinal
        from heedful.data.roles import columns_of
        from heedful.experiments.ordinal import SCALES, ordinal_setting, unstable

        if scale not in SCALES:
            raise BadOption(f"scale: expected {', '.join(SCALES)}, got {scale!r}")
        data = load_ordinal(
            file,
            target,
            order=tuple(label.strip() for label in order.split(",")) if order else (),
            most=most_grades,
            without=without,
            missing=_missing(missing),
            columns=columns_of(column),
        )
        setting = ordinal_setting(
            data.X,
            data.ranks,
            len(data.grades),
            scale=scale,
            features=map or "as they are",
            seeds=seeds,
        )
        (T, k), mapped = (data.ranks.size, len(data.grades)), f", {map}" if map else ""
        return PreparedExperiment(
            setting,
            f"{target or 'grade'} of {T:,} rows, {k} ranks, scale {scale}{mapped}",
            {"target": target or "grade", "scale": scale, "map": map or None},
            notes=_notes(file, data, target),
            rules=(CONSTANT,),
            remark=f"Features: {setting.n_features:,}{mapped}; scaled ({scale}): {SCALES[scale]}.",
            warn=lambda learner: unstable(learner, setting),
        )


def _missing(text: str) -> Literal["refuse", "mean"]:
    if text in ("refuse", "mean"):
        return "mean" if text == "mean" else "refuse"
    raise BadOption(f"missing: expected refuse or mean, got {text!r}")


def _notes(file: Path, data: OrdinalData, target: str) -> tuple[str, ...]:
    """Return sentences for the user: the ranks that the grades of `file` became, and columns that were left out or
    filled."""
    from heedful.data.ordinal import MOST_GRADES

    grades, k = data.grades, len(data.grades)
    listed = ", ".join(grades) if k <= 10 else f"{', '.join(grades[:4])}, ..., {grades[-1]}"
    counts = [int((data.ranks == r).sum()) for r in range(1, k + 1)]
    notes = [
        f"{file}: {target or 'grade'}: {listed} are the ranks 1 to {k}; {min(counts):,} to {max(counts):,} rows each"
    ]
    try:
        values = [int(grade) for grade in grades]
    except ValueError:
        values = []
    if values == sorted(values) and values and k < values[-1] - values[0] + 1 <= MOST_GRADES:
        every = f"--order {values[0]},...,{values[-1]}, all of them, would count them"
        notes.append(f"grades that no row has are no ranks: {every}")
    if data.left_out:
        notes.append(f"left out, as they are not numbers: {', '.join(data.left_out)}")
    if data.filled:
        notes.append(f"missing values are the mean of the others: {', '.join(data.filled)}")
    return tuple(notes)
