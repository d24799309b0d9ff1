"""What a page tells of a report: a verdict, a table, pictures and notes. Data alone, nothing of HTML.

Two comparisons make up all of it: lists of two kinds (`compare_arms`), and the errors of two predictors
(`compare_errors`).
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import accumulate
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from heedful.loop.cluster_robust import Difference
    from heedful.loop.interactions.card import Card
    from heedful.loop.prediction_report import PredictionReport
    from heedful.loop.report import Arm, Report

POINTS = 20
"""Of a line over time, at most."""
EACH = 8
"""Answered lists behind each point of a line over time, at least: of fewer, chance is all that one sees."""
BY_THE_PAGE = "put in order by the page itself after a lesson, or imported"
"""What lists are that somebody else made."""
MISTAKES = "Look at the lessons below: some may be mistakes. Each can be undone."


class Verdict(NamedTuple):
    """Whether learning helps."""

    kind: str
    """good, bad or open"""
    short: str
    more: tuple[str, ...]


class Row(NamedTuple):
    """One kind of list in the table."""

    name: str
    shown: int
    answered: int
    mean: str
    """how good they were, on average"""


class Stroke(NamedTuple):
    """One line of a picture; a `reference` is what the others are compared with."""

    label: str
    values: tuple[float | None, ...]
    reference: bool = False


class Picture(NamedTuple):
    """Lines over time."""

    x: tuple[int, ...]
    label: str
    """what x counts"""
    axis: str | tuple[float, float]
    """what the values are: "place" (1 / a place in a list), "error", "log" (above 0), or their range"""
    lines: tuple[Stroke, ...]
    text: str
    """what it shows, for people who do not see it"""
    caption: str


class Section(NamedTuple):
    """Something else that was measured."""

    title: str
    sentences: tuple[str, ...]
    picture: Picture | None = None


class Findings(NamedTuple):
    """What a page tells of a report."""

    verdict: Verdict
    rows: tuple[Row, ...] = ()
    picture: Picture | None = None
    excluded: str = ""
    """which lists are in no row, in a sentence; "" where all are"""
    sections: tuple[Section, ...] = ()
    notes: tuple[str, ...] = ()
    """how it was measured"""


# ---------------------------------------------------------------------------- words


def count(n: int, one: str, many: str | None = None) -> str:
    """So many of something."""
    return f"{n:,} {one if n == 1 else many or f'{one}s'}"


def number(value: float | None, places: int = 2) -> str:
    """A number with so many places; – for none."""
    return "–" if value is None else f"{value:.{places}f}".replace("-", "−")


def sentence(text: str) -> str:
    """A text as a sentence of its own."""
    return f"{text[:1].upper()}{text[1:]}."


def interval(apart: Difference, hint: str = "") -> str:
    """A difference with its confidence interval, in a sentence."""
    by, low, high = (f"{each:+.2f}".replace("-", "−") for each in (apart.by, apart.low, apart.high))
    return f"Difference: {by}{hint} (95 % confidence interval: {low} to {high})."


def examined(report: Report) -> str:
    """A sentence on what a report looked at: how many lists, all or only the newest, and since when."""
    since = ""
    if report.since is not None:
        since = f", since {datetime.fromtimestamp(report.since // 1_000_000, UTC):%Y-%m-%d %H:%M:%S UTC}"
    return f"Looked at: {'all' if report.whole else 'the newest'} {count(report.decisions, 'list')}{since}."


def clusters(apart: Difference | None, answers: str = "Answers") -> tuple[str, ...]:
    """What the interval counts."""
    if apart is None:
        return ()
    people = f"{apart.people:,} here, where a list shown to nobody in particular counts as one"
    return (f"{answers} of one person resemble each other, so the interval counts people: {people}.",)


def excluded(report: Report, imported: str = BY_THE_PAGE) -> str:
    """What is in neither kind of list, in a sentence; "" where nothing is. `imported` says what lists are that somebody
    else made."""
    apart = [(report.imported, imported), (report.waiting, "made ahead and never shown")]
    told = [f"{count(n, 'list')} {what}" for n, what in apart if n]
    told += [f"{count(report.feedback.undone, 'answer')} taken back"] if report.feedback.undone else []
    return f"Not counted here: {'; '.join(told)}." if told else ""


# ---------------------------------------------------------------------------- two kinds of lists


def compare_arms(
    report: Report,
    card: Card,
    control: float,
    axis: str | tuple[float, float],
    notes: Sequence[str] = (),
    imported: str = BY_THE_PAGE,
) -> Findings:
    """Lists made from what was learned against those of the control, of which there is one in 1 / `control`; `imported`
    says what lists are that somebody else made."""
    rows = [
        Row(f"{name[:1].upper()}{name[1:]}", arm.shown, arm.answered, number(arm.mean))
        for name, arm in zip(card.arms, (report.learned, report.control))
    ]
    return Findings(
        compare(report, card, control),
        tuple(rows) if any(row.shown for row in rows) else (),
        arms_picture(report, card, axis),
        excluded(report, imported),
        notes=(examined(report), *notes, *clusters(report.difference)),
    )


def compare(report: Report, card: Card, control: float) -> Verdict:
    """Whether learned lists are better, as far as that can be said; and where it cannot, what to do."""
    apart = report.difference
    if apart is None:
        why = sentence(report.unsaid)
        if not card.compares_arms:
            return Verdict("open", "That cannot be told here.", (why,))
        if control == 0.0:
            more = "The share of the control is set when a loop is made: with --control 0.05 it is one list in 20."
            return Verdict("open", "That cannot be known here.", (why, more))
        more = f"One list in {1 / control:.0f} belongs to the control; answers to those are needed."
        return Verdict("open", "Too early to say.", (why, more))
    means = zip(card.arms, (report.learned.mean, report.control.mean))
    compared = f"{card.measure}: {', '.join([f'{name} {number(mean)}' for name, mean in means])}."
    between = interval(apart)
    if apart.low > 0.0:
        return Verdict("good", "Yes: what was learned does better than the control.", (compared, between))
    if apart.high < 0.0:
        return Verdict("bad", "No: what was learned does worse than the control.", (compared, between, MISTAKES))
    more = "More answers make the interval narrower."
    return Verdict("open", "No difference can be shown yet.", (compared, between, more))


def arms_picture(report: Report, card: Card, axis: str | tuple[float, float]) -> Picture | None:
    """Both kinds over time; None where two points of it cannot be drawn."""
    learned = mean_points([window.learned for window in report.series])
    control = mean_points([window.control for window in report.series])
    ends = [mean for mean in learned if mean is not None]
    if len(ends) < 2:
        return None
    x = tuple(accumulate(window.learned.shown + window.control.shown for window in report.series))
    lines = [Stroke(card.arms[0], learned)]
    if sum(mean is not None for mean in control) > 1:
        lines.append(Stroke(card.arms[1], control, True))
    elif report.control.answered >= EACH:  # too few for a line over time
        lines.append(Stroke(f"{card.arms[1]}, on average", (report.control.mean,) * len(x), True))
    other = f" {sentence(f'{card.arms[1]}: {number(report.control.mean)} on average')}" if len(lines) > 1 else ""
    return Picture(
        x,
        "lists shown",
        axis,
        tuple(lines),
        f"{card.measure} over {count(x[-1], 'list')}: {card.arms[0]} from {number(ends[0])} to "
        f"{number(ends[-1])}.{other}",
        f"{card.measure} over time. Higher is better.",
    )


def mean_points(arms: Sequence[Arm]) -> tuple[float | None, ...]:
    """The means of one arm over time, window by window: several together, at the last of them, so that no point rests
    on a handful of lists."""
    found: list[float | None] = [None] * len(arms)
    step, began, part = -(-len(arms) // POINTS), 0, list[tuple[int, float]]()
    for i, arm in enumerate(arms):
        part += [(arm.answered, arm.mean)] if arm.mean is not None else []
        answered = sum(n for n, _ in part)
        if i - began + 1 >= step and answered >= EACH:
            found[i] = round(sum(n * mean for n, mean in part) / answered, 4)
            began, part = i + 1, []
    return tuple(found)


# ---------------------------------------------------------------------------- two predictors


class Errors(NamedTuple):
    """How far off predictions lay, against a reference that always predicts the same."""

    answer: str
    """the noun of what was predicted: "grade\""""
    error: float
    reference: float
    name: str
    """what the reference predicts: "the median grade so far\""""
    difference: Difference | None
    unsaid: str
    """why there is no difference, in words"""
    series: tuple[tuple[int, float, float], ...]
    """over time: how many answers, the mean error, that of the reference"""


