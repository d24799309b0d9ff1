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
    """A simulated environment in which every learner is run once, with its random seeds.

    - `seed`: the experiment's seed that the environment belongs to.
    - `person`: the number of the simulated person; 0 where a seed has only one.
    - `draw`: the random seed of the run: of contexts, of feedback and of the learner's random choices.
    - `world`: the environment, a `heedful.core.fold.World`.
    - `w_star` (N,): w*, the person's true utility weight of each feature; empty (0,) if the environment has none.
    """

    seed: int
    person: int
    draw: int
    world: Any
    w_star: Array


# Functions with names, so that a setting can be sent to another process.
def no_defaults(setting: Setting) -> Mapping[str, float]:
    """Return no values for hyperparameters: the `defaults` of a kind of feedback that has none."""
    return {}


def takes_any(spec: str, learner: Any, setting: Setting) -> None:
    """Accept every learner (return without an error): the `check` of a kind of feedback whose learners fit all its
    settings."""


class Kind(NamedTuple):
    """A kind of feedback (grades, ratings, corrections, ...), with what making a learner for it needs.

    - `name`: the name in the docstrings of its learners: `Interaction: NAME.`
    - `teaches`: what such a learner does, in words, for error messages ("takes ratings").
    - `defaults`: a function that returns, for a setting, values by name for hyperparameters that have no default of
      their own and were not given.
    - `check`: a function of a learner's text NAME:FIELD=VALUE,..., the learner and a setting; it raises ValueError if
      the learner does not fit the setting.
    """

    name: str
    teaches: str
    defaults: Callable[[Setting], Mapping[str, float]] = no_defaults
    check: Callable[[str, Any, Setting], None] = takes_any


class Setting(NamedTuple):
    """What learners are compared in: simulated environments, one for each seed and person, and what they all share.

    phi(x, y) is the feature vector of an object y that is shown in context x; utility is linear in it.

    - `n_features`: the number of entries of phi(x, y); 0 if items have no features.
    - `space`: what learners show: rankings, slates, grades, pairs (see `heedful.spaces`).
    - `R`, `S`: the greatest Euclidean norm of phi(x, y) and the greatest absolute value of an entry; NaN without
      features.
    - `alpha`: the share of the possible gain in utility that each answer of a strict user gains at least; NaN for other
      users.
    - `rounds`: the default number of rounds: one pass over the queries, 100 items, ...
    - `scenes`: the environments, sorted by seed, then by person.
    - `kind`: the kind of feedback that learners get.
    - `measure`: the name of what is measured in each round, such as "regret".
    - `warm`: how many rounds are played before the first one that counts.
    """

    n_features: int
    space: Any
    R: float
    S: float
    alpha: float
    rounds: int
    scenes: tuple[Scene, ...]
    kind: Kind
    measure: str = "regret"
    warm: int = 0

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


def make_checked_learner(spec: str, n_features: int, space: object, **defaults: float) -> Any:
    """Return the learner that the text `spec` (NAME:FIELD=VALUE,...) describes, for objects of `space` with
    `n_features` features.

    `defaults` are values for hyperparameters that have no default of their own. The learner's `init` is called once, to
    check them. Raise ValueError for an unknown learner, field or value, for a field without a value, and, beginning
    with `spec`, for what `init` refuses.
    """
    learner = make_learner(spec, n_features=n_features, space=space, **defaults)
    try:
        learner.init(np.random.default_rng(0))
    except ValueError as error:
        raise ValueError(f"{spec}: {error}") from error
    return learner
