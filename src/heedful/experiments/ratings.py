"""Simulated experiments for learners of ratings: on the ratings of a file, or on random ratings.

>>> table, told = open_ratings("ml-100k")
>>> setting = rating_setting(table, repeats=False, seeds=range(5))
>>> runs = [event for event in simulate({"bmf": setting.learner("bmf")}, setting, 25000) if isinstance(event, Run)]

Compare learners with the simple counting rules in `SIMPLE`: without them, a regret says little.
"""

from __future__ import annotations

import inspect
import math
import typing
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from heedful.core.validation import check_count
from heedful.data.ratings import RatingTable
from heedful.experiments.setting import Kind, Scene, Setting
from heedful.learners.registry import parameters
from heedful.spaces.slate import Slate
from heedful.worlds.offers import warm_start
from heedful.worlds.ratings import (
    LowRank,
    Replay,
    bernoulli_ratings,
    gaussian_ratings,
    replay_ratings,
    uniform_ratings,
)

RATING = Kind("rating", "takes ratings")

SIMPLE = ("random-item", "user-greedy", "item-mean", "pair-mean")
"""The simple rules that every learner is compared with, by name."""

DRAWN: dict[str, Callable[..., LowRank]] = {
    "gaussian": gaussian_ratings,
    "uniform": uniform_ratings,
    "bernoulli": bernoulli_ratings,
}
"""The worlds with random ratings of Dadkhahi & Negahban 2018 ([A18]), by name; drawn again for every seed."""

ROUNDS = 25_000
"""The default number of rounds, from [A18]; fewer if there are not as many ratings."""


def is_drawn(name: str) -> bool:
    """Return True if `name` means random ratings: one of `DRAWN` ("gaussian", ...), perhaps with parameters after a
    colon.
    """
    return name.partition(":")[0].strip() in DRAWN


def rating_setting(
    source: RatingTable | str,
    *,
    repeats: bool = False,
    slate: int = 1,
    warm: int = 0,
    seeds: Sequence[int] = (0,),
) -> Setting:
    """Return the experiment in which users rate the items that a learner shows: with the ratings of the table `source`,
    or with random ratings if `source` is the name of a distribution.

    Each round belongs to a random user. On offer are the items that this user rated in the table: with `repeats` in
    every round, otherwise until the user has consumed them. Random ratings are one of `DRAWN`, perhaps with parameters
    ("uniform:n_users=50"); there all items are always on offer, and `repeats` has no effect. The learner shows `slate`
    items, which the user consumes and rates. Before round 1 the learner gets `warm` random ratings, drawn with the
    seed; each of `seeds` is a run of its own.

    Raise ValueError, naming what is wrong, for an unknown name, for counts that make no sense, and for more `warm`
    ratings than there are.
    """
    check_count("slate", slate, most=1000)
    check_count("warm", warm, least=0)
    worlds: list[Any]
    if isinstance(source, str):
        low_rank = [make_world(source, seed) for seed in seeds]
        worlds, low, high, rounds = list(low_rank), *_range(source, low_rank), ROUNDS
    else:
        replay = replay_ratings(source.users, source.items, source.values, repeats=repeats)
        low, high = float(source.values.min()), float(source.values.max())
        worlds = [replay] * len(seeds)
        rounds = ROUNDS if repeats else min(ROUNDS, rounds_in(replay, slate, warm))
    if warm:
        worlds = [warm_start(world, warm, seed) for world, seed in zip(worlds, seeds)]
    nothing = np.empty(0)
    return Setting(
        n_features=0,
        space=Slate(slate, low, high if high > low else low + 1.0),
        R=math.nan,
        S=math.nan,
        alpha=math.nan,
        rounds=rounds,
        scenes=tuple(Scene(seed, 0, seed, world, nothing) for seed, world in zip(seeds, worlds)),
        kind=RATING,
        warm=warm,
    )


def make_world(name: str, seed: int) -> LowRank:
    """Return the simulated environment with random ratings that `name` describes, such as `gaussian` or
    `uniform:n_users=50,width=0.1`, drawn with the random `seed`.

    Raise ValueError for an unknown name or parameter.
    """
    kind = name.partition(":")[0].strip()
    if kind not in DRAWN:
        raise ValueError(f"ratings: expected a file or {', '.join(DRAWN)}, got {kind!r}")
    function = DRAWN[kind]
    hints = typing.get_type_hints(function)
    fields = {field: hints[field] for field in inspect.signature(function).parameters if field != "seed"}
    values = parameters(name, fields)
    try:
        return function(**values, seed=seed)
    except ValueError as error:
        raise ValueError(f"{kind}: {error}") from None


def rounds_in(replay: Replay, slate: int, warm: int) -> int:
    """Return how many rounds a simulation on known ratings (`replay`) lasts if no item is shown twice to a user.

    `slate` items are shown in a round; `warm` of the ratings are given before the first round. The result is an upper
    bound if slates have more than one item.
    """
    slates = int(np.ceil(np.diff(replay.starts) / slate).sum())
    return max(slates - warm, 1) if slate == 1 else slates


def _range(name: str, worlds: Sequence[LowRank]) -> tuple[float, float]:
    """Return the (lowest, highest) possible rating in random `worlds` of this `name`; (-1e50, 1e50) if noise is
    unbounded."""
    if name.partition(":")[0].strip() == "gaussian":
        return -1e50, 1e50
    margin = max(world.width for world in worlds) / 2.0
    return -margin, 1.0 + margin


def make_trial(spec: str) -> tuple[Any, Any]:
    """Return (the learner that the text `spec` names, a small simulated environment to try it in): 80 users who rate 90
    items from 1 to 5.

    Two items are shown at a time, each once to a user. New users and items turn up late, so a learner has to grow its
    arrays.
    """
    rng = np.random.default_rng(0)
    users, items = np.nonzero(rng.random((80, 90)) < 0.1)
    names = np.arange(80).astype(str), np.arange(90).astype(str)
    table = RatingTable(users, items, rng.integers(1, 6, users.size).astype(np.float64), *names)
    setting = rating_setting(table, slate=2)
    return setting.learner(spec), setting.scenes[0].world
