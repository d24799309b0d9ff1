"""Simulated experiments for coactive learners, which show an object and get a better one as feedback: queries whose
documents are ranked, and items that are shown one at a time.

A `Setting` holds the simulated environments ("worlds") in which learners are compared, and what they share.

>>> setting = letor_setting(load_letor(*files), StrictAlpha(0.5), seeds=range(5))
>>> runs = [event for event in simulate({"perceptron": setting.learner("perceptron")}, setting, 784) ...]
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from heedful.core.validation import check_count
from heedful.data.catalogue import Catalogue
from heedful.data.letor import Queries, least_squares
from heedful.experiments.setting import Kind, Scene, Setting
from heedful.spaces.ranking import Ranking
from heedful.worlds.items import item_pool, taste
from heedful.worlds.queries import feature_bounds, query_stream, synthetic_queries
from heedful.worlds.users import ItemUser, Noisy, RankingUser, StrictAlpha

Array = npt.NDArray[np.float64]

RADIUS = 100.0
"""The default radius of the ball that holds the weights of a convex perceptron, from [J15] section 6.4.1."""


def check_for_clicks(spec: str, learner: object, user: object) -> None:
    """Raise ValueError if the simulated `user` answers with the clicked candidates alone, but `learner` would take them
    for an order of all candidates.

    A learner of clicks says with a true property `partial` that it takes such partial answers. `spec`: the learner as
    text, for the message.
    """
    if getattr(user, "clicks_only", False) and not getattr(learner, "partial", False):
        expected = "a learner of clicks, such as posterior, as with clicks_only an answer is no whole order"
        raise ValueError(f"learner: expected {expected}, got {spec}")


def _check(spec: str, learner: object, setting: Setting) -> None:
    if setting.scenes:
        check_for_clicks(spec, learner, getattr(setting.scenes[0].world, "user", None))


def _defaults(setting: Setting) -> dict[str, float]:
    return {"bound": setting.S, "radius": RADIUS}


COACTIVE = Kind("coactive", "takes corrections", defaults=_defaults, check=_check)


def letor_setting(queries: Queries, user: RankingUser, *, k: int = 5, seeds: Sequence[int] = (0,)) -> Setting:
    """Return the experiment of Shivaswamy & Joachims 2015 ([J15]) section 6.1.1 on `queries`: in each round the
    documents of a query are ranked, and the simulated person `user` answers with a better ranking.

    The person's true utility weights w* are the least-squares fit of the labels on the features. The utility of a
    ranking is that of its first `k` positions. Each of `seeds` is a run over all queries in another order. Raise
    ValueError for a `user` or a `k` that makes no sense.
    """
    space = Ranking(k)
    space.check()
    w_star = least_squares(queries.X, queries.labels).astype(np.float64)
    world = query_stream(queries.X, queries.labels, queries.offsets, w_star, user, k=k)
    R, S = feature_bounds(queries.X, queries.offsets, space)
    scenes = tuple(Scene(seed, 0, seed, world, w_star) for seed in seeds)
    return Setting(queries.X.shape[1], space, R, S, _alpha(user), queries.offsets.size - 1, scenes, COACTIVE)


def catalogue_setting(
    catalogue: Catalogue, user: ItemUser, *, people: int = 20, seeds: Sequence[int] = (0,)
) -> Setting:
    """Return an experiment on the items of the table `catalogue`: for each of `seeds`, `people` simulated people with
    random utility weights are shown one item at a time.

    Each person has a learner and a pool of items of their own; `user` says how they answer. The weights, and the seed
    of a person's run, follow from (seed, number of the person), so they are the same for every learner. Raise
    ValueError if `people` is less than 1.
    """
    check_count("people", people)
    scenes = []
    for seed in seeds:
        for person in range(people):
            draw = person_seed(seed, person)
            w_star, ratings = taste(catalogue.X, draw)
            scenes.append(Scene(seed, person, draw, item_pool(catalogue.X, w_star, user, ratings), w_star))
    return items_setting(catalogue.X, user, 100, scenes)


def items_setting(X: Array, user: ItemUser, rounds: int, scenes: Sequence[Scene]) -> Setting:
    """Return an experiment in which one of m items is shown in each round.

    `X` (m, N): the N features of each item; `user`: the simulated person who answers; `rounds`: the default number of
    rounds; `scenes`: the simulated environments with their seeds, all with these items.
    """
    R, S = float(np.linalg.norm(X, axis=1).max()), float(np.abs(X).max())
    return Setting(X.shape[1], Ranking(1), R, S, _alpha(user), rounds, tuple(scenes), COACTIVE)


def person_seed(seed: int, person: int) -> int:
    """Return the random seed of a person's run, given the experiment's `seed` and the number of the `person`."""
    return int(np.random.SeedSequence([seed, person]).generate_state(1)[0])


def _alpha(user: object) -> float:
    return user.alpha if isinstance(user, StrictAlpha) else math.nan


def make_trial(spec: str) -> tuple[Any, Any]:
    """Return (the learner that the text `spec` names, a small simulated environment to try it in): 40 queries with 8
    documents and 6 features to rank.
    """
    world, w_star = synthetic_queries(40, 8, 6, noise=1.0, user=Noisy(5))
    R, S = feature_bounds(world.X, world.offsets, Ranking(5))
    setting = Setting(6, Ranking(5), R, S, math.nan, 40, (Scene(0, 0, 0, world, w_star),), COACTIVE)
    return setting.learner(spec), world
