"""What the page says and draws of how well learners predict the answers in a log, besides the numbers themselves."""

from __future__ import annotations

from collections.abc import Sequence

from heedful.loop.interactions.telling import value_texts
from heedful.results.evaluation import WEIGHT_COLUMNS as WEIGHT_COLUMNS
from heedful.results.evaluation import Evaluation, LearnerEvaluation, Measure, PositionBias, Value
from heedful.server.pages.charts import Axis


def verdict(evaluation: Evaluation, candidate: LearnerEvaluation) -> tuple[str, str]:
    """Return (kind of verdict: "good", "bad" or "open"; a sentence) on whether `candidate` is better than the first
    learner of `evaluation`.

    It goes by the first decisive measure by which the log determines the difference between the two; if that one cannot
    tell, what others say is added."""
    serving = evaluation.learners[0].learner
    differences = [
        (measure, value)
        for measure, value in zip(evaluation.measures, candidate.values)
        if measure.decisive and value.difference is not None
    ]
    if not differences:
        return (
            "open",
            f"The log cannot tell whether {candidate.learner} is better than {serving}: what follows says why.",
        )
    measure, value = differences[0]
    apart = value_texts(value, measure.is_share)[2]
    if value.verdict == "cannot be told":
        so_far = f"the difference in {measure.name} is {apart}"
        other = [f" By {m.name} it is {v.verdict}." for m, v in differences[1:] if v.verdict != value.verdict]
        return (
            "open",
            f"It cannot be told yet whether {candidate.learner} is better than {serving}: {so_far}.{''.join(other)}",
        )
    kind = "good" if value.verdict == "better" else "bad"
    return kind, f"{candidate.learner} is {value.verdict} than {serving}: the difference in {measure.name} is {apart}."


def axes(measure: Measure, values: Sequence[Value]) -> tuple[Axis, Axis]:
    """Return the scales on which the `values` by a measure are drawn, and their differences from the first."""
    apart = [(value.difference_low, value.difference_high) for value in values]
    return Axis.around([(value.low, value.high) for value in values], measure.low, measure.high), Axis.around(
        [*apart, (0.0, 0.0)]
    )


def bias_axis(biases: Sequence[PositionBias]) -> Axis:
    """Return the scale on which the ratios of neighbouring positions are drawn, around 1, no position bias."""
    return Axis.around([*[(bias.low, bias.high) for bias in biases], (1.0, 1.0)])
