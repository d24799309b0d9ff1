"""What the page says and draws of how well learners predict the answers in a log, besides the numbers themselves."""

from __future__ import annotations

from collections.abc import Sequence

from heedful.loop.interactions.telling import value_texts
from heedful.results.evaluation import Evaluation, LearnerEvaluation, Measure, PositionBias, Value
from heedful.server.pages.charts import Axis


def verdict(found: Evaluation, each: LearnerEvaluation) -> tuple[str, str]:
    """Return (kind of verdict: "good", "bad" or "open"; a sentence) on whether the learner of `each` is better than the
    first of the evaluation `found`.

    It goes by the first decisive measure by which the log determines the difference between the two; if that one cannot
    tell, what others say is added."""
    own = found.learners[0].learner
    told = [
        (measure, value)
        for measure, value in zip(found.measures, each.values)
        if measure.decisive and value.difference is not None
    ]
    if not told:
        return "open", f"The log cannot tell whether {each.learner} is better than {own}: what follows says why."
    measure, value = told[0]
    apart = value_texts(value, measure.is_share)[2]
    if value.verdict == "cannot be told":
        so_far = f"the difference in {measure.name} is {apart}"
        other = [f" By {m.name} it is {v.verdict}." for m, v in told[1:] if v.verdict != value.verdict]
        return "open", f"It cannot be told yet whether {each.learner} is better than {own}: {so_far}.{''.join(other)}"
    kind = "good" if value.verdict == "better" else "bad"
    return kind, f"{each.learner} is {value.verdict} than {own}: the difference in {measure.name} is {apart}."


def axes(measure: Measure, values: Sequence[Value]) -> tuple[Axis, Axis]:
    """Return the scales on which the `values` by a measure are drawn, and their differences from the first."""
    apart = [(value.difference_low, value.difference_high) for value in values]
    return Axis.around([(value.low, value.high) for value in values], measure.low, measure.high), Axis.around(
        [*apart, (0.0, 0.0)]
    )


def bias_axis(found: Sequence[PositionBias]) -> Axis:
    """Return the scale on which the ratios of neighbouring positions are drawn, around 1, no position bias."""
    return Axis.around([*[(each.low, each.high) for each in found], (1.0, 1.0)])
