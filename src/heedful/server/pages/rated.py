"""Does learning help, in a loop of ratings? The ratings of what it chose beside those of what chance chose, and how far
off what it expected lay; in words and as pictures."""

from __future__ import annotations

from itertools import accumulate
from typing import Any, NamedTuple

from heedful.loop.interactions.rating.prediction_report import Foretelling
from heedful.loop.report import Report
from heedful.server.pages.charts import (
    DASHES,
    EACH,
    Lists,
    Picture,
    Verdict,
    chart_json,
    describe_excluded,
    format_signed,
    mean_points,
    merge_windows,
    stroke,
)
from heedful.server.pages.formatting import count, moment

LEARNED, APART = "chosen by what it learned", "left to chance"
"""What the two kinds of lists are called."""

IMPORTED = "noted as shown by somebody else, or imported"
"""What lists are that somebody else made."""


class Foretold(NamedTuple):
    """How far off what was expected lay."""

    told: tuple[str, ...]
    picture: Picture | None


def of(report: Report, found: Foretelling, low: float, high: float, control: float) -> dict[str, Any]:
    """What the page tells of ratings from `low` to `high`; one list in 1 / `control` is left to chance."""
    arms = [("Chosen by what it learned", report.learned), ("Left to chance", report.control)]
    lists = [Lists(name, arm.shown, arm.answered, _mean(arm.mean)) for name, arm in arms]
    return {
        "verdict": verdict(report, found, low, high, control),
        "arms": lists if any(arm.shown for _, arm in arms) else [],
        "heights": "Mean rating",
        "besides": describe_excluded(report, IMPORTED),
        "picture": picture(report, low, high),
        "foretold": foretold(found) if found.ratings else None,
        "measured": measured(report),
    }


def verdict(report: Report, found: Foretelling, low: float, high: float, control: float) -> Verdict:
    """Whether what it chooses is rated higher than what chance chooses, as far as that can be said."""
    scale = f"{low:g} to {high:g}".replace("-", "−")
    all_told = ""
    if found.mean is not None:
        by = count(found.ratings, "rating")
        all_told = f"What was shown is rated {_mean(found.mean)} on average, of {scale}, by {by}."
    apart, learned, left = report.difference, report.learned, report.control
    if apart is None:
        why = tuple(text for text in (all_told, f"{report.unsaid[:1].upper()}{report.unsaid[1:]}.") if text)
        if control == 0.0:
            more = "That share is set when a loop is made: with --control 0.05 one list in 20 is left to chance."
            return Verdict("open", "That cannot be known here.", (*why, more))
        more = f"One list in {1 / control:.0f} is left to chance; ratings of those are what it takes."
        return Verdict("open", "Too early to say.", (*why, more))
    compared = (
        f"On a scale from {scale}: {_mean(learned.mean)} on average where lists were {LEARNED}, "
        f"{_mean(left.mean)} where they were {APART}."
    )
    between = (
        f"The difference is {format_signed(apart.by)}; with 95 % certainty it lies between "
        f"{format_signed(apart.low)} and {format_signed(apart.high)}."
    )
    if apart.low > 0.0:
        return Verdict("good", "Yes: what it chooses is rated higher.", (compared, between))
    if apart.high < 0.0:
        more = "Look at the lessons below: some may be mistakes. Each can be undone."
        return Verdict("bad", "No: what it chooses is rated lower.", (compared, between, more))
    return Verdict("open", "It cannot be told from chance yet.", (compared, between, "More ratings make it clearer."))


def _mean(mean: float | None) -> str:
    return "–" if mean is None else f"{mean:.2f}".replace("-", "−")


def picture(report: Report, low: float, high: float) -> Picture | None:
    """The mean rating of what was shown over time, of both kinds; None where two points of it cannot be drawn."""
    learned = mean_points([window.learned for window in report.series])
    left = mean_points([window.control for window in report.series])
    ends = [mean for mean in learned if mean is not None]
    if len(ends) < 2:
        return None
    x = list(accumulate(window.learned.shown + window.control.shown for window in report.series))
    lines = [stroke(LEARNED, "--accent", learned)]
    beside = ""
    if sum(mean is not None for mean in left) > 1:
        lines.append(stroke(APART, "--muted", left, DASHES))
    elif report.control.answered >= EACH:  # too few for a line over time
        lines.append(stroke(f"{APART}, on average", "--muted", [report.control.mean] * len(x), DASHES))
    if len(lines) > 1:
        beside = f" What was {APART} was rated {_mean(report.control.mean)} on average."
    return Picture(
        chart_json(x, "lists shown", [low, high], lines),
        f"Over {count(x[-1], 'list')} the mean rating of what was {LEARNED} went from {_mean(ends[0])} to "
        f"{_mean(ends[-1])}.{beside}",
        "How was what it showed rated, as time went on? Higher is better.",
    )


def foretold(found: Foretelling) -> Foretold:
    """How far off what was expected lay, beside who always says the item's mean so far."""
    if found.error is None or found.item_mean is None:
        return Foretold((f"{found.unsaid[:1].upper()}{found.unsaid[1:]}.",), None)
    told = [
        f"What it expected lay {found.error:.2f} off the rating on average; always saying the mean of the item so far "
        f"would have been {found.item_mean:.2f} off."
    ]
    apart = found.difference
    if apart is None:
        told.append(f"{found.unsaid[:1].upper()}{found.unsaid[1:]}.")
    else:
        told.append(
            f"The difference is {format_signed(apart.by)}, where below 0 is better; with 95 % certainty it lies "
            f"between {format_signed(apart.low)} and {format_signed(apart.high)}."
        )
    series = [(each.ratings, each.error, each.item_mean) for each in found.series if each.error is not None]
    parts = merge_windows(series)
    if len(parts) < 2:
        return Foretold(tuple(told), None)
    _, error, item_mean = zip(*parts)
    x = list(accumulate(n for n, _, _ in parts))
    lines = [
        stroke("what was expected", "--accent", [round(each, 4) for each in error]),
        stroke("always the item’s mean", "--muted", [round(each, 4) for each in item_mean], DASHES),
    ]
    shown = Picture(
        chart_json(x, "ratings given", "off", lines),
        f"Over {count(x[-1], 'rating')} what was expected went from {error[0]:.2f} to {error[-1]:.2f} off; always "
        f"saying the item's mean went from {item_mean[0]:.2f} to {item_mean[-1]:.2f}.",
        "How far off was it, as time went on? Lower is better.",
    )
    return Foretold(tuple(told), shown)


def measured(report: Report) -> list[str]:
    """How the comparison was made."""
    since = f", since {moment(report.since).told}" if report.since is not None else ""
    told = [
        f"Looked at: {'all' if report.whole else 'the newest'} {count(report.decisions, 'list')}{since}.",
        "A list counts with the mean of the ratings that were given to what was in it. Lists left to chance, or to the "
        "caller's own score where there is one, show what they show whatever was learned.",
        "What was expected of an item is what was said when it was shown, before its rating was known. Who sees that "
        "may be drawn towards it: ratings given on the page may be nearer than others. Actions are no ratings, and "
        "are not compared.",
    ]
    if report.difference is not None:
        people = f"{report.difference.people:,} here, where a list shown to nobody in particular counts as one"
        told.append(f"Ratings of one person resemble each other, so the interval counts people: {people}.")
    return told
