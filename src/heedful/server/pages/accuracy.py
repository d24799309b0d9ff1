"""Does learning help, in a grading loop? How far predictions lay from the grades, in words and as a picture."""

from __future__ import annotations

from itertools import accumulate

from heedful.loop.interactions.ordinal.prediction_report import Accuracy
from heedful.loop.report import Report
from heedful.server.pages.charts import DASHES, Picture, Verdict, chart_json, format_signed, merge_windows, stroke
from heedful.server.pages.formatting import count, moment

IMPORTED = "noted without a prediction, or imported: grades of those teach, and are not compared"
"""What lists are that somebody else made."""


def verdict(found: Accuracy) -> Verdict:
    """Whether it predicts better than who says the same of everything, as far as that can be said."""
    if found.loss is None or found.constant is None or found.exact is None:
        return Verdict(
            "open", "Too early to say.", (f"{_capital(found.unsaid)}.", "The first grade on the page is a beginning.")
        )
    compared = (
        f"Predictions are {found.loss:.2f} of a grade off on average; always saying the middle one of the grades so "
        f"far would be {found.constant:.2f} off."
    )
    right = f"Exactly right: {found.exact:.0%} of {count(found.grades, 'grade')}.".replace("%", " %")
    apart = found.difference
    if apart is None:
        return Verdict("open", "Too early to say.", (compared, right, f"{_capital(found.unsaid)}."))
    between = (
        f"The difference is {format_signed(apart.by)}, where below 0 is better; with 95 % certainty it lies between "
        f"{format_signed(apart.low)} and {format_signed(apart.high)}."
    )
    if apart.high < 0.0:
        return Verdict(
            "good", "Yes: it predicts better than who says the same of everything.", (compared, between, right)
        )
    if apart.low > 0.0:
        more = "Look at the lessons below: some may be mistakes. Each can be undone."
        return Verdict("bad", "No: saying the same of everything would be nearer.", (compared, between, right, more))
    return Verdict(
        "open", "It cannot be told from chance yet.", (compared, between, right, "More grades make it clearer.")
    )


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def picture(found: Accuracy) -> Picture | None:
    """Both errors over time; None where two points of it cannot be drawn."""
    parts = merge_windows([(each.grades, each.loss, each.constant) for each in found.series])
    if len(parts) < 2:
        return None
    _, loss, constant = zip(*parts)
    x = list(accumulate(n for n, _, _ in parts))
    lines = [
        stroke("what was learned", "--accent", [round(each, 4) for each in loss]),
        stroke("always the middle grade", "--muted", [round(each, 4) for each in constant], DASHES),
    ]
    return Picture(
        chart_json(x, "grades given", "off", lines),
        f"Over {count(x[-1], 'grade')} predictions went from {loss[0]:.2f} to {loss[-1]:.2f} of a grade "
        f"off; always saying the middle one went from {constant[0]:.2f} to {constant[-1]:.2f}.",
        "How far off was it, as time went on? In grades; lower is better.",
    )


def measured(report: Report, found: Accuracy) -> list[str]:
    """How the comparison was made."""
    since = f", since {moment(report.since).told}" if report.since is not None else ""
    told = [
        f"Looked at: {'all' if report.whole else 'the newest'} {count(report.decisions, 'list')}{since}.",
        "Each grade is compared with what was predicted when its list was shown, before it was known. Who sees a "
        "prediction may be drawn towards it: grades given on the page may be nearer than others.",
        "The middle one is the median of all grades that came before; at first the middle of the scale.",
    ]
    if found.difference is not None:
        people = f"{found.difference.people:,} here, where a list shown to nobody in particular counts as one"
        told.append(f"Grades of one person resemble each other, so the interval counts people: {people}.")
    return told
