"""What a loop asks of its learner besides its interaction: the range of its feedback, the version of its code."""

from __future__ import annotations

from typing import Any

from heedful.loop.graders import is_grading
from heedful.loop.interactions import interaction_class
from heedful.loop.raters import is_rating
from heedful.loop.versions import version_of


def grades_of(learner: Any) -> int | None:
    """How many grades there are for a learner that predicts them; None for one that is taught what is better."""
    return learner.space.k if is_grading(type(learner)) else None


def ratings_of(learner: Any) -> tuple[float, float] | None:
    """The lowest and the highest rating for a learner of ratings; None for another."""
    return (learner.space.low, learner.space.high) if is_rating(type(learner)) else None


def learner_version(learner: Any) -> str:
    """The version of the fold of this learner: what the model declares, then what the learner does."""
    return version_of(interaction_class(type(learner)).model_type.version, learner)
