"""What would another learner have made of the same log? Counterfactual replay, one procedure for all kinds.

Every answer is compared with what the other learner would have predicted, before it learns from it. Nothing is changed.
"""

from __future__ import annotations

from typing import NamedTuple

from heedful.loop.projection import Projection


class Replayed(NamedTuple):
    """The result of replaying a log with another learner."""

    learner: str
    lessons: int
    weights: dict[str, float]
    """by feature, the caller's score last (1 more than what was learned of it)"""
    agreement: float | None
    """the share of comparisons that it ranked as the person did, before it learned from them; None if there are none"""
    comparisons: float
    """how many there were, of answers that neither learner chose; what is compared, the interaction says"""
    error: float | None = None
    """the mean of |predicted - given|, each before it learned from it; None without any, and where no number is
    predicted"""
    predicted: int | None = None
    """how many answers that is over; None where no number is predicted"""


def replay(projection: Projection, spec: str) -> Replayed:
    """Fold the log with the learner that `spec` names, and compare its predictions with the answers.

    Raise ValueError if there is no such learner, if it does not fit the loop, or if it fails on the log."""
    found, lessons = projection.interaction.counterfactual(spec), 0
    for event, decision, feedback in projection.steps(found.model):
        try:
            step = projection.step(event, decision, feedback)
            found.score(step)
            lessons += found.model.teach(step.context, feedback, step.extra, event.seq)
        except Exception as error:  # whatever a learner of somebody's own raises
            raise ValueError(f"learner: {spec} failed on feedback {event.id}: {error}") from error
    result: Replayed = found.result(spec, lessons)
    return result
