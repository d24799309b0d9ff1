"""Does learning help? What `Loop.report` measured, in words, shares and pictures."""

from __future__ import annotations

from itertools import accumulate
from typing import Any, NamedTuple

from heedful.loop import Loop
from heedful.loop.interactions.lists import MUTE
from heedful.loop.report import Report
from heedful.loop.simulation import Measured
from heedful.server.pages import accuracy, rated
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
    stroke,
)
from heedful.server.pages.formatting import count, moment, share


class Share(NamedTuple):
    """A kind of answer, how much of all it is, and what that means."""

    name: str
    share: str
    number: int
    told: str


class Truth(NamedTuple):
    """What only a simulation knows."""

    told: str
    picture: Picture | None


def of(loop: Loop) -> dict[str, Any]:
    """What the page tells of a loop's report. Reads much of the log."""
    report = loop.report()
    grades = report.grades
    told = {
        "foretold": None,
        "heights": "How high what was wanted stood",
        "little": little(report, loop.settings.late_after),
        "truth": None if report.simulation is None else truth(report.simulation),
    }
    if grades is not None:
        return told | {
            "verdict": accuracy.verdict(grades),
            "arms": [],
            "besides": describe_excluded(report, accuracy.IMPORTED),
            "picture": accuracy.picture(grades),
            "measured": accuracy.measured(report, grades),
        }
    if report.ratings is not None and loop.ratings is not None:
        return told | rated.of(report, report.ratings, *loop.ratings, loop.settings.control)
    return told | {
        "verdict": verdict(report, loop.settings.control),
        "arms": lists(report),
        "besides": describe_excluded(report),
        "picture": picture(report),
        "measured": measured(report),
    }


# ---------------------------------------------------------------------------- learned lists against those left alone


def verdict(report: Report, control: float) -> Verdict:
    """Whether learning helps, as far as that can be said; and where it cannot, what to do."""
    found, learned, left = report.difference, report.learned, report.control
    if found is None:
        why = f"{report.unsaid[:1].upper()}{report.unsaid[1:]}."
        if report.unsaid == MUTE:
            more = "Clicks, picks, ratings and choices do say that: with some of those it could be told."
            return Verdict("open", "That cannot be told here.", (why, more))
        if control == 0.0:
            more = "That share is set when a loop is made: with --control 0.05 one list in 20 is left alone."
            return Verdict("open", "That cannot be known here.", (why, more))
        more = f"One list in {1 / control:.0f} is left alone, in its own order; answers to those are what it takes."
        return Verdict("open", "Too early to say.", (why, more))
    compared = (
        f"How high what people wanted stood, where 1 is always first and 0.5 always second: {height(learned.mean)} in "
        f"learned lists, {height(left.mean)} in those left alone, as they came."
    )
    between = (
        f"The difference is {format_signed(found.by)}; with 95 % certainty it lies between "
        f"{format_signed(found.low)} and {format_signed(found.high)}."
    )
    if found.low > 0.0:
        return Verdict("good", "Yes: learned lists are better.", (compared, between))
    if found.high < 0.0:
        more = "Look at the lessons below: some may be mistakes. Each can be undone."
        return Verdict("bad", "No: learned lists are worse.", (compared, between, more))
    return Verdict("open", "It cannot be told from chance yet.", (compared, between, "More answers make it clearer."))


def height(mean: float | None) -> str:
    """How high something stood on average: 1 is always first, 0.5 always second; – where nobody said."""
    return "–" if mean is None else f"{mean:.2f}"


def lists(report: Report) -> list[Lists]:
    """The two kinds of lists; none where none was shown."""
    named = ("Learned", report.learned), ("Left alone", report.control)
    told = [Lists(name, arm.shown, arm.answered, height(arm.mean)) for name, arm in named]
    return told if any(arm.shown for _, arm in named) else []


