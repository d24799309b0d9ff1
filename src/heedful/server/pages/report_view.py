"""Does learning help? What a report says of a loop, what its answers were worth, and what a simulation knows."""

from __future__ import annotations

from typing import Any, NamedTuple

from heedful.loop import Loop
from heedful.loop.interactions import findings
from heedful.loop.interactions.findings import Stroke, count
from heedful.loop.report import Report
from heedful.loop.simulation import Measured
from heedful.server.pages.charts import Picture, chart
from heedful.server.pages.formatting import share


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


def report_context(loop: Loop) -> dict[str, Any]:
    """What the page tells of a loop's report. Reads much of the log."""
    report, interaction = loop.report(), loop.projection.interaction
    found, card = interaction.findings(report), interaction.describe()
    return {
        "card": card,
        "findings": found,
        "picture": chart(found.picture),
        "sections": [(each.title, each.sentences, chart(each.picture)) for each in found.sections],
        "little": wasted_answers(report, loop.settings.late_after, card.contradiction),
        "truth": None if report.simulation is None else truth(report.simulation),
    }


# ---------------------------------------------------------------------------- what answers were worth


def wasted_answers(report: Report, late_after: float, contradiction: str) -> list[Share]:
    """The answers that teach little, by why; none where none came."""
    given, empty, against, late, undone = report.feedback
    kinds = (
        ("Empty", empty, "They held nothing to learn from, such as none of these."),
        (
            "Contradictory",
            against,
            f"By now the model {contradiction}: people disagree, change their minds, or make mistakes.",
        ),
        ("Late", late, f"More than {_duration(late_after)} after the list. They teach all the same."),
    )
    told = [Share(name, share(n, given), n, what) for name, n, what in kinds]
    told.append(
        Share("Undone", share(undone, given + undone), undone, "Taken back: nothing else on this page counts them.")
    )
    return told if given + undone else []


def _duration(seconds: float) -> str:
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
    bound = f"the theorem for its learner bounds it by {found.bound or 0.0:.3g}"
    told = (
        f"Mean regret after {after}: {found.regret:.3g}; "
        f"{bound if found.bound is not None else f'no bound holds: {found.unbound}'}. Regret is how much more the best "
        "list would have been worth than the list shown, in units of the simulated person's utility."
    )
    curve = [(each.t, each.regret if each.regret > 0.0 else None, each.bound) for each in found.curve]
    if len(curve) < 2:
        return Truth(told, None)
    x, regret, limit = zip(*curve)
    lines = [Stroke("regret", regret)] + ([Stroke("bound", limit, True)] if found.bound is not None else [])
    caption = "Mean regret so far. Lower is better; logarithmic axis."
    text = f"Mean regret over {after}, now {found.regret:.3g}."
    return Truth(told, chart(findings.Picture(x, "answered lists", "log", tuple(lines), text, caption)))
