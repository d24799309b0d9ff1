"""The report of a loop as its page shows it: whether learning helps, feedback that taught little, regret in a
simulation."""

from __future__ import annotations

from typing import NamedTuple

from heedful.core.wording import count, share_of
from heedful.loop import Loop
from heedful.loop.interactions import findings
from heedful.loop.interactions.findings import Stroke
from heedful.loop.signals import duration
from heedful.results.report import MeasuredRegret, Report
from heedful.server.pages.charts import Picture, chart


class Share(NamedTuple):
    """A kind of feedback from which the model learns little: how much of it there is, and what it means."""

    name: str
    """the kind: "Empty", "Contradictory", "Late", "Undone\""""
    share: str
    """its share of all feedback: "4 %\""""
    number: int
    """how many pieces of feedback are of this kind"""
    told: str
    """what the kind means, as a sentence"""


class Truth(NamedTuple):
    """The mean regret of a loop whose feedback comes from a simulated person, whose utilities are known. Regret is how
    much more the best list would have been worth than the list shown."""

    told: str
    """the mean regret and its bound, in sentences"""
    picture: Picture | None
    """the mean regret over the answered lists; None before two points of it are known"""


def report_context(loop: Loop) -> dict[str, object]:
    """Return the values that the template needs to show the report of a loop, by name. This reads much of the log."""
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
    """Return how much feedback taught the model little: a Share for each of four reasons, [] without any feedback.

    `late_after` is the seconds after which feedback counts as late. `contradiction` completes the sentence "By now the
    model ...": it says what a model does that an answer contradicts."""
    given, empty, against, late, undone = report.feedback
    kinds = (
        ("Empty", empty, "They held nothing to learn from, such as none of these."),
        (
            "Contradictory",
            against,
            f"By now the model {contradiction}: people disagree, change their minds, or make mistakes.",
        ),
        ("Late", late, f"More than {duration(late_after)} after it was shown. They teach all the same."),
    )
    told = [Share(name, share_of(n, given), n, what) for name, n, what in kinds]
    told.append(
        Share("Undone", share_of(undone, given + undone), undone, "Taken back: nothing else on this page counts them.")
    )
    return told if given + undone else []


# ---------------------------------------------------------------------------- what only a simulation knows


def truth(found: MeasuredRegret) -> Truth:
    """Return the mean regret of the simulation `found` in words and as a chart, with the bound that a theorem sets for
    its learner, if one holds."""
    if found.regret is None:
        return Truth("No learned list was answered so far.", None)
    after = count(found.lists, "answered list")
    bound = (
        f"no bound holds: {found.unbound}"
        if found.bound is None
        else f"the theorem for its learner bounds it by {found.bound:.3g}"
    )
    told = (
        f"Mean regret after {after}: {found.regret:.3g}; {bound}. Regret is how much more the best "
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