def picture(report: Report) -> Picture | None:
    """Both kinds over time; None where two points of it cannot be drawn."""
    learned = mean_points([window.learned for window in report.series])
    left = mean_points([window.control for window in report.series])
    ends = [mean for mean in learned if mean is not None]
    if len(ends) < 2:
        return None
    x = list(accumulate(window.learned.shown + window.control.shown for window in report.series))
    lines = [stroke("learned", "--accent", learned)]
    if sum(mean is not None for mean in left) > 1:
        lines.append(stroke("left alone", "--muted", left, DASHES))
    elif report.control.answered >= EACH:  # too few for a line over time
        lines.append(stroke("left alone, on average", "--muted", [report.control.mean] * len(x), DASHES))
    return Picture(
        chart_json(x, "lists shown", "place", lines),
        f"Over {count(x[-1], 'list')} it went from {height(ends[0])} to {height(ends[-1])} how high what people wanted "
        "stood in learned lists; 1 is always first.",
        "At which place stood what people wanted, as time went on? Higher is better.",
    )


def measured(report: Report) -> list[str]:
    """How the comparison was made."""
    since = f", since {moment(report.since).told}" if report.since is not None else ""
    told = [
        f"Looked at: {'all' if report.whole else 'the newest'} {count(report.decisions, 'list')}{since}.",
        "A list counts 1 where what was wanted stood first, 1/2 where it stood second, 1/3 where third, and 0 where it "
        "was not in it or none of it was wanted. What is told is the average of that.",
        "Thumbs and edits do not say what was wanted rather than what, so they are left out.",
    ]
    if report.difference is not None:
        people = f"{report.difference.people:,} here, where a list shown to nobody in particular counts as one"
        told.append(f"Lists of one person resemble each other, so the interval counts people: {people}.")
    return told


# ---------------------------------------------------------------------------- what answers were worth


def little(report: Report, late_after: float) -> list[Share]:
    """The answers that teach little, by why; none where none came."""
    given, empty, against, late, undone = report.feedback
    otherwise = "has it the other way round" if report.grades is None else "would say a grade two or more away"
    if report.ratings is not None:
        otherwise = "would expect a rating more than a quarter of the scale away"
    kinds = (
        ("Empty", empty, "There was nothing in it to learn from, such as none of these."),
        (
            "Contradictory",
            against,
            f"By now the model {otherwise}: people disagree, change their minds, or make mistakes.",
        ),
        ("Late", late, f"More than {_lasting(late_after)} after the list. They teach all the same."),
    )
    told = [Share(name, share(n, given), n, what) for name, n, what in kinds]
    told.append(Share("Undone", share(undone, given + undone), undone, "Taken back: they count in nothing else here."))
    return told if given + undone else []


def _lasting(seconds: float) -> str:
    """A span of time."""
    for unit, name in ((86400.0, "day"), (3600.0, "hour"), (60.0, "minute")):
        if seconds >= unit:
            return f"{seconds / unit:.3g} {name}{'' if seconds == unit else 's'}"
    return f"{seconds:.3g} seconds"


# ---------------------------------------------------------------------------- what only a simulation knows


def truth(found: Measured) -> Truth:
    """Regret, with its bound where there is one."""
    if found.regret is None:
        return Truth("No learned list was answered so far.", None)
    after = count(found.lists, "answered list")
    bound = f"by {found.bound or 0.0:.3g} at most, says the theorem for its learner"
    told = (
        f"After {after} the lists shown fall short of the best by {found.regret:.3g} on average; "
        f"{bound if found.bound is not None else f'no bound: {found.unbound}'}. That is in the units of the hidden "
        "taste: how much more the best list would have been worth."
    )
    curve = [(each.t, each.regret if each.regret > 0.0 else None, each.bound) for each in found.curve]
    if len(curve) < 2:
        return Truth(told, None)
    x, regret, limit = zip(*curve)
    lines = [stroke("regret", "--accent", regret)]
    lines += [stroke("bound", "--muted", limit, DASHES)] if found.bound is not None else []
    shown = Picture(
        chart_json(x, "answered lists", "log", lines),
        f"Average regret over {after}, now {found.regret:.3g}.",
        "How far the lists shown fell short of the best, on average so far; lower is better. The axis is logarithmic.",
    )
    return Truth(told, shown)
