"""Which model folds which learner: the one place where a loop asks for the interaction.

A learner that is taught what is better makes a coactive loop (`heedful.loop.model`), one that predicts grades a grading
loop (`heedful.loop.grading`).
"""

from __future__ import annotations

import hashlib
from typing import Any, TypeAlias

from heedful.loop import model
from heedful.loop.graders import is_grading
from heedful.loop.grading import GradingModel
from heedful.loop.model import Model

AnyModel: TypeAlias = Model | GradingModel


def grades_of(learner: Any) -> int | None:
    """How many grades there are for a learner that predicts them; None for one that is taught what is better."""
    return learner.space.k if is_grading(type(learner)) else None


def model_of(learner: Any, shrink: float = 0.0) -> AnyModel:
    """A fresh model that folds this learner."""
    return GradingModel(learner, shrink) if is_grading(type(learner)) else Model(learner, shrink)


def learner_version(learner: Any) -> str:
    """A digest of the code that a fold of this learner runs. Comments and docstrings do not count."""
    if not is_grading(type(learner)):
        return model.learner_version(learner)
    modules = {type(part).__module__ for part in (learner, learner.space, *learner) if hasattr(part, "_fields")}
    modules |= {"heedful.kernel", "heedful.loop.grading"}
    digest = hashlib.sha256()
    for name in sorted(modules):
        digest.update(name.encode() + model._code(name).encode())
    return digest.hexdigest()[:12]
