"""Learners by name, as loops take them, and the interaction that a learner names."""

from __future__ import annotations

from typing import Any

from heedful.learners.registry import make_learner, summarise

UNSAID = "coactive"
"""The interaction of a learner that names none."""


def named_interaction(cls: type) -> str:
    """Return the name of the interaction of a learner's class."""
    own = getattr(cls, "interaction", None)
    return str(own.name) if isinstance(own, type) and hasattr(own, "name") else summarise(cls).interaction or UNSAID


def loop_learner(spec: str, n_features: int, space: Any) -> Any:
    """Return the learner that `spec` names, over this many features. Raise ValueError if there is none, or if it is for
    simulations alone."""
    learner = make_learner(spec, n_features=n_features, space=space)
    if (simulated := getattr(learner, "simulation_only", None)) is not None:
        raise ValueError(f"learner: expected one for loops, got {spec}, which is for simulations alone: {simulated}")
    return learner
