"""A report in words and pictures: a verdict, a table, pictures and notes, as data without HTML or terminal codes.

A page and a command render the same `Findings`. They consist of two comparisons: lists by the model with lists of the
control (`compare_arms`), and predictions with a baseline (`prediction_section`). The control is the caller's own order,
shown for a share of requests. The file is long because both comparisons, of lists and of predictions, share
their words and pictures."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, NamedTuple

from heedful.core.times import utc
from heedful.core.wording import count as count
from heedful.loop.interactions.words import MUTE
from heedful.loop.signals import duration
from heedful.results.report import ARM_COLUMNS
from heedful.results.sentences import (
    CLICK_THROUGH,
    _measure,
    interval,
    number,
    prediction_sentences,
    sentence,
    shares_sentence,
)
from heedful.results.table import Table

if TYPE_CHECKING:
    from heedful.loop.interactions.words import Words
    from heedful.loop.settings import Settings
    from heedful.results.report import Arm, Difference, PredictionReport, Report

POINTS = 20
"""The most points of a line over time."""
EACH = 8
"""The fewest answered lists behind each point of a line over time; with fewer, one sees only noise."""


MISTAKES = "Look at the lessons below: some may be mistakes. Each can be undone."


class Verdict(NamedTuple):
    """The answer of a report to the question whether learning helps."""

    kind: str
    """the answer: "good" (learning helps), "bad" (it does harm) or "open" (it cannot be told)"""
    short: str
    """the answer in one sentence"""
    more: tuple[str, ...]
    """the sentences that give the numbers, or say what is missing"""


class Stroke(NamedTuple):
    """One line of a picture; a `reference` is a line with which the others are compared."""

    label: str
    """the name of the line, for the legend"""
    values: tuple[float | None, ...]
    """the values at the points of the picture (`Picture.x`), in order; None where there is none"""
    reference: bool = False


class Picture(NamedTuple):
    """A picture of lines over time, as data."""

    x: tuple[int, ...]
    """the position of each point of the lines: how many lists or answers there were up to then"""
    label: str
    """what `x` counts, as the label of the axis"""
    axis: str | tuple[float, float]
    """the scale of the values: "place" (1 / a position in a list), "error", "log" (positive values, logarithmic), or
    (lowest, highest)"""
    lines: tuple[Stroke, ...]
    """the lines, each with a value or None for each point of `x`"""
    text: str
    """a description in words, for people who do not see the picture"""
    caption: str
    """the sentence below the picture"""


class Section(NamedTuple):
    """One part of the findings, under a heading of its own."""

    title: str
    """the heading, or the sentence with the main result"""
    sentences: tuple[str, ...]
    """the sentences below it"""
    picture: Picture | None = None
    """a picture of values over time; None for none"""


class Findings(NamedTuple):
    """Everything that a page or a command says about a report of a loop."""

    verdict: Verdict
    """the answer to the question whether learning helps"""
    table: Table | None = None
    """the table that compares learned lists with control lists, with their mean scores over time; None for none"""
    picture: Picture | None = None
    """the mean score of these lists over time; None with too few points"""
    excluded: str = ""
    """a sentence on which lists are in no row of `table`; "" if every list is in one"""
    sections: tuple[Section, ...] = ()
    """further parts, such as how well answers were predicted"""
    notes: tuple[str, ...] = ()
    """sentences on how it was measured"""


# ---------------------------------------------------------------------------- words


def basis(comparisons: int, people: int, noun: str) -> str:
    """Return in words how many comparisons, which `noun` names, of how many people a measure rests on, the beginning of
    a sentence."""
    alike = ", each of whom counts alike, as does a decision for nobody in particular" if people > 1 else ""
    return f"It rests on {count(comparisons, noun)} from {count(people, 'person', 'people')}{alike}"


def lists_sentence(report: Report, noun: str = "list") -> str:
    """Return a sentence on the lists that `report` is about: how many, whether all or only the newest, since when."""
    since = "" if report.since is None else f", since {utc(report.since)}"
    return f"Looked at: {'all' if report.whole else 'the newest'} {count(report.decisions, noun)}{since}."


def click_section(report: Report, words: Words) -> tuple[Section, ...]:
    """Return a section on the share of either kind of list in which something was clicked; () if nothing was."""
    found = report.click_through
    if found is None:
        return ()
    told = [f"{shares_sentence(CLICK_THROUGH, found, *words.arms)}."]
    if found.difference is None:
        told.append(sentence(f"how much they differ cannot be said: {found.unsaid}"))
    if report.none_after is None:
        told.append(f"Every {words.shown} counts, with an answer or without, so clicks of one kind must not be lost.")
    return (Section("How many got a click?", tuple(told)),)


def clusters(apart: Difference | None, answers: str = "Answers", noun: str = "list") -> tuple[str, ...]:
    """Return the sentence that explains that the interval in `apart` counts people as independent, not lists; () if
    there is no interval.

    `answers` is the plural noun of the feedback, with a capital letter; `noun` is what the loop calls a list."""
    if apart is None:
        return ()
    people = f"{apart.people:,} here, where a {noun} shown to nobody in particular counts as one"
    return (f"{answers} of one person resemble each other, so the interval counts people: {people}.",)


def excluded_sentence(report: Report, words: Words) -> str:
    """Return a sentence on the lists and answers that the table of learned and control lists leaves out; "" if there
    are none.

    Left out are lists that another system made, lists made ahead and never shown, lists that are neither the model's
    order nor the control's, and answers that were undone."""
    apart = [(report.imported, words.imported), (report.waiting, "made ahead and never shown")]
    of_neither = report.decisions - report.learned.shown - report.control.shown - report.imported - report.waiting
    apart.append(
        (of_neither, "of neither kind: empty, of nothing on offer, drawn at random or drafted in an experiment")
    )
    told = [f"{count(n, words.shown)} {what}" for n, what in apart if n]
    told += [f"{count(report.feedback.undone, 'answer')} taken back"] if report.feedback.undone else []
    return f"Not counted here: {'; '.join(told)}." if told else ""


