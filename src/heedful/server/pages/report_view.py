"""The report of a loop, with the charts that its page draws: whether learning helps, regret in a simulation."""

from __future__ import annotations

from heedful.core.wording import count
from heedful.loop import Loop
from heedful.loop.interactions.findings import Picture, Stroke
from heedful.results.report import MeasuredRegret


def report_context(loop: Loop) -> dict[str, object]:
    """Return the values that the template needs to show the report of a loop, by name. This reads much of the log."""
    report, interaction = loop.report(), loop.projection.interaction
    return {
        "card": interaction.describe(),
        "findings": interaction.findings(report),
        "feedback": report.feedback,
        "late_after": loop.settings.late_after,
        "truth": report.simulation,
        "regret": None if report.simulation is None else regret_picture(report.simulation),
    }


def regret_picture(simulation: MeasuredRegret) -> Picture | None:
    """Return a picture of the mean regret of a `simulation` over time, with the bound that a theorem sets for its
    learner, if one holds; None before two points of it are known."""
    if simulation.regret is None or len(simulation.curve) < 2:
        return None
    x, regret, limit = zip(
        *[(point.t, point.regret if point.regret > 0.0 else None, point.bound) for point in simulation.curve]
    )
    lines = [Stroke("regret", regret)] + ([Stroke("bound", limit, True)] if simulation.bound is not None else [])
    caption = "Mean regret so far. Lower is better; logarithmic axis."
    text = f"Mean regret over {count(simulation.lists, 'answered list')}, now {simulation.regret:.3g}."
    return Picture(x, "answered lists", "log", tuple(lines), text, caption)
