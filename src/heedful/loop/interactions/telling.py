"""What an interaction says of an explanation, a replay or a report: lines, tables and curves, for whatever shows them.

Numbers are texts already; who shows them cuts long tables, and knows colours, widths and fonts.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from heedful.core.formatting import brief, signed

if TYPE_CHECKING:
    from heedful.loop.cluster_robust import Difference
    from heedful.loop.counterfactual import Replayed
    from heedful.loop.explain import Explanation
    from heedful.loop.interactions.card import Card
    from heedful.loop.prediction_report import PredictionReport
    from heedful.loop.report import Report

WEIGHTS = 5
"""Weights of a replayed learner that are told: the greatest."""


class Line(NamedTuple):
    """A paragraph."""

    text: str


class Table(NamedTuple):
    """Rows of texts under headings."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    texts: tuple[int, ...] = (0,)
    """the columns that hold texts; the others hold numbers"""
    trends: tuple[tuple[float | None, ...], ...] = ()
    """how each row went over time, from 0 to 1, None where nothing is known; () where nothing did"""


class Curve(NamedTuple):
    """One line of a chart: (place in the log, value), and the mean of all where it is drawn too."""

    label: str
    points: tuple[tuple[int, float], ...]
    mean: float | None = None


class Chart(NamedTuple):
    """What a report looks like over time."""

    axis: str
    """what the values are"""
    curves: tuple[Curve, ...]
    low: float | None = None
    high: float | None = None
    level: float | None = None
    """a value to compare with; None for none"""
    nothing: str = "nothing was shown so far"
    """why there are no curves, where there are none"""


Part = Line | Table


# ---------------------------------------------------------------------------- sentences


def sentence(text: str) -> Line:
    """A text as a sentence of its own."""
    return Line(f"{text[0].upper()}{text[1:]}.")


def counted(apart: Difference) -> str:
    """A difference with its interval: "+0.100, from +0.050 to +0.150 with 95 % confidence"."""
    return f"{apart.by:+.3f}, from {apart.low:+.3f} to {apart.high:+.3f} with 95 % confidence"


def verdict(apart: Difference, better: str, worse: str) -> str:
    """Whether a difference is above 0, below, or may be chance."""
    return better if apart.low > 0.0 else worse if apart.high < 0.0 else "it may be chance"


# ---------------------------------------------------------------------------- an explanation


def features_table(told: Explanation) -> Table:
    """What each feature counts for the first and the second."""
    rows = [(p.name, brief(p.weight), brief(p.first), brief(p.second), signed(p.counts)) for p in told.features]
    return Table("What put it there", ("feature", "weight", "first", "second", "counts"), tuple(rows))


def lessons_table(told: Explanation, title: str = "What moved it") -> Table:
    """What each piece of feedback moved."""
    rows = [(each.event, each.form, f"{each.seq:,}", signed(each.by)) for each in told.lessons]
    return Table(title, ("feedback", "form", "event", "by"), tuple(rows), (0, 1))


def there(parts: Iterable[Part]) -> list[Part]:
    """Lines, and tables that have rows."""
    return [part for part in parts if isinstance(part, Line) or part.rows]


def explanation(told: Explanation) -> list[Part]:
    """The margin of the first, why, and what it comes from."""
    other = "" if told.second is None else f" before {told.second}"
    head = Line(f"{told.first}{other}, by {signed(told.margin)}")
    return there([head, sentence(told.because), features_table(told), lessons_table(told)])


# ---------------------------------------------------------------------------- a replay


def greatest(fold: Replayed) -> str:
    """The greatest weights that a learner ends with."""
    found = sorted(fold.weights.items(), key=lambda each: (math.isfinite(each[1]), -abs(each[1])))[:WEIGHTS]
    return ", ".join(f"{name} {signed(weight)}" for name, weight in found if weight)