# ---------------------------------------------------------------------------- two kinds of lists


def compare_arms(
    report: Report, words: Words, settings: Settings, span: tuple[float, float], notes: Sequence[str] = ()
) -> Findings:
    """Return the comparison in `report` of learned lists with control lists (in the caller's order), in words and
    pictures.

    - `span`: the (least, greatest) score of a list
    - `notes`: sentences on how this is measured"""
    axis = words.axis or span
    low, high = (0.0, 1.0) if isinstance(axis, str) else axis
    arms = {f"{name[:1].upper()}{name[1:]}": arm for name, arm in zip(words.arms, (report.learned, report.control))}
    trends = [
        tuple([None if mean is None else (mean - low) / (high - low) for mean in means])
        for means in zip(*[(window.learned.mean, window.control.mean) for window in report.series])
    ]
    table = Table.named(words.score, f"{words.shown}s", ARM_COLUMNS, arms)._replace(trends=tuple(trends))
    return Findings(
        compare(report, words, settings),
        table if any(arm.shown for arm in arms.values()) else None,
        arms_picture(report, words, axis),
        excluded_sentence(report, words),
        click_section(report, words),
        notes=(
            lists_sentence(report, words.shown),
            *notes,
            *silence_sentence(report, words.shown),
            *clusters(report.difference, noun=words.shown),
        ),
    )


def silence_sentence(report: Report, noun: str) -> tuple[str, ...]:
    """Return a sentence on when silence counts as an answer, if it does; `noun` is what the loop calls a list."""
    if report.none_after is None:
        return ()
    after = duration(report.none_after)
    return (f"A {noun} without an answer counts as answered with none after {after}; younger ones do not count yet.",)


def compare(report: Report, words: Words, settings: Settings) -> Verdict:
    """Return the verdict of `report`: whether learned lists are better than control lists (in the caller's order).

    If it cannot be told, the verdict says why and what to do."""
    apart = report.difference
    if apart is None:
        why = sentence(report.unsaid)
        if words.incomparable:
            return Verdict("open", "That cannot be told here.", (why,))
        if report.unsaid == MUTE:
            more = "Clicks, picks, ratings and choices do say that: with some of those it could be told."
            return Verdict("open", "That cannot be told here.", (why, more))
        if report.sample_ratio is not None and report.sample_ratio.differs:
            return Verdict(
                "open", f"No verdict: one kind of {words.shown} is answered less often than the other.", (why,)
            )
        if settings.control == 0.0:
            more = "The share of the control is set when a loop is made: with --control 0.05 it is one"
            return Verdict("open", "That cannot be known here.", (why, f"{more} {words.shown} in 20."))
        more = f"One {words.shown} in {1 / settings.control:.0f} belongs to the control; answers to those are needed."
        return Verdict("open", "Too early to say.", (why, more))
    means = zip(words.arms, (report.learned.mean, report.control.mean))
    compared = f"{words.measure}: {', '.join([f'{name} {number(mean)}' for name, mean in means])}."
    between = interval(apart)
    if apart.low > 0.0:
        return Verdict("good", "Yes: what was learned does better than the control.", (compared, between))
    if apart.high < 0.0:
        return Verdict("bad", "No: what was learned does worse than the control.", (compared, between, MISTAKES))
    more = "More answers make the interval narrower."
    answered = report.learned.answered + report.control.answered
    shown = report.learned.shown + report.control.shown
    if report.none_after is None and answered < shown:
        more = f"It allows for lost answers, as {answered:,} of {shown:,} {words.shown}s have one. {more}"
    return Verdict("open", "No difference can be shown yet.", (compared, between, more))


