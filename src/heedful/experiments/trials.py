"""A small simulated world for each interaction (kind of feedback), to try a learner in."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from heedful.experiments.registry import TRIALS
from heedful.learners.registry import learner_class, summarise


def make_trial(spec: str) -> tuple[Any, Any]:
    """Return (learner, simulated environment): the learner that the text `spec` names, and a small environment with its
    kind of feedback, to try it in.

    The kind of feedback, the interaction, is the one that the learner's docstring names (`Interaction: NAME.`); without
    one it is the first of `TRIALS`. If the learner has an attribute `interaction` that is a class, both come from that
    class's `trial(spec)`. Raise ValueError for an unknown learner or interaction, and for hyperparameters that make no
    sense.
    """
    cls = learner_class(spec)
    interaction = getattr(cls, "interaction", None)
    trial: tuple[Any, Any]
    if isinstance(interaction, type):
        if not hasattr(interaction, "trial"):
            expected = "expected one with trial(spec), that gives the learner and a world to try it in"
            raise ValueError(f"interaction: {expected}, got {interaction.__name__}")
        trial = interaction.trial(spec)
        return trial
    kind = summarise(cls).interaction or next(iter(TRIALS))
    if kind not in TRIALS:
        raise ValueError(f"learner: expected one of {' or '.join(TRIALS)} feedback, got {spec}, which is {kind}")
    trial = import_module(f"heedful.experiments.{TRIALS[kind]}").make_trial(spec)
    return trial
