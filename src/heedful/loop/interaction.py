"""Which model folds which learner: the one place where a loop asks for the interaction.

A learner that is taught what is better makes a coactive loop (`heedful.loop.model`), one that predicts grades a grading
loop (`heedful.loop.grading`), one that is taught ratings a loop of ratings (`heedful.loop.rating`), one that is taught
choices a loop of choices (`heedful.loop.choosing`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from heedful.loop.choosers import is_choosing
from heedful.loop.choosing import ChoiceModel
from heedful.loop.graders import is_grading
from heedful.loop.grading import GradingModel
from heedful.loop.model import Model
from heedful.loop.raters import is_rating
from heedful.loop.rating import RatingModel
from heedful.loop.versions import version_of

AnyModel: TypeAlias = Model | GradingModel | RatingModel | ChoiceModel
Numbered: TypeAlias = RatingModel | ChoiceModel
"""Models that know items by numbers: they are made of the events of items, too."""


def grades_of(learner: Any) -> int | None:
    """How many grades there are for a learner that predicts them; None for one that is taught what is better."""
    return learner.space.k if is_grading(type(learner)) else None


def ratings_of(learner: Any) -> tuple[float, float] | None:
    """The lowest and the highest rating for a learner of ratings; None for another."""
    return (learner.space.low, learner.space.high) if is_rating(type(learner)) else None


def model_of(
    learner: Any, shrink: float = 0.0, actions: Mapping[str, Any] | None = None, n_features: int = 0
) -> AnyModel:
    """A fresh model that folds this learner; of one of ratings, what `actions` stand for; of one of choices, how many
    features an item has."""
    if is_rating(type(learner)):
        return RatingModel(learner, actions or {})
    if is_choosing(type(learner)):
        return ChoiceModel(learner, n_features)
    return GradingModel(learner, shrink) if is_grading(type(learner)) else Model(learner, shrink)


def learner_version(learner: Any) -> str:
    """The version of the fold of this learner: what the model declares, then what the learner does."""
    kind = type(learner)
    model: type[AnyModel] = Model
    if is_rating(kind):
        model = RatingModel
    elif is_choosing(kind):
        model = ChoiceModel
    elif is_grading(kind):
        model = GradingModel
    return version_of(model.version, learner)
