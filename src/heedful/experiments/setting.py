"""Settings for comparing learners: the simulated environments ("worlds"), the same for all, and how learners are made
for them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from heedful.learners.registry import learner_class, make_learner, summarise

Array = npt.NDArray[np.float64]


class Scene(NamedTuple):
    """A simulated environment (`world`) in which every learner is run once, with its random seeds.

    `seed` is the experiment's seed that it belongs to, `person` the number of the simulated person (0 where a seed has
    only one), `draw` the random seed of the run, and `w_star` (N,) the person's true utility weights, (0,) if there are
    none.
    """

    seed: int
    """the experiment's seed that the world belongs to"""
    person: int
    """the number of the simulated person; 0 where a seed has only one"""
    draw: int
    """the random seed of the run: of contexts, of feedback and of the learner's random choices"""
    world: Any
    """the simulated world (`heedful.core.fold.World`)"""
    w_star: Array
    """w*, the person's true utility weights by feature (N,); empty (0,) if the world has none"""


# Functions with names, so that a setting can be sent to another process.
def no_defaults(setting: Setting) -> Mapping[str, float]:
    """Return no values for hyperparameters: the `defaults` of a kind of feedback that has none."""
    return {}


def takes_any(spec: str, learner: Any, setting: Setting) -> None:
    """Refuse no learner: the `check` of a kind of feedback whose learners fit all its settings."""


class Kind(NamedTuple):
    """A kind of feedback (grades, ratings, corrections, ...), with what making a learner for it needs.

    `name` is the name in the docstrings of its learners (`Interaction: NAME.`), `teaches` what such a learner does, in
    words, for error messages. defaults(setting) returns values for hyperparameters that have none; check(spec, learner,
    setting) raises ValueError if the learner does not fit the setting.
    """

    name: str
    """the name in the docstrings of its learners: `Interaction: NAME.`"""
    teaches: str
    """what such a learner does, in words, for error messages"""
    defaults: Callable[[Setting], Mapping[str, float]] = no_defaults
    """given a setting, returns values, by name, for hyperparameters that have no default and were not given"""
    check: Callable[[str, Any, Setting], None] = takes_any
    """given a spec, its learner and a setting, raises ValueError if the learner does not fit the setting"""


class Setting(NamedTuple):
    """What learners are compared in: simulated environments (`scenes`), one for each seed and person, and what they all
    share.

    phi(x, y) is the feature vector, of `n_features` numbers (0 if items have none), of an object y of `space` that is
    shown in context x; utility is linear in it. `R` bounds its Euclidean norm and `S` its largest absolute entry (NaN
    without features). `alpha` is that of a strict user, whose answers gain at least this share of the possible gain;
    NaN for other users. `rounds` is the default number of rounds, after `warm` ones that do not count; `kind` is the
    kind of feedback, `measure` what is measured in each round, and `rising` says if more of it is better.
    """

    n_features: int
    """how many features an object has; 0 if items have none"""
    space: Any
    """what learners show: rankings, slates, grades, pairs (see `heedful.spaces`)"""
    R: float
    """the greatest Euclidean norm of phi(x, y); NaN if items have no features"""
    S: float
    """the greatest absolute value of an entry of phi(x, y); NaN if items have no features"""
    alpha: float
    """the alpha of a strict user, whose answers gain at least this share of the possible gain; NaN for other users"""
    rounds: int
    """the default number of rounds: one pass over the queries, 100 items, ..."""
    scenes: tuple[Scene, ...]
    """the worlds, sorted by seed, then by person"""
    kind: Kind
    """the kind of feedback that learners get"""
    measure: str = "regret"
    """the name of what is measured in each round"""
    warm: int = 0
    """how many rounds are played before the first one that counts"""
    rising: bool = False
    """whether a greater value of the measure is better"""

    def learner(self, spec: str) -> Any:
        """Return the learner that the text `spec` (such as "second-order:gamma=0.1") describes, made for this setting.

        Hyperparameters that have no value get the `defaults` of the kind of feedback. Raise ValueError for an unknown
        learner, one of another kind of feedback, or hyperparameters that make no sense or do not fit the setting.
        """
        interaction = summarise(learner_class(spec)).interaction
        if interaction not in ("", self.kind.name):
            expected = f"{self.kind.teaches} ({self.kind.name})"
            raise ValueError(f"learner: expected one that {expected}, got {spec}, which is {interaction}")
        learner = make_checked_learner(spec, self.n_features, self.space, **self.kind.defaults(self))
        self.kind.check(spec, learner, self)
        return learner


def blank_setting(space: Any, kind: Kind) -> Setting:
    """Return a setting without simulated environments, in which learners can be made just to see whether their text
    (NAME:FIELD=VALUE,...) is valid.

    `space` is what learners show, `kind` the kind of feedback.
    """
    return Setting(n_features=50, space=space, R=1.0, S=1.0, alpha=1.0, rounds=1, scenes=(), kind=kind)


def make_checked_learner(spec: str, n_features: int, space: Any, **defaults: float) -> Any:
    """Return the learner that the text `spec` (NAME:FIELD=VALUE,...) describes, for `n_features` features and objects
    of `space`, having called its `init`.

    `defaults` are values for hyperparameters that have none. Raise ValueError for an unknown learner, field or value, a
    field without a value, and, beginning with `spec`, for what `init` refuses.
    """
    learner = make_learner(spec, n_features=n_features, space=space, **defaults)
    try:
        learner.init(np.random.default_rng(0))
    except ValueError as error:
        raise ValueError(f"{spec}: {error}") from error
    return learner
