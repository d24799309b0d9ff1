"""Learners of loops by name, and the name of the interaction that a learner belongs to."""

from __future__ import annotations

from typing import Any

from heedful.learners.registry import make_learner, summarise

UNSAID = "coactive"
"""The interaction of a learner that does not say which it belongs to."""


def named_interaction(cls: type) -> str:
    """Return the name of the interaction, the kind of feedback ("ordinal"), that a learner's class `cls` belongs to.

    It is the class attribute `interaction`, otherwise the name in the class's docstring (`Interaction: ordinal.`),
    otherwise "coactive"."""
    own = getattr(cls, "interaction", None)
    return str(own.name) if isinstance(own, type) and hasattr(own, "name") else summarise(cls).interaction or UNSAID


def loop_learner(spec: str, n_features: int, space: object) -> Any:
    """Return the learner that `spec` names ("pairwise-logistic:rate=0.2"), for `n_features` features.

    `space` describes what the learner may show, such as rankings, and how features of that are computed. Raise
    ValueError if there is no such learner, or if it is for simulations only."""
    learner = make_learner(spec, n_features=n_features, space=space)
    if (simulated := getattr(learner, "simulation_only", None)) is not None:
        raise ValueError(f"learner: expected one for loops, got {spec}, which is for simulations alone: {simulated}")
    return learner
