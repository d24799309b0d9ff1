"""What a loop of grades says of an explanation, a replay and a report."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from heedful.core.formatting import brief, short, signed
from heedful.loop.interactions.coactive.texts import scored
from heedful.loop.interactions.findings import (
    MISTAKES,
    Errors,
    Findings,
    Verdict,
    clusters,
    compare_errors,
    count,
    errors_of,
    errors_picture,
    examined,
    excluded,
)
from heedful.loop.interactions.findings import sentence as as_sentence
from heedful.loop.interactions.telling import Chart, Curve, Line, Part, Table, counted, greatest, replay_table, verdict

if TYPE_CHECKING:
    from heedful.loop.counterfactual import Replayed
    from heedful.loop.explain import Explanation
    from heedful.loop.prediction_report import PredictionReport
    from heedful.loop.report import Report

LEARNED, MEDIAN = "what was learned", "always the median so far"


def explanation(told: Explanation) -> list[Part]:
    """A grade: the score, between which thresholds it lies, and what it is made of."""
    parts = scored(told, _grade(told), "that", "moved it")
    rows = [(part.name, brief(part.weight), brief(part.first), signed(part.counts)) for part in told.features]
    features = Table("What put it there", ("feature", "weight", "value", "counts"), tuple(rows))
    return [features if isinstance(part, Table) and part.columns[0] == "feature" else part for part in parts]


def _grade(told: Explanation) -> str:
    predicted = told.prediction or {}
    grade, between = predicted.get("grade"), predicted.get("between")
    if between is None:
        return f"{told.first}: grade {grade}; {told.because}"
    low, high = between
    ends = [f"from {short(low)} on" if low is not None else "", f"below {short(high)}" if high is not None else ""]
    where = " and ".join(end for end in ends if end)
    return f"{told.first}: grade {grade}, as its score is {signed(told.margin)}: {where} it is that"


def replays(folds: Sequence[Replayed]) -> list[Part]:
    """How far what each learner predicted lay from the grades."""
    rows = []
    for fold in folds:
        loss = "unknown" if fold.error is None else f"{fold.error:.3f}"
        rows.append((fold.learner, f"{fold.lessons:,}", loss, greatest(fold)))
    told = "Mean error is that of |predicted - given|, each before it was learned from, over"
    return [
        replay_table(rows, ("mean error", "greatest weights")),
        Line(f"{told} {folds[0].predicted:,} grades; the first learner is the loop's own."),
    ]


def report(found: PredictionReport) -> list[Part]:
    """How far predictions lay from the grades, against the median so far."""
    most = max([1e-9, *(value for each in found.series for value in (each.score or 0.0, each.baseline))])
    rows, trends = [], []
    for name, value, exact, parts in (
        (LEARNED, found.score, found.details["exact"], [each.score or 0.0 for each in found.series]),
        (MEDIAN, found.baseline, None, [each.baseline for each in found.series]),
    ):
        cells = "" if value is None else f"{value:.3f}", "" if exact is None else f"{exact:.0%}"
        rows.append((name, f"{found.answers:,}", *cells))
        trends.append(tuple([each / most for each in parts]))
    title = "how far predictions lay from the grades given (0: right)"
    columns = ("predicted by", "grades", "mean error", "exactly right")
    table = Table(title, columns, tuple(rows), trends=tuple(trends))
    apart = found.difference
    if apart is None:
        return [table, Line(f"Whether learning helps cannot be said: {found.unsaid}.")]
    better = verdict(apart, "learning does harm", "learning helps")  # below 0 is better
    return [table, Line(f"Learned less median: {counted(apart)} ({apart.people:,} people): {better}.")]


def chart(found: PredictionReport) -> Chart:
    """How far predictions lay from the grades, over time."""
    curves = []
    for field, name in (("score", LEARNED), ("baseline", MEDIAN)):
        points = tuple([(each.seq, getattr(each, field)) for each in found.series])
        if points:
            curves.append(Curve(f"{name} ({getattr(found, field):.3f})", points))
    return Chart("mean |predicted - given|", tuple(curves), low=0.0, nothing="nothing was graded so far")


def findings(report: Report, found: PredictionReport) -> Findings:
    """How far predictions lay from the grades, against the median so far."""
    errors = errors_of(found, "grade")
    return Findings(
        _verdict(found, errors),
        picture=None if errors is None else errors_picture(errors),
        excluded=excluded(
            report, "noted without a prediction, or imported: grades of those teach, and are not compared"
        ),
        notes=(
            examined(report),
            "Each grade is compared with what was predicted when its list was shown, before it was known. People who "
            "see a prediction may be drawn towards it: grades given on the page may be nearer than others.",
            "The median grade so far is the median of all grades that came before; at first the middle of the scale.",
            *clusters(found.difference, "Grades"),
        ),
    )


def _verdict(found: PredictionReport, errors: Errors | None) -> Verdict:
    """Whether it predicts better than who says the same of everything, as far as that can be said."""
    if errors is None:
        return Verdict("open", "Too early to say.", (as_sentence(found.unsaid), "It takes grades given on the page."))
    compared, between = compare_errors(errors)
    right = f"Exactly right: {found.details['exact']:.0%} of {count(found.answers, 'grade')}.".replace("%", " %")
    apart = found.difference
    if apart is None:
        return Verdict("open", "Too early to say.", (compared, right, between))
    told = (compared, between, right)
    if apart.high < 0.0:
        return Verdict("good", "Yes: it predicts better than always the median grade.", told)
    if apart.low > 0.0:
        return Verdict("bad", "No: always predicting the median grade would be nearer.", (*told, MISTAKES))
    more = "More grades make the interval narrower."
    return Verdict("open", "No difference can be shown yet.", (*told, more))