def errors_of(found: PredictionReport, answer: str, name: str = "") -> Errors | None:
    """Of predictions of such an answer, where there are any; `name` is the baseline's, where a page calls it
    otherwise."""
    if found.score is None or found.baseline is None:
        return None
    series = tuple([(each.answers, each.score, each.baseline) for each in found.series if each.score is not None])
    name = name or found.compared_with
    return Errors(answer, found.score, found.baseline, name, found.difference, found.unsaid, series)


def compare_errors(found: Errors) -> tuple[str, ...]:
    """Both errors, and whether they differ, in sentences."""
    compared = (
        f"Mean error of the predictions, |predicted − given|: {number(found.error)}; of always predicting "
        f"{found.name}: {number(found.reference)}."
    )
    apart = found.difference
    return compared, sentence(found.unsaid) if apart is None else interval(apart, ", below 0 is better")


def errors_picture(found: Errors) -> Picture | None:
    """Both errors over time; None where two points of it cannot be drawn."""
    parts = merge_windows(found.series)
    if len(parts) < 2:
        return None
    _, error, reference = zip(*parts)
    x = tuple(accumulate(n for n, _, _ in parts))
    return Picture(
        x,
        f"{found.answer}s given",
        "error",
        (
            Stroke("predictions", tuple(round(each, 4) for each in error)),
            Stroke(f"always {found.name}", tuple(round(each, 4) for each in reference), True),
        ),
        f"Over {count(x[-1], found.answer)} the mean error went from {number(error[0])} to {number(error[-1])}; of "
        f"always predicting {found.name} from {number(reference[0])} to {number(reference[-1])}.",
        "Mean error of the predictions over time. Lower is better.",
    )


def merge_windows(series: Sequence[tuple[int, float, float]]) -> list[tuple[int, float, float]]:
    """Neighbouring (how many, mean, another mean) as one, so that no more than `POINTS` are left."""
    step, found = -(-len(series) // POINTS) or 1, list[tuple[int, float, float]]()
    for start in range(0, len(series), step):
        part = series[start : start + step]
        n = sum(each[0] for each in part)
        ours, other = (sum(each[0] * each[i] for each in part) / n for i in (1, 2))
        found.append((n, ours, other))
    return found