def agreements(folds: Sequence[Replayed], unknown: str) -> list[Part]:
    """The agreement of each learner with what people said; why that is `unknown` where it is."""
    rows = []
    for fold in folds:
        share = "unknown" if fold.agreement is None else f"{fold.agreement:.1%}"
        rows.append((fold.learner, f"{fold.lessons:,}", share, greatest(fold)))
    parts: list[Part] = [replay_table(rows, ("agreement", "greatest weights"))]
    if folds[0].agreement is None:
        return [*parts, Line(f"Agreement is unknown: {unknown}.")]
    told = f"Agreement is over {folds[0].comparisons:,.0f} comparisons; the first learner is the loop's own."
    return [*parts, Line(told)]


def replay_table(rows: Sequence[tuple[str, ...]], columns: tuple[str, str], texts: tuple[int, ...] = (0, 3)) -> Table:
    """Learners with their lessons, and two more columns, the last a text."""
    return Table("The same log, by other learners", ("learner", "lessons", *columns), tuple(rows), texts)


# ---------------------------------------------------------------------------- a report


def arms_table(
    found: Report, card: Card, columns: tuple[str, ...], low: float = 0.0, high: float = 1.0, form: str = ".3f"
) -> Table:
    """Both arms of a report, their means as `form` writes them; trends between `low` and `high`."""
    rows, trends = [], []
    for name, arm, field in zip(card.arms, (found.learned, found.control), ("learned", "control")):
        mean = "" if arm.mean is None else format(arm.mean, form)
        rows.append((name, f"{arm.shown:,}", f"{arm.answered:,}", mean))
        means = [getattr(window, field).mean for window in found.series]
        trends.append(tuple([_share(mean, low, high) for mean in means]))
    return Table(card.score, columns, tuple(rows), trends=tuple(trends))


def _share(mean: float | None, low: float, high: float) -> float | None:
    """Where a mean lies between these."""
    return None if mean is None else (mean - low) / (high - low) if high > low else 0.5


def difference(found: Report, other: str) -> Line:
    """Whether learning helps: learned less the `other` arm."""
    apart = found.difference
    if apart is None:
        return Line(f"Whether learning helps cannot be said: {found.unsaid}.")
    better = verdict(apart, "learning helps", "learning does harm")
    return Line(f"Learned less {other}: {counted(apart)} ({apart.people:,} people): {better}.")


def prediction(found: PredictionReport) -> Line:
    """How well answers were predicted, next to the baseline, and whether that is better."""
    if found.score is None or found.baseline is None:
        return Line(f"How well answers are predicted cannot be said: {found.unsaid}.")
    told = f"Predictions: {found.measure} {found.score:.3f} over {found.answers:,} answers; {found.compared_with}: "
    told += f"{found.baseline:.3f}"
    apart = found.difference
    if apart is None:
        return Line(f"{told}. Which is better cannot be said: {found.unsaid}.")
    better = verdict(apart, *(("worse", "better") if found.lower_is_better else ("better", "worse")))
    return Line(f"{told}; difference {counted(apart)} ({apart.people:,} people): {better}.")


def report(found: Report, card: Card) -> list[Part]:
    """Both arms, whether they differ, and how well answers were predicted."""
    parts: list[Part] = [arms_table(found, card, ("lists", "shown", "answered", "mean")), difference(found, "control")]
    return parts if found.prediction is None else [*parts, prediction(found.prediction)]


def chart(
    found: Report, card: Card, low: float | None = 0.0, high: float | None = 1.05, level: float | None = None
) -> Chart:
    """Both arms over time, and with them the means of all."""
    curves = []
    for name, arm, field in zip(card.arms, (found.learned, found.control), ("learned", "control")):
        points = [(window.seq, getattr(window, field).mean) for window in found.series]
        told = tuple([(seq, mean) for seq, mean in points if mean is not None])
        if told and arm.mean is not None:
            curves.append(Curve(f"{name} ({arm.mean:.3f})", told, arm.mean))
    return Chart(card.score, tuple(curves), low, high, level)