def arms_picture(report: Report, words: Words, axis: str | tuple[float, float]) -> Picture | None:
    """Return a picture of the mean score over time, of learned lists and of control lists (in the caller's order).

    `axis` is the scale of the scores: its name or (lowest, highest). Return None if it would have fewer than two
    points."""
    learned = mean_points([window.learned for window in report.series])
    control = mean_points([window.control for window in report.series])
    ends = [mean for mean in learned if mean is not None]
    if len(ends) < 2:
        return None
    x = tuple(accumulate(window.learned.shown + window.control.shown for window in report.series))
    lines = [Stroke(words.arms[0], learned)]
    if sum(mean is not None for mean in control) > 1:
        lines.append(Stroke(words.arms[1], control, True))
    elif report.control.answered >= EACH:  # too few for a line over time
        lines.append(Stroke(f"{words.arms[1]}, on average", (report.control.mean,) * len(x), True))
    other = f" {sentence(f'{words.arms[1]}: {number(report.control.mean)} on average')}" if len(lines) > 1 else ""
    return Picture(
        x,
        f"{words.shown}s shown",
        axis,
        tuple(lines),
        f"{words.measure} over {count(x[-1], words.shown)}: {words.arms[0]} from {number(ends[0])} to "
        f"{number(ends[-1])}.{other}",
        f"{words.measure} over time. Higher is better.",
    )


def mean_points(arms: Sequence[Arm]) -> tuple[float | None, ...]:
    """Return the points of a line in a picture: the mean score of some lists in each window of time, None for a window
    without a point.

    `arms` has the counts and the mean score of these lists in each window: of the learned lists, or of those of the
    control (in the caller's order). A point needs at least `EACH` answered lists. Windows with fewer are joined with
    the next ones, and the point stands at the last of them."""
    found: list[float | None] = [None] * len(arms)
    step, began, part = -(-len(arms) // POINTS), 0, list[tuple[int, float]]()
    for i, arm in enumerate(arms):
        part += [(arm.answered, arm.mean)] if arm.mean is not None else []
        answered = sum(n for n, _ in part)
        if i - began + 1 >= step and answered >= EACH:
            found[i] = round(sum(n * mean for n, mean in part) / answered, 4)
            began, part = i + 1, []
    return tuple(found)


# ---------------------------------------------------------------------------- predictions and a baseline


def prediction_section(found: PredictionReport, more: Sequence[str] = ()) -> Section:
    """Return a section on how well answers were predicted, compared with a baseline."""
    return Section("How well does it predict?", (*prediction_sentences(found), *more), prediction_picture(found))


def prediction_picture(found: PredictionReport) -> Picture | None:
    """Return a picture of the scores in `found` over time, those of predictions and those of a baseline.

    Return None if there are fewer than two points."""
    parts = merge_windows(
        [(each.answers, each.score, each.baseline) for each in found.series if each.score is not None]
    )
    if len(parts) < 2:
        return None
    _, ours, reference = zip(*parts)
    x, measure, name = tuple(accumulate(n for n, _, _ in parts)), _measure(found), found.compared_with
    return Picture(
        x,
        "answers given",
        "error" if found.lower_is_better else (min(0.0, *ours, *reference), max(1.0, *ours, *reference)),
        (
            Stroke("predictions", tuple(round(each, 4) for each in ours)),
            Stroke(name, tuple(round(each, 4) for each in reference), True),
        ),
        f"{measure} over {count(x[-1], 'answer')}: predictions from {number(ours[0])} to {number(ours[-1])}; {name} "
        f"from {number(reference[0])} to {number(reference[-1])}.",
        f"{measure} over time. {'Lower' if found.lower_is_better else 'Higher'} is better.",
    )


def merge_windows(series: Sequence[tuple[int, float, float]]) -> list[tuple[int, float, float]]:
    """Join neighbouring windows of time in `series` until at most `POINTS` are left; return the joined ones.

    A window is (count, mean, another mean); joined means are weighted by the counts."""
    step, found = -(-len(series) // POINTS) or 1, list[tuple[int, float, float]]()
    for start in range(0, len(series), step):
        part = series[start : start + step]
        n = sum(each[0] for each in part)
        ours, other = (sum(each[0] * each[i] for each in part) / n for i in (1, 2))
        found.append((n, ours, other))
    return found
