"""Learners of loops by name, and the name of the interaction that a learner belongs to."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from heedful.learners.registry import UnknownLearner, find_learners, learner_class, make_learner, summarise

UNSAID = "coactive"
"""The interaction of a learner that does not say which it belongs to."""


def named_interaction(cls: type) -> str:
    """Return the name of the interaction, the kind of feedback ("ordinal"), that a learner's class `cls` belongs to.

    It is the class attribute `interaction`, otherwise the name in the class's docstring (`Interaction: ordinal.`),
    otherwise "coactive"."""
    own = getattr(cls, "interaction", None)
    return str(own.name) if isinstance(own, type) and hasattr(own, "name") else summarise(cls).interaction or UNSAID


def loop_learner(spec: str, n_features: int, space: object, interaction: str, wanted: str, products: int = 0) -> Any:
    """Return the learner that `spec` names ("posterior:swap=0.1"), for `n_features` features, of which the `products`
    before the last one are products of two others.

    `space` describes what the learner may show, such as rankings, and how features of that are computed. Raise
    ValueError, naming the field `learner`, if there is no such learner, if it belongs to another `interaction`
    (`wanted` says in words which are expected), if a parameter is not valid, or if it is for simulations only."""
    if named_interaction(learner_class(spec)) != interaction:
        raise ValueError(f"learner: expected one {wanted}, got {spec}")
    try:
        learner = make_learner(spec, n_features=n_features, space=space)
        if hasattr(learner, "products"):
            if learner.products:
                raise ValueError(f"products: expected none, as the loop's setting says it, got {learner.products}")
            learner = learner._replace(products=products)
        learner.init(np.random.default_rng(0))
    except ValueError as error:
        raise ValueError(f"learner: {error}") from None
    if (simulated := getattr(learner, "simulation_only", None)) is not None:
        raise ValueError(f"learner: expected one for loops, got {spec}, which is for simulations alone: {simulated}")
    return learner


def name_fitting(error: UnknownLearner, make: Callable[[str], object], others: Sequence[str] = ()) -> UnknownLearner:
    """Return `error`, about the name of a learner in a loop, with the names that fit the loop in place of all.

    They are those of the package for which `make(name)` raises no error, and `others`: what is no learner and can be
    named there as well, such as "always:MODEL"."""
    fitting = []
    for name in find_learners():
        try:
            make(name)
        except (ValueError, LookupError):
            continue
        fitting.append(name)
    return UnknownLearner(error.name, [*fitting, *others])
