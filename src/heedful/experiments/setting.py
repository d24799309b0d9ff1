"""What learners are compared in: the worlds that all of them meet, and how a learner is made to fit them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from heedful.learners.registry import learner_class, make_learner, summarise

Array = npt.NDArray[np.float64]


class Scene(NamedTuple):
    """A world that every learner meets in a run of its own."""

    seed: int
    """the experiment's seed that the world belongs to"""
    person: int
    """the number of the simulated person; 0 where a seed has only one"""
    draw: int
    """the seed of the fold: of contexts, feedback and the learner's draws"""
    world: Any
    w_star: Array
    """the person's utility weights (N,); (0,) where the world has none"""


class Kind(NamedTuple):
    """A kind of feedback, as far as a setting must know it to make the learners that take it."""

    name: str
    """what learners of this kind have in their docstring: `Interaction: NAME.`"""
    teaches: str
    """what such a learner does, in words"""
    defaults: Callable[[Setting], Mapping[str, float]] = lambda setting: {}
    """values for hyperparameters of these names that have no default and were not given"""
    check: Callable[[str, Any, Setting], None] = lambda spec, learner, setting: None
    """(the spec, its learner, the setting): raises ValueError if the learner does not fit the setting"""


class Setting(NamedTuple):
    """The setting in which learners are compared: one world for each seed and person, with what is known of all of
    them."""

    n_features: int
    space: Any
    R: float
    """the greatest Euclidean norm of phi"""
    S: float
    """the greatest absolute value of an entry of phi"""
    alpha: float
    """that of a strict user; NaN for any other"""
    rounds: int
    """how many rounds are played if nobody says: one pass over the queries, 100 items, ..."""
    scenes: tuple[Scene, ...]
    """by seed, then by person"""
    kind: Kind
    measure: str = "regret"
    """the name of what is measured in each round"""
    warm: int = 0
    """rounds that are played before the first one and do not count"""
    rising: bool = False
    """whether more of the measure is better"""

    def learner(self, spec: str) -> Any:
        """Make the learner that `spec` names, for this setting.

        Hyperparameters without a value get the defaults of the kind of feedback. Raise ValueError as `make_learner`
        does, for what the learner's init refuses, and for a learner that does not fit this kind of feedback or setting.
        """
        interaction = summarise(learner_class(spec)).interaction
        if interaction not in ("", self.kind.name):
            expected = f"{self.kind.teaches} ({self.kind.name})"
            raise ValueError(f"learner: expected one that {expected}, got {spec}, which is {interaction}")
        learner = make_checked_learner(spec, self.n_features, self.space, **self.kind.defaults(self))
        self.kind.check(spec, learner, self)
        return learner


def blank_setting(space: Any, kind: Kind) -> Setting:
    """Return a setting without scenes, in which learners can be made to see whether their specs are valid."""
    return Setting(n_features=50, space=space, R=1.0, S=1.0, alpha=1.0, rounds=1, scenes=(), kind=kind)


def make_checked_learner(spec: str, n_features: int, space: Any, **defaults: float) -> Any:
    """Make the learner that `spec` names (`make_learner`), and raise ValueError, beginning with `spec`, for what its
    init refuses."""
    learner = make_learner(spec, n_features=n_features, space=space, **defaults)
    try:
        learner.init(np.random.default_rng(0))
    except ValueError as error:
        raise ValueError(f"{spec}: {error}") from error
    return learner
