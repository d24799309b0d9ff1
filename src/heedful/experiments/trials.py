"""Small worlds to try a learner in, one for each interaction."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from heedful.learners.registry import learner_class, make_learner, summarise


def make_trial(spec: str) -> tuple[Any, Any]:
    """The learner named `spec`, and a small world of its interaction. ValueError for an unknown learner or
    interaction.
    """
    cls = learner_class(spec)
    own = getattr(cls, "interaction", None)
    if isinstance(own, type):  # one of somebody's own brings its people with it
        if not hasattr(own, "trial"):
            expected = "expected one with trial(spec), that gives the learner and a world to try it in"
            raise ValueError(f"interaction: {expected}, got {own.__name__}")
        made: tuple[Any, Any] = own.trial(spec)
        return made
    kind = summarise(cls).interaction or "coactive"
    if kind not in _TRIALS:
        raise ValueError(f"learner: expected one of {' or '.join(_TRIALS)} feedback, got {spec}, which is {kind}")
    return _TRIALS[kind](spec)


def _coactive(spec: str) -> tuple[Any, Any]:
    """(the learner, rankings of 8 candidates with 6 features)."""
    from heedful.experiments.run import Scene, Setting
    from heedful.spaces.ranking import Ranking
    from heedful.worlds.queries import feature_bounds, synthetic_queries
    from heedful.worlds.users import Noisy

    world, w_star = synthetic_queries(40, 8, 6, noise=1.0, user=Noisy(5))
    R, S = feature_bounds(world.X, world.offsets, Ranking(5))
    return Setting(6, Ranking(5), R, S, float("nan"), 40, (Scene(0, 0, 0, world, w_star),)).learner(spec), world


def _ordinal(spec: str) -> tuple[Any, Any]:
    """(the learner, instances of 6 features with grades from 1 to 5, or as many as the learner says)."""
    import numpy as np

    from heedful.spaces.ordinal import Ranks
    from heedful.worlds.instances import synthetic_ordinal

    learner = make_learner(spec, n_features=6, space=Ranks(5))
    try:
        learner.init(np.random.default_rng(0))
    except ValueError as error:
        raise ValueError(f"{spec}: {error}") from error
    return learner, synthetic_ordinal(40, 6, getattr(getattr(learner, "space", None), "k", 5))[0]


def _rating(spec: str) -> tuple[Any, Any]:
    """(the learner, 80 users who rate 90 items from 1 to 5, two of them at a time, each item once): they come in any
    order, also after many rounds, so that arrays have to grow."""
    import numpy as np

    from heedful.data.ratings import RatingTable
    from heedful.experiments.ratings import rating_setting

    rng = np.random.default_rng(0)
    users, items = np.nonzero(rng.random((80, 90)) < 0.1)
    names = np.arange(80).astype(str), np.arange(90).astype(str)
    table = RatingTable(users, items, rng.integers(1, 6, users.size).astype(np.float64), *names)
    setting = rating_setting(table, slate=2)
    return setting.learner(spec), setting.scenes[0].world


def _pairwise(spec: str) -> tuple[Any, Any]:
    """(the learner, 5 people who choose between two of 9 items with 3 features, and sometimes call them equally good,
    or cannot judge)."""
    import numpy as np

    from heedful.spaces.comparison import Choice
    from heedful.worlds.choices import gaussian_choosers

    features = np.random.default_rng(0).standard_normal((9, 3))
    learner = make_learner(spec, n_features=3, space=Choice(9, True, features))
    try:
        learner.init(np.random.default_rng(0))
    except ValueError as error:
        raise ValueError(f"{spec}: {error}") from error
    return learner, gaussian_choosers(5, 9, features=features, tie=0.3, unsure=0.1, lapse=0.05)


_TRIALS: dict[str, Callable[[str], tuple[Any, Any]]] = {
    "coactive": _coactive,
    "ordinal": _ordinal,
    "rating": _rating,
    "pairwise": _pairwise,
}
"""What a learner is tried in, by its interaction."""
